"""Gradients of constants, identities, shapes, selection and diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient, no_gradient
from cyxla.core.gradients.common import Tensor, reshape_like, unary_gradient, unbroadcast
from cyxla.errors import FailedPreconditionError

_NO_DIMS = np.zeros(0, np.int32)  # the shape of a scalar

# fmt: off
unary_gradient(("Identity", "Snapshot", "GuaranteeConst", "Copy", "DeepCopy", "PlaceholderWithDefault", "EnsureShape"),
               lambda x, y, dy: dy)
unary_gradient("Squeeze",      lambda x, y, dy: reshape_like(dy, x))
unary_gradient("Diag",         lambda x, y, dy: apply_op("DiagPart", dy))
unary_gradient("DiagPart",     lambda x, y, dy: apply_op("Diag", dy))
unary_gradient("MatrixDiag",   lambda x, y, dy: apply_op("MatrixDiagPart", dy))
# fmt: on


@gradient("IdentityN", none_grads=True)
def identity_n_grad(op: Any, *grads: Tensor) -> tuple[Tensor, ...]:
    """Pass each gradient to the input of the same index."""
    return grads


@gradient("PreventGradient")
def prevent_gradient(op: Any, dy: Tensor) -> None:
    """Raise: gradients through this op are forbidden."""
    raise FailedPreconditionError(
        f"node '{op.name}' forbids gradients through it: {op.attr('message')}", node=op.name, op=op.op
    )


@gradient("Reshape", "ExpandDims")
def reshape_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Reshape the gradient to the input's shape."""
    return reshape_like(dy, op.inputs[0]), None


@gradient("BroadcastTo")
def broadcast_to_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Sum over the broadcast dimensions."""
    return unbroadcast(op.inputs[0], op.outputs[0], dy, None)[0], None


@gradient("Fill")
def fill_grad(op: Any, dy: Tensor) -> tuple[None, Tensor]:
    """Sum all gradients for the single value."""
    return None, _sum_all(dy)


def _sum_all(x: Tensor) -> Tensor:
    return apply_op("Sum", x, apply_op("Range", 0, apply_op("Rank", x), 1))


@gradient("LinSpace")
def lin_space_grad(op: Any, dy: Tensor) -> tuple[Tensor, Tensor, None]:
    """Weight each number's gradient by its distance from the ends."""
    start, stop, num = op.inputs
    weights = apply_op("LinSpace", _fill_like(0, start), _fill_like(1, stop), num)
    return _sum_all(dy * (1.0 - weights)), _sum_all(dy * weights), None


def _fill_like(value: int, like: Tensor) -> Tensor:
    return apply_op("Cast", apply_op("Fill", apply_op("Shape", like), value), DstT=like.dtype.base)


@gradient("OneHot")
def one_hot_grad(op: Any, dy: Tensor) -> tuple[None, None, Tensor, Tensor]:
    """Sum the gradients at the hot positions, and at the others."""
    indices, depth = op.inputs[:2]
    mask = apply_op(
        "OneHot", indices, depth, _fill_like(1, op.inputs[2]), _fill_like(0, op.inputs[3]), axis=op.attr("axis")
    )
    return None, None, _sum_all(dy * mask), _sum_all(dy * (1.0 - mask))


@gradient("Bitcast")
def bitcast_grad(op: Any, dy: Tensor) -> None:
    """Return no gradient."""


@gradient("Select")
def select_grad(op: Any, dy: Tensor) -> tuple[None, Tensor, Tensor]:
    """Split the gradient between the branches by the condition."""
    condition, x = op.inputs[:2]
    zeros = apply_op("ZerosLike", x)
    return None, apply_op("Select", condition, dy, zeros), apply_op("Select", condition, zeros, dy)


@gradient("SelectV2")
def select_v2_grad(op: Any, dy: Tensor) -> tuple[None, Tensor, Tensor]:
    """Split the gradient between the branches by the condition, and sum over broadcast dimensions."""
    condition, x, y = op.inputs
    zeros = apply_op("ZerosLike", dy)
    z = op.outputs[0]
    dx = unbroadcast(x, z, apply_op("SelectV2", condition, dy, zeros), None)[0]
    return None, dx, unbroadcast(y, z, apply_op("SelectV2", condition, zeros, dy), None)[0]


@gradient("ParallelConcat")
def parallel_concat_grad(op: Any, dy: Tensor) -> list[Tensor]:
    """Split the gradient into one slice per input."""
    parts: list[Tensor] = apply_op("Split", 0, dy, num_split=len(op.inputs))
    return parts


# Diagonals ---------------------------------------------------------------------------------------------------------
@gradient("MatrixDiagPart")
def matrix_diag_part_grad(op: Any, dy: Tensor) -> Tensor:
    """Set the diagonal of zeros."""
    return apply_op("MatrixSetDiag", apply_op("ZerosLike", op.inputs[0]), dy)


@gradient("MatrixDiagV2")
def matrix_diag_v2_grad(op: Any, dy: Tensor) -> tuple[Any, ...]:
    """Take the diagonals of the gradient, and sum the rest for the padding value."""
    return apply_op("MatrixDiagPartV2", dy, op.inputs[1], _zero(dy)), None, None, None, _padding(op, dy, 2)


@gradient("MatrixDiagV3")
def matrix_diag_v3_grad(op: Any, dy: Tensor) -> tuple[Any, ...]:
    """Take the diagonals of the gradient, and sum the rest for the padding value."""
    return (
        apply_op("MatrixDiagPartV3", dy, op.inputs[1], _zero(dy), align=op.attr("align")),
        None, None, None, _padding(op, dy, 3),
    )  # fmt: skip


def _zero(x: Tensor) -> Tensor:
    return apply_op("Cast", apply_op("Fill", _NO_DIMS, 0), DstT=x.dtype.base)


def _padding(op: Any, dy: Tensor, version: int) -> Tensor:
    """Sum the gradient off the diagonals, where the result is the padding value."""
    diagonal, k = op.inputs[:2]
    zeros = apply_op("ZerosLike", diagonal)
    if version == 2:
        return _sum_all(apply_op("MatrixSetDiagV2", dy, zeros, k))
    return _sum_all(apply_op("MatrixSetDiagV3", dy, zeros, k, align=op.attr("align")))


@gradient("MatrixDiagPartV2", "MatrixDiagPartV3")
def matrix_diag_part_v2_grad(op: Any, dy: Tensor) -> tuple[Any, ...]:
    """Set the diagonals of zeros; the padding value gets no gradient."""
    x, k = op.inputs[:2]
    attrs = {"align": op.attr("align")} if op.has_attr("align") else {}
    name = "MatrixSetDiagV3" if attrs else "MatrixSetDiagV2"
    return apply_op(name, apply_op("ZerosLike", x), dy, k, **attrs), None, None


@gradient("MatrixSetDiag")
def matrix_set_diag_grad(op: Any, dy: Tensor) -> tuple[Tensor, Tensor]:
    """Split the gradient into the diagonal, for the second input, and the rest, for the first."""
    return apply_op("MatrixSetDiag", dy, apply_op("ZerosLike", op.inputs[1])), apply_op("MatrixDiagPart", dy)


@gradient("MatrixSetDiagV2", "MatrixSetDiagV3")
def matrix_set_diag_v2_grad(op: Any, dy: Tensor) -> tuple[Any, ...]:
    """Split the gradient into the diagonals, for the second input, and the rest, for the first."""
    diagonal, k = op.inputs[1:]
    attrs = {"align": op.attr("align")} if op.has_attr("align") else {}
    suffix = "V3" if attrs else "V2"
    rest = apply_op(f"MatrixSetDiag{suffix}", dy, apply_op("ZerosLike", diagonal), k, **attrs)
    return rest, apply_op(f"MatrixDiagPart{suffix}", dy, k, _zero(dy), **attrs), None


@gradient("MatrixBandPart", "BatchMatrixBandPart")
def matrix_band_part_grad(op: Any, dy: Tensor) -> tuple[Tensor, None, None]:
    """Keep the same band of the gradient."""
    return apply_op(op.op, dy, op.inputs[1], op.inputs[2]), None, None


@gradient("BatchMatrixDiag")
def batch_matrix_diag_grad(op: Any, dy: Tensor) -> Tensor:
    """Take the diagonals of the gradient."""
    return apply_op("MatrixDiagPart", dy)


# Row updates --------------------------------------------------------------------------------------------------------
@gradient("InplaceAdd", "InplaceSub", "InplaceUpdate")
def inplace_grad(op: Any, dy: Tensor) -> tuple[Tensor, None, Tensor]:
    """Gather the gradient of the written rows; overwritten rows get zeros."""
    i = op.inputs[1]
    rows = apply_op("GatherV2", dy, i, 0)
    if op.op == "InplaceUpdate":
        return apply_op("InplaceUpdate", dy, i, apply_op("ZerosLike", rows)), None, rows
    return dy, None, rows if op.op == "InplaceAdd" else -rows


@gradient("OnesLike", "ZerosLike")
def constant_grad(op: Any, dy: Tensor) -> Tensor:
    """Return zeros, since only the shape of the input matters."""
    return apply_op("ZerosLike", op.inputs[0])


no_gradient(
    "BroadcastArgs", "BroadcastGradientArgs", "Const", "Empty", "Fact", "ImmutableConst", "InvertPermutation",
    "ListDiff", "LowerBound", "Placeholder", "PlaceholderV2", "Rank", "Shape", "ShapeN", "Size", "StopGradient",
    "ToBool", "Unique", "UniqueV2", "UniqueWithCounts", "UpperBound", "Where",
)  # fmt: skip
