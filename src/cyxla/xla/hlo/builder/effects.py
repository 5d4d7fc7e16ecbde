"""Builder functions that communicate with other devices or the host, or draw random numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cyxla.types import Shape
from cyxla.xla.hlo.attributes import ReplicaGroups
from cyxla.xla.hlo.builder.computation import XlaComputation
from cyxla.xla.hlo.builder.data_movement import as_list
from cyxla.xla.hlo.builder.functional import scalar_computation
from cyxla.xla.hlo.builder.xla_builder import XlaBuilder, XlaOp, deferred

Groups = ReplicaGroups | Sequence[Sequence[int]]
Values = XlaOp | Sequence[XlaOp]


def _groups(groups: Groups) -> ReplicaGroups:
    return groups if isinstance(groups, ReplicaGroups) else ReplicaGroups(tuple(tuple(g) for g in groups))


def _reduction(
    opcode: str, operands: Values, to_apply: XlaComputation, groups: Groups, channel_id: int | None, ids: bool
) -> XlaOp:
    inputs = as_list(operands)
    attrs = {"replica_groups": _groups(groups), "channel_id": channel_id, "use_global_device_ids": ids}
    return inputs[0].builder.add(opcode, inputs, attrs, called=[to_apply])


@deferred
def all_reduce(
    operands: Values,
    to_apply: XlaComputation,
    replica_groups: Groups = (),
    channel_id: int | None = None,
    use_global_device_ids: bool = False,
) -> XlaOp:
    """Combine the arrays of all devices of a group; all get the result."""
    return _reduction("all-reduce", operands, to_apply, replica_groups, channel_id, use_global_device_ids)


@deferred
def all_reduce_start(
    operands: Values,
    to_apply: XlaComputation,
    replica_groups: Groups = (),
    channel_id: int | None = None,
    use_global_device_ids: bool = False,
) -> XlaOp:
    """Start an `all_reduce`."""
    return _reduction("all-reduce-start", operands, to_apply, replica_groups, channel_id, use_global_device_ids)


@deferred
def all_reduce_done(operand: XlaOp) -> XlaOp:
    """Wait for the result of `all_reduce_start`."""
    return operand.builder.add("all-reduce-done", [operand])


@deferred
def cross_replica_sum(operand: XlaOp, replica_groups: Groups = ()) -> XlaOp:
    """Add up the arrays of all devices of a group."""
    return all_reduce(operand, scalar_computation("add", operand.shape.dtype), replica_groups)


def _gather(
    opcode: str,
    operands: Values,
    dimension: int,
    groups: Groups,
    channel_id: int | None,
    ids: bool,
    shape: Shape | None,
) -> XlaOp:
    inputs = as_list(operands)
    attrs = {
        "dimensions": (dimension,), "replica_groups": _groups(groups), "channel_id": channel_id,
        "use_global_device_ids": ids,
    }  # fmt: skip
    return inputs[0].builder.add(opcode, inputs, attrs, shape=shape)


@deferred
def all_gather(
    operands: Values,
    dimension: int,
    replica_groups: Groups = (),
    channel_id: int | None = None,
    use_global_device_ids: bool = False,
    shape: Shape | None = None,
) -> XlaOp:
    """Concatenate the arrays of a group's devices; state the result shape if the groups do not determine its size."""
    return _gather("all-gather", operands, dimension, replica_groups, channel_id, use_global_device_ids, shape)


@deferred
def all_gather_start(
    operands: Values,
    dimension: int,
    replica_groups: Groups = (),
    channel_id: int | None = None,
    use_global_device_ids: bool = False,
    shape: Shape | None = None,
) -> XlaOp:
    """Start an `all_gather`."""
    return _gather("all-gather-start", operands, dimension, replica_groups, channel_id, use_global_device_ids, shape)


@deferred
def all_gather_done(operand: XlaOp) -> XlaOp:
    """Wait for the result of `all_gather_start`."""
    return operand.builder.add("all-gather-done", [operand])


@deferred
def reduce_scatter(
    operands: Values,
    to_apply: XlaComputation,
    scatter_dimension: int,
    replica_groups: Groups = (),
    channel_id: int | None = None,
    use_global_device_ids: bool = False,
    shape: Shape | None = None,
) -> XlaOp:
    """Combine the arrays of a group's devices and give each device a part."""
    inputs = as_list(operands)
    attrs = {
        "dimensions": (scatter_dimension,), "replica_groups": _groups(replica_groups), "channel_id": channel_id,
        "use_global_device_ids": use_global_device_ids,
    }  # fmt: skip
    return inputs[0].builder.add("reduce-scatter", inputs, attrs, called=[to_apply], shape=shape)


@deferred
def all_to_all(
    operands: Values, dimension: int | None = None, replica_groups: Groups = (), channel_id: int | None = None
) -> XlaOp:
    """Exchange parts of an array along a dimension, or the elements of a tuple, between the devices of a group."""
    inputs = as_list(operands)
    dims = None if dimension is None else (dimension,)
    attrs = {"dimensions": dims, "replica_groups": _groups(replica_groups), "channel_id": channel_id}
    return inputs[0].builder.add("all-to-all", inputs, attrs)


@deferred
def ragged_all_to_all(
    operand: XlaOp,
    output: XlaOp,
    input_offsets: XlaOp,
    send_sizes: XlaOp,
    output_offsets: XlaOp,
    recv_sizes: XlaOp,
    replica_groups: Groups = (),
    channel_id: int | None = None,
) -> XlaOp:
    """Exchange parts of different sizes between the devices of a group."""
    operands = [operand, output, input_offsets, send_sizes, output_offsets, recv_sizes]
    attrs = {"replica_groups": _groups(replica_groups), "channel_id": channel_id}
    return operand.builder.add("ragged-all-to-all", operands, attrs)


@deferred
def collective_broadcast(operand: XlaOp, replica_groups: Groups = (), channel_id: int | None = None) -> XlaOp:
    """Send the array of the first device of a group to all others."""
    return operand.builder.add(
        "collective-broadcast", [operand], {"replica_groups": _groups(replica_groups), "channel_id": channel_id}
    )


def _pairs(pairs: Iterable[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(p) for p in pairs)


@deferred
def collective_permute(
    operand: XlaOp, source_target_pairs: Sequence[Sequence[int]], channel_id: int | None = None
) -> XlaOp:
    """Send the array from sources to targets; devices that receive nothing get zeros."""
    attrs = {"source_target_pairs": _pairs(source_target_pairs), "channel_id": channel_id}
    return operand.builder.add("collective-permute", [operand], attrs)


@deferred
def collective_permute_start(
    operand: XlaOp, source_target_pairs: Sequence[Sequence[int]], channel_id: int | None = None
) -> XlaOp:
    """Start a `collective_permute`."""
    attrs = {"source_target_pairs": _pairs(source_target_pairs), "channel_id": channel_id}
    return operand.builder.add("collective-permute-start", [operand], attrs)


@deferred
def collective_permute_done(operand: XlaOp) -> XlaOp:
    """Wait for the result of `collective_permute_start`."""
    return operand.builder.add("collective-permute-done", [operand])


@deferred
def replica_id(builder: XlaBuilder) -> XlaOp:
    """Return the number of this replica."""
    return builder.add("replica-id")


@deferred
def partition_id(builder: XlaBuilder) -> XlaOp:
    """Return the number of this partition."""
    return builder.add("partition-id")


@deferred
def rng(a: XlaOp, b: XlaOp, shape: Shape, distribution: str) -> XlaOp:
    """Draw random numbers from rng_uniform (in [a, b)) or rng_normal (mean a, standard deviation b)."""
    return a.builder.add("rng", [a, b], {"distribution": distribution}, shape=shape)


@deferred
def rng_uniform(a: XlaOp, b: XlaOp, shape: Shape) -> XlaOp:
    """Draw uniform random numbers in [a, b)."""
    return rng(a, b, shape, "rng_uniform")


@deferred
def rng_normal(mean: XlaOp, deviation: XlaOp, shape: Shape) -> XlaOp:
    """Draw normally distributed random numbers."""
    return rng(mean, deviation, shape, "rng_normal")


@deferred
def rng_bit_generator(initial_state: XlaOp, shape: Shape, algorithm: str = "rng_default") -> XlaOp:
    """Return the next state and random bits that depend only on the state: rng_default, rng_three_fry or rng_philox."""
    result = Shape.tuple([initial_state.shape.logical, shape])
    return initial_state.builder.add("rng-bit-generator", [initial_state], {"algorithm": algorithm}, shape=result)


@deferred
def rng_get_and_update_state(builder: XlaBuilder, delta: int) -> XlaOp:
    """Return the process-wide random state, and advance it by `delta`."""
    return builder.add("rng-get-and-update-state", (), {"delta": delta})


@deferred
def infeed(token: XlaOp, shape: Shape, config: str = "") -> XlaOp:
    """Receive data from the host: (data, token)."""
    return token.builder.add("infeed", [token], {"infeed_config": config}, shape=Shape.tuple([shape, token.shape]))


@deferred
def outfeed(operand: XlaOp, token: XlaOp, shape: Shape | None = None, config: str = "") -> XlaOp:
    """Send data to the host."""
    return operand.builder.add(
        "outfeed", [operand, token], {"outfeed_shape": shape or operand.shape, "outfeed_config": config}
    )


def _channel(channel_id: int | None, is_host_transfer: bool) -> dict[str, int | bool | None]:
    return {"channel_id": channel_id, "is_host_transfer": is_host_transfer}


@deferred
def send(operand: XlaOp, token: XlaOp, channel_id: int | None = None, is_host_transfer: bool = False) -> XlaOp:
    """Start to send a value: (value, context, token)."""
    return operand.builder.add("send", [operand, token], _channel(channel_id, is_host_transfer))


@deferred
def send_done(operand: XlaOp, channel_id: int | None = None, is_host_transfer: bool = False) -> XlaOp:
    """Wait for the end of `send`."""
    return operand.builder.add("send-done", [operand], _channel(channel_id, is_host_transfer))


@deferred
def recv(token: XlaOp, shape: Shape, channel_id: int | None = None, is_host_transfer: bool = False) -> XlaOp:
    """Start to receive a value: (value, context, token)."""
    result = Shape.tuple([shape, Shape.array("u32"), token.shape])
    return token.builder.add("recv", [token], _channel(channel_id, is_host_transfer), shape=result)


@deferred
def recv_done(operand: XlaOp, channel_id: int | None = None, is_host_transfer: bool = False) -> XlaOp:
    """Wait for the value of `recv`: (value, token)."""
    return operand.builder.add("recv-done", [operand], _channel(channel_id, is_host_transfer))
