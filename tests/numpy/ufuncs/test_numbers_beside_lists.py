"""Operators of Python's numbers, which are traced, with lists, tuples and texts: the same results and TypeErrors."""
# ruff: noqa: F507, UP031 - formats as users write them

import operator

import pytest

import cyxla

OPERATORS = [
    operator.add, operator.sub, operator.truediv, operator.floordiv, operator.mod, operator.pow, operator.lt,
    operator.le, operator.gt, operator.ge, operator.eq, operator.ne, operator.and_, operator.lshift, operator.matmul,
]  # fmt: skip
OTHERS = [[1.0, 2.0], (1.0, 2.0), [], (), None, {1: 2}]


def outcome(function, *args):
    """Return the result of a call, or the class of its error."""
    try:
        return function(*args)
    except TypeError:
        return TypeError


@pytest.mark.parametrize("other", OTHERS, ids=repr)
@pytest.mark.parametrize("symbol", OPERATORS, ids=lambda symbol: symbol.__name__)
def test_operators(symbol, other):
    functions = [lambda k: symbol(k + 0, other), lambda k: symbol(other, k + 0), lambda k: symbol(k > 1, other)]
    for function in functions:
        jitted = cyxla.jit(function)
        for k in (2.5, 3.5, 4.5, 3, 4):
            assert outcome(jitted, k) is outcome(function, k)


FORMATS = [
    lambda k: print("%f and %f" % (k + 0, k + 1)),
    lambda k: print("%f" % (k + 0, k + 1)),
    lambda k: print("%d %d %d" % (k + 0, k + 1)),
    lambda k: print("nothing" % (k + 0)),
]


@pytest.mark.parametrize("function", FORMATS)
def test_number_of_values_of_a_format(function):
    jitted = cyxla.jit(function)
    for k in (2.5, 3.5):
        assert outcome(jitted, k) is outcome(function, k)
