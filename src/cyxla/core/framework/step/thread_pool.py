"""Thread pool of a device, over which kernels shard their work."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from threading import local
from typing import Any

import numpy as np

from cyxla.errors import InvalidArgumentError
from cyxla.forking import call_in_child, new_lock

MIN_COST = 10_000  # of a shard, in nanoseconds: less is not worth a thread
_INSIDE = local()  # `pool` is set on the threads of a pool, whose work runs inline


class ThreadPool:
    """Pool of threads for parts of one kernel's work; the caller works, too. Threads are created at first use.

    Parameters
    ----------
    threads : int
        Number of threads that may work at the same time, the caller included.
    """

    def __init__(self, threads: int) -> None:
        if threads < 1:
            raise InvalidArgumentError(f"a pool of {threads} threads", hint="at least one is needed")
        self.num_threads = threads
        self._executor: ThreadPoolExecutor | None = None
        self._lock = new_lock()
        call_in_child(self._forget_threads)

    def schedule(self, work: Callable[[], object]) -> None:
        """Run a closure on a thread of the pool; at once if the pool has none besides the caller."""
        if self._runs_inline():
            work()
        else:
            self._submit(work)

    def parallel_for(self, total: int, cost: float, work: Callable[[int, int], object]) -> None:
        """Call ``work(start, stop)`` on shards of ``range(total)``, and return when all have ended.

        Parameters
        ----------
        total : int
            Number of units of work.
        cost : float
            Cost of a unit in nanoseconds; work that is too small is not split.
        work : callable
            Function of a shard, called by several threads at the same time. NumPy releases the GIL in large operations.

        Raises
        ------
        Exception
            The first error of a shard, after all have ended.
        """
        count = self.num_shards(total, cost)
        if count < 2:
            if total:
                work(0, total)
            return
        bounds = [total * k // count for k in range(count + 1)]
        futures = [self._submit(partial(work, bounds[k], bounds[k + 1])) for k in range(1, count)]
        error: BaseException | None = None
        try:
            work(bounds[0], bounds[1])
        except BaseException as raised:
            error = raised
        errors = [error, *(future.exception() for future in futures)]
        first = next((e for e in errors if e is not None), None)
        if first is not None:
            raise first

    def num_shards(self, total: int, cost: float) -> int:
        """Return the number of shards for an amount of work."""
        if self._runs_inline():
            return min(total, 1)
        return max(min(self.num_threads, total, int(total * cost / MIN_COST)), min(total, 1))

    def _runs_inline(self) -> bool:
        return self.num_threads < 2 or getattr(_INSIDE, "pool", False)

    def _submit(self, work: Callable[[], object]) -> Future[Any]:
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(self.num_threads, "cyxla-device", _mark_thread)
            return self._executor.submit(_run_quietly, work)

    def close(self) -> None:
        """End the threads; later work starts new ones."""
        with self._lock:
            executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=False)

    def _forget_threads(self) -> None:
        self._executor = None  # a forked child does not have them


def _run_quietly(work: Callable[[], object]) -> None:
    with np.errstate(all="ignore"):
        work()


def _mark_thread() -> None:
    _INSIDE.pool = True
