"""Methods of ufuncs on arrays of run-time size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.numpy.sized.access import update_at
from cyxla.numpy.sized.reductions import axes_of, fail_if_empty, keep
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, filled, raise_unsupported
from cyxla.numpy.ufunc_methods.reduce import REDUCTIONS

_np: Any = np  # its functions dispatch to this package


def _reduce(ufunc: np.ufunc, array: Any, axis: Any = 0, *args: Any, **kwargs: Any) -> Any:
    row = REDUCTIONS.get(ufunc)
    if row is None or args or set(kwargs) - {"keepdims"} or not isinstance(array, SizedArray):
        raise_unsupported(f"be passed to np.{ufunc.__name__}.reduce with these arguments")
    axes = axes_of(array, {"axis": axis})
    if not row.allows_empty:
        fail_if_empty(array, f"zero-size array to reduction operation {ufunc.__name__} which has no identity", axes)
    reduced = ufunc.reduce(filled(array, row.start, axes), axis, **kwargs)
    return keep(array, reduced, axes, kwargs.get("keepdims", False))


def _accumulate(ufunc: np.ufunc, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
    if out is not None or not isinstance(array, SizedArray):
        raise_unsupported(f"be passed to np.{ufunc.__name__}.accumulate with these arguments")
    return array.like(ufunc.accumulate(array.padded, axis, dtype))


def _outer(ufunc: np.ufunc, first: Any, second: Any, **kwargs: Any) -> Any:
    rank = second.ndim if isinstance(second, SizedArray) else np.ndim(second)
    left = first if isinstance(first, SizedArray) else np.asarray(first) if np.ndim(first) == 0 else first
    return ufunc(left[(..., *[None] * rank)], second, **kwargs)


def _at(ufunc: np.ufunc, array: Any, indices: Any, values: Any = None) -> None:
    update_at(ufunc, array, indices, values)


METHODS: dict[str, Callable[..., Any]] = {"reduce": _reduce, "accumulate": _accumulate, "outer": _outer, "at": _at}
__all__ = ["METHODS"]
