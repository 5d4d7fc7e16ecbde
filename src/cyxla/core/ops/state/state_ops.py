"""Reference variables, and scatters into variables."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import explicit_shape, merge_both_inputs_shape, scalar_shape, unchanged_shape
from cyxla.core.framework.shape_fns.gathers import check_scatter, check_scatter_nd, variable_shape
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import SCALAR, UNKNOWN


def _assign_shape(c: InferenceContext) -> None:
    """Set the value's shape, which must fit the variable if validation is on."""
    c.set_output(0, c.merge(c.input(0), c.input(1)) if c.attr("validate_shape") else c.input(1))


def _variable_shape(c: InferenceContext) -> None:
    """Set the declared shape; for this legacy op, rank 0 means unknown."""
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
    doc="Assign a value to a variable.",
)  # fmt: skip
op("AssignAdd", "ref: Ref(T), value: T -> output_ref: Ref(T)", "T: numbertype", "use_locking: bool = false",
    shape=merge_both_inputs_shape, doc="Add to a variable.",
)  # fmt: skip
op("AssignSub", "ref: Ref(T), value: T -> output_ref: Ref(T)", "T: numbertype", "use_locking: bool = false",
    shape=merge_both_inputs_shape, doc="Subtract from a variable.",
)  # fmt: skip
op("DestroyTemporaryVariable", "ref: Ref(T) -> value: T", "T: type", "var_name: string", shape=unchanged_shape,
    doc="Delete a temporary variable and return its value.",
)  # fmt: skip
op("IsVariableInitialized", "ref: Ref(dtype) -> is_initialized: bool", "dtype: type", allows_uninitialized_input=True,
    shape=scalar_shape, doc="Test if a variable has a value.",
)  # fmt: skip
op("ResourceCountUpTo", "resource: resource -> output: T", "limit: int", "T: {int32, int64}", stateful=True,
    shape=_count_shape, doc="Return the number in a variable and increment it, up to a limit.",
)  # fmt: skip
op("ResourceScatterAdd", "resource: resource, indices: Tindices, updates: dtype ->", "dtype: numbertype",
    "Tindices: {int32, int64}", stateful=True, shape=_resource_scatter_shape, doc="Add to rows of a variable.",
)  # fmt: skip
op("ResourceScatterDiv", "resource: resource, indices: Tindices, updates: dtype ->", "dtype: numbertype",
    "Tindices: {int32, int64}", stateful=True, shape=_resource_scatter_shape, doc="Divide rows of a variable.",
)  # fmt: skip
op("ResourceScatterMax", "resource: resource, indices: Tindices, updates: dtype ->", "dtype: numbertype",
    "Tindices: {int32, int64}", stateful=True, shape=_resource_scatter_shape,
    doc="Replace rows of a variable by their maximum with updates.",
)  # fmt: skip
op("ResourceScatterMin", "resource: resource, indices: Tindices, updates: dtype ->", "dtype: numbertype",
    "Tindices: {int32, int64}", stateful=True, shape=_resource_scatter_shape,
    doc="Replace rows of a variable by their minimum with updates.",
)  # fmt: skip
op("ResourceScatterMul", "resource: resource, indices: Tindices, updates: dtype ->", "dtype: numbertype",
    "Tindices: {int32, int64}", stateful=True, shape=_resource_scatter_shape, doc="Multiply rows of a variable.",
)  # fmt: skip
op("ResourceScatterNdAdd", "ref: resource, indices: Tindices, updates: T ->", "T: type", "Tindices: {int32, int64}",
    "use_locking: bool = true", "bad_indices_policy: string = ''", stateful=True, shape=_resource_scatter_nd_shape,
    doc="Add to slices of a variable at vectors of indices.",
)  # fmt: skip
op("ResourceScatterNdSub", "ref: resource, indices: Tindices, updates: T ->", "T: type", "Tindices: {int32, int64}",
    "use_locking: bool = true", "bad_indices_policy: string = ''", stateful=True, shape=_resource_scatter_nd_shape,
    doc="Subtract from slices of a variable at vectors of indices.",
)  # fmt: skip
op("ResourceScatterNdUpdate", "ref: resource, indices: Tindices, updates: T ->", "T: type", "Tindices: {int32, int64}",
    "use_locking: bool = true", "bad_indices_policy: string = ''", stateful=True, shape=_resource_scatter_nd_shape,
    doc="Replace slices of a variable at vectors of indices.",
)  # fmt: skip
op("ResourceScatterSub", "resource: resource, indices: Tindices, updates: dtype ->", "dtype: numbertype",
    "Tindices: {int32, int64}", stateful=True, shape=_resource_scatter_shape, doc="Subtract from rows of a variable.",
)  # fmt: skip
op("ResourceScatterUpdate", "resource: resource, indices: Tindices, updates: dtype ->", "dtype: type",
    "Tindices: {int32, int64}", stateful=True, shape=_resource_scatter_shape, doc="Replace rows of a variable.",
)  # fmt: skip
op("ScatterAdd", "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)", "T: numbertype",
    "Tindices: {int32, int64}", "use_locking: bool = false", shape=_scatter_shape, doc="Add to rows of a variable.",
)  # fmt: skip
op("ScatterNdUpdate", "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)", "T: type",
    "Tindices: {int32, int64}", "use_locking: bool = true", "bad_indices_policy: string = ''", shape=_scatter_nd_shape,
    doc="Replace slices of a variable at vectors of indices.",
)  # fmt: skip
op("ScatterSub", "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)", "T: numbertype",
    "Tindices: {int32, int64}", "use_locking: bool = false", shape=_scatter_shape,
    doc="Subtract from rows of a variable.",
)  # fmt: skip
op("ScatterUpdate", "ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)", "T: type",
    "Tindices: {int32, int64}", "use_locking: bool = true", shape=_scatter_shape, doc="Replace rows of a variable.",
)  # fmt: skip
op("StridedSliceAssign", "ref: Ref(T), begin: Index, end: Index, strides: Index, value: T -> output_ref: Ref(T)",
    "T: type", "Index: {int32, int64}", "begin_mask: int = 0", "end_mask: int = 0", "ellipsis_mask: int = 0",
    "new_axis_mask: int = 0", "shrink_axis_mask: int = 0", shape=unchanged_shape,
    doc="Replace a strided slice of a variable.",
)  # fmt: skip
op("TemporaryVariable", "-> ref: Ref(dtype)", "shape: shape", "dtype: type", "var_name: string = ''", stateful=True,
    shape=explicit_shape, doc="Create a variable that lives within one step.",
)  # fmt: skip
op("Variable", "-> ref: Ref(dtype)", "shape: shape", "dtype: type", "container: string = ''",
    "shared_name: string = ''", stateful=True, shape=_variable_shape, doc="Return a reference to a variable.",
)  # fmt: skip
op("VariableV2", "-> ref: Ref(dtype)", "shape: shape", "dtype: type", "container: string = ''",
    "shared_name: string = ''", stateful=True, shape=explicit_shape, doc="Return a reference to a variable.",
)  # fmt: skip
