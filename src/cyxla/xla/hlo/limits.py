"""Limits of the size of a program, which readers and the verifier enforce instead of running out of time or memory."""

from __future__ import annotations

from math import prod
from typing import Final

from cyxla.errors import ResourceExhaustedError
from cyxla.types import MAX_ELEMENTS, Shape

MAX_NESTING: Final = 200  # of tuples, literals, operands and inline computations; real programs stay below 20
MAX_RANK: Final = 64  # dimensions of an array: NumPy's limit, whose arrays hold arguments, results and constants
MAX_INSTRUCTIONS: Final = 1_000_000  # in a module
MAX_COMPUTATIONS: Final = 1_000_000
MAX_ARRAY_BYTES: Final = 2**40 - 1  # elements of one array, even if never stored; a loop over more takes minutes
MAX_LEAVES: Final = 1_000_000  # arrays in a tuple, however deep


def check_limit(value: int, limit: int, quantity: str, where: str = "") -> None:
    """Raise if a count exceeds its limit.

    Raises
    ------
    ResourceExhaustedError
        `value` is greater than `limit`.
    """
    if value > limit:
        raise ResourceExhaustedError(f"{value} {quantity}, but at most {limit} are allowed", where=where)


def check_empty(shape: Shape, where: str = "") -> None:
    """Raise if NumPy cannot make an array that has no elements: it multiplies the sizes that are not 0.

    Raises
    ------
    ResourceExhaustedError
        The product is greater than 2^63 - 1 bytes.
    """
    if not shape.size and shape.rank > 1:
        bytes_apart = prod(d for d in shape.dims if d > 0) * shape.dtype.itemsize
        check_limit(bytes_apart, MAX_ELEMENTS, f"bytes in {shape}, if no size were 0", where)
