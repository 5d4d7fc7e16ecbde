"""The tables of docs/tensorflow.md: every name resolves, and every test exists."""

from __future__ import annotations

import ast
import inspect
import pydoc
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import cyxla
from cyxla.tools.main import VERBS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tensorflow.md"
HOMES = ("cyxla.", "cyxla.core.framework.")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.read_text().splitlines()
    if line.startswith("| ") and not line.startswith(("| In ", "| --- "))
]
FEATURES = [row for row in ROWS if len(row) == 3]
NAMES = sorted({name for _, here, _ in FEATURES for name in re.findall(r"`([^`]+)`", here)})
TESTS = sorted({test for _, _, shown in FEATURES for test in re.findall(r"`([^`]+)`", shown)})


@cache
def functions_of(path: Path) -> frozenset[str]:
    return frozenset(node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef))


@cache
def attributes_of(cls: type) -> frozenset[str]:
    """Names that instances of a class have, too: fields, and what its methods assign."""
    names = set(dir(cls))
    for base in cls.__mro__:
        names |= vars(base).get("__annotations__", {}).keys()
        stores = [n for n in ast.walk(source(base)) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)]
        names |= {store.attr for store in stores}
    return frozenset(names)


def source(cls: type) -> ast.AST:
    try:
        return ast.parse(inspect.getsource(cls))
    except (OSError, TypeError):  # of C
        return ast.Module([], [])


def located(name: str) -> Any:
    homes = ("",) if name.startswith("cyxla.") else HOMES
    return next((found for home in homes if (found := pydoc.locate(home + name)) is not None), None)


def resolves(name: str) -> bool:
    """Return True for names of Python, verbs of the command, modules that run, and headers."""
    if name.endswith((".h", ".hpp")):
        return (Path(cyxla.get_include()) / name).is_file()
    if name.startswith("python -m "):
        spec = find_spec(name.removeprefix("python -m "))
        folders = (spec and spec.submodule_search_locations) or ()
        return any((Path(folder) / "__main__.py").is_file() for folder in folders)
    if name.startswith("cyxla "):
        return name.removeprefix("cyxla ") in VERBS
    owner, _, last = name.rpartition(".")
    if located(name) is not None:
        return True
    cls = located(owner) if owner else None
    return isinstance(cls, type) and last in attributes_of(cls)


@pytest.mark.parametrize("name", NAMES)
def test_names_resolve(name: str) -> None:
    assert resolves(name)


@pytest.mark.parametrize("test", TESTS)
def test_tests_exist(test: str) -> None:
    path, _, function = test.partition("::")
    assert (ROOT / path).is_file()
    assert function in functions_of(ROOT / path)


def test_rows_are_complete() -> None:
    assert len(FEATURES) > 100
    for _, here, shown in FEATURES:
        assert re.search("`.+`", here), here
        assert re.fullmatch(r"`tests/[\w/]+\.py::test_\w+`", shown), shown
    reasons = [row for row in ROWS if len(row) != 3]
    assert [len(row) for row in reasons] == [2] * len(reasons)
    assert all(reason for _, reason in reasons)


@pytest.mark.parametrize("name", [
    "OpKernelContext.nothing", "nothing", "hex", "cyxla nothing", "cyxla/nothing.h", "python -m cyxla.nothing",
    "python -m cyxla.errors", "Nothing.at_all",
])  # fmt: skip
def test_names_that_are_gone_do_not_resolve(name: str) -> None:
    assert not resolves(name)
