"""Emitter of rng-bit-generator: Threefry-2x32 and Philox-4x32, each block from its own counter.

A counter belongs to a fixed position in the result, so blocks can be computed in any order and by any thread. Each
element takes a word; one of 8 or 16 bits is the lower part of its word.
"""

from __future__ import annotations

from math import prod

from cyxla.types import Shape
from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.kernel_header import instantiate
from cyxla.xla.cpu.emitters import emits
from cyxla.xla.cpu.kernel import cost
from cyxla.xla.cpu.kernel.kernel import Kernel, KernelKind, Step
from cyxla.xla.cpu.kernel.kernel_writer import KernelWriter, describe
from cyxla.xla.cpu.kernel.values import own_leaves, resolve
from cyxla.xla.hlo import Instruction
from cyxla.xla.service.refusal import Refusal

# Measured 9.6 and 5.5 (SPR, see `kernel.machine`).
BLOCK_NS = {"three_fry": 6.0, "philox": 10.0}  # ns of a block of each algorithm
BLOCKS_PER_UNIT = 256  # blocks in a unit of work


def generator_lines(algorithm: str) -> list[str]:
    """Return the lines of C of ``KERNEL_threefry`` or ``KERNEL_philox``, see the headers of these names.

    Parameters
    ----------
    algorithm : str
        Key of `BLOCK_NS`.
    """
    name = {"three_fry": "threefry", "philox": "philox"}[algorithm]
    return instantiate(f"rng/{name}.h", **{f"{name.upper()}_PREFIX": "KERNEL"}).splitlines()


def _check(ins: Instruction) -> str | None:
    bits, state = ins.shape.elements[1].dtype, ins.operands[0].shape
    if not bits.is_integer:
        return f"it generates integers, not {bits}"
    words = state.nbytes // 8
    min_words, max_words = (2, 2) if "three_fry" in ins.attrs["algorithm"] else (2, 3)
    return None if min_words <= words <= max_words and state.nbytes % 8 == 0 else f"its state is {state}"


@emits("rng-bit-generator", check=_check)
def rng_bit_generator(ins: Instruction) -> Step:
    """Emit a generator call."""
    reads, writes = [resolve(ins.operands[0])], own_leaves(ins)
    c = KernelWriter(reads, writes)
    algorithm = "three_fry" if ins.attrs["algorithm"] == "rng_three_fry" else "philox"
    shape = ins.shape.elements[1].static
    blocks = _block_count(algorithm, shape)
    ns = blocks * BLOCK_NS[algorithm]
    units = max(1, -(-blocks // BLOCKS_PER_UNIT))
    tasks = cost.tasks(ns, units)
    c.lines(generator_lines(algorithm))
    with c.kernel(units, tasks, describe(f"rng-bit-generator {algorithm}", shape)):
        words = reads[0].shape.nbytes // 8
        c.line(f"uint64_t s[3]; __builtin_memcpy(s, p0, {8 * words});")
        if algorithm == "philox" and words == 2:
            c.line("s[2] = s[0];  /* a state of two words has the key for the upper half of the counter */")
        _write_new_state(c, algorithm, blocks, words)
        c.line(f"const int64_t stop = u == {units - 1} ? {blocks} : (u + 1) * {BLOCKS_PER_UNIT};")
        if algorithm == "philox":
            _philox_blocks(c, shape)
        else:
            with c.block(f"for (int64_t b = u * {BLOCKS_PER_UNIT}; b < stop; ++b)"):
                _threefry_block(c, shape)
    kernel = Kernel(c.text(), tasks, ns, 0, KernelKind.RNG, refusals=_refusals(ins, algorithm, shape))
    return Step(kernel, tuple(reads), tuple(writes))


def _refusals(ins: Instruction, algorithm: str, shape: Shape) -> tuple[Refusal, ...]:
    if algorithm == "philox" or shape.dtype.bits == 64:
        return ()
    reason = "the two words of a block are stored apart, at indices that take divisions"
    return (Refusal.of("vectorisation", ins, reason),)


def _stack_dim(shape: Shape) -> tuple[tuple[int, ...], int]:
    """Return the dimensions, and that along which Threefry stacks its two words: the first even, else the largest."""
    dims = shape.dims or (1,)
    even_dim = next((d for d, n in enumerate(dims) if n % 2 == 0), None)
    return dims, dims.index(max(dims)) if even_dim is None else even_dim


def _block_count(algorithm: str, shape: Shape) -> int:
    if algorithm == "philox":
        return -(-shape.size * (2 if shape.dtype.bits == 64 else 1) // 4)
    if shape.dtype.bits == 64:
        return shape.size
    dims, axis = _stack_dim(shape)
    return prod((*dims[:axis], (dims[axis] + 1) // 2, *dims[axis + 1 :]))


def _write_new_state(c: KernelWriter, algorithm: str, blocks: int, words: int) -> None:
    """Write the advance of the counter, by the first task."""
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
    dims, axis = _stack_dim(shape)
    inner, half = prod(dims[axis + 1 :]), (dims[axis] + 1) // 2
    c.line(
        f"const int64_t i = b % {inner}, j = 2 * (b / {inner} % {half}), "
        f"o = b / {inner * half} * {inner * dims[axis]} + i;"
    )
    c.line(_store(shape, f"o + j * {inner}", "w0"))
    c.line(f"if (j + 1 < {dims[axis]}) {_store(shape, f'o + (j + 1) * {inner}', 'w1')}")


def _philox_blocks(c: KernelWriter, shape: Shape) -> None:
    """Write whole blocks without a condition, so that the loop becomes vectors; then the last one if it is partial."""
    words = 2 if shape.dtype.bits == 64 else 4
    full, tail = divmod(shape.size, words)
    c.line(f"const int64_t full = stop < {full} ? stop : {full};")
    with c.block(f"for (int64_t b = u * {BLOCKS_PER_UNIT}; b < full; ++b)"):
        _philox_block(c, shape, words, words)
    if tail:
        with c.block(f"if (stop > {full})"):
            c.line(f"const int64_t b = {full};")
            _philox_block(c, shape, words, tail)


def _philox_block(c: KernelWriter, shape: Shape, words: int, count: int) -> None:
    c.line("uint32_t w[4];")
    c.line("const uint64_t low = s[1] + (uint64_t)b;")
    c.line("KERNEL_philox(s[0], low, s[2] + (low < s[1]), w);")
    for k in range(count):
        word = f"((uint64_t)w[{2 * k + 1}] << 32 | w[{2 * k}])" if words == 2 else f"w[{k}]"
        c.line(_store(shape, f"{words} * b + {k}", word))
