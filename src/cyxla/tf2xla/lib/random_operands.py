"""Checks of the operands of random ops: seeds, keys, counters, algorithms, bounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.core.framework.philox_state import check_algorithm
from cyxla.errors import ShapeError
from cyxla.tf2xla.lib.philox import Generator
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import sizes_of

Array = np.ndarray[Any, Any]


def generator_of_seed(seed: XlaOp) -> Generator:
    """Return the generator for a seed.

    Raises
    ------
    ShapeError
        The seed does not hold two numbers.
    """
    if sizes_of(seed) != (2,):
        raise ShapeError(f"a seed must hold two numbers; its shape is {list(sizes_of(seed))}")
    return Generator.from_seed(seed)


def generator_of_key(key: XlaOp, counter: XlaOp, alg: Array) -> Generator:
    """Return the generator for a key, a counter and the number of an algorithm.

    Raises
    ------
    ShapeError
        The key is not a vector of one number, the counter has fewer than two, or the algorithm is not a scalar.
    InvalidArgumentError, UnimplementedError
        The algorithm is not Philox.
    """
    if alg.ndim:
        raise ShapeError(f"alg must be a scalar; its shape is {list(alg.shape)}")
    check_algorithm(int(alg))
    if sizes_of(key) != (1,):
        raise ShapeError(f"key must be a vector of one number; its shape is {list(sizes_of(key))}")
    if len(sizes_of(counter)) != 1 or sizes_of(counter)[0] < 2:
        raise ShapeError(f"counter must be a vector of two numbers or more; its shape is {list(sizes_of(counter))}")
    return Generator(xla.reshape(key, ()), element(counter, 0), element(counter, 1))


def element(vector: XlaOp, index: int) -> XlaOp:
    """Return one number of a vector."""
    return xla.reshape(xla.slice_in_dim(vector, index, index + 1), ())


def scalar_bounds(low: XlaOp, high: XlaOp) -> tuple[XlaOp, XlaOp]:
    """Check that the bounds of integers are scalars, and return them.

    Raises
    ------
    ShapeError
        A bound is not a scalar.
    """
    for name, bound in (("minval", low), ("maxval", high)):
        if sizes_of(bound):
            raise ShapeError(f"{name} must be a scalar; its shape is {list(sizes_of(bound))}")
    return low, high
