"""Registry of the Python functions that nodes call, by the tokens in their attributes, and their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from itertools import count
from typing import Any, Protocol

from cyxla.core.framework.loaders import loader
from cyxla.errors import UnimplementedError
from cyxla.forking import new_lock

PyFunction = Callable[..., Any]


class PullbackCompiler(Protocol):
    """Function that makes the pullback of a Python function."""

    def __call__(
        self, function: PyFunction, num_inputs: int, results: tuple[int, ...], wanted: tuple[int, ...]
    ) -> PyFunction:
        """Return a function as `Pullback` describes."""


_compilers: list[PullbackCompiler] = []


def register_pullback_compiler(compiler: PullbackCompiler) -> None:
    """Set the function that makes pullbacks; the last one registered serves."""
    _compilers[:] = [compiler]


class Pullback:
    """Derivative of a Python function: a function of its arguments and of gradients of its results.

    It is compiled when it is called first.

    Parameters
    ----------
    function : callable
        Function of arrays, which returns one result, or a list or tuple of results.
    num_inputs : int
        Number of its arguments.
    results : tuple of int
        Results whose gradients follow the arguments, in order.
    wanted : tuple of int
        Arguments whose gradients are returned, in order.
    """

    def __init__(
        self, function: PyFunction, num_inputs: int, results: tuple[int, ...], wanted: tuple[int, ...]
    ) -> None:
        self._parts = (function, num_inputs, results, wanted)

    @cached_property
    def _compiled(self) -> PyFunction:
        if not _compilers:
            try:
                loader("pullbacks")()
            except KeyError:
                raise UnimplementedError(
                    "the gradient of a Python function needs the compiler of NumPy functions",
                    hint="run the graph in a cyxla.Session",
                ) from None
        return _compilers[0](*self._parts)

    def __call__(self, *values: Any) -> Any:
        """Return the gradients of the wanted arguments."""
        return self._compiled(*values)


class PyFunctionRegistry:
    """Thread-safe table of Python functions by token."""

    def __init__(self) -> None:
        self._functions: dict[str, PyFunction] = {}
        self._derivatives: dict[str, list[str]] = {}  # tokens that are removed with another
        self._numbers = count()
        self._lock = new_lock()

    @staticmethod
    @lru_cache(maxsize=1)
    def global_() -> PyFunctionRegistry:
        """Return the registry of the process."""
        return PyFunctionRegistry()

    def insert(self, function: PyFunction) -> str:
        """Register a function, and return its token."""
        with self._lock:
            return self._insert(function)

    def insert_pullback(self, token: str, num_inputs: int, results: tuple[int, ...], wanted: tuple[int, ...]) -> str:
        """Register the pullback of a function, which is dropped with it, and return its token.

        Raises
        ------
        ValueError
            There is no function of that token.
        """
        pullback = Pullback(self.look_up(token), num_inputs, results, wanted)
        with self._lock:
            derivative = self._insert(pullback)
            self._derivatives.setdefault(token, []).append(derivative)
        return derivative

    def _insert(self, function: PyFunction) -> str:
        token = f"pyfunc_{next(self._numbers)}"
        self._functions[token] = function
        return token

    def remove(self, token: str) -> None:
        """Drop a function and its pullbacks; an unknown token is ignored."""
        with self._lock:
            tokens = [token]
            for name in tokens:
                self._functions.pop(name, None)
                tokens += self._derivatives.pop(name, ())

    def __len__(self) -> int:
        return len(self._functions)

    def look_up(self, token: str) -> PyFunction:
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
