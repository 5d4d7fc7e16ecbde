"""Tensor lists."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import scalar_shape, unchanged_shape
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import SCALAR, UNKNOWN, TensorShape


def _element_shape(c: InferenceContext, i: int | str) -> TensorShape:
    """Merge the element shape of a shape input with that of the list."""
    handle = c.input_handle(0)
    return c.merge(c.make_shape_from_shape_tensor(i), handle[0][0] if handle else UNKNOWN)


def _new_list(c: InferenceContext, shape: TensorShape) -> None:
    c.set_output(0, SCALAR)
    c.set_output_handle(0, ((shape, c.attr("element_dtype")),))


def _empty_shape(c: InferenceContext) -> None:
    """Set a list with the element shape of the first input."""
    c.with_rank(c.input(1), 0)
    _new_list(c, c.make_shape_from_shape_tensor(0))


def _from_tensor_shape(c: InferenceContext) -> None:
    """Set a list whose elements are rows of a tensor."""
    rows = c.sub_shape(c.with_rank_at_least(c.input(0), 1), 1)
    _new_list(c, c.merge(c.make_shape_from_shape_tensor("element_shape"), rows))


def _split_shape(c: InferenceContext) -> None:
    """Set a list whose elements are parts of a tensor."""
    c.with_rank_at_least(c.input(0), 1)
    c.with_rank(c.input(2), 1)
    _new_list(c, c.make_shape_from_shape_tensor(1))


def _same_list_shape(c: InferenceContext) -> None:
    """Forward the list's handle."""
    c.set_output(0, c.input(0))
    c.set_output_handle(0, c.input_handle(0))


def _pop_shape(c: InferenceContext) -> None:
    _same_list_shape(c)
    c.set_output(1, _element_shape(c, 1))


def _item_shape(c: InferenceContext) -> None:
    c.with_rank(c.input(1), 0)
    c.set_output(0, _element_shape(c, 2))


def _rank_shape(c: InferenceContext) -> None:
    """Set a vector; if nothing is known of the elements, the value is the scalar -1."""
    handle = c.input_handle(0)
    if handle and handle[0][0].rank is not None:
        c.set_output(0, (handle[0][0].rank,))


def _stack_shape(c: InferenceContext) -> None:
    count = c.attr("num_elements")
    c.set_output(0, c.concatenate(c.vector(None if count < 0 else count), _element_shape(c, 1)))


def _gather_shape(c: InferenceContext) -> None:
    c.set_output(0, c.concatenate(c.with_rank(c.input(1), 1), _element_shape(c, 2)))


def _concat_shape(c: InferenceContext) -> None:
    """Set the concatenated elements, and the vector of their lengths."""
    handle = c.input_handle(0)
    c.set_output(1, (None,))
    if c.op_def.find_input("element_shape"):
        shape = c.with_rank_at_least(_element_shape(c, 1), 1)
    else:
        shape = c.with_rank_at_least(c.merge(c.attr("element_shape"), handle[0][0] if handle else UNKNOWN), 1)
    c.set_output(0, c.concatenate(c.vector(None), c.sub_shape(shape, 1)))


op("EmptyTensorList", "element_shape: shape_type, max_num_elements: int32 -> handle: variant", "element_dtype: type",
    "shape_type: {int32, int64}", shape=_empty_shape, doc="Make an empty list.",
)  # fmt: skip
op("TensorListConcat", "input_handle: variant -> tensor: element_dtype, lengths: int64", "element_dtype: type",
    "element_shape: shape = { unknown_rank: true }", shape=_concat_shape,
    doc="Concatenate the elements of a list, and return their lengths.",
)  # fmt: skip
op("TensorListConcatLists", "input_a: variant, input_b: variant -> output: variant", "element_dtype: type",
    shape=unchanged_shape, doc="Concatenate lists pairwise.",
)  # fmt: skip
op("TensorListConcatV2",
    "input_handle: variant, element_shape: shape_type, leading_dims: int64 -> tensor: element_dtype, lengths: int64",
    "element_dtype: type", "shape_type: {int32, int64}", shape=_concat_shape,
    doc="Concatenate the elements of a list, and return their lengths.",
)  # fmt: skip
op("TensorListElementShape", "input_handle: variant -> element_shape: shape_type", "shape_type: {int32, int64}",
    shape=_rank_shape, doc="Return the shape of a list's elements.",
)  # fmt: skip
op("TensorListFromTensor", "tensor: element_dtype, element_shape: shape_type -> output_handle: variant",
    "element_dtype: type", "shape_type: {int32, int64}", shape=_from_tensor_shape,
    doc="Make a list of the rows of a tensor.",
)  # fmt: skip
op("TensorListGather", "input_handle: variant, indices: int32, element_shape: int32 -> values: element_dtype",
    "element_dtype: type", shape=_gather_shape, doc="Stack selected elements of a list.",
)  # fmt: skip
op("TensorListGetItem", "input_handle: variant, index: int32, element_shape: Tshape -> item: element_dtype",
    "element_dtype: type", "Tshape: {int32, int64} = DT_INT32", shape=_item_shape, doc="Return an element of a list.",
)  # fmt: skip
op("TensorListLength", "input_handle: variant -> length: int32", shape=scalar_shape,
    doc="Return the number of elements of a list.",
)  # fmt: skip
op("TensorListPopBack", "input_handle: variant, element_shape: int32 -> output_handle: variant, tensor: element_dtype",
    "element_dtype: type", shape=_pop_shape, doc="Return a list without its last element, and that element.",
)  # fmt: skip
op("TensorListPushBack", "input_handle: variant, tensor: element_dtype -> output_handle: variant",
    "element_dtype: type", shape=_same_list_shape, doc="Append an element to a list.",
)  # fmt: skip
op("TensorListPushBackBatch", "input_handles: variant, tensor: element_dtype -> output_handles: variant",
    "element_dtype: type", shape=_same_list_shape, doc="Append a row to each list of a batch.",
)  # fmt: skip
op("TensorListReserve", "element_shape: shape_type, num_elements: int32 -> handle: variant", "element_dtype: type",
    "shape_type: {int32, int64}", shape=_empty_shape, doc="Make a list of elements that are not set.",
)  # fmt: skip
op("TensorListResize", "input_handle: variant, size: int32 -> output_handle: variant", shape=_same_list_shape,
    doc="Change the length of a list.",
)  # fmt: skip
op("TensorListScatter", "tensor: element_dtype, indices: int32, element_shape: shape_type -> output_handle: variant",
    "element_dtype: type", "shape_type: {int32, int64}", shape=_from_tensor_shape,
    doc="Make a list with the rows of a tensor at given indices.",
)  # fmt: skip
op("TensorListScatterIntoExistingList",
    "input_handle: variant, tensor: element_dtype, indices: int32 -> output_handle: variant", "element_dtype: type",
    shape=_same_list_shape, doc="Replace elements of a list by the rows of a tensor.",
)  # fmt: skip
op("TensorListScatterV2",
    "tensor: element_dtype, indices: int32, element_shape: shape_type, num_elements: int32 -> output_handle: "
    "variant", "element_dtype: type", "shape_type: {int32, int64}", shape=_from_tensor_shape,
    doc="Make a list of a given length with the rows of a tensor at given indices.",
)  # fmt: skip
op("TensorListSetItem", "input_handle: variant, index: int32, item: element_dtype -> output_handle: variant",
    "element_dtype: type", "resize_if_index_out_of_bounds: bool = false", shape=_same_list_shape,
    doc="Replace an element of a list.",
)  # fmt: skip
op("TensorListSplit", "tensor: element_dtype, element_shape: shape_type, lengths: int64 -> output_handle: variant",
    "element_dtype: type", "shape_type: {int32, int64}", shape=_split_shape,
    doc="Make a list of consecutive parts of a tensor.",
)  # fmt: skip
op("TensorListStack", "input_handle: variant, element_shape: int32 -> tensor: element_dtype", "element_dtype: type",
    "num_elements: int = -1", shape=_stack_shape, doc="Stack the elements of a list.",
)  # fmt: skip
