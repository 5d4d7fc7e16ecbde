"""Maps from tensors to tensors as immutable values: an insertion returns a new map."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from cyxla.core.framework.op_kernel_context import as_value
from cyxla.errors import InvalidArgumentError

Array = np.ndarray[Any, Any]
_SHOWN = 100  # elements of a key in an error message


class TensorMap:
    """Immutable map of tensors; keys are equal if they have the same type, shape and bytes.

    Parameters
    ----------
    entries : iterable of (ndarray, ndarray)
        Keys and values.
    """

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[tuple[Array, Array]] = ()) -> None:
        self._entries: dict[Hashable, tuple[Array, Array]] = {_key_of(key): (key, value) for key, value in entries}

    @property
    def size(self) -> int:
        """Number of keys."""
        return len(self._entries)

    @property
    def keys(self) -> list[Array]:
        """Keys in the order of insertion."""
        return [key for key, _ in self._entries.values()]

    def __repr__(self) -> str:
        return f"TensorMap({self.size} keys)"

    def has(self, key: Array) -> bool:
        """Return True if the map has a key."""
        return _key_of(key) in self._entries

    def look_up(self, key: Array) -> Array:
        """Return the value of a key.

        Raises
        ------
        InvalidArgumentError
            The map does not have the key.
        """
        entry = self._entries.get(_key_of(key))
        if entry is None:
            raise InvalidArgumentError(f'Trying to lookup non-existent key. Could not find key "{_text(key)}".')
        return entry[1]

    def insert(self, key: Array, value: Array) -> TensorMap:
        """Return the map with the value of a key set."""
        return self._with({**self._entries, _key_of(key): (key, value)})

    def erase(self, key: Array) -> TensorMap:
        """Return the map without a key.

        Raises
        ------
        InvalidArgumentError
            The map does not have the key.
        """
        if not self.has(key):
            raise InvalidArgumentError(f'Trying to erase non-existent item. Could not find key "{_text(key)}".')
        entries = dict(self._entries)
        del entries[_key_of(key)]
        return self._with(entries)

    def zeros_like(self) -> TensorMap:
        """Return the map with zeros for all values."""
        return TensorMap((key, _zeros(value)) for key, value in self._entries.values())

    def add(self, other: TensorMap) -> TensorMap:
        """Return the map with the values of both; those of common keys are added."""
        entries = dict(self._entries)
        for name, (key, value) in other._entries.items():
            mine = entries.get(name)
            entries[name] = (key, value if mine is None else _sum(mine[1], value))
        return self._with(entries)

    @staticmethod
    def _with(entries: dict[Hashable, tuple[Array, Array]]) -> TensorMap:
        made = TensorMap()
        made._entries = entries
        return made


def _key_of(key: Array) -> Hashable:
    return (key.dtype.str, key.shape, tuple(key.flat) if key.dtype.hasobject else key.tobytes())


def _text(key: Array) -> str:
    return " ".join(_item_text(item) for item in key.flat[:_SHOWN])


def _item_text(item: Any) -> str:
    if isinstance(item, bytes):
        return item.decode("utf-8", "replace")
    return f"{item:g}" if isinstance(item, np.floating) else str(item)


def _zeros(value: Array) -> Array:
    if not value.dtype.hasobject:
        return np.zeros_like(value)
    nested = value.item() if value.size == 1 else None
    return as_value(nested.zeros_like()) if isinstance(nested, TensorMap) else value


def _sum(a: Array, b: Array) -> Array:
    if a.shape != b.shape or a.dtype != b.dtype:
        raise InvalidArgumentError(
            f"values of {a.dtype}{list(a.shape)} and of {b.dtype}{list(b.shape)} cannot be added"
        )
    if a.dtype.hasobject:
        x, y = (unwrap_map(v) for v in (a, b))
        return as_value(x.add(y))
    with np.errstate(all="ignore"):
        return np.asarray(a + b)


def unwrap_map(handle: Array) -> TensorMap:
    """Return the map held by a variant.

    Raises
    ------
    InvalidArgumentError
        It holds something else, or the handle is not a scalar.
    """
    if handle.ndim:
        raise InvalidArgumentError(f"Input map must be a scalar saw: {list(handle.shape)}")
    value = handle.item()
    if not isinstance(value, TensorMap):
        raise InvalidArgumentError(f"Input handle is not a map. Saw: '{type(value).__name__}'")
    return value
