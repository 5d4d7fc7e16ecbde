"""Reductions, statistics and sorts: errors, ``out=``, and cases that a table cannot express."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cyxla.errors import TraceError, UnimplementedError
from cyxla.numpy import jit

X = np.arange(12.0).reshape(3, 4)


def run(function, *arrays, platform="interpreter"):
    return jit(function, platform=platform)(*arrays)


BAD = {
    "axis": lambda x: np.sum(x, axis=2),
    "axes": lambda x: np.max(x, axis=(0, 0)),
    "kind of axis": lambda x: np.mean(x, axis="a"),
    "axis of a mean": lambda x: np.var(x, axis=-3),
    "empty": lambda x: np.max(x[:0]),
    "empty axis": lambda x: np.min(x[:, :0], axis=1),
    "empty place": lambda x: np.argmax(x[:0], axis=0),
    "where": lambda x: np.max(x, where=x > 1),
    "kind of where": lambda x: np.sum(x, where=x),
    "size of where": lambda x: np.sum(x, where=np.ones((2, 3, 4), bool)),
    "initial": lambda x: np.sum(x, initial=np.ones(3)),
    "place": lambda x: np.argmax(x, axis=2),
    "ptp": lambda x: np.ptp(x > 1),
    "out": lambda x: np.sum(x, axis=0, out=np.zeros_like(x)),
    "running": lambda x: np.cumulative_sum(x),
    "degrees": lambda x: np.var(x, ddof=1, correction=1),
    "weights": lambda x: np.average(x, weights=np.ones(3)),
    "size of weights": lambda x: np.average(x, axis=1, weights=np.ones(3)),
    "zero weights": lambda x: np.average(x, weights=x * 0),
    "no weights": lambda x: np.average(x[:0], axis=0, weights=np.ones(0)),
    "no weights of rows": lambda x: np.average(x[:, :0], axis=1, weights=np.ones((len(x), 0))),
    "no averages": lambda x: np.average(x[:0], axis=1),
    "no averages along no axis": lambda x: np.average(x[:0], axis=(), returned=True),
    "ddof": lambda x: np.cov(x, ddof=0.5),
    "dimensions": lambda x: np.cov(x[None]),
    "kind": lambda x: np.sort(x, kind="bubble"),
    "order": lambda x: np.sort(x, order="a"),
    "kind and stable": lambda x: np.sort(x, kind="stable", stable=True),
    "kth": lambda x: np.partition(x, 4),
    "type of kth": lambda x: np.partition(x, 1.5),
    "side": lambda x: np.searchsorted(x[0], x, side="middle"),
    "sorted": lambda x: np.searchsorted(x, x),
    "sorter": lambda x: np.searchsorted(x[0], x, sorter=np.array([0, 1, 2, 9])),
    "size of sorter": lambda x: np.searchsorted(x[0], x, sorter=np.arange(3)),
    "edges": lambda x: np.digitize(x, [0, 2, 1]),
    "traced edges": lambda x: np.digitize(x, np.sin(x[0] * 10)),
    "keys": lambda x: np.lexsort(()) if False else np.lexsort((x, x[0])),
    "range": lambda x: np.histogram(x, range=(2, 1)),
    "infinite range": lambda x: np.histogram(x, range=(0, np.inf)),
    "infinite values": lambda x: np.histogram(x / 0),
    "no bins": lambda x: np.histogram(x, 0),
    "falling bins": lambda x: np.histogram(x, [2, 1]),
    "traced bins": lambda x: np.histogram(x, -x[0]),
    "counted floats": lambda x: np.bincount(x[0]),
    "negative counts": lambda x: np.bincount(x[0].astype(int) - 2, minlength=9),
    "part": lambda x: np.quantile(x, 1.5),
    "traced part": lambda x: np.quantile(x, x[0]),
    "method": lambda x: np.quantile(x, 0.5, method="best"),
    "quantile of nothing": lambda x: np.quantile(x[:0], 0.5),
    "rule for bins": lambda x: np.histogram(x, "best"),
    "rule for bins of weighted elements": lambda x: np.histogram(x, "auto", weights=x),
    "range of nan": lambda x: np.histogram(x * np.nan, "auto"),
    "all nan": lambda x: np.nanargmin(x * np.nan),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", BAD.values(), ids=BAD)
def test_errors_equal_numpys(call):
    with pytest.raises(Exception) as theirs:  # noqa: PT011 - whatever it is
        call(X)
    with pytest.raises(theirs.type.__mro__[0] if theirs.type.__module__ != "numpy._core._exceptions" else TypeError):
        run(call, X)


def test_bincount_beyond_minlength_raises():
    with pytest.raises(UnimplementedError, match="minlength=3"):
        run(lambda x: np.bincount(x, minlength=3), np.array([0, 3]))
    with pytest.raises(UnimplementedError, match="not below 65536"):
        run(lambda x: np.bincount(x), np.array([0, 1 << 16]))


@pytest.mark.parametrize("minlength", [0, 9])
@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "?"])
def test_bincount_of_integers(dtype, minlength):
    """Each type counts as it is, and raises for negative elements, also beside elements that are too large."""
    least, most = (0, 1) if dtype == "?" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    function = jit(lambda x: np.bincount(x, minlength=minlength))
    x = np.array([1, 0, 1, min(8, most), 1]).astype(dtype)
    np.testing.assert_array_equal(function(x), np.bincount(x, minlength=minlength))
    for elements in ([1, -1, 2, 3, 4], [least, most, 3, 4, 5]) if least else ():
        with pytest.raises(ValueError, match="no negative elements"):
            function(np.array(elements, dtype))


def test_searchsorted_in_a_list():
    found = run(lambda v: np.searchsorted([1, 2, 3.5], v), np.array([0, 3, 9]))
    np.testing.assert_array_equal(found, [0, 2, 3])


def test_out_arrays_and_views():
    def function(x):
        whole = np.zeros((2, *x.shape[1:]), np.float32)
        given = np.sum(x, axis=0, out=whole[0])
        np.cumsum(x[0], out=whole[1])
        given += 1
        return whole, np.mean(x, axis=1, keepdims=True, out=np.empty((x.shape[0], 1)))

    for got, want in zip(run(function, X), function(X), strict=True):
        np.testing.assert_array_equal(got, want)
        assert got.dtype == want.dtype


def test_sorting_in_place():
    def function(x):
        y = x[::-1].copy()
        y[:, 1:].sort(axis=0)
        y[0].partition(2)
        return y

    np.testing.assert_array_equal(run(function, X), function(X.copy()))


def test_python_numbers_are_arrays_of_rank_0():
    def function(n, f):
        return np.sum(n), np.mean(n), np.max(f), np.var(f), np.argmax(n), np.median(n), np.cumsum(f)

    got, want = run(function, 3, 2.5), function(3, 2.5)
    assert [np.asarray(g).dtype for g in got] == [np.asarray(w).dtype for w in want]
    assert got[:-1] == want[:-1]


def test_sums_are_as_exact_as_numpys(backend):
    x = np.random.default_rng(1).normal(size=200_000).astype(np.float32)
    exact = np.sum(x, dtype=np.float64)
    size = np.abs(x).sum(dtype=np.float64)
    assert abs(run(np.sum, x, platform=backend) - exact) < 4e-7 * size
    half = np.full(5000, 1.5, np.float16)
    assert run(np.sum, half, platform=backend) == np.sum(half) == 7500
    assert run(np.mean, np.full(70_000, 2, np.float16), platform=backend) == 2
    assert run(np.sum, half.astype(ml_dtypes.bfloat16), platform=backend) == ml_dtypes.bfloat16(7500)


def test_the_first_of_many_nans():
    x = np.zeros(5000, np.float32)
    x[[777, 778, 4000]] = np.nan
    for platform in ("interpreter", "cpu"):
        assert run(np.argmax, x, platform=platform) == run(np.argmin, x, platform=platform) == 777


def test_searchsorted_in_many_elements():
    rng = np.random.default_rng(2)
    line, sought = np.sort(rng.normal(size=1000)), np.append(rng.normal(size=100), [np.nan, np.inf, -np.inf])
    for platform in ("interpreter", "cpu"):
        for side in ("left", "right"):
            found = run(lambda a, v, side=side: np.searchsorted(a, v, side), line, sought, platform=platform)
            np.testing.assert_array_equal(found, np.searchsorted(line, sought, side))


def test_a_normalised_row_is_one_kernel():
    def layer(x):
        return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)

    def softmax(x):
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    x = np.random.default_rng(3).normal(size=(64, 256)).astype(np.float32)
    for function in (layer, softmax):
        compiled = jit(function)
        assert compiled.explain(x).startswith("1 kernels")
        np.testing.assert_allclose(compiled(x), function(x), rtol=1e-5, atol=1e-6)


numbers = hnp.arrays(
    st.sampled_from([np.float64, np.float32, np.int16, np.uint8, np.bool_]),
    hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4),
    elements=st.integers(0, 1),
)
FUNCTIONS = [
    np.sum, np.prod, np.max, np.argmin, np.any, np.count_nonzero, np.mean, np.cumsum, np.sort, np.median, np.std,
]  # fmt: skip


@settings(max_examples=60)
@given(numbers, st.sampled_from(FUNCTIONS), st.data())
def test_axes_drawn(x, function, data):
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
    got, want = run(lambda a: function(a, axis=axis), x), function(x, axis=axis)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_axis_as_an_argument():
    total = jit(lambda x, axis: np.sum(x, axis=axis), platform="interpreter")
    for axis in (0, 1, -1, np.int64(0), (0, 1), None):
        np.testing.assert_array_equal(total(np.ones((2, 3)), axis), np.ones((2, 3)).sum(axis))


def test_axis_that_depends_on_an_array_raises():
    with pytest.raises(TraceError, match="static"):
        jit(lambda x: np.sum(x, axis=x[0].astype(int)), platform="interpreter")(np.zeros(2))


@pytest.mark.parametrize("function", [np.histogram, np.histogram_bin_edges, np.histogramdd])
def test_histograms_of_complex_numbers_raise(function):
    with pytest.raises(UnimplementedError, match="complex"):
        run(lambda x: function(x), np.ones(3, complex))


def test_argmax_of_many_elements(backend):
    places = jit(lambda x: (np.argmax(x), np.argmin(x)), platform=backend)
    for size, first, second in [(4096, 0, 4095), (5000, 4097, 4999), (6143, 2047, 2048)]:
        x = np.zeros(size)
        x[[first, second]] = 1, -1
        assert places(x) == (first, second)
        x[[first, second]] = np.nan
        assert places(x) == (first, first)


def test_all_nan_rows_among_many_elements():
    x = np.ones((300, 256))
    x[5], x[7], x[8] = np.nan, -np.inf, np.nan
    x[8, 4] = -np.inf
    with pytest.warns(RuntimeWarning, match="All-NaN"):
        want = np.nanmax(x, axis=1)
    np.testing.assert_array_equal(run(lambda v: np.nanmax(v, axis=1), x), want)
    assert run(np.nanmin, x) == -np.inf
