"""Gradients of arithmetic, element-wise functions and reductions against central differences."""

import numpy as np
import pytest
from support.graphs.gradient_checks import Case, check_gradient, complex_points, points

ANY, SMALL, POSITIVE = points(2, 3), points(2, 3, low=-0.9, high=0.9), points(2, 3, low=0.5, high=2.0)
LARGE, COMPLEX = points(2, 3, low=1.2, high=3.0), complex_points(2, 3)

UNARY = {
    "Abs": ANY, "Acos": SMALL, "Acosh": LARGE, "Asin": SMALL, "Asinh": ANY, "Atan": ANY, "Atanh": SMALL, "Ceil": ANY,
    "Cos": ANY, "Cosh": ANY, "Erf": ANY, "Erfc": ANY, "Exp": ANY, "Expm1": ANY, "Floor": ANY, "Inv": ANY,
    "Log": POSITIVE, "Log1p": POSITIVE, "Neg": ANY, "Reciprocal": ANY, "Rint": ANY, "Round": ANY, "Rsqrt": POSITIVE,
    "Sigmoid": ANY, "Sign": ANY, "Sin": ANY, "Sinh": ANY, "Sqrt": POSITIVE, "Square": ANY, "Tan": SMALL, "Tanh": ANY,
}  # fmt: skip
OF_COMPLEX = (
    "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Conj", "Cos", "Cosh", "Exp", "Expm1", "Inv", "Log", "Log1p",
    "Neg", "Reciprocal", "Rsqrt", "Sigmoid", "Sin", "Sinh", "Sqrt", "Square", "Tan", "Tanh",
)  # fmt: skip
BINARY = {
    "Add": (ANY, LARGE), "AddV2": (ANY, LARGE), "Atan2": (ANY, LARGE), "Complex": (ANY, LARGE), "Div": (ANY, LARGE),
    "DivNoNan": (ANY, LARGE), "FloorDiv": (ANY, LARGE), "FloorMod": (ANY, LARGE), "Maximum": (ANY, SMALL),
    "Minimum": (ANY, SMALL), "Mod": (ANY, LARGE), "Mul": (ANY, LARGE), "MulNoNan": (ANY, LARGE), "Pow": (POSITIVE, ANY),
    "RealDiv": (ANY, LARGE), "SquaredDifference": (ANY, LARGE), "Sub": (ANY, LARGE), "TruncateMod": (ANY, LARGE),
    "TruncateDiv": (ANY, LARGE),
    "Xdivy": (ANY, LARGE), "Xlog1py": (ANY, LARGE), "Xlogy": (ANY, LARGE), "ReciprocalGrad": (ANY, LARGE),
    "RsqrtGrad": (POSITIVE, ANY), "SigmoidGrad": (ANY, LARGE), "SqrtGrad": (POSITIVE, ANY), "TanhGrad": (ANY, LARGE),
}  # fmt: skip
NOT_BROADCAST = ("ReciprocalGrad", "RsqrtGrad", "SigmoidGrad", "SqrtGrad", "TanhGrad")
BINARY_OF_COMPLEX = (
    "AddV2", "Div", "DivNoNan", "Mul", "MulNoNan", "Pow", "RealDiv", "SquaredDifference", "Sub", "Xdivy", "Xlogy",
    "Xlog1py", "ReciprocalGrad", "RsqrtGrad", "SigmoidGrad", "SqrtGrad", "TanhGrad",
)  # fmt: skip
CUBE = points(2, 3, 4)
REDUCTIONS = [
    Case(op, (CUBE, np.array(axes, np.int32)), {"keep_dims": keep}, note=f"{axes}{'k' if keep else ''}")
    for op in ("Sum", "Mean", "Max", "Min", "Prod", "EuclideanNorm")
    for axes, keep in (([1], False), ([-1, 0], True), ([0, 1, 2], False), ([], False))
]
SCANS = [
    Case(op, (CUBE, np.array(axis, np.int32)), {"exclusive": exclusive, "reverse": reverse},
         note=f"{axis}{'e' if exclusive else ''}{'r' if reverse else ''}")
    for op in ("Cumsum", "Cumprod", "CumulativeLogsumexp")
    for axis, exclusive, reverse in ((0, False, False), (-1, True, False), (1, False, True), (2, True, True))
]  # fmt: skip
CASES = [
    *(Case(op, (x,)) for op, x in UNARY.items()),
    *(Case(op, (COMPLEX,), note="complex") for op in OF_COMPLEX),
    *(Case(op, (COMPLEX,), {"Tout": "double"}, note="complex") for op in ("Real", "Imag", "ComplexAbs", "Angle")),
    *(Case(op, xs, {"Tout": "complex128"} if op == "Complex" else {}) for op, xs in BINARY.items()),
    *(
        Case(op, (x, y[:1, :1, None]), {"Tout": "complex128"} if op == "Complex" else {}, note="broadcast")
        for op, (x, y) in BINARY.items()
        if op not in NOT_BROADCAST
    ),
    *(
        Case(op, (x[0], y), {"Tout": "complex128"} if op == "Complex" else {}, note="broadcast left")
        for op, (x, y) in BINARY.items()
        if op not in NOT_BROADCAST
    ),
    *(Case(op, (COMPLEX, complex_points(2, 3, seed=5)), note="complex") for op in BINARY_OF_COMPLEX),
    *REDUCTIONS,
    *(Case(op, (np.float64(1.5), np.zeros(0, np.int32)), note="scalar") for op in ("Sum", "Mean", "Max", "Prod")),
    *(Case(op, (points(0, 3), np.array([0], np.int32)), note="empty") for op in ("Sum", "Prod")),
    *SCANS,
    Case("NextAfter", (ANY, LARGE), wrt=(0,)),
    Case("Prod", (np.array([[0.0, 2.0, 3.0], [0.0, 0.0, 5.0]]), np.array([1], np.int32)), note="zeros"),
]


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradient_is_the_slope(case):
    check_gradient(case)
