"""Values of local variables that have none."""

from __future__ import annotations

from typing import Any, NoReturn


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
        raise UnboundLocalError(
            f"cannot access local variable {self.name!r} where it is not associated with a value", name=self.name
        )

    def fail(self) -> NoReturn:
        """Raise Python's error for reading the variable."""
        self._raise()

    def __getattr__(self, attribute: str) -> NoReturn:
        if attribute.startswith("__array"):
            raise AttributeError(attribute)
        self._raise()

    def __repr__(self) -> str:
        return f"<unbound {self.name}>"


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
