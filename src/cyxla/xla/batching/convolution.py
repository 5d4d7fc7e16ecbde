"""Batching of convolutions: the batch becomes part of the batch dimension, of the features, or of the groups."""

from __future__ import annotations

from typing import Any

from cyxla.types import Shape
from cyxla.xla.batching.folding import fold, unfold
from cyxla.xla.batching.table import Node, rule
from cyxla.xla.batching.values import Value
from cyxla.xla.hlo.attributes import ConvDims
from cyxla.xla.hlo.builder import XlaOp


@rule("convolution")
def convolution(node: Node) -> Value:
    """Fold the batch into a dimension that the operands which differ have."""
    x, kernel = node.operands
    if not kernel.mapped:
        return _with_more_inputs(node)
    return _with_more_groups(node) if x.mapped else _with_more_kernels(node)


def _with_more_inputs(node: Node) -> Value:
    labels: ConvDims = node.attrs["dim_labels"]
    x = fold(node.operands[0].array, labels.input_batch, node.attrs["batch_group_count"])
    return _emit(node, [x, node.operands[1].array], {}, labels.output_batch)


def _with_more_kernels(node: Node) -> Value:
    labels: ConvDims = node.attrs["dim_labels"]
    groups = max(node.attrs["feature_group_count"], node.attrs["batch_group_count"])
    kernel = fold(node.operands[1].array, labels.kernel_output_feature, groups)
    return _emit(node, [node.operands[0].array, kernel], {}, labels.output_feature, groups)


def _with_more_groups(node: Node) -> Value:
    """Make each element a group of features; a group of batches if there are such groups already."""
    labels: ConvDims = node.attrs["dim_labels"]
    in_batches = node.attrs["batch_group_count"] > 1
    name = "batch_group_count" if in_batches else "feature_group_count"
    x = fold(node.operands[0].array, labels.input_batch if in_batches else labels.input_feature)
    kernel = fold(node.operands[1].array, labels.kernel_output_feature)
    return _emit(node, [x, kernel], {name: node.attrs[name] * node.size}, labels.output_feature)


def _emit(node: Node, operands: list[XlaOp], attrs: dict[str, Any], axis: int, groups: int = 1) -> Value:
    """Append the convolution, and take the batch out of a dimension of its result."""
    dims = list(node.instruction.shape.dims)
    dims[axis] *= node.size
    shape = Shape.array(node.instruction.shape.dtype, dims)
    result = node.batcher.builder.clone(node.instruction, operands, attrs, shape)
    return Value(unfold(result, axis, node.size, groups), True)
