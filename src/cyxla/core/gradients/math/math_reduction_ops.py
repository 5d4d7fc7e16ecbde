"""Gradients of reductions and scans."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient, no_gradient
from cyxla.core.gradients.common import Tensor, cast_like, conj, shape_of


def _normalise_axes(axes: Any, rank: Any) -> Any:
    """Normalise negative axes; the divisor is at least 1, for scalars."""
    return apply_op("FloorMod", apply_op("Cast", axes, DstT="int32") + rank, apply_op("Maximum", rank, 1))


def _shape_with_ones(op: Any) -> Any:
    """Return the input's shape with reduced dimensions set to 1."""
    x, axes = op.inputs
    shape, rank = apply_op("Shape", x), apply_op("Rank", x)
    axes = apply_op("Reshape", axes, [-1])
    ones = apply_op("Fill", apply_op("Shape", axes), 1)
    axes = _normalise_axes(axes, rank)
    return apply_op("DynamicStitch", [apply_op("Range", 0, rank, 1), axes], [shape, ones])


def _keep_dims(op: Any, value: Tensor) -> Tensor:
    """Reshape a reduction's result to the rank of the input, for broadcasting."""
    return value if op.attr("keep_dims") else apply_op("Reshape", value, _shape_with_ones(op))


def _broadcast_to_input(op: Any, value: Tensor) -> Tensor:
    return apply_op("BroadcastTo", _keep_dims(op, value), shape_of(op.inputs[0]))


@gradient("Sum")
def sum_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Broadcast the gradient."""
    return _broadcast_to_input(op, dy), None


@gradient("Mean")
def mean_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Broadcast the gradient divided by the number of elements."""
    x, y = op.inputs[0], op.outputs[0]
    count = apply_op("FloorDiv", apply_op("Size", x), apply_op("Maximum", apply_op("Size", y), 1))
    return _broadcast_to_input(op, dy) / cast_like(count, dy), None


@gradient("Max", "Min")
def extreme_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Share the gradient equally among all elements that attain the extremum."""
    x, axes = op.inputs
    mask = cast_like(apply_op("Equal", _keep_dims(op, op.outputs[0]), x), dy)
    count = apply_op("Sum", mask, axes, keep_dims=True)
    return mask / count * _keep_dims(op, dy), None


@gradient("Prod")
def prod_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Multiply by the product of all other elements, from two exclusive scans, which is exact with zeros."""
    x, axes = op.inputs
    rank = apply_op("Rank", x)
    reduced = _normalise_axes(apply_op("Reshape", axes, [-1]), rank)
    kept_axes = apply_op("ListDiff", apply_op("Range", 0, rank, 1), reduced)[0]
    perm = apply_op("ConcatV2", [reduced, kept_axes], 0)
    shape = apply_op("Shape", x)
    rows = apply_op("Prod", apply_op("GatherV2", shape, reduced, 0), [0])
    columns = apply_op("Prod", apply_op("GatherV2", shape, kept_axes, 0), [0])
    transposed = apply_op("Transpose", x, perm)
    flat = apply_op("Reshape", transposed, [rows, columns])
    before = apply_op("Cumprod", flat, 0, exclusive=True)
    after = apply_op("Cumprod", flat, 0, exclusive=True, reverse=True)
    other_products = apply_op("Reshape", conj(before) * conj(after), apply_op("Shape", transposed))
    grads = apply_op("Transpose", other_products, apply_op("InvertPermutation", perm))
    return apply_op("Reshape", grads * _keep_dims(op, dy), shape), None


@gradient("EuclideanNorm")
def euclidean_norm_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Multiply by x / norm."""
    return op.inputs[0] * _keep_dims(op, apply_op("DivNoNan", dy, op.outputs[0])), None


@gradient("Cumsum")
def cumsum_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Compute the cumulative sum in the opposite direction."""
    exclusive, reverse = op.attr("exclusive"), op.attr("reverse")
    return apply_op("Cumsum", dy, op.inputs[1], exclusive=exclusive, reverse=not reverse), None


@gradient("Cumprod")
def cumprod_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Divide a cumulative sum by x; undefined where x is zero."""
    x, axis = op.inputs
    attrs = {"exclusive": op.attr("exclusive"), "reverse": op.attr("reverse")}
    products = apply_op("Cumprod", x, axis, **attrs)
    sums = apply_op("Cumsum", conj(products) * dy, axis, exclusive=attrs["exclusive"], reverse=not attrs["reverse"])
    return sums / conj(x), None


@gradient("CumulativeLogsumexp")
def cumulative_logsumexp_grad(op: Any, dy: Tensor) -> tuple[Tensor, None]:
    """Scan positive and negative gradients separately in the log domain, which avoids overflow."""
    x, axis = op.inputs
    y = op.outputs[0]
    attrs = {"exclusive": op.attr("exclusive"), "reverse": not op.attr("reverse")}
    log_zero = -6e4 if dy.dtype.base.text == "half" else -1e30  # its exponential is 0

    def part(grad: Tensor, mask: Tensor) -> Tensor:
        logs = apply_op("Log", apply_op("SelectV2", mask, grad, 1.0)) - y
        return apply_op(
            "Exp", apply_op("CumulativeLogsumexp", apply_op("SelectV2", mask, logs, log_zero), axis, **attrs) + x
        )

    return part(dy, dy > 0.0) - part(-dy, dy < 0.0), None


no_gradient("All", "Any", "ArgMax", "ArgMin")
