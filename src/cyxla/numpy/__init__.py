"""The NumPy front door: functions written with `numpy`, traced and compiled."""

from cyxla.numpy.jitted import Jitted, jit

__all__ = ["Jitted", "jit"]
