"""`map` and `associative_scan`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.numpy.control.loops import length_of, scan
from cyxla.numpy.tracing.arrays.run_time_sizes import flatten_arrays
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, raise_unsupported
from cyxla.numpy.tracing.arrays.traced_array import TracedArray
from cyxla.numpy.tracing.containers import map_leaves


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """Call a function for each slice of arrays, and stack the results.

    Parameters
    ----------
    f : callable
        Function from a slice to a result.
    xs : object
        Container of arrays, sliced along their first dimension.

    Examples
    --------
    >>> import numpy as np
    >>> map(lambda x: x @ x, np.arange(6.0).reshape(3, 2))
    array([ 1., 13., 41.])
    """
    return scan(lambda _, x: (None, f(x)), None, xs)[1]


def associative_scan(f: Callable[[Any, Any], Any], xs: Any, reverse: bool = False, axis: int = 0) -> Any:
    """Compute all prefixes of an associative function, in a logarithmic number of steps.

    Parameters
    ----------
    f : callable
        Associative function of two containers of arrays, element-wise along `axis`.
    xs : object
        Container of arrays of equal size along `axis`.
    reverse : bool
        Whether to begin with the last element.
    axis : int
        Dimension to scan along.

    Examples
    --------
    >>> import numpy as np
    >>> associative_scan(np.multiply, np.arange(1, 6))
    array([  1,   2,   6,  24, 120])
    """
    if any(isinstance(x, SizedArray) for x in flatten_arrays(xs)[0]):
        raise_unsupported("be scanned by cyxla.associative_scan", "use cyxla.scan")
    leading = map_leaves(lambda x: np.moveaxis(_to_array(x), axis, 0), xs)
    count = length_of("associative_scan", leading, None).bound
    reversed_ = map_leaves(lambda x: np.flip(x, 0), leading) if reverse else leading
    prefixes, step = reversed_, 1
    while step < count:
        low = map_leaves(lambda x, n=step: x[:-n], prefixes)
        high = map_leaves(lambda x, n=step: x[n:], prefixes)
        combined = f(high, low) if reverse else f(low, high)
        prefixes = map_leaves(lambda x, y, n=step: np.concatenate([x[:n], y], 0), prefixes, combined)
        step *= 2
    prefixes = map_leaves(lambda x: np.flip(x, 0), prefixes) if reverse else prefixes
    return map_leaves(lambda x: np.moveaxis(x, 0, axis), prefixes)


def _to_array(x: Any) -> Any:
    return x if isinstance(x, TracedArray) else np.asarray(x)
