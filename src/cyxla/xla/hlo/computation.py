"""A computation of HLO: parameters, instructions, one root."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cyxla.errors import FailedPreconditionError, ShapeError
from cyxla.types import Shape
from cyxla.xla.hlo.attributes import Metadata
from cyxla.xla.hlo.instruction import Instruction
from cyxla.xla.hlo.opcode import complete_attrs, lookup

if TYPE_CHECKING:
    from cyxla.xla.hlo.module import HloModule


class Computation:
    """Instructions, every operand before its users.

    Attributes
    ----------
    name : str
        Name, unique in the module.
    instructions : dict of Instruction to None
        All instructions in order of definition.
    root : Instruction
        The instruction that yields the result. Reading it before it is set raises `FailedPreconditionError`.
    module : HloModule or None
        The module that holds the computation.
    execution_thread : str
        Name of the thread; empty is the main one.
    changed : list of Instruction
        Instructions that the mutators below touched since the list was last cleared: the worklist of rewriting.
    """

    __slots__ = ("_root", "changed", "execution_thread", "instructions", "is_fusion", "module", "name")

    def __init__(self, name: str, module: HloModule | None = None) -> None:
        self.name = name
        self.module = module
        self.instructions: dict[Instruction, None] = {}
        self._root: Instruction | None = None
        self.execution_thread = ""
        self.is_fusion = False
        self.changed: list[Instruction] = []

    @property
    def root(self) -> Instruction:
        """The instruction whose value is the result."""
        if self._root is None:
            raise FailedPreconditionError(f"computation {self.name} has no root yet")
        return self._root

    @root.setter
    def root(self, instruction: Instruction) -> None:
        self._root = instruction

    @property
    def parameters(self) -> list[Instruction]:
        """The parameter instructions by number."""
        parameters = [i for i in self.instructions if i.opcode == "parameter"]
        return sorted(parameters, key=lambda i: int(i.attrs["parameter_number"]))

    @property
    def has_side_effect(self) -> bool:
        """True if any instruction, or one that it calls, must run even when its result is unused."""
        stack, visited = [self], {self}
        while stack:
            for ins in stack.pop().instructions:
                if ins.row.side_effect or ins.attrs.get("custom_call_has_side_effect"):
                    return True
                new = [c for c in ins.called if c not in visited]
                visited.update(new)
                stack += new
        return False

    def add(
        self,
        opcode: str,
        operands: Sequence[Instruction] = (),
        attrs: Mapping[str, Any] | None = None,
        *,
        shape: Shape,
        called: Sequence[Computation] = (),
        name: str = "",
        metadata: Metadata = (),
        extras: Mapping[str, Any] | None = None,
        control_predecessors: Sequence[Instruction] = (),
    ) -> Instruction:
        """Append an instruction. Attribute names are checked here, shapes by `infer_shape` and the verifier."""
        row = lookup(opcode)
        ins = object.__new__(Instruction)
        ins.opcode, ins.shape, ins.operands = row.name, shape, tuple(operands)
        ins.attrs = complete_attrs(row, attrs or {}, [o.shape for o in ins.operands])
        ins.called, ins.computation, ins.name = tuple(called), self, name
        ins.metadata, ins.extras, ins.users = metadata, dict(extras or {}), {}
        ins.control_predecessors = tuple(control_predecessors)
        for o in ins.operands:
            o.users[ins] = o.users.get(ins, 0) + 1
        self.instructions[ins] = None
        self.changed.append(ins)
        return ins

    def remove(self, ins: Instruction) -> None:
        """Remove an instruction without users."""
        if ins.users or ins is self._root:
            raise FailedPreconditionError(f"{ins!r} is in use and cannot be removed")
        for o in dict.fromkeys(ins.operands):
            del o.users[ins]
            self.changed.append(o)
        del self.instructions[ins]

    def replace_operand(self, user: Instruction, index: int, new: Instruction) -> None:
        """Make `new` operand number `index` of `user`."""
        index = range(len(user.operands))[index]
        old = user.operands[index]
        if not old.shape.compatible(new.shape):
            raise ShapeError(f"operand {index} of {user!r} is {old.shape}, its replacement {new.shape}")
        user.operands = (*user.operands[:index], new, *user.operands[index + 1 :])
        _drop_use(old, user)
        new.users[user] = new.users.get(user, 0) + 1
        self.changed += (user, old)

    def replace_all_uses(self, old: Instruction, new: Instruction) -> None:
        """Replace `old` by `new` in every user, and as the root."""
        if not old.shape.compatible(new.shape):
            raise ShapeError(f"{old!r} cannot be replaced by {new!r}")
        if old is new:
            return
        for user in list(old.users):
            if user is not new:
                user.operands = tuple(new if o is old else o for o in user.operands)
                new.users[user] = new.users.get(user, 0) + old.users.pop(user)
                self.changed.append(user)
        if self._root is old:
            self._root = new
        self.changed.append(old)

    def post_order(self) -> list[Instruction]:
        """Return every instruction after its operands and control predecessors; those that the root needs come first.

        Raises
        ------
        ShapeError
            The instructions form a cycle.
        """
        starts = ([self._root] if self._root is not None else []) + list(self.instructions)
        return _post_order(starts)

    def __repr__(self) -> str:
        return f"Computation({self.name}, {len(self.instructions)} instructions)"


def _drop_use(value: Instruction, user: Instruction) -> None:
    if value.users[user] == 1:
        del value.users[user]
    else:
        value.users[user] -= 1


def _post_order(starts: Iterable[Instruction]) -> list[Instruction]:
    order: dict[Instruction, None] = {}
    open_: set[Instruction] = set()
    for start in starts:
        if start in order:
            continue
        stack = [start]
        while stack:
            ins = stack[-1]
            if ins in order:
                stack.pop()
                continue
            before = [p for p in ins.operands if p not in order]
            if ins.control_predecessors:
                before += [p for p in ins.control_predecessors if p not in order]
            if not before:
                stack.pop()
                order[ins] = None
                continue
            if ins in open_:
                raise ShapeError(f"{ins!r} depends on itself")
            open_.add(ins)
            before.reverse()
            stack += before
    return list(order)
