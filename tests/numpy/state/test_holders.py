"""Values that objects of any kind hold, read through one or two of them, and changed between calls."""

import collections
import contextvars
import functools
import operator
import types
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest

import cyxla

# ruff: noqa: C417, RUF015 - calls of Python's functions as users write them


class Plain:
    def __init__(self, held):
        self.held = held

    def get(self):
        return self.held

    def mean(self):
        return self.held

    def __call__(self):
        return self.held

    def __getitem__(self, key):
        return self.held

    def __iter__(self):
        yield self.held

    def __enter__(self):
        return self.held

    def __exit__(self, *error):
        return None

    @property
    def value(self):
        return self.held


class Derived(Plain):
    def get(self):
        return super().get()


class Slots:
    __slots__ = ("held",)

    def __init__(self, held):
        self.held = held


class Dynamic:
    def __init__(self, held):
        self.__dict__["values"] = {"held": held}

    def __getattr__(self, name):
        if name == "held":
            return self.__dict__["values"][name]
        raise AttributeError(name)


class Reader:
    def __get__(self, obj, kind=None):
        return obj.inner


class Described:
    held = Reader()

    def __init__(self, inner):
        self.inner = inner


@dataclass
class Record:
    held: Any


@dataclass(frozen=True)
class Frozen:
    held: Any

    def get(self):
        return self.held


class Pair(NamedTuple):
    held: Any
    other: int


def entered(manager):
    with manager as value:
        return value


def module(held):
    made = types.ModuleType("of_the_user")
    made.held = held
    return made


def variable(held):
    made = contextvars.ContextVar("held")
    made.set(held)
    return made


def set_held(holder, value):
    holder.held = value


def set_first(holder, value):
    holder[0] = value


def set_item(holder, value):
    holder["held"] = value


def keep(holder, value):
    """Leave a holder as it is, which cannot be changed."""


#: How each holder is made, how a function reads it, and how another value is put in.
HOLDERS = {
    "list": (lambda v: [v, 1], lambda h: h[0], set_first),
    "slice": (lambda v: [v, 1], lambda h: h[:1][0], set_first),
    "loop": (lambda v: [Plain(v)], lambda h: [o.held for o in h][0], lambda h, v: set_held(h[0], v)),
    "zip": (lambda v: [v, 1], lambda h: next(zip(h, [1], strict=False))[0], set_first),
    "unpacked": (lambda v: [v, 1], lambda h: (lambda a, b: a)(*h), set_first),
    "itemgetter": (lambda v: [v, 1], lambda h: operator.itemgetter(0)(h), set_first),
    "max": (lambda v: [(v, 1)], lambda h: max(h, key=lambda t: t[1])[0], lambda h, v: set_first(h, (v, 1))),
    "map": (lambda v: [Plain(v)], lambda h: next(map(lambda o: o.held, h)), lambda h, v: set_held(h[0], v)),
    "filter": (lambda v: [Plain(v)], lambda h: next(filter(None, h)).held, lambda h, v: set_held(h[0], v)),
    "reduce": (
        lambda v: [Plain(v)], lambda h: functools.reduce(lambda a, o: o.held, h, 0), lambda h, v: set_held(h[0], v),
    ),
    "dict": (lambda v: {"held": v}, lambda h: h["held"], set_item),
    "dict_get": (lambda v: {"held": v}, lambda h: h.get("held"), set_item),
    "dict_values": (lambda v: {"held": Plain(v)}, lambda h: next(iter(h.values())).held,
                    lambda h, v: set_held(h["held"], v)),
    "keywords": (lambda v: {"held": v}, lambda h: (lambda held: held)(**h), set_item),
    "merged": (lambda v: {"held": v}, lambda h: {**h}["held"], set_item),
    "tuple": (lambda v: (v, 1), lambda h: h[0], keep),
    "named_tuple": (lambda v: Pair(v, 1), lambda h: h.held, keep),
    "object": (Plain, lambda h: h.held, set_held),
    "method": (Plain, lambda h: h.get(), set_held),
    "method_named_as_in_numpy": (Plain, lambda h: h.mean(), set_held),
    "super": (Derived, lambda h: h.get(), set_held),
    "call": (Plain, lambda h: h(), set_held),
    "item": (Plain, lambda h: h[3], set_held),
    "iterator": (Plain, lambda h: list(h)[0], set_held),
    "context": (Plain, entered, set_held),
    "property": (Plain, lambda h: h.value, set_held),
    "getattr": (Plain, lambda h: getattr(h, "held"), set_held),  # noqa: B009
    "attrgetter": (Plain, lambda h: operator.attrgetter("held")(h), set_held),
    "vars": (Plain, lambda h: vars(h)["held"], set_held),
    "bound_method": (lambda v: Plain(v).get, lambda h: h(), lambda h, v: set_held(h.__self__, v)),
    "slots": (Slots, lambda h: h.held, set_held),
    "dynamic": (Dynamic, lambda h: h.held, lambda h, v: h.values.__setitem__("held", v)),
    "descriptor": (Described, lambda h: h.held, lambda h, v: setattr(h, "inner", v)),
    "dataclass": (Record, lambda h: h.held, set_held),
    "frozen_dataclass": (Frozen, lambda h: h.get(), keep),
    "class": (lambda v: type("Kind", (), {"held": v}), lambda h: h.held, set_held),
    "class_of_an_object": (lambda v: type("Kind", (), {"held": v})(), lambda h: h.held,
                           lambda h, v: set_held(type(h), v)),
    "module": (module, lambda h: h.held, set_held),
    "namespace": (lambda v: types.SimpleNamespace(held=v), lambda h: h.held, set_held),
    "partial": (lambda v: functools.partial(lambda a: a, v), lambda h: h(), keep),
    "partial_of_a_method": (lambda v: functools.partial(Plain.get, Plain(v)), lambda h: h(),
                            lambda h, v: set_held(h.args[0], v)),
    "default": (lambda v: lambda held=v: held, lambda h: h(), lambda h, v: setattr(h, "__defaults__", (v,))),
    "named_default": (lambda v: lambda *, held=v: held, lambda h: h(), lambda h, v: set_item(h.__kwdefaults__, v)),
    "closure": (lambda v: lambda: v, lambda h: h(), lambda h, v: setattr(h.__closure__[0], "cell_contents", v)),
    "cached": (lambda v: functools.lru_cache(lambda held=v: held), lambda h: h(), keep),
    "ordered_dict": (lambda v: collections.OrderedDict(held=v), lambda h: h["held"], set_item),
    "chain_map": (lambda v: collections.ChainMap({"held": v}), lambda h: h["held"], set_item),
    "user_list": (lambda v: collections.UserList([v]), lambda h: h[0], set_first),
    "deque": (lambda v: collections.deque([v]), lambda h: h[0], set_first),
    "context_variable": (variable, lambda h: h.get(), lambda h, v: h.set(v) and None),
    "mapping_proxy": (lambda v: types.MappingProxyType({"held": v}), lambda h: h["held"], keep),
}  # fmt: skip


def double_first(value):
    value[0] *= 2


#: How each value is made, how a function uses it, how it is changed, and another one.
VALUES = {
    "array": (lambda: np.array([1.0, 2.0]), lambda x, v: x * v, double_first, lambda: np.array([7.0, 5.0])),
    "number": (lambda: 2.0, lambda x, v: x * v, None, lambda: 5.0),
    "list": (lambda: [1.0, 4.0], lambda x, v: x * v[0] + v[1], double_first, lambda: [3.0, 6.0]),
    "object": (lambda: Plain(2.0), lambda x, v: x * v.held, lambda v: set_held(v, v.held * 2), lambda: Plain(7.0)),
}


def in_loop(x, read, use, holder):
    for _ in range(2):
        x = use(x, read(holder))
    return x


def outcome(function, args):
    """Return a result or the class of an error: a function that a class holds is a method of its objects."""
    try:
        return function(*args)
    except TypeError:
        return TypeError


def check(make_holder, read, put, value):
    make, use, change, other = VALUES[value]
    held = make()
    holder, x = make_holder(held), np.array([2.0, 3.0])
    functions = [
        lambda x: use(x, read(holder)),
        lambda x: in_loop(x, read, use, holder),
        lambda x, h: use(x, read(h)),
        lambda x, h=holder: use(x, read(h)),
    ]
    arguments = [(x,), (x,), (x, holder), (x,)]
    jitted = [cyxla.jit(f, fallback="numpy", platform="interpreter") for f in functions]
    for step in range(3):
        for function, compiled, args in zip(functions, jitted, arguments, strict=True):
            np.testing.assert_equal(outcome(compiled, args), outcome(function, args))
        if step == 0 and change is not None:
            change(held)
        else:
            put(holder, other())


pytestmark = pytest.mark.filterwarnings("ignore::cyxla.errors.FallbackWarning")


@pytest.mark.parametrize("holder, value", list(product(HOLDERS, VALUES)))
def test_holder(holder, value):
    check(*HOLDERS[holder], value)


@pytest.mark.slow_but_every(23)
@pytest.mark.parametrize("outer, inner", list(product(HOLDERS, HOLDERS)))
def test_holder_in_a_holder(outer, inner):
    make_inner, read_inner, put_inner = HOLDERS[inner]
    make_outer, read_outer, _ = HOLDERS[outer]
    kept = []

    def make(value):
        kept[:] = [make_inner(value)]
        return make_outer(kept[0])

    check(make, lambda h: read_inner(read_outer(h)), lambda h, v: put_inner(kept[0], v), "array")
