"""Operations of traced arrays that need ufuncs or indexing: ``__array_ufunc__``, ``x[i]``, ``x[i] = v``, ``x.at``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.registry import implementation_of
from cyxla.numpy.ufuncs.apply import call


def apply_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Return the result of ``ufunc.method(*inputs, **kwargs)`` where a traced array takes part."""
    if method != "__call__":
        from cyxla.numpy.ufunc_methods.methods import METHODS

        return METHODS[method](ufunc, *inputs, **kwargs)
    if ufunc.signature is not None:
        return implementation_of(ufunc)(*inputs, **kwargs)
    return call(ufunc, inputs, **kwargs)


def _get_item(array: Any, key: Any) -> Any:
    from cyxla.numpy.indexing.access import get

    return get(array, key)


def _set_item(array: Any, key: Any, value: Any) -> None:
    from cyxla.numpy.indexing.access import assign

    assign(array, key, value)


def _at(array: Any) -> Any:
    from cyxla.numpy.indexing.access import IndexedUpdates

    return IndexedUpdates(array)


hooks.apply_ufunc = apply_ufunc
hooks.get_item, hooks.set_item, hooks.at = _get_item, _set_item, _at
