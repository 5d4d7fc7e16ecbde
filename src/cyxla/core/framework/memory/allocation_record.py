"""Record of the memory that a run of a kernel allocates."""

from __future__ import annotations

from typing import NamedTuple


class Allocation(NamedTuple):
    """An allocation by a kernel.

    Attributes
    ----------
    use : str
        ``"output"``, ``"temp"`` or ``"persistent"``.
    size : int
        Number of bytes; negative for memory that the kernel has freed.
    alloc_id : int
        Number by which the kernel knows its memory again in other runs, or -1.
    """

    use: str
    size: int
    alloc_id: int = -1


class AllocationRecord:
    """Counters of memory by use; mixin of contexts of kernels.

    Attributes
    ----------
    allocations : list of Allocation, or None
        All allocations in order; None if the step does not track them.
    """

    __slots__ = ()
    allocations: list[Allocation] | None

    @property
    def track_allocations(self) -> bool:
        """True if the step tracks allocations."""
        return self.allocations is not None

    def set_record_memory_consumption(self, records: bool) -> None:
        """Start or stop the record; a record that is stopped is dropped."""
        if records != self.track_allocations:
            self.allocations = [] if records else None  # type: ignore[misc]  # a slot of subclasses

    def record_temp_memory_allocation(self, size: int) -> None:
        """Count temporary memory that the kernel allocated by other means than the context."""
        self._record("temp", size)

    def record_persistent_memory_allocation(self, size: int, alloc_id: int = -1) -> None:
        """Count memory that outlives the run; a negative size if the kernel has freed such memory.

        Parameters
        ----------
        size : int
            Number of bytes.
        alloc_id : int
            Number of the memory in `persistent_alloc_ids`; none by default.
        """
        self._record("persistent", size, alloc_id)

    def _record(self, use: str, size: int, alloc_id: int = -1) -> None:
        if self.allocations is not None:
            self.allocations.append(Allocation(use, size, alloc_id))

    @property
    def persistent_alloc_ids(self) -> tuple[int, ...]:
        """Numbers of the memory that outlives the run, in the order in which the kernel recorded it."""
        return tuple([a.alloc_id for a in self.allocations or () if a.alloc_id >= 0])

    @property
    def temp_memory_allocated(self) -> int:
        """Number of bytes of temporary memory."""
        return self._total("temp")

    @property
    def persistent_memory_allocated(self) -> int:
        """Number of bytes of memory that outlives the run."""
        return self._total("persistent")

    def _total(self, use: str) -> int:
        return sum(a.size for a in self.allocations or () if a.use == use)

    def clear_recorded_memory(self) -> None:
        """Set all counters to zero."""
        if self.allocations is not None:
            self.allocations.clear()
