"""`ckernel`: C statements as a function of arrays."""

from __future__ import annotations

import ast
import ctypes
import operator
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from cyxla.errors import DTypeError, InvalidArgumentError, NoCompilerError, ShapeError
from cyxla.include_dir import get_include
from cyxla.numpy.custom_calls.registration import ArraySpec, CustomCall, custom_call, register_c_call
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced
from cyxla.numpy.tracing.user_program.api_boundary import api_boundary
from cyxla.records import dataclass
from cyxla.xla.cpu.native import cache as store
from cyxla.xla.cpu.native import compiler_search
from cyxla.xla.cpu.native.toolchain import Toolchain

#: Element types of the declarations, with their C type and NumPy dtype.
_TYPES: Final = {
    "bool": ("uint8_t", "?"), "i8": ("int8_t", "b"), "i16": ("int16_t", "h"), "i32": ("int32_t", "i4"),
    "i64": ("int64_t", "i8"), "u8": ("uint8_t", "u1"), "u16": ("uint16_t", "u2"), "u32": ("uint32_t", "u4"),
    "u64": ("uint64_t", "u8"), "f32": ("float", "f4"), "f64": ("double", "f8"), "c64": ("float _Complex", "c8"),
    "c128": ("double _Complex", "c16"),
}  # fmt: skip
_ARRAY = re.compile(r"\s*(\w+)\s*:\s*(\w+)\s*\[([^\]]*)\]\s*")
_NAME = re.compile(r"[A-Za-z_]\w*")
_OPERATORS: Final[dict[type, Callable[[int, int], int]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}  # fmt: skip
_TIMEOUT: Final = 60.0


@dataclass(frozen=True)
class ArrayDeclaration:
    """Declared array of a kernel, such as ``x:f32[n,3]``."""

    name: str
    type: str
    sizes: tuple[str, ...]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type of the array."""
        return np.dtype(_TYPES[self.type][1])


def parse_declarations(text: str, option: str) -> list[ArrayDeclaration]:
    """Parse declarations such as ``a:f32[], x:f32[n]``.

    Raises
    ------
    InvalidArgumentError
        The text is not a list of declarations.
    """
    declarations, position = [], 0
    while position < len(text):
        match = _ARRAY.match(text, position)
        if match is None or (match.end() < len(text) and text[match.end()] != ","):
            raise InvalidArgumentError(
                f"{option}={text!r}: expected a declaration at {text[position:]!r}", hint="such as x:f32[n,3], y:i64[]"
            )
        name, type_name, sizes = match.groups()
        if type_name not in _TYPES:
            raise InvalidArgumentError(
                f"{option}={text!r}: {type_name!r} is not a type", hint=f"use one of {', '.join(_TYPES)}"
            )
        if not _NAME.fullmatch(name):
            raise InvalidArgumentError(f"{option}={text!r}: {name!r} is not an identifier of C")
        declarations.append(
            ArrayDeclaration(name, type_name, tuple(s.strip() for s in sizes.split(",")) if sizes.strip() else ())
        )
        position = match.end() + 1
    return declarations


class Declarations:
    """Declared arrays of a kernel; `size_sources` holds the operand and dimension of each named size."""

    def __init__(self, kernel: str, args: str, out: str) -> None:
        self.kernel = kernel
        self.inputs, self.outputs = parse_declarations(args, "args"), parse_declarations(out, "out")
        if not self.outputs:
            raise InvalidArgumentError(f"ckernel {kernel}: out= declares no array")
        self.size_sources = {
            size: (k, d)
            for k, a in reversed(list(enumerate(self.inputs)))
            for d, size in reversed(list(enumerate(a.sizes)))
            if _NAME.fullmatch(size)
        }
        names = [a.name for a in (*self.inputs, *self.outputs)] + list(self.size_sources)
        if len(set(names)) != len(names):
            raise InvalidArgumentError(f"ckernel {kernel}: a name is declared twice in {args!r} and {out!r}")
        for a in (*self.inputs, *self.outputs):
            for size in a.sizes:
                _evaluate_size(size, dict.fromkeys(self.size_sources, 1), kernel)

    def bind_sizes(self, specs: Sequence[Any]) -> dict[str, int]:
        """Return the sizes of a call's arguments by name.

        Raises
        ------
        ShapeError
            The shapes differ from the declarations, or disagree with each other.
        DTypeError
            A dtype differs from the declaration.
        """
        if len(specs) != len(self.inputs):
            raise InvalidArgumentError(f"ckernel {self.kernel} takes {len(self.inputs)} arrays, not {len(specs)}")
        for a, spec in zip(self.inputs, specs, strict=True):
            if np.dtype(spec.dtype) != a.dtype:
                raise DTypeError(f"ckernel {self.kernel}: {a.name} has dtype {spec.dtype}, but is declared as {a.type}")
            if len(spec.shape) != len(a.sizes):
                raise ShapeError(
                    f"ckernel {self.kernel}: {a.name} has {len(spec.shape)} dimensions, not {len(a.sizes)}"
                )
        sizes_by_name = {name: specs[k].shape[d] for name, (k, d) in self.size_sources.items()}
        for a, spec in zip(self.inputs, specs, strict=True):
            expected = tuple(_evaluate_size(s, sizes_by_name, self.kernel) for s in a.sizes)
            if expected != tuple(spec.shape):
                raise ShapeError(f"ckernel {self.kernel}: {a.name} has shape {tuple(spec.shape)}, not {expected}")
        return sizes_by_name

    def result(self, *specs: Any) -> Any:
        """Return the specs of the results for a call's arguments."""
        sizes_by_name = self.bind_sizes(specs)
        result_specs = [
            ArraySpec([_evaluate_size(s, sizes_by_name, self.kernel) for s in o.sizes], o.dtype) for o in self.outputs
        ]
        for spec in result_specs:
            if any(n < 0 for n in spec.shape):
                raise ShapeError(f"ckernel {self.kernel}: a result would have the negative shape {spec.shape}")
        return result_specs[0] if len(result_specs) == 1 else tuple(result_specs)


def _evaluate_size(size: str, sizes_by_name: Mapping[str, int], kernel: str) -> int:
    """Evaluate a size: numbers, names, ``+ - * // %`` and parentheses."""

    def evaluate(node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return node.value
        if isinstance(node, ast.Name) and node.id in sizes_by_name:
            return sizes_by_name[node.id]
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](evaluate(node.left), evaluate(node.right))
        raise InvalidArgumentError(
            f"ckernel {kernel}: {size!r} is not a size", hint="use numbers, names of argument sizes, and + - * // %"
        )

    try:
        return evaluate(ast.parse(size, mode="eval").body)
    except (SyntaxError, ZeroDivisionError) as error:
        raise InvalidArgumentError(f"ckernel {kernel}: {size!r} is not a size: {error}") from None


def c_source(declarations: Declarations, body: str, preamble: str = "") -> str:
    """Return the C source of a kernel."""
    typedefs = "\n".join(f"typedef {c} {name};" for name, (c, _) in _TYPES.items() if name != "bool")
    parameters, arguments = [], []
    for k, a in enumerate(declarations.inputs):
        kind = _c_type(a)
        parameters.append(f"const {kind} *restrict {a.name}" if a.sizes else f"const {kind} {a.name}")
        arguments.append(f"in[{k}]" if a.sizes else f"*(const {kind} *)in[{k}]")
    for k, a in enumerate(declarations.outputs):
        parameters.append(f"{_c_type(a)} *restrict {a.name}")
        arguments.append(f"out[{k}]")
    for name, (k, d) in declarations.size_sources.items():
        parameters.append(f"const i64 {name}")
        arguments.append(f"info->input[{k}].dims[{d}]")
    return f"""\
#include <math.h>
#include <string.h>
{(Path(get_include()) / "cyxla" / "call.h").read_text()}
{typedefs}
{preamble}
static inline void kernel({", ".join(parameters)}) {{
#line 1 "{declarations.kernel}"
{body}
}}
__attribute__((visibility("default"))) void cyxla_ckernel(void **out, const void **in, const cyxla_call_info *info) {{
  (void)in; (void)info;
  kernel({", ".join(arguments)});
}}
"""


def _c_type(array: ArrayDeclaration) -> str:
    return _TYPES[array.type][0]


@cache
def _compile_and_load(text: str, kernel: str) -> tuple[int, Any]:
    """Compile a kernel; return its address, and the library that holds it."""
    tools = compiler_search.require()
    disk = store.open_cache()
    key = store.digest("ckernel", tools.fingerprint, text)
    path = disk.get_or_build(key, lambda: _compile(tools, text, kernel)) if disk is not None else None
    if path is not None:
        library = ctypes.CDLL(str(path))
    else:
        with tempfile.NamedTemporaryFile(prefix="cyxla-", suffix=".so") as file:
            file.write(_compile(tools, text, kernel))
            file.flush()
            library = ctypes.CDLL(file.name)
    return ctypes.cast(library.cyxla_ckernel, ctypes.c_void_p).value or 0, library


def _compile(tools: Toolchain, text: str, kernel: str) -> bytes:
    """Compile and link a shared object by the compiler's driver, since the kernel may use the C library.

    Raises
    ------
    InvalidArgumentError
        The compiler rejects the source; the message contains its output.
    """
    with tempfile.TemporaryDirectory(prefix="cyxla-") as folder:
        Path(folder, "kernel.c").write_text(text, encoding="utf-8")
        command = [*tools.compiler.command, *tools.flags(), "-shared", "kernel.c", "-o", "kernel.so", "-lm"]
        process = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT, check=False
        )
        if process.returncode:
            errors = "\n".join(line for line in process.stderr.splitlines() if "error" in line)[:600]
            raise InvalidArgumentError(
                f"ckernel {kernel}: the C compiler reports errors:\n{errors or process.stderr[:600]}"
            )
        return Path(folder, "kernel.so").read_bytes()


class CKernel:
    """C kernel as a function of arrays, inside and outside of traced functions."""

    def __init__(self, call: CustomCall, declarations: Declarations) -> None:
        self._call, self._declarations = call, declarations

    def __repr__(self) -> str:
        return f"CKernel({self._call.name!r})"

    @api_boundary
    def __call__(self, *args: Any) -> Any:
        """Call the kernel; Python numbers are converted to the declared dtypes."""
        return self._call(*[_convert_argument(a, d) for a, d in zip(args, self._declarations.inputs, strict=False)])


def _convert_argument(value: Any, array: ArrayDeclaration) -> Any:
    if isinstance(value, TracedArray):
        return as_traced(value, array.dtype) if value.weak else value
    return np.asarray(value, array.dtype) if type(value) in (bool, int, float, complex, list) else value


@api_boundary
def ckernel(
    name: str, body: str, *, args: str, out: str, fallback: Callable[..., Any] | None = None, vjp: Any = None,
    preamble: str = "", replace: bool = False,
) -> CKernel:  # fmt: skip
    """Make a function of arrays from C statements.

    Parameters
    ----------
    name : str
        Custom-call target, as for `custom_call`.
    body : str
        C statements. Arrays are pointers of their names, arguments of rank 0 are values, results of rank 0 pointers to
        one element; every name of a size is an ``i64``. Types have their names from `args`; <math.h>, <string.h> and
        cyxla/call.h are included. Results do not overlap arguments and are uninitialised.
    args, out : str
        Declarations of the arrays, such as ``"a:f32[], x:f32[n], y:f32[n,3]"``. Sizes are numbers, names, and ``+ - *
        // %`` of those; the value of a name is the size of an argument.
    fallback : callable, optional
        Python function, as for `custom_call`, for machines without a C compiler.
    vjp : callable, optional
        Derivative, as for `custom_call`.
    preamble : str
        C code before the function: helpers, includes.
    replace : bool
        Whether to replace a target of that name.

    Raises
    ------
    NoCompilerError
        There is no C compiler, and no `fallback`.
    InvalidArgumentError
        The compiler rejects the source, or the declarations are invalid.
    """
    declarations = Declarations(name, args, out)
    if compiler_search.find() is None:
        if fallback is None:
            raise NoCompilerError(
                f"ckernel {name}: {compiler_search.NO_COMPILER}",
                hint="pass fallback=, or " + compiler_search.COMPILER_HINT,
            )
        fallback_call = custom_call(name, result=declarations.result, vjp=vjp, replace=replace)(fallback)
        return CKernel(fallback_call, declarations)
    address, _ = _compile_and_load(c_source(declarations, body, preamble), name)
    call = register_c_call(name, address, result=declarations.result, vjp=vjp, replace=replace)
    return CKernel(call, declarations)
