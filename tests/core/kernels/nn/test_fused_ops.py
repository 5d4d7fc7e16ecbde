"""Fused ops give the results of their parts in sequence."""

import numpy as np
import pytest

from cyxla.core.framework.apply import apply_op
from cyxla.errors import InvalidArgumentError, UnimplementedError

RNG = np.random.default_rng(2)
F32 = np.float32


def draw(*shape):
    return RNG.standard_normal(shape).astype(F32)


X, W, A, B = draw(1, 5, 6, 3), draw(2, 2, 3, 4), draw(2, 3), draw(3, 4)
CONV = {"strides": [1, 1, 1, 1], "padding": "SAME"}


@pytest.mark.parametrize("act", ["Relu", "Relu6", "Elu", "Tanh", "Sigmoid"])
def test_activations(act):
    bias = draw(4)
    want = apply_op(act, apply_op("BiasAdd", apply_op("MatMul", A, B), bias))
    np.testing.assert_allclose(apply_op("_FusedMatMul", A, B, [bias], fused_ops=["BiasAdd", act]), want, rtol=1e-5)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_normalised_convolutions(layout):
    scale, offset, mean, variance = draw(4), draw(4), draw(4), np.abs(draw(4))
    x = X if layout == "NHWC" else X.transpose(0, 3, 1, 2)
    y = apply_op("Conv2D", x, W, data_format=layout, **CONV)
    more = {"epsilon": 0.01, "data_format": layout}
    want = apply_op("FusedBatchNormV3", y, scale, offset, mean, variance, is_training=False, **more)[0]
    ops = {"fused_ops": ["FusedBatchNorm", "LeakyRelu"], "leakyrelu_alpha": 0.3}
    got = apply_op("_FusedConv2D", x, W, [scale, offset, mean, variance], [], num_args=4, **ops, **more, **CONV)
    np.testing.assert_allclose(got, apply_op("LeakyRelu", want, alpha=0.3), rtol=1e-4, atol=1e-5)


def test_sums_and_depthwise_convolutions():
    y, side = apply_op("Conv2D", X, W, **CONV), draw(1, 5, 6, 4)
    bias = draw(4)
    got = apply_op("_FusedConv2D", X, W, [bias, side], [], num_args=2, fused_ops=["BiasAdd", "Add", "Relu"], **CONV)
    np.testing.assert_allclose(got, np.maximum(y + bias + side, 0), rtol=1e-5, atol=1e-6)
    w, bias = draw(2, 2, 3, 2), draw(6)
    got = apply_op("_FusedDepthwiseConv2dNative", X, w, [bias], fused_ops=["BiasAdd"], **CONV)
    np.testing.assert_allclose(got, apply_op("DepthwiseConv2dNative", X, w, **CONV) + bias, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "ops, error",
    [([], InvalidArgumentError), (["BiasAdd", "Add"], InvalidArgumentError), (["Sin"], UnimplementedError)],
)
def test_compositions_that_cannot_be_fused(ops, error):
    with pytest.raises(error):
        apply_op("_FusedMatMul", A, B, [draw(4)], fused_ops=ops)


PADDINGS = np.int32([[0, 0], [2, 1], [1, 3], [0, 0]])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
@pytest.mark.parametrize("align", [None, False, True])
def test_mirrored_convolutions(align, mode, dtype):
    """Without a size only mirrored; else resized before, as half-precision or single-precision images are."""
    x, w = X.astype(dtype), W.astype(dtype)
    parts = {"strides": [1, 2, 1, 1], "padding": "VALID"}
    if align is None:
        images, name, size = x, "FusedPadConv2D", {}
    else:
        sizes = np.int32([7, 4])
        images = apply_op("ResizeBilinear", x, sizes, align_corners=align).astype(dtype)
        name, size = "FusedResizeAndPadConv2D", {"size": sizes, "resize_align_corners": align}
    got = apply_op(name, x, paddings=PADDINGS, filter=w, mode=mode, **size, **parts)
    want = apply_op("Conv2D", apply_op("MirrorPad", images, PADDINGS, mode=mode), w, **parts)
    assert got.dtype == want.dtype
    tolerance = 0.05 if dtype == "float16" else 1e-4 if align is not None else 0
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def test_accumulated_sums():
    np.testing.assert_array_equal(apply_op("AccumulateNV2", [A, A, A], shape=[2, 3]), A + A + A, strict=True)
    np.testing.assert_array_equal(apply_op("AccumulateNV2", [A, A], shape=[None, 3]), A + A, strict=True)
    for inputs, shape in (([A, A], [3, 2]), ([A, A.T], [2, 3])):
        with pytest.raises(InvalidArgumentError):
            apply_op("AccumulateNV2", inputs, shape=shape)
    with pytest.raises(InvalidArgumentError):
        apply_op("AccumulateNV2", [], shape=[2, 3], T="float")


def test_a_fact():
    assert apply_op("Fact").item() == b"0! == 1"
