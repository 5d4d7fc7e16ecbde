"""Variables behind resource handles."""

from cyxla.core.framework.op import op

op("AssignAddVariableOp", "resource: resource, value: dtype ->", "dtype: type", stateful=True, shape=None)
op("AssignSubVariableOp", "resource: resource, value: dtype ->", "dtype: type", stateful=True, shape=None)
op("AssignVariableOp", "resource: resource, value: dtype ->", "dtype: type", "validate_shape: bool = false",
    stateful=True, shape=None,
)  # fmt: skip
op("AssignVariableXlaConcatND", "resource: resource, inputs: N * T ->", "T: type", "N: int", "num_concats: list(int)",
    "paddings: list(int) = []", stateful=True, shape=None,
)  # fmt: skip
op("DestroyResourceOp", "resource: resource ->", "ignore_lookup_error: bool = true", stateful=True, shape=None)
op("DisableCopyOnRead", "resource: resource ->", stateful=True, shape=None)
op("MutexV2", "-> resource: resource", "container: string = ''", "shared_name: string = ''", stateful=True, shape=None)
op("ReadVariableOp", "resource: resource -> value: dtype", "dtype: type", stateful=True, shape=None)
op("ReadVariableXlaSplitND", "resource: resource -> outputs: N * T", "T: type", "N: int", "num_splits: list(int)",
    "paddings: list(int) = []", stateful=True, shape=None,
)  # fmt: skip
op("ResourceGather", "resource: resource, indices: Tindices -> output: dtype", "batch_dims: int = 0",
    "validate_indices: bool = true", "dtype: type", "Tindices: {int32, int64}", stateful=True, shape=None,
)  # fmt: skip
op("ResourceGatherNd", "resource: resource, indices: Tindices -> output: dtype", "dtype: type",
    "Tindices: {int32, int64}", stateful=True, shape=None,
)  # fmt: skip
op("VarHandleOp", "-> resource: resource", "container: string = ''", "shared_name: string = ''",
    "debug_name: string = ''", "dtype: type", "shape: shape", "allowed_devices: list(string) = []", stateful=True,
    shape=None,
)  # fmt: skip
op("VarIsInitializedOp", "resource: resource -> is_initialized: bool", stateful=True, shape=None)
op("VariableShape", "input: resource -> output: out_type", "out_type: {int32, int64} = DT_INT32", stateful=True,
    shape=None,
)  # fmt: skip
op("_ReadVariablesOp", "resources: N * resource -> values: dtypes", "N: int >= 0", "dtypes: list(type)", stateful=True,
    shape=None,
)  # fmt: skip
op("_VarHandlesOp", "-> resources: N * resource", "containers: list(string)", "shared_names: list(string)",
    "N: int >= 0", "dtypes: list(type)", "shapes: list(shape)", stateful=True, shape=None,
)  # fmt: skip
op("ResourceStridedSliceAssign", "ref: resource, begin: Index, end: Index, strides: Index, value: T ->", "T: type",
    "Index: {int32, int64}", "begin_mask: int = 0", "end_mask: int = 0", "ellipsis_mask: int = 0",
    "new_axis_mask: int = 0", "shrink_axis_mask: int = 0", stateful=True, shape=None,
)  # fmt: skip
