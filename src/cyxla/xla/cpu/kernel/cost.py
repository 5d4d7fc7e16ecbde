"""Cost model: time of a kernel on one core in ns, from which its number of tasks follows."""

from __future__ import annotations

from collections.abc import Iterable

from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.kernel import machine
from cyxla.xla.hlo import OPCODES, Instruction

TASK_NS = machine.TASK_NS
SERIAL_NS = machine.TASK_NS / 2  # less work than this is one task
MAX_TASKS = 256
# Outputs above this size are written with non-temporal stores, past the caches: 1.2 to 1.6 times as fast where they
# miss L3, and 2 to 3 times as slow where they fit.
STREAMING_BYTES = machine.L3_BYTES * 3 // 4


# Values of up to this many simple operations per element may be recomputed rather than stored.
CHEAP_FLOPS = 4
_LOOKUPS = frozenset({"dynamic-slice", "gather"})
_FREE = frozenset(row.name for row in OPCODES.values() if row.movement and row.name not in _LOOKUPS) | {
    "bitcast", "bitcast-convert", "constant", "copy", "parameter", "real", "imag", "complex", "reshape",
}  # fmt: skip
_HEAVY_NS = 0.15  # operations that take longer than this per f32 element are not simple


def flops(ins: Instruction) -> int:
    """Return the number of simple operations per element; a large number for instructions not to recompute."""
    if ins.opcode in _FREE:
        return 0
    if ins.opcode in _LOOKUPS:
        return 1
    if ins.opcode == "map":
        return sum(flops(i) for i in ins.called[0].instructions)
    dtype = ins.operands[0].shape.dtype if ins.operands else ins.shape.dtype
    if ins.shape.dtype.is_complex or scalar.cost(ins.opcode, dtype) * 32 / max(dtype.bits, 8) > _HEAVY_NS:
        return 1000  # above any limit: it is never computed twice
    return 2 if scalar.is_narrow(ins.shape.dtype) else 1


def element_ns(instructions: Iterable[Instruction]) -> float:
    """Return the time in ns to compute one element of each instruction."""
    return sum(scalar.cost(i.opcode, i.shape.dtype) for i in instructions if i.opcode not in _FREE and i.shape.is_array)


def memory_ns(nbytes: int) -> float:
    """Return the time in ns to read or write a number of bytes."""
    return nbytes * (machine.MEMORY_NS_PER_BYTE if nbytes > STREAMING_BYTES else machine.CACHED_NS_PER_BYTE)


def tasks(ns: float, units: int = MAX_TASKS) -> int:
    """Return the number of tasks to cut work into; it depends on the work alone, never on the machine."""
    if ns < SERIAL_NS:
        return 1
    return int(max(1, min(ns / TASK_NS, MAX_TASKS, units)))
