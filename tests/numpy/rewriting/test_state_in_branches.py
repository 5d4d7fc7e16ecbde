"""State of objects that a branch on a traced condition, or a loop, changes: calls against those of plain functions.

A function is compiled unless its row gives the reason why it is not.
"""
# ruff: noqa: B006

import array
import collections
import contextvars
import functools
import io
import types
import warnings

import numpy as np
import pytest

import cyxla
from cyxla.errors import FallbackWarning

X = np.linspace(0.5, 3, 12)
PROGRAMS = []
HIDDEN = "changes an object of class"
ITEMS = "adds items to"


class Slots:
    __slots__ = ("_c", "a")

    def __init__(self):
        self.a = 0


class Derived(Slots):
    __slots__ = ("__b",)

    def raise_b(self, by):
        self.__b = getattr(self, "_Derived__b", 0) + by
        return self.__b


class AttributesOfList(list):
    pass


@pytest.fixture(autouse=True)
def fallback(monkeypatch):
    """Use the default, which is to fall back."""
    monkeypatch.delenv("CYXLA_FALLBACK")


def prog(plain=""):
    """Add a function; `plain` is the reason why it is not compiled."""

    def add(function):
        PROGRAMS.append(pytest.param(function, plain, id=function.__name__))
        return function

    return add


@prog()
def nonlocal_two_functions_deep(x):
    total = 0

    def outer(first):
        def inner(second):
            nonlocal total
            total += first + second

        for _ in range(5):
            inner(10)

    for _ in range(5):
        outer(3)
    return total + x[0]


@prog()
def nonlocal_of_a_method(x):
    total = 0.0

    class Adder:
        def add(self, value):
            nonlocal total
            total = total + value

        twice = property(lambda self: self.add(2.0))

    adder = Adder()
    if x[0] > 0:
        adder.add(1.0)
        _ = adder.twice
    return total


@prog()
def nonlocal_of_a_partial(x):
    def make():
        total = [0.0]

        def add(by, value):
            total[0] = total[0] + by * value
            return total[0]

        return functools.partial(add, 2.0)

    add = make()
    if x[0] > 0:
        add(1.0)
    return add(1.0)


@prog()
def default_of_a_function(x):
    def count(acc=[0], *, by={"n": 1}):
        acc[0] = acc[0] + by["n"]
        by["n"] = by["n"] + 1
        return acc[0]

    if x[0] > 0:
        count()
    return count()


@prog()
def default_of_a_function_in_a_loop(x):
    def count(acc=[0]):
        acc[0] = acc[0] + 1
        return acc[0]

    total = 0
    for k in range(30):
        total = total + count() * (k > 3)
    return total + x[0]


@prog()
def slots(x):
    p = Slots()
    if x[0] > 0:
        p.a = 3
    for _ in range(30):
        p.a = p.a + 2
    return p.a


@prog()
def slots_of_base_classes(x):
    p = Derived()
    p.raise_b(1)
    if x[0] > 0:
        p.raise_b(2)
        p.a = 5
    return p.raise_b(0), p.a


@prog(ITEMS)
def slots_that_one_side_binds(x):
    p = Slots()
    if x[0] > 0:
        p._c = 3
    return hasattr(p, "_c")


@prog()
def attributes_of_a_list(x):
    p = AttributesOfList([1])
    p.k = 1
    if x[0] > 0:
        p.k = 3
        p[0] = 4
    return p.k, p[0]


@prog()
def namespace(x):
    p = types.SimpleNamespace(a=1)
    if x[0] > 0:
        p.a = 3
    return p.a


@prog()
def attributes_of_an_exception(x):
    error = ValueError("a")
    error.number = 1
    if x[0] > 0:
        error.number = 3
    return error.number


@prog()
def bound_methods_of_a_list(x):
    def make():
        values = [0]
        return values.__setitem__, values.copy

    put, get = make()
    if x[0] > 0:
        put(0, 5)
    return get()[0]


@prog()
def parts_of_views(x):
    views = [types.MappingProxyType({"a": [1]}).values(), {"a": [1]}.values(), {"a": [1]}.items()]
    if x[0] > 0:
        for view in views[:2]:
            next(iter(view))[0] = 4
        next(iter(views[2]))[1][0] = 5
    return next(iter(views[0]))[0], next(iter(views[1]))[0], next(iter(views[2]))[1][0]


@prog(ITEMS)
def order_of_keys(x):
    d = collections.OrderedDict(a=1, b=2)
    if x[0] > 0:
        d.move_to_end("a")
    return next(iter(d)) == "a"


@prog(HIDDEN)
def byte_array(x):
    b = bytearray(3)
    view = memoryview(b)
    del b
    if x[0] > 0:
        view[0] = 7
    return view[0]


@prog(HIDDEN)
def python_array(x):
    b = array.array("d", [1.0, 2.0])
    if x[0] > 0:
        b[0] = 7.0
    return b[0]


@prog(HIDDEN)
def context_variable(x):
    v = contextvars.ContextVar("v", default=1)
    if x[0] > 0:
        v.set(2)
    return v.get()


@prog(HIDDEN)
def arguments_of_an_exception(x):
    error = ValueError(1)
    if x[0] > 0:
        error.args = (2,)
    return error.args[0]


@prog(HIDDEN)
def text_file(x):
    f = io.StringIO()
    if x[0] > 0:
        f.write("abc")
    return len(f.getvalue())


@prog(HIDDEN)
def generator_of_random_numbers(x):
    rng = np.random.default_rng(4)
    first = 0.0
    if x[0] > 0:
        first = rng.random()
    return first + rng.random()


@prog()
def random_numbers_in_a_loop(x):
    state = np.random.RandomState(4)
    total = x[0] * 0
    for _ in range(20):
        total = total + state.rand()
    return total


@prog()
def list_of_a_python_generator(x):
    def count():
        box = [0]
        while True:
            yield box[0]
            box[0] += 1

    numbers = count()
    numbers.send(None)
    if x[0] > 0:
        numbers.send(None)
    return numbers.send(None)


@prog(HIDDEN)
def variable_of_a_python_generator(x):
    def count():
        k = 0
        while True:
            yield k
            k += 1

    numbers = count()
    numbers.send(None)
    if x[0] > 0:
        numbers.send(None)
    return numbers.send(None)


@prog(HIDDEN)
def texts(x):
    a = np.array(["aa", "bb"])
    if x[0] > 0:
        a[0] = "cc"
    return a[0] == "cc"


@prog(HIDDEN)
def objects(x):
    a = np.array([1, None], dtype=object)
    if x[0] > 0:
        a[0] = 2
    return a[0]


@prog(HIDDEN)
def dates(x):
    a = np.array(["2020-01-01", "2020-01-02"], "M8[D]")
    if x[0] > 0:
        a[0] = a[1]
    return int(a[0].astype(int))


@prog(HIDDEN)
def matrix(x):
    a = np.asmatrix([[1.0, 2], [3, 4]])
    if x[0] > 0:
        a[0, 0] = 5
    return float(a[0, 0])


@prog(HIDDEN)
def masked_array(x):
    a = np.ma.array([1.0, 2, 3], mask=[0, 1, 0])
    if x[0] > 0:
        a[0] = np.ma.masked
    return float(a.sum())


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of matrices
@pytest.mark.parametrize("function, reason", PROGRAMS)
def test_state(function, reason):
    jitted = cyxla.jit(function)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        got = [jitted(x) for x in (X, -X, X)]
    assert got == [function(x) for x in (X, -X, X)]
    reasons = [str(w.message) for w in caught if issubclass(w.category, FallbackWarning)]
    assert bool(reasons) == bool(reason), reasons
    assert all(reason in r for r in reasons)
