"""Broadcasts, slices, transposes and reversals that element-wise functions read at strides, without a copy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from cyxla.types import Shape
from cyxla.xla.cpu.prebuilt.forms import BLOCK, OPCODES
from cyxla.xla.hlo import Instruction

_CACHED: Final = 1024  # dimensions and strides whose loops are kept


class Strided(NamedTuple):
    """Elements of a buffer that are those of an array.

    Attributes
    ----------
    strides : tuple of int
        Distances in the buffer, in elements, of neighbours along each dimension of the array.
    start : int
        Index in the buffer of the array's first element.
    """

    strides: tuple[int, ...]
    start: int = 0


class Loops(NamedTuple):
    """Loops over several arrays of equal dimensions at once.

    Attributes
    ----------
    lengths : tuple of int
        Lengths of the loops, outermost first.
    strides : tuple of tuple of int
        Strides of each array in these loops.
    """

    lengths: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]

    @property
    def is_in_rows(self) -> bool:
        """True if the innermost loop is long, and reads adjacent elements or one."""
        return self.lengths[-1] >= BLOCK and all(0 <= strides[-1] <= 1 for strides in self.strides)


def row_major(dims: Sequence[int]) -> tuple[int, ...]:
    """Return the strides, in elements, of a row-major array."""
    strides, step = [], 1
    for n in reversed(dims):
        strides.append(step)
        step *= n
    return tuple(strides[::-1])


def transposed(ins: Instruction) -> Strided:
    """Return the elements of a transpose in the buffer of its operand."""
    strides = _of(ins.operands[0].shape)
    return Strided(tuple([strides[d] for d in ins.attrs["dimensions"]]))


def broadcasted(ins: Instruction) -> Strided:
    """Return the elements of a broadcast in the buffer of its operand."""
    strides = [0] * len(ins.shape.dims)
    for d, stride in zip(ins.attrs["dimensions"], _of(ins.operands[0].shape), strict=True):
        strides[d] = stride
    return Strided(tuple(strides))


def reversed_(ins: Instruction) -> Strided:
    """Return the elements of a reversal in the buffer of its operand."""
    dims, strides, start = ins.shape.dims, [*_of(ins.shape)], 0
    for d in ins.attrs["dimensions"]:
        start += (dims[d] - 1) * strides[d]
        strides[d] = -strides[d]
    return Strided(tuple(strides), start)


def sliced(ins: Instruction) -> Strided:
    """Return the elements of a slice in the buffer of its operand."""
    steps = [*zip(ins.attrs["slice"], _of(ins.operands[0].shape), strict=True)]
    return Strided(tuple([r.stride * s for r, s in steps]), sum(r.start * s for r, s in steps))


#: Elements of an instruction in the buffer of its operand, by opcode.
STRIDED: Final[dict[str, Callable[[Instruction], Strided]]] = {
    "transpose": transposed, "broadcast": broadcasted, "reverse": reversed_, "slice": sliced,
}  # fmt: skip


@lru_cache(_CACHED)
def merged_loops(dims: tuple[int, ...], strides: tuple[tuple[int, ...], ...]) -> Loops:
    """Return the loops over arrays with all strides, without loops of one iteration and with adjacent ones merged."""
    lengths: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for d, n in enumerate(dims):
        if n == 1:
            continue
        if lengths and all(s[-1] == n * along[d] for s, along in zip(steps, strides, strict=True)):
            lengths[-1] *= n
            for s, along in zip(steps, strides, strict=True):
                s[-1] = along[d]
        else:
            lengths.append(n)
            for s, along in zip(steps, strides, strict=True):
                s.append(along[d])
    if not lengths:
        return Loops((1,), ((1,),) * len(strides))
    return Loops(tuple(lengths), tuple(map(tuple, steps)))


def find_strided(
    order: Sequence[Instruction],
    results: Iterable[Instruction],
    operands_of: Callable[[Instruction], Sequence[Instruction]],
) -> dict[Instruction, Strided]:
    """Return the instructions that only element-wise ones read, all of them in long rows.

    Parameters
    ----------
    order : sequence of Instruction
        Instructions of a program, operands first.
    results : iterable of Instruction
        Results of the program, which have to be in memory.
    operands_of : callable
        Function that returns the operands of the function that computes an instruction.
    """
    found = {ins: STRIDED[ins.opcode](ins) for ins in order if _is_candidate(ins)}
    for ins in results:
        found.pop(ins, None)
    for ins in order if found else ():
        kept: list[tuple[int, ...]] = []
        for o in dict.fromkeys(operands_of(ins)):
            if o not in found:
                continue
            strides = found[o].strides
            if ins.opcode in OPCODES and merged_loops(ins.shape.dims, (*kept, strides)).is_in_rows:
                kept.append(strides)
            else:
                del found[o]
    return found


def _is_candidate(ins: Instruction) -> bool:
    return ins.opcode in STRIDED and ins.shape.size >= BLOCK and ins.operands[0].shape.size > 1


def _of(shape: Shape) -> tuple[int, ...]:
    return row_major(shape.dims)
