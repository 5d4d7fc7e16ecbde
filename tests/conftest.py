"""Settings of all tests: no deadlines, full tracebacks, native code from the first call."""

import gc
import os

from hypothesis import HealthCheck, settings

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
os.environ.setdefault("CYXLA_TRACEBACK", "full")
os.environ.setdefault("CYXLA_TIER", "native")  # also for first calls; test_tiers.py tests the other tiers


def pytest_collection():
    """Stop garbage collection while tests are collected, of which none is garbage."""
    gc.disable()


def pytest_collection_finish():
    """Exclude the collected tests, which live to the end, from garbage collection."""
    gc.collect()
    gc.freeze()
    gc.enable()
