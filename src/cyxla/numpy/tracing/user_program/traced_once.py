"""Functions that are traced once in place of many calls: no call may change more than its result."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any, Final

import numpy as np

from cyxla.errors import TraceError
from cyxla.numpy.tracing.arrays.traced_array import TracedArray
from cyxla.numpy.tracing.trace import user_line
from cyxla.numpy.tracing.user_program.hidden_state import hidden_state_of

_EMPTY_CELL = object()
_LIBRARIES: Final = ("builtins", "cyxla", "numpy")


class TracedOnce:
    """Function of a vector whose trace stands for the calls with all vectors.

    Parameters
    ----------
    function : callable
        Function of the user.
    call : callable, optional
        Function that is called in its place, and that calls it.
    """

    def __init__(self, function: Callable[..., Any], call: Callable[..., Any] | None = None) -> None:
        self._function, self._call = function, function if call is None else call

    def __call__(self, vector: TracedArray, *args: Any, **kwargs: Any) -> Any:
        """Return the result for a vector.

        Raises
        ------
        TraceError
            The function wrote to the vector, or changed something that it shares with other calls.
        """
        op, states = vector.op, _states(self._function)
        result = self._call(vector, *args, **kwargs)
        written = vector.op is not op
        if written or _states(self._function) != states:
            change = "writes to its vector" if written else "changes values outside"
            raise TraceError(
                f"the function of np.apply_along_axis {change}", where=user_line(),
                hint="loop over the rows: for i in range(len(a))",
            )  # fmt: skip
        return result


def _states(function: Any) -> list[Any]:
    """Return what tells changes of the values outside of a function that it names, and of random generators."""
    if isinstance(function, MethodType):
        return [_state(function.__self__), *_states(function.__func__)]
    code = getattr(function, "__code__", None)
    if code is None:
        return []
    known = function.__globals__
    cells = [_content(cell) for cell in function.__closure__ or ()]
    return [*map(_state, cells), *[_state(known[name]) for name in code.co_names if name in known]]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _EMPTY_CELL


def _state(value: Any) -> Any:
    kind = type(value)
    if kind is list or kind is tuple:  # to iterate over others may change them
        return [id(value), *map(id, value)]
    if kind is dict:
        return [id(value), *[(id(k), id(v)) for k, v in value.items()]]
    if kind is set:
        return [id(value), len(value)]
    if isinstance(value, TracedArray):
        return [id(value), id(value.op) if value.known is None else value.known.tobytes()]
    hidden = None if isinstance(value, np.ndarray) else hidden_state_of(value)  # arrays refuse traced values
    if hidden is not None:
        return [id(value), hidden.read(value)]
    if kind.__module__.partition(".")[0] not in _LIBRARIES and type(getattr(value, "__dict__", None)) is dict:
        return [id(value), *[(name, id(v)) for name, v in vars(value).items()]]
    return id(value)


__all__ = ["TracedOnce"]
