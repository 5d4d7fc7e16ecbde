"""Test of a C compiler on loops that some compilers miscompile, written as the emitters write them.

A compiler is tested once, when it is probed. One that miscompiles a loop is run with flags that avoid this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cyxla._native.launch import Library, Program
from cyxla.types import ElementType as E
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.independence import independence
from cyxla.xla.cpu.c.prelude import prelude
from cyxla.xla.cpu.kernel.carried_products import VECTORIZATION_BARRIER
from cyxla.xla.cpu.native.build import compile_units
from cyxla.xla.cpu.native.toolchain import Toolchain, Unit

#: Flags that may avoid wrong code, by kind of the compiler, in the order in which they are tried.
WORKAROUNDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "gcc": (
        (),
        ("-fvect-cost-model=very-cheap",),
        ("-fno-tree-loop-vectorize",),
        ("-fno-tree-loop-vectorize", "-fno-tree-slp-vectorize"),
        ("-O0",),
    ),
    "clang": ((), ("-fno-vectorize",), ("-fno-vectorize", "-fno-slp-vectorize"), ("-O0",)),
}

PROBE_TIMEOUT = 60  # seconds that a compiler may take in the probe
_BYTES = 256  # size of the argument
_ROWS = 3  # rows of complex numbers
_ARGUMENT = np.arange(_BYTES, dtype=np.uint8) * 14 + 3  # odd, since repeated squares of even numbers are 0


class _Loop(NamedTuple):
    """A loop that squares a few integers again and again.

    Attributes
    ----------
    dtype : ElementType
        Type of the integers.
    lanes : int
        Number of integers.
    trip_count : int
        Number of iterations, each of which squares every integer.
    factor : bool
        Whether an iteration first multiplies by another number.
    """

    dtype: E
    lanes: int
    trip_count: int
    factor: bool

    def body(self, name: str) -> str:
        """Return the C of a function of that name, from bytes at `p` to bytes at `r`."""
        c, memory, lanes = scalar.storage_type(self.dtype), f"{name}_t", range(self.lanes)
        square = [self._square(f"x{k}", f"y{k}", k) for k in lanes]
        lines = [
            scalar.memory_typedef(memory, self.dtype),
            f"static __attribute__((noinline)) void {name}(const {memory} *p, {memory} *r) {{",
            *(f"{c} x{k} = p[{k}]; const {c} y{k} = p[{k + self.lanes}];" for k in lanes),
            f"for (int64_t t = 0; t < {self.trip_count}; ++t) {{ {VECTORIZATION_BARRIER}",
            *square,
            *(f"x{k} = v{k};" for k in lanes),
            "}",
            *(f"r[{k}] = x{k}; (void)y{k};" for k in lanes),
            "}",
        ]
        return "\n".join(lines) + "\n"

    def _square(self, x: str, y: str, lane: int) -> str:
        c, types, lines = scalar.register_type(self.dtype), [self.dtype, self.dtype], ""
        if self.factor:
            lines = f"const {c} w{lane} = {scalar.expression('multiply', self.dtype, types, {}, [x, y])}; "
            x = f"w{lane}"
        return lines + f"const {c} v{lane} = {scalar.expression('multiply', self.dtype, types, {}, [x, x])};"

    def __str__(self) -> str:
        return f"{self.dtype}[{self.lanes}], {self.trip_count} iterations"

    @property
    def nbytes(self) -> int:
        """Size of the result in bytes."""
        return self.lanes * self.dtype.bits // 8

    def result(self) -> bytes:
        """Return the bytes of the correct result."""
        numbers: np.ndarray = _ARGUMENT.view(np.dtype(self.dtype.numpy_dtype))
        x, y = numbers[: self.lanes], numbers[self.lanes : 2 * self.lanes]
        for _ in range(self.trip_count):
            x = (x * y) * (x * y) if self.factor else x * x
        return x.tobytes()


class _Epilogue(NamedTuple):
    """Rows of results of which a comparison with other rows selects some: the epilogue of a product.

    Attributes
    ----------
    rows, columns : int
        Numbers of rows and columns; the function gets the first as an argument, the second is written out.
    """

    rows: int
    columns: int

    def body(self, name: str) -> str:
        """Return the C of a function of that name, from bytes at `p` to bytes at `r`."""
        columns, size = self.columns, self.rows * self.columns
        select = f"const float v = p[{columns} * i + k]; r[{columns} * i + k] = v > 0.0f ? x[k] : 0.0f;"
        lines = [
            scalar.memory_typedef(f"{name}_t", E.F32),
            f"__attribute__((noinline)) void {name}_rows(void *const *bufs, int64_t row, int64_t rows, const float *x)",
            "{",
            f"const {name}_t *p = bufs[0]; {name}_t *r = bufs[1];",
            f"for (int64_t i = row; i < row + rows; ++i, x += {columns})",
            f"for (int k = 0; k < {columns}; ++k) {{ {select} }}",
            "}",
            f"static void {name}(const {name}_t *p, {name}_t *r) {{",
            f"float x[{size}]; void *const bufs[] = {{(void *)p, r}};",
            f"for (int k = 0; k < {size}; ++k) x[k] = p[k + {size}];",
            f"{name}_rows(bufs, 0, {self.rows}, x);",
            "}",
        ]
        return "\n".join(lines) + "\n"

    @property
    def nbytes(self) -> int:
        """Size of the result in bytes."""
        return 4 * self.rows * self.columns

    def result(self) -> bytes:
        """Return the bytes that the function has to write."""
        numbers = _ARGUMENT.view(np.float32)
        p, x = numbers[: self.rows * self.columns], numbers[self.rows * self.columns : 2 * self.rows * self.columns]
        return np.where(p > 0, x, np.float32(0)).tobytes()

    def __str__(self) -> str:
        return f"an epilogue of {self.rows} by {self.columns}"


class _ComplexRows(NamedTuple):
    """Rows of complex numbers made of a row of numbers and another one from the other end, as an element-wise kernel.

    Attributes
    ----------
    columns : int
        Length of a row, which is the constant trip count of the inner loop.
    """

    columns: int

    def body(self, name: str) -> str:
        """Return the C of a function of that name, from bytes at `p` to bytes at `r`."""
        columns = self.columns
        lines = [
            scalar.memory_typedef(f"{name}_t", E.F32),
            scalar.memory_typedef(f"{name}_z", E.C64),
            f"static __attribute__((noinline)) void {name}_rows(void *const *bufs, int64_t first, int64_t last) {{",
            f"const {name}_t *restrict p = bufs[0]; {name}_z *restrict r = bufs[1];",
            "for (int64_t u = first; u < last; ++u) {",
            f"const int64_t a = {columns} * u, b = {(_ROWS - 1) * columns} - {columns} * u;",
            *independence(columns, (E.C64,)),
            f"for (int k = 0; k < {columns}; ++k) r[a + k] = cyx_c64_of(p[a + k], p[b + k]);",
            "} }",
            f"static void {name}(const {name}_t *p, {name}_t *r) {{",
            f"void *const bufs[] = {{(void *)p, r}}; {name}_rows(bufs, 0, {_ROWS});",
            "}",
        ]
        return "\n".join(lines) + "\n"

    @property
    def nbytes(self) -> int:
        """Size of the result in bytes."""
        return 8 * _ROWS * self.columns

    def result(self) -> bytes:
        """Return the bytes that the function has to write."""
        rows = _ARGUMENT.view(np.float32)[: _ROWS * self.columns].reshape(_ROWS, self.columns)
        return np.stack([rows, rows[::-1]], axis=-1).tobytes()

    def __str__(self) -> str:
        return f"rows of {self.columns} complex numbers"


# Without `VECTORIZATION_BARRIER`, gcc 12 miscompiles one loop of each type, depending on levels and flags.
LOOPS: tuple[_Loop | _Epilogue | _ComplexRows, ...] = (
    *(_Loop(dtype, 4, 4, False) for dtype in (E.S8, E.S16, E.S32, E.S64)),
    *(_Loop(dtype, 1, 13, False) for dtype in (E.S16, E.S32, E.S64)),
    *(_Loop(dtype, 2, 4, True) for dtype in (E.S64, E.U16, E.U32)),
    _Epilogue(4, 7),  # gcc 12 selects wrong elements at -O3 if the number of rows is constant
    _ComplexRows(4),  # gcc 12 drops the stores at -O1 if it is told that they are independent
)


def check_text() -> str:
    """Return the C of all loops, with an entry that runs them."""
    calls, offset = [], 0
    for k, loop in enumerate(LOOPS):
        calls.append(f"l{k}(bufs[0], (void *)((char *)bufs[1] + {offset}));")
        offset += loop.nbytes
    body = "".join(loop.body(f"l{k}") for k, loop in enumerate(LOOPS))
    entry = "CYX_EXPORT cyx_status cyx_main(void *const *bufs, const cyx_ctx *ctx) {\n(void)ctx;\n"
    entry += f"__builtin_memset(bufs[1], 85, {offset});\n"  # memory of an earlier run may hold the right bytes
    text = f"CYX_LIBRARY\n{body}{entry}" + "\n".join(calls) + "\nreturn CYX_OK; }\n"
    return prelude(text) + text


def miscompiled_loops(tools: Toolchain, others: Sequence[Unit] = ()) -> list[str]:
    """Return a description of each loop that a toolchain miscompiles, of a library with other units, too."""
    expected = b"".join(loop.result() for loop in LOOPS)
    library = Library.from_bytes(compile_units(tools, [Unit(check_text()), *others], limit=PROBE_TIMEOUT))
    program = Program(library, "cyx_main", [(np.uint8, (_BYTES,))], [(np.uint8, (len(expected),))], 0)
    actual, miscompiled, offset = bytes(program(_ARGUMENT)), [], 0
    for loop in LOOPS:
        if actual[offset : offset + loop.nbytes] != expected[offset : offset + loop.nbytes]:
            miscompiled.append(str(loop))
        offset += loop.nbytes
    return miscompiled


def find_workaround(tools: Toolchain, others: Sequence[Unit] = ()) -> tuple[str, ...] | None:
    """Return the first flags with which a toolchain compiles every loop correctly, or None.

    Parameters
    ----------
    tools : Toolchain
        Compiler, without such flags, and level.
    others : sequence of Unit
        Units to compile and link as well.

    Raises
    ------
    InternalError, ResourceExhaustedError, DeadlineExceededError
        The compiler refuses a text or crashes.
    """
    for flags in WORKAROUNDS[tools.compiler.kind]:
        if not miscompiled_loops(tools._replace(compiler=tools.compiler._replace(workaround=flags)), others):
            return flags
    return None
