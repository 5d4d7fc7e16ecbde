"""The NumPy front door: functions written with `numpy`, traced and compiled."""

from cyxla.numpy.jitted import Jitted, jit
from cyxla.numpy.signatures import spec
from cyxla.numpy.traced_array import TracedArray

__all__ = ["Jitted", "TracedArray", "jit", "spec"]
