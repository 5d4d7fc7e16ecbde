"""Segments, windows and parts of arrays whose size is known at run time, and NumPy's functions that write to them."""

import numpy as np
import pytest
from support.functions.sized import check

import cyxla
from cyxla.errors import TraceError, UnimplementedError

REDUCEAT = """
np.add.reduceat(x[m], [0, 1]) | np.add.reduceat(x[m], [0, 2, 1, 1]) | np.add.reduceat(x, np.flatnonzero(m))
np.add.reduceat(A[m], np.flatnonzero(x[m] > 0), axis=0) | np.add.reduceat(A[m], [0, 2], axis=1)
np.multiply.reduceat(A[m], np.flatnonzero(A[0] > 0), axis=-1) | np.maximum.reduceat(f, np.flatnonzero(m))
np.minimum.reduceat(f[m], np.flatnonzero(m[m])) | np.logical_or.reduceat(x, np.flatnonzero(m))
np.logical_and.reduceat(x, np.flatnonzero(m)) | np.bitwise_or.reduceat(n, np.flatnonzero(m))
np.bitwise_and.reduceat(n, np.flatnonzero(m)) | np.bitwise_xor.reduceat(b, np.flatnonzero(m))
np.add.reduceat(b, np.flatnonzero(m)) | np.add.reduceat(m, np.flatnonzero(m)) | np.add.reduceat(c, n[m])
np.maximum.reduceat(c, np.flatnonzero(m)) | np.add.reduceat(x, n) | np.add.reduceat(x, n[m]) | np.add.reduceat(x, i)
np.add.reduceat(x, n[m] + 3) | np.add.reduceat(x, n[m] - 3) | np.add.reduceat(x, x[m]) | np.add.reduceat(x, m[m])
np.add.reduceat(x, [m.sum(), 0]) | np.add.reduceat(x.astype(np.float32), n[m], dtype=float)
np.add.reduceat(x, n[m], dtype=np.int32) | np.gcd.reduceat(n, np.flatnonzero(m)) | np.fmax.reduceat(f, n[m])
np.add.reduceat(x[:0][m[:0]], [0]) | np.add.reduceat(x[m], []) | np.add.reduceat(x[m], A[m]) | np.add.reduceat(x[m], 0)
"""
OTHER_METHODS = """
np.add.accumulate(b[m], dtype=float) | np.subtract.accumulate(x[m]) | np.multiply.accumulate(A[m], 1)
np.add.reduce(x[m], dtype=np.float32) | np.add.reduce(x[m], initial=5) | np.maximum.reduce(x[m], initial=5)
np.hypot.reduce(x[m]) | np.gcd.reduce(n[m]) | np.logaddexp.reduce(A[m], axis=1) | np.multiply.reduce(A[m], 1, None)
np.add.reduce(A[m], axis=(0, 1), keepdims=True)
"""
WINDOWS = """
np.lib.stride_tricks.sliding_window_view(x[m], 2) | np.lib.stride_tricks.sliding_window_view(x[m], 3).mean(axis=-1)
np.lib.stride_tricks.sliding_window_view(x[m], 0) | np.lib.stride_tricks.sliding_window_view(x[m], 9)
np.lib.stride_tricks.sliding_window_view(x[m], -1) | np.lib.stride_tricks.sliding_window_view(A[m], 2, axis=1)
np.lib.stride_tricks.sliding_window_view(A[m], 2, axis=0) | np.lib.stride_tricks.sliding_window_view(A[m], (2, 3))
np.lib.stride_tricks.sliding_window_view(A[m], (2, 2), (0, 0)) | np.lib.stride_tricks.sliding_window_view(A[m], 2)
"""
PARTS = """
np.split(x, [m.sum()]) | np.split(x, [1, m.sum()]) | np.split(A, [m.sum()], axis=1) | np.split(x[m], i) | np.split(x, i)
np.array_split(A, [k, m.sum()]) | np.hsplit(A, [m.sum() // 2]) | np.vsplit(A, [m.sum() // 2]) | np.split(x[m], [-1])
np.split(A[m], [m.sum() // 2], axis=1) | np.split(A[m], 2, axis=1) | np.hsplit(x[m], [1, m.sum() - 1])
np.split(x[m], [4, 1]) | np.array_split(x[m], 4) | np.array_split(x[m], k + 1)
"""
TABLES = {"reduceat": REDUCEAT, "other methods": OTHER_METHODS, "windows": WINDOWS, "parts": PARTS}

WRITES = """
a, b = np.split(x, [m.sum()]); a += 1; b[:] = 0; return x
w = np.append(x[m], [1, 2, 3]); v = np.lib.stride_tricks.sliding_window_view(w, 2); w[0] = 55; return v, w
w = np.append(x[m], [1, 2, 3]); v = np.lib.stride_tricks.sliding_window_view(w, 2); v[0] = 55; return v, w
np.add.accumulate(x[m], out=x[m]); y = x[m]; np.add.accumulate(y, out=y); return y
y = n[m]; np.add.accumulate(x[m] / 2, out=y); return y
y = np.zeros(m.sum()); np.add.reduceat(x, np.flatnonzero(m), out=y); return y
"""
PUT = """
y = x[m]; np.put(y, [0, -1], [3.0, 4.0]); return y
y = x[m]; np.put(y, [0, 7, -9], [3.0, 4.0], mode="clip"); return y
y = x[m]; np.put(y, [1, 7, -9], [3.0, 4.0, 5.0], mode="wrap"); return y
y = x[m]; y.put([0], 3); return y
y = x[m]; np.put(y, np.flatnonzero(y > 0), np.arange(3)); return y
y = x[m]; np.put(y, n[m] * 0, x[m]); return y
y = x[m]; np.put(y, [], 2.5); return y
y = x[m]; np.put(y, [0], []); return y
np.put(x, np.flatnonzero(m), x[f > 0]); return x
np.put(x, [1, 2], x[x > 100]); return x
np.put(x, [100], x[x > 100]); return x
np.put(x, [1, 2], x[m]); return x
np.put(x, n[m] + 4, n[m]); return x
np.put(x, n[m] + 4, n[m], "wrap"); return x
np.put(x, n[m] - 8, n[m], "clip"); return x
np.put(x, x[m], 1); return x
np.put(x, n[m], 1, "no"); return x
np.put(A, np.flatnonzero(m) * 2, x[m]); return A
np.put(A.T, np.flatnonzero(m) * 2, x[m]); return A
np.put(A[:, 1:], np.flatnonzero(m) * 2, x[m]); return A
np.put(A, np.flatnonzero(m) * 4 - 23, x[m]); return A
np.put(A[: m.sum()], np.arange(m.sum()), 7); return A
np.put(x[: m.sum()], [0], 7); return x
np.put(n, np.flatnonzero(m), 2.5); return n
y = A[m]; np.put(y, [0, 3, -1], [1, 2, 3]); return y
y = A[m]; np.put(y.T, [0, 3, -1], [1, 2, 3]); return y
y = A[m]; np.put(y, np.flatnonzero(y > 0), x[m]); return y
y = x.astype(np.float32)[m]; np.put(y, [0, 1], c[m].real / 3); return y
np.put(m, np.flatnonzero(m), n[m]); return m
np.put(A, n[m][:, None] + i, n[m]); return A
"""
UNDER_MASKS = """
np.place(x, m, x[m] * 2); return x
np.place(x, x > 0, x[m]); return x
np.place(x, m, x[x > 100]); return x
np.place(x, x > 1000, x[m]); return x
np.place(A, A > 0, x[m]); return A
np.place(A[:, 1:], A[:, 1:] > 0, n[m]); return A
y = A[m]; np.place(y, y > 0, [1, 2, 3]); return y
y = A[m]; np.place(y.T, y.T > 0, [1, 2, 3]); return y
np.place(x[: m.sum()], m[: m.sum()], [1, 2]); return x
np.place(x[: m.sum()], m, [1, 2]); return x
np.place(x, m[m], [1, 2]); return x
np.place(A[: m.sum(), :k], m[m][:, None] & (n[:2] > 1), [1, 2]); return A
y = n[m]; np.place(y, y > 1, 2.5); return y
y = n[m]; np.place(y, y > 1, x[:3]); return y
y = x[m]; np.place(y, y > 1, []); return y
np.putmask(x, m, x[m]); return x
np.putmask(x, m, x * 2 + x[m].sum()); return x
np.putmask(x, x > 0, x[x > 100]); return x
np.putmask(A, A > 0, x[m]); return A
y = A[m]; np.putmask(y, y > 0, [1, 2, 3]); return y
y = A[m]; np.putmask(y, y > 0, y * 2); return y
y = A[m]; np.putmask(y, y > 0, []); return y
np.putmask(x[: m.sum()], m[: m.sum()], 3); return x
np.putmask(x[: m.sum()], m, 3); return x
y = n[m]; np.putmask(y, y > 0, x[m]); return y
"""
COPYTO = """
np.copyto(x, x[m]); return x
np.copyto(A, A[m]); return A
np.copyto(A[: m.sum()], A[m]); return A
np.copyto(A[: m.sum()], A[0]); return A
np.copyto(A[: m.sum(), k:], x[m][:, None]); return A
np.copyto(A[: m.sum(), k:], x[m][None, :, None]); return A
y = x[m]; np.copyto(y, n[m]); return y
y = n[m]; np.copyto(y, x[m]); return y
y = n[m]; np.copyto(y, x[m], casting="unsafe"); return y
y = n[m]; np.copyto(y, 1.5); return y
y = n[m]; np.copyto(y, 2); return y
y = x[m]; np.copyto(y, n[m], where=m[m]); return y
np.copyto(x[: m.sum()], 1.0, where=x[: m.sum()] > 2); return x
np.copyto(x[: m.sum()], 1.0, where=x > 2); return x
np.copyto(x, 1.0, where=m[m]); return x
np.copyto(A[: m.sum()], 1.0, where=A[0] > 0); return A
y = x[m]; np.copyto(y, 1.0, where=y); return y
y = x[m]; np.copyto(y, x[m][::-1], where=y[None] > 0); return y
y = c[m]; np.copyto(y, x[m]); return y
y = x[m]; np.copyto(y, c[m]); return y
y = b[m]; np.copyto(y, n[m]); return y
"""
DIAGONALS = """
K = np.zeros((5, 4)); np.fill_diagonal(K, x[m]); return K
K = np.zeros((9, 2)); np.fill_diagonal(K, x[m], wrap=True); return K
K = np.zeros((6, 6)); np.fill_diagonal(K[: m.sum(), : m.sum()], 1.0); return K
K = np.zeros((6, 6)); np.fill_diagonal(K[: m.sum(), :k], x[m]); return K
K = np.zeros((6, 6)); np.fill_diagonal(K[: m.sum(), :k], [1, 2, 3], True); return K
y = A[m]; np.fill_diagonal(y, 7); return y
y = A[m]; np.fill_diagonal(y, x[:2], wrap=True); return y
y = A[m].T; np.fill_diagonal(y, n[:2]); return y
y = n[m][:, None] * n[m]; np.fill_diagonal(y, [1.5, 2.5]); return y
y = n[m][:, None] * n[m]; np.fill_diagonal(y, []); return y
y = x[m]; np.fill_diagonal(y, 1); return y
K = np.zeros((6, 6, 6)); np.fill_diagonal(K[: m.sum(), : m.sum(), : m.sum()], x[:3]); return K
K = np.zeros((6, 6, 6)); np.fill_diagonal(K[: m.sum(), : m.sum(), :3], x[:3]); return K
"""
ALONG_AXIS = """
np.put_along_axis(A, n[m][:, None] % 4, 0.0, 1); return A
np.put_along_axis(A[: m.sum()], n[m][:, None] % 4, 0.0, 1); return A
np.put_along_axis(A, n[:, None] % 4, x[m][:, None], 1); return A
y = A[m]; np.put_along_axis(y, np.argsort(y, axis=1)[:, :2], [7.0, 8.0], 1); return y
y = A[m]; np.put_along_axis(y, np.argsort(y, axis=0), np.arange(4.0), 0); return y
y = A[m]; np.put_along_axis(y, np.argmax(y, axis=1)[:, None], x[m][:, None], axis=-1); return y
y = x[m]; np.put_along_axis(y, np.argsort(y), np.arange(y.size), 0); return y
y = x[m]; np.put_along_axis(y, np.argsort(y), y * 2, None); return y
y = A[m]; np.put_along_axis(y, np.argsort(x[m]), x[m], None); return y
np.put_along_axis(x, np.flatnonzero(m), x[m] * 2, 0); return x
np.put_along_axis(A, np.flatnonzero(m), x[m] * 2, None); return A
np.put_along_axis(A, np.flatnonzero(m), x[m] * 2, 0); return A
np.put_along_axis(A, x[m][:, None], 2, 1); return A
"""
AT = """
K = np.zeros((6, 4)); np.add.at(K, (np.arange(6)[m], (n % 4)[m]), x[m]); return K
K = np.zeros((6, 4)); np.add.at(K, (np.arange(6)[m], (n % 4)[m]), 1.5); return K
K = np.zeros((6, 4)); np.add.at(K, (np.arange(6)[m], 1), 1.5); return K
K = np.zeros((6, 4)); np.add.at(K, (slice(k, None), (n % 4)[m]), 2); return K
K = np.zeros((6, 4)); np.add.at(K, (slice(m.sum()), slice(k)), 2); return K
K = np.zeros((6, 4)); np.add.at(K, ((n % 4)[m][:, None], i), x[m][:, None]); return K
K = np.zeros((6, 4)); np.add.at(K, ((n % 4)[m][:, None], (n % 3)[m]), x[m]); return K
K = np.zeros((6, 4)); np.add.at(K, ((n % 4)[m], (n % 3)[n > 1]), 1); return K
K = np.zeros((6, 4)); np.add.at(K, ((n % 4)[m], Ellipsis), A[m]); return K
K = np.zeros((6, 4)); np.add.at(K, (m, i[0]), x[m]); return K
K = np.zeros((6, 4)); np.add.at(K, m, x[m][:, None]); return K
np.add.at(A, (m, slice(1, 3)), x[m][:, None]); np.add.at(A, (m, [1, 1, 2]), x[:3]); return A
np.add.at(n, m, x[m] / 2); return n
np.add.at(x, n[m] - 5, [1.0]); np.add.at(x, n[m], x[:2]); return x
np.add.at(x, n[m] + 3, 1.0); return x
np.add.at(x, n[m], x[m][:, None]); return x
np.add.at(x, n[m][:, None] + np.array([0, 1]), x[m][:, None]); return x
np.add.at(x, n[m][:, None] + np.array([0, 1]), 1.0); return x
np.add.at(n, n[m], x[m] / 2); np.multiply.at(n, n[m], 2.5); return n
np.maximum.at(x, n[m], x[m]); np.subtract.at(x, n[m], 2); np.negative.at(x, n[m]); return x
np.logical_or.at(m, n[n > 2], True); return m
y = x[m]; np.add.at(y, [0, -1, 0], [1, 2, 3]); return y
y = x[m]; np.add.at(y, np.argsort(y)[:2], y[:2]); return y
y = x[m]; np.add.at(y, slice(1, None), 2); np.add.at(y, y > 0, y[y > 0]); return y
y = A[m]; np.add.at(y, (slice(None), [0, 0, 1]), x[m][:, None]); return y
y = A[m]; np.add.at(y, (np.argsort(x[m]), n[m] % 4), x[m]); return y
y = A[m]; np.add.at(y.T, n[m] % 4, 1); return y
y = A[m]; np.add.at(y, (y[:, 0] > 0, 1), y[y[:, 0] > 0, 1]); return y
np.add.at(A[: m.sum(), :k], (np.arange(m.sum()), n[m] % 2), x[m]); return A
np.add.at(x[: m.sum()], n[: m.sum()] * 0, x[m]); return x
np.add.at(x, n[m]); return x
np.negative.at(x, n[m], 2); return x
"""
PROGRAMS = WRITES + PUT + UNDER_MASKS + COPYTO + DIAGONALS + ALONG_AXIS + AT
X, INDICES = np.arange(8.0) - 3, np.array([0, 2, 2, 1, 5, 3, 0, 1])
MATRIX = np.arange(48.0).reshape(8, 6)
IN_PLACE = {
    "put": lambda x, a, i: np.put(x, np.flatnonzero(x > 0), 3),
    "put, reversed": lambda x, a, i: np.put(x[::-1], np.flatnonzero(x > 0), 3),
    "put, transposed": lambda x, a, i: np.put(a.T, np.flatnonzero(a[0] > 2), 3),
    "place": lambda x, a, i: np.place(x, x > 0, x[x < 0]),
    "putmask": lambda x, a, i: np.putmask(x, x > 0, x[x < 0]),
    "copyto": lambda x, a, i: np.copyto(x[: i.max()], 7),
    "fill_diagonal": lambda x, a, i: np.fill_diagonal(a[: i.max(), : i.max()], 7),
    "put_along_axis": lambda x, a, i: np.put_along_axis(a[: i.max()], i[:5, None], -1, 1),
    "at": lambda x, a, i: np.add.at(a, (i[i > 1], i[i > 1] - 2), 1),
    "accumulate": lambda x, a, i: np.add.accumulate(x[: i.max()], out=x[: i.max()]) is None,
}
REFUSED = {
    "reduceat": (lambda x: np.subtract.reduceat(x, np.flatnonzero(x > 0)), "be passed to np.subtract.reduceat"),
    "parts": (lambda x: np.split(x, np.flatnonzero(x > 0)), "the number of parts is known at run time only"),
    "windows": (
        lambda x: np.lib.stride_tricks.sliding_window_view(x[x > 0], 2, writeable=True), "overlapping windows share",
    ),
}  # fmt: skip


def expressions(table):
    return [e.strip() for line in table.strip().splitlines() for e in line.split(" | ")]


@pytest.mark.slow_but_every(8)
@pytest.mark.parametrize("expression", [e for table in TABLES.values() for e in expressions(table)])
def test_expressions(expression, backend):
    check(expression, backend)


@pytest.mark.slow_but_every(8)
@pytest.mark.parametrize("program", [line for line in PROGRAMS.splitlines() if line])
def test_writes(program, backend):
    check(program.replace("; ", "\n"), backend)


@pytest.mark.parametrize("name", IN_PLACE)
def test_arguments_are_written_in_place(name, backend):
    want, got = ([v.copy() for v in (X, MATRIX, INDICES)] for _ in range(2))
    IN_PLACE[name](*want)
    cyxla.jit(IN_PLACE[name], platform=backend)(*got)
    for array, wanted in zip(got, want, strict=True):
        np.testing.assert_array_equal(array, wanted)


def test_windows_are_read_only(backend):
    got = cyxla.jit(lambda x: np.lib.stride_tricks.sliding_window_view(x[x > 0], 2), platform=backend)(X)
    assert not got.flags.writeable


@pytest.mark.parametrize("count", [1, 2, 7, 64, 100])
def test_segments_of_many_sizes(count, backend):
    rng = np.random.default_rng(count)
    x, starts = rng.normal(size=100), rng.integers(0, 50, count)
    mask = np.arange(100) % 2 == 0
    got = cyxla.jit(lambda x, mask, i: np.add.reduceat(x[mask], i), platform=backend)(x, mask, starts)
    np.testing.assert_allclose(got, np.add.reduceat(x[mask], starts), rtol=1e-9, atol=1e-12)


def test_gradients_of_segments(backend):
    def function(x):
        return (np.multiply.reduceat(x[x > 0], [0, 2]) ** 2).sum()

    x = np.array([1.0, 2, -1, 3, 4, -2])
    got = cyxla.jit(cyxla.grad(function), platform=backend)(x)
    want = [(function(x + step) - function(x - step)) / 2e-6 for step in 1e-6 * np.eye(6)]
    np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("function, text", REFUSED.values(), ids=REFUSED)
def test_refusals(function, text):
    with pytest.raises(TraceError) as caught:
        cyxla.jit(function, fallback="error")(X)
    assert text in str(caught.value)


def test_other_ufuncs_reduce_no_segments_at_traced_indices():
    with pytest.raises(UnimplementedError, match=r"subtract\.reduceat with traced indices"):
        cyxla.jit(lambda x, i: np.subtract.reduceat(x, i), fallback="error")(X, INDICES)
