"""One operation of an HLO computation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cyxla.types import Shape
from cyxla.xla.hlo.attributes import Metadata
from cyxla.xla.hlo.opcode import OPCODES, Opcode

if TYPE_CHECKING:
    from cyxla.xla.hlo.computation import Computation
    from cyxla.xla.hlo.visitor import Visitor


class Instruction:
    """An operation on the results of other operations of the same computation.

    Created by `Computation.add` and changed only by the mutators of the computation (`add`, `remove`,
    `replace_all_uses`, `replace_operand`), which keep `users` consistent.

    Attributes
    ----------
    opcode : str
        HLO spelling; the key of `OPCODES`.
    shape : Shape
        Result shape, with the layout if the program names one.
    operands : tuple of Instruction
        The operands in order.
    attrs : dict
        All attributes that the opcode declares, defaults filled in; immutable after creation.
    called : tuple of Computation
        Called computations in the order of the opcode's `calls`.
    users : dict of Instruction to int
        Users of the result, with the number of operands that are this instruction.
    control_predecessors : tuple of Instruction
        Instructions that must run before.
    name : str
        Suggested name, or an empty string; printing makes names unique.
    metadata : Metadata
        Source location and other annotations; no effect.
    extras : dict
        Attributes that any instruction may carry: sharding, frontend_attributes, backend_config, statistics, origin,
        parameter_replication; only those that the program states.
    """

    __slots__ = (
        "attrs", "called", "computation", "control_predecessors", "extras", "metadata", "name", "opcode", "operands",
        "shape", "users",
    )  # fmt: skip

    opcode: str
    shape: Shape
    operands: tuple[Instruction, ...]
    attrs: dict[str, Any]
    called: tuple[Computation, ...]
    users: dict[Instruction, int]
    control_predecessors: tuple[Instruction, ...]
    computation: Computation
    name: str
    metadata: Metadata
    extras: dict[str, Any]

    @property
    def row(self) -> Opcode:
        """The row of the opcode in `OPCODES`."""
        return OPCODES[self.opcode]

    @property
    def is_root(self) -> bool:
        """True if this is the computation's result."""
        return self.computation.root is self

    @property
    def has_side_effect(self) -> bool:
        """True if this must run even when its result is unused, itself or because of a called computation."""
        if self.row.side_effect or self.attrs.get("custom_call_has_side_effect"):
            return True
        return any(c.has_side_effect for c in self.called)

    def visit(self, visitor: Visitor) -> Any:
        """Call the visitor's handler for the opcode."""
        return visitor.dispatch(self)

    def __repr__(self) -> str:
        operands = ", ".join(f"%{o.name or o.opcode}" for o in self.operands)
        return f"%{self.name or self.opcode} = {self.shape} {self.opcode}({operands})"
