"""``np.ndenumerate`` and ``np.nditer`` of traced arrays: NumPy's are classes, which need values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.errors import UnimplementedError
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.traced_array import as_traced, is_traced
from cyxla.numpy.tracing.trace import user_line


def ndenumerate(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return the substitute for ``np.ndenumerate``: pairs of an index, as ints, and the element."""

    def substitute(arr: Any) -> Any:
        if not is_traced(arr):
            return original(arr)
        array = as_traced(arr)
        return ((index, array[index]) for index in np.ndindex(array.shape))

    return substitute


def nditer(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return the substitute for ``np.nditer``, which refuses traced arrays."""

    def substitute(op: Any, *args: Any, **kwargs: Any) -> Any:
        if is_traced(op) or isinstance(op, SizedArray):
            raise UnimplementedError(
                "numpy.nditer cannot be traced",
                where=user_line(),
                hint="use np.ndenumerate, np.ndindex, or functions of whole arrays",
            )
        return original(op, *args, **kwargs)

    return substitute
