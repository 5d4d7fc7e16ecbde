"""Input of programs and arrays from files."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from cyxla.errors import InvalidArgumentError
from cyxla.types import UNBOUNDED, ElementType, Shape, element_type, from_numpy
from cyxla.xla.client import read_program
from cyxla.xla.client.program import read_with_specs
from cyxla.xla.hlo import HloModule
from cyxla.xla.service import CompileOptions
from cyxla.xla.stablehlo.sizes.unknown import UnknownSizeError

Array = np.ndarray[Any, Any]
_SPEC = re.compile(r"([a-z]\w*)\[([\d, ]*)\]")


def add_specs(parser: argparse.ArgumentParser) -> None:
    """Add the option that gives the arguments of a program of open sizes."""
    parser.add_argument(
        "--spec",
        action="append",
        default=[],
        metavar="TYPE[SIZES]",
        help="type of an argument of StableHLO with open sizes, in order: f32[2,3]",
    )


def read_shape(text: str) -> Shape:
    """Return the shape of a text such as ``f32[2,3]`` or ``float32[]``.

    Raises
    ------
    InvalidArgumentError
        The text is no such shape.
    """
    match = _SPEC.fullmatch(text.strip())
    if match is None:
        raise InvalidArgumentError(f"--spec {text}", hint="write a type and sizes: f32[2,3], float64[]")
    return Shape.array(_element_type(match[1]), [int(n) for n in match[2].split(",") if n.strip()])


def _element_type(name: str) -> ElementType:
    try:
        return from_numpy(np.dtype(name))
    except TypeError:
        return element_type(name)


def read_module(path: str, specs: Sequence[str] = ()) -> HloModule:
    """Read a module from a file, a proto if the suffix is .pb, else HLO text; ``-`` is standard input.

    Parameters
    ----------
    path : str
        Name of the file.
    specs : sequence of str
        Types of the arguments of StableHLO with open sizes; see `read_shape`.
    """
    return _read(_read_source(path), specs)


def _read_source(path: str) -> str | bytes:
    data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    if path.endswith(".pb"):
        return data
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(f"{path} is not text: {error}", hint="name a proto file .pb") from None


def _read(program: str | bytes, specs: Sequence[str]) -> HloModule:
    if specs:
        return read_with_specs(program, [read_shape(text) for text in specs])
    try:
        return read_program(program)
    except UnknownSizeError as error:
        if error.operation is None:  # an argument of open sizes
            error.hint = "give the types of all arguments: --spec f32[2,3]"
        raise


def read_module_and_inputs(path: str, specs: Sequence[str], files: Sequence[str], seed: int) -> tuple[HloModule, Any]:
    """Read a module and its arguments, from whose sizes and values StableHLO takes its open sizes.

    Parameters
    ----------
    path : str
        Name of the file; see `read_module`.
    specs : sequence of str
        Types of the arguments of StableHLO with open sizes; by default those of the arrays.
    files : sequence of str
        Names of files with arrays; see `read_inputs`.
    seed : int
        Seed of the random arguments.
    """
    program = _read_source(path)
    try:
        module = _read(program, specs)
    except UnknownSizeError as error:
        if not files or not isinstance(program, str):
            raise
        return _specialised(error, program, files, seed)
    return module, read_inputs(files, [p.shape.logical for p in module.parameters], seed)


def _specialised(error: UnknownSizeError, text: str, files: Sequence[str], seed: int) -> tuple[HloModule, Any]:
    """Return StableHLO that cannot be compiled alone, for the arguments in files."""
    from cyxla.xla.client.any_size import executable_of_any_size

    program = executable_of_any_size(error, text, "interpreter", CompileOptions.of({}))
    inputs = read_inputs(files, program.inputs, seed)
    return program.module_for(inputs), inputs


def read_inputs(files: Sequence[str], shapes: Sequence[Shape], seed: int) -> list[Any]:
    """Read arguments from .npy and .npz files in order; the remaining ones are random.

    Raises
    ------
    InvalidArgumentError
        A file holds no arrays, there are more arrays than parameters, or one of open sizes has no array.
    """
    arrays = [array for path in files for array in read_arrays(path)]
    if len(arrays) > len(shapes):
        raise InvalidArgumentError(f"{len(arrays)} arrays for {len(shapes)} parameters")
    for number, shape in enumerate(shapes[len(arrays) :], len(arrays)):
        if UNBOUNDED in shape.dims:
            raise InvalidArgumentError(
                f"argument {number} is {shape}, of open sizes, and has no array",
                hint=f"give --input {number + 1} times, or the types of all arguments: --spec f32[2,3]",
            )
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
