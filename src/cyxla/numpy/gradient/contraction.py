"""Derivatives of matrix products and convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.numpy.gradient.backward import no_rule
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
        _side(node.g, rhs, left, right, False) if node.needs[0] else None,
        _side(node.g, lhs, right, left, True) if node.needs[1] else None,
    ]


Side = tuple[Sequence[int], Sequence[int], Shape]


def _free(side: Side) -> list[int]:
    return [d for d in range(side[2].rank) if d not in side[0] and d not in side[1]]


def _side(g: XlaOp, other: XlaOp, mine: Side, its: Side, second: bool) -> XlaOp:
    """Return an operand's cotangent; dimensions of `g` are batch, free of the first, free of the second operand."""
    batch, free, others = len(mine[0]), _free(mine), _free(its)
    at = batch + (0 if second else len(free))
    g_over = tuple(range(at, at + len(others)))
    wanted = mine[2].dtype
    full = xla.dot_general(
        g, _as(other, g),
        lhs_contracting_dims=g_over, rhs_contracting_dims=tuple(others),
        lhs_batch_dims=tuple(range(batch)), rhs_batch_dims=tuple(its[0]),
    )  # fmt: skip
    # batch, own free dimensions, then contracted ones in the order of the other operand
    summed_over = [d for _, d in sorted(zip(its[1], mine[1], strict=True))]
    have = [*mine[0], *free, *summed_over]
    order = [have.index(d) for d in range(len(have))]
    back = full if order == sorted(order) else xla.transpose(full, order)
    return back if wanted is back.shape.dtype else xla.convert(back, wanted)


@rule("convolution")
def convolution(node: Node) -> Cotangents:
    """Differentiate by two more convolutions: cotangent with reversed kernel, and input with cotangent."""
    if node.attrs["batch_group_count"] != 1:
        raise no_rule(node.instruction, " with groups of batches")
    if not (node.g.shape.size and node.shapes[0].size and node.shapes[1].size):
        return [zeros(s) for s in node.shapes]
    return [_of_input(node) if node.needs[0] else None, _of_kernel(node) if node.needs[1] else None]


def _of_input(node: Node) -> XlaOp:
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
    kernel = _groups_swapped(node.operands[1], groups, d)
    labels = ConvDims(
        d.output_batch, d.output_feature, d.output_spatial, d.kernel_output_feature, d.kernel_input_feature,
        d.kernel_spatial, d.input_batch, d.input_feature, d.input_spatial,
    )  # fmt: skip
    made = xla.convolution(
        node.g, _as(kernel, node.g), window=tuple(window), dim_labels=labels, feature_group_count=groups,
        operand_precision=node.attrs["operand_precision"],
    )  # fmt: skip
    return xla.convert(made, node.shapes[0].dtype) if made.shape.dtype is not node.shapes[0].dtype else made


def _groups_swapped(kernel: XlaOp, groups: int, d: ConvDims) -> XlaOp:
    """Regroup a kernel by its input features instead of its output features."""
    if groups == 1:
        return kernel
    dims, i, o = kernel.shape.dims, d.kernel_input_feature, d.kernel_output_feature
    split = xla.reshape(kernel, (*dims[:o], groups, dims[o] // groups, *dims[o + 1 :]))
    at = i + (1 if i > o else 0)  # position of the input features beside the groups at o
    rest = [k for k in range(len(dims) + 1) if k != o]
    rest.insert(rest.index(at), o)
    sizes = [dims[k] for k in range(len(dims))]
    sizes[i], sizes[o] = dims[i] * groups, dims[o] // groups
    return xla.reshape(xla.transpose(split, rest), sizes)


def _of_kernel(node: Node) -> XlaOp:
    d: ConvDims = node.attrs["dim_labels"]
    window = []
    for i, o, w in zip(d.input_spatial, d.output_spatial, node.attrs["window"], strict=True):
        n, m = node.shapes[0].dims[i], node.g.shape.dims[o]
        wide = (n - 1) * w.base_dilation + 1
        high = (w.size - 1) * w.window_dilation + (m - 1) * w.stride + 1 - w.padding_low - wide
        window.append(WindowDim(m, w.window_dilation, w.padding_low, high, w.stride, w.base_dilation))
    labels = ConvDims(
        d.input_feature, d.input_batch, d.input_spatial, d.output_batch, d.output_feature, d.output_spatial,
        d.kernel_input_feature, d.kernel_output_feature, d.kernel_spatial,
    )  # fmt: skip
    made = xla.convolution(
        _as(node.operands[0], node.g), node.g, window=tuple(window), dim_labels=labels,
        batch_group_count=node.attrs["feature_group_count"], operand_precision=node.attrs["operand_precision"],
    )  # fmt: skip
    turned = [k for k, w in zip(d.kernel_spatial, node.attrs["window"], strict=True) if w.window_reversal]
    made = xla.reverse(made, turned) if turned else made
    return xla.convert(made, node.shapes[1].dtype) if made.shape.dtype is not node.shapes[1].dtype else made


def _as(x: XlaOp, like: XlaOp) -> XlaOp:
    return x if x.shape.dtype is like.shape.dtype else xla.convert(x, like.shape.dtype)
