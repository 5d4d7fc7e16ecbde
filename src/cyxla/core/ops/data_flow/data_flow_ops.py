"""Stacks, tensor arrays, optionals, dynamic partition and stitch."""

from __future__ import annotations

from collections.abc import Callable

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import no_outputs, scalar_outputs, scalar_shape, unknown_shape
from cyxla.core.framework.shape_fns.handles import check_pair_handle, pair_handle_shape
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import SCALAR, UNKNOWN, Dim
from cyxla.errors import ShapeError

# Partition and stitch --------------------------------------------------------------------------------------------


def _partition_shape(c: InferenceContext) -> None:
    """Set partitions with an unknown number of rows."""
    data, parts = c.input(0), c.input(1)
    if parts.rank is None:
        return
    data, parts = c.merge_prefix(data, parts)
    part = c.concatenate(c.vector(None), c.sub_shape(data, parts.rank or 0))
    for i in range(c.num_outputs):
        c.set_output(i, part)


def _stitch_shape(c: InferenceContext) -> None:
    """Set the number of rows to the largest index plus one."""
    rest, rows, all_known = UNKNOWN, 0, True
    for i, (indices, data) in enumerate(zip(c.inputs("indices"), c.inputs("data"), strict=True)):
        value = c.input_tensor(i)
        all_known = all_known and value is not None
        if value is not None and value.size:
            rows = max(rows, int(value.max()) + 1)
        if indices.rank is not None:
            data, indices = c.merge_prefix(data, indices)
            rest = c.merge(rest, c.sub_shape(data, indices.rank or 0))
    c.set_output(0, c.concatenate(c.vector(rows if all_known else None), rest))


def _optional_values_shape(c: InferenceContext) -> None:
    shapes = c.attr("output_shapes")
    if len(shapes) != c.num_outputs:
        raise ShapeError(f"OptionalGetValue: {len(shapes)} output_shapes are given for {c.num_outputs} outputs")
    for i, shape in enumerate(shapes):
        c.set_output(i, shape)


# Stacks and tensor arrays ----------------------------------------------------------------------------------------


def _push_shape(c: InferenceContext) -> None:
    c.set_output(0, c.input(1))


def _ranks(**ranks: int) -> Callable[[InferenceContext], None]:
    """Make a shape function that checks ranks of inputs by name and sets scalar outputs."""

    def fn(c: InferenceContext) -> None:
        for name, rank in ranks.items():
            c.with_rank(c.input(name), rank)
        scalar_outputs(c)

    return fn


def _rows(c: InferenceContext, count: Dim, attr: str) -> None:
    c.set_output(0, c.concatenate(c.vector(count), c.attr(attr)))


def _gather_shape(c: InferenceContext) -> None:
    """Set one element per index."""
    c.with_rank(c.input("flow_in"), 0)
    _rows(c, c.with_rank(c.input("indices"), 1)[0], "element_shape")


def _concat_shape(c: InferenceContext) -> None:
    """Set the concatenated elements, and the vector of their lengths."""
    c.with_rank(c.input("flow_in"), 0)
    _rows(c, None, "element_shape_except0")
    c.set_output(1, (None,))


def _read_shape(c: InferenceContext) -> None:
    c.with_rank(c.input("index"), 0)
    c.with_rank(c.input("flow_in"), 0)


def _grad_shape(c: InferenceContext) -> None:
    c.with_rank(c.input("flow_in"), 0)
    for i in range(c.num_outputs):
        c.set_output(i, SCALAR)


def _ranks_only(**ranks: int) -> Callable[[InferenceContext], None]:
    """Make a shape function that checks ranks of inputs by name."""

    def fn(c: InferenceContext) -> None:
        for name, rank in ranks.items():
            c.with_rank(c.input(name), rank)

    return fn


def _check_legacy_handle(c: InferenceContext) -> None:
    check_pair_handle(c, 0)


def _legacy(shape: Callable[[InferenceContext], None]) -> Callable[[InferenceContext], None]:
    """Make a shape function that also checks a handle of two strings."""

    def fn(c: InferenceContext) -> None:
        check_pair_handle(c, 0)
        shape(c)

    return fn


op("DynamicPartition", "data: T, partitions: int32 -> outputs: num_partitions * T", "num_partitions: int", "T: type",
    shape=_partition_shape, doc="Split rows into several arrays by partition number.",
)  # fmt: skip
op("DynamicStitch", "indices: N * int32, data: N * T -> merged: T", "N: int", "T: type", shape=_stitch_shape,
    doc="Merge rows of several arrays by index.",
)  # fmt: skip
op("ParallelDynamicStitch", "indices: N * int32, data: N * T -> merged: T", "N: int", "T: type", shape=_stitch_shape,
    doc="Merge rows of several arrays by index, in any order.",
)  # fmt: skip
op("OptionalFromValue", "components: Toutput_types -> optional: variant", "Toutput_types: list(type)",
    shape=scalar_shape, doc="Make an optional that holds values.",
)  # fmt: skip
op("OptionalGetValue", "optional: variant -> components: output_types", "output_types: list(type)",
    "output_shapes: list(shape) >= 1", shape=_optional_values_shape, doc="Return the values of an optional.",
)  # fmt: skip
op("OptionalHasValue", "optional: variant -> has_value: bool", shape=scalar_shape,
    doc="Test if an optional holds values.",
)  # fmt: skip
op("OptionalNone", "-> optional: variant", shape=scalar_shape, doc="Make an optional without values.")
op("Stack", "-> handle: Ref(string)", "elem_type: type", "stack_name: string = ''", stateful=True,
    shape=pair_handle_shape, doc="Create a stack of tensors.",
)  # fmt: skip
op("StackClose", "handle: Ref(string) ->", shape=no_outputs, doc="Close a stack.")
op("StackCloseV2", "handle: resource ->", stateful=True, shape=no_outputs, doc="Close a stack.")
op("StackPop", "handle: Ref(string) -> elem: elem_type", "elem_type: type", shape=unknown_shape,
    doc="Pop the last element of a stack.",
)  # fmt: skip
op("StackPopV2", "handle: resource -> elem: elem_type", "elem_type: type", stateful=True, shape=unknown_shape,
    doc="Pop the last element of a stack.",
)  # fmt: skip
op("StackPush", "handle: Ref(string), elem: T -> output: T", "T: type", "swap_memory: bool = false", shape=_push_shape,
    doc="Push an element onto a stack.",
)  # fmt: skip
op("StackPushV2", "handle: resource, elem: T -> output: T", "T: type", "swap_memory: bool = false", stateful=True,
    shape=_push_shape, doc="Push an element onto a stack.",
)  # fmt: skip
op("StackV2", "max_size: int32 -> handle: resource", "elem_type: type", "stack_name: string = ''", stateful=True,
    shape=_ranks(max_size=0), doc="Create a stack of tensors.",
)  # fmt: skip
op("TensorArrayCloseV3", "handle: resource ->", stateful=True, shape=no_outputs, doc="Close a tensor array.")
op("TensorArrayConcatV3", "handle: resource, flow_in: float -> value: dtype, lengths: int64", "dtype: type",
    "element_shape_except0: shape = { unknown_rank: true }", stateful=True, shape=_concat_shape,
    doc="Concatenate the elements of a tensor array, and return their lengths.",
)  # fmt: skip
op("TensorArrayGatherV3", "handle: resource, indices: int32, flow_in: float -> value: dtype", "dtype: type",
    "element_shape: shape = { unknown_rank: true }", stateful=True, shape=_gather_shape,
    doc="Stack selected elements of a tensor array.",
)  # fmt: skip
op("TensorArrayGradV3", "handle: resource, flow_in: float -> grad_handle: resource, flow_out: float", "source: string",
    stateful=True, shape=_grad_shape, doc="Return the tensor array that accumulates the gradients of another.",
)  # fmt: skip
op("TensorArrayGradWithShape",
    "handle: resource, flow_in: float, shape_to_prepend: int32 -> grad_handle: resource, flow_out: float",
    "source: string", stateful=True, shape=_grad_shape,
    doc="Return the tensor array that accumulates the gradients of another, with leading dimensions added.",
)  # fmt: skip
op("TensorArrayReadV3", "handle: resource, index: int32, flow_in: float -> value: dtype", "dtype: type", stateful=True,
    shape=_read_shape, doc="Read an element of a tensor array.",
)  # fmt: skip
op("TensorArrayScatterV3", "handle: resource, indices: int32, value: T, flow_in: float -> flow_out: float", "T: type",
    stateful=True, shape=_ranks(indices=1, flow_in=0), doc="Write rows to elements of a tensor array.",
)  # fmt: skip
op("TensorArraySizeV3", "handle: resource, flow_in: float -> size: int32", stateful=True, shape=_ranks(flow_in=0),
    doc="Return the number of elements of a tensor array.",
)  # fmt: skip
op("TensorArraySplitV3", "handle: resource, value: T, lengths: int64, flow_in: float -> flow_out: float", "T: type",
    stateful=True, shape=_ranks(lengths=1, flow_in=0), doc="Write parts of a tensor to a tensor array.",
)  # fmt: skip
_FLOW = "flow_in: float"
_LEGACY_ARRAYS = {  # arguments after the handle, outputs, attributes, True if stateful, shape function, description
    "Close": ("", "", (), False, _check_legacy_handle, "Close a tensor array."),
    "Concat": (
        f", {_FLOW}", "value: dtype, lengths: int64",
        ("dtype: type", "element_shape_except0: shape = { unknown_rank: true }"), False, _legacy(_concat_shape),
        "Concatenate the elements of a tensor array, and return their lengths.",
    ),
    "Gather": (
        f", indices: int32, {_FLOW}", "value: dtype",
        ("dtype: type", "element_shape: shape = { unknown_rank: true }"), False, _legacy(_ranks_only(indices=1)),
        "Stack selected elements of a tensor array.",
    ),
    "Grad": (
        f", {_FLOW}", "grad_handle: string", ("source: string",), True, _legacy(pair_handle_shape),
        "Return the tensor array that accumulates the gradients of another.",
    ),
    "Read": (
        f", index: int32, {_FLOW}", "value: dtype", ("dtype: type",), False, _legacy(_ranks_only(index=0)),
        "Read an element of a tensor array.",
    ),
    "Scatter": (
        f", indices: int32, value: T, {_FLOW}", "flow_out: float", ("T: type",), False, _legacy(_ranks(indices=1)),
        "Write rows to elements of a tensor array.",
    ),
    "Size": (
        f", {_FLOW}", "size: int32", (), False, _legacy(_ranks()), "Return the number of elements of a tensor array.",
    ),
    "Split": (
        f", value: T, lengths: int64, {_FLOW}", "flow_out: float", ("T: type",), False, _legacy(_ranks(lengths=1)),
        "Write parts of a tensor to a tensor array.",
    ),
    "Write": (
        f", index: int32, value: T, {_FLOW}", "flow_out: float", ("T: type",), False, _legacy(_ranks(index=0)),
        "Write an element of a tensor array.",
    ),
}  # fmt: skip
for _name, (_inputs, _outputs, _attrs, _stateful, _shape, _doc) in _LEGACY_ARRAYS.items():
    op(f"TensorArray{_name}V2", f"handle: string{_inputs} -> {_outputs}", *_attrs, stateful=_stateful, shape=_shape,
        doc=_doc, deprecated=None if _name == "Concat" else (26, f"Use TensorArray{_name}V3."),
    )  # fmt: skip

op("TensorArrayV2", "size: int32 -> handle: string", "dtype: type", "element_shape: shape = { unknown_rank: true }",
    "dynamic_size: bool = false", "clear_after_read: bool = true", "tensor_array_name: string = ''", stateful=True,
    deprecated=(26, "Use TensorArrayV3."), shape=pair_handle_shape,
    doc="Create an array of tensors, each written once.",
)  # fmt: skip
op("TensorArrayV3", "size: int32 -> handle: resource, flow: float", "dtype: type",
    "element_shape: shape = { unknown_rank: true }", "dynamic_size: bool = false", "clear_after_read: bool = true",
    "identical_element_shapes: bool = false", "tensor_array_name: string = ''", stateful=True, shape=_ranks(size=0),
    doc="Create an array of tensors, each written once.",
)  # fmt: skip
op("TensorArrayWriteV3", "handle: resource, index: int32, value: T, flow_in: float -> flow_out: float", "T: type",
    stateful=True, shape=_ranks(index=0, flow_in=0), doc="Write an element of a tensor array.",
)  # fmt: skip
