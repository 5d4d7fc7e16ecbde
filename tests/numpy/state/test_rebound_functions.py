"""Names, cells, attributes and items that hold functions and classes, and hold others at a later call."""

import operator
import types

import numpy as np
import pytest

import cyxla

X = np.arange(1.0, 4.0)


def increased(x):
    return x + 1


def halved_if_small(x):
    if x.sum() < 100:
        x = x / 2
    return x


USED, DTYPE, OPERATOR = np.sin, np.float64, operator.add
MODULE = types.ModuleType("of_the_user")
MODULE.used = increased
TABLE = {"used": increased}


def by_global(x):
    return USED(x)


def by_global_of_helper(x):
    return by_global(x) * 2


def by_nested_function(x):
    def inner(y):
        return USED(y)

    return inner(x) + 1


def by_dtype(x):
    return np.zeros(3, DTYPE) + x.astype(DTYPE)


def by_operator(x):
    return OPERATOR(x, 2)


def by_module(x):
    return MODULE.used(x)


class Layer:
    used = np.tanh

    @staticmethod
    def scale(x):
        return x * 2


def by_class(x):
    return Layer.used(x) + Layer.scale(x)


def by_table(x):
    return TABLE["used"](x)


def closure():
    used = np.sin

    def by_cell(x):
        return used(x)

    def change(new):
        nonlocal used
        used = new

    return by_cell, change


def set_global(name):
    return lambda value: globals().__setitem__(name, value)


#: Functions, how the value that they use is changed, and its values in turn.
CASES = {
    "ufuncs": (by_global, set_global("USED"), (np.sin, np.cos, np.sin)),
    "functions": (by_global, set_global("USED"), (increased, halved_if_small, np.cos, increased)),
    "lambdas": (by_global, set_global("USED"), (lambda x: x + 1, lambda x: x + 2)),
    "of a helper": (by_global_of_helper, set_global("USED"), (np.sin, increased)),
    "of a nested function": (by_nested_function, set_global("USED"), (np.sin, halved_if_small)),
    "helpers": (by_global_of_helper, set_global("by_global"), (by_global, increased, by_global)),
    "dtypes": (by_dtype, set_global("DTYPE"), (np.float64, np.float32)),
    "functions of C": (by_operator, set_global("OPERATOR"), (operator.add, operator.mul)),
    "modules": (by_module, lambda value: setattr(MODULE, "used", value), (increased, np.cos, halved_if_small)),
    "classes": (by_class, lambda value: setattr(Layer, "used", value), (np.tanh, np.cos, increased)),
    "items": (by_table, lambda value: TABLE.update(used=value), (increased, np.cos)),
    "cells": (*closure(), (np.sin, np.cos, increased)),
}


@pytest.mark.parametrize("name", CASES)
def test_rebound_functions(name):
    function, change, values = CASES[name]
    jitted = cyxla.jit(function)
    for value in values:
        change(value)
        for _ in range(2):
            result, expected = jitted(X), function(X)
            assert result.dtype == expected.dtype
            np.testing.assert_allclose(result, expected, rtol=1e-6)
    assert jitted.cache_info().misses <= len(values)
    change(values[0])


def test_functions_that_stay_compile_once():
    jitted = cyxla.jit(by_global_of_helper)
    for _ in range(3):
        jitted(X)
    assert jitted.cache_info()[:2] == (2, 1)
