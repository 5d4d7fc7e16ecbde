"""While loops with little state: one kernel that runs all iterations with the state in C locals.

A loop qualifies if an iteration computes only a few elements (`loops.straight_line`). Arrays that it only reads may be
of any size, and so may arrays that it updates in place, a few elements per iteration: the inputs and outputs of a scan.
"""

from __future__ import annotations

from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.kernel import cost, machine
from cyxla.xla.cpu.kernel.array_types import memory_type, memory_typedefs
from cyxla.xla.cpu.kernel.hlo_quotes import number_instructions
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind, Step, Value
from cyxla.xla.cpu.kernel.values import CONTROL_FLOW, leaves, own_leaves, resolve
from cyxla.xla.cpu.loops.hoisting import table_definition
from cyxla.xla.cpu.loops.loop_ir import Reads
from cyxla.xla.cpu.loops.loop_text import LoopListing
from cyxla.xla.cpu.loops.straight_line import (
    MAX_ELEMENTS,
    POLL_EVERY,
    ArraySource,
    KernelState,
    Scope,
    UnsuitableLoopError,
    update_chain,
)
from cyxla.xla.hlo import OPCODES, Instruction
from cyxla.xla.passes.simplify.index_ranges import IndexRanges

MAX_STATE_ELEMENTS = 256  # elements in locals
MIN_INDEXED_ELEMENTS = 4  # of an array that is better kept in memory than in locals, if it is indexed


_KERNEL_NS = 1.6 * machine.KERNEL_CALL_NS  # time of a kernel call in a loop, with pointers set up anew
_LANES = 16


def emit_local_while(ins: Instruction, ranges: IndexRanges | None = None) -> Step | str:
    """Emit the kernel of a while loop, or return the reason why several kernels run it better.

    Parameters
    ----------
    ins : Instruction
        Loop.
    ranges : IndexRanges, optional
        Ranges of scalars in the program.
    """
    try:
        return _Loop(ins, ranges).step()
    except UnsuitableLoopError as error:
        return str(error)


def indexes_small_arrays(ins: Instruction) -> bool:
    """Return True if a loop writes elements of small arrays at positions known at run time.

    In locals, each such write is a choice among all elements, so that arrays in memory are faster.
    """
    stack = list(ins.called)
    while stack:
        for nested in stack.pop().instructions:
            if nested.opcode in CONTROL_FLOW:
                stack += nested.called
            elif nested.opcode == "dynamic-update-slice" and _is_choice(nested):
                return True
    return False


def _is_choice(update: Instruction) -> bool:
    operand, new, *starts = update.operands
    is_small = new.shape.size == 1 and MIN_INDEXED_ELEMENTS <= operand.shape.size <= MAX_ELEMENTS
    return is_small and any(resolve(start).instruction.opcode != "constant" for start in starts)


def used_leaves(ins: Instruction) -> set[int]:
    """Return the leaves of a loop's result that may be read."""
    all_leaves = set(range(len(own_leaves(ins))))
    if ins.is_root or any(u.opcode != "get-tuple-element" for u in ins.users):
        return all_leaves
    indices = {u.attrs["index"] for u in ins.users if u.users or u.is_root}
    return {n for n, v in enumerate(own_leaves(ins)) if v.index[0] in indices}


def _instructions(ins: Instruction) -> list[Instruction]:
    """Return the element-wise instructions of a loop and of loops and branches inside it."""
    elementwise: list[Instruction] = []
    stack = list(ins.called)
    while stack:
        for nested in stack.pop().instructions:
            if nested.opcode in CONTROL_FLOW:
                stack += nested.called
            elif nested.shape.is_array and OPCODES[nested.opcode].elementwise and nested.operands:
                elementwise.append(nested)
    return elementwise


def _ns(ins: Instruction) -> float:
    """Return the time in ns of one scalar element, or of one vector."""
    return scalar.cost(ins.opcode, ins.shape.dtype) * (_LANES if cost.flops(ins) > cost.CHEAP_FLOPS else 5)


class _Loop:
    def __init__(self, ins: Instruction, ranges: IndexRanges | None) -> None:
        self.ranges = ranges
        self.ins, self.state, self.initial = ins, own_leaves(ins), leaves(ins.operands[0])
        self.reads = Reads()
        body = ins.called[0]
        parameters, results = own_leaves(body.parameters[0]), leaves(body.root)
        self.is_invariant = [p == r for p, r in zip(parameters, results, strict=True)]
        self.used = used_leaves(ins)
        self.updated = [n for n, v in enumerate(self.state) if not self.is_invariant[n] and v.shape.size > MAX_ELEMENTS]
        self.check()

    def check(self) -> None:
        """Raise `UnsuitableLoopError` if the state is too large, or if an array would be read while it is updated."""
        if any(v.shape.size == 0 for v in self.state):
            raise UnsuitableLoopError("an empty array in the state")
        for n in self.updated:
            if update_chain(self.ins.called[0], n) is None:
                raise UnsuitableLoopError(f"a state of {self.state[n].shape.size} elements")
            if self.initial.count(self.initial[n]) > 1:
                raise UnsuitableLoopError("an updated array is also read as a loop-invariant one")
        if any(self.is_invariant[n] and self.state[n].shape.size > MAX_ELEMENTS for n in self.used):
            raise UnsuitableLoopError("a large loop-invariant array is a result")
        carried = sum(
            v.shape.size for n, v in enumerate(self.state) if not self.is_invariant[n] and n not in self.updated
        )
        if carried > MAX_STATE_ELEMENTS:
            raise UnsuitableLoopError(f"a state of {carried} elements")
        separate_ns = _KERNEL_NS * (1 + self.is_invariant.count(False))
        vector_gain_ns = sum(_ns(i) * (i.shape.size - -(-i.shape.size // _LANES)) for i in _instructions(self.ins))
        if vector_gain_ns > separate_ns:
            raise UnsuitableLoopError(f"vectors would save {int(vector_gain_ns)} ns per iteration")

    def step(self) -> Step:
        """Emit the kernel and return its step."""
        targets = [self.reads.slot(self.initial[n]) for n in self.updated]
        sources: dict[Value, ArraySource] = {
            v: self.reads.slot(v) for v in self.initial if v.instruction.opcode != "constant"
        }
        kernel_state = KernelState(self.reads, CWriter(), numbers=number_instructions([self.ins]), ranges=self.ranges)
        scope = Scope(kernel_state, sources)
        pointers = {n: f"p{slot}" for n, slot in zip(self.updated, targets, strict=True)}
        final_state = scope.loop(self.ins, pointers)
        written = [n for n in sorted(self.used) if n not in self.updated]
        finals = [self.finals(scope, n, final_state[n]) for n in written]
        writes = tuple(self.state[n] for n in (*self.updated, *written))
        text = self.text(scope, kernel_state, writes, finals)
        loops = tuple(LoopListing(b) for b in kernel_state.bodies)
        kernel = Kernel(text, cost=scope.cost, kind=KernelKind.SMALL_LOOP, loops=loops)
        pairs = tuple(enumerate(targets))
        return Step(kernel, self.reads.values, writes, must_alias=pairs, context=True)

    def finals(self, scope: Scope, number: int, source: ArraySource) -> list[str]:
        """Return the final elements of a leaf of the state; a loop-invariant leaf is read from its initial array."""
        return source if isinstance(source, list) else scope.elements(self.initial[number])

    def text(self, scope: Scope, kernel_state: KernelState, writes: tuple[Value, ...], finals: list[list[str]]) -> str:
        """Return the C of the kernel."""
        c, reads = CWriter(), self.reads.values
        c.lines(memory_typedefs([*reads, *writes]))
        c.lines(
            [
                table_definition(name, literal.shape.dtype, literal.array)
                for literal, name in kernel_state.tables.items()
            ]
        )
        c.line(f"/* while -> {', '.join(str(w.shape) for w in writes[:4])} */")
        with c.block("static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end)"):
            for k, value in enumerate(reads):
                const = "" if k < len(self.updated) else "const "
                c.line(f"{const}{memory_type(value.shape.dtype)} *const p{k} = bufs[{k}];")
            c.line(f"const cyx_ctx *const ctx = bufs[{len(reads) + len(writes)}];")
            c.line(f"int64_t budget = {POLL_EVERY};")
            c.line("cyx_status s;")
            c.lines(scope.c.written)
            for k, texts in enumerate(finals, len(self.updated)):
                dtype = writes[k].shape.dtype
                c.line(f"{memory_type(dtype)} *const r{k} = bufs[{len(reads) + k}];")
                c.lines([f"r{k}[{e}] = {scalar.store(dtype, x)};" for e, x in enumerate(texts)])
            c.line("(void)begin; (void)end; (void)budget; (void)s; (void)ctx;")
            c.line("return CYX_OK;")
        return c.text()
