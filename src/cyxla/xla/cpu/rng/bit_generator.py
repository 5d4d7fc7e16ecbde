"""Emitter of rng-bit-generator: Threefry-2x32 and Philox-4x32, each block from its own counter.

A counter belongs to a fixed position in the result, so blocks can be computed in any order and by any thread. The
results are written through a word per element; what an element of 8 or 16 bits takes is the low end of its word.
"""

from __future__ import annotations

from math import prod

from cyxla.types import Shape
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.emitters import emits
from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.kernel.kernel import Kernel, Step
from cyxla.xla.cpu.kernel.kernel_writer import KernelWriter, describe
from cyxla.xla.cpu.kernel.values import own_leaves, resolve
from cyxla.xla.hlo import Instruction

BLOCK_NS = {"three_fry": 6.0, "philox": 10.0}
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
PHILOX = """\
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
    ns = blocks * BLOCK_NS[algorithm]
    units = max(1, -(-blocks // BLOCKS))
    tasks = cost.tasks(ns, units)
    c.lines((_THREEFRY if algorithm == "three_fry" else PHILOX).splitlines())
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
