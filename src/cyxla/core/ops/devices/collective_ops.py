"""Collective operations."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import scalar_outputs, unchanged_shape

op("CollectiveAssignGroupV2",
    "group_assignment: int32, device_index: int32, base_key: int32 -> group_size: int32, group_key: int32",
    stateful=True, shape=scalar_outputs, doc="Return size and key of a device's group.",
)  # fmt: skip
op("CollectiveReduceV2",
    "input: T, group_size: int32, group_key: int32, instance_key: int32, ordering_token: Nordering_token * "
    "resource -> data: T", "T: {bfloat16, float, half, double, int32, int64}", "merge_op: {'Min', 'Max', 'Mul', 'Add'}",
    "final_op: {'Id', 'Div'}", "communication_hint: string = 'auto'", "timeout_seconds: float = 0.0",
    "is_stateless: bool = false", "Nordering_token: int >= 0 = 0", "max_subdivs_per_device: int = -1", stateful=True,
    shape=unchanged_shape, doc="Reduce over a group of devices.",
)  # fmt: skip
op("NcclAllReduce", "input: T -> data: T", "reduction: {'min', 'max', 'prod', 'sum'}",
    "T: {half, float, double, int32, int64}", "num_devices: int", "shared_name: string", stateful=True,
    shape=unchanged_shape, doc="Reduce over the devices that share a name.",
)  # fmt: skip
