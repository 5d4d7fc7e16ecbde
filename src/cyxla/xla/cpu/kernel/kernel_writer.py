"""Writer of kernels of single opcodes: frame, buffers, loops over whole shapes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cyxla.types import ElementType, Shape
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.kernel.array_types import memory_type, memory_typedefs
from cyxla.xla.cpu.kernel.kernel import Value


def strides(dims: Sequence[int]) -> list[int]:
    """Return the strides of a row-major array, in elements."""
    steps = [1] * len(dims)
    for d in range(len(dims) - 2, -1, -1):
        steps[d] = steps[d + 1] * dims[d + 1]
    return steps


def linear_index(names: Sequence[str], factors: Sequence[int]) -> str:
    """Return the C of a linear index: the sum of counters times constant strides."""
    return " + ".join(f"{n} * {f}" if f != 1 else n for n, f in zip(names, factors, strict=True) if f) or "0"


class KernelWriter(CWriter):
    """Writer of a kernel over unaligned arrays: it reads ``p0, p1 ..`` and writes ``r0, r1 ..``.

    Parameters
    ----------
    reads, writes : sequence of Value
        Arrays of the kernel, in the order of its buffers.
    """

    def __init__(self, reads: Sequence[Value], writes: Sequence[Value]) -> None:
        super().__init__()
        self.reads, self.writes = list(reads), list(writes)
        self.lines(memory_typedefs([*reads, *writes]))

    @contextmanager
    def kernel(self, units: int | str, tasks: int, note: str = "") -> Iterator[None]:
        """Write the kernel's function around a body, with a loop over the work units (``u``) of its tasks.

        The number of units is C if it is known at run time.
        """
        if note:
            self.line(f"/* {note} */")
        with self.block("static cyx_status KERNEL(void *const *bufs, int64_t begin, int64_t end)"):
            for k, value in enumerate(self.reads):
                self.line(f"const {memory_type(value.shape.dtype)} *const p{k} = bufs[{k}];")
            for k, value in enumerate(self.writes):
                self.line(f"{memory_type(value.shape.dtype)} *const r{k} = bufs[{len(self.reads) + k}];")
            if isinstance(units, str) and not units.isdigit():
                self.line(f"const int64_t units = {units};")
                units = "units"
            if str(units) == str(tasks) == "1":
                self.line("const int64_t u = 0; (void)u; (void)begin; (void)end;")
                yield
            else:
                with self.block(f"for (int64_t u = begin * {units} / {tasks}; u < end * {units} / {tasks}; ++u)"):
                    yield
            self.line("return CYX_OK;")

    @contextmanager
    def loops(self, names: Sequence[str], sizes: Sequence[int | str]) -> Iterator[None]:
        """Write nested loops, outermost first; `continue` leaves the innermost iteration, even without any loop."""
        if not names:
            self.line("do {")
            self.open()
            yield
            self.close()
            self.line("} while (0);")
            return
        for name, size in zip(names, sizes, strict=True):
            self.line(f"for (int64_t {name} = 0; {name} < {size}; ++{name}) {{")
            self.open()
        yield
        for _ in names:
            self.close()
            self.line("}")

    def scratch(self) -> str:
        """Return the C of a pointer to the scratch buffer, which comes after the last write."""
        return f"((char *)bufs[{len(self.reads) + len(self.writes)}])"

    def unravel(self, number: str, names: Sequence[str], sizes: Sequence[int]) -> None:
        """Define the coordinates of a linear row-major index as locals."""
        stride = 1
        for name, size in reversed(list(zip(names, sizes, strict=True))):
            part = f"{number} / {stride}" if stride != 1 else number
            self.line(f"const int64_t {name} = {f'{part} % {size}' if size > 1 else '0'};")
            stride *= max(size, 1)

    def element(self, dtype: ElementType, source: str) -> str:
        """Load an element from memory into a local; return its name."""
        return self.local(scalar.register_type(dtype), scalar.load(dtype, source))

    def variable(self, dtype: ElementType, value: str) -> str:
        """Define a mutable local; return its name."""
        name = self.name("x")
        self.line(f"{scalar.register_type(dtype)} {name} = {value};")
        return name


def describe(opcode: str, shape: Shape) -> str:
    """Return the comment of a kernel: opcode and result shape."""
    return f"{opcode} -> {shape}"
