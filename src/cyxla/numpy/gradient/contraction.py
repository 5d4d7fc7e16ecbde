"""Derivatives of matrix products and convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.numpy.gradient.backward import no_derivative
from cyxla.numpy.gradient.table import Cotangents, Node, rule, zeros
from cyxla.types import Shape
from cyxla.xla.hlo.attributes import ConvDims, WindowDim
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla


@rule("dot")
def dot(node: Node) -> Cotangents:
    """Differentiate a dot: the cotangent is contracted with the other operand over the latter's free dimensions."""
    a = node.attrs
    left = (a["lhs_batch_dims"], a["lhs_contracting_dims"], node.shapes[0])
    right = (a["rhs_batch_dims"], a["rhs_contracting_dims"], node.shapes[1])
    lhs, rhs = node.operands
    return [
        _operand_cotangent(node.g, rhs, left, right, False) if node.needs[0] else None,
        _operand_cotangent(node.g, lhs, right, left, True) if node.needs[1] else None,
    ]


Side = tuple[Sequence[int], Sequence[int], Shape]


def _free_dims(side: Side) -> list[int]:
    return [d for d in range(side[2].rank) if d not in side[0] and d not in side[1]]


def _operand_cotangent(g: XlaOp, other: XlaOp, own_side: Side, other_side: Side, is_rhs: bool) -> XlaOp:
    """Return an operand's cotangent; dimensions of `g` are batch, free of the first, free of the second operand."""
    batch, free, others = len(own_side[0]), _free_dims(own_side), _free_dims(other_side)
    start = batch + (0 if is_rhs else len(free))
    g_contracting = tuple(range(start, start + len(others)))
    dtype = own_side[2].dtype
    product = xla.dot_general(
        g, _convert_like(other, g),
        lhs_contracting_dims=g_contracting, rhs_contracting_dims=tuple(others),
        lhs_batch_dims=tuple(range(batch)), rhs_batch_dims=tuple(other_side[0]),
    )  # fmt: skip
    # batch, own free dimensions, then contracted ones in the order of the other operand
    contracted = [d for _, d in sorted(zip(other_side[1], own_side[1], strict=True))]
    dims = [*own_side[0], *free, *contracted]
    order = [dims.index(d) for d in range(len(dims))]
    transposed = product if order == sorted(order) else xla.transpose(product, order)
    return transposed if dtype is transposed.shape.dtype else xla.convert(transposed, dtype)


@rule("convolution")
def convolution(node: Node) -> Cotangents:
    """Differentiate by two more convolutions: cotangent with reversed kernel, and input with cotangent."""
    if node.attrs["batch_group_count"] != 1:
        raise no_derivative(node.instruction, " with batch_group_count")
    if not (node.g.shape.size and node.shapes[0].size and node.shapes[1].size):
        return [zeros(s) for s in node.shapes]
    return [_input_cotangent(node) if node.needs[0] else None, _kernel_cotangent(node) if node.needs[1] else None]


def _input_cotangent(node: Node) -> XlaOp:
    d: ConvDims = node.attrs["dim_labels"]
    groups = node.attrs["feature_group_count"]
    sizes = zip(d.input_spatial, d.output_spatial, node.attrs["window"], strict=True)
    window = []
    for i, o, w in sizes:
        n, m = node.shapes[0].dims[i], node.g.shape.dims[o]
        reach = (w.size - 1) * w.window_dilation
        low = reach - w.padding_low
        high = (n - 1) * w.base_dilation + reach - low - (m - 1) * w.stride
        window.append(WindowDim(
            w.size, w.base_dilation, low, high, w.window_dilation, w.stride, not w.window_reversal
        ))  # fmt: skip
    kernel = _regroup_kernel(node.operands[1], groups, d)
    labels = ConvDims(
        d.output_batch, d.output_feature, d.output_spatial, d.kernel_output_feature, d.kernel_input_feature,
        d.kernel_spatial, d.input_batch, d.input_feature, d.input_spatial,
    )  # fmt: skip
    result = xla.convolution(
        node.g, _convert_like(kernel, node.g), window=tuple(window), dim_labels=labels, feature_group_count=groups,
        operand_precision=node.attrs["operand_precision"],
    )  # fmt: skip
    return xla.convert(result, node.shapes[0].dtype) if result.shape.dtype is not node.shapes[0].dtype else result


def _regroup_kernel(kernel: XlaOp, groups: int, d: ConvDims) -> XlaOp:
    """Regroup a kernel by its input features instead of its output features."""
    if groups == 1:
        return kernel
    dims, i, o = kernel.shape.dims, d.kernel_input_feature, d.kernel_output_feature
    grouped = xla.reshape(kernel, (*dims[:o], groups, dims[o] // groups, *dims[o + 1 :]))
    input_dim = i + (1 if i > o else 0)  # dimension of the input features after the groups are inserted at o
    order = [k for k in range(len(dims) + 1) if k != o]
    order.insert(order.index(input_dim), o)
    sizes = [dims[k] for k in range(len(dims))]
    sizes[i], sizes[o] = dims[i] * groups, dims[o] // groups
    return xla.reshape(xla.transpose(grouped, order), sizes)


def _kernel_cotangent(node: Node) -> XlaOp:
    d: ConvDims = node.attrs["dim_labels"]
    window = []
    for i, o, w in zip(d.input_spatial, d.output_spatial, node.attrs["window"], strict=True):
        n, m = node.shapes[0].dims[i], node.g.shape.dims[o]
        dilated_size = (n - 1) * w.base_dilation + 1
        high = (w.size - 1) * w.window_dilation + (m - 1) * w.stride + 1 - w.padding_low - dilated_size
        window.append(WindowDim(m, w.window_dilation, w.padding_low, high, w.stride, w.base_dilation))
    labels = ConvDims(
        d.input_feature, d.input_batch, d.input_spatial, d.output_batch, d.output_feature, d.output_spatial,
        d.kernel_input_feature, d.kernel_output_feature, d.kernel_spatial,
    )  # fmt: skip
    result = xla.convolution(
        _convert_like(node.operands[0], node.g), node.g, window=tuple(window), dim_labels=labels,
        batch_group_count=node.attrs["feature_group_count"], operand_precision=node.attrs["operand_precision"],
    )  # fmt: skip
    reversed_ = [k for k, w in zip(d.kernel_spatial, node.attrs["window"], strict=True) if w.window_reversal]
    result = xla.reverse(result, reversed_) if reversed_ else result
    return xla.convert(result, node.shapes[1].dtype) if result.shape.dtype is not node.shapes[1].dtype else result


def _convert_like(x: XlaOp, like: XlaOp) -> XlaOp:
    return x if x.shape.dtype is like.shape.dtype else xla.convert(x, like.shape.dtype)
