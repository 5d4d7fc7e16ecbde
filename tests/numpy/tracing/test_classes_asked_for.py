"""Questions of programs about the class of a value: numbers, arrays and containers answer as in NumPy."""

import numbers
from collections.abc import Collection, Container, Hashable, Iterable, Sequence, Sized
from typing import SupportsFloat, SupportsIndex

import numpy as np
import pytest

import cyxla

CLASSES = (
    Iterable, Sized, Container, Collection, Hashable, Sequence, SupportsFloat, SupportsIndex, numbers.Number,
    numbers.Real, numbers.Integral, np.ndarray, np.generic, np.floating, int, float, (int, float), (list, np.ndarray),
    int | float,
)  # fmt: skip
ATTRIBUTES = ("__iter__", "__len__", "shape", "is_integer", "bit_length", "tolist", "append", "numerator_of")


def classes(x):
    return [isinstance(x, kind) for kind in CLASSES]


def attributes(x):
    return [hasattr(x, name) for name in ATTRIBUTES]


def of_array(x):
    return [x.__class__ is np.ndarray, type(x) is np.ndarray, x.__class__ is float, x.__class__ == int]  # noqa: E721


def as_vector(x):
    return np.array([x]) if not isinstance(x, Iterable) else np.array(x)


def first(x):
    try:
        return x[0]
    except TypeError:
        return "a number"
    except IndexError as error:
        return str(error).partition("\n")[0]


def among(x):
    return x in (None, "text") if np.ndim(x) == 0 else None


FUNCTIONS = (classes, attributes, of_array, as_vector, first, among)
VALUES = {
    "int": 3, "float": 2.5, "bool": True, "complex": 1 + 2j, "float64": np.float64(2.5), "int32": np.int32(3),
    "0-d": np.array(2.5), "vector": np.arange(3.0), "list": [1.0, 2.0], "tuple": (1, 2.0),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_answers(function, name):
    compiled = cyxla.jit(function, platform="interpreter", fallback="error")
    assert repr(compiled(VALUES[name])) == repr(function(VALUES[name]))
