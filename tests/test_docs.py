"""docs/paper.md names objects and tests that exist, and leaves nothing of the paper out."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "paper.md"

# What the paper numbers: 19 equations, 3 problems and so on.
NUMBERED = {
    "Problem": 3,
    "Algorithm": 3,
    "Definition": 4,
    "Equation": 19,
    "Lemma": 7,
    "Theorem": 5,
    "Corollary": 1,
    "Table": 4,
    "Figure": 3,
}


def rows() -> list[tuple[str, str, str]]:
    """(paper, code, test) of every row of the page's tables of that header."""
    found, inside = [], False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if cells == ["paper", "code", "test"]:
            inside = True
        elif inside and not line.startswith("|"):
            inside = False
        elif inside and not line.startswith("|---"):
            assert len(cells) == 3, line
            found.append((cells[0].lstrip("| "), cells[1], cells[2].rstrip("| ")))
    return found


ROWS = rows()


def resolve(path: str) -> Any:
    """The object at a dotted path: modules first, then attributes and fields."""
    names = path.split(".")
    for end in range(len(names), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(names[:end]))
        except ModuleNotFoundError:
            continue
        break
    for name in names[end:]:
        if dataclasses.is_dataclass(found) and name in {f.name for f in dataclasses.fields(found)}:
            return found
        found = getattr(found, name)
    return found


@cache
def definitions(file: str) -> frozenset[str]:
    """Functions of a test file, those of classes as Class::function."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    names = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}::{f.name}" for f in node.body if isinstance(f, ast.FunctionDef)}
    return frozenset(names)


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_what_a_row_names_exists(row):
    paper, code, test = row
    quoted = re.findall("`([^`]+)`", code)
    objects = [name for name in quoted if re.fullmatch(r"ratebound(\.\w+)+", name)]
    files = [name for name in quoted if re.fullmatch(r"benchmarks/\w+\.py", name)]
    assert objects or files, f"{paper}: no object"
    for name in objects:
        resolve(name)
    for name in files:
        assert (ROOT / name).is_file()
    tests = re.findall("`([^`]+)`", test)
    assert tests, f"{paper}: no test"
    for name in tests:
        file, _, function = name.partition("::")
        assert function in definitions(file), name


@pytest.mark.parametrize("kind", NUMBERED)
def test_nothing_numbered_is_left_out(kind):
    listed = {int(found[1]) for row in ROWS if (found := re.match(rf"{kind} (\d+)\b", row[0]))}
    assert listed == set(range(1, NUMBERED[kind] + 1))
