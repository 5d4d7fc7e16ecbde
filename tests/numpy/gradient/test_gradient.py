"""`grad`, `value_and_grad`, `vjp` and custom derivatives, against formulas and central differences."""

import re
from pathlib import Path

import numpy as np
import pytest
from support.numerical import slope

from cyxla.errors import DTypeError, FailedPreconditionError, InvalidArgumentError, ShapeError, TraceError
from cyxla.numpy import jit
from cyxla.numpy.control import cond, fori_loop, scan
from cyxla.numpy.control import map as cyxla_map
from cyxla.numpy.gradient import checkpoint, custom_vjp, grad, stop_gradient, value_and_grad, vjp
from cyxla.numpy.tracing.containers import map_leaves

RNG = np.random.default_rng(5)
X, W = RNG.normal(size=(3, 4)), RNG.normal(size=(4, 2))


def loss(x, w):
    return np.sum(np.tanh(x @ w) ** 2)


def test_one_and_two_arguments():
    np.testing.assert_allclose(grad(loss)(X, W), slope(lambda x: loss(x, W), X), atol=1e-8)
    by_both = grad(loss, argnums=(1, 0))(X, W)
    np.testing.assert_allclose(by_both[0], slope(lambda w: loss(X, w), W), atol=1e-8)
    np.testing.assert_array_equal(by_both[1], grad(loss)(X, W))


def test_arguments_by_name_and_negative_position():
    np.testing.assert_array_equal(grad(loss, argnums="w")(X, W), grad(loss, argnums=1)(X, W))
    np.testing.assert_array_equal(grad(loss, argnums="w")(X, w=W), grad(loss, argnums=-1)(X, W))


def test_value_and_gradient():
    value, slopes = value_and_grad(loss, argnums=(0,))(X, W)
    np.testing.assert_allclose(value, loss(X, W))
    np.testing.assert_array_equal(slopes[0], grad(loss)(X, W))


def test_gradients_keep_container_structure():
    slopes = grad(lambda p: np.sum(p["a"] * 3.0 + p["b"][0]))({"a": X, "b": [2.0, 1.0]})
    np.testing.assert_array_equal(slopes["a"], np.full((3, 4), 3.0))
    assert slopes["b"] == [12.0, 0.0]


def test_has_aux():
    slopes, extra = grad(lambda x: (np.sum(x * x), {"twice": x + x}), has_aux=True)(X)
    np.testing.assert_array_equal(slopes, 2 * X)
    np.testing.assert_array_equal(extra["twice"], 2 * X)


def test_gradients_of_gradients():
    inner = grad(lambda x: np.sum(np.exp(x) * x))
    got = grad(lambda x: np.sum(inner(x) * x))(X)
    np.testing.assert_allclose(got, np.exp(X) * (1 + 3 * X + X * X), rtol=1e-12)


def test_vjp_of_any_result():
    out, back = vjp(lambda x, w: {"y": x @ w, "n": 3}, X, W)
    np.testing.assert_allclose(out["y"], X @ W)
    g = RNG.normal(size=(3, 2))
    dx, dw = back({"y": g, "n": 0})
    np.testing.assert_allclose(dx, g @ W.T)
    np.testing.assert_allclose(dw, X.T @ g)


def test_gradient_of_jit_and_jit_of_gradient():
    cubed = jit(lambda x: np.sum(x**3), platform="interpreter")
    for f in (grad(cubed), jit(grad(cubed)), value_and_grad(cubed), jit(value_and_grad(cubed))):
        result = f(X)
        np.testing.assert_allclose(result[1] if isinstance(result, tuple) else result, 3 * X**2)
    hand = custom_vjp(lambda x: x)
    hand.defvjp(lambda x: (x, None), lambda _, g: (5 * g,))
    assert value_and_grad(hand)(1.0) == (1.0, 5.0)
    assert jit(grad(checkpoint(hand)))(1.0) == 5


def test_of_ufuncs():
    assert jit(np.abs)(-1.5) == 1.5
    assert grad(np.abs)(-1.5) == jit(grad(np.abs))(-1.5) == -1


def test_stop_gradient():
    assert grad(lambda x: stop_gradient(x) * x)(3.0) == 3.0


def test_custom_vjp():
    @custom_vjp
    def wave(x):
        return np.sin(x)

    wave.defvjp(lambda x: (np.sin(x), x), lambda x, g: (10 * g * np.cos(x),))
    assert wave(0.5) == np.sin(0.5)
    assert grad(wave)(0.0) == grad(lambda x: wave(x=x))(0.0) == 10
    np.testing.assert_allclose(grad(grad(wave))(1.0), -10 * np.sin(1.0))


def test_custom_vjp_of_containers_and_constants():
    @custom_vjp
    def scaled(p, factor, name):
        return {"y": p["a"] * factor, "z": p["b"]}

    scaled.defvjp(
        lambda p, factor, name: (scaled(p, factor, name), (factor, name)),
        lambda kept, g: ({"a": 7 * g["y"] * kept[0], "b": g["z"] * (2 if kept[1] is not None else 0)}, None, None),
    )

    def f(p, factor):
        result = scaled(p, factor, None)
        return np.sum(result["y"]) + np.sum(result["z"])

    slopes = grad(f)({"a": X, "b": W}, 3.0)
    np.testing.assert_array_equal(slopes["a"], np.full((3, 4), 21.0))
    np.testing.assert_array_equal(slopes["b"], np.zeros((4, 2)))


def invalid_vjp(fwd, bwd):
    @custom_vjp
    def f(x):
        return x * 2

    if fwd is not None:
        f.defvjp(fwd, bwd)
    return grad(lambda x: np.sum(f(x)))(X)


def use_captured_value(x):
    @custom_vjp
    def f(y):
        return y * x

    f.defvjp(lambda y: (y * x, None), lambda _, g: (g,))
    return np.sum(f(x))


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda: invalid_vjp(None, None), FailedPreconditionError, "no derivative yet"),
        (lambda: invalid_vjp(lambda x: x, lambda _, g: (g,)), TraceError, "a pair, the result and the residuals"),
        (lambda: invalid_vjp(lambda x: (x, None), lambda _, g: g), TraceError, "a tuple of 1"),
        (lambda: invalid_vjp(lambda x: (x, None), lambda _, g: (g[0],)), TraceError, r"shape \(4,\)"),
        (lambda: invalid_vjp(lambda x: (x, None), lambda _, g: ([g],)), TraceError, "the structure of its argument"),
        (lambda: grad(use_captured_value)(X), TraceError, "not one of its arguments"),
    ],
)
def test_invalid_custom_vjp(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_checkpoint():
    again = checkpoint(lambda x: np.sin(np.sin(x)) * x)
    np.testing.assert_allclose(grad(again)(1.0), slope(again, np.float64(1)), atol=1e-8)
    np.testing.assert_allclose(grad(grad(again))(1.0), slope(grad(again), np.float64(1)), atol=1e-8)


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda: grad(loss)(np.ones((3, 4), int), W), DTypeError, "argument 0 has dtype int64"),
        (lambda: grad(lambda x: x * 2)(X), TraceError, "a real scalar"),
        (lambda: grad(lambda x: np.sum(x) * 1j)(X), TraceError, "a real scalar"),
        (lambda: grad(lambda x: (x, x))(1.0), TraceError, "a tuple of 2 arrays"),
        (lambda: grad(lambda x: None)(1.0), TraceError, "returns None"),
        (lambda: grad(loss, argnums=2)(X, W), InvalidArgumentError, "without argument 2"),
        (lambda: grad(loss, argnums="v")(X, W), InvalidArgumentError, "without argument 'v'"),
        (lambda: grad(lambda x: x, has_aux=True)(1.0), TraceError, "must return a pair"),
        (lambda: grad(lambda s: 1.0)("x"), DTypeError, "is a str"),
        (lambda: vjp(np.sin, X)[1](W), ShapeError, "cotangent 0"),
        (lambda: vjp(np.sin, X)[1]((X,)), TraceError, "the structure of the result"),
    ],
)
def test_errors(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_allow_int_gives_zero_gradients():
    assert (grad(lambda n, x: np.sum(n * x), allow_int=True)(np.arange(3), np.ones(3)) == 0).all()


def test_vjp_inside_of_a_loop():
    def f(x):
        y = cond(x[0] > 0, lambda: np.tanh(x) * x, lambda: x + 1)
        y, _ = scan(lambda c, a: (np.sin(c) * a, a), y, x[:3])
        return checkpoint(lambda v: np.exp(v) * x)(y)

    def rows(x):
        back = vjp(f, x)[1]
        return cyxla_map(lambda g: back(g)[0], np.eye(4))

    got = jit(rows, platform="interpreter")(X[0])
    for k in range(4):
        np.testing.assert_allclose(got[k], slope(lambda x, k=k: f(x)[k], X[0]), atol=1e-8)


def test_gradient_descent_inside_of_a_loop():
    def settled(x):
        inner = grad(lambda v: np.sum(np.sin(v * x)))
        return np.sum(fori_loop(0, 3, lambda i, v: v - 0.1 * inner(v), x))

    got = jit(grad(settled), platform="interpreter")(X[0])
    np.testing.assert_allclose(got, slope(jit(settled, platform="interpreter"), X[0]), atol=1e-8)


@pytest.mark.parametrize("letter", "efdFD")
def test_gradients_keep_the_dtype(letter):
    x = X.astype(letter)
    got = jit(grad(lambda v: np.sum(np.abs(v) ** 2)), platform="interpreter")(x)
    assert got.dtype == x.dtype
    np.testing.assert_allclose(got, 2 * np.conj(x), rtol=2e-3 if letter == "e" else 1e-5)


def test_index_out_of_range_raises():
    slopes = jit(grad(lambda x, i: np.sum(x[i] * scan(lambda c, v: (c + x[i], v), 0.0, x)[0])), platform="interpreter")
    np.testing.assert_allclose(slopes(X[0], 1), [0, 8 * X[0, 1], 0, 0])
    with pytest.raises(IndexError, match="index 7"):
        slopes(X[0], 7)


# -- where it is a matter of agreement

EDGES = [
    (lambda x: np.max(x), [1.0, 1.0, 0.0], [0.5, 0.5, 0]),
    (lambda x: np.minimum(x, 1.0), 1.0, 0.5),
    (lambda x: np.maximum(x, 0), 0.0, 0.5),
    (lambda x: np.sum(np.clip(x, 0, 1)), [0.0, 0.5, 1.0, 2.0], [0.5, 1, 0.5, 0]),
    (np.abs, 0.0, 0),
    (np.abs, 0j, 0),
    (np.sqrt, 0.0, np.inf),
    (lambda x: x**2, 0.0, 0),
    (lambda x: x**0.0, 0.0, 0),
    (lambda x: np.power(0.0, x), 1.0, 0),
    (lambda x: x**3.0, -2.0, 12),
    (lambda x: np.prod(x), [0.0, 2.0, 3.0], [6, 0, 0]),
    (lambda x: np.prod(x), [0.0, 0.0, 3.0], [0, 0, 0]),
    (lambda x: np.sum(np.cumprod(x)), [2.0, 0.0, 3.0], [1, 8, 0]),
    (lambda x: np.hypot(x[0], x[1]), [0.0, 0.0], [0, 0]),
    (lambda x: np.linalg.norm(x), [3.0, 0.0], [1, 0]),
    (lambda x: np.logaddexp(x[0], x[1]), [-np.inf, 0.0], [0, 1]),
    (lambda x: np.arctan2(x[0], x[1]), [0.0, -1.0], [-1, 0]),
    (lambda x: np.sinc(x), 0.0, 0),
    (lambda x: np.where(x > 0, np.log(np.where(x > 0, x, 1)), 0), 0.0, 0),
    (lambda x: np.nansum(x), [2.0, np.nan], [1, 0]),
    (lambda x: np.median(x), [2.0, 1.0, 5.0, 4.0], [0.5, 0, 0, 0.5]),
    (lambda x: x[0] // x[1] + np.floor(x[0]) + np.sign(x[1]), [5.0, 3.0], [0, 0]),
    (lambda x: np.abs(x) ** 2, 3 + 4j, 6 - 8j),
    (lambda x: np.real(x * x), 3 + 4j, 6 + 8j),
]


@pytest.mark.parametrize("function, at, want", EDGES)
def test_edges(function, at, want):
    got = jit(grad(function), platform="interpreter")(np.array(at))
    np.testing.assert_allclose(got, want, rtol=1e-15, atol=1e-15)


# -- training


def steps(loss, params, data, count, rate):
    @jit
    def step(p):
        value, slopes = value_and_grad(loss)(p, *data)
        return value, map_leaves(lambda w, g: w - rate * g, p, slopes)

    values = []
    for _ in range(count):
        value, params = step(params)
        values.append(value)
    return values


def test_a_network_learns():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(64, 5)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] > 0).astype(np.int64)
    params = [
        (rng.normal(size=s).astype(np.float32) / 2, np.zeros(s[1], np.float32)) for s in ((5, 24), (24, 24), (24, 2))
    ]

    def loss(p, x, y):
        for w, b in p[:-1]:
            x = np.maximum(x @ w + b, 0)
        z = x @ p[-1][0] + p[-1][1]
        z = z - np.max(z, axis=1, keepdims=True)
        return -np.mean(z[np.arange(64), y] - np.log(np.sum(np.exp(z), axis=1)))

    values = steps(loss, params, (x, y), 120, np.float32(0.5))
    assert values[0] > 0.5
    assert values[-1] < 0.05


def attention(x, w):
    """Compute a transformer block: one causal attention head and two layers."""
    q, k, v = np.split(x @ w["qkv"], 3, axis=-1)
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(np.float32(q.shape[-1]))
    s = np.where(np.tril(np.ones(s.shape[-2:], bool)), s, np.float32(-1e9))
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    x = x + (e / e.sum(axis=-1, keepdims=True)) @ v @ w["out"]
    mean, spread = x.mean(axis=-1, keepdims=True), x.std(axis=-1, keepdims=True)
    h = (x - mean) / (spread + np.float32(1e-3)) * w["scale"]
    return x + np.tanh(h @ w["up"]) @ w["down"]


def test_a_transformer_learns():
    rng = np.random.default_rng(2)
    ids = (np.arange(12)[None] * np.arange(1, 7)[:, None]) % 7  # rows are arithmetic progressions

    def drawn(*sizes):
        return (rng.normal(size=sizes) / 4).astype(np.float32)

    block = {
        "qkv": drawn(16, 48),
        "out": drawn(16, 16),
        "scale": np.ones(16, np.float32),
        "up": drawn(16, 32),
        "down": drawn(32, 16),
    }
    params = {
        "table": drawn(7, 16),
        "place": drawn(11, 16),
        "blocks": [block, {k: v[::-1].copy() for k, v in block.items()}],
    }

    def loss(p, ids):
        x = p["table"][ids[:, :-1]] + p["place"]
        for w in p["blocks"]:
            x = attention(x, w)
        z = x @ p["table"].T
        z = z - z.max(axis=-1, keepdims=True)
        logs = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
        return -np.take_along_axis(logs, ids[:, 1:, None], -1).mean()

    values = steps(loss, params, (ids,), 150, np.float32(0.3))
    assert values[0] > 1.5
    assert values[-1] < 0.25


def test_the_documents_run():
    text = (Path(__file__).parents[3] / "docs" / "gradients.md").read_text()
    known = {}
    for block in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        exec(block, known)
    assert known["value"] < known["loss"](RNG.normal(size=3), known["x"], known["y"])
    np.testing.assert_array_equal(known["small"], np.ones(3))
    at = slope(lambda a: known["rollout"](a, np.ones((5, 2))), known["a"])
    np.testing.assert_allclose(known["gradient"], at, rtol=1e-7)


TABLE = (np.array([0.0, 1.0, 2.0]), np.array([0.0, 10.0, 5.0]))
CHOSEN = {  # a function, points without a derivative, and the slopes there
    "abs": (np.abs, [0.0, -0.0], [0, 0]),
    "abs-complex": (np.abs, [0j], [0]),
    "max": (np.max, [1.0, 3, 3], [0, 0.5, 0.5]),
    "maximum": (lambda x: np.maximum(x, 1.0), [0.0, 1, 2], [0, 0.5, 1]),
    "clip": (lambda x: np.clip(x, 0.0, 1.0), [-1.0, 0.5, 2], [0, 1, 0]),
    "sqrt": (np.sqrt, [0.0], [np.inf]),
    "sqrt-inside": (lambda x: np.where(x > 0, np.sqrt(np.where(x > 0, x, 1)), 0), [0.0, 4], [0, 0.25]),
    "power": (lambda x: x**0.0, [0.0, 2], [0, 0]),
    "prod": (np.prod, [0.0, 2, 3], [6, 0, 0]),
    "median": (np.median, [2.0, 5, 1], [1, 0, 0]),
    "interp": (lambda x: np.interp(x, *TABLE), [-1.0, 0, 1, 1.5, 2, 3], [0, 10, -5, -5, -5, 0]),
    "sinc": (np.sinc, [0.0, 1e-9], [0, -(np.pi**2) / 3e9]),
    "sinc-twice": (lambda x: grad(lambda x: np.sum(np.sinc(x)))(x), [0.0, 1e-4], [-(np.pi**2) / 3] * 2),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_subgradients_at_kinks(name):
    function, places, slopes = CHOSEN[name]
    gradients = jit(grad(lambda x: np.sum(function(x))), platform="interpreter")(np.array(places))
    np.testing.assert_allclose(gradients, slopes, rtol=1e-6)


def _branching(x):
    if x.sum() > 0:
        return np.sum(x**2)
    return np.sum(x)


def _looping(x):
    total = 0.0
    for v in x:
        if v > 0:
            total = total + v * v
    return total


class _Model:
    def loss(self, x):
        return _branching(x) if len(x) else 0.0


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    "derive",
    [
        grad,
        lambda f: lambda x: value_and_grad(f)(x)[1],
        lambda f: lambda x: vjp(f, x)[1](np.float64(1))[0],
        lambda f: grad(checkpoint(f)),
    ],
    ids=["grad", "value_and_grad", "vjp", "checkpoint"],
)
@pytest.mark.parametrize("function", [_branching, _looping, _Model().loss], ids=["if", "for", "method"])
def test_functions_with_control_flow(function, derive, sign):
    """Functions that are not jitted may branch on values, and loop over them, as those that are."""
    x = sign * np.array([1.0, -2.0, 3.0])
    np.testing.assert_allclose(derive(function)(x), slope(function, x), rtol=1e-6)
    np.testing.assert_array_equal(derive(function)(x), jit(grad(function))(x))
