"""C of the entry's body: calls of kernels, copies, loops and branches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from cyxla.types import ElementType
from cyxla.xla.cpu.c.writer import CWriter, pointer_inside
from cyxla.xla.cpu.entry.kernel_timers import Meter
from cyxla.xla.cpu.entry.launch_tables import (
    first_buffer,
    in_rows,
    is_launched,
    kernel_locations,
    short_test,
    table_of_launches,
)
from cyxla.xla.cpu.entry.live_copies import write_copies
from cyxla.xla.cpu.kernel import machine
from cyxla.xla.cpu.kernel.kernel import Kernel, Value
from cyxla.xla.cpu.memory.buffers import Buffers, Copy
from cyxla.xla.cpu.memory.locations import Location, MemoryKind
from cyxla.xla.cpu.native.library import ENTRY
from cyxla.xla.cpu.plan.nodes import ConditionalNode, KernelNode, Node, Plan, WhileNode
from cyxla.xla.hlo import Instruction

POLL_EVERY = machine.POLL_NS  # ns of estimated work between two polls for cancellation
MAX_FUNCTION_CALLS = 250  # calls in one C function: compile time grows faster than the length of a function
MAX_FUNCTION_NESTING = 8  # loops and branches in one C function, for the same reason
FIRST_STATE = 0x7012395  # first value of the global state of random numbers
CALL_COST = machine.KERNEL_CALL_NS  # ns of a call without the kernel's work
FUNCTION_SIGNATURE = "static cyx_status {name}(void *const *bufs, const cyx_ctx *ctx, int64_t *work)"


class ControlWriter:
    """Writer of the functions that run a plan, each of limited length.

    Parameters
    ----------
    buffers : Buffers
        Locations of all arrays.
    name_of : callable
        Function from a kernel to its C name.
    functions : mapping of str or Instruction to int
        Numbers of the functions that kernels call.
    seed : int
        Seed of the random numbers.
    meter : Meter, optional
        Writer of the measurement of calls of kernels.
    """

    def __init__(
        self,
        buffers: Buffers,
        name_of: Callable[[Kernel], str],
        functions: Mapping[str | Instruction, int],
        seed: int = 0,
        meter: Meter | None = None,
    ) -> None:
        self.meter = meter
        self.buffers, self.name_of, self.functions, self.seed = buffers, name_of, functions, seed
        self.helper_functions: list[str] = []  # definitions, callees first
        self.table_size = 0  # characters of tables, which compile in no time
        self.swapped_names: dict[Location, str] = {}  # C names of the pointers that loops swap

    def entry(self, plan: Plan) -> str:
        """Return the definition of the entry, and add the functions that it needs to `helper_functions`."""
        c = CWriter()
        with c.block(f"CYX_EXPORT cyx_status {ENTRY}(void *const *bufs, const cyx_ctx *ctx)"):
            c.line("int64_t done = 0, *const work = &done;")
            self._function_body(c, lambda: self._entry_body(c, plan))
        return c.text()

    def _entry_body(self, c: CWriter, plan: Plan) -> None:
        if self.buffers.usable_ranges:
            self.helper_functions.insert(0, GUARDS)
            c.line(f"__asan_poison_memory_region(arena, {self.buffers.arena_bytes});")
            c.lines([f"__asan_unpoison_memory_region(arena + {at}, {n});" for at, n in self.buffers.usable_ranges])
        if self.buffers.state is not None:
            words = (FIRST_STATE, self.seed % 2**64, self.seed % 2**64, 0)
            values = ", ".join(f"{w}ull" for w in words)
            state = self.pointer(self.buffers.state)
            c.line(f"__builtin_memcpy({state}, (const uint64_t[]){{{values}}}, {8 * len(words)});")
        self.plan(c, plan, 0)

    def _function_body(self, c: CWriter, write: Callable[[], None]) -> None:
        c.line("char *const arena = ctx->arena;")
        c.line("cyx_status s;")
        write()
        c.line("(void)arena; (void)work; (void)s;")
        c.line("return CYX_OK;")

    def _function(self, write: Callable[[CWriter], None]) -> str:
        """Write a function of its own; return the statement that calls it."""
        c = CWriter()
        body = CWriter(1)
        write(body)  # first, so that callees are defined before it
        name = f"part{len(self.helper_functions)}"
        with c.block(FUNCTION_SIGNATURE.format(name=name)):
            self._function_body(c, lambda: c.lines(body.text().splitlines()))
        self.helper_functions.append(c.text().replace("\n    ", "\n  "))
        return f"if ((s = {name}(bufs, ctx, work))) return s;"

    def plan(self, c: CWriter, plan: Plan, depth: int) -> None:
        """Write the nodes of a plan, and the copies into the results if it is the entry's."""
        self.nodes(c, plan.nodes, depth)
        self.copies(c, self.buffers.copies.get((plan, "return", 0), ()))

    def nodes(self, c: CWriter, nodes: Sequence[Node], depth: int) -> None:
        """Write nodes in order, long rows of kernels outside of loops as tables."""
        may_be_tables = depth == 0 and self.meter is None
        self.rows(c, in_rows(nodes, self.buffers) if may_be_tables else [[node] for node in nodes], depth)

    def rows(self, c: CWriter, rows: Sequence[Sequence[Node]], depth: int) -> None:
        """Write rows of nodes, in several functions if they are many."""
        if len(rows) <= MAX_FUNCTION_CALLS:
            for row in rows:
                self.row(c, row, depth)
            return
        for k in range(0, len(rows), MAX_FUNCTION_CALLS):
            chunk = rows[k : k + MAX_FUNCTION_CALLS]
            c.line(self._function(partial(self.rows, rows=chunk, depth=0)))

    def row(self, c: CWriter, row: Sequence[Node], depth: int) -> None:
        """Write a node, or the table of several kernels."""
        if len(row) == 1:
            self.node(c, row[0], depth)
            return
        kernels = [node for node in row if isinstance(node, KernelNode)]
        table = table_of_launches(kernels, self.buffers, self.name_of, self.functions)
        self.table_size += len(table)
        c.lines(table.splitlines())

    def node(self, c: CWriter, node: Node, depth: int) -> None:
        """Write one node."""
        if isinstance(node, KernelNode):
            self.kernel(c, node)
            return
        if depth >= MAX_FUNCTION_NESTING:
            c.line(self._function(lambda function: self.node(function, node, 0)))
            return
        if isinstance(node, WhileNode):
            self.loop(c, node, depth + 1)
        else:
            self.branches(c, node, depth + 1)

    # --- kernels ----------------------------------------------------------------------------------------------------

    def kernel(self, c: CWriter, node: KernelNode) -> None:
        """Write a call of a kernel, on this thread if there is one task, else on the thread pool."""
        self.copies(c, self.buffers.copies.get((node, "before", 0), ()))
        step = node.step
        if not is_launched(node):
            return
        name = self.name_of(step.kernel)
        arrays = [self.pointer(p) for p in kernel_locations(self.buffers, node)]
        pointers = [pointer_inside(p, n) for p, n in zip(arrays, step.offsets_of(len(arrays)), strict=True)]
        tasks, phases = step.kernel.tasks, step.kernel.phases
        pointers += ["&phase"] if phases > 1 else []
        pointers += [f"ctx->functions[{self.functions[f]}]" for f in step.functions]
        pointers += ["(void *)ctx"] * step.context
        bufs = ", ".join(pointers)
        call = f"{name}(b, 0, {tasks})" if tasks == 1 else f"ctx->parallel_for(ctx, {name}, b, {tasks})"
        if step.kernel.short:
            call = f"{short_test(name, 'b')} ? {name}(b, 0, {tasks}) : {call}"
        phase_loop = f"for (int64_t phase = 0; phase < {phases}; ++phase) " if phases > 1 else ""
        line = f"{phase_loop}{{ void *const b[] = {{{bufs}}}; if ((s = {call})) return s; }}"
        c.line(line if self.meter is None else self.meter.measure(step, line))

    # --- loops and branches -----------------------------------------------------------------------------------------

    def loop(self, c: CWriter, node: WhileNode, depth: int) -> None:
        """Write a loop around condition and body."""
        self.copies(c, self.buffers.copies[node, "enter", 0])
        swaps = self.buffers.swaps.get(node, []) if _in_one_function(node, depth) else []
        pointers, swapped = [(self.pointer(s.target), self.pointer(s.source)) for s in swaps], {s.target for s in swaps}
        outer_names = dict(self.swapped_names)
        for swap, (a, b) in zip(swaps, pointers, strict=True):
            names = self.swapped_names[swap.target], self.swapped_names[swap.source] = c.name("w"), c.name("w")
            c.line(f"char *{names[0]} = (char *)({a}), *{names[1]} = (char *)({b});")
        with c.block("for (;;)"):
            self.nodes(c, node.condition.nodes, depth)
            c.line(f"if (!*(const uint8_t *)({self.pointer(self.location(node.condition.results[0]))})) break;")
            self.nodes(c, node.body.nodes, depth)
            self.copies(c, [copy for copy in self.buffers.copies[node, "backedge", 0] if copy.target not in swapped])
            for swap in swaps:
                a, b = self.swapped_names[swap.target], self.swapped_names[swap.source]
                c.line(f"{{ char *const w = {a}; {a} = {b}; {b} = w; }}")
            cost = int(node.cost + CALL_COST * (len(node.body.nodes) + len(node.condition.nodes))) + 1
            c.line(
                f"if ((*work += {min(cost, POLL_EVERY)}) >= {POLL_EVERY}) "
                "{ *work = 0; if ((s = ctx->poll(ctx))) return s; }"
            )
        for swap, (a, _) in zip(swaps, pointers, strict=True):
            current = self.swapped_names[swap.target]
            with c.block(f"if ({current} != (char *)({a}))"):
                text = {swap.target: a, swap.source: current}
                write_copies(c, [swap], lambda location, text=text: text.get(location) or self.pointer(location))  # type: ignore[misc]
        self.swapped_names = outer_names

    def branches(self, c: CWriter, node: ConditionalNode, depth: int) -> None:
        """Write a switch; the last branch is also taken for every number that is out of range."""
        selector = self.pointer(self.location(node.selector))
        if node.selector.shape.dtype is ElementType.PRED:
            choice = f"*(const uint8_t *)({selector}) == 0"
        else:
            choice = f"*(const {UNALIGNED_S32} *)({selector})"
        with c.block(f"switch ({choice})"):
            for k, branch in enumerate(node.branches):
                is_last = k == len(node.branches) - 1
                with c.block("default:" if is_last else f"case {k}:"):
                    self.nodes(c, branch.nodes, depth)
                    self.copies(c, self.buffers.copies[node, "exit", k])
                    c.line("break;")

    # --- memory -----------------------------------------------------------------------------------------------------

    def copies(self, c: CWriter, copies: Sequence[Copy]) -> None:
        """Write copies in order."""
        write_copies(c, copies, self.pointer)

    def location(self, value: Value) -> Location:
        """Return the location of a value."""
        return self.buffers.locations[value]

    def pointer(self, location: Location) -> str:
        """Return a location as a C expression; the call's buffers are the inputs, the results, the constants."""
        b = self.buffers
        if location in self.swapped_names:
            return self.swapped_names[location]
        if location.kind is MemoryKind.ARENA:
            return f"arena + {location.at}"
        return f"bufs[{first_buffer(b, location) + location.at}]"


def _in_one_function(node: WhileNode, depth: int) -> bool:
    """Return whether a loop and everything in it is written in one function, which has its locals."""
    stack: list[tuple[Node, int]] = [(node, depth - 1)]
    while stack:
        inner, level = stack.pop()
        if isinstance(inner, KernelNode):
            continue
        if level >= MAX_FUNCTION_NESTING:
            return False
        plans = (inner.condition, inner.body) if isinstance(inner, WhileNode) else inner.branches
        if any(len(p.nodes) > MAX_FUNCTION_CALLS for p in plans):
            return False
        stack += [(n, level + 1) for p in plans for n in p.nodes]
    return True


UNALIGNED_S32 = "cyx_s32_anywhere"
GUARDS = """\
void __asan_poison_memory_region(const volatile void *, __SIZE_TYPE__);
void __asan_unpoison_memory_region(const volatile void *, __SIZE_TYPE__);
"""
DEFINITIONS = f"typedef int32_t {UNALIGNED_S32} __attribute__((aligned(1), may_alias));\n"
