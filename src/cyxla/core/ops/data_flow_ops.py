"""Stacks, tensor arrays, optionals; partition and stitch."""

from cyxla.core.framework.op import op

op("Barrier", "-> handle: Ref(string)", "component_types: list(type) >= 1", "shapes: list(shape) >= 0 = []",
    "capacity: int = -1", "container: string = ''", "shared_name: string = ''", stateful=True, shape=None,
)  # fmt: skip
op("DynamicPartition", "data: T, partitions: int32 -> outputs: num_partitions * T", "num_partitions: int", "T: type",
    shape=None,
)  # fmt: skip
op("DynamicStitch", "indices: N * int32, data: N * T -> merged: T", "N: int", "T: type", shape=None)
op("ParallelDynamicStitch", "indices: N * int32, data: N * T -> merged: T", "N: int", "T: type", shape=None)
op("OptionalFromValue", "components: Toutput_types -> optional: variant", "Toutput_types: list(type)", shape=None)
op("OptionalGetValue", "optional: variant -> components: output_types", "output_types: list(type)",
    "output_shapes: list(shape) >= 1", shape=None,
)  # fmt: skip
op("OptionalHasValue", "optional: variant -> has_value: bool", shape=None)
op("OptionalNone", "-> optional: variant", shape=None)
op("Stack", "-> handle: Ref(string)", "elem_type: type", "stack_name: string = ''", stateful=True, shape=None)
op("StackClose", "handle: Ref(string) ->", shape=None)
op("StackCloseV2", "handle: resource ->", stateful=True, shape=None)
op("StackPop", "handle: Ref(string) -> elem: elem_type", "elem_type: type", shape=None)
op("StackPopV2", "handle: resource -> elem: elem_type", "elem_type: type", stateful=True, shape=None)
op("StackPush", "handle: Ref(string), elem: T -> output: T", "T: type", "swap_memory: bool = false", shape=None)
op("StackPushV2", "handle: resource, elem: T -> output: T", "T: type", "swap_memory: bool = false", stateful=True,
    shape=None,
)  # fmt: skip
op("StackV2", "max_size: int32 -> handle: resource", "elem_type: type", "stack_name: string = ''", stateful=True,
    shape=None,
)  # fmt: skip
op("TensorArrayCloseV3", "handle: resource ->", stateful=True, shape=None)
op("TensorArrayConcatV3", "handle: resource, flow_in: float -> value: dtype, lengths: int64", "dtype: type",
    "element_shape_except0: shape = { unknown_rank: true }", stateful=True, shape=None,
)  # fmt: skip
op("TensorArrayGatherV3", "handle: resource, indices: int32, flow_in: float -> value: dtype", "dtype: type",
    "element_shape: shape = { unknown_rank: true }", stateful=True, shape=None,
)  # fmt: skip
op("TensorArrayGradV3", "handle: resource, flow_in: float -> grad_handle: resource, flow_out: float", "source: string",
    stateful=True, shape=None,
)  # fmt: skip
op("TensorArrayGradWithShape",
    "handle: resource, flow_in: float, shape_to_prepend: int32 -> grad_handle: resource, flow_out: float",
    "source: string", stateful=True, shape=None,
)  # fmt: skip
op("TensorArrayReadV3", "handle: resource, index: int32, flow_in: float -> value: dtype", "dtype: type", stateful=True,
    shape=None,
)  # fmt: skip
op("TensorArrayScatterV3", "handle: resource, indices: int32, value: T, flow_in: float -> flow_out: float", "T: type",
    stateful=True, shape=None,
)  # fmt: skip
op("TensorArraySizeV3", "handle: resource, flow_in: float -> size: int32", stateful=True, shape=None)
op("TensorArraySplitV3", "handle: resource, value: T, lengths: int64, flow_in: float -> flow_out: float", "T: type",
    stateful=True, shape=None,
)  # fmt: skip
op("TensorArrayV2", "size: int32 -> handle: string", "dtype: type", "element_shape: shape = { unknown_rank: true }",
    "dynamic_size: bool = false", "clear_after_read: bool = true", "tensor_array_name: string = ''", stateful=True,
    deprecated=(26, "Use TensorArrayV3."), shape=None,
)  # fmt: skip
op("TensorArrayV3", "size: int32 -> handle: resource, flow: float", "dtype: type",
    "element_shape: shape = { unknown_rank: true }", "dynamic_size: bool = false", "clear_after_read: bool = true",
    "identical_element_shapes: bool = false", "tensor_array_name: string = ''", stateful=True, shape=None,
)  # fmt: skip
op("TensorArrayWriteV3", "handle: resource, index: int32, value: T, flow_in: float -> flow_out: float", "T: type",
    stateful=True, shape=None,
)  # fmt: skip
