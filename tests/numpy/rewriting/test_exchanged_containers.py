"""Dicts and dataclasses that the variables of a loop exchange are those of the plain run."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import pytest

import cyxla
from cyxla.errors import FallbackWarning


@dataclass
class Counter:
    count: float

    def __getitem__(self, name):
        return self.count

    def __setitem__(self, name, value):
        self.count = value


def written_after_exchanges(d, e, x):
    while x > 0:
        x = x - 1
        d, e = e, d
    d["k"] = x + 5
    return e["k"]


def written_in_turn(d, e, x):
    while x > 0:
        d["k"] += 1
        d, e = e, d
        x = x - 1
    return e["k"]


def returned(d, e, x):
    while x > 0:
        x = x - 1
        d, e = e, d
    return d


def changed_then_replaced(d, e, x):
    f = d
    while x > 0:
        f["k"] += 1
        f = {"k": f["k"] + e["k"]}
        x = x - 1
    return f["k"]


def replaced(d, e, x):
    f = {"k": 0.0}
    while x > 0:
        f = {"k": f["k"] + d["k"] * e["k"]}
        x = x - 1
    f["k"] += 1
    return f


def with_unchanged_part(d, e, x):
    f = {"a": d["k"], "b": e}
    while x > 0:
        f = {"a": f["a"] + f["b"]["k"], "b": f["b"]}
        x = x - 1
    return f["a"]


CASES = [
    (written_after_exchanges, True),
    (written_in_turn, True),
    (returned, True),
    (changed_then_replaced, True),
    (replaced, False),
    (with_unchanged_part, False),
]


@pytest.mark.parametrize("kind", [lambda v: {"k": v}, Counter], ids=["dicts", "dataclasses"])
@pytest.mark.parametrize("function, runs_plainly", CASES)
def test_exchanged_containers(function, runs_plainly, kind, recwarn):
    compiled = cyxla.jit(function, fallback="numpy")
    for x in (3.0, 2.0, 0.0):
        given = kind(1.0), kind(2.0)
        expected = copy.deepcopy(given)
        found, wanted = compiled(*given, x), function(*expected, x)
        assert found == wanted
        assert given == expected
        assert [found is v for v in given] == [wanted is v for v in expected]
    if kind is not Counter:
        assert any(issubclass(w.category, FallbackWarning) for w in recwarn) == runs_plainly
