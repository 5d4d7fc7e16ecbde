"""Partition of a product in tiles among tasks: units of a few panels, or of a range of their tiles."""

from __future__ import annotations

from dataclasses import dataclass

TOGETHER = 2  # copied panels of a unit; both stay in the second cache
STRIP = 4  # tiles that go past all panels of a unit before the next do
LEAST_UNITS = 16  # of panels in pairs
LEAST_TILES = 64  # of a range, where pairs are too few and each has several
FINER = 4  # ranges of the last eighth of the pairs


@dataclass(frozen=True)
class Shares:
    """What a unit is.

    Attributes
    ----------
    together : int
        Panels of a unit, a group.
    ranges : int
        Units of a group: ranges of its tiles.
    finer : int
        The same for groups at the end, so that no thread waits long for another; 0: as for the others.
    end : int
        How many groups these are.
    """

    together: int = 1
    ranges: int = 1
    finer: int = 0
    end: int = 0

    def units(self, groups: int) -> int:
        """Units of so many groups."""
        return (groups - self.end) * self.ranges + self.end * self.finer


def in_pairs(batch: int, panels: int, tiles: int) -> Shares | None:
    """Copied panels two by two: their rows, each on a page of its own, are looked up once, and the left operand's too.

    Parameters
    ----------
    batch : int
        Products.
    panels, tiles : int
        Of each product.

    Returns
    -------
    Shares or None
        None where units would be too few, or too short for the copies that they make.
    """
    pairs = batch * -(-panels // TOGETHER)
    if panels < TOGETHER or not pairs:
        return None
    ranges = -(-LEAST_UNITS // pairs)
    if ranges > 1:
        return Shares(TOGETHER, ranges) if tiles // ranges >= LEAST_TILES else None
    return Shares(TOGETHER, 1, FINER, max(1, pairs // 8)) if 2 * tiles >= FINER * LEAST_TILES else Shares(TOGETHER)
