"""``python -m benchmarks TABLE ...``: the tables of ratebound against its peers.

Writes ``TABLE.json`` and ``TABLE.md`` for each into ``--out`` and prints the Markdown.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks.tables import TABLES, Setting, markdown, run


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("tables", nargs="*", help=f"of {', '.join(TABLES)}; all by default")
    parser.add_argument("--out", type=Path, default=Path("benchmark_results"))
    parser.add_argument("--repeats", type=int, default=5, help="warm calls, whose median is taken")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--budget", type=float, default=600.0, help="s to begin calls in")
    parser.add_argument("--limit", type=float, default=1800.0, help="s after which it is stopped")
    parser.add_argument("--only", default="", help="systems whose name contains this")
    parser.add_argument("--rows", type=int, help="the first so many training rows only")
    parser.add_argument(
        "--python", action="append", default=[], metavar="PART=PATH",
        help="interpreter for systems whose name contains PART",
    )  # fmt: skip
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="of the ratios")
    parser.add_argument("--prefix", default="", help="words in front of every system's command")
    given = parser.parse_args()
    for name in given.tables:
        if name not in TABLES:
            parser.error(f"there is no table {name!r} (there are: {', '.join(TABLES)})")
    setting = Setting(
        given.repeats, given.threads, given.budget, given.limit,
        dict(pair.split("=", 1) for pair in given.python), given.prefix, given.clock,
        given.rows,
    )  # fmt: skip
    given.out.mkdir(parents=True, exist_ok=True)
    for name in given.tables or TABLES:
        result = run(name, setting, given.only)
        text = markdown(result)
        (given.out / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
        (given.out / f"{name}.md").write_text(text)
        print(text)


if __name__ == "__main__":
    main()
