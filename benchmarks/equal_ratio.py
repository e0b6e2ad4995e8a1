"""Test error at equal test ratio on Adult: ours, at the ratio of positive rates of every system.

``python -m benchmarks ratio parity`` first; then ``python -m benchmarks.equal_ratio`` reads what
they have left in ``--out``. Bounds do not decide a comparison on test rows, where each system has
another ratio: so ours is fitted along bounds, alpha chosen on the training rows for each, and its
test error interpolated at the ratios that the others have reached.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.problems import adult, columns
from ratebound import Goals, RateBoundSVCCV, error_rate, positive_rate

BOUNDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05)
TABLES = ("ratio", "parity")


def ratio(rates: dict[str, float]) -> float:
    """Women's positive rate as a share of men's."""
    return rates["women"] / max(rates["men"], 1e-12)


def others(folder: Path) -> list[tuple[str, str, float, float]]:
    """Table, system, test ratio and test error of all that have decided."""
    found = []
    for table in TABLES:
        systems = json.loads((folder / f"{table}.json").read_text())["systems"]
        for name, said in systems.items():
            if "test" in said and "no goal" not in name:
                test = said["test"]
                found.append((table, name, ratio(test["rates"]), test["objective"]))
    return found


def ours() -> list[tuple[float, float, float, float]]:
    """Bound, alpha, test ratio and test error, bound by bound."""
    task = adult("ratio")
    women, men = (positive_rate(where={"sex": sex}) for sex in ("Female", "Male"))
    found = []
    for bound in BOUNDS:
        cv = RateBoundSVCCV(Goals(error_rate(), [men <= women / bound]))
        cv.fit(task.X, task.y, columns=columns(task.men))
        decided = cv.predict(task.X_test)
        rates = {"men": decided[task.men_test].mean(), "women": decided[~task.men_test].mean()}
        found.append((bound, cv.alpha_, ratio(rates), float(np.mean(decided != task.y_test))))
    return found


def markdown(fits: list[tuple[float, float, float, float]], peers: list[Any]) -> str:
    lines = ["| bound | alpha | test ratio | test error |", "|---|---|---|---|"]
    lines += [f"| {b:g} | {a:.1e} | {r:.3f} | {e:.4f} |" for b, a, r, e in fits]
    lines += ["", "| table | system | test ratio | test error | ours at that ratio |"]
    lines.append("|---|---|---|---|---|")
    reached, errors = np.array(sorted((r, e) for _, _, r, e in fits)).T
    for table, name, there, error in peers:
        inside = reached[0] <= there <= reached[-1]
        same = f"{np.interp(there, reached, errors):.4f}" if inside else "not reached"
        lines.append(f"| {table} | {name} | {there:.3f} | {error:.4f} | {same} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("benchmark_results"))
    given = parser.parse_args()
    text = markdown(ours(), others(given.out))
    (given.out / "equal_ratio.md").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
