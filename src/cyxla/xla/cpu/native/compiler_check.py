"""Test of a C compiler on loops that some compilers get wrong, written as the emitters write them.

A compiler is asked once, when it is tried out. One that gets a loop wrong is given flags that keep it from doing so.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cyxla._native.launch import Library, Program
from cyxla.types import ElementType as E
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.prelude import prelude
from cyxla.xla.cpu.kernel.carried_products import VECTORIZATION_BARRIER
from cyxla.xla.cpu.native.toolchain import Toolchain, Unit

#: Flags that may cure a compiler, by its kind, in the order in which they are tried.
CURES: dict[str, tuple[tuple[str, ...], ...]] = {
    "gcc": (
        (),
        ("-fvect-cost-model=very-cheap",),
        ("-fno-tree-loop-vectorize",),
        ("-fno-tree-loop-vectorize", "-fno-tree-slp-vectorize"),
        ("-O0",),
    ),
    "clang": ((), ("-fno-vectorize",), ("-fno-vectorize", "-fno-slp-vectorize"), ("-O0",)),
}

PATIENCE = 60  # seconds for a compiler that is tried out
_BYTES = 256
_ARGUMENT = np.arange(_BYTES, dtype=np.uint8) * 14 + 3  # odd numbers of every type: squares of even ones soon are 0


class _Loop(NamedTuple):
    """A loop over a few integers.

    Attributes
    ----------
    dtype : ElementType
        Their type.
    lanes : int
        How many there are.
    turns : int
        How often each is squared.
    factor : bool
        Multiply by another number before.
    """

    dtype: E
    lanes: int
    turns: int
    factor: bool

    def body(self, name: str) -> str:
        """The C of a function of that name, from bytes at `p` to bytes at `r`."""
        c, memory, places = scalar.storage_type(self.dtype), f"{name}_t", range(self.lanes)
        square = [self._square(f"x{k}", f"y{k}", k) for k in places]
        lines = [
            scalar.memory_typedef(memory, self.dtype),
            f"static __attribute__((noinline)) void {name}(const {memory} *p, {memory} *r) {{",
            *(f"{c} x{k} = p[{k}]; const {c} y{k} = p[{k + self.lanes}];" for k in places),
            f"for (int64_t t = 0; t < {self.turns}; ++t) {{ {VECTORIZATION_BARRIER}",
            *square,
            *(f"x{k} = v{k};" for k in places),
            "}",
            *(f"r[{k}] = x{k}; (void)y{k};" for k in places),
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
        return f"{self.dtype}[{self.lanes}], {self.turns} turns"

    @property
    def nbytes(self) -> int:
        """The size of the result."""
        return self.lanes * self.dtype.bits // 8

    def result(self) -> bytes:
        """What it has to give."""
        numbers: np.ndarray = _ARGUMENT.view(np.dtype(self.dtype.numpy_dtype))
        x, y = numbers[: self.lanes], numbers[self.lanes : 2 * self.lanes]
        for _ in range(self.turns):
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
        return f"""{scalar.memory_typedef(f"{name}_t", E.F32)}
__attribute__((noinline)) void {name}_rows(void *const *bufs, int64_t row, int64_t rows, const float *restrict x) {{
  const {name}_t *p = bufs[0];
  {name}_t *r = bufs[1];
  for (int64_t i = row; i < row + rows; ++i, x += {self.columns}) {{
    for (int k = 0; k < {self.columns}; ++k) {{
      const float v = p[{self.columns} * i + k];
      r[{self.columns} * i + k] = v > 0.0f ? x[k] : 0.0f;
    }}
  }}
}}
static void {name}(const {name}_t *p, {name}_t *r) {{
  float x[{self.rows * self.columns}];
  for (int k = 0; k < {self.rows * self.columns}; ++k) x[k] = p[k + {self.rows * self.columns}];
  void *const bufs[] = {{(void *)p, r}};
  {name}_rows(bufs, 0, {self.rows}, x);
}}
"""

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


# gcc 12 gets one of each type wrong without `VECTORIZATION_BARRIER`; which of them, differs between levels and flags.
LOOPS: tuple[_Loop | _Epilogue, ...] = (
    *(_Loop(dtype, 4, 4, False) for dtype in (E.S8, E.S16, E.S32, E.S64)),
    *(_Loop(dtype, 1, 13, False) for dtype in (E.S16, E.S32, E.S64)),
    *(_Loop(dtype, 2, 4, True) for dtype in (E.S64, E.U16, E.U32)),
    _Epilogue(4, 7),  # at -O3 gcc 12 selects others, once it knows the number of rows
)


def check_text() -> str:
    """The C of all loops, with an entry that runs them."""
    calls, place = [], 0
    for k, loop in enumerate(LOOPS):
        calls.append(f"l{k}(bufs[0], (void *)((char *)bufs[1] + {place}));")
        place += loop.nbytes
    body = "".join(loop.body(f"l{k}") for k, loop in enumerate(LOOPS))
    entry = "CYX_EXPORT cyx_status cyx_main(void *const *bufs, const cyx_ctx *ctx) {\n(void)ctx;\n"
    text = f"CYX_LIBRARY\n{body}{entry}" + "\n".join(calls) + "\nreturn CYX_OK; }\n"
    return prelude(text) + text


def wrong_loops(tools: Toolchain) -> list[str]:
    """The loops of which a toolchain makes something else than they say; each described."""
    want = b"".join(loop.result() for loop in LOOPS)
    library = Library.from_bytes(tools.compile([Unit(check_text())], limit=PATIENCE))
    program = Program(library, "cyx_main", [(np.uint8, (_BYTES,))], [(np.uint8, (len(want),))], 0)
    got, found, place = bytes(program(_ARGUMENT)), [], 0
    for loop in LOOPS:
        if got[place : place + loop.nbytes] != want[place : place + loop.nbytes]:
            found.append(str(loop))
        place += loop.nbytes
    return found


def cure(tools: Toolchain) -> tuple[str, ...] | None:
    """The flags with which a toolchain gets every loop right; None if there are none."""
    for flags in CURES[tools.compiler.kind]:
        if not wrong_loops(tools._replace(compiler=tools.compiler._replace(cure=flags))):
            return flags
    return None
