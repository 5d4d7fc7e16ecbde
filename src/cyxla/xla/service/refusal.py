"""Refusals of the compiler: optimisations that it did not apply, with the reasons."""

from __future__ import annotations

from cyxla.records import dataclass
from cyxla.xla.hlo import Instruction


@dataclass(frozen=True)
class Refusal:
    """Optimisation that was not applied.

    Attributes
    ----------
    stage : str
        Part of the compiler: ``fusion``, ``row fusion``, ``horizontal fusion``, ``loop``, ``in place``, ``donation``,
        ``prebuilt``, ``vectorisation``, ``native code`` or ``clustering``.
    subject : str
        Opcode and shape of the instruction, or a few words.
    reason : str
        Clause that completes "not .., since".
    """

    stage: str
    subject: str
    reason: str

    @staticmethod
    def of(stage: str, ins: Instruction, reason: str) -> Refusal:
        """Return the refusal of an instruction."""
        return Refusal(stage, f"{ins.opcode} {ins.shape.static}", reason)

    def __str__(self) -> str:
        return f"{self.subject}: {self.reason}"
