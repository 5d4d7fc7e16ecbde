"""Checks that a program for several devices can run on the devices at hand."""

from __future__ import annotations

from math import prod
from typing import Final

from cyxla.errors import InvalidArgumentError, UnimplementedError
from cyxla.xla.hlo.attributes import ReplicaGroups
from cyxla.xla.hlo.instruction import Instruction
from cyxla.xla.hlo.module import HloModule

# Instructions whose result depends on the device, or on other devices. The second halves of asynchronous ones follow.
_DEPENDENT: Final = frozenset({
    "all-gather", "all-gather-start", "all-reduce", "all-reduce-start", "all-to-all", "collective-broadcast",
    "collective-permute", "collective-permute-start", "partition-id", "ragged-all-to-all", "reduce-scatter",
    "replica-id",
})  # fmt: skip


def check_devices(module: HloModule, replicas: int = 1, partitions: int = 1) -> None:
    """Raise if a program's result depends on more devices than it will run on.

    Parameters
    ----------
    module : HloModule
        The program. One without instructions that depend on the device passes, whatever its device counts.
    replicas, partitions : int
        Numbers of replicas and partitions that run together.

    Raises
    ------
    UnimplementedError
        The module is for more replicas or partitions, and an instruction depends on the device.
    InvalidArgumentError
        A collective names a device that is not there.
    """
    config = module.config
    several = config.replica_count > replicas or config.num_partitions > partitions
    for computation in module.post_order():
        for ins in computation.instructions:
            if ins.opcode not in _DEPENDENT:
                continue
            if several:
                raise _several_devices_error(ins, config.replica_count, config.num_partitions)
            highest = _highest_device(ins)
            if highest >= replicas * partitions:
                raise InvalidArgumentError(
                    f"{ins.opcode} names device {highest}; this run has {replicas * partitions}",
                    where=repr(ins),
                    hint="state replica_count or num_partitions in the module line, or set those of the run",
                )


def _several_devices_error(ins: Instruction, replicas: int, partitions: int) -> UnimplementedError:
    counts = f"replica_count={replicas}, num_partitions={partitions}"
    return UnimplementedError(
        f"{ins.opcode} in a program for several devices ({counts}); compiled programs run on one device",
        where=repr(ins),
        hint="evaluate the module on each device: cyxla.xla.evaluator.evaluate(module, args, options=Options("
        f"{counts}, replica=.., partition=.., rendezvous=..)), where the rendezvous exchanges operands",
    )


def _highest_device(ins: Instruction) -> int:
    """Return the highest device number that a collective names; -1 if it names none."""
    groups: ReplicaGroups = ins.attrs.get("replica_groups") or ReplicaGroups()
    pairs = ins.attrs.get("source_target_pairs") or ()
    highest = prod(groups.iota.reshape) - 1 if groups.iota else -1
    return max((i for group in (*groups.groups, *pairs) for i in group), default=highest)
