"""Garbage collection during compilation: rarer in its course, and as before at its end."""

import gc
import os
import weakref
from contextlib import nullcontext
from threading import Event, Thread

import numpy as np
import pytest

import cyxla
from cyxla.gc_pause import THRESHOLD, collect_while_idle, fewer_collections


@pytest.fixture(autouse=True)
def keep_threshold():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.fixture
def thawed():
    """No frozen containers, in place of those that all tests share."""
    gc.unfreeze()
    yield
    gc.freeze()


def test_nested_blocks_restore_the_threshold_at_the_end_of_the_last():
    before = gc.get_threshold()
    with fewer_collections():
        with fewer_collections():
            assert gc.get_threshold() == (THRESHOLD, *before[1:])
        assert gc.get_threshold()[0] == THRESHOLD
    assert gc.get_threshold() == before


@pytest.mark.parametrize("threshold", [0, THRESHOLD, 10 * THRESHOLD])
def test_rarer_collections_of_the_user_stay(threshold):
    gc.set_threshold(threshold, 5, 5)
    with fewer_collections():
        assert gc.get_threshold() == (threshold, 5, 5)
    assert gc.get_threshold() == (threshold, 5, 5)


def test_what_the_user_sets_meanwhile_stays():
    with fewer_collections():
        gc.set_threshold(123, 4, 5)
    assert gc.get_threshold() == (123, 4, 5)


def test_blocks_of_threads_may_overlap():
    before, entered, leave = gc.get_threshold(), Event(), Event()

    def run():
        with fewer_collections():
            entered.set()
            leave.wait()

    thread = Thread(target=run)
    with fewer_collections():
        thread.start()
        entered.wait()
    assert gc.get_threshold()[0] == THRESHOLD
    leave.set()
    thread.join()
    assert gc.get_threshold() == before


def test_a_child_begins_with_the_threshold_from_before():
    before = gc.get_threshold()
    with fewer_collections():
        child = os.fork()
        if not child:
            os._exit(gc.get_threshold() != before)
        assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("is_inside", [True, False], ids=["in a block", "elsewhere"])
@pytest.mark.parametrize("is_enabled", [True, False], ids=["enabled", "disabled"])
def test_a_search_while_the_thread_would_wait(is_inside, is_enabled):
    gc.set_threshold(700, 10, 10)
    was_enabled, searches = gc.isenabled(), []
    try:
        for _ in range(2):  # the first time, new containers may be declared old
            with fewer_collections() if is_inside else nullcontext():
                gc.disable()  # other searches
                made = [[] for _ in range(5_000)]
                if is_enabled:
                    gc.enable()
                gc.callbacks.append(lambda phase, info: searches.append((phase, info["generation"])))
                collect_while_idle()
                gc.callbacks.pop()
    finally:
        (gc.enable if was_enabled else gc.disable)()
    assert len(made) == 5_000
    assert (("stop", 0) in searches) == (is_inside and is_enabled)


class Cycle:
    """Container that refers to itself."""

    def __init__(self):
        self.itself = self


@pytest.mark.parametrize("is_full", [False, True], ids=["a young search", "a full search"])
def test_a_full_search_finds_what_was_declared_old(is_full, thawed):
    gc.set_threshold(700, 10, 10)
    gc.collect()  # from now on, new containers are declared old once
    with fewer_collections():
        cycle, made = weakref.ref(Cycle()), [[] for _ in range(5_000)]
        collect_while_idle()
    gc.collect(2 if is_full else 0)
    assert len(made) == 5_000
    assert (cycle() is None) == is_full


def test_what_the_user_froze_stays_frozen(thawed):
    gc.set_threshold(700, 10, 10)
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with fewer_collections():
            made = [[] for _ in range(5_000)]
            collect_while_idle()
        assert len(made) == 5_000
        assert gc.get_freeze_count() > frozen - 1_000  # some have been deleted
    finally:
        gc.unfreeze()


def test_traced_functions_run_with_fewer_collections():
    seen = []

    def function(x):
        seen.append(gc.get_threshold()[0])
        return x + 1

    before = gc.get_threshold()
    cyxla.jit(function, platform="interpreter")(np.ones(3))
    assert seen[0] == THRESHOLD
    assert gc.get_threshold() == before
