"""What Python's own functions and operators give for traced numbers: classes, attributes, methods, exact results."""

import enum
import math
import warnings
from dataclasses import dataclass
from fractions import Fraction
from operator import getitem as get_item
from operator import setitem as set_item

import numpy as np
import pytest

import cyxla

X = np.array([2.5, -1.25, 3.0])
N = np.array([3, -4, 12])


def assert_list(k):
    assert k
    assert not (k[:0] and k)
    return k[0]


def popped(k):
    values, total = [*k], 0
    while values:
        total = total * 2 + values.pop()
    return total


def _sum_of_popped(values):
    total, values = 0.0, list(values)
    while values:
        total += values.pop()
    return total, len(values)


def _first_of_some(values):
    assert values, "empty"
    return values[0]


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


@dataclass
class Point:
    x: float
    y: float


def _by_mode(mode, x):
    match mode:
        case Mode.FAST:
            return x * 2
        case Mode.SLOW:
            return x * 3


def _by_class(point):
    match point:
        case Point(x=0):
            return point.y
        case Point(x, y) if x > 3:
            return x * y
        case Point():
            return -point.y


def _error_of(function, *args):
    try:
        return function(*args)
    except (TypeError, IndexError) as error:
        return type(error).__name__, str(error)


def _halved_until_small(v):
    for _ in range(3):
        half = v / 2
        try:
            v[:] = half
        except TypeError:
            v = half
    return v


# function and arguments; the function is compiled
COMPILED = {
    "type of a float": (lambda x: type(x).__name__, 2.0), "type of an int": (lambda x: type(x) is int, 3),
    "type of a scalar": (lambda x: (type(x[0]).__name__, type(x.sum()) is np.float64, type(x[0]) == float), X),  # noqa: E721
    "type of an array": (lambda x: (type(x) is np.ndarray, type(x) == np.ndarray, type(x).__name__), X),  # noqa: E721
    "type of a result": (lambda x: (type(x * 2) is float, type(x > 1) is bool, type(x // 1) in (int, float)), 2.0),
    "class": (lambda x: (x.__class__.__name__, x[0].__class__ is np.float64), X),
    "class of an integer": (lambda n: n.__class__, 3),
    "class of a float": (lambda x: x.__class__, 2.5),
    "class of a bool": (lambda x: x.__class__, True),
    "class of a scalar": (lambda x: x.__class__, np.float32(3)),
    "class of an array": (lambda x: x.__class__, X),
    "isinstance": (
        lambda x: (isinstance(x, float), isinstance(x, (int, np.ndarray)), isinstance(x, int | float)), 2.0,
    ),
    "isinstance of a scalar": (lambda x: (isinstance(x[0], float), isinstance(x[0], np.floating)), X),
    "hasattr": (lambda x: (hasattr(x, "shape"), hasattr(x, "__len__"), hasattr(x, "real")), 2.0),
    "hasattr of an array": (lambda x: (hasattr(x, "shape"), hasattr(x, "__len__"), hasattr(x, "nothing")), X),
    "getattr": (lambda x: getattr(x, "shape", None), 2), "getattr of an array": (lambda x: getattr(x, "shape"), X),  # noqa: B009
    "isscalar": (lambda x: (np.isscalar(x), np.isscalar(x * 2)), 2.0),
    "isscalar of an element": (lambda x: (np.isscalar(x[0]), np.isscalar(x)), X),
    "scalar classes": (
        lambda x: (np.float32(x[0]), np.int64(x[0]), np.float64(x.sum()), np.uint8(x[2]), np.bool_(x[1])), X,
    ),
    "scalar classes of a float": (lambda x: (np.float32(x), np.float64(x), np.complex64(x), np.int32(x + 1.5)), 2.5),
    "scalar class of an array": (lambda x: np.float32(x), X),
    "scalar class of a dtype": (lambda x: x.dtype.type(x[0] + 1), X),
    "conjugate": (lambda z: (z.conjugate(), z.real, z.imag, z.real + abs(z)), 1 + 2j),
    "complex": (lambda x: (complex(x[0], x[1]), complex(x[0]), complex(2, x[1]) * 1j), X),
    "complex of complex numbers": (
        lambda z, n: (complex(z, n), complex(n, z), complex(z, z), complex(z), complex(-z, -0.0), complex(z, 2.5)),
        1 - 2j, 3,
    ),
    "complex of NumPy's": (lambda z: (complex(z[0], z[1]), complex(2, z[0]), complex(z[0])), X - 1j),
    "item": (lambda x: (x[0].item() * 2, x.sum().item(), x.item(1), x[:1].item()), X),
    "item of a bool": (lambda x: ((x > 0)[0].item(), (x > 0).all().item()), X),
    "tolist": (lambda x: (x.tolist(), x[0].tolist(), x.reshape(3, 1).tolist(), [v * 2 for v in x.tolist()]), X),
    "is_integer": (lambda x: (x.is_integer(), (x * 0.5).is_integer(), (x * math.inf).is_integer()), 3.0),
    "bits": (lambda n: (n.bit_length(), (-n).bit_length(), n.bit_count(), (n * 0).bit_length()), 37),
    "bools": (
        lambda a, b: ((a < b) + 1, (a < b) - (a > b), -(a < b), ~(a > b), (a < b) * 2.5, (a < b) & (a > b)), 1, 2,
    ),
    "bools of floats": (lambda a, b: ((a < b) + (b < 3.0), (a < b) == 1, +(a > b)), 1.0, 2.0),
    "not": (lambda n: (not n, type(not n) is bool, n not in [1, 2], (not n) + 1), 3),
    "parts of a number": (
        lambda n, x: (n.real, n.imag, type(n.imag) is int, type(x.real) is float, type(x.imag) is float), 3, 2.5,
    ),
    "parts of a bool by NumPy": (lambda a: (np.real(a), np.imag(a), np.real(a) + np.real(a)), True),
    "parts of a bool": (lambda a: (a.real, a.imag, a.conjugate(), type(a.real) is int, type(a.imag) is int), True),
    "is True": (
        lambda a, b: (a is True, a is not True, False is b, True is a is not False, type(a is True) is bool,
                      2.0 if b is True else 3.0), True, False,
    ),
    "is True without branches": (lambda x, a: x * (a is True), X, True),
    "is True for others": (lambda n, x: (n is True, (n > 1) is True, x[0] is False, (x > 1)[0] is True), 1, X),
    "is, of bools": (
        lambda a, b, n: (a is b, a is not b, a is bool(n), a is n, (n > 0) is a is not b, 2.0 if a is b else 3.0),
        True, False, 1,
    ),
    "is, of equal bools": (lambda a, b: [int(a is b), (not a) is b, (a and not b) is b], False, False),
    "is, of NumPy's bools": (lambda x: ((x[0] > 0) is np.True_, x.any() is (x[1] > 0), x.all() is True), X),
    "is, of numbers of two classes": (lambda n, x: (n is x, n is x[0], x[0] is X, x is n, x[:1] is x[0]), 1, X),
    "is, of names of one number": (lambda n, x: [v is n for v in (n, x, 2.5)], 2, 2.5),
    "items of a number": (lambda x: [_error_of(get_item, x, key) for key in (0, slice(None), None, ..., ())], 2.5),
    "items of a bool": (lambda x: [_error_of(get_item, x, key) for key in (0, None, ...)], True),
    "assignment to items of a number": (
        lambda x, n: [_error_of(set_item, v, key, 1) for v in (x, n, x * 2) for key in (0, slice(None), ())],
        2.5, 3,
    ),
    "assignment to items of an element": (
        lambda x: [_error_of(set_item, v, key, 1) for v in (x[0], x.sum()) for key in (0, slice(None), ...)], X,
    ),
    "assignment to a number that is caught": (_halved_until_small, 5.0),
    "assignment to an array in place": (lambda x: _halved_until_small(x * 1.0), X),
    "unequal text": (lambda n: (n == "a", n != "a"), 2), "negative power": (lambda n: (n**-1, n**-2), 4),
    "power": (lambda x: (x**0.5, x**2, x**-1, 2.0**x), 2.0),
    "round": (lambda x: [round(x * k, 2) for k in range(1, 6)], 2.675),
    "round of scalars": (lambda x: (round(x[0]), round(x[1], 1), type(round(x[2])) is int), X),
    "round of an int": (lambda n: [round(n - k, d) for k in (0, 1, 2) for d in (2, 0, -1, -2)], 1_237),
    "round of ties": (lambda n: [round(n + k, -1) for k in (0, 10, 1, -1, -40, -2 * n)], 25),
    "round of a bool": (lambda x: (round(x > 1, 2), round(x > 1)), 2.0),
    "truth of lists": (lambda v: (1 if v else 2, not v, v and 4, (v or 5)[0], not (v[0],), bool([v[0]])), [0.0]),
    "truth of a list of zeros": (lambda v: [1 if w else 2 for w in (v, [v[0]], (v[1],), v[2:])], [0, 0]),
    "any of lists": (lambda x: (any([[x], []]), all([(x,), [x]]), all([[x], []]), any([[], x])), 0.0),
    "filter by lists": (lambda v: [w[0] for w in (v, v[1:], v[2:]) if w], [0.0, 1.0]),
    "while a list is left": (_sum_of_popped, [0.0, 2.0, 0.0]), "assertion of a list": (_first_of_some, [0.0]),
    "patterns with attributes": (_by_mode, Mode.FAST, 2.0), "other value": (_by_mode, Mode.SLOW, 2.0),
    "patterns with classes": (lambda x: [_by_class(p) for p in (Point(0, x), Point(4, x), Point(1, x))], 2.0),
    "round of halves": (lambda x: (round(x), round(-x), round(x, 0), round(x / 100, 2)), 2.5),
    "truth of lists and numbers": (
        lambda k, x: ("if" if k else "else", not k, k and 2, k or x, [v for v in [x] if k][:1], any([k, []])),
        (0,), 3,
    ),
    "truth of lists of arrays": (lambda x: (1 if [x] else 0, not (x, x), 3 if [x[:0]] and x[0] > 1 else 4), X),
    "assertions of lists": (assert_list, (0, 0)), "while of a list": (popped, (4, 0, 2)),
    "one element": (lambda x: bool(x), np.ones(1)),
}  # fmt: skip

# the plain function runs in place of the program, since the class of a result depends on values, or is a large integer
LEFT = {
    "root of a negative number": (lambda x: x**0.5, -8.0), "int to a negative power": (lambda n, k: n**k, 2, -3),
    "power of a negative int": (lambda n: 2**-n, 4),
    "root of a negative int": (lambda n: n**0.5, -4), "power of zero": (lambda x: x**-1.0, 0.0),
    "negative power of zero": (lambda n: n**-1, 0), "float overflow": (lambda x: x**2, 1e300),
    "large power": (lambda x: x**400, 10.0), "negative shift": (lambda n, k: n >> k, 3, -1),
    "large int": (lambda n: n * n, 2**40), "large power of an int": (lambda n: n**30, 10),
    "large float": (lambda x: int(x * 1e30), 2.5),
}  # fmt: skip


def zero_or_sum(x):
    y = 0
    if x.sum() > 0:
        y = x.sum()
    return y


def sorted_pair(a, b):
    if a > b:
        a, b = b, a
    return a, b


def nested_branches(x):
    y = 0
    if x > 0:
        y = max(1, x)
        if x > 2:
            y = y * 2
    return y


def sums_in_branches(x, n):
    parts = []
    for i in range(n):
        s = 0
        for k in range(40):
            if x[k % 3] > i:
                s += x[0]
        parts.append(s)
    return parts


def scaled(x, n):
    y = 0
    if x > 0:
        y = x
    return n + y, y * 2.0, np.exp(y + n)


def positive_part(x):
    out = np.zeros(len(x))
    for i in range(len(x)):
        out[i] = max(0, x[i])
    return out


# function, and arguments of several calls: the class of a result depends on which of two numbers it is
MIXED = {
    "min and max": (lambda a, b: (min(a, b), max(a, b)), [(1, 2.5), (3, 2.5), (2.0, 2), (1, 1.0)]),
    "of a scalar": (lambda x: (min([-20, x.min()]), max([20, x.max()])), [(X,), (X * 100,)]),
    "swap": (sorted_pair, [(3, 2.5), (1, 2.5), (3.5, 1)]), "branch": (zero_or_sum, [(X,), (-X,)]),
    "conditional expression": (lambda x: 0 if x < 0 else x, [(1.5,), (-1.5,), (2.5,)]),
    "nested": (nested_branches, [(1.5,), (-1.5,), (0.5,), (3.5,)]), "loop": (sums_in_branches, [(X, 2)]),
    "operand": (scaled, [(1.5, N), (-1.5, N)]), "elements": (positive_part, [(X,), (-X,)]),
}  # fmt: skip


# arguments that no program can take
UNSUPPORTED = {
    "set": (lambda s, x: x * len(s), {1, 2}, X), "objects": (lambda a: a * 2, np.array([1, 2.5], dtype=object)),
    "texts": (lambda a: a == "b", np.array(["a", "b"])), "long double": (lambda a: a * a, X.astype(np.longdouble)),
    "dates": (lambda a: a + 1, np.array(["2020-01-01"], "M8[D]")),
    "object": (lambda c, x: c.numerator + x, Fraction(3, 2), X),
}  # fmt: skip


def outcome(function, args):
    """Return the repr of a result, or the class and the text of the exception."""
    try:
        return repr(function(*args))
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("name", COMPILED)
def test_compiled(name, backend):
    function, *args = COMPILED[name]
    f = cyxla.jit(function, platform=backend, fallback="error")
    for _ in range(2):
        assert outcome(f, args) == outcome(function, args)


@pytest.mark.parametrize("name", LEFT)
def test_plain_function_runs(name, backend):
    function, *args = LEFT[name]
    f = cyxla.jit(function, platform=backend, fallback="numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cyxla.errors.FallbackWarning)
        for _ in range(2):
            assert outcome(f, args) == outcome(function, args)
        with pytest.raises((OverflowError, ZeroDivisionError)):
            cyxla.jit(function, platform=backend, fallback="error")(*args)


@pytest.mark.parametrize("name", MIXED)
def test_numbers_of_two_classes(name, backend):
    function, calls = MIXED[name]
    f = cyxla.jit(function, platform=backend, fallback="numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for args in calls:
            assert outcome(f, args) == outcome(function, args)
    assert f.cache_info().misses <= len(calls)


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unsupported_arguments(name):
    function, *args = UNSUPPORTED[name]
    f = cyxla.jit(function, platform="interpreter", fallback="numpy")
    with pytest.warns(cyxla.errors.FallbackWarning, match="argument"):
        assert outcome(f, args) == outcome(function, args)
    with pytest.raises(cyxla.errors.DTypeError, match="argument"):
        cyxla.jit(function, platform="interpreter")(*args)


def with_list(x, found=[]):  # noqa: B006
    found.append(x.sum())
    return len(found)


def with_dict(x, counts={}):  # noqa: B006
    counts["n"] = counts.get("n", 0) + 1
    return counts["n"]


def with_array(x, total=np.zeros(3)):  # noqa: B008
    total += x
    return total.sum()


@pytest.mark.parametrize("function", [with_list, with_dict, with_array])
def test_changed_defaults(function):
    f = cyxla.jit(function, platform="interpreter")
    want, before = [], repr(function.__defaults__)
    results = [f(X) for _ in range(3)]
    after = repr(function.__defaults__)
    for default in function.__defaults__:
        default.clear() if isinstance(default, (list, dict)) else default.fill(0)
    assert repr(function.__defaults__) == before
    want = [function(X) for _ in range(3)]
    assert results == want
    assert repr(function.__defaults__) == after


def test_attributes_of_objects_are_seen():
    class Counter:
        def count(self, x):
            if not hasattr(self, "total"):
                setattr(self, "total", 0.0)  # noqa: B010
            self.total = getattr(self, "total", 1.0) + x.sum()
            return self.total

    plain, jitted = Counter(), Counter()
    f = cyxla.jit(Counter.count, platform="interpreter")
    for _ in range(3):
        assert f(jitted, X) == plain.count(X)
    del jitted.total
    assert f(jitted, X) == X.sum()


def _matching(x, kind, n, options):
    match (kind, n):
        case ("a", 1):
            y = x + 1
        case ("a", int(k)) if k > 2:
            y = x * k
        case ("b", float() | bool()):
            y = x - n
        case _:
            y = x * 0
    match options:
        case {"w": 2}:
            y = y + 1000
        case [1, *rest]:
            y = y + len(rest)
        case True:
            y = y + 5
        case None:
            y = y - 1
    return y


@pytest.mark.parametrize("arguments", [
    ("a", 1, None), ("a", 5, {"w": 2}), ("b", 2.5, [1, 2, 3]), ("b", 3, [2]), ("b", True, True), ("a", 0, 1),
])  # fmt: skip
@pytest.mark.parametrize("platform", ["interpreter", "cpu"])
def test_match_statements_compare_known_values(arguments, platform):
    jitted = cyxla.jit(_matching, platform=platform)
    for _ in range(2):
        np.testing.assert_array_equal(jitted(X, *arguments), _matching(X, *arguments))


def _class_of_argument(x):
    match x:
        case np.ndarray():
            return x + 1
    return x


def test_match_statements_of_arrays_run_plainly(monkeypatch):
    monkeypatch.setenv("CYXLA_FALLBACK", "numpy")
    with pytest.warns(cyxla.errors.FallbackWarning, match="patterns of a match statement"):
        np.testing.assert_array_equal(cyxla.jit(_class_of_argument)(X), X + 1)
