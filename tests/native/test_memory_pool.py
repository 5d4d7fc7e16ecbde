"""The memory pool: size classes, reuse, the limit on its size."""

import ctypes
import mmap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyxla._native import _rt
from cyxla.xla.cpu.native import library as native

MiB = 1 << 20
COPY_NOTHING = "CYX_EXPORT cyx_status entry(void *const *b, const cyx_ctx *c) { return CYX_OK; }"


@pytest.fixture
def pool():
    """Start from an empty pool, and leave the limit as it was."""
    native.pool_trim()
    limit = native.pool_stats()["limit"]
    yield native
    native.set_pool_limit(limit)


@pytest.fixture
def array(program):
    """Make an array of so many bytes over memory of the pool."""
    return lambda size: program(COPY_NOTHING, [], [("u1", (size,))])()


@given(st.integers(0, 1 << 40))
def test_size_classes_are_aligned_and_waste_little(size):
    got = _rt.block_capacity(size)
    assert got >= size
    assert got % 64 == 0
    if got >= MiB:  # huge pages, whole ones
        assert got % (2 * MiB) == 0
        assert got - size < max(2 * MiB, size / 8 + 2 * MiB)
    else:
        assert got - size <= max(64, size / 8)
    assert _rt.block_capacity(got) == got


@given(st.integers(0, 1 << 32), st.integers(0, 1 << 20))
def test_size_classes_ascend(size, more):
    assert _rt.block_capacity(size) <= _rt.block_capacity(size + more)


@pytest.mark.parametrize("size", [0, 1, 64, 65, 4096, MiB - 1, MiB, 3 * MiB, 33 * MiB])
def test_a_block_is_used_again(pool, array, size):
    first = array(size)
    assert first.ctypes.data % (2 * MiB if size >= MiB else 64) == 0
    address = first.ctypes.data
    first.fill(1)
    before = pool.pool_stats()
    del first
    assert array(size).ctypes.data == address
    assert pool.pool_stats()["misses"] == before["misses"]


def test_held_memory_is_bounded_and_the_oldest_goes_first(pool, array):
    pool.set_pool_limit(8 * MiB)
    arrays = [array(2 * MiB) for _ in range(3)] + [array(4 * MiB)]
    small, large = arrays[0].ctypes.data, arrays[3].ctypes.data
    for k in range(4):
        arrays[k] = None
        assert pool.pool_stats()["held_bytes"] <= 8 * MiB
    assert array(4 * MiB).ctypes.data == large
    misses = pool.pool_stats()["misses"]
    again = [array(2 * MiB) for _ in range(2)]
    assert small not in [a.ctypes.data for a in again] or pool.pool_stats()["misses"] > misses
    huge = array(10 * MiB)
    del huge
    assert pool.pool_stats()["held_bytes"] <= 8 * MiB


def test_trim_gives_memory_back(pool, array):
    del [array(4 * MiB), array(100)][:]
    array(5 * MiB)
    assert pool.pool_stats()["held_bytes"] >= 6 * MiB
    pool.pool_trim(keep=1000)
    assert pool.pool_stats()["held_bytes"] <= 1000
    pool.pool_trim()
    assert pool.pool_stats()["held_blocks"] == 0


@pytest.mark.parametrize("size", [1 << 45, (1 << 62) + 64, (1 << 63) - 1])
def test_too_much_memory_is_an_error(array, size):
    from cyxla import errors

    with pytest.raises(errors.ResourceExhaustedError, match="cannot allocate"):
        array(size)


def test_arenas_come_from_the_pool_and_go_back(pool, program):
    call = program(COPY_NOTHING, [], [], (), arena_bytes=3 * MiB)
    call()
    before = pool.pool_stats()
    call()
    assert pool.pool_stats()["misses"] == before["misses"]
    assert pool.pool_stats()["in_use_bytes"] == before["in_use_bytes"]


@pytest.mark.parametrize("size", [5_000, 100_000, 900_000])
def test_new_memory_below_huge_pages_is_touched(pool, array, size):
    """Masked vector loads, such as those behind the last element of a size known at run time, are slow elsewhere."""
    got = array(size)
    page = mmap.PAGESIZE
    first = got.__array_interface__["data"][0] // page * page
    pages = (got.__array_interface__["data"][0] + size - first + page - 1) // page
    resident = (ctypes.c_ubyte * pages)()
    assert ctypes.CDLL(None).mincore(ctypes.c_void_p(first), ctypes.c_size_t(pages * page), resident) == 0
    assert all(n & 1 for n in resident)


TOUCH = """
CYX_EXPORT cyx_status entry(void *const *b, const cyx_ctx *c) {
  for (long k = 0; k < SIZE; k += 2l << 20) c->arena[k] = 1;
  return CYX_OK;
}
"""


def resident_bytes():
    """Return the bytes of memory that this process has touched."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc/self/statm")
def test_sparse_temporaries_take_the_pages_they_touch(pool, program):
    """Programs for any size use the beginnings of temporaries; each would take a huge page."""
    size = 256 * MiB
    body = TOUCH.replace("SIZE", f"({size}l)")
    dense, sparse = (program(body, [], [], (), arena_bytes=size, sparse=k) for k in (False, True))
    dense()  # leaves a block of huge pages, where the system has them, which sparse ones do not use
    before = resident_bytes()
    sparse()
    assert resident_bytes() - before < size // 8
    misses = pool.pool_stats()["misses"]
    for _ in range(3):
        dense()
        sparse()
    assert pool.pool_stats()["misses"] == misses


@pytest.mark.parametrize("size, is_shared", [(MiB // 2, True), (2 * MiB, False), (16 * MiB, False), (17 * MiB, True)])
def test_sparse_results_have_small_pages(pool, array, program, size, is_shared):
    """Only beginnings of the results of programs for any size are read; callers may read large ones as a whole."""
    array(size)  # leaves a block of huge pages, if it is large
    before = pool.pool_stats()
    got = program(COPY_NOTHING, [], [("u1", (size,))], sparse=True)()
    assert (pool.pool_stats()["misses"] == before["misses"]) is is_shared
    del got
    program(COPY_NOTHING, [], [("u1", (size,))], sparse=True)()
    assert pool.pool_stats()["misses"] - before["misses"] == (not is_shared)
    assert pool.pool_stats()["in_use_bytes"] == before["in_use_bytes"]
