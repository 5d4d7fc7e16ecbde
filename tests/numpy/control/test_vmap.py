"""`vmap`: against one call after another, for NumPy's functions, control flow, gradients, containers and errors."""

import re
import runpy
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import scipy.special
from support.functions.function_rows import SUBJECTS, outcome, rows
from support.hlo.batching import close

import cyxla
from cyxla.errors import DTypeError, InvalidArgumentError, ShapeError, TraceError, UnimplementedError
from cyxla.numpy.tracing.containers import flatten

RNG = np.random.default_rng(5)
X, Y, W = RNG.uniform(0.2, 0.9, (4, 3)), RNG.uniform(0.2, 0.9, (4, 3)), RNG.normal(size=(3, 3))
ROWS = [pytest.param(row, id=f"{subject}-{row.name}") for subject in SUBJECTS for row in rows(subject)]
COUNT = 3


def stacked(function, arrays, axis=0):
    results = [flatten(function(*[a[k] for a in arrays]))[0] for k in range(len(arrays[0]))]
    return [np.stack(column, axis) for column in zip(*results, strict=True)]


def check(function, *arrays, platform="interpreter", rtol=1e-13):
    """Check `vmap` of a function against a loop of NumPy."""
    got = flatten(cyxla.jit(cyxla.vmap(function), platform=platform)(*arrays))[0]
    want = stacked(function, arrays)
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert (g.dtype, g.shape) == (w.dtype, w.shape)
        np.testing.assert_allclose(g, w, rtol, 1e-15)


@pytest.mark.slow_but_every(30)
@pytest.mark.parametrize("row", ROWS)
def test_functions_of_numpy(row, request):
    """Compare with the compiled function of one element, which other tests compare with NumPy."""
    rng = np.random.default_rng(zlib.crc32(request.node.name.encode()))
    letter = "d" if "d" in row.dtypes else row.dtypes[-1]
    call, shapes = row.calls[0], row.shapes[0]
    arrays = [np.stack(column) for column in zip(*[row.arrays(rng, shapes, letter) for _ in range(COUNT)], strict=True)]
    of_element = cyxla.jit(call, platform="interpreter")
    want = [outcome(of_element, [a[k] for a in arrays]) for k in range(COUNT)]
    if not arrays or any(error is not None for _, error in want):
        return
    got, error = outcome(cyxla.jit(cyxla.vmap(call), platform="interpreter"), arrays)
    if error is not None:  # results of another size for each element; draws from the generator of the program
        assert isinstance(error, (TraceError, UnimplementedError)), error
        assert any(t in str(error) for t in ("cannot be stacked", "draws from a generator", "not an array")), error
        return
    columns = zip(*[flatten(value)[0] for value, _ in want], strict=True)
    for g, column in zip(flatten(got)[0], columns, strict=True):
        expected = np.stack(column)
        assert (g.dtype, g.shape) == (expected.dtype, expected.shape)
        close(g, expected)


def newton(x):
    root = x + 1.0
    while np.abs(root * root - x) > 1e-12:
        root = 0.5 * (root + x / root)
    return root


def piecewise(x):
    if x > 0.5:
        return np.log(x)
    return x * x


def prefix(x):
    total, out = 0.0, np.zeros(3)
    for k in range(3):
        total += x[k]
        out[k] = total
    return out


def early(x):
    for k in range(3):
        if x[k] > 0.6:
            return k
    return -1


FUNCTIONS = {
    "elementwise": (lambda x: np.sin(x) * x, X), "scalars": (lambda x: x * 2 + 1, X[:, 0]),
    "matrix product": (lambda x: W @ x, X), "vector by matrix": (lambda x: x @ W, X),
    "inner product": (np.dot, X, Y), "outer": (np.outer, X, Y), "two matrices": (lambda x, y: np.outer(x, y) @ W, X, Y),
    "shared on the left": (lambda x: W @ np.outer(x, x), X),
    "einsum": (lambda x, y: np.einsum("i,ij,j", x, W, y), X, Y),
    "convolve": (np.convolve, X, Y), "convolve with a shared one": (lambda x: np.convolve(x, [1.0, 2.0]), X),
    "shared filter": (lambda x: np.convolve(W[0], x), X),
    "gather": (lambda x, i: x[i], X, np.array([0, 2, 1, -1])), "gather from shared": (lambda i: W[i], np.array([2, 0])),
    "gather by arrays": (lambda x, i: x[i], X, RNG.integers(0, 3, (4, 2))), "take": (lambda x: x[[2, 0, 0]], X),
    "masked sum": (lambda x: x[x > 0.5].sum(), X), "masked count": (lambda x: x[x > 0.5].size, X),
    "masked mean": (lambda x: x[x > 0.3].mean(), X), "nonzero": (lambda x: np.nonzero(x > 0.5)[0].sum(), X),
    "sort": (np.sort, X), "argsort": (np.argsort, X), "median": (np.median, X), "searchsorted": (
        lambda x, v: np.searchsorted(np.sort(x), v), X, Y[:, 0]),
    "cumsum": (np.cumsum, X), "where": (lambda x: np.where(x > 0.5, x, 0), X),
    "clip": (lambda x: np.clip(x, 0.4, 0.6), X),
    "solve": (lambda x: np.linalg.solve(W, x), X), "inverse": (lambda x: np.linalg.inv(np.outer(x, x) + np.eye(3)), X),
    "eigh": (lambda x: np.linalg.eigh(np.outer(x, x) + np.diag(x))[0], X),
    "cholesky": (lambda x: np.linalg.cholesky(np.outer(x, x) + np.eye(3)), X),
    "svd": (lambda x: np.linalg.svd(np.outer(x, x + 1))[1][0], X), "det": (lambda x: np.linalg.det(W * x), X),
    "qr": (lambda x: np.abs(np.linalg.qr(W * x)[1]), X),
    "fft": (np.fft.fft, X), "irfft": (lambda x: np.fft.irfft(np.fft.rfft(x), 3), X),
    "gammaln": (scipy.special.gammaln, X), "interp": (lambda x: np.interp(x, [0, 0.5, 1], [0.0, 2.0, 3.0]), X),
    "if": (piecewise, X[:, 0]), "while": (newton, X[:, 0]), "for": (prefix, X), "early return": (early, X),
    "cond": (lambda x: cyxla.cond(x[0] > 0.5, lambda: np.exp(x), lambda: x), X),
    "switch": (lambda i, x: cyxla.switch(i, [np.sin, np.exp, np.negative], x), np.array([0, 2, 1, 7]), X),
    "fori_loop": (lambda x: cyxla.fori_loop(0, 5, lambda i, y: y * x + i, x), X),
    "traced bound": (lambda n, x: cyxla.fori_loop(0, n, lambda i, y: y * x + i, x), np.array([0, 3, 1, 2]), X),
    "while_loop": (lambda x: cyxla.while_loop(lambda v: np.sum(v) < 100, lambda v: 2 * v, x), X),
    "scan": (lambda x: cyxla.scan(lambda h, v: (h + v, h * v), 0.0, x), X),
    "associative_scan": (lambda x: cyxla.associative_scan(np.multiply, x), X),
    "assignment": (lambda x, i: _assigned(x, i), X, np.array([0, 1, 2, 0])), "iota": (lambda x: x + np.arange(3), X),
    "integers": (lambda x: x // 3 % 5, RNG.integers(-20, 20, (4, 3))), "bools": (np.logical_xor, X > 0.5, Y > 0.5),
    "complex": (lambda x: np.abs(x + 1j) ** 2, X), "float32": (lambda x: x * 2, X.astype(np.float32)),
    "constant": (lambda x: np.arange(3), X), "pair": (lambda x: (x, {"sum": x.sum()}), X),
    "empty": (lambda x: x.sum(), np.zeros((4, 0))), "grad": (cyxla.grad(lambda x: np.sum(np.tanh(W @ x) ** 2)), X),
    "jvp": (lambda x, y: cyxla.jvp(lambda v: W @ np.sin(v), (x,), (y,)), X, Y),
    "jacobian": (cyxla.jacobian(lambda x: W @ np.sin(x)), X), "hessian": (cyxla.hessian(lambda x: np.prod(x)), X),
    "jitted": (cyxla.jit(lambda x: np.cumsum(x) + 1), X),
}  # fmt: skip


def _assigned(x, i):
    y = x.copy()
    y[i] = 7
    return y


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_against_a_loop(name, backend):
    function, *arrays = FUNCTIONS[name]
    check(function, *arrays, platform=backend, rtol=1e-11)


def test_calls_outside_of_jit_are_compiled():
    np.testing.assert_array_equal(cyxla.vmap(lambda x: W @ x)(X), cyxla.jit(cyxla.vmap(lambda x: W @ x))(X))
    assert cyxla.vmap(lambda x: x + 1)(np.arange(3)).tolist() == [1, 2, 3]


@pytest.mark.parametrize("name", ["grad", "jacobian", "if", "while", "scan", "solve", "sort", "masked sum"])
def test_an_empty_batch_gives_results_of_size_zero(name):
    function, array, *_ = FUNCTIONS[name]
    one, none = cyxla.vmap(function)(array), cyxla.vmap(function)(array[:0])
    for got, like in zip(flatten(none)[0], flatten(one)[0], strict=True):
        assert (got.shape, got.dtype) == ((0, *like.shape[1:]), like.dtype)


AXES = {
    "each": ((0, 0), 0), "last": ((1, -1), 0), "mixed": ((0, -1), -1), "shared": ((None, 0), 1), "one": (0, 1),
    "list": ([0, None], 0),
}  # fmt: skip


@pytest.mark.parametrize("name", AXES)
def test_axes(name):
    in_axes, out_axes = AXES[name]
    a, b = RNG.normal(size=(3, 3)), RNG.normal(size=(3, 3))
    of_each = in_axes if isinstance(in_axes, (tuple, list)) else (in_axes,) * 2

    def element(value, axis, k):
        return value if axis is None else np.take(value, k, axis)

    want = np.stack([W @ element(a, of_each[0], k) - element(b, of_each[1], k) for k in range(3)], out_axes)
    got = cyxla.vmap(lambda x, y: W @ x - y, in_axes, out_axes)(a, b)
    np.testing.assert_allclose(got, want, 1e-14)


@dataclass
class Layer:
    w: object
    b: object


def test_containers():
    layer, xs = Layer(RNG.normal(size=(4, 2, 3)), RNG.normal(size=2)), {"x": X, "scale": 2.0}
    function = cyxla.vmap(
        lambda p, d: {"y": p.w @ d["x"] * d["scale"] + p.b, "b": p.b},
        in_axes=(Layer(0, None), {"scale": None, "x": 0}), out_axes={"y": 1, "b": None},
    )  # fmt: skip
    got = function(layer, xs)
    np.testing.assert_allclose(got["y"], np.stack([layer.w[k] @ X[k] * 2 + layer.b for k in range(4)], 1), 1e-14)
    np.testing.assert_array_equal(got["b"], layer.b)
    nested = cyxla.vmap(lambda pair, named: pair[0] + pair[1][0] + named["a"], in_axes=((0, None), 0))
    np.testing.assert_array_equal(nested((X, [Y[0]]), {"a": Y}), X + Y[0] + Y)


def test_keywords_are_mapped_over_axis_0():
    got = cyxla.vmap(lambda x, *, y: x * y, in_axes=1)(X, y=Y.T)
    np.testing.assert_array_equal(got, X.T * Y.T)


def test_defaults_are_not_mapped_over():
    def function(x, scale=2.0, *, shift=1.0):
        return x * scale + shift

    for decorate in (lambda f: f, cyxla.jit):
        np.testing.assert_array_equal(decorate(cyxla.vmap(function))(X), X * 2 + 1)


def test_a_number_of_elements_without_an_array():
    assert cyxla.vmap(lambda x: x + 1, in_axes=None, axis_size=3)(1.0).tolist() == [2.0, 2.0, 2.0]
    assert cyxla.vmap(lambda: np.arange(2), axis_size=2)().tolist() == [[0, 1], [0, 1]]


def test_integers_that_all_calls_share_may_be_sizes():
    got = cyxla.vmap(lambda x, n: np.reshape(x, (n, 1)) * np.ones(n), in_axes=(0, None))(X, 3)
    np.testing.assert_array_equal(got, X[:, :, None] * np.ones(3))


def test_nested():
    got = cyxla.vmap(cyxla.vmap(np.dot, in_axes=(None, 0)), in_axes=(0, None))(X, Y)
    np.testing.assert_allclose(got, X @ Y.T, 1e-14)
    three = 4 * RNG.normal(size=(2, 3, 4))
    got = cyxla.vmap(cyxla.vmap(halved), in_axes=1, out_axes=1)(three)
    want = [[halved(three[i, k]) for k in range(3)] for i in range(2)]
    np.testing.assert_allclose(got, want, 1e-14)


def halved(x):
    return cyxla.while_loop(lambda v: np.sum(v * v) > 1, lambda v: v / 2, x)


def test_jit_of_vmap_and_vmap_of_jit():
    inner = cyxla.jit(lambda x: np.tanh(x) @ W)
    want = np.tanh(X) @ W
    for function in (cyxla.vmap(inner), cyxla.jit(cyxla.vmap(inner)), cyxla.jit(lambda x: cyxla.vmap(inner)(x))):
        np.testing.assert_allclose(function(X), want, 1e-14)


def test_values_from_outside_are_read_at_every_call():
    scale = np.ones(3)
    function = cyxla.vmap(lambda x: x * scale)
    np.testing.assert_array_equal(function(X), X)
    scale[:] = 2
    np.testing.assert_array_equal(function(X), 2 * X)


# -- derivatives

DIFFERENTIATED = {
    "elementwise": lambda w, x: np.sum(np.sin(w * x)), "product": lambda w, x: np.tanh(w @ x) * np.sum(x),
    "scan": lambda w, x: cyxla.scan(lambda h, v: (np.tanh(h * w + v), h.sum()), np.zeros(3), x)[1].sum(),
    "cond": lambda w, x: cyxla.cond(x[0] > 0.5, lambda: np.sum(w * x), lambda: np.sum(np.exp(w))),
    "if": cyxla.jit(lambda w, x: np.sum(w) * _branch(x)), "sort": lambda w, x: np.sort(w * x)[0] ** 2,
    "gather": lambda w, x: np.sum(w[[0, 0, 2]] * x), "solve": lambda w, x: np.sum(np.linalg.solve(np.diag(w + 2), x)),
    "masked": lambda w, x: (w * x)[x > 0.5].sum(), "max": lambda w, x: np.max(w * x),
    "checkpoint": cyxla.checkpoint(lambda w, x: np.sum(np.sin(w * x) ** 2)),
    "fori_loop": lambda w, x: np.sum(cyxla.fori_loop(0, 3, lambda i, y: np.sin(y * w) + i, x)),
    "stopped": lambda w, x: np.sum(w * cyxla.stop_gradient(np.sum(w) * x)),
    "prod": lambda w, x: np.prod(w * x),
    "eigh": lambda w, x: np.sum(np.linalg.eigh(np.diag(w) + np.outer(x, x))[0] ** 2),
}  # fmt: skip


def _branch(x):
    return np.sum(x * x) if x[1] > 0.5 else np.sum(x)


@cyxla.custom_vjp
def clipped(x):
    return x


clipped.defvjp(lambda x: (x, None), lambda _, g: (np.clip(g, -1, 1),))
DIFFERENTIATED["custom"] = lambda w, x: np.sum(clipped(w * x) * 3)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_gradients_of_mapped_functions_and_mapped_gradients(name):
    function = DIFFERENTIATED[name]
    w = np.array([0.7, 1.1, 0.9])
    weights = np.arange(1.0, 5)

    def total(w, xs):
        return np.sum(cyxla.vmap(lambda w, x, k: k * function(w, x), in_axes=(None, 0, 0))(w, xs, weights))

    gradient = cyxla.grad(lambda w, x, k: k * function(w, x), (0, 1))
    by_element = [gradient(w, x, k) for x, k in zip(X, weights, strict=True)]
    decorate = cyxla.jit(platform="interpreter")
    for_w, for_x = decorate(cyxla.grad(total, (0, 1)))(w, X)
    np.testing.assert_allclose(for_w, sum(g for g, _ in by_element), 1e-10)
    np.testing.assert_allclose(for_x, [g for _, g in by_element], 1e-10, 1e-14)
    mapped = decorate(cyxla.vmap(gradient, in_axes=(None, 0, 0)))(w, X, weights)
    for got, want in zip(mapped, zip(*by_element, strict=True), strict=True):
        np.testing.assert_allclose(got, want, 1e-10, 1e-14)


@pytest.mark.parametrize("name", ["product", "scan", "cond", "checkpoint", "max", "prod"])
def test_second_derivatives_of_mapped_functions(name):
    function = DIFFERENTIATED[name]
    w = np.array([0.7, 1.1, 0.9])
    total = lambda w: np.sum(cyxla.vmap(function, in_axes=(None, 0))(w, X))  # noqa: E731
    want = sum(cyxla.hessian(function)(w, x) for x in X)
    got = cyxla.jit(cyxla.hessian(total), platform="interpreter")(w)
    np.testing.assert_allclose(got, want, 1e-9, 1e-12)


def test_directional_derivatives_of_mapped_functions():
    function = DIFFERENTIATED["scan"]
    w, v = np.array([0.7, 1.1, 0.9]), np.array([1.0, -0.5, 2.0])
    got = cyxla.jvp(lambda w: cyxla.vmap(function, in_axes=(None, 0))(w, X), (w,), (v,))[1]
    np.testing.assert_allclose(got, [cyxla.grad(function)(w, x) @ v for x in X], 1e-10)


def test_results_that_do_not_depend_on_the_element_have_the_derivative_of_all():
    def both(w, x):
        final, products = cyxla.scan(lambda h, _: (np.sin(h), h * x), w, None, length=3)
        return final, products, cyxla.cond(w[0] > 0, lambda: w * w, lambda: w)

    def total(function, w):
        return sum(np.sum(k * r) for k, r in enumerate(function(w), 1))

    w = np.array([0.5, 1.5, 2.5])
    mapped = cyxla.grad(lambda w: total(lambda w: cyxla.vmap(both, in_axes=(None, 0))(w, X), w))(w)
    want = sum(cyxla.grad(lambda w, x=x: total(lambda w: both(w, x), w))(w) for x in X)
    np.testing.assert_allclose(mapped, want, 1e-12)


# -- writes, effects, checks


def test_writes_to_arguments_appear_in_the_arrays_of_the_caller():
    def double(x, y):
        x *= 2
        x[0] = y[1]
        return x.sum()

    want = X.copy()
    sums = np.array([double(row, y) for row, y in zip(want, Y, strict=True)])
    for decorate in (lambda f: f, cyxla.jit):
        given = X.copy()
        np.testing.assert_allclose(decorate(cyxla.vmap(double))(given, Y), sums, 1e-14)
        np.testing.assert_array_equal(given, want)
    columns = X.T.copy()
    cyxla.vmap(double, in_axes=(1, 0))(columns, Y)
    np.testing.assert_array_equal(columns, want.T)


def add_to_shared(x, total):
    total += x


def write_both(x, y):
    x[0] = y[1]


@pytest.mark.parametrize("function, in_axes, arrays, text", [
    (add_to_shared, (0, None), (X, np.zeros(3)), "which all of its calls share"),
    (write_both, (0, 1), (W.copy(),) * 2, "shares memory"),
])  # fmt: skip
def test_writes_that_are_refused(function, in_axes, arrays, text):
    with pytest.raises(TraceError, match=text):
        cyxla.vmap(function, in_axes)(*arrays)


def test_one_array_given_twice_is_one_array():
    def swap(x, y):
        x[0] = 1
        return y[0]

    given = X.copy()
    assert cyxla.vmap(swap)(given, given).tolist() == [1, 1, 1, 1]


def test_an_index_out_of_range_raises_the_error_of_the_first_element():
    function = cyxla.vmap(lambda x, i: x[i])
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        function(X, np.array([0, 5, 1, 9]))
    assert function(X, np.array([0, 2, 1, -3])).shape == (4,)


def test_a_check_in_a_branch_concerns_the_elements_that_take_it():
    function = cyxla.vmap(lambda x, i: cyxla.cond(i < 3, lambda: x[i], lambda: 0.0))
    np.testing.assert_array_equal(function(X, np.array([0, 5, 1, 9])), [X[0, 0], 0, X[2, 1], 0])


def test_failing_factorisations():
    function = cyxla.vmap(np.linalg.cholesky)
    with pytest.raises(np.linalg.LinAlgError):
        function(np.stack([np.eye(2), -np.eye(2)]))


def test_prints_run_for_each_element_that_reaches_them(capfd):
    def function(x):
        if x > 1:
            cyxla.print("large {}", x)
        return x

    cyxla.vmap(function)(np.array([0.0, 2.0, 1.0, 3.0]))
    assert capfd.readouterr().out.split() == ["large", "2.0", "large", "3.0"]


def test_random_numbers_by_keys():
    keys = cyxla.random.split(cyxla.random.key(3), 4)
    draws = cyxla.vmap(lambda key: cyxla.random.normal(key, size=2))(keys)
    np.testing.assert_array_equal(draws, np.stack([cyxla.random.normal(k, size=2) for k in keys]))


def test_custom_calls_run_for_each_element():
    @cyxla.custom_call("test.vmap.ramp", result=lambda x: x, replace=True)
    def ramp(x):
        return np.cumsum(x)

    np.testing.assert_allclose(cyxla.vmap(lambda x: ramp(x) * 2)(X), 2 * np.cumsum(X, 1), 1e-15)


def test_without_jit_it_is_a_loop():
    seen = []

    def function(x, y):
        seen.append(x.shape)
        x[0] = 0
        return x + y, 1

    given = X.copy()
    with cyxla.disable_jit():
        total, ones = cyxla.vmap(function, in_axes=(0, None), out_axes=(1, 0))(given, 1.0)
    assert seen == [(3,)] * 4
    np.testing.assert_array_equal(total, given.T + 1)
    assert ones.tolist() == [1, 1, 1, 1]
    assert not given[:, 0].any()


# -- errors

ERRORS = {
    "sizes": (lambda: cyxla.vmap(np.add)(X, X[:3]), ShapeError,
        "argument 0 has size 4 along axis 0, but argument 1 has"),
    "sizes in a container": (
        lambda: cyxla.vmap(lambda d: d["a"] + d["b"], in_axes=({"a": 0, "b": 1},))({"a": X, "b": X}), ShapeError,
        r"argument 0\['a'\] has size 4 along axis 0, but argument 0\['b'\] has size 3 along axis 1"),
    "size of a keyword": (lambda: cyxla.vmap(lambda x, y: x)(X, y=X[:2]), ShapeError, "argument 'y' has size 2"),
    "stated size": (lambda: cyxla.vmap(np.sin, axis_size=3)(X), ShapeError, "size 4 along axis 0, but axis_size is 3"),
    "rank": (lambda: cyxla.vmap(np.add)(X, 1.0), ShapeError, "argument 1 is an array of rank 0"),
    "axis": (lambda: cyxla.vmap(np.sin, in_axes=2)(X), ShapeError,
        "argument 0 is an array of rank 2, which has no axis 2"),
    "negative axis": (lambda: cyxla.vmap(np.sin, in_axes=-3)(X), ShapeError, "no axis -3"),
    "axis of a result": (lambda: cyxla.vmap(np.sin, out_axes=2)(X), ShapeError, "the result is an array of rank 2"),
    "nothing mapped": (lambda: cyxla.vmap(np.sin, in_axes=None)(X), InvalidArgumentError, "no argument is mapped over"),
    "number of axes": (lambda: cyxla.vmap(np.add, in_axes=(0,))(X, X), InvalidArgumentError,
        "1 entries, .* 2 arguments"),
    "structure": (lambda: cyxla.vmap(np.sin, in_axes=((0, 0),))(X), InvalidArgumentError,
        "tuple for argument 0, which is"),
    "keys": (lambda: cyxla.vmap(lambda d: d["a"], in_axes=({"b": 0},))({"a": X}), InvalidArgumentError,
        r"keys \['b'\]"),
    "length": (lambda: cyxla.vmap(lambda t: t[0], in_axes=((0, 0),))((X,)), InvalidArgumentError, "2 entries"),
    "structure of the result": (
        lambda: cyxla.vmap(np.sin, out_axes=(0, 0))(X), InvalidArgumentError, "out_axes has a tuple for the result"),
    "result differs": (lambda: cyxla.vmap(np.sin, out_axes=None)(X), InvalidArgumentError, "out_axes is None"),
    "kind of axes": (lambda: cyxla.vmap(np.sin, in_axes="x"), DTypeError, "in_axes must hold integers"),
    "float axis": (lambda: cyxla.vmap(np.sin, out_axes=(1.5,)), DTypeError, "out_axes must hold integers"),
    "bool axis": (lambda: cyxla.vmap(np.sin, in_axes=(True,)), DTypeError, "holds True"),
    "dict of axes": (lambda: cyxla.vmap(np.sin, in_axes={"x": 0}), DTypeError, "in_axes is a dict"),
    "kind of size": (lambda: cyxla.vmap(np.sin, axis_size=1.5), DTypeError, "axis_size is 1.5"),
    "negative size": (lambda: cyxla.vmap(np.sin, axis_size=-1), InvalidArgumentError, "must not be negative"),
    "function": (lambda: cyxla.vmap(3), DTypeError, "vmap takes a function"),
    "text": (lambda: cyxla.jit(lambda x: cyxla.vmap(lambda x, s: x)(x, "a"))(X), DTypeError, "argument 1 is a str"),
    "differing sizes": (lambda: cyxla.vmap(lambda x: x[x > 0.5])(X), TraceError,
        "may have another size for each element"),
    "result is a text": (lambda: cyxla.vmap(lambda x: "a")(X), TraceError, "the result of lambda is a str"),
    "generator": (
        lambda: cyxla.jit(lambda g, x: cyxla.vmap(lambda v: v + g.normal())(x))(np.random.default_rng(0), X),
        TraceError, "draws from a generator"),
    "python": (lambda: cyxla.vmap(lambda x: hash(x[0]))(X), TraceError, "cannot be hashed"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    call, error, text = ERRORS[name]
    with pytest.raises(error, match=text) as caught:
        call()
    assert "test_vmap.py" in str(caught.value)


def test_the_line_of_a_result_of_differing_size_is_named():
    def function(x):
        y = 2 * x
        return y[x > 0.5]

    line = function.__code__.co_firstlineno + 2
    with pytest.raises(TraceError, match=f"test_vmap.py:{line}"):
        cyxla.vmap(function)(X)


def test_the_name_and_signature_of_the_function_are_kept():
    def loss(w, x):
        """Return nothing."""

    assert cyxla.vmap(loss).__name__ == "loss"
    assert cyxla.vmap(loss).__doc__ == "Return nothing."


def test_the_documents_run(tmp_path):
    text = (Path(__file__).parents[3] / "docs" / "vmap.md").read_text()
    program = tmp_path / "program.py"
    program.write_text("\n".join(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)))
    runpy.run_path(str(program))
