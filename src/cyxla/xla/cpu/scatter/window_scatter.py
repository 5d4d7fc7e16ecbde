"""Select-and-scatter over small windows, as two loops without races.

The first finds for each window the number of the element that it selects. The second is a loop over the result: for
each window that holds an element, it combines the source's element if the window selects just this one. An element
meets its windows in the order of a loop over windows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod

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
from cyxla.xla.cpu.reduce.small_windows import boxes_step, element_place, stores_of
from cyxla.xla.cpu.reduce.window_size import taps
from cyxla.xla.hlo import Computation, Instruction
from cyxla.xla.hlo.attributes import WindowDim

_NUMBER = ElementType.U8  # type of the number of an element within its window
# ns of an element of a window: windows of 2x2 take 1.5 and 0.9 times the two estimates (SPR, see `kernel.machine`).
_LOOK_NS, _SCATTER_NS = 0.12, 0.1


@emits_group(GroupKind.WINDOW_SCATTER)
def window_scatter(group: Group) -> list[Step]:
    """Emit the two steps."""
    root = next(i for i in group.instructions if i.opcode == "select-and-scatter")
    numbers = temporary(root, Shape.array(_NUMBER, root.operands[1].shape.dims))
    return [_picking(group, root, numbers), _scattering(group, root, numbers)]


def _picking(group: Group, root: Instruction, numbers: Value) -> Step:
    def stores_at(body: Body, index: Index) -> list[Store]:
        return [Store(0, _NUMBER, index.linear, _picked(body, root, index))]

    ns = taps(root) * _LOOK_NS
    return boxes_step(KernelKind.SELECT_AND_SCATTER, group, stores_at, (numbers,), numbers.shape.dims, ns)


def _scattering(group: Group, root: Instruction, numbers: Value) -> Step:
    stores_at, given = stores_of(group, root, lambda body, index: _joined(body, root, numbers, index))
    writes = tuple(Value(o) for o in group.outputs)
    covering = prod(-(-w.size // w.stride) for w in root.attrs["window"])
    ns = cost.element_ns(group.instructions) + covering * _SCATTER_NS
    return boxes_step(KernelKind.SELECT_AND_SCATTER, group, stores_at, writes, group.outputs[0].shape.dims, ns, given)


# --------------------------------------------------------------------------------------------------------- expressions
@dataclass(frozen=True)
class _Picks:
    """Number of the selected one of some elements, each followed by a bool that it exists."""

    select: Computation
    dtype: ElementType

    def write(self, writer: CWriter, texts: list[str]) -> str:
        """Write the selection; return the C of the number."""
        best, number, known = texts[0], "0", texts[1]
        for n, (value, exists) in enumerate(zip(texts[2::2], texts[3::2], strict=True), 1):
            (keep,) = scalar_computation.inline(self.select, [best, value], writer)
            take = f"!{keep}" if known == "1" else f"(!{known} | !{keep})"
            take = writer.local("int", take if exists == "1" else f"{exists} & {take}")
            best = writer.local(scalar.register_type(self.dtype), f"{take} ? {value} : {best}")
            number = writer.local("int32_t", f"{take} ? {n} : {number}")
            known = "1" if "1" in (known, exists) else writer.local("int", f"{known} | {exists}")
        return f"(uint8_t)({number if known == '1' else f'{known} ? {number} : 255'})"


@dataclass(frozen=True)
class _Joins:
    """Initial value combined with the source's elements of the windows that select an element."""

    scatter: Computation
    dtype: ElementType
    numbers: tuple[int, ...]

    def write(self, writer: CWriter, texts: list[str]) -> str:
        """Write the combinations; return the C of the result."""
        value = texts[0]
        for n, number, source in zip(self.numbers, texts[1::2], texts[2::2], strict=True):
            (joined,) = scalar_computation.inline(self.scatter, [value, source], writer)
            value = writer.local(scalar.register_type(self.dtype), f"{number} == {n} ? {joined} : {value}")
        return value


def _picked(body: Body, root: Instruction, index: Index) -> Node:
    """Return the number of the element that a window selects."""
    operand = root.operands[0]
    found: list[Node] = []
    one, zero = (body.constant_text(_NUMBER, text) for text in ("1", "0"))
    for offsets, window in _elements(root):
        conditions: list[Condition] = []
        at = []
        for o, k, n, w in zip(index.coordinates, offsets, operand.shape.dims, window, strict=True):
            mine, place = element_place(body.space, o, k, n, w)
            conditions += mine
            at.append(place)
        if any(c.decided is False for c in conditions):
            found += [body.constant(operand.shape.dtype, operand.shape.dtype.numpy_dtype.type(0)), zero]  # type: ignore[union-attr]
            continue
        exists = body.guard(tuple(conditions), one, zero) if conditions else one
        found += [body.value(operand, body.space.index(operand.shape.dims, tuple(at))), exists]
    return body.call(_NUMBER, tuple(found), _Picks(root.called[0], operand.shape.dtype))


def _joined(body: Body, root: Instruction, numbers: Value, index: Index) -> Node:
    """Return an element of the result."""
    source, init = root.operands[1:]
    dims, dtype = source.shape.dims, root.shape.dtype
    none = body.constant_text(_NUMBER, "255")
    taken, nodes = [], [body.value(init, body.space.scalar)]
    for n, (offsets, window) in reversed(list(enumerate(_elements(root)))):  # so the windows come in their order
        conditions: list[Condition] = []
        at = []
        for e, k, size, w in zip(index.coordinates, offsets, dims, window, strict=True):
            mine, place = _window_of(body.space, e, k, size, w)
            conditions += mine
            at.append(place)
        if any(c.decided is False for c in conditions):
            continue
        window_index = body.space.index(dims, tuple(at))
        number = body.load(_NUMBER, body.reads.slot(numbers), window_index.linear)
        taken.append(n)
        nodes.append(body.guard(tuple(conditions), number, none) if conditions else number)
        nodes.append(body.value(source, window_index))
    return body.call(dtype, tuple(nodes), _Joins(root.called[1], dtype, tuple(taken)))


def _elements(root: Instruction) -> Iterator[tuple[tuple[int, ...], tuple[WindowDim, ...]]]:
    window = root.attrs["window"]
    for offsets in product(*(range(w.size) for w in window)):
        yield offsets, window


def _window_of(space: Space, e: Affine, k: int, size: int, w: WindowDim) -> tuple[tuple[Condition, ...], Affine]:
    """Return the conditions of a window whose k-th element along one dimension is e, and its index."""
    k = w.size - 1 - k if w.window_reversal else k
    place = e.scaled(w.base_dilation).shifted(w.padding_low - k * w.window_dilation)
    found = [Condition(place, 0, (size - 1) * w.stride)]
    if w.stride > 1:
        found.append(Condition(space.remainder(place, w.stride), 0, 0))
        place = space.quotient(place, w.stride)
    unsettled = tuple(c for c in found if c.decided is not True)
    return unsettled, space.choice(unsettled, place, size - 1) if unsettled else place
