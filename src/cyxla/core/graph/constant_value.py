"""Constant propagation at graph construction: values of tensors that do not depend on feeds.

The rules cover constants, shapes of tensors, and the arithmetic from which shape-like inputs are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cyxla.core.framework.tensor_shape import MAX_RANK, TensorShape

if TYPE_CHECKING:
    from cyxla.core.graph.graph import Node, Tensor

Array = np.ndarray[Any, Any]
_MAX_DEPTH = 64  # of chains of nodes; the values of longer chains are unknown
_MAX_ELEMENTS = 1 << 16  # larger values are not shapes
_Rule = Callable[["Node", int, int], "Array | None"]


def constant_value(tensor: Tensor, depth: int = _MAX_DEPTH) -> Array | None:
    """Return the value of a tensor, or None if it is unknown or depends on a feed."""
    node = tensor.node
    if node.op == "Const":
        array: Array = node.attrs["value"].value.array
        return array
    rule = _RULES.get(node.op)
    if rule is None or depth <= 0:
        return None
    result = rule(node, tensor.index, depth - 1)
    return None if result is None else np.asarray(result, tensor.dtype.numpy)


def constant_shape(tensor: Tensor, depth: int = _MAX_DEPTH) -> TensorShape | None:
    """Return the possibly partial shape that a vector holds; None if nothing is known."""
    value = constant_value(tensor, depth)
    if value is not None:
        if value.ndim != 1:
            return TensorShape() if value.ndim == 0 and value == -1 else None
        if value.dtype.kind not in "iu" or value.size > MAX_RANK:
            return None
        return TensorShape(None if d < 0 else int(d) for d in value)
    rule = _SHAPE_RULES.get(tensor.node.op)
    if rule is not None and depth > 0:
        shape = rule(tensor.node, tensor.index, depth - 1)
        if shape is not None:
            return shape
    dims = tensor.shape.dims
    if dims is not None and len(dims) == 1 and dims[0] is not None and dims[0] <= MAX_RANK:
        return TensorShape([None] * dims[0])
    return None


def _input_values(node: Node, depth: int) -> list[Array] | None:
    values = []
    for tensor in node.inputs:
        value = constant_value(tensor, depth)
        if value is None or value.size > _MAX_ELEMENTS:
            return None
        values.append(value)
    return values


def _shape_rule(node: Node, index: int, depth: int) -> Array | None:
    shape = node.inputs[index].shape
    return np.array(shape.as_list()) if shape.is_fully_defined else None


def _size_rule(node: Node, index: int, depth: int) -> Array | None:
    count = node.inputs[0].shape.num_elements
    return None if count is None else np.array(count)


def _rank_rule(node: Node, index: int, depth: int) -> Array | None:
    rank = node.inputs[0].shape.rank
    return None if rank is None else np.array(rank)


def _rule_from(compute: Callable[..., Any]) -> _Rule:
    """Return a rule that computes a node from the values of all its inputs."""

    def rule(node: Node, index: int, depth: int) -> Array | None:
        values = _input_values(node, depth)
        if values is None:
            return None
        try:
            with np.errstate(all="ignore"):
                result = compute(node, *values)
        except (ValueError, IndexError, ZeroDivisionError, TypeError, OverflowError):
            return None  # the node itself raises a better error when it runs
        return None if result is None else np.asarray(result)

    return rule


def _reduce(ufunc: Any) -> _Rule:
    def compute(node: Node, x: Array, axes: Array) -> Array:
        reduced: Array = ufunc(x, axis=tuple(int(a) for a in axes.ravel()), keepdims=bool(node.attr("keep_dims")))
        return reduced

    return _rule_from(compute)


def _slice(node: Node, x: Array, begin: Array, size: Array) -> Array:
    return x[tuple(slice(b, None if s < 0 else b + s) for b, s in zip(begin.tolist(), size.tolist(), strict=True))]


def slice_keys(node: Node, begin: list[int], end: list[int], strides: list[int]) -> tuple[Any, ...]:
    """Return the Python subscripts for the masks and bounds of a StridedSlice."""
    keys: list[Any] = []
    for i in range(len(begin)):
        bit = 1 << i
        if node.attr("ellipsis_mask") & bit:
            keys.append(Ellipsis)
        elif node.attr("new_axis_mask") & bit:
            keys.append(None)
        elif node.attr("shrink_axis_mask") & bit:
            keys.append(begin[i])
        else:
            first = None if node.attr("begin_mask") & bit else begin[i]
            last = None if node.attr("end_mask") & bit else end[i]
            keys.append(slice(first, last, strides[i]))
    return tuple(keys)


def _strided_slice(node: Node, x: Array, begin: Array, end: Array, strides: Array) -> Array:
    result: Array = x[slice_keys(node, begin.tolist(), end.tolist(), strides.tolist())]
    return result


def _strided_slice_rule(node: Node, index: int, depth: int) -> Array | None:
    """Return a slice of a known value, or of the known part of a shape."""
    value = _rule_from(_strided_slice)(node, index, depth)
    if value is not None:
        return value
    if node.attr("shrink_axis_mask"):
        size = _size_in_shape(node, depth)
        return None if size is None else np.array(size)
    shape = _sliced_shape(node, index, depth)
    return np.array(shape.as_list()) if shape is not None and shape.is_fully_defined else None


def _floor_mod(node: Node, x: Array, y: Array) -> Array | None:
    return None if (y == 0).any() else np.mod(x, y)


def _floor_div(node: Node, x: Array, y: Array) -> Array | None:
    if (y == 0).any():
        return None
    return x // y if x.dtype.kind in "iu" else np.floor_divide(x, y)


def _fill(node: Node, dims: Array, value: Array) -> Array | None:
    return np.full(tuple(dims), value) if np.prod(dims, dtype=np.float64) <= _MAX_ELEMENTS else None


def _range(node: Node, start: Array, limit: Array, delta: Array) -> Array | None:
    if not delta or abs((float(limit) - float(start)) / float(delta)) > _MAX_ELEMENTS:
        return None
    return np.arange(start.item(), limit.item(), delta.item())


def _gather(node: Node, x: Array, indices: Array, axis: Array | int = 0) -> Array | None:
    if x.ndim != 1 or ((indices < 0) | (indices >= len(x))).any():
        return None
    return np.take(x, indices, axis=int(axis))


_RULES: dict[str, _Rule] = {
    "Shape": _shape_rule,
    "ShapeN": _shape_rule,
    "Size": _size_rule,
    "Rank": _rank_rule,
    "Identity": lambda node, index, depth: constant_value(node.inputs[0], depth),
    "IdentityN": lambda node, index, depth: constant_value(node.inputs[index], depth),
    "Snapshot": lambda node, index, depth: constant_value(node.inputs[0], depth),
    "Cast": _rule_from(lambda node, x: x.astype(node.attr("DstT").numpy)),
    "Pack": _rule_from(lambda node, *xs: np.stack(xs, node.attr("axis"))),
    "ConcatV2": _rule_from(lambda node, *xs: np.concatenate(xs[:-1], int(xs[-1]))),
    "Concat": _rule_from(lambda node, axis, *xs: np.concatenate(xs, int(axis))),
    "StridedSlice": _strided_slice_rule,
    "Slice": _rule_from(_slice),
    "Reshape": _rule_from(lambda node, x, shape: x.reshape(tuple(shape))),
    "ExpandDims": _rule_from(lambda node, x, axis: np.expand_dims(x, int(axis))),
    "Squeeze": _rule_from(lambda node, x: np.squeeze(x, tuple(node.attr("squeeze_dims")) or None)),
    "Fill": _rule_from(_fill),
    "Range": _rule_from(_range),
    "Gather": _rule_from(_gather),
    "GatherV2": _rule_from(_gather),
    "Add": _rule_from(lambda node, x, y: x + y),
    "AddV2": _rule_from(lambda node, x, y: x + y),
    "Sub": _rule_from(lambda node, x, y: x - y),
    "Mul": _rule_from(lambda node, x, y: x * y),
    "FloorDiv": _rule_from(_floor_div),
    "FloorMod": _rule_from(_floor_mod),
    "Maximum": _rule_from(lambda node, x, y: np.maximum(x, y)),
    "Minimum": _rule_from(lambda node, x, y: np.minimum(x, y)),
    "Neg": _rule_from(lambda node, x: -x),
    "Prod": _reduce(np.prod),
    "Sum": _reduce(np.sum),
    "Max": _reduce(np.max),
    "Min": _reduce(np.min),
    "ZerosLike": _rule_from(lambda node, x: np.zeros_like(x)),
    "OnesLike": _rule_from(lambda node, x: np.ones_like(x)),
}


# Partial shapes -----------------------------------------------------------------------------------------------------
def _scalar(tensor: Tensor, depth: int) -> int | None:
    """Return the value of a scalar size; None if it is negative or unknown."""
    value = constant_value(tensor, depth)
    return int(value) if value is not None and value.size == 1 and value.dtype.kind in "iu" and value >= 0 else None


def _pack_shape(node: Node, index: int, depth: int) -> TensorShape | None:
    if any(t.shape.rank != 0 for t in node.inputs):
        return None
    return TensorShape(_partial_scalar(t, depth) for t in node.inputs)


def _partial_scalar(tensor: Tensor, depth: int) -> int | None:
    """Return the value of a scalar size, which may be an element of a partial shape."""
    size = _scalar(tensor, depth)
    return _size_in_shape(tensor.node, depth) if size is None and tensor.node.op == "StridedSlice" else size


def _size_in_shape(node: Node, depth: int) -> int | None:
    """Return the size that a StridedSlice extracts from a shape; None if it is unknown."""
    begin = constant_value(node.inputs[1], depth)
    shape = constant_shape(node.inputs[0], depth - 1) if depth > 0 else None
    if node.attr("shrink_axis_mask") != 1 or shape is None or shape.dims is None or begin is None or begin.size != 1:
        return None
    position = int(begin[0])
    return shape.dims[position] if -len(shape.dims) <= position < len(shape.dims) else None


def _concat_shape(node: Node, index: int, depth: int) -> TensorShape | None:
    operands = node.inputs[1:] if node.op == "Concat" else node.inputs[:-1]
    result = TensorShape(())
    for operand in operands:
        shape = constant_shape(operand, depth)
        if shape is None or shape.dims is None:
            return None
        result = result + shape
    return result


def _sliced_shape(node: Node, index: int, depth: int) -> TensorShape | None:
    shape = constant_shape(node.inputs[0], depth)
    bounds = [constant_value(t, depth) for t in node.inputs[1:]]
    if shape is None or shape.dims is None or any(b is None or b.size != 1 for b in bounds):
        return None
    if node.attr("shrink_axis_mask") or node.attr("new_axis_mask"):
        return None
    lists = [b.tolist() for b in bounds if b is not None]
    key = slice_keys(node, *lists)[0]
    return shape if key is Ellipsis else TensorShape(shape.dims[key])


_SHAPE_RULES: dict[str, Callable[[Node, int, int], TensorShape | None]] = {
    "Shape": lambda node, index, depth: node.inputs[0].shape,
    "ShapeN": lambda node, index, depth: node.inputs[index].shape,
    "Identity": lambda node, index, depth: constant_shape(node.inputs[0], depth),
    "Cast": lambda node, index, depth: constant_shape(node.inputs[0], depth),
    "Pack": _pack_shape,
    "ConcatV2": _concat_shape,
    "Concat": _concat_shape,
    "StridedSlice": _sliced_shape,
}
