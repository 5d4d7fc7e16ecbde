"""The NumPy front door: functions written with `numpy`, traced and compiled."""

from cyxla.numpy.calls.disabling import disable_jit
from cyxla.numpy.calls.jitted import Jitted, jit
from cyxla.numpy.calls.specs import spec
from cyxla.numpy.tracing.arrays.traced_array import TracedArray

__all__ = ["Jitted", "TracedArray", "disable_jit", "jit", "spec"]
