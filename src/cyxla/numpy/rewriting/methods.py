"""Methods of the user's classes, which Python calls itself for operators, properties and statements such as `with`.

No rewritten code names these calls, so while a function is traced its classes have rewritten methods. Outside of
traces, as in other threads, these do what the plain ones do.
"""

from __future__ import annotations

import threading
from abc import ABCMeta
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any, Final, NamedTuple

from cyxla.forking import call_in_child, new_lock
from cyxla.numpy.rewriting.functions import recorded_method
from cyxla.numpy.rewriting.rewritten_code import is_defined_by_trace
from cyxla.numpy.rewriting.syntax.scopes import is_user_function
from cyxla.numpy.state.scope import outside_values
from cyxla.numpy.tracing.hooks import hooks

#: Methods that run where no state of a program counts, or that decide how all others are found.
_SKIPPED: Final = frozenset({
    "__new__", "__hash__", "__del__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__copy__",
    "__deepcopy__", "__sizeof__", "__dir__", "__getattribute__", "__setattr__", "__delattr__", "__init_subclass__",
    "__class_getitem__", "__set_name__", "__subclasshook__",
})  # fmt: skip
_METACLASSES: Final = (type, ABCMeta)
_LOCAL = threading.local()
_lock = new_lock()


class _Use(NamedTuple):
    """Use of a class by threads that trace.

    Attributes
    ----------
    threads : list of int
        Threads.
    methods : dict of str to (object, object)
        Methods as the class defines them, and as they are rewritten.
    """

    threads: list[int]
    methods: dict[str, tuple[Any, Any]]


_uses: dict[type, _Use] = {}


@contextmanager
def methods_rewritten(package: str) -> Iterator[None]:
    """Rewrite the methods of the classes that are adopted within a context.

    Parameters
    ----------
    package : str
        Package of the function that is traced, whose classes are the user's even if they are installed.
    """
    classes: set[type] = set()
    stack = _LOCAL.__dict__.setdefault("stack", [])
    stack.append((classes, package))
    try:
        yield
    finally:
        stack.pop()
        for kind in classes:
            _release(kind)


def adopt(kind: type) -> None:
    """Rewrite the methods of a class, and of its bases, that Python calls itself, until the trace ends."""
    stack = getattr(_LOCAL, "stack", ())
    if not stack or kind in stack[-1][0]:
        return
    classes, package = stack[-1]
    outside = outside_values()
    if outside is not None:
        outside.watch_class(kind)
    for base in kind.__mro__:
        if base not in classes and type(base) in _METACLASSES:
            classes.add(base)
            _begin_use(base, package)
            for member in list(vars(base).values()):
                if isinstance(getattr(type(member), "__get__", None), FunctionType):
                    adopt(type(member))


def _begin_use(kind: type, package: str) -> None:
    with _lock:
        use = _uses.setdefault(kind, _Use([], {}))
        use.threads.append(threading.get_ident())
        if len(use.threads) > 1:
            return
        for name, value in list(vars(kind).items()):
            made = _rewritten(name, value, package)
            if made is not value:
                use.methods[name] = value, made
                setattr(kind, name, made)


def _rewritten(name: str, value: Any, package: str) -> Any:
    """Return the rewritten method of a class, if Python calls it itself; other members as they are."""
    if type(value) is property:
        parts: tuple[Any, ...] = (value.fget, value.fset, value.fdel)
        made: tuple[Any, ...] = tuple([recorded_method(f) if is_user_function(f, package) else f for f in parts])
        return value if made == parts else property(made[0], made[1], made[2], value.__doc__)
    is_special = name.startswith("__") and name.endswith("__") and name not in _SKIPPED
    return recorded_method(value) if is_special and is_user_function(value, package) else value


def members_of(kind: type) -> dict[str, Any]:
    """Return the attributes of a class without its bases, as the user has defined them; none if a trace defines it."""
    with _lock:
        use = _uses.get(kind)
        rewritten_methods = {} if use is None else use.methods
        members = dict(vars(kind))
    for name, (value, made) in rewritten_methods.items():
        if members.get(name) is made:
            members[name] = value
    return {} if any(is_defined_by_trace(value) for value in members.values()) else members


def _release(kind: type) -> None:
    with _lock:
        _uses[kind].threads.remove(threading.get_ident())
        _end_unused(kind)


def _end_unused(kind: type) -> None:
    """Give a class its own methods back that no thread uses any more."""
    if _uses[kind].threads:
        return
    for name, (value, made) in _uses.pop(kind).methods.items():
        if vars(kind).get(name) is made:
            setattr(kind, name, value)


def _keep_own_uses() -> None:
    """Drop the uses of a forked child's classes by threads that only the parent has."""
    own = threading.get_ident()
    for kind, use in list(_uses.items()):
        use.threads[:] = [t for t in use.threads if t == own]
        _end_unused(kind)


call_in_child(_keep_own_uses)
hooks.adopt_class = adopt
hooks.members_of = members_of
