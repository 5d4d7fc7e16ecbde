"""Frame of blocked algorithms: problems of a batch, each in phases of independent parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from cyxla.records import dataclass
from cyxla.types import ElementType
from cyxla.xla.cpu.c.kernel_header import instantiate
from cyxla.xla.cpu.kernel import cost, machine
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind
from cyxla.xla.cpu.linalg.tiles import Tiles

MIN_SHARED_NS = 7.5 * machine.TASK_NS  # ns of a problem from which several threads solve it together
# ns of a problem without its products, and of a part of each phase; assumed, since only small matrices depend on them.
_PROBLEM_NS, _PHASE_NS = 1000, 100
MAX_SHARED_BATCH = 16  # batch size up to which several threads solve each problem together
MAX_SCRATCH_BYTES = 2 * machine.L3_BYTES  # bound on the scratch of all tasks, if each has its own
_MEMORY = {ElementType.F32: "KERNEL_element", ElementType.F64: "KERNEL_element", ElementType.S32: "KERNEL_index"}


@dataclass
class Algorithm:
    """A blocked algorithm of one problem.

    Attributes
    ----------
    kind : KernelKind
        Kind of its kernels.
    tiles : Tiles
        Sizes of its tiles.
    headers : sequence of str
        Headers under ``include/cyxla/kernels``. The first asks for the parameters, the last one defines
        ``KERNEL_part(p0, .., r0, .., scratch, phase, u)``, part `u` of a phase: parts of one phase do not depend on
        each other; `p` and `r` are the problem's operands and results.
    family : str
        Prefix of the names of the parameters.
    parameters : dict of str to (int or str)
        Parameters by name; beside them are PREFIX and, for each piece of scratch, its name with _OFFSET.
    functions : sequence of str
        Functions on tiles, see `tiles.FUNCTIONS`.
    reads, writes : sequence of (ElementType, int)
        Types and numbers of elements of operands and results of one problem.
    phases, parts : int
        Number of phases, and of parts in each; a part may be empty.
    products : float
        Multiply-adds of one problem.
    scratch : dict of str to int
        Bytes of the pieces of scratch of a problem.
    """

    kind: KernelKind
    tiles: Tiles
    headers: Sequence[str]
    family: str
    parameters: dict[str, int | str]
    functions: Sequence[str]
    reads: Sequence[tuple[ElementType, int]]
    writes: Sequence[tuple[ElementType, int]]
    phases: int
    parts: int
    products: float
    scratch: dict[str, int] = field(default_factory=dict)

    @property
    def ns(self) -> float:
        """Estimated time of a problem."""
        return self.tiles.ns(self.products) + _PROBLEM_NS + _PHASE_NS * self.phases * self.parts

    def kernel(self, batch: int) -> Kernel:
        """Return the kernel for a batch: the tasks are parts of large problems, or else problems."""
        offsets, nbytes = self._offsets()
        text = self.tiles.definitions(self.functions) + self._instance(offsets)
        ns = self.ns * batch
        if batch <= MAX_SHARED_BATCH and self.ns >= MIN_SHARED_NS and self.parts > 1:
            phases, tasks = batch * self.phases, self.parts
            return Kernel(text + self._parallel_parts(phases), tasks, ns, nbytes, self.kind, phases)
        tasks = min(cost.tasks(ns, batch), max(MAX_SHARED_BATCH, MAX_SCRATCH_BYTES // nbytes))
        return Kernel(text + self._parallel_problems(batch, tasks, nbytes), tasks, ns, tasks * nbytes, self.kind)

    def _instance(self, offsets: dict[str, int]) -> str:
        """Return the text of the headers, behind the definitions of the parameters."""
        values = {f"{self.family}_{name}": value for name, value in {**self.parameters, **offsets}.items()}
        numbers = {name: f"{value}ll" if isinstance(value, int) else value for name, value in values.items()}
        first, *others = self.headers
        return "".join([
            instantiate(first, **{f"{self.family}_PREFIX": "KERNEL"}, **numbers), *map(instantiate, others)
        ])  # fmt: skip

    def _offsets(self) -> tuple[dict[str, int], int]:
        """Return the offsets of the pieces of scratch as parameters, and the bytes of all."""
        offsets, end = {}, 0
        for name, nbytes in self.scratch.items():
            offsets[f"{name}_OFFSET"] = end
            end += -(-max(nbytes, 1) // 64) * 64
        return offsets, max(end, 64)

    def _main(self, lines: Sequence[str]) -> str:
        body = "\n".join(f"  {line}" for line in lines)
        return (
            "static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end) {\n"
            f"  char *const scratch = bufs[{len(self.reads) + len(self.writes)}];\n{body}\n  return CYX_OK;\n}}\n"
        )

    def _arguments(self, problem: str) -> str:
        """Return pointers to a problem's operands and results."""
        types = [f"(const {_MEMORY[dtype]} *)" for dtype, _ in self.reads]
        types += [f"({_MEMORY[dtype]} *)" for dtype, _ in self.writes]
        sizes = [size for _, size in (*self.reads, *self.writes)]
        return ", ".join(f"{t}bufs[{k}] + {problem} * {n}ll" for k, (t, n) in enumerate(zip(types, sizes, strict=True)))

    def _parallel_parts(self, phases: int) -> str:
        """Return the kernel whose tasks are the parts of one problem after the other."""
        number = f"*(const int64_t *)bufs[{len(self.reads) + len(self.writes) + 1}]"
        first = f"const int64_t phase = all % {self.phases}, m = all / {self.phases};"
        call = f"KERNEL_part({self._arguments('m')}, scratch, phase, u);"
        lines = [f"const int64_t all = {number};" if phases > 1 else "const int64_t all = 0;", first]
        return self._main([*lines, f"for (int64_t u = begin; u < end; ++u) {call}"])

    def _parallel_problems(self, batch: int, tasks: int, nbytes: int) -> str:
        """Return the kernel whose tasks are problems."""
        call = f"KERNEL_part({self._arguments('m')}, scratch + begin * {nbytes}ll, phase, u);"
        return self._main([
            f"for (int64_t m = begin * {batch} / {tasks}; m < end * {batch} / {tasks}; ++m)",
            f"  for (int64_t phase = 0; phase < {self.phases}; ++phase)",
            f"    for (int64_t u = 0; u < {self.parts}; ++u) {call}",
        ])  # fmt: skip
