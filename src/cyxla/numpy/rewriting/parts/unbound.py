"""Values of local variables that have none."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, NoReturn

import numpy as np

from cyxla.numpy.tracing.arrays.traced_array import TracedArray
from cyxla.numpy.tracing.trace import Trace, require_current, resumed
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla


class Unbound:
    """Value of a local variable that is not bound, in functions whose branches and loops hand their variables over.

    Parameters
    ----------
    name : str
        Name of the variable.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def _raise(self, *_: Any, **__: Any) -> NoReturn:
        raise _error(self.name)

    def fail(self) -> NoReturn:
        """Raise Python's error for reading the variable."""
        self._raise()

    def __getattr__(self, attribute: str) -> NoReturn:
        if attribute.startswith("__array"):
            raise AttributeError(attribute)
        self._raise()

    def __repr__(self) -> str:
        return f"<unbound {self.name}>"


def _error(name: str) -> UnboundLocalError:
    return UnboundLocalError(
        f"cannot access local variable {name!r} where it is not associated with a value", name=name
    )


class PossiblyUnbound(TracedArray):
    """Value of a variable that some paths leave unbound; NumPy runs in place of runs that use it unbound.

    Parameters
    ----------
    op : XlaOp
        Value.
    weak, rank0
        Class of a number; see `TracedArray`.
    name : str
        Name of the variable.
    is_unbound : XlaOp
        pred[], whether the variable is not bound.
    """

    __slots__ = ("_checked", "_name", "is_unbound")
    may_be_unbound = True

    def __init__(self, op: XlaOp, weak: type | None, rank0: Any, name: str, is_unbound: XlaOp) -> None:
        super().__init__(op, weak, rank0=rank0)
        self._name, self.is_unbound = name, is_unbound
        self._checked: set[Trace] = set()

    @property
    def op(self) -> XlaOp:
        """Value; its use makes runs fail in which there is none."""
        self.require_bound()
        return self.unchecked_op

    @property
    def unchecked_op(self) -> XlaOp:
        """Value, for branches and loops that hand the variable over."""
        return super().op

    def require_bound(self) -> None:
        """Make runs fail in which the variable is not bound."""
        trace = require_current()
        outer: Trace | None = trace
        while outer is not None:
            if outer in self._checked:
                return
            outer = outer.parent
        self._checked.add(trace)
        name = self._name
        trace.fail_if(trace.capture(self.is_unbound), trace.constant(0, np.dtype(np.int64)), lambda _: _error(name))
        trace.program.catches = True


def unbound_flag(arrays: Sequence[TracedArray], trace: Trace) -> XlaOp | None:
    """Return whether the variable that holds these arrays is unbound, as a pred[] of a trace; None if it is bound."""
    flags = {id(a.is_unbound): trace.capture(a.is_unbound) for a in arrays if isinstance(a, PossiblyUnbound)}
    with resumed(trace):
        return reduce(xla.or_, flags.values()) if flags else None


_OPERATORS = [
    "abs",
    "add",
    "and",
    "bool",
    "call",
    "contains",
    "delitem",
    "divmod",
    "eq",
    "float",
    "floordiv",
    "ge",
    "getitem",
    "gt",
    "hash",
    "iadd",
    "imul",
    "index",
    "int",
    "invert",
    "isub",
    "iter",
    "itruediv",
    "le",
    "len",
    "lshift",
    "lt",
    "matmul",
    "mod",
    "mul",
    "ne",
    "neg",
    "next",
    "or",
    "pos",
    "pow",
    "radd",
    "rand",
    "rdivmod",
    "rfloordiv",
    "rlshift",
    "rmatmul",
    "rmod",
    "rmul",
    "ror",
    "rpow",
    "rrshift",
    "rshift",
    "rsub",
    "rtruediv",
    "rxor",
    "setitem",
    "str",
    "sub",
    "truediv",
    "xor",
]
for _name in _OPERATORS:
    setattr(Unbound, f"__{_name}__", Unbound._raise)
