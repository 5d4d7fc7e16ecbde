"""Objects from outside of a traced function that need no care; see `Outside`."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from cyxla.errors import TraceError
from cyxla.numpy.tracing.trace import user_line


class Plain:
    """Reads and writes as Python does them."""

    @staticmethod
    def read_name(value: Any, name: str) -> Any:
        """Read a global or a variable of an enclosing function."""
        return value

    @staticmethod
    def write_name(name: str, value: Any) -> None:
        """Refuse to bind such a name."""
        raise TraceError(f"{name} is bound outside of the traced function", where=user_line(), hint="return the value")

    read_attr = staticmethod(getattr)
    write_attr = staticmethod(setattr)

    @staticmethod
    def read_item(owner: Any, key: Any) -> Any:
        """Read an item."""
        return owner[key]

    @staticmethod
    def write_item(owner: Any, key: Any, value: Any) -> None:
        """Write an item."""
        owner[key] = value


def outside_of(function: FunctionType) -> Plain:
    """Return the objects from outside of a function."""
    return Plain()
