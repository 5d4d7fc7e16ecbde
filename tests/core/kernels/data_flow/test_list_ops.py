"""Lists of tensors: values that fork, elements that were never set, and every refusal."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyxla.core.framework import TensorShape, apply_op, as_data_type
from cyxla.core.kernels.lib.tensor_list import TensorList, as_handle
from cyxla.errors import InvalidArgumentError, ShapeError

SCALAR, ANY = np.zeros(0, np.int32), np.array(-1, np.int32)


def vec(*values, dtype=np.int32):
    return np.array(values, dtype)


def handle(items, shape=None, dtype="float", limit=-1):
    arrays = [None if v is None else np.asarray(v, as_data_type(dtype).numpy) for v in items]
    return as_handle(TensorList(as_data_type(dtype), TensorShape(shape), arrays, limit))


def items(value):
    return [None if v is None else v.tolist() for v in value.item().items]


TYPES = ["float", "half", "bfloat16", "double", "int32", "int64", "uint8", "bool", "complex64", "string"]


@pytest.mark.parametrize("dtype", TYPES)
def test_in_and_out(dtype):
    """Rows of a tensor come back as a tensor, in every type; those never set are zeros."""
    numpy = as_data_type(dtype).numpy
    x = np.array([[b"a", b"b"], [b"", b"c"]], object) if dtype == "string" else np.array([[1, 0], [2, 3]], numpy)
    value = apply_op("TensorListFromTensor", x, vec(2))
    np.testing.assert_array_equal(apply_op("TensorListStack", value, vec(2), element_dtype=dtype), x)
    last, popped = apply_op("TensorListPopBack", value, vec(2), element_dtype=dtype)[::-1]
    np.testing.assert_array_equal(last, x[1])
    assert popped.item().size == 1
    empty = apply_op("TensorListReserve", vec(2), np.int32(2), element_dtype=dtype)
    got = apply_op("TensorListStack", empty, ANY, element_dtype=dtype)
    want = np.full((2, 2), b"", object) if dtype == "string" else np.zeros((2, 2), numpy)
    np.testing.assert_array_equal(got, want)
    assert got.dtype == numpy


def test_a_list_is_a_value():
    """Pushing twice onto one list gives two lists."""
    one = apply_op("TensorListPushBack", handle([]), np.float32(1))
    two = apply_op("TensorListPushBack", one, np.float32(2))
    other = apply_op("TensorListPushBack", one, np.float32(3))
    changed = apply_op("TensorListSetItem", two, np.int32(0), np.float32(9))
    assert [items(v) for v in (one, two, other, changed)] == [[1], [1, 2], [1, 3], [9, 2]]
    back = apply_op("TensorListPopBack", two, SCALAR, element_dtype="float")[0]
    again = apply_op("TensorListPushBack", back, np.float32(4))
    assert [items(v) for v in (two, back, again)] == [[1, 2], [1], [1, 4]]


@given(st.lists(st.sampled_from(["push", "pop", "set", "resize"]), max_size=30), st.data())
def test_any_history_is_that_of_python_lists(steps, data):
    """Later operations on a list do not change earlier versions of it."""
    versions = [(handle([]), [])]
    for number, step in enumerate(steps):
        value, model = versions[data.draw(st.integers(0, len(versions) - 1))]
        x = np.float32(number)
        if step == "push":
            value, model = apply_op("TensorListPushBack", value, x), [*model, float(x)]
        elif step == "resize":
            size = data.draw(st.integers(0, 5))
            value = apply_op("TensorListResize", value, np.int32(size))
            model = (model + [None] * size)[:size]
        elif not model:
            continue
        elif step == "pop":
            value, _ = apply_op("TensorListPopBack", value, SCALAR, element_dtype="float")
            model = model[:-1]
        else:
            place = data.draw(st.integers(0, len(model) - 1))
            value = apply_op("TensorListSetItem", value, np.int32(place), x)
            model = [*model[:place], float(x), *model[place + 1 :]]
        versions.append((value, model))
    for value, model in versions:
        assert items(value) == model


def test_building_a_long_list_copies_nothing():
    value = handle([])
    for k in range(20_000):
        value = apply_op("TensorListPushBack", value, np.float32(k)) if k < 5 else as_handle(value.item().push(None))
    assert value.item().size == 20_000
    assert apply_op("TensorListLength", value) == 20_000


def test_shapes():
    for shape in (None, [], [2, None], [3]):
        told = apply_op("TensorListElementShape", handle([], shape), shape_type="int64")
        assert told.dtype == np.int64
        assert told.tolist() == (-1 if shape is None else [-1 if d is None else d for d in shape])


def test_elements_that_were_not_set():
    """Zeros of a known shape, be it told, given, or that of another element; else an error."""
    known = handle([None, None], [2])
    assert apply_op("TensorListGetItem", known, np.int32(1), ANY, element_dtype="float").tolist() == [0, 0]
    given_ = handle([None], None)
    assert apply_op("TensorListGetItem", given_, np.int32(0), vec(1), element_dtype="float").tolist() == [0]
    like = handle([[1, 2], None], None)
    assert apply_op("TensorListStack", like, ANY, element_dtype="float").tolist() == [[1, 2], [0, 0]]
    assert apply_op("TensorListPopBack", like, vec(2), element_dtype="float")[1].tolist() == [0, 0]
    assert apply_op("TensorListGetItem", like, np.int32(1), ANY, element_dtype="float").tolist() == [0, 0]
    assert apply_op("TensorListGather", like, vec(1, 0), ANY, element_dtype="float").tolist() == [[0, 0], [1, 2]]
    mixed = handle([[1, 2], [3], [4]], None)  # only what is gathered must be of one shape
    assert apply_op("TensorListGather", mixed, vec(1, 2), ANY, element_dtype="float").tolist() == [[3], [4]]


def test_scatter():
    x = np.float32([[1], [2]])
    made = apply_op("TensorListScatter", x, vec(3, 0), vec(1))
    assert items(made) == [[2], None, None, [1]]
    wide = apply_op("TensorListScatterV2", x, vec(1, 0), vec(1), np.int32(4))
    assert items(wide) == [[2], [1], None, None]
    over = apply_op("TensorListScatterIntoExistingList", handle([[7], [8]], [1]), x, vec(2, 1))
    assert items(over) == [[7], [2], [1]]


def test_split_and_concat():
    x = np.arange(6, dtype=np.float32).reshape(6, 1)
    parts = apply_op("TensorListSplit", x, vec(-1, 1), vec(1, 0, 5, dtype=np.int64))
    assert [len(v) for v in parts.item().items] == [1, 0, 5]
    joined, lengths = apply_op("TensorListConcatV2", parts, vec(-1, 1), vec(dtype=np.int64), element_dtype="float")
    np.testing.assert_array_equal(joined, x)
    assert lengths.tolist() == [1, 0, 5]
    gaps = handle([[[1.0]], None], [None, 1])
    joined, lengths = apply_op("TensorListConcatV2", gaps, vec(-1, 1), vec(5, 2, dtype=np.int64), element_dtype="float")
    assert joined.tolist() == [[1], [0], [0]]
    assert lengths.tolist() == [1, 2]
    like = apply_op("TensorListConcat", handle([[1.0, 2.0], None], None), element_dtype="float")[0]
    assert like.tolist() == [1, 2, 0, 0]  # as long as the others, where these are of one length
    told = apply_op("TensorListConcatV2", handle([None], [2]), vec(2), vec(3, dtype=np.int64), element_dtype="float")
    assert [v.tolist() for v in told] == [[0, 0, 0], [3]]  # what is told for it goes first
    nothing, lengths = apply_op("TensorListConcat", handle([], [None, 3]), element_dtype="float")
    assert (nothing.shape, lengths.shape) == ((0, 3), (0,))


def test_batches_of_lists():
    both = np.array([handle([1]).item(), handle([2]).item()], object)
    pushed = apply_op("TensorListPushBackBatch", both, np.float32([5, 6]))
    assert [[float(v) for v in t.items] for t in pushed] == [[1, 5], [2, 6]]
    joined = apply_op("TensorListConcatLists", both, pushed, element_dtype="float")
    assert [[float(v) for v in t.items] for t in joined] == [[1, 1, 5], [2, 2, 6]]


def test_sums_and_zeros_of_lists():
    total = apply_op("AddN", [handle([1, None]), handle([2, 3])])
    assert items(total) == [3, 3]
    assert items(apply_op("ZerosLike", total)) == [0, 0]
    with pytest.raises(InvalidArgumentError, match="cannot be added"):
        apply_op("AddN", [handle([1]), handle([])])


F32, I64 = np.float32, np.int64
REFUSALS = [
    ("TensorListPushBack", (handle([], [2]), F32(1)), {}, "does not fit"),
    ("TensorListPushBack", (handle([], [], limit=0), F32(1)), {}, "list is full"),
    (
        "TensorListPushBack",
        (handle([]), np.int32(1)),
        {},
        "for elements of int32",
    ),
    ("TensorListPushBack", (np.array(None, object), F32(1)), {}, "not a list"),
    ("TensorListPopBack", (handle([]), SCALAR), {"element_dtype": "float"}, "is empty"),
    ("TensorListPopBack", (handle([[1], None]), ANY), {"element_dtype": "float"}, "was not set"),
    ("TensorListGetItem", (handle([1]), np.int32(1), SCALAR), {"element_dtype": "float"}, "index 1 is out of range"),
    ("TensorListGetItem", (handle([1]), np.int32(-1), SCALAR), {"element_dtype": "float"}, "index -1 is out of range"),
    ("TensorListSetItem", (handle([1]), np.int32(1), F32(1)), {}, "element 1 cannot be set"),
    ("TensorListSetItem", (handle([1], []), np.int32(0), F32([1])), {}, "does not fit"),
    ("TensorListReserve", (SCALAR, np.int32(-1)), {"element_dtype": "float"}, "0 elements or more"),
    ("TensorListReserve", (np.int32(3), np.int32(1)), {"element_dtype": "float"}, "a scalar shape must be -1"),
    ("TensorListResize", (handle([]), np.int32(-1)), {}, "0 elements or more"),
    ("TensorListStack", (handle([]), ANY), {"element_dtype": "float"}, "empty list can be stacked only"),
    ("TensorListStack", (handle([None]), ANY), {"element_dtype": "float"}, "no element was set"),
    ("TensorListStack", (handle([1]), SCALAR), {"element_dtype": "float", "num_elements": 2}, "num_elements is 2"),
    ("TensorListStack", (handle([1, [2]]), ANY), {"element_dtype": "float"}, "not compatible"),
    ("TensorListGather", (handle([1]), vec(1), SCALAR), {"element_dtype": "float"}, "index 1 lies outside"),
    ("TensorListGather", (handle([1]), vec(), ANY), {"element_dtype": "float"}, "an empty gather needs"),
    ("TensorListScatter", (F32([1]), vec(-1), SCALAR), {}, "must not be negative"),
    ("TensorListScatter", (F32([1]), vec(0, 1), SCALAR), {}, "2 indices for 1 rows"),
    ("TensorListScatterV2", (F32([1]), vec(3), SCALAR, np.int32(2)), {}, "index 3 lies outside"),
    ("TensorListFromTensor", (F32(1), SCALAR), {}, "is a scalar"),
    ("TensorListFromTensor", (F32([1]), vec(2)), {}, "rows of the tensor are"),
    ("TensorListSplit", (F32([1, 2]), vec(-1), vec(1, dtype=I64)), {}, "add up to 1"),
    ("TensorListSplit", (F32([1, 2]), vec(-1), vec(1, 2, dtype=I64)), {}, "reach row 3"),
    ("TensorListSplit", (F32([1, 2]), vec(-1), vec(3, -1, dtype=I64)), {}, "reach row 3"),
    ("TensorListConcatV2", (handle([1]), ANY, vec(dtype=I64)), {"element_dtype": "float"}, "first dimension"),
    (
        "TensorListConcatV2",
        (handle([None], [None]), ANY, vec(dtype=I64)),
        {"element_dtype": "float"},
        "leading_dims has",
    ),
    ("TensorListConcatV2", (handle([]), ANY, vec(dtype=I64)), {"element_dtype": "float"}, "All except the first"),
    (
        "TensorListConcatV2",
        (handle([[1], None, [1, 2]]), ANY, vec(dtype=I64)),
        {"element_dtype": "float"},
        "element 1 was never set",
    ),
    (
        "TensorListConcatV2",
        (handle([[1]]), vec(2), vec(dtype=I64)),
        {"element_dtype": "float"},
        "is 1, but element_shape",
    ),
]


@pytest.mark.parametrize("op, args, attrs, text", REFUSALS, ids=[f"{r[0]}-{r[3][:20]}" for r in REFUSALS])
def test_refusals(op, args, attrs, text):
    with pytest.raises((InvalidArgumentError, ShapeError), match=text):
        apply_op(op, *args, **attrs)


def test_bfloat16_lists_add():
    value = handle([1.5], dtype="bfloat16")
    assert apply_op("AddN", [value, value]).item().at(0).dtype == ml_dtypes.bfloat16
