"""Methods of the user's classes, which Python calls itself for operators, properties and statements such as `with`.

No rewritten code names these calls, so while a function is traced its classes have rewritten methods. Outside of traces,
as in other threads, these do what the plain ones do.
"""

from __future__ import annotations

import threading
from abc import ABCMeta
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any, Final

from cyxla.forking import call_in_child, new_lock
from cyxla.numpy.rewriting.functions import rewritten
from cyxla.numpy.tracing.hooks import hooks

#: Methods that run where no state of a program counts, or that decide how all others are found.
_SKIPPED: Final = frozenset({
    "__new__", "__hash__", "__repr__", "__str__", "__format__", "__del__", "__reduce__", "__reduce_ex__", "__getstate__",
    "__setstate__", "__copy__", "__deepcopy__", "__sizeof__", "__dir__", "__getattribute__", "__setattr__",
    "__delattr__", "__init_subclass__", "__class_getitem__", "__set_name__", "__subclasshook__",
})  # fmt: skip
_LIBRARIES: Final = ("builtins", "numpy", "scipy", "cyxla", "typing", "abc", "collections", "functools", "enum")
_METACLASSES: Final = (type, ABCMeta)
_LOCAL = threading.local()
_lock = new_lock()
_uses: dict[type, tuple[list[int], dict[str, Any]]] = {}  # for each class, the threads that use it, and its own methods


@contextmanager
def methods_rewritten() -> Iterator[None]:
    """Make the methods of classes rewritten ones that are adopted within a context."""
    classes: set[type] = set()
    stack = _LOCAL.__dict__.setdefault("stack", [])
    stack.append(classes)
    try:
        yield
    finally:
        stack.pop()
        for kind in classes:
            _release(kind)


def adopt(kind: type) -> None:
    """Rewrite the methods of a class, and of its bases, until the trace ends."""
    stack = getattr(_LOCAL, "stack", ())
    if not stack or kind in stack[-1]:
        return
    for base in kind.__mro__:
        if base not in stack[-1] and type(base) in _METACLASSES and not _is_of_library(base):
            stack[-1].add(base)
            _use(base)


def _is_of_library(kind: type) -> bool:
    return kind.__module__.partition(".")[0] in _LIBRARIES


def _use(kind: type) -> None:
    with _lock:
        threads, originals = _uses.setdefault(kind, ([], {}))
        threads.append(threading.get_ident())
        if len(threads) > 1:
            return
        for name, value in list(vars(kind).items()):
            made = value if name in _SKIPPED else _rewritten(value)
            if made is not value:
                originals[name] = value
                setattr(kind, name, made)


def _rewritten(value: Any) -> Any:
    if isinstance(value, FunctionType):
        return rewritten(value)
    if type(value) is property:
        parts = (value.fget, value.fset, value.fdel)
        made = tuple([rewritten(f) if isinstance(f, FunctionType) else f for f in parts])
        return value if made == parts else property(*made, value.__doc__)
    if type(value) in (classmethod, staticmethod):
        inner = value.__func__
        made = rewritten(inner) if isinstance(inner, FunctionType) else inner
        return value if made is inner else type(value)(made)
    return value


def _release(kind: type) -> None:
    with _lock:
        threads, originals = _uses[kind]
        threads.remove(threading.get_ident())
        if not threads:
            del _uses[kind]
            for name, value in originals.items():
                setattr(kind, name, value)


def _keep_own_uses() -> None:
    """Give classes in a forked child their own methods that only other threads of the parent used."""
    own = threading.get_ident()
    for kind, (threads, originals) in list(_uses.items()):
        threads[:] = [t for t in threads if t == own]
        if not threads:
            del _uses[kind]
            for name, value in originals.items():
                setattr(kind, name, value)


call_in_child(_keep_own_uses)
hooks.adopt_class = adopt
