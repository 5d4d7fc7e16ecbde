"""Counter-based generators against published vectors, and the shapes, states and types around them."""

import numpy as np
import pytest

from cyxla.types import Shape
from cyxla.xla.evaluator import Options
from cyxla.xla.evaluator.ops.random_bits import philox, threefry

ALL = 0xFFFFFFFF
# Known-answer vectors of the Random123 library.
THREEFRY = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((ALL, ALL), (ALL, ALL), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]
PHILOX = [
    ((0, 0), (0, 0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((ALL, ALL), (ALL, ALL, ALL, ALL), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0xA4093822, 0x299F31D0), (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]  # fmt: skip


def words(values):
    return tuple(np.array([v], np.uint32) for v in values)


@pytest.mark.parametrize("key, counter, want", THREEFRY)
def test_threefry(key, counter, want):
    assert tuple(int(w[0]) for w in threefry(words(key), words(counter))) == want


@pytest.mark.parametrize("key, counter, want", PHILOX)
def test_philox(key, counter, want):
    assert tuple(int(w[0]) for w in philox(key[0] | key[1] << 32, words(counter))) == want


def generate(hlo, algorithm, state, dtype, dims):
    shape = Shape.array(dtype, dims)
    state = np.array(state, np.uint64)
    return hlo(f"(u64[{len(state)}], {shape}) rng-bit-generator(p0), algorithm={algorithm}", state)


ALGORITHMS = [("rng_three_fry", 2), ("rng_philox", 2), ("rng_philox", 3), ("rng_default", 2), ("rng_default", 3)]


@pytest.mark.parametrize("algorithm, size", ALGORITHMS)
@pytest.mark.parametrize("dims", [(), (1,), (7,), (2, 3), (3, 5), (3, 4, 2), (0, 3)])
def test_narrow_types_take_low_bits_and_wide_ones_two_words(hlo, algorithm, size, dims):
    state = [5, 2**64 - 2, 9][:size]
    wide = generate(hlo, algorithm, state, "u32", dims)
    for dtype in ("u8", "u16", "u4"):
        new, bits = generate(hlo, algorithm, state, dtype, dims)
        assert bits.shape == dims
        np.testing.assert_array_equal(new, wide[0])
        kind = Shape.array(dtype).dtype
        np.testing.assert_array_equal(bits.astype(np.int64), wide[1] % 2**kind.bits)


@pytest.mark.parametrize("algorithm, size", ALGORITHMS)
def test_the_state_counts_blocks_and_goes_on(hlo, algorithm, size):
    blocks = 8 if algorithm == "rng_three_fry" else 4
    state = [3, 2**64 - 2, 2**64 - 1][:size]
    new, bits = generate(hlo, algorithm, state, "u64", (8,))
    assert int(new[1]) == (2**64 - 2 + blocks) % 2**64
    if size == 3:
        assert int(new[2]) == 0  # the carry went through all 128 bits
        later = generate(hlo, algorithm, [int(w) for w in new], "u64", (8,))[1]
        both = generate(hlo, algorithm, state, "u64", (16,))[1]
        np.testing.assert_array_equal(np.concatenate([bits, later]), both)


def test_threefry_lays_its_words_out_along_an_even_dimension(hlo):
    state = np.array([1 << 32, 0], np.uint64)
    counters = np.arange(6, dtype=np.uint32)
    pair = threefry((np.uint32(0), np.uint32(1)), (counters, counters * 0))
    bits = generate(hlo, "rng_three_fry", state, "u32", (3, 4))[1]
    np.testing.assert_array_equal(bits, np.stack([w.reshape(3, 2) for w in pair], axis=2).reshape(3, 4))


RNG = """
ENTRY main {{
  a = {dtype}[] parameter(0)
  b = {dtype}[] parameter(1)
  x = {dtype}[2000] rng(a, b), distribution={distribution}
  y = {dtype}[2000] rng(a, b), distribution={distribution}
  ROOT t = ({dtype}[2000], {dtype}[2000]) tuple(x, y)
}}
"""


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "s32", "u8"])
def test_uniform(hlo, dtype):
    kind = Shape.array(dtype).dtype.numpy_dtype
    low, high = np.array(3).astype(kind), np.array(5).astype(kind)
    x, y = hlo(RNG.format(dtype=dtype, distribution="rng_uniform"), low, high)
    assert x.dtype == kind
    assert ((x >= low) & (x < high)).all()
    assert abs(float(x.astype(np.float64).mean()) - (4 if dtype[0] in "fb" else 3.5)) < 0.1
    assert (x != y).any()


def test_normal_is_seeded_by_the_options(hlo):
    text = RNG.format(dtype="f32", distribution="rng_normal")
    args = np.float32(10), np.float32(2)
    runs = [hlo(text, *map(np.asarray, args), options=Options(seed=s))[0] for s in (1, 1, 2)]
    assert abs(runs[0].mean() - 10) < 0.2
    assert abs(runs[0].std() - 2) < 0.2
    np.testing.assert_array_equal(runs[0], runs[1])
    assert (runs[0] != runs[2]).any()


def test_global_state_grows_by_delta(hlo):
    text = """
    ENTRY main {
      a = u64[2] rng-get-and-update-state(), delta=5
      b = u64[2] rng-get-and-update-state(), delta=1
      ROOT t = (u64[2], u64[2]) tuple(a, b)
    }
    """
    first, second = hlo(text)
    assert abs(int(second[0]) - int(first[0])) in (1, 5)
