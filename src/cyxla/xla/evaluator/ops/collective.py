"""Collectives. A run by itself is one replica and one partition; more of them meet through `Options.rendezvous`.

A rendezvous is called as ``rendezvous(instruction, devices, operands)``, with the devices (flattened ids) that take
part and this device's operands; it waits for all of them and returns the operands of each, in the order of `devices`.
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
    """Which replica this is."""
    return np.array(ev.options.replica, np.uint32)


@evaluates("partition-id")
def partition_id(ev: Evaluation, ins: Instruction) -> Value:
    """Which partition this is."""
    return np.array(ev.options.partition, np.uint32)


def listed(groups: ReplicaGroups) -> list[tuple[int, ...]]:
    """Write out the groups; none means one group of everybody."""
    if groups.iota is None:
        return list(groups.groups)
    tiles = groups.iota
    ids = np.arange(int(np.prod(tiles.reshape))).reshape(tiles.reshape)
    ordered = ids.transpose(tiles.transpose) if tiles.transpose else ids
    return [tuple(map(int, row)) for row in ordered.reshape(tiles.dims[0], -1)]


class _Party:
    """What the ids of a collective count, and how they turn into devices.

    Without a channel they are replicas, and each partition keeps to itself. With one they are flattened device ids
    where the instruction says so, replicas with all their partitions where it could but does not, and partitions
    otherwise.
    """

    def __init__(self, ev: Evaluation, ins: Instruction) -> None:
        options, attrs = ev.options, ins.attrs
        self.replicas, self.partitions = options.replica_count, options.num_partitions
        self.device = options.replica * self.partitions + options.partition
        if attrs.get("use_global_device_ids"):
            self.count, self.own, self._spread = self.replicas * self.partitions, self.device, self._flattened
        elif not attrs.get("channel_id"):
            self.count, self.own, self._spread = self.replicas, options.replica, self._replica
        elif "use_global_device_ids" in attrs:
            self.count, self.own, self._spread = self.replicas, options.replica, self._whole_replica
        else:
            self.count, self.own, self._spread = self.partitions, options.partition, self._partition

    def _flattened(self, i: int) -> list[int]:
        return [i]

    def _replica(self, i: int) -> list[int]:
        return [i * self.partitions + self.device % self.partitions]

    def _whole_replica(self, i: int) -> list[int]:
        return [i * self.partitions + p for p in range(self.partitions)]

    def _partition(self, i: int) -> list[int]:
        return [self.device // self.partitions * self.partitions + i]

    def devices(self, ids: Sequence[int]) -> list[int]:
        """List the devices that ids stand for."""
        for i in ids:
            if not 0 <= i < self.count:
                raise InvalidArgumentError(
                    f"the collective names device {i}; this run has {self.count}",
                    hint="set the replica or partition count of the run",
                )
        return [d for i in ids for d in self._spread(i)]


def _group(ev: Evaluation, ins: Instruction) -> tuple[list[int], int] | None:
    """Devices of this device's group, in order, and its place among them; None when it is in no group."""
    party = _Party(ev, ins)
    groups = [party.devices(g) for g in listed(ins.attrs["replica_groups"])] or [party.devices(range(party.count))]
    own = next((g for g in groups if party.device in g), None)
    return None if own is None else (own, own.index(party.device))


def _required_group(ev: Evaluation, ins: Instruction) -> tuple[list[int], int]:
    found = _group(ev, ins)
    if found is None:
        raise InvalidArgumentError(f"{ins.opcode}: this device is in none of the replica groups")
    return found


def _meet(ev: Evaluation, ins: Instruction, devices: list[int], operands: Operands) -> list[Operands]:
    """Get the operands of each of the devices."""
    if len(devices) == 1:
        return [operands]
    if ev.options.rendezvous is None:
        raise UnimplementedError(f"{ins.opcode} over {len(devices)} devices: this run has no way to meet the others")
    return [tuple(o) for o in ev.options.rendezvous(ins, devices, operands)]


def _result(ins: Instruction, results: Sequence[Value]) -> Value:
    return tuple(results) if ins.shape.is_tuple else results[0]


def _reduced(ev: Evaluation, ins: Instruction, everyone: list[Operands]) -> list[Array]:
    totals = [array_of(o) for o in everyone[0]]
    for operands in everyone[1:]:
        totals = [
            ev.apply_elementwise(ins.called[0], [t, array_of(o)])[0] for t, o in zip(totals, operands, strict=True)
        ]
    return totals


@evaluates("all-reduce", "all-reduce-start")
def all_reduce(ev: Evaluation, ins: Instruction, *operands: Value) -> Value:
    """Combine the operands of the group, element by element."""
    devices, _ = _required_group(ev, ins)
    return _result(ins, _reduced(ev, ins, _meet(ev, ins, devices, operands)))


@evaluates("reduce-scatter")
def reduce_scatter(ev: Evaluation, ins: Instruction, *operands: Value) -> Value:
    """Combine the operands of the group; each device keeps its own part."""
    devices, place = _required_group(ev, ins)
    totals = _reduced(ev, ins, _meet(ev, ins, devices, operands))
    return _result(ins, [np.split(t, len(devices), ins.attrs["dimensions"][0])[place] for t in totals])


@evaluates("all-gather", "all-gather-start")
def all_gather(ev: Evaluation, ins: Instruction, *operands: Value) -> Value:
    """Join the operands of the group along a dimension; the started form keeps the operands beside the result."""
    devices, _ = _required_group(ev, ins)
    everyone = _meet(ev, ins, devices, operands)
    axis = ins.attrs["dimensions"][0]
    joined = [np.concatenate([array_of(o[n]) for o in everyone], axis) for n in range(len(operands))]
    if ins.opcode == "all-gather":
        return _result(ins, joined)
    return (operands[0], joined[0]) if len(operands) == 1 else (operands, tuple(joined))


@evaluates("all-to-all")
def all_to_all(ev: Evaluation, ins: Instruction, *operands: Value) -> Value:
    """Device i gets the i-th part of every device: part of an array, or operand of a tuple form."""
    devices, place = _required_group(ev, ins)
    if not ins.shape.is_tuple:
        axis = (ins.attrs["dimensions"] or (0,))[0]
        everyone = _meet(ev, ins, devices, operands)
        return np.concatenate([np.split(array_of(o[0]), len(devices), axis)[place] for o in everyone], axis)
    if len(operands) != len(devices):
        raise InvalidArgumentError(f"all-to-all has {len(operands)} operands for a group of {len(devices)}")
    return tuple(o[place] for o in _meet(ev, ins, devices, operands))


@evaluates("ragged-all-to-all")
def ragged_all_to_all(ev: Evaluation, ins: Instruction, *operands: Value) -> Value:
    """Send slices of rows to every device; they land where the sender says in a copy of its second operand."""
    devices, place = _required_group(ev, ins)
    out = array_of(operands[1]).copy()
    for sender in _meet(ev, ins, devices, operands):
        source, _, starts, sizes, targets = (array_of(o) for o in sender[:5])
        rows = (a.reshape(len(devices), -1)[place].astype(np.int64) for a in (starts, sizes, targets))
        for start, size, target in zip(*rows, strict=True):
            out[target : target + size] = source[start : start + size]
    return out


@evaluates("collective-broadcast")
def collective_broadcast(ev: Evaluation, ins: Instruction, *operands: Value) -> Value:
    """Get the operands of the first device of the group, or zeros on a device that is in no group."""
    found = _group(ev, ins)
    return zeros(ins.shape) if found is None else _result(ins, _meet(ev, ins, found[0], operands)[0])


@evaluates("collective-permute", "collective-permute-start")
def collective_permute(ev: Evaluation, ins: Instruction, *operands: Value) -> Value:
    """Get the operands of the device that sends to this one, or zeros."""
    if ins.attrs["slice_sizes"]:
        raise UnimplementedError(f"{ins.opcode} between slices (slice_sizes)")
    party = _Party(ev, ins)
    pairs = [tuple(party.devices([i])[0] for i in pair) for pair in ins.attrs["source_target_pairs"]]
    everyone = sorted({d for pair in pairs for d in pair})
    received: Operands = tuple(np.zeros_like(array_of(o)) for o in operands)
    if party.device in everyone:
        present = _meet(ev, ins, everyone, operands)
        source = next((s for s, target in pairs if target == party.device), None)
        received = received if source is None else present[everyone.index(source)]
    if ins.opcode == "collective-permute":
        return _result(ins, received)
    extras = tuple(zeros(e) for e in ins.shape.elements[2:])
    return (operands[0], received[0], *extras) if len(operands) == 1 else (operands, received, *extras)


@evaluates("all-reduce-done")
def all_reduce_done(ev: Evaluation, ins: Instruction, started: Value) -> Value:
    """Get the result that the start computed."""
    return started


@evaluates("all-gather-done", "collective-permute-done")
def second_of_start(ev: Evaluation, ins: Instruction, started: Value) -> Value:
    """Get the result that the start computed and keeps beside its operands."""
    return tuple_of(started)[1]
