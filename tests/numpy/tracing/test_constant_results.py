"""Results of dtypes without an element type, whose values are known while tracing."""

from decimal import Decimal

import numpy as np
import pytest

import cyxla
from cyxla.errors import TraceError

X = np.arange(3.0)


class Handle:
    """Object without a value."""


HANDLE = Handle()
TABLE = {"a": 1}

RESULTS = {
    "text": lambda x: np.full(2, "ab"),
    "bytes": lambda x: np.concatenate([np.array([b"a"]), np.array([b"bc"])]),
    "scalar of text": lambda x: np.str_("ab"),
    "none": lambda x: np.full((2, 0), None),
    "objects": lambda x: np.array([1, "b", None, Decimal(3), 2.5], object),
    "long double": lambda x: np.full(3, 2, np.longdouble),
    "long double, scalar": lambda x: np.longdouble(2),
    "dates": lambda x: np.arange("2026-01", "2026-04", dtype="M8[M]"),
    "spans of time": lambda x: np.timedelta64(3, "s"),
    "records": lambda x: np.zeros(2, [("a", int), ("b", float)]),
    "in a container": lambda x: {"names": np.array(["p", "q"]), "values": (x + 1, np.array("r"))},
    "column-major": lambda x: np.full((2, 3), "a", order="F"),
    "like an array, text": lambda x: (np.zeros_like(x, str), np.ones_like(x, "S3"), np.empty_like(x, str)),
    "like an array, objects": lambda x: (np.zeros_like(x, object), np.ones_like(x, object, shape=(2, 0))),
    "like an array, full": lambda x: (np.full_like(x, "ab", "U3"), np.full_like(x, 2, "g"), np.full_like(x, 7, ">i2")),
    "like an array, dates": lambda x: (np.zeros_like(x, "m8[s]"), np.full_like(x, "2026-01", "M8[M]")),
    "another byte order": lambda x: (np.zeros(3, ">f8"), np.arange(3, dtype=">i2").byteswap(), np.array(3, ">i4")),
    "objects from outside": lambda x: np.full(2, HANDLE),
}


@pytest.mark.parametrize("name", RESULTS)
def test_known_results(name):
    wanted, jitted = RESULTS[name](X), cyxla.jit(RESULTS[name], fallback="error")
    for got in (jitted(X), jitted(X)):
        assert_same(got, wanted)


def assert_same(got, wanted):
    assert type(got) is type(wanted)
    if isinstance(wanted, dict):
        assert list(got) == list(wanted)
        for part, other in zip(got.values(), wanted.values(), strict=True):
            assert_same(part, other)
    elif isinstance(wanted, tuple):
        for part, other in zip(got, wanted, strict=True):
            assert_same(part, other)
    else:
        assert got.dtype == wanted.dtype
        assert got.shape == wanted.shape
        assert got.strides == wanted.strides
        np.testing.assert_array_equal(got, wanted)


def test_each_call_gets_an_array_of_its_own():
    jitted = cyxla.jit(lambda x: np.array(["a", "b"]), fallback="error")
    first = jitted(X)
    first[0] = "c"
    assert list(jitted(X)) == ["a", "b"]


def holding_traced(x):
    found = np.empty(2, object)
    found[0] = x
    return found


def holding_objects_of_the_call(x):
    return np.full(2, Handle())


def test_objects_from_outside_may_be_replaced(monkeypatch):
    jitted = cyxla.jit(lambda x: np.full(2, HANDLE), fallback="error")
    assert jitted(X)[1] is HANDLE
    monkeypatch.setitem(globals(), "HANDLE", Handle())
    assert jitted(X)[1] is HANDLE


OBJECTS_OF_THE_CALL = [
    holding_traced, holding_objects_of_the_call, lambda x: np.array([[], {}], object)[:1], lambda x: object(),
    lambda x: np.full(2, TABLE),
]  # fmt: skip


@pytest.mark.parametrize("function", OBJECTS_OF_THE_CALL)
def test_objects_that_may_change(function):
    with pytest.raises(TraceError, match=r"result of \w+ is"):
        cyxla.jit(function, fallback="error")(X)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8"])
def test_relative_condition_number_of_polyfit(dtype):
    x = np.arange(6).astype(dtype)
    expected = np.polyfit(x, x * x, 2, full=True)[4]
    result = cyxla.jit(lambda x: np.polyfit(x, x * x, 2, full=True), fallback="error")(x)[4]
    assert type(result) is type(expected)
    assert result == expected
