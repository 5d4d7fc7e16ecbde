"""Programs to compile ahead of time, and the names that they have in C."""

from __future__ import annotations

import ctypes
import ctypes.util
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from cyxla.aot.checks import Check
from cyxla.errors import InvalidArgumentError
from cyxla.xla.hlo import HloModule
from cyxla.xla.service import CompileOptions

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const consteval
constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do double dynamic_cast else
enum explicit export extern false float for friend goto if inline int long main mutable namespace new noexcept not
not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires restrict return short
signed sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef typeid
typename union unsigned using virtual void volatile wchar_t while xor xor_eq
"""


@dataclass(frozen=True)
class NamedArray:
    """Array among the arguments or results of a program.

    Attributes
    ----------
    name : str
        Name in the program, such as ``params['w']``.
    dtype : numpy.dtype
        Element type.
    dims : tuple of int
        Sizes.
    bound : int, optional
        Greatest value of the size of a bounded array, which is an array of its own; None for other arrays.
    """

    name: str
    dtype: np.dtype[Any]
    dims: tuple[int, ...]
    bound: int | None = None

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return int(np.prod(self.dims, dtype=np.int64)) * self.dtype.itemsize


class Fixed:
    """Static value among the arguments, for which a program is specialised."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fixed) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(Fixed)

    def __repr__(self) -> str:
        return f"Fixed({self.value!r})"


@dataclass(frozen=True, eq=False)
class Program:
    """Program that is compiled ahead of time.

    Attributes
    ----------
    name : str
        Identifier in C.
    module : HloModule
        The program before any pass.
    arguments, results : tuple of NamedArray
        Arrays of a call, in the order of the module's leaves, without bound arguments.
    result_tree : object
        Structure of the result, with the indices of `results` in place of arrays.
    parameters : tuple of str
        Names of the arguments as the user passes them, of which each may hold several arrays.
    argument_trees : tuple
        Structure of each of `parameters`, with the indices of `arguments`, `Fixed` for static values and
        None for bound ones.
    rank0 : tuple of str
        Kind of each result without dimensions: ``"scalar"``, ``"array"``, or ``"python"`` for Python's numbers.
    written : mapping of int to int
        Arguments that the program writes: index of each in `arguments`, and of its new value in `results`.
    variables : frozenset of int
        Indices of the arguments that are variables of a graph.
    bound : mapping of int to object
        Values of arguments that are part of the library, by parameter of the module.
    checks : tuple of Check
        Checks at run time. If there are any, the last result of the module is the number of the failed one, from 1 on,
        and a number to show.
    options : CompileOptions
        Options of the compilation.
    doc : str
        Description in some lines.
    """

    name: str
    module: HloModule
    arguments: tuple[NamedArray, ...]
    results: tuple[NamedArray, ...]
    result_tree: Any
    parameters: tuple[str, ...] = ()
    argument_trees: tuple[Any, ...] = ()
    rank0: tuple[str, ...] = ()
    written: Mapping[int, int] = field(default_factory=dict)
    variables: frozenset[int] = frozenset()
    bound: Mapping[int, Any] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    options: CompileOptions = field(default_factory=CompileOptions)
    doc: str = ""


def is_identifier(name: str) -> bool:
    """Return whether a name is an identifier of C and C++."""
    return _IDENTIFIER.fullmatch(name) is not None and name not in _KEYWORDS.split()


def is_function_name(name: str) -> bool:
    """Return whether a program may have a name in C: not that of a function of the C library, or of cyxla's headers."""
    is_own = name.lower().startswith(("cyx_", "cyxla"))
    return is_identifier(name) and not is_own and name != "main" and not any(hasattr(c, name) for c in _c_library())


@cache
def _c_library() -> tuple[Any, ...]:
    libraries = [ctypes.util.find_library(name) for name in ("c", "m")]
    return tuple([ctypes.CDLL(path) for path in libraries if path is not None])


def checked_name(name: str) -> str:
    """Return a name of a program that the user gave.

    Raises
    ------
    InvalidArgumentError
        It is not an identifier, is a keyword of C or C++, or the name of a function of the C library.
    """
    if not is_identifier(name):
        raise InvalidArgumentError(f"name={name!r} is not an identifier of C", hint="use letters, digits and _")
    if not is_function_name(name):
        raise InvalidArgumentError(
            f"name={name!r} is a name of the C library, or of cyxla's", hint=f"such as my_{name}"
        )
    return name


def identifier(text: str) -> str:
    """Return a name of a program made of a text."""
    words = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")
    return words if is_function_name(words) else f"p_{words}".rstrip("_")
