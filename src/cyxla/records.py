"""`dataclass` whose methods are written when a class is first used.

Writing the methods of one class takes `dataclasses` about a millisecond, and a process uses half of the classes that it
imports. The classes are dataclasses in every respect: `fields`, `replace`, subclasses, copies and pickles find complete
ones. Type checkers see the function of `dataclasses`.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cyxla.forking import new_lock

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, **options):
        """Make a class a dataclass, like `dataclasses.dataclass`; at once if its methods cannot be written later."""
        if cls is None:
            return lambda cls: dataclass(cls, **options)
        return _deferred(cls, options) if _is_deferrable(cls, options) else dataclasses.dataclass(**options)(cls)


__all__ = ["dataclass"]

_FIELDS = "__dataclass_fields__"
_OPTIONS = frozenset({"frozen", "eq", "repr"})
# Methods and attributes of a class that are there from its beginning, or that decide on its other methods.
_AT_ONCE = frozenset({"__init__", "__new__", "__setstate__", "__slots__", "__setattr__", "__delattr__"})

_lock = new_lock()


def _is_deferrable(cls: type, options: dict[str, Any]) -> bool:
    return options.keys() <= _OPTIONS and not cls.__dict__.keys() & _AT_ONCE


def _deferred(cls: Any, options: dict[str, Any]) -> Any:
    """Put methods and attributes in place that complete the class."""

    def complete() -> None:
        with _lock:
            if cls.__dict__["__init__"] is first_init:
                _complete(cls, **options)
                del cls.__setstate__  # last: copies in other threads wait for the lock until then

    def first_init(self: Any, *args: Any, **kwargs: Any) -> None:
        complete()
        cls.__init__(self, *args, **kwargs)

    def setstate(self: Any, state: dict[str, Any]) -> None:  # of a copy or pickle, which calls no __init__
        complete()
        self.__dict__.update(state)

    cls.__init__ = first_init
    cls.__setstate__ = setstate
    cls.__signature__ = _Deferred(complete, inspect.signature)
    setattr(cls, _FIELDS, _Deferred(complete, lambda owner: getattr(owner, _FIELDS)))
    if cls.__doc__ is None:
        cls.__doc__ = cls.__name__  # in place of the signature, which takes long to write
    return cls


class _Deferred:
    """Attribute of an incomplete class.

    Parameters
    ----------
    complete : callable
        Function that completes the class.
    value : callable
        Function that returns the attribute of the complete class.
    """

    def __init__(self, complete: Callable[[], None], value: Callable[[type], Any]) -> None:
        self.complete, self.value = complete, value

    def __get__(self, instance: object, owner: type) -> Any:
        self.complete()
        return self.value(owner)


def _complete(cls: Any, *, frozen: bool = False, **options: bool) -> None:
    """Write the methods, ``__init__`` last: until then, other threads that create an instance wait for the lock."""
    del cls.__signature__
    dataclasses.dataclass(init=False, frozen=frozen, **options)(cls)
    fields = [
        (f.name, f.type, dataclasses.field(default=f.default, default_factory=f.default_factory, init=f.init))
        for f in dataclasses.fields(cls)
    ]
    rest = {"__post_init__": None} if hasattr(cls, "__post_init__") else {}
    twin = dataclasses.make_dataclass(cls.__name__, fields, namespace=rest, frozen=frozen, eq=False, repr=False)
    init = vars(twin)["__init__"]
    init.__module__, init.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"
    cls.__init__ = init
