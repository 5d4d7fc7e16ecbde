"""`cyxla.jit`: arguments, signatures, and results."""

import asyncio
import collections
import copy
import dataclasses
import enum
import gc
import pickle
import threading
import weakref
from collections import Counter, OrderedDict, defaultdict, namedtuple
from contextlib import nullcontext
from functools import partial

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cyxla

jit = partial(cyxla.jit, platform="interpreter")
X = np.arange(6.0).reshape(2, 3)
Pair = namedtuple("Pair", "first second")


@dataclasses.dataclass
class Layer:
    weights: np.ndarray
    bias: float

    @jit
    def run(self, x):
        return x @ self.weights + self.bias


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: np.ndarray
    kind: str = "tanh"


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@jit
def plus_one(x):
    return x + 1


def power(x, n):
    return x**n


def element(x, i):
    return x[i]


def assert_same(got, want):
    """Assert that two containers of arrays are equal in structure, types and bits."""
    assert type(got) is type(want), (got, want)
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            assert_same(g, w)
    elif isinstance(want, dict):
        assert list(got) == list(want)
        for k in want:
            assert_same(got[k], want[k])
    elif dataclasses.is_dataclass(want):
        for f in dataclasses.fields(want):
            assert_same(getattr(got, f.name), getattr(want, f.name))
    elif not hasattr(want, "dtype"):
        assert got == want
    else:
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_array_equal(got, want)


# --- calls that mean the same -----------------------------------------------------------------------------------------


def form(a, b=2.0, /, *args, c=3.0, **rest):
    return a + 10 * b + 100 * sum(args) + 1000 * c + 10000 * sum(rest.values())


CALL_FORMS = {
    "positions": (lambda f: f(X, 1.0), lambda f: f(X, 2.0)),
    "more positions": (lambda f: f(X, 1.0, 5.0, 6.0), lambda f: f(X, 2.0, 5.5, 6.5)),
    "keyword": (lambda f: f(X, 1.0, c=4.0), lambda f: f(X, 1.5, c=5.0)),
    "further keywords": (lambda f: f(X, 1.0, c=4.0, d=5.0), lambda f: f(X, 1.0, d=5.0, c=4.0)),
    "defaults": (lambda f: f(X), lambda f: f(X + 1)),
}


@pytest.mark.parametrize("name", CALL_FORMS)
def test_call_forms(name):
    first, second = CALL_FORMS[name]
    f = jit(form)
    for call in (first, second, first):
        assert_same(call(f), call(form))
    assert f.cache_info()[:3] == (2, 1, 1)


def test_positional_and_keyword_arguments_share_a_signature():
    f = jit(lambda x, y: x - y)
    for got in (f(X, 1), f(X, y=1), f(x=X, y=1), f(y=1, x=X)):
        assert_same(got, X - 1)
    assert f.cache_info()[:3] == (3, 1, 1)


def test_omitted_defaults_share_a_signature():
    f = jit(lambda x, axis=0, mode="max", keepdims=False: getattr(x, mode)(axis=axis, keepdims=keepdims))
    assert_same(f(X), X.max(0))


WRONG_CALLS = {
    "missing": lambda f: f(), "too many": lambda f: f(X, 1.0, 2.0), "unknown": lambda f: f(X, z=1.0),
    "twice": lambda f: f(X, x=X), "misspelt": lambda f: f(X, yy=1.0), "two missing": lambda f: f(z=1.0),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_errors_of_wrong_calls_are_those_of_python(name):
    def f(x, y=1.0):
        return x + y

    with pytest.raises(TypeError) as wanted:
        WRONG_CALLS[name](f)
    with pytest.raises(TypeError) as found:
        WRONG_CALLS[name](jit(f, name="g"))
    assert str(found.value) == str(wanted.value)


# --- arguments --------------------------------------------------------------------------------------------------------

STRIDED = np.arange(24.0).reshape(4, 6)
ARGUMENTS = {
    "strided": STRIDED[::2, ::-3], "transposed": STRIDED.T, "big-endian": STRIDED.astype(">f8"),
    "misaligned": np.frombuffer(b"\0" + STRIDED.tobytes(), "f8", 24, 1),
    "read-only": np.broadcast_to(np.float32(2), (3,)), "empty": np.zeros((0, 3)), "rank 0": np.array(3.0),
    "scalar": np.float32(1.5), "int scalar": np.int8(3), "bool scalar": np.bool_(True), "bool": np.array([True, False]),
    "half": np.array([1.5], np.float16), "bfloat16": np.array([1.5, 2], ml_dtypes.bfloat16),
    "bfloat16 scalar": ml_dtypes.bfloat16(1.5), "complex": np.array([1 + 2j], np.complex64),
    "long long": np.array([1, 2], np.longlong), "memmap": np.arange(3.0).view(np.memmap),
    "bytes": np.arange(3, dtype=np.uint8),
}  # fmt: skip


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arrays(name, backend):
    x = ARGUMENTS[name]
    f = jit(lambda x: (x + x, x), platform=backend)
    want = np.asarray(x)
    for _ in range(2):
        double, same = f(x)
        assert_same(double, want + want)
        assert_same(same, want if isinstance(x, np.ndarray) else want[()])
        assert same is x or type(x) is not np.ndarray  # an array that is returned is the caller's, as in NumPy
    assert f.cache_info().entries == 1


class Shifted(np.ndarray):
    """Subclass whose elements are others than those of its memory."""

    def __getitem__(self, key):
        return super().__getitem__(key) + 100

    @cyxla.jit(fallback="numpy")
    def ends(self):
        return self[0], self[-1:]

    @property
    @cyxla.jit(fallback="numpy")
    def double(self):
        return self * 2


SHIFTED = X.view(Shifted)
SUBCLASSES = {
    "operator": (lambda x: x * 2, SHIFTED), "item": (lambda x: x[0], SHIFTED), "result": (lambda x: x, SHIFTED),
    "in a list": (lambda v: v[1][0] + v[0], [X, SHIFTED]), "in a dict": (lambda d: d["x"][0], {"x": SHIFTED}),
    "from outside": (lambda x: x + SHIFTED[0], X), "added": (lambda x: x + SHIFTED, X),
    "method": (lambda x: x.ends(), SHIFTED), "property": (lambda x: x.double, SHIFTED),
    "method from outside": (lambda x: (x, *SHIFTED.ends()), X),
    "recarray": (lambda x: x + 1, X.view(np.recarray)), "masked array": (np.sum, np.ma.masked_array(X, X > 2)),
    "class derived from memmap": (lambda x: x * 2, X.view(type("Mapped", (np.memmap,), {}))),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::cyxla.errors.FallbackWarning")
@pytest.mark.parametrize("name", SUBCLASSES)
def test_arrays_of_subclasses(name):
    """NumPy computes with them: operators and classes of results are theirs."""
    function, argument = SUBCLASSES[name]
    want, f = function(argument), jit(function, fallback="numpy")
    for _ in range(2):
        got = f(argument)
        assert type(got) is type(want)
        for one, other in zip(*[v if isinstance(v, tuple) else (v,) for v in (got, want)], strict=True):
            assert type(one) is type(other)
            np.testing.assert_array_equal(one, other)


class _Sorted(np.ndarray):
    def write(self, x):
        super().sort()
        return x * 2


class _Put:
    def write(self, x):
        self.append(x)
        return self[0] * x


class _List(list):
    def write(self, x):
        super().append(x)
        return self[0] * x


class _Deque(_Put, collections.deque):
    """Deque with a method of its own."""


class _UserList(_Put, collections.UserList):
    """List of the standard library, written in Python."""


class _Bytes(_Put, bytearray):
    """Bytes with a method of its own."""


class _Generator(np.random.Generator):
    def write(self, x):
        return self.random() * x


#: Objects, made anew for each call, whose contents methods change by calls of C.
RECEIVERS = {
    "array": lambda: np.array([3, 1, 2]).view(_Sorted), "list": lambda: _List([2, 1]), "deque": lambda: _Deque([2, 1]),
    "UserList": lambda: _UserList([2, 1]), "bytes": lambda: _Bytes(b"ab"),
    "generator": lambda: _Generator(np.random.PCG64(3)),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::cyxla.errors.FallbackWarning")
@pytest.mark.parametrize("name", RECEIVERS)
def test_methods_of_objects_whose_contents_change(name, monkeypatch):
    """NumPy runs them: a program would see and change what they held while it was traced."""
    kind = type(RECEIVERS[name]())
    plain = kind.write
    monkeypatch.setattr(kind, "write", jit(plain, fallback="numpy"), raising=False)
    kept, kept_plain = RECEIVERS[name](), RECEIVERS[name]()
    for x in (4, 5, 6):
        for one, other in ((RECEIVERS[name](), RECEIVERS[name]()), (kept, kept_plain)):
            assert one.write(x) == plain(other, x)
            assert name == "generator" or list(one) == list(other)


def test_array_like_arguments():
    class Wrapped:
        def __array__(self, dtype=None, copy=None):
            return X

    class Exchanged:
        def __dlpack__(self, **kwargs):
            return X.__dlpack__(**kwargs)

        def __dlpack_device__(self):
            return X.__dlpack_device__()

    f = jit(lambda x: x * 2)
    for value in (Wrapped(), Exchanged()):
        assert_same(f(value), X * 2)
    assert_same(f(memoryview(b"ab")), np.frombuffer(b"ab", np.uint8) * 2)
    assert f.cache_info().entries == 2


LISTS = {
    "sum": lambda x: np.sum([row.max() for row in x]),
    "mean": lambda x: np.mean([row**2 for row in x], axis=0),
    "max": lambda x: np.max([x[0, 0], 1.5, x[1, 1]]),
    "dot": lambda x: np.dot([x[0, 0], x[0, 1]], [1.0, 2.0]),
    "argmax": lambda x: np.argmax([x[0], x[1]], axis=0),
    "lexsort": lambda x: np.lexsort([x[0]]),
    "of a mask": lambda x: np.max(x[x > 0]) - x[x > 0].min(),
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_of_traced_values_are_arrays_to_functions(name):
    x = np.random.default_rng(0).integers(-9, 9, (3, 4)) / 2
    assert_same(jit(LISTS[name])(x), LISTS[name](x))


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("number", [2, 2.5, 1j, True, -(2**63), 2**63 - 1])
@pytest.mark.parametrize("letter", "?bfdFq")
def test_python_numbers_are_weakly_typed(number, letter, backend):
    x = np.ones(2, letter)
    try:
        want = x * number
    except OverflowError:
        return
    for _ in range(2):
        assert_same(jit(lambda x, n: x * n, platform=backend)(x, number), want)


@pytest.mark.parametrize("letter", "bBhHiIlLdf")
@pytest.mark.parametrize("operator", [np.add, np.less, np.equal, np.maximum])
def test_integers_out_of_range_of_a_dtype(operator, letter):
    x = np.ones(2, letter)
    f = jit(lambda x, n: operator(x, n))
    for n in (5, -1, 300, 2**40, -(2**63)):
        try:
            want = operator(x, n)
        except OverflowError as error:
            with pytest.raises(OverflowError, match=str(error)):
                f(x, n)
        else:
            assert_same(f(x, n), want)


def test_integers_beyond_int64():
    f = jit(lambda x, n: x + n)
    assert_same(f(np.uint64([1]), 2**63), np.uint64([1]) + 2**63)
    assert_same(f(np.array([1.0]), 2**70), np.array([1.0]) + 2**70)


CONTAINERS = {
    "tuple": (X, 1.0), "list": [X, [X, 2]], "dict": {"b": X, "a": (X, None)}, "number keys": {1: X, 2: X},
    "named tuple": Pair(X, (X,)), "ordered": OrderedDict(u=X, v=X), "none": (None, X), "empty": [X, (), [], {}],
    "dataclass": Frozen(X), "nested": {"k": [Pair(Frozen(X), None)]},
}  # fmt: skip


@pytest.mark.parametrize("name", CONTAINERS)
def test_containers_in_and_out(name, backend):
    value = CONTAINERS[name]
    seen = []
    record, length = seen.append.__call__, seen.__len__

    def run(value):
        record(value)
        return [leaf * 2 for leaf in arrays(value)], length()

    def arrays(value):
        if dataclasses.is_dataclass(value):
            return arrays(value.x)
        if isinstance(value, dict):
            return arrays(list(value.values()))
        if isinstance(value, (tuple, list)):
            return [a for v in value for a in arrays(v)]
        return [] if value is None else [value]

    f = jit(run, platform=backend)
    for _ in range(3):
        made, count = f(value)
        assert_same([np.asarray(m) for m in made], [np.asarray(a * 2) for a in arrays(value)])
        assert count == 1, "compiled again"
    assert type(seen[0]) is type(value)


RESULTS = {
    "array": (lambda x: x * 2, X * 2), "scalar": (lambda x: x.sum(), X.sum()), "number": (lambda x: 3, 3),
    "none": (lambda x: None, None), "constant": (lambda x: np.arange(3), np.arange(3)),
    "tuple": (lambda x: (x, x), (X, X)), "list": (lambda x: [x.sum(), x], [X.sum(), X]),
    "dict": (lambda x: {"a": x, "b": {"c": x[0, 0]}}, {"a": X, "b": {"c": X[0, 0]}}),
    "named tuple": (lambda x: Pair(x, None), Pair(X, None)), "dataclass": (lambda x: Layer(x, x[0]), Layer(X, X[0])),
    "ordered": (lambda x: OrderedDict(a=x), OrderedDict(a=X)),
    "default dict": (lambda x: defaultdict(list, a=x), defaultdict(list, a=X)),
    "empty": (lambda x: ([], (), {}), ([], (), {})), "bool": (lambda x: x.any(), np.True_),
    "nested": (lambda x: [(x, [None, {"k": (x,)}])], [(X, [None, {"k": (X,)}])]),
    "text": (lambda x: {"kind": "tanh", "x": x}, {"kind": "tanh", "x": X}), "text alone": (lambda x: "tanh", "tanh"),
    "what is no array": (lambda x: [x.dtype, Color.RED, np.sin, slice(2), range(3)],
                         [np.dtype("f8"), Color.RED, np.sin, slice(2), range(3)]),
    "dataclass with text": (lambda x: Frozen(x), Frozen(X)),
    "counter": (lambda x: Counter(a=x[0, 1]), Counter(a=X[0, 1])),
}  # fmt: skip


@pytest.mark.parametrize("name", RESULTS)
def test_results(name, backend):
    function, want = RESULTS[name]
    f = jit(function, platform=backend)
    for _ in range(2):
        assert_same(f(X), want)


def test_results_share_no_memory(backend):
    x = X.copy()
    f = jit(lambda x: (x.T, x[:], x[0] + np.zeros((2, 3)), np.arange(6).reshape(2, 3)), platform=backend)
    for _ in range(2):
        made = f(x)
        for k, one in enumerate(made):
            assert one.flags.writeable
            one[...] = k
        assert [m[0, 0] for m in made] == [0, 1, 2, 3]
        assert_same(x, X)


REFUSED = {
    "object": (object(), "argument x is a object"), "strings": (np.array(["a"]), "dtype <U1"),
    "objects": (np.array([object()]), "dtype object"), "times": (np.array(["2020"], "M8[Y]"), "dtype datetime64"),
    "fields": (np.zeros(2, "i4,f4"), "cannot be compiled"), "masked": (np.ma.masked_array(X), "MaskedArray"),
    "matrix": (np.ones((1, 1)).view(np.matrix), "argument x is a matrix"),
    "subclass": (SHIFTED, r"argument x is a Shifted, .*operators[\s\S]*x.view\(np.ndarray\)"),
    "long double": (np.longdouble(1), "float128"),
    "set": ({1}, "argument x is a set"), "nested": ({"k": [object()]}, r"x\['k'\]\[0\]"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_arguments(name):
    value, text = REFUSED[name]
    with pytest.raises(cyxla.errors.DTypeError, match=text):
        jit(lambda x: x)(value)


@pytest.mark.parametrize("constant", [
    np.ma.masked_array([1.0], [1]), np.ones((1, 1)).view(np.matrix), np.array(["a"]), np.array([None]),
    np.array(["2020"], "M8[Y]"), np.ones(1, np.longdouble), np.zeros(1, "i4,f4"),
])  # fmt: skip
def test_unsupported_constants(constant):
    for use in (lambda x: constant + x, lambda x: x * constant, lambda x: np.concatenate([x, constant])):
        with pytest.raises((cyxla.errors.TraceError, cyxla.errors.DTypeError, cyxla.errors.UnimplementedError)):
            jit(use)(np.ones(1))


def test_a_container_that_contains_itself():
    loop, twice = [], {}
    loop += [loop, loop]
    twice.update(a=[twice], b=twice)
    for value in (loop, twice):
        with pytest.raises(cyxla.errors.TraceError, match="nested too deep, or contains itself") as found:
            jit(lambda x: x)(value)
        assert len(str(found.value)) < 100


# --- static -----------------------------------------------------------------------------------------------------------

STATIC = {
    "string": ("max", "min"), "dtype": (np.dtype("f4"), np.dtype("f8")), "type": (np.float32, np.float64),
    "function": (np.sin, np.cos), "enum": (Color.RED, Color.BLUE), "slice": (slice(1), slice(2)),
    "ellipsis": (..., "x"), "bytes": (b"a", b"b"), "range": (range(2), range(3)),
}  # fmt: skip


@pytest.mark.parametrize("name", STATIC)
def test_implicitly_static_arguments(name):
    one, other = STATIC[name]
    seen = []
    record = seen.append.__call__  # hides the list, a method of which would be refused
    f = jit(lambda x, s: record(s) or x)
    for value in (one, other, one, other, one):
        f(X, value)
    assert seen == [one, other]
    assert f.cache_info()[:3] == (3, 2, 2)


@pytest.mark.parametrize("static", [1, "n", (1,), ("n",), -1])
def test_static_by_position_and_name(static):
    f = jit(lambda x, n: [x * k for k in range(n)], static=static)
    for n in (2, 3, 2):
        assert_same(f(X, n), [X * k for k in range(n)])
        assert_same(f(X, n=n), [X * k for k in range(n)])
    assert f.cache_info().entries == 2


@pytest.mark.filterwarnings("ignore::cyxla.RecompileWarning")
def test_static_values_differ_by_type_and_sign():
    seen = []
    record = seen.append.__call__  # hides the list, a method of which would be refused
    f = jit(lambda x, s: record(s) or x, static="s")
    values = [1, 1.0, True, 0.0, -0.0, (1,), (1.0,), (True,), None, "1", b"1", np.float32(1)]
    for value in values + values:
        f(X, value)
    assert [repr(s) for s in seen] == [repr(v) for v in values]


def test_static_varargs_and_keywords():
    def run(x, *sizes, **how):
        return np.broadcast_to(x, sizes) if how["kind"] == 1 else x

    f = jit(run, static=("sizes", "kind"))
    assert_same(f(1.0, 2, 3, kind=1), np.ones((2, 3)))
    assert_same(f(1.0, 4, kind=1), np.ones(4))
    assert_same(f(1.0, kind=2), 1.0)


BAD_OPTIONS = {
    "position": ({"static": 5}, "no argument 5"), "name": ({"static": "z"}, "no argument 'z'"),
    "kind": ({"static": 1.5}, "static=1.5 does not name arguments"), "part": ({"static": (1.5,)}, "1.5 is neither"),
    "donate": ({"donate": "z"}, "no argument 'z'"),
    "bounds": ({"bounds": "maybe"}, "one of raise"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_OPTIONS)
def test_invalid_options(name):
    options, text = BAD_OPTIONS[name]
    with pytest.raises((cyxla.errors.InvalidArgumentError, TypeError), match=text):
        jit(lambda x, y: x, **options)


@pytest.mark.parametrize("name", ["static_names", "statics", "colour"])
def test_unknown_options(name):
    with pytest.raises(cyxla.errors.InvalidArgumentError, match=f"no option '{name}'") as found:
        jit(lambda x: x, **{name: "x"})
    assert ("did you mean static?" in str(found.value)) == name.startswith("static")


def test_static_values_must_be_hashable():
    with pytest.raises(cyxla.errors.InvalidArgumentError, match="static argument n is a list"):
        jit(lambda x, n: x, static="n")(X, [1])


def generator():
    yield 1


async def coroutine():
    return 1


@pytest.mark.parametrize("function", [generator, coroutine, 3, "x"])
def test_non_functions_raise(function):
    with pytest.raises(TypeError):
        jit(function)


# --- methods ----------------------------------------------------------------------------------------------------------


class Scaler:
    def __init__(self, factor):
        self.factor = factor

    @jit
    def run(self, x, *, add=0.0):
        return x * self.factor + add


def test_methods():
    two, three = Scaler(2.0), Scaler(3.0)
    for _ in range(2):
        assert_same(two.run(X), X * 2)
        assert_same(three.run(X, add=1.0), X * 3 + 1)
    assert Scaler.run.cache_info()[:3] == (2, 2, 2)
    assert "HloModule" in two.run.lower(X).to_text()
    assert_same(two.run.compile(X)(X), X * 2)
    assert_same(two.run.call_async(X).result(), X * 2)


def test_methods_hold_weak_references():
    one = Scaler(5.0)
    one.run(X)
    gone = weakref.ref(one)
    del one
    gc.collect()
    assert gone() is None


def test_dataclasses_are_containers():
    info = Layer.run.cache_info()
    for bias in (1.0, 2.0):
        layer = Layer(X.T, bias)
        assert_same(layer.run(X), X @ X.T + bias)
    assert Layer.run.cache_info().misses == info.misses + 1


# --- out=, donation ---------------------------------------------------------------------------------------------------


def test_out(backend):
    f = jit(lambda x: {"a": x + 1, "b": (x.sum(), x[0])}, platform=backend)
    out = {"a": np.zeros((2, 3)), "b": (np.zeros(()), np.zeros(6)[::2])}
    for _ in range(2):
        made = f(X, out=out)
        assert made["a"] is out["a"]
        assert made["b"][0] is out["b"][0]
        assert_same(out, {"a": X + 1, "b": (np.asarray(X.sum()), X[0])})
    part = f(X, out={"a": None, "b": (None, out["b"][1])})
    assert part["b"][1] is out["b"][1]
    assert_same(part["a"], X + 1)
    assert_same(part["b"][0], X.sum())


def test_out_may_be_an_argument(backend):
    x = X.copy()
    f = jit(lambda x: np.cumsum(x[::-1], axis=0) + x, platform=backend)
    want = np.cumsum(X[::-1], axis=0) + X
    assert f(x, out=x) is x
    assert_same(x, want)


OUT = {
    "shape": (np.zeros(3), ValueError), "dtype": (np.zeros((2, 3), "f4"), TypeError), "kind": (5, ValueError),
    "container": ((np.zeros((2, 3)),), ValueError), "read-only": (np.broadcast_to(0.0, (2, 3)), ValueError),
}  # fmt: skip


@pytest.mark.parametrize("name", OUT)
def test_invalid_out(name, backend):
    out, error = OUT[name]
    with pytest.raises(error):
        jit(lambda x: x + 1, platform=backend)(X, out=out)


def test_out_that_names_an_array_twice():
    place = np.zeros((2, 3))
    with pytest.raises(cyxla.errors.InvalidArgumentError, match="one array for several"):
        jit(lambda x: (x + 1, x * 2))(X, out=(place, place))


def test_parameter_named_out():
    assert_same(jit(lambda x, out: x + out)(X, out=1.0), X + 1)


@pytest.mark.parametrize("donate", [0, "tree", ("tree",)])
def test_donation(donate):
    f = cyxla.jit(lambda tree, y: {"w": tree["w"] + y}, donate=donate)
    w = np.ones(1000)
    made = f({"w": w}, 1.0)
    assert_same(made["w"], np.full(1000, 2.0))
    assert np.shares_memory(made["w"], w)
    y = np.ones(1000)
    f({"w": made["w"]}, y)
    assert_same(y, np.ones(1000))


# --- inside of others, and threads ------------------------------------------------------------------------------------


def test_nested_jit():
    inner = jit(lambda x, n=1: (x * n, {"k": x[0]}))
    outer = jit(lambda x: inner(x)[1]["k"] + inner(x, n=2)[0])
    assert_same(outer(X), X[0] + X * 2)
    assert inner.cache_info().misses == 0


@pytest.mark.parametrize("outside", ["raise", "clamp"])
def test_nested_jit_keeps_its_bounds_mode(outside):
    clamping, raising = (jit(lambda x, i: x[i], bounds=b) for b in ("clamp", "raise"))
    x = np.arange(3.0)
    assert jit(lambda x, i: clamping(x, i), bounds=outside)(x, 9) == 2
    with pytest.raises(IndexError):
        jit(lambda x, i: clamping(x, i) + raising(x, i), bounds=outside)(x, 9)
    with pytest.raises(IndexError) if outside == "raise" else nullcontext():
        assert jit(lambda x, i: clamping(x, i) + x[i], bounds=outside)(x, 9) == 4


def test_nested_jit_copies_its_arguments():
    def write(x):
        x[0] = 0
        return x

    f = jit(lambda x: (jit(write)(x), x))
    assert_same(f(X), (np.array([[0.0, 0, 0], [3, 4, 5]]), X))


def test_closures_over_traced_values():
    def outer(x):
        inner = jit(lambda y: x + y)
        return inner(np.ones(3)) + inner(2.0)

    assert_same(jit(outer)(X), (X + np.ones(3)) + (X + 2.0))


def test_recursion_that_ends():
    @jit(static="n")
    def factorial(x, n):
        return x if n == 0 else n * factorial(x, n - 1)

    assert factorial(1.0, 5) == 120


def test_recursion_without_end():
    @jit
    def down(x):
        return down(x - 1)

    with pytest.raises(cyxla.errors.TraceError, match="recurses without end"):
        down(3.0)
    assert_same(plus_one(X), X + 1)


@pytest.mark.parametrize("count", [100])
def test_threads(count):
    traced, failed = [], []
    record = traced.append.__call__
    f = cyxla.jit(lambda x, n: record(x.shape) or x * 2 + n, sizes="exact")
    start = threading.Barrier(count)

    def run(k):
        try:
            start.wait()
            for n in range(20):
                x = np.full(1 + (k + n) % 4, float(k))
                assert_same(f(x, n), x * 2 + n)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed, failed[0]
    assert sorted(traced) == [(1,), (2,), (3,), (4,)]


def test_call_async():
    futures = [plus_one.call_async(np.array(float(k))) for k in range(10)]
    assert [f.result() for f in futures] == list(range(1, 11))
    with pytest.raises(TypeError):
        plus_one.call_async().result()

    async def wait():
        return await asyncio.wrap_future(plus_one.call_async(X))

    assert_same(asyncio.run(wait()), X + 1)


# --- the cache --------------------------------------------------------------------------------------------------------


def test_cache_info_and_clear():
    f = jit(lambda x: x)
    f(X), f(X), f(1.0)
    info = f.cache_info()
    assert info[:3] == (1, 2, 2)
    assert info.seconds > 0
    f.clear()
    assert f.cache_info().entries == 0
    assert_same(f(X), X)
    assert f.cache_info().misses == 3


@pytest.mark.filterwarnings("ignore::cyxla.RecompileWarning")
def test_the_cache_is_bounded():
    seen = []
    record = seen.append.__call__
    f = jit(lambda x, n: record(n) or x, static="n")
    for n in range(300):
        f(1.0, n)
        f(1.0, 0)  # stays in use
    assert f.cache_info().entries == 256
    f(1.0, 0), f(1.0, 299), f(1.0, 1)
    assert seen == [*range(300), 1]


def test_static_values_are_released():
    f = jit(lambda x, g: g(x))
    f(X, lambda x: x)
    f.clear()
    gc.collect()
    assert_same(f(X, np.negative), -X)


WARNINGS = {
    "shape": (lambda k: (np.zeros(k), 1), "argument x changes.*float64\\[7\\].*pad"),
    "dtype": (lambda k: (np.zeros(1, "bhilBHIL"[k]), 1), "argument x changes.*convert"),
    "static": (lambda k: (X, k), "argument n changes: 4, 5, 6, 7; .*static="),
}  # fmt: skip


@pytest.mark.parametrize("name", WARNINGS)
def test_recompilation_warns_once(name):
    make, text = WARNINGS[name]
    f = jit(lambda x, n: x, static="n", sizes="exact")
    for k in range(7):
        f(*make(k))
    with pytest.warns(cyxla.RecompileWarning, match=text) as found:
        f(*make(7))
    assert found[0].filename == __file__
    f(X, 100)


# --- insight, compilation, pickling -----------------------------------------------------------------------------------


def test_spec():
    assert str(cyxla.spec((2, 3))) == "float64[2,3]"
    assert str(cyxla.spec(4, "i1")) == "int8[4]"
    for shape, dtype in (((-1,), "f4"), ("ab", "f4"), ((2,), "nonsense"), ((2,), object), ((1.5,), "f4")):
        with pytest.raises((ValueError, TypeError)):
            cyxla.spec(shape, dtype)


def test_unknown_sizes_raise():
    for open_size in (lambda: cyxla.spec((None, 3)), lambda: jit(power).lower(((None, 3), "f4"), 2)):
        with pytest.raises(cyxla.errors.UnimplementedError, match="has sizes of None"):
            open_size()


SPECS = [(cyxla.spec((2, 3)), 2), (((2, 3), "f8"), 2), (X, 2), (((2, 3), float), 2)]


@pytest.mark.parametrize("specs", SPECS)
def test_lower_trace_compile_explain(specs):
    f = jit(power, static="n")
    assert str(f.trace(*specs)).startswith("HloModule power")
    assert f.lower(*specs).entry.root.shape.dims == (2, 3)
    assert_same(f.compile(*specs)(X), X**2)
    assert f.explain(*specs)
    assert_same(cyxla.compile(power, *specs, platform="interpreter", static="n")(X), X**2)
    assert_same(cyxla.compile(f, *specs)(X), X**2)
    f(X, 3)
    assert "power(float64[2,3], 3)" in f.explain()
    assert f.__wrapped__ is power
    assert "power" in repr(f)


def test_executables_check(backend):
    run = cyxla.compile(element, ((3,), "f8"), 1, platform=backend)
    x = np.arange(3.0)
    assert run(x, 2) == 2
    assert [str(s) for s in run.inputs] == ["f64[3]", "s64[]"]
    assert str(run.outputs) == "f64[]"
    assert run.names == ("x", "i")
    out = np.zeros(())
    assert run(x, 1, out=out) is out
    for one in (run, run.bind({"x": x}), pickle.loads(pickle.dumps(run)), pickle.loads(pickle.dumps(run.bind({0: x})))):
        with pytest.raises(IndexError, match="index 5 is out of bounds"):
            one(*([x] if len(one.inputs) == 2 else []), 5)


def test_executables_pickle(backend):
    run = cyxla.compile(power, ((3,), "f8"), 2, platform=backend, static="n")
    x = np.arange(3.0)
    assert_same(pickle.loads(pickle.dumps(run))(x), x**2)
    bound = cyxla.compile(lambda x, y: x - y, x, x, platform=backend).bind({"y": x})
    assert_same(pickle.loads(pickle.dumps(bound))(x + 1), np.ones(3))


def test_functions_pickle(monkeypatch):
    import sys

    module = type(sys)("a_module_of_functions")
    module.power, module.decorated = power, plus_one
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(power, "__module__", module.__name__)
    monkeypatch.setattr(plus_one.function, "__module__", module.__name__)
    monkeypatch.setattr(plus_one.function, "__qualname__", "decorated")
    monkeypatch.setattr(plus_one, "__module__", module.__name__)
    assert pickle.loads(pickle.dumps(plus_one)) is plus_one
    f = pickle.loads(pickle.dumps(jit(power, static="n", bounds="clamp")))
    assert_same(f(X, 2), X**2)
    assert (f.platform, f.bounds) == ("interpreter", "clamp")
    assert copy.copy(f) is f
    assert copy.deepcopy(f) is f


LEAVES = st.sampled_from([X, np.float32(2), 1, 2.5, True, None, "s", np.zeros(0), np.int8([1, 2])])
TREES = st.recursive(
    LEAVES,
    lambda t: st.lists(t, max_size=3) | st.tuples(t, t) | st.dictionaries(st.sampled_from("abc"), t),
    max_leaves=6,
)


def _only_arrays(tree):
    if isinstance(tree, (list, tuple)):
        return type(tree)(map(_only_arrays, tree))
    if isinstance(tree, dict):
        return {k: _only_arrays(v) for k, v in tree.items()}
    return None if isinstance(tree, str) else tree


def _as_numpy(tree):
    if isinstance(tree, (list, tuple)):
        return type(tree)(map(_as_numpy, tree))
    if isinstance(tree, dict):
        return {k: _as_numpy(v) for k, v in tree.items()}
    return tree if tree is None else np.asarray(tree)[()]


@settings(max_examples=60)
@given(st.lists(TREES, min_size=1, max_size=4))
def test_containers_round_trip(trees):
    f = jit(lambda tree: _only_arrays(tree))
    for tree in trees + trees:
        assert_same(_as_numpy(f(tree)), _as_numpy(_only_arrays(tree)))
