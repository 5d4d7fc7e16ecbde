"""Maps of tensors."""

import numpy as np
import pytest

import cyxla
from cyxla.core.framework.apply import apply_op
from cyxla.core.graph.graph import Graph
from cyxla.core.runtime.session import Session
from cyxla.errors import InvalidArgumentError

F = np.float32
TYPES = {"key_dtype": "float", "value_dtype": "float"}


def made(*pairs):
    handle = apply_op("EmptyTensorMap")
    for key, value in pairs:
        handle = apply_op("TensorMapInsert", handle, key, value)
    return handle


def size(handle):
    return int(apply_op("TensorMapSize", handle))


@pytest.mark.parametrize("key, other", [
    (F(1),                         F(2)),
    (np.int64([1, 2]),             np.int64([[1, 2]])),
    (np.int32(1),                  np.int64(1)),
    (np.array(b"a", object),       np.array(b"b", object)),
    (np.array([b"a", b""], object), np.array([b"a", b"b"], object)),
    (F([[1, 2], [3, 4]]).T,        F([[1, 2], [3, 4]])),
])  # fmt: skip
def test_insert_look_up_erase(key, other):
    empty = made()
    handle = made((key, F([1, 2])), (other, F([3])), (key, F([5])))
    assert (size(empty), size(handle)) == (0, 2)
    assert apply_op("TensorMapLookup", handle, key, value_dtype="float").tolist() == [5]
    erased = apply_op("TensorMapErase", handle, key, value_dtype="float")
    assert [bool(apply_op("TensorMapHasKey", h, key)) for h in (handle, erased, empty)] == [True, False, False]
    assert apply_op("TensorMapLookup", erased, other, value_dtype="float").tolist() == [3]


def test_keys():
    handle = made((F([1, 2]), F(1)), (F([3, 4]), F(2)))
    assert sorted(apply_op("TensorMapStackKeys", handle, key_dtype="float").tolist()) == [[1, 2], [3, 4]]


@pytest.mark.parametrize("call, message", [
    (lambda: apply_op("TensorMapLookup", made(), F(7), value_dtype="float"), "Trying to lookup non-existent key. Could "
     'not find key "7".'),
    (lambda: apply_op("TensorMapErase", made(), np.array(b"k", object), value_dtype="float"), "Trying to erase "
     'non-existent item. Could not find key "k".'),
    (lambda: apply_op("TensorMapStackKeys", made(), key_dtype="float"), "TensorMapStackKeys cannot be called on empty "
     "map."),
    (lambda: apply_op("TensorMapStackKeys", made((F(1), F(1))), key_dtype="int32"), "Key does not match requested "
     "dtype."),
    (lambda: apply_op("TensorMapStackKeys", made((F(1), F(1)), (F([1]), F(1))), key_dtype="float"), "Keys must all "
     "have the same shape."),
    (lambda: size(apply_op("EmptyTensorList", -1, -1, element_dtype="float")), "Input handle is not a map. Saw: "
     "'TensorList'"),
    (lambda: apply_op("TensorMapLookup", made((F(1), F(1))), F(1), value_dtype="int32"), "the value of the key is of "
     "float32, but int32 is declared"),
])  # fmt: skip
def test_errors(call, message):
    with pytest.raises(InvalidArgumentError) as caught:
        call()
    assert caught.value.message == message


def test_sums_and_zeros():
    total = apply_op("AddN", [made((F(1), F(1)), (F(2), F(2))), made((F(2), F(5)), (F(3), F(3)))])
    values = [float(apply_op("TensorMapLookup", total, F(k), value_dtype="float")) for k in (1, 2, 3)]
    assert values == [1, 7, 3]
    zeros = apply_op("ZerosLike", total)
    assert float(apply_op("TensorMapLookup", zeros, F(2), value_dtype="float")) == 0


@pytest.mark.parametrize("jit", ["off", "auto"])
def test_gradients(jit):
    """Of a value that is read twice, of one that is erased, and of one that is overwritten."""
    graph = Graph()
    with graph.as_default():
        xs = [graph.placeholder("float", []) for _ in range(4)]
        handle = apply_op("EmptyTensorMap")
        for key, x in enumerate(xs[:3]):
            handle = apply_op("TensorMapInsert", handle, np.int32(key), x)
        handle = apply_op("TensorMapInsert", handle, np.int32(2), xs[3])
        first = apply_op("TensorMapLookup", handle, np.int32(0), value_dtype="float")
        handle = apply_op("TensorMapErase", handle, np.int32(1), value_dtype="float")
        again, last = (apply_op("TensorMapLookup", handle, np.int32(k), value_dtype="float") for k in (0, 2))
        y = first * again * last
        dxs = cyxla.gradients(y, xs)
    session = cyxla.Session(graph, jit=jit)
    feeds = dict(zip(xs, F([3, 5, 7, 11]), strict=True))
    assert [float(v) for v in session.run(dxs, feeds)] == [66, 0, 0, 9]


def test_maps_in_sessions_hold_strings_and_lists():
    graph = Graph()
    with graph.as_default():
        inner = apply_op("TensorMapInsert", apply_op("EmptyTensorMap"), np.array(b"x", object), F([1, 2]))
        outer = apply_op("TensorMapInsert", apply_op("EmptyTensorMap"), np.int32(1), inner)
        found = apply_op("TensorMapLookup", outer, np.int32(1), value_dtype="variant")
        y = apply_op("TensorMapLookup", found, np.array(b"x", object), value_dtype="float")
    assert Session(graph).run(y).tolist() == [1, 2]
