"""Definitions of functions in their files."""

import ast
import math

import numpy as np
import pytest

from cyxla.numpy.rewriting.source import definition_of

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
