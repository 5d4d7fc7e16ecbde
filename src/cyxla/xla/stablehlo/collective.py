"""Operations between devices, and random numbers."""

from __future__ import annotations

from typing import Any

from cyxla.errors import InvalidArgumentError, UnimplementedError
from cyxla.types import Shape
from cyxla.xla.hlo import Computation
from cyxla.xla.hlo.attributes import ReplicaGroups
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.stablehlo.context import Context, require_integers
from cyxla.xla.stablehlo.elementwise import arity
from cyxla.xla.stablehlo.functional import only_region
from cyxla.xla.stablehlo.registry import Results, channel_of, choice, flag, handles, integer, keyword, matrix
from cyxla.xla.stablehlo.syntax import Operation


def _groups(op: Operation) -> ReplicaGroups:
    """Return the groups of a collective; -1 pads shorter ones."""
    if "replica_groups" not in op.attributes:
        return ReplicaGroups()
    rows = matrix(op, "replica_groups")
    return ReplicaGroups(tuple(tuple(n for n in row if n >= 0) for row in rows))


def _common(op: Operation, *, ids: bool = True) -> dict[str, Any]:
    attrs: dict[str, Any] = {"replica_groups": _groups(op), "channel_id": channel_of(op)}
    if ids:
        attrs["use_global_device_ids"] = flag(op, "use_global_device_ids")
    return attrs


def _combiner(c: Context, op: Operation, xs: list[XlaOp]) -> Computation:
    return c.embed(only_region(op), [Shape.array(xs[0].shape.dtype)] * 2, op.kind)


@handles("all_reduce", least=1)
def _all_reduce(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    result = c.builder.call("all-reduce", xs, [_combiner(c, op, xs)], _common(op))
    return [result] if len(xs) == 1 else c.tuple_elements(result, len(xs))


@handles("all_gather")
def _all_gather(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    attrs = {"dimensions": (integer(op, "all_gather_dim"),), **_common(op)}
    return [c.builder.add("all-gather", [x], attrs, shape=c.stated(op, k)) for k, x in enumerate(xs)]


@handles("reduce_scatter", least=1)
def _reduce_scatter(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    attrs = {"dimensions": (integer(op, "scatter_dimension"),), **_common(op)}
    return c.builder.call("reduce-scatter", xs, [_combiner(c, op, xs)], attrs, c.stated(op))


@handles("all_to_all")
def _all_to_all(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    """Lower to HLO's all-to-all, which splits and joins along one dimension, and transposes for two dimensions."""
    attrs = _common(op, ids=False)
    split, concat, count = (integer(op, k) for k in ("split_dimension", "concat_dimension", "split_count"))
    if count < 1 or any(not 0 <= d < x.shape.rank for x in xs for d in (split, concat)):
        raise InvalidArgumentError(f"{op.name} of dimension {split} into {count} parts of dimension {concat}")
    return [_all_to_all_array(c, x, split, concat, count, attrs) for x in xs]


def _all_to_all_array(c: Context, x: XlaOp, split: int, concat: int, count: int, attrs: dict[str, Any]) -> XlaOp:
    result = c.builder.add("all-to-all", [x], {"dimensions": (split,), **attrs})
    if split == concat:
        return result
    dims = list(x.shape.dims)
    apart = xla.reshape(result, [*dims[:split], count, dims[split] // count, *dims[split + 1 :]])
    order = [d for d in range(len(dims) + 1) if d != split]
    order.insert(concat, split)
    dims[split] //= count
    dims[concat] *= count
    return xla.reshape(xla.transpose(apart, order), dims)


@handles("collective_permute")
def _collective_permute(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    pairs = matrix(op, "source_target_pairs")
    return [xla.collective_permute(x, pairs, channel_of(op)) for x in xs]


@handles("collective_broadcast")
def _collective_broadcast(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    return [xla.collective_broadcast(x, _groups(op), channel_of(op)) for x in xs]


@handles("cross-replica-sum", "cross_replica_sum")
def _cross_replica_sum(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 1)
    return xla.cross_replica_sum(xs[0], _groups(op))


@handles("ragged_all_to_all")
def _ragged_all_to_all(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 6)
    return c.builder.add("ragged-all-to-all", xs, _common(op, ids=False))


@handles("replica_id", "partition_id")
def _number(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    return c.builder.add(op.kind.replace("_", "-"))


# Random numbers


@handles("rng")
def _rng(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 3)
    stated, name = c.stated(op), f"the result of {op.name}"
    require_integers(xs[2], name)
    if stated.is_dynamic:
        stated = Shape.array(stated.dtype, c.constant_ints(xs[2], name))
    return xla.rng(xs[0], xs[1], stated, f"rng_{choice(op, 'rng_distribution', ('UNIFORM', 'NORMAL')).lower()}")


ALGORITHMS = {"DEFAULT": "rng_default", "THREE_FRY": "rng_three_fry", "PHILOX": "rng_philox"}


@handles("rng_bit_generator")
def _rng_bit_generator(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 1)
    name = keyword(op, "rng_algorithm")
    if name not in ALGORITHMS:
        raise InvalidArgumentError(f"{op.name} does not support the algorithm {name[:40]!r}")
    stated = c.stated_statically(op, 1, "the custom call stablehlo.dynamic_rng_bit_generator")
    return c.tuple_elements(xla.rng_bit_generator(xs[0], stated, ALGORITHMS[name]), 2)


@handles("uniform_quantize", "uniform_dequantize")
def _quantize(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    raise UnimplementedError(f"{op.name}: quantised types are not read by this release")
