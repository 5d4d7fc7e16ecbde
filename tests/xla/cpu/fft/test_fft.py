"""Fourier transforms: all kinds, types and ranks against the oracle, and how exact they are against wider numbers."""

from math import log2, prod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hlo.differential import agree

import cyxla
from cyxla._native import kernels
from cyxla.xla.cpu.fft.butterflies import STRAIGHT
from cyxla.xla.cpu.fft.passes import LARGEST_PRIME
from cyxla.xla.cpu.fft.plan import is_chirp, padded, split
from cyxla.xla.cpu.fft.twiddles import factors, roots
from cyxla.xla.cpu.native import compiler_search

COMPLEX = {"f32": "c64", "f64": "c128"}
KINDS = ("FFT", "IFFT", "RFFT", "IRFFT")
# Every straight size and pair of passes, tails of lanes, sums and convolutions for primes, lines in two steps.
LENGTHS = [
    (1,), (2,), (3,), (4,), (7,), (8,), (9,), (12,), (17,), (20,), (30,), (60,), (64,), (97,), (128,), (143,),
    (202,), (210,), (225,), (256,), (303,), (358,), (512,), (606,), (1000,), (1009,), (1155,), (4096,), (4098,),
    (4, 6), (3, 5, 7), (1, 8), (8, 1), (20, 30), (5, 1009), (1009, 6), (211, 2), (13, 17, 19), (2100, 3), (2, 2, 2),
]  # fmt: skip


def shape(dtype: str, dims: tuple[int, ...]) -> str:
    return f"{dtype}[{','.join(map(str, dims))}]"


def program(kind: str, real: str, dims: tuple[int, ...], rank: int) -> str:
    """A transform over the last dimensions; `dims` are those of its wider side."""
    half = (*dims[:-1], dims[-1] // 2 + 1)
    before = shape(real, dims) if kind == "RFFT" else shape(COMPLEX[real], half if kind == "IRFFT" else dims)
    after = shape(real, dims) if kind == "IRFFT" else shape(COMPLEX[real], half if kind == "RFFT" else dims)
    lengths = ",".join(map(str, dims[len(dims) - rank :]))
    line = f"{after} fft(x), fft_type={kind}, fft_length={{{lengths}}}"
    return f"HloModule m\nENTRY e {{\n  x = {before} parameter(0)\n  ROOT r = {line}\n}}"


def argument(kind: str, real: str, dims: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(prod(dims))
    dims = (*dims[:-1], dims[-1] // 2 + 1) if kind == "IRFFT" else dims
    x = rng.standard_normal(dims)
    if kind == "RFFT":
        return x.astype({"f32": np.float32, "f64": np.float64}[real])
    return (x + 1j * rng.standard_normal(dims)).astype({"f32": np.complex64, "f64": np.complex128}[real])


def exact(kind: str, x: np.ndarray, lengths: tuple[int, ...]) -> np.ndarray:
    """In numbers of 64 bits and more."""
    axes = tuple(range(x.ndim - len(lengths), x.ndim))
    x = x.astype(np.longdouble if kind == "RFFT" else np.clongdouble)
    if kind != "IRFFT":
        return {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn}[kind](x, axes=axes)
    x = np.fft.ifftn(x, axes=axes[:-1]) if axes[:-1] else x
    return np.fft.irfft(x, n=lengths[-1], axis=-1)


@pytest.mark.parametrize("number, lengths", list(enumerate(LENGTHS)), ids=str)
@pytest.mark.parametrize("is_real", [False, True])
def test_errors_grow_with_the_logarithm_of_the_length(is_real, number, lengths):
    kind, real = KINDS[2 * is_real + number % 2], "f64" if number // 2 % 2 else "f32"
    dims = ((19,) if number % 3 and prod(lengths) < 2000 else (2,)) + lengths
    x = argument(kind, real, dims)
    got = cyxla.compile(program(kind, real, dims, len(lengths)))(x)
    want = exact(kind, x, lengths)
    assert got.shape == want.shape
    error = np.linalg.norm((got - want).ravel()) / np.linalg.norm(want.ravel())
    assert error <= 0.5 * max(2, log2(prod(lengths))) * np.finfo(x.dtype).eps


@pytest.mark.parametrize("lengths", [(1,), (2,), (12,), (17,), (97,), (101,), (128,), (3, 5, 7)], ids=str)
@pytest.mark.parametrize("real", ["f32", "f64"])
def test_all_kinds_agree_with_the_oracle(real, lengths):
    for kind in KINDS:
        agree(program(kind, real, (3, *lengths), len(lengths)), ulp=32, floor=1.0)


@pytest.mark.parametrize("kind, real", [("FFT", "f32"), ("IFFT", "f64"), ("RFFT", "f32"), ("IRFFT", "f64")])
@pytest.mark.parametrize("dims, rank", [((400, 290), 2), ((2, 500, 328), 2), ((60, 54, 50), 3)])
def test_every_dimension_of_a_large_one_has_tasks(dims, rank, kind, real):
    executable = agree(program(kind, real, dims, rank), ulp=64, floor=4.0)
    assert executable.c_source.count("parallel_for(ctx, k") == rank


@pytest.mark.parametrize("kind, parts", [("FFT", 2), ("IFFT", 2), ("RFFT", 3), ("IRFFT", 3)])
@pytest.mark.parametrize("real, dims", [("f32", (2, 270000)), ("f64", (1, 131072))])
def test_tasks_share_a_long_line(real, dims, kind, parts):
    run, x = cyxla.compile(program(kind, real, dims, 1)), argument(kind, real, dims)
    assert run.c_source.count("parallel_for(ctx, k") == parts
    want = exact(kind, x, dims[1:])
    error = np.linalg.norm((run(x) - want).ravel()) / np.linalg.norm(want.ravel())
    assert error <= 0.5 * log2(dims[1]) * np.finfo(x.dtype).eps


def test_long_lines_behind_other_dimensions():
    agree(program("RFFT", "f32", (3, 2, 100000), 2), ulp=64, floor=64.0)
    agree(program("IRFFT", "f32", (3, 2, 100000), 2), ulp=64, floor=1.0)


def test_many_small_ones_are_one_kernel():
    executable = agree(program("FFT", "f32", (400, 16, 16), 2), ulp=32, floor=1.0)
    assert executable.c_source.count("parallel_for(ctx, k") == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "dims, rank", [((50, 1000), 1), ((40, 251), 1), ((37, 90), 1), ((130, 100), 2), ((3, 70000), 1)]
)
def test_bits_do_not_depend_on_the_threads(kind, dims, rank):
    x, text = argument(kind, "f32", dims), program(kind, "f32", dims, rank)
    run, before, seen = cyxla.compile(text), cyxla.threads(), set()
    try:
        for n in (1, 2, 3, 8):
            cyxla.threads(n)
            seen.add(run(x).tobytes())
    finally:
        cyxla.threads(before)
    assert len(seen) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [15, 64, 262, 3000])
def test_lines_do_not_disturb_each_other(kind, n):
    text, x = program(kind, "f32", (21, n), 1), argument(kind, "f32", (21, n))
    run = cyxla.compile(text)
    clean = run(x)
    x[[3, 20], 1] = np.nan
    got = run(x)
    assert np.isnan(got[[3, 20]]).all()
    others = np.delete(np.arange(21), [3, 20])
    np.testing.assert_array_equal(got[others], clean[others])


@pytest.mark.parametrize("n", [1, 2, 6, 7, 64, 1000, 2018])
def test_imaginary_parts_that_an_inverse_real_transform_ignores(n):
    x = argument("IRFFT", "f64", (20, n))
    run = cyxla.compile(program("IRFFT", "f64", (20, n), 1))
    clean = run(x)
    x[:, 0].imag = np.nan
    if n % 2 == 0:
        x[:, n // 2].imag = np.inf
    np.testing.assert_array_equal(run(x), clean)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dims, rank", [((0, 12), 1), ((0, 3, 4), 2), ((0, 5000), 1), ((2, 0, 8, 8), 2)])
def test_none_at_all(kind, dims, rank):
    x = argument(kind, "f32", dims)
    assert cyxla.compile(program(kind, "f32", dims, rank))(x).shape == exact(kind, x, dims[-rank:]).shape


@pytest.mark.slow_but_every(8)
@pytest.mark.parametrize(
    "kind, dims, rank",
    [
        (kind, dims, rank)
        for k, (dims, rank) in enumerate(
            [((9, 210), 1), ((3, 1024), 1), ((2, 101), 1), ((40, 17, 20), 2), ((1, 131072), 1)]
        )
        for kind in (("FFT", "IRFFT"), ("IFFT", "RFFT"))[k % 2]
    ],
)
def test_the_prebuilt_text_and_the_program_s_own_give_the_same_bits(monkeypatch, kind, dims, rank):
    x, got = argument(kind, "f32", dims), []
    for prebuilt in ("0", "1"):
        monkeypatch.setenv("CYXLA_PREBUILT", prebuilt)
        run = cyxla.compile(program(kind, "f32", dims, rank), cache=False)
        assert ("cyx_prebuilt[" in run.c_source) == (prebuilt == "1")
        got.append(run(x))
    if b"GCC: (" in Path(kernels.__file__).read_bytes() and compiler_search.require().compiler.kind != "gcc":
        # of a * b - c * d, compilers round one product or the other
        most = float(np.abs(got[0]).max())
        np.testing.assert_allclose(*got, rtol=0, atol=16 * np.finfo(np.float32).eps * most)
    else:
        assert got[0].tobytes() == got[1].tobytes()


def test_transforms_beside_other_kernels():
    text = """HloModule m
    ENTRY e {
      x = c64[20,96] parameter(0)
      two = c64[] constant((2, 1))
      twos = c64[20,96] broadcast(two), dimensions={}
      y = c64[20,96] multiply(x, twos)
      f = c64[20,96] fft(y), fft_type=FFT, fft_length={96}
      g = c64[20,96] fft(f), fft_type=IFFT, fft_length={20,96}
      ROOT r = c64[20,96] add(f, g)
    }"""
    agree(text, ulp=64, floor=4.0)


def test_lines_may_lie_anywhere():
    store = np.zeros(20 * 64 * 8 + 4, np.uint8)
    x = store[4:].view(np.complex64).reshape(20, 64)
    x[:] = argument("FFT", "f32", (20, 64))
    got = cyxla.compile(program("FFT", "f32", (20, 64), 1))(x)
    np.testing.assert_array_equal(got, cyxla.compile(program("FFT", "f32", (20, 64), 1))(x.copy()))


@given(n=st.integers(1, 2**24))
def test_factors_make_up_the_length(n):
    found = factors(n)
    assert prod(found) == n
    assert all(r in STRAIGHT or (r > 16 and all(r % q for q in range(2, int(r**0.5) + 1))) for r in found)


@given(n=st.integers(LARGEST_PRIME, 2**24))
def test_convolutions_are_long_enough_and_easy(n):
    m = padded(n)
    assert 2 * n - 1 <= m <= max(768, 2.8 * n)
    assert not is_chirp(m)
    assert min(split(m)) >= 16


@settings(max_examples=30)
@given(n=st.integers(1, 10**6), k=st.integers(-(10**6), 10**6))
def test_roots_are_exact(n, k):
    angle = np.longdouble(k % n) / n * (8 * np.arctan(np.longdouble(1)))
    want = np.cos(angle) - 1j * np.sin(angle)
    assert abs(roots(n, k) - want) < 2e-16
