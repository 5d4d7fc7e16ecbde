"""Lists of tensors."""

from cyxla.core.framework.op import op

op("EmptyTensorList", "element_shape: shape_type, max_num_elements: int32 -> handle: variant", "element_dtype: type",
    "shape_type: {int32, int64}", shape=None,
)  # fmt: skip
op("TensorListConcat", "input_handle: variant -> tensor: element_dtype, lengths: int64", "element_dtype: type",
    "element_shape: shape = { unknown_rank: true }", shape=None,
)  # fmt: skip
op("TensorListConcatLists", "input_a: variant, input_b: variant -> output: variant", "element_dtype: type", shape=None)
op("TensorListConcatV2",
    "input_handle: variant, element_shape: shape_type, leading_dims: int64 -> tensor: element_dtype, lengths: " "int64",
    "element_dtype: type", "shape_type: {int32, int64}", shape=None,
)  # fmt: skip
op("TensorListElementShape", "input_handle: variant -> element_shape: shape_type", "shape_type: {int32, int64}",
    shape=None,
)  # fmt: skip
op("TensorListFromTensor", "tensor: element_dtype, element_shape: shape_type -> output_handle: variant",
    "element_dtype: type", "shape_type: {int32, int64}", shape=None,
)  # fmt: skip
op("TensorListGather", "input_handle: variant, indices: int32, element_shape: int32 -> values: element_dtype",
    "element_dtype: type", shape=None,
)  # fmt: skip
op("TensorListGetItem", "input_handle: variant, index: int32, element_shape: Tshape -> item: element_dtype",
    "element_dtype: type", "Tshape: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("TensorListLength", "input_handle: variant -> length: int32", shape=None)
op("TensorListPopBack", "input_handle: variant, element_shape: int32 -> output_handle: variant, tensor: element_dtype",
    "element_dtype: type", shape=None,
)  # fmt: skip
op("TensorListPushBack", "input_handle: variant, tensor: element_dtype -> output_handle: variant",
    "element_dtype: type", shape=None,
)  # fmt: skip
op("TensorListPushBackBatch", "input_handles: variant, tensor: element_dtype -> output_handles: variant",
    "element_dtype: type", shape=None,
)  # fmt: skip
op("TensorListReserve", "element_shape: shape_type, num_elements: int32 -> handle: variant", "element_dtype: type",
    "shape_type: {int32, int64}", shape=None,
)  # fmt: skip
op("TensorListResize", "input_handle: variant, size: int32 -> output_handle: variant", shape=None)
op("TensorListScatter", "tensor: element_dtype, indices: int32, element_shape: shape_type -> output_handle: variant",
    "element_dtype: type", "shape_type: {int32, int64}", shape=None,
)  # fmt: skip
op("TensorListScatterIntoExistingList",
    "input_handle: variant, tensor: element_dtype, indices: int32 -> output_handle: variant", "element_dtype: type",
    shape=None,
)  # fmt: skip
op("TensorListScatterV2",
    "tensor: element_dtype, indices: int32, element_shape: shape_type, num_elements: int32 -> output_handle: "
    "variant", "element_dtype: type", "shape_type: {int32, int64}", shape=None,
)  # fmt: skip
op("TensorListSetItem", "input_handle: variant, index: int32, item: element_dtype -> output_handle: variant",
    "element_dtype: type", "resize_if_index_out_of_bounds: bool = false", shape=None,
)  # fmt: skip
op("TensorListSplit", "tensor: element_dtype, element_shape: shape_type, lengths: int64 -> output_handle: variant",
    "element_dtype: type", "shape_type: {int32, int64}", shape=None,
)  # fmt: skip
op("TensorListStack", "input_handle: variant, element_shape: int32 -> tensor: element_dtype", "element_dtype: type",
    "num_elements: int = -1", shape=None,
)  # fmt: skip
