"""Frame of blocked algorithms: problems of a batch, each in phases of independent parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cyxla.types import ElementType
from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.kernel.kernel import Kernel
from cyxla.xla.cpu.linalg.tiles import Tiles

SPREAD_NS = 150_000.0  # a problem below this is done by one thread
SPREAD_BATCH = 16  # with more problems, each is done by one thread
ROOM_BYTES = 64 << 20  # working memory of all tasks together, where each has its own
_MEMORY = {ElementType.F32: "KERNEL_e", ElementType.F64: "KERNEL_e", ElementType.S32: "KERNEL_i"}


@dataclass
class Algorithm:
    """A blocked algorithm of one problem.

    Attributes
    ----------
    name : str
        What it computes.
    tiles : Tiles
        Sizes of its tiles.
    text : str
        C of ``KERNEL_part(p0, .., r0, .., room, phase, u)`` and what it calls: part `u` of a phase. Parts of one phase
        do not depend on each other; `p` and `r` are the problem's operands and results.
    sizes : dict of str to int
        Numbers that the text names ``KERNEL_..``.
    reads, writes : sequence of (ElementType, int)
        Types and elements of operands and results of one problem.
    phases, parts : int
        How many there are; a phase may leave parts empty.
    products : float
        Multiply-adds of one problem.
    rooms : dict of str to int
        Bytes of pieces of working memory; ``KERNEL_<name>`` is a piece's start.
    """

    name: str
    tiles: Tiles
    text: str
    sizes: dict[str, int]
    reads: Sequence[tuple[ElementType, int]]
    writes: Sequence[tuple[ElementType, int]]
    phases: int
    parts: int
    products: float
    rooms: dict[str, int] = field(default_factory=dict)

    @property
    def ns(self) -> float:
        """Estimated time of a problem."""
        return self.tiles.ns(self.products) + 1000 + 100 * self.phases * self.parts

    def kernel(self, batch: int) -> Kernel:
        """The kernel for a batch: parts are its tasks where a problem is large, else problems are."""
        places, nbytes = self._rooms()
        text = self.tiles.definitions({**self.sizes, **places}, self.text) + self.text
        ns = self.ns * batch
        if batch <= SPREAD_BATCH and self.ns >= SPREAD_NS and self.parts > 1:
            phases, tasks = batch * self.phases, self.parts
            return Kernel(text + self._spread(phases), tasks, ns, nbytes, self.name, phases)
        tasks = min(cost.tasks(ns, batch), max(SPREAD_BATCH, ROOM_BYTES // nbytes))
        return Kernel(text + self._each(batch, tasks, nbytes), tasks, ns, tasks * nbytes, self.name)

    def _rooms(self) -> tuple[dict[str, int], int]:
        places, at = {}, 0
        for name, nbytes in self.rooms.items():
            places[name] = at
            at += -(-max(nbytes, 1) // 64) * 64
        return places, max(at, 64)

    def _main(self, lines: Sequence[str]) -> str:
        body = "\n".join(f"  {line}" for line in lines)
        return (
            "static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end) {\n"
            f"  char *const room = bufs[{len(self.reads) + len(self.writes)}];\n{body}\n  return CYX_OK;\n}}\n"
        )

    def _arguments(self, problem: str) -> str:
        """Pointers to a problem's operands and results."""
        given = [f"(const {_MEMORY[dtype]} *)" for dtype, _ in self.reads]
        given += [f"({_MEMORY[dtype]} *)" for dtype, _ in self.writes]
        sizes = [size for _, size in (*self.reads, *self.writes)]
        return ", ".join(f"{g}bufs[{k}] + {problem} * {n}ll" for k, (g, n) in enumerate(zip(given, sizes, strict=True)))

    def _spread(self, phases: int) -> str:
        number = f"*(const int64_t *)bufs[{len(self.reads) + len(self.writes) + 1}]"
        first = f"const int64_t phase = all % {self.phases}, m = all / {self.phases};"
        call = f"KERNEL_part({self._arguments('m')}, room, phase, u);"
        lines = [f"const int64_t all = {number};" if phases > 1 else "const int64_t all = 0;", first]
        return self._main([*lines, f"for (int64_t u = begin; u < end; ++u) {call}"])

    def _each(self, batch: int, tasks: int, nbytes: int) -> str:
        call = f"KERNEL_part({self._arguments('m')}, room + begin * {nbytes}ll, phase, u);"
        return self._main([
            f"for (int64_t m = begin * {batch} / {tasks}; m < end * {batch} / {tasks}; ++m)",
            f"  for (int64_t phase = 0; phase < {self.phases}; ++phase)",
            f"    for (int64_t u = 0; u < {self.parts}; ++u) {call}",
        ])  # fmt: skip
