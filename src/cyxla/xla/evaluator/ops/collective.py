"""Collectives. A run by itself is one replica and one partition; several exchange operands by `Options.rendezvous`.

A rendezvous is called as ``rendezvous(instruction, devices, operands)``, with the participating devices (flattened ids)
and this device's operands; it waits for all of them and returns the operands of each, in the order of `devices`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cyxla.errors import InvalidArgumentError, UnimplementedError
from cyxla.xla.evaluator.evaluation import Evaluation
from cyxla.xla.evaluator.registry import evaluates
from cyxla.xla.evaluator.values import Array, Value, array_of, tuple_of, zeros
from cyxla.xla.hlo.attributes import ReplicaGroups
from cyxla.xla.hlo.instruction import Instruction

Operands = tuple[Value, ...]


@evaluates("replica-id")
def replica_id(ev: Evaluation, ins: Instruction) -> Value:
    """Return the number of this replica."""
    return np.array(ev.options.replica, np.uint32)


@evaluates("partition-id")
def partition_id(ev: Evaluation, ins: Instruction) -> Value:
    """Return the number of this partition."""
    return np.array(ev.options.partition, np.uint32)


def explicit_groups(groups: ReplicaGroups) -> list[tuple[int, ...]]:
    """Return the groups as lists; no groups mean one group of all devices."""
    if groups.iota is None:
        return list(groups.groups)
    tiles = groups.iota
    ids = np.arange(int(np.prod(tiles.reshape))).reshape(tiles.reshape)
    ordered = ids.transpose(tiles.transpose) if tiles.transpose else ids
    return [tuple(map(int, row)) for row in ordered.reshape(tiles.dims[0], -1)]


class _Participants:
    """Mapping of the ids of a collective to devices.

    Without a channel, ids are replicas, and each partition communicates by itself. With one, they are flattened device
    ids
    if use_global_device_ids is set, replicas with all their partitions if it is not, and partitions for opcodes without
    that
    attribute.
    """

    def __init__(self, ev: Evaluation, ins: Instruction) -> None:
        options, attrs = ev.options, ins.attrs
        self.replicas, self.partitions = options.replica_count, options.num_partitions
        self.device = options.replica * self.partitions + options.partition
        if attrs.get("use_global_device_ids"):
            self.count, self.own_id, self._devices_of = self.replicas * self.partitions, self.device, self._flattened
        elif not attrs.get("channel_id"):
            self.count, self.own_id, self._devices_of = self.replicas, options.replica, self._replica
        elif "use_global_device_ids" in attrs:
            self.count, self.own_id, self._devices_of = self.replicas, options.replica, self._devices_of_replica
        else:
            self.count, self.own_id, self._devices_of = self.partitions, options.partition, self._partition

    def _flattened(self, i: int) -> list[int]:
        return [i]

    def _replica(self, i: int) -> list[int]:
        return [i * self.partitions + self.device % self.partitions]

    def _devices_of_replica(self, i: int) -> list[int]:
        return [i * self.partitions + p for p in range(self.partitions)]

    def _partition(self, i: int) -> list[int]:
        return [self.device // self.partitions * self.partitions + i]

    def devices(self, ids: Sequence[int]) -> list[int]:
        """Return the devices of ids."""
        for i in ids:
            if not 0 <= i < self.count:
                raise InvalidArgumentError(
                    f"the collective names device {i}; this run has {self.count}",
                    hint="set the replica or partition count of the run",
                )
        return [d for i in ids for d in self._devices_of(i)]


def _group(ev: Evaluation, ins: Instruction) -> tuple[list[int], int] | None:
    """Return the devices of this device's group, in order, and its index among them; None if it is in no group."""
    participants = _Participants(ev, ins)
    groups = [participants.devices(g) for g in explicit_groups(ins.attrs["replica_groups"])] or [
        participants.devices(range(participants.count))
    ]
    own_group = next((g for g in groups if participants.device in g), None)
    return None if own_group is None else (own_group, own_group.index(participants.device))


def _required_group(ev: Evaluation, ins: Instruction) -> tuple[list[int], int]:
    group = _group(ev, ins)
    if group is None:
        raise InvalidArgumentError(f"{ins.opcode}: this device is in none of the replica groups")
    return group


def _exchange(ev: Evaluation, ins: Instruction, devices: list[int], operands: Operands) -> list[Operands]:
    """Exchange operands, and return those of each device."""
    if len(devices) == 1:
        return [operands]
    if ev.options.rendezvous is None:
        raise UnimplementedError(f"{ins.opcode} over {len(devices)} devices: this run has no way to meet the others")
    return [tuple(o) for o in ev.options.rendezvous(ins, devices, operands)]


def _result(ins: Instruction, results: Sequence[Value]) -> Value:
    return tuple(results) if ins.shape.is_tuple else results[0]


def _reduce(ev: Evaluation, ins: Instruction, exchanged: list[Operands]) -> list[Array]:
    totals = [array_of(o) for o in exchanged[0]]
    for operands in exchanged[1:]:
        totals = [
            ev.apply_elementwise(ins.called[0], [t, array_of(o)])[0] for t, o in zip(totals, operands, strict=True)
        ]
    return totals


@evaluates("all-reduce", "all-reduce-start")
def all_reduce(ev: Evaluation, ins: Instruction, *operands: Value) -> Value:
    """Combine the operands of the group, element by element."""
    devices, _ = _required_group(ev, ins)
    return _result(ins, _reduce(ev, ins, _exchange(ev, ins, devices, operands)))


@evaluates("reduce-scatter")
def reduce_scatter(ev: Evaluation, ins: Instruction, *operands: Value) -> Value:
    """Combine the operands of the group, and return this device's part."""
    devices, index = _required_group(ev, ins)
    totals = _reduce(ev, ins, _exchange(ev, ins, devices, operands))
    return _result(ins, [np.split(t, len(devices), ins.attrs["dimensions"][0])[index] for t in totals])


@evaluates("all-gather", "all-gather-start")
def all_gather(ev: Evaluation, ins: Instruction, *operands: Value) -> Value:
    """Concatenate the operands of the group along a dimension; the start form returns the operands as well."""
    devices, _ = _required_group(ev, ins)
    exchanged = _exchange(ev, ins, devices, operands)
    axis = ins.attrs["dimensions"][0]
    gathered = [np.concatenate([array_of(o[n]) for o in exchanged], axis) for n in range(len(operands))]
    if ins.opcode == "all-gather":
        return _result(ins, gathered)
    return (operands[0], gathered[0]) if len(operands) == 1 else (operands, tuple(gathered))


@evaluates("all-to-all")
def all_to_all(ev: Evaluation, ins: Instruction, *operands: Value) -> Value:
    """Return this device's part of the operand of each device, or its operand in the tuple form."""
    devices, index = _required_group(ev, ins)
    if not ins.shape.is_tuple:
        axis = (ins.attrs["dimensions"] or (0,))[0]
        exchanged = _exchange(ev, ins, devices, operands)
        return np.concatenate([np.split(array_of(o[0]), len(devices), axis)[index] for o in exchanged], axis)
    if len(operands) != len(devices):
        raise InvalidArgumentError(f"all-to-all has {len(operands)} operands for a group of {len(devices)}")
    return tuple(o[index] for o in _exchange(ev, ins, devices, operands))


@evaluates("ragged-all-to-all")
def ragged_all_to_all(ev: Evaluation, ins: Instruction, *operands: Value) -> Value:
    """Send slices of rows to every device, which writes them into a copy of its second operand.

    Rows outside of the source or of the result are not sent.
    """
    devices, index = _required_group(ev, ins)
    out = array_of(operands[1]).copy()
    for sender in _exchange(ev, ins, devices, operands):
        source, _, starts, sizes, targets = (array_of(o) for o in sender[:5])
        rows = (a.reshape(len(devices), -1)[index].astype(np.int64) for a in (starts, sizes, targets))
        for start, size, target in zip(*(map(int, a) for a in rows), strict=True):
            shift = target - start  # from a row of the source to that of the result
            first, end = max(target, 0, shift), min(target + size, len(out), len(source) + shift)
            if first < end:
                out[first:end] = source[first - shift : end - shift]
    return out


@evaluates("collective-broadcast")
def collective_broadcast(ev: Evaluation, ins: Instruction, *operands: Value) -> Value:
    """Return the operands of the first device of the group, or zeros on a device that is in no group."""
    group = _group(ev, ins)
    return zeros(ins.shape) if group is None else _result(ins, _exchange(ev, ins, group[0], operands)[0])


@evaluates("collective-permute", "collective-permute-start")
def collective_permute(ev: Evaluation, ins: Instruction, *operands: Value) -> Value:
    """Return the operands of the device that sends to this one, or zeros."""
    if ins.attrs["slice_sizes"]:
        raise UnimplementedError(f"{ins.opcode} between slices (slice_sizes)")
    participants = _Participants(ev, ins)
    pairs = [tuple(participants.devices([i])[0] for i in pair) for pair in ins.attrs["source_target_pairs"]]
    exchanged = sorted({d for pair in pairs for d in pair})
    received: Operands = tuple(np.zeros_like(array_of(o)) for o in operands)
    if participants.device in exchanged:
        present = _exchange(ev, ins, exchanged, operands)
        source = next((s for s, target in pairs if target == participants.device), None)
        received = received if source is None else present[exchanged.index(source)]
    if ins.opcode == "collective-permute":
        return _result(ins, received)
    extras = tuple(zeros(e) for e in ins.shape.elements[2:])
    return (operands[0], received[0], *extras) if len(operands) == 1 else (operands, received, *extras)


@evaluates("all-reduce-done")
def all_reduce_done(ev: Evaluation, ins: Instruction, started: Value) -> Value:
    """Return the result that the start computed."""
    return started


@evaluates("all-gather-done", "collective-permute-done")
def second_of_start(ev: Evaluation, ins: Instruction, started: Value) -> Value:
    """Return the second element of the start's tuple."""
    return tuple_of(started)[1]
