"""Canonical form of shardings: equal assignments of devices to tiles get equal text."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from math import prod

import numpy as np

from cyxla.xla.hlo.attributes import IotaTiles, Sharding

# Order of subgroup dimensions, replication last.
_SUBGROUP_ORDER = ("maximal", "manual", "unknown", "unreduced", "replicated")


def canonical_iota(iota: IotaTiles) -> IotaTiles:
    """Drop axes of size 1, and merge adjacent axes."""
    order = iota.transpose or tuple(range(len(iota.reshape)))
    runs: list[list[int]] = []
    for axis in (a for a in order if iota.reshape[a] != 1):
        between = range(runs[-1][-1] + 1, axis) if runs else ()
        if runs and axis > runs[-1][-1] and all(iota.reshape[a] == 1 for a in between):
            runs[-1].append(axis)
        else:
            runs.append([axis])
    ranked = sorted(runs)
    reshape = tuple(prod(iota.reshape[a] for a in run) for run in ranked)
    transpose = tuple(ranked.index(run) for run in runs)
    return IotaTiles(iota.dims, reshape or (1,), transpose if transpose != tuple(range(len(transpose))) else ())


def _transposed_iota(iota: IotaTiles, order: tuple[int, ...]) -> IotaTiles | None:
    """Reorder the dimensions of an iota; return None if axes would have to be split unevenly."""
    factors: list[list[tuple[int, int, int]]] = []  # per dimension: axis, number of the piece within the axis, size
    axes = [[axis, 0, iota.reshape[axis]] for axis in (iota.transpose or range(len(iota.reshape)))]
    for size in iota.dims:
        pieces_here: list[tuple[int, int, int]] = []
        while size > 1:
            axis, number, remaining = axes[0]
            factor = min(size, remaining)
            if size % factor or remaining % factor:
                return None
            pieces_here.append((axis, number, factor))
            size //= factor
            axes[0] = [axis, number + 1, remaining // factor]
            if remaining == factor:
                axes.pop(0)
        while axes and axes[0][2] == 1:
            axes.pop(0)
        factors.append(pieces_here)
    flat = [piece for d in order for piece in factors[d]]
    ranked = sorted(flat)
    dims = tuple(iota.dims[d] for d in order)
    return IotaTiles(dims, tuple(p[2] for p in ranked) or (1,), tuple(ranked.index(p) for p in flat))


def _transpose(sharding: Sharding, order: tuple[int, ...], dims: tuple[int, ...]) -> Sharding:
    """Reorder the tile dimensions of a sharding, then reshape them to `dims`."""
    if sharding.iota is None:
        grid = np.array(sharding.devices).reshape(sharding.tile_dims).transpose(order)
        return replace(sharding, devices=tuple(grid.reshape(-1).tolist()), tile_dims=dims)
    transposed = _transposed_iota(sharding.iota, order)
    if transposed is None:
        return replace(sharding, tile_dims=sharding.tile_dims)
    return replace(sharding, iota=canonical_iota(transposed._replace(dims=dims)), tile_dims=dims)


def canonical_sharding(sharding: Sharding) -> Sharding:
    """Merge, sort and drop subgroups as XLA does."""
    if sharding.kind != "devices":
        return sharding
    if sharding.iota is not None:
        sharding = replace(sharding, iota=canonical_iota(sharding.iota))
    kinds = sharding.last_tile_dims or (("replicated",) if sharding.last_tile_dim_replicate else ())
    data = len(sharding.tile_dims) - len(kinds)
    if prod(sharding.tile_dims[:data]) == 1 and len(set(kinds)) <= 1:
        kind = kinds[0] if kinds else "replicated"
        return Sharding(kind, shard_group=sharding.shard_group, metadata=sharding.metadata)
    if kinds:
        sharding = _canonical_subgroups(sharding, kinds, data)
    if sharding.last_tile_dim_replicate and sharding.devices:
        groups = np.sort(np.array(sharding.devices).reshape(-1, sharding.tile_dims[-1]), axis=1)
        sharding = replace(sharding, devices=tuple(groups.reshape(-1).tolist()))
    return sharding


def _canonical_subgroups(sharding: Sharding, kinds: tuple[str, ...], data: int) -> Sharding:
    dims = sharding.tile_dims
    sharded = sorted((_SUBGROUP_ORDER.index(kind), data + i) for i, kind in enumerate(kinds) if dims[data + i] != 1)
    unsharded = [data + i for i in range(len(kinds)) if dims[data + i] == 1]
    order = (*range(data), *(d for _, d in sharded), *unsharded)
    groups = [(kind, [d for _, d in group]) for kind, group in groupby(sharded, lambda k: k[0])]
    sizes = (*dims[:data], *(prod(dims[d] for d in group) for _, group in groups))
    names = tuple(_SUBGROUP_ORDER[kind] for kind, _ in groups)
    transposed = _transpose(sharding, order, sizes)
    if transposed.tile_dims != sizes:  # not expressible as an iota: unchanged
        return sharding
    only = names == ("replicated",)
    return replace(transposed, last_tile_dims=() if only else names, last_tile_dim_replicate=only)
