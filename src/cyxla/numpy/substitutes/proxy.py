"""Transparent proxies for attributes of NumPy, used while a function is traced."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import MethodType
from typing import Any

from cyxla.numpy.tracing.trace import current


class Proxy:
    """Proxy that resembles an object of NumPy in all but identity.

    It is equal to the original, passes `isinstance` checks for its class, has its attributes and signature, is pickled
    and copied as the original, and can be subclassed and used in `isinstance` like the original.

    Parameters
    ----------
    original : object
        Object of NumPy.
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
        # The tracing thread finds the proxy by its name; other threads find the original.
        return self.__name__ if current() is not None else (copy.copy, (self.__wrapped__,))

    def __deepcopy__(self, memo: Any) -> Any:
        return copy.copy(self)  # a class has the method for its instances

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, self.__wrapped__)

    def __subclasscheck__(self, subclass: type) -> bool:
        subclass = vars(subclass).get("__wrapped__", subclass) if issubclass(type(subclass), Proxy) else subclass
        return issubclass(subclass, self.__wrapped__)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[Any, ...]:
        return (self.__wrapped__,)

    def __or__(self, other: Any) -> Any:
        return self.__wrapped__ | other

    def __ror__(self, other: Any) -> Any:
        return other | self.__wrapped__


class CallableProxy(Proxy):
    """Proxy that calls another function instead of the original function or class.

    Parameters
    ----------
    original : callable
        Function or class of NumPy.
    call : callable
        Function to call in the tracing thread; the caller of its caller is the program.
    """

    def __init__(self, original: Callable[..., Any], call: Callable[..., Any]) -> None:
        super().__init__(original)
        self._call = call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the substitute in the tracing thread, the original in others."""
        return self.__wrapped__(*args, **kwargs) if current() is None else self._call(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Bind as a method if the original would."""
        binds = hasattr(type(self.__wrapped__), "__get__")
        return self if instance is None or not binds else MethodType(self, instance)
