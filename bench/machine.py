"""Limits of the machine, measured beside the programs: multiply-adds, bytes read, bytes copied."""

import ctypes
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np

from cyxla.xla.cpu.native import library as native

SOURCE = Path(__file__).with_name("limits.c")
LANES = {"f32": 16, "f64": 8}
SUMS = 16  # of limits.c
TURNS = 2_000_000
BYTES = 256 << 20
TRIES = 6  # of each rate; the best counts


@cache
def library():
    """Compile limits.c and return the library."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "limits.so"
        flags = ["-O2", "-march=native", "-mprefer-vector-width=512", "-ffp-contract=fast", "-shared", "-fPIC"]
        subprocess.run(["cc", *flags, str(SOURCE), "-o", str(path)], check=True)
        return ctypes.CDLL(str(path))


def aligned(nbytes):
    """Return floats that begin at a cache line, in memory that the system has mapped already."""
    store = np.ones(nbytes + 64, np.uint8)
    start = -store.ctypes.data % 64
    return store[start : start + nbytes].view(np.float32)


class Machine:
    """Rates with as many threads as programs use, each the best of several tries."""

    def __init__(self):
        self.threads = native.threads()
        self.pool = ThreadPoolExecutor(self.threads)

    def fastest(self, work):
        """Return the seconds of the fastest concurrent run of `work(thread)` on all threads."""
        best = float("inf")
        for _ in range(TRIES):
            started = time.perf_counter()
            list(self.pool.map(work, range(self.threads)))
            best = min(best, time.perf_counter() - started)
        return best

    def flops(self, dtype):
        """Return floating-point operations per second, two for each multiply-add."""
        run = getattr(library(), f"peak_{dtype}")
        seconds = self.fastest(lambda _: run(ctypes.c_int64(TURNS)))
        return 2 * SUMS * LANES[dtype] * TURNS * self.threads / seconds

    def read(self):
        """Return bytes per second read from main memory."""
        source = self._parts()[0]
        seconds = self.fastest(lambda t: library().read_all(*self._part(t, source)))
        return BYTES / seconds

    def copy(self):
        """Return bytes per second, read and written, of a copy within main memory."""
        source, target = self._parts()
        best = float("inf")
        for function in (library().copy_cached, library().copy_streamed):
            best = min(best, self.fastest(lambda t, f=function: f(self._part(t, target)[0], *self._part(t, source))))
        return 2 * BYTES / best

    @cache  # noqa: B019  there is one machine
    def _parts(self):
        return aligned(BYTES), aligned(BYTES)

    def _part(self, thread, array):
        count = array.size // self.threads // 64 * 64
        return ctypes.c_void_p(array.ctypes.data + thread * count * 4), ctypes.c_int64(count)
