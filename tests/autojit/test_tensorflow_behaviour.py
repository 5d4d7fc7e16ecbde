"""Recorded behaviour of TensorFlow 2.21: names of nodes, signatures, sizes, codes."""

import numpy as np
import pytest
from support.graphs.jitting import chain, nodes_that_run, ones

import cyxla
from cyxla.autojit.flags import flags
from cyxla.autojit.regions import jit_scope
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.attr_value import AttrValue, NameAttrList
from cyxla.core.framework.declarations.op import OpRegistry
from cyxla.core.framework.types import DataType
from cyxla.core.graph.function_body import graph_to_function
from cyxla.core.graph.graph import Graph
from cyxla.errors import InvalidArgumentError

F = DataType.DT_FLOAT
GLOBAL = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit"
LAZY = {
    "cluster_0_1/xla_compile": "_XlaCompile", "cluster_0_1/predicated_compilation_key": "Switch",
    "cluster_0_1/xla_run": "_XlaRun", "cluster_0_1/data_as_ctrl": "Identity",
    "cluster_0_1/stateful_partitioned_call": "StatefulPartitionedCall", "cluster_0_1/merge_oidx_0": "_XlaMerge",
}  # fmt: skip
STRICT = {name: op for name, op in LAZY.items() if name.endswith(("xla_compile", "xla_run"))}


def inside(found):
    return {name: op for name, op in found.items() if op not in ("_Arg", "_Retval")}


@pytest.mark.parametrize("text, expected", [
    (GLOBAL, LAZY), (f"{GLOBAL} --tf_xla_enable_lazy_compilation=false", STRICT), ("--tf_xla_auto_jit=1", None),
])  # fmt: skip
def test_nodes_of_a_cluster(text, expected):
    """Four unary ops."""
    graph, x, y = chain(4)
    with flags(text):
        found = nodes_that_run(cyxla.Session(graph, platform="interpreter"), y, {x: ones(2)})
    assert sorted(op for op in found.values() if op in ("_Arg", "_Retval")) == ["_Arg", "_Retval"]
    assert inside(found) == (expected or {"Exp": "Exp", "Neg": "Neg", "Tanh": "Tanh", "Sin": "Sin"})


def test_three_ops_stay():
    graph, x, y = chain(3)
    with flags(GLOBAL):
        found = nodes_that_run(cyxla.Session(graph, platform="interpreter"), y, {x: ones(2)})
    assert set(inside(found).values()) == {"Exp", "Neg", "Tanh"}


def test_a_scope_of_one_op():
    graph = Graph()
    x = graph.placeholder("float", name="x")
    with graph.as_default(), jit_scope(graph):
        y = apply_op("Exp", x)
    assert inside(nodes_that_run(cyxla.Session(graph, platform="interpreter"), y, {x: ones(2)})) == LAZY


SIGNATURES = {
    "_XlaCompile": (
        ["constants", "args", "resources"],
        ["key", "compilation_successful"],
        {"must_compile", "function"},
    ),
    "_XlaRun": (["args", "key"], ["results"], {"Targs", "Tresults"}),
    "XlaLaunch": (["constants", "args", "resources"], ["results"], {"function"}),
    "_XlaMerge": (["partitioned_call", "xla_run"], ["output"], {"T"}),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures(name):
    inputs, outputs, attrs = SIGNATURES[name]
    op_def = OpRegistry.global_().look_up_op_def(name)
    assert [a.name for a in op_def.input_arg] == inputs
    assert [a.name for a in op_def.output_arg] == outputs
    assert attrs <= {a.name for a in op_def.attr}


def test_text_as_an_argument():
    """Compiling a graph with a string argument is code 3."""
    graph = Graph()
    x = graph.placeholder("string", name="x")
    with graph.as_default():
        y = apply_op("Identity", x)
    with pytest.raises(InvalidArgumentError) as caught:
        cyxla.Session(graph, jit="on").run(y, {x: b"a"})
    assert caught.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize("soft", [True, False])
def test_a_missing_device(soft):
    """The error has code 3 and names the existing devices; with soft placement the node runs."""
    graph = Graph()
    with graph.as_default(), graph.device("/device:XLA_CPU:0"):
        y = apply_op("Neg", graph.constant(1.0))
    session = cyxla.Session(graph, soft_placement=soft)
    if soft:
        assert session.run(y) == -1
    else:
        with pytest.raises(InvalidArgumentError, match="CPU:0"):
            session.run(y)


def test_launching_a_function():
    """XlaLaunch compiles and runs, with a constant, a value and a variable."""
    body = Graph()
    n, x = body.placeholder("int32", [1], name="n"), body.placeholder("float", name="x")
    v = body.placeholder("resource", [], name="v")
    with body.as_default():
        total = apply_op("AddV2", apply_op("ReadVariableOp", v, dtype=F), apply_op("Reshape", x, n))
        write = apply_op("AssignVariableOp", v, total, dtype=F)
    graph = Graph()
    graph.library.add(graph_to_function("f", [n, x, v], [total], control_outputs=[write]))
    x = graph.placeholder("float", [1, 2], name="x")
    with graph.as_default():
        handle = apply_op("VarHandleOp", dtype=F, shape=[2], name="v")
        init = apply_op("AssignVariableOp", handle, graph.constant(ones(2)), dtype=F)
        f = AttrValue("func", NameAttrList("f"))
        sizes = graph.constant(np.array([2], np.int32))
        y = apply_op("XlaLaunch", [sizes], [x], [handle], Tresults=[F], function=f)[0]
    session = cyxla.Session(graph)
    session.run(init)
    assert [session.run(y, {x: ones(1, 2)}).tolist() for _ in range(2)] == [[2, 2], [3, 3]]
