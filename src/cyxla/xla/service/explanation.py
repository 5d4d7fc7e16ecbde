"""Explanation of a compiled program: its kernels, the reason for the extent of each, and all refusals.

`str` gives the text for people that `explain()` returns; the fields are for tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from cyxla.records import dataclass
from cyxla.xla.hlo import Instruction
from cyxla.xla.service.operation_count import operations
from cyxla.xla.service.refusal import Refusal

_TITLES = (
    f"{'kernel':8} {'kind':14} {'tier':11} {'calls':>6} {'tasks':>6} {'us':>10} "
    f"{'read':>12} {'written':>12} {'operations':>13}"
)


@dataclass(frozen=True)
class KernelReport:
    """Facts of one kernel; several calls may share it.

    Attributes
    ----------
    name : str
        Name in the C source, of the prebuilt function, or the opcode in the interpreter.
    kind : str
        Kind of its group, or a more special form of it.
    tier : str
        ``"compiled"`` for the program, ``"prebuilt"``, or ``"interpreter"``.
    calls : int
        Number of calls in the program, each loop counted as one iteration.
    tasks : int
        Number of tasks of a call, which threads share.
    ns : float
        Estimated time of a call on one core.
    bytes_read, bytes_written : int
        Sizes of the arrays of the first call.
    operations : int
        Arithmetic operations of the first call, each function of an element counted as one.
    instructions : tuple of str
        Opcode and shape of each instruction that the first call computes, operands first.
    why : str
        Reason for which these instructions are one kernel.
    stored : tuple of Refusal
        Instructions whose results are in memory: the reasons that stopped fusion.
    refusals : tuple of Refusal
        Other refusals: instructions that were not taken in, buffers that were not reused, and the like.
    tuning : str
        Result of the measurements of a program compiled with ``autotune=True``; empty if there were none.
    """

    name: str
    kind: str
    tier: str
    calls: int = 1
    tasks: int = 1
    ns: float = 0.0
    bytes_read: int = 0
    bytes_written: int = 0
    operations: int = 0
    instructions: tuple[str, ...] = ()
    why: str = ""
    stored: tuple[Refusal, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    tuning: str = ""

    def row(self) -> str:
        """Return the row of a table of kernels."""
        return (
            f"{self.name:8} {self.kind:14} {self.tier:11} {self.calls:6} {self.tasks:6} {self.ns / 1000:10.3f} "
            f"{self.bytes_read:12} {self.bytes_written:12} {self.operations:13}"
        )

    def lines(self) -> list[str]:
        """Return the lines about the extent of the kernel, and the refusals other than those of fusion."""
        stored = [f"    {r.subject} is stored: {r.reason}" for r in self.stored]
        refusal_lines = [f"    {_NOT[r.stage]} {r}" for r in self.refusals if r.stage in _NOT]
        tuning_lines = [f"    tuned: {self.tuning}"] if self.tuning else []
        return [f"{self.name}: {self.why}", *tuning_lines, *stored, *refusal_lines]


_NOT = {"in place": "not in place:", "prebuilt": "not prebuilt:", "vectorisation": "not vectorised:"}


@dataclass(frozen=True)
class Explanation:
    """Kernels and refusals of a compiled program.

    Attributes
    ----------
    platform, tier : str
        Platform and tier of the executable.
    summary : str
        First line of the text.
    kernels : tuple of KernelReport
        Distinct kernels in the order of their first call.
    refusals : tuple of Refusal
        All refusals of the program.
    """

    platform: str
    tier: str
    summary: str
    kernels: tuple[KernelReport, ...] = ()
    refusals: tuple[Refusal, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as dicts, lists and plain values."""
        return asdict(self)

    def __str__(self) -> str:
        table = [_TITLES, *(k.row() for k in self.kernels)] if self.kernels else []
        reasons = [line for k in self.kernels for line in k.lines()]
        return "\n".join([self.summary, *table, *reasons, *_section(self.kernels, self.refusals)])


def instruction_reports(
    calls: Iterable[tuple[str, Instruction]], tier: str = "interpreter", why: str = "an instruction is one call"
) -> tuple[KernelReport, ...]:
    """Return the reports of calls, by function name and instruction, that compute an instruction each."""
    grouped: dict[tuple[str, str, str], list[Instruction]] = {}
    for name, ins in calls:
        grouped.setdefault((name, ins.opcode, f"{ins.opcode} {ins.shape}"), []).append(ins)
    return tuple(
        KernelReport(
            name,
            opcode,
            tier,
            calls=len(calls_of_key),
            bytes_read=sum(_bytes(o) for o in calls_of_key[0].operands),
            bytes_written=_bytes(calls_of_key[0]),
            operations=operations(calls_of_key[0]),
            instructions=(text,),
            why=why,
        )
        for (name, opcode, text), calls_of_key in grouped.items()
    )


def _bytes(ins: Instruction) -> int:
    return sum(leaf.nbytes for leaf in ins.shape.leaves())


def _section(kernels: Sequence[KernelReport], refusals: Sequence[Refusal]) -> list[str]:
    """Return the refusals that no kernel has told of."""
    reported = {r for k in kernels for r in (*k.stored, *(r for r in k.refusals if r.stage in _NOT))}
    remaining = dict.fromkeys(f"{r.stage}: {r}" for r in refusals if r not in reported)
    return ["refused:", *(f"  {line}" for line in remaining)] if remaining else []
