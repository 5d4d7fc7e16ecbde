"""How large a program may be; beyond that readers and the verifier refuse instead of running out of time or memory."""

from __future__ import annotations

from typing import Final

from cyxla.errors import ResourceExhaustedError

MAX_NESTING: Final = 200  # of tuples, literals, operands and inline computations; real programs stay below 20
MAX_RANK: Final = 64  # dimensions of an array: as many as NumPy's, which hold arguments, results and constants
MAX_INSTRUCTIONS: Final = 1_000_000  # in a module
MAX_COMPUTATIONS: Final = 1_000_000
MAX_ARRAY_BYTES: Final = 2**40 - 1  # of one array, even one that is never stored; sweeping over more takes minutes
MAX_LEAVES: Final = 1_000_000  # arrays in a tuple, however deep


def check_limit(value: int, most: int, what: str, where: str = "") -> None:
    """Refuse a program that has more of something than allowed.

    Raises
    ------
    ResourceExhaustedError
        There are more than `most`.
    """
    if value > most:
        raise ResourceExhaustedError(f"{value} {what}, but at most {most} are allowed", where=where)
