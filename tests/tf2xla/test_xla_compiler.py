"""Graphs and functions become computations: arguments, results, calls, errors, deterministic text."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.graphs.symbolic import (
    add_function,
    compiled,
    compiler_for,
    constant,
    graph_of,
    opcodes,
    parameter,
    run,
    variable,
)

import cyxla
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.attr_value import AttrValue, NameAttrList
from cyxla.core.framework.kernel_def import KernelDef
from cyxla.core.framework.kernel_registry import KernelRegistry
from cyxla.core.framework.types import DataType
from cyxla.core.graph.graph import Graph
from cyxla.errors import FailedPreconditionError, InternalError, InvalidArgumentError, NotFoundError
from cyxla.tf2xla.graph_compiler import kernel_on
from cyxla.tf2xla.xla_compiler import CompileOptions, XlaCompiler, XlaCompilerOptions
from cyxla.tf2xla.xla_op_kernel import XlaOpKernel

F = DataType.DT_FLOAT


def doubled(x):
    return x + x


def with_double(make, *types):
    """A graph whose library has the function ``double``."""
    graph = Graph()
    add_function(graph, "double", doubled, "float")
    return graph_of(make, *types, graph=graph)


def call_double(x):
    return apply_op("PartitionedCall", [x], Tout=[F], f=NameAttrList("double", {}))[0]


# Functions


def test_a_function_is_compiled_once_for_each_kind_of_arguments():
    compiler = compiler_for(with_double(doubled, "float"))
    function = NameAttrList("double", {})
    first = compiler.compile_function(function, [parameter("float", 2)])
    assert compiler.compile_function(NameAttrList("double", {}), [parameter("float", 2)]) is first
    assert compiler.compile_function(function, [parameter("float", 3)]) is not first
    known = compiler.compile_function(function, [constant([1, 2], "float")])
    assert known is not first
    assert compiler.compile_function(function, [constant([1, 2], "float")]) is known
    assert compiler.compile_function(function, [constant([1, 3], "float")]) is not known
    with pytest.raises(NotFoundError, match="'triple'"):
        compiler.compile_function(NameAttrList("triple", {}), [])


def test_a_call_is_a_call():
    """Functions are instantiated once for each kind of call."""
    graph = with_double(lambda x, y: (call_double(x), call_double(x + x), call_double(y)), "float", "float")
    result = compiled(graph, parameter("float", 2), parameter("float", 3))
    assert opcodes(result).count("call") == 3
    bodies = [c for c in result.computation.module().computations.values() if c.name.startswith("double")]
    assert len(bodies) == 2
    found = run(result, [np.float32([1, 2]), np.float32([3, 4, 5])])
    assert [v.tolist() for v in found] == [[2, 4], [4, 8], [6, 8, 10]]


def test_a_function_called_by_its_name():
    """A node whose op is a function."""
    graph = with_double(lambda x: apply_op("double", x), "float")
    result = compiled(graph, parameter("float", 2))
    assert opcodes(result)[0] == "call"
    assert run(result, [np.float32([1, 2])])[0].tolist() == [2, 4]


# Options and kernels


def test_options_name_a_device():
    with pytest.raises(InvalidArgumentError, match="no device_type"):
        XlaCompiler(XlaCompilerOptions("", Graph().library))


def test_kernels_come_from_the_common_registry():
    graph = graph_of(lambda x: apply_op("Relu", x, name="node"), "float")
    compiler = compiler_for(graph)
    kernel = compiler.kernel(graph.nodes["node"])
    assert isinstance(kernel, XlaOpKernel)
    assert (kernel.name, kernel.device.device_type) == ("node", "XLA_INTERPRETER_JIT")
    assert compiler.options.kernels is KernelRegistry.global_()


def test_the_device_of_a_program_is_none_of_a_session():
    """Ops that only compile run in a compiled graph, and no device of the session has a kernel for them."""
    graph = Graph()
    x = graph.placeholder("float", [2, 3], name="x")
    with graph.as_default():
        y = apply_op("XlaEinsum", x, x, equation="ab,cb->ac")
    feeds = {x: np.ones((2, 3), np.float32)}
    session = cyxla.Session(graph, jit="on", platform="interpreter")
    np.testing.assert_array_equal(session.run(y, feeds), np.full((2, 2), 3))
    assert {name.split(":")[-2] for name in session.engine.devices.names()} == {"CPU"}
    with pytest.raises(InvalidArgumentError, match="XlaEinsum"):
        cyxla.Session(graph, jit="off").run(y, feeds)


def test_a_kernel_that_computes_is_none():
    graph = graph_of(lambda x: apply_op("Relu", x, name="node"), "float")
    compiler = compiler_for(graph)
    kernels = KernelRegistry()
    (eager,) = (r for r in KernelRegistry.global_().registrations("Relu") if r.kernel_def.device_type == "CPU")
    kernels.register(KernelDef("Relu", "XLA_INTERPRETER_JIT", {}, (), "", 0), eager.factory)
    with pytest.raises(InternalError, match="is not an XlaOpKernel"):
        kernel_on(graph.nodes["node"], compiler.device, kernels)


# Arguments and results


def test_results_then_variables():
    """Results that are not constants by index, then variables that changed by argument; always a tuple."""

    def make(v, x, w, unchanged):
        apply_op("AssignVariableOp", w, x * x)
        old = apply_op("ReadVariableOp", v, dtype=F)
        apply_op("AssignAddVariableOp", v, x)
        apply_op("ReadVariableOp", unchanged, dtype=F)
        return x + x, apply_op("Shape", x), old

    graph = graph_of(make, "resource", "float", "resource", "resource")
    args = (variable("float", 2), parameter("float", 2), variable("float", 2), variable("float", 2))
    result = compiled(graph, *args)
    assert [output.tuple_indices for output in result.outputs] == [(0,), (), (1,)]
    assert result.outputs[1].value.tolist() == [2]
    assert [(u.input_index, u.tuple_indices, u.modified) for u in result.resource_updates] == [
        (0, (2,), True),
        (2, (3,), True),
    ]
    assert result.input_mapping == (0, 1, 2, 3)
    found = run(result, [np.float32(v) for v in ([1, 2], [10, 20], [0, 0], [0, 0])])
    assert [v.tolist() for v in found] == [[20, 40], [1, 2], [11, 22], [100, 400]]
    everything = compiler_for(graph).compile_graph("g", graph, args, CompileOptions(return_all_resources=True))
    assert [(u.input_index, u.modified) for u in everything.resource_updates] == [(0, True), (2, True), (3, False)]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_the_root_is_a_tuple(count):
    graph = graph_of(lambda x: [x + x] * count, "float")
    root = compiled(graph, parameter("float", 2)).computation.module().entry.root
    assert (root.opcode, len(root.operands)) == ("tuple", count)


def test_known_results_may_be_part_of_the_program():
    graph = graph_of(lambda x: apply_op("Shape", x), "float")
    result = compiler_for(graph).compile_graph(
        "g", graph, [parameter("float", 2)], CompileOptions(resolve_constants=False)
    )
    assert result.outputs[0].tuple_indices == (0,)
    assert run(result, [np.float32([1, 2])])[0].tolist() == [2]


def test_constants_have_no_parameter():
    graph = graph_of(lambda a, b, c: a + b * c, "float", "float", "float")
    result = compiled(graph, parameter("float", 2), constant(3, "float"), parameter("float", 2))
    assert result.input_mapping == (0, 2)
    assert [str(p.shape.logical) for p in result.computation.module().parameters] == ["f32[2]", "f32[2]"]


def test_a_variable_without_value_has_no_parameter():
    """Not until something is written; to read it before is an error."""

    result = compiled(
        graph_of(_after_write, "resource", "float"), variable("float", initialized=False), parameter("float", 2)
    )
    assert result.input_mapping == (1,)
    assert [(u.input_index, u.dtype, u.shape.as_list()) for u in result.resource_updates] == [(0, F, [2])]
    assert [v.tolist() for v in run(result, [np.float32([3, 4])])] == [[9, 16], [3, 4]]
    reading = graph_of(lambda v: apply_op("ReadVariableOp", v, dtype=F), "resource")
    with pytest.raises(FailedPreconditionError, match="before it has a value"):
        compiled(reading, variable("float", initialized=False))


def _after_write(v, x):
    assign = apply_op("AssignVariableOp", v, x)
    read = apply_op("ReadVariableOp", v, dtype=F)
    read.node.control_inputs.append(assign)
    return read * x


def test_lists_cross_the_border_as_a_buffer_and_a_count():

    def make(x):
        made = apply_op("TensorListReserve", np.int32([2]), np.int32(3), element_dtype=F)
        return apply_op("PartitionedCall", [made, x], Tout=[DataType.DT_VARIANT], f=NameAttrList("put", {}))[0]

    graph = Graph()
    put = lambda held, x: apply_op("TensorListSetItem", held, np.int32(1), x)  # noqa: E731
    add_function(graph, "put", put, "variant", "float")
    graph_of(lambda x: apply_op("TensorListStack", make(x), np.int32([2]), element_dtype=F), "float", graph=graph)
    result = compiled(graph, parameter("float", 2))
    assert "call" in opcodes(result)
    assert run(result, [np.float32([1, 2])])[0].tolist() == [[0, 0], [1, 2], [0, 0]]


# What is refused


def test_every_node_that_cannot_be_compiled_is_named():
    """Node, op and reason of all of them in one error, before anything is built."""

    def make(x):
        text = apply_op("AsString", x, name="text")
        apply_op("ReduceJoin", text, [0], name="length")
        return apply_op("Relu", x)

    graph = graph_of(make, "float")
    with pytest.raises(InvalidArgumentError) as caught:
        compiled(graph, parameter("float", 2))
    for part in (
        "graph 'g'",
        "XLA_INTERPRETER_JIT",
        "node 'text' (AsString)",
        "node 'length' (ReduceJoin)",
    ):
        assert part in caught.value.message
    assert "Relu" not in caught.value.message
    assert (caught.value.node, caught.value.number) == ("text", 3)


def test_types_without_kernel_are_named():
    """The attributes tell why."""
    graph = graph_of(lambda x: apply_op("Unpack", x, num=2, axis=0, name="node")[0], "string")
    with pytest.raises(InvalidArgumentError, match=r"node 'node' \(Unpack\).*T=DT_STRING"):
        compiled(graph, constant([b"a", b"b"], "string"))


def test_strings_do_not_enter():
    """A graph with a string argument is an error with code 3."""
    graph = graph_of(lambda x: apply_op("Identity", x), "string")
    with pytest.raises(InvalidArgumentError, match="arg0") as caught:
        compiled(graph, constant(b"a", "string"))
    assert caught.value.number == 3


def send_node(x):
    apply_op(
        "_Send", x, tensor_name="t", send_device="/cpu:0", send_device_incarnation=1, recv_device="/cpu:1", name="node"
    )


NEVER = {
    "_Send": send_node,
    "_Recv": lambda x: apply_op(
        "_Recv", tensor_type=F, tensor_name="t", send_device="/cpu:0", send_device_incarnation=1,
        recv_device="/cpu:1", name="node",
    ),
    "Switch": lambda x: apply_op("Switch", x, True, name="node")[0],
    "Merge": lambda x: apply_op("Merge", [x, x], name="node")[0],
    "Enter": lambda x: apply_op("Enter", x, frame_name="f", name="node"),
}  # fmt: skip


@pytest.mark.parametrize("op", NEVER)
def test_control_flow_of_frames_and_exchange_stay_outside(op):
    """Code 13."""
    graph = graph_of(NEVER[op], "float")
    with pytest.raises(InternalError, match=f"{op} cannot be inside") as caught:
        compiled(graph, parameter("float", 2))
    assert (caught.value.node, caught.value.number) == ("node", 13)


def test_a_kernel_that_refuses_names_its_node():
    graph = graph_of(lambda x, y: apply_op("MatMul", x, y, name="product"), "float", "float")
    with pytest.raises(InvalidArgumentError) as caught:
        compiled(graph, parameter("float", 2, 3), parameter("float", 2, 3))
    assert (caught.value.node, caught.value.op) == ("product", "MatMul")
    assert "product" in str(caught.value)


# Always the same

PROGRAM = """
import numpy as np
import sys
sys.path.insert(0, sys.argv[1])
from support.graphs.symbolic import *
from cyxla.core.framework.attr_value import NameAttrList
from cyxla.core.framework.types import DataType
graph = Graph()
add_function(graph, "square", lambda x: x * x, "float")
add_function(graph, "less", lambda i, x: apply_op("Less", i, np.int32(3)), "int32", "float")
add_function(graph, "turn", lambda i, x: (i + np.int32(1), apply_op("Tanh", x)), "int32", "float")
def make(v, w, x):
    read = [apply_op("ReadVariableOp", handle, dtype=DataType.DT_FLOAT) for handle in (v, w)]
    y = apply_op("MatMul", x, read[0])
    _, z = apply_op("While", [np.int32(0), y], cond=NameAttrList("less", {}), body=NameAttrList("turn", {}))
    s = apply_op("PartitionedCall", [z], Tout=[DataType.DT_FLOAT], f=NameAttrList("square", {}))[0]
    total = apply_op("Sum", s + read[1], [0, 1])
    apply_op("AssignSubVariableOp", v, read[0] * total)
    return apply_op("Softmax", s), apply_op("ArgMax", z, 1), apply_op("Shape", z)
graph = graph_of(make, "resource", "resource", "float", graph=graph)
result = compiled(graph, variable("float", 4, 4), variable("float", 4), parameter("float", 2, 4))
print(result.computation.to_text())
print(result.input_mapping, result.outputs, result.resource_updates)
"""


def test_the_text_is_the_same_for_every_hash_seed():
    tests = str(Path(__file__).parents[1])
    texts = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM, tests], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True,
            text=True, timeout=600, check=True,
        ).stdout
        for seed in ("1", "77")
    ]  # fmt: skip
    assert texts[0] == texts[1]
    for word in ("while(", "call(", "reduce(", 'op_name="MatMul"'):
        assert word in texts[0]


def test_the_text_does_not_depend_on_earlier_compilations():
    graph = graph_of(lambda x: apply_op("Softmax", x), "float")
    first = compiled(graph, parameter("float", 2, 3)).computation.to_text()
    compiled(graph, parameter("float", 4, 5))
    assert compiled(graph, parameter("float", 2, 3)).computation.to_text() == first


def test_attributes_of_a_function_tell_calls_apart():
    graph = with_double(doubled, "float")
    compiler = compiler_for(graph)
    plain = compiler.compile_function(NameAttrList("double", {}), [parameter("float", 2)])
    marked = compiler.compile_function(NameAttrList("double", {"_note": AttrValue("int", 1)}), [parameter("float", 2)])
    assert plain is not marked
