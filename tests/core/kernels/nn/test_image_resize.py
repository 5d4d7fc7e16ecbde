"""Images resized by splines and by areas."""

import numpy as np
import pytest

from cyxla import Graph, Session, gradients
from cyxla.core.framework.apply import apply_op

RNG = np.random.default_rng(11)


@pytest.mark.parametrize("attrs", [{}, {"half_pixel_centers": True}, {"align_corners": True}])
def test_splines_keep_polynomials(attrs):
    """An image of one size is itself, and a flat one stays flat, at any size."""
    image = RNG.random((2, 5, 4, 3)).astype(np.float32)
    np.testing.assert_allclose(apply_op("ResizeBicubic", image, [5, 4], **attrs), image, rtol=1e-5)
    flat = np.full((1, 3, 6, 2), 7, np.uint8)
    np.testing.assert_allclose(apply_op("ResizeBicubic", flat, [8, 5], **attrs), np.full((1, 8, 5, 2), 7), rtol=1e-5)


def test_half_way_between_pixels():
    """The weights of Keys' spline at one half."""
    row = np.array([0, 0, 1, 0, 0, 0], np.float32).reshape(1, 1, 6, 1)
    found = apply_op("ResizeBicubic", row, [1, 12]).reshape(-1)
    near, far = 0.59375, -0.09375  # of a = -0.75
    np.testing.assert_allclose(found[1:10], [far, 0, near, 1, near, 0, far, 0, 0], atol=1e-6)


@pytest.mark.parametrize("attrs", [{}, {"half_pixel_centers": True}, {"align_corners": True}])
@pytest.mark.parametrize("size", [[3, 8], [9, 2]])
def test_the_gradient_is_the_transpose(attrs, size):
    image, weight = RNG.random((1, 5, 4, 2)), RNG.random((1, *size, 2)).astype(np.float32)
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("double", [1, 5, 4, 2])
        y = apply_op("ResizeBicubic", x, size, **attrs)
        [dx] = gradients([y], [x], [weight])
    got, value = Session(graph).run([dx, y], {x: image})
    np.testing.assert_allclose(np.sum(got * image), np.sum(weight * value), rtol=1e-4)


def test_areas_are_means():
    image = np.arange(48, dtype=np.float64).reshape(1, 4, 6, 2)
    found = apply_op("ResizeArea", image, [2, 3])
    np.testing.assert_allclose(found, image.reshape(1, 2, 2, 3, 2, 2).mean(axis=(2, 4)))
    row = np.array([1, 2, 4], np.int32).reshape(1, 1, 3, 1)
    np.testing.assert_allclose(apply_op("ResizeArea", row, [1, 2]).reshape(-1), [(1 + 1) / 1.5, (1 + 4) / 1.5])
