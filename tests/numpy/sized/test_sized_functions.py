"""NumPy's functions of arrays of run-time size, with none, one, some and all rows selected."""

import pytest
from support.functions.sized import check

CREATION = """
x[m] | A[m] | A[:, A[0] > 0] | A[A > 0] | A[m, 1] | A[1, A[0] > 0] | A[m][:, None] | A[None, m] | A[m, 1:3]
A[m[:, None] & (A > 0)]
A[np.ix_(m, [1, 0])] | np.ix_(m) | np.ix_(m, i) | np.ix_([True, False], m)
np.nonzero(x) | np.nonzero(A > 0) | np.argwhere(A > 0) | np.argwhere(m) | np.flatnonzero(A > 0) | np.where(m)
np.where(A > 0)
m.nonzero() | np.compress(m, x) | np.compress(m, A, axis=0) | np.compress(m[:3], A, 0) | np.extract(m, x)
np.extract(A > 1, A)
np.extract(m[:4], A) | x.compress(m) | np.take(A, np.flatnonzero(m), axis=0) | x[np.flatnonzero(m)]
A[np.nonzero(A > 1)]
A[np.flatnonzero(m), 1] | A[:, np.flatnonzero(A[0] > 0)] | A[np.flatnonzero(m)[:, None], i]
np.delete(x, i) | np.delete(x, i[0]) | np.delete(x, m) | np.delete(x, f) | np.delete(x, f[:0])
np.delete(A, i, axis=0) | np.delete(x, np.flatnonzero(m))
np.delete(x[m], 0)
np.repeat(x[m], np.minimum(n[m], 3)) | np.repeat(x[m], x[m] > 0) | np.repeat(x[m], np.minimum(n[~m], 3))
np.repeat(A[m], n[m] > 2, axis=0) | np.repeat(np.unique(n), np.minimum(np.unique(n), 3))
np.repeat(x, m) | np.repeat(x, b) | np.repeat(x[m], 2) | np.repeat(A[m], 2, axis=1) | np.repeat(x, np.minimum(n, 3))
np.trim_zeros(np.where(m, 1, 0)) | np.trim_zeros(x * m, "f") | np.trim_zeros(x * m, "b") | np.trim_zeros(x[m])
np.arange(m.sum()) | np.arange(2, m.sum() + 2) | np.arange(m.sum(), -1, -2) | np.arange(m.sum(), dtype=np.int8)
np.zeros(m.sum())
np.ones((m.sum(), 2), np.int32) | np.full((2, m.sum()), k) | np.empty(x[m].shape) * 0 | np.zeros_like(x[m])
np.ones_like(A[m], dtype=int)
np.full_like(x[m], 3) | x[m].copy() | np.copy(x[m]) | np.array(x[m]) | np.asarray(x[m], np.float32)
x[m].astype(np.int64) | np.astype(x[m], "f")
x[i[0] : i[1] + 2] | x[i[0] :] | x[: i[1]] | x[-i[1] :] | x[: -i[0]] | A[i[0] : i[1], 1] | A[:, i[0] :]
x[i[1] : i[2] : -1] | x[i[2] :: 2]
x[m.sum() :] | x[: m.sum()] | x[::-1][: m.sum()] | x[-m.sum() : 100] | A[: m.sum(), ::2] | x[m.sum() : i[0]]
x[: m.sum() : 3]
"""
SETS = """
np.unique(n) | np.unique(n, return_index=True) | np.unique(n, return_inverse=True)
np.unique(n, return_counts=True)
np.unique(n, True, True, True) | np.unique(f) | np.unique(f, equal_nan=False) | np.unique(c) | np.unique(A)
np.unique(A, return_inverse=True)
np.unique(A // 2, axis=0) | np.unique(A // 2, True, True, True, axis=0) | np.unique(A // 2, axis=1) | np.unique(m)
np.unique(n[m]) | np.unique(f[m])
np.unique(n[m], True, True, True) | np.unique(A[m] // 2, axis=0) | np.unique(x[:0]) | np.unique(A[:, :0], axis=0)
np.unique(A[m][:, :0], axis=0) | np.unique_all(n)
np.unique(np.tile(A, 4) // 2, True, True, True, axis=0) | np.unique(np.tile(A[m], 4) // 2, True, True, True, axis=0)
np.unique(np.tile(A, (3, 1)).T, axis=1, return_inverse=True) | np.lexsort(np.tile(A, 4).T[:, ::-1])
np.lexsort([x // 1] + [n // k for k in range(2, 12)]) | np.lexsort([x[m] // 1] + [n[m] // k for k in range(2, 12)])
np.unique_counts(n[m])
np.unique_inverse(n) | np.sort(np.unique_values(n)) | np.union1d(n, i) | np.union1d(n[m], n[~m])
np.intersect1d(n, i) | np.intersect1d(n[m], n)
np.intersect1d(n, i, return_indices=True) | np.intersect1d(n[m], i, return_indices=True) | np.setdiff1d(n, i)
np.setdiff1d(n[m], i)
np.setdiff1d(n, n[m]) | np.setdiff1d(n, i, assume_unique=True) | np.setxor1d(n, i) | np.setxor1d(n[m], i)
np.isin(n[m], i) | np.isin(n, n[m])
np.isin(n, n[m], invert=True) | np.isin(f, f[m]) | np.sort(np.unique(n[m]))[:3].mean() | np.unique(n[m]).size
"""
ELEMENTWISE = """
x[m] * 2 | 2 / x[m] | -x[m] | x[m] ** 2 | x[m] // 2 | x[m] > k | x[m] + x[m] | x[m] + A[m, 0] | A[m] * A[0]
A[m] - A[m].mean(axis=0) | A[m] + x[m][:, None]
x[m][1:] - x[m][:-1] | x[m] + x[:1] | np.where(x[m] > 0, x[m], -1) | np.where(x[m] > 0) | np.clip(x[m], 1, 3)
x[m].clip(0) | np.round(A[m])
np.abs(c[m]) | np.real(c[m]) | c[m].imag | np.conj(c[m]) | np.angle(c[m]) | np.isnan(f[m]) | np.nan_to_num(f[m])
np.exp(A[m]) | np.maximum(x[m], k)
np.select([x[m] > 2, x[m] > 5], [1, 2], 0) | np.isclose(x[m], x[m] + 1e-12) | np.allclose(x[m], x[m])
np.select([x[m] > 2, x[m] > 5], x[:2], 0) | np.select(np.stack([x[m] > 2, x[m] > 5]), x[:2])
np.choose(3, [x[m], x[m]]) | np.choose(-1, [x[m]]) | np.choose([[0], [5]], [x[m], 2]) | np.choose(k + 9, [x[m], n[m]])
np.choose(n[m] % 2, x) | np.choose(n[m] % 3, A[:, :1]) | (n[m] % 2).choose(x[:2]) | np.choose(i[:2] % 2, A[m][:, :2].T)
np.isin(x, x[m], True) | np.isin(x[m], x, invert=True)
np.array_equal(x[m], x[m]) | np.array_equal(x[m], n[m])
np.array_equal(x[m], x) | np.divmod(x[m], 2) | np.modf(A[m]) | np.add(x[m], 1, dtype=np.float32)
np.logical_not(m[m]) | ~m[m] | n[m] % 2 == 0 | n[m] << 1
np.broadcast_arrays(x[m], 1.0) | np.fix(A[m]) | np.sinc(x[m]) | np.choose(n[m] % 2, [x[m], -x[m]])
n[m] ** (n[m] % 3)
2 ** (n - 3)[n > 2] | (n - 3)[n > 2] ** np.minimum((n - 3)[n > 2], 3)
np.power(n[n > 2], (n - 3)[n > 2]) | (n - 9)[m] ** 2
np.hypot(x[m], k) | x[m] + (x[m] > 0) | x[m] * x[m].sum()
"""
REDUCTIONS = """
np.average(A[m], axis=0, weights=x[m]) | np.average(A[m], axis=1, weights=[1, 2, 3, 4]) | np.average(A, 0, x * x)
np.average(A[m][:, A[1] > 0], axis=0, weights=np.arange(x[m].size) + 1)
np.average(A[m][:, A[1] > 0], axis=1, weights=np.arange((A[1] > 0).sum()) + 1, returned=True)
np.average(A[m][:, A[1] > 0], axis=(1, 0), weights=A[m][:, A[1] > 0].T ** 2 + 1, returned=True)
np.average(A[m], axis=0, weights=x) | np.average(A[m], axis=1, weights=x[m])
x[m].sum() | x[m].mean() | x[m].max() | np.min(x[m]) | x[m].prod() | x[m].std() | x[m].var(ddof=1) | m[m].any()
(x[m] > 0).all() | (x[m] > 0).sum()
A[m].sum(axis=0) | A[m].sum(axis=1) | A[m].sum() | A[m].max(axis=0) | A[m].max(axis=1)
A[m].mean(axis=1, keepdims=True) | A[m].T.mean(axis=1) | A[m].T.max(axis=0)
np.argmax(x[m]) | np.argmin(A[m], axis=0) | np.argmax(A[m], axis=1) | np.argmax(A[m]) | np.argmax(f[m])
np.nanargmax(f[m]) | np.nansum(f[m]) | np.nanmean(f[m])
np.nanmax(f[m]) | np.nanmin(A[m], axis=0) | np.ptp(x[m]) | np.count_nonzero(n[m])
np.count_nonzero(A[m] > 0, axis=0) | np.average(x[m]) | np.average(A[m], axis=0)
np.average(x[m], weights=x[m] + 20) | x[m].max(initial=0) | np.sum(x[m], where=x[m] > 0) | np.sum(x[m][:3])
np.cumsum(x[m]) | np.cumprod(A[m], axis=0) | np.cumsum(A[m], axis=1) | np.cumsum(A[m]) | np.nancumsum(f[m])
np.add.reduce(x[m]) | np.maximum.reduce(A[m], axis=0)
np.minimum.reduce(x[m]) | np.add.accumulate(x[m]) | np.maximum.accumulate(x[m]) | np.add.outer(x[m], i)
np.logical_or.reduce(m[m]) | np.bitwise_or.reduce(n[m])
np.median(x[m]) | np.median(A[m], axis=0) | np.median(A[m], axis=1) | np.median(f[m]) | np.median(n[m])
np.nanmedian(f[m]) | np.percentile(x[m], [10, 50, 90]) | np.quantile(x[m], np.ones((0, 3)))
np.quantile(x[m], np.zeros(0)) | np.quantile(n[m], np.zeros(0)) | np.quantile(A[m][:, 4:], 0.3, 0)
np.quantile(A[m][:, m[:4]][:, 4:], 0.3, axis=0) | np.percentile(A[m, :0], 50, axis=0) | np.median(A[m][:, 4:], 0)
np.quantile(x[m], 0.3, method="nearest") | np.quantile(n[m], 0.3) | np.quantile(A[m], [0.2, 0.4], axis=0)
np.quantile(A[m], 0.3, axis=1, keepdims=True) | np.nanpercentile(f[m], 30)
np.quantile(x[m], 0.3, method="hazen") | np.linalg.norm(x[m]) | np.linalg.norm(A[m], axis=0)
np.linalg.norm(A[m], axis=1) | np.linalg.norm(x[m], 1) | np.linalg.norm(A[m])
x[m].sum() / x[m].size | x[m].shape[0] * 2 | A[m].shape | np.shape(x[m]) | np.size(A[m]) | A[m].ndim | np.ndim(A[m])
"""
SORTING = """
np.sort(x[m]) | np.argsort(x[m]) | np.sort(f[m]) | np.argsort(f[m]) | np.sort(c[m]) | np.sort(n[m])[::-1]
np.sort(A[m], axis=0) | np.sort(A[m]) | np.sort(A[m], axis=None)
np.argsort(A[m], axis=0, kind="stable") | x[m][np.argsort(-x[m])] | np.lexsort((x[m], n[m])) | np.sort(m[m])
np.sort(-n[m].astype(np.int8)) | np.sort_complex(x[m])
np.searchsorted(np.sort(x[m]), x) | np.searchsorted(np.sort(f[m]), f, "right") | np.searchsorted(np.sort(x), x[m])
np.searchsorted(np.sort(x[m]), x[m])
np.digitize(x[m], np.array([0.0, 3, 5])) | np.interp(x[m], np.array([0.0, 5]), np.array([1.0, 2]))
np.interp(x, np.sort(c[m]), x[m]) | np.interp(c, np.sort(x[m]), x[m]) | np.interp(x, np.sort(x[m]), c[m])
np.partition(x[m], 0)[0] | np.take_along_axis(x[m], np.argsort(x[m]), 0)
"""
JOINING = """
np.concatenate([x[m], x[~m]]) | np.concatenate([x, x[m]]) | np.concatenate([A[m], A[~m]])
np.concatenate([A[m], A[m]], axis=1) | np.concatenate([A[m], n[m]], axis=None)
np.stack([x[m], x[m] * 2]) | np.stack([x[m], x[m]], axis=1) | np.vstack([x[m], x[m]]) | np.vstack([A[m], A])
np.hstack([x[m], x]) | np.hstack([A[m], A[m]]) | np.append(x[m], 1.5)
np.column_stack([x[m], n[m]]) | np.dstack([x[m], x[m]]) | np.append(x, x[m]) | np.tile(x[m], 2)
np.concatenate(A[m]) | np.concatenate(A[m], axis=None) | np.concatenate(A[m][:, None], 1) | np.stack(A[m])
np.stack(A[m], 1) | np.stack(A[m], axis=-1) | np.vstack(A[m]) | np.hstack(A[m]) | np.column_stack(A[m])
np.dstack(A[m]) | np.vstack(x[m]) | np.hstack(x[m]) | np.column_stack(x[m]) | np.dstack(x[m]) | np.dstack(A[m][:, None])
np.dstack(A[m][..., None, None]) | np.hstack(A[m][:, None]) | np.column_stack(A[m][:, None])
np.concatenate(A[:, A[0] > 0]) | np.stack(A[:, A[0] > 0], 1) | np.dstack(A[:, A[0] > 0])
np.insert(x[m], 0, 7) | np.insert(x[m], -1, [1, 2]) | np.insert(x[m], 1, x[x > 0]) | np.insert(x, k, x[m])
np.insert(x[m], i[0], 2.5) | np.insert(x[m], x[m].size, 4) | np.insert(A[m], 0, 5, axis=0) | np.insert(A[m], 1, 5, 1)
np.insert(A[m], 1, A[0], axis=0) | np.insert(A[m], 0, 3) | np.insert(A[m], 0, A[m], axis=0) | np.insert(n[m], 0, [])
np.insert(A[m], 1, A[m][:, :1].T, axis=1) | np.insert(A[m], 1, [[1.0, 2.0, 3.0, 4.0]], axis=1)
np.tile(x, x[m].size) | np.tile(x[m], (x[m].size, 1)) | np.tile(A, (k, x[m].size)) | np.tile(2.5, x[m].size)
np.repeat(A, n[m]) | np.repeat(A[:1, :2], b[m]) | np.repeat(A[:2], n[m][:1])
np.tile(x[m], (2, 2)) | np.tile(A[m], (1, 2)) | np.roll(x[m], 1) | np.roll(x[m], -2)
np.roll(A[m], 1, axis=0) | np.roll(A[m], 1, axis=1) | np.roll(A[m], 1) | np.flip(x[m]) | np.flip(A[m])
A[m].mT | np.delete(x[m], m[m]) | np.delete(np.unique(n), m[m]) | np.delete(x[m], m[:2])
np.delete(x[m], []) | np.delete(A[m], [], 0)
np.fliplr(A[m]) | np.flipud(A[m]) | np.transpose(A[m]) | A[m].T | np.moveaxis(A[m], 0, 1)
np.expand_dims(x[m], 0) | np.atleast_2d(x[m]) | np.atleast_3d(A[m]) | np.squeeze(A[m][:, :1], axis=1)
A[m].reshape(-1) | A[m].ravel() | A[m].flatten() | A[m].T.ravel() | A[m].reshape(-1, 2)
A[m].reshape(-1, 2, 2) | A[m].reshape(2, -1) | x[m].reshape(-1, 1) | x[m].reshape(1, -1)
x[m].reshape(x[m].shape[0], 1) | A[m].reshape(A[m].shape[0], -1) | A[m].swapaxes(0, 1)
np.convolve(x[m], np.array([1, 2.0, 1])) | np.convolve(x[m], np.array([1, 2.0]), "same")
np.convolve(x[m], np.array([1, 2.0]), "valid") | np.convolve(x[m], n[m])
np.diff(x[m]) | np.diff(A[m], axis=0) | np.diff(A[m]) | np.diff(x[m], n=2) | np.ediff1d(x[m])
np.outer(x[m], 3) + x[m].tolist() | np.hypot(x[m][:, None], x[x > 0].tolist())
np.ediff1d(x[m], to_end=1.0) | np.gradient(x[m]) | np.trapezoid(x[m]) | np.trapezoid(x[m], n[m])
np.cov(x[m], n[m]) | np.cov(A[m].T) | np.histogram(x[m], 3) | np.histogram(x[m], np.array([0, 2, 4.0]))
np.histogram(x[m], 4, (0, 8), weights=n[m])
np.bincount(n) | np.bincount(n, x) | np.bincount(n[m]) | np.bincount(b) | np.bincount(n[m], minlength=9)
np.bincount(np.append(n[m], 1), np.append(x[m], 2), 9)
"""
PRODUCTS = """
A[m] @ A.T | A[m].T @ A[m] | np.dot(x[m], x[m]) | x[m] @ x[m] | x[m] @ A[m] | A.T[:, m] @ x[m] | np.outer(x[m], i)
np.einsum(A[m], [0, 1], A[m], [0, 2], [1, 2]) | np.einsum(A[m], [0, 1], A[0], [1]) | np.einsum(A[m], [0, ...])
np.inner(A[m], A) | np.vdot(c[m], c[m]) | np.matmul(A[m], A.T)
np.einsum("ij,ik->jk", A[m], A[m]) | np.einsum("ij->i", A[m]) | np.einsum("ij,j", A[m], A[0])
np.einsum("i,i", x[m], x[m]) | np.tensordot(A[m], A[m], ((0,), (0,)))
np.tensordot(A[m], A[0], 1) | np.einsum("ij,ij->", A[m], A[m]) | f[m] @ f[m]
A[m] / np.linalg.norm(A[m], axis=1, keepdims=True) | np.vecdot(A[m], A[m]) | np.dot(A[m], A[0])
"""
INDEXING = """
x[m].view(np.int64) | A[m].view(np.uint64)[:, 0] | (x[m] > 0).view(np.int8) | x[m].view() | x[m][::2].view(np.int64)
x[m][0] | x[m][-1] | x[m][1] | x[m][k] | x[m][i] | x[m][[0, -1]] | x[m][1:] | x[m][:-1] | x[m][::-1] | x[m][::2]
x[m][1::2] | x[m][-3:] | x[m][:-3] | x[m][-3:-1] | x[m][::-2] | x[m][4:1:-1]
x[m][-2:4] | x[m][i[2] : i[1]] | x[m][1 : i[1]] | x[m][-i[1] :] | x[m][: i[0] : -1] | x[m][x[m] > 0] | x[m][m[m]]
A[m][m[m]] | A[m][A[m] > 0] | A[m][A[m][:, 0] > 0] | A[m][:, 1] | A[m][1:, 1:3]
A[m][..., 0] | A[m][0] | A[m][i[0]] | A[m][:, i[0]] | A[m][:, i] | A[m][i, i] | A[m][:, ::-1] | A[m][::-1, ::2]
A[m][None, 0] | x[m][None] | x[m][..., None] | x[m][np.argsort(x[m])[:2]] | x[m][n[m] * 0]
A[m][np.arange(A[m].shape[0]), n[m] % 4] | A[m][m[m], 1] | A[m][0, 1] | A[m][0][1:] | A[m].T[1] | A[m].T[:, 0]
A[m].T[:, ::-1] | A[m].T[i] | x[m][()] | x[m][...] | x[n[m]] | A[n[m] % 6, 1]
np.take(x[m], i) | np.take(x[m], -1) | np.take(A[m], i, axis=1) | np.take(A[m], 0, axis=0)
np.take(x[m], i, mode="clip") | np.compress(x[m] > 0, x[m]) | np.nonzero(x[m]) | np.argwhere(A[m] > 0)
"""
LISTS = """
np.array([x[m], n[m]]) | np.array((x[m], x[m]), np.float32) | np.array([[x[m]], [f[m]]]) | np.asarray([A[m], A[m]])
np.array([x[m], n[m]]).T | np.array([x[m], x[:3]]) | np.array([x[m], x[~m]]) | np.array([x[m], 1.0])
np.array(list(zip([x[m], x[m]], [n[m], n[m]]))) | np.ravel([x[m], x[m]]) | np.transpose([x[m], n[m]])
np.mean([x[m], n[m]], axis=0) | np.sum([x[m], x[m]]) | np.max([x[m], n[m]], axis=0) | np.maximum([x[m], x[m]], 2)
np.add.reduce([x[m], n[m]]) | np.hypot([x[m], n[m]], [n[m], x[m]]) | np.dot([x[m], n[m]], x[m])
np.linalg.norm([x[m], x[m]], axis=0) | np.cov([x[m], n[m]]) | np.concatenate([[x[m], x[m]], [n[m], n[m]]])
np.r_[x[m], x] | np.r_[0, np.flatnonzero(m) + 1, len(x)] | np.r_[1:4, x[m]] | np.r_[x[m], [1, 2]] | np.r_[A[m], A]
np.r_[np.float32(1), x[m].astype(np.float32), 2] | np.r_[[n[m], n[m]]] | np.r_[x[m], c[m], k] | np.r_[n[m], i]
np.c_[x[m], n[m]] | np.c_[A[m], x[m]] | np.c_[x[m], x] | np.c_[np.c_[n[m], n[m]], x[m]] | np.c_[x[m], 1.0]
np.diff(np.r_[0, m.astype(int), 0]) | np.nonzero(np.diff(np.r_[0, b, 0]))[0].reshape(-1, 2)
"""
TABLES = {
    "creation": CREATION, "sets": SETS, "elementwise": ELEMENTWISE, "reductions": REDUCTIONS, "sorting": SORTING,
    "joining": JOINING, "products": PRODUCTS, "indexing": INDEXING, "lists": LISTS,
}  # fmt: skip


def expressions(table):
    # `|` between expressions has blanks around it, and stands in no expression
    return [e.strip() for line in table.strip().splitlines() for e in line.split(" | ")]


@pytest.mark.slow_but_every(10)
@pytest.mark.parametrize("expression", [e for table in TABLES.values() for e in expressions(table)])
def test_expressions(expression, backend):
    check(expression, backend)
