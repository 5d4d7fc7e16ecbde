"""Opcodes that talk to other replicas and partitions."""

from __future__ import annotations

from cyxla.xla.hlo.attributes import ReplicaGroups
from cyxla.xla.hlo.opcode import VARIADIC, opcode, opt, req

# fmt: off
_GROUPS = (opt("channel_id", "int"), opt("replica_groups", "replica_groups", ReplicaGroups()))
_IDS    = (opt("use_global_device_ids", "bool", False),)
_LAYOUT = (opt("constrain_layout", "bool", False),)
_PAIRS  = (opt("channel_id", "int"), req("source_target_pairs", "pairs"))
_SLICES = (opt("slice_sizes", "dims_list", ()),)

opcode("all-reduce",              (1, None), calls=("to_apply",), attrs=(*_GROUPS, *_LAYOUT, *_IDS))
opcode("all-reduce-start",        (1, None), calls=("to_apply",), attrs=(*_GROUPS, *_LAYOUT, *_IDS))
opcode("all-reduce-done",         1)
opcode("all-gather",              (1, None), attrs=(*_GROUPS, *_LAYOUT, req("dimensions", "dims"), *_IDS))
opcode("all-gather-start",        (1, None), attrs=(*_GROUPS, *_LAYOUT, req("dimensions", "dims"), *_IDS))
opcode("all-gather-done",         1)
opcode("all-to-all",              (1, None), attrs=(*_GROUPS, *_LAYOUT, opt("dimensions", "dims")))
opcode("ragged-all-to-all",       6, attrs=_GROUPS)
opcode("collective-broadcast",    (1, None), attrs=_GROUPS)
opcode("collective-permute",      (1, None), attrs=(*_PAIRS, *_SLICES))
opcode("collective-permute-start", (1, None), attrs=(*_PAIRS, *_SLICES))
opcode("collective-permute-done", 1)
opcode("reduce-scatter",          (1, None), calls=("to_apply",), attrs=(*_GROUPS, *_LAYOUT, *_IDS, req("dimensions", "dims")))
opcode("replica-id",              0)
opcode("partition-id",            0)
# fmt: on
_ = VARIADIC
