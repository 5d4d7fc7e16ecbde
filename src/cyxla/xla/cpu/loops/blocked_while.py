"""While loops with an element-wise body: each block of elements runs through all iterations on its own.

An element depends only on the same element of the state, on loop-invariant arrays, and on scalars such as the counter.
So the loops are interchanged: a block stays in L1 through all iterations, and blocks run on several threads.
"""

from __future__ import annotations

from collections.abc import Callable

from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.kernel import cost, machine
from cyxla.xla.cpu.kernel.array_types import memory_type, memory_typedefs
from cyxla.xla.cpu.kernel.carried_products import barrier_if, loop_carries_product
from cyxla.xla.cpu.kernel.groups import is_loopable
from cyxla.xla.cpu.kernel.hlo_quotes import number_instructions
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind, Step, Value
from cyxla.xla.cpu.kernel.values import is_forwarding, leaves, own_leaves
from cyxla.xla.cpu.loops.hoisting import BLOCK_LEVEL, BLOCK_START, INNER_COUNTER, LoopNest, reachable, table_definition
from cyxla.xla.cpu.loops.index_map import Affine, Index, Space
from cyxla.xla.cpu.loops.local_while import used_leaves
from cyxla.xla.cpu.loops.loop_ir import Body, Reads
from cyxla.xla.cpu.loops.loop_text import LoopListing
from cyxla.xla.cpu.loops.nodes import Apply, External, Guard, Load, Map, Node
from cyxla.xla.cpu.loops.straight_line import UnsuitableLoopError, assign_parallel
from cyxla.xla.hlo import Instruction
from cyxla.xla.passes.simplify.trip_count import known_trip_count

BLOCK_WIDTH = 128  # elements in a block, approximately
MAX_INSTRUCTIONS = 200
_LOAD_NS = 0.03  # ns to load an element, or to choose one: about four bytes of `machine.CACHED_NS_PER_BYTE`
MAX_BLOCK_NS = machine.UNINTERRUPTED_NS  # time of one block, which cannot be interrupted


def emit_blocked_while(ins: Instruction) -> Step | str:
    """Emit the kernel of a while loop, or return the reason why it cannot run block by block."""
    try:
        return _Loop(ins).step()
    except UnsuitableLoopError as error:
        return str(error)


def block_width(size: int) -> int:
    """Return the block length for a number of elements: a divisor of it close to `BLOCK_WIDTH`, if there is one."""
    divisors = [w for w in range(BLOCK_WIDTH // 2, 2 * BLOCK_WIDTH + 1, 16) if size % w == 0]
    return min(size, BLOCK_WIDTH if not divisors else min(divisors, key=lambda w: (abs(w - BLOCK_WIDTH), w)))


class _Loop:
    def __init__(self, ins: Instruction) -> None:
        self.ins, self.state, self.initial = ins, own_leaves(ins), leaves(ins.operands[0])
        self.body = ins.called[0]
        self.parameters, self.results = own_leaves(self.body.parameters[0]), leaves(self.body.root)
        self.is_invariant = [p == r for p, r in zip(self.parameters, self.results, strict=True)]
        carried = [n for n, same in enumerate(self.is_invariant) if not same]
        self.lanes = [n for n in carried if self.state[n].shape.size != 1]
        self.scalars = [n for n in carried if self.state[n].shape.size == 1]
        trips = known_trip_count(ins)
        if trips is None:
            raise UnsuitableLoopError("its trip count is unknown")
        self.trips = trips
        sizes = {self.state[n].shape.size for n in self.lanes}
        if len(sizes) != 1 or 0 in sizes:
            raise UnsuitableLoopError(f"arrays of {len(sizes)} sizes in the state")
        (self.size,) = sizes
        self.used = used_leaves(ins)
        if any(self.is_invariant[n] for n in self.used):
            raise UnsuitableLoopError("a loop-invariant array is a result")
        self.fused = self.instructions()
        self.reads = Reads()

    def instructions(self) -> dict[Instruction, int]:
        """Return the instructions that an iteration computes, numbered as in quotes of the loop."""
        numbers = number_instructions([self.ins])
        fused = {
            i: numbers[i]
            for i in self.body.instructions
            if i.opcode not in ("parameter", "constant") and not is_forwarding(i)
        }
        unsupported = next((i for i in self.body.instructions if i in fused and not is_loopable(i)), None)
        if unsupported is not None:
            raise UnsuitableLoopError(f"{unsupported.opcode} is not element-wise")
        if len(fused) > MAX_INSTRUCTIONS:
            raise UnsuitableLoopError(f"more than {MAX_INSTRUCTIONS} instructions")
        return fused

    def step(self) -> Step:
        """Emit the kernel and return its step."""
        self.slots = {n: self.reads.slot(self.initial[n]) for n in (*self.lanes, *self.scalars)}
        self.space = Space((self.size,))
        externals = {v: self.reader(n) for n, v in enumerate(self.parameters)}
        lowered = Body(self.space, self.fused, self.reads, externals)
        names = CWriter()
        self.nest = LoopNest(lowered, [BLOCK_LEVEL, self.space.loops[0]], names)
        self.lowered = lowered
        next_lanes = [self.lower(self.results[n], self.space.loop(0)) for n in self.lanes]
        next_scalars = [self.lower(self.results[n], Affine(0)) for n in self.scalars]
        self.nest.write(reachable([*next_lanes, *next_scalars])[0])
        if self.nest.slow_lanes:
            raise UnsuitableLoopError("functions with rare arguments")
        if any(self.nest.depth_of(n) for n in next_scalars):
            raise UnsuitableLoopError("a scalar that depends on arrays")
        return self.assemble(next_lanes, next_scalars)

    def lower(self, value: Value, linear: Affine) -> Node:
        """Lower one element of the next state."""
        index = self.space.index_at(value.shape.dims, linear)
        if value.instruction.opcode == "parameter":
            return self.reader(self.parameters.index(value))(index)
        return self.lowered.value(value.instruction, index)

    def reader(self, number: int) -> Callable[[Index], Node]:
        """Return the function that lowers reads of one leaf of the state."""
        dtype = self.state[number].shape.dtype

        def read(index: Index) -> Node:
            if self.is_invariant[number]:
                slot = self.slots.setdefault(number, self.reads.slot(self.initial[number]))
                return self.lowered.load(dtype, slot, index.linear)
            lane = number in self.lanes
            if lane and index.linear != self.space.loop(0):
                raise UnsuitableLoopError("elements that depend on others")
            node = self.lowered.external(dtype, number)
            self.nest.set_external(node, self.element(number) if lane else f"x{number}", self.nest.depth if lane else 0)
            return node

        return read

    # ------------------------------------------------------------------------------------------------ text
    def assemble(self, next_lanes: list[Node], next_scalars: list[Node]) -> Step:
        """Return the step: the kernel with the arrays it reads and writes."""
        width = block_width(self.size)
        blocks = -(-self.size // width)
        iteration_ns = sum(_node_ns(n) for n in self.lowered.nodes) * width + machine.KERNEL_CALL_NS
        if iteration_ns * self.trips > MAX_BLOCK_NS:
            raise UnsuitableLoopError(f"{self.trips} iterations take too long")
        total = iteration_ns * self.trips * blocks
        tasks = cost.tasks(total, blocks)
        writes = tuple(self.state[n] for n in self.written)
        text = self.text(width, blocks, tasks, next_lanes, next_scalars)
        pairs = self.pairs() if self.size % width == 0 else ()
        loops = (LoopListing(self.lowered, nest=self.nest),)
        kernel = Kernel(text, tasks, total, kind=KernelKind.LANE_LOOP, loops=loops)
        return Step(kernel, self.reads.values, writes, in_place=pairs)

    @property
    def written(self) -> list[int]:
        """Leaves of the state that may be read after the loop."""
        return [n for n in (*self.lanes, *self.scalars) if n in self.used]

    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Return the pairs (write, read) of results that may overwrite their initial arrays."""
        slots = list(self.slots.values())
        lanes = [(w, self.slots[n]) for w, n in enumerate(self.written) if n in self.lanes]
        return tuple((w, r) for w, r in lanes if slots.count(r) == 1)

    def text(self, width: int, blocks: int, tasks: int, next_lanes: list[Node], next_scalars: list[Node]) -> str:
        """Return the C of the kernel."""
        c, reads, writes = CWriter(), self.reads.values, self.written
        c.lines(memory_typedefs([*reads, *(self.state[n] for n in writes)]))
        tables = self.nest.tables.items()
        c.lines([table_definition(name, literal.shape.dtype, literal.array) for literal, name in tables])
        c.line(f"/* while, {self.trips} iterations -> {', '.join(str(self.state[n].shape) for n in writes[:4])} */")
        with c.block("static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end)"):
            for k, value in enumerate(reads):
                c.line(f"const {memory_type(value.shape.dtype)} *const p{k} = bufs[{k}];")
            for k, n in enumerate(writes):
                c.line(f"{memory_type(self.state[n].shape.dtype)} *const r{n} = bufs[{len(reads) + k}];")
            with c.block(f"for (int64_t u = begin * {blocks} / {tasks}; u < end * {blocks} / {tasks}; ++u)"):
                last = self.size - width
                start = f"u * {width}" if self.size % width == 0 else f"u < {blocks - 1} ? u * {width} : {last}"
                c.line(f"const int64_t {BLOCK_START} = {start};")
                self.block(c, width, next_lanes, next_scalars)
            c.line("return CYX_OK;")
        return c.text()

    def block(self, c: CWriter, width: int, next_lanes: list[Node], next_scalars: list[Node]) -> None:
        """Emit all iterations of one block."""
        inner = f"for (int {INNER_COUNTER} = 0; {INNER_COUNTER} < {width}; ++{INNER_COUNTER})"
        for n in self.scalars:
            c.line(f"{_type(self.state[n])} x{n} = {self.load(n, '0')};")
        for n in self.lanes:
            for name in self.lane_arrays(n):
                c.line(f"{_part_type(self.state[n])} {name}[{width}] __attribute__((aligned(64)));")
        for n in self.lanes:
            with c.block(inner):
                c.line(f"const {_type(self.state[n])} v = {self.load(n, f'{BLOCK_START} + {INNER_COUNTER}')};")
                c.lines([f"{place} = {part};" for place, part in self.assignments(n, "v")])
        with c.block(f"for (int64_t t = 0; t < {self.trips}; ++t)"):
            c.lines(barrier_if(loop_carries_product(self.body)))
            c.lines(self.nest.writers[0].written)
            c.lines(self.nest.writers[1].written)
            with c.block(inner):
                for n in self.complex_lanes:
                    parts = ", ".join(f"{name}[{INNER_COUNTER}]" for name in self.lane_arrays(n))
                    c.line(f"const {_type(self.state[n])} {self.element(n)} = {{{parts}}};")
                c.lines(self.nest.writers[2].written)
                pairs = zip(self.lanes, next_lanes, strict=True)
                assign_parallel(c, [pair for n, node in pairs for pair in self.assignments(n, self.nest.text(node))])
            assign_parallel(c, [(f"x{n}", self.nest.text(x)) for n, x in zip(self.scalars, next_scalars, strict=True)])
        for n in self.written:
            dtype, lane = self.state[n].shape.dtype, n in self.lanes
            value = scalar.store(dtype, self.lane_value(n) if lane else f"x{n}")
            c.line(
                f"{inner} r{n}[{BLOCK_START} + {INNER_COUNTER}] = {value};"
                if lane
                else f"if (u == 0) r{n}[0] = {value};"
            )

    @property
    def complex_lanes(self) -> list[int]:
        """Leaves of complex numbers, of which the parts stand in arrays of their own, for vectors."""
        return [n for n in self.lanes if self.state[n].shape.dtype.is_complex]

    def lane_arrays(self, number: int) -> list[str]:
        """Return the names of the arrays that hold a block of a leaf."""
        return [f"l{number}re", f"l{number}im"] if number in self.complex_lanes else [f"l{number}"]

    def element(self, number: int) -> str:
        """Return the C of an element of a block in an iteration."""
        return f"e{number}" if number in self.complex_lanes else f"l{number}[{INNER_COUNTER}]"

    def lane_value(self, number: int) -> str:
        """Return the C of an element of a block after all iterations."""
        parts = ", ".join(f"{name}[{INNER_COUNTER}]" for name in self.lane_arrays(number))
        return f"({_type(self.state[number])}){{{parts}}}" if number in self.complex_lanes else parts

    def assignments(self, number: int, value: str) -> list[tuple[str, str]]:
        """Return the assignments of a value to an element of a block."""
        if number not in self.complex_lanes:
            return [(f"l{number}[{INNER_COUNTER}]", value)]
        names = self.lane_arrays(number)
        return [(f"{name}[{INNER_COUNTER}]", f"{value}.{part}") for name, part in zip(names, ("re", "im"), strict=True)]

    def load(self, number: int, index: str) -> str:
        """Return the C that loads an element of the initial state."""
        return scalar.load(self.state[number].shape.dtype, f"p{self.slots[number]}[{index}]")


def _type(value: Value) -> str:
    return scalar.register_type(value.shape.dtype)


def _part_type(value: Value) -> str:
    """Return the C type of an element, or of the parts of a complex one."""
    dtype = value.shape.dtype
    return {64: "float", 128: "double"}[dtype.bits] if dtype.is_complex else _type(value)


def _node_ns(node: Node) -> float:
    match node:
        case Apply():
            return scalar.cost(node.opcode, node.dtype)
        case Load() | External() | Guard() | Map():
            return _LOAD_NS
        case _:
            return 0.0
