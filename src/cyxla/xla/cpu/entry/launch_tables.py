"""C of long sequences of kernel calls: tables, which ``launches.h`` runs.

A C compiler takes half a millisecond for a call that is a statement, and next to nothing for a line of a table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Final

from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.kernel import prebuilt_calls
from cyxla.xla.cpu.kernel.kernel import Kernel
from cyxla.xla.cpu.memory.buffers import Buffers
from cyxla.xla.cpu.memory.locations import Location, MemoryKind
from cyxla.xla.cpu.plan.nodes import KernelNode, Node
from cyxla.xla.hlo import Instruction

SHORT_TEST: Final = "is_short"  # C name
LEAST_LAUNCHES: Final = 16  # calls in a row that become a table: a line of one runs 10 ns longer than a statement


def first_buffer(buffers: Buffers, location: Location) -> int:
    """Return the index of the call's first buffer of the same kind: inputs, then results, then constants."""
    constants = buffers.inputs + buffers.outputs
    return {MemoryKind.INPUT: 0, MemoryKind.OUTPUT: buffers.inputs, MemoryKind.CONSTANT: constants}[location.kind]


def kernel_locations(buffers: Buffers, node: KernelNode) -> list[Location]:
    """Return the locations of the buffers of a kernel in its order: reads, writes, scratch, state."""
    step = node.step
    reads = [buffers.locations[v] for v in step.reads]
    writes = [buffers.locations[v] for v in step.writes]
    for w, r in step.must_alias:
        reads[r] = writes[w]
    scratch = [buffers.scratch[node]] if node in buffers.scratch else []
    if step.state:
        assert buffers.state is not None
        scratch.append(buffers.state)
    return [*reads, *writes, *scratch]


def is_launched(node: KernelNode) -> bool:
    """Return True if the kernel of a node is called: it writes elements, or calls functions."""
    return bool(node.step.functions) or any(v.shape.nbytes for v in node.step.writes)


def short_test(name: str, bufs: str) -> str:
    """Return C that tells whether a call of kernel k<number> has too little work for several threads."""
    return f"{SHORT_TEST}({name[1:]}, {bufs})"


def short_tests(kernels: Mapping[str, Kernel], *, is_inlined: bool) -> str:
    """Return the function that `short_test` calls, one for all kernels: a function takes a millisecond to compile."""
    cases = [f"    case {name[1:]}: return {kernel.short};\n" for name, kernel in kernels.items() if kernel.short]
    if not cases:
        return ""
    noinline = "" if is_inlined else "__attribute__((noinline)) "
    head = f"{noinline}static int {SHORT_TEST}(int64_t kernel, void *const *bufs) {{\n  switch (kernel) {{\n"
    return f"{head}{''.join(cases)}  }}\n  return 0;\n}}\n"


def in_rows(nodes: Sequence[Node], buffers: Buffers) -> list[list[Node]]:
    """Split nodes into long rows of kernels, of which each becomes a table, and single nodes."""
    rows: list[list[Node]] = []
    for is_kernel, group in groupby(nodes, lambda node: _fits(node, buffers)):
        row = list(group)
        rows += [row] if is_kernel and len(row) >= LEAST_LAUNCHES else [[node] for node in row]
    return rows


def _fits(node: Node, buffers: Buffers) -> bool:
    """Return True if a table can have a node: a kernel that is called, without copies before it."""
    return isinstance(node, KernelNode) and is_launched(node) and not buffers.copies.get((node, "before", 0), ())


def table_of_launches(
    nodes: Sequence[KernelNode],
    buffers: Buffers,
    name_of: Callable[[Kernel], str],
    functions: Mapping[str | Instruction, int],
) -> str:
    """Return the block of C that launches kernels one after the other.

    Parameters
    ----------
    nodes : sequence of KernelNode
        Calls that can be in a table.
    buffers : Buffers
        Locations of all arrays.
    name_of : callable
        Function from a kernel to its C name.
    functions : mapping of str or Instruction to int
        Numbers of the functions that kernels call.
    """
    words = [_words(node, buffers, functions) for node in nodes]
    c = CWriter()
    with c.block(""):
        c.line("static const cyx_launch launches[] = {")
        for node, of_node in zip(nodes, words, strict=True):
            kernel, name = node.step.kernel, name_of(node.step.kernel)
            test = int(name[1:]) if kernel.short else -1
            c.line(f"  {{{name}, {test}, {kernel.tasks}, {kernel.phases}, {len(of_node)}}},")
        c.line("};")
        c.line("static const int64_t words[] = {")
        c.lines([f"  {', '.join(of_node)}," for of_node in words])
        c.line("};")
        c.line(f"void *b[{max(map(len, words))}];")
        tests = SHORT_TEST if any(node.step.kernel.short for node in nodes) else 0
        launch_all = prebuilt_calls.pointer("launch_all") or "cyx_launch_all"
        c.line(f"if ((s = {launch_all}(launches, {len(nodes)}, {tests}, words, b, bufs, ctx))) return s;")
    return c.text()


def _words(node: KernelNode, buffers: Buffers, functions: Mapping[str | Instruction, int]) -> list[str]:
    """Return the words of the buffers of a launch."""
    step = node.step
    locations = kernel_locations(buffers, node)
    words = [_word(buffers, at, n) for at, n in zip(locations, step.offsets_of(len(locations)), strict=True)]
    words += ["CYX_PHASE"] * (step.kernel.phases > 1)
    words += [f"CYX_FUNCTION({functions[f]})" for f in step.functions]
    return words + ["CYX_CONTEXT"] * step.context


def _word(buffers: Buffers, location: Location, offset: int) -> str:
    if location.kind is MemoryKind.ARENA:
        return f"CYX_ARENA({location.at + offset})"
    number = first_buffer(buffers, location) + location.at
    return f"CYX_INSIDE({number}, {offset}ll)" if offset else f"CYX_BUFFER({number})"
