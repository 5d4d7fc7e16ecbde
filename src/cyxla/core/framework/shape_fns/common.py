"""Shape functions that many ops share, and parts that others are made of.

Those of convolutions and pooling are in `windows`, and can be imported from here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cyxla.core.framework.shape_fns.windows import (
    avg_pool_grad_shape,
    avg_pool_shape,
    bias_add_grad_shape,
    bias_add_shape,
    conv2d_shape,
    conv3d_shape,
    conv_shape,
    depthwise_conv2d_shape,
    fused_batch_norm_grad_shape,
    fused_batch_norm_shape,
    max_pool_shape,
    max_pool_v2_shape,
    pool3d_shape,
    windowed_output_size,
)
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import SCALAR, UNKNOWN, Dim, TensorShape
from cyxla.errors import ShapeError

__all__ = [
    "ELEMENTWISE_SHAPES", "avg_pool_grad_shape", "avg_pool_shape", "batch_matmul_shape", "batch_matmul_v2_shape",
    "bias_add_grad_shape", "bias_add_shape", "broadcast_binary_shape", "broadcast_inputs_shape", "concat_shape",
    "concat_v2_shape", "conv2d_shape", "conv3d_shape", "conv_shape", "depthwise_conv2d_shape", "elementwise_shape",
    "explicit_shape", "explicit_shapes", "fused_batch_norm_grad_shape", "fused_batch_norm_shape", "matmul_shape",
    "max_pool_shape", "max_pool_v2_shape", "merge_all_inputs_shape", "merge_both_inputs_shape", "no_outputs",
    "pool3d_shape", "random_shape", "reduced_shape", "reduction_shape", "scalar_outputs", "scalar_shape",
    "unchanged_shape", "unchanged_shape_with_rank", "unchanged_shape_with_rank_at_least", "unknown_shape",
    "windowed_output_size",
]  # fmt: skip

ShapeFn = Callable[[InferenceContext], None]


def no_outputs(c: InferenceContext) -> None:
    """For ops without outputs."""


def unknown_shape(c: InferenceContext) -> None:
    """Nothing can be said about any output."""


def scalar_shape(c: InferenceContext) -> None:
    """The one output is a scalar."""
    c.set_output(0, SCALAR)


def scalar_outputs(c: InferenceContext) -> None:
    """Every output is a scalar."""
    for i in range(c.num_outputs):
        c.set_output(i, SCALAR)


def unchanged_shape(c: InferenceContext) -> None:
    """The first output is shaped like the first input, and stands for the same if that is a handle."""
    c.set_output(0, c.input(0))
    handle = c.input_handle(0)
    if handle is not None:
        c.set_output_handle(0, handle)


def elementwise_shape(c: InferenceContext) -> None:
    """Set the first output's shape to that of the first input, for an op that computes element by element."""
    unchanged_shape(c)


def unchanged_shape_with_rank(rank: int) -> ShapeFn:
    """The first output is shaped like the first input, which must be of this rank."""

    def fn(c: InferenceContext) -> None:
        c.set_output(0, c.with_rank(c.input(0), rank))

    return fn


def unchanged_shape_with_rank_at_least(rank: int) -> ShapeFn:
    """The first output is shaped like the first input, which must be of this rank or a higher one."""

    def fn(c: InferenceContext) -> None:
        c.set_output(0, c.with_rank_at_least(c.input(0), rank))

    return fn


def merge_both_inputs_shape(c: InferenceContext) -> None:
    """The output is shaped like both inputs."""
    c.set_output(0, c.merge(c.input(0), c.input(1)))


def merge_all_inputs_shape(c: InferenceContext) -> None:
    """The first output is shaped like every input."""
    shape = UNKNOWN
    for i in range(c.num_inputs):
        shape = c.merge(shape, c.input(i))
    c.set_output(0, shape)


def explicit_shape(c: InferenceContext) -> None:
    """The output's shape is the attr ``shape``."""
    c.set_output(0, c.attr("shape"))


def explicit_shapes(c: InferenceContext) -> None:
    """The outputs' shapes are the attr ``shapes``, or unknown where that is empty."""
    shapes: Sequence[TensorShape] = c.attr("shapes")
    if shapes and len(shapes) != c.num_outputs:
        raise ShapeError(f"{c.op_def.name}: {len(shapes)} shapes are given for {c.num_outputs} outputs")
    for i, shape in enumerate(shapes):
        c.set_output(i, shape)


def random_shape(c: InferenceContext) -> None:
    """The output's shape is the value of the first input."""
    c.set_output(0, c.make_shape_from_shape_tensor(0))


# Broadcasting ----------------------------------------------------------------------------------------------------


def broadcast_binary_shape(c: InferenceContext) -> None:
    """Set the output to the broadcast shape of both inputs."""
    c.set_output(0, c.broadcast(c.input(0), c.input(1)))


def broadcast_inputs_shape(c: InferenceContext) -> None:
    """Set the output to the broadcast shape of all inputs."""
    shape = SCALAR
    for i in range(c.num_inputs):
        shape = c.broadcast(shape, c.input(i))
    c.set_output(0, shape)


#: Shape functions of the ops that compute element by element, which tells these from all others.
ELEMENTWISE_SHAPES = frozenset({elementwise_shape, broadcast_binary_shape, broadcast_inputs_shape})


# Products --------------------------------------------------------------------------------------------------------


def matmul_shape(c: InferenceContext) -> None:
    """A product of two matrices, each transposed on request."""
    a, b = c.with_rank(c.input(0), 2), c.with_rank(c.input(1), 2)
    rows, inner_a = (a[1], a[0]) if c.attr("transpose_a") else (a[0], a[1])
    inner_b, columns = (b[1], b[0]) if c.attr("transpose_b") else (b[0], b[1])
    c.merge_dim(inner_a, inner_b)
    c.set_output(0, (rows, columns))


def _batch_matmul(c: InferenceContext, batch: Callable[[TensorShape, TensorShape], TensorShape]) -> None:
    a, b = c.with_rank_at_least(c.input(0), 2), c.with_rank_at_least(c.input(1), 2)
    rows, inner_a = _matrix(a, c.attr("adj_x"))
    inner_b, columns = _matrix(b, c.attr("adj_y"))
    c.merge_dim(inner_a, inner_b)
    c.set_output(0, c.concatenate(batch(c.sub_shape(a, 0, -2), c.sub_shape(b, 0, -2)), (rows, columns)))


def _matrix(shape: TensorShape, swap: bool) -> tuple[Dim, Dim]:
    return (shape[-1], shape[-2]) if swap else (shape[-2], shape[-1])


def batch_matmul_shape(c: InferenceContext) -> None:
    """Products of matrices in equal batches."""
    _batch_matmul(c, c.merge)


def batch_matmul_v2_shape(c: InferenceContext) -> None:
    """Products of matrices in batches that broadcast."""
    _batch_matmul(c, c.broadcast)


# Concatenation ---------------------------------------------------------------------------------------------------


def concat_shape(c: InferenceContext) -> None:
    """The axis comes first, then the values."""
    _concat(c, 0, list(range(1, c.num_inputs)))


def concat_v2_shape(c: InferenceContext) -> None:
    """The values come first, then the axis."""
    _concat(c, c.num_inputs - 1, list(range(c.num_inputs - 1)))


def _concat(c: InferenceContext, axis_input: int, values: list[int]) -> None:
    c.with_rank(c.input(axis_input), 0)
    rank = _common_rank(c, values)
    axis = c.input_tensor(axis_input)
    if rank is None:
        return
    parts = [c.with_rank(c.input(i), rank) for i in values]
    if axis is None:
        c.set_output(0, c.unknown_shape_of_rank(rank))
        return
    at = c.axis(int(axis), parts[0])
    total: Dim = 0
    rest = c.replace_dim(parts[0], at, None)
    for part in parts:
        rest = c.merge(rest, c.replace_dim(part, at, None))
        total = c.add(total, part[at])
    c.set_output(0, c.replace_dim(rest, at, total))


def _common_rank(c: InferenceContext, inputs: list[int]) -> int | None:
    """The rank of the inputs where one tells it; scalars cannot be joined."""
    rank = next((c.input(i).rank for i in inputs if c.input(i).rank is not None), None)
    if rank == 0:
        raise ShapeError(f"{c.op_def.name}: scalars cannot be concatenated", hint="use Pack")
    return rank


# Reductions ------------------------------------------------------------------------------------------------------


def reduced_shape(c: InferenceContext, shape: TensorShape, axes: np.ndarray | None, keep_dims: bool) -> TensorShape:
    """A shape after a reduction over some axes, which may be unknown (None)."""
    if shape.dims is None:
        return UNKNOWN
    if axes is None:
        return c.unknown_shape_of_rank(len(shape.dims)) if keep_dims else UNKNOWN
    reduced = {c.axis(int(axis), shape) for axis in axes.ravel()}
    sizes = [1 if i in reduced else d for i, d in enumerate(shape.dims) if keep_dims or i not in reduced]
    return TensorShape(sizes)


def reduction_shape(c: InferenceContext) -> None:
    """The second input holds the axes; the attr ``keep_dims`` says whether they stay, with size 1."""
    c.with_rank_at_most(c.input(1), 1)
    keep_dims = any(a.name == "keep_dims" for a in c.op_def.attr) and c.attr("keep_dims")
    axes = c.input_tensor(1)
    shape = c.input(0)
    if axes is None and not keep_dims and c.input(1).num_elements == 0:
        axes = np.empty(0, np.int32)
    c.set_output(0, reduced_shape(c, shape, axes, keep_dims))
