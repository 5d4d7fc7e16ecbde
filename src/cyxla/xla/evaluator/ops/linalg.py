"""triangular-solve and cholesky, in double precision, rounded once."""

from __future__ import annotations

import numpy as np

from cyxla.xla.evaluator.evaluation import Evaluation
from cyxla.xla.evaluator.numerics.conversion import convert_array
from cyxla.xla.evaluator.registry import evaluates
from cyxla.xla.evaluator.values import Array, Value, array_of, cut_to_common
from cyxla.xla.hlo.instruction import Instruction

_TRANSPOSE = {"NO_TRANSPOSE": 0, "TRANSPOSE": 1, "ADJOINT": 2}


def _wide(x: Array) -> Array:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _cut_system(a: Array, b: Array, along: int) -> tuple[Array, Array]:
    """Cut a square matrix and a right-hand side to the lesser of their sizes."""
    a, b = cut_to_common(a, b, [(d, d) for d in range(a.ndim - 2)])
    size = min(*a.shape[-2:], b.shape[along])
    return a[..., :size, :size], b[..., :size, :] if along == -2 else b[..., :size]


@evaluates("triangular-solve")
def triangular_solve(ev: Evaluation, ins: Instruction, a: Value, b: Value) -> Value:
    """Solve ``op(a) x = b`` or ``x op(a) = b``; the other triangle and a unit diagonal are not read."""
    from scipy.linalg import blas

    attrs, lhs, rhs = ins.attrs, _wide(array_of(a)), _wide(array_of(b))
    if any(o.shape.is_dynamic for o in ins.operands):
        lhs, rhs = _cut_system(lhs, rhs, -2 if attrs["left_side"] else -1)
    solve = blas.ztrsm if lhs.dtype.kind == "c" else blas.dtrsm
    out = np.zeros_like(rhs)
    if rhs.size:
        for at in np.ndindex(rhs.shape[:-2]):
            out[at] = solve(
                1.0, lhs[at], rhs[at], side=int(not attrs["left_side"]), lower=int(attrs["lower"]),
                trans_a=_TRANSPOSE[attrs["transpose_a"]], diag=int(attrs["unit_diagonal"]),
            )  # fmt: skip
    return convert_array(out, ins.shape.dtype)


@evaluates("cholesky")
def cholesky(ev: Evaluation, ins: Instruction, a: Value) -> Value:
    """Factorise; one triangle is read, the other set to zero. A matrix that is not positive definite yields nan."""
    from scipy.linalg import lapack

    wide = _wide(array_of(a))
    wide = wide[..., : wide.shape[-1], : wide.shape[-2]]
    factor = lapack.zpotrf if wide.dtype.kind == "c" else lapack.dpotrf
    out = np.zeros_like(wide)
    if wide.size:
        for at in np.ndindex(wide.shape[:-2]):
            result, info = factor(wide[at], lower=int(ins.attrs["lower"]), clean=1)
            out[at] = result if info == 0 else np.nan
    return convert_array(out, ins.shape.dtype)
