"""Gradients of ops on sparse tensors, and of ops that inspect the values that pass through."""

import numpy as np
import pytest
from support.graphs.gradient_checks import Case, check_gradient, complex_points, points

PLACES = np.array([[0, 1], [1, 0], [1, 2]])
SHAPE = np.array([2, 3])
TURNS = [(False, False), (False, True), (True, False), (True, True)]

CASES = [
    Case("SparseToDense", (PLACES, SHAPE, points(3), np.float64(0.5))),
    Case("SparseToDense", (PLACES, SHAPE, np.float64(2.0), np.float64(0.5)), note="one value"),
    Case("SparseToDense", (np.array([0, 3]), np.array([5]), points(2), np.float64(0.5)), note="vector"),
    *(
        Case("SparseTensorDenseMatMul",
             (PLACES, make(3), SHAPE, make(*((4, 2 if a else 3) if b else (2 if a else 3, 4)))),
             {"adjoint_a": a, "adjoint_b": b}, note=f"{make.__name__} {a}{b}")
        for a, b in TURNS
        for make in (points, complex_points)
    ),
    Case("SparseReduceSum", (PLACES, points(3), SHAPE, np.array([1], np.int32))),
    Case("SparseReduceSum", (PLACES, points(3), SHAPE, np.array([-2], np.int32)), {"keep_dims": True}, note="kept"),
    Case("SparseFillEmptyRows", (PLACES[[0, 2]] * 2, points(2), np.array([4, 5]), np.float64(1.5)), outputs=(1,)),
    Case("CheckNumerics", (points(2, 3),), {"message": "seen"}),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradient_is_the_slope(case):
    check_gradient(case)
