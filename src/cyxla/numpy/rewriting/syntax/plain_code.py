"""Functions that need no rewriting: straight code that calls functions of libraries on its arguments."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from itertools import pairwise
from types import CodeType, FunctionType

import numpy as np

from cyxla.numpy.rewriting.python_functions.table import SUBSTITUTES
from cyxla.numpy.rewriting.syntax.scopes import NameOrigins, Origin

_LIBRARIES = ("numpy", "cyxla")
#: Names of functions that call functions which they are given, and which need rewriting.
_CALLING = frozenset({
    "map", "filter", "iter", "reduce", "starmap", "accumulate", "apply_along_axis", "apply_over_axes", "fromfunction",
    "frompyfunc", "piecewise", "vectorize",
})  # fmt: skip
_ARRAY_ATTRIBUTES = frozenset(dir(np.ndarray)) | {"at"}
_FORMATS = frozenset("%{")
#: Names in NumPy that a rewritten function reads otherwise, with aliases such as `np.double`.
_SUBSTITUTED = (
    frozenset(str(getattr(f, "__name__", "")) for f in SUBSTITUTES) & frozenset(dir(np))
    | {name for name, value in vars(np).items() if isinstance(value, type) and value in SUBSTITUTES}
    | {"__class__"}
)
_STATEMENTS = ("JUMP", "FOR_ITER", "STORE_GLOBAL", "STORE_DEREF", "STORE_ATTR", "DELETE_", "CONTAINS_OP", "UNARY_NOT",
    "FORMAT_", "IS_OP",
)  # fmt: skip
_READS_OF_VARIABLES = ("LOAD_FAST", "LOAD_DEREF", "LOAD_CLOSURE")
_SPECIAL = frozenset(k for k, name in enumerate(dis.opname) if any(s in name for s in _STATEMENTS))
_VARIABLES = frozenset(k for k, name in enumerate(dis.opname) if name.startswith(_READS_OF_VARIABLES))
_EXTENDED, _NULL = dis.opmap["EXTENDED_ARG"], dis.opmap["PUSH_NULL"]


def is_plain(function: FunctionType) -> bool:
    """Return True if the rewritten function would do the same as the function, whatever is traced."""
    code = function.__code__
    if code.co_varnames[:1] in (("self",), ("cls",)) or any(isinstance(c, CodeType) for c in code.co_consts):
        return False
    opcodes = list(_opcodes(code))
    if not _SPECIAL.isdisjoint(opcodes) or _calls_variables(opcodes):
        return False
    if any(isinstance(c, str) and not _FORMATS.isdisjoint(c) for c in code.co_consts[1:]):
        return False
    names = NameOrigins(function, frozenset())
    return all(_is_fixed(names, name) for name in (*code.co_freevars, *code.co_names))


def _opcodes(code: CodeType) -> Iterator[int]:
    return (op for op in code.co_code[::2] if op not in (0, _EXTENDED))


def _calls_variables(opcodes: list[int]) -> bool:
    """Return True if the value of a variable may be called."""
    return any(_NULL in pair and not _VARIABLES.isdisjoint(pair) for pair in pairwise(opcodes))


def _is_fixed(names: NameOrigins, name: str) -> bool:
    """Return True for a name of a library's module or function, and for an attribute of arrays."""
    if name in _CALLING:
        return False
    if not names.is_bound(name):
        return name not in _SUBSTITUTED and (name in _ARRAY_ATTRIBUTES or hasattr(np, name))
    origin = names.origin(name)
    if origin is Origin.MODULE:
        return names.value(name).__name__.partition(".")[0] in _LIBRARIES
    return origin is Origin.PLAIN
