"""Groups of instructions that one kernel computes, and checks of the instructions that can be in one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from functools import cached_property
from typing import TypeAlias

from cyxla.records import dataclass
from cyxla.xla.cpu.c import scalar, scalar_computation
from cyxla.xla.cpu.kernel.hlo_quotes import number_instructions
from cyxla.xla.cpu.kernel.kernel import Value
from cyxla.xla.hlo import OPCODES, Instruction
from cyxla.xla.service.refusal import Refusal

#: Opcodes that an index map computes.
MOVEMENT = frozenset(row.name for row in OPCODES.values() if row.movement)
#: Opcodes fused with their operands, at most one in a group.
ROOTS = frozenset({"dynamic-update-slice", "reduce", "reduce-window", "select-and-scatter"})
#: Opcodes with an epilogue: a group may read their results from registers; their operands lie in memory.
CONTRACTIONS = frozenset({"convolution", "dot"})


#: Sizes by dimension of an array, of which the greatest bounds the indices of its live elements; () is the whole array.
Live: TypeAlias = Mapping[int, frozenset[Value]]


class GroupKind(StrEnum):
    """Kinds of groups, each with an emitter of its own but for single instructions."""

    LOOP = "loop"
    """Element-wise instructions over one iteration space."""
    REDUCE = "reduce"
    """A reduction with the instructions before it, or with its epilogue."""
    REDUCE_WINDOW = "reduce-window"
    """A windowed reduction, likewise."""
    ROW = "row"
    """Groups over the same rows, one pass after the other."""
    UPDATE = "update"
    """A dynamic-update-slice in place, with the instructions that compute the update."""
    WINDOW_SCATTER = "window-scatter"
    """A select-and-scatter over small windows, with its epilogue."""
    DOT = "dot"
    """A dot with its epilogue."""
    CONVOLUTION = "convolution"
    """A convolution with its epilogue."""
    SINGLE = "single"
    """One instruction, whose emitter is that of its opcode."""


@dataclass(eq=False)
class Group:
    """Instructions computed by one kernel, or by a few kernels in sequence.

    Attributes
    ----------
    kind : GroupKind
        Kind, which selects the emitter.
    instructions : list of Instruction
        Instructions computed here, operands first; a cheap one may be computed in several groups.
    outputs : list of Instruction
        Instructions whose results are written to memory, starting with the one the group was created for.
    reasons : list of Refusal
        Instructions that were not fused into the group.
    stored : list of Refusal
        Outputs, each with the reason for which it is in memory.
    parts : list of Group
        Groups that a group over rows was made of, in order; together they compute the same.
    live : dict of int to tuple of Value
        Sizes, by dimension of `space`, of which the greatest bounds the iterations that matter.
    stops : dict of int to tuple of Value
        Sizes, by reduced dimension, of which the greatest bounds the elements that a reduction needs to combine.
    """

    kind: GroupKind
    instructions: list[Instruction] = field(default_factory=list)
    outputs: list[Instruction] = field(default_factory=list)
    reasons: list[Refusal] = field(default_factory=list)
    parts: list[Group] = field(default_factory=list)
    stored: list[Refusal] = field(default_factory=list)
    live: dict[int, tuple[Value, ...]] = field(default_factory=dict)
    stops: dict[int, tuple[Value, ...]] = field(default_factory=dict)

    @cached_property
    def space(self) -> tuple[int, ...]:
        """Dimensions of the iteration space: those of the root, or of the result of the first reduction."""
        by_row = (i for i in self.instructions if i.opcode == "reduce")
        ins = next(by_row, self.root) if self.kind is GroupKind.ROW else self.root
        return ins.shape.dims if ins.shape.is_array else ()

    @cached_property
    def numbers(self) -> dict[Instruction, int]:
        """Numbers of the instructions, for quotes in the C; those inside loops and branches included."""
        return number_instructions(self.instructions)

    @property
    def root(self) -> Instruction:
        """Reduction, window, update or contraction of the group, or else its first output."""
        return next((i for i in self.instructions if i.opcode in ROOTS or i.opcode in CONTRACTIONS), self.outputs[0])


def is_loopable(ins: Instruction) -> bool:
    """Return whether an instruction can be computed element by element inside a group."""
    if not is_static(ins) or not ins.shape.is_array:
        return False
    if ins.opcode in MOVEMENT:
        return True
    if ins.opcode == "map":
        return scalar_computation.unsupported_reason(ins.called[0]) is None
    if ins.opcode == "bitcast-convert":
        return _can_bitcast(ins)
    if not OPCODES[ins.opcode].elementwise:
        return False
    return scalar.is_supported(ins.opcode, ins.shape.dtype, [o.shape.dtype for o in ins.operands], ins.attrs)


def _can_bitcast(ins: Instruction) -> bool:
    of, to = ins.operands[0].shape.dtype, ins.shape.dtype
    return of.bits == to.bits and not of.is_complex and not to.is_complex


def is_static(ins: Instruction) -> bool:
    """Return whether neither an instruction nor any of its operands has a dynamic dimension."""
    return not ins.shape.is_dynamic and not any(o.shape.is_dynamic for o in ins.operands)
