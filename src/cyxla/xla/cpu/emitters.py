"""Who writes the C of what: emitters by opcode, and by kind of group for what is fused."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cyxla.errors import AlreadyExistsError, UnimplementedError
from cyxla.xla.cpu.kernel import Step
from cyxla.xla.hlo import Instruction

if TYPE_CHECKING:
    from cyxla.xla.cpu.fusion import Group

Steps = Step | list[Step]
Check = Callable[[Instruction], "str | None"]  # None: yes; else why not
Emitter = Callable[[Instruction], Steps]
GroupEmitter = Callable[["Group"], Steps]

_EMITTERS: dict[str, Emitter] = {}
_GROUP_EMITTERS: dict[str, GroupEmitter] = {}
_CHECKS: dict[str, Check | None] = {}


def emits(*opcodes: str, check: Check | None = None) -> Callable[[Emitter], Emitter]:
    """Register the emitter of opcodes that have kernels of their own.

    Parameters
    ----------
    opcodes : str
        Their names.
    check : callable, optional
        Says of one instruction why it cannot be emitted, or None if it can.
    """

    def register(emitter: Emitter) -> Emitter:
        for opcode in opcodes:
            if opcode in _EMITTERS:
                raise AlreadyExistsError(f"opcode {opcode} has an emitter already")
            _EMITTERS[opcode] = emitter
            _CHECKS[opcode] = check
        return emitter

    return register


def emits_group(*kinds: str) -> Callable[[GroupEmitter], GroupEmitter]:
    """Register the emitter of a kind of fused group."""

    def register(emitter: GroupEmitter) -> GroupEmitter:
        for kind in kinds:
            _GROUP_EMITTERS[kind] = emitter
        return emitter

    return register


def fusible(*opcodes: str, check: Check | None = None) -> None:
    """Declare opcodes that groups compute, so that `can_emit` knows them."""
    for opcode in opcodes:
        _CHECKS[opcode] = check


def has_emitter(opcode: str) -> bool:
    """Whether an opcode has a kernel of its own."""
    return opcode in _EMITTERS


def can_emit(ins: Instruction) -> str | None:
    """Why one instruction cannot be compiled to a kernel; None if it can."""
    if ins.opcode not in _CHECKS:
        return f"{ins.opcode} has no kernel"
    check = _CHECKS[ins.opcode]
    return check(ins) if check is not None else None


def emit(group: Group) -> list[Step]:
    """The kernels of a group, in the order in which they run.

    Raises
    ------
    UnimplementedError
        Nobody writes kernels for this.
    """
    if group.kind in _GROUP_EMITTERS:
        return _as_list(_GROUP_EMITTERS[group.kind](group))
    (ins,) = group.instructions
    if ins.opcode not in _EMITTERS:
        raise UnimplementedError(f"no kernel for {ins.opcode} in compiled programs", where=repr(ins))
    return _as_list(_EMITTERS[ins.opcode](ins))


def _as_list(steps: Steps) -> list[Step]:
    return steps if isinstance(steps, list) else [steps]
