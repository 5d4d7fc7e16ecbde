"""Partition of a product in tiles among tasks: units of a few panels, or of a range of their tiles."""

from __future__ import annotations

from dataclasses import dataclass

GROUP_PANELS = 2  # packed panels of a unit; both stay in L2
STRIP_TILES = 4  # tiles that use all panels of a unit before the next tiles do
MIN_UNITS = 16  # with panels in pairs
MIN_RANGE_TILES = 64  # tiles of a range, if pairs are so few that each has several ranges
TAIL_RANGES = 4  # ranges of the last eighth of the pairs


@dataclass(frozen=True)
class Partition:
    """Partition of groups of panels into units.

    Attributes
    ----------
    group_panels : int
        Number of panels of a group.
    ranges : int
        Number of units of a group, each a range of its tiles.
    tail_ranges : int
        Number of units of the last groups, finer to balance the load; 0 if equal to `ranges`.
    tail_groups : int
        Number of the last groups.
    """

    group_panels: int = 1
    ranges: int = 1
    tail_ranges: int = 0
    tail_groups: int = 0

    def units(self, groups: int) -> int:
        """Return the number of units of a number of groups."""
        return (groups - self.tail_groups) * self.ranges + self.tail_groups * self.tail_ranges


def pair_panels(batch: int, panels: int, tiles: int) -> Partition | None:
    """Return a partition with packed panels in pairs, which halves TLB misses of their rows and of the left operand.

    Parameters
    ----------
    batch : int
        Number of products.
    panels, tiles : int
        Numbers of panels and tiles of each product.

    Returns
    -------
    Partition or None
        Partition, or None if units would be too few, or too short to amortise packing.
    """
    pairs = batch * -(-panels // GROUP_PANELS)
    if panels < GROUP_PANELS or not pairs:
        return None
    ranges = -(-MIN_UNITS // pairs)
    if ranges > 1:
        return Partition(GROUP_PANELS, ranges) if tiles // ranges >= MIN_RANGE_TILES else None
    return (
        Partition(GROUP_PANELS, 1, TAIL_RANGES, max(1, pairs // 8))
        if 2 * tiles >= TAIL_RANGES * MIN_RANGE_TILES
        else Partition(GROUP_PANELS)
    )
