"""Registry of the Python functions that nodes call, by the tokens in their attributes."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import count
from typing import Any

from cyxla.forking import new_lock


class PyFunctionRegistry:
    """Thread-safe table of Python functions by token."""

    def __init__(self) -> None:
        self._functions: dict[str, Callable[..., Any]] = {}
        self._numbers = count()
        self._lock = new_lock()

    @staticmethod
    @lru_cache(maxsize=1)
    def global_() -> PyFunctionRegistry:
        """Return the registry of the process."""
        return PyFunctionRegistry()

    def insert(self, function: Callable[..., Any]) -> str:
        """Register a function, and return its token."""
        with self._lock:
            token = f"pyfunc_{next(self._numbers)}"
            self._functions[token] = function
        return token

    def remove(self, token: str) -> None:
        """Drop a function; an unknown token is ignored."""
        with self._lock:
            self._functions.pop(token, None)

    def __len__(self) -> int:
        return len(self._functions)

    def look_up(self, token: str) -> Callable[..., Any]:
        """Return the function of a token.

        Raises
        ------
        ValueError
            There is none.
        """
        function = self._functions.get(token)
        if function is None:
            raise ValueError(f"Could not find callback with key={token} in the registry.")
        return function
