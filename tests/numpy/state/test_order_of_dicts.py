"""Dicts whose items a function moves: those among the arguments and those from outside keep Python's order."""

from collections import OrderedDict

import numpy as np
import pytest

import cyxla

TABLE = {}


def move(d, _):
    d["a"] = d.pop("a")


def move_and_change(d, x):
    d["b"] = d.pop("b") + x
    d["a"] = d.pop("a")
    return list(d)


def add_before_moved(d, x):
    del d["b"]
    d["z"] = x * 2
    d["b"] = 2.0


def turn_around(d, _):
    items = list(d.items())
    d.clear()
    for key, value in reversed(items):
        d[key] = value


def change_alone(d, x):
    d["a"] = x + 1
    d["z"] = 3


FUNCTIONS = (move, move_and_change, add_before_moved, turn_around, change_alone)


def _table(kind):
    return kind(a=np.arange(2.0), b=2.0, c=[1])


def _outcome(function, table, *args):
    """Return the items of a table after two calls, and which of the arrays and lists are the first ones."""
    first = list(table.values())
    results = [function(*args, np.ones(2)) for _ in range(2)]
    kept = [f for f in first if not isinstance(f, float)]
    return repr([results, list(table.items())]), [[v is f for f in kept] for v in table.values()]


@pytest.mark.parametrize("kind", [dict, OrderedDict])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_order_of_arguments(function, kind):
    table, expected = _table(kind), _table(kind)
    compiled = cyxla.jit(function, platform="interpreter", fallback="error")
    assert _outcome(compiled, table, table) == _outcome(function, expected, expected)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_order_from_outside(function, monkeypatch):
    def outside(x):
        return function(TABLE, x)

    outcomes = []
    for run in (cyxla.jit(outside, platform="interpreter", fallback="error"), outside):
        table = _table(dict)
        monkeypatch.setitem(globals(), "TABLE", table)
        outcomes.append(_outcome(run, table))
    assert outcomes[0] == outcomes[1]
