"""Opcodes that communicate with other replicas and partitions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from cyxla.types import UNBOUNDED, ElementType, Shape
from cyxla.xla.hlo.attributes import ReplicaGroups
from cyxla.xla.hlo.opcode import Site, opcode, opt, req
from cyxla.xla.hlo.ops.checks import (
    U32_0,
    agree,
    arrays,
    in_range,
    same_but_precision,
    same_dtype,
    same_value,
    scalar_function,
    tuple_or_single,
)

# fmt: off
_GROUPS = (opt("channel_id", "int"), opt("replica_groups", "replica_groups", ReplicaGroups()))
_IDS    = (opt("use_global_device_ids", "bool", False),)
_LAYOUT = (opt("constrain_layout", "bool", False),)
_DIMS   = (req("dimensions", "dims"),)
_PAIRS  = (opt("channel_id", "int"), req("source_target_pairs", "pairs"))
_SLICES = (opt("slice_sizes", "dims_list", ()),)
_REDUCE = (*_GROUPS, *_LAYOUT, *_IDS)
_GATHER = (*_GROUPS, *_LAYOUT, *_DIMS, *_IDS)
# fmt: on


def group_sizes(groups: ReplicaGroups) -> tuple[int, ...]:
    """Return the sizes of the groups of a collective; () if all devices are one group."""
    if groups.iota is not None:
        count, size = groups.iota.dims[0], prod(groups.iota.dims[1:])
        return (size,) * count
    return tuple(map(len, groups.groups))


def _members(site: Site, label: str) -> list[int]:
    groups: ReplicaGroups = site.attrs["replica_groups"]
    if groups.iota is None:
        return [d for g in groups.groups for d in g]
    dims, shape, order = groups.iota.dims, groups.iota.reshape, groups.iota.transpose
    site.require(
        prod(dims) == prod(shape), label, f"replica_groups {list(dims)}<=[{list(shape)}] number different devices"
    )
    site.require(not order or sorted(order) == list(range(len(shape))), label, f"T{list(order)} is not a permutation")
    return []


def _group_size(site: Site, label: str) -> int | None:
    """Return the number of devices in each group; None if it depends on the number of replicas and partitions."""
    sizes = _check_groups(site, label)
    site.require(len(set(sizes)) <= 1, label, f"groups have different sizes: {list(sizes)}")
    across_partitions = site.attrs["channel_id"] is not None and not site.attrs.get("use_global_device_ids", False)
    return None if not sizes or sizes[0] == 1 or across_partitions else sizes[0]


def _check_groups(site: Site, label: str) -> tuple[int, ...]:
    members, sizes = _members(site, label), group_sizes(site.attrs["replica_groups"])
    site.require(min(members, default=0) >= 0, label, "a replica group names a negative device")
    site.require(len(set(members)) == len(members), label, "a device is in two replica groups")
    site.require(all(sizes), label, "a replica group is empty")
    return sizes


def _reduction(site: Site, label: str) -> None:
    if site.attrs.get("use_global_device_ids", False):
        site.require(site.attrs["channel_id"] is not None, "C2", "use_global_device_ids needs a channel_id")
    comp, dtypes = site.called[0], dict.fromkeys(s.dtype for s in site.operands)
    parameter_dtypes = [p.shape.dtype for p in comp.parameters]
    results = scalar_function(site, label, comp, parameter_dtypes, "to_apply")
    fits = (
        len(parameter_dtypes) == 2
        and len(results) == 1
        and all(same_but_precision(t, results[0].dtype) for t in (*parameter_dtypes, *dtypes))
    )
    site.require(fits, label, f"to_apply {comp.name} is not a function of two scalars {' or '.join(map(str, dtypes))}")


@opcode("all-reduce", (1, None), calls=("to_apply",), attrs=_REDUCE)
def all_reduce(site: Site) -> Shape:
    """The operand, or a tuple of several.

    (C1) the operands are arrays; (C2) replica_groups are disjoint and not empty, use_global_device_ids comes with a
    channel_id; (C3) to_apply combines two scalars of the operands' element type.
    """
    arrays(site)
    _check_groups(site, "C2")
    _reduction(site, "C3")
    return tuple_or_single(site.operands)


opcode("all-reduce-start", (1, None), calls=("to_apply",), attrs=_REDUCE, rule=all_reduce)


@opcode("all-reduce-done", 1)
def all_reduce_done(site: Site) -> Shape:
    """No constraint: the result is the operand."""
    return site.operands[0]


def _only_dimension(site: Site, label: str) -> int:
    dims = site.attrs["dimensions"]
    site.require(len(dims) == 1, label, f"dimensions {list(dims)} must name one dimension")
    for s in site.operands:
        in_range(site, label, "dimension", dims[0], s.rank)
    return int(dims[0])


def _gather_factor(site: Site, label: str, axis: int, stated: Shape | None) -> int:
    """Return the factor of a gathered dimension: the group size, or the ratio of the stated size if that is unknown."""
    size = _group_size(site, label)
    if size is not None:
        return size
    input_size, output_size = (
        site.operands[0].dims[axis],
        stated.dims[axis] if stated is not None and axis < stated.rank else 0,
    )
    return output_size // input_size if input_size > 0 and output_size > 0 and output_size % input_size == 0 else 1


def _resize(shape: Shape, axis: int, size: int) -> Shape:
    return shape.with_dims((*shape.dims[:axis], size, *shape.dims[axis + 1 :]), shape.dynamic)


def _all_gather_shape(site: Site, stated: Shape | None) -> Shape:
    arrays(site)
    axis = _only_dimension(site, "C2")
    first = stated.elements[0] if stated is not None and stated.elements else stated
    factor = _gather_factor(site, "C3", axis, first)
    sizes = [UNBOUNDED if s.dims[axis] == UNBOUNDED else s.dims[axis] * factor for s in site.operands]
    return tuple_or_single([_resize(s, axis, n) for s, n in zip(site.operands, sizes, strict=True)])


@opcode("all-gather", (1, None), attrs=_GATHER)
def all_gather(site: Site) -> Shape:
    """The operand with `dimensions` multiplied by the group size.

    (C1) the operands are arrays; (C2) dimensions names one dimension of them; (C3) replica_groups are disjoint and of
    one size.
    """
    return _all_gather_shape(site, site.declared)


@opcode("all-gather-start", (1, None), attrs=_GATHER)
def all_gather_start(site: Site) -> Shape:
    """The operands, and the result of all-gather; the constraints are those of all-gather."""
    stated = site.declared.elements[1] if site.declared is not None and len(site.declared.elements) >= 2 else None
    return Shape.tuple([tuple_or_single(site.operands), _all_gather_shape(site, stated)])


@opcode("all-gather-done", 1)
def all_gather_done(site: Site) -> Shape:
    """(C1) the result of all-gather-start."""
    return _start_result(site)


def _start_result(site: Site) -> Shape:
    operand = site.operands[0]
    site.require(len(operand.elements) >= 2, "C1", f"{operand} is not the result of the start of this operation")
    return operand.subshape((1,))


@opcode("all-to-all", (1, None), attrs=(*_GROUPS, *_LAYOUT, opt("dimensions", "dims")))
def all_to_all(site: Site) -> Shape:
    """The operand with its parts along `dimensions` exchanged; without dimensions, a tuple with its elements exchanged.

    (C1) the operands are arrays; (C2) replica_groups are disjoint and of one size; (C3) with dimensions, one operand,
    and the dimension is a multiple of the group size; (C4) without, operands of one shape, one for each member of a
    group.
    """
    arrays(site)
    size = _group_size(site, "C2")
    if site.attrs["dimensions"] is None:
        alike = all(same_value(s, site.operands[0]) for s in site.operands)
        fits = alike and (size is None or len(site.operands) == size)
        site.require(fits, "C4", f"needs {size or 'some'} operands of one shape")
        return Shape.tuple(site.operands)
    site.require(len(site.operands) == 1, "C3", f"{len(site.operands)} operands with dimensions")
    axis = _only_dimension(site, "C3")
    n = site.operands[0].dims[axis]
    site.require(n == UNBOUNDED or n % (size or 1) == 0, "C3", f"{n} elements cannot be dealt out to {size}")
    return site.operands[0]


@opcode("ragged-all-to-all", 6, attrs=_GROUPS)
def ragged_all_to_all(site: Site) -> Shape:
    """The second operand, updated.

    (C1) the operands are arrays; (C2) replica_groups are disjoint and of one size; (C3) input and output have one
    element type and the same sizes, except the first; (C4) offsets and sizes are four integer vectors (or batches of
    them) of one shape.
    """
    arrays(site)
    _group_size(site, "C2")
    x, out, *plan = site.operands
    same_dtype(site, "C3", (x, out))
    fits = x.rank == out.rank >= 1 and all(map(agree, x.dims[1:], out.dims[1:]))
    site.require(fits, "C3", f"input {x} and output {out} differ beyond their first dimension")
    fits = all(p.dtype.is_integer and 1 <= p.rank <= 2 and same_value(p, plan[0]) for p in plan)
    site.require(fits, "C4", "offsets and sizes must be equal vectors of integers")
    return out


@opcode("collective-broadcast", (1, None), attrs=_GROUPS)
def collective_broadcast(site: Site) -> Shape:
    """(C1) the operands are arrays; (C2) replica_groups are disjoint and not empty."""
    arrays(site)
    _check_groups(site, "C2")
    return tuple_or_single(site.operands)


def _permute_shape(site: Site) -> Shape:
    pairs: Sequence[tuple[int, int]] = site.attrs["source_target_pairs"]
    for role, ids in (("source", [p[0] for p in pairs]), ("target", [p[1] for p in pairs])):
        site.require(min(ids, default=0) >= 0 and len(set(ids)) == len(ids), "C1", f"a {role} is repeated or negative")
    if not site.attrs["slice_sizes"]:
        return tuple_or_single(site.operands)
    site.require(
        len(site.operands) == 4, "C2", f"slices need input, output and two starts, not {len(site.operands)} operands"
    )
    return site.operands[1]


@opcode("collective-permute", (1, None), attrs=(*_PAIRS, *_SLICES))
def collective_permute(site: Site) -> Shape:
    """The operand, or a tuple of several; with slice_sizes the output.

    (C1) no device is the source, or the target, of two pairs; (C2) with slice_sizes the operands are input, output and
    the starts in both.
    """
    return _permute_shape(site)


@opcode("collective-permute-start", (1, None), attrs=(*_PAIRS, *_SLICES))
def collective_permute_start(site: Site) -> Shape:
    """The operands, the result of collective-permute, and two contexts if the program states them.

    (C1) no device is the source, or the target, of two pairs; (C2) with slice_sizes the operands are input, output and
    the starts in both.
    """
    result = _permute_shape(site)
    source = site.operands[0] if site.attrs["slice_sizes"] else tuple_or_single(site.operands)
    contexts = site.declared.elements[2:] if site.declared is not None else ()
    return Shape.tuple([source, result, *(c if c is U32_0 or c is _S32 else U32_0 for c in contexts)])


_S32 = Shape.array(ElementType.S32)


@opcode("collective-permute-done", 1)
def collective_permute_done(site: Site) -> Shape:
    """(C1) the result of collective-permute-start."""
    return _start_result(site)


@opcode("reduce-scatter", (1, None), calls=("to_apply",), attrs=(*_REDUCE, *_DIMS))
def reduce_scatter(site: Site) -> Shape:
    """The operand with `dimensions` divided by the size of a group.

    (C1) the operands are arrays; (C2) replica_groups are disjoint and of one size, use_global_device_ids comes with a
    channel_id; (C3) to_apply combines two scalars of the operands' element type; (C4) dimensions names one dimension of
    them, a multiple of the group size.
    """
    arrays(site)
    axis = _only_dimension(site, "C4")
    _reduction(site, "C3")
    size = _group_size(site, "C2")
    if size is None:
        size = _scatter_factor(site, axis)
    parts = []
    for s in site.operands:
        n = s.dims[axis]
        site.require(n == UNBOUNDED or n % size == 0, "C4", f"{n} elements cannot be dealt out to {size}")
        parts.append(_resize(s, axis, n if n == UNBOUNDED else n // size))
    return tuple_or_single(parts)


def _scatter_factor(site: Site, axis: int) -> int:
    stated = site.declared.subshape((0,)) if site.declared is not None and site.declared.elements else site.declared
    if stated is None or axis >= stated.rank or stated.dims[axis] <= 0:
        return 1
    input_size, output_size = site.operands[0].dims[axis], stated.dims[axis]
    return input_size // output_size if input_size > 0 and input_size % output_size == 0 else 1


@opcode("replica-id", 0)
def replica_id(site: Site) -> Shape:
    """No constraint: the result is u32[]."""
    return U32_0


opcode("partition-id", 0, rule=replica_id)
