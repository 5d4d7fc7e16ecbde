"""What holds for all tests: how fast a machine is decides nothing, and tracebacks hide nothing."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
os.environ.setdefault("CYXLA_TRACEBACK", "full")
