"""NumPy's ufuncs given lists of traced arrays: NumPy asks what stands in a call by itself, not what lists hold."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from cyxla.numpy.substitutes.proxy import Proxy
from cyxla.numpy.tracing.trace import current
from cyxla.numpy.tracing.traced_array import TracedArray, is_traced
from cyxla.numpy.tracing.zero_dim import Rank0

_ARRAYS_OF = {
    "reduce": 1,
    "accumulate": 1,
    "reduceat": 1,
    "outer": 2,
}  # how many operands a method's arguments begin with


class UfuncOfLists(Proxy):
    """Stands for a ufunc while something is traced.

    Parameters
    ----------
    ufunc : numpy.ufunc
        It; what it has that is not here is its own.
    """

    def __init__(self, ufunc: np.ufunc) -> None:
        super().__init__(ufunc)
        self.__module__ = "numpy"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the ufunc makes of arrays, in the place of lists too."""
        made = self.__wrapped__(*stacked(args, self.nin), **kwargs)
        return _in_arrays(made) if kwargs.get("out") is ... else made

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        return _of_lists(found, _ARRAYS_OF[name]) if name in _ARRAYS_OF else found


def stacked(args: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    """Arguments, with arrays in the place of lists that hold traced ones among the first of them."""
    if current() is None or not any(isinstance(a, (list, tuple)) for a in args[:count]):
        return args
    array: Any = np.array  # which dispatches to us
    return (
        tuple([array(a) if isinstance(a, (list, tuple)) and is_traced(a) else a for a in args[:count]]) + args[count:]
    )


def _in_arrays(made: Any) -> Any:
    """Results of ``out=...``, which are arrays also where they have no dimensions; NumPy does not hand that on."""
    for part in made if isinstance(made, tuple) else (made,):
        if isinstance(part, TracedArray):
            part.rank0 = Rank0.ARRAY
    return made


def _of_lists(method: Callable[..., Any], count: int) -> Callable[..., Any]:
    @wraps(method)
    def taking(*args: Any, **kwargs: Any) -> Any:
        made = method(*stacked(args, count), **kwargs)
        return _in_arrays(made) if kwargs.get("out") is ... else made

    return taking
