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
    """Partition of groups of panels into units.

    Attributes
    ----------
    together : int
        Number of panels of a group.
    ranges : int
        Number of units of a group, each a range of its tiles.
    finer : int
        Number of units of the last groups, finer to balance the load; 0 if equal to `ranges`.
    end : int
        Number of the last groups.
    """

    together: int = 1
    ranges: int = 1
    finer: int = 0
    end: int = 0

    def units(self, groups: int) -> int:
        """Return the number of units of a number of groups."""
        return (groups - self.end) * self.ranges + self.end * self.finer


def in_pairs(batch: int, panels: int, tiles: int) -> Shares | None:
    """Return a partition with packed panels in pairs, which halves TLB misses of their rows and of the left operand.

    Parameters
    ----------
    batch : int
        Number of products.
    panels, tiles : int
        Numbers of panels and tiles of each product.

    Returns
    -------
    Shares or None
        Partition, or None if units would be too few, or too short to amortise packing.
    """
    pairs = batch * -(-panels // TOGETHER)
    if panels < TOGETHER or not pairs:
        return None
    ranges = -(-LEAST_UNITS // pairs)
    if ranges > 1:
        return Shares(TOGETHER, ranges) if tiles // ranges >= LEAST_TILES else None
    return Shares(TOGETHER, 1, FINER, max(1, pairs // 8)) if 2 * tiles >= FINER * LEAST_TILES else Shares(TOGETHER)
