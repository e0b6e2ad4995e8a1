"""One system on one task in a process of its own: first call, later calls, memory, answers.

``python -m benchmarks.worker SYSTEM TASK.npz OUT_FOLDER REPEATS BUDGET`` writes ``times.json``
after every call, so that a process that is stopped leaves what it has, and ``answer.npz`` after the
first.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers import SYSTEMS
from benchmarks.task import Answer, Inexpressible, Task


def peak_mib() -> float:
    """The most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    name, task_path, out, repeats, budget = sys.argv[1:]
    folder = Path(out)
    warnings.simplefilter("ignore")
    said: dict[str, Any] = {"status": "started"}

    def tell(**more: Any) -> None:
        said.update(more)
        (folder / "times.json").write_text(json.dumps(said, default=float))

    task = Task.read(Path(task_path))
    began = time.perf_counter()
    try:
        fit, answer_of = SYSTEMS[name](task)
    except ImportError as error:
        return tell(status=f"not installed: {error}")
    except Inexpressible as error:
        return tell(status=f"not expressible: {error}")
    tell(setup=time.perf_counter() - began, memory_before=peak_mib())
    calls: list[float] = []
    processor: list[float] = []  # seconds of all cores, which other programs' work adds little to
    while len(calls) <= int(repeats) and (not calls or sum(calls) < float(budget)):
        began, worked = time.perf_counter(), time.process_time()
        try:
            model = fit()
        except Exception as error:
            line = str(error).strip().splitlines()[0] if str(error).strip() else ""
            return tell(status=f"failed: {type(error).__name__}: {line[:200]}")
        calls.append(time.perf_counter() - began)
        processor.append(time.process_time() - worked)
        tell(first=calls[0], warm=calls[1:], processor=processor, memory=peak_mib())
        if len(calls) == 1:
            save(folder, answer_of(model), tell)
    tell(status="done")


def save(folder: Path, answer: Answer, tell: Any) -> None:
    arrays = {
        name: np.asarray(value)
        for name in ("train", "test", "train_probability", "test_probability")
        if (value := getattr(answer, name)) is not None
    }
    np.savez(folder / "answer.npz", **arrays)
    tell(counts=answer.counts, optimum=answer.optimum)


if __name__ == "__main__":
    main()
