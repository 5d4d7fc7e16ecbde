"""Reshapes of arrays, or to shapes, that have sizes known only at run time."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from cyxla.errors import InvalidArgumentError, UnimplementedError
from cyxla.tf2xla.lib.bounded_shapes import padded_result, with_sizes
from cyxla.tf2xla.lib.dynamic_sizes import split_dynamic
from cyxla.tf2xla.lib.dynamic_slices import element
from cyxla.tf2xla.lib.size_checks import SizePair
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaBuilder, XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import scalar, sizes_of

Array = np.ndarray[Any, Any]


def reshape_at_run_time(x: XlaOp, shape: XlaOp, low: Array, high: Array) -> tuple[XlaOp, SizePair]:
    """Reshape an array; a size of -1 is inferred.

    Parameters
    ----------
    x : XlaOp
        Array with static or dynamic sizes.
    shape : XlaOp
        Vector of sizes.
    low, high : ndarray
        Least and greatest values of the sizes.

    Returns
    -------
    XlaOp
        Reshaped array.
    SizePair
        Check that the numbers of elements are equal.
    """
    inferred = np.flatnonzero(high == -1).tolist()
    if len(inferred) > 1 or (high < -1).any():
        raise InvalidArgumentError(f"at most one size may be -1, and no size less than -1: {high.tolist()}")
    if (np.delete(low, inferred) < 0).any():
        raise UnimplementedError("a shape is known only at run time, and may hold negative sizes")
    padded, own = split_dynamic(x)
    total = _product([own.get(d, n) for d, n in enumerate(sizes_of(padded))], x.builder)
    bounds = high.tolist()
    sizes: list[XlaOp | int] = [n if low[d] == n else element(shape, d) for d, n in enumerate(bounds)]
    for d in inferred:
        rest = _product([n for e, n in enumerate(sizes) if e != d], x.builder)
        sizes[d] = total / xla.maximum(rest, scalar(rest, 1))
        bounds[d] = prod(sizes_of(padded)) // prod(max(int(n), 1) for e, n in enumerate(low) if e != d)
    requested = _product(sizes, x.builder)
    dynamic = {d: xla.convert(n, ElementType.S32) for d, n in enumerate(sizes) if isinstance(n, XlaOp)}
    result = _expanded(_flattened(x, total), total, bounds, dynamic)
    left, right = (xla.convert(n, ElementType.S32) for n in (total, requested))
    reason = "the number of elements does not fit the shape"
    return result, SizePair(left, right, InvalidArgumentError, reason, xla.eq(total, requested))


def _product(sizes: Sequence[XlaOp | int], builder: XlaBuilder) -> XlaOp:
    factors = [xla.convert(n, ElementType.S64) for n in sizes if isinstance(n, XlaOp)]
    return prod(factors, start=xla.constant(builder, np.int64(prod(n for n in sizes if isinstance(n, int)))))


def _flattened(x: XlaOp, total: XlaOp) -> XlaOp:
    """Return a vector that begins with the elements of an array."""
    padded, sizes = split_dynamic(x)
    bound = prod(sizes_of(padded))
    if not sizes.keys() - {0}:  # elements of the first rows come first
        return xla.reshape(padded, (bound,))
    vector = xla.dynamic_reshape(x, [xla.convert(total, ElementType.S32)], [bound], [True])
    return split_dynamic(padded_result(vector))[0]


def _expanded(vector: XlaOp, total: XlaOp, bounds: Sequence[int], dynamic: dict[int, XlaOp]) -> XlaOp:
    """Reshape the first elements of a vector."""
    needed = prod(bounds)
    kept = min(*sizes_of(vector), needed)
    vector = xla.pad(xla.slice_in_dim(vector, 0, kept), scalar(vector, 0), [(0, needed - kept, 0)])
    if not dynamic.keys() - {0}:
        return with_sizes(xla.reshape(vector, bounds), dynamic)
    sized = with_sizes(vector, {0: xla.convert(total, ElementType.S32)})
    scalars = [dynamic.get(d, xla.constant(vector.builder, np.int32(n))) for d, n in enumerate(bounds)]
    result = xla.dynamic_reshape(sized, scalars, bounds, [d in dynamic for d in range(len(bounds))])
    return with_sizes(split_dynamic(padded_result(result))[0], dynamic)
