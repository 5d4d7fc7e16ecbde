"""The slow path of a call: conversion of arguments that do not have exactly the declared type.

Arguments that can be converted without loss of meaning are; any other is an error that names the argument and both
types. Typed values (arrays, NumPy scalars) must have the declared dtype, as in XLA; Python numbers, and lists of them,
are converted to it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from cyxla import errors

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNTYPED = (bool, int, float, complex, list, tuple)
KINDS = "buifc"  # a Python number converts to its own and any later kind; i and u count as one
MAX_REPR = 60
MAX_WORK = 10_000  # steps of the exact check for shared memory

# Pairs of a Python type and a dtype kind: every such dtype of four bytes or more represents these numbers, up to
# rounding of floats, if their absolute value is below PLAIN_BELOW.
PLAIN = {(float, "f"), (float, "c"), (int, "f"), (int, "c"), (int, "i"), (bool, "i"), (bool, "f")}
PLAIN_BELOW = 2**31

# An argument's name, or the trees of the parameters and the number of the leaf, from which `name` computes it.
Where = str | tuple[tuple[Any, ...], int]


def leaves(tree: Any) -> list[int]:
    """Flatten a nested tuple of numbers."""
    return [tree] if isinstance(tree, int) else [leaf for part in tree for leaf in leaves(part)]


def build(tree: Any, values: Sequence[Any]) -> Any:
    """Replace the leaf numbers of a tree by values."""
    return values[tree] if isinstance(tree, int) else tuple([build(part, values) for part in tree])


def flatten(args: tuple[Any, ...], parameters: tuple[Any, ...]) -> tuple[Any, ...]:
    """List the leaves of the arguments of a call, one for each leaf of `parameters`."""
    if len(args) != len(parameters):
        raise errors.InvalidArgumentError(f"the program takes {count(parameters)}, got {len(args)}")
    return tuple([leaf for k, tree in enumerate(parameters) for leaf in _flatten(args[k], tree, f"argument {k}")])


def _flatten(value: Any, tree: Any, where: str) -> Iterator[Any]:
    if isinstance(tree, int):
        yield value
        return
    if not isinstance(value, (tuple, list)) or len(value) != len(tree):
        raise errors.InvalidArgumentError(f"{where}: got {describe(value)}, want a tuple of {len(tree)}")
    for k, part in enumerate(tree):
        yield from _flatten(value[k], part, f"{where}[{k}]")


def count(parameters: tuple[Any, ...]) -> str:
    """Return the number of arguments of a call as text."""
    return "1 argument" if len(parameters) == 1 else f"{len(parameters)} arguments"


def name(where: Where) -> str:
    """Return the name of an argument, such as ``argument 2[0][1]``."""
    if isinstance(where, str):
        return where
    parameters, position = where
    return [path for k, tree in enumerate(parameters) for path in _paths(tree, f"argument {k}")][position]


def _paths(tree: Any, path: str) -> list[str]:
    if isinstance(tree, int):
        return [path]
    return [leaf for k, part in enumerate(tree) for leaf in _paths(part, f"{path}[{k}]")]


def signature(dtype: np.dtype[Any], dims: Sequence[int | str]) -> str:
    """Return the type of an array as text: ``float32[2,3]``."""
    return f"{dtype}[{','.join(map(str, dims))}]"


def describe(value: Any) -> str:
    """Return the type of an array, or the repr of another value if it is short."""
    if isinstance(value, (np.ndarray, np.generic)):
        return signature(value.dtype, value.shape)
    text = repr(value) if isinstance(value, UNTYPED) else ""
    return text if text and len(text) <= MAX_REPR else f"a {type(value).__name__}"


def convert(value: Any, dtype: np.dtype[Any], dims: tuple[int, ...], where: Where) -> NDArray[Any]:
    """Convert an argument to a C-contiguous array of the declared type in native byte order.

    Raises
    ------
    ShapeError, DTypeError, InvalidArgumentError
        The argument is not an array, has another shape or dtype, or does not fit in the declared dtype.
    """
    if not dims and (type(value), dtype.kind) in PLAIN and dtype.itemsize >= 4 and -PLAIN_BELOW < value < PLAIN_BELOW:
        return np.array(value, dtype)

    def problem(got: str, why: str = "") -> str:
        return f"{name(where)}: got {got}, want {signature(dtype, dims)}{why}"

    if type(value) is not np.ndarray:
        require_values_alone(value, name(where))
    try:
        array = np.from_dlpack(value) if is_dlpack_alone(value) else np.asarray(value)
    except Exception as error:
        raise errors.InvalidArgumentError(problem(describe(value), f": {error}")) from error
    if array.dtype != dtype and array.dtype.newbyteorder("=") != dtype:
        if not _is_untyped(value) or not _may_become(array, dtype):
            raise errors.DTypeError(problem(describe(value)))
        cast = _cast(array, dtype)
        if cast is None:
            raise errors.InvalidArgumentError(problem(describe(value), ": out of range"))
        array = cast
    if array.shape != dims:
        raise errors.ShapeError(problem(signature(dtype, array.shape)))
    # ascontiguousarray makes rank 0 rank 1; it copies only what is strided or of the other byte order.
    return np.ascontiguousarray(array, dtype=dtype).reshape(dims)


def require_values_alone(value: Any, what: str) -> None:
    """Raise for arrays that carry more than values, such as a mask or labels.

    Raises
    ------
    DTypeError
        The value is a masked array, or an object of pandas and the like.
    """
    if "numpy.ma" in sys.modules and isinstance(value, np.ma.MaskedArray):
        raise with_own_operators(value, what)
    if hasattr(type(value), "to_numpy"):  # of pandas, xarray, polars, pyarrow
        raise errors.DTypeError(
            f"{what} is a {type(value).__name__}, whose labels and missing values no program knows",
            hint="give its array: x.to_numpy()",
        )


def with_own_operators(value: Any, what: str) -> errors.DTypeError:
    """Return the error for an array of a subclass as an argument."""
    return errors.DTypeError(
        f"{what} is a {type(value).__name__}, a class with operators and results of its own",
        hint="give an array: x.view(np.ndarray), or x.filled(0) for masked arrays",
    )


def is_array_like(value: Any) -> bool:
    """Return True for objects that support one of NumPy's protocols for arrays."""
    return any(_has(value, name) for name in ("__array__", "__array_interface__", "__array_struct__"))


def _has(value: Any, name: str) -> bool:
    """Return what `hasattr` does, also for objects whose ``__getattr__`` raises other errors than it should."""
    try:
        return hasattr(value, name)
    except Exception:
        return False


def is_dlpack_alone(value: Any) -> bool:
    """Return True for arrays that support the DLPack protocol, but none of NumPy's protocols."""
    if not _has(value, "__dlpack__") or is_array_like(value):
        return False
    try:
        memoryview(value)
    except TypeError:
        return True
    return False


def _is_untyped(value: Any) -> bool:
    return isinstance(value, UNTYPED) and not isinstance(value, np.generic)


def _kind(dtype: np.dtype[Any]) -> str:
    """Return b, i, f or c; the dtypes of ml_dtypes have kind V or f, and are classified by their names."""
    if dtype.kind in KINDS:
        return "i" if dtype.kind == "u" else dtype.kind
    return "i" if "int" in dtype.name else "f"


def _may_become(array: NDArray[Any], dtype: np.dtype[Any]) -> bool:
    if array.dtype.kind not in KINDS:
        return False
    return array.size == 0 or KINDS.index(_kind(array.dtype)) <= KINDS.index(_kind(dtype))


def _cast(array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any] | None:
    """Convert numbers; None if an integer changes its value. Floats are rounded."""
    with np.errstate(all="ignore"):
        cast = array.astype(dtype)
        fits = _kind(dtype) != "i" or bool(
            ((cast.astype(array.dtype) == array) & ((cast < 0) == (array < 0))).all()  # 2**63 wraps around and back
        )
    return cast if fits else None


def match_out(out: Any, results: Any, outputs: tuple[tuple[Any, ...], ...]) -> list[Any]:
    """Return the arrays of `out=` by output number; None for results that the call allocates.

    Each of `outputs` has a dtype, sizes, and perhaps the dimensions whose sizes are bounds, below which any size is
    accepted; `write_out` then requires those of the results.
    """
    given: list[Any] = [None] * len(outputs)
    for path, leaf, array in _match_out(out, results, "out"):
        if array is not None:
            dtype, dims, *bounded = outputs[leaf]
            _check_out(array, dtype, dims, bounded[0] if bounded else (), path)
            for other in range(len(outputs)):
                if given[other] is not None and _share_memory(given[other], array):
                    raise errors.InvalidArgumentError(
                        f"{path} shares memory with the array of result {other}", hint="give each result its own memory"
                    )
            given[leaf] = array
    return given


def write_out(value: Any, given: Sequence[Any]) -> Any:
    """Return the results, a nested tuple, in the arrays of `out=` where there are any.

    Raises
    ------
    ShapeError
        An array does not have the sizes of its result; nothing is written then.
    """
    pairs = list(zip(_flat(value), given, strict=True))
    for result, out in pairs:
        if out is not None and out.shape != result.shape:
            raise errors.ShapeError(
                f"out: got {describe(out)}, but the result of this call is {describe(result)}",
                hint="give an array of the size that the result has for these arguments",
            )
    return _written(value, iter(given))


def _flat(value: Any) -> list[Any]:
    return [leaf for part in value for leaf in _flat(part)] if isinstance(value, tuple) else [value]


def _written(value: Any, given: Iterator[Any]) -> Any:
    if isinstance(value, tuple):
        return tuple([_written(part, given) for part in value])
    out = next(given)
    if out is None:
        return value
    np.copyto(out, value)
    return out


def _match_out(out: Any, tree: Any, path: str) -> Iterator[tuple[str, int, Any]]:
    if isinstance(tree, int):
        yield path, tree, out
    elif out is not None:
        if not isinstance(out, (tuple, list)) or len(out) != len(tree):
            raise errors.InvalidArgumentError(f"{path}: got {describe(out)}, want a tuple of {len(tree)}")
        for k, part in enumerate(tree):
            yield from _match_out(out[k], part, f"{path}[{k}]")


def _check_out(array: Any, dtype: np.dtype[Any], dims: tuple[int, ...], bounded: tuple[int, ...], path: str) -> None:
    bounds = [f"<={n}" if d in bounded else str(n) for d, n in enumerate(dims)]
    dims = _present(array, dims, bounded)
    if isinstance(array, np.ndarray) and array.dtype == dtype and array.shape == dims and array.flags.writeable:
        if not array.flags.forc and _overlaps_itself(array):
            raise errors.InvalidArgumentError(
                f"{path}: elements of the array share memory, its strides are {array.strides}", hint="give a copy of it"
            )
        return
    what = f"{path}: got {describe(array)}, want {signature(dtype, bounds)}"
    if not isinstance(array, np.ndarray):
        raise errors.InvalidArgumentError(what)
    if array.dtype != dtype:
        raise errors.DTypeError(what)
    if array.shape != dims:
        raise errors.ShapeError(what)
    raise errors.InvalidArgumentError(f"{path}: the array is read-only")


def _present(array: Any, dims: tuple[int, ...], bounded: tuple[int, ...]) -> tuple[int, ...]:
    """Return the sizes of an array if they are within the bounds, else the bounds."""
    shape = np.shape(array) if bounded and isinstance(array, np.ndarray) else dims
    is_within = len(shape) == len(dims) and all(
        n == most or (d in bounded and n < most) for d, (n, most) in enumerate(zip(shape, dims, strict=True))
    )
    return shape if is_within else dims


def _share_memory(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Return True if two arrays share memory, or if an exact check takes more than `MAX_WORK` steps."""
    if not np.may_share_memory(one, other):
        return False
    try:
        return np.shares_memory(one, other, max_work=MAX_WORK)  # type: ignore[arg-type]  # any number of steps
    except (np.exceptions.TooHardError, OverflowError):
        return True


def _overlaps_itself(array: NDArray[Any]) -> bool:
    """Return True if elements of an array overlap."""
    if array.size < 2:
        return False
    end = array.itemsize  # bytes covered by the smaller strides
    for step, size in sorted((abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1):
        if step < end:
            return _has_overlapping_offsets(array)
        end += step * (size - 1)
    return False


def _has_overlapping_offsets(array: NDArray[Any]) -> bool:
    """Return True if elements of an array overlap, by comparing the offsets of all elements."""
    offsets: Any = np.zeros((), np.intp)
    for step, size in zip(array.strides, array.shape, strict=True):
        offsets = offsets[..., None] + np.arange(size) * step
    found = np.sort(offsets, axis=None)
    return bool((np.diff(found) < array.itemsize).any())


def not_donated(where: Where, why: str) -> NoReturn:
    """Raise for a donated argument whose memory cannot be reused."""
    raise errors.InvalidArgumentError(f"{name(where)} is donated: {why}")


def check_out_apart(given: Sequence[Any], computed: Sequence[Any], donors: Mapping[int, Any]) -> None:
    """Raise if an array of `out=` shares memory with a donated argument that becomes another result."""
    for n, out in enumerate(given):
        for k in donors:
            if out is not None and k != n and np.may_share_memory(out, computed[k]):
                raise errors.InvalidArgumentError(f"out: result {n} would be written over donated memory of result {k}")


def out_of_memory(size: int) -> NoReturn:
    """Raise for a failed allocation."""
    raise errors.ResourceExhaustedError(f"cannot allocate {size} bytes")


def failed(status: int, message: str) -> NoReturn:
    """Raise the error of a status that a program returned."""
    error = errors.from_code(status, message)
    if not message:
        error = errors.from_code(status, f"the program stopped with {error.code}")
    raise error
