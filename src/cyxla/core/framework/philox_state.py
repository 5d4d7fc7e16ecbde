"""State of Philox 4x32-10, the generator of random ops: its key, its counter, and how seeds and blocks move them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from cyxla.errors import InvalidArgumentError, UnimplementedError

PHILOX, THREEFRY, AUTO_SELECT = 1, 2, 3  # numbers of the algorithms
ROUNDS = 10
RESERVED = 256  # blocks kept for each element of an output whose elements take a varying number of them
_MASK64, _MASK128 = (1 << 64) - 1, (1 << 128) - 1


@dataclass(frozen=True)
class PhiloxState:
    """The key of a generator, and the counter of its next block.

    Parameters
    ----------
    key : int
        64 bits.
    counter : int
        128 bits.
    """

    key: int
    counter: int

    @classmethod
    def from_seeds(cls, seed: int, seed2: int) -> Self:
        """The generator of the seed attributes of an op: the first is the key, the second the counter's upper half."""
        return cls(seed & _MASK64, (seed2 & _MASK64) << 64)

    def skip(self, blocks: int) -> Self:
        """The generator that many blocks later."""
        return type(self)(self.key, (self.counter + blocks) & _MASK128)


def check_algorithm(number: int) -> None:
    """Refuse every algorithm but Philox.

    Raises
    ------
    UnimplementedError
        ThreeFry.
    InvalidArgumentError
        There is no such algorithm.
    """
    if number == THREEFRY:
        raise UnimplementedError("the ThreeFry algorithm has no CPU kernel", hint="use Philox (1) or let us choose (3)")
    if number not in (PHILOX, AUTO_SELECT):
        raise InvalidArgumentError(f"there is no random algorithm of number {number}", hint="Philox is 1, any is 3")
