"""Attributes of objects from outside that are read and written by functions, methods and annotated statements."""

import copy
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

    def __str__(self):
        return f"item {self.n:g}"

    def __repr__(self):
        return f"Item({self.n:g})"

    def __format__(self, spec):
        return f"{self.n:g}{spec}"


class Slots:
    __slots__ = ("w",)


class Derived(Item):
    pass


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


WRITES = {
    "made and deleted": made_and_deleted,
    "annotated": annotated, "annotated in a branch": annotated_in_branch,
    "method": lambda x: ITEM.__setattr__("w", x * 2), "object": lambda x: object.__setattr__(ITEM, "w", x * 2),
    "super": setattr_of_super, "kept": setattr_kept, "delete": delete,
    "global": lambda x: globals().__setitem__("KEPT", x * 2) or globals()["KEPT"],
    "slots": lambda x: SLOTS.__setattr__("w", x * 2),
}  # fmt: skip
READS = {
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
