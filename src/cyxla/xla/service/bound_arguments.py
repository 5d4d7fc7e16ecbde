"""Bound arguments: their validation, and private copies of their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cyxla import config
from cyxla._native import arguments
from cyxla.errors import InvalidArgumentError

if TYPE_CHECKING:
    from cyxla.types import Shape

ALIGNMENT: Final = 64  # bytes of a cache line; a vector load that crosses two lines costs twice


def check_bound(
    arguments_by_key: Mapping[int | str, Any], names: Sequence[str], shapes: Sequence[Shape]
) -> dict[int, Any]:
    """Return the bound arguments by number, converted to the types that the program declares.

    Parameters
    ----------
    arguments_by_key : mapping of int or str to arrays
        Values by argument number, or by parameter name with or without a leading ``%``.
    names : sequence of str
        Names of the parameters.
    shapes : sequence of Shape
        Shapes of the parameters.

    Raises
    ------
    InvalidArgumentError
        An argument does not exist, is bound twice, or does not match its parameter.
    """
    fixed = by_number(arguments_by_key, names)
    return {k: _conform(v, shapes[k], _argument_text(k, names)) for k, v in fixed.items()}


def _argument_text(number: int, names: Sequence[str]) -> str:
    return f"bound argument {number} ({names[number]})" if names[number] else f"bound argument {number}"


def by_number(arguments_by_key: Mapping[int | str, Any], names: Sequence[str]) -> dict[int, Any]:
    """Return the bound arguments by number, as they are; see `check_bound`."""
    found: dict[int, Any] = {}
    for key, value in arguments_by_key.items():
        number = _number(key, names)
        if number in found:
            raise InvalidArgumentError(f"argument {number} ({names[number]}) is bound twice")
        found[number] = value
    return found


def _number(key: int | str, names: Sequence[str]) -> int:
    if isinstance(key, str):
        name = key.removeprefix("%")
        if not name or name not in names:
            hint = config.nearest(name, dict.fromkeys(names))
            raise InvalidArgumentError(f"there is no argument {key!r} to bind", hint=hint)
        return names.index(name)
    number = key.__index__() if hasattr(key, "__index__") else -1
    if not 0 <= number < len(names):
        choices = f"arguments are 0 to {len(names) - 1}" if names else "the program takes none"
        raise InvalidArgumentError(f"there is no argument {key} to bind", hint=choices)
    return number


def _conform(value: Any, shape: Shape, where: str) -> Any:
    if shape.is_tuple:
        if not isinstance(value, (tuple, list)) or len(value) != len(shape.elements):
            description, num_elements = arguments.describe(value), len(shape.elements)
            raise InvalidArgumentError(f"{where}: got {description}, want a tuple of {num_elements}")
        parts = zip(value, shape.elements, strict=True)
        return tuple([_conform(v, s, f"{where}[{k}]") for k, (v, s) in enumerate(parts)])
    if shape.dtype.numpy_dtype is None:
        return value  # a token
    dims = np.shape(value) if shape.is_dynamic else shape.dims
    return arguments.convert(value, shape.dtype.numpy_dtype, dims, where)


def private_copy(value: Any) -> Any:
    """Copy the arrays of an argument, so that later changes by the caller have no effect."""
    if isinstance(value, tuple):
        return tuple([private_copy(v) for v in value])
    return aligned_copy(value) if isinstance(value, np.ndarray) else value


def aligned_copy(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a read-only copy of an array whose memory begins at a cache line."""
    memory = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    offset = -memory.ctypes.data % ALIGNMENT
    copy: np.ndarray[Any, Any] = memory[offset : offset + array.nbytes].view(array.dtype).reshape(array.shape)
    np.copyto(copy, array)
    copy.flags.writeable = False
    return copy
