"""Registry of emitters by opcode, and by kind of group for fused instructions.

An emitter is imported when the first program needs it: together they take longer than most programs take to compile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module

from cyxla.errors import AlreadyExistsError, UnimplementedError
from cyxla.xla.cpu.kernel.groups import Group, GroupKind
from cyxla.xla.cpu.kernel.kernel import Step
from cyxla.xla.hlo import Instruction

Steps = Step | list[Step]
Check = Callable[[Instruction], "str | None"]  # None: yes; else why not
Emitter = Callable[[Instruction], Steps]
GroupEmitter = Callable[[Group], Steps]

#: Modules in this package by the opcodes that they register, or whose groups they emit.
MODULES: dict[str, str] = {
    "cholesky": "linalg.emit", "convolution": "convolution.emit", "custom-call": "calls.custom_call",
    "dot": "dot.emit", "fft": "fft.emit", "infeed": "calls.host_transfer", "outfeed": "calls.host_transfer",
    "recv": "calls.host_transfer", "recv-done": "calls.host_transfer", "send": "calls.host_transfer",
    "send-done": "calls.host_transfer", "reduce": "reduce.emit", "reduce-window": "reduce.windows",
    "rng": "rng.distributions", "rng-bit-generator": "rng.bit_generator",
    "rng-get-and-update-state": "rng.distributions", "scatter": "scatter.scatter",
    "select-and-scatter": "scatter.select_and_scatter", "sort": "sort.emit", "topk": "sort.topk",
    "triangular-solve": "linalg.emit",
}  # fmt: skip
#: Modules by the kinds of groups that they register.
GROUP_MODULES: dict[GroupKind, str] = {
    GroupKind.CONVOLUTION: "convolution.emit", GroupKind.DOT: "dot.emit", GroupKind.LOOP: "loops.elementwise",
    GroupKind.REDUCE: "reduce.emit", GroupKind.REDUCE_WINDOW: "reduce.windows", GroupKind.ROW: "reduce.rows.emit",
    GroupKind.UPDATE: "loops.elementwise", GroupKind.WINDOW_SCATTER: "scatter.window_scatter",
}  # fmt: skip

_EMITTERS: dict[str, Emitter] = {}
_GROUP_EMITTERS: dict[GroupKind, GroupEmitter] = {}
_LIVE_EMITTERS: dict[str, GroupEmitter] = {}
_CHECKS: dict[str, Check | None] = {}


def emits(*opcodes: str, check: Check | None = None) -> Callable[[Emitter], Emitter]:
    """Register the emitter of opcodes that have kernels of their own.

    Parameters
    ----------
    opcodes : str
        Names of the opcodes.
    check : callable, optional
        Function that returns the reason why an instruction cannot be emitted, or None if it can.
    """

    def register(emitter: Emitter) -> Emitter:
        for opcode in opcodes:
            if opcode in _EMITTERS:
                raise AlreadyExistsError(f"opcode {opcode} has an emitter already")
            _EMITTERS[opcode] = emitter
            _CHECKS[opcode] = check
        return emitter

    return register


def emits_group(*kinds: GroupKind) -> Callable[[GroupEmitter], GroupEmitter]:
    """Register the emitter of a kind of fused group."""

    def register(emitter: GroupEmitter) -> GroupEmitter:
        for kind in kinds:
            _GROUP_EMITTERS[kind] = emitter
        return emitter

    return register


def emits_live(*opcodes: str) -> Callable[[GroupEmitter], GroupEmitter]:
    """Register the emitter of opcodes for groups of one instruction, of which a leading part matters."""

    def register(emitter: GroupEmitter) -> GroupEmitter:
        for opcode in opcodes:
            _LIVE_EMITTERS[opcode] = emitter
        return emitter

    return register


def fusible(*opcodes: str, check: Check | None = None) -> None:
    """Declare opcodes that groups compute, so that `can_emit` knows them."""
    for opcode in opcodes:
        _CHECKS[opcode] = check


def _register(opcode: str) -> None:
    """Import the module that registers an opcode, if it was not imported."""
    if opcode in MODULES:
        import_module(f"cyxla.xla.cpu.{MODULES[opcode]}")


def can_emit(ins: Instruction) -> str | None:
    """Return the reason why an instruction cannot be compiled to a kernel; None if it can."""
    _register(ins.opcode)
    if ins.opcode not in _CHECKS:
        return f"{ins.opcode} has no kernel"
    check = _CHECKS[ins.opcode]
    return check(ins) if check is not None else None


def emit(group: Group) -> list[Step]:
    """Emit the kernels of a group, in the order in which they run.

    Raises
    ------
    UnimplementedError
        No emitter is registered for an opcode.
    """
    steps = _emit(group)
    return [s if s.groups else replace(s, groups=(group,)) for s in (steps if isinstance(steps, list) else [steps])]


def _emit(group: Group) -> Steps:
    if group.kind is not GroupKind.SINGLE:
        import_module(f"cyxla.xla.cpu.{GROUP_MODULES[group.kind]}")
        return _GROUP_EMITTERS[group.kind](group)
    (ins,) = group.instructions
    _register(ins.opcode)
    if ins.opcode not in _EMITTERS:
        raise UnimplementedError(f"no kernel for {ins.opcode} in compiled programs", where=repr(ins))
    if (group.live or group.stops) and ins.opcode in _LIVE_EMITTERS:
        return _LIVE_EMITTERS[ins.opcode](group)
    return _EMITTERS[ins.opcode](ins)
