"""Ufuncs on traced arrays: dtypes, keywords, methods, and errors."""

import pickle
from decimal import Decimal
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from cyxla.errors import FallbackWarning, TraceError, UnimplementedError
from cyxla.numpy import jit
from cyxla.numpy.functions.scipy_special import logsumexp, softmax
from cyxla.numpy.ufuncs.table import find

RNG = np.random.default_rng(3)
X, Y = RNG.uniform(1, 5, (3, 4)), RNG.uniform(1, 5, (3, 4))
UFUNCS = sorted(
    {f for f in vars(np).values() if isinstance(f, np.ufunc) and f.signature is None} - {np.isnat},
    key=lambda f: f.__name__,
)
LETTERS = "?bBhHiIlLefdFD"


def run(function, *arrays, platform="interpreter"):
    return jit(function, platform=platform)(*arrays)


def check(function, *arrays):
    """Assert that a traced function returns what NumPy returns."""
    want, got = function(*[np.copy(a) for a in arrays]), run(function, *arrays)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def check_failure(function, *arrays, error):
    """Assert that a traced function raises the error that NumPy raises."""
    with pytest.raises(error):
        function(*arrays)
    with pytest.raises(error):
        run(function, *arrays)


# -- the table


def test_every_ufunc_has_a_row():
    assert [f.__name__ for f in UFUNCS if find(f) is None] == []


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda f: f.__name__)
def test_dtypes_equal_numpys(ufunc):
    """For all pairs of dtypes, results have NumPy's dtypes, or both raise TypeError."""
    seed = np.random.default_rng(len(ufunc.__name__))
    for letters in seed.choice(list(LETTERS), (5, ufunc.nin)):
        arrays = [np.full(2, 1 if ufunc is not np.arctanh else 0, letter) for letter in letters]
        try:
            want = ufunc(*arrays)
        except TypeError:
            with pytest.raises(TypeError):
                run(lambda *a: ufunc(*a), *arrays)
            continue
        got = run(lambda *a: ufunc(*a), *arrays)
        parts = zip(got, want, strict=True) if ufunc.nout > 1 else [(got, want)]
        assert all(g.dtype == w.dtype and np.allclose(g, w, rtol=1e-3) for g, w in parts), (letters, got, want)


def test_unsupported_ufuncs_raise():
    with pytest.raises(UnimplementedError, match="isnat"):
        run(lambda x: np.isnat(x), X)
    with pytest.raises(UnimplementedError, match="airy"):
        run(lambda x: special.airy(x), X)
    with pytest.raises(UnimplementedError, match="gamma of complex"):
        run(lambda x: special.gamma(x), X + 0j)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.add(x, 1.5),
        lambda x: x * 3,
        lambda x: np.exp(x),
        lambda x: np.floor_divide(x, x),
        lambda x: np.nextafter(x, x + x),
        lambda x: np.sign(x),
        lambda x: x > 1,
    ],
)
def test_bfloat16(function):
    check(function, X.astype(ml_dtypes.bfloat16))


@settings(max_examples=25, deadline=None)
@given(st.sampled_from([f for f in UFUNCS if f.nin == 2]), st.sampled_from("bBhHiIlL"), st.data())
def test_integers_agree_to_the_last_bit(ufunc, letter, data):
    if ufunc is np.power:
        return
    info = np.iinfo(letter)
    numbers = st.one_of(st.sampled_from([info.min, info.max, 0, 1]), st.integers(info.min, info.max))
    arrays = [np.array(data.draw(st.lists(numbers, min_size=4, max_size=4)), letter) for _ in range(2)]
    try:
        with np.errstate(all="ignore"):
            want = ufunc(*arrays)
    except TypeError:
        return
    got = run(lambda *a: ufunc(*a), *arrays)
    pairs = zip(got, want, strict=True) if ufunc.nout > 1 else [(got, want)]
    for g, w in pairs:
        np.testing.assert_allclose(g, w, rtol=0 if w.dtype.kind in "biu" else 1e-6)


@pytest.mark.parametrize("range_", [(-1, 1), (-30, 30), (-1070, -480), (480, 1022), (-500, 500)], ids=str)
def test_hypot_is_within_one_ulp(range_, backend):
    x, y = (RNG.uniform(1, 2, 300) * 2.0 ** RNG.integers(*range_, 300) for _ in range(2))
    made = run(np.hypot, x, y, platform=backend)
    squares = [Fraction(a) ** 2 + Fraction(b) ** 2 for a, b in zip(x, y, strict=True)]
    for low, square, high in zip(np.nextafter(made, 0), squares, np.nextafter(made, np.inf), strict=True):
        assert Fraction(low) ** 2 < square
        assert not np.isfinite(high) or square < Fraction(high) ** 2


def test_i0_is_rounded_like_numpys():
    check(np.i0, np.zeros(3))
    check(np.i0, np.zeros(3, "f"))
    x = np.linspace(0, 40, 1001)
    assert np.mean(run(np.i0, x) != np.i0(x)) < 0.3  # exp may differ by a digit


# -- Python's numbers


def test_python_numbers_adopt_dtypes():
    assert run(lambda x: x + 1.5, np.ones(2, np.float16)).dtype == np.float16
    assert run(lambda x: x + 1, np.ones(2, np.uint8)).dtype == np.uint8
    assert run(lambda x: x + 1.5, np.ones(2, np.int8)).dtype == np.float64
    assert run(lambda x, n: x * n, np.ones(2, np.float32), 3).dtype == np.float32


def test_python_integers_out_of_range():
    check_failure(lambda x: x + 300, np.ones(2, np.uint8), error=OverflowError)
    check_failure(lambda x: x - 1 + -1, np.ones(2, np.uint8), error=OverflowError)
    check(lambda x: (x < 300) & (x != -1) & ~(x > 10**30), np.ones(2, np.uint8))


def test_signed_and_unsigned_are_compared_by_value():
    signed, unsigned = np.array([-1, 1, 2**62]), np.array([2**64 - 1, 1, 2**62 + 1], np.uint64)
    for ufunc in (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal):
        check(lambda x, y, f=ufunc: f(x, y), signed, unsigned)
        check(lambda x, y, f=ufunc: f(y, x), signed, unsigned)


# -- what is no number


NO_NUMBERS = [None, "a", object(), np.datetime64("2020-01-01")]


@pytest.mark.parametrize("other", NO_NUMBERS, ids=lambda x: type(x).__name__)
def test_comparison_with_non_numbers(other):
    check(lambda x: [x == other, x != other][0], X)
    check(lambda x: (x != other) | (x == other), X)
    assert run(lambda x: x + 1 if x[0, 0] != None else x, X)[0, 0] == X[0, 0] + 1  # noqa: E711


@pytest.mark.parametrize("make", [lambda: {1}, lambda: np.array(["a"] * 4)], ids=["set", "ndarray"])
def test_comparison_with_values_that_may_change(make):
    check(lambda x: [x == make(), x != make()][0], X)
    check(lambda x: (x != make()) | (x == make()), X)
    check(lambda x: x + 1 if (x[0, 0] != make()) is True else x, X)
    other = make()
    with pytest.raises(TraceError, match=rf"other is a {type(other).__name__} .*from outside"):
        run(lambda x: x == other, X)
    with pytest.warns(FallbackWarning, match="other is a"):
        got = jit(lambda x: x == other, platform="interpreter", fallback="numpy")(X)
    np.testing.assert_array_equal(got, other == X)


def test_none_as_operand():
    check(lambda x: np.equal(x, None), X)
    check(lambda x: np.not_equal(None, x), X)
    check_failure(lambda x: np.add(x, None), X, error=TypeError)
    with pytest.raises(UnimplementedError, match="add of a Fraction"):
        run(lambda x: np.add(x, Fraction(1, 2)), X)
    with pytest.raises(UnimplementedError, match="equal of a Decimal"):
        run(lambda x: x == Decimal(1), X)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.sqrt([x[0, 0], x[1, 1]]),
        lambda x: np.add([x, x], 1),
        lambda x: np.add(1, [[x[0, 0], 1], (2, x[1, 0])]),
        lambda x: np.maximum.reduce([x, 1 / x]),
        lambda x: np.add.accumulate((x[0], x[1])),
        lambda x: np.multiply.outer([x[0, 0], 2], [1, x[1, 1]]),
        lambda x: np.matmul([x[0], x[1]], x.T),
        lambda x: x + range(4),
        lambda x: (x > 2) ** 2,
    ],
)
def test_lists_of_traced_arrays(function):
    check(function, X)


def test_ufuncs_of_numpy_arrays_while_tracing():
    def function(x):
        assert np.abs is np.absolute
        assert {np.add: np.add.nin}[np.add] == 2
        assert pickle.loads(pickle.dumps(np.add)) == np.add
        return np.add(x, 1)

    check(function, X)
    assert type(np.add) is np.ufunc


# -- errors


def test_errors_equal_numpys():
    check_failure(lambda x: x - x, np.ones(2, bool), error=TypeError)
    check_failure(lambda x: -x, np.ones(2, bool), error=TypeError)
    check_failure(lambda x: x & x, X, error=TypeError)
    check_failure(lambda x: x // (x + 1j), X, error=TypeError)
    check_failure(lambda x: np.add(x, X[:2]), X, error=ValueError)
    check_failure(lambda x: np.add(x, x, dtype=int), X, error=TypeError)
    check_failure(lambda x: np.add(x, x, dtype=float, signature="dd->d"), X, error=TypeError)
    check_failure(lambda x: np.add(x, x, out=np.zeros((2, 4))), X, error=ValueError)
    check_failure(lambda x: np.add(x, x, nonsense=1), X, error=TypeError)
    check_failure(lambda x: np.add(x, x, signature="d"), X, error=TypeError)
    check_failure(lambda x: np.add(x, x, signature="dd"), X, error=ValueError)
    check_failure(lambda x: np.add(x, x, signature=["d", "d", "d"]), X, error=TypeError)
    check_failure(lambda x: np.add(x, 1, casting="equiv"), X, error=TypeError)
    check_failure(lambda x: np.add(x, x, casting="mostly"), X, error=ValueError)
    check_failure(lambda x: np.add(x, x, casting=None), X, error=TypeError)
    check_failure(lambda x: np.add(x, x, where=np.ones(4, int), out=x.copy()), X, error=TypeError)
    check_failure(lambda x: np.add(x[0, 0], 1, where=[True], out=x[:1, 0].reshape(())), X, error=ValueError)
    check_failure(lambda x: np.equal(x, 10**30, dtype=float), np.arange(3), error=TypeError)
    check_failure(lambda x: np.logical_and(x, 10**30), X, error=OverflowError)
    with pytest.raises(UnimplementedError, match="add of float128"):
        run(lambda x: np.add(x, x, dtype=np.longdouble, out=np.zeros_like(x)), X)


def test_negative_powers_of_integers():
    whole = np.array([1, 2, 3])
    check_failure(lambda x: x**-1, whole, error=ValueError)
    check_failure(lambda x, y: x**y, whole, np.array([1, -1, 2]), error=ValueError)
    check(lambda x, y: x**y, whole, np.array([1, 0, 2]))
    check(lambda x: x**-1, whole[:0])
    check(lambda x: np.power(x, np.int64([-1])), whole[:0])
    with pytest.raises(ValueError, match="negative integer powers"):
        run(lambda x, y: x**y, whole, np.array([1, -1, 2]), platform="cpu")


# -- out=, where=, dtype=, casting=


def test_out_is_written_and_returned():
    def function(x, y):
        total = np.empty_like(x)
        assert np.add(x, y, out=total) is total
        part = total[1]
        np.multiply(part, 2, out=part)
        np.divmod(x, y, out=(x, y))
        return total + x - y

    check(function, X, Y)


@pytest.mark.parametrize("sizes", [(1, 4), (4, 4), (1, 0)], ids=str)
def test_an_output_broadcasts_other_results(sizes):
    def function(x, out):
        first, second = np.modf(x, out)
        assert second.shape == out.shape
        return np.stack([first, second, *np.divmod(x, 2.0, out=(None, out * 3)), *np.frexp(x, out=(out * 2, None))])

    check(function, X[: sizes[0]], Y[: sizes[1]])


def test_outputs_of_other_sizes_are_refused():
    check_failure(np.modf, X[:2], Y, error=ValueError)
    check_failure(np.modf, X[:1], Y[:2], Y, error=ValueError)


def test_where_keeps_other_elements():
    check(lambda x, y: np.add(x, y, where=x > 2, out=y.copy()), X, Y)
    check(lambda x, y: np.add(x, y, where=[1, 0, 2, 0], out=y.copy(), signature=b"dd->d"), X, Y)
    check(lambda x, y: np.add(x, y, where=None, out=y.copy()), X, Y)
    check(lambda x, y: np.sqrt(x, where=[True, False, True, False], out=np.zeros_like(x)), X, Y)


def test_in_place_operators():
    def function(x, y):
        z = x.copy()
        z += y
        z[0] *= 2
        z[:, 1] -= 1
        z **= 2
        z //= 3
        return z

    check(function, X, Y)
    check_failure(lambda x: np.add(x, 1.5, out=x), np.ones(3, int), error=TypeError)


def test_out_of_numpy():
    check(lambda x: np.add(x, 1, out=X.copy()), X)
    copied = X.copy()
    run(lambda x, kept=copied: np.add(x, 1, out=kept), X)  # a default is kept
    np.testing.assert_array_equal(copied, X + 1)


def test_keywords_of_gufuncs():
    square = X[:, :3]
    check(lambda x: np.vecdot(x, x, axes=[0, 0], keepdims=True), square)
    check(lambda x: np.vecdot(x, x, axes=[0, 0, 0], keepdims=True), square)
    check(lambda x: np.vecdot(x, x, axis=0, keepdims=True), square)
    check_failure(lambda x: np.vecdot(x, x, axis=None), square, error=TypeError)
    check_failure(lambda x: np.matmul(x, x, axis=0), square, error=TypeError)
    check_failure(lambda x: np.matmul(x, x[0, 0], dtype=int), square, error=TypeError)
    check_failure(lambda x: np.matmul(x, x, signature="d"), square, error=TypeError)


# -- methods


def test_reduce_errors_equal_numpys():
    check_failure(lambda x: np.subtract.reduce(x, axis=(0, 1)), X, error=ValueError)
    check_failure(lambda x: np.divide.reduce(x[:0]), X, error=ValueError)
    check_failure(lambda x: np.maximum.reduce(x[:0]), X, error=ValueError)
    check_failure(lambda x: np.exp.reduce(x), X, error=ValueError)
    check_failure(lambda x: np.divide.reduce(x, where=x > 2), X, error=ValueError)
    check_failure(lambda x: np.less.reduce(x), X, error=TypeError)
    check_failure(lambda x: np.add.reduce(x, axis=2), X, error=np.exceptions.AxisError)
    check_failure(lambda x: np.add.accumulate(x[0, 0]), X, error=TypeError)
    check_failure(lambda x: np.add.accumulate(x, axis=None), X, error=ValueError)
    check_failure(lambda x: np.add.accumulate(x[0, 0], axis=2), X, error=np.exceptions.AxisError)
    check_failure(lambda x: np.hypot.reduce(x[:0], initial=None), X, error=ValueError)
    check_failure(lambda x: np.left_shift.reduce(x, initial=np.nan), np.arange(3), error=ValueError)
    check_failure(lambda x: np.add.reduceat(x, [0, 3]), X, error=IndexError)
    check_failure(lambda x: np.add.reduceat(x, [[0, 1]]), X, error=ValueError)
    check_failure(lambda x: np.add.reduceat(x, 0), X, error=ValueError)
    check_failure(lambda x: np.add.reduceat(x, [0], axis=None), X, error=ValueError)
    check_failure(lambda x: np.add.reduceat(x[0, 0], [0]), X, error=TypeError)
    with pytest.raises(UnimplementedError, match="traced indices"):
        run(lambda x, k: np.subtract.reduceat(x, k), X, np.array([0, 1]))


def test_long_reductions_are_loops():
    x = RNG.uniform(0.9, 1.1, (40, 3))
    check(lambda x: np.subtract.reduce(x), x)
    check(lambda x: np.divide.reduce(x[:, 0], initial=2.0), x)
    check(lambda x: np.subtract.accumulate(x.T, axis=1), x)
    check(lambda x: np.subtract.reduce(x, axis=0, initial=1.0, where=x > 1), x)


@pytest.mark.parametrize("ufunc", [np.add, np.subtract, np.multiply, np.divide, np.maximum, np.arctan2, np.logaddexp])
def test_at_applies_repeated_indices_repeatedly(ufunc):
    def function(x, k, y):
        z = x.copy()
        assert ufunc.at(z, k, y) is None
        return z

    x, k, y = np.array([1.0, 2, 3, 4]), np.array([1, 3, 1, -1]), np.array([2.0, 3, 5, 7])
    want = function(x, k, y)
    np.testing.assert_allclose(run(function, x, k, y), want, rtol=1e-14)
    np.testing.assert_allclose(run(function, x.astype("f4"), k, y), function(x.astype("f4"), k, y), rtol=1e-6)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("ufunc", [np.floor_divide, np.remainder, np.copysign, np.nextafter, np.gcd, np.lcm])
def test_at_of_ufuncs_that_need_a_loop(ufunc, backend):
    dtypes = "il" if ufunc in (np.gcd, np.lcm) else "fd"

    def function(x, k, y):
        z = x.copy()
        ufunc.at(z, k, y)
        ufunc.at(z[:, 1:], (slice(None), [0, 0]), y[:1])
        ufunc.at(z, np.zeros(0, int), y[:1])
        return z

    for letter in dtypes:
        x = np.array([[7, -8, 9], [10, 14, 6], [-4, 5, 12]], letter)
        k, y = np.array([0, 0, -1]), np.array([3, -2, 7], letter)
        np.testing.assert_array_equal(jit(function, platform=backend)(x, k, y), function(x, k, y))
    check_failure(lambda x, k: ufunc.at(x, k, x[:1]), np.ones(3, dtypes[0]), np.array([9]), error=IndexError)


def test_at_keeps_other_elements():
    def function(x):
        np.floor_divide.at(x, [0, 0, -1], 2)
        return x

    check(function, np.array([12, 2**62 + 1, 2**63 + 3, 7], np.uint64))
    check(lambda x: np.logical_or.at(x, [0, 0, -1], 2) or x, np.array([5, 6, 0, 8], np.int16))


def test_at_of_one_operand_and_of_rows():
    def function(x):
        z = x.copy()
        np.negative.at(z, ([0, 0, 1], [1, 1, 2]))
        np.add.at(z, [2, 2], x[:2])
        np.add.at(z, (slice(None), [0, 0]), 1)
        return z

    check(function, X)


def test_at_checks_its_indices():
    check_failure(lambda x, k: np.add.at(x[0].copy(), k, 1), X, np.array([9]), error=IndexError)
    check_failure(lambda x: np.add.at(x.copy(), [0]), X, error=ValueError)
    with pytest.raises(IndexError):
        run(lambda x: np.add.at(X[0].copy(), [9], x[0, 0]) or x, X)


def test_at_of_an_array_from_outside():
    outside = X[0].copy()

    def function(x):
        fresh = outside.copy()
        np.add.at(fresh, [0, 2, 0], x[0, 0])
        np.multiply.at(outside, [1, 1], x[1, 1])
        return fresh

    want = X[0] + np.array([2, 0, 1, 0]) * X[0, 0]
    np.testing.assert_allclose(run(function, X), want, rtol=1e-15)
    np.testing.assert_allclose(outside, X[0] * np.array([1, X[1, 1] ** 2, 1, 1]), rtol=1e-15)


def test_reductions_of_lists_of_traced_arrays():
    check(lambda x, y: np.maximum.reduce(np.stack([x, y])), X, Y)


def test_reductions_that_overflow_are_sequential():
    x = np.array([[200, 198, 7, 9, 13], [9, 13, 250, 6, 35]], np.uint8)
    check(lambda x: np.lcm.reduce(x, axis=1), x)
    check(lambda x: np.lcm.accumulate(x.reshape(-1)), x)


@pytest.mark.parametrize("function", [lambda x: np.any(x) ** 2, lambda x: (x[0, 0] > 0) ** 2, lambda x: (x > 0) ** 2])
def test_squares_of_bools(function):
    check(function, X)


# -- conversions


@pytest.mark.parametrize("letter", "bhilBHIL?")
def test_floats_become_integers_as_in_c(letter):
    numbers = np.array([0, -0.5, 1.7, -1.7, 127.9, 128, -129, 300, -300, 3e4])
    check(lambda x: x.astype(letter), numbers)


def test_infinities_convert_to_the_least_integer():
    with np.errstate(invalid="ignore"):
        check(lambda x: x.astype(np.int64), np.array([np.nan, np.inf, -np.inf, 1e300]))
        check(lambda x: x.astype(np.int32), np.array([np.nan, np.inf, -np.inf, 1e300]))


# -- functions of SciPy that are no ufuncs


def test_softmax_of_numpy_and_traced_arrays():
    x = np.array([[1000.0, 1000.0, -np.inf], [0.0, 1.0, 2.0]])
    np.testing.assert_allclose(softmax(x, axis=1), special.softmax(x, axis=1))
    np.testing.assert_allclose(run(lambda v: softmax(v, axis=1), x), special.softmax(x, axis=1))
    np.testing.assert_allclose(run(lambda v: logsumexp(v, axis=1), x), special.logsumexp(x, axis=1))
    assert run(lambda v: logsumexp(v), np.full(3, -np.inf)) == -np.inf
