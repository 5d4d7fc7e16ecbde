"""Polynomials, piecewise functions, bins, gradients and flat indices of arrays of run-time size."""

import numpy as np
import pytest
from support.functions.sized import SELECTIONS, check

import cyxla
from cyxla.errors import TraceError, UnimplementedError

POLYNOMIALS = """
np.polyval([1.0, -2, 3], x[m]) | np.polyval(A[0], A[m]) | np.polyval([1, 2], n[m]) | np.polyval([], x[m])
np.polyval(c[:2], x[m]) | np.polyval(A[m][:, 1:3].T, x[m]) | np.polyval([1.0, 2], f[m]) | np.polyval(k, x[m])
np.polyval(x[m], A) | np.polyval(x[m], x[m]) | np.polyval(x[m], f) | np.polyval(x[m], c) | np.polyval(n[m], n[m])
np.polyval(np.float32(2), x[m]) | np.polyval([1, 2], m[m]) | np.polyval(b[m], b[m]) | np.polyval(x[m], [1.5, 2])
np.polyadd(x[m], x) | np.polyadd(x[m], n[m][1:]) | np.polysub(x[m], x[m]) | np.polysub(1, n[m]) | np.polyadd(n[m], [])
np.polysub(x[m], x[:2]) | np.polyadd(f[m], [1, 2.0]) | np.polysub(c[m], x[~m]) | np.polysub(n[m].astype(np.uint8), 5)
np.polymul(x[m], [1.0, 2]) | np.polymul(n[m], n) | np.polymul(n[m], n[m]) | np.polymul([0, 0, 1], x[m])
np.polymul([0, 0], x[m]) | np.polymul(f[m], [1, 1.0, 0]) | np.polymul(x[m], f[m]) | np.polymul(3, x[m])
np.polymul(c[m], x) | np.polymul(n[m].astype(np.int8), n.astype(np.int8)) | np.polymul(A[m], x)
np.polyder(x[m]) | np.polyder(n[m], 2) | np.polyder(n[m].astype("f")) | np.polyder(x[m], 0) | np.polyder(c[m], 9)
np.polyder(x[m], -1) | np.polyint(x[m]) | np.polyint(n[m], 2) | np.polyint(n[m].astype("f"), 1, 3)
np.polyint(x[m], 0) | np.polyint(c[m], 2, [1, 2]) | np.polyint(x[m], 2, 7) | np.polyint(x[m], 3, [1, 2])
np.vander(x[m]) | np.vander(x[m], 3) | np.vander(n[m], 3, increasing=True) | np.vander(n[m], increasing=True)
np.vander(x[m], 0) | np.vander(f[m], 2) | np.vander(x[m].astype("f"), m.sum()) | np.vander(x[m], x[m].size - 1)
np.vander(c[m]) | np.vander(m[m]) | np.vander(b[m]) | np.vander(A[m])
"""
PIECEWISE = """
np.piecewise(x[m], [x[m] < 0, x[m] >= 0], [lambda v: -v, lambda v: v**2]) | np.piecewise(x[m], x[m] < 0, [1.5, 2])
np.piecewise(x[m], [x[m] < 0], [lambda v: v - v.mean(), 7]) | np.piecewise(x[m], [x[m] < 0, x[m] < 5], [1, 2, np.sin])
np.piecewise(n[m], [n[m] < 2, n[m] > 3], [1.7, lambda v: v / 2, -1]) | np.piecewise(A[m], [A[m] > 0], [np.sqrt, np.abs])
np.piecewise(f[m], [np.isnan(f[m])], [0, lambda v, w: v + w], 2) | np.piecewise(c[m], [x[m] > 0], [1j, np.conj])
np.piecewise(x[m], np.stack([x[m] > 0, x[m] < 0]), [1, 2])
np.piecewise(x[m], [x[m] < 0, x[m] > 3], [np.sin, 2.0, 3.0])
np.piecewise(A[m], [x[m] > 0], [lambda v: v * 2]) | np.piecewise(x[m], [x > 0], [1]) | np.piecewise(x[m], False, [1, 2])
np.piecewise(x[m], [x[m] > 100, x[m] > 5], [lambda v: v / v.max(), lambda v: v.min()]) | np.piecewise(n[m], [True], [3])
np.piecewise(x[m], [x[m] > 0], [1, 2, 3]) | np.piecewise(b[m], [b[m] > 0], [30, -1])
np.piecewise(n[m], [n[m] > 0, n[m] > 1], [lambda v: v[::-1], 9, lambda v: v - v.max()])
np.select([x[m] > 2, True], [x[m], 2]) | np.select([A[m] > 0, A[m] < -1], [A[m], 0], x[m][:, None])
np.select([m, ~m], [x[m][:1], 1]) | np.select([x[m]], [1]) | np.select([x[m] > 0], [x[:1]], f[m])
np.select([x[m] > 0, x[m] < 5], np.stack([x[m], n[m]])) | np.choose(n[m], [x[m], n[m], 3], mode="wrap")
np.choose(k, [x[m], 1, n[m]]) | np.choose(n[m] % 2, np.stack([x[m], n[m]])) | np.choose(n[m], [1, 2])
np.nan_to_num(f[m], copy=False) | np.nan_to_num(f[m].astype("f"), neginf=-2) | np.nan_to_num(f[m] + 1j, nan=k)
np.nan_to_num(f[m], True, x[m]) | np.nan_to_num(f[m], nan=x[m][:, None]) | np.nan_to_num(f, nan=x[m])
np.nan_to_num(k, nan=x[m]) | np.nan_to_num(f[:1], nan=x[m][:, None]) | np.nan_to_num(A[m].T, nan=x[m])
np.nan_to_num(f[m][:, None], nan=x[m]) | np.nan_to_num(f[m], nan=x) | np.nan_to_num(f[m], nan=x[:1], posinf=A[:1, :1])
np.nan_to_num(f[m] + 1j, nan=A[m][:, 0], neginf=x[m]) | np.nan_to_num(f[m], nan=c[m]) | np.nan_to_num(n[m], nan=x)
"""
VECTORS = """
np.cross(A[m][:, :3], A[0, :3]) | np.cross(A[m][:, :2], A[m][:, 1:3]) | np.cross(A[m][:, :3], A[m][:, 1:])
np.cross([0, 0, 1], A[m][:, :3]) | np.cross(A[m][:, :2], A[m][:, 1:]) | np.cross(A[m][:, :3], [1, 2])
np.cross(A[m][:, :3].T, A[0, :3], axisa=0) | np.cross(A[m].T[:3], A[m].T[1:], axis=0) | np.cross(A[m], A[m])
np.cross(A[m][:, :2].T, A[m][:, :2].T, axis=0) | np.linalg.cross(A[m][:, :3], A[m][:, 1:])
np.linalg.cross(A[m][:, :2], A[m][:, :2]) | np.cross(A[n[m]][:, :3] - A[0, :3], A[i[0], :3] - A[n[m]][:, :3])
np.cross(A[m][None, :, :3], A[:, None, :3]) | np.cross(A[m][:, :3], A[:2, :3]) | np.cross(k, A[m][:, :3])
np.cross(n[m][:, None] * np.arange(3), A[m][:, :3].astype("f")) | np.cross(A[m][:, :3].T, A[0, :3], axisa=0, axisc=0)
np.correlate(x[m], np.array([1.0, 2])) | np.correlate(x[m], x) | np.correlate(x, x[m]) | np.correlate(x[m], x[m][1:])
np.correlate(x[m], np.array([1.0, 2, 3]), "same") | np.correlate(x[m], x, "same") | np.correlate(x[m][:3], x, "same")
np.correlate(x[m], np.arange(4.0), "same") | np.correlate(x[m][:2], x, "same") | np.correlate(c[m], c[:3])
np.correlate(c[:3], c[m], "same") | np.correlate(c[:3], c[m], "full") | np.correlate(n[m], n[:2])
np.correlate(m[m], [True, False]) | np.correlate(x[m], [1, 2], 0) | np.correlate(x[m], [1, 2], "bad")
np.convolve(x[m], x[m][1:], "valid") | np.convolve(x, x[m], "valid") | np.convolve(x[m], np.arange(5.0), "same")
np.convolve(x[m], 2) | np.convolve(x[m], []) | np.convolve(A[m], x) | np.convolve(f, x[m]) | np.convolve(f[m], x[m])
np.convolve([np.inf, 1, 1, 1.0], x[m]) | np.correlate([np.inf, 1, 1.0], x[m], "same") | np.correlate(f, x[m], "full")
np.correlate(c[m], np.append(f[m], 1)) | np.convolve(np.append(1.0, f[m])[[1, 0, 0]], x[m])
"""
AXES = """
np.apply_along_axis(np.sum, 1, A[m]) | np.apply_along_axis(np.sum, 0, A[m]) | np.apply_along_axis(np.cumsum, 0, x[m])
np.apply_along_axis(lambda v: v - v.mean(), 0, A[m]) | np.apply_along_axis(lambda v: v[:2] * 2, 1, A[m])
np.apply_along_axis(np.sort, 0, A[m]) | np.apply_along_axis(lambda v, k: v.sum() * k, 1, A[m], 3)
np.apply_along_axis(np.outer, 1, A[m], A[0]) | np.apply_along_axis(np.max, 0, x[m])
np.apply_along_axis(np.cumsum, 0, np.tile(A[m], 10)) | np.apply_along_axis(np.median, -1, A[:, m[:4]])
np.apply_along_axis(np.sum, 1, A[m][:, A[0] > 0]) | np.apply_along_axis(np.sort, 1, A[m][:, A[0] > 0])
np.apply_along_axis(lambda v: x[v[0]], 1, 3 * np.arange(6)[: m.sum(), None])
np.apply_along_axis(lambda v: v[v > 0].sum(), 0, A[m]) | np.apply_along_axis(lambda v: 1, 1, A[m])
np.apply_over_axes(np.sum, A[m], [0]) | np.apply_over_axes(np.sum, A[m], [0, 1]) | np.apply_over_axes(np.max, A[m], -1)
np.apply_over_axes(lambda a, d: np.mean(a, d, keepdims=True), A[m], (0,)) | np.apply_over_axes(np.cumsum, A[m], 0)
np.unstack(A[m], axis=1) | np.unstack(A[:, m[:4]]) | np.diag_indices_from(A[m][:, :3])
np.diag_indices_from(A[m] @ A[m].T) | np.diag_indices_from(A[m][:, m[:4]]) | np.diag_indices_from(x[m])
np.block([x[m], x[m]]) | np.block([[A[m], A[m]], [A, A]]) | np.block([[A[m]], [A]]) | np.block([A[m], x[m][:, None]])
np.block(x[m]) | np.block([x[m], 1, [2]]) | np.block([[x[m]], [n[m]]]) | np.block((x[m], x[m])) | np.block([A[m], n])
np.block([[A[m] @ A[m].T, np.zeros((x[m].size, 1))], [np.ones((1, x[m].size)), 5]]) | np.block([[x[m]], x[m]])
"""
DIFFERENCES = """
np.gradient(A[m], axis=0) | np.gradient(A[m], axis=1) | np.gradient(A[m]) | np.gradient(x[m], 2.0)
np.gradient(x[m], x[m] * 0) | np.gradient(x[m], x[m] * 0, edge_order=2) | np.gradient(A[m], f[m] * 0, x[:4] * 0)
np.gradient(x[m], edge_order=2) | np.gradient(A[m], 0.5, axis=0, edge_order=2) | np.gradient(A[m], 2, 3)
np.gradient(x[m], x[m] * 2 + np.arange(x[m].size) ** 2) | np.gradient(n[m], np.flatnonzero(m))
np.gradient(n[m], np.flatnonzero(m), edge_order=2) | np.gradient(f[m], np.flatnonzero(m)) | np.gradient(f[m], x[m])
np.gradient(A[m], np.flatnonzero(m), [0, 1, 3, 4]) | np.gradient(A[m], [0, 1, 3, 4], axis=1, edge_order=2)
np.gradient(x, x[m]) | np.gradient(x[m], np.arange(6.0)) | np.gradient(x[m], [0, 1.5, 2, 7]) | np.gradient(c[m])
np.gradient(x[m].astype("f"), np.flatnonzero(m)) | np.gradient(A[m].T, axis=-1) | np.gradient(A[m], 1, 2, axis=(1, 0))
np.gradient(x[m], edge_order=3) | np.gradient(x[m], 1.0, 2.0) | np.gradient(n[m] > 2) | np.gradient(x[m], A[m])
np.gradient(np.stack([A[m], A[m]], 1), axis=0, edge_order=2) | np.gradient(n[m].astype(np.uint8) * 60)
np.gradient(A[:, m[:4]], np.flatnonzero(m[:4]) ** 2 * 1.0, axis=1) | np.gradient(A, x[m].cumsum(), axis=0)
np.trapezoid(A[m], axis=0) | np.trapezoid(A[m], x[m], axis=0) | np.trapezoid(A[m], A[m] * 2, axis=0)
np.trapezoid(A[m], A[m] * 2) | np.trapezoid(x[m], A[m].T) | np.trapezoid(A, x[:4][m[:4]])
np.trapezoid(A[m], np.stack([A[m], A[m]]), axis=-1) | np.trapezoid(A[m], A[m], axis=-2)
np.trapezoid(x[m], [1, 2, 4, 5])
np.unwrap(x[m]) | np.unwrap(A[m] * 4, axis=0) | np.unwrap(A[m] * 9) | np.unwrap(n[m] * 3, period=4) | np.unwrap(f[m])
np.unwrap(x[m], 4.0) | np.unwrap(x[m].astype("f")) | np.unwrap(n[m], period=5) | np.unwrap(x[:0][m[:0]])
"""
BINS = """
np.histogram2d(x[m], n[m], 3) | np.histogram2d(x[m], x[m][::-1], [2, 3]) | np.histogram2d(f[m], x[m], 2)
np.histogram2d(x[m], n[m], [np.array([-9, 0, 4.0]), 3]) | np.histogram2d(x[m], n[m], np.array([-9, 0, 4.0]))
np.histogram2d(x[m], n[m], 4, [[-5, 5], [0, 3]]) | np.histogram2d(x[m], n[m], 2, density=True)
np.histogram2d(x[m], n, 3)
np.histogram2d(x[m], n[m], 3, weights=x[m]) | np.histogram2d(x, n, 3, weights=x[m]) | np.histogram2d(b[m], m[m], 2)
np.histogram2d(f[m], x[m], [[-5, 0, 5], [0, 3, 4]]) | np.histogramdd(A[m], 2) | np.histogramdd(x[m], 3)
np.histogramdd(A[m][:, :2], (2, 3), weights=x[m]) | np.histogramdd((x[m], n[m], x[m]), [2, 1, [-1, 0, 2]])
np.histogramdd(A[m][:, :2].astype("f"), 2, [(-2, 2), (0, 1)]) | np.histogramdd(A[m], 2, weights=n)
np.histogramdd(A[:, :2], 2, weights=n[m]) | np.histogramdd(A[m][:, :2], 3, [None, (0, 1)])
np.histogramdd(A[m], (2, 3))
np.digitize(x, np.sort(x[m])) | np.digitize(x, np.sort(x[m])[::-1]) | np.digitize(x, x[m])
np.digitize(3.0, np.sort(x[m]))
np.digitize(x[m], np.sort(x[m]), right=True) | np.digitize(A, np.sort(x[m])[::-1], right=True)
np.digitize(f, np.sort(x[m])) | np.digitize(n[m], np.unique(n)) | np.digitize(f[m], np.unique(n)[::-1])
np.digitize(x, np.sort(f[m])) | np.digitize(n, np.arange(6)[m]) | np.digitize(k, n[m] * 0) | np.digitize(x, A[m])
np.digitize([1.0, 2], np.arange(6)[m]) | np.digitize(c, np.sort(x[m])) | np.digitize(x.astype("f"), np.sort(x[m]))
"""
FLAT = """
np.unravel_index(np.flatnonzero(A > 0), A.shape) | np.unravel_index(np.flatnonzero(A[m] > 0), A[m].shape)
np.unravel_index(np.flatnonzero(A > 0), A.shape, order="F") | np.unravel_index(n[m], 3) | np.unravel_index(n[m], (5,))
np.unravel_index(n[m], (2, 3)) | np.unravel_index(x[m], (20,)) | np.unravel_index(n[m] - 1, (9, 9))
np.unravel_index(n[m].astype(np.uint8), (k, 5)) | np.unravel_index(n[m], (0, 2))
np.unravel_index(n[m][:, None], (2, 3, 2))
np.ravel_multi_index((n[m], n[m][::-1]), (5, 5)) | np.ravel_multi_index(np.nonzero(A[m] > 0), A[m].shape)
np.ravel_multi_index((n[m], n[m]), (3, 5)) | np.ravel_multi_index((n[m], n[m]), (3, 4), mode="clip")
np.ravel_multi_index((n[m] - 3, n[m]), (3, 4), mode=("wrap", "clip"), order="F")
np.ravel_multi_index((n[m], 1), (5, 2))
np.ravel_multi_index(np.stack([n[m], n[m]]), (5, 6)) | np.ravel_multi_index((n[m],), (0,), mode="wrap")
np.ravel_multi_index((n[m], x[m]), (5, 5)) | np.ravel_multi_index((n[m],), (5, 5))
np.resize(x[m], 5) | np.resize(x[m], (2, 4)) | np.resize(A[m], (3, 3)) | np.resize(n[m], x[m].size + 2)
np.resize(n[m], (2, x[m].size)) | np.resize(x[m], (x[m].size, x[m].size)) | np.resize(x[m], -1) | np.resize(x[m], ())
np.resize(x[:0][m[:0]], 3) | np.resize(c[m], (2, 0)) | np.resize(A[:, m[:4]], (2, 2))
np.packbits(m[m]) | np.packbits(np.tile(n[m], 5)) | np.packbits(A[m] > 0, axis=0) | np.packbits(A[m] > 0, axis=1)
np.packbits(np.tile(n[m], 3), bitorder="little") | np.packbits(A[m] > 0) | np.packbits(x[m])
np.unpackbits(n[m].astype(np.uint8)) | np.unpackbits(n[m].astype(np.uint8), count=0) | np.unpackbits(n[m])
np.unpackbits(n[m].astype(np.uint8), count=-3) | np.unpackbits(np.packbits(m[m]), count=x[m].size)
np.unpackbits((n[m][:, None] * [3, 5]).astype(np.uint8), axis=1, bitorder="little", count=5)
np.unpackbits(np.tile(n[m], (2, 1)).astype(np.uint8), axis=0)
"""
TABLES = [POLYNOMIALS, PIECEWISE, VECTORS, AXES, DIFFERENCES, BINS, FLAT]


def expressions(table):
    # `|` between expressions has blanks around it, and stands in no expression
    return [e.strip() for line in table.strip().splitlines() for e in line.split(" | ")]


@pytest.mark.slow_but_every(10)
@pytest.mark.parametrize("expression", [e for table in TABLES for e in expressions(table)])
def test_expressions(expression, backend):
    check(expression, backend)


#: Results that have another dtype or class, or in NumPy any values, if there are no elements.
UNLESS_EMPTY = """
np.polyval(x[m], 2.0) | np.polyval(x[m].astype("f"), x[:2].astype("f")) | np.polyval(n[m].astype(np.uint8), b)
np.polyval(c[m], A[0]) | np.polyval(x[m], n) | np.polyval(f[m], 0.5) | np.polyval(x[m], k)
np.histogramdd(A[m].astype("f"), 2) | np.histogram2d(x[m].astype("f"), x[m].astype("f"), 3)
np.unpackbits(np.tile(n[m], (2, 1)).T.astype(np.uint8), axis=0, count=20)
np.unpackbits(n[m].astype(np.uint8), count=10)
np.unpackbits(np.tile(n[m], (2, 1)).T.astype(np.uint8), axis=0, count=k)
"""


@pytest.mark.parametrize("expression", expressions(UNLESS_EMPTY))
def test_expressions_of_some_elements(expression, backend):
    check(expression, backend, SELECTIONS[1:])


@pytest.mark.parametrize("function", [lambda x: np.polyval(x[x > 9], 2.0), lambda x: np.polyval(x[x > 9], [1, 2])])
def test_numpy_computes_no_coefficients(function):
    x = np.arange(3.0)
    with pytest.raises(UnimplementedError, match="of no coefficients"):
        cyxla.jit(function)(x)
    got, want = cyxla.jit(function, fallback="numpy")(x), function(x)
    assert (type(got), got.dtype) == (type(want), want.dtype)


ERRORS = {
    "bins": (lambda x: np.digitize(x, x[x != 9]), ValueError, "monotonically increasing or decreasing"),
    "flat index": (lambda x: np.unravel_index(np.flatnonzero(x), (1, 3)), ValueError, "index 3 is out of bounds"),
    "traced shape": (
        lambda x: np.unravel_index(np.flatnonzero(x), (x[x > 0].size, 1)), ValueError, "index 3 is out of bounds",
    ),
    "indices": (lambda x: np.ravel_multi_index((np.flatnonzero(x),), (3,)), ValueError, "invalid entry"),
    "diagonal": (lambda x: np.diag_indices_from(np.outer(x[x > 0], x)), ValueError, "of equal length"),
    "gradient": (lambda x: np.gradient(x[x > 1], edge_order=2), ValueError, "too small"),
    "points": (lambda x: np.histogram2d(x[x > 0], x), ValueError, "the same length"),
    "rows": (lambda x: np.apply_along_axis(np.sum, 1, np.outer(x[x > 9], x)), ValueError, "any iteration dimensions"),
    "correlation": (lambda x: np.correlate(x[x > 9], x), ValueError, "cannot be empty"),
}  # fmt: skip


@pytest.mark.parametrize("function, kind, message", ERRORS.values(), ids=ERRORS)
def test_errors_of_runs(function, kind, message, backend):
    x = np.array([1.0, -2, 0, 3])
    with pytest.raises(kind):
        function(x)
    with pytest.raises(kind, match=message):
        cyxla.jit(function, platform=backend)(x)


REFUSED = {
    "constants": (lambda x: np.polyint(x[x > 0], 2, x[x > 0]), "be the constants of np.polyint"),
    "rows": (lambda x: np.polyadd(np.outer(x[x > 0], x), x), "be passed to np.polyadd unless it is a vector"),
    "components": (lambda x: np.cross(x[x > 0], x[:3]), "have the components of the vectors of np.cross"),
    "sizes": (
        lambda x: np.apply_along_axis(lambda v: v[v > 1], 0, np.outer(x[x > 0], x)),
        "be the result of a function of np.apply_along_axis",
    ),
    "edges": (lambda x: np.histogram2d(x, x, x[x > 0]), "be the bins of np.histogram2d"),
    "edges of points": (lambda x: np.histogramdd(x, [x[x > 0]]), "be the bins of np.histogramdd"),
    "coordinates": (lambda x: np.histogramdd(np.outer(x, x[x > 0])), "be the points of np.histogramdd"),
    "period": (lambda x: np.unwrap(x[x > 0], period=x[x > 0]), "be the period or the discontinuity of np.unwrap"),
}


@pytest.mark.parametrize("function, use", REFUSED.values(), ids=REFUSED)
def test_refusals(function, use):
    with pytest.raises(TraceError, match=f"cannot {use}") as caught:
        cyxla.jit(function)(np.array([3.0, -1, 2, 1]))
    assert "test_sized_polynomials.py" in caught.value.where


def test_functions_of_pieces_without_elements_are_not_called(backend):
    def function(x):
        y = x[x > 0]
        return np.piecewise(y, [y > 5, y > 1], [lambda v: v / v.max(), lambda v: v[0] + v]), y.max()

    compiled = cyxla.jit(function, platform=backend)
    for x in (np.array([1.0, -2, 3, 9]), np.array([0.5, 1]), np.array([7.0, 8])):
        for got, want in zip(compiled(x), function(x), strict=True):
            np.testing.assert_allclose(got, want)
    with pytest.raises(ValueError, match="zero-size array"):
        compiled(-np.ones(4))


DIFFERENTIATED = {
    "polyval": lambda x, y: np.polyval(x[x > -9], y[:, 0]).sum() + np.polyval(y[0], x[x > 0]).sum(),
    "polynomials": lambda x, y: (np.polymul(np.polyint(x[x > 0]), np.polyder(y[:, 0][x > 0])) ** 2).sum(),
    "vander": lambda x, y: (np.vander(x[x > -9], 3) ** 2).sum() + np.vander(x[x > 0]).sum(),
    "piecewise": lambda x, y: np.piecewise(x[x > -9], [x[x > -9] < 0], [np.exp, lambda v: v**2]).sum(),
    "cross": lambda x, y: (np.cross(y[x > 0], y[0]) ** 2).sum(),
    "gradient": lambda x, y: (np.gradient(y[x > -9][:, 0], np.cumsum(np.abs(x[x > -9])), edge_order=2) ** 2).sum(),
    "trapezoid": lambda x, y: np.trapezoid(y[x > -9], x[x > -9], axis=0).sum(),
    "convolve": lambda x, y: (np.convolve(x[x > 0], y[:, 0], "same") ** 2).sum(),
    "along": lambda x, y: np.apply_along_axis(lambda v: v.sum() ** 2, 0, y[x > -0.5]).sum(),
}


@pytest.mark.parametrize("function", DIFFERENTIATED.values(), ids=DIFFERENTIATED)
def test_gradients(function):
    rng = np.random.default_rng(1)
    values = [rng.normal(size=6), rng.normal(size=(6, 3))]
    got = cyxla.jit(cyxla.grad(function, (0, 1)))(*values)
    for k, value in enumerate(values):
        for place in np.ndindex(value.shape):
            step = np.zeros_like(value)
            step[place] = 1e-6
            after, before = ([v + s * step if j == k else v for j, v in enumerate(values)] for s in (1, -1))
            want = (function(*after) - function(*before)) / 2e-6
            np.testing.assert_allclose(got[k][place], want, rtol=1e-4, atol=1e-5)
