"""Layouts: the order of an array's elements in memory, in HLO's notation."""

from __future__ import annotations

from functools import lru_cache

from cyxla.records import dataclass

COMBINE = -(2**63)  # the `*` in a tile: combine this dimension with the next


@dataclass(frozen=True)
class SplitConfig:
    """A split of a dimension into separately stored pieces: ``SC(1:32)``."""

    dimension: int
    split_indices: tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """The physical layout of an array; dimension `minor_to_major[0]` varies fastest.

    All other fields are read, kept and printed, but do not change any value.
    """

    minor_to_major: tuple[int, ...]
    dim_level_types: tuple[str, ...] = ()  # D C S H ..: old sparse formats, with their +/~ suffixes
    tiles: tuple[tuple[int, ...], ...] = ()
    tail_padding_alignment: int = 1
    index_primitive_type: str = ""
    pointer_primitive_type: str = ""
    element_size_in_bits: int = 0
    memory_space: int = 0
    split_configs: tuple[SplitConfig, ...] = ()
    physical_shape: str = ""
    dynamic_shape_metadata_prefix_bytes: int = 0

    def __str__(self) -> str:
        extras = self._extras()
        order = ",".join(map(str, self.minor_to_major))
        return "{" + order + (":" + extras if extras else "") + "}"

    def _extras(self) -> str:
        sparse = f"D({','.join(self.dim_level_types)})" if self.dim_level_types else ""
        tiles = "".join(_tile(t) for t in self.tiles)
        splits = "".join(f"({s.dimension}:{','.join(map(str, s.split_indices))})" for s in self.split_configs)
        padding = str(self.tail_padding_alignment) if self.tail_padding_alignment != 1 else ""
        parts = (
            ("T{}", tiles), ("L({})", padding), ("#({})", self.index_primitive_type),
            ("*({})", self.pointer_primitive_type), ("E({})", self.element_size_in_bits), ("S({})", self.memory_space),
            ("SC{}", splits), ("P({})", self.physical_shape), ("M({})", self.dynamic_shape_metadata_prefix_bytes),
        )  # fmt: skip
        return sparse + "".join(form.format(value) for form, value in parts if value)


def _tile(sizes: tuple[int, ...]) -> str:
    return "(" + ",".join("*" if d == COMBINE else str(d) for d in sizes) + ")"


@lru_cache(maxsize=64)
def row_major(rank: int) -> Layout:
    """Return the default layout, in which the last dimension varies fastest."""
    return Layout(tuple(range(rank - 1, -1, -1)))
