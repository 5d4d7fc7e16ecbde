"""Objects that a traced function makes of plain classes of the user, which are recorded: each run makes others."""

from __future__ import annotations

import sys
from abc import ABC, ABCMeta
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any, Final, Generic

from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.trace import current, require_current

_METACLASSES: Final = (type, ABCMeta)
_BASES: Final[tuple[Any, ...]] = (object, ABC, Generic)
#: Methods by which making, changing or dropping an object does more than to hold attributes.
_OWN_METHODS: Final = ("__new__", "__getattribute__", "__setattr__", "__delattr__")
_COPYING: Final = ("__copy__", "__deepcopy__")
_STATE: Final = ("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__")


def recording(function: Any, is_of_user: Callable[[type], bool]) -> Callable[..., Any] | None:
    """Return the function to call in the place of a plain class, or of ``object.__new__``; None for others.

    Parameters
    ----------
    function : callable
        Function or class.
    is_of_user : callable
        Function that tells whether a class is one of the user's program.
    """
    if current() is None:
        return None
    if function is object.__new__:
        return partial(_new, is_of_user)
    if isinstance(function, type) and is_plain_class(function, is_of_user):
        return partial(_call_class, function)
    return None


def _new(is_of_user: Callable[[type], bool], kind: Any, *args: Any, **kwargs: Any) -> Any:
    """Return ``object.__new__(kind)``; objects of plain classes are recorded."""
    if not isinstance(kind, type) or not is_plain_class(kind, is_of_user):
        return object.__new__(kind, *args, **kwargs)
    return _recorded(kind, args, kwargs)


def _call_class(kind: Any, *args: Any, **kwargs: Any) -> Any:
    """Make an object as ``kind(...)`` does, which its `__init__` may use already."""
    made = _recorded(kind, args, kwargs)
    found = kind.__init__(made, *args, **kwargs)
    if found is not None:
        raise TypeError(f"__init__() should return None, not {type(found).__name__!r}")
    return made


def _recorded(kind: Any, args: Any, kwargs: Any) -> Any:
    hooks.adopt_class(kind)
    made = object.__new__(kind, *args, **kwargs)
    require_current().program.created[id(made)] = made, kind
    return made


def record_copies(copies: Mapping[int, Any]) -> None:
    """Record the copies of recorded objects, by the identities of these, that no code of their classes has made."""
    trace = current()
    created = {} if trace is None else trace.program.created
    for number, (_, kind) in list(created.items()):
        made = copies.get(number)
        if type(made) is kind and not any(hasattr(kind, n) for n in _COPYING) and not _has_own(kind, _STATE):
            created[id(made)] = made, kind


def is_created(value: Any) -> bool:
    """Return True for an object that the function being traced has made, of a plain class."""
    trace = current()
    return trace is not None and id(value) in trace.program.created


def is_plain_class(kind: type, is_of_user: Callable[[type], bool]) -> bool:
    """Return True for a class of the user whose objects hold attributes alone, and which is the same at every call."""
    if type(kind) not in _METACLASSES or hasattr(kind, "__del__") or kind in _BASES:
        return False
    if _has_own(kind, _OWN_METHODS):
        return False
    return all(base in _BASES or is_of_user(base) for base in kind.__mro__) and _is_of_module(kind)


def _has_own(kind: type, names: Sequence[str]) -> bool:
    return any(getattr(kind, name, None) is not getattr(object, name, None) for name in names)


def _is_of_module(kind: type) -> bool:
    """Return True for a class that its module has under its name, which no function has defined."""
    found: Any = sys.modules.get(kind.__module__)
    for name in kind.__qualname__.split("."):
        if not isinstance(found, (ModuleType, type)):
            return False
        found = vars(found).get(name)
    return found is kind
