"""Texts of the functions of a wheel: docstrings, signatures, types for type checkers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from cyxla.aot.program import NamedArray, Program
from cyxla.aot.wheel.runtime.calls import ATTRIBUTES, DICT, FIXED, LIST, RECORD, SIZED
from cyxla.aot.wheel.trees import Signature

_PYTHON_TYPES: Final = {"f": "float", "i": "int", "b": "bool", "c": "complex"}


def docstring(program: Program, signature: Signature) -> str:
    """Return the docstring of a function, with the shapes and types of its arrays."""
    lines = [program.doc or f"Run the program {program.name}.", "", "Parameters", "----------"]
    for name, tree in zip(signature.names, signature.trees, strict=True):
        lines += [f"{name} : {_describe(tree, program.arguments)}"]
    lines += ["out : optional", "    Arrays to write the result to, in containers like the result."]
    lines += ["", "Returns", "-------", _describe(signature.result, program.results)]
    if program.written:
        written = ", ".join(program.arguments[k].name for k in program.written)
        lines += ["", "Notes", "-----", f"Writes to {written}."]
    return "\n".join(lines)


def _describe(tree: Any, arrays: Sequence[NamedArray]) -> str:
    """Describe an array, or a container with its arrays in further lines."""
    if isinstance(tree, int):
        return _describe_array(arrays[tree])
    kind, keys, children, text = tree
    if kind == SIZED:
        return f"{_describe_array(arrays[children[0]])} or smaller"
    lines = [str(text)]
    names = keys if kind in (DICT, ATTRIBUTES) else keys[1] if kind == RECORD else range(len(children))
    for name, child in zip(names, children, strict=True):
        lines += [f"    {name!r}: {line}" if n == 0 else f"    {line}" for n, line in _lines(child, arrays)]
    return "\n".join(lines)


def _lines(tree: Any, arrays: Sequence[NamedArray]) -> list[tuple[int, str]]:
    return list(enumerate(_describe(tree, arrays).split("\n")))


def _describe_array(array: NamedArray) -> str:
    if not array.dims:
        return array.dtype.name
    sizes = ", ".join(map(str, array.dims)) + ("," if len(array.dims) == 1 else "")
    return f"{array.dtype.name} array of shape ({sizes})"


# --- types ------------------------------------------------------------------------------------------------------------


def argument_type(tree: Any) -> str:
    """Return the type of an argument, for type checkers."""
    if isinstance(tree, int):
        return "ArrayLike"
    kind, keys, children, _ = tree
    if kind == DICT:
        parts = sorted({argument_type(child) for child in children})
        names = "str" if all(isinstance(key, str) for key in keys) else "Any"
        return f"dict[{names}, {' | '.join(parts)}]" if parts == ["ArrayLike"] else f"dict[{names}, Any]"
    return "Any" if kind in (ATTRIBUTES, FIXED) else "Sequence[Any]"


def result_type(tree: Any, program: Program) -> str:
    """Return the type of a result, for type checkers."""
    if isinstance(tree, int):
        return _array_type(program.results[tree], rank0_of(program)[tree])
    kind, keys, children, _ = tree
    parts = [result_type(child, program) for child in children]
    if kind == SIZED:
        return parts[0]
    if kind == RECORD:
        return str(keys[0].name)
    if kind == FIXED:
        return "None" if keys is None else type(keys).__name__
    union = " | ".join(sorted(set(parts))) or "Any"
    if kind == DICT:
        return f"dict[{'str' if all(isinstance(key, str) for key in keys) else 'Any'}, {union}]"
    return f"list[{union}]" if kind == LIST else f"tuple[{', '.join(parts) or '()'}]"


def rank0_of(program: Program) -> tuple[str, ...]:
    """Return the kinds of all results without dimensions, those of written arguments included."""
    return (*program.rank0, *("array",) * (len(program.results) - len(program.rank0)))


def _array_type(array: NamedArray, rank0: str) -> str:
    if not array.dims and rank0 == "python":
        return _PYTHON_TYPES.get(array.dtype.kind, "Any")
    name = scalar_name(array.dtype)
    scalar = f"np.{name}" if name else "Any"
    return scalar if not array.dims and rank0 == "scalar" else f"NDArray[{scalar}]"


def scalar_name(dtype: np.dtype[Any]) -> str:
    """Return the name of NumPy's scalar type of a dtype; empty for those of ml_dtypes."""
    if dtype.isbuiltin != 1:
        return ""
    return "bool_" if dtype.kind == "b" else dtype.name
