"""Compilation of programs in all accepted forms: text, bytes, modules, computations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cyxla.errors import DTypeError, InvalidArgumentError, UnimplementedError
from cyxla.progress import compiling
from cyxla.types import Shape, from_numpy
from cyxla.xla.client import platforms as _platforms  # registers the built-in platforms
from cyxla.xla.service import CompileOptions, Executable, LocalService

if TYPE_CHECKING:
    from cyxla.xla.hlo import HloModule

__all__ = ["compile_program", "read_program"]
_ = _platforms
_MLIR_BYTECODE = b"ML\xefR"
_ELIDED = re.compile(r"\{\s*\.\.\.\s*\}")


def read_program(program: Any) -> HloModule:
    """Read a program as an HLO module.

    Parameters
    ----------
    program : str, bytes, HloModule or XlaComputation
        HLO or StableHLO text, a serialised HloModuleProto or HloProto, a module, or a result of `XlaBuilder.build`.

    Raises
    ------
    InvalidArgumentError
        The program has another type, or is text that is neither HLO nor StableHLO.
    DataLossError
        The bytes are not a valid proto.
    UnimplementedError
        The program is a Python function, or uses an unsupported operation or format.
    """
    from cyxla.xla.hlo import HloModule

    if isinstance(program, HloModule):
        return program
    if isinstance(program, (bytes, bytearray, memoryview)):
        return _read_bytes(bytes(program))
    if isinstance(program, str):
        return _read_text(program)
    from cyxla.xla.hlo import XlaComputation

    if isinstance(program, XlaComputation):
        return program.module()
    if callable(program):
        raise UnimplementedError(
            "a client compiles programs, not Python functions", hint="use cyxla.jit, or cyxla.compile(function, *specs)"
        )
    raise InvalidArgumentError(
        f"cannot compile a {type(program).__name__}", hint="give HLO text, a proto, a module or a computation"
    )


def _read_bytes(data: bytes) -> HloModule:
    if data.startswith(_MLIR_BYTECODE):
        raise UnimplementedError("MLIR bytecode is not supported", hint="print the module as text")
    from cyxla.xla.hlo import HloModule

    return HloModule.from_proto(data)


def _read_text(text: str) -> HloModule:
    from cyxla.xla.stablehlo import is_stablehlo

    if is_stablehlo(text):
        from cyxla.xla.stablehlo import read_stablehlo

        return read_stablehlo(text)
    from cyxla.xla.hlo import parse_module

    return parse_module(text)


def read_with_specs(program: Any, specs: Sequence[Any]) -> HloModule:
    """Read StableHLO with open sizes for arguments of some shapes.

    Raises
    ------
    InvalidArgumentError
        The program is not StableHLO, and has its own shapes.
    """
    if not _is_stablehlo(program):
        raise InvalidArgumentError("argument specs are for Python functions; this program has its own shapes")
    from cyxla.xla.stablehlo import read_stablehlo

    return read_stablehlo(program, [_shape_of(s, k) for k, s in enumerate(specs)])


def _is_stablehlo(program: Any) -> bool:
    from cyxla.xla.stablehlo import is_stablehlo

    return isinstance(program, str) and is_stablehlo(program)


def _is_elided(program: str | bytes) -> bool:
    """Return True if constants may be elided: the reader warns of that, so such programs are always read."""
    return isinstance(program, str) and "..." in program and _ELIDED.search(program) is not None


def _shape_of(spec: Any, number: int) -> Shape:
    """Return the shape of an argument from a shape, an array, or an object with a shape and dtype."""
    if isinstance(spec, Shape):
        return spec
    try:
        sizes, dtype = (tuple(spec.shape), spec.dtype) if hasattr(spec, "dtype") else ((), None)
        return Shape.of(spec) if dtype is None else Shape.array(from_numpy(np.dtype(dtype)), sizes)
    except (TypeError, ValueError) as error:
        kind = DTypeError if isinstance(error, DTypeError) else InvalidArgumentError
        raise kind(
            f"argument {number} is described by {spec!r}: {error}"[:400],
            hint='give an array, cyxla.spec((3, 4), "f4"), or a pair ((3, 4), np.float32)',
        ) from None


def compile_program(program: Any, *specs: Any, platform: str = "cpu", **options: Any) -> Executable:
    """Compile a program; see `cyxla.compile`."""
    if specs and not callable(program):
        module = read_with_specs(program, specs)
        return LocalService(platform).build_executable(module, CompileOptions.of(options))
    compile_options = CompileOptions.of(options)
    try:
        with compiling("a program"):
            return _build(program, LocalService(platform), compile_options)
    except UnimplementedError as error:
        if not _is_stablehlo(program):
            raise
        from cyxla.xla.client.any_size import executable_of_any_size

        return executable_of_any_size(error, program, platform, compile_options)


def _build(program: Any, service: LocalService, options: CompileOptions) -> Executable:
    if isinstance(program, (str, bytes)) and not _is_elided(program):
        return service.build_from_source(program, lambda: read_program(program), options)
    return service.build_executable(read_program(program), options)
