"""Derivatives of opcodes that apply a computation: windows, sort, map and call."""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.numpy.gradient.backward import Linearised, no_derivative
from cyxla.numpy.gradient.composites import composite
from cyxla.numpy.gradient.elementwise import sum_over
from cyxla.numpy.gradient.table import Cotangents, Node, full_constant, rule, zeros
from cyxla.numpy.tracing.bodies import Body, record_body
from cyxla.numpy.tracing.trace import require_current
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.attributes import Window, WindowDim
from cyxla.xla.hlo.builder import XlaBuilder, XlaComputation, XlaOp, scalar_computation
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.hlo.combiners import combiner
from cyxla.xla.hlo.computation import Computation
from cyxla.xla.hlo.instruction import Instruction

# -- windows


@rule("reduce-window")
def reduce_window(node: Node) -> Cotangents:
    """Differentiate: sums pass the cotangent to all elements of a window, extremes to the first one attaining them.

    Products are supported as prefix or suffix products along one dimension.
    """
    combiner_name = combiner(node.called[0]) if len(node.needs) == 2 else None
    if combiner_name not in ("add", "multiply", "maximum", "minimum"):
        raise no_derivative(node.instruction, f" by {combiner_name or 'a custom combiner'}")
    if node.needs[1]:
        raise no_derivative(node.instruction, " with respect to its initial value")
    if not node.g.shape.size or not node.shapes[0].size:
        return [zeros(node.shapes[0]), None]
    window = node.attrs["window"]
    if combiner_name == "add":
        return [_window_sum(node.g, window, node.shapes[0]), None]
    if combiner_name == "multiply":
        return [_window_product(node), None]
    return [_window_extreme(node, combiner_name), None]


def _window_sum(g: XlaOp, window: Window, shape: Shape) -> XlaOp:
    """Sum the cotangents of the windows over each element: strides become interior padding, and vice versa."""
    cropping, padding = [], []
    for w, n, m in zip(window, shape.dims, g.shape.dims, strict=True):
        reach = (w.size - 1) * w.window_dilation
        low = reach - w.padding_low
        high = (n - 1) * w.base_dilation + reach - low - (m - 1) * w.stride
        cropping.append((min(low, 0), min(high, 0)))
        padding.append((max(low, 0), max(high, 0)))
    dilated = [w.stride for w in window]
    if any(low or high for low, high in cropping):  # windows over padding only
        interior = [(0, 0, s - 1) for s in dilated]
        g, dilated = xla.pad(g, 0, interior), [1] * len(window)
        g = xla.pad(g, 0, [(low, high, 0) for low, high in cropping])
    return xla.reduce_window(
        g, full_constant(Shape.array(shape.dtype), 0), scalar_computation("add", shape.dtype), [w.size for w in window],
        [w.base_dilation for w in window], padding, dilated, [w.window_dilation for w in window],
    )  # fmt: skip


def _window_extreme(node: Node, combiner_name: str) -> XlaOp:
    window = node.attrs["window"]
    if any(w.window_dilation != 1 or w.base_dilation != 1 for w in window):
        raise no_derivative(node.instruction, f" by {combiner_name} with dilation")
    comparator = _comparison("GE" if combiner_name == "maximum" else "LE", node.shapes[0].dtype)
    return _scatter_to_selected(node.operands[0], node.g, window, comparator)


def _scatter_to_selected(x: XlaOp, source: XlaOp, window: Window, select: XlaComputation) -> XlaOp:
    """Add each element of the source to the element that its window selected."""
    return xla.select_and_scatter(
        x, select, [w.size for w in window], [w.stride for w in window],
        [(w.padding_low, w.padding_high) for w in window], source, 0, scalar_computation("add", x.shape.dtype),
    )  # fmt: skip


def _comparison(direction: str, dtype: ElementType) -> XlaComputation:
    builder = XlaBuilder(direction.lower())
    pair = [xla.parameter(builder, k, Shape.array(dtype), n) for k, n in enumerate("xy")]
    return builder.build(xla.compare(pair[0], pair[1], direction))


def _window_product(node: Node) -> XlaOp:
    """Differentiate prefix or suffix products, written as a scan with doubling steps."""
    window, shape = node.attrs["window"], node.shapes[0]
    axes = [d for d, w in enumerate(window) if w != WindowDim(1)]
    if len(axes) > 1:
        raise no_derivative(node.instruction, " by multiply in several dimensions")
    if not axes:
        return node.g
    (axis,), n = axes, shape.dims[axes[0]]
    is_prefix = window[axis] == WindowDim(n, 1, n - 1, 0)
    if not is_prefix and window[axis] != WindowDim(n, 1, 0, n - 1):
        raise no_derivative(node.instruction, " by multiply in windows that are not prefixes or suffixes")
    body = record_body("products", [shape], lambda x: [_prefix_products(x, axis, is_prefix)])
    cotangent = Linearised(body, node.operands[:1], [True]).pull([node.g])[0]
    assert cotangent is not None
    return cotangent


def _prefix_products(x: XlaOp, axis: int, is_prefix: bool) -> XlaOp:
    n, step = x.shape.dims[axis], 1
    while step < n:
        low, high = xla.slice_in_dim(x, 0, n - step, 1, axis), xla.slice_in_dim(x, step, n, 1, axis)
        unchanged = xla.slice_in_dim(x, 0, step, 1, axis) if is_prefix else xla.slice_in_dim(x, n - step, n, 1, axis)
        x = xla.concatenate([unchanged, low * high] if is_prefix else [low * high, unchanged], axis)
        step *= 2
    return x


@rule("select-and-scatter")
def select_and_scatter(node: Node) -> Cotangents:
    """Pass the cotangent at the selected element of each window to its element of the source."""
    if combiner(node.called[1]) != "add":
        raise no_derivative(node.instruction, " by a combiner other than add")
    if not node.shapes[1].size:
        return [None, zeros(node.shapes[1]) if node.needs[1] else None, sum_over(node.g) if node.needs[2] else None]
    to_source = _gather_selected(node) if node.needs[1] else None
    return [None, to_source, sum_over(node.g) if node.needs[2] else None]


def _gather_selected(node: Node) -> XlaOp:
    """Return the cotangent of the selected element of each window, by a reduction of (value, cotangent) pairs."""
    window, dtype = node.attrs["window"], node.shapes[0].dtype
    start_value = _start_value(node.called[0])

    def reduce_pairs(x: XlaOp, g: XlaOp) -> XlaOp:
        start = [full_constant(Shape.array(dtype), start_value), full_constant(Shape.array(dtype), 0)]
        pair = xla.reduce_window(
            [x, g], start, _pair_selector(select, dtype), [w.size for w in window], [w.stride for w in window],
            [(w.padding_low, w.padding_high) for w in window],
        )  # fmt: skip
        return xla.get_tuple_element(pair, 1)

    select = _copy_computation(node.called[0])
    return composite([node.operands[0], node.g], reduce_pairs, lambda i, o, c: [
        None, None if c[0] is None else _scatter_to_selected(i[0], c[0], window, select)
    ])[0]  # fmt: skip


def _start_value(select: Computation) -> float:
    """Return the start value of a selection: -inf for the greatest, inf for the least element."""
    return float("-inf") if select.root.attrs.get("direction") in ("GE", "GT") else float("inf")


def _pair_selector(select: XlaComputation, dtype: ElementType) -> XlaComputation:
    """Return the computation that selects one of two pairs (x, g) and (y, h) by x and y."""
    builder = XlaBuilder("chosen")
    x, g, y, h = (xla.parameter(builder, k, Shape.array(dtype), n) for k, n in enumerate("xgyh"))
    keep = inline_computation(builder, select.module().entry, [x, y])
    return builder.build(xla.tuple_(builder, [xla.select(keep, x, y), xla.select(keep, g, h)]))


# -- inlined computations


def _copy_computation(computation: Computation) -> XlaComputation:
    """Copy a computation on its own."""
    builder = XlaBuilder(computation.name)
    parameters = [xla.parameter(builder, k, p.shape) for k, p in enumerate(computation.parameters)]
    return builder.build(inline_computation(builder, computation, parameters))


def inline_computation(builder: XlaBuilder, computation: Computation, operands: Sequence[XlaOp]) -> XlaOp:
    """Inline a computation in a builder and return its result."""
    values = dict(zip(computation.parameters, operands, strict=True))
    for ins in computation.post_order():
        if ins not in values:
            values[ins] = builder.clone(ins, [values[o] for o in ins.operands])
    return values[computation.root]


def body_of(computation: Computation) -> Body:
    """Return a computation as a body."""
    shapes = [p.shape for p in computation.parameters]
    return record_body(
        computation.name,
        shapes,
        lambda *operands: [inline_computation(require_current().builder, computation, operands)],
    )


@rule("call")
def call(node: Node) -> Cotangents:
    """Differentiate the inlined computation."""
    if not node.instruction.shape.is_tuple:
        return Linearised(body_of(node.called[0]), node.operands, node.needs).pull([node.g])
    shapes = [p.shape for p in node.called[0].parameters]
    count = len(node.instruction.shape.elements)

    def parts(*operands: XlaOp) -> list[XlaOp]:
        outputs = inline_computation(require_current().builder, node.called[0], operands)
        return [xla.get_tuple_element(outputs, k) for k in range(count)]

    return Linearised(record_body("called", shapes, parts), node.operands, node.needs).pull(node.cotangents)


@rule("map")
def map_(node: Node) -> Cotangents:
    """Differentiate the computation applied to whole arrays."""
    sizes = node.instruction.shape.dims
    body = record_body("mapped", node.shapes, lambda *operands: [_apply_to_arrays(node.called[0], operands, sizes)])
    return Linearised(body, node.operands, node.needs).pull([node.g])


def _apply_to_arrays(computation: Computation, operands: Sequence[XlaOp], sizes: tuple[int, ...]) -> XlaOp:
    """Apply a computation of scalars to arrays, element by element."""
    builder = require_current().builder
    values: dict[Instruction, XlaOp] = dict(zip(computation.parameters, operands, strict=True))
    for ins in computation.post_order():
        if ins in values:
            continue
        if ins.called or not ins.shape.is_scalar:
            raise no_derivative(ins, " inside of map")
        if ins.opcode == "constant":
            values[ins] = xla.broadcast(builder.clone(ins, []), sizes)
        else:
            shape = ins.shape.with_dims(sizes) if ins.opcode in ("convert", "bitcast-convert") else None
            values[ins] = builder.add(ins.opcode, [values[o] for o in ins.operands], ins.attrs, shape=shape)
    return values[computation.root]


# -- sorting


@rule("sort")
def sort(node: Node) -> Cotangents:
    """Move the cotangents back by sorting them by the original indices of the elements."""
    (axis,) = node.attrs["dimensions"]
    shape = node.shapes[0]
    builder = require_current().builder
    positions = xla.iota(builder, shape.with_dtype(ElementType.S64), axis)
    comparator = _with_extra_operand(node.called[0], ElementType.S64)
    order = xla.get_tuple_element(
        xla.sort([*node.operands, positions], comparator, axis, node.attrs["is_stable"]), len(node.needs)
    )
    requested = [k for k, (c, n) in enumerate(zip(node.cotangents, node.needs, strict=True)) if c is not None and n]
    cotangents: list[XlaOp | None] = [None] * len(node.needs)
    if requested:
        restored = xla.sort([order, *[c for k in requested if (c := node.cotangents[k]) is not None]], None, axis)
        for n, k in enumerate(requested):
            cotangents[k] = xla.get_tuple_element(restored, 1 + n)
    return cotangents


def _with_extra_operand(comparator: Computation, dtype: ElementType) -> XlaComputation:
    """Extend a comparator by an extra pair that it ignores."""
    builder = XlaBuilder(comparator.name)
    parameters = [xla.parameter(builder, k, p.shape) for k, p in enumerate(comparator.parameters)]
    for _ in range(2):
        xla.parameter(builder, len(builder.instructions), Shape.array(dtype))
    return builder.build(inline_computation(builder, comparator, parameters))
