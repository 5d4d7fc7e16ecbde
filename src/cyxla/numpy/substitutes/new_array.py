"""``np.ndarray`` in the program: a new array when it is called, and the class of traced arrays, too."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from cyxla.numpy.substitutes.proxy import CallableProxy
from cyxla.numpy.tracing.arrays.known_array import KnownArray
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, is_traced
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.results.uninitialised import zeros_of
from cyxla.numpy.tracing.results.zero_dim import Rank0

_EMPTY: Any = np.empty  # NumPy's own
LIBRARIES = frozenset({"cyxla", "numpy", "scipy", "ml_dtypes"})


def called_by_library(depth: int) -> bool:
    """Return True if the caller's caller at a depth is code of a library, which means NumPy's own objects."""
    return sys._getframe(depth + 1).f_globals.get("__name__", "").partition(".")[0] in LIBRARIES


class NdarrayClass(CallableProxy):
    """Proxy of ``np.ndarray`` that makes arrays to which traced values can be written."""

    def __init__(self) -> None:
        super().__init__(np.ndarray, _new_array)

    def __instancecheck__(self, instance: object) -> bool:
        if isinstance(instance, (TracedArray, SizedArray)) and not called_by_library(1):
            return not isinstance(instance, TracedArray) or instance.ndim > 0 or instance.rank0 is Rank0.ARRAY
        return isinstance(instance, self.__wrapped__)

    def __getitem__(self, key: Any) -> Any:
        return self.__wrapped__[key]


def _new_array(
    shape: Any, dtype: Any = float, buffer: Any = None, offset: Any = 0, strides: Any = None, order: Any = None
) -> Any:
    if buffer is not None or strides is not None or called_by_library(2):
        return np.ndarray(shape, dtype, buffer, offset, strides, order)
    if is_traced(shape):
        return hooks.sized_creation(_EMPTY, (shape, dtype), {})
    array = zeros_of(np.ndarray(shape, dtype, order=order))
    return array if array.dtype.hasobject or array.dtype.kind in "SUMm" else KnownArray(array)
