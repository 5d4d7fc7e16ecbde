"""Lists, arrays and loops that one cluster holds whole."""

import numpy as np
import pytest
from support.graphs.jitting import auto, cache, clusters, nodes_that_run, ones

import cyxla
from cyxla.autojit.analysis.indivisible_groups import indivisible_groups
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.framework.node_def import NodeDef
from cyxla.core.framework.types import DataType
from cyxla.core.graph.graph import Graph

F, INT = DataType.DT_FLOAT, DataType.DT_INT32


def both(graph, fetch, feeds, **options):
    """The values without and with clusters, and the session with them."""
    session = auto(graph, **options)
    plain = cyxla.Session(graph).run(fetch, feeds)
    for _ in range(2):
        np.testing.assert_allclose(session.run(fetch, feeds), plain, rtol=1e-6)
    return session


def a_list(graph):
    """Rows of x, squared by way of a list."""
    x = graph.placeholder("float", (3, 2), name="x")
    with graph.as_default():
        made = apply_op("TensorListFromTensor", apply_op("Square", x), np.int32([2]), name="made")
        changed = apply_op("TensorListSetItem", made, np.int32(1), np.float32([7, 8]), name="changed")
        stacked = apply_op("TensorListStack", changed, np.int32([2]), element_dtype=F, name="stacked")
        return x, apply_op("Neg", apply_op("Exp", stacked))


def test_a_list_is_compiled_with_all_that_touches_it():
    graph = Graph()
    x, y = a_list(graph)
    session = both(graph, y, {x: ones(3, 2)})
    (members,) = clusters(session).values()
    assert {"made", "changed", "stacked"} <= members


@pytest.mark.parametrize("outside", ["made", "changed", "stacked"])
def test_a_list_that_somebody_else_needs_stays_on_the_host(outside):
    graph = Graph()
    x, y = a_list(graph)
    graph.nodes[outside].attrs["_XlaCompile"] = AttrValue("bool", False)
    session = both(graph, y, {x: ones(3, 2)})
    assert not {"made", "changed", "stacked"} & set().union(*clusters(session).values())


def test_a_list_that_is_fetched_stays_on_the_host():
    graph = Graph()
    x, y = a_list(graph)
    session = auto(graph)
    found, _ = session.run([y, "changed:0"], {x: ones(3, 2)})
    np.testing.assert_allclose(found, cyxla.Session(graph).run(y, {x: ones(3, 2)}), rtol=1e-6)
    assert session.clusters()["changed"].reason == "its type variant stays on the host"


def test_two_lists_are_two_groups():
    graph = Graph()
    with graph.as_default():
        for k in range(2):
            made = apply_op("TensorListFromTensor", np.zeros((3, 2), np.float32), np.int32([2]), name=f"made{k}")
            apply_op("TensorListLength", made, name=f"length{k}")
    groups = {frozenset(n.name for n in g) for g in indivisible_groups(graph)}
    assert groups == {frozenset({"made0", "length0"}), frozenset({"made1", "length1"})}


def a_loop(graph, forbid=False):
    """Add a loop that counts to 5 and doubles x; a tensor array keeps the value of x in each iteration."""

    def add(op, name, inputs, **attrs):
        return graph.add_node(NodeDef(name, op, [t.name for t in inputs], "", attrs))

    def enter(tensor, name, dtype, constant=False):
        attrs = {"T": AttrValue("type", dtype), "frame_name": AttrValue("string", "loop"),
                 "is_constant": AttrValue("bool", constant), "parallel_iterations": AttrValue("int", 1)}  # fmt: skip
        return add("Enter", name, [tensor], **attrs).outputs[0]

    x = graph.placeholder("float", (2,), name="x")
    with graph.as_default():
        array = graph.add_node(NodeDef("array", "TensorArrayV3", [graph.constant(np.int32(5)).name], "", {
            "dtype": AttrValue("type", F), "element_shape": AttrValue("shape", x.shape)}))  # fmt: skip
        handle = enter(array.outputs[0], "handle", DataType.DT_RESOURCE, constant=True)
        starts = [(graph.constant(np.int32(0)), INT), (x, F), (array.outputs[1], F)]
        entered = [enter(t, f"enter{k}", d) for k, (t, d) in enumerate(starts)]
        merges = [
            add("Merge", f"merge{k}", [t, t], T=AttrValue("type", d), N=AttrValue("int", 2))
            for k, (t, (_, d)) in enumerate(zip(entered, starts, strict=True))
        ]
        five = enter(graph.constant(np.int32(5)), "five", INT, constant=True)
        one = enter(graph.constant(np.int32(1)), "one", INT, constant=True)
        going = add("LoopCond", "going", [apply_op("Less", merges[0].outputs[0], five)])
        switches = [
            add("Switch", f"switch{k}", [m.outputs[0], going.outputs[0]], T=AttrValue("type", d))
            for k, (m, (_, d)) in enumerate(zip(merges, starts, strict=True))
        ]
        i, value, flow = (s.outputs[1] for s in switches)
        doubled = apply_op("AddV2", value, value, name="doubled")
        if forbid:
            doubled.node.attrs["_XlaCompile"] = AttrValue("bool", False)
        written = add("TensorArrayWriteV3", "written", [handle, i, value, flow], T=AttrValue("type", F))
        turned = [apply_op("AddV2", i, one), doubled, written.outputs[0]]
        for k, (merge, tensor, (_, d)) in enumerate(zip(merges, turned, starts, strict=True)):
            again = add("NextIteration", f"next{k}", [tensor], T=AttrValue("type", d))
            graph.set_input(merge, 1, again.outputs[0])
        exits = [add("Exit", f"exit{k}", [s.outputs[0]], T=AttrValue("type", d)).outputs[0]
                 for k, (s, (_, d)) in enumerate(zip(switches, starts, strict=True))]  # fmt: skip
        gathered = add(
            "TensorArrayGatherV3", "gathered",
            [array.outputs[0], graph.constant(np.arange(5, dtype=np.int32)), exits[2]],
            dtype=AttrValue("type", F), element_shape=AttrValue("shape", x.shape),
        )  # fmt: skip
        return x, apply_op("AddV2", apply_op("Sum", gathered.outputs[0], np.int32([0])), exits[1])


def test_a_loop_of_frames_is_compiled_whole():
    """Frames become While nodes, which a cluster takes in."""
    graph = Graph()
    x, y = a_loop(graph)
    session = both(graph, y, {x: np.float32([1, 2])})
    ops = nodes_that_run(session, y, {x: np.float32([1, 2])}).values()
    assert not {"Enter", "While", "TensorArrayV3"} & set(ops)
    assert len(clusters(session)) == 1
    np.testing.assert_array_equal(session.run(y, {x: np.float32([1, 2])}), [63, 126])
    assert len(graph.library) == 0  # a session prepares a graph again when functions have come


def test_a_graph_of_loops_is_prepared_once():
    graph = Graph()
    x, y = a_loop(graph)
    session = auto(graph)
    for _ in range(4):
        session.run(y, {x: np.float32([1, 2])})
    assert cache(session).compile_count == 1


def test_a_loop_that_cannot_be_compiled_stays_as_it_is():
    graph = Graph()
    x, y = a_loop(graph, forbid=True)
    session = both(graph, y, {x: np.float32([1, 2])})
    assert "Enter" in nodes_that_run(session, y, {x: np.float32([1, 2])}).values()
