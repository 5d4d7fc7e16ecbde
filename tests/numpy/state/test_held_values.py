"""Arrays, lists and objects that functions hold as defaults or bound arguments, and that change between calls."""

import contextvars
import functools
import io
import operator
import types
import weakref
from collections import UserDict, namedtuple
from dataclasses import dataclass, field

import numpy as np
import pytest

import cyxla


class Config:
    def __init__(self, scale=2.0):
        self.scale = scale

    def scaled(self, x):
        return x * self.scale


def array():
    held = np.ones(2)
    return held, lambda k: held.__setitem__(0, k + 5.0)


def numbers():
    held = [1.0, 2.0]
    return held, lambda k: held.__setitem__(0, k + 5.0)


def arrays():
    held = [np.ones(2)]
    return held, lambda k: held.append(np.full(2, k + 2.0))


def config():
    held = Config()
    return held, lambda k: setattr(held, "scale", k + 5.0)


def by_default(w):
    def helper(x, w=w):
        return x * w

    return lambda x: helper(x)


def by_default_of_a_keyword(w):
    def helper(x, *, w=w):
        return x * w

    return lambda x: helper(x)


def by_default_list(w):
    def helper(x, w=w):
        return x * w[0]

    return lambda x: helper(x)


def by_each_of_a_default(w):
    def helper(x, w=w):
        for v in w:
            x = x * v
        return x

    return lambda x: helper(x)


def by_default_object(w):
    def helper(x, w=w):
        return x * w.scale

    return lambda x: helper(x)


def by_default_tuple(w):
    def helper(x, w=(w, 2.0)):
        return x * w[0] * w[1]

    return lambda x: helper(x)


def by_default_method(w):
    def helper(x, f=w.scaled):
        return f(x)

    return lambda x: helper(x)


def by_default_function(w):
    def inner(x, w=w):
        return x * w

    def helper(x, f=inner):
        return f(x)

    return lambda x: helper(x)


def by_default_of_a_generator(w):
    def parts(n, w=w):
        for k in range(n):
            yield w.scale * k

    return lambda x: x * sum(parts(3))


def by_default_of_a_jitted_function(w):
    @cyxla.jit
    def helper(x, w=w):
        return x * w

    return lambda x: helper(x)


def by_default_list_of_a_jitted_function(w):
    @cyxla.jit
    def helper(x, w=w):
        return x * w[0]

    return lambda x: helper(x)


def by_default_of_a_method(w):
    class Model:
        def apply(self, x, w=w):
            return x * w

    model = Model()
    return lambda x: model.apply(x)


def by_default_of_call(w):
    class Model:
        def __call__(self, x, w=w):
            return x * w

    model = Model()
    return lambda x: model(x)


def by_default_of_a_property(w):
    def value(self, w=w):
        return w

    model = type("Model", (), {"value": property(value)})()
    return lambda x: model.value * x


def by_default_of_init(w):
    class Model:
        def __init__(self, a, w=w):
            self.a, self.w = a, w

    return lambda x: Model(x).a * Model(x).w.scale


def by_own_default(w):
    return lambda x, w=w: x * w


def by_own_default_object(w):
    return lambda x, w=w: x * w.scale


def by_own_default_tuple(w):
    return lambda x, w=(w, 2.0): x * w[0]


def by_own_default_method(w):
    return lambda x, f=w.scaled: f(x)


def by_partial_keyword(w):
    return functools.partial(lambda x, *, a, w: x * w + a, a=3.0, w=w)


def by_partial(w):
    return functools.partial(lambda w, x: x * w, w)


def by_partial_object(w):
    return functools.partial(lambda w, x: x * w.scale, w)


def by_partial_method(w):
    return functools.partial(w.scaled)


def by_called_partial(w):
    held = functools.partial(lambda w, x: x * w, w)
    return lambda x: held(x)


def by_called_partial_method(w):
    held = functools.partial(w.scaled)
    return lambda x: held(x)


def by_method_caller(w):
    dot = operator.methodcaller("dot", w)
    return lambda x: dot(x)


def by_map(w):
    def helper(x, w=w):
        return x * w

    return lambda x: sum(map(helper, [x, x]))


def by_named_tuple(w):
    pair = namedtuple("pair", "a b", defaults=[w])
    return lambda x: pair(1.0).b[0] * x


def by_field(w):
    @dataclass
    class Pair:
        a: float
        b: object = field(default=w)

    return lambda x: Pair(1.0).b.scale * x


def by_factory(w):
    @dataclass
    class Pair:
        a: float
        b: list = field(default_factory=lambda: w)

    return lambda x: Pair(1.0).b[0] * x


class Slots:
    __slots__ = ("held",)

    def __init__(self, held):
        self.held = held


class Property:
    def __init__(self, held):
        self._held = held

    @property
    def held(self):
        return self._held


class Reader:
    def __get__(self, obj, kind=None):
        return obj.inner


class Described:
    held = Reader()

    def __init__(self, inner):
        self.inner = inner


class Caller:
    def __init__(self, held):
        self.held = held

    def __call__(self):
        return self.held


def by_method_in_a_property(w):
    holder = Property(w.scaled)
    return lambda x: holder.held(x)


def by_method_in_a_slot(w):
    holder = Slots(w.scaled)
    return lambda x: holder.held(x)


def by_method_in_a_class(w):
    kind = type("Kind", (), {"held": w.scaled})
    return lambda x: kind.held(x)


def by_method_that_is_read_first(w):
    holder = Slots(w.scaled)

    def function(x):
        method = holder.held
        return method(x)

    return function


def by_method_for_map(w):
    return lambda x: sum(map(w.scaled, [x, x]))


def by_partial_in_a_slot(w):
    holder = Slots(functools.partial(lambda w, x: x * w, w))
    return lambda x: holder.held(x)


def by_partial_in_a_dict(w):
    holder = {"held": functools.partial(lambda w, x: x * w, w)}
    return lambda x: {**holder}["held"](x)


def by_descriptor(w):
    holder = Described(w)
    return lambda x: x * holder.held


def by_callable_in_a_module(w):
    module = types.ModuleType("of_the_user")
    module.held = Caller(w)
    return lambda x: x * module.held()


def by_method_in_a_module(w):
    module = types.ModuleType("of_the_user")
    module.held = w.scaled
    return lambda x: module.held(x)


def by_callable_in_a_class(w):
    holder = type("Kind", (), {"held": Caller(w)})()
    return lambda x: x * holder.held()


CASES = {
    array: [
        by_default, by_default_of_a_keyword, by_default_tuple, by_default_function, by_default_of_a_jitted_function,
        by_default_of_a_method, by_default_of_call, by_default_of_a_property, by_own_default, by_own_default_tuple,
        by_partial_keyword, by_partial, by_called_partial, by_method_caller, by_map,
        by_partial_in_a_slot, by_partial_in_a_dict, by_descriptor, by_callable_in_a_class,
        by_callable_in_a_module,
    ],
    numbers: [by_default_list, by_default_list_of_a_jitted_function, by_named_tuple, by_factory],
    arrays: [by_each_of_a_default],
    config: [
        by_default_object, by_default_method, by_default_of_a_generator, by_default_of_init, by_own_default_object,
        by_own_default_method, by_partial_object, by_partial_method, by_called_partial_method, by_field,
        by_method_in_a_property, by_method_in_a_slot, by_method_in_a_class, by_method_that_is_read_first,
        by_method_for_map, by_method_in_a_module,
    ],
}  # fmt: skip


@pytest.mark.parametrize("make, use", [(make, use) for make, uses in CASES.items() for use in uses])
def test_held_values(make, use, backend):
    held, change = make()
    function = use(held)
    jitted, x = cyxla.jit(function, platform=backend), np.array([2.0, 3.0])
    for step in range(3):
        np.testing.assert_array_equal(jitted(x), function(x))
        change(step)


#: Functions that get a value, and how that holds an array.
PASSED = {
    "partial": (lambda x, f: f(x), lambda w: functools.partial(lambda w, x: x * w, w)),
    "method": (lambda x, f: f() * x, lambda w: Caller(w).__call__),
    "partial_of_a_method": (lambda x, f: f() * x, lambda w: functools.partial(Caller.__call__, Caller(w))),
    "default": (lambda x, f: f(x), lambda w: lambda x, w=w: x * w),
    "closure": (lambda x, f: f(x), lambda w: lambda x: x * w),
    "tuple_of_partials": (lambda x, fs: fs[0](x), lambda w: (functools.partial(lambda w, x: x * w, w),)),
}


@pytest.mark.parametrize("name", PASSED)
def test_values_held_by_arguments(name):
    function, hold = PASSED[name]
    held, change = array()
    jitted, x, argument = cyxla.jit(function), np.array([2.0, 3.0]), hold(held)
    for step in range(3):
        np.testing.assert_array_equal(jitted(x, argument), function(x, argument))
        change(step)


#: Objects of which nothing tells that they have changed, and a value that their holder gives.
UNREADABLE = {
    "a ContextVar": (contextvars.ContextVar("held", default=2.0), lambda v: v.get()),
    "a mappingproxy": (types.MappingProxyType({"held": 2.0}), lambda v: v["held"]),
    "a weakref": (weakref.ref(Config), lambda v: v().__name__ == ""),
    "a UserDict": (UserDict(held=2.0), lambda v: v["held"]),
    "a StringIO": (io.StringIO("2"), lambda v: float(v.getvalue())),
}


@pytest.mark.parametrize("name", UNREADABLE)
@pytest.mark.parametrize("place", ["name", "tuple", "list"])
def test_contents_that_nobody_can_compare(name, place):
    held, read = UNREADABLE[name]
    holder = {"tuple": (held, 1), "list": [held]}.get(place)

    def by_name(x):
        return x * read(held)

    def in_loop(x):
        for _ in range(3):
            for v in holder[:1]:
                x = x + read(v)
        return x

    with pytest.raises(cyxla.errors.OpError, match=r"from outside.*, whose contents may change"):
        cyxla.jit(in_loop if holder else by_name)(np.ones(2))


def counted(x, seen=[]):  # noqa: B006
    seen.append(1.0)
    return x * len(seen)


def summed(x, total=np.zeros(2)):  # noqa: B008
    total += x
    return total * 2


@pytest.mark.parametrize("helper, factor", [(counted, 1.0), (summed, 2.0)])
def test_defaults_that_the_function_changes(helper, factor):
    jitted = cyxla.jit(lambda x: helper(x))
    for k in range(1, 4):
        np.testing.assert_array_equal(jitted(np.ones(2)), np.full(2, factor * k))


def test_unread_defaults_of_other_kinds():
    def helper(x, seen={1, 2}):  # noqa: B006
        return x + len(seen)

    with pytest.raises(cyxla.errors.TraceError, match="seen is a set from outside, whose contents may change"):
        cyxla.jit(lambda x: helper(x))(np.ones(2))


class Dynamic:
    """An object whose attributes are those of a dict; a missing one is a KeyError."""

    def __init__(self):
        self.__dict__["values"] = {"scale": 2.0}

    def __getattr__(self, name):
        return self.__dict__["values"][name]


def test_objects_that_raise_other_errors_than_attribute_errors():
    function, held = lambda x, d: x * d[0].scale, [Dynamic(), 1]
    with pytest.warns(cyxla.errors.FallbackWarning):
        np.testing.assert_array_equal(cyxla.jit(function, fallback="numpy")(np.ones(2), held), [2, 2])
