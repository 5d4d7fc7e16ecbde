"""XLA kernels of libraries in C, until the package that compiles graphs registers them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cyxla.core.framework.registration_batch import current_batch
from cyxla.core.framework.types import DataType
from cyxla.errors import AlreadyExistsError
from cyxla.forking import new_lock

if TYPE_CHECKING:  # loaded with the first library
    from cyxla.core.framework.plugins.interface import XlaKernel
    from cyxla.core.framework.plugins.shape_functions import NativeShapeFunction


@dataclass(frozen=True, eq=False)
class NativeXlaKernelRow:
    """An XLA kernel of a library.

    Attributes
    ----------
    op : str
        Name of the op.
    types : dict of tuples of DataType
        Types that the kernel supports, by type attribute.
    constants : tuple of str
        Inputs that must be known at compile time.
    row : XlaKernel
        Row of the library.
    shape_function : NativeShapeFunction or None
        Shape function of the op, if it is in the same library.
    library : object
        Library, which is kept alive.
    """

    op: str
    types: dict[str, tuple[DataType, ...]]
    constants: tuple[str, ...]
    row: XlaKernel
    shape_function: NativeShapeFunction | None
    library: Any


class NativeXlaKernels:
    """Registry of the XLA kernels of libraries, one for each op.

    Attributes
    ----------
    pending : list of NativeXlaKernelRow
        Kernels that were not taken yet.
    """

    rank = 3

    def __init__(self) -> None:
        self.lock = new_lock()
        self.pending: list[NativeXlaKernelRow] = []
        self._ops: set[str] = set()

    def register(self, row: NativeXlaKernelRow) -> None:
        """Add a kernel to the batch of the library that is being loaded."""
        batch = current_batch()
        if batch is None:
            with self.lock:
                self.check_staged([row])
                self.publish([row])
        else:
            batch.stage(self, list).append(row)

    def check_staged(self, staged: list[NativeXlaKernelRow]) -> None:
        """Raise AlreadyExistsError if an op gets a second kernel."""
        ops = set(self._ops)
        for row in staged:
            if row.op in ops:
                raise AlreadyExistsError(f"op {row.op} already has an XLA kernel of a library")
            ops.add(row.op)

    def publish(self, staged: list[NativeXlaKernelRow]) -> None:
        """Add the kernels of a batch."""
        self._ops.update(row.op for row in staged)
        self.pending += staged

    def take(self) -> list[NativeXlaKernelRow]:
        """Remove and return the pending kernels."""
        with self.lock:
            taken, self.pending = self.pending, []
        return taken


XLA_KERNELS = NativeXlaKernels()
