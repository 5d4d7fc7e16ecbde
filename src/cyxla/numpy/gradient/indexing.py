"""Derivatives of `gather` and `scatter`, which are each other's transpose."""

from __future__ import annotations

from typing import Any

from cyxla.numpy.gradient.backward import no_derivative
from cyxla.numpy.gradient.elementwise import full_like
from cyxla.numpy.gradient.table import Cotangents, Node, full_constant, rule, zeros
from cyxla.numpy.tracing.trace import require_current
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaBuilder, XlaComputation, XlaOp, scalar_computation
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.hlo.combiners import combiner
from cyxla.xla.hlo.computation import Computation

Dims = dict[str, Any]


@rule("gather")
def gather(node: Node) -> Cotangents:
    """Scatter-add the cotangent to the gathered elements; start indices are clamped as by `gather`."""
    a, operand = node.attrs, node.shapes[0]
    if not node.g.shape.size:
        return [zeros(operand), None]
    limits = [operand.dims[d] - a["slice_sizes"][d] for d in a["start_index_map"]]
    clamped = _clamp_starts(node.operands[1], limits, a["index_vector_dim"])
    dims = {
        "update_window_dims": a["offset_dims"], "inserted_window_dims": a["collapsed_slice_dims"],
        "scatter_dims_to_operand_dims": a["start_index_map"], "index_vector_dim": a["index_vector_dim"],
        "input_batching_dims": a["operand_batching_dims"],
        "scatter_indices_batching_dims": a["start_indices_batching_dims"],
        "indices_are_sorted": a["indices_are_sorted"],
    }  # fmt: skip
    return [xla.scatter(zeros(operand), clamped, node.g, scalar_computation("add", operand.dtype), **dims), None]


def _clamp_starts(indices: XlaOp, limits: list[int], vector_dim: int) -> XlaOp:
    """Clamp start indices as `gather` does."""
    low, high = full_like(indices, 0), _bounds(indices, limits, vector_dim)
    return xla.minimum(xla.maximum(indices, low), high)


def _bounds(indices: XlaOp, limits: list[int], vector_dim: int) -> XlaOp:
    """Return the greatest start for each component of the indices, limited to the range of their dtype."""
    shape, max_value = indices.shape, _max_value(indices.shape.dtype)
    scalars = [full_constant(Shape.array(shape.dtype), min(limit, max_value)) for limit in limits]
    if vector_dim == shape.rank:
        return xla.broadcast(scalars[0], shape.dims) if shape.rank else scalars[0]
    row = xla.concatenate([xla.reshape(s, (1,)) for s in scalars], 0)
    return xla.broadcast_in_dim(row, shape.dims, (vector_dim,))


def _max_value(dtype: ElementType) -> int:
    return int((1 << (dtype.bits - (1 if dtype.is_signed else 0))) - 1)


@rule("scatter")
def scatter(node: Node) -> Cotangents:
    """Differentiate a scatter by the rule of its combiner."""
    if len(node.shapes) != 3:
        raise no_derivative(node.instruction, " of several arrays")
    combiner_name = _is_replacement(node.called[0]) or combiner(node.called[0]) or _subtracts_or_divides(node.called[0])
    if combiner_name not in _BY_COMBINER:
        raise no_derivative(node.instruction, f" by {combiner_name or 'a custom combiner'}")
    if not node.shapes[2].size:
        return [node.g, None, zeros(node.shapes[2]) if node.needs[2] else None]
    to_operand, to_updates = _BY_COMBINER[combiner_name](node)
    return [to_operand, None, to_updates]


def _is_replacement(computation: Computation) -> str | None:
    return "replace" if computation.root is computation.parameters[1] else None


def _subtracts_or_divides(computation: Computation) -> str | None:
    """Return the opcode if the combiner subtracts or divides by updates."""
    root = computation.root
    matches = root.opcode in ("subtract", "divide") and list(root.operands) == list(computation.parameters)
    return root.opcode if matches else None


class _UpdatedElements:
    """Elements that a scatter updates."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.attrs = node.attrs
        self.operand, self.updates = node.shapes[0], node.shapes[2]
        self.dims = {k: v for k, v in node.attrs.items() if k != "unique_indices"}

    @property
    def window_sizes(self) -> list[int]:
        """Sizes of a window along the dimensions of the operand."""
        a = self.attrs
        window_axes = [d for d in range(self.operand.rank) if d not in _absent_dims(a)]
        sizes = [1] * self.operand.rank
        for d, u in zip(window_axes, a["update_window_dims"], strict=True):
            sizes[d] = self.updates.dims[u]
        return sizes

    def gather(self, array: XlaOp) -> XlaOp:
        """Gather the updated elements of an array; zero for windows out of range."""
        a = self.attrs
        gathered = xla.gather(
            array, self.node.operands[1], offset_dims=a["update_window_dims"],
            collapsed_slice_dims=a["inserted_window_dims"], start_index_map=a["scatter_dims_to_operand_dims"],
            operand_batching_dims=a["input_batching_dims"],
            start_indices_batching_dims=a["scatter_indices_batching_dims"], index_vector_dim=a["index_vector_dim"],
            slice_sizes=self.window_sizes, indices_are_sorted=a["indices_are_sorted"],
        )  # fmt: skip
        return xla.select(self.in_range(), gathered, full_like(gathered, 0))

    def in_range(self) -> XlaOp:
        """Return a mask of updates whose window is in range; others are skipped by the scatter."""
        a, indices = self.attrs, self.node.operands[1]
        vector_dim, window_sizes = a["index_vector_dim"], self.window_sizes
        limits = [self.operand.dims[d] - window_sizes[d] for d in a["scatter_dims_to_operand_dims"]]
        in_bounds = xla.and_(
            xla.ge(indices, full_like(indices, 0)), xla.le(indices, _bounds(indices, limits, vector_dim))
        )
        if vector_dim < indices.shape.rank:
            in_bounds = xla.reduce(
                in_bounds, [full_constant(Shape.array("pred"), True)], scalar_computation("and", "pred"), [vector_dim]
            )
        batch_dims = [d for d in range(self.updates.rank) if d not in a["update_window_dims"]]
        return xla.broadcast_in_dim(in_bounds, self.updates.dims, batch_dims)

    def scatter(self, array: XlaOp, updates: XlaOp, combiner_name: str) -> XlaOp:
        """Scatter other values by another combiner at the same indices."""
        combiner_ = (
            _second_operand(updates.shape.dtype)
            if combiner_name == "replace"
            else scalar_computation(combiner_name, updates.shape.dtype)
        )
        unique = self.attrs["unique_indices"]
        return xla.scatter(array, self.node.operands[1], updates, combiner_, unique_indices=unique, **self.dims)


def _absent_dims(attrs: Dims) -> tuple[int, ...]:
    return (*attrs["inserted_window_dims"], *attrs["input_batching_dims"])


def _second_operand(dtype: ElementType) -> XlaComputation:
    builder = XlaBuilder("second")
    pair = [xla.parameter(builder, k, Shape.array(dtype), n) for k, n in enumerate("xy")]
    return builder.build(pair[1])


def _add(node: Node) -> tuple[XlaOp | None, XlaOp | None]:
    return node.g, _UpdatedElements(node).gather(node.g) if node.needs[2] else None


def _replace(node: Node) -> tuple[XlaOp | None, XlaOp | None]:
    """Differentiate a replacement: of several updates of one element only the last one has a cotangent."""
    elements = _UpdatedElements(node)
    to_operand = elements.scatter(node.g, full_constant(node.shapes[2], 0), "replace") if node.needs[0] else None
    if not node.needs[2]:
        return to_operand, None
    to_updates = elements.gather(node.g)
    if node.attrs["unique_indices"] or node.shapes[2].size == 1:
        return to_operand, to_updates
    numbers = _numbers_from_one(node.shapes[2])
    winners = elements.gather(elements.scatter(zeros(node.shapes[0].with_dtype(ElementType.S64)), numbers, "replace"))
    return to_operand, xla.select(xla.eq(numbers, winners), to_updates, full_like(to_updates, 0))


def _numbers_from_one(shape: Shape) -> XlaOp:
    """Return 1, 2, 3 .. in a shape."""
    flat = xla.iota(require_current().builder, Shape.array(ElementType.S64, (shape.size,)))
    return xla.reshape(flat + full_like(flat, 1), shape.dims)


def _multiply(node: Node) -> tuple[XlaOp | None, XlaOp | None]:
    elements = _UpdatedElements(node)
    x, updates = node.operands[0], node.operands[2]
    factor = elements.scatter(full_like(x, 1), updates, "multiply")
    to_operand = node.g * factor if node.needs[0] else None
    if not node.needs[2]:
        return to_operand, None
    to_updates = elements.gather(node.g * x)
    if node.attrs["unique_indices"] or node.shapes[2].size == 1:
        return to_operand, to_updates
    return to_operand, to_updates * _products_of_others(elements.gather(_numbers_from_one(x.shape)), updates)


def _products_of_others(numbers: XlaOp, x: XlaOp) -> XlaOp:
    """Multiply for each element all others of the same key, by sorting, without division."""
    count = x.shape.size
    keys, flat = (xla.reshape(v, (count,)) for v in (numbers, x))
    order = _numbers_from_one(keys.shape)
    keys, order, flat = (xla.get_tuple_element(xla.sort([keys, order, flat], None, 0), k) for k in range(3))
    prefixes = _products_before(keys, flat)
    suffixes = _products_before(xla.reverse(keys, (0,)), xla.reverse(flat, (0,)))
    restored = xla.sort([order, prefixes * xla.reverse(suffixes, (0,))], None, 0)
    return xla.reshape(xla.get_tuple_element(restored, 1), x.shape.dims)


def _products_before(keys: XlaOp, x: XlaOp) -> XlaOp:
    """Multiply the elements before each one that have its key; elements are sorted by key."""
    count = x.shape.dims[0]

    def earlier(v: XlaOp, step: int) -> XlaOp:
        same_key = xla.eq(xla.slice_in_dim(keys, step, count, 1, 0), xla.slice_in_dim(keys, 0, count - step, 1, 0))
        shifted = xla.slice_in_dim(v, 0, count - step, 1, 0)
        return xla.pad_in_dim(xla.select(same_key, shifted, full_like(shifted, 1)), 1, 0, step, 0)

    products, step = earlier(x, 1), 1
    while step < count:
        products = products * earlier(products, step)
        step *= 2
    return products


def _subtract(node: Node) -> tuple[XlaOp | None, XlaOp | None]:
    return node.g, -_UpdatedElements(node).gather(node.g) if node.needs[2] else None


def _divide(node: Node) -> tuple[XlaOp | None, XlaOp | None]:
    elements, updates = _UpdatedElements(node), node.operands[2]
    divisor = elements.scatter(full_like(node.operands[0], 1), updates, "multiply")
    return node.g / divisor if node.needs[0] else None, -(elements.gather(node.g * node.out) / updates)


def _extreme(node: Node) -> tuple[XlaOp | None, XlaOp | None]:
    """Differentiate an extreme: elements equal to the result share the cotangent."""
    elements, out = _UpdatedElements(node), node.out
    x, updates = node.operands[0], node.operands[2]
    operand_mask = _ones_where(xla.eq(x, out), x)
    update_mask = _ones_where(xla.and_(xla.eq(updates, elements.gather(out)), elements.in_range()), updates)
    share = node.g / xla.maximum(elements.scatter(operand_mask, update_mask, "add"), full_like(x, 1))
    return share * operand_mask if node.needs[0] else None, elements.gather(share) * update_mask if node.needs[
        2
    ] else None


def _ones_where(mask: XlaOp, like: XlaOp) -> XlaOp:
    return xla.select(mask, full_like(like, 1), full_like(like, 0))


_BY_COMBINER = {
    "add": _add, "subtract": _subtract, "replace": _replace, "multiply": _multiply, "divide": _divide,
    "maximum": _extreme, "minimum": _extreme,
}  # fmt: skip


@rule("topk")
def topk(node: Node) -> Cotangents:
    """Scatter the cotangent back to the selected elements."""
    g, x = node.cotangents[0], node.shapes[0]
    if g is None:
        return [None]
    last, batch = x.rank - 1, tuple(range(x.rank - 1))
    return [xla.scatter(
        zeros(x), xla.get_tuple_element(node.out, 1), g, scalar_computation("add", x.dtype), update_window_dims=(),
        inserted_window_dims=(last,), scatter_dims_to_operand_dims=(last,), index_vector_dim=x.rank,
        input_batching_dims=batch, scatter_indices_batching_dims=batch, unique_indices=True,
    )]  # fmt: skip
