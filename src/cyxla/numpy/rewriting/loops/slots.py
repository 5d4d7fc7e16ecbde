"""Parts of the state of a loop."""

from __future__ import annotations

from typing import Any

from cyxla.numpy.rewriting.loops.plans import is_shared_array
from cyxla.numpy.rewriting.parts.parts import Leaves
from cyxla.numpy.rewriting.parts.unbound import Unbound
from cyxla.numpy.tracing.arrays.traced_array import Doubt, TracedArray
from cyxla.numpy.tracing.results.promotion import Kind
from cyxla.numpy.tracing.user_program.classes import class_of
from cyxla.numpy.tracing.user_program.doubts import doubt_of
from cyxla.records import dataclass
from cyxla.xla.hlo.builder import XlaOp

FLAG, DOUBT = -2, -3  # leaves of parts that are no values


@dataclass(eq=False)
class Slot:
    """Part of a loop's state.

    Attributes
    ----------
    init : TracedArray
        Value before the loop.
    parameter : TracedArray
        Value before an iteration.
    variable, leaf : int
        Variable and its leaf. Both are -1 for an array that is written; the leaf is -2 for whether the variable is
        unbound.
    op : XlaOp, optional
        Value after an iteration.
    before : TracedArray, optional
        Array that the variable has before the loop, which `init` is a value of.
    begins_untraced, ends_untraced : bool
        Whether the variable has, or may have, an array that is not traced: before the loop, after an iteration.
    is_kept : bool
        Whether an iteration leaves the same array in its place, which it may write.
    doubt : Slot, optional
        Part that tells whether a number has another class than the parameter; its own leaf is -3.
    is_mixed : bool
        Whether it is a number of Python or of NumPy by the values after an iteration.
    """

    init: TracedArray
    parameter: TracedArray
    variable: int = -1
    leaf: int = -1
    op: XlaOp | None = None
    before: TracedArray | None = None
    begins_untraced: bool = False
    ends_untraced: bool = False
    is_kept: bool = False
    doubt: Slot | None = None
    is_mixed: bool = False

    @property
    def kind(self) -> Kind:
        """Type before an iteration."""
        return self.parameter.kind

    @property
    def is_array(self) -> bool:
        """True for an array that a variable has, to which a write is seen by all who have it."""
        return self.variable >= 0 and not self.is_flag and is_shared_array(self.parameter)

    @property
    def is_flag(self) -> bool:
        """True for the part that tells whether a variable is unbound."""
        return self.leaf == FLAG

    @property
    def is_value(self) -> bool:
        """True for a value, or a part of one."""
        return self.leaf not in (FLAG, DOUBT)

    def doubt_before(self, value: Any) -> Doubt | None:
        """Return the doubt that a variable's value before the loop has the class that the loop gives it."""
        arrays = arrays_of(value)
        return doubt_of(arrays[self.leaf], class_of(self.parameter)) if self.leaf < len(arrays) else None


def arrays_of(value: Any) -> list[TracedArray]:
    """Return the arrays of the value of a variable."""
    return [] if isinstance(value, Unbound) else Leaves(value).arrays


def weak_class(kind: Kind) -> type | None:
    """Return the class of Python's numbers that adapt to other types, or None."""
    return kind if isinstance(kind, type) and kind is not bool else None
