"""Record of the memory that a run of a kernel allocates."""

from __future__ import annotations


class AllocationRecord:
    """Counters of memory by use; mixin of contexts of kernels.

    Attributes
    ----------
    allocations : list of (str, int), or None
        Uses and sizes in bytes of all allocations; None if the step does not track them.
    """

    __slots__ = ()
    allocations: list[tuple[str, int]] | None

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

    def record_persistent_memory_allocation(self, size: int) -> None:
        """Count memory that outlives the run; a negative size if the kernel has freed such memory."""
        self._record("persistent", size)

    def _record(self, use: str, size: int) -> None:
        if self.allocations is not None:
            self.allocations.append((use, size))

    @property
    def temp_memory_allocated(self) -> int:
        """Number of bytes of temporary memory."""
        return self._total("temp")

    @property
    def persistent_memory_allocated(self) -> int:
        """Number of bytes of memory that outlives the run."""
        return self._total("persistent")

    def _total(self, use: str) -> int:
        return sum(size for name, size in self.allocations or () if name == use)

    def clear_recorded_memory(self) -> None:
        """Set all counters to zero."""
        if self.allocations is not None:
            self.allocations.clear()
