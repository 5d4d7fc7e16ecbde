"""Gradients of linear algebra, Einstein's sums and transforms over any axes against central differences."""

import numpy as np
import pytest
from support.graphs.gradient_checks import Case, check_gradient, complex_points, points

from cyxla import Graph, Session, gradients
from cyxla.core.framework.apply import apply_op
from cyxla.errors import UnimplementedError

M, CUBE, SQUARE = points(3, 4), points(2, 3, 4), points(3, 3) + 3 * np.eye(3)
NEAR_ONE = 0.2 * points(2, 3, 3) + np.eye(3)
TALL, WIDE = points(2, 4, 3), points(3, 4, seed=3)
DIAGONALS = points(2, 3, 4) + np.array([[0.0], [5.0], [0.0]])


def ints(*values):
    return np.array(values, np.int32)


def einsum(equation, *operands, **more):
    return Case("Einsum", (list(operands),), {"equation": equation}, note=equation, **more)


EINSUMS = [
    einsum("ij,jk->ik", M, points(4, 2)),
    einsum("ab,cb->ca", complex_points(2, 3), complex_points(4, 3)),
    einsum("i,j->ji", points(2), points(3)),
    einsum("ij,ij->", M, points(3, 4, seed=1)),
    einsum("ij->", M),
    einsum("ij->ji", M),
    einsum("ijk->k", CUBE),
    einsum("ii->i", SQUARE),
    einsum("ii->", SQUARE),
    einsum("iii->", points(2, 2, 2)),
    einsum("iij,j->ij", points(3, 3, 2), points(2)),
    einsum("abc,cd->d", CUBE, points(4, 2)),
    einsum("aab,bc->c", points(2, 2, 3), points(3, 2)),
    einsum("...ij,...jk->...ik", points(2, 1, 2, 3), points(4, 3, 2)),
    einsum("i...j,jk...->k...i", points(2, 3, 4), points(4, 2, 1)),
    einsum("...i,i->...i", CUBE, points(4)),
    einsum("...->...", M),
    einsum("a...a->...a", points(2, 3, 2)),
    einsum("...a,...b->b...", points(1, 2), points(3, 4)),
    einsum("ab,b->...ab", points(2, 3), points(3)),
    einsum("ij,jk,kl->il", M, points(4, 2), points(2, 2)),
    einsum("ab,b->a", points(2, 0), points(0)),
]
MATRICES = [
    Case("TridiagonalSolve", (DIAGONALS, points(2, 4, 2))),
    Case("TridiagonalSolve", (DIAGONALS + 1j * points(2, 3, 4, seed=4), complex_points(2, 4, 1)), note="complex"),
    Case("TridiagonalMatMul", (*(complex_points(2, 1, 3, seed=k) for k in range(3)), complex_points(2, 3, 2))),
    Case("Svd", (TALL,), {"compute_uv": False}, outputs=(0,), note="values"),
    Case("Svd", (TALL,), note="tall"),
    Case("Svd", (TALL,), {"full_matrices": True}, outputs=(0,), note="full"),
    Case("Svd", (WIDE,), note="wide"),
    Case("Svd", (WIDE,), outputs=(2,), note="right"),
    Case("Svd", (WIDE,), outputs=(1,), note="left"),
    Case("Svd", (SQUARE,), {"full_matrices": True}, note="square"),
    Case("Svd", (complex_points(3, 2),), {"compute_uv": False}, outputs=(0,), note="complex"),
    Case("Lu", (points(2, 3, 3),), outputs=(0,)),
    Case("Lu", (complex_points(3, 3),), outputs=(0,), note="complex"),
    Case("MatrixExponential", (points(2, 3, 3),), tolerance=1e-5),
    Case("MatrixExponential", (complex_points(2, 2),), tolerance=1e-5, note="complex"),
    Case("MatrixSquareRoot", (NEAR_ONE,)),
    Case("MatrixLogarithm", (NEAR_ONE[0] + 0.1j * points(3, 3),)),
]
SINGLE = complex_points(2, 3).astype(np.complex64)
HALF = {"Tcomplex": "complex128"}
WHOLE = {"Treal": "double"}
TRANSFORMS = [
    *(
        Case(op, (complex_points(2, 3).astype(np.complex64),), step=0.1, tolerance=1e-4)
        for op in ("BatchFFT", "BatchIFFT")
    ),
    *(Case(op, (complex_points(2, 3, 4), ints(3, 4), ints(1, 2)), HALF) for op in ("FFTND", "IFFTND")),
    *(Case(op, (complex_points(2, 3, 4), ints(3, 2), ints(2, 0)), HALF, note="cut") for op in ("FFTND", "IFFTND")),
    Case("RFFTND", (points(3, 6), ints(3, 5), ints(0, 1)), HALF),
    Case("RFFTND", (points(3, 6), ints(6, 2), ints(-1, 0)), HALF, note="axes"),
    Case("IRFFTND", (complex_points(3, 4), ints(2, 6), ints(0, 1)), WHOLE, note="even"),
    Case("IRFFTND", (complex_points(3, 4), ints(4, 5), ints(1, 0)), WHOLE, note="odd"),
    Case("IRFFTND", (complex_points(3, 4), ints(4), ints(-1)), WHOLE, note="last"),
]


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("case", [*EINSUMS, *MATRICES, *TRANSFORMS], ids=str)
def test_gradient(case):
    check_gradient(case)


@pytest.mark.parametrize("shape, dtype, full", [((3, 2), "complex128", False), ((3, 2), "double", True)])
def test_vectors_that_are_not_fixed(shape, dtype, full):
    """Functions that are not differentiable are refused."""
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder(dtype, shape)
        _, u, _ = apply_op("Svd", x, full_matrices=full)
    with pytest.raises(UnimplementedError, match="singular vectors" if dtype == "complex128" else "full_matrices"):
        gradients([u], [x], [np.ones((3, 3 if full else 2), dtype)])


@pytest.mark.parametrize("op", ["Lu", "MatrixExponential", "Svd", "Cholesky", "MatrixInverse"])
def test_ranks_that_are_not_known(op):
    """The same gradients as where shapes are known."""
    array = SQUARE @ SQUARE.T
    found = []
    for shape in (None, array.shape):
        graph = Graph()
        with graph.as_default():
            x = graph.placeholder("double", shape)
            y = apply_op(op, x)
            [dx] = gradients([y[0] if isinstance(y, (tuple, list)) else y], [x])
        found.append(Session(graph).run(dx, {x: array}))
    np.testing.assert_allclose(found[0], found[1])
