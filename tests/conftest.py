"""Settings of all tests: no deadlines, full tracebacks, native code from the first call, the same data in any order."""

import gc
import os
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
os.environ.setdefault("CYXLA_TRACEBACK", "full")
os.environ.setdefault("CYXLA_TRACE_SECONDS", "60")  # on machines that are busy
os.environ.setdefault("CYXLA_FALLBACK", "error")  # functions are to be compiled; test_fallback.py tests the fallback
os.environ.setdefault("CYXLA_TIER", "native")  # also for first calls; test_tiers.py tests the other tiers


def pytest_collection():
    """Stop garbage collection while tests are collected, of which none is garbage."""
    gc.disable()


def pytest_generate_tests(metafunc):
    """Refuse tables of cases without an order, which the processes of one run would collect differently."""
    for mark in metafunc.definition.iter_markers("parametrize"):
        if any(isinstance(values, set | frozenset) for values in [*mark.args, *mark.kwargs.values()]):
            raise pytest.UsageError(f"{metafunc.definition.nodeid}: parametrize with a list, not with a set")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark rows of long tables as slow, for tests that say how many rows are not."""
    rows = Counter()
    for item in items:
        first, every = item.get_closest_marker("slow_after"), item.get_closest_marker("slow_but_every")
        function = item.nodeid.partition("[")[0]
        if (first and rows[function] >= first.args[0]) or (every and rows[function] % every.args[0]):
            item.add_marker("slow")
        rows[function] += 1


def pytest_collection_finish():
    """Exclude the collected tests, which live to the end, from garbage collection."""
    gc.collect()
    gc.freeze()
    gc.enable()


_generator_states = {}


@pytest.fixture(autouse=True)
def reset_generator(request):
    """Reset the generator of the test's module, so that data do not depend on the tests that ran before."""
    generator = getattr(request.module, "RNG", None)
    if isinstance(generator, np.random.Generator):
        bits = generator.bit_generator
        bits.state = _generator_states.setdefault(request.module.__name__, bits.state)
