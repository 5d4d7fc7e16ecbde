"""The thread pool of a device."""

import threading
import time

import numpy as np
import pytest
from support.graphs.running import Extension

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.step.thread_pool import MIN_COST, ThreadPool
from cyxla.errors import InvalidArgumentError


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("total, cost", [(0, 1e9), (1, 1e9), (7, 1e9), (1000, 1e9), (1000, 1.0)])
def test_every_unit_is_worked_on_once(threads, total, cost):
    pool, seen = ThreadPool(threads), np.zeros(total, int)

    def work(start, stop):
        seen[start:stop] += 1

    pool.parallel_for(total, cost, work)
    assert (seen == 1).all()


@pytest.mark.parametrize("total, cost, shards", [
    (0, 1e9, 0), (1, 1e9, 1), (3, 1e9, 3), (100, 1e9, 4), (100, 1.0, 1), (100, MIN_COST / 50, 2),
])  # fmt: skip
def test_small_work_is_not_split(total, cost, shards):
    assert ThreadPool(4).num_shards(total, cost) == shards


def test_shards_run_at_the_same_time():
    together = threading.Barrier(3, timeout=10)
    ThreadPool(3).parallel_for(3, 1e9, lambda start, stop: together.wait())


def test_work_inside_work_does_not_wait_for_the_pool():
    pool, count, lock = ThreadPool(2), [0], threading.Lock()

    def inner(start, stop):
        with lock:
            count[0] += stop - start

    pool.parallel_for(4, 1e9, lambda start, stop: [pool.parallel_for(10, 1e9, inner) for _ in range(start, stop)])
    assert count == [40]


def test_the_first_error_is_raised_when_all_shards_have_ended():
    ended = []

    def work(start, stop):
        if start == 0:
            raise ValueError("first")
        time.sleep(0.02)
        ended.append(start)

    with pytest.raises(ValueError, match="first"):
        ThreadPool(4).parallel_for(4, 1e9, work)
    assert len(ended) == 3


def test_scheduled_work_runs():
    for threads in (1, 3):
        done = threading.Event()
        ThreadPool(threads).schedule(done.set)
        assert done.wait(10)


def test_a_pool_needs_a_thread():
    with pytest.raises(InvalidArgumentError, match="a pool of 0 threads"):
        ThreadPool(0)


def test_a_closed_pool_starts_again():
    pool = ThreadPool(2)
    for _ in range(2):
        pool.parallel_for(2, 1e9, lambda start, stop: None)
        pool.close()


def test_a_kernel_shards_its_work_over_the_pool_of_its_device():
    workers = set()

    def negate(ctx):
        x, pool = ctx.input("x"), ctx.thread_pool
        y = ctx.allocate_output(0, x.shape)

        def work(start, stop):
            workers.add((threading.get_ident(), pool.num_threads))
            np.negative(x[start:stop], out=y[start:stop])

        pool.parallel_for(len(x), 1e6, work)

    extension = Extension()
    extension.probe("ShardedNeg", negate)
    graph = extension.graph()
    with graph.as_default():
        y = apply_op("ShardedNeg", np.arange(100, dtype=np.float32))
    session = extension.session(graph, threads=3)
    np.testing.assert_array_equal(session.run(y), -np.arange(100))
    assert {count for _, count in workers} == {3}
    session.close()
