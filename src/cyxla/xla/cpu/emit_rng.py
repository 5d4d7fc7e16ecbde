"""Random numbers: rng-bit-generator bit for bit, and the opcodes whose generator HLO leaves open.

rng-bit-generator is Threefry-2x32 and Philox-4x32, each block from its own counter.

A counter belongs to a fixed place in the result, so blocks can be computed in any order and by any thread. The
results are written through a word per element; what an element of 8 or 16 bits takes is the low end of its word.

rng draws from Philox too: its key is the program's seed, its counter is part of the call's state, so that each draw
of a call is another one and each call gives the same.
"""

from __future__ import annotations

from math import prod

from cyxla.types import ElementType, Shape
from cyxla.xla.cpu import cost, scalar
from cyxla.xla.cpu.emitters import emits
from cyxla.xla.cpu.kernel import Kernel, Step, Value
from cyxla.xla.cpu.own_kernel import KernelWriter, describe
from cyxla.xla.cpu.values import own_leaves, resolve
from cyxla.xla.hlo import Instruction

_BLOCK_NS = {"three_fry": 6.0, "philox": 10.0}
BLOCKS = 256  # a unit of work

_THREEFRY = """\
static inline void KERNEL_threefry(uint64_t key, uint64_t counter, uint32_t *w0, uint32_t *w1) {
  const uint32_t k[3] = {(uint32_t)key, (uint32_t)(key >> 32), (uint32_t)key ^ (uint32_t)(key >> 32) ^ 0x1BD11BDAu};
  uint32_t x = (uint32_t)counter + k[0], y = (uint32_t)(counter >> 32) + k[1];
#define KERNEL_R(d) x += y; y = (y << d | y >> (32 - d)) ^ x;
  KERNEL_R(13) KERNEL_R(15) KERNEL_R(26) KERNEL_R(6)  x += k[1]; y += k[2] + 1;
  KERNEL_R(17) KERNEL_R(29) KERNEL_R(16) KERNEL_R(24) x += k[2]; y += k[0] + 2;
  KERNEL_R(13) KERNEL_R(15) KERNEL_R(26) KERNEL_R(6)  x += k[0]; y += k[1] + 3;
  KERNEL_R(17) KERNEL_R(29) KERNEL_R(16) KERNEL_R(24) x += k[1]; y += k[2] + 4;
  KERNEL_R(13) KERNEL_R(15) KERNEL_R(26) KERNEL_R(6)  x += k[2]; y += k[0] + 5;
#undef KERNEL_R
  *w0 = x; *w1 = y;
}"""
_PHILOX = """\
static inline void KERNEL_philox(uint64_t key, uint64_t low, uint64_t high, uint32_t *w) {
  uint32_t a = (uint32_t)low, b = (uint32_t)(low >> 32), c = (uint32_t)high, d = (uint32_t)(high >> 32);
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  for (int r = 0; r < 10; ++r) {
    const uint64_t one = (uint64_t)a * 0xD2511F53u, two = (uint64_t)c * 0xCD9E8D57u;
    a = (uint32_t)(two >> 32) ^ b ^ k0; b = (uint32_t)two;
    c = (uint32_t)(one >> 32) ^ d ^ k1; d = (uint32_t)one;
    k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;
  }
  w[0] = a; w[1] = b; w[2] = c; w[3] = d;
}"""


def _check(ins: Instruction) -> str | None:
    bits, state = ins.shape.elements[1].dtype, ins.operands[0].shape
    if not bits.is_integer:
        return f"it makes integers, not {bits}"
    words = state.nbytes // 8
    least, most = (2, 2) if "three_fry" in ins.attrs["algorithm"] else (2, 3)
    return None if least <= words <= most and state.nbytes % 8 == 0 else f"its state is {state}"


@emits("rng-bit-generator", check=_check)
def rng_bit_generator(ins: Instruction) -> Step:
    """The kernel of one generator call."""
    reads, writes = [resolve(ins.operands[0])], own_leaves(ins)
    c = KernelWriter(reads, writes)
    algorithm = "three_fry" if ins.attrs["algorithm"] == "rng_three_fry" else "philox"
    shape = ins.shape.elements[1].static
    blocks = _blocks(algorithm, shape)
    ns = blocks * _BLOCK_NS[algorithm]
    units = max(1, -(-blocks // BLOCKS))
    tasks = cost.tasks(ns, units)
    c.lines((_THREEFRY if algorithm == "three_fry" else _PHILOX).splitlines())
    with c.kernel(units, tasks, describe(f"rng-bit-generator {algorithm}", shape)):
        words = reads[0].shape.nbytes // 8
        c.line(f"uint64_t s[3]; __builtin_memcpy(s, p0, {8 * words});")
        if algorithm == "philox" and words == 2:
            c.line("s[2] = s[0];  /* a state of two words has the key for the upper half of the counter */")
        _new_state(c, algorithm, blocks, words)
        c.line(f"const int64_t stop = u == {units - 1} ? {blocks} : (u + 1) * {BLOCKS};")
        if algorithm == "philox":
            _philox_blocks(c, shape)
        else:
            with c.block(f"for (int64_t b = u * {BLOCKS}; b < stop; ++b)"):
                _threefry_block(c, shape)
    return Step(Kernel(c.text(), tasks, ns, 0, "rng"), tuple(reads), tuple(writes))


def _split(shape: Shape) -> tuple[tuple[int, ...], int]:
    """The dimension along which Threefry's two words of a block are stacked: the first even one, else the largest."""
    dims = shape.dims or (1,)
    even = next((d for d, n in enumerate(dims) if n % 2 == 0), None)
    return dims, dims.index(max(dims)) if even is None else even


def _blocks(algorithm: str, shape: Shape) -> int:
    if algorithm == "philox":
        return -(-shape.size * (2 if shape.dtype.bits == 64 else 1) // 4)
    if shape.dtype.bits == 64:
        return shape.size
    dims, at = _split(shape)
    return prod((*dims[:at], (dims[at] + 1) // 2, *dims[at + 1 :]))


def _new_state(c: KernelWriter, algorithm: str, blocks: int, words: int) -> None:
    """The first task also moves the counter on."""
    with c.block("if (u == 0)"):
        c.line(f"uint64_t n[3] = {{s[0], s[1] + {blocks}u, s[2]}};")
        if algorithm == "philox":
            c.line("n[2] += n[1] < s[1];")
        c.line(f"__builtin_memcpy(r0, n, {8 * words});")


def _store(shape: Shape, at: str, word: str) -> str:
    return f"r1[{at}] = {scalar.store(shape.dtype, scalar.wrap(shape.dtype, word))};"


def _threefry_block(c: KernelWriter, shape: Shape) -> None:
    c.line("uint32_t w0, w1;")
    c.line("KERNEL_threefry(s[0], s[1] + (uint64_t)b, &w0, &w1);")
    if shape.dtype.bits == 64:
        c.line(_store(shape, "b", "((uint64_t)w1 << 32 | w0)"))
        return
    dims, at = _split(shape)
    inner, half = prod(dims[at + 1 :]), (dims[at] + 1) // 2
    c.line(
        f"const int64_t i = b % {inner}, j = 2 * (b / {inner} % {half}), "
        f"o = b / {inner * half} * {inner * dims[at]} + i;"
    )
    c.line(_store(shape, f"o + j * {inner}", "w0"))
    c.line(f"if (j + 1 < {dims[at]}) {_store(shape, f'o + (j + 1) * {inner}', 'w1')}")


def _philox_blocks(c: KernelWriter, shape: Shape) -> None:
    """Whole blocks without a condition, so that the loop runs in vectors; then the last one if it is cut."""
    words = 2 if shape.dtype.bits == 64 else 4
    whole, rest = divmod(shape.size, words)
    c.line(f"const int64_t whole = stop < {whole} ? stop : {whole};")
    with c.block(f"for (int64_t b = u * {BLOCKS}; b < whole; ++b)"):
        _philox_block(c, shape, words, words)
    if rest:
        with c.block(f"if (stop > {whole})"):
            c.line(f"const int64_t b = {whole};")
            _philox_block(c, shape, words, rest)


def _philox_block(c: KernelWriter, shape: Shape, words: int, count: int) -> None:
    c.line("uint32_t w[4];")
    c.line("const uint64_t low = s[1] + (uint64_t)b;")
    c.line("KERNEL_philox(s[0], low, s[2] + (low < s[1]), w);")
    for k in range(count):
        word = f"((uint64_t)w[{2 * k + 1}] << 32 | w[{2 * k}])" if words == 2 else f"w[{k}]"
        c.line(_store(shape, f"{words} * b + {k}", word))


# --- generators that the program does not hold itself -----------------------------------------------------------------


def _check_rng(ins: Instruction) -> str | None:
    dtype = ins.shape.dtype
    return f"there is no {dtype} at random" if dtype.is_complex else None


@emits("rng", check=_check_rng)
def rng(ins: Instruction) -> Step:
    """A block of random bits for each element, one after the other."""
    shape, normal = ins.shape.static, ins.attrs["distribution"] == "rng_normal"
    reads, writes = [resolve(o) for o in ins.operands], [Value(ins)]
    c = KernelWriter(reads, writes)
    c.lines(_PHILOX.splitlines())
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
    ns = shape.size * (_BLOCK_NS["philox"] + (20.0 if normal else 1.0))
    return Step(Kernel(c.text(), 1, ns, 0, "rng"), tuple(reads), tuple(writes), state=True)


def _normal(c: KernelWriter, dtype: ElementType, mean: str, deviation: str) -> str:
    """Box-Muller."""
    mean, deviation = (scalar.convert(ElementType.F64, dtype, v) for v in (mean, deviation))
    c.line("const double far = __builtin_sqrt(-2 * cyx_log_f64((double)((x >> 11) + 1) * 0x1p-53));")
    c.line("const double z = far * cyx_cosine_f64((double)(y >> 11) * 0x1p-53 * 0x1.921fb54442d18p2);")
    c.line(f"const double drawn = z * ({deviation}) + ({mean});")
    return c.local(scalar.register_type(dtype), scalar.convert(dtype, ElementType.F64, "drawn"))


def _uniform(c: KernelWriter, dtype: ElementType, low: str, high: str) -> str:
    kind = scalar.register_type(dtype)
    if dtype is ElementType.PRED:
        return c.local(kind, f"{high} > {low} ? (uint8_t)(x & 1) : {low}")
    if dtype.is_float:
        start, end = (scalar.convert(ElementType.F64, dtype, v) for v in (low, high))
        c.line(f"const double drawn = (double)(x >> 11) * 0x1p-53 * (({end}) - ({start})) + ({start});")
        value = c.local(kind, scalar.convert(dtype, ElementType.F64, "drawn"))
        return c.local(kind, f"{value} < {high} ? {value} : {low}")  # rounding may have reached the end
    c.line(f"const uint64_t span = {high} > {low} ? (uint64_t){high} - (uint64_t){low} : 0;")
    c.line("const uint64_t step = (uint64_t)((unsigned __int128)x * span >> 64);")
    return c.local(kind, scalar.wrap(dtype, f"(uint64_t){low} + step"))


@emits("rng-get-and-update-state")
def rng_get_and_update_state(ins: Instruction) -> Step:
    """The call's 128-bit state, lower half first, before `delta` is added to it."""
    delta = int(ins.attrs["delta"]) % 2**128
    c = KernelWriter([], [Value(ins)])
    with c.kernel(1, 1, describe("rng-get-and-update-state", ins.shape)):
        c.line(f"uint64_t *const s = (uint64_t *){c.scratch()};")
        c.line("__builtin_memcpy(r0, s, 16);")
        c.line(f"const uint64_t low = s[0] + {delta % 2**64}ull;")
        c.line(f"s[1] += {delta >> 64}ull + (low < s[0]);")
        c.line("s[0] = low;")
    return Step(Kernel(c.text(), 1, 1.0, 0, "rng"), (), (Value(ins),), state=True)
