"""Rarer parts of calls of compiled functions: arguments to convert, containers of results, ``out=``, errors."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

import numpy as np

#: Kinds of trees, as the C code numbers them. A tree is the number of an array, or a tuple of its kind, the keys, the
#: children, and a description.
FIXED, TUPLE, LIST, DICT, ATTRIBUTES, RECORD, SIZED = range(7)

_UNTYPED = (bool, int, float, complex, list, tuple)
_KINDS = "buifc"  # a Python number converts to its own and any later kind; i and u count as one
_MAX_REPR = 60
_MAX_WORK = 10_000  # steps of the exact check for shared memory
_ERRORS: dict[int, type[Exception]] = {
    3: ValueError, 8: MemoryError, 9: RuntimeError, 11: IndexError, 12: NotImplementedError, 13: RuntimeError,
}  # fmt: skip
_CLASSES: dict[str, type[Exception]] = {
    c.__name__: c for c in (FloatingPointError, IndexError, OverflowError, ValueError, ZeroDivisionError)
}
_NUMBERS = re.compile(r"%[nhl]|-?\d+")


class Array(NamedTuple):
    """Array among the arguments or results.

    Attributes
    ----------
    name : str
        Name in messages.
    dtype : numpy.dtype
        Element type.
    dims : tuple of int
        Sizes.
    """

    name: str
    dtype: np.dtype[Any]
    dims: tuple[int, ...]

    def __str__(self) -> str:
        return _signature(self.dtype, self.dims)


class Function(NamedTuple):
    """Compiled function, as far as its rarer calls need to know it.

    Attributes
    ----------
    name : str
        Name of the function.
    arguments, results : tuple of Array
        Arrays of a call.
    result : object
        Tree of the result.
    written : tuple of int
        Arguments that the function writes.
    checks : tuple of (str, str)
        Classes and texts of the errors that it raises.
    """

    name: str
    arguments: tuple[Array, ...]
    results: tuple[Array, ...]
    result: Any
    written: tuple[int, ...] = ()
    checks: tuple[tuple[str, str], ...] = ()

    def convert(self, value: Any, number: int) -> Any:
        """Return an argument as a row-major array of the declared type.

        Raises
        ------
        TypeError
            The element type is another, or it is no array.
        ValueError
            The shape is another, or a number does not fit.
        """
        argument = self.arguments[number]
        return _convert(value, argument, f"{self.name}(): argument {argument.name}")

    def check_written(self, leaves: tuple[Any, ...]) -> None:
        """Raise unless the arguments to write are arrays of the declared types that share no memory with others."""
        for k in self.written:
            array, want, where = leaves[k], self.arguments[k], f"{self.name}(): argument {self.arguments[k].name}"
            _check_target(array, want, f"{where} is written, and")
            for n, other in enumerate(leaves):
                if n != k and isinstance(other, np.ndarray) and _share_memory(array, other):
                    raise ValueError(f"{where} is written, and shares memory with another argument")

    def write_out(self, results: tuple[Any, ...], out: Any) -> Any:
        """Copy the results to ``out``, a container like the result, and return it."""
        targets = [pair for pair in _pairs(self.result, out, f"{self.name}(): out") if pair[1] is not None]
        for n, (leaf, array, path) in enumerate(targets):
            _check_target(array, self.results[leaf], path)
            for _, other, _ in targets[:n]:
                if _share_memory(array, other):
                    raise ValueError(f"{path} shares memory with another array of out")
        for leaf, array, _ in targets:
            np.copyto(array, results[leaf])
        return out

    def finish(self, results: tuple[Any, ...], _: None) -> Any:
        """Return the result as the function builds it."""
        return _build(self.result, results)

    def fail(self, status: int, message: str) -> NoReturn:
        """Raise the error of a call."""
        found = _NUMBERS.sub("", message)
        for name, text in self.checks:
            if found and _NUMBERS.sub("", text.replace("%%", "%")).startswith(found):
                raise _CLASSES.get(name, ValueError)(message)
        raise _ERRORS.get(status, RuntimeError)(message or f"{self.name}() failed with status {status}")


# --- arguments --------------------------------------------------------------------------------------------------------


def _signature(dtype: np.dtype[Any], dims: tuple[int, ...]) -> str:
    return f"{dtype}[{','.join(map(str, dims))}]"


def _describe(value: Any) -> str:
    if isinstance(value, (np.ndarray, np.generic)):
        return _signature(value.dtype, value.shape)
    text = repr(value) if isinstance(value, _UNTYPED) else ""
    return text if text and len(text) <= _MAX_REPR else f"a {type(value).__name__}"


def _convert(value: Any, want: Array, where: str) -> Any:
    if type(value) is not np.ndarray:
        _refuse_more_than_values(value, where)
    try:
        array = np.from_dlpack(value) if _is_dlpack_alone(value) else np.asarray(value)
    except Exception as error:
        raise ValueError(f"{where}: got {_describe(value)}, want {want}: {error}") from error
    if array.dtype != want.dtype and array.dtype.newbyteorder("=") != want.dtype:
        is_untyped = isinstance(value, _UNTYPED) and not isinstance(value, np.generic)
        if not is_untyped or not _may_become(array, want.dtype):
            raise TypeError(f"{where}: got {_describe(value)}, want {want}")
        cast = _cast(array, want.dtype)
        if cast is None:
            raise ValueError(f"{where}: got {_describe(value)}, want {want}: out of range")
        array = cast
    if array.shape != want.dims:
        raise ValueError(f"{where}: got {_signature(want.dtype, array.shape)}, want {want}")
    # ascontiguousarray makes rank 0 rank 1; it copies only what is strided or of the other byte order.
    converted = np.ascontiguousarray(array, dtype=want.dtype).reshape(want.dims)
    return converted if converted.flags.aligned else converted.copy()


def _refuse_more_than_values(value: Any, where: str) -> None:
    """Raise for arrays that carry a mask or labels."""
    if "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{where}: a masked array: pass x.filled(0), or np.asarray(x)")
    if hasattr(type(value), "to_numpy"):  # of pandas, xarray, polars, pyarrow
        raise TypeError(f"{where}: a {type(value).__name__}: pass its array, x.to_numpy()")


def _is_dlpack_alone(value: Any) -> bool:
    """Return True for arrays that support the DLPack protocol, but none of NumPy's protocols."""
    if not hasattr(value, "__dlpack__") or hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        return False
    try:
        memoryview(value)
    except TypeError:
        return True
    return False


def _kind(dtype: np.dtype[Any]) -> str:
    """Return b, i, f or c; the dtypes of ml_dtypes have kind V or f, and are classified by their names."""
    if dtype.kind in _KINDS:
        return "i" if dtype.kind == "u" else dtype.kind
    return "i" if "int" in dtype.name else "f"


def _may_become(array: Any, dtype: np.dtype[Any]) -> bool:
    if array.dtype.kind not in _KINDS:
        return False
    return array.size == 0 or _KINDS.index(_kind(array.dtype)) <= _KINDS.index(_kind(dtype))


def _cast(array: Any, dtype: np.dtype[Any]) -> Any:
    """Convert numbers; None if an integer changes its value. Floats are rounded."""
    with np.errstate(all="ignore"):
        cast = array.astype(dtype)
        fits = _kind(dtype) != "i" or bool(
            ((cast.astype(array.dtype) == array) & ((cast < 0) == (array < 0))).all()  # 2**63 wraps around and back
        )
    return cast if fits else None


# --- arrays to write to -----------------------------------------------------------------------------------------------


def _check_target(array: Any, want: Array, where: str) -> None:
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{where}: got {_describe(array)}, want an array {want}")
    if array.dtype != want.dtype:
        raise TypeError(f"{where}: got {_describe(array)}, want {want}")
    if array.shape != want.dims:
        raise ValueError(f"{where}: got {_describe(array)}, want {want}")
    if not array.flags.writeable:
        raise ValueError(f"{where}: the array is read-only")


def _share_memory(one: Any, other: Any) -> bool:
    """Return True if two arrays share memory, or if an exact check takes too many steps."""
    if not np.may_share_memory(one, other):
        return False
    exact: Any = np.shares_memory
    try:
        return bool(exact(one, other, max_work=_MAX_WORK))
    except (RuntimeError, OverflowError):  # of which NumPy's error is a subclass
        return True


# --- containers -------------------------------------------------------------------------------------------------------


def _pairs(tree: Any, value: Any, path: str) -> Iterator[tuple[int, Any, str]]:
    """Yield the number of each array of a tree, its value in a container, and the path to it."""
    if isinstance(tree, int):
        yield tree, value, path
        return
    kind, keys, children = tree[:3]
    if kind == SIZED:
        raise ValueError(f"{path}: the size of the result is only known when the function has run")
    if kind == FIXED or value is None:
        return
    if kind != RECORD and not (
        isinstance(value, dict if kind == DICT else (tuple, list)) and len(value) == len(children)
    ):
        raise ValueError(f"{path}: got {_describe(value)}, want {tree[3]}")
    for k, child in enumerate(children):
        part = getattr(value, keys[1][k], None) if kind == RECORD else value[keys[k] if kind == DICT else k]
        yield from _pairs(child, part, f"{path}[{k}]")


def _build(tree: Any, results: tuple[Any, ...]) -> Any:
    if isinstance(tree, int):
        return results[tree]
    kind, keys, children = tree[:3]
    if kind == FIXED:
        return keys
    parts = [_build(child, results) for child in children]
    if kind == SIZED:
        return _trimmed(parts[0], dict(zip(keys, parts[1:], strict=True)))
    if kind == RECORD:
        return keys[0](*parts)
    if kind == DICT:
        return dict(zip(keys, parts, strict=True))
    return parts if kind == LIST else tuple(parts)


def _trimmed(data: Any, sizes: dict[int, Any]) -> Any:
    """Return an array of the true sizes."""
    trimmed = data[tuple([slice(int(sizes.get(d, n))) for d, n in enumerate(data.shape)])]
    return trimmed if 2 * trimmed.size >= data.size and trimmed.flags.c_contiguous else trimmed.copy()
