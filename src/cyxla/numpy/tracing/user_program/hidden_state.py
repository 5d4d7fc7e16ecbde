"""State of objects that is in neither attributes nor items: buffers, generators, streams of random numbers, files.

A side of a branch or a pass over a loop's body must not change it for good. It is compared and, where its class can do
that, restored as a whole.
"""

from __future__ import annotations

import pickle
import random
from array import array
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from functools import lru_cache
from io import BytesIO, StringIO
from types import GeneratorType, MemberDescriptorType
from typing import Any, NamedTuple

import numpy as np


class HiddenState(NamedTuple):
    """Functions that read and write the state of the objects of one class.

    Attributes
    ----------
    read : callable
        Function from an object to a state, which can be compared.
    write : callable, optional
        Function that gives an object a state; None if it cannot be changed.
    """

    read: Callable[[Any], Any]
    write: Callable[[Any, Any], None] | None = None


class _Identities:
    """Objects that are compared by identity.

    Parameters
    ----------
    values : iterable
        Objects.
    """

    def __init__(self, values: Iterable[Any]) -> None:
        self.values = list(values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Identities) or len(self.values) != len(other.values):
            return False
        return all(a is b for a, b in zip(self.values, other.values, strict=True))

    __hash__ = None  # type: ignore[assignment]


def _read_array(value: Any) -> Any:
    elements = _Identities(value.ravel().tolist()) if value.dtype.hasobject else value.tobytes()
    return elements, np.ma.getmaskarray(value).tobytes() if isinstance(value, np.ma.MaskedArray) else b"", value.shape


def _read_generator(value: Any) -> Any:
    frame = value.gi_frame
    if frame is None or value.gi_running:
        return None
    return frame.f_lasti, _Identities(frame.f_locals.values())


def _read_file(value: Any) -> Any:
    return None if value.closed else (value.getvalue(), value.tell())


def _write_file(value: Any, state: Any) -> None:
    content, position = state
    value.seek(0)
    value.truncate()
    value.write(content)
    value.seek(position)


def _write_bytes(value: Any, state: bytes) -> None:
    del value[:]
    value.frombytes(state)


def _set_bit_generator(value: Any, state: bytes) -> None:
    value.state = pickle.loads(state)


_STATES: dict[type, HiddenState] = {
    np.ndarray: HiddenState(_read_array),
    bytearray: HiddenState(bytes, lambda v, state: v.__setitem__(slice(None), state)),
    array: HiddenState(lambda v: v.tobytes(), _write_bytes),
    np.random.RandomState: HiddenState(
        lambda v: pickle.dumps(v.get_state(legacy=False)), lambda v, state: v.set_state(pickle.loads(state))
    ),
    np.random.Generator: HiddenState(
        lambda v: pickle.dumps(v.bit_generator.state), lambda v, state: _set_bit_generator(v.bit_generator, state)
    ),
    np.random.BitGenerator: HiddenState(lambda v: pickle.dumps(v.state), _set_bit_generator),
    random.Random: HiddenState(lambda v: v.getstate(), lambda v, state: v.setstate(state)),
    StringIO: HiddenState(_read_file, _write_file),
    BytesIO: HiddenState(_read_file, _write_file),
    GeneratorType: HiddenState(_read_generator),
    BaseException: HiddenState(lambda v: _Identities(v.args), lambda v, state: setattr(v, "args", tuple(state.values))),
    ContextVar: HiddenState(lambda v: _Identities([v.get(None)]), lambda v, state: v.set(*state.values)),
}  # fmt: skip


def hidden_state_of(value: Any) -> HiddenState | None:
    """Return how to read and write the hidden state of an object; None if it has none."""
    bases: Any = type(value).__mro__
    return _state_of_class(bases)


@lru_cache(maxsize=1024)
def _state_of_class(bases: tuple[type, ...]) -> HiddenState | None:
    return next((_STATES[base] for base in bases if base in _STATES), None)


def slots_of(value: Any) -> dict[str, MemberDescriptorType]:
    """Return the attributes of an object that the `__slots__` of its class declare, by name."""
    bases: Any = type(value).__mro__
    return _slots_of_class(bases)


@lru_cache(maxsize=1024)
def _slots_of_class(bases: tuple[type, ...]) -> dict[str, MemberDescriptorType]:
    return {
        name: value
        for base in reversed(bases)
        if "__slots__" in vars(base)
        for name, value in vars(base).items()
        if isinstance(value, MemberDescriptorType)
    }
