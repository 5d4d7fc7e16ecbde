"""`flags` of a traced array: those of an array of the same memory layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from cyxla.errors import UnimplementedError
from cyxla.numpy.tracing.arrays.layout_reads import note_layout
from cyxla.numpy.tracing.trace import user_line

if TYPE_CHECKING:
    from cyxla.numpy.tracing.arrays.traced_array import TracedArray

_SHORT_NAMES = {
    "C": "c_contiguous", "CONTIGUOUS": "c_contiguous", "F": "f_contiguous", "FORTRAN": "f_contiguous",
    "O": "owndata", "W": "writeable", "A": "aligned", "X": "writebackifcopy", "B": "behaved", "CA": "carray",
    "FA": "farray",
}  # fmt: skip


class TracedFlags:
    """Flags of a traced array, by attribute or by name as those of NumPy's arrays; they cannot be set.

    Parameters
    ----------
    array : TracedArray
        Array that the flags are of.
    """

    __slots__ = ("_array",)

    def __init__(self, array: TracedArray) -> None:
        object.__setattr__(self, "_array", array)

    def __getattr__(self, name: str) -> Any:
        array: TracedArray = self._array
        if name == "writeable":
            return array.writeable
        if name == "owndata":
            return array.base is None
        note_layout(array)
        if name in ("behaved", "carray"):
            return array.writeable and (name == "behaved" or array.memory.flags.c_contiguous)
        return getattr(array.memory.flags, name)

    def __getitem__(self, name: str) -> Any:
        attribute = _SHORT_NAMES.get(name, name.lower())
        if name != name.upper() or not hasattr(self, attribute):
            raise KeyError("Unknown flag")
        return getattr(self, attribute)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise UnimplementedError(
            f"flags.{name} of a traced array cannot be set", where=user_line(),
            hint="set it outside of the traced function",
        )  # fmt: skip

    def __setitem__(self, name: str, value: Any) -> NoReturn:
        self.__setattr__(name.lower(), value)

    def __repr__(self) -> str:
        names = ("C_CONTIGUOUS", "F_CONTIGUOUS", "OWNDATA", "WRITEABLE", "ALIGNED", "WRITEBACKIFCOPY")
        return "".join(f"  {name} : {self[name]}\n" for name in names)
