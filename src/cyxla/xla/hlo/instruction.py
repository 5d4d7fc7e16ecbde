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

    Made by `Computation.add` and changed only by the computation's four primitives (`add`, `remove`,
    `replace_all_uses`, `replace_operand`), which keep `users` right.

    Attributes
    ----------
    opcode : str
        HLO spelling; the key of `OPCODES`.
    shape : Shape
        Result shape, with the layout if the program names one.
    operands : tuple of Instruction
        In order.
    attrs : dict
        Every attribute the opcode declares, defaults filled in; never changed after creation.
    called : tuple of Computation
        Called computations in the order of the opcode's `calls`.
    users : dict of Instruction to int
        Who reads the result, and through how many operands.
    control_predecessors : tuple of Instruction
        What must have run before.
    name : str
        Wished name; printing makes names unique. May be empty.
    metadata : Metadata
        Where the operation came from; no effect.
    extras : dict
        Attributes that any instruction may carry: sharding, frontend_attributes, backend_config, statistics, origin,
        parameter_replication; present only when written.
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
        """The opcode's facts."""
        return OPCODES[self.opcode]

    @property
    def is_root(self) -> bool:
        """Whether this is the computation's result."""
        return self.computation.root is self

    @property
    def has_side_effect(self) -> bool:
        """Whether this must run even when unused, itself or through what it calls."""
        if self.row.side_effect or self.attrs.get("custom_call_has_side_effect"):
            return True
        return any(c.has_side_effect for c in self.called)

    def visit(self, visitor: Visitor) -> Any:
        """Hand this instruction to the visitor's handler for its opcode."""
        return visitor.dispatch(self)

    def __repr__(self) -> str:
        operands = ", ".join(f"%{o.name or o.opcode}" for o in self.operands)
        return f"%{self.name or self.opcode} = {self.shape} {self.opcode}({operands})"
