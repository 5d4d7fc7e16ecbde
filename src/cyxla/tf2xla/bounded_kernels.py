"""Kernels of operands with sizes known only at run time: they are called with padded operands."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from cyxla.errors import InvalidArgumentError
from cyxla.tf2xla.lib.bounded_shapes import mask_padding, with_sizes
from cyxla.tf2xla.lib.dynamic_sizes import is_dynamic, refuse_dynamic, split_dynamic
from cyxla.tf2xla.lib.dynamic_slices import element
from cyxla.tf2xla.lib.size_agreement import Size, equal_sizes, sizes_in
from cyxla.tf2xla.lib.size_bounds import Range
from cyxla.tf2xla.lib.size_checks import SizePair
from cyxla.tf2xla.lib.size_layouts import LAYOUTS, Filler, Labels, SizeLayout
from cyxla.tf2xla.xla_expression import ExpressionKind, XlaExpression
from cyxla.tf2xla.xla_op_kernel import XlaOpKernelContext
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import broadcast_to, full_like, rank_of, reduced, scalar, select, sizes_of, zeros_like

Array = np.ndarray[Any, Any]
Sizes: TypeAlias = dict[Hashable, Size]


class _Node:
    """Inputs and attributes of a node, as layouts read them."""

    def __init__(self, ctx: XlaOpKernelContext) -> None:
        self._ctx = ctx
        self.num_inputs = ctx.num_inputs

    def shape(self, key: int) -> tuple[int, ...]:
        expression = self._ctx.input_expression(key)
        return expression.shape if _is_array(expression) else ()

    def rank(self, key: int) -> int:
        return len(self.shape(key))

    def attr(self, name: str, default: Any = None) -> Any:
        return self._ctx.kernel.attrs.get(name, default)

    def constant_input(self, key: int) -> Array:
        return self._ctx.constant_input(key)

    def known_input(self, key: int) -> Array | None:
        return self._ctx.xla.constant_value(self._ctx.input_expression(key))


def _is_array(expression: XlaExpression) -> bool:
    return expression.kind in (ExpressionKind.CONSTANT, ExpressionKind.XLA_OP)


def _dynamic_value(expression: XlaExpression) -> XlaOp | None:
    """Return the value of an input of dynamic size."""
    is_op = expression.kind is ExpressionKind.XLA_OP and is_dynamic(expression.value)
    return expression.value if is_op else None


def compile_padded(ctx: XlaOpKernelContext) -> bool:
    """Emit a node by the layout of its op; return False, without effect, unless it has one and an input is dynamic.

    Raises
    ------
    UnimplementedError
        An input has a dynamic size that the layout does not allow.
    """
    inputs = [ctx.input_expression(i) for i in range(ctx.num_inputs)]
    make = LAYOUTS.get(ctx.kernel.type_string)
    is_any_dynamic = any(_dynamic_value(x) is not None for x in inputs)
    if make is None or (not is_any_dynamic and ctx.xla.size_bounds.is_empty):
        return False
    node = _Node(ctx)
    layout = make(node)
    if layout is None or any(len(labels) != node.rank(i) for i, labels in enumerate(layout.operands)):
        return False  # the kernel raises
    computed = {i: range_ for i in layout.sizes if (range_ := _range_of_sizes(ctx, inputs[i])) is not None}
    if not computed and not is_any_dynamic:
        return False
    sizes = _sizes(ctx, inputs, layout, _sizes_of_results(ctx, inputs, layout, computed))
    for pair in _further_checks(ctx, inputs, layout, sizes):
        ctx.xla.size_checks.add_pair(ctx.kernel.name, ctx.kernel.type_string, pair)
    padded = [_padded(x, layout.fillers.get(i)) for i, x in enumerate(inputs)]
    for i, (_, high) in computed.items():
        padded[i] = XlaExpression.constant(high.astype(inputs[i].dtype.numpy), inputs[i].dtype)
    inner = XlaOpKernelContext(ctx.kernel, padded, ctx.xla)
    ctx.kernel.compile(inner)
    results = [*layout.results, *[()] * (len(inner.outputs) - len(layout.results))]
    values = {label: size.as_op() for label, size in sizes.items()}
    for i, (output, labels) in enumerate(zip(inner.outputs, results, strict=True)):
        ctx.outputs[i] = None if output is None else _with_sizes(ctx, output, labels, values)
    return True


def _range_of_sizes(ctx: XlaOpKernelContext, expression: XlaExpression) -> Range | None:
    """Return the range of sizes that are computed at run time; None for constants, and if it is not known."""
    if expression.kind is not ExpressionKind.XLA_OP or ctx.xla.constant_value(expression) is not None:
        return None
    found = ctx.xla.range_of(expression)
    return found if found is not None and (found[0] >= 0).all() else None


def _sizes_of_results(
    ctx: XlaOpKernelContext, inputs: list[XlaExpression], layout: SizeLayout, computed: Mapping[int, Range]
) -> Sizes:
    """Return the sizes of results that are computed at run time."""
    found: Sizes = {}
    for i, (low, high) in computed.items():
        labels, value = layout.sizes[i], inputs[i].as_xla_op(ctx.builder)
        if not isinstance(labels, tuple):
            found[labels] = Size(value, int(high), xla.convert(value, ElementType.S32))
            continue
        for d, label in enumerate(labels):
            if low[d] != high[d]:
                found[label] = Size(value, int(high[d]), xla.convert(element(value, d), ElementType.S32))
    return found


def _sizes(ctx: XlaOpKernelContext, inputs: list[XlaExpression], layout: SizeLayout, of_results: Sizes) -> Sizes:
    """Return the dynamic sizes by label, after adding checks of those that must be equal."""
    groups: dict[Hashable, list[Size]] = defaultdict(list)
    groups |= {label: [size] for label, size in of_results.items()}
    for expression, labels in zip(inputs, layout.operands, strict=True):
        if not _is_array(expression):
            continue
        for size, label in zip(sizes_in(expression.as_xla_op(ctx.builder)), labels, strict=True):
            if label is not None:
                groups[label].append(size)
            elif size.value is not None:
                refuse_dynamic(size.operand, f"an input of {ctx.kernel.type_string}")
    found: Sizes = {}
    for label, sizes in groups.items():
        dynamic = [size for size in sizes if size.value is not None]
        if dynamic:
            found[label] = dynamic[0]
            for pair in equal_sizes(sizes, error=layout.mismatch):
                ctx.xla.size_checks.add_pair(ctx.kernel.name, ctx.kernel.type_string, pair)
    return found


def _further_checks(
    ctx: XlaOpKernelContext, inputs: list[XlaExpression], layout: SizeLayout, sizes: Sizes
) -> Iterator[SizePair]:
    """Yield checks that dimensions have elements, and that indices are inside of them."""
    for label in layout.nonempty:
        if label in sizes:
            size = sizes[label].as_op()
            reason = "a dimension needs an element"
            yield SizePair(scalar(size, 1), size, InvalidArgumentError, reason, xla.gt(size, scalar(size, 0)))
    columns: list[tuple[int, Any, int | None]] = [(i, label, None) for i, label in layout.indices.items()]
    columns += [(i, label, k) for i, labels in layout.index_rows.items() for k, label in enumerate(labels)]
    for i, label, column in columns:
        if label in sizes:
            indices = inputs[i].as_xla_op(ctx.builder)
            yield _inside(indices, sizes[label].as_op(), column, skips_negative=layout.skips_negative)


def _inside(indices: XlaOp, size: XlaOp, column: int | None, *, skips_negative: bool) -> SizePair:
    """Return a check that indices, or those in a column of rows of them, are less than a size and not negative."""
    padded, sizes = split_dynamic(indices)
    if column is not None:
        padded = xla.slice_in_dim(padded, column, column + 1, 1, rank_of(padded) - 1)
    numbers = xla.convert(padded, ElementType.S64)
    is_outside = xla.ge(numbers, broadcast_to(xla.convert(size, ElementType.S64), sizes_of(numbers)))
    if not skips_negative:
        is_outside = xla.or_(is_outside, xla.lt(numbers, zeros_like(numbers)))
    is_outside = mask_padding(is_outside, sizes, scalar(is_outside, False))
    axes = range(rank_of(numbers))
    worst = reduced(select(is_outside, numbers, full_like(numbers, -1)), "maximum", scalar(numbers, -1), axes)
    holds = xla.not_(reduced(is_outside, "or", scalar(is_outside, False), axes))
    reason = "an index is out of the range of a size"
    return SizePair(xla.convert(worst, ElementType.S32), size, InvalidArgumentError, reason, holds)


def _padded(expression: XlaExpression, filler: Filler | None) -> XlaExpression:
    """Return an input without dynamic sizes, and with a value in its padding if one is given."""
    value = _dynamic_value(expression)
    if value is None:
        return expression
    padded, sizes = split_dynamic(value)
    if filler is not None:
        padded = mask_padding(padded, sizes, filler(padded))
    return XlaExpression.of(padded, expression.dtype)


def _with_sizes(
    ctx: XlaOpKernelContext, output: XlaExpression, labels: Labels, sizes: Mapping[Hashable, XlaOp]
) -> XlaExpression:
    own = {d: sizes[label] for d, label in enumerate(labels) if label in sizes}
    return XlaExpression.of(with_sizes(output.as_xla_op(ctx.builder), own), output.dtype) if own else output
