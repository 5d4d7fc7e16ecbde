"""Variables behind references, and scatters into variables."""

from cyxla.core.framework.common_shape_fns import explicit_shape, merge_both_inputs_shape, scalar_shape, unchanged_shape
from cyxla.core.framework.gather_shape_fns import check_scatter, check_scatter_nd, variable_shape
from cyxla.core.framework.op import op
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import SCALAR, UNKNOWN


def _assign_shape(c: InferenceContext) -> None:
    """The variable takes the value's shape, or must have it already."""
    c.set_output(0, c.merge(c.input(0), c.input(1)) if c.attr("validate_shape") else c.input(1))


def _variable_shape(c: InferenceContext) -> None:
    """In this old op a shape without dimensions stands for an unknown one."""
    c.set_output(0, UNKNOWN if c.attr("shape").rank == 0 else c.attr("shape"))


def _count_shape(c: InferenceContext) -> None:
    c.set_output(0, c.merge(SCALAR, variable_shape(c, dtype=c.attr("T"))))


def _scatter_shape(c: InferenceContext) -> None:
    check_scatter(c, c.input(0), c.input(1), c.input(2))
    c.set_output(0, c.input(0))


def _scatter_nd_shape(c: InferenceContext) -> None:
    check_scatter_nd(c, c.input(0), c.input(1), c.input(2))
    c.set_output(0, c.input(0))


def _resource_scatter_shape(c: InferenceContext) -> None:
    check_scatter(c, variable_shape(c, dtype=c.attr("dtype")), c.input(1), c.input(2))


def _resource_scatter_nd_shape(c: InferenceContext) -> None:
    check_scatter_nd(c, variable_shape(c, dtype=c.attr("T")), c.input(1), c.input(2))


op("Assign", "ref: Ref(T), value: T -> output_ref: Ref(T)", "T: type", "validate_shape: bool = true",
    "use_locking: bool = true", allows_uninitialized_input=True, shape=_assign_shape,
)  # fmt: skip
op("AssignAdd", "ref: Ref(T), value: T -> output_ref: Ref(T)", "T: numbertype", "use_locking: bool = false",
    shape=merge_both_inputs_shape,
)  # fmt: skip
op("AssignSub", "ref: Ref(T), value: T -> output_ref: Ref(T)", "T: numbertype", "use_locking: bool = false",
    shape=merge_both_inputs_shape,
)  # fmt: skip
op("DestroyTemporaryVariable", "ref: Ref(T) -> value: T", "T: type", "var_name: string", shape=unchanged_shape)
op("IsVariableInitialized", "ref: Ref(dtype) -> is_initialized: bool", "dtype: type", allows_uninitialized_input=True,
    shape=scalar_shape,
)  # fmt: skip
op("ResourceCountUpTo", "resource: resource -> output: T", "limit: int", "T: {int32, int64}", stateful=True,
    shape=_count_shape,
)  # fmt: skip
op("ResourceScatterAdd", "resource: resource, indices: Tindices, updates: dtype ->", "dtype: numbertype",
    "Tindices: {int32, int64}", stateful=True, shape=_resource_scatter_shape,
)  # fmt: skip
op("ResourceScatterDiv", "resource: resource, indices: Tindices, updates: dtype ->", "dtype: numbertype",
    "Tindices: {int32, int64}", stateful=True, shape=_resource_scatter_shape,
)  # fmt: skip
op("ResourceScatterMax", "resource: resource, indices: Tindices, updates: dtype ->", "dtype: numbertype",
    "Tindices: {int32, int64}", stateful=True, shape=_resource_scatter_shape,
)  # fmt: skip
op("ResourceScatterMin", "resource: resource, indices: Tindices, updates: dtype ->", "dtype: numbertype",
    "Tindices: {int32, int64}", stateful=True, shape=_resource_scatter_shape,
)  # fmt: skip
op("ResourceScatterMul", "resource: resource, indices: Tindices, updates: dtype ->", "dtype: numbertype",
    "Tindices: {int32, int64}", stateful=True, shape=_resource_scatter_shape,
)  # fmt: skip
op("ResourceScatterNdAdd", "ref: resource, indices: Tindices, updates: T ->", "T: type", "Tindices: {int32, int64}",
    "use_locking: bool = true", "bad_indices_policy: string = ''", stateful=True, shape=_resource_scatter_nd_shape,
)  # fmt: skip
op("ResourceScatterNdSub", "ref: resource, indices: Tindices, updates: T ->", "T: type", "Tindices: {int32, int64}",
    "use_locking: bool = true", "bad_indices_policy: string = ''", stateful=True, shape=_resource_scatter_nd_shape,
)  # fmt: skip
op("ResourceScatterNdUpdate", "ref: resource, indices: Tindices, updates: T ->", "T: type", "Tindices: {int32, int64}",
    "use_locking: bool = true", "bad_indices_policy: string = ''", stateful=True, shape=_resource_scatter_nd_shape,
)  # fmt: skip
op("ResourceScatterSub", "resource: resource, indices: Tindices, updates: dtype ->", "dtype: numbertype",
    "Tindices: {int32, int64}", stateful=True, shape=_resource_scatter_shape,
)  # fmt: skip
op("ResourceScatterUpdate", "resource: resource, indices: Tindices, updates: dtype ->", "dtype: type",
    "Tindices: {int32, int64}", stateful=True, shape=_resource_scatter_shape,
)  # fmt: skip
op("ScatterAdd", "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)", "T: numbertype",
    "Tindices: {int32, int64}", "use_locking: bool = false", shape=_scatter_shape,
)  # fmt: skip
op("ScatterNdUpdate", "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)", "T: type",
    "Tindices: {int32, int64}", "use_locking: bool = true", "bad_indices_policy: string = ''", shape=_scatter_nd_shape,
)  # fmt: skip
op("ScatterSub", "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)", "T: numbertype",
    "Tindices: {int32, int64}", "use_locking: bool = false", shape=_scatter_shape,
)  # fmt: skip
op("ScatterUpdate", "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)", "T: type",
    "Tindices: {int32, int64}", "use_locking: bool = true", shape=_scatter_shape,
)  # fmt: skip
op("StridedSliceAssign", "ref: Ref(T), begin: Index, end: Index, strides: Index, value: T -> output_ref: Ref(T)",
    "T: type", "Index: {int32, int64}", "begin_mask: int = 0", "end_mask: int = 0", "ellipsis_mask: int = 0",
    "new_axis_mask: int = 0", "shrink_axis_mask: int = 0", shape=unchanged_shape,
)  # fmt: skip
op("TemporaryVariable", "-> ref: Ref(dtype)", "shape: shape", "dtype: type", "var_name: string = ''", stateful=True,
    shape=explicit_shape,
)  # fmt: skip
op("Variable", "-> ref: Ref(dtype)", "shape: shape", "dtype: type", "container: string = ''",
    "shared_name: string = ''", stateful=True, shape=_variable_shape,
)  # fmt: skip
op("VariableV2", "-> ref: Ref(dtype)", "shape: shape", "dtype: type", "container: string = ''",
    "shared_name: string = ''", stateful=True, shape=explicit_shape,
)  # fmt: skip
