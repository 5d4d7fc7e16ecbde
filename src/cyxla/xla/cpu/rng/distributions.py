"""Emitter of rng and rng-get-and-update-state, for which HLO prescribes no generator.

rng draws from Philox, whose key is the program's seed and whose counter is part of the state of a run: draws within a
run differ, those of equal runs are equal.
"""

from __future__ import annotations

from cyxla.types import ElementType
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.emitters import emits
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind, Step, Value
from cyxla.xla.cpu.kernel.kernel_writer import KernelWriter, describe
from cyxla.xla.cpu.kernel.values import resolve
from cyxla.xla.cpu.rng.bit_generator import BLOCK_NS, generator_lines
from cyxla.xla.hlo import Instruction
from cyxla.xla.service.refusal import Refusal


def _check_rng(ins: Instruction) -> str | None:
    dtype = ins.shape.dtype
    return f"it cannot draw {dtype}" if dtype.is_complex else None


@emits("rng", check=_check_rng)
def rng(ins: Instruction) -> Step:
    """Emit a draw of each element, one after the other, from a block of random bits."""
    shape, normal = ins.shape.static, ins.attrs["distribution"] == "rng_normal"
    reads, writes = [resolve(o) for o in ins.operands], [Value(ins)]
    c = KernelWriter(reads, writes)
    c.lines(generator_lines("philox"))
    with c.kernel(1, 1, describe("rng", shape)):
        c.line(f"uint64_t *const s = (uint64_t *){c.scratch()};")
        a, b = (c.element(shape.dtype, f"p{k}[0]") for k in range(2))
        with c.block(f"for (int64_t i = 0; i < {shape.size}; ++i)"):
            c.line("uint32_t w[4];")
            c.line("KERNEL_philox(s[2], s[3] + (uint64_t)i, 0, w);")
            c.line("const uint64_t x = (uint64_t)w[1] << 32 | w[0], y = (uint64_t)w[3] << 32 | w[2]; (void)y;")
            value = (_normal if normal else _uniform)(c, shape.dtype, a, b)
            c.line(f"r0[i] = {scalar.store(shape.dtype, value)};")
        c.line(f"s[3] += {shape.size};")
    # ns of a normal deviate, with a logarithm and a cosine of f64, and of a uniform one; assumed. It is one task.
    ns = shape.size * (BLOCK_NS["philox"] + (20.0 if normal else 1.0))
    refusal = Refusal.of("vectorisation", ins, "each element takes the rounds of the generator, in a loop of their own")
    kernel = Kernel(c.text(), 1, ns, 0, KernelKind.RNG, refusals=(refusal,))
    return Step(kernel, tuple(reads), tuple(writes), state=True)


def _normal(c: KernelWriter, dtype: ElementType, mean: str, deviation: str) -> str:
    """Write a normal deviate by Box and Muller's method."""
    mean, deviation = (scalar.convert(ElementType.F64, dtype, v) for v in (mean, deviation))
    c.line("const double radius = __builtin_sqrt(-2 * cyx_log_f64((double)((x >> 11) + 1) * 0x1p-53));")
    c.line("const double z = radius * cyx_cosine_f64((double)(y >> 11) * 0x1p-53 * 0x1.921fb54442d18p2);")
    c.line(f"const double sample = z * ({deviation}) + ({mean});")
    return c.local(scalar.register_type(dtype), scalar.convert(dtype, ElementType.F64, "sample"))


def _uniform(c: KernelWriter, dtype: ElementType, low: str, high: str) -> str:
    kind = scalar.register_type(dtype)
    if dtype is ElementType.PRED:
        return c.local(kind, f"{high} > {low} ? (uint8_t)(x & 1) : {low}")
    if dtype.is_float:
        start, end = (scalar.convert(ElementType.F64, dtype, v) for v in (low, high))
        c.line(f"const double sample = (double)(x >> 11) * 0x1p-53 * (({end}) - ({start})) + ({start});")
        value = c.local(kind, scalar.convert(dtype, ElementType.F64, "sample"))
        return c.local(kind, f"{value} < {high} ? {value} : {low}")  # the sum may round to `high`
    c.line(f"const uint64_t span = {high} > {low} ? (uint64_t){high} - (uint64_t){low} : 0;")
    c.line("const uint64_t step = (uint64_t)((unsigned __int128)x * span >> 64);")
    return c.local(kind, scalar.wrap(dtype, f"(uint64_t){low} + step"))


@emits("rng-get-and-update-state")
def rng_get_and_update_state(ins: Instruction) -> Step:
    """Emit a read of the call's state of 128 bits, lower half first, and the addition of `delta` to it."""
    delta = int(ins.attrs["delta"]) % 2**128
    c = KernelWriter([], [Value(ins)])
    with c.kernel(1, 1, describe("rng-get-and-update-state", ins.shape)):
        c.line(f"uint64_t *const s = (uint64_t *){c.scratch()};")
        c.line("__builtin_memcpy(r0, s, 16);")
        c.line(f"const uint64_t low = s[0] + {delta % 2**64}ull;")
        c.line(f"s[1] += {delta >> 64}ull + (low < s[0]);")
        c.line("s[0] = low;")
    return Step(Kernel(c.text(), 1, 1.0, 0, KernelKind.RNG), (), (Value(ins),), state=True)
