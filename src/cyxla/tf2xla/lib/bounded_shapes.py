"""Rules for ops that support operands of dynamic size (see `dynamic_sizes`); all other ops reject them.

A rule calls the op's kernel on the padded arrays and sets the dynamic sizes of the result, so kernels only see
static shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from cyxla.core.framework.declarations.op import OpRegistry
from cyxla.core.framework.geometry.shape_operands import axes_of, axis_of
from cyxla.core.framework.shape_fns.common import ELEMENTWISE_SHAPES
from cyxla.tf2xla.lib.dynamic_sizes import is_dynamic, require_static, set_dynamic_size, split_dynamic
from cyxla.tf2xla.lib.size_agreement import broadcast_size, sizes_at, sizes_that_agree
from cyxla.tf2xla.lib.size_checks import SizePair
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaBuilder, XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import (
    broadcast_to,
    iota_along,
    is_integer,
    is_narrow,
    max_value,
    min_value,
    rank_of,
    scalar,
    select,
    sizes_of,
    sum_of,
    widened,
    zeros_like,
)

Kernel: TypeAlias = Callable[..., Any]  # (*operands, **attributes) -> result
Rule: TypeAlias = Callable[[Kernel, Sequence[Any], Mapping[str, Any]], Any]

RULES: dict[str, Rule] = {}


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, rule))
        return rule

    return register


def any_dynamic(args: Sequence[Any]) -> bool:
    """Return whether an operand, or one in a list, has a dynamic size."""
    return any(any_dynamic(x) if isinstance(x, list) else isinstance(x, XlaOp) and is_dynamic(x) for x in args)


def with_sizes(x: XlaOp, sizes: Mapping[int, XlaOp]) -> XlaOp:
    """Set the sizes of several dimensions."""
    for dimension, size in sizes.items():
        x = set_dynamic_size(x, size, dimension)
    return x


def _elementwise(kernel: Kernel, args: Sequence[Any], attrs: Mapping[str, Any]) -> XlaOp:
    """Broadcast dimensions of one element, and set the dynamic sizes of the result."""
    rank = max(map(rank_of, args), default=0)
    sizes: dict[int, XlaOp] = {}
    for position in range(rank):
        own = sizes_at(args, position - rank)
        if any(n.value is not None for n in own):
            sizes[position] = broadcast_size(own)
    repeated = [_repeated(*split_dynamic(x), sizes, rank) for x in args]
    return with_sizes(kernel(*repeated, **attrs), sizes)


def _repeated(padded: XlaOp, own: Mapping[int, XlaOp], sizes: Mapping[int, XlaOp], rank: int) -> XlaOp:
    """Repeat the only element of dynamic dimensions along the bound, where the result has several."""
    for dimension, size in own.items():
        to = sizes[dimension + rank - rank_of(padded)]
        if sizes_of(padded)[dimension] > 1 and to.instruction is not size.instruction:
            is_repeated = xla.and_(xla.eq(size, scalar(size, 1)), xla.gt(to, scalar(to, 1)))
            first = xla.slice_in_dim(padded, 0, 1, 1, dimension)
            padded = select(is_repeated, broadcast_to(first, sizes_of(padded)), padded)
    return padded


def padded_result(result: XlaOp) -> XlaOp:
    """Return an array whose sizes follow from its operands' with its sizes set."""
    shape = result.shape
    sizes = [d for d, flag in enumerate(shape.dynamic) if flag]
    if not sizes:
        return result
    parts = [shape.static, *[Shape.array(ElementType.S32)] * len(shape.dims)]
    static = xla.custom_call(result.builder, "PadToStatic", [result], Shape.tuple(parts))
    return with_sizes(xla.get_tuple_element(static, 0), {d: xla.get_tuple_element(static, d + 1) for d in sizes})


@_rule(
    "Concat", "ConcatV2", "Transpose", "ConjugateTranspose", "Reverse", "ReverseV2", "Pad", "PadV2", "MatMul",
    "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3",
)  # fmt: skip
def _of_any_size(kernel: Kernel, args: Sequence[Any], attrs: Mapping[str, Any]) -> XlaOp:
    """Call a kernel whose instructions take dynamic sizes themselves."""
    return padded_result(kernel(*args, **attrs))


def rule_of(op: str) -> Rule | None:
    """Return the rule of an op, None if it takes no dynamic operands; all element-wise ops have one."""
    ops = OpRegistry.global_()
    if op in RULES or op not in ops:
        return RULES.get(op)
    return _elementwise if ops.look_up(op).shape_inference_fn in ELEMENTWISE_SHAPES else None


@_rule("Equal", "NotEqual")
def _comparison(kernel: Kernel, args: Sequence[Any], attrs: Mapping[str, Any]) -> XlaOp:
    """Compare as `_elementwise`; arrays that do not broadcast must be errors."""
    if not attrs["incompatible_shape_error"]:
        for x in args:
            require_static(x, "an operand of a comparison that is false for other shapes")
    return _elementwise(kernel, args, attrs)


def compared_sizes(op: str, args: Sequence[Any], attrs: Mapping[str, Any]) -> list[SizePair]:
    """Return the sizes of operands that must be equal at run time; raises as `sizes_that_agree`."""
    return sizes_that_agree(op, rule_of(op) in (_elementwise, _comparison), args, attrs)


@_rule("Squeeze")
def _squeeze(kernel: Kernel, args: Sequence[Any], attrs: Mapping[str, Any]) -> XlaOp:
    """Remove static dimensions of size 1; which dynamic ones have it is not known."""
    (x,) = args
    padded, sizes = split_dynamic(x)
    rank = rank_of(padded)
    removed = [d % max(rank, 1) for d in attrs["squeeze_dims"]]
    doubtful = sizes.keys() & set(removed) if removed else {d for d in sizes if sizes_of(padded)[d]}
    if doubtful:
        require_static(x, "the input of Squeeze")
    removed = removed or [d for d, n in enumerate(sizes_of(padded)) if n == 1]
    return with_sizes(kernel(padded, **attrs), {d - sum(g < d for g in removed): size for d, size in sizes.items()})


@_rule("ExpandDims")
def _expand_dims(kernel: Kernel, args: Sequence[Any], attrs: Mapping[str, Any]) -> XlaOp:
    padded, sizes = split_dynamic(args[0])
    axis = axis_of(args[1], rank_of(padded) + 1, "dim")
    return with_sizes(kernel(padded, args[1], **attrs), {d + (axis <= d): size for d, size in sizes.items()})


@_rule("Unique", "UniqueV2")
def _unique(kernel: Kernel, args: Sequence[Any], attrs: Mapping[str, Any]) -> list[XlaOp]:
    """Give padding the value of the first slice, which adds none."""
    x, *axes = args
    padded, sizes = split_dynamic(x)
    axis = axis_of(axes[0], rank_of(padded)) if axes and axes[0].size else 0
    along = sizes.pop(axis, None)
    padded = mask_padding(padded, sizes, scalar(padded, 0))
    if along is None or not sizes_of(padded)[axis]:
        values, index = kernel(padded, *axes, **attrs)
        return [with_sizes(values, sizes), index]
    first = broadcast_to(xla.slice_in_dim(padded, 0, 1, 1, axis), sizes_of(padded))
    values, index = kernel(mask_padding(padded, {axis: along}, first), *axes, **attrs)
    values, own = split_dynamic(values)
    return [with_sizes(values, {**sizes, axis: xla.minimum(own[axis], along)}), with_sizes(index, {0: along})]


# ------------------------------------------------------------------------------------------------------- reductions


def mask_padding(x: XlaOp, sizes: Mapping[int, XlaOp], filler: XlaOp) -> XlaOp:
    """Replace elements beyond the dynamic sizes by a value."""
    for dimension, size in sizes.items():
        position = iota_along(x.builder, ElementType.S32, sizes_of(x), dimension)
        x = select(xla.lt(position, broadcast_to(size, sizes_of(x))), x, filler)
    return x


def _reduction(filler: Callable[[XlaOp], XlaOp]) -> Rule:
    def rule(kernel: Kernel, args: Sequence[Any], attrs: Mapping[str, Any]) -> XlaOp:
        padded, sizes = split_dynamic(args[0])
        axes = set(axes_of(args[1], rank_of(padded)))
        removed = {d: size for d, size in sizes.items() if d in axes}
        result = kernel(mask_padding(padded, removed, filler(padded)), args[1], **attrs)
        keep = attrs["keep_dims"]
        return with_sizes(
            result, {_result_dimension(d, axes, keep): size for d, size in sizes.items() if d not in axes}
        )

    return rule


def _result_dimension(dimension: int, axes: set[int], keep: bool) -> int:
    return dimension if keep else dimension - sum(axis < dimension for axis in axes)


for _name, _filler in (
    ("Sum", lambda x: scalar(x, 0)),
    ("EuclideanNorm", lambda x: scalar(x, 0)),
    ("Prod", lambda x: scalar(x, 1)),
    ("Max", min_value),
    ("Min", max_value),
    ("All", lambda x: scalar(x, True)),
    ("Any", lambda x: scalar(x, False)),
):
    _rule(_name)(_reduction(_filler))


@_rule("Mean")
def _mean(kernel: Kernel, args: Sequence[Any], attrs: Mapping[str, Any]) -> XlaOp:
    """Divide the sum by the number of elements, in the type in which the eager kernel does; see `widened`."""
    padded, sizes = split_dynamic(args[0])
    axes = axes_of(args[1], rank_of(padded))
    if not sizes.keys() & set(axes):
        return _reduction(lambda x: scalar(x, 0))(kernel, args, attrs)  # type: ignore[no-any-return]
    removed = {d: size for d, size in sizes.items() if d in axes}
    present = widened(mask_padding(padded, removed, scalar(padded, 0)))
    total = sum_of(present, axes, attrs["keep_dims"])
    number = product_of_sizes([removed.get(d, n) for d, n in enumerate(sizes_of(padded)) if d in axes], padded.builder)
    count = broadcast_to(xla.convert(number, total.shape.dtype), sizes_of(total))
    mean = total / count
    if is_integer(mean):
        mean = select(xla.eq(count, zeros_like(count)), zeros_like(mean), mean)
    result = xla.convert(mean, padded.shape.dtype) if is_narrow(padded) else mean
    keep = attrs["keep_dims"]
    return with_sizes(result, {_result_dimension(d, set(axes), keep): n for d, n in sizes.items() if d not in axes})


def product_of_sizes(sizes: Sequence[XlaOp | int], builder: XlaBuilder) -> XlaOp:
    """Return the product of sizes as an s64 scalar."""
    factors = [xla.convert(n, ElementType.S64) for n in sizes if isinstance(n, XlaOp)]
    return prod(factors, start=xla.constant(builder, np.int64(prod(n for n in sizes if isinstance(n, int)))))


# ------------------------------------------------------------------------------------------------------------ sizes


def runtime_sizes(op: XlaOp) -> list[XlaOp]:
    """Return the static or dynamic sizes of a value as s32 scalars."""
    padded, sizes = split_dynamic(op)
    static_sizes = [xla.constant(op.builder, np.int32(n)) for n in sizes_of(padded)]
    return [sizes.get(d, n) for d, n in enumerate(static_sizes)]
