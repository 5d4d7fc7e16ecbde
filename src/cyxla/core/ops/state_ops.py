"""Variables behind references, and scatters into variables."""

from cyxla.core.framework.op import op

op("Assign", "ref: Ref(T), value: T -> output_ref: Ref(T)", "T: type", "validate_shape: bool = true",
    "use_locking: bool = true", allows_uninitialized_input=True, shape=None,
)  # fmt: skip
op("AssignAdd", "ref: Ref(T), value: T -> output_ref: Ref(T)", "T: numbertype", "use_locking: bool = false", shape=None)
op("AssignSub", "ref: Ref(T), value: T -> output_ref: Ref(T)", "T: numbertype", "use_locking: bool = false", shape=None)
op("DestroyTemporaryVariable", "ref: Ref(T) -> value: T", "T: type", "var_name: string", shape=None)
op("IsVariableInitialized", "ref: Ref(dtype) -> is_initialized: bool", "dtype: type", allows_uninitialized_input=True,
    shape=None,
)  # fmt: skip
op("ResourceCountUpTo", "resource: resource -> output: T", "limit: int", "T: {int32, int64}", stateful=True, shape=None)
op("ResourceScatterAdd", "resource: resource, indices: Tindices, updates: dtype ->", "dtype: numbertype",
    "Tindices: {int32, int64}", stateful=True, shape=None,
)  # fmt: skip
op("ResourceScatterDiv", "resource: resource, indices: Tindices, updates: dtype ->", "dtype: numbertype",
    "Tindices: {int32, int64}", stateful=True, shape=None,
)  # fmt: skip
op("ResourceScatterMax", "resource: resource, indices: Tindices, updates: dtype ->", "dtype: numbertype",
    "Tindices: {int32, int64}", stateful=True, shape=None,
)  # fmt: skip
op("ResourceScatterMin", "resource: resource, indices: Tindices, updates: dtype ->", "dtype: numbertype",
    "Tindices: {int32, int64}", stateful=True, shape=None,
)  # fmt: skip
op("ResourceScatterMul", "resource: resource, indices: Tindices, updates: dtype ->", "dtype: numbertype",
    "Tindices: {int32, int64}", stateful=True, shape=None,
)  # fmt: skip
op("ResourceScatterNdAdd", "ref: resource, indices: Tindices, updates: T ->", "T: type", "Tindices: {int32, int64}",
    "use_locking: bool = true", "bad_indices_policy: string = ''", stateful=True, shape=None,
)  # fmt: skip
op("ResourceScatterNdSub", "ref: resource, indices: Tindices, updates: T ->", "T: type", "Tindices: {int32, int64}",
    "use_locking: bool = true", "bad_indices_policy: string = ''", stateful=True, shape=None,
)  # fmt: skip
op("ResourceScatterNdUpdate", "ref: resource, indices: Tindices, updates: T ->", "T: type", "Tindices: {int32, int64}",
    "use_locking: bool = true", "bad_indices_policy: string = ''", stateful=True, shape=None,
)  # fmt: skip
op("ResourceScatterSub", "resource: resource, indices: Tindices, updates: dtype ->", "dtype: numbertype",
    "Tindices: {int32, int64}", stateful=True, shape=None,
)  # fmt: skip
op("ResourceScatterUpdate", "resource: resource, indices: Tindices, updates: dtype ->", "dtype: type",
    "Tindices: {int32, int64}", stateful=True, shape=None,
)  # fmt: skip
op("ScatterAdd", "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)", "T: numbertype",
    "Tindices: {int32, int64}", "use_locking: bool = false", shape=None,
)  # fmt: skip
op("ScatterNdUpdate", "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)", "T: type",
    "Tindices: {int32, int64}", "use_locking: bool = true", "bad_indices_policy: string = ''", shape=None,
)  # fmt: skip
op("ScatterSub", "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)", "T: numbertype",
    "Tindices: {int32, int64}", "use_locking: bool = false", shape=None,
)  # fmt: skip
op("ScatterUpdate", "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)", "T: type",
    "Tindices: {int32, int64}", "use_locking: bool = true", shape=None,
)  # fmt: skip
op("StridedSliceAssign", "ref: Ref(T), begin: Index, end: Index, strides: Index, value: T -> output_ref: Ref(T)",
    "T: type", "Index: {int32, int64}", "begin_mask: int = 0", "end_mask: int = 0", "ellipsis_mask: int = 0",
    "new_axis_mask: int = 0", "shrink_axis_mask: int = 0", shape=None,
)  # fmt: skip
op("TemporaryVariable", "-> ref: Ref(dtype)", "shape: shape", "dtype: type", "var_name: string = ''", stateful=True,
    shape=None,
)  # fmt: skip
op("Variable", "-> ref: Ref(dtype)", "shape: shape", "dtype: type", "container: string = ''",
    "shared_name: string = ''", stateful=True, shape=None,
)  # fmt: skip
op("VariableV2", "-> ref: Ref(dtype)", "shape: shape", "dtype: type", "container: string = ''",
    "shared_name: string = ''", stateful=True, shape=None,
)  # fmt: skip
