"""Input of programs and arrays from files."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from cyxla.errors import InvalidArgumentError
from cyxla.types import Shape
from cyxla.xla.client import read_program
from cyxla.xla.hlo import HloModule

Array = np.ndarray[Any, Any]


def read_module(path: str) -> HloModule:
    """Read a module from a file, a proto if the suffix is .pb, else HLO text; ``-`` is standard input."""
    data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    if path.endswith(".pb"):
        return read_program(data)
    try:
        return read_program(data.decode())
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(f"{path} is not text: {error}", hint="name a proto file .pb") from None


def read_inputs(files: Sequence[str], shapes: Sequence[Shape], seed: int) -> list[Any]:
    """Read arguments from .npy and .npz files in order; the remaining ones are random.

    Raises
    ------
    InvalidArgumentError
        A file holds no arrays, or there are more arrays than parameters.
    """
    arrays = [array for path in files for array in read_arrays(path)]
    if len(arrays) > len(shapes):
        raise InvalidArgumentError(f"{len(arrays)} arrays for {len(shapes)} parameters")
    rng = np.random.default_rng(seed)
    return [
        *(reinterpret(a, s) for a, s in zip(arrays, shapes, strict=False)),
        *(random_value(s, rng) for s in shapes[len(arrays) :]),
    ]


def read_arrays(path: str) -> list[Array]:
    """Read the arrays of an .npy or .npz file.

    Raises
    ------
    InvalidArgumentError
        The file holds no arrays.
    """
    try:
        with Path(path).open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            return [loaded] if isinstance(loaded, np.ndarray) else [loaded[name] for name in loaded.files]
    except (ValueError, EOFError, BadZipFile) as error:
        raise InvalidArgumentError(
            f"{path} does not contain arrays: {error}", hint="give an .npy or .npz file"
        ) from None


def reinterpret(array: Array, shape: Shape) -> Array:
    """Reinterpret an array of raw bits, as which NumPy stores types of ml_dtypes, as the declared type."""
    dtype = shape.dtype.numpy_dtype
    if (
        dtype is not None
        and array.dtype != dtype
        and array.dtype.kind in "uV"
        and array.dtype.itemsize == dtype.itemsize
    ):
        return array.view(dtype)
    return array


def random_value(shape: Shape, rng: np.random.Generator) -> Any:
    """Return a random argument: normally distributed floats, integers up to 10, fair booleans."""
    if shape.is_tuple:
        return tuple(random_value(s, rng) for s in shape.elements)
    dtype = shape.dtype
    if dtype.is_integer:
        high = min(2 ** (dtype.bits - 1) - 1, 10) if dtype.is_signed else min(2**dtype.bits - 1, 10)
        return rng.integers(0, high, shape.dims, endpoint=True).astype(dtype.numpy_dtype)
    if dtype.is_complex:
        return (rng.standard_normal(shape.dims) + 1j * rng.standard_normal(shape.dims)).astype(dtype.numpy_dtype)
    if dtype.is_float:
        return np.asarray(rng.standard_normal(shape.dims)).astype(dtype.numpy_dtype)
    return rng.random(shape.dims) < 0.5
