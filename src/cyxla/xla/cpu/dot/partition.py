"""Partition of a product in tiles among tasks: units of a few panels, or of a range of their tiles."""

from __future__ import annotations

from cyxla.records import dataclass
from cyxla.xla.cpu.kernel import machine

MIN_GROUP, MAX_GROUP = 2, 8  # packed panels of a unit
GROUP_BYTES = machine.L2_BYTES * 3 // 8  # they stay in L2; each more of them reads the left operand less often
STRIP_TILES = 4  # tiles that use all panels of a unit before the next tiles do
MIN_UNITS = 16  # with panels in groups
MIN_RANGE_TILES = 64  # tiles of a range, if groups are so few that each has several ranges
TAIL_RANGES = 4  # ranges of the last eighth of the groups


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

    @staticmethod
    def of_groups(size: int, batch: int, panels: int, tiles: int) -> Partition:
        """Return the partition in groups of a given number of packed panels, with enough units if rows suffice."""
        return Partition(size, max(1, min(tiles, -(-MIN_UNITS // (batch * -(-panels // size))))))


def group_panels(batch: int, panels: int, tiles: int, panel_bytes: int) -> Partition | None:
    """Return a partition with packed panels in groups, which have fewer TLB misses of their rows and the left operand.

    Parameters
    ----------
    batch : int
        Number of products.
    panels, tiles : int
        Numbers of panels and tiles of each product.
    panel_bytes : int
        Size of a panel's block of the contracted dimension.

    Returns
    -------
    Partition or None
        Partition, or None if units would be too few, or too short to amortise packing.
    """
    size = max(MIN_GROUP, min(MAX_GROUP, GROUP_BYTES // panel_bytes, batch * panels // MIN_UNITS))
    groups = batch * -(-panels // size)
    if panels < MIN_GROUP or not groups:
        return None
    ranges = -(-MIN_UNITS // groups)
    if ranges > 1:
        return Partition(size, ranges) if tiles // ranges >= MIN_RANGE_TILES else None
    return (
        Partition(size, 1, TAIL_RANGES, max(1, groups // 8))
        if 2 * tiles >= TAIL_RANGES * MIN_RANGE_TILES
        else Partition(size)
    )
