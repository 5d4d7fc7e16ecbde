"""Memory of a program: arguments, results and constants by number, and temporaries in one arena."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from cyxla.types import Shape
from cyxla.xla.cpu.kernel import machine
from cyxla.xla.cpu.prebuilt.survey import Survey
from cyxla.xla.hlo import Instruction


class Buffers:
    """Buffers of the values of a program, as a recipe numbers them.

    Parameters
    ----------
    survey : Survey
        Survey of the program.

    Attributes
    ----------
    by_source : dict of Instruction to int
        Buffers of the sources so far.
    arena_bytes : int
        Size of the temporaries in bytes.
    constants : list of (Shape, array)
        Constants in the order of their buffers.
    """

    def __init__(self, survey: Survey) -> None:
        self.by_source: dict[Instruction, int] = {}
        self.arena_bytes = 0
        self.constants: list[tuple[Shape, np.ndarray[Any, Any]]] = []
        self._source, self._uniform = survey.source, survey.uniform
        self._first_result = survey.parameter_count
        self._first_constant = self._first_result + len(survey.results)
        self._stored = {source: self.result(number) for source, number in survey.stored.items()}
        self._free: dict[int, list[int]] = {}  # by size

    def of(self, value: Instruction) -> int:
        """Return the buffer that holds the elements of a value."""
        return self.by_source[self._source[value]]

    def result(self, number: int) -> int:
        """Return the buffer of a result."""
        return 2 * (self._first_result + number) + 1

    def allocate(self, ins: Instruction) -> int:
        """Return a new buffer for the result of an instruction."""
        buffer = self._stored.get(ins)
        if buffer is None:
            buffer = self.temporary(self._nbytes(ins))
        self.by_source[ins] = buffer
        return buffer

    def temporary(self, nbytes: int) -> int:
        """Return a temporary buffer of an aligned size."""
        free = self._free.get(nbytes)
        if free:
            return free.pop()
        offset = self.arena_bytes
        self.arena_bytes += nbytes
        return 2 * offset

    def constant(self, shape: Shape, array: np.ndarray[Any, Any]) -> int:
        """Return a new buffer with constant contents."""
        self.constants.append((shape, array))
        return 2 * (self._first_constant + len(self.constants) - 1) + 1

    def release(self, sources: Iterable[Instruction]) -> None:
        """Make the temporaries of sources free for others."""
        for source in sources:
            buffer = self.by_source.get(source, 1)
            if not buffer & 1:
                self._free.setdefault(self._nbytes(source), []).append(buffer)

    def is_free(self, buffer: int) -> bool:
        """Return True if a buffer is a temporary that holds no value."""
        return any(buffer in free for free in self._free.values())

    def _nbytes(self, ins: Instruction) -> int:
        """Return the size in bytes of the result of an instruction."""
        return machine.LINE_BYTES if ins in self._uniform else align(ins.shape.nbytes)


def align(nbytes: int) -> int:
    """Return the size of a temporary of at least some bytes."""
    return max(machine.LINE_BYTES, -(-nbytes // machine.LINE_BYTES) * machine.LINE_BYTES)
