"""Ops that stand for one HLO instruction, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.graphs.compiled import PLATFORMS, close, drawn
from support.graphs.symbolic import compiled, graph_of, variable
from support.graphs.symbolic import run as evaluated

import cyxla
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.attr_value import NameAttrList
from cyxla.core.framework.types import DataType, as_data_type
from cyxla.core.graph.function_body import graph_to_function
from cyxla.core.graph.graph import Graph
from cyxla.errors import InvalidArgumentError, NotFoundError, OpError, ShapeError, UnimplementedError
from cyxla.xla.evaluator import register_custom_call
from cyxla.xla.hlo.proto.schema import escaped, messages

Array = np.ndarray[Any, Any]
F32 = DataType.DT_FLOAT


def define(graph: Graph, name: str, body: Callable[..., Any], *types: DataType) -> NameAttrList:
    """Add a function of scalars to a graph's library."""
    inner = Graph(graph.library)
    with inner.as_default():
        args = [inner.placeholder(t, [], name=f"a{i}") for i, t in enumerate(types)]
        made = body(*args)
    graph.library.add(graph_to_function(name, args, list(made) if isinstance(made, (list, tuple)) else [made]))
    return NameAttrList(name)


def run(
    op: str, *operands: Any, platform: str, functions: dict[str, tuple[Any, ...]] | None = None, **attrs: Any
) -> list[Array]:
    """The outputs of a compiled op on operands that are fed; `functions` are attributes: (body, types of arguments)."""
    graph, feeds = Graph(), {}
    called = {name: define(graph, name, *spec) for name, spec in (functions or {}).items()}

    def placeholder(array: Any) -> Any:
        array = np.asarray(array)
        made = graph.placeholder(as_data_type(array.dtype), array.shape)
        feeds[made.name] = array
        return made

    with graph.as_default():
        given = [[placeholder(x) for x in o] if isinstance(o, list) else placeholder(o) for o in operands]
        made = apply_op(op, *given, **attrs, **called)
    outputs = made if isinstance(made, (list, tuple)) else [made]
    return [
        np.asarray(x) for x in cyxla.Session(graph, jit="on", platform=platform).run([o.name for o in outputs], feeds)
    ]


def message(kind: str, **fields: Any) -> str:
    """A serialised message as an attribute."""
    return escaped(messages()[kind](**fields).SerializeToString())


def add(a: Any, b: Any) -> Any:
    return apply_op("AddV2", a, b)


ADD = (add, F32, F32)
I = np.int32  # noqa: E741 - the type of sizes


@pytest.fixture(params=PLATFORMS)
def platform(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# Products


@pytest.mark.parametrize("op", ["XlaDot", "XlaDotV2"])
def test_dot(op: str, platform: str) -> None:
    a, b = drawn((2, 3, 4)), drawn((2, 4, 5), seed=1)
    numbers = message(
        "DotDimensionNumbers",
        lhs_contracting_dimensions=[2], rhs_contracting_dimensions=[1],
        lhs_batch_dimensions=[0], rhs_batch_dimensions=[0],
    )  # fmt: skip
    extra = {"preferred_element_type": F32} if op == "XlaDotV2" else {}
    precision = message("PrecisionConfig", operand_precision=[2, 2])
    close(run(op, a, b, platform=platform, dimension_numbers=numbers, precision_config=precision, **extra), [a @ b], 4)


def test_dot_of_narrow_integers_in_a_wider_type(platform: str) -> None:
    a, b = drawn((3, 4), np.int8), drawn((4, 2), np.int8, 1)
    numbers = message("DotDimensionNumbers", lhs_contracting_dimensions=[1], rhs_contracting_dimensions=[0])
    attrs = {"dimension_numbers": numbers, "precision_config": "", "preferred_element_type": DataType.DT_INT32}
    close(run("XlaDotV2", a, b, platform=platform, **attrs), [a.astype(I) @ b.astype(I)])


def test_a_message_that_is_none(platform: str) -> None:
    with pytest.raises(InvalidArgumentError, match="is not a DotDimensionNumbers"):
        run("XlaDot", drawn((2, 2)), drawn((2, 2)), platform=platform, dimension_numbers="\x0b", precision_config="")


@pytest.mark.parametrize("op", ["XlaConv", "XlaConvV2"])
def test_conv(op: str, platform: str) -> None:
    """One dimension, padded, with a stride: as products of matrices."""
    x, k = drawn((1, 6, 2)), drawn((3, 2, 4), seed=1)
    numbers = message(
        "ConvolutionDimensionNumbers",
        input_batch_dimension=0, input_feature_dimension=2, input_spatial_dimensions=[1],
        kernel_input_feature_dimension=1, kernel_output_feature_dimension=2, kernel_spatial_dimensions=[0],
        output_batch_dimension=0, output_feature_dimension=2, output_spatial_dimensions=[1],
    )  # fmt: skip
    extra = {"preferred_element_type": F32} if op == "XlaConvV2" else {}
    sizes = [np.array([2], I), np.array([[1, 1]], I), np.array([1], I), np.array([1], I), np.array(1, I)]
    padded = np.pad(x, [(0, 0), (1, 1), (0, 0)])
    wanted = np.stack([np.einsum("bwi,wio->bo", padded[:, s : s + 3], k) for s in (0, 2, 4)], 1)
    got = run(op, x, k, *sizes, platform=platform, dimension_numbers=numbers, precision_config="", **extra)
    close(got, [wanted], 4)


def test_einsum(platform: str) -> None:
    a, b = drawn((2, 3)), drawn((3, 4), seed=1)
    close(run("XlaEinsum", a, b, platform=platform, equation="ab,bc->ca"), [(a @ b).T], 4)


# Reductions


def test_reduce(platform: str) -> None:
    x = drawn((3, 4))
    got = run("XlaReduce", x, np.float32(2), platform=platform, dimensions_to_reduce=[1], functions={"reducer": ADD})
    close(got, [x.sum(1) + np.float32(2)], 4)


def test_variadic_reduce_of_one_type(platform: str) -> None:
    x, y = drawn((3, 4)), drawn((3, 4), seed=1)

    def both(a: Any, b: Any, c: Any, d: Any) -> Any:
        return [apply_op("Maximum", a, c), apply_op("AddV2", b, d)]

    inits = [np.float32(-9), np.float32(0)]
    reducer = {"reducer": (both, F32, F32, F32, F32)}
    got = run("XlaVariadicReduce", [x, y], inits, platform=platform, dimensions_to_reduce=[0], functions=reducer)
    close(got, [x.max(0), y.sum(0)], 4)


def test_variadic_reduce_of_several_types(platform: str) -> None:
    """The place of the greatest."""
    x, places = drawn((5,)), np.arange(5, dtype=I)

    def greater(a: Any, i: Any, b: Any, j: Any) -> Any:
        wins = apply_op("GreaterEqual", a, b)
        return [apply_op("SelectV2", wins, a, b), apply_op("SelectV2", wins, i, j)]

    reducer = {"reducer": (greater, F32, DataType.DT_INT32, F32, DataType.DT_INT32)}
    operands = [[x, places], [np.float32(-np.inf), np.array(-1, I)]]
    got = run("XlaVariadicReduceV2", *operands, platform=platform, dimensions_to_reduce=[0], functions=reducer)
    close(got, [np.asarray(x.max()), np.asarray(x.argmax(), I)])


def test_reduce_window(platform: str) -> None:
    x = drawn((6,))
    sizes = [np.array(v, I) for v in ([3], [2], [1], [1], [[1, 0]])]
    got = run("XlaReduceWindow", x, np.float32(0), *sizes, platform=platform, functions={"computation": ADD})
    padded = np.pad(x, (1, 0))
    close(got, [np.array([padded[i : i + 3].sum() for i in (0, 2, 4)], np.float32)], 4)


def test_select_and_scatter(platform: str) -> None:
    x, source = np.array([1, 3, 2, 5, 4, 0], np.float32), np.array([10, 20], np.float32)
    functions = {"select": (lambda a, b: apply_op("GreaterEqual", a, b), F32, F32), "scatter": ADD}
    sizes = [np.array(v, I) for v in ([3], [3], [[0, 0]])]
    got = run("XlaSelectAndScatter", x, *sizes, source, np.float32(0), platform=platform, functions=functions)
    close(got, [np.array([0, 10, 0, 20, 0, 0], np.float32)])


@pytest.mark.parametrize("op, factor", [("Add", 1), ("Mean", 1), ("Max", 1)])
def test_replicas(op: str, factor: int, platform: str) -> None:
    """There is one."""
    x, groups = drawn((4,)), np.zeros((1, 1), I)
    close(run("XlaAllReduce", x, groups, platform=platform, reduce_op=op, mode="CrossReplica"), [x])
    close(run("XlaReduceScatter", x, groups, np.array(0, I), platform=platform, reduce_op=op), [x])
    close(run("XlaReplicaId", platform=platform), [np.array(0, I)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32, np.int64])
@pytest.mark.parametrize("merge", ["Add", "Mul", "Min", "Max"])
@pytest.mark.parametrize("final", ["Id", "Div"])
def test_collective_reduce_of_one_device(merge: str, final: str, dtype: Any, platform: str) -> None:
    x, numbers = np.array([[3, -5, 7]], dtype), [np.array(n, I) for n in (1, 2, 3)]
    close(run("CollectiveReduceV2", x, *numbers, [], platform=platform, merge_op=merge, final_op=final), [x])


@pytest.mark.parametrize("size, error, message", [
    (0, InvalidArgumentError, "group_size must be positive integer but got 0"),
    (2, InvalidArgumentError, "names device 1; this run has 1"),
])  # fmt: skip
def test_collective_reduce_of_devices_that_do_not_exist(size: int, error: Any, message: str, platform: str) -> None:
    numbers = [np.array(n, I) for n in (size, 2, 3)]
    with pytest.raises(error, match=message):
        run("CollectiveReduceV2", np.float32(1), *numbers, [], platform=platform, merge_op="Add", final_op="Id")


@pytest.mark.parametrize("device, wanted", [(0, (2, 7)), (1, (2, 8)), (2, (2, 7)), (3, (2, 8)), (4, None)])
def test_collective_assign_group(device: int, wanted: tuple[int, int] | None, platform: str) -> None:
    arguments = np.array([[0, 2], [1, 3]], I), np.array(device, I), np.array(7, I)
    if wanted is None:
        with pytest.raises(InvalidArgumentError, match="device_index 4 is not found in group_assignment"):
            run("CollectiveAssignGroupV2", *arguments, platform=platform)
    else:
        close(run("CollectiveAssignGroupV2", *arguments, platform=platform), [np.array(n, I) for n in wanted])


# Gather and scatter


def test_gather(platform: str) -> None:
    x = drawn((5, 3))
    numbers = message(
        "GatherDimensionNumbers", offset_dims=[1], collapsed_slice_dims=[0], start_index_map=[0], index_vector_dim=1
    )
    places = np.array([4, 0, 2], I)
    attrs = {"dimension_numbers": numbers, "indices_are_sorted": False}
    close(run("XlaGather", x, places, np.array([1, 3], I), platform=platform, **attrs), [x[places]])


def test_scatter(platform: str) -> None:
    x, rows = drawn((5, 3)), drawn((2, 3), seed=1)
    numbers = message(
        "ScatterDimensionNumbers",
        update_window_dims=[1], inserted_window_dims=[0], scatter_dims_to_operand_dims=[0], index_vector_dim=1,
    )  # fmt: skip
    attrs = {"dimension_numbers": numbers, "indices_are_sorted": True}
    update = {"update_computation": ADD}
    got = run("XlaScatter", x, np.array([1, 1], I), rows, platform=platform, functions=update, **attrs)
    wanted = x.copy()
    np.add.at(wanted, [1, 1], rows)
    close(got, [wanted], 4)


def test_boxes(platform: str) -> None:
    x = drawn((5, 4))
    start = np.array([9, 1], I)  # moved inside
    close(run("XlaDynamicSlice", x, start, np.array([2, 2], I), platform=platform), [x[3:5, 1:3]])
    wanted = x.copy()
    wanted[3:5, 1:3] = 0
    close(run("XlaDynamicUpdateSlice", x, np.zeros((2, 2), np.float32), start, platform=platform), [wanted])
    with pytest.raises(ShapeError, match="2 indices are required"):
        run("XlaDynamicUpdateSlice", x, x, np.array([1], I), platform=platform)


def test_pad(platform: str) -> None:
    x = np.array([1, 2, 3], np.float32)
    sizes = [np.array([n], I) for n in (1, -1, 1)]
    close(run("XlaPad", x, np.float32(9), *sizes, platform=platform), [np.array([9, 1, 9, 2, 9], np.float32)])


# Sorting


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8])
def test_sort(dtype: Any, platform: str) -> None:
    x, values = drawn((3, 7), dtype), drawn((3, 7), np.float64, 1)
    close(run("XlaSort", x, platform=platform), [np.sort(x, -1)])
    keys, carried = run("XlaKeyValueSort", x, values, platform=platform)
    close([keys, np.sort(carried, -1)], [np.sort(x, -1), np.sort(values, -1)])


def test_variadic_sort(platform: str) -> None:
    """Descending, along the first dimension."""
    x, y = drawn((4, 2)), drawn((4, 2), seed=1)
    less = {"comparator": (lambda a, b, c, d: apply_op("Greater", a, b), F32, F32, F32, F32)}
    got = run("XlaVariadicSort", [x, y], np.array(0, I), platform=platform, is_stable=True, functions=less)
    order = np.argsort(-x, 0)
    close(got, [np.take_along_axis(v, order, 0) for v in (x, y)])


# Linear algebra


@pytest.mark.parametrize("lower", [False, True])
def test_eigenvalues_of_one_triangle(lower: bool, platform: str) -> None:
    x = drawn((2, 4, 4), np.float64)
    half = np.tril(x) if lower else np.triu(x)
    whole = half + np.swapaxes(half, -1, -2) - half * np.eye(4)
    attrs = {"lower": lower, "max_iter": 100, "epsilon": 1e-6}
    values, vectors = run("XlaSelfAdjointEig", half, platform=platform, **attrs)
    close([values, vectors * values[:, None] @ np.swapaxes(vectors, -1, -2)], [np.linalg.eigvalsh(whole), whole], 100)


def test_singular_values(platform: str) -> None:
    x = drawn((4, 3), np.float64)
    s, u, v = run("XlaSvd", x, platform=platform, max_iter=100, epsilon=1e-6, precision_config="")
    assert (u.shape, v.shape) == ((4, 4), (3, 3))
    close([u[:, :3] * s @ v.T], [x], 100)


# Calls


def test_if_and_while(platform: str) -> None:
    x = np.float32(3)
    branches = {"then_branch": (lambda a: a + a, F32), "else_branch": (lambda a: -a, F32)}
    for choice, wanted in ((True, 6), (False, -3)):
        got = run("XlaIf", np.array(choice), [x], platform=platform, Tout=[F32], functions=branches)
        close(got, [np.float32(wanted)])
    parts = {"cond": (lambda a: apply_op("Less", a, np.float32(50)), F32), "body": (lambda a: a * a, F32)}
    close(run("XlaWhile", [x], platform=platform, functions=parts), [np.float32(81)])


register_custom_call("tests.halved", lambda ev, ins, x: x / 2, replace=True)


def test_custom_calls(platform: str) -> None:
    x = drawn((3,))
    attrs = {"backend_config": "", "dtype": F32, "shape": [3]}
    close(run("XlaCustomCall", [x], platform=platform, target_name="tests.halved", **attrs), [x / 2])
    attrs = {"backend_config": "", "has_side_effect": False, "result_dtypes": [F32], "result_shapes": [[3]]}
    close(run("XlaCustomCallV2", [x], platform=platform, call_target_name="tests.halved", **attrs), [x / 2])


# Devices, tiles, sizes


def test_one_device_holds_it_all(platform: str) -> None:
    x = drawn((3,))
    close(run("XlaSharding", x, platform=platform), [x])
    close(run("XlaSpmdFullToShardShape", x, platform=platform, manual_sharding=""), [x])
    close(run("XlaSpmdShardToFullShape", x, platform=platform, manual_sharding="", full_shape=[3]), [x])
    close(run("XlaOptimizationBarrier", [x, x[:2]], platform=platform), [x, x[:2]])


@pytest.mark.parametrize("paddings", [[], [1, 0]])
def test_tiles(paddings: list[int], platform: str) -> None:
    x = drawn((4 - sum(paddings[:1]), 6))
    tiles = run("XlaSplitND", x, platform=platform, N=6, num_splits=[2, 3], paddings=paddings)
    whole = np.pad(x, [(0, 4 - len(x)), (0, 0)])
    close(tiles, [whole[i : i + 2, j : j + 2] for i in (0, 2) for j in (0, 2, 4)])
    close(run("XlaConcatND", tiles, platform=platform, num_concats=[2, 3], paddings=paddings), [x])


def test_broadcast_helper(platform: str) -> None:
    x, y = drawn((2, 3, 4)), drawn((3,), seed=1)
    close(run("XlaBroadcastHelper", x, y, np.array([1], I), platform=platform), [x, y.reshape(1, 3, 1)])
    close(run("XlaBroadcastHelper", y, x, np.array([1], I), platform=platform), [y.reshape(1, 3, 1), x])
    close(run("XlaBroadcastHelper", x, x, np.array([], I), platform=platform), [x, x])
    with pytest.raises(OpError, match="broadcast_dims"):
        run("XlaBroadcastHelper", x, y, np.array([], I), platform=platform)


def test_precision_and_bits(platform: str) -> None:
    x = np.float32([1 + 2**-9, 3])
    close(run("XlaReducePrecision", x, platform=platform, exponent_bits=8, mantissa_bits=7), [np.float32([1, 3])])
    state = np.array([1, 2, 3], np.uint64)
    operands = (np.array(2, I), state, np.array([5], I))
    first = run("XlaRngBitGenerator", *operands, platform=platform, dtype=DataType.DT_UINT32)
    again = run("XlaRngBitGenerator", *operands, platform=platform, dtype=DataType.DT_UINT32)
    close(first, again)
    assert len(set(first[1].tolist())) == 5
    assert not np.array_equal(first[0], state)


def test_sizes_that_are_data(platform: str) -> None:
    x, axis = drawn((5, 2)), np.array(0, I)
    close(run("XlaSetDynamicDimensionSize", x, axis, np.array(3, I), platform=platform), [x[:3]])
    close(run("XlaSetBound", np.array(3, I), np.array(7, I), platform=platform), [np.array(3, I)])
    graph = Graph()
    with graph.as_default():
        given, size = graph.placeholder(F32, [5, 2], name="x"), graph.placeholder(DataType.DT_INT32, [], name="n")
        cut = apply_op("XlaSetDynamicDimensionSize", given, graph.constant(axis), size)
        whole = apply_op("XlaRemoveDynamicDimensionSize", cut, graph.constant(axis))
    got = cyxla.Session(graph, jit="on", platform=platform).run(whole.name, {"x:0": x, "n:0": np.array(3, I)})
    assert got.shape == x.shape


@pytest.mark.parametrize("transposed", [False, True])
def test_packed_bytes(transposed: bool, platform: str) -> None:
    """Four bytes in each word, the highest first."""
    x = np.array([[0x00FF8001, 0x10203040], [0xFFFFFFFF, 0]], np.uint32)
    attrs = {"min_range": -1.0, "max_range": 254.0, "mode": "MIN_COMBINED", "transpose_output": transposed}
    (got,) = run("XlaDequantize", x, platform=platform, **attrs)
    wanted = x.astype(">u4").view(np.uint8).reshape(2, 8).astype(np.float32) - 1
    np.testing.assert_allclose(got.astype(np.float32), wanted.T if transposed else wanted, rtol=1e-2)


def test_send_and_receive_have_channels() -> None:
    """One program on one device has nobody to send to: it says so, and names the instruction."""
    for op, operands, attrs in (
        ("XlaSend", [np.float32(1)], {}), ("XlaRecv", [], {"dtype": F32, "shape": [2]}),
    ):  # fmt: skip
        graph = Graph()
        with graph.as_default():
            made = apply_op(op, *(graph.constant(x) for x in operands), tensor_name="t", **attrs)
        for platform in PLATFORMS:
            with pytest.raises(UnimplementedError, match=op[3:].lower()):
                cyxla.Session(graph, jit="on", platform=platform).run(made.name)


def test_tiles_of_a_variable(platform: str) -> None:
    graph, x = Graph(), drawn((4, 6))
    with graph.as_default():
        handle = apply_op("VarHandleOp", dtype=F32, shape=[4, 6], shared_name="v")
        tiles = [graph.constant(x[i : i + 2, j : j + 3]) for i in (0, 2) for j in (0, 3)]
        done = apply_op("AssignVariableXlaConcatND", handle, tiles, num_concats=[2, 2])
        read = apply_op("ReadVariableXlaSplitND", handle, T=F32, N=3, num_splits=[1, 3])
        whole = apply_op("ReadVariableOp", handle, dtype=F32)
    session = cyxla.Session(graph, jit="on", platform=platform)
    session.run(done.name)
    close([session.run(whole.name)], [x])
    close([np.asarray(v) for v in session.run([t.name for t in read])], [x[:, i : i + 2] for i in (0, 2, 4)])


def test_a_handle_of_a_program_compiled_ahead_of_time() -> None:
    """It is the argument that has its name."""

    def build(_: Any) -> Any:
        handle = apply_op("_XlaAotOnlyVarHandleOp", dtype=F32, shape=[2], shared_name="v")
        return apply_op("ReadVariableOp", handle, dtype=F32)

    graph = graph_of(build, "resource")
    with pytest.raises(NotFoundError, match="the variable 'v'"):
        compiled(graph, variable("float", 2))
    result = compiled(graph, replace(variable("float", 2), name="v"))
    close([*evaluated(result, [np.float32([1, 2])])], [np.float32([1, 2])])


MODULE = """module {
  func.func public @main(%x: tensor<?x2xf32>, %y: tensor<2xf32>) -> (tensor<?x2xf32>, tensor<2xf32>) {
    %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x2xf32>) -> tensor<i32>
    %two = stablehlo.constant dense<2> : tensor<1xi32>
    %m = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %s = stablehlo.concatenate %m, %two, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %b = stablehlo.dynamic_broadcast_in_dim %y, %s, dims = [1] : (tensor<2xf32>, tensor<2xi32>) -> tensor<?x2xf32>
    %0 = stablehlo.add %x, %b : tensor<?x2xf32>
    %1 = stablehlo.negate %y : tensor<2xf32>
    return %0, %1 : tensor<?x2xf32>, tensor<2xf32>
  }
}"""
X_AND_Y = np.arange(6, dtype=np.float32).reshape(3, 2), np.array([10, 20], np.float32)
FACTS: dict[str, Any] = {"version": 9, "Sout": [[None, 2], [2]], "Tout": [F32, F32]}


@pytest.mark.parametrize("platform", PLATFORMS)
def test_call_module(platform):
    x, y = X_AND_Y
    added, negated = run("XlaCallModule", [x, y], platform=platform, module=MODULE, **FACTS)
    close(added, x + y)
    close(negated, -y)


def test_call_module_for_several_platforms():
    text = MODULE.replace("@main(", "@main(%p: tensor<i32>, ").replace(
        "negate %y : tensor<2xf32>", "add %y, %q : tensor<2xf32>"
    )
    lines = "%f = stablehlo.convert %p : (tensor<i32>) -> tensor<f32>\n%q = stablehlo.broadcast_in_dim %f, dims = [] : "
    text = text.replace("    %1 =", f"{lines}(tensor<f32>) -> tensor<2xf32>\n    %1 =")
    x, y = X_AND_Y
    found = run("XlaCallModule", [x, y], platform="interpreter", module=text, platforms=["CUDA", "CPU"], **FACTS)
    close(found[1], y + 1)
    with pytest.raises(NotFoundError, match="not for the CPU"):
        run("XlaCallModule", [x, y], platform="interpreter", module=text, platforms=["CUDA", "TPU"], **FACTS)


def test_call_module_reads_text_alone():
    with pytest.raises(UnimplementedError, match="MLIR bytecode"):
        run("XlaCallModule", [*X_AND_Y], platform="interpreter", module=b"ML\xefR\x01StableHLO", **FACTS)
