"""Gradients of ops on tensor lists: the gradient of a list is a list of gradients."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient, no_gradient
from cyxla.core.gradients.common import Tensor


def _shape(x: Tensor) -> Tensor:
    return apply_op("Shape", x)


def _inner_shape(x: Tensor) -> Tensor:
    """Return the shape of the slices of a tensor."""
    return apply_op("StridedSlice", _shape(x), [1], [0], [1], end_mask=1)


def _element_shape(handle: Tensor) -> Tensor:
    return apply_op("TensorListElementShape", handle, shape_type="int32")


def _length(handle: Tensor) -> Tensor:
    return apply_op("TensorListLength", handle)


def _item(handle: Tensor, index: Tensor, like: Tensor) -> Tensor:
    return apply_op("TensorListGetItem", handle, index, _shape(like), element_dtype=like.dtype)


def _gather(handle: Tensor, indices: Tensor, like: Tensor) -> Tensor:
    return apply_op("TensorListGather", handle, indices, _inner_shape(like), element_dtype=like.dtype)


@gradient("TensorListPushBack")
def push_back_grad(op: Any, dlist: Tensor) -> Any:
    """Pop the gradient of the element."""
    element = op.inputs[1]
    return apply_op("TensorListPopBack", dlist, _shape(element), element_dtype=element.dtype)


@gradient("TensorListPopBack", none_grads=True)
def pop_back_grad(op: Any, dlist: Tensor, delement: Tensor) -> tuple[Tensor, None]:
    """Push the gradient of the element."""
    element = op.outputs[1]
    if dlist is None:
        before = apply_op("TensorListLength", op.outputs[0])
        dlist = apply_op("TensorListReserve", _element_shape(op.inputs[0]), before, element_dtype=element.dtype)
    if delement is None:
        delement = apply_op("ZerosLike", element)
    return apply_op("TensorListPushBack", dlist, delement), None


@gradient("TensorListStack")
def stack_grad(op: Any, dtensor: Tensor) -> tuple[Tensor, None]:
    """Split the gradient into one slice per element."""
    return apply_op("TensorListFromTensor", dtensor, _inner_shape(dtensor)), None


@gradient("TensorListFromTensor")
def from_tensor_grad(op: Any, dlist: Tensor) -> tuple[Tensor, None]:
    """Stack the gradients of the elements."""
    x = op.inputs[0]
    count = x.shape[0] if x.shape.rank and x.shape[0] is not None else -1
    return apply_op("TensorListStack", dlist, _inner_shape(x), element_dtype=x.dtype, num_elements=count), None


@gradient("TensorListConcat", "TensorListConcatV2")
def concat_grad(op: Any, dtensor: Tensor, _: Any) -> list[Any]:
    """Split the gradient at the lengths."""
    lengths = op.outputs[1]
    shape = apply_op("ConcatV2", [[-1], _inner_shape(dtensor)], 0)
    return [apply_op("TensorListSplit", dtensor, shape, lengths), *[None] * (len(op.inputs) - 1)]


@gradient("TensorListSplit")
def split_grad(op: Any, dlist: Tensor) -> tuple[Tensor, None, None]:
    """Concatenate the gradients of the parts."""
    x, _, lengths = op.inputs
    shape = apply_op("ConcatV2", [[-1], _inner_shape(x)], 0)
    return apply_op("TensorListConcatV2", dlist, shape, lengths, element_dtype=x.dtype)[0], None, None


@gradient("TensorListGetItem")
def get_item_grad(op: Any, ditem: Tensor) -> tuple[Tensor, None, None]:
    """Make a list with the gradient of the item only."""
    handle, index = op.inputs[:2]
    zero_list = apply_op("TensorListReserve", _element_shape(handle), _length(handle), element_dtype=ditem.dtype)
    return apply_op("TensorListSetItem", zero_list, index, ditem), None, None


@gradient("TensorListSetItem")
def set_item_grad(op: Any, dlist: Tensor) -> tuple[Tensor, None, Tensor]:
    """Take the gradient of the item, and replace it by zeros in the list."""
    _, index, item = op.inputs
    rest = apply_op("TensorListSetItem", dlist, index, apply_op("ZerosLike", item))
    return rest, None, _item(dlist, index, item)


@gradient("TensorListResize")
def resize_grad(op: Any, dlist: Tensor) -> tuple[Tensor, None]:
    """Restore the original length."""
    return apply_op("TensorListResize", dlist, _length(op.inputs[0])), None


@gradient("TensorListGather")
def gather_grad(op: Any, dtensor: Tensor) -> tuple[Tensor, None, None]:
    """Scatter the gradients into a list of the same length."""
    handle, indices = op.inputs[:2]
    scattered = apply_op("TensorListScatterV2", dtensor, indices, _element_shape(handle), _length(handle))
    return scattered, None, None


@gradient("TensorListScatter", "TensorListScatterV2")
def scatter_grad(op: Any, dlist: Tensor) -> list[Any]:
    """Gather the gradients of the rows."""
    tensor, indices = op.inputs[:2]
    return [_gather(dlist, indices, tensor), *[None] * (len(op.inputs) - 1)]


@gradient("TensorListScatterIntoExistingList")
def scatter_into_grad(op: Any, dlist: Tensor) -> tuple[Tensor, Tensor, None]:
    """Gather the gradients of the written rows, and replace them by zeros in the list."""
    _, tensor, indices = op.inputs
    rest = apply_op("TensorListScatterIntoExistingList", dlist, apply_op("ZerosLike", tensor), indices)
    return rest, _gather(dlist, indices, tensor), None


no_gradient(
    "EmptyTensorList", "TensorListConcatLists", "TensorListElementShape", "TensorListLength", "TensorListPushBackBatch",
    "TensorListReserve",
)  # fmt: skip
