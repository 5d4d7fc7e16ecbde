"""Arrays of a nest: arguments of the kernel, and working memory."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import field
from math import inf
from typing import Any

from cyxla.records import dataclass
from cyxla.types import ElementType
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.kernel.array_types import memory_type
from cyxla.xla.cpu.loops.loop_ir import Reads
from cyxla.xla.cpu.loops.straight_line import UnsuitableLoopError

LOCAL_BYTES = 2048  # arrays of up to this size are locals
_ALIGNMENT = 64
_FIRST_SLOT = 1 << 20  # slots below are arguments of the kernel


@dataclass(eq=False)
class Array:
    """Array in memory: the C pointer to its elements, and its type."""

    pointer: str
    dtype: ElementType
    size: int

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.size * self.dtype.itemsize


@dataclass
class NestState:
    """State shared by all scopes of a nest.

    Attributes
    ----------
    reads : Reads
        Arguments of the kernel.
    names : CWriter
        Source of unique names.
    pointers : dict of int to str
        C pointers of the values in memory, by slot.
    tables : dict
        Names of constant tables by literal.
    nodes : int
        Number of nodes emitted so far, a measure of gcc's time.
    scratch_bytes : int
        Size of the scratch buffer.
    most_copied : float
        Bytes up to which an array may be copied in an iteration.
    """

    reads: Reads
    names: CWriter
    pointers: dict[int, str] = field(default_factory=dict)
    tables: dict[Any, str] = field(default_factory=dict)
    nodes: int = 0
    scratch_bytes: int = 0
    most_copied: float = inf
    _slots: dict[Hashable, int] = field(default_factory=dict)
    _locals: list[Array] = field(default_factory=list)
    _buffers: list[tuple[Array, int]] = field(default_factory=list)

    def new_array(self, dtype: ElementType, size: int) -> Array:
        """Return an array of working memory."""
        array = Array(self.names.name("a"), dtype, size)
        if array.nbytes <= LOCAL_BYTES:
            self._locals.append(array)
        else:
            self._buffers.append((array, self.scratch_bytes))
            self.scratch_bytes += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
        return array

    def slot_of(self, array: Array, value: Hashable = None) -> int:
        """Return the slot of a value that an array holds, as loads name it; loads of equal slots are equal."""
        key = (array, value)
        slot = self._slots.setdefault(key, _FIRST_SLOT + len(self._slots))
        self.pointers[slot] = array.pointer
        return slot

    def count(self, nodes: int, limit: int) -> None:
        """Count nodes.

        Raises
        ------
        UnsuitableLoopError
            There are too many in the nest.
        """
        self.nodes += nodes
        if self.nodes > limit:
            raise UnsuitableLoopError(f"more than {limit} operations")

    def declarations(self, scratch: str) -> list[str]:
        """Return the declarations of the working memory; `scratch` is the C of the scratch buffer."""
        lines = [
            f"{memory_type(a.dtype)} {a.pointer}[{a.size}] __attribute__((aligned({_ALIGNMENT})));"
            for a in self._locals
        ]
        for array, offset in self._buffers:
            c_type = memory_type(array.dtype)
            lines.append(f"{c_type} *restrict const {array.pointer} = ({c_type} *)((char *){scratch} + {offset});")
        return lines

    @property
    def dtypes(self) -> dict[ElementType, None]:
        """Element types of the working memory."""
        return dict.fromkeys(a.dtype for a in (*self._locals, *(b for b, _ in self._buffers)))
