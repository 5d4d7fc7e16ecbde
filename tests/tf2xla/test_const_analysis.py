"""Which arguments of a graph must be known while it is compiled."""

import numpy as np
import pytest
from support.graphs.symbolic import add_function, compiled, constant, graph_of, opcodes, parameter, run

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.attr_value import AttrValue, NameAttrList
from cyxla.core.framework.types import DataType
from cyxla.core.graph.graph import Graph
from cyxla.errors import InvalidArgumentError, NotFoundError
from cyxla.tf2xla.const_analysis import BackwardsConstAnalysis

F, I32, B = DataType.DT_FLOAT, DataType.DT_INT32, DataType.DT_BOOL


def reshape(x, shape):
    return apply_op("Reshape", x, shape)


def needed(make, *types, graph=None):
    """Numbers of the arguments that must be known."""
    graph = graph_of(make, *types, graph=graph)
    return sorted(BackwardsConstAnalysis(graph.library).run(graph).args)


def function(name):
    return NameAttrList(name, {})


CASES = {
    "by a kernel": (lambda x, s: reshape(x, s), [1]),
    "through arithmetic": (lambda x, s, t: reshape(x, s * t + np.int32(1)), [1, 2]),
    "through a choice": (lambda x, s, t: reshape(x, apply_op("Maximum", s, apply_op("Neg", t))), [1, 2]),
    "not through Shape": (lambda x, s: reshape(x, apply_op("Shape", s)), []),
    "not through Rank and Size": (
        lambda x, s, t: reshape(x, apply_op("Pack", [apply_op("Rank", s), apply_op("Size", t)])),
        [],
    ),
    "through IdentityN, one by one": (lambda x, s, t: reshape(x, apply_op("IdentityN", [t, s])[1]), [1]),
    "through Identity": (lambda x, s: reshape(x, apply_op("Identity", s)), [1]),
    "nothing": (lambda x, s: x + apply_op("Cast", s, DstT=F), []),
    "two readers": (lambda x, s: (reshape(x, s), s + s), [1]),
    "a reduction's axes": (lambda x, s: apply_op("Sum", x, s), [1]),
}


@pytest.mark.parametrize("name", CASES)
def test_marks_run_backwards(name):
    make, want = CASES[name]
    types = ["float", "int32", "int32"][: make.__code__.co_argcount]
    assert needed(make, *types) == want


def test_nodes_may_declare_constants():
    def make(x, s):
        made = apply_op("AddV2", x, s)
        made.node.attrs["_XlaCompileTimeConstantInputs"] = AttrValue("list(string)", ("y",))
        return made

    graph = graph_of(make, "float", "float")
    assert sorted(BackwardsConstAnalysis(graph.library).run(graph).args) == [1]


@pytest.fixture
def graph():
    """A graph with functions: ``shape`` needs its second argument, ``body`` and ``cond`` are those of a loop."""
    made = Graph()
    add_function(made, "shape", reshape, "float", "int32")
    add_function(made, "other", lambda x, s: reshape(x + x, np.int32([-1])), "float", "int32")
    return made


def test_calls_need_the_constants_of_their_function(graph):

    def call(x, s):
        return apply_op("PartitionedCall", [x, s], Tout=[F], f=function("shape"))[0]

    assert needed(call, "float", "int32", graph=graph) == [1]


def test_a_function_that_is_an_op(graph):
    assert needed(lambda x, s: apply_op("shape", x, s), "float", "int32", graph=graph) == [1]


@pytest.mark.parametrize("op", ["If", "StatelessIf", "Case"])
def test_branches_are_shifted_by_the_choice(graph, op):
    """Constants of any branch, numbered after the predicate."""

    def choose(p, x, s):
        if op == "Case":
            return apply_op(op, p, [x, s], Tout=[F], branches=[function("other"), function("shape")])[0]
        return apply_op(op, p, [x, s], Tout=[F], then_branch=function("other"), else_branch=function("shape"))[0]

    assert needed(choose, "int32" if op == "Case" else "bool", "float", "int32", graph=graph) == [2]


def loop(graph, next_shape):
    add_function(graph, "cond", lambda i, x, s: apply_op("Less", i, np.int32(3)), "int32", "float", "int32")
    add_function(
        graph, "body", lambda i, x, s: (i + np.int32(1), reshape(x, s), next_shape(s)), "int32", "float", "int32"
    )
    return lambda x, s: apply_op("While", [np.int32(0), x, s], cond=function("cond"), body=function("body"))[1]


def test_loops_need_loop_invariants(graph):
    assert needed(loop(graph, lambda s: apply_op("Identity", s)), "float", "int32", graph=graph) == [1]


def test_loop_variant_values_are_not_constant(graph):
    """So the loop needs no constants, and compiling the body names the missing one."""
    make = loop(graph, lambda s: s + s)
    assert needed(make, "float", "int32", graph=graph) == []
    with pytest.raises(InvalidArgumentError, match="Reshape must be a compile-time constant"):
        compiled(graph, parameter("float", 4), constant([4]))


def test_an_unknown_function_is_named(graph):
    with pytest.raises(NotFoundError, match="'nothing'"):
        BackwardsConstAnalysis(graph.library).function_constants(function("nothing"))


def test_a_function_is_analysed_once(graph, monkeypatch):
    found = BackwardsConstAnalysis(graph.library)
    assert found.function_constants(function("shape")) == {1}
    monkeypatch.setattr(found, "run", None)
    assert found.function_constants(function("shape")) == {1}


def test_known_arguments_are_known_inside_of_functions(graph):
    """The call gets the shape's value, and the parameter alone is an operand."""

    def call(x):
        return apply_op("PartitionedCall", [x, np.int32([2, 3])], Tout=[F], f=function("shape"))[0]

    result = compiled(graph_of(call, "float", graph=graph), parameter("float", 6))
    assert "call" in opcodes(result)
    assert run(result, [np.arange(6, dtype=np.float32)])[0].shape == (2, 3)
