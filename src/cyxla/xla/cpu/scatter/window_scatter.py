"""Select-and-scatter over small windows, as two loops without races.

The first finds for each window the number of the element that it selects. The second is a loop over the result: for
each window that holds an element, it combines the source's element if the window selects just this one. An element
meets its windows in the order of a loop over windows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

from cyxla.records import dataclass
from cyxla.types import ElementType, Shape
from cyxla.xla.cpu.c import scalar, scalar_computation
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.emitters import emits_group
from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.kernel.groups import Group, GroupKind
from cyxla.xla.cpu.kernel.kernel import KernelKind, Step, Value
from cyxla.xla.cpu.kernel.temporaries import temporary
from cyxla.xla.cpu.loops.index_map import Affine, Condition, Index, Space
from cyxla.xla.cpu.loops.iteration_boxes import Store
from cyxla.xla.cpu.loops.loop_ir import Body
from cyxla.xla.cpu.loops.nodes import Node
from cyxla.xla.cpu.reduce.small_windows import boxes_step, element_coordinate, stores_of
from cyxla.xla.cpu.reduce.window_size import taps
from cyxla.xla.hlo import Computation, Instruction
from cyxla.xla.hlo.attributes import WindowDim

_NUMBER_TYPE = ElementType.U8  # type of the number of an element within its window
# ns of an element of a window: windows of 2x2 take 1.5 and 0.9 times the two estimates (SPR, see `kernel.machine`).
_SELECT_NS, _SCATTER_NS = 0.12, 0.1


@emits_group(GroupKind.WINDOW_SCATTER)
def window_scatter(group: Group) -> list[Step]:
    """Emit the two steps."""
    root = next(i for i in group.instructions if i.opcode == "select-and-scatter")
    numbers = temporary(root, Shape.array(_NUMBER_TYPE, root.operands[1].shape.dims))
    return [_select_step(group, root, numbers), _scatter_step(group, root, numbers)]


def _select_step(group: Group, root: Instruction, numbers: Value) -> Step:
    def stores_at(body: Body, index: Index) -> list[Store]:
        return [Store(0, _NUMBER_TYPE, index.linear, _lower_selection(body, root, index))]

    ns = taps(root) * _SELECT_NS
    return boxes_step(KernelKind.SELECT_AND_SCATTER, group, stores_at, (numbers,), numbers.shape.dims, ns)


def _scatter_step(group: Group, root: Instruction, numbers: Value) -> Step:
    stores_at, externals = stores_of(group, root, lambda body, index: _lower_scatter(body, root, numbers, index))
    writes = tuple(Value(o) for o in group.outputs)
    covering = prod(-(-w.size // w.stride) for w in root.attrs["window"])
    ns = cost.element_ns(group.instructions) + covering * _SCATTER_NS
    return boxes_step(
        KernelKind.SELECT_AND_SCATTER, group, stores_at, writes, group.outputs[0].shape.dims, ns, externals
    )


# --------------------------------------------------------------------------------------------------------- expressions
@dataclass(frozen=True)
class _SelectionWriter:
    """Number of the selected one of some elements, each followed by a bool that it exists."""

    select: Computation
    dtype: ElementType

    def write(self, writer: CWriter, texts: list[str]) -> str:
        """Write the selection; return the C of the number."""
        best, number, any_exists = texts[0], "0", texts[1]
        for n, (value, exists) in enumerate(zip(texts[2::2], texts[3::2], strict=True), 1):
            (keeps_best,) = scalar_computation.inline(self.select, [best, value], writer)
            is_better = f"!{keeps_best}" if any_exists == "1" else f"(!{any_exists} | !{keeps_best})"
            is_better = writer.local("int", is_better if exists == "1" else f"{exists} & {is_better}")
            best = writer.local(scalar.register_type(self.dtype), f"{is_better} ? {value} : {best}")
            number = writer.local("int32_t", f"{is_better} ? {n} : {number}")
            any_exists = "1" if "1" in (any_exists, exists) else writer.local("int", f"{any_exists} | {exists}")
        return f"(uint8_t)({number if any_exists == '1' else f'{any_exists} ? {number} : 255'})"


@dataclass(frozen=True)
class _ScatterWriter:
    """Initial value combined with the source's elements of the windows that select an element."""

    scatter: Computation
    dtype: ElementType
    numbers: tuple[int, ...]

    def write(self, writer: CWriter, texts: list[str]) -> str:
        """Write the combinations; return the C of the result."""
        value = texts[0]
        for n, number, source in zip(self.numbers, texts[1::2], texts[2::2], strict=True):
            (combined,) = scalar_computation.inline(self.scatter, [value, source], writer)
            value = writer.local(scalar.register_type(self.dtype), f"{number} == {n} ? {combined} : {value}")
        return value


def _lower_selection(body: Body, root: Instruction, index: Index) -> Node:
    """Return the number of the element that a window selects."""
    operand = root.operands[0]
    operands: list[Node] = []
    one, zero = (body.constant_text(_NUMBER_TYPE, text) for text in ("1", "0"))
    for offsets, window in _elements(root):
        conditions: list[Condition] = []
        coordinates = []
        for o, k, n, w in zip(index.coordinates, offsets, operand.shape.dims, window, strict=True):
            own, coordinate = element_coordinate(body.space, o, k, n, w)
            conditions += own
            coordinates.append(coordinate)
        if any(c.decided is False for c in conditions):
            operands += [body.constant(operand.shape.dtype, operand.shape.dtype.numpy_dtype.type(0)), zero]  # type: ignore[union-attr]
            continue
        exists = body.guard(tuple(conditions), one, zero) if conditions else one
        operands += [body.value(operand, body.space.index(operand.shape.dims, tuple(coordinates))), exists]
    return body.call(_NUMBER_TYPE, tuple(operands), _SelectionWriter(root.called[0], operand.shape.dtype))


def _lower_scatter(body: Body, root: Instruction, numbers: Value, index: Index) -> Node:
    """Return an element of the result."""
    source, init = root.operands[1:]
    dims, dtype = source.shape.dims, root.shape.dtype
    no_number = body.constant_text(_NUMBER_TYPE, "255")
    selected, nodes = [], [body.value(init, body.space.scalar)]
    for n, (offsets, window) in reversed(
        list(enumerate(_elements(root)))
    ):  # so that windows are combined in their order
        conditions: list[Condition] = []
        coordinates = []
        for element, k, size, w in zip(index.coordinates, offsets, dims, window, strict=True):
            own, coordinate = _window_coordinate(body.space, element, k, size, w)
            conditions += own
            coordinates.append(coordinate)
        if any(c.decided is False for c in conditions):
            continue
        window_index = body.space.index(dims, tuple(coordinates))
        number = body.load(_NUMBER_TYPE, body.reads.slot(numbers), window_index.linear)
        selected.append(n)
        nodes.append(body.guard(tuple(conditions), number, no_number) if conditions else number)
        nodes.append(body.value(source, window_index))
    return body.call(dtype, tuple(nodes), _ScatterWriter(root.called[1], dtype, tuple(selected)))


def _elements(root: Instruction) -> Iterator[tuple[tuple[int, ...], tuple[WindowDim, ...]]]:
    window = root.attrs["window"]
    for offsets in product(*(range(w.size) for w in window)):
        yield offsets, window


def _window_coordinate(
    space: Space, e: Affine, k: int, size: int, w: WindowDim
) -> tuple[tuple[Condition, ...], Affine]:
    """Return the conditions of a window whose k-th element along one dimension is e, and its index."""
    k = w.size - 1 - k if w.window_reversal else k
    coordinate = e.scale(w.base_dilation).shift(w.padding_low - k * w.window_dilation)
    conditions = [Condition(coordinate, 0, (size - 1) * w.stride)]
    if w.stride > 1:
        conditions.append(Condition(space.remainder(coordinate, w.stride), 0, 0))
        coordinate = space.quotient(coordinate, w.stride)
    undecided = tuple(c for c in conditions if c.decided is not True)
    return undecided, space.choice(undecided, coordinate, size - 1) if undecided else coordinate
