"""Methods and properties of classes, and code and defaults of functions, which are replaced between calls."""

import functools
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import pytest

import cyxla

X = np.arange(1.0, 4.0)


class Base:
    def scaled(self, x):
        return x * self.factor

    def __add__(self, x):
        return x + self.factor


class Vector(Base):
    def __init__(self, factor=2.0):
        self.factor = factor

    def norm(self):
        return self.scaled(X).sum()

    @property
    def half(self):
        return self.factor / 2

    @staticmethod
    def shifted(x):
        return x + 1

    @classmethod
    def made(cls, x):
        return cls(3.0).scaled(x)

    def __call__(self, x):
        return x - self.factor

    def __getitem__(self, k):
        return X[k] * self.factor


class Abstract(ABC):
    @abstractmethod
    def value(self): ...


class Concrete(Abstract):
    def value(self):
        return 2.0


@dataclass(frozen=True)
class Point:
    y: float

    def doubled(self):
        return self.y * 2


class Slotted:
    __slots__ = ("y",)

    def __init__(self, y):
        self.y = y

    def doubled(self):
        return self.y * 2


VECTOR, CONCRETE = Vector(), Concrete()


def helper(x, scale=2.0, *, shift=1.0):
    return x * scale + shift


#: Function, its other arguments, the class and the attribute that are assigned, and the values in turn.
METHODS = {
    "method": (lambda x: VECTOR.norm() + x, (), Vector, "norm", [lambda self: self.factor]),
    "of_a_base": (lambda x: VECTOR.norm() + x, (), Base, "scaled", [lambda self, x: x - 1, lambda self, x: x - 2]),
    "overridden_later": (lambda x: VECTOR.scaled(x), (), Vector, "scaled", [lambda self, x: x + 40]),
    "of_an_argument": (lambda x, v: v.norm() + x, (VECTOR,), Vector, "norm", [lambda self: -self.factor]),
    "of_a_new_object": (lambda x: Vector(4.0).scaled(x), (), Base, "scaled", [lambda self, x: x + self.factor]),
    "property": (lambda x: x * VECTOR.half, (), Vector, "half", [property(lambda self: 7.0)]),
    "property_of_an_argument": (lambda x, v: x * v.half, (VECTOR,), Vector, "half", [property(lambda self: 9.0)]),
    "static": (lambda x: Vector.shifted(x), (), Vector, "shifted", [staticmethod(lambda x: x * 10)]),
    "static_of_an_object": (lambda x: VECTOR.shifted(x), (), Vector, "shifted", [staticmethod(lambda x: x * 10)]),
    "class_method": (lambda x: Vector.made(x), (), Vector, "made", [classmethod(lambda cls, x: x - 5)]),
    "operator": (lambda x: VECTOR + x.sum(), (), Base, "__add__", [lambda self, x: x - self.factor]),
    "call": (lambda x: VECTOR(x), (), Vector, "__call__", [lambda self, x: x / self.factor]),
    "item": (lambda x: x + VECTOR[1], (), Vector, "__getitem__", [lambda self, k: X[k] - 3]),
    "init": (lambda x: Vector(4.0).scaled(x), (), Vector, "__init__", [lambda self, f: setattr(self, "factor", -f)]),
    "abstract": (lambda x: x + CONCRETE.value(), (), Concrete, "value", [lambda self: -1.0]),
    "dataclass": (lambda x, p: x + p.doubled(), (Point(2.0),), Point, "doubled", [lambda self: self.y]),
    "slots": (lambda x, p: x + p.doubled(), (Slotted(2.0),), Slotted, "doubled", [lambda self: self.y]),
    "defaults": (lambda x: helper(x), (), helper, "__defaults__", [(5.0,)]),
    "named_defaults": (lambda x: helper(x), (), helper, "__kwdefaults__", [{"shift": 7.0}]),
    "code": (lambda x: helper(x), (), helper, "__code__", [(lambda x, scale, *, shift: x - scale * shift).__code__]),
}


def own(owner, name):
    return vars(owner)[name] if name in vars(owner) else getattr(owner, name)


@pytest.mark.parametrize("name", METHODS)
def test_rebound_methods(name):
    function, others, owner, attribute, values = METHODS[name]
    jitted = cyxla.jit(function)
    is_own = attribute in vars(owner) or not isinstance(owner, type)
    first = own(owner, attribute)
    try:
        np.testing.assert_allclose(jitted(X, *others), function(X, *others))
        for value in values:
            setattr(owner, attribute, value)
            for _ in range(2):
                np.testing.assert_allclose(jitted(X, *others), function(X, *others))
    finally:
        if is_own:
            setattr(owner, attribute, first)
        else:
            delattr(owner, attribute)
    np.testing.assert_allclose(jitted(X, *others), function(X, *others))
    assert jitted.cache_info().misses <= len(values) + 1


def test_changed_named_default():
    def shifted(x, *, shift=1.0):
        return x + shift

    jitted = cyxla.jit(lambda x: shifted(x))
    assert jitted(X)[0] == 2
    shifted.__kwdefaults__["shift"] = 5.0
    assert jitted(X)[0] == 6


def test_classes_that_stay_compile_once():
    class Counted(Vector):
        count = 0

    counted = Counted()

    @cyxla.jit
    def called(x):
        return counted.norm() + counted.count + x

    for k in range(3):
        Counted.other = k  # not a method
        called(X)
    assert called.cache_info().misses == 1


def test_attributes_of_another_trace():
    """A trace has rewritten methods in the class, which are not new ones for the program of another function."""
    jitted, seen = cyxla.jit(lambda x: VECTOR(x) + VECTOR.half), []
    jitted(X)

    def while_traced(x):
        with cyxla.disable_jit():
            pass
        seen.append(jitted.cache_info().misses)
        return VECTOR(x) + VECTOR.half

    cyxla.jit(while_traced, fallback="numpy")(X)
    jitted(X)
    assert jitted.cache_info().misses == 1


def test_cached_functions_keep_no_traced_values():
    @functools.lru_cache
    def weights(n):
        return np.full(n, 2.0)

    jitted = cyxla.jit(lambda x: x * weights(x.size))
    for first in (2.0, 5.0):
        assert type(weights(3)) is np.ndarray or weights.cache_info().currsize == 0
        np.testing.assert_array_equal(jitted(np.ones(3)), weights(3))
        weights(3)[0] = first + 1
        np.testing.assert_array_equal(jitted(np.ones(3)), weights(3))
    assert weights.cache_info().misses == 1


def test_cached_functions_of_traced_values():
    doubled = functools.cache(lambda v: v * 2)
    with pytest.raises(cyxla.errors.TraceError, match="cannot be hashed"):
        cyxla.jit(lambda x, y: x * doubled(y))(X, 2.5)
    assert doubled.cache_info().currsize == 0


class Table:
    factor = 3.0

    @functools.cache  # noqa: B019
    def rows(self, n):
        return [np.arange(n) * self.factor]


def test_cached_methods():
    table = Table()
    jitted = cyxla.jit(lambda x: x + table.rows(3)[0])
    np.testing.assert_array_equal(jitted(X), X + np.array([0, 3, 6]))
    table.rows(3).append(1)
    table.rows(3)[0][1] = 9
    np.testing.assert_array_equal(jitted(X), X + np.array([0, 9, 6]))


MODE = SHIFT = 1.0


@functools.cache
def lowered(mode, known=("one", "two")):
    names = [name.lower() for name in known]
    if mode.lower() not in names:
        raise ValueError(f"{mode} is none of {names}")
    return mode.lower()


@functools.cache
def of_global(mode):
    return f"{mode}{MODE}"


@functools.cache
def of_global_inside(mode):
    return sum(SHIFT for _ in mode)


@functools.cache
def of_object(mode):
    return getattr(mode, "factor", 5.0)


def change_first(x, cached, argument):
    global MODE
    MODE = 3.0
    cached(argument)
    return x * MODE


def test_cached_functions_that_read_their_arguments_alone_may_follow_changes(monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "MODE", 1.0)
    jitted = cyxla.jit(lambda x: change_first(x, lowered, "ONE"))
    np.testing.assert_array_equal(jitted(X), X * 3)
    assert (MODE, lowered.cache_info().currsize) == (3.0, 1)
    with pytest.raises(ValueError, match="three is none of"):
        cyxla.jit(lambda x: change_first(x, lowered, "three"))(X)


@pytest.mark.parametrize(
    "cached, argument",
    [(of_global, "one"), (of_global_inside, "one"), (of_object, Table), (functools.cache(lambda v: X), 1.0)],
    ids=["global", "global in a comprehension", "object", "array"],
)
def test_other_cached_functions_may_not(cached, argument, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "MODE", 1.0)
    with pytest.raises(cyxla.errors.TraceError, match="keeps its results, is called after"):
        cyxla.jit(lambda x: change_first(x, cached, argument))(X)
