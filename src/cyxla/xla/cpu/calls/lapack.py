"""LAPACK custom calls, by way of SciPy's LAPACK; a unit of work is one problem of a batch.

They are those that JAX emits, and XLA's built-in ones of complex matrices.

LAPACK's matrices are stored by columns, those of arrays by rows: operands are transposed into working memory, and
results back, so a routine may overwrite its operands.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final

from cyxla.errors import UnimplementedError
from cyxla.records import dataclass
from cyxla.types import ElementType, Shape
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind, Step
from cyxla.xla.cpu.kernel.kernel_writer import KernelWriter, describe
from cyxla.xla.cpu.kernel.values import own_leaves, resolve
from cyxla.xla.evaluator.custom_calls import is_built_in, options_of
from cyxla.xla.hlo import Instruction

_DTYPES: Final = {"s": ElementType.F32, "d": ElementType.F64, "c": ElementType.C64, "z": ElementType.C128}
_BLOCK: Final = 64  # columns that a blocked routine works on at once; workspaces are sized for it
_MAX_SHARED_SIZE: Final = 64  # matrices up to this size are divided among threads; LAPACK itself threads larger ones
_BAD_ARGUMENT: Final = -4  # info of a matrix with infinities or nan, for which LAPACK may not return
_MAX_INT: Final = 2**31 - 1  # largest integer of LAPACK
# ns of a multiply-add, and of a call without its arithmetic, by which batches of small matrices are divided among
# threads; assumed, since each process has its own library.
_MAC_NS, _CALL_NS = 0.3, 1000


@dataclass(frozen=True)
class _Routine:
    write: Callable[[_Problem], None]
    ranks: tuple[int, ...]
    letters: str


ROUTINES: dict[str, _Routine] = {}
_BUILT_IN: dict[str, _Routine] = {}  # for complex matrices
_LETTERS: Final = {ElementType.C64: "c", ElementType.C128: "z"}


def _routine(name: str, *ranks: int, letters: str = "sdcz") -> Callable[..., Callable[[_Problem], None]]:
    def register(write: Callable[[_Problem], None]) -> Callable[[_Problem], None]:
        for letter in letters:
            ROUTINES[f"lapack_{letter}{name}_ffi"] = _Routine(write, ranks, letters)
        return write

    return register


def _built_in(target: str, *ranks: int) -> Callable[..., Callable[[_Problem], None]]:
    def register(write: Callable[[_Problem], None]) -> Callable[[_Problem], None]:
        _BUILT_IN[target] = _Routine(write, ranks, "cz")
        return write

    return register


class _Problem:
    """Writes the C of one problem of a batch.

    Attributes
    ----------
    c : CWriter
        Lines of the problem; ``u`` is its number.
    nbytes : int
        Bytes of working memory.
    functions : list of str
        Routines that the problem calls, in the order of the calls.
    numbers : set of int
        Integers that are passed to routines.
    """

    def __init__(self, ins: Instruction, letter: str, ranks: tuple[int, ...]) -> None:
        self.letter, self.dtype = letter, _DTYPES[letter]
        self.real = self.dtype.real_part if self.is_complex else self.dtype
        self.options = options_of(ins)
        self.operands = [o.shape.dims[o.shape.rank - r :] for o, r in zip(ins.operands, ranks, strict=True)]
        self.operand_types = [o.shape.dtype for o in ins.operands]
        batch = ins.operands[0].shape.rank - ranks[0]
        self.results = [leaf.static.dims[batch:] for leaf in ins.shape.leaves()]
        self.result_types = [leaf.dtype for leaf in ins.shape.leaves()]
        self.c = CWriter()
        self.nbytes = 0
        self.functions: list[str] = []
        self.numbers: set[int] = set()

    @property
    def is_complex(self) -> bool:
        """True if elements are complex."""
        return self.letter in "cz"

    def is_set(self, option: str, character: str) -> bool:
        """Return whether an option holds a character."""
        value = self.options.get(option, 0)
        return bool(value == (character if isinstance(value, str) else ord(character)))

    def choice(self, option: str, characters: str) -> str:
        """Return the C of an option that is one of some characters, the first by default."""
        return _char(next((c for c in characters[1:] if self.is_set(option, c)), characters[0]))

    # --- memory -----------------------------------------------------------------------------------------------------

    def workspace(self, count: int, dtype: ElementType | None = None) -> str:
        """Write a pointer to working memory for some elements; return its name."""
        dtype = dtype or self.dtype
        name, kind = self.c.name("w"), scalar.storage_type(dtype)
        self.c.line(f"{kind} *const {name} = ({kind} *)(room + {self.nbytes});")
        self.nbytes += -(-max(count, 1) * dtype.itemsize // 64) * 64
        return name

    def integers(self, count: int) -> str:
        """Write a pointer to working memory for integers; return its name."""
        return self.workspace(count, ElementType.S32)

    def load(self, k: int) -> str:
        """Write a copy of operand `k` by columns; return its name."""
        dims = self.operands[k]
        name = self.workspace(prod(dims), self.operand_types[k])
        self._each(
            dims, lambda column_major, row_major: f"{name}[{column_major}] = p{k}[u * {prod(dims)} + {row_major}];"
        )
        return name

    def store(self, leaf: int, name: str) -> None:
        """Write result `leaf` from an array by columns."""
        dims = self.results[leaf]
        self._each(
            dims, lambda column_major, row_major: f"r{leaf}[u * {prod(dims)} + {row_major}] = {name}[{column_major}];"
        )

    def fill(self, leaf: int, value: str) -> None:
        """Write one value to all elements of result `leaf`."""
        size = prod(self.results[leaf])
        self.c.line(f"for (int64_t i = 0; i < {size}; ++i) r{leaf}[u * {size} + i] = {value};")

    def zero(self, leaf: int) -> str:
        """Return zero of a result's type."""
        dtype = self.result_types[leaf]
        return scalar.literal(dtype, dtype.numpy_dtype.type(0))  # type: ignore[union-attr]

    def _each(self, dims: tuple[int, ...], line: Callable[[str, str], str]) -> None:
        if len(dims) < 2:
            self.c.line(f"for (int64_t i = 0; i < {prod(dims)}; ++i) {line('i', 'i')}")
            return
        rows, columns = dims
        loops = f"for (int64_t i = 0; i < {rows}; ++i) for (int64_t j = 0; j < {columns}; ++j) "
        self.c.line(loops + line(f"j * {rows} + i", f"i * {columns} + j"))

    # --- calls ------------------------------------------------------------------------------------------------------

    def call(self, name: str, *arguments: str | int) -> None:
        """Write a call of a routine, named without its letter; numbers are passed by address, as Fortran does."""
        number = len(self.functions)
        self.functions.append(self.letter + name)
        self.numbers.update(a for a in arguments if isinstance(a, int))
        kinds = ", ".join(["void *"] * len(arguments))
        values = ", ".join(_int(a) if isinstance(a, int) else a for a in arguments)
        self.c.line(f"((void (*)({kinds})){{F{number}}})({values});")

    def if_finite(
        self, name: str, count: int, write: Callable[[], None], info: int, skip: tuple[int, ...] = ()
    ) -> None:
        """Write a branch for finite elements by `write`; with others results are NaN, or zero if they are in `skip`."""
        parts = [f"{name}[i].re", f"{name}[i].im"] if self.is_complex else [f"{name}[i]"]
        bad = " || ".join(f"{x} - {x} != 0" for x in parts)
        self.c.line("int bad = 0;")
        self.c.line(f"for (int64_t i = 0; i < {count}; ++i) bad |= {bad};")
        with self.c.block("if (bad)"):
            for leaf, dtype in enumerate(self.result_types):
                if leaf == info:
                    self.fill(leaf, str(_BAD_ARGUMENT))
                else:
                    self.fill(leaf, self.zero(leaf) if leaf in skip else _nan(dtype))
        with self.c.block("else"):
            write()


def _char(character: str) -> str:
    return f"&(char){{'{character}'}}"


def _int(number: int) -> str:
    return f"&(int){{{number}}}"


def _nan(dtype: ElementType) -> str:
    part = dtype.real_part if dtype.is_complex else dtype
    nan = '__builtin_nanf("")' if part is ElementType.F32 else '__builtin_nan("")'
    return f"cyx_{dtype}_of({nan}, 0)" if dtype.is_complex else nan


# --- kernel ----------------------------------------------------------------------------------------------------------


def is_lapack(ins: Instruction) -> bool:
    """Return whether a custom call is one of these routines."""
    return _routine_of(ins) is not None


def _routine_of(ins: Instruction) -> tuple[_Routine, str] | None:
    """Return the routine of a call, and the letter of its element type."""
    target = ins.attrs["custom_call_target"]
    if target in ROUTINES:
        return ROUTINES[target], target.removeprefix("lapack_")[0]
    if target not in _BUILT_IN or not is_built_in(target):
        return None
    shapes, routine = [o.shape for o in ins.operands], _BUILT_IN[target]
    if len(shapes) != len(routine.ranks) or any(not s.is_array or not s.size for s in shapes):
        return None
    letter = _LETTERS.get(shapes[0].dtype)
    batches = {s.dims[: s.rank - rank] for s, rank in zip(shapes, routine.ranks, strict=True)}
    return (routine, letter) if letter is not None and len(batches) == 1 else None


def lapack(ins: Instruction) -> Step:
    """Return the kernel of a call."""
    target, found = ins.attrs["custom_call_target"], _routine_of(ins)
    assert found is not None
    routine, letter = found
    problem = _Problem(ins, letter, routine.ranks)
    first: Shape = ins.operands[0].shape
    units = prod(first.dims[: first.rank - routine.ranks[0]])
    matrix = next(o for o, rank in zip(ins.operands[::-1], routine.ranks[::-1], strict=True) if rank == 2)
    if matrix.shape.size:
        routine.write(problem)
        _check_numbers(problem, ins)
    else:
        units = 1
        for leaf in range(len(problem.results)):
            size = ins.shape.leaves()[leaf].size
            problem.c.line(f"for (int64_t i = 0; i < {size}; ++i) r{leaf}[i] = {problem.zero(leaf)};")
    reads, writes = [resolve(o) for o in ins.operands], own_leaves(ins)
    n = max(problem.operands[0], default=1)
    ns = units * (prod(problem.operands[0]) * n * _MAC_NS * (4 if problem.is_complex else 1) + _CALL_NS)
    tasks = cost.tasks(ns, units) if n <= _MAX_SHARED_SIZE else 1
    pointers = {
        f"{{F{k}}}": f"bufs[{len(reads) + len(writes) + (1 if problem.nbytes else 0) + k}]"
        for k in range(len(problem.functions))
    }
    c = KernelWriter(reads, writes)
    with c.kernel(units, tasks, describe(target.removesuffix("_ffi"), first)):
        if problem.nbytes:
            c.line(f"char *const room = {c.scratch()} + begin * {problem.nbytes};")
        for text in problem.c.written:
            for mark, pointer in pointers.items():
                text = text.replace(mark, pointer)
            c.line(text)
    kernel = Kernel(c.text(), tasks, ns, tasks * problem.nbytes, KernelKind.LAPACK)
    return Step(kernel, tuple(reads), tuple(writes), functions=tuple(problem.functions))


def _check_numbers(problem: _Problem, ins: Instruction) -> None:
    largest = max(problem.numbers, default=0)
    if largest > _MAX_INT:
        raise UnimplementedError(
            f"{ins.attrs['custom_call_target']} needs the number {largest}, but LAPACK counts with 32 bits",
            where=repr(ins),
            hint='smaller matrices, or platform="interpreter"',
        )


# --- the routines -----------------------------------------------------------------------------------------------------


@_routine("potrf", 2)
def _potrf(p: _Problem) -> None:
    n, a, info = p.operands[0][0], p.load(0), p.integers(1)
    p.call("potrf", p.choice("uplo", "UL"), n, a, n, info)
    p.store(0, a)
    p.store(1, info)


@_routine("trsm", 2, 2)
def _trsm(p: _Problem) -> None:
    a, b, (rows, columns) = p.load(0), p.load(1), p.operands[1]
    one = scalar.literal(p.dtype, p.dtype.numpy_dtype.type(1))  # type: ignore[union-attr]
    p.c.line(f"{scalar.storage_type(p.dtype)} one = {one};")
    options = (
        p.choice("side", "LR"), p.choice("uplo", "UL"), p.choice("trans_x", "NTC"), p.choice("diag", "NU")
    )  # fmt: skip
    p.call("trsm", *options, rows, columns, "&one", a, p.operands[0][0], b, max(rows, 1))
    p.store(0, b)


@_routine("getrf", 2)
def _getrf(p: _Problem) -> None:
    rows, columns = p.operands[0]
    a, pivots, info = p.load(0), p.integers(min(rows, columns)), p.integers(1)
    p.call("getrf", rows, columns, a, rows, pivots, info)
    p.store(0, a)
    p.store(1, pivots)
    p.store(2, info)


@_built_in("LuDecomposition", 2)
def _lu_decomposition(p: _Problem) -> None:
    rows, columns = p.operands[0]
    count = min(rows, columns)
    a, pivots, info = p.load(0), p.integers(count), p.integers(1)
    p.call("getrf", rows, columns, a, rows, pivots, info)
    p.store(0, a)
    p.c.line(f"for (int64_t i = 0; i < {rows}; ++i) r2[u * {rows} + i] = i;")
    with p.c.block(f"for (int64_t i = 0; i < {count}; ++i)"):
        p.c.line(f"const int32_t j = {pivots}[i] - 1, old = r2[u * {rows} + i];")
        p.c.line(f"r1[u * {count} + i] = j;")
        p.c.line(f"r2[u * {rows} + i] = r2[u * {rows} + j];")
        p.c.line(f"r2[u * {rows} + j] = old;")


@_built_in("Qr", 2)
@_routine("geqrf", 2)
def _geqrf(p: _Problem) -> None:
    rows, columns = p.operands[0]
    a, tau, work, info = p.load(0), p.workspace(min(rows, columns)), p.workspace(columns * _BLOCK), p.integers(1)
    p.call("geqrf", rows, columns, a, rows, tau, work, columns * _BLOCK, info)
    p.store(0, a)
    p.store(1, tau)


@_built_in("ProductOfElementaryHouseholderReflectors", 2, 1)
@_routine("orgqr", 2, 1, letters="sd")
@_routine("ungqr", 2, 1, letters="cz")
def _orgqr(p: _Problem) -> None:
    rows, columns = p.operands[0]
    a, tau, work, info = p.load(0), p.load(1), p.workspace(columns * _BLOCK), p.integers(1)
    name = "ungqr" if p.is_complex else "orgqr"
    p.call(name, rows, columns, p.operands[1][0], a, rows, tau, work, columns * _BLOCK, info)
    p.store(0, a)


@_routine("ormqr", 2, 1, 2, letters="sd")
@_routine("unmqr", 2, 1, 2, letters="cz")
def _ormqr(p: _Problem) -> None:
    rows, columns = p.operands[2]
    is_left, is_transposed = bool(p.options.get("left", True)), bool(p.options.get("transpose", False))
    length = (columns if is_left else rows) * _BLOCK + (_BLOCK + 1) * _BLOCK
    a, tau, target, work, info = p.load(0), p.load(1), p.load(2), p.workspace(length), p.integers(1)
    name, op = ("unmqr", "C") if p.is_complex else ("ormqr", "T")
    p.call(
        name, _char("L" if is_left else "R"), _char(op if is_transposed else "N"), rows, columns, p.operands[1][0], a,
        p.operands[0][0], tau, target, rows, work, length, info,
    )  # fmt: skip
    p.store(0, target)


@_routine("geqp3", 2, 1)
def _geqp3(p: _Problem) -> None:
    rows, columns = p.operands[0]
    length = 3 * columns + (columns + 1) * _BLOCK
    a, order, tau, work = p.load(0), p.load(1), p.workspace(min(rows, columns)), p.workspace(length)
    real = [p.workspace(2 * columns, p.real)] if p.is_complex else []
    p.call("geqp3", rows, columns, a, rows, order, tau, work, length, *real, p.integers(1))
    for leaf, name in enumerate((a, order, tau)):
        p.store(leaf, name)


@_routine("syevd", 2, letters="sd")
@_routine("heevd", 2, letters="cz")
def _syevd(p: _Problem) -> None:
    n, a = p.operands[0][0], p.load(0)
    long, short = 1 + 6 * n + 2 * n * n + 2 * n * _BLOCK, 2 * n + n * n + n * _BLOCK
    values, info = p.workspace(n, p.real), p.integers(1)

    def solve() -> None:
        mode, half = p.choice("mode", "NV"), p.choice("uplo", "UL")
        if p.is_complex:
            work: tuple[Any, ...] = (p.workspace(short), short, p.workspace(long, p.real), long)
        else:
            work = (p.workspace(long), long)
        p.call(
            "heevd" if p.is_complex else "syevd", mode, half, n, a, n, values, *work, p.integers(3 + 5 * n), 3 + 5 * n,
            info,
        )  # fmt: skip
        p.store(0, a)
        p.store(1, values)
        p.store(2, info)

    p.if_finite(a, n * n, solve, info=2)


def _svd(p: _Problem, write: Callable[[str, str, str, str, str], None]) -> None:
    """Write a singular value decomposition; `write` calls the routine: (matrix, singular values, u, vt, info)."""
    rows, columns = p.operands[0]
    a, values, info = p.load(0), p.workspace(min(rows, columns), p.real), p.integers(1)
    u, vt = p.workspace(prod(p.results[2])), p.workspace(prod(p.results[3]))

    def solve() -> None:
        p.c.line(f"for (int64_t i = 0; i < {rows * columns}; ++i) r0[u * {rows * columns} + i] = ")
        p.c.line(f"  p0[u * {rows * columns} + i];")
        write(a, values, u, vt, info)
        p.store(1, values)
        for leaf, name in ((2, u), (3, vt)):
            if p.is_set("mode", "N"):
                p.fill(leaf, p.zero(leaf))
            else:
                p.store(leaf, name)
        p.store(4, info)

    p.if_finite(a, rows * columns, solve, info=4)


@_routine("gesdd", 2)
def _gesdd(p: _Problem) -> None:
    rows, columns = p.operands[0]
    least, most = min(rows, columns), max(rows, columns)
    length = 4 * least * least + 7 * least + most + 2 * _BLOCK * (least + most)

    def solve(a: str, values: str, u: str, vt: str, info: str) -> None:
        work, iwork = p.workspace(length), p.integers(8 * least)
        real = max(5 * least * least + 7 * least, 2 * most * least + 2 * least * least + least)
        reals = [p.workspace(real, p.real)] if p.is_complex else []
        p.call(
            "gesdd", p.choice("mode", "NSA"), rows, columns, a, rows, values, u, max(p.results[2][0], 1), vt,
            max(p.results[3][0], 1), work, length, *reals, iwork, info,
        )  # fmt: skip

    _svd(p, solve)


@_routine("gesvd", 2)
def _gesvd(p: _Problem) -> None:
    rows, columns = p.operands[0]
    least, most = min(rows, columns), max(rows, columns)
    length = 2 * least * least + _BLOCK * (3 * least + most)

    def solve(a: str, values: str, u: str, vt: str, info: str) -> None:
        work = p.workspace(length)
        reals = [p.workspace(5 * least, p.real)] if p.is_complex else []
        mode = p.choice("mode", "NSA")
        p.call(
            "gesvd", mode, mode, rows, columns, a, rows, values, u, max(p.results[2][0], 1), vt,
            max(p.results[3][0], 1), work, length, *reals, info,
        )  # fmt: skip

    _svd(p, solve)


@_routine("gees", 2)
def _gees(p: _Problem) -> None:
    n, a = p.operands[0][0], p.load(0)
    vectors = p.is_set("mode", "V")
    count = 1 if p.is_complex else 2
    selected, info = p.integers(1), p.integers(1)

    def solve() -> None:
        values, z, work = [p.workspace(n) for _ in range(count)], p.workspace(n * n), p.workspace(n * _BLOCK)
        real = [p.workspace(n, p.real)] if p.is_complex else []
        p.call(
            "gees", p.choice("mode", "NV"), _char("N"), "0", n, a, n, selected, *values, z, n, work, n * _BLOCK, *real,
            p.integers(n), info,
        )  # fmt: skip
        p.store(0, a)
        if vectors:
            p.store(1, z)
        else:
            p.fill(1, p.zero(1))
        for k, part in enumerate(values):
            p.store(2 + k, part)
        p.store(2 + count, selected)
        p.store(3 + count, info)

    p.if_finite(a, n * n, solve, info=3 + count, skip=(2 + count,))


@_routine("gehrd", 2)
def _gehrd(p: _Problem) -> None:
    n, a = p.operands[0][0], p.load(0)
    low, high = int(p.options.get("low") or 1), int(p.options.get("high") or n)
    length = n * _BLOCK + (_BLOCK + 1) * _BLOCK
    tau, work, info = p.workspace(n), p.workspace(length), p.integers(1)
    p.call("gehrd", n, low, high, a, n, tau, work, length, info)
    for leaf, name in enumerate((a, tau, info)):
        p.store(leaf, name)


@_routine("sytrd", 2, letters="sd")
@_routine("hetrd", 2, letters="cz")
def _sytrd(p: _Problem) -> None:
    n, a = p.operands[0][0], p.load(0)
    main, off, tau, work = p.workspace(n, p.real), p.workspace(n, p.real), p.workspace(n), p.workspace(n * _BLOCK)
    info = p.integers(1)
    name = "hetrd" if p.is_complex else "sytrd"
    p.call(name, p.choice("uplo", "UL"), n, a, n, main, off, tau, work, n * _BLOCK, info)
    for leaf, part in enumerate((a, main, off, tau, info)):
        p.store(leaf, part)


@_routine("gtsv", 1, 1, 1, 2)
def _gtsv(p: _Problem) -> None:
    n, columns = p.operands[3]
    lower, main, upper, b, info = p.load(0), p.load(1), p.load(2), p.load(3), p.integers(1)
    p.call("gtsv", n, columns, f"{lower} + 1", main, upper, b, n, info)
    for leaf, part in enumerate((lower, main, upper, b, info)):
        p.store(leaf, part)


@_routine("geev", 2)
def _geev(p: _Problem) -> None:
    n, a = p.operands[0][0], p.load(0)
    count = 1 if p.is_complex else 2
    info = p.integers(1)

    def solve() -> None:
        values, sides = [p.workspace(n) for _ in range(count)], [p.workspace(n * n), p.workspace(n * n)]
        length = 2 * n * (_BLOCK + 1) + (_BLOCK + 1) * _BLOCK  # for the back transformation of vectors, in blocks
        work, real = p.workspace(length), [p.workspace(2 * n, p.real)] if p.is_complex else []
        modes = (p.choice("compute_left", "NV"), p.choice("compute_right", "NV"))
        p.call("geev", *modes, n, a, n, *values, sides[0], n, sides[1], n, work, length, *real, info)
        for k, part in enumerate(values):
            p.store(k, part)
        for k, side in enumerate(("compute_left", "compute_right")):
            if not p.is_set(side, "V"):
                p.fill(count + k, p.zero(count + k))
            elif p.is_complex:
                p.store(count + k, sides[k])
            else:
                _store_unpacked(p, count + k, sides[k], values[1])
        p.store(count + 2, info)

    p.if_finite(a, n * n, solve, info=count + 2)


def _store_unpacked(p: _Problem, leaf: int, packed: str, imaginary: str) -> None:
    """Write complex eigenvectors from packed ones: a conjugate pair has two columns, real and imaginary part."""
    n, of = p.operands[0][0], f"cyx_{p.result_types[leaf]}_of"
    with p.c.block(f"for (int64_t j = 0; j < {n}; ++j)"), p.c.block(f"for (int64_t i = 0; i < {n}; ++i)"):
        at, x = f"r{leaf}[u * {n * n} + i * {n} + j]", f"{packed}[j * {n} + i]"
        p.c.line(
            f"if (!({imaginary}[j] > 0) || j + 1 == {n}) {{ if ({imaginary}[j] == 0) {at} = {of}({x}, 0); continue; }}"
        )
        p.c.line(f"const {scalar.storage_type(p.dtype)} y = {packed}[(j + 1) * {n} + i];")
        p.c.line(f"{at} = {of}({x}, y);")
        p.c.line(f"r{leaf}[u * {n * n} + i * {n} + j + 1] = {of}({x}, -y);")
