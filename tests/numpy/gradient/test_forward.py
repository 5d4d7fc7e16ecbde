"""`jvp`, `jacobian` and `hessian`: against formulas, central differences, and the pullbacks of all functions."""

import zlib

import numpy as np
import pytest
import scipy.special
from support.functions.function_rows import SUBJECTS, outcome, rows
from support.numerical import slope

import cyxla
from cyxla.errors import DTypeError, InvalidArgumentError, ShapeError, TraceError, UnimplementedError
from cyxla.numpy.tracing.containers import flatten
from cyxla.xla.passes.simplify.trip_count import known_trip_count

RNG = np.random.default_rng(17)
X, V = RNG.uniform(0.2, 0.9, (2, 3)), RNG.normal(size=(2, 3))
ROWS = [
    pytest.param(row, id=f"{subject}-{row.name}") for subject in SUBJECTS for row in rows(subject) if row.differentiable
]


def by_differences(function, primals, tangents, step=1e-6):
    above, below = (function(*[p + s * t for p, t in zip(primals, tangents, strict=True)]) for s in (step, -step))
    return [(a - b) / (2 * step) for a, b in zip(flatten(above)[0], flatten(below)[0], strict=True)]


def loop(x):
    for k in range(60):
        x = np.sin(x) + 0.01 * k
    return x


def carried(x):
    return cyxla.scan(lambda h, row: (np.tanh(h + row), h * row), np.zeros(3), x)


def branch(x):
    return cyxla.cond(x[0, 0] > 0, lambda: np.exp(x), lambda: x)


def container(x):
    return {"product": x @ x.T, "pair": (np.sum(x), x[1] / x[0])}


FUNCTIONS = {
    "elementwise": lambda x: np.log(x) * x, "scalar": lambda x: np.prod(x),
    "dtype": lambda x: x.astype(np.float64) ** 3,
    "sort": lambda x: np.sort(x, axis=None), "gather": lambda x: x[:, [2, 0, 0]], "container": container,
    "python loop": loop, "scan": carried, "cond": branch, "fori_loop": lambda x: cyxla.fori_loop(
        0, 5, lambda i, y: y * x + i, x
    ), "solve": lambda x: np.linalg.solve(x @ x.T + np.eye(2), x), "jitted": cyxla.jit(loop),
    "checkpoint": cyxla.checkpoint(carried), "written": lambda x: np.where(x > 0.5, x * x, np.sin(x)),
    "eigh": lambda x: np.linalg.eigh(x @ x.T)[0], "betainc": lambda x: scipy.special.betainc(2.0, 3.0, x),
    "tall": lambda x: (np.outer(x, np.sin(x)), {"sum": np.sum(x), "many": np.tile(x, 3) ** 2}),
    "tall scan": lambda x: cyxla.scan(lambda h, _: (np.tanh(h + 0.1), h * h), x, None, length=20)[1],
    "gradient": cyxla.grad(lambda x: np.sum(np.tanh(x) ** 3)),
}  # fmt: skip


@pytest.mark.slow_but_every(7)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("platform", [None, "interpreter", "cpu"])
def test_jvp_and_jacobian_against_differences(name, platform):
    function = FUNCTIONS[name]
    decorate = cyxla.jit(platform=platform) if platform else lambda f: f
    out, tangent = decorate(lambda x, v: cyxla.jvp(function, (x,), (v,)))(X, V)
    jacobian = decorate(cyxla.jacobian(function))(X)
    leaves, want = flatten(tangent)[0], by_differences(function, [X], [V])
    for got, rows_, value, expected in zip(leaves, flatten(jacobian)[0], flatten(out)[0], want, strict=True):
        np.testing.assert_allclose(got, expected, atol=1e-7)
        assert rows_.shape == np.shape(value) + X.shape
        np.testing.assert_allclose(np.tensordot(rows_, V, 2), got, atol=1e-10)
    for got, expected in zip(flatten(out)[0], flatten(function(X))[0], strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.slow_but_every(14)
@pytest.mark.parametrize("row", ROWS)
def test_jvp_is_the_transpose_of_the_pullback(row, request):
    rng = np.random.default_rng(zlib.crc32(request.node.name.encode()))
    for letter in "dD":
        if letter in row.dtypes:
            check_transpose(row.calls[0], row.arrays(rng, row.shapes[0], letter), rng)


def check_transpose(call, arrays, rng):
    """Check that cotangents times derivatives along a direction are pulled cotangents times the direction."""
    if outcome(call, arrays)[1] is not None:
        return
    inexact = [k for k, a in enumerate(arrays) if a.dtype.kind in "fc"]
    arrays = [rng.uniform(0.3, 0.9, a.shape) if k in inexact and not np.isfinite(a).all() else a
              for k, a in enumerate(arrays)]  # fmt: skip

    def function(*given):
        values = dict(zip(inexact, given, strict=True))
        out = call(*[values.get(k, a) for k, a in enumerate(arrays)])
        return [leaf for leaf in flatten(out)[0] if leaf.dtype.kind in "fc"]

    @cyxla.jit(platform="interpreter")
    def both(primals, tangents, weights):
        out, pull = cyxla.vjp(function, *primals)
        cotangents = [w.astype(y.dtype) if w.shape == y.shape else y * 0 + 1 for w, y in zip(weights, out, strict=True)]
        changes = cyxla.jvp(function, primals, tangents)[1]
        return (
            sum([np.sum(np.real(c * d)) for c, d in zip(cotangents, changes, strict=True)], start=np.float64(0)),
            sum([np.sum(np.real(g * t)) for g, t in zip(pull(cotangents), tangents, strict=True)], start=np.float64(0)),
            sum([np.sum(np.abs(d)) for d in changes], start=np.float64(1)),
        )  # fmt: skip

    primals = tuple(arrays[k] for k in inexact)
    tangents = tuple(random_like(rng, p) for p in primals)
    shapes = flatten(outcome(call, arrays)[0])[0]
    weights = [random_like(rng, np.asarray(y)) for y in shapes if np.asarray(y).dtype.kind in "fc"]
    forward, backward, scale = both(primals, tangents, weights)
    if np.isfinite(backward):
        np.testing.assert_allclose(forward, backward, rtol=1e-6, atol=1e-6 * scale)


def random_like(rng, array):
    values = rng.normal(size=array.shape)
    return values + 1j * rng.normal(size=array.shape) if array.dtype.kind == "c" else values


def test_formulas():
    a, x = RNG.normal(size=(4, 3)), RNG.normal(size=3)
    np.testing.assert_allclose(cyxla.jacobian(np.dot, argnums=1)(a, x), a)
    np.testing.assert_allclose(
        cyxla.jacobian(lambda a, x: a @ x, argnums="a")(a, x), np.einsum("ij,k->ijk", np.eye(4), x)
    )
    np.testing.assert_allclose(cyxla.hessian(lambda x: x @ a.T @ a @ x)(x), 2 * a.T @ a)
    out, tangent = cyxla.jvp(np.multiply, (2.0, 3.0), (10.0, 1.0))
    assert (out, tangent) == (6.0, 32.0)
    np.testing.assert_allclose(cyxla.jvp(np.linalg.inv, (np.eye(2) * 2,), (np.ones((2, 2)),))[1], -np.ones((2, 2)) / 4)


def test_jacobian_by_several_arguments_and_containers():
    def function(p, x, n):
        return {"y": p["w"] @ x * n, "norm": np.sqrt(np.sum(x**2))}

    w, x = RNG.normal(size=(2, 3)), RNG.normal(size=3)
    found = cyxla.jacobian(function, argnums=(0, "x"))({"w": w}, x, 3)
    assert [part.shape for part in (found["y"][0]["w"], found["y"][1])] == [(2, 2, 3), (2, 3)]
    np.testing.assert_allclose(found["y"][1], 3 * w)
    np.testing.assert_allclose(found["norm"][1], x / np.sqrt(x @ x))
    assert not found["norm"][0]["w"].any()


@pytest.mark.parametrize("outer", [lambda f: f, cyxla.jit, cyxla.jit(platform="interpreter")])
def test_hessian(outer):
    def function(x):
        return np.sum(np.sin(x) * np.cumsum(x)) + x[0] * x[1] ** 2

    x = RNG.normal(size=4)
    want = np.stack([slope(lambda y, k=k: cyxla.grad(function)(y)[k], x) for k in range(4)])
    np.testing.assert_allclose(outer(cyxla.hessian(function))(x), want, atol=1e-7)


def test_hessian_of_loops_and_containers():
    x = RNG.uniform(0.1, 0.5, (2, 3))
    total = lambda x: np.sum(carried(x)[1])  # noqa: E731
    found = cyxla.hessian(total)(x)
    assert found.shape == (2, 3, 2, 3)
    np.testing.assert_allclose(found.reshape(6, 6), found.reshape(6, 6).T, atol=1e-12)
    np.testing.assert_allclose(found[1, 2], slope(lambda y: cyxla.grad(total)(y)[1, 2], x), atol=1e-7)
    found = cyxla.hessian(lambda p: p["a"] ** 2 * p["b"])({"a": 3.0, "b": 5.0})
    assert found == {"a": {"a": 10.0, "b": 6.0}, "b": {"a": 6.0, "b": 0.0}}


@pytest.mark.parametrize("function, passes", [
    (lambda x: np.outer(x, x), 3), (lambda x: np.sum(np.outer(x, x), axis=0)[:2], 2), (np.sin, 3),
    (lambda x: (np.outer(x, x), x), 3), (lambda x: only_reverse()(np.outer(x, x)), 9),
])  # fmt: skip
def test_the_mode_with_fewer_passes_is_chosen(function, passes):
    module = cyxla.jit(cyxla.jacobian(function)).lower(np.ones(3))
    loops = [i for c in module.post_order() for i in c.instructions if i.opcode == "while"]
    assert [known_trip_count(loop) for loop in loops] == [passes]


def test_arguments_of_several_kinds_in_forward_mode():
    def function(p, x, n):
        return np.outer(p["w"] * x, np.ones(9)) * n + p["b"]

    p = {"w": np.arange(1.0, 4), "b": np.float64(2)}
    by_p, by_n = cyxla.jacobian(function, argnums=(0, 2), allow_int=True)(p, np.ones(3), 2)
    np.testing.assert_allclose(by_p["w"], 2 * np.eye(3)[:, None, :] * np.ones((3, 9, 1)))
    np.testing.assert_allclose(by_p["b"], np.ones((3, 9)))
    assert (by_n == np.zeros((3, 9))).all()
    assert cyxla.jacobian(lambda x, y: np.outer(x, y))(np.zeros(0), np.ones(3)).shape == (0, 3, 0)
    assert cyxla.jacobian(lambda x, y: y * np.sum(x))(np.zeros(0), np.ones(3)).shape == (3, 0)


def test_auxiliary_results():
    function = lambda x: (x * x, {"positive": x > 0})  # noqa: E731
    out, tangent, aux = cyxla.jvp(function, (X,), (V,), has_aux=True)
    np.testing.assert_allclose(tangent, 2 * X * V)
    assert aux["positive"].all()
    assert (out == X * X).all()
    assert cyxla.jacobian(function, has_aux=True)(3.0) == (6.0, {"positive": True})
    assert cyxla.hessian(lambda x: (x**3, x > 0), has_aux=True)(2.0) == (12.0, True)


def test_complex_numbers():
    z, t = np.array([1 + 2j, -0.5j]), np.array([0.5 + 1j, 2.0])
    np.testing.assert_allclose(cyxla.jvp(lambda z: z * z, (z,), (t,))[1], 2 * z * t)
    np.testing.assert_allclose(cyxla.jvp(np.conj, (z,), (t,))[1], np.conj(t))
    want = cyxla.grad(lambda z: np.abs(z)[0])(z)
    np.testing.assert_allclose(cyxla.jacobian(np.abs)(z)[0], want)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "bfloat16"])
def test_dtypes_are_those_of_the_function(dtype):
    import ml_dtypes

    dtype = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    x = np.arange(1, 4).astype(dtype)
    out, tangent = cyxla.jvp(lambda x: x * x, (x,), (np.ones(3),))
    assert (out.dtype, tangent.dtype, cyxla.jacobian(lambda x: x * x)(x).dtype) == (dtype, dtype, dtype)
    np.testing.assert_array_equal(tangent.astype("f8"), [2, 4, 6])


def test_results_that_are_not_differentiable():
    out, tangent = cyxla.jvp(lambda x: (x > 0.5, np.floor(x), np.argmax(x)), (X,), (V,))
    assert [np.shape(t) for t in tangent] == [np.shape(y) for y in out]
    assert not any(np.any(t) for t in tangent)


def test_results_of_run_time_size():
    out, tangent = cyxla.jvp(lambda x: x[x > 0.5] ** 2, (X,), (V,))
    np.testing.assert_allclose(out, X[X > 0.5] ** 2)
    np.testing.assert_allclose(tangent, (2 * X * V)[X > 0.5])


@pytest.mark.parametrize("shape", [(0,), (0, 2), (2, 0), ()])
def test_empty_and_scalar(shape):
    x = np.full(shape, 2.0)
    np.testing.assert_allclose(cyxla.jvp(np.square, (x,), (x,))[1], 8.0 + np.zeros(shape))
    assert np.shape(cyxla.jacobian(np.square)(x)) == shape + shape


def test_nested_forward_mode():
    twice = cyxla.jvp(lambda x: cyxla.jvp(np.sin, (x,), (1.0,))[1], (0.5,), (1.0,))
    np.testing.assert_allclose(twice, (np.cos(0.5), -np.sin(0.5)))
    np.testing.assert_allclose(cyxla.grad(lambda x: cyxla.jvp(np.exp, (x,), (x,))[1])(1.0), 2 * np.e)


def only_reverse():
    wave = cyxla.custom_vjp(np.sin)
    wave.defvjp(lambda x: (np.sin(x), x), lambda x, g: (10 * g * np.cos(x),))
    return wave


def test_custom_derivatives():
    wave = only_reverse()
    assert cyxla.jacobian(wave)(0.0) == 10
    assert cyxla.jvp(lambda x: cyxla.stop_gradient(wave(x)) * x, (1.0,), (1.0,))[1] == np.sin(1.0)
    np.testing.assert_allclose(cyxla.jvp(cyxla.grad(wave), (1.0,), (1.0,))[1], -10 * np.sin(1.0))


@pytest.mark.parametrize("call, error, words", [
    (lambda: cyxla.jvp(only_reverse(), (1.0,), (1.0,)), UnimplementedError, "reverse mode alone"),
    (lambda: cyxla.jvp(lambda x: cyxla.scan(lambda c, y: (only_reverse()(c) + y, None), 0.0, x)[0], (X[0],), (X[0],)),
     UnimplementedError, "reverse mode alone"),
    (lambda: cyxla.jvp(np.sin, X, V), InvalidArgumentError, "primals must be a tuple"),
    (lambda: cyxla.jvp(np.sin, (X,), V), InvalidArgumentError, "tangents must be a tuple"),
    (lambda: cyxla.jvp(np.sin, (X,), (V, V)), InvalidArgumentError, "structure of the arguments"),
    (lambda: cyxla.jvp(np.sin, (X,), ([V],)), InvalidArgumentError, "structure of the arguments"),
    (lambda: cyxla.jvp(np.sin, (X,), (V[0],)), ShapeError, "tangent 0 has shape"),
    (lambda: cyxla.jvp(np.sin, (1,), (1.0,)), DTypeError, "argument 0 has dtype int64"),
    (lambda: cyxla.jacobian(np.sin)(3), DTypeError, "jacobian: argument 0 has dtype int64"),
    (lambda: cyxla.jacobian(np.sin, argnums=1)(X), InvalidArgumentError, "without argument 1"),
    (lambda: cyxla.jacobian(lambda x: x * 1j)(X), TraceError, "must return floats"),
    (lambda: cyxla.jacobian(lambda x: x > 1)(X), TraceError, "must return floats"),
    (lambda: cyxla.jacobian(lambda x: x[x > 0][:, None])(X), UnimplementedError, "size of the result"),
    (lambda: cyxla.hessian(lambda x: x * x)(X), TraceError, "must return a real scalar"),
    (lambda: cyxla.hessian(lambda z: np.sum(np.abs(z)))(X * 1j), TraceError, "must be real"),
    (lambda: cyxla.jacobian(lambda x: cyxla.while_loop(lambda y: y < 9, lambda y: y * y, x))(3.0),
     UnimplementedError, "unknown trip count"),
])  # fmt: skip
def test_errors(call, error, words, monkeypatch):
    monkeypatch.setenv("CYXLA_FALLBACK", "numpy")
    with pytest.raises(error, match=words):
        call()
