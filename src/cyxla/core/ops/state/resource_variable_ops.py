"""Resource variables."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import no_outputs, scalar_shape
from cyxla.core.framework.shape_fns.gathers import gather_nd_shape, gather_shape, split_nd_shape, variable_shape
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import SCALAR
from cyxla.errors import ShapeError


def _handle_shape(c: InferenceContext) -> None:
    """Set a scalar handle of a variable with the attributes ``shape`` and ``dtype``."""
    c.set_output(0, SCALAR)
    c.set_output_handle(0, ((c.attr("shape"), c.attr("dtype")),))


def _handles_shape(c: InferenceContext) -> None:
    shapes, dtypes = c.attr("shapes"), c.attr("dtypes")
    if not len(shapes) == len(dtypes) == c.num_outputs:
        raise ShapeError(f"{c.op_def.name}: {len(shapes)} shapes, {len(dtypes)} dtypes for {c.num_outputs} handles")
    for i, handle_data in enumerate(zip(shapes, dtypes, strict=True)):
        c.set_output(i, SCALAR)
        c.set_output_handle(i, (handle_data,))


def _read_shape(c: InferenceContext) -> None:
    c.set_output(0, variable_shape(c, dtype=c.attr("dtype")))
    inner = (c.input_handle(0) or ())[1:]  # shapes behind a value that is itself a handle
    if inner:
        c.set_output_handle(0, inner)


def _read_all_shape(c: InferenceContext) -> None:
    for i, dtype in enumerate(c.attr("dtypes")):
        c.set_output(i, variable_shape(c, i, dtype))


def _assign_shape(c: InferenceContext) -> None:
    """Check that the value fits the known shape of the variable."""
    c.merge(variable_shape(c, dtype=c.attr("dtype")), c.input(1))


def _shape_of_variable(c: InferenceContext) -> None:
    c.set_output(0, (variable_shape(c).rank,))


def _gather_shape(c: InferenceContext) -> None:
    params = c.with_rank_at_least(variable_shape(c, dtype=c.attr("dtype")), 1)
    batch_dims = c.attr("batch_dims")
    c.set_output(0, gather_shape(c, params, c.input(1), batch_dims, batch_dims))


def _gather_nd_shape(c: InferenceContext) -> None:
    c.set_output(0, gather_nd_shape(c, variable_shape(c, dtype=c.attr("dtype")), c.input(1)))


def _read_split_shape(c: InferenceContext) -> None:
    split_nd_shape(c, variable_shape(c, dtype=c.attr("T")))


op("AssignAddVariableOp", "resource: resource, value: dtype ->", "dtype: type", stateful=True, shape=_assign_shape,
    doc="Add to a variable.",
)  # fmt: skip
op("AssignSubVariableOp", "resource: resource, value: dtype ->", "dtype: type", stateful=True, shape=_assign_shape,
    doc="Subtract from a variable.",
)  # fmt: skip
op("AssignVariableOp", "resource: resource, value: dtype ->", "dtype: type", "validate_shape: bool = false",
    stateful=True, shape=_assign_shape, doc="Assign a value to a variable.",
)  # fmt: skip
op("AssignVariableXlaConcatND", "resource: resource, inputs: N * T ->", "T: type", "N: int", "num_concats: list(int)",
    "paddings: list(int) = []", stateful=True, shape=no_outputs, doc="Assign concatenated tiles to a variable.",
)  # fmt: skip
op("DestroyResourceOp", "resource: resource ->", "ignore_lookup_error: bool = true", stateful=True, shape=no_outputs,
    doc="Delete a resource.",
)  # fmt: skip
op("DisableCopyOnRead", "resource: resource ->", stateful=True, shape=no_outputs,
    doc="Let reads share the variable's memory again.",
)  # fmt: skip
op("MutexV2", "-> resource: resource", "container: string = ''", "shared_name: string = ''", stateful=True,
    shape=scalar_shape, doc="Create a lock.",
)  # fmt: skip
op("ReadVariableOp", "resource: resource -> value: dtype", "dtype: type", stateful=True, shape=_read_shape,
    doc="Read a variable.",
)  # fmt: skip
op("ReadVariableXlaSplitND", "resource: resource -> outputs: N * T", "T: type", "N: int", "num_splits: list(int)",
    "paddings: list(int) = []", stateful=True, shape=_read_split_shape, doc="Read a variable and split it into tiles.",
)  # fmt: skip
op("ResourceGather", "resource: resource, indices: Tindices -> output: dtype", "batch_dims: int = 0",
    "validate_indices: bool = true", "dtype: type", "Tindices: {int32, int64}", stateful=True, shape=_gather_shape,
    doc="Gather rows of a variable by index.",
)  # fmt: skip
op("ResourceGatherNd", "resource: resource, indices: Tindices -> output: dtype", "dtype: type",
    "Tindices: {int32, int64}", stateful=True, shape=_gather_nd_shape,
    doc="Gather slices of a variable by vectors of indices.",
)  # fmt: skip
op("VarHandleOp", "-> resource: resource", "container: string = ''", "shared_name: string = ''",
    "debug_name: string = ''", "dtype: type", "shape: shape", "allowed_devices: list(string) = []", stateful=True,
    shape=_handle_shape, doc="Return the handle of a variable.",
)  # fmt: skip
op("VarIsInitializedOp", "resource: resource -> is_initialized: bool", stateful=True, shape=scalar_shape,
    doc="Test if a variable has a value.",
)  # fmt: skip
op("VariableShape", "input: resource -> output: out_type", "out_type: {int32, int64} = DT_INT32", stateful=True,
    shape=_shape_of_variable, doc="Return the shape of a variable.",
)  # fmt: skip
op("_ReadVariablesOp", "resources: N * resource -> values: dtypes", "N: int >= 0", "dtypes: list(type)", stateful=True,
    shape=_read_all_shape, doc="Read several variables.",
)  # fmt: skip
op("_VarHandlesOp", "-> resources: N * resource", "containers: list(string)", "shared_names: list(string)",
    "N: int >= 0", "dtypes: list(type)", "shapes: list(shape)", stateful=True, shape=_handles_shape,
    doc="Return the handles of several variables.",
)  # fmt: skip
op("ResourceStridedSliceAssign", "ref: resource, begin: Index, end: Index, strides: Index, value: T ->", "T: type",
    "Index: {int32, int64}", "begin_mask: int = 0", "end_mask: int = 0", "ellipsis_mask: int = 0",
    "new_axis_mask: int = 0", "shrink_axis_mask: int = 0", stateful=True, shape=no_outputs,
    doc="Replace a strided slice of a variable.",
)  # fmt: skip
