"""Calls whose results must equal NumPy's bit by bit, or whose errors must have NumPy's class and text."""

import warnings
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import cyxla
from cyxla.numpy import jit

X, WHOLE = np.array([1.0, 2.0, 3.0]), np.array([1, 2, 3])
ONES = np.full(2, 1, np.float32)
NEARLY_ONE = 1 - 2.0**-52  # 1.0 as a float32
#: Singular values that are exact on every machine: between the limits 1e-20, half the spacing of doubles at 1.
STEEP = np.eye(6, 5) * [1, 0.5, 1e-15, 1.6e-16, 1e-18]
NEARLY_RANK_2 = np.diag([1, 0.5, 1e-8]).astype(np.float32)
GRID = np.arange(6.0).reshape(3, 2) + 1
CASTINGS = ("no", "equiv", "safe", "same_kind", "unsafe")
METHODS = (
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull",
    "linear", "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint", "nearest",
)  # fmt: skip


def result_or_error(function, arrays):
    """Return the result of a call, its error, and its deprecation warnings."""
    with warnings.catch_warnings(record=True) as given, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        try:
            made, error = function(*[a.copy() if isinstance(a, np.ndarray) else a for a in arrays]), None
        except Exception as raised:
            made, error = None, raised
    return made, error, [str(w.message) for w in given if w.category is DeprecationWarning]


def assert_same(got, want):
    """Assert that results are equal in kind, dtype, shape, and values with their signs of zero."""
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            assert_same(g, w)
        return
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_array_equal(got, want)
    if want.dtype.kind in "fc":
        for part in ("real", "imag"):
            g, w = getattr(got, part), getattr(want, part)
            np.testing.assert_array_equal(np.signbit(g[w == 0]), np.signbit(w[w == 0]))


def _zeros(dtype, sizes=(2, 3)):
    return -np.zeros(sizes, dtype)


def check_failure(error, failure):
    """Assert that an error has NumPy's class and text; ours may begin with the name of the function."""
    assert isinstance(error, type(failure)), f"{error!r} is not {failure!r}"
    assert not isinstance(error, cyxla.errors.InternalError)
    assert str(failure).strip() in str(error), f"{error} is not: {failure}"


def _transformed(function, s, axes, x):
    return np.round(function(x, s=s, axes=axes), 12) + 0


def _with(function, x, **more):
    return function(x, **more)


def _added(number, casting, x):
    return np.add(x, number, casting=casting)


def _quantile(method, x, q):
    return np.quantile(x, q, method=method)


def _rank(rcond, a, b):
    return np.linalg.lstsq(a, b, rcond=rcond)[2]


class ForeignArray:
    """Array that implements NumPy's functions itself."""

    def __array_function__(self, function, types, args, kwargs):
        return np.array([len(types), len(args)])


MASK = np.array([True, False, True])
SAME = {
    # linear algebra
    "svd-hermitian-singular": (lambda a: np.linalg.svd(a, hermitian=True), [np.diag([1.0, 0.0])]),
    "svd-hermitian-singular-complex": (lambda a: np.linalg.svd(a, hermitian=True), [np.diag([1.0 + 0j, 0.0])]),
    "svd-hermitian-zero": (lambda a: np.linalg.svd(a, hermitian=True), [np.zeros((3, 3), np.float32)]),
    "svd-hermitian-negative": (lambda a: np.linalg.svd(a, hermitian=True)[1:], [np.diag([-2.0, 0.0, 1.0])]),
    **{
        f"lstsq-rcond-{rcond}": (partial(_rank, rcond), [STEEP, np.ones(6)])
        for rcond in (-1, -0.5, 0, None, 1e-20, 0.6, 1.0, 2.0)
    },
    "lstsq-float32": (lambda a, b: np.linalg.lstsq(a, b)[2], [NEARLY_RANK_2, np.ones(3, np.float32)]),
    # comparisons in the type of arrays
    "isclose-weak": (lambda x, y: np.isclose(x, y, atol=0, rtol=0), [ONES, NEARLY_ONE]),
    "isclose-weak-first": (lambda x, y: np.isclose(y, x, atol=0, rtol=0), [ONES, NEARLY_ONE]),
    "isclose-strong": (lambda x, y: np.isclose(x, y, atol=0, rtol=0), [ONES, np.float64(NEARLY_ONE)]),
    "isclose-rtol": (lambda x: np.isclose(x, 2, atol=0, rtol=NEARLY_ONE / 2), [ONES]),
    "isclose-rtol-strong": (lambda x: np.isclose(x, 2, atol=0, rtol=np.float64(NEARLY_ONE / 2)), [ONES]),
    "isclose-rtol-argument": (lambda x, r: np.isclose(x, 2, atol=0, rtol=r), [ONES, NEARLY_ONE / 2]),
    "isclose-atol": (lambda x: np.isclose(x, 2, atol=NEARLY_ONE, rtol=0), [ONES]),
    "isclose-atol-argument": (lambda x, r: np.isclose(x, 2, atol=r, rtol=0), [ONES, NEARLY_ONE]),
    "isclose-bool": (lambda x: np.isclose(True, x), [ONES]),
    "isclose-integers": (lambda x: np.isclose(x, 300), [np.array([-128, 7], np.int8)]),
    "allclose-rtol": (lambda x: np.allclose(x, 2, atol=0, rtol=NEARLY_ONE / 2), [ONES]),
    # sizes of transforms
    **{
        f"{name}-{s}-{axes}": (partial(_transformed, getattr(np.fft, name), s, axes), [GRID])
        for name in ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2")
        for s in ((4, None), (None, 4), (-1, None))
        for axes in ((0, 1), (1, 0))
    },
    "fftn-without-axes": (lambda x: np.round(np.fft.fftn(x, (4,)), 12) + 0, [GRID]),
    # the sign of zero
    **{
        f"{f.__name__}-{dtype}{n}-{axis}-{k}": (partial(_with, f, axis=axis, **more), [_zeros(dtype, n)])
        for dtype in "efF"
        for n in ((2, 3), (0, 3))
        for axis in (None, 0)
        for f in (np.sum, np.nansum)
        for k, more in enumerate([{}, {"initial": -0.0}, {"initial": 0.0}, {"initial": -0.0, "where": MASK}])
    },
    "sum-initial-argument": (lambda a, i: np.sum(a, axis=1, initial=i), [_zeros("d"), -0.0]),
    "prod-zero": (lambda a: np.prod(a, axis=0, initial=-0.0), [_zeros("d")]),
    "mean-zero": (lambda a: np.mean(a, axis=0), [_zeros("d")]),
    "cumsum-zero": (lambda a: np.cumsum(a, axis=1), [_zeros("d")]),
    "add.reduceat-zero": (lambda a: np.add.reduceat(a, [0, 1], axis=1), [_zeros("d")]),
    # kinds of numbers
    "concat-weak": (lambda x: np.concat([x, 1.0], axis=None), [np.float32(1)]),
    "concat-weak-argument": (lambda x, y: np.concatenate([x, y, 2], axis=None), [ONES, 0.5]),
    "concat-weak-integer": (lambda x: np.concatenate([x, 300], axis=None), [np.array([1], np.uint8)]),
    **{
        f"add-{casting}-{letter}-{number}": (partial(_added, number, casting), [np.ones(2, letter)])
        for casting in CASTINGS
        for letter in "fdlB"
        for number in (3, 3.0, 3j)
    },
    **{
        f"quantile-{method}-{letter}-{q!r}": (partial(_quantile, method), [np.array([1, 5, 3]).astype(letter), q])
        for method in METHODS
        for letter in "lf"
        for q in (1, np.array([0, 1]))
    },
    # results written elsewhere
    "percentile-out": (lambda x: np.percentile(x, 5, out=np.zeros(1)), [X]),
    "percentile-out-repeated": (lambda x: np.percentile(x, [5, 20], axis=0, out=np.zeros((3, 2, 2))), [GRID]),
    "nanpercentile-out": (lambda x: np.nanpercentile(x, 5, out=np.zeros(1, np.float32)), [X]),
    "nanmedian-out": (lambda x: np.nanmedian(x, out=np.zeros(2)), [X]),
    # lists of arrays
    "squeeze-list": (lambda x: np.squeeze([x]), [X]),
    "transpose-list": (lambda x, y: np.transpose([x, y]), [X, X]),
    "zeros_like-list": (lambda x: np.zeros_like([x, x]), [X]),
    "clip-list": (lambda x: np.clip([x, 2 * x], 1, 2), [X]),
    "take-list": (lambda x: np.take([x[0], 2.0, x[2]], [0, 2]), [X]),
    "concatenate-lists": (lambda x: np.concatenate([[x[0], 2.0], [x[1]]]), [X]),
    "linalg.norm-list": (lambda x: np.linalg.norm([x[0], 0.0]), [X]),
    # options in bytes
    "sort-bytes": (lambda x: np.sort(x, kind=b"quicksort"), [-X]),
    "partition-bytes": (lambda x: np.partition(x, 1, kind=b"introselect"), [X]),
    # arrays of other classes
    "other-class-last": (lambda x: np.histogram2d(x, ForeignArray()), [X]),
    "other-class-option": (lambda x: np.histogram2d(x, x, bins=[ForeignArray(), 5]), [X]),
    "other-class-in-list": (lambda x: np.concatenate([x, ForeignArray()]), [X]),
    # others
    "digitize-precisely": (lambda x, b: np.digitize(x, b), [np.array([2**54]), np.array([2**54 - 1, 2**54 + 1])]),
    "trapezoid-along-rows": (lambda x, y: np.trapezoid(x, [y, x]), [X, X[::-1]]),
    "unravel_index-scalar": (lambda n: np.unravel_index(n, ()), [np.array(0)]),
    "unravel_index-bools": (lambda n: np.unravel_index(n, (2, 1)), [np.array([True, False])]),
    "unpackbits-order": (lambda x: np.unpackbits(x, bitorder="l"), [np.array([1, 2], np.uint8)]),
    "isin-table": (lambda a, b: np.isin(a, b, kind="table"), [WHOLE, np.array([2, 7, -5])]),
    "histogram-narrow": (lambda x: np.histogram(x, bins=2, range=(1, 1 + 2.0**-50)), [np.ones(2)]),
    "ravel_multi_index-empty": (lambda a: np.ravel_multi_index((a, a), (0, 5), mode="wrap"), [np.zeros(0, int)]),
}  # fmt: skip


@pytest.mark.slow_but_every(10)
@pytest.mark.parametrize("call, arrays", SAME.values(), ids=SAME)
def test_result_equals_numpys(call, arrays, backend):
    want, failure, warned = result_or_error(call, arrays)
    got, error, told = result_or_error(jit(call, platform=backend), arrays)
    assert told == warned
    if failure is not None:
        check_failure(error, failure)
    else:
        assert error is None, error
        assert_same(got, want)


# Calls that NumPy rejects, when a function is traced (x of floats, i of integers) or when its program runs.
REFUSED = """
np.isin(i, np.array([-2**63, 2**63 - 1]), kind='table')
np.isin(i, i - i + [-2**63, 0, 5], kind='table')
np.isin(x, x, kind='table')
np.isin(i, i, kind='tables')
np.histogram(x, bins=10, range=(1, 1 + 2.0**-51))
np.histogram(x * 0 + 1, bins=2**60)
np.histogram(x[:2] * 2.0**-52 + [1, 0.9999999999999999], bins=100)
np.histogram(x, bins=0)
np.histogram(x, bins=1.5)
np.histogram(x, bins=[3, 2])
np.histogram(x, bins=np.ones((2, 2)))
np.histogram(x, range=(2, 1))
np.histogram(x, weights=x[:2])
np.histogramdd(np.ones((3, 2)) * x[0], bins=[1, .99])
np.histogramdd(np.ones((3, 2)) * x[0], bins=[1, 1.5])
np.histogramdd(np.ones((3, 2)) * x[0], bins=[1, [2, 1]])
np.histogramdd(np.ones((3, 2)) * x[0], bins=[1, [[2, 1]]])
np.histogramdd(np.ones((3, 2)) * x[0], bins=[1, 2, 3])
np.histogram2d(x, x[:2])
np.convolve(x, x, mode=None)
np.convolve(x, x, mode=7)
np.convolve(x, x, 'foo')
np.correlate(x, x, mode=None)
np.correlate(x, [])
np.packbits(i, bitorder=10)
np.packbits(i, bitorder='x')
np.unpackbits(i.astype('u1'), bitorder=10)
np.unpackbits(i.astype('u1'), bitorder='x')
np.unpackbits(i.astype('u1'), count=-100)
np.ravel_multi_index((i, i, i), (2, 1, 0), mode='clip')
np.ravel_multi_index((i, i), (0, 5), mode='wrap')
np.ravel_multi_index((i, i), (2**62, 2))
np.ravel_multi_index((i,), (2,))
np.ravel_multi_index((i, i), (5,))
np.ravel_multi_index((i, i), (5, 5), mode=('clip',))
np.ravel_multi_index((i, i), (5, 5.0))
np.ravel_multi_index((i,), (5,), mode='foo')
np.ravel_multi_index((x,), (5,))
np.unravel_index(i, (2**40, 2**40))
np.unravel_index(i, (5.0,))
np.unravel_index(i, 2)
np.unravel_index(x, 2)
np.geomspace(x[0] * 0, 2)
np.geomspace(1, x * [1, 1, 0])
np.require(x, requirements=['FOO'])
np.linspace(x[0], 2, 2.5)
np.vstack([x, x[:2]])
np.unravel_index(i, ())
np.unravel_index(i * 0, ())
np.unravel_index([], (3, 2))
np.sin(x, out='')
np.sin(x, out=OUTSIDE)
np.einsum('i', x, order='W')
np.einsum('i', x, order=3)
np.einsum('i', x, casting='foo')
np.einsum(x, [52])
np.einsum(x, ['a'])
np.einsum(x)
np.einsum('i,i', x)
np.einsum('i', x, x)
np.einsum('ij', x)
np.einsum('i->ii', x)
np.einsum('i->j', x)
np.einsum('i..', x)
np.einsum('i%', x)
np.einsum('i,i', x, x, out=np.ones(2))
np.vecdot(x, x, keepdims='true')
np.vecdot(x, x, keepdims=1)
np.vecdot(x, x[:2])
np.matmul(x, x[:2])
np.matmul(x, 1.)
np.matvec(np.ones((2, 2)), x)
np.dot(x, x[:2])
np.linalg.solve(np.eye(2), x)
np.pad(x, 1, mode='minimum', stat_length=0)
np.pad(x, 1, mode='maximum', stat_length=0)
np.fft.fft(x, out=np.zeros(5, complex))
np.fft.fft(x, n=0)
np.fft.fft(x, norm='foo')
np.fft.fft(x, out=np.zeros(3))
np.gcd(x, x)
np.lcm(i, 2.5)
np.copysign(x, 1j)
np.add(x, 3, casting='equiv')
np.add(i, 3.0, casting='equiv')
np.add(x, x, out=np.zeros(3, int))
np.add(x, x[:2])
np.add(x, x, out=np.zeros(1))
np.sum(x, out=np.zeros(1))
np.max(x, out=np.zeros((2, 1)))
np.std(x, out=np.zeros(1))
np.median(x, out=np.zeros(1))
np.cumsum(x, out=np.zeros(5))
np.argmax(x, out=np.zeros(5, int))
np.percentile(x, 5, out=np.zeros(1), method='lower')
np.percentile(x, 5, out=np.zeros((), int))
np.percentile(x, [5, 6], out=np.zeros(1))
np.concatenate([x, np.ones((2, 2))])
np.concatenate([x, x], out=np.zeros(5))
np.partition(x, 1, kind=1)
np.partition(x, 1, kind=None)
np.argpartition(x, 1, kind=1)
np.sort(x, kind=1)
np.dot(x[:2, None], x[None, :2], out=np.zeros((2, 2)).T)
np.dot(x[:2, None], x[None, :2], out=np.zeros((4, 2))[::2])
np.add(x, 4, signature='%^->#')
np.add(x, 4, signature='dd->#')
np.add(x, 4, signature='ii>i')
np.histogramdd(np.ones((1, 10)) * x[0], bins=2**10)
np.histogramdd(np.ones((3, 0)) * x[0], bins=2)
"""
CALLS = [line for line in REFUSED.splitlines() if line]


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("text", CALLS)
def test_error_equals_numpys(text, backend):
    call = eval(f"lambda x, i: {text}", {"np": np, "OUTSIDE": np.zeros(3, int)})
    failure = result_or_error(call, [X, WHOLE])[1]
    assert failure is not None, "NumPy takes it"
    check_failure(result_or_error(jit(call, platform=backend), [X, WHOLE])[1], failure)


@pytest.mark.parametrize("call", [np.quantile, np.percentile, np.nanquantile, np.nanpercentile])
@pytest.mark.parametrize("q", [Fraction(1), [Fraction(0), Fraction(1)]], ids=["one", "two"])
def test_quantiles_of_object_dtype_raise(call, q):
    with pytest.raises(cyxla.errors.DTypeError, match="of dtype object cannot be traced"):
        jit(lambda x: call(x, q), platform="interpreter")(X)


NAN, INF = np.nan, np.inf
EDGES_WITH_NAN = [
    [1, 1, 1, NAN], [1, 2, NAN], [3, 2, NAN], [NAN, 2, 1], [1, NAN, 2], [1, 1, 2, NAN], [1, 2, NAN, NAN], [NAN],
    [NAN, NAN], [-INF, 1, NAN], [1, INF, NAN],
]  # fmt: skip


@pytest.mark.parametrize("right", [False, True], ids=["left", "right"])
@pytest.mark.parametrize("edges", EDGES_WITH_NAN, ids=str)
def test_digitize_with_nan_among_the_edges(edges, right):
    x, edges = np.array([0, 1, 1.5, 2, 3, 4, NAN, INF, -INF]), np.array(edges)
    calls = (lambda x, b: np.digitize(x, b, right), lambda x, b: np.digitize(x.astype(np.float32), edges, right))
    for call in calls:
        got, want = cyxla.jit(call, fallback="numpy")(x, edges), call(x, edges)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


def test_digitize_with_decreasing_integer_edges():
    edges = np.array([2**54 + 1, 2**54 - 1])
    for call in (lambda x, b: np.digitize(x, b), lambda x, b: np.digitize(x, edges)):
        assert jit(call, platform="interpreter")(np.array([2**54]), edges) == [1]  # NumPy compares the edges as floats
