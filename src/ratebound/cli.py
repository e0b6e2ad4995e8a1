"""The command ``ratebound``: demonstrations, and the paper's experiments.

What a command needs is imported when it runs, so that ``ratebound --version`` answers at once.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ratebound import __version__

_EXIT_BAD_INPUT = 2
_EXIT_INTERRUPTED = 130  # what shells say of a command that Ctrl-C ended
_DEMO_DATA = ("breast-cancer", "adult")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process.

    Returns
    -------
    int
        Exit status: 0, 2 where something that was asked for cannot be had, 130 after Ctrl-C.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal may not know every sign that is printed
            stream.reconfigure(errors="replace")
    given = _parser().parse_args(arguments)
    try:
        return int(given.command(given))
    except (OSError, ValueError, ImportError) as error:
        return _say_why(error)
    except KeyboardInterrupt:
        print("\nratebound: interrupted", file=sys.stderr)
        return _EXIT_INTERRUPTED


def _say_why(error: Exception) -> int:
    print(f"ratebound: {error}", file=sys.stderr)
    return _EXIT_BAD_INPUT


def _demo(given: argparse.Namespace) -> int:
    from ratebound.demos import DEMOS

    DEMOS[given.data](given.seed)
    return 0


def _reproduce(given: argparse.Namespace) -> int:
    from ratebound.experiments import NAMES, load
    from ratebound.experiments.drawing import need_matplotlib
    from ratebound.experiments.writing import reproduce

    need_matplotlib()
    status = 0
    for name in NAMES if given.name == "all" else (given.name,):
        folder = _folder(given, name)
        try:
            print(f"{name}: results go to {folder}", file=sys.stderr)
            reproduce(load(name), folder, runs=given.runs, quick=given.quick, jobs=given.jobs)
        except (OSError, ValueError, ImportError) as error:  # the others may go well
            status = _say_why(error)
    return status


def _folder(given: argparse.Namespace, name: str) -> Path:
    if given.out is not None:
        return given.out / name if given.name == "all" else Path(given.out)
    return Path("reproduced") / (f"{name}-quick" if given.quick else name)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ratebound",
        description="Train binary classifiers that must meet goals stated as rates on datasets.",
    )
    parser.add_argument("--version", action="version", version=f"ratebound {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="{demo,reproduce}")
    _add_demo(commands)
    _add_reproduce(commands)
    return parser


def _add_demo(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    demo = commands.add_parser(
        "demo",
        help="train a classifier under goals on real data, in a few seconds",
        description="Train a classifier under goals on real data and print what comes of it.",
    )
    demo.set_defaults(command=_demo)
    demo.add_argument(
        "--data",
        choices=_DEMO_DATA,
        default="breast-cancer",
        help="breast-cancer (default): recall, churn and coverage, on data that scikit-learn "
        "bundles; adult: the 80%% rule, on data that is downloaded where it is not at hand",
    )
    demo.add_argument(
        "--seed",
        type=_seed,
        default=0,
        help="of the random split of breast-cancer (default 0); adult comes split",
    )


def _add_reproduce(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from ratebound.experiments import NAMES

    reproduce = commands.add_parser(
        "reproduce",
        help="make an experiment of the paper, or one beyond it, and hold it against its claims",
        description="Make the runs of an experiment, and write every run as CSV, figures as PNG "
        "and SVG, and a summary that says which claims were met. A command that was ended goes on "
        "where it was when it is given again.",
    )
    reproduce.set_defaults(command=_reproduce)
    reproduce.add_argument(
        "name", choices=(*NAMES, "all"), metavar="NAME", help=f"{', '.join(NAMES)}, or all"
    )
    reproduce.add_argument(
        "--runs", type=_positive, help="how many runs; by default what the experiment says"
    )
    reproduce.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder for what comes out (default: reproduced/NAME, or NAME-quick there with "
        "--quick); with all, one in it for each",
    )
    reproduce.add_argument(
        "--quick", action="store_true", help="few rows, points and runs: does it work at all?"
    )
    reproduce.add_argument(
        "--jobs", type=_positive, help="runs at a time (default: the number of cores)"
    )


def _seed(text: str) -> int:
    seed = int(text)
    if not 0 <= seed < 2**32:
        raise argparse.ArgumentTypeError(f"a seed is between 0 and {2**32 - 1}, not {seed}")
    return seed


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


if __name__ == "__main__":
    sys.exit(main())
