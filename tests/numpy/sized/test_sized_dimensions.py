"""NumPy's functions of arrays of which several dimensions have run-time sizes."""

import numpy as np
import pytest
from support.functions.sized_dims import (
    SIZES,
    check_any_size,
    check_sizes,
    compare,
    function_of_sizes,
    random_body,
    values,
)

import cyxla
from cyxla.errors import TraceError

PRODUCTS = """
x @ y | y @ x | x @ w | v @ x | x.T @ x | x @ x.T | np.outer(v, w) | np.dot(x, y) | np.inner(x, x)
np.tensordot(x, y, 1) | np.tensordot(x, x, 2) | np.tensordot(x, x, ((0,), (0,))) | np.einsum("ij,jk->ik", x, y)
np.einsum("ij,ji->", x, y) | np.einsum("ij->ji", x) | np.einsum("ij,j->i", x, w) | np.einsum("i,j->ij", v, w)
np.einsum("ii->i", x @ y) | np.einsum("ii", x @ y) | np.einsum("ij,kj->ik", x, x) | (x @ y) @ (x @ y)
x.T @ (v[:, None] * x) | x @ x.T @ x | np.tril(x @ x.T) @ v | x @ x.T + (1 - np.tri(x.shape[0])) * -1e10
np.matmul(x[None], y[None]) | np.matmul(x[:, None, :], x[:, :, None]) | np.vecdot(x, x) | np.kron(x, y) | np.kron(v, w)
np.linalg.multi_dot([x, y, x]) | ((x[:, None, :] - x[None, :, :]) ** 2).sum(-1) | np.subtract.outer(v, w)
(x[:, :, None] * w).sum((0, 2)) | np.sqrt(((x[:, None] - x[None]) ** 2).sum(2)) | np.einsum("...i,...i", x, x)
"""
REDUCTIONS = """
x.sum() | x.sum(0) | x.sum(1) | x.sum(axis=(0, 1)) | x.mean() | x.mean(0) | x.mean(1, keepdims=True) | x.var(1)
x.std(0) | x.max() | x.max(0) | x.max(1) | x.min(1, keepdims=True) | x.argmax() | x.argmax(0) | x.argmin(1)
(x > 0).any(1) | (x > 0).all() | np.count_nonzero(x > 0, axis=0) | x.prod(1) | np.cumsum(x, 0) | np.cumsum(x, 1)
np.exp(x - x.max(1, keepdims=True)) | x - x.mean(0) | np.cumsum(x) | np.sort(x) | np.sort(x, 0) | np.ptp(x, 1)
np.argsort(x, 1, kind="stable") | np.median(x) | np.median(x, 0) | np.median(x, 1) | np.quantile(x, 0.3, axis=0)
np.quantile(x, [0.3, 0.5], axis=1) | np.quantile(x @ y, 0.3, -1) | np.add.reduce(x, 1) | np.maximum.reduce(x, 0)
np.add.accumulate(x, 1) | np.nansum(x, 1) | np.nanmean(x, 0) | np.nanmax(x, 1) | np.average(x, axis=0)
np.average(x, axis=1, weights=x * 0 + 2) | np.average(x, weights=x * 0 + 2) | np.linalg.norm(x) | np.trapezoid(x)
np.linalg.norm(x, axis=1) | np.linalg.norm(x, axis=0, keepdims=True) | np.diff(x) | np.diff(x, axis=0) | np.unique(x)
np.histogram(x, 3, (0, 5)) | np.trapezoid(x, axis=0) | np.array_equal(x, x) | np.array_equal(x, y) | np.allclose(x, x)
np.array_equal(x, a) | np.searchsorted(np.sort(v), x) | np.isin(x, v) | np.argmax(x[x.sum(1) > 0].ravel())
"""
INDEXING = """
x[1:] | x[:, 1:] | x[1:, 1:] | x[::-1, ::-1] | x[::2, ::-1] | x[0] | x[:, 0] | x[-1, -1] | x[:, None] | x[None]
x[..., None] | x[:, :2] | x[:2, 1:] | x[:k] | x[:k, :k] | x[k:, :k] | a[:k, k:] | a[k : k + 2, : x.shape[1]] | x[k:]
x[x > 0] | x[v > 0] | x[:, w > 0] | x[v > 0][:, w > 0] | x[v > 0, 0] | x[[0, 0]] | x[:, [0, 0]] | x[x[0] > 0]
x[np.arange(v.shape[0])] | x[np.arange(v.shape[0]), 0] | x[np.ix_(v > 0, w > 0)] | x[v > 0][:, :2] | v[v[0] > 0]
x[np.nonzero(v > 0)[0][:, None], np.nonzero(w > 0)[0]] | x[v > 0, :][:, ::-1] | x[v[0] > 0] | a[: v.shape[0]][v > 0]
a[:, : w.shape[0]][:, w > 0] | np.take(x, 0, axis=1) | np.take(x, [0, -1], axis=0) | np.compress(v > 0, x, 0)
np.take_along_axis(x, np.argsort(x, 1), 1) | np.take_along_axis(x, np.argsort(x, 0), 0) | np.compress(w > 0, x, 1)
np.take_along_axis(x, np.argmax(x, 1)[:, None], 1) | np.delete(x, 0, 0) | np.delete(x, 0, 1) | np.extract(x > 0, x)
np.where(x > 0) | np.nonzero(x > 0) | np.argwhere(x > 0) | np.split(x, 1) | np.array_split(x, 2) | np.hsplit(x, 1)
np.array_split(x, 2, axis=1) | np.split(x, [1], axis=1) | np.split(x, [1, 2]) | np.split(x, 2)
np.split(x[:, :, None] * np.arange(4), 2, axis=2)
"""
SHAPES = """
x | x.T | x.ravel() | x.reshape(-1) | x.T.ravel() | x.reshape(x.shape[0], 1, x.shape[1]) | x.flatten() | x.ravel("F")
x.reshape(x.shape[1], x.shape[0]) | x.reshape(x.size) | x.reshape(x.shape[0], -1) | x.reshape(-1, x.shape[1])
x[:, :, None].reshape(x.shape[0], -1) | x.T.reshape(-1, 1) | np.repeat(x, 2, 0).reshape(-1, 2, x.shape[1])
np.repeat(x, 2, 1).reshape(x.shape[0], -1, 2) | (x[:, :, None] * w).reshape(x.shape[0], -1) | x.reshape(2, -1)
(x[:, :, None] * np.ones(4)).reshape(x.shape[0], x.shape[1], 2, 2) | (x[:, :, None] * np.ones(4)).reshape(-1, 4)
(x[:, :, None] * np.ones(4)).reshape(x.shape[0], -1) | (x[:, :, None] * np.ones(4)).reshape(-1, 2) | x.reshape(3, 4)
x.reshape(-1, order="F") | x.T.reshape(x.shape, order="F") | x.reshape(-1, 2) | np.squeeze(x[None], 0)
x.shape | x.size | x.ndim | np.size(x, 1) | x.shape[0] * x.shape[1] | x.nbytes | np.shape(x)
np.concatenate([x, x]) | np.concatenate([x, x], 1) | np.concatenate([x, y.T]) | np.concatenate([x, v[:, None]], 1)
np.vstack([x, w]) | np.hstack([x, x]) | np.stack([x, x * 2]) | np.stack([x, x], -1) | np.stack([x, x], 1)
np.insert(x, 0, w, 0) | np.insert(x, -1, v, 1) | np.insert(x, 1, 7, 1) | np.insert(x, 2, 5) | np.insert(x, 1, x, 0)
np.append(x, x) | np.append(x, w[None], 0) | np.column_stack([v, x]) | np.concatenate([x, x], None)
np.flip(x) | np.flip(x, 0) | np.fliplr(x) | np.flipud(x) | np.roll(x, 1) | np.roll(x, 1, 0) | np.roll(x, 1, 1)
np.roll(x, (1, 2), (0, 1)) | np.rot90(x) | np.rot90(x, 2) | np.rot90(x, 3) | np.tile(x, 2) | np.tile(x, (2, 2))
np.repeat(x, 2, 0) | np.repeat(x, 2, 1) | np.repeat(x, 2) | np.swapaxes(x, 0, 1) | np.moveaxis(x, 0, 1)
np.expand_dims(x, 1) | np.expand_dims(x, (0, 2)) | np.atleast_3d(x) | np.transpose(x[:, :, None], (2, 0, 1))
"""
CREATION = """
np.zeros(x.shape) | np.ones((x.shape[0], x.shape[1]), int) | np.full(x.shape, 2) | np.zeros_like(x) | np.eye(n, m)
np.tril(x) | np.triu(x, 1) | np.tril(np.ones((n, n))) | np.tri(x.shape[0]) | np.tri(x.shape[0], x.shape[1], -1)
np.eye(x.shape[0]) | np.eye(x.shape[0], x.shape[1], 1) | np.eye(x.shape[0], 3) | np.identity(x.shape[1]) | np.trace(x)
np.diag(x) | np.diag(v) | np.diag(v, 1) | np.diagonal(x, 1) | np.diagonal(x, -1) | np.diag(w, -2) | np.trace(x @ y)
np.diagflat(x) | np.meshgrid(v, w) | np.meshgrid(v, w, indexing="ij") | np.meshgrid(v, w, sparse=True)
np.broadcast_to(w, x.shape) | np.broadcast_to(v[:, None], x.shape) | np.pad(x, 1) | np.pad(x, 1, mode="edge")
np.pad(x, ((1, 2), (0, 1)), constant_values=3) | np.pad(x, 2, mode="wrap") | np.pad(x, 1, mode="reflect")
np.pad(x, 2, mode="symmetric") | np.indices(x.shape) | np.linspace(0, 1, x.shape[0]) | np.tril(v)
np.full_like(x, w) | np.triu_indices_from(x) | np.linspace(0, 2, x.shape[0], endpoint=False)
"""
ELEMENTWISE = """
x + 1 | x * x | x + v[:, None] | x + w | x + w[None] | v[:, None] + w | v[:, None] * w[None, :] | np.clip(x, -1, 1)
np.where(x > 0, x, 0) | np.where(x > 0, x, w) | np.where(v[:, None] > w, x, -x) | np.maximum(x, v[:, None])
np.add.outer(v, w) | np.logical_and.outer(v > 0, w > 0) | np.broadcast_arrays(x, w) | x + y.T | x + a[:n, :m] | x + v
x[:, :1] + w | x + x[:1] | x[:1] + v[:, None]
"""
FAMILIES = {
    "products": PRODUCTS, "reductions": REDUCTIONS, "indexing": INDEXING, "shapes": SHAPES, "creation": CREATION,
    "elementwise": ELEMENTWISE,
}  # fmt: skip
EXPRESSIONS = [e.strip() for text in FAMILIES.values() for e in text.replace("\n", "|").split("|") if e.strip()]


@pytest.mark.slow_but_every(11)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_functions(expression):
    check_sizes(f"return {expression}\n", "interpreter")


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("family", FAMILIES)
def test_functions_on_cpu(family):
    expressions = [e.strip() for e in FAMILIES[family].replace("\n", "|").split("|") if e.strip()]
    for first in range(0, len(expressions), 12):
        body = f"return ({', '.join(expressions[first : first + 12])},)\n"
        check_sizes(body, "cpu", [(3, 4), (4, 4)])


WRITES = {
    "all": "x[...] = 1", "slice": "x[:k] = 4", "columns": "x[..., k:] += 1", "mask": "x[x > 1] = -1",
    "mask of rows": "x[v > 0] = 1", "mask of columns": "x[:, w > 0] = v[:, None]", "reversed": "x[::-1] *= 2",
    "shifted": "x[1:] = x[:-1].copy()", "column": "x[:, 0] = v", "row": "x[0] = w", "places": "x[[0, -1]] = 5",
    "ends": "x[1:, 1:] = 8", "indices": "x[np.flatnonzero(v > 0)] = w", "one bool": "x[v[0] > 0] = 3",
    "grid": "x[np.ix_(v > 0, w > 0)] = 7", "part of a": "a[:n, :m] = x * 2; x = a", "added at": "np.add.at(x, [0], w)",
    "part of a view": "y = x[:k]; y[:, :1] = 9", "in place": "x += w", "transposed": "x.T[0] = v",
    "out": "np.add(x, 1, out=x)", "place": "x[0, 0] = w[-1]", "ellipsis": "x[..., 0][...] = x[..., -1]",
    "wrong size": "x[:, 0] = w", "wrong shape": "x[...] = y", "at indices": "np.add.at(x, np.flatnonzero(v > 0), w)",
}  # fmt: skip


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("name", WRITES)
def test_writes(name):
    check_sizes(f"x = x.copy(); {WRITES[name]}\nreturn x\n", "interpreter")


LOOPS = {
    "carried": "return cyxla.fori_loop(0, 3, lambda j, c: c * 0.5 + x, x)",
    "used inside": "return cyxla.fori_loop(0, 3, lambda j, s: s + (x @ y).sum() * j, np.float64(0))",
    "while": "return cyxla.while_loop(lambda c: c.sum() > 5, lambda c: c / 2 - 1, x)",
    "branches": "return cyxla.cond(n > 2, lambda c: c * 2, lambda c: c + 1, x)",
    "scanned": "return cyxla.scan(lambda c, t: (c + t, c.sum()), x, a[0])",
    "nested": "return {'a': [x, 1.0], 'b': (x.T, None)}",
    "jit in jit": "return cyxla.jit(lambda c: c.T @ c)(x) * 2",
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_and_containers(name, backend):
    check_sizes(f"{LOOPS[name]}\n", backend, SIZES if backend == "interpreter" else [(3, 4), (2, 1)])


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("seed", range(60))
def test_random_functions(seed):
    body = random_body(seed)
    check_sizes(body, "interpreter")
    check_any_size(body, "interpreter")


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("seed", range(60, 66))
def test_random_functions_on_cpu(seed):
    check_any_size(random_body(seed), "cpu", [(3, 4), (5, 2), (4, 4), (7, 7), (6, 5)])


GRADIENTS = (
    "(x @ y).sum()", "(x @ x.T).sum()", "np.exp(x - x.max(1, keepdims=True)).sum()", "(np.tril(x @ x.T) @ v).sum()",
    "(x[:, None] - x[None]).var()", "np.outer(v, w).max(0).sum()", "(x.ravel() ** 2).sum()",
    "np.sort(x, 1)[:, -1].sum()",
    "(x[v > 0] ** 2).sum()", "(np.concatenate([x, y.T]) ** 2).sum()", "(np.cumsum(x, 1) * x).sum()",
    "(x.reshape(x.shape[1], x.shape[0]) * y).sum()", "np.trace(x @ y)", "(x[k:, :k] ** 2).sum()", "x.std(0).sum()",
    "(np.pad(x, 1, mode='edge') ** 2).sum()",
)  # fmt: skip
STEP = 1e-6


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("text", GRADIENTS)
def test_gradients(text):
    function = function_of_sizes(f"return {text}\n")
    for n, m in ((3, 4), (4, 2)):
        known = values(n, m)
        a = known.pop("a") + np.random.default_rng(1).normal(size=(8, 7)) / 8
        gradient = cyxla.jit(cyxla.grad(lambda a, n, m: function(a, n, m)), platform="interpreter")
        got, want = gradient(a, **known), np.zeros_like(a)
        for at in np.ndindex(a.shape):
            moved = [a.copy(), a.copy()]
            moved[0][at] += STEP
            moved[1][at] -= STEP
            high, low = (function(p, **known) for p in moved)
            want[at] = (high - low) / (2 * STEP)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5, err_msg=f"{text} of {n}, {m}")


@pytest.mark.parametrize("text, kind, message", [
    ("x + y", ValueError, r"could not be broadcast together with shapes \(4,\) \(3,\)"),
    ("x @ x", ValueError, "dimension that is shared are 4 and 3"),
    ("x[5]", IndexError, "index 5 is out of bounds for axis 0 with size 3"),
    ("x[:, 5]", IndexError, "index 5 is out of bounds for axis 1 with size 4"),
    ("x.reshape(5, -1)", ValueError, "cannot reshape"),
    ("np.concatenate([x, y])", ValueError, "must match exactly"),
    ("x[w > 0]", IndexError, "boolean index did not match indexed array along axis 0"),
    ("x.__setitem__(..., y)", ValueError, "could not broadcast"),
])  # fmt: skip
def test_errors_of_runs(text, kind, message):
    function = function_of_sizes(f"return {text}\n")
    with pytest.raises(kind):
        function(**values(3, 4))
    with pytest.raises(kind, match=message):
        cyxla.jit(function, platform="interpreter")(**values(3, 4))


@pytest.mark.parametrize("order", ["C", "F"])
def test_results_have_the_order_of_memory_of_numpy(order):
    compiled = cyxla.jit(lambda a, n, m: (a[:n, :m].T * 2, a[:n, :m] + 1), platform="cpu")
    a = np.asarray(np.arange(80000.0).reshape(200, 400), order=order)
    for n, m in ((100, 3), (199, 300), (1, 1)):
        for got, want in zip(compiled(a, n, m), (a[:n, :m].T * 2, a[:n, :m] + 1), strict=True):
            np.testing.assert_array_equal(got, want)
            assert got.flags.c_contiguous or got.flags.f_contiguous
            assert got.base is None or got.base.size <= 2 * got.size
        if n > 1:
            assert got.flags.c_contiguous == want.flags.c_contiguous


def test_equal_sizes_need_no_check():
    def function(a, x):
        n = np.count_nonzero(x)
        return np.tril(a[:n, :n]) @ a[:n, :n] + np.eye(n) - np.ones((n, n)) * a[0, :n]

    assert not cyxla.jit(function).trace(np.ones((5, 5)), np.ones(5)).fails


def test_sizes_without_a_bound_raise():
    with pytest.raises(TraceError, match="mend:"):
        cyxla.jit(lambda x: np.zeros((x.sum(), x.sum())), platform="interpreter")(np.arange(300))
    with pytest.raises(TraceError, match="too large"):
        cyxla.jit(lambda n: np.zeros([np.clip(n, 0, 10**6)] * 2), platform="interpreter")(np.int64(3))


def distances(x, y):
    return np.sqrt(((x[:, None] - y[None]) ** 2).sum(-1))


SHAPES_OF_CALLS = {
    "distances": (distances, [((n, 3), (m, 3)) for n, m in ((4, 6), (5, 7), (3, 9), (8, 2), (2, 2), (9, 6), (30, 1))]),
    "square": (lambda a: a @ a.T + np.eye(a.shape[0]) * np.trace(a), [((n, n),) for n in (3, 5, 4, 9, 2, 40)]),
    "matrix": (lambda a: a.T @ a + a.sum(0), [((n, m),) for n, m in ((3, 5), (4, 6), (2, 8), (9, 3), (1, 1))]),
    "product": (lambda a, b: a @ b, [((n, k), (k, m)) for n, k, m in ((3, 5, 2), (4, 6, 3), (2, 8, 9), (9, 3, 4))]),
}


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("name", SHAPES_OF_CALLS)
def test_several_open_dimensions_of_arguments(name, backend):
    function, calls = SHAPES_OF_CALLS[name]
    compiled, rng = cyxla.jit(function, platform=backend), np.random.default_rng(0)
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    for shapes in calls:
        compare(function, compiled, {n: rng.normal(size=s) for n, s in zip(names, shapes, strict=True)}, str(shapes))
    assert compiled.cache_info().misses <= 4
