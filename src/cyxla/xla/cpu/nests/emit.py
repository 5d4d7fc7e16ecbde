"""While loops as one kernel: nested loops and branches of C, with arrays in memory that are updated in place."""

from __future__ import annotations

from math import inf

from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.kernel.array_types import memory_type
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind, Step, Value
from cyxla.xla.cpu.kernel.values import leaves, own_leaves
from cyxla.xla.cpu.loops.hoisting import table_definition
from cyxla.xla.cpu.loops.local_while import used_leaves
from cyxla.xla.cpu.loops.loop_ir import Reads
from cyxla.xla.cpu.loops.loop_text import LoopListing
from cyxla.xla.cpu.loops.straight_line import UnsuitableLoopError
from cyxla.xla.cpu.nests.memory import Array, NestState
from cyxla.xla.cpu.nests.scope import POLL_EVERY, Scope, Source
from cyxla.xla.cpu.nests.scope_plan import ScopePlan
from cyxla.xla.hlo import Instruction
from cyxla.xla.passes.simplify.index_ranges import IndexRanges

MAX_PART_BYTES = 16384  # arrays of which a part is live, up to which copies of the whole take no longer than calls


def emit_nest(ins: Instruction, ranges: IndexRanges, *, live: bool = False) -> Step | str:
    """Emit the kernel of a while loop, or return the reason why several kernels run it better.

    Parameters
    ----------
    ins : Instruction
        Loop.
    ranges : IndexRanges
        Ranges of scalars in the program.
    live : bool
        True if of some array a leading part alone matters: copies in several kernels are of that part.
    """
    try:
        return _Nest(ins, ranges).step(MAX_PART_BYTES if live else inf)
    except UnsuitableLoopError as error:
        return str(error)


class _Nest:
    def __init__(self, ins: Instruction, ranges: IndexRanges) -> None:
        if ins.has_side_effect:
            raise UnsuitableLoopError("a side effect")
        self.ins, self.own, self.initial = ins, own_leaves(ins), leaves(ins.operands[0])
        self.body, self.condition = (ScopePlan(c) for c in ins.called)
        self.used = used_leaves(ins)
        self.changes = [p != r for p, r in zip(self.body.parameters, self.body.results, strict=True)]
        if any(not self.changes[n] and v.shape.size > 1 for n, v in enumerate(self.own) if n in self.used):
            raise UnsuitableLoopError("a loop-invariant array is a result")
        if any(v.shape.size == 0 for v in self.own):
            raise UnsuitableLoopError("an empty array in the state")
        self.reads = Reads()
        self.state = NestState(self.reads, CWriter())
        self.updated = [n for n, v in enumerate(self.own) if self.changes[n] and v.shape.size > 1]
        self.scalars = [n for n, v in enumerate(self.own) if v.shape.size == 1 and n in self.used]
        self.targets = {n: self.reads.slot(self.initial[n]) for n in self.updated if self._is_alone(n)}
        self.scope = Scope(self.state, _NoPlan(ins), {}, set(), ranges)

    def _is_alone(self, number: int) -> bool:
        return self.initial.count(self.initial[number]) == 1

    def step(self, most_copied: float) -> Step:
        """Emit the kernel, whose iterations copy arrays up to a size, and return its step."""
        sources = [self._source(n) for n in range(len(self.own))]
        self.state.most_copied = most_copied
        owned = {self.body.parameters[n] for n in self.updated}
        self.scope.write_loop(self.ins, self.body, self.condition, sources, owned)
        writes = tuple(self.own[n] for n in (*self.updated, *self.scalars))
        text = self._text(sources, writes)
        bodies = [self.scope.body, *self.scope.bodies]
        loops = tuple(LoopListing(b) for b in bodies)
        kernel = Kernel(
            text, cost=self.scope.cost, kind=KernelKind.LOOP_NEST, loops=loops, scratch=self.state.scratch_bytes
        )
        pairs = tuple((w, self.targets[n]) for w, n in enumerate(self.updated) if n in self.targets)
        return Step(kernel, self.reads.values, writes, must_alias=pairs, context=True)

    def _source(self, number: int) -> Source:
        """Return the place of a leaf of the state before the first iteration."""
        value, c = self.initial[number], self.scope.c
        if value.shape.size == 1:
            if value.instruction.opcode == "constant":
                text = self.scope.scalar(value)
            else:
                text = scalar.load(value.shape.dtype, f"p{self.reads.slot(value)}[0]")
            name = c.name("x")
            c.line(f"{scalar.register_type(value.shape.dtype)} {name} = {text};")
            return name
        array = Array(f"p{self.reads.slot(value)}", value.shape.dtype, value.shape.size)
        if number in self.updated and number not in self.targets:
            return self.scope.copy_of(array)
        return array

    def _text(self, sources: list[Source], writes: tuple[Value, ...]) -> str:
        """Return the C of the kernel."""
        c, reads = CWriter(), self.reads.values
        dtypes = dict.fromkeys([v.shape.dtype for v in (*reads, *writes)]) | self.state.dtypes
        c.lines([scalar.memory_typedef(memory_type(d), d) for d in dtypes])
        tables = self.state.tables.items()
        c.lines([table_definition(name, literal.shape.dtype, literal.array) for literal, name in tables])
        c.line(f"/* while -> {', '.join(str(w.shape) for w in writes[:4])} */")
        with c.block("static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end)"):
            targets = set(self.targets.values())
            for k, value in enumerate(reads):
                const = "" if k in targets else "const "
                c.line(f"{const}{memory_type(value.shape.dtype)} *restrict const p{k} = bufs[{k}];")
            count = len(reads) + len(writes)
            has_scratch = bool(self.state.scratch_bytes)
            c.lines(self.state.declarations(f"bufs[{count}]"))
            c.line(f"const cyx_ctx *const ctx = bufs[{count + has_scratch}];")
            c.line(f"int64_t budget = {POLL_EVERY};")
            c.line("cyx_status s;")
            c.lines(self.scope.c.written)
            for k, n in enumerate((*self.updated, *self.scalars), len(reads)):
                self._result(c, k, sources[n], self.own[n], n)
            c.line("(void)begin; (void)end; (void)budget; (void)s; (void)ctx;")
            c.line("return CYX_OK;")
        return c.text()

    def _result(self, c: CWriter, buffer: int, source: Source, value: Value, number: int) -> None:
        if isinstance(source, str):
            c.line(f"*({memory_type(value.shape.dtype)} *)bufs[{buffer}] = {scalar.store(value.shape.dtype, source)};")
        elif number not in self.targets:
            c.line(f"__builtin_memcpy(bufs[{buffer}], {source.pointer}, {source.nbytes});")


class _NoPlan(ScopePlan):
    """Plan of the kernel around a loop, which has no statements of its own."""

    def __init__(self, ins: Instruction) -> None:
        self.computation = ins.computation
        self.parameters, self.results, self.statements = [], [], []
        self.nested, self.fused, self.defined, self.inlined = {}, {}, {}, set()
