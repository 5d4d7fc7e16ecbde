"""Batch normalisation against its formulas, and the gradient against differences."""

import numpy as np
import pytest

RNG = np.random.default_rng(0)
SHAPES = [((4, 3), 1), ((2, 3, 4, 5), 3), ((3, 4), 0), ((5,), 0)]


def column(values, x, feature):
    return values.reshape([-1 if d == feature else 1 for d in range(x.ndim)])


def normalise(x, scale, offset, mean, variance, feature, epsilon):
    scale, offset, mean, variance = (column(v, x, feature) for v in (scale, offset, mean, variance))
    return (x - mean) / np.sqrt(variance + epsilon) * scale + offset


def moments(x, feature):
    axes = tuple(d for d in range(x.ndim) if d != feature)
    return x.mean(axes), x.var(axes)


@pytest.mark.parametrize("shape, feature", SHAPES)
def test_inference(run, shape, feature):
    x, scale, offset, mean = RNG.standard_normal(shape), *RNG.standard_normal((3, shape[feature]))
    variance = RNG.random(shape[feature])
    got = run("batch-norm-inference", x, scale, offset, mean, variance, epsilon=0.5, feature_index=feature)
    np.testing.assert_allclose(got, normalise(x, scale, offset, mean, variance, feature, 0.5), rtol=1e-12)


def training(hlo, x, scale, offset, feature):
    n, dims = x.shape[feature], ",".join(map(str, x.shape))
    return hlo(
        f"(f64[{dims}], f64[{n}], f64[{n}]) batch-norm-training(p0, p1, p2), epsilon=0.25, feature_index={feature}",
        x,
        scale,
        offset,
    )


@pytest.mark.parametrize("shape, feature", SHAPES)
def test_training(hlo, shape, feature):
    x, scale, offset = RNG.standard_normal(shape), *RNG.standard_normal((2, shape[feature]))
    y, mean, variance = training(hlo, x, scale, offset, feature)
    np.testing.assert_allclose(mean, moments(x, feature)[0], rtol=1e-12)
    np.testing.assert_allclose(variance, moments(x, feature)[1], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(y, normalise(x, scale, offset, mean, variance, feature, 0.25), rtol=1e-12)


def test_gradient_is_the_slope_of_training(hlo):
    x, dy = RNG.standard_normal((2, 4, 3))
    scale, offset = RNG.standard_normal((2, 3))
    mean, variance = moments(x, 1)
    grads = hlo(
        "(f64[4,3], f64[3], f64[3]) batch-norm-grad(p0, p1, p2, p3, p4), epsilon=0.25, feature_index=1",
        x,
        scale,
        mean,
        variance,
        dy,
    )

    def loss(*args):
        return float((training(hlo, *args, 1)[0] * dy).sum())

    args, step = (x, scale, offset), 1e-6
    for n, grad in enumerate(grads):
        for at in np.ndindex(grad.shape):
            up, down = ([a.copy() for a in args] for _ in range(2))
            up[n][at] += step
            down[n][at] -= step
            assert grad[at] == pytest.approx((loss(*up) - loss(*down)) / (2 * step), abs=1e-6)


def test_narrow_floats_round_once(run):
    x = np.array([[1.0], [2.0], [4.0]], np.float16)
    one, zero = np.ones(1, np.float16), np.zeros(1, np.float16)
    got = run("batch-norm-inference", x, one * 3, one, one, zero, epsilon=0.001, feature_index=1)
    want = (x.astype(np.float64) - 1) / np.sqrt(float(np.float32(0.001))) * 3 + 1
    np.testing.assert_array_equal(got, want.astype(np.float16))
