"""Batching of reductions, windows, sorts and scans."""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.types import Shape
from cyxla.xla.batching.batcher import Batcher
from cyxla.xla.batching.element_loops import by_element
from cyxla.xla.batching.table import Node, rule, shifted
from cyxla.xla.batching.values import Value, leaves, mapped, with_batch
from cyxla.xla.hlo.attributes import WindowDim
from cyxla.xla.hlo.builder import XlaBuilder, XlaComputation, XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.hlo.computation import Computation


def _arrays_and_inits(node: Node) -> list[XlaOp]:
    """Return arrays with the batch in front, and initial values as they are."""
    count = len(node.operands) // 2
    return [*[node.lead(k) for k in range(count)], *[v.array for v in node.operands[count:]]]


def _inits_differ(node: Node) -> bool:
    return any(v.mapped for v in node.operands[len(node.operands) // 2 :])


@rule("reduce")
def reduce(node: Node) -> Value:
    """Reduce dimensions behind the batch."""
    if _inits_differ(node):
        return by_element(node)
    return node.emit(_arrays_and_inits(node), dimensions=shifted(node.attrs["dimensions"]))


@rule("reduce-window")
def reduce_window(node: Node) -> Value:
    """Slide the window along dimensions behind the batch."""
    if _inits_differ(node):
        return by_element(node)
    return node.emit(_arrays_and_inits(node), window=(WindowDim(1), *node.attrs["window"]))


@rule("select-and-scatter")
def select_and_scatter(node: Node) -> Value:
    """Slide the window along dimensions behind the batch."""
    init = node.operands[2]
    if init.mapped:
        return by_element(node)
    return node.emit([node.lead(0), node.lead(1), init.array], window=(WindowDim(1), *node.attrs["window"]))


@rule("sort")
def sort(node: Node) -> Value:
    """Sort along a dimension behind the batch."""
    return node.emit(node.all_lead(), dimensions=shifted(node.attrs["dimensions"]))


@rule("topk")
def topk(node: Node) -> Value:
    """Select along the last dimension."""
    return node.emit([node.lead(0)])


@rule("scan")
def scan(node: Node) -> Value:
    """Scan slices and carries of all elements."""
    (along,) = node.attrs["dimensions"]
    attrs = {**node.attrs, "dimensions": (along + 1,)}
    shape = with_batch(node.instruction.shape.logical, node.size)
    step = _for_all(node.called[0], node.batcher)
    return mapped(node.batcher.builder.add("scan", node.all_lead(), attrs, called=[step], shape=shape))


def _for_all(computation: Computation, batcher: Batcher) -> XlaComputation:
    """Return a computation for all elements, whose parameters and results all have the batch in front."""
    builder = XlaBuilder(computation.name)
    shapes: Sequence[Shape] = [with_batch(p.shape.logical, batcher.size) for p in computation.parameters]
    inner = batcher.within(builder, None)
    arguments = [Value(xla.parameter(builder, k, s), True) for k, s in enumerate(shapes)]
    result = inner.run(computation, arguments)
    results = [inner.lead(v) for v in leaves(result)]
    builder.order_effects()
    return builder.build(xla.tuple_(builder, results) if computation.root.shape.is_tuple else results[0])
