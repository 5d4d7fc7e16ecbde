"""`cyxla.print`: messages at run time."""

from __future__ import annotations

import builtins
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cyxla.errors import DTypeError, InvalidArgumentError
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, value_of
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.tracing.trace import current, require_current, user_line
from cyxla.numpy.tracing.user_program.api_boundary import api_boundary
from cyxla.numpy.tracing.user_program.texts import Field
from cyxla.types import Shape
from cyxla.xla.evaluator.targets.printing import ARRAY, NUMBER, PRINT, SCALAR, SIZED, build_value, format_message
from cyxla.xla.hlo.builder import functions as xla

_CONSTANTS = (str, int, float, bool, type(None))


@api_boundary
def print(fmt: Any, /, *values: Any, **named: Any) -> None:
    """Print a message when the function runs, not when it is traced.

    In a traced function the values are printed by every run, in loops by every iteration, in the order of the program.
    Outside of traced functions the message is printed at once. Derivatives print what their function prints, and twice
    within `checkpoint`.

    Parameters
    ----------
    fmt : str
        Format, as of `str.format`: ``"loss {:.3f} of {name}"``. Any other value is printed by itself.
    *values, **named
        Values to insert: arrays, numbers, and lists, tuples and dicts of them; other objects are converted to text
        when the function is traced.

    Raises
    ------
    IndexError, KeyError, ValueError, TypeError
        The format does not fit the values, as for `str.format`; a traced function raises it while it is traced.

    Examples
    --------
    >>> import numpy as np
    >>> from cyxla import jit
    >>> @jit
    ... def norm(x):
    ...     total = (x * x).sum()
    ...     print("sum of squares: {:.1f}", total)
    ...     return np.sqrt(total)
    >>> norm(np.array([3.0, 4.0]))
    sum of squares: 25.0
    np.float64(5.0)
    """
    if not isinstance(fmt, str):
        fmt, values = "{}", (fmt, *values)
        if len(values) > 1 or named:
            raise InvalidArgumentError(
                "print: the first argument must be a format if there are others",
                where=user_line(), hint='such as cyxla.print("{} {}", x, y)',
            )  # fmt: skip
    if current() is None:
        builtins.print(format_message(fmt, values, named))
        return
    message = _Message()
    parts = [message.describe(v) for v in values]
    named_parts = {name: message.describe(v) for name, v in named.items()}
    stand_ins = iter([np.broadcast_to(np.zeros((), a.dtype), a.shape) for a in message.arrays])
    format_message(
        fmt, [build_value(p, stand_ins) for p in parts], {n: build_value(p, stand_ins) for n, p in named_parts.items()}
    )
    _emit(message, {"format": fmt, "values": parts, "named": named_parts})


def _emit(message: _Message, config: dict[str, Any]) -> None:
    operands = [value_of(a) for a in message.arrays]
    trace = require_current()
    xla.custom_call(trace.builder, PRINT, operands, Shape.tuple([]), json.dumps(config), has_side_effect=True)


def print_pieces(pieces: Sequence[str | Field], end: str) -> None:
    """Print a text with traced values when the function runs, as the built-in function does."""
    message = _Message()
    values = [message.describe(p.value) for p in pieces if isinstance(p, Field)]
    texts = [
        p.replace("{", "{{").replace("}", "}}")
        if isinstance(p, str)
        else f"{{{p.conversion}{':' if p.spec else ''}{p.spec}}}"
        for p in pieces
    ]
    require_current().program.prints = True
    _emit(message, {"format": "".join(texts), "values": values, "named": {}, "end": end})


class _Message:
    """Values of a message, described for its custom call, and their arrays."""

    def __init__(self) -> None:
        self.arrays: list[TracedArray] = []

    def describe(self, value: Any) -> Mapping[str, Any]:
        """Return the description of a value; see `cyxla.xla.evaluator.targets.printing`."""
        kind = type(value)
        if kind in _CONSTANTS:
            return {"constant": value}
        if kind in (list, tuple):
            return {kind.__name__: [self.describe(v) for v in value]}
        if kind is dict and all(type(k) in _CONSTANTS for k in value):
            return {"dict": [(k, self.describe(v)) for k, v in value.items()]}
        if isinstance(value, SizedArray):
            self.arrays += [value.padded, value.count]
            return {SIZED: value.axis}
        if not isinstance(value, (TracedArray, np.ndarray, np.generic, complex)):
            return {"constant": str(value)}
        try:
            array = as_traced(value)
        except DTypeError:
            return {"constant": str(value)}
        self.arrays.append(array)
        return {_kind_of(array): None}


def _kind_of(array: TracedArray) -> str:
    if array.ndim or array.rank0 is Rank0.ARRAY:
        return ARRAY
    return NUMBER if array.weak or array.rank0 is Rank0.PYTHON else SCALAR
