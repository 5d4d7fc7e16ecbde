"""Small windows: each result is one unrolled expression of the elements under its window, without accumulators.

The iteration space is split where windows reach over an edge and, if the operand is dilated, by phases, so that in most
boxes no element needs a guard. Loops run over the results and are vectorised along the innermost dimension.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod

from cyxla.records import dataclass
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.kernel.groups import Group
from cyxla.xla.cpu.kernel.kernel import KernelKind, Step, Value
from cyxla.xla.cpu.loops.elementwise import describe, emit_box
from cyxla.xla.cpu.loops.index_map import Affine, Condition, Index, Space
from cyxla.xla.cpu.loops.iteration_boxes import Store, StoresAt, split_into_boxes
from cyxla.xla.cpu.loops.loop_ir import Body, Reads
from cyxla.xla.cpu.loops.loop_kernel import KernelFrame, assemble
from cyxla.xla.cpu.loops.nodes import Node
from cyxla.xla.cpu.reduce.accumulators import Accumulator
from cyxla.xla.cpu.reduce.window_size import MAX_UNROLLED_TAPS, taps
from cyxla.xla.hlo import Instruction
from cyxla.xla.hlo.attributes import WindowDim

Result = Callable[[Body, Index], Node]
Externals = dict[Value, Callable[[Index], Node]]  # lowerings of values that the emitter computes itself

_MAX_NODES = 160  # operations of a window's expression
# ns of an element of a window: sums of 3x3 take 0.45 times the estimate (SPR, see `kernel.machine`).
_ELEMENT_NS = 0.06


@dataclass(frozen=True)
class _Fold:
    """Fold of the initial value and the elements of a window."""

    acc: Accumulator

    def write(self, writer: CWriter, texts: list[str]) -> str:
        """Emit the fold; return the C of its result. Sums are rounded once."""
        acc, (init, *elements) = self.acc, texts
        if acc.lanes == 0:
            for element in elements:
                value = scalar.expression(acc.opcode, acc.dtype, [acc.dtype, acc.dtype], {}, [init, element])
                init = writer.local(scalar.register_type(acc.dtype), value)
            return init
        total = elements[0] if elements else acc.identity
        for element in elements[1:]:
            (new,) = acc.update([total], element)
            total = writer.local(scalar.register_type(acc.total_dtype), new)
        return acc.with_init(init, total)


def is_small(group: Group, acc: Accumulator | None) -> bool:
    """Return whether to unroll the windows of a group."""
    size = taps(group.root)
    empty = not group.root.operands[0].shape.size or not group.root.shape.size
    return acc is not None and not empty and size <= MAX_UNROLLED_TAPS and size * len(group.instructions) <= _MAX_NODES


def window_step(group: Group, acc: Accumulator) -> Step:
    """Emit a group whose root is a small window."""
    root, size = group.root, taps(group.root)
    ns = cost.element_ns(group.instructions) + size * _ELEMENT_NS
    stores_at, externals = stores_of(group, root, lambda body, index: _lower_window(body, root, acc, index))
    writes = tuple(Value(o) for o in group.outputs)
    return boxes_step(KernelKind.REDUCE_WINDOW, group, stores_at, writes, root.shape.dims, ns, externals, size)


def stores_of(group: Group, root: Instruction, lower: Result) -> tuple[StoresAt, Externals]:
    """Return the lowering of a group's stores, and that of the root's elements for its other users."""
    bodies: list[Body] = []

    def result(index: Index) -> Node:
        return lower(bodies[-1], index)

    def stores_at(body: Body, index: Index) -> list[Store]:
        bodies.append(body)
        stores = []
        for slot, out in enumerate(group.outputs):
            at = index.at(out.shape.dims)
            node = result(at) if out is root else body.value(out, at)
            stores.append(Store(slot, out.shape.dtype, at.linear, node))
        return stores

    return stores_at, {Value(root): result}


def boxes_step(
    kind: KernelKind,
    group: Group,
    stores_at: StoresAt,
    writes: tuple[Value, ...],
    dims: tuple[int, ...],
    ns: float,
    externals: Externals | None = None,
    max_elements: int | None = None,
) -> Step:
    """Emit a kernel over boxes; an element takes `ns` without memory, and reads up to `max_elements` of each array."""
    reads, points = Reads(), prod(dims)
    boxes = split_into_boxes(dims, group.numbers, reads, stores_at, externals)
    frame = KernelFrame(reads, writes, streamed=sum(w.shape.nbytes for w in writes) > cost.STREAMING_BYTES)
    for v in (*reads.values, *writes):
        nbytes = (
            v.shape.nbytes
            if max_elements is None
            else min(v.shape.nbytes, max_elements * points * v.shape.dtype.itemsize)
        )
        ns += cost.memory_ns(nbytes) / points
    parts = [emit_box(b, frame, f"KERNEL_{i + 1}", ns * b.size) for i, b in enumerate(boxes)]
    return Step(assemble(parts, frame, kind, note=describe(group)), reads.values, writes)


def _lower_window(body: Body, root: Instruction, acc: Accumulator, index: Index) -> Node:
    """Lower the result of one window: the initial value and the elements, combined in order."""
    operand, init = root.operands
    dims, window, dtype = operand.shape.dims, root.attrs["window"], root.shape.dtype
    identity = body.constant_text(dtype, acc.identity)
    elements = []
    for offsets in product(*(range(w.size) for w in window)):
        conditions: list[Condition] = []
        coordinates = []
        for o, k, n, spec in zip(index.coordinates, offsets, dims, window, strict=True):
            own, coordinate = element_coordinate(body.space, o, k, n, spec)
            conditions += own
            coordinates.append(coordinate)
        if any(c.decided is False for c in conditions):
            continue
        element = body.value(operand, body.space.index(dims, tuple(coordinates)))
        elements.append(body.guard(tuple(conditions), element, identity) if conditions else element)
    return body.call(dtype, (body.value(init, body.space.scalar), *elements), _Fold(acc))


def element_coordinate(
    space: Space, o: Affine, k: int, n: int, spec: WindowDim
) -> tuple[tuple[Condition, ...], Affine]:
    """Return the conditions under which a window's element exists along a dimension, and its coordinate."""
    offset = (spec.size - 1 - k if spec.window_reversal else k) * spec.window_dilation - spec.padding_low
    coordinate = o.scale(spec.stride).shift(offset)
    conditions = [Condition(coordinate, 0, (n - 1) * spec.base_dilation)]
    if spec.base_dilation > 1:
        conditions.append(Condition(space.remainder(coordinate, spec.base_dilation), 0, 0))
        coordinate = space.quotient(coordinate, spec.base_dilation)
    undecided = tuple(c for c in conditions if c.decided is not True)
    return undecided, space.choice(undecided, coordinate, n - 1) if undecided else coordinate
