"""What stands for an attribute of NumPy while a function is traced, and passes for it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import MethodType
from typing import Any

from cyxla.numpy.tracing.trace import current


class Proxy:
    """An object like one of NumPy's in all but identity.

    It is equal to the original, of its class as far as `isinstance` can tell, has its attributes and signature, is
    pickled and copied as the original, and may be subclassed or asked for instances where the original may.

    Parameters
    ----------
    original : object
        NumPy's.
    """

    def __init__(self, original: Any) -> None:
        self.__wrapped__ = original
        for name in ("__name__", "__qualname__", "__module__", "__doc__"):
            if hasattr(original, name):
                setattr(self, name, getattr(original, name))

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self.__wrapped__)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)

    def __dir__(self) -> list[str]:
        return dir(self.__wrapped__)

    def __eq__(self, other: object) -> bool:
        return other is self or other is self.__wrapped__

    def __hash__(self) -> int:
        return hash(self.__wrapped__)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)

    def __reduce__(self) -> Any:
        # The thread that traces finds the stand-in under the name; the others find the original.
        return self.__name__ if current() is not None else (copy.copy, (self.__wrapped__,))

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, self.__wrapped__)

    def __subclasscheck__(self, subclass: type) -> bool:
        return issubclass(subclass, self.__wrapped__)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[Any, ...]:
        return (self.__wrapped__,)

    def __or__(self, other: Any) -> Any:
        return self.__wrapped__ | other

    def __ror__(self, other: Any) -> Any:
        return other | self.__wrapped__


class CallableProxy(Proxy):
    """Something that is called instead of one of NumPy's functions or classes.

    Parameters
    ----------
    original : callable
        NumPy's.
    call : callable
        What a call does in the thread that traces; its caller's caller is the program.
    """

    def __init__(self, original: Callable[..., Any], call: Callable[..., Any]) -> None:
        super().__init__(original)
        self._call = call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call what stands in, in the thread that traces."""
        return self.__wrapped__(*args, **kwargs) if current() is None else self._call(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Become a method of a class where the original would."""
        binds = hasattr(type(self.__wrapped__), "__get__")
        return self if instance is None or not binds else MethodType(self, instance)
