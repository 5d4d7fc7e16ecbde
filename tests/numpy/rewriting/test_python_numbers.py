"""Arithmetic of Python numbers in compiled functions: exact, or the errors of Python."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cyxla
from cyxla.errors import FallbackWarning, TraceError

SAME = {
    "add": (lambda a, b: a + b, 3, 4), "float": (lambda a, b: a * b, 3, 0.5), "compare": (lambda a, b: a < b, 3, 4),
    "divide": (lambda a, b: a / b, 7, 2), "floor": (lambda a, b: a // b, -7, 2), "mod": (lambda a, b: a % b, -7, 3),
    "divmod": (divmod, 7, -2), "large": (lambda a, b: a * b, 3_000_000_000, 3_000_000_000),
    "power": (lambda a, b: a**b, 2, 62), "negative power": (lambda a, b: (-a) ** b, 2, 63),
    "floats": (lambda a, b: (a / b, a // b, a % b), 7.5, 2.0), "shift": (lambda a, b: a << b, 1, 40),
    "negate": (lambda a, b: -a - b, 5, 6), "augment": (lambda a, b: _augment(a, b), 5, 6),
    "float overflow": (lambda a, b: a * b, 1e300, 1e300),
}  # fmt: skip
ERRORS = {
    "multiply": (lambda a, b: a * b, 3_000_000_000, 4_000_000_000, OverflowError),
    "power": (lambda a, b: a**b, 2, 100, OverflowError), "increment": (lambda a, b: a + 1, 2**63 - 1, 0, OverflowError),
    "subtract": (lambda a, b: a - b, -(2**62), 2**62 + 1, OverflowError),
    "square": (lambda a, b: a**2, 2**33, 0, OverflowError),
    "negate": (lambda a, b: -a, -(2**63), 0, OverflowError), "shift": (lambda a, b: a << b, 3, 62, OverflowError),
    "floor": (lambda a, b: a // b, 1, 0, ZeroDivisionError), "mod": (lambda a, b: a % b, 5, 0, ZeroDivisionError),
    "divide": (lambda a, b: a / b, 1, 0, ZeroDivisionError),
    "floats": (lambda a, b: a / b, 1.0, 0.0, ZeroDivisionError),
    "float mod": (lambda a, b: a % b, 1.0, 0.0, ZeroDivisionError), "divmod": (divmod, 1, 0, ZeroDivisionError),
    "reflected": (lambda a, b: 1 / b, 0, 0, ZeroDivisionError),
}  # fmt: skip


def _augment(a, b):
    a += b
    a *= 3
    return a


@pytest.mark.parametrize("name", SAME)
def test_results_are_those_of_python(name, backend):
    function, a, b = SAME[name]
    f = cyxla.jit(function, platform=backend)
    want = function(a, b)
    for _ in range(3):
        got = f(a, b)
        assert type(got) is type(want)
        assert repr(got) == repr(want)


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name, backend):
    function, a, b, error = ERRORS[name]
    f = cyxla.jit(function, platform=backend)
    f(2, 1) if type(a) is int else f(2.0, 1.0)
    for _ in range(2):
        with pytest.raises(error) as raised:
            f(a, b)
        assert "test_python_numbers.py:" in "".join([str(raised.value), *getattr(raised.value, "__notes__", ())])
        if error is ZeroDivisionError:
            with pytest.raises(error) as wanted:
                function(a, b)
            assert str(raised.value) == str(wanted.value)


_edge = st.sampled_from([0, 1, -1, 2, 3, 2**31, 2**32, 2**62, -(2**62), 2**63 - 1, -(2**63), 3037000499, 3037000500])
_sum = cyxla.jit(lambda a, b: (a + b,), platform="interpreter")
_difference = cyxla.jit(lambda a, b: (a - b,), platform="interpreter")
_product = cyxla.jit(lambda a, b: (a * b,), platform="interpreter")


@settings(max_examples=60)
@given(_edge | st.integers(-(2**63), 2**63 - 1), _edge | st.integers(-(2**63), 2**63 - 1))
def test_never_wrapped(a, b):
    for f, exact in ((_sum, a + b), (_difference, a - b), (_product, a * b)):
        if -(2**63) <= exact < 2**63:
            assert f(a, b) == (exact,)
        else:
            with pytest.raises(OverflowError):
                f(a, b)


def test_indices_of_known_range_are_not_checked():
    def body(i, x):
        return x + x[(2 * i + 1) % 10]

    f = cyxla.jit(lambda x: cyxla.fori_loop(0, 10, body, x), platform="interpreter")
    assert not f.trace(np.ones(10)).fails


def test_integers_of_constants_of_rank_1_have_ranges(backend):
    def f(x, a):
        b = 0.5 * np.zeros((1,)) + 0.25 * np.abs(x)
        return int(b[a.shape[0] % 1]) + 1

    assert cyxla.jit(f, platform=backend)(np.array([13.0]), np.ones(3)) == 4


def test_numpys_numbers_wrap_as_in_numpy():
    f = cyxla.jit(lambda a: a * a, platform="interpreter")
    with np.errstate(over="ignore"):
        assert f(np.int64(2**33)) == np.int64(2**33) * np.int64(2**33)
    assert f(np.array([2**33]))[0] == 0


def test_several_lambdas_on_one_line_are_told_apart():
    functions = [lambda a, b: a + b, lambda a, b: a * b, lambda a, b: a < b]
    assert [cyxla.jit(f, platform="interpreter")(3, 4) for f in functions] == [7, 12, True]


def replaced_in_a_loop(x, s):
    whole = np.zeros(4, np.int64)
    for k in range(20):
        whole += k
        if x[k % 4] > 2:
            s = whole[1]
    return s


def replaced_while_a_condition_holds(x, s):
    whole = np.zeros(4, np.int64)
    while whole[0] < x[0]:
        whole += 1
        if whole[1] > 2:
            s = whole[2]
    return s


def replaced_unless_the_loop_ends_at_once(x, s):
    s = np.zeros(4, np.int64)[0]
    while True:
        if x[0] > 2:
            break
        for v in x:
            s += v * 0.5
        x = x + 1
    return s


REPLACED = [replaced_in_a_loop, replaced_while_a_condition_holds, replaced_unless_the_loop_ends_at_once]


@pytest.mark.parametrize("x, number", [(1, np.float64(0.5)), (3, np.float64(0.5)), (3, 0.5)])
@pytest.mark.parametrize("function", REPLACED)
def test_integers_of_numpy_do_not_become_floats_of_loops(function, x, number, backend):
    x = np.full(4, float(x))
    want, got = function(x, number), cyxla.jit(function, platform=backend, fallback="numpy")(x, number)
    assert repr(got) == repr(want)


def array_of_rank_0_in_some_iterations(x):
    s, k = x[0], 0
    while k < 3 and x[k] > 0:
        s = np.where(x[k] > 1, 0.5, 1.0)
        k += 1
    return s


def array_of_rank_0_on_one_side(x):
    s = x[0] * 1.0
    if x[0] > 0:
        s = np.where(x[1] > 1, 0.5, 1.0)
    return s


def array_of_rank_0_on_one_side_in_a_loop(x):
    s = 0.5
    for _ in range(3):
        if x[0] > 0:
            s = np.where(x[1] > 1, 0.5, 1.0)
    return s


def range_of_an_int_or_a_float(x):
    k = 2
    if x[0] > 2:
        k = x[1]
    return [i * 2 for i in range(k)]


def range_of_an_int_or_a_float_in_a_loop(x):
    k, s = 2, 0.0
    for _ in range(3):
        for i in range(k):
            s += x[i]
        if x[0] > 2:
            k = x[1]
    return s


@pytest.mark.filterwarnings("ignore::cyxla.errors.FallbackWarning")
@pytest.mark.parametrize("function", [
    array_of_rank_0_in_some_iterations, array_of_rank_0_on_one_side, array_of_rank_0_on_one_side_in_a_loop,
    range_of_an_int_or_a_float, range_of_an_int_or_a_float_in_a_loop,
])  # fmt: skip
def test_classes_that_a_run_decides(function, backend):
    jitted = cyxla.jit(function, platform=backend, fallback="numpy")
    for x in (np.ones(4), -np.ones(4), np.ones(4)):
        assert repr(jitted(x)) == repr(function(x))


@pytest.mark.parametrize("function", [
    lambda v: v.any(), lambda v: (v + 1).sum(), lambda v: (v > 1).all(), lambda v: v.astype(np.float32),
    lambda v: v.item(), lambda v: v.shape, lambda v: v.T, lambda v: -v.dtype, lambda v: np.sqrt(v + v.ndim),
    lambda v: [v][0].ndim, lambda v: attribute_of_a_helper(v),
])  # fmt: skip
@pytest.mark.parametrize("number", [2, 2.5, True, 1 + 2j, [2.5]])
def test_numbers_lack_the_attributes_of_arrays(function, number):
    with pytest.raises((AttributeError, TypeError)) as expected:
        function(number)
    with pytest.raises((AttributeError, TypeError)) as raised:
        cyxla.jit(function)(number)
    assert raised.type is expected.type
    if expected.type is AttributeError:
        assert str(raised.value).partition("\n")[0] == str(expected.value)


def attribute_of_a_helper(v):
    return v.ndim


@pytest.mark.parametrize("function", [
    lambda v: v.astype(np.float32), lambda v: v.item(), lambda v: (v.T + v.ndim), lambda v: (v > 1).any(),
    lambda v: attribute_of_a_helper(v),
])  # fmt: skip
@pytest.mark.parametrize("value", [np.float64(2.5), np.array(2.5), np.int64(3)])
def test_numbers_of_numpy_have_the_attributes_of_arrays(function, value):
    got, want = cyxla.jit(function)(value), function(value)
    assert (got, type(got)) == (want, type(want))


def mixed_before_a_loop(x, y, t, k):
    if y[0] > 0:
        t += y.sum()
    for _ in range(20, k, -1):
        t -= x.mean() / 8
    return t


def mixed_before_a_while_loop(x, y, t, k):
    if y[0] > t:
        for _ in range(0, 20, 2):
            t += y.sum()
    while k < 5:
        k += 1
        t -= x.mean() / 8
    return t


def mixed_in_a_nested_loop(x, y, t, k):
    if y[0] > 0:
        t += y.sum()
    for i in range(k):
        for j in range(i):
            t = t * x[j]
    return t


def mixed_by_a_condition_in_a_loop(x, y, t, k):
    for i in range(40):
        if y[i % 3] > 0:
            t = t + y[0]
    return t - x[1]


def mixed_by_a_break(x, y, t, k):
    for _ in range(40):
        if y[0] < 0:
            break
        t = t + y[0]
    return t - x[1]


def mixed_by_an_inner_loop(x, y, t, k):
    for _ in x:
        q = 0
        while True:
            if q >= 20 or y[0] < 0:
                break
            t = 0.5 * t + y[0]
            q += 1
    return t - x[1]


def mixed_by_a_count(x, y, t, k):
    for _ in range(int(y.sum() > 0)):
        t = t + y[0]
    return t - x[1]


def index_that_becomes_a_float(x, y, t, k):
    for i in range(3):
        if y[0] > 5:
            t += x[k]
        k = y[i]
    return t * x


def mixed_and_doubled(x, y, t, k):
    if y[0] > 0:
        t += y.sum()
    for _ in range(k):
        t = t + y[1]
    return t * x


@pytest.mark.filterwarnings("ignore::cyxla.errors.FallbackWarning")
@pytest.mark.parametrize("function", [
    mixed_before_a_loop, mixed_before_a_while_loop, mixed_in_a_nested_loop, mixed_and_doubled,
    mixed_by_a_condition_in_a_loop, mixed_by_a_break, mixed_by_an_inner_loop, mixed_by_a_count,
    index_that_becomes_a_float,
])  # fmt: skip
def test_numbers_of_python_or_numpy_beside_single_precision(function, backend):
    jitted = cyxla.jit(function, platform=backend, fallback="numpy")
    x = np.linspace(0.5, 1.5, 6, dtype=np.float32)
    for y in (-np.ones(3), np.ones(3), -np.ones(3)):
        got, want = jitted(x, y, 0.5, 3), function(x, y, 0.5, 3)
        np.testing.assert_allclose(got, want, rtol=1e-6)
        assert got.dtype == want.dtype


def complex_in_a_branch(x, y, t):
    if y[0] > 0:
        t = x[1]
    t += y.max() * 0.125
    return t, t * y


@pytest.mark.parametrize("first", [1.0, -1.0])
def test_numbers_that_are_complex_by_the_values(first, backend):
    x, y = np.array([1.0, 2.0 + 1.0j]), np.array([first, 0.5])
    want = complex_in_a_branch(x, y, 0.25)
    run = cyxla.jit(complex_in_a_branch, platform=backend, fallback="numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        for _ in range(2):
            for g, w in zip(run(x, y, 0.25), want, strict=True):
                assert type(g) is type(w)
                assert g.dtype == w.dtype
                np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("name", [int, float])
def test_complex_numbers_of_numpy_that_become_real(name):
    def f(x, y):
        return name(x.max()) * y

    x, y = np.array([1.0, 2.0 + 1.0j]), np.ones(2)
    with pytest.raises(TraceError, match="discards the imaginary part"):
        cyxla.jit(f, fallback="error")(x, y)
    with pytest.raises(TypeError, match="argument must be a string"):
        cyxla.jit(lambda x: name(np.array(x.sum())), fallback="error")(x)
    with pytest.raises(TypeError, match="argument must be a string"):
        cyxla.jit(lambda z: name(z), fallback="error")(2.0 + 1.0j)


NOT_ITERABLE = [
    lambda x: 0.5 in x[0], lambda x: 0.5 not in x.sum(), lambda x: 0.5 in float(x[0]), lambda x: 1 in (x[0] > 0),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(NOT_ITERABLE)))
def test_numbers_contain_nothing(number):
    function, x = NOT_ITERABLE[number], np.array([0.5, 1.5])
    with pytest.raises(TypeError, match="is not iterable") as want:
        function(x)
    with pytest.raises(TypeError, match="is not iterable") as got:
        cyxla.jit(function, platform="interpreter")(x)
    assert str(got.value) == str(want.value)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x[0] == None, x[0] != None, x == None, x.sum() == {}),  # noqa: E711
        lambda x: (float(x[0]) == None, x[0] == "a", (x[0] > 0) == None, np.array(x[0]) == None),  # noqa: E711
        lambda x: (0.5 in x, 0.5 in np.array(x[0]), 2.5 in x),
    ],
)
def test_classes_of_comparisons_with_objects(function):
    x = np.array([0.5, 1.5])
    got, want = cyxla.jit(function, platform="interpreter")(x), function(x)
    assert [type(g) for g in got] == [type(w) for w in want]
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g, w)


def large_integer_or_float(x, y):
    x[1] = np.dot(x, x) if y[0] > 0 else 1.5
    s = x[0] if y[0] > 0 else 0.5
    if y[1] > 0:
        s = x[2]
    return int(s)


@pytest.mark.parametrize("large", [7, 2**53 + 1, 2**62 + 1])
@pytest.mark.parametrize("first", [1.0, -1.0])
def test_large_integers_that_are_floats_by_the_values(large, first, backend):
    run = cyxla.jit(large_integer_or_float, platform=backend, fallback="numpy")
    given, plain = (np.array([large, 3, large + 2]) for _ in range(2))
    y = np.array([first, -first])
    assert run(given, y) == large_integer_or_float(plain, y)
    np.testing.assert_array_equal(given, plain)


def test_complex_numbers_of_a_choice_in_a_loop(backend):
    def f(x, y, t):
        s = 0.0
        for _ in range(20):
            if x.sum() == x.max():
                s = t
            elif t > 5:
                s += max(y.sum(), x.max()) * 0.125
        return s

    x, y = np.array([1 + 1j, 2]), np.ones(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        assert cyxla.jit(f, platform=backend, fallback="numpy")(x, y, 6.0) == f(x, y, 6.0)
