"""Registry of NumPy functions and their implementations on traced arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

from cyxla.errors import UnimplementedError
from cyxla.numpy.tracing.trace import user_line
from cyxla.records import dataclass

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Row:
    """NumPy function and its implementation.

    Attributes
    ----------
    function : callable
        Function of NumPy.
    implementation : callable
        Implementation on traced arrays, with NumPy's signature.
    note : str
        Limits for the documentation; empty if there are none.
    """

    function: Callable[..., Any]
    implementation: Callable[..., Any]
    note: str = ""

    @property
    def name(self) -> str:
        """Full name, such as ``linalg.norm``."""
        return full_name(self.function)


_IMPLEMENTATIONS: dict[Callable[..., Any], Row] = {}
_MODULES: dict[str, str] = {}  # full name of a function -> module that implements it
NUMPY_ORIGINALS: dict[Any, Callable[..., Any]] = {}  # substitute -> NumPy's function


def implements(*functions: Callable[..., Any], note: str = "") -> Callable[[F], F]:
    """Register a function as the implementation of NumPy functions on traced arrays."""

    def register(implementation: F) -> F:
        for function in functions:
            original = NUMPY_ORIGINALS.get(function, function)
            _IMPLEMENTATIONS[original] = Row(original, implementation, note)
        return implementation

    return register


def rows() -> dict[Callable[..., Any], Row]:
    """Import all implementations and return the rows by function."""
    for module in dict.fromkeys(_MODULES.values()):
        _load(module)
    return _IMPLEMENTATIONS


def register_modules(package: str, functions: Mapping[str, Iterable[str]]) -> None:
    """Register modules of a package that implement NumPy functions; each is imported when it is needed.

    Parameters
    ----------
    package : str
        Full name of the package.
    functions : mapping of str to iterable of str
        Names of functions, as `full_name` gives them, by module of the package.
    """
    _MODULES.update((name, f"{package}.{module}") for module, names in functions.items() for name in names)


def module_of(name: str) -> str | None:
    """Return the full name of the module that implements a NumPy function; None if none is registered."""
    return _MODULES.get(name)


@cache
def _load(module: str) -> None:
    import_module(module)


def implementation_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the implementation of a NumPy function on traced arrays.

    Raises
    ------
    UnimplementedError
        There is none; the message names similar functions that have one.
    """
    function = NUMPY_ORIGINALS.get(function, function)
    row = _IMPLEMENTATIONS.get(function)
    if row is None and (module := module_of(full_name(function))) is not None:
        _load(module)
        row = _IMPLEMENTATIONS.get(function)
    row = row or rows().get(function)
    if row is None:
        raise UnimplementedError(
            f"numpy.{full_name(function)} cannot be traced", where=user_line(), hint=_nearest(full_name(function))
        )
    return row.implementation


def full_name(function: Callable[..., Any]) -> str:
    """Return the name of a NumPy function without ``numpy.``."""
    module = getattr(function, "__module__", None) or ""
    inner = module.removeprefix("numpy").lstrip(".")
    name = getattr(function, "__name__", str(function))
    return f"{inner}.{name}" if inner and not inner.startswith("_") else name


_SCIMATH_NAMES = "sqrt log log2 log10 logn power arccos arcsin arctanh"
ALTERNATIVES: dict[str, str] = {
    f"lib.scimath.{name}": "call NumPy's function of x.astype(complex): the dtype of a result cannot depend on values"
    for name in _SCIMATH_NAMES.split()
}  # hints for functions that are not implemented


def _nearest(name: str) -> str:
    if name in ALTERNATIVES:
        return ALTERNATIVES[name]
    from difflib import get_close_matches

    matches = get_close_matches(name, [r.name for r in rows().values()], n=3, cutoff=0.5)
    return (
        f"similar functions: {', '.join(matches)}" if matches else "call it outside of the traced function, on arrays"
    )
