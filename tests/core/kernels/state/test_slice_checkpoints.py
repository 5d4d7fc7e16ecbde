"""Checkpoints of version 1, and constants in files."""

import ml_dtypes
import numpy as np
import pytest

import cyxla
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.checkpoint.slice_file import SliceFileReader
from cyxla.core.framework.checkpoint.sorted_table import read_table, write_table
from cyxla.core.framework.protos import messages as proto
from cyxla.core.framework.types import as_data_type
from cyxla.core.graph.graph import Graph
from cyxla.errors import DataLossError, NotFoundError, OpError, PermissionDeniedError

F = np.float32


def texts(*items):
    return np.array([item.encode() for item in items], object)


def text(item):
    return np.array(str(item).encode(), object)


def save(path, slices=None, **tensors):
    names, values = texts(*tensors), list(tensors.values())
    if slices is None:
        apply_op("Save", text(path), names, values)
    else:
        apply_op("SaveSlices", text(path), names, texts(*slices), values)


def restore(path, name, dtype="float", part=None):
    if part is None:
        return apply_op("Restore", text(path), text(name), dt=dtype)
    return apply_op("RestoreSlice", text(path), text(name), text(part), dt=dtype)


def failure(call, *args, **kwargs):
    with pytest.raises(OpError) as caught:
        call(*args, **kwargs)
    return caught.value.code, caught.value.message


@pytest.mark.parametrize("dtype", [
    "float", "double", "half", "int8", "int16", "int32", "int64", "uint8", "uint16", "bool", "complex64", "complex128",
    "string",
])  # fmt: skip
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 2)])
def test_types_and_shapes(tmp_path, dtype, shape):
    rng = np.random.default_rng(7)
    value = (rng.normal(size=shape) * 50).astype("int64")
    if dtype == "string":
        value = np.array([str(v).encode() for v in value.flat] + [None], object)[:-1].reshape(shape)
    else:
        value = np.asarray(value).astype(as_data_type(dtype).numpy)
    save(tmp_path / "a.ckpt", x=value, other=F(1))
    found = restore(tmp_path / "a.ckpt", "x", dtype)
    assert (found.dtype, found.shape, found.tolist()) == (value.dtype, value.shape, value.tolist())
    (same,) = apply_op("RestoreV2", text(tmp_path / "a.ckpt"), texts("x"), texts(""), dtypes=[dtype])
    assert same.tolist() == value.tolist()


def test_the_file_is_a_table_of_messages(tmp_path):
    save(tmp_path / "a.ckpt", w=F([[1, 2], [3, 4]]))
    table = read_table((tmp_path / "a.ckpt").read_bytes())
    meta = proto.parse_binary("SavedTensorSlices", table[b""]).meta
    assert [(t.name, t.type, [d.size for d in t.shape.dim]) for t in meta.tensor] == [("w", 1, [2, 2])]
    assert meta.versions.producer == 1
    (key,) = [k for k in table if k]
    assert key.startswith(b"\0w\0\1\1\2")
    assert list(proto.parse_binary("SavedTensorSlices", table[key]).data.data.float_val) == [1, 2, 3, 4]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.ckpt"]


def test_slices_over_several_files(tmp_path):
    whole = np.arange(12, dtype=F).reshape(4, 3)
    save(tmp_path / "s-0", ["4 3 0,3:-"], w=whole[:3])
    save(tmp_path / "s-1", ["4 3 3,1:-"], w=whole[3:])
    pattern = tmp_path / "s-*"
    np.testing.assert_array_equal(restore(pattern, "w"), whole)
    for part, wanted in (("4 3 1,3:1,2", whole[1:, 1:]), ("4 3 -:-", whole), ("", whole), ("4 3 2,1:-", whole[2:3])):
        np.testing.assert_array_equal(restore(pattern, "w", part=part), wanted)
    assert failure(restore, tmp_path / "s-0", "w")[0] == "DATA_LOSS"
    np.testing.assert_array_equal(restore(tmp_path / "s-0", "w", part="4 3 0,2:-"), whole[:2])


@pytest.mark.parametrize("call, code, message", [
    (lambda p: restore(p / "none", "x"), "NOT_FOUND", "Unsuccessful TensorSliceReader constructor: Failed to find any "
     "matching files for PATH/none"),
    (lambda p: restore(p / "a", "y"), "NOT_FOUND", 'Tensor name "y" not found in checkpoint files PATH/a'),
    (lambda p: restore(p / "a", "x", "int32"), "INVALID_ARGUMENT", "Expected to restore a tensor of type int32, got a "
     "tensor of type float instead: tensor_name = x"),
    (lambda p: restore(p / "a", "x", part="3 0,1"), "INVALID_ARGUMENT", "Shape in shape_and_slice spec does not match "
     "the shape in the save file: [3], save file shape: [2]"),
    (lambda p: save(p / "b", x=np.uint32([1])), "INVALID_ARGUMENT", "Tensor slice serialization not implemented for "
     "dtype 22"),
    (lambda p: save(p / "b", x=ml_dtypes.bfloat16(1)), "UNIMPLEMENTED", "Saving data type bfloat16 not yet supported"),
    (lambda p: apply_op("SaveSlices", text(p / "b"), texts("x", "x"), texts("4 0,2", "3 0,1"), [F([1, 2]), F([1])]),
     "INTERNAL", "Mismatching shapes: existing tensor = [4], trying to add name x, shape = [3]"),
    (lambda p: apply_op("Restore", texts(str(p / "a"), "b"), text("x"), dt="float"), "INVALID_ARGUMENT", None),
    (lambda p: save(p / "b", ["3 0,1"], x=F([1, 2])), "INVALID_ARGUMENT", None),
    (lambda p: apply_op("Save", text(p / "b"), texts("x", "y"), [F(1)]), "INVALID_ARGUMENT", None),
])  # fmt: skip
def test_errors(tmp_path, call, code, message):
    save(tmp_path / "a", x=F([1, 2]))
    found = failure(call, tmp_path)
    assert found[0] == code
    assert message is None or found[1] == message.replace("PATH", str(tmp_path))


def test_damaged_files(tmp_path):
    path = tmp_path / "a"
    save(path, x=F([1, 2]))
    data = path.read_bytes()
    for broken in (data[:-9], data[:20] + b"\xff" + data[21:], b"text" * 20):
        path.write_bytes(broken)
        with pytest.raises(DataLossError):
            SliceFileReader(str(path))
    path.write_bytes(write_table([(b"key", b"value")]))
    with pytest.raises(DataLossError, match="no metadata"):
        SliceFileReader(str(path))


def test_a_failed_save_leaves_the_old_file(tmp_path):
    save(tmp_path / "a", x=F([1]))
    assert failure(save, tmp_path / "a", x=F([2]), y=np.uint64([1]))[0] == "INVALID_ARGUMENT"
    assert restore(tmp_path / "a", "x").tolist() == [1]
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_slice_has_a_shape_before_it_is_read():
    graph = Graph()
    with graph.as_default():
        shapes = [
            apply_op("RestoreSlice", text("f"), text("x"), text(part), dt="float").shape
            for part in ("4 3 0,2:-", "", "4 3")
        ]
    assert [str(s) for s in shapes] == ["[2,3]", "<unknown>", "<unknown>"]


# Constants in files ----------------------------------------------------------------------------------------------
def constant(path, dtype, shape):
    return apply_op("ImmutableConst", dtype=dtype, shape=shape, memory_region_name=str(path))


@pytest.mark.parametrize("dtype, shape", [("float", [2, 3]), ("int64", []), ("half", [0, 4]), ("bfloat16", [5])])
def test_constants_in_files(tmp_path, dtype, shape):
    values = np.arange(int(np.prod(shape))).reshape(shape).astype(as_data_type(dtype).numpy)
    (tmp_path / "c").write_bytes(values.tobytes() + b"more")
    found = constant(tmp_path / "c", dtype, shape)
    assert (found.dtype, found.shape, found.tolist()) == (values.dtype, values.shape, values.tolist())


def test_a_constant_is_mapped_and_not_writable(tmp_path):
    (tmp_path / "c").write_bytes(np.ones(4, F).tobytes())
    graph = Graph()
    with graph.as_default():
        y = constant(tmp_path / "c", "float", [4]) + F(1)
    assert cyxla.Session(graph).run(y).tolist() == [2] * 4
    assert not constant(tmp_path / "c", "float", [4]).flags.writeable


@pytest.mark.parametrize("name, dtype, shape, code, message", [
    ("none", "float",  [1], "NOT_FOUND",          None),
    ("c",    "float",  [2], "INTERNAL",           "Readonly memory region has wrong length (4) when allocating 8"),
    ("c",    "string", [1], "UNIMPLEMENTED",      "Sorry, DT_STRING is not currently supported for ImmutableConstOp."),
])  # fmt: skip
def test_wrong_constants(tmp_path, name, dtype, shape, code, message):
    (tmp_path / "c").write_bytes(b"1234")
    found = failure(constant, tmp_path / name, dtype, shape)
    assert found[0] == code
    assert message in (None, found[1])


def test_a_loaded_graph_reads_only_its_folder(tmp_path):
    save(tmp_path / "a", x=F([1]))
    graph = Graph()
    with graph.as_default():
        apply_op("Restore", text(tmp_path / "a"), text("x"), dt="float", name="x")
        apply_op("Save", text(tmp_path / "b"), texts("x"), [F(1)], name="save")
        apply_op("ImmutableConst", dtype="float", shape=[1], memory_region_name=str(tmp_path / "a"), name="c")
    loaded = cyxla.load_graph(graph.to_graph_def().SerializeToString())
    for fetch in ("x:0", "save", "c:0"):
        with pytest.raises(PermissionDeniedError):
            cyxla.Session(loaded).run(fetch)
    with pytest.raises(NotFoundError):
        cyxla.Session(loaded, allow_file_access=True).run("missing:0")
