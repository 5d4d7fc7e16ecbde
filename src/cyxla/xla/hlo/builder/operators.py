"""Python's operators on XlaOps; each is a function of `cyxla.xla.hlo.builder.functions`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cyxla.xla.hlo.builder.xla_builder import XlaOp

#: Builder functions by name; `functions`, which the package imports, fills the table.
FUNCTIONS: dict[str, Callable[..., XlaOp]] = {}


def _call(name: str, *args: Any) -> XlaOp:
    return FUNCTIONS[name](*args)


class Operators:
    """Operators on values, and on Python and NumPy scalars, which get the element type of the other operand.

    ``==`` and ``!=`` compare handles, as for any Python object; `eq` and `ne` compare values. ``%`` is HLO's remainder
    (the sign of the dividend) and ``/`` on integers truncates. ``>>`` is arithmetic for signed and logical for unsigned
    integers.
    """

    __slots__ = ()

    # fmt: off
    def __add__(self, other: Any) -> XlaOp:       return _call("add", self, other)
    def __radd__(self, other: Any) -> XlaOp:      return _call("add", other, self)
    def __sub__(self, other: Any) -> XlaOp:       return _call("subtract", self, other)
    def __rsub__(self, other: Any) -> XlaOp:      return _call("subtract", other, self)
    def __mul__(self, other: Any) -> XlaOp:       return _call("multiply", self, other)
    def __rmul__(self, other: Any) -> XlaOp:      return _call("multiply", other, self)
    def __truediv__(self, other: Any) -> XlaOp:   return _call("divide", self, other)
    def __rtruediv__(self, other: Any) -> XlaOp:  return _call("divide", other, self)
    def __mod__(self, other: Any) -> XlaOp:       return _call("remainder", self, other)
    def __rmod__(self, other: Any) -> XlaOp:      return _call("remainder", other, self)
    def __pow__(self, other: Any) -> XlaOp:       return _call("power", self, other)
    def __rpow__(self, other: Any) -> XlaOp:      return _call("power", other, self)
    def __and__(self, other: Any) -> XlaOp:       return _call("and_", self, other)
    def __rand__(self, other: Any) -> XlaOp:      return _call("and_", other, self)
    def __or__(self, other: Any) -> XlaOp:        return _call("or_", self, other)
    def __ror__(self, other: Any) -> XlaOp:       return _call("or_", other, self)
    def __xor__(self, other: Any) -> XlaOp:       return _call("xor", self, other)
    def __rxor__(self, other: Any) -> XlaOp:      return _call("xor", other, self)
    def __lshift__(self, other: Any) -> XlaOp:    return _call("shift_left", self, other)
    def __rlshift__(self, other: Any) -> XlaOp:   return _call("shift_left", other, self)
    def __rshift__(self, other: Any) -> XlaOp:    return _call("shift_right", self, other)
    def __rrshift__(self, other: Any) -> XlaOp:   return _call("shift_right", other, self)
    def __matmul__(self, other: Any) -> XlaOp:    return _call("matmul", self, other)
    def __neg__(self) -> XlaOp:                   return _call("negate", self)
    def __invert__(self) -> XlaOp:                return _call("not_", self)
    def __abs__(self) -> XlaOp:                   return _call("abs_", self)
    def __lt__(self, other: Any) -> XlaOp:        return _call("lt", self, other)
    def __le__(self, other: Any) -> XlaOp:        return _call("le", self, other)
    def __gt__(self, other: Any) -> XlaOp:        return _call("gt", self, other)
    def __ge__(self, other: Any) -> XlaOp:        return _call("ge", self, other)
    def __getitem__(self, key: Any) -> XlaOp:     return _call("static_index", self, key)
    # fmt: on

    __iter__ = None  # not a sequence: indexing never ends

    def eq(self, other: Any) -> XlaOp:
        """Return a pred: elements are equal."""
        return _call("eq", self, other)

    def ne(self, other: Any) -> XlaOp:
        """Return a pred: elements differ."""
        return _call("ne", self, other)

    def lt(self, other: Any) -> XlaOp:
        """Return a pred: elements are less than the other's."""
        return _call("lt", self, other)

    def le(self, other: Any) -> XlaOp:
        """Return a pred: elements are at most the other's."""
        return _call("le", self, other)

    def gt(self, other: Any) -> XlaOp:
        """Return a pred: elements are greater than the other's."""
        return _call("gt", self, other)

    def ge(self, other: Any) -> XlaOp:
        """Return a pred: elements are at least the other's."""
        return _call("ge", self, other)
