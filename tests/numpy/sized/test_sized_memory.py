"""Memory of results whose size is known at run time."""

import ctypes
import mmap

import numpy as np
import pytest

import cyxla
from cyxla._native import _rt
from cyxla.errors import FallbackWarning, ResourceExhaustedError
from cyxla.xla.cpu.native import library as native

N = 1_000_000
MiB = 1 << 20


def selected(x, limit):
    return x[x < limit]


def mapped(address, size):
    """Return for each page from an address on whether it is in memory."""
    pages = np.zeros(-(-size // mmap.PAGESIZE), np.uint8)
    status = ctypes.CDLL(None, use_errno=True).mincore(
        ctypes.c_void_p(address), ctypes.c_size_t(size), pages.ctypes.data_as(ctypes.c_void_p)
    )
    assert status == 0, ctypes.get_errno()
    return pages & 1


def test_small_results_take_the_memory_of_their_elements():
    x = np.arange(1000.0)
    compiled = cyxla.jit(selected, platform="cpu")
    compiled(x, 99)
    before = native.pool_stats()["in_use_bytes"]
    got = compiled(x, 99)
    assert got.shape == (99,)
    assert native.pool_stats()["in_use_bytes"] - before == _rt.block_capacity(99 * 8)


@pytest.mark.parametrize("count", [999_999, 500_000, 499_999, 400_000, 300_000, 131_072])
def test_the_system_takes_back_the_rest_of_large_results(count):
    x = np.arange(float(N))
    compiled, grown = cyxla.jit(selected, platform="cpu"), cyxla.jit(lambda x: x + 1, platform="cpu")
    compiled(x, count)
    grown(x)  # writes to the whole of the block that the result gets
    got = compiled(x, count)
    np.testing.assert_array_equal(got, x[:count])
    pages = mapped(got.ctypes.data, whole := 8 * N // mmap.PAGESIZE * mmap.PAGESIZE)
    is_much = 2 * count < N and 2 * got.nbytes + 2 * MiB < _rt.block_capacity(8 * N)
    kept = -(-got.nbytes // (2 * MiB)) * 2 * MiB if is_much else whole
    assert pages[: -(-got.nbytes // mmap.PAGESIZE)].all()
    assert not pages[kept // mmap.PAGESIZE :].any()
    np.testing.assert_array_equal(grown(x), x + 1)


def test_results_below_a_huge_page_are_copied():
    x = np.arange(float(N))
    compiled = cyxla.jit(selected, platform="cpu")
    compiled(x, 1000)
    before = native.pool_stats()["in_use_bytes"]
    got = compiled(x, 1000)
    assert native.pool_stats()["in_use_bytes"] - before == _rt.block_capacity(8000)
    np.testing.assert_array_equal(got, x[:1000])


def test_growing_results_share_blocks():
    """Each size had blocks of its own, whose pages took longer than the computation of most functions."""
    x = np.arange(float(N))
    compiled = cyxla.jit(selected, platform="cpu")
    results = [compiled(x, 10)]
    before = native.pool_stats()["misses"]
    for count in range(30_000, 60_000, 1000):  # 240 to 480 kB; the result before is still in use
        results = [results[-1], compiled(x, count)]
        np.testing.assert_array_equal(results[-1], x[:count])
    assert native.pool_stats()["misses"] - before <= 6


def parts(x, m):
    y = x + 1
    k = np.count_nonzero(m)
    return y, y[:k], y[: k + 1], x[:k], x


@pytest.mark.parametrize("count", [0, 200_000, 800_000])
def test_arrays_of_others_stay_as_they_are(count):
    """Only what the caller cannot see is given back: not the rest of an argument, nor of another result."""
    x = cyxla.jit(lambda x: x * 2, platform="cpu")(np.arange(float(N)))
    want = x.copy()
    m = np.arange(N) < count
    for got, wanted in zip(cyxla.jit(parts, platform="cpu")(x, m), parts(want, m), strict=True):
        np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(x, want)


def test_results_can_be_written():
    x = np.arange(float(N))
    compiled = cyxla.jit(selected, platform="cpu")
    first, second = compiled(x, 400_000), compiled(x, 400_000)
    first[:] = -1
    np.testing.assert_array_equal(second, x[:400_000])
    assert first.flags.carray


def cube(x):
    x[0] += 1
    n = np.bincount(x)  # has 65,536 elements at most
    return n[:, None, None] * n[:, None] + n


def cube_sum(x):
    return cube(x).sum()


@pytest.mark.parametrize("platform", ["interpreter", "cpu"])
def test_numpy_runs_functions_whose_padded_arrays_exceed_the_memory(platform):
    """The array takes 2 PiB at its greatest sizes; each call runs the function once."""
    compiled = cyxla.jit(cube, platform=platform, fallback="numpy")
    x, y = np.array([1, 2, 5, 5]), np.array([1, 2, 5, 5])
    with pytest.warns(FallbackWarning, match=f"takes {2**51} bytes at its greatest size"):
        got = compiled(x)
    np.testing.assert_array_equal(got, cube(y))
    for _ in range(2):
        np.testing.assert_array_equal(compiled(x), cube(y))
    np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("platform", ["interpreter", "cpu"])
def test_padded_arrays_beyond_the_memory_are_an_error_without_fallback(platform):
    compiled = cyxla.jit(cube, platform=platform, fallback="error")
    x = np.array([1, 2, 5, 5])
    for _ in range(2):
        with pytest.raises(ResourceExhaustedError, match=r"(?s)are available.*test_sized_memory\.py:\d+.*np\.minimum"):
            compiled(x)
        np.testing.assert_array_equal(x, [1, 2, 5, 5])


def test_padded_arrays_that_are_never_stored_need_no_memory():
    x = np.array([1, 2, 5, 5])
    assert cyxla.jit(cube_sum, platform="cpu", fallback="error")(x) == cube_sum(np.array([1, 2, 5, 5]))


@pytest.mark.parametrize("count, in_place", [(500, True), (250, True), (249, False), (1, False)])
def test_small_results_of_many_of_the_elements_stay_in_place(count, in_place):
    """A copy took as long as the compaction."""
    x = np.arange(1000.0)
    compiled = cyxla.jit(selected, platform="cpu")
    compiled(x, count)
    before = native.pool_stats()["in_use_bytes"]
    got = compiled(x, count)
    np.testing.assert_array_equal(got, x[:count])
    assert native.pool_stats()["in_use_bytes"] - before == _rt.block_capacity(8000 if in_place else 8 * count)
