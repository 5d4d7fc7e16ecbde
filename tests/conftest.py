"""What holds for all tests: how fast a machine is decides nothing, and tracebacks hide nothing."""

import gc
import os

from hypothesis import HealthCheck, settings

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
os.environ.setdefault("CYXLA_TRACEBACK", "full")


def pytest_collection_finish():
    """Have the collector of garbage look no more at thousands of collected tests: they stay to the end."""
    gc.collect()
    gc.freeze()
