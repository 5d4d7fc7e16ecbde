"""Compiled lists, stacks and tensor arrays against eager ones, or against the rules of a fixed buffer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.graphs.compiled import PLATFORMS, check, close, drawn, run

import cyxla
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.attr_value import NameAttrList
from cyxla.core.framework.types import DataType, as_data_type
from cyxla.core.graph.function_body import graph_to_function
from cyxla.core.graph.graph import Graph
from cyxla.errors import InvalidArgumentError, OpError, ShapeError, UnimplementedError

Array = np.ndarray[Any, Any]
Build = Callable[..., Any]
TYPES = ["float", "half", "bfloat16", "double", "int32", "int64", "uint8", "bool", "complex64"]
SCALAR, ANY = np.zeros(0, np.int32), np.array(-1, np.int32)
I = np.int32  # noqa: E741 - the type of indices


def results(jit: str, platform: str, build: Build, *feeds: Array) -> list[Array]:
    """Return the results of a graph; its builder takes a script, which orders stateful ops, and the feeds."""
    graph = Graph()
    named: dict[str, Array] = {}
    with graph.as_default():
        given = []
        for array in feeds:
            given.append(graph.placeholder(as_data_type(array.dtype), array.shape))
            named[given[-1].name] = array
        made = build(*given)
    outputs = made if isinstance(made, (list, tuple)) else [made]
    found = cyxla.Session(graph, jit=jit, platform=platform).run([o.name for o in outputs], named)
    return [np.asarray(x) for x in found]


def agree(build: Build, *feeds: Array) -> list[Array]:
    """The same eagerly and compiled."""
    wanted = results("off", "cpu", build, *feeds)
    for platform in PLATFORMS:
        close(results("on", platform, build, *feeds), wanted)
    return wanted


def values(dtype: str, *shape: int) -> Array:
    kind = as_data_type(dtype).numpy
    return drawn(shape, np.float32).astype(kind) if dtype not in ("bool", "uint8") else (drawn(shape) > 0).astype(kind)


# Lists


@pytest.mark.parametrize("dtype", TYPES)
def test_rows_become_a_list_and_a_tensor_again(dtype: str) -> None:
    kind = as_data_type(dtype)

    def build(x: Any, item: Any) -> Any:
        held = apply_op("TensorListFromTensor", x, np.array([2], I))
        held = apply_op("TensorListSetItem", held, I(1), item)
        stacked = apply_op("TensorListStack", held, ANY, element_dtype=kind)
        one = apply_op("TensorListGetItem", held, I(2), ANY, element_dtype=kind)
        rows = apply_op("TensorListGather", held, np.array([2, 0, 2], I), ANY, element_dtype=kind)
        length = apply_op("TensorListLength", held)
        shape = apply_op("TensorListElementShape", held, shape_type=DataType.DT_INT64)
        joined, lengths = apply_op("TensorListConcatV2", held, ANY, np.zeros(0, np.int64), element_dtype=kind)
        return [stacked, one, rows, length, shape, joined, lengths]

    agree(build, values(dtype, 3, 2), values(dtype, 2))


@pytest.mark.parametrize("known", [True, False])
def test_pushing_and_popping(known: bool) -> None:
    """A list is a value: pushing onto it does not change it."""

    def build(x: Any, y: Any) -> Any:
        empty = apply_op("EmptyTensorList", np.array([2], I) if known else ANY, I(3), element_dtype=DataType.DT_FLOAT)
        one = apply_op("TensorListPushBack", empty, x)
        two, three = (apply_op("TensorListPushBack", one, v) for v in (y, x + y))
        found = []
        for held in (two, three):
            held, last = apply_op("TensorListPopBack", held, ANY, element_dtype=DataType.DT_FLOAT)
            held, first = apply_op("TensorListPopBack", held, ANY, element_dtype=DataType.DT_FLOAT)
            found += [last, first]
        return found

    agree(build, drawn((2,)), drawn((2,), seed=1))


def test_a_buffer_has_its_whole_length() -> None:
    def build(x: Any) -> Any:
        empty = apply_op("EmptyTensorList", ANY, I(3), element_dtype=DataType.DT_FLOAT)
        held = apply_op("TensorListPushBack", empty, x)
        return [apply_op("TensorListLength", held), apply_op("TensorListStack", held, ANY, element_dtype="float")]

    x = drawn((2,))
    for platform in PLATFORMS:
        length, stacked = results("on", platform, build, x)
        assert int(length) == 3
        np.testing.assert_array_equal(stacked, [x, [0, 0], [0, 0]])


def test_elements_that_were_not_set_are_zeros() -> None:
    def build() -> Any:
        held = apply_op("TensorListReserve", np.array([2], I), I(2), element_dtype=DataType.DT_INT32)
        unknown = apply_op("TensorListReserve", ANY, I(2), element_dtype=DataType.DT_INT32)
        return [
            apply_op("TensorListStack", held, ANY, element_dtype="int32"),
            apply_op("TensorListGetItem", unknown, I(1), np.array([3], I), element_dtype="int32"),
            *apply_op("TensorListConcatV2", unknown, np.array([-1], I), np.array([2, 2]), element_dtype="int32"),
            apply_op("TensorListElementShape", unknown, shape_type="int32"),
        ]

    agree(build)


def test_a_place_beyond_the_end() -> None:
    """A known place makes the list longer; any other is the nearest one."""

    def grow(x: Any) -> Any:
        held = apply_op("TensorListReserve", ANY, I(1), element_dtype=DataType.DT_FLOAT)
        held = apply_op("TensorListSetItem", held, I(2), x, resize_if_index_out_of_bounds=True)
        return [apply_op("TensorListStack", held, ANY, element_dtype="float"), apply_op("TensorListLength", held)]

    agree(grow, drawn((2,)))

    def outside(x: Any, index: Any) -> Any:
        held = apply_op("TensorListFromTensor", x, SCALAR)
        return apply_op("TensorListGetItem", held, index, ANY, element_dtype="float")

    x = drawn((3,))
    close(results("on", "interpreter", outside, x, np.array(9, I)), [np.asarray(x[2])])


V = DataType.DT_VARIANT


def pushed(held: Any, *items: Any) -> Any:
    for item in items:
        held = apply_op("TensorListPushBack", held, item)
    return held


def test_a_list_of_lists() -> None:
    """Each inner list keeps how much was pushed onto it."""

    def build(x: Any, y: Any) -> Any:
        inner = apply_op("EmptyTensorList", ANY, I(3), element_dtype=DataType.DT_FLOAT)
        outer = apply_op("EmptyTensorList", SCALAR, I(4), element_dtype=V)
        outer = pushed(outer, pushed(inner, x), pushed(inner, y, x))
        outer, second = apply_op("TensorListPopBack", outer, SCALAR, element_dtype=V)
        outer, first = apply_op("TensorListPopBack", outer, SCALAR, element_dtype=V)
        lasts = [apply_op("TensorListPopBack", v, ANY, element_dtype="float")[1] for v in (first, second)]
        return [*lasts, apply_op("TensorListPopBack", pushed(second, y), ANY, element_dtype="float")[1]]

    agree(build, drawn((2,)), drawn((2,), seed=1))


def test_a_loop_fills_a_list_of_lists() -> None:
    """Its kind is known once the loop's body was seen."""

    def build(x: Any) -> Any:
        graph = x.graph
        for name in ("turn_cond", "turn_body"):
            inside = Graph(graph.library.default_registry)
            inside.library = graph.library
            with inside.as_default():
                i, y, held = (inside.placeholder(t, name=n) for t, n in (("int32", "i"), ("float", "y"), (V, "held")))
                inner = apply_op("EmptyTensorList", ANY, I(2), element_dtype=DataType.DT_FLOAT)
                after = [i + I(1), y * np.float32(2), pushed(held, pushed(inner, y, -y))]
                made = after if name == "turn_body" else [apply_op("Less", i, I(3))]
            graph.library.add(graph_to_function(name, [i, y, held], made))
        start = apply_op("EmptyTensorList", SCALAR, I(3), element_dtype=V)
        calls = {"cond": NameAttrList("turn_cond"), "body": NameAttrList("turn_body")}
        _, y, held = apply_op("While", [graph.constant(I(0)), x, start], **calls)
        found = [y]
        for _ in range(3):
            held, inner = apply_op("TensorListPopBack", held, SCALAR, element_dtype=V)
            found.append(apply_op("TensorListStack", inner, ANY, element_dtype=DataType.DT_FLOAT))
        return found

    agree(build, drawn((2,)))


def test_lists_of_lists_of_lists() -> None:
    def build(x: Any) -> Any:
        inner = pushed(apply_op("EmptyTensorList", ANY, I(1), element_dtype=DataType.DT_FLOAT), x)
        for _ in range(2):
            inner = pushed(apply_op("EmptyTensorList", SCALAR, I(1), element_dtype=V), inner)
        with x.graph.control_dependencies([inner]):
            return apply_op("Identity", x)

    with pytest.raises(UnimplementedError, match="lists of lists of lists"):
        results("on", "interpreter", build, drawn((2,)))


@pytest.mark.parametrize(
    "lengths, refused", [([2, 2], None), ([1, 3], UnimplementedError), ([2, 1], InvalidArgumentError)]
)
def test_pieces(lengths: list[int], refused: type[OpError] | None) -> None:
    def build(x: Any) -> Any:
        held = apply_op("TensorListSplit", x, ANY, np.array(lengths))
        return [apply_op("TensorListStack", held, ANY, element_dtype="float")]

    if refused is None:
        agree(build, drawn((4, 2)))
        return
    with pytest.raises(refused, match="lengths"):
        results("on", "interpreter", build, drawn((4, 2)))


def reserved(shape: Array, count: int = 2) -> Any:
    return apply_op("TensorListReserve", shape, I(count), element_dtype="float")


def empty(shape: Array, most: int) -> Any:
    return apply_op("EmptyTensorList", shape, I(most), element_dtype="float")


def stack(held: Any, dtype: str = "float") -> Any:
    return apply_op("TensorListStack", held, ANY, element_dtype=dtype)


def from_rows(count: int) -> Any:
    return apply_op("TensorListFromTensor", np.zeros((count, 2), np.float32), np.array([2], I))


def popped(held: Any) -> Any:
    return apply_op("TensorListPopBack", held, np.array([2], I), element_dtype="float")[0]


ROW = np.zeros(2, np.float32)


REFUSED: list[tuple[str, Build]] = [
    ("max_num_elements is -1", lambda: empty(ANY, -1)),
    ("must not be negative", lambda: reserved(ANY, -2)),
    ("shape of the list's elements is not known", lambda: stack(reserved(ANY))),
    ("op elements", lambda: stack(reserved(SCALAR), "half")),
    ("is full with 3 elements", lambda: pushed(from_rows(3), ROW)),
    ("is full with 0 elements", lambda: pushed(from_rows(0), ROW)),
    ("is full with 2 elements", lambda: pushed(popped(pushed(empty(np.array([2], I), 2), ROW)), ROW, ROW, ROW)),
    ("is full with 1 elements", lambda: pushed(empty(SCALAR, 1), np.float32(1), np.float32(2))),
    ("the list is empty", lambda: popped(empty(np.array([2], I), 2))),
    ("the list is empty", lambda: popped(popped(pushed(empty(np.array([2], I), 2), ROW)))),
    ("cannot hold an element", lambda: apply_op("TensorListPushBack", empty(np.array([2], I), 1), np.zeros(3, "f"))),
]


@pytest.mark.parametrize("text, make", REFUSED)
def test_errors(text: str, make: Build) -> None:
    def build(x: Any) -> Any:
        made = make()
        if made.dtype != DataType.DT_VARIANT:
            return made
        with x.graph.control_dependencies([made]):
            return apply_op("Identity", x)

    with pytest.raises(OpError, match=text):
        results("on", "interpreter", build, drawn((2,)))


# Stacks and tensor arrays


@pytest.mark.parametrize("dtype", TYPES)
def test_a_stack(dtype: str) -> None:
    kind = as_data_type(dtype)

    def build(x: Any, y: Any) -> Any:
        graph = x.graph
        stack = apply_op("StackV2", I(2), elem_type=kind)
        first = apply_op("StackPushV2", stack, x)
        with graph.control_dependencies([first]):
            second = apply_op("StackPushV2", stack, y)
        with graph.control_dependencies([second]):
            top = apply_op("StackPopV2", stack, elem_type=kind)
        with graph.control_dependencies([top]):
            bottom = apply_op("StackPopV2", stack, elem_type=kind)
        with graph.control_dependencies([bottom]):
            apply_op("StackCloseV2", stack)
        return [top, bottom]

    agree(build, values(dtype, 2), values(dtype, 2)[::-1].copy())


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("dtype", TYPES)
def test_a_tensor_array(dtype: str, known: bool) -> None:
    kind = as_data_type(dtype)

    def build(x: Any, row: Any) -> Any:
        shape = {"element_shape": [2]} if known else {}
        handle, flow = apply_op("TensorArrayV3", I(4), dtype=kind, clear_after_read=False, **shape)
        flow = apply_op("TensorArrayScatterV3", handle, np.array([2, 0], I), x, flow)
        flow = apply_op("TensorArrayWriteV3", handle, I(1), row, flow)
        flow = apply_op("TensorArrayWriteV3", handle, I(3), row, flow)
        return [
            apply_op("TensorArrayReadV3", handle, I(2), flow, dtype=kind),
            apply_op("TensorArrayGatherV3", handle, np.array([3, 1], I), flow, dtype=kind),
            apply_op("TensorArrayGatherV3", handle, np.arange(4, dtype=I), flow, dtype=kind),
            *apply_op("TensorArrayConcatV3", handle, flow, dtype=kind),
            apply_op("TensorArraySizeV3", handle, flow),
        ]

    agree(build, values(dtype, 2, 2), values(dtype, 2))


def test_gradients_of_a_tensor_array_add_up() -> None:
    def build(x: Any, dy: Any) -> Any:
        handle, flow = apply_op("TensorArrayV3", I(2), dtype=DataType.DT_FLOAT, clear_after_read=False)
        flow = apply_op("TensorArraySplitV3", handle, x, np.array([2, 2]), flow)
        gradient, flow = apply_op("TensorArrayGradV3", handle, flow, source="a")
        for index in (0, 1, 0):
            flow = apply_op("TensorArrayWriteV3", gradient, I(index), dy, flow)
        again, flow = apply_op("TensorArrayGradV3", handle, flow, source="a")
        return apply_op("TensorArrayGatherV3", again, np.arange(2, dtype=I), flow, dtype=DataType.DT_FLOAT)

    agree(build, drawn((4, 3)), drawn((2, 3), seed=1))


def test_a_tensor_array_of_another_type() -> None:
    def build(x: Any) -> Any:
        handle, flow = apply_op("TensorArrayV3", I(2), dtype=DataType.DT_INT32)
        return apply_op("TensorArrayWriteV3", handle, I(0), x, flow)

    with pytest.raises(InvalidArgumentError, match="holds int32, not float"):
        results("on", "interpreter", build, drawn((2,)))


# Stitches and partitions


@pytest.mark.parametrize("op", ["DynamicStitch", "ParallelDynamicStitch"])
@pytest.mark.parametrize("indices", [
    [[0, 2], [1, 3]], [[3, 1, 1], [1]], [[], [2]], [[], []], [0, [2, 1]], [[[0, 1], [4, 3]], [2]],
])  # fmt: skip
def test_stitch(indices: list[Any], op: str) -> None:
    """The last of equal indices wins; elements without an index are zero."""
    places = [np.array(i, I) for i in indices]
    for dtype in (np.float32, np.int64):
        check(op, places, [drawn((*p.shape, 3), dtype, k) for k, p in enumerate(places)])


@pytest.mark.parametrize("shape", [(5,), (2, 3), (0,)])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.complex64])
def test_partition(shape: tuple[int, ...], dtype: Any) -> None:
    partitions = (np.arange(np.prod(shape, dtype=int)) * 2 % 3).reshape(shape).astype(I)
    check("DynamicPartition", drawn((*shape, 2), dtype), partitions, num_partitions=4)


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(OpError):
        run("DynamicStitch", [np.array([0, 1], I)], [drawn((3, 2))])
    with pytest.raises((ShapeError, InvalidArgumentError)):
        run("DynamicPartition", drawn((3,)), np.zeros(2, I), num_partitions=2)
    with pytest.raises(InvalidArgumentError, match="negative"):
        run("DynamicStitch", [np.array([-1], I)], [drawn((1, 2))])
