"""``np.r_`` and ``np.c_`` of traced arrays; ``np.mgrid`` and ``np.ogrid``, whose bounds must be known."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.errors import UnimplementedError
from cyxla.numpy.substitutes.new_array import called_by_library
from cyxla.numpy.substitutes.proxy import Proxy
from cyxla.numpy.substitutes.ufuncs_of_lists import as_array, is_traced_list
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.arrays.known_array import KnownArray
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, is_sized
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, require_known
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.results.promotion import dtype_of, result_type
from cyxla.numpy.ufuncs.apply import require_in_range


class Grid(Proxy):
    """Coordinates by indexing, as by NumPy's object.

    Parameters
    ----------
    original : object
        Object of NumPy, `np.mgrid` or `np.ogrid`.
    """

    def __len__(self) -> int:
        return 0

    def __getitem__(self, key: Any) -> Any:
        if _trace.current() is not None:
            for item in key if isinstance(key, tuple) else (key,):
                _require_known_bounds(item)
        result = self.__wrapped__[key]
        if _trace.current() is None or called_by_library(1):
            return result
        known = [KnownArray(part) for part in (result if isinstance(result, tuple) else (result,))]
        return tuple(known) if isinstance(result, tuple) else known[0]


def _require_known_bounds(item: Any) -> None:
    """Require that the parts of a slice are known."""
    if isinstance(item, slice):
        for part in (item.start, item.stop, item.step):
            require_known(part, "be a bound or step of a grid", "np.arange and np.linspace take traced numbers")


class Concatenator(Proxy):
    """Concatenation by indexing, as by NumPy's object, which is used if nothing is traced.

    Parameters
    ----------
    original : object
        Object of NumPy, `np.r_` or `np.c_`.
    columns : bool
        True for ``np.c_``.
    """

    def __init__(self, original: Any, *, columns: bool) -> None:
        super().__init__(original)
        self._original = original
        self._columns = columns

    def __len__(self) -> int:
        return 0

    def __getitem__(self, key: Any) -> Any:
        items = key if isinstance(key, tuple) else (key,)
        if _trace.current() is not None:
            for item in items:
                _require_known_bounds(item)
        if _trace.current() is None or not is_traced_list(items):
            return self._original[key]
        if any(isinstance(k, str) for k in items):
            raise UnimplementedError(
                "np.r_ with a string directive cannot be traced",
                where=_trace.user_line(),
                hint="use np.concatenate or np.stack",
            )
        from cyxla.numpy.functions.joining import concatenate

        arrays = [self._convert(k) for k in items]
        dtype = dtype_of(result_type(*[a.dtype if isinstance(a, SizedArray) else a.kind for a in arrays]))
        expanded, axis = [self._expand(a, dtype) for a in arrays], -1 if self._columns else 0
        if is_sized(expanded):
            return hooks.sized_function(np.concatenate, (expanded, axis), {})
        return concatenate(expanded, axis)

    def _convert(self, item: Any) -> TracedArray | SizedArray:
        array = self._original[item] if isinstance(item, slice) else as_array(item)
        return array if isinstance(array, SizedArray) else as_traced(array)

    def _expand(self, array: TracedArray | SizedArray, dtype: Any) -> Any:
        from cyxla.numpy.functions.movement import reshape_row_major

        if isinstance(array, SizedArray):
            array = array.astype(dtype)
            return array[:, None] if self._columns and array.ndim == 1 else array
        require_in_range(array, dtype)
        array = as_traced(array, dtype)
        if not self._columns:
            return array if array.ndim else reshape_row_major(array, (1,))
        return array if array.ndim > 1 else reshape_row_major(array, (array.size, 1))
