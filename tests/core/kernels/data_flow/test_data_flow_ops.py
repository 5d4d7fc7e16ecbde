"""Stacks, tensor arrays, optionals, partition and stitch."""

import numpy as np
import pytest

from cyxla.core.framework import apply_op
from cyxla.core.framework.types import as_data_type
from cyxla.core.graph.graph import Graph
from cyxla.core.runtime.session import Session
from cyxla.errors import InvalidArgumentError, ShapeError, UnimplementedError

F32 = np.float32
INDEX = np.int32


class Script:
    """Ops in the order in which they are written, in one step."""

    def __init__(self):
        self.graph, self.last, self.fetches = Graph(), [], []

    def __call__(self, op, *inputs, **attrs):
        with self.graph.as_default(), self.graph.control_dependencies(self.last):
            made = apply_op(op, *inputs, **attrs)
        first = made[0] if isinstance(made, tuple) else made
        node = getattr(first, "node", first)
        self.last = [node]
        return made

    def fetch(self, *tensors):
        """Values at the end."""
        self.fetches += tensors

    def run(self):
        """All that was fetched; every op runs."""
        session = Session(self.graph)
        return session.run([*self.fetches, *(node.name for node in self.last)])[: len(self.fetches)]


@pytest.fixture
def script():
    return Script()


# Stacks


def stack(script, size=-1, dtype="float"):
    return script("StackV2", INDEX(size), elem_type=dtype, stack_name="s")


@pytest.mark.parametrize("dtype", ["float", "bool", "string", "complex64", "bfloat16"])
def test_last_in_first_out(script, dtype):
    s = stack(script, dtype=dtype)
    values = [np.array(v, object) for v in (b"a", b"b")] if dtype == "string" else [
        np.array(v, as_data_type(dtype).numpy) for v in (0, 1)
    ]  # fmt: skip
    pushed = [script("StackPushV2", s, v) for v in values]
    popped = [script("StackPopV2", s, elem_type=dtype) for _ in values]
    script.fetch(*pushed, *popped)
    script("StackCloseV2", s)
    results = script.run()
    assert results == [*values, *reversed(values)]


def test_stacks_of_references(script):
    s = script("Stack", elem_type="float", stack_name="s")
    script("StackPush", s, F32(1))
    script.fetch(script("StackPop", s, elem_type="float"))
    script("StackClose", s)
    assert script.run() == [1]


def too_many(script):
    s = stack(script, 1)
    script("StackPushV2", s, F32(1))
    script("StackPushV2", s, F32(1))


def of_another_type(script):
    script("StackPushV2", stack(script), INDEX(1))


def popped_as_another_type(script):
    s = stack(script)
    script("StackPushV2", s, F32(1))
    script.fetch(script("StackPopV2", s, elem_type="int32"))


def empty(script):
    script.fetch(script("StackPopV2", stack(script), elem_type="float"))


def closed(script):
    s = stack(script)
    script("StackCloseV2", s)
    script("StackPushV2", s, F32(1))


BAD_STACKS = [
    (too_many, r"its max_size is 1"),
    (of_another_type, "holds float, but the op is declared for int32"),
    (popped_as_another_type, "holds float, but the op is declared for int32"),
    (empty, "is empty"),
    (closed, "was closed"),
]


@pytest.mark.parametrize("use, text", BAD_STACKS, ids=lambda v: getattr(v, "__name__", ""))
def test_misused_stacks(script, use, text):
    use(script)
    with pytest.raises(InvalidArgumentError, match=text):
        script.run()


# Tensor arrays


def array(script, size=2, dtype="float", **attrs):
    return script("TensorArrayV3", INDEX(size), dtype=dtype, **attrs)


def write(script, handle, flow, index, value):
    return script("TensorArrayWriteV3", handle, INDEX(index), value, flow)


def read(script, handle, flow, index, dtype="float"):
    return script("TensorArrayReadV3", handle, INDEX(index), flow, dtype=dtype)


def test_written_and_read(script):
    h, flow = array(script, clear_after_read=False)
    flow = write(script, h, flow, 0, F32([1]))
    flow = write(script, h, flow, 1, F32([2]))
    script.fetch(read(script, h, flow, 1), read(script, h, flow, 0), read(script, h, flow, 0))
    script.fetch(script("TensorArraySizeV3", h, flow), flow)
    script.fetch(script("TensorArrayGatherV3", h, np.array([1, 0, 1], INDEX), flow, dtype="float"))
    script.fetch(*script("TensorArrayConcatV3", h, flow, dtype="float"))
    assert [np.asarray(v).tolist() for v in script.run()] == [
        [2], [1], [1], 2, 0, [[2], [1], [2]], [1, 2], [1, 1],
    ]  # fmt: skip


def test_dynamic_arrays_grow(script):
    h, flow = array(script, 0, dynamic_size=True, element_shape=[2])
    flow = write(script, h, flow, 3, F32([1, 2]))
    script.fetch(script("TensorArraySizeV3", h, flow), read(script, h, flow, 1))
    assert [v.tolist() for v in script.run()] == [4, [0, 0]]


def test_scatter_and_split(script):
    h, flow = array(script, 3)
    flow = script("TensorArrayScatterV3", h, np.array([2, 0], INDEX), F32([[1], [2]]), flow)
    script.fetch(read(script, h, flow, 0), read(script, h, flow, 2))
    k, flow = array(script, 2)
    flow = script("TensorArraySplitV3", k, F32([1, 2, 3]), np.array([1, 2], np.int64), flow)
    script.fetch(read(script, k, flow, 0), read(script, k, flow, 1))
    assert [v.tolist() for v in script.run()] == [[2], [1], [1], [2, 3]]


def test_gradients_add_up(script):
    """One array of gradients for every source; unwritten ones are zeros like the elements."""
    h, flow = array(script, 2)
    flow = write(script, h, flow, 0, F32([1, 2]))
    flow = write(script, h, flow, 1, F32([3]))
    g, gflow = script("TensorArrayGradV3", h, flow, source="g")
    same, gflow = script("TensorArrayGradV3", h, gflow, source="g")
    gflow = write(script, g, gflow, 0, F32([1, 1]))
    gflow = write(script, same, gflow, 0, F32([1, 2]))
    script.fetch(read(script, g, gflow, 0), read(script, g, gflow, 1))
    other, oflow = script("TensorArrayGradV3", h, flow, source="other")
    script.fetch(read(script, other, oflow, 0))
    wide, wflow = script("TensorArrayGradWithShape", h, flow, np.array([3], INDEX), source="w")
    script.fetch(read(script, wide, wflow, 1))
    assert [v.tolist() for v in script.run()] == [[2, 3], [0], [0, 0], [[0], [0], [0]]]


def test_nothing_of_known_shape(script):
    h, flow = array(script, 0, element_shape=[3])
    script.fetch(script("TensorArrayGatherV3", h, np.array([], INDEX), flow, dtype="float"))
    script.fetch(*script("TensorArrayConcatV3", h, flow, dtype="float", element_shape_except0=[3]))
    assert [v.shape for v in script.run()] == [(0, 3), (0, 3), (0,)]


def twice(script, h, flow):
    write(script, h, write(script, h, flow, 0, F32(1)), 0, F32(1))


def read_and_written(script, h, flow):
    flow = write(script, h, flow, 0, F32(1))
    script.fetch(read(script, h, flow, 0))
    write(script, h, flow, 0, F32(1))


def read_twice(script, h, flow):
    flow = write(script, h, flow, 0, F32(1))
    script.fetch(read(script, h, flow, 0), read(script, h, flow, 0))


def used_after_close(script, h, flow):
    script("TensorArrayCloseV3", h)
    write(script, h, flow, 0, F32(1))


def grown_under_gradients(script, h, flow):
    h, flow = array(script, 1, dynamic_size=True)
    script("TensorArrayGradV3", h, flow, source="g")
    write(script, h, flow, 1, F32(1))


def gradients_of_other_shape(script, h, flow):
    g, flow = script("TensorArrayGradV3", h, flow, source="g")
    write(script, g, write(script, g, flow, 0, F32([1])), 0, F32([1, 2]))


def other_shapes_where_all_are_one(script, h, flow):
    h, flow = array(script, identical_element_shapes=True)
    write(script, h, write(script, h, flow, 0, F32(1)), 1, F32([1]))


def concat(script, h, flow, *values):
    for i, value in enumerate(values):
        flow = write(script, h, flow, i, value)
    script.fetch(*script("TensorArrayConcatV3", h, flow, dtype="float"))


BAD_ARRAYS = [
    (twice, "it was written before"),
    (read_and_written, "it was read before"),
    (read_twice, "cleared when it was read before"),
    (used_after_close, "was closed"),
    (grown_under_gradients, "there are 1 elements"),
    (gradients_of_other_shape, "cannot be added to"),
    (other_shapes_where_all_are_one, "elements have \\[\\]"),
    (lambda s, h, f: write(s, h, f, 2, F32(1)), "there are 2 elements"),
    (lambda s, h, f: write(s, h, f, -1, F32(1)), "element -1"),
    (lambda s, h, f: write(s, h, f, 0, INDEX(1)), "write of int32"),
    (lambda s, h, f: s.fetch(read(s, h, f, 0)), "never written"),
    (lambda s, h, f: s.fetch(read(s, h, f, 5)), "element 5 .* there are 2 elements"),
    (lambda s, h, f: s.fetch(read(s, h, f, 0, "int32")), "read of int32"),
    (lambda s, h, f: s("TensorArrayScatterV3", h, np.array([2], INDEX), F32([1]), f), r"index 2 lies outside"),
    (lambda s, h, f: s("TensorArrayScatterV3", h, np.array([0, 1], INDEX), F32([1]), f), "2 indices for 1 rows"),
    (lambda s, h, f: s("TensorArraySplitV3", h, F32([1, 2]), np.array([1], np.int64), f), "add up to 1"),
    (lambda s, h, f: s("TensorArraySplitV3", h, F32([1]), np.array([1], np.int64), f), "1 lengths for 2 elements"),
    (lambda s, h, f: concat(s, h, f, F32(1), F32(1)), "element 0 is a scalar"),
    (lambda s, h, f: concat(s, h, f, F32([[1]]), F32([[1, 2]])), "\\[1, 2\\], element 0 \\[1, 1\\]"),
]


@pytest.mark.parametrize("use, text", BAD_ARRAYS, ids=[b[1] for b in BAD_ARRAYS])
def test_misused_arrays(script, use, text):
    h, flow = array(script)
    use(script, h, flow)
    with pytest.raises(InvalidArgumentError, match=text):
        script.run()


def test_nothing_of_unknown_shape(script):
    h, flow = array(script, 0)
    script.fetch(script("TensorArrayGatherV3", h, np.array([], INDEX), flow, dtype="float"))
    with pytest.raises(UnimplementedError, match="has no elements"):
        script.run()


def test_no_array_of_negative_size(script):
    script.fetch(array(script, -1)[1])
    with pytest.raises(InvalidArgumentError, match="0 elements or more"):
        script.run()


# Optionals


def test_optionals():
    some = apply_op("OptionalFromValue", [F32(1), np.array([2], INDEX)])
    none = apply_op("OptionalNone")
    assert [bool(apply_op("OptionalHasValue", v)) for v in (some, none)] == [True, False]
    facts = {"output_types": ["float", "int32"], "output_shapes": [[], [1]]}
    assert [v.tolist() for v in apply_op("OptionalGetValue", some, **facts)] == [1, [2]]
    with pytest.raises(InvalidArgumentError, match="has no value"):
        apply_op("OptionalGetValue", none, **facts)
    with pytest.raises(InvalidArgumentError, match="component 0 is float32, not int32"):
        apply_op("OptionalGetValue", some, output_types=["int32", "int32"], output_shapes=[[], [1]])
    with pytest.raises(InvalidArgumentError, match="component 1 has the shape"):
        apply_op("OptionalGetValue", some, output_types=["float", "int32"], output_shapes=[[], [2]])
    with pytest.raises(InvalidArgumentError, match="not an optional"):
        apply_op("OptionalHasValue", np.array(3, object))


# Partition and stitch


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (0,)])
def test_stitch_undoes_partition(shape):
    rng = np.random.default_rng(0)
    partitions = rng.integers(0, 3, shape).astype(INDEX)
    data = rng.standard_normal((*shape, 2)).astype(F32)
    places = np.arange(partitions.size, dtype=INDEX).reshape(shape)
    parts = apply_op("DynamicPartition", data, partitions, num_partitions=3)
    spots = apply_op("DynamicPartition", places, partitions, num_partitions=3)
    for op in ("DynamicStitch", "ParallelDynamicStitch"):
        np.testing.assert_array_equal(apply_op(op, spots, parts), data.reshape(-1, 2))


def test_the_last_of_equal_indices_stays():
    indices = [np.array([0, 2, 0], INDEX), np.array(2, INDEX)]
    merged = apply_op("DynamicStitch", indices, [F32([1, 2, 3]), F32(4)])
    assert (merged[0], merged[2], merged.shape) == (3, 4, (3,))


BAD_MOVES = [
    ("DynamicPartition", (F32([1]), np.array([2], INDEX)), {"num_partitions": 2}, r"partitions\[0\] = 2 lies outside"),
    (
        "DynamicPartition",
        (F32([1]), np.array([0, 1], INDEX)),
        {"num_partitions": 2},
        "must begin with|compatible|equal|Dimensions",
    ),
    ("DynamicStitch", ([np.array([-1], INDEX)], [F32([1])]), {}, "must not be negative"),
    ("DynamicStitch", ([np.array([0, 1], INDEX)], [F32([1])]), {}, "does not start with|compatible|equal|Dimensions"),
]


@pytest.mark.parametrize("op, args, attrs, text", BAD_MOVES, ids=[b[3][:20] for b in BAD_MOVES])
def test_refusals(op, args, attrs, text):
    with pytest.raises((InvalidArgumentError, ShapeError), match=text):
        apply_op(op, *args, **attrs)


def test_tensor_arrays_named_by_two_strings():
    """The second version of tensor arrays, of graphs written by old programs."""
    script = Script()
    handle = script("TensorArrayV2", INDEX(0), dtype="float", dynamic_size=True, clear_after_read=False)
    flow = script("TensorArrayScatterV2", handle, INDEX([1, 0]), F32([[1, 2], [3, 4]]), F32(0))
    flow = script("TensorArrayWriteV2", handle, INDEX(2), F32([5, 6]), flow)
    script.fetch(
        script("TensorArraySizeV2", handle, flow),
        script("TensorArrayReadV2", handle, INDEX(0), flow, dtype="float"),
        script("TensorArrayGatherV2", handle, INDEX([2, 1]), flow, dtype="float"),
        *script("TensorArrayConcatV2", handle, flow, dtype="float"),
    )
    gradient = script("TensorArrayGradV2", handle, flow, source="gradients")
    flow = script("TensorArraySplitV2", gradient, F32([[1, 1], [2, 2], [3, 3]]).ravel(), np.int64([2, 2, 2]), flow)
    script.fetch(script("TensorArrayReadV2", gradient, INDEX(1), flow, dtype="float"))
    script("TensorArrayCloseV2", handle)
    size, first, two, joined, lengths, slope = script.run()
    assert (int(size), first.tolist(), two.tolist(), slope.tolist()) == (3, [3, 4], [[5, 6], [1, 2]], [2, 2])
    assert (joined.tolist(), lengths.tolist()) == ([3, 4, 1, 2, 5, 6], [2, 2, 2])
    assert str(handle.shape) == "[2]"
