"""Attributes of objects from outside that are read and written by functions, methods and annotated statements."""

import contextlib
import copy
import functools
import operator

import numpy as np
import pytest

import cyxla
from cyxla.errors import FallbackWarning, TraceError

X = np.arange(3.0)
READ_N, CALL = operator.attrgetter("n"), operator.methodcaller("times", 2.0)


class Item:
    def __init__(self, n=2.0):
        self.w, self.n = np.ones(3), n

    def times(self, x):
        return self.w * x

    @property
    def double(self):
        return self.w * 2

    @double.setter
    def double(self, value):
        self.w = value / 2

    @double.deleter
    def double(self):
        self.w = np.zeros(3)

    def __str__(self):
        return f"item {self.n:g}"

    def __repr__(self):
        return f"Item({self.n:g})"

    def __format__(self, spec):
        return f"{self.n:g}{spec}"


class Slots:
    __slots__ = ("w",)


class Hiding(Slots):
    __slots__ = ("w",)


class Derived(Item):
    pass


def _put(item, value):
    item.w = value


def _applied(function, value):
    return list(map(function, [value]))[0]  # noqa: RUF015


@contextlib.contextmanager
def _changed(item, value):
    item.w = value
    yield item
    item.n = 4.0


class Changing:
    @contextlib.contextmanager
    def changed(self, value):
        ITEM.w = value
        yield ITEM.n


def in_context(x):
    with _changed(ITEM, x * 2) as item:
        total = item.w.sum()
    with Changing().changed(x * 3) as n:
        return total * n + ITEM.n


def _scaled(v):
    return v * ITEM.w


def _number(item):
    return item.n * ITEM.n


class Functions:
    put, scaled, number = _put, _scaled, _number
    grown = lambda v: v * ITEM.n  # noqa: E731


TABLE, LISTED = {"put": _put}, [_put]
HIDING = Hiding()


ITEM, ITEMS, SLOTS, KEPT = Derived(), [Item(), Item()], Slots(), None


def _reset():
    globals().update(ITEM=Derived(), ITEMS=[Item(), Item(1.0)], SLOTS=Slots(), KEPT=None)


def annotated(x):
    ITEM.w: np.ndarray = x * 2
    ITEM.n: float = 3.0
    total: float = x.sum()
    for k in range(3):
        total: float = total + k
    ITEMS[0].n: float = total


def annotated_in_branch(x):
    if x[0] > 5:
        ITEM.n: float = x[0]
    else:
        ITEM.n: float = x[1]


def setattr_of_super(x):
    super(Derived, ITEM).__setattr__("w", x * 2)


def setattr_kept(x):
    put = ITEM.__setattr__
    put("w", x * 2)


def delete(x):
    ITEM.__delattr__("n")
    return x


def made_and_deleted(x):
    ITEM.made = x * 2
    doubled = ITEM.made + 1
    del ITEM.made
    return doubled


def delete_and_set(x):
    del ITEM.n
    ITEM.made = x
    ITEM.n = x.sum()
    ITEM.__delattr__("w")
    ITEM.w = x * 2
    ITEM.w = x * 3


def put_of_variable(x):
    put = _put
    list(map(put, ITEMS, [x * 2, x * 3]))


def put_of_parameter(x, put=_put):
    functools.reduce(put, [x * 2], ITEM)


WRITES = {
    "context": in_context,
    "deleted and set": delete_and_set,
    "descriptor": lambda x: (Slots.w.__set__(SLOTS, x * 2), Slots.w.__get__(SLOTS))[1],
    "descriptor's class": lambda x: type(Slots.w).__set__(Slots.w, SLOTS, x * 2),
    "descriptor, mapped": lambda x: list(map(Slots.w.__set__, [SLOTS], [x * 2])),
    "property": lambda x: Item.double.__set__(ITEM, x * 2), "setter": lambda x: Item.double.fset(ITEM, x * 2),
    "deleter": lambda x: Item.double.__delete__(ITEM),
    "setter, mapped": lambda x: list(map(Item.double.fset, ITEMS, [x * 2, x * 3])),
    "mapped, method of Python": lambda x: list(map(ITEM.__setattr__, ["w"], [x * 2])),
    "mapped, function of Python": lambda x: list(map(object.__setattr__, [ITEM], ["w"], [x * 2])),
    "mapped variable": put_of_variable, "reducing parameter": put_of_parameter,
    "mapped attribute": lambda x: list(map(Functions.put, ITEMS, [x * 2, x * 3])),
    "mapped item": lambda x: list(map(TABLE["put"], ITEMS, [x * 2, x * 3])),
    "mapped element": lambda x: list(map(LISTED[0], ITEMS, [x * 2, x * 3])),
    "made and deleted": made_and_deleted,
    "annotated": annotated, "annotated in a branch": annotated_in_branch,
    "method": lambda x: ITEM.__setattr__("w", x * 2), "object": lambda x: object.__setattr__(ITEM, "w", x * 2),
    "super": setattr_of_super, "kept": setattr_kept, "delete": delete,
    "global": lambda x: globals().__setitem__("KEPT", x * 2) or globals()["KEPT"],
    "slots": lambda x: SLOTS.__setattr__("w", x * 2),
}  # fmt: skip
READS = {
    "function that maps": lambda x: _applied(Functions.scaled, x), "by name": lambda x: _applied(ITEM.times, x),
    "mapped result": lambda x: list(map(getattr(ITEM, "times"), [x]))[0],  # noqa: B009, RUF015
    "descriptor": lambda x: Item.double.__get__(ITEM) * x, "getter": lambda x: next(map(Item.double.fget, [ITEM])) * x,
    "property of the class": lambda x: Item.double.__get__(None, Item).fget(ITEM) * x,
    "mapped method of Python": lambda x: next(map(ITEM.__getattribute__, ["w"])) * x,
    "mapped attribute": lambda x: next(map(Functions.scaled, [x])),
    "along an axis": lambda x: np.apply_along_axis(Functions.scaled, 0, x),
    "by pieces": lambda x: np.piecewise(x, [x > 1], [Functions.grown, Functions.grown]),
    "key of a class": lambda x: sorted(ITEMS, key=Functions.number)[0].w * x,
    "partial": lambda x: next(map(functools.partial(Functions.scaled), [x])),
    "filter without a function": lambda x: sum(filter(None, [ITEM.n, 0])) * x,
    "method": lambda x: ITEM.__getattribute__("w") * x, "object": lambda x: object.__getattribute__(ITEM, "w") * x,
    "global": lambda x: globals()["ITEM"].w * globals().get("ITEM").n * x,
    "attrgetter": lambda x: operator.attrgetter("w")(ITEM) * x,
    "two": lambda x: operator.attrgetter("w", "n")(ITEM)[1] * x,
    "path": lambda x: operator.attrgetter("w.T")(ITEM) * x,
    "mapped": lambda x: sum(map(operator.attrgetter("n"), ITEMS)) * x,
    "key": lambda x: min(ITEMS, key=operator.attrgetter("n")).w * x,
    "from outside": lambda x: READ_N(ITEM) * x, "passed": lambda x: sum(map(READ_N, ITEMS)) * x,
    "methodcaller": lambda x: operator.methodcaller("times", x)(ITEM),
    "keyword": lambda x: operator.methodcaller("times", x=x)(ITEM),
    "caller from outside": lambda x: CALL(ITEM) * x,
    "super": lambda x: super(Derived, ITEM).times(x),
}  # fmt: skip
PLAIN = {
    "str": lambda x: str(ITEM), "repr": lambda x: repr(ITEM), "text": lambda x: f"{ITEM} {ITEM!r} {ITEM!s}",
    "percent": lambda x: "%s" % ITEM, "format": lambda x: "{:!}".format(ITEM), "list": lambda x: str(ITEMS),  # noqa: UP031, UP032
    "copy": lambda x: copy.copy(ITEM).n * x, "deepcopy": lambda x: copy.deepcopy(ITEMS)[0].w * x,
    "globals": lambda x: [v for k, v in globals().items() if k == "ITEM"][0].w * x,  # noqa: RUF015
    "locals": lambda x: sorted(locals()), "variables": lambda x: vars(), "names": lambda x: dir(),
    "hidden slot": lambda x: Slots.w.__set__(HIDING, x) or Slots.w.__get__(HIDING),
    "eval": lambda x: eval("ITEM.w") * x,
    "exec": lambda x: exec("ITEM.n += 1"),
}  # fmt: skip


def _outcomes(function):
    """Return what three calls return and leave, between which attributes change."""
    _reset()
    found = []
    for k in range(3):
        result = function(X + k)
        found.append(repr((result, vars(ITEM), [vars(i) for i in ITEMS], getattr(SLOTS, "w", None), KEPT)))
        ITEM.w, ITEM.n = ITEM.w + 1, 5.0 + k
        ITEMS[1].n -= 1
        ITEMS[0].w[1] += 1
    return found


@pytest.mark.parametrize("name", WRITES)
def test_writes(name):
    assert _outcomes(cyxla.jit(WRITES[name], fallback="error", platform="interpreter")) == _outcomes(WRITES[name])


@pytest.mark.parametrize("name", READS)
def test_reads(name):
    assert _outcomes(cyxla.jit(READS[name], fallback="error", platform="interpreter")) == _outcomes(READS[name])


@pytest.mark.parametrize("name", PLAIN)
def test_numpy_runs_what_cannot_be_seen(name):
    with pytest.warns(FallbackWarning, match="while a function is traced|while tracing"):
        found = _outcomes(cyxla.jit(PLAIN[name], fallback="numpy", platform="interpreter"))
    assert found == _outcomes(PLAIN[name])


class Frozen:
    """Object whose class has code for assignments."""

    def __init__(self, n):
        object.__setattr__(self, "n", n)

    def __setattr__(self, name, value):
        raise AttributeError(name)


FROZEN = Frozen(1.0)


def test_classes_with_code_for_assignments():
    def change(x):
        object.__setattr__(FROZEN, "n", x.sum())
        return Frozen(x * 2).n

    with pytest.warns(FallbackWarning, match="object.__setattr__ changes a Frozen"):
        np.testing.assert_array_equal(cyxla.jit(change, fallback="numpy")(X), X * 2)
    assert FROZEN.n == X.sum()


def test_errors_name_the_place_of_a_new_object():
    def place(x):
        ITEM.w = [x, Item()]

    with pytest.raises(TraceError, match=r"ITEM.w\[1\] becomes a Item in place, which is not an array(.|\n)*assign"):
        cyxla.jit(place, fallback="error")(X)
