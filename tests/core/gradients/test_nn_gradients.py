"""Gradients of neural networks' ops, linear algebra, transforms and segments against central differences."""

import numpy as np
import pytest
from support.graphs.gradient_checks import Case, check_gradient, complex_points, points

from cyxla import Graph, Session, gradients
from cyxla.core.framework.apply import apply_op

M, POSITIVE = points(3, 4), points(3, 4, low=0.5, high=2.0)
IMAGE, DEEP = points(2, 5, 4, 2), points(1, 4, 3, 4, 2)
CONV = {"strides": [1, 2, 1, 1], "padding": "SAME"}
DILATED = {"strides": [1, 1, 1, 1], "padding": "VALID", "dilations": [1, 2, 1, 1]}
CONV3 = {"strides": [1, 1, 2, 1, 1], "padding": "SAME"}
DEPTH = {"strides": [1, 1, 1, 1], "padding": "VALID"}
POOL = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 1, 1], "padding": "SAME"}
POOL3 = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 1, 2, 1, 1], "padding": "VALID"}
CHANNELS = points(2), points(2, low=0.5, high=1.5)
SPD = M @ M.T + 3 * np.eye(3)
TRIANGLE = np.tril(points(3, 3)) + 3 * np.eye(3)
LOW_ODDS = POSITIVE / POSITIVE.sum(axis=1, keepdims=True)


def ints(*values):
    return np.array(values, np.int32)


ACTIVATIONS = [
    *(Case(op, (M,)) for op in ("Relu", "Relu6", "Elu", "Selu", "Softplus", "Softsign", "Softmax", "LogSoftmax")),
    Case("LeakyRelu", (M,), {"alpha": 0.3}),
    *(Case(op, (M, points(3, 4, seed=5))) for op in ("ReluGrad", "Relu6Grad", "SoftplusGrad", "SoftsignGrad")),
    *(Case(op, (M, points(3, 4, low=-0.9, seed=5))) for op in ("EluGrad", "SeluGrad")),
    Case("LeakyReluGrad", (M, points(3, 4, seed=5)), {"alpha": 0.3}),
]
CONVOLUTIONS = [
    Case("Conv2D", (IMAGE, points(3, 2, 2, 3)), CONV),
    Case("Conv2D", (IMAGE, points(2, 2, 1, 4)), DILATED, note="groups"),
    Case("Conv2DBackpropInput", (ints(2, 5, 4, 2), points(3, 2, 2, 3), points(2, 3, 4, 3)), CONV),
    Case("Conv2DBackpropFilter", (IMAGE, ints(3, 2, 2, 3), points(2, 3, 4, 3)), CONV),
    Case("Conv3D", (DEEP, points(2, 2, 2, 2, 1)), CONV3),
    Case("Conv3DBackpropInputV2", (ints(1, 4, 3, 4, 2), points(2, 2, 2, 2, 1), points(1, 4, 2, 4, 1)), CONV3),
    Case("Conv3DBackpropFilterV2", (DEEP, ints(2, 2, 2, 2, 1), points(1, 4, 2, 4, 1)), CONV3),
    Case("DepthwiseConv2dNative", (IMAGE, points(2, 2, 2, 2)), DEPTH),
    Case("DepthwiseConv2dNativeBackpropInput", (ints(2, 5, 4, 2), points(2, 2, 2, 2), points(2, 4, 3, 4)), DEPTH),
    Case("DepthwiseConv2dNativeBackpropFilter", (IMAGE, ints(2, 2, 2, 2), points(2, 4, 3, 4)), DEPTH),
]
POOLING = [
    Case("AvgPool", (IMAGE,), POOL),
    Case("AvgPoolGrad", (ints(2, 5, 4, 2), points(2, 3, 4, 2)), POOL),
    Case("AvgPool3D", (DEEP,), POOL3),
    Case("AvgPool3DGrad", (ints(1, 4, 3, 4, 2), points(1, 3, 1, 3, 2)), POOL3),
    Case("MaxPool", (IMAGE,), POOL),
    Case("MaxPoolV2", (IMAGE, ints(1, 2, 2, 1), ints(1, 2, 1, 1)), {"padding": "SAME"}),
    Case("MaxPoolGrad", (IMAGE, points(2, 3, 4, 2), points(2, 3, 4, 2, seed=3)), POOL, wrt=(2,)),
    Case("MaxPoolGradGrad", (IMAGE, points(2, 3, 4, 2), points(2, 5, 4, 2, seed=3)), POOL, wrt=(2,)),
    Case("MaxPoolWithArgmax", (IMAGE,), POOL, outputs=(0,)),
]
BIASES = [
    Case("BiasAdd", (IMAGE, points(2))),
    Case("BiasAdd", (IMAGE, points(5)), {"data_format": "NCHW"}, note="NCHW"),
    Case("BiasAddGrad", (IMAGE,)),
    Case("TopKV2", (M, ints(2)[0]), outputs=(0,)),
    Case("SoftmaxCrossEntropyWithLogits", (M, LOW_ODDS)),
    Case("SoftmaxCrossEntropyWithLogits", (M, LOW_ODDS[:1]), note="broadcast"),
    Case("SparseSoftmaxCrossEntropyWithLogits", (M, ints(2, 0, 3))),
]
LINEAR = [
    Case("MatrixInverse", (TRIANGLE + 0.3 * M[:, :3],)),
    Case("MatrixInverse", (TRIANGLE + 0.3 * M[:, :3],), {"adjoint": True}, note="adjoint"),
    Case("MatrixDeterminant", (TRIANGLE + 0.3 * M[:, :3],)),
    Case("LogMatrixDeterminant", (TRIANGLE + 0.3 * M[:, :3],), outputs=(1,)),
    Case("MatrixSolve", (TRIANGLE + 0.3 * M[:, :3], M)),
    Case("MatrixSolve", (TRIANGLE + 0.3 * M[:, :3], M), {"adjoint": True}, note="adjoint"),
    Case("MatrixTriangularSolve", (TRIANGLE, M)),
    Case("MatrixTriangularSolve", (TRIANGLE, points(2, 3, 2)), {"adjoint": True}, note="batches"),
    Case("Qr", (points(4, 3),)),
    Case("SelfAdjointEigV2", (SPD,), outputs=(0,)),
    Case("TridiagonalMatMul", (points(1, 3), points(1, 3, seed=2), points(1, 3, seed=3), points(3, 2))),
]
TRANSFORMS = [
    *(Case(op, (complex_points(2, 3, 4),)) for op in ("FFT", "IFFT", "FFT2D", "IFFT2D", "FFT3D", "IFFT3D")),
    Case("RFFT", (points(2, 6), ints(5)), {"Tcomplex": "complex128"}),
    Case("RFFT2D", (points(4, 6), ints(3, 6)), {"Tcomplex": "complex128"}),
    Case("IRFFT", (complex_points(2, 4), ints(5)), {"Treal": "double"}, note="odd"),
    Case("IRFFT", (complex_points(2, 4), ints(6)), {"Treal": "double"}, note="even"),
    Case("IRFFT2D", (complex_points(3, 4), ints(3, 6)), {"Treal": "double"}),
]
IDS = ints(0, 0, 2)
SEGMENTS = [
    *(Case(op, (M, IDS)) for op in ("SegmentSum", "SegmentMean", "SegmentMax", "SegmentMin")),
    *(
        Case("Unsorted" + op, (M, ints(1, -1, 0), ints(2)[0]))
        for op in ("SegmentSum", "SegmentMax", "SegmentMin", "SegmentProd")
    ),
    *(Case("Sparse" + op, (M, ints(1, 1, 2), IDS)) for op in ("SegmentSum", "SegmentMean", "SegmentSqrtN")),
]
IMAGES = [
    Case("ResizeNearestNeighbor", (IMAGE, ints(3, 7))),
    Case("ResizeNearestNeighborGrad", (IMAGE, ints(3, 7))),
    Case("QuantizeAndDequantizeV2", (np.zeros((2, 2)), np.array(-1.0), np.array(1.0)), {"range_given": True}, wrt=()),
]


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize(
    "case", [*ACTIVATIONS, *CONVOLUTIONS, *POOLING, *BIASES, *LINEAR, *TRANSFORMS, *SEGMENTS, *IMAGES], ids=str
)
def test_gradient(case):
    check_gradient(case)


def test_cholesky_of_symmetric_matrices():
    """Only one triangle is read, while the gradient is that of a symmetric matrix: half of each side."""
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder(np.float64, (3, 3))
        low = apply_op("Cholesky", (x + apply_op("Transpose", x, [1, 0])) * 0.5)
        (found,) = gradients([low], [x], [np.tril(M[:, :3])])
    session = Session(graph)
    (got,) = session.run([found], {x: SPD})
    want = np.zeros((3, 3))
    for place in np.ndindex(3, 3):
        step = np.zeros((3, 3))
        step[place] = 1e-6
        sides = [session.run([low], {x: SPD + sign * step})[0] for sign in (1, -1)]
        want[place] = np.sum(np.tril(M[:, :3]) * (sides[0] - sides[1])) / 2e-6
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
