"""`grad`, `value_and_grad`, `vjp` and derivatives by hand, against formulas and central differences."""

import numpy as np
import pytest
from numerical import slope

from cyxla.errors import DTypeError, InvalidArgumentError, ShapeError, TraceError
from cyxla.numpy.gradient import checkpoint, custom_vjp, grad, stop_gradient, value_and_grad, vjp

RNG = np.random.default_rng(5)
X, W = RNG.normal(size=(3, 4)), RNG.normal(size=(4, 2))


def loss(x, w):
    return np.sum(np.tanh(x @ w) ** 2)


def test_by_one_argument_and_by_two():
    np.testing.assert_allclose(grad(loss)(X, W), slope(lambda x: loss(x, W), X), atol=1e-8)
    by_both = grad(loss, argnums=(1, 0))(X, W)
    np.testing.assert_allclose(by_both[0], slope(lambda w: loss(X, w), W), atol=1e-8)
    np.testing.assert_array_equal(by_both[1], grad(loss)(X, W))


def test_arguments_by_name_and_from_behind():
    np.testing.assert_array_equal(grad(loss, argnums="w")(X, W), grad(loss, argnums=1)(X, W))
    np.testing.assert_array_equal(grad(loss, argnums="w")(X, w=W), grad(loss, argnums=-1)(X, W))


def test_value_and_gradient():
    value, slopes = value_and_grad(loss, argnums=(0,))(X, W)
    np.testing.assert_allclose(value, loss(X, W))
    np.testing.assert_array_equal(slopes[0], grad(loss)(X, W))


def test_containers_come_back_alike():
    slopes = grad(lambda p: np.sum(p["a"] * 3.0 + p["b"][0]))({"a": X, "b": [2.0, 1.0]})
    np.testing.assert_array_equal(slopes["a"], np.full((3, 4), 3.0))
    assert slopes["b"] == [12.0, 0.0]


def test_a_second_result_comes_along():
    slopes, extra = grad(lambda x: (np.sum(x * x), {"twice": x + x}), has_aux=True)(X)
    np.testing.assert_array_equal(slopes, 2 * X)
    np.testing.assert_array_equal(extra["twice"], 2 * X)


def test_gradients_of_gradients():
    inner = grad(lambda x: np.sum(np.exp(x) * x))
    got = grad(lambda x: np.sum(inner(x) * x))(X)
    np.testing.assert_allclose(got, np.exp(X) * (1 + 3 * X + X * X), rtol=1e-12)


def test_the_way_back_of_any_result():
    out, back = vjp(lambda x, w: {"y": x @ w, "n": 3}, X, W)
    np.testing.assert_allclose(out["y"], X @ W)
    g = RNG.normal(size=(3, 2))
    dx, dw = back({"y": g, "n": 0})
    np.testing.assert_allclose(dx, g @ W.T)
    np.testing.assert_allclose(dw, X.T @ g)


def test_what_is_stopped_counts_as_constant():
    assert grad(lambda x: stop_gradient(x) * x)(3.0) == 3.0


def test_a_derivative_by_hand():
    @custom_vjp
    def wave(x):
        return np.sin(x)

    wave.defvjp(lambda x: (np.sin(x), x), lambda x, g: (10 * g * np.cos(x),))
    assert wave(0.5) == np.sin(0.5)
    assert grad(wave)(0.0) == 10
    np.testing.assert_allclose(grad(grad(wave))(1.0), -10 * np.sin(1.0))


def test_what_is_computed_again():
    again = checkpoint(lambda x: np.sin(np.sin(x)) * x)
    np.testing.assert_allclose(grad(again)(1.0), slope(again, np.float64(1)), atol=1e-8)
    np.testing.assert_allclose(grad(grad(again))(1.0), slope(grad(again), np.float64(1)), atol=1e-8)


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda: grad(loss)(np.ones((3, 4), int), W), DTypeError, "argument 0 holds int64"),
        (lambda: grad(lambda x: x * 2)(X), TraceError, "one real number"),
        (lambda: grad(lambda x: np.sum(x) * 1j)(X), TraceError, "one real number"),
        (lambda: grad(lambda x: (x, x))(1.0), TraceError, "a tuple of 2 arrays"),
        (lambda: grad(loss, argnums=2)(X, W), InvalidArgumentError, "without argument 2"),
        (lambda: grad(loss, argnums="v")(X, W), InvalidArgumentError, "without argument 'v'"),
        (lambda: grad(lambda x: x, has_aux=True)(1.0), TraceError, "must return a pair"),
        (lambda: grad(lambda s: 1.0)("x"), DTypeError, "is a str"),
        (lambda: vjp(np.sin, X)[1](W), ShapeError, "cotangent 0"),
        (lambda: vjp(np.sin, X)[1]((X,)), TraceError, "not a container like"),
    ],
)
def test_refusals(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_integers_have_no_slope_where_they_are_allowed():
    assert (grad(lambda n, x: np.sum(n * x), allow_int=True)(np.arange(3), np.ones(3)) == 0).all()
