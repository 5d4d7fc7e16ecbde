"""Definitions of functions in their files."""

import ast
import inspect
import linecache
import math
import warnings
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import cyxla
from cyxla.numpy.rewriting.syntax.source import definition_of

TABLE = np.arange(3.0)
PAIR = (lambda x: x + 1, lambda x: x + 2)
SAME = [lambda x: np.sin(x), lambda x: np.sin(x)]
OTHERS = [lambda x: np.sin(x), lambda x: np.cos(x), lambda x: x.sin()]

# fmt: off
LAMBDAS = {
    "operator": (lambda x: x * 2, "x * 2"),
    "call of a module's function": (lambda x: np.tanh(x), "np.tanh(x)"),
    "tuple": (lambda x: (np.tanh(x @ TABLE), TABLE), "(np.tanh(x @ TABLE), TABLE)"),
    "parentheses": (lambda x: (np.tanh(x) + 1), "np.tanh(x) + 1"),
    "module of a module": (lambda x: np.linalg.norm(x), "np.linalg.norm(x)"),
    "method": (lambda x: x.sum().item(), "x.sum().item()"),
    "lines": (lambda x: np
              .sin(x)
              .sum(axis=0), "np.sin(x).sum(axis=0)"),
    "inner": (lambda x: (lambda y: math.sin(y))(x), "(lambda y: math.sin(y))(x)"),
    "constant": (lambda: 3, "3"),
    "first of two": (PAIR[0], "x + 1"),
    "second of two": (PAIR[1], "x + 2"),
    "second of three": (OTHERS[1], "np.cos(x)"),
    "third of three": (OTHERS[2], "x.sin()"),
}
# fmt: on


@pytest.mark.parametrize("name", LAMBDAS)
def test_lambdas(name):
    function, body = LAMBDAS[name]
    found = definition_of(function)
    assert found is not None
    assert ast.unparse(found.node.body) == body


def test_equal_lambdas_on_one_line():
    columns = [definition_of(function).node.col_offset for function in SAME]
    assert columns[0] < columns[1]


# fmt: off
def two_lines(x):
    return np.sin(
x)


def text_to_the_left(x):
    """One.
Two.
"""
    return x


def dead_text_to_the_left(x):  # noqa: RET503
    if x is None:
        return x
    return x
    print("""
left
""")


def comment_to_the_left(x):
# to the left
    x += 1

# again

    return x


def nothing_else(x): return x


def inner_function(x):
    def inner(y):
        return y + 1
    return inner(x)


def only_a_text(x):
    """Do nothing."""


def ends_with_dead_code(x):  # noqa: RET503
    return x
    pass


def calls_itself(x):
    return [calls_itself(v) for v in x] if type(x) is list else np.sin(x)


class Indented:
    def method(self, x):
        if x is None:
            return 0
        return x

    def last(self, x): return [
        x]
# fmt: on


FUNCTIONS = {
    f.__name__: f
    for f in (
        two_lines, text_to_the_left, dead_text_to_the_left, comment_to_the_left, nothing_else, inner_function,
        only_a_text, ends_with_dead_code, calls_itself, Indented.method, Indented.last,
    )
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_definitions(name):
    function = FUNCTIONS[name]
    found = definition_of(function)
    assert found is not None
    assert found.node.name == function.__name__
    tree = ast.parse(Path(__file__).read_text())
    (expected,) = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name]
    assert ast.dump(found.node, include_attributes=True) == ast.dump(expected, include_attributes=True)


def test_definitions_need_no_tokens(monkeypatch):
    monkeypatch.setattr(inspect, "getblock", None)
    assert definition_of(inner_function) is not None
    assert definition_of(Indented.method) is not None


def test_a_function_that_calls_itself_sees_lists_from_outside():
    holder = SimpleNamespace(tree=[TABLE, [TABLE * 2, TABLE]])
    first, (second, _) = cyxla.jit(lambda x: calls_itself(holder.tree), platform="interpreter")(TABLE)
    np.testing.assert_array_equal(first, np.sin(TABLE))
    np.testing.assert_array_equal(second, np.sin(TABLE * 2))


WITHOUT_SOURCE = """
def class_of(x):
    return type(x) is float

def classes(x):
    return isinstance(x, float), isinstance(x, int)

def by_helper(x):
    return class_of(x)

def inner_function(x):
    return [hasattr(v, "shape") for v in (x, x)]

def rounded(x):
    return round(x, 1)

def is_function(x):
    return callable(x)

def with_default(x, seen=[]):
    seen.append(x)
    return len(seen)

def made():
    def counter(x):
        counter.calls += 1
        return x + counter.calls
    counter.calls = 0
    return counter
"""


@pytest.mark.parametrize(
    "name", ["class_of", "classes", "by_helper", "inner_function", "rounded", "is_function", "with_default", "made"]
)
def test_code_without_source_is_not_compiled_if_that_shows(name):
    results = []
    for compile_ in (lambda f: f, lambda f: cyxla.jit(f, platform="interpreter", fallback="numpy")):
        space = {}
        exec(WITHOUT_SOURCE, space)
        function = compile_(space[name]() if name == "made" else space[name])
        with warnings.catch_warnings(action="ignore"):
            results.append([function(2.25), function(2.25)])
    assert repr(results[0]) == repr(results[1])


TEXT = "def f(x, y):\n    if x.sum() > 0:\n        x = {0}\n        y = np.sin({1})\n    return x - y\n"
#: Texts of a file, of which each has the names and constants of the one before it.
VERSIONS = [("x + y", "x"), ("x * y", "x"), ("y + x", "x"), ("x + y", "y"), ("-x + y", "x"), ("x + y", "np.sin(x)")]


def written_module(path, version):
    text = "import numpy as np\n" + TEXT.format(*version)
    path.write_text(text)
    space = {}
    exec(compile(text, path, "exec"), space)
    return space["f"]


def test_a_file_that_is_changed_and_imported_again(tmp_path):
    for version in VERSIONS:
        function = written_module(tmp_path / "module.py", version)
        x, y = np.arange(1.0, 4.0), np.full(3, 2.0)
        np.testing.assert_allclose(cyxla.jit(function)(x, y), function(x, y))


@pytest.mark.filterwarnings("ignore::cyxla.errors.FallbackWarning")
def test_a_file_that_is_changed_after_its_import(tmp_path):
    for version, later in pairwise(VERSIONS):
        function = written_module(tmp_path / f"{version}.py", version)
        (tmp_path / f"{version}.py").write_text("import numpy as np\n" + TEXT.format(*later))
        linecache.clearcache()
        x, y = np.arange(1.0, 4.0), np.full(3, 2.0)
        assert definition_of(function) is None
        np.testing.assert_allclose(cyxla.jit(function, fallback="numpy")(x, y), function(x, y))
