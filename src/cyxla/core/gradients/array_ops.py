"""Gradients of ops that make, reshape and select."""

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
    """To each its own."""
    return grads


@gradient("PreventGradient")
def prevent_gradient(op: Any, dy: Tensor) -> None:
    """Refuse, as the op is there to do."""
    raise FailedPreconditionError(
        f"node '{op.name}' forbids gradients through it: {op.attr('message')}", node=op.name, op=op.op
    )


@gradient("Reshape", "ExpandDims")
def reshape_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """The same elements in the old shape."""
    return reshape_like(dy, op.inputs[0]), None


@gradient("BroadcastTo")
def broadcast_to_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """The sum over the repetitions."""
    return unbroadcast(op.inputs[0], op.outputs[0], dy, None)[0], None


@gradient("Fill")
def fill_grad(op: Any, dy: Tensor) -> tuple[None, Tensor]:
    """Everything comes from one number."""
    return None, _total(dy)


def _total(x: Tensor) -> Tensor:
    return apply_op("Sum", x, apply_op("Range", 0, apply_op("Rank", x), 1))


@gradient("LinSpace")
def lin_space_grad(op: Any, dy: Tensor) -> tuple[Tensor, Tensor, None]:
    """Each number is a mean of the ends, weighted by its place."""
    start, stop, num = op.inputs
    weights = apply_op("LinSpace", _number(0, start), _number(1, stop), num)
    return _total(dy * (1.0 - weights)), _total(dy * weights), None


def _number(value: int, like: Tensor) -> Tensor:
    return apply_op("Cast", apply_op("Fill", apply_op("Shape", like), value), DstT=like.dtype.base)


@gradient("OneHot")
def one_hot_grad(op: Any, dy: Tensor) -> tuple[None, None, Tensor, Tensor]:
    """What falls on the hot places, and what on the others."""
    indices, depth = op.inputs[:2]
    hot = apply_op("OneHot", indices, depth, _number(1, op.inputs[2]), _number(0, op.inputs[3]), axis=op.attr("axis"))
    return None, None, _total(dy * hot), _total(dy * (1.0 - hot))


@gradient("Bitcast")
def bitcast_grad(op: Any, dy: Tensor) -> None:
    """Bits have no slope."""


@gradient("Select")
def select_grad(op: Any, dy: Tensor) -> tuple[None, Tensor, Tensor]:
    """Each element goes to where it came from."""
    condition, x = op.inputs[:2]
    nothing = apply_op("ZerosLike", x)
    return None, apply_op("Select", condition, dy, nothing), apply_op("Select", condition, nothing, dy)


@gradient("SelectV2")
def select_v2_grad(op: Any, dy: Tensor) -> tuple[None, Tensor, Tensor]:
    """Each element goes to where it came from, summed over repetitions."""
    condition, x, y = op.inputs
    nothing = apply_op("ZerosLike", dy)
    z = op.outputs[0]
    dx = unbroadcast(x, z, apply_op("SelectV2", condition, dy, nothing), None)[0]
    return None, dx, unbroadcast(y, z, apply_op("SelectV2", condition, nothing, dy), None)[0]


@gradient("ParallelConcat")
def parallel_concat_grad(op: Any, dy: Tensor) -> list[Tensor]:
    """One slice for each input."""
    parts: list[Tensor] = apply_op("Split", 0, dy, num_split=len(op.inputs))
    return parts


# Diagonals ---------------------------------------------------------------------------------------------------------
@gradient("MatrixDiagPart")
def matrix_diag_part_grad(op: Any, dy: Tensor) -> Tensor:
    """Onto the diagonal of nothing."""
    return apply_op("MatrixSetDiag", apply_op("ZerosLike", op.inputs[0]), dy)


@gradient("MatrixDiagV2")
def matrix_diag_v2_grad(op: Any, dy: Tensor) -> tuple[Any, ...]:
    """The diagonals, and what was padded."""
    return apply_op("MatrixDiagPartV2", dy, op.inputs[1], _zero(dy)), None, None, None, _padding(op, dy, 2)


@gradient("MatrixDiagV3")
def matrix_diag_v3_grad(op: Any, dy: Tensor) -> tuple[Any, ...]:
    """The diagonals, and what was padded."""
    return (
        apply_op("MatrixDiagPartV3", dy, op.inputs[1], _zero(dy), align=op.attr("align")),
        None, None, None, _padding(op, dy, 3),
    )  # fmt: skip


def _zero(x: Tensor) -> Tensor:
    return apply_op("Cast", apply_op("Fill", _NO_DIMS, 0), DstT=x.dtype.base)


def _padding(op: Any, dy: Tensor, version: int) -> Tensor:
    """Everything off the diagonals is the padding value."""
    diagonal, k = op.inputs[:2]
    zeros = apply_op("ZerosLike", diagonal)
    if version == 2:
        return _total(apply_op("MatrixSetDiagV2", dy, zeros, k))
    return _total(apply_op("MatrixSetDiagV3", dy, zeros, k, align=op.attr("align")))


@gradient("MatrixDiagPartV2", "MatrixDiagPartV3")
def matrix_diag_part_v2_grad(op: Any, dy: Tensor) -> tuple[Any, ...]:
    """Onto the diagonals of nothing; the padding came from nowhere in the matrix."""
    x, k = op.inputs[:2]
    attrs = {"align": op.attr("align")} if op.has_attr("align") else {}
    name = "MatrixSetDiagV3" if attrs else "MatrixSetDiagV2"
    return apply_op(name, apply_op("ZerosLike", x), dy, k, **attrs), None, None


@gradient("MatrixSetDiag")
def matrix_set_diag_grad(op: Any, dy: Tensor) -> tuple[Tensor, Tensor]:
    """The diagonal comes from the second input, the rest from the first."""
    return apply_op("MatrixSetDiag", dy, apply_op("ZerosLike", op.inputs[1])), apply_op("MatrixDiagPart", dy)


@gradient("MatrixSetDiagV2", "MatrixSetDiagV3")
def matrix_set_diag_v2_grad(op: Any, dy: Tensor) -> tuple[Any, ...]:
    """The diagonals come from the second input, the rest from the first."""
    diagonal, k = op.inputs[1:]
    attrs = {"align": op.attr("align")} if op.has_attr("align") else {}
    suffix = "V3" if attrs else "V2"
    rest = apply_op(f"MatrixSetDiag{suffix}", dy, apply_op("ZerosLike", diagonal), k, **attrs)
    return rest, apply_op(f"MatrixDiagPart{suffix}", dy, k, _zero(dy), **attrs), None


@gradient("MatrixBandPart", "BatchMatrixBandPart")
def matrix_band_part_grad(op: Any, dy: Tensor) -> tuple[Tensor, None, None]:
    """Only the band counts."""
    return apply_op(op.op, dy, op.inputs[1], op.inputs[2]), None, None


@gradient("BatchMatrixDiag")
def batch_matrix_diag_grad(op: Any, dy: Tensor) -> Tensor:
    """The diagonal."""
    return apply_op("MatrixDiagPart", dy)


# Updates of rows ---------------------------------------------------------------------------------------------------
@gradient("InplaceAdd", "InplaceSub", "InplaceUpdate")
def inplace_grad(op: Any, dy: Tensor) -> tuple[Tensor, None, Tensor]:
    """The rows that were written, and what is left of the old ones."""
    i = op.inputs[1]
    rows = apply_op("GatherV2", dy, i, 0)
    if op.op == "InplaceUpdate":
        return apply_op("InplaceUpdate", dy, i, apply_op("ZerosLike", rows)), None, rows
    return dy, None, rows if op.op == "InplaceAdd" else -rows


@gradient("OnesLike", "ZerosLike")
def constant_grad(op: Any, dy: Tensor) -> Tensor:
    """The values say nothing, only the shape does."""
    return apply_op("ZerosLike", op.inputs[0])


no_gradient(
    "BroadcastArgs", "BroadcastGradientArgs", "Const", "Empty", "ImmutableConst", "InvertPermutation", "ListDiff",
    "LowerBound", "Placeholder", "PlaceholderV2", "Rank", "Shape", "ShapeN", "Size", "StopGradient", "ToBool", "Unique",
    "UniqueV2", "UniqueWithCounts", "UpperBound", "Where",
)  # fmt: skip
