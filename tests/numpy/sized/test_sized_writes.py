"""Writes to arrays of run-time size, by them, and of them."""

import numpy as np
import pytest
from support.functions.sized import check

import cyxla

BODIES = {
    "element": "y = x[m][:3].copy()\ny[1:] = 7\nreturn y, x",
    "a copy, not a view": "y = x[m]\ny[...] = 0\nreturn x, y",
    "in place": "y = x[m]\ny += 1\ny *= y\nreturn y",
    "in place, by another dtype": "y = n[m]\ny += 2.5\nreturn y",
    "slice": "y = x[m]\ny[1:] = 5\ny[:-1] += 2\nreturn y",
    "through a view": "y = x[m]\nz = y[1:]\nz[:] = 4\nz *= 2\nreturn y, z",
    "through a reversed view": "y = x[m]\nz = y[::-1]\nz[:2] = k\nreturn y, z",
    "through a strided view": "y = x[m]\ny[::2] = 1\ny[1::2] += 3\nreturn y",
    "through a view of the bits": "y = x[m]\nz = y.view(np.int64)\nz += 1\nz[: k] |= 1\nreturn y, z",
    "a diagonal sees writes": "y = A[m]\nv, w = y.diagonal(1), np.diag(A[:k])\ny += 1\nA *= 2\nreturn v, w",
    "a diagonal is read-only": "y = A[m]\nnp.diag(y)[...] = 1\nreturn y",
    "a grid of views": "y = x[m]\nr, c = np.meshgrid(y, i, copy=False)\ny += 1\nreturn r, c",
    "a sparse grid of views": "y = x[m]\nr = np.meshgrid(y, i, copy=False, sparse=True)[0]\nr += 1\nreturn y, r",
    "the same array as another dtype": "y = x[m]\nz = y.astype(float, copy=False)\ny += 1\nreturn z",
    "a reshaped copy": "y = x[:k].reshape(1, -1, copy=True)\ny += 1\nreturn x, y",
    "a reshaped copy of rows": "y = np.reshape(A[:k], -1, copy=True)\ny *= 2\nreturn A, y",
    "a squeezed row sees writes": "y = A[:k][:1]\nv = np.squeeze(y, 0)\nA *= 3\nv += 1\nreturn v.copy(), A",
    "a broadcast element sees writes": "y = x[m]\nb = np.broadcast_to(y[:1], y.shape)\ny *= 3\nreturn b.copy()",
    "a broadcast column sees writes": "y = A[:k]\nb = np.broadcast_to(y[:, :1], y.shape)\nA *= 3\nreturn b.copy()",
    "a view sees writes": "y = x[m]\nz = y[1:]\ny[...] = 3\nreturn z",
    "an element as an array": "y = x[k:]\nz = y[..., 0]\nz[()] += 5\nA[:k][..., 0, 1] *= 2\nreturn x, y, z, A",
    "rows": "y = A[m]\ny[:, 1] = 0\ny[..., 0] = x[m]\nreturn y",
    "columns": "y = A[m]\ny[:, i] = i * 1.0\ny[:] = A[0]\nreturn y",
    "transposed": "y = A[m]\ny.T[1] = x[m]\nreturn y",
    "by a mask": "y = x[m]\ny[y > 0] = -1\ny[y < -1] += 3\nreturn y",
    "by a mask, elements": "y = x[m]\nz = y * 2\ny[y > 0] = z[y > 0]\nreturn y",
    "by indices": "y = A[m]\ny[np.argsort(x[m])] = 1.5\nreturn y",
    "by indices of run-time number": "x[np.flatnonzero(m)] = 9\nx[np.flatnonzero(m)] += n[m]\nreturn x",
    "rows by indices of run-time number": "A[np.flatnonzero(m), 1] = x[m]\nA[np.nonzero(A > 1)] = 0\nreturn A",
    "under the same mask": "x[m] = n[m]\nx[m] += 1\nx[m] *= x[m]\nreturn x",
    "under an equal mask": "x[x > 0] = n[x > 0]\nreturn x",
    "sorted elements under a mask": "x[m] = np.sort(x[m])\nreturn x",
    "rows under a mask": "A[m] = A[m][::-1]\nA[m, 0] = x[m]\nreturn A",
    "of one element under a mask": "x[m] = x[m][:1]\nreturn x",
    "of a part": "x[: m.sum()] = x[m]\nreturn x",
    "of a slice of run-time length": "x[i[0] : i[1] + 1] = 3\nx[i[1] :] += 1\nA[:, i[0] :] = 0\nreturn x, A",
    "of part of a column": "A[i[0] :, 1] = 4\nA[1, i[0] :] += 2\nA[i[0] :, 0] *= A[i[0] :, 1]\nreturn A",
    "of part of a row by an index": "A[i[0] :, i[1]] = 4\nA[-1, None, i[0] :] += k\nreturn A",
    "part of a column": "y = A[i[0] :, 0]\nreturn y, A[None, i[0] :, -1, None], A[i[0] :, i[1]]",
    "augmented, of a slice": "x[i[0] : i[1] + 1] *= 3\nx[i[0] :][1:] += x[0]\nA[i[0] :, 1] -= x[i[0] :]\nreturn x, A",
    "augmented, of another slice": "y = x[i[0] :]\ny *= 2\nx[: y.size] = y\nx[i[0] :] = y\nreturn x",
    "augmented, under a mask": "x[m] *= 3\nA[m, 1:] += 2\nreturn x, A",
    "of known size": "x[:3] = x[m][:3]\nreturn x",
    "of one row": "y = x[:2]\ny[:] = A[m][:, :2]\nreturn y",
    "of one row to run-time size": "y = x[:k]\ny[:] = A[m][:, :1]\nx[:] = A[m, None, :1]\nreturn x, y",
    "of no columns by indices": "y = x[:k]\ny[np.nonzero(m)[0]] = A[m][:, i[m] > 9]\nreturn y",
    "of no rows by indices": "x[i[m]] = A[m][:, m[:4]]\nreturn x",
    "of no rows to rows": "A[np.nonzero(m)[0]] = A[None, m][m[:1] | m[1:2]]\nreturn A",
    "copied under a mask": "y = x[:k]\nnp.copyto(y, A[m][:, :1], where=y > 0)\nreturn y",
    "sort": "y = x[m]\ny.sort()\nreturn y",
    "fill": "y = x[m]\ny.fill(3)\nreturn y",
    "at": "np.add.at(x, np.flatnonzero(m), 2.0)\nnp.add.at(x, n[m], x[m] * 0 + 1)\nreturn x",
    "out": "y = x[m]\nnp.add(y, 1, out=y)\nreturn y",
    "out, under a condition": "y = x[m]\nz = np.zeros(y.size)\nnp.divide(1, y, out=z, where=y > 1)\nreturn y, z",
    "out, under a row of conditions": "y = A[m]\nnp.multiply(y, x[m][:, None], out=y, where=y[:1] > 0)\nreturn y",
    "out, of a view": "y = A[m]\nnp.negative(y[:, 0], out=y[:, 1], where=y[:, 0] > 0)\nreturn y",
}
EAGER = """
def step(j, y):
    return y + j

return cyxla.fori_loop(0, 3, step, x[m])
"""
LOOPS = {
    "carried": EAGER.strip(),
    "shrinks": "return cyxla.while_loop(lambda y: y.sum() > 5, lambda y: y // 2, np.abs(x[m]))",
    "used inside": "y = x[m]\nreturn cyxla.fori_loop(0, 3, lambda j, s: s + y.sum() * j, np.float64(0))",
    "branches": "y = x[m]\nreturn cyxla.cond(k > 1, lambda y: y * 2, lambda y: y + 1, y)",
    "branches of other sizes": "return cyxla.cond(k > 1, lambda: np.sort(x[m]), lambda: x[~m])",
    "scanned": "return cyxla.scan(lambda y, t: (y + t, y.sum()), x[m], x)",
    "rows of known number": "a, *b = A[m].T\nreturn a, b, [c.sum() for c in b], len(A[m].T)",
    "over rows of known number": "s = k\nfor j, c in enumerate(A[m].T):\n    s = s + j * c.sum()\nreturn s",
    "writes to rows": "y = A[m]\nfor c in y.T:\n    c[...] = c - c.sum()\nreturn y",
    "over an empty array": "y = np.unique(x[:0])\nreturn [v + 1 for v in y], len(y), list(y)",
    "nested": "return {'a': [x[m], 1.0], 'b': (A[m], None)}",
    "jit in jit": "return cyxla.jit(lambda y: y + 1)(x[m]) * 2",
}


@pytest.mark.slow_but_every(2)
@pytest.mark.parametrize("name", BODIES)
def test_writes(name, backend):
    check(BODIES[name], backend)


@pytest.mark.parametrize("name", LOOPS)
def test_loops_and_containers(name, backend):
    check(LOOPS[name] + "\n", backend)


def test_a_view_is_assigned_to_the_slice_of_bounds_that_have_changed(backend):
    def function(x, start, stop):
        part = x[start:stop]
        start += 1
        stop += 1
        x[start:stop] = part
        return x

    x, start, stop = np.arange(8.0), np.array(1), np.array(4)
    want = function(x.copy(), start.copy(), stop.copy())
    got = cyxla.jit(function, platform=backend)(x.copy(), start.copy(), stop.copy())
    np.testing.assert_array_equal(got, want)
