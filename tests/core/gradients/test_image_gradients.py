"""Gradients of images, generic convolutions, normalisation and segments against central differences."""

import numpy as np
import pytest
from support.graphs.gradient_checks import Case, check_gradient, complex_points, points

from cyxla import Graph, Session, gradients
from cyxla.core.framework.apply import apply_op

IMAGE, DEEP = points(2, 5, 4, 2), points(2, 3, 4, 3, 2)
LAST = {"strides": [1, 2, 1, 1], "padding": "SAME"}
FIRST = {"strides": [1, 1, 1, 1], "padding": "VALID", "data_format": "CHANNELS_FIRST", "dilations": [1, 1, 1, 2]}
PADDED = {"strides": [1, 1, 1, 1], "padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 0, 2, 1, 0, 0]}
DEEPER = {"strides": [1, 1, 2, 1, 1], "padding": "SAME"}
DILATION = {"strides": [1, 2, 1, 1], "rates": [1, 1, 2, 1], "padding": "SAME"}
ARGMAX = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
PLACES = np.array([[[[1], [2]]]])
GLOBAL = {"variance_epsilon": 0.1, "scale_after_normalization": True}
UNSCALED = {**GLOBAL, "scale_after_normalization": False}
VECTORS = (points(2), points(2, low=0.5, seed=2), points(2, seed=3), points(2, seed=4))
ROWS, IDS = points(4, 3), np.array([0, 0, 2, 2])
ZEROED = ROWS * np.array([[1, 0, 1], [1, 1, 0], [1, 0, 1], [0, 0, 1]])
SINGLE = {"step": 3e-2, "tolerance": 1e-3}  # for ops of float32 alone
BOXES = np.array([[0.1, 0.2, 0.83, 0.91], [0.8, -0.3, 0.13, 0.63], [0.03, 0.11, 0.37, 0.27]], np.float32)
CROP = (BOXES, np.array([1, 0, 1], np.int32), np.array([3, 2], np.int32))

CASES = [
    Case("Conv", (IMAGE, points(3, 2, 2, 3)), LAST),
    Case("Conv", (IMAGE, points(2, 2, 1, 4)), {**LAST, "groups": 2}, note="groups"),
    Case("Conv", (points(2, 2, 4, 5), points(2, 2, 2, 3)), FIRST, note="first"),
    Case("Conv", (points(2, 1, 3, 4, 2), points(2, 2, 2, 1)), {**LAST, "batch_dims": 2}, note="batches"),
    Case("Conv", (IMAGE, points(2, 2, 2, 1)), PADDED, note="explicit"),
    Case("Conv", (DEEP, points(2, 2, 2, 2, 2)), DEEPER, note="deep"),
    Case("Conv2DBackpropInputV2", (IMAGE, points(3, 2, 2, 3), points(2, 3, 4, 3)), LAST),
    Case("Conv2DBackpropFilterV2", (IMAGE, points(3, 2, 2, 3), points(2, 3, 4, 3)), LAST),
    Case("Dilation2D", (IMAGE, points(2, 2, 2)), DILATION),
    Case("Dilation2D", (IMAGE, points(3, 2, 2)), {**DILATION, "padding": "VALID"}, note="inside"),
    Case("MaxPoolGradWithArgmax", (points(1, 2, 4, 1), points(1, 1, 2, 1), PLACES), ARGMAX),
    Case("MaxPoolGradGradWithArgmax", (points(1, 2, 4, 1), points(1, 2, 4, 1, seed=2), PLACES), ARGMAX),
    Case("BatchNormWithGlobalNormalization", (IMAGE, *VECTORS), GLOBAL),
    Case(
        "BatchNormWithGlobalNormalization", (IMAGE, *VECTORS), {**GLOBAL, "scale_after_normalization": False}, note="x"
    ),
    Case("RGBToHSV", (points(4, 5, 3, low=0.1, high=1.0),)),
    Case("CropAndResize", (IMAGE.astype(np.float32), *CROP), {"method": "bilinear"}, wrt=(0,), **SINGLE),
    Case("CropAndResize", (IMAGE.astype(np.float32), *CROP), {"method": "nearest"}, wrt=(0,), note="nearest", **SINGLE),
    *(Case("SegmentProd", (data, IDS), note=n) for n, data in (("", ROWS), ("zeros", ZEROED))),
    Case("SegmentProd", (complex_points(4, 2), IDS), note="complex"),
    *(Case(f"Segment{op}V2", (ROWS, IDS, np.int32(4))) for op in ("Sum", "Prod")),
    *(Case(f"Segment{op}V2", (ROWS, IDS // 2, np.int32(2))) for op in ("Max", "Min")),
]


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradient(case):
    check_gradient(case)


def _backward(dy, x, scale, training):
    """The first gradients of a normalised batch, in float64."""
    mean, variance = (x.mean((0, 1, 2)), x.var((0, 1, 2))) if training else VECTORS[:2]
    r = 1 / np.sqrt(variance + 0.01)
    n = (x - mean) * r
    if not training:
        return scale * r * dy, (dy * n).sum((0, 1, 2)), dy.sum((0, 1, 2))
    dx = scale * r * (dy - dy.mean((0, 1, 2)) - n * (dy * n).mean((0, 1, 2)))
    return dx, (dy * n).sum((0, 1, 2)), dy.sum((0, 1, 2))


@pytest.mark.parametrize("op", ["FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_second_gradient_of_batch_norm(op, training, layout):
    """The op runs in float32 and is compared with the slopes of the same formula in float64."""
    order = [0, 1, 2, 3] if layout == "NHWC" else [0, 3, 1, 2]
    dy, x, scale = points(2, 3, 2, 2, seed=1), points(2, 3, 2, 2, seed=2), points(2, seed=5)
    weights = points(2, 3, 2, 2, seed=6), points(2, seed=7), points(2, seed=8)
    given = (x.mean((0, 1, 2)), x.var((0, 1, 2))) if training else VECTORS[:2]
    graph = Graph()
    with graph.as_default():
        inputs = [graph.constant(a, "float") for a in (dy.transpose(order), x.transpose(order), scale, *given)]
        more = [graph.constant(np.zeros(0), "float")] if op.endswith("V3") else []
        found = apply_op(op, *inputs, *more, epsilon=0.01, is_training=training, data_format=layout)
        g = [graph.constant(w, "float") for w in (weights[0].transpose(order), *weights[1:])]
        slopes = gradients(list(found[:3]), inputs[:3], g)
    got = Session(graph).run(slopes)
    arrays = [dy, x, scale]
    for k, array in enumerate(arrays):
        want = np.zeros_like(array)
        for place in np.ndindex(array.shape):
            sides = []
            for sign in (1, -1):
                moved = array.copy()
                moved[place] += sign * 1e-5
                parts = _backward(*arrays[:k], moved, *arrays[k + 1 :], training)
                sides.append(sum(np.sum(w * p) for w, p in zip(weights, parts, strict=True)))
            want[place] = (sides[0] - sides[1]) / 2e-5
        np.testing.assert_allclose(got[k], want.transpose(order) if want.ndim == 4 else want, rtol=2e-4, atol=2e-4)


def test_boxes_of_crops():
    """Crops of a plane: the bilinear mix is linear in the corners, so its slopes are those of the plane."""
    image = np.add.outer(3.0 * np.arange(6), 2.0 * np.arange(5)).astype(np.float32)[None, ..., None]
    graph = Graph()
    with graph.as_default():
        boxes = graph.constant(BOXES[2:])
        crops = apply_op("CropAndResize", image, boxes, [0], [2, 3])
        [slopes] = gradients([crops], [boxes])
    got = Session(graph).run(slopes)
    np.testing.assert_allclose(got, [[3 * 5 * 3, 2 * 4 * 3, 3 * 5 * 3, 2 * 4 * 3]], rtol=1e-4)


def test_nan_in_gradients_is_seen():
    graph = Graph()
    with graph.as_default():
        x = graph.constant([1.0, 0.0])
        y = apply_op("Sqrt", apply_op("CheckNumerics", x, message="before the root"))
        [dx] = gradients([y], [x])
    with pytest.raises(Exception, match="CheckNumerics"):
        Session(graph).run(dx)


def test_options_pass_gradients():
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("double", [2])
        option = apply_op("OptionalFromValue", [x * 3.0])
        found = apply_op("OptionalGetValue", option, output_types=["double"], output_shapes=[[2]])
        [dx] = gradients([found[0] if isinstance(found, (list, tuple)) else found], [x])
    np.testing.assert_array_equal(Session(graph).run(dx, {x: np.ones(2)}), [3, 3])
