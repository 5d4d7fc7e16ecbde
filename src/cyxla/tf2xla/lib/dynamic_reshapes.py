"""Reshapes and broadcasts of arrays, or to shapes, that have sizes known only at run time."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from cyxla.errors import InvalidArgumentError, ShapeError, UnimplementedError
from cyxla.tf2xla.lib.bounded_shapes import padded_result, product_of_sizes, with_sizes
from cyxla.tf2xla.lib.dynamic_sizes import split_dynamic
from cyxla.tf2xla.lib.dynamic_slices import element
from cyxla.tf2xla.lib.size_checks import SizePair
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import broadcast_to, scalar, select, sizes_of

Array = np.ndarray[Any, Any]


def fitted(x: XlaOp, size: int, dimension: int) -> XlaOp:
    """Return the first elements along a dimension, followed by zeros if there are fewer than `size`."""
    kept = min(sizes_of(x)[dimension], size)
    return xla.pad_in_dim(xla.slice_in_dim(x, 0, kept, 1, dimension), scalar(x, 0), dimension, 0, size - kept)


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
    total = product_of_sizes([own.get(d, n) for d, n in enumerate(sizes_of(padded))], x.builder)
    bounds = high.tolist()
    sizes: list[XlaOp | int] = [n if low[d] == n else element(shape, d) for d, n in enumerate(bounds)]
    for d in inferred:
        rest = product_of_sizes([n for e, n in enumerate(sizes) if e != d], x.builder)
        sizes[d] = total / xla.maximum(rest, scalar(rest, 1))
        bounds[d] = prod(sizes_of(padded)) // prod(max(int(n), 1) for e, n in enumerate(low) if e != d)
    requested = product_of_sizes(sizes, x.builder)
    dynamic = {d: xla.convert(n, ElementType.S32) for d, n in enumerate(sizes) if isinstance(n, XlaOp)}
    result = _expanded(_flattened(x, total), total, bounds, dynamic)
    left, right = (xla.convert(n, ElementType.S32) for n in (total, requested))
    reason = "the number of elements does not fit the shape"
    return result, SizePair(left, right, InvalidArgumentError, reason, xla.eq(total, requested))


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
    vector = fitted(vector, prod(bounds), 0)
    if not dynamic.keys() - {0}:
        return with_sizes(xla.reshape(vector, bounds), dynamic)
    sized = with_sizes(vector, {0: xla.convert(total, ElementType.S32)})
    scalars = [dynamic.get(d, xla.constant(vector.builder, np.int32(n))) for d, n in enumerate(bounds)]
    result = xla.dynamic_reshape(sized, scalars, bounds, [d in dynamic for d in range(len(bounds))])
    return with_sizes(split_dynamic(padded_result(result))[0], dynamic)


def broadcast_at_run_time(x: XlaOp, shape: XlaOp, low: Array, high: Array) -> tuple[XlaOp, list[SizePair]]:
    """Broadcast an array to a shape; operands and checks are those of `reshape_at_run_time`."""
    padded, own = split_dynamic(x)
    bounds, leading = high.tolist(), len(high) - len(sizes_of(padded))
    if leading < 0 or (low < 0).any():
        raise ShapeError(f"{list(sizes_of(padded))} does not broadcast to {bounds}")
    checks = []
    for d, bound in enumerate(sizes_of(padded)):
        to = bounds[leading + d]
        if bound == 1 and d not in own:
            continue
        n = own.get(d, xla.constant(x.builder, np.int32(bound)))
        requested = xla.convert(element(shape, leading + d), ElementType.S32)
        is_one = xla.eq(n, scalar(n, 1))
        checks.append(SizePair(n, requested, ShapeError, holds=xla.or_(is_one, xla.eq(n, requested))))
        stretched = fitted(padded, to, d)
        if bound:
            first = xla.slice_in_dim(padded, 0, 1, 1, d)
            stretched = select(is_one, broadcast_to(first, sizes_of(stretched)), stretched)
        padded = stretched
    sizes = {d: xla.convert(element(shape, d), ElementType.S32) for d in np.flatnonzero(low != high).tolist()}
    return with_sizes(broadcast_to(padded, bounds), sizes), checks
