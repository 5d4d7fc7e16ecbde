"""What holds for all tests: how fast a machine is decides nothing, tracebacks hide nothing, and native code answers."""

import gc
import os

from hypothesis import HealthCheck, settings

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
os.environ.setdefault("CYXLA_TRACEBACK", "full")
os.environ.setdefault("CYXLA_TIER", "native")  # whatever is called first; test_tiers.py is about the others


def pytest_collection_finish():
    """Have the collector of garbage look no more at thousands of collected tests: they stay to the end."""
    gc.collect()
    gc.freeze()
