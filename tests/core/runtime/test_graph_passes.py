"""Passes on graphs: their registry, constant folding, common subgraphs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.graphs.running import Extension, constant_like, while_loop

from cyxla.core.framework.apply import apply_op
from cyxla.core.graph.graph import Graph
from cyxla.core.runtime.common_subgraph import eliminate
from cyxla.core.runtime.optimization_registry import (
    Grouping,
    OptimizationPassOptions,
    OptimizationPassRegistry,
    register_pass,
)
from cyxla.core.runtime.session import Session
from cyxla.core.runtime.step_stats import RunMetadata
from cyxla.core.runtime.tree_aggregation import tree_aggregation
from cyxla.errors import InvalidArgumentError


def ops_that_ran(session, fetch, feeds=None):
    """Result of a run, and the sorted types of the nodes that ran."""
    metadata = RunMetadata()
    result = session.run(fetch, feeds, metadata=metadata)
    return result, sorted(row.op for row in metadata.step_stats.nodes)


# --- the registry -----------------------------------------------------------------------------------------------------
def test_passes_run_by_group_and_phase():
    registry, seen = OptimizationPassRegistry(), []
    for grouping in reversed(Grouping):
        for phase in (20, 5):
            register_pass(grouping, phase, lambda o, k=(grouping, phase): seen.append(k), registry=registry)
    graph = Graph()
    y = graph.constant(1.0)
    session = Session(graph, passes=registry)
    session.run(y)
    assert seen == [(g, p) for g in Grouping for p in (5, 20)]
    session.run(y)
    assert len(seen) == 2 * len(Grouping)  # once for an executor


def test_passes_see_the_graph_of_their_group():
    registry, seen = OptimizationPassRegistry(), {}

    def look(options):
        graph = options.graph
        seen[len(seen)] = (
            sorted(node.op for node in graph.nodes.values()),
            all(node.assigned_device for node in graph.nodes.values()),
            options.device.rpartition(":")[0],
        )

    for grouping in Grouping:
        registry.register(grouping, 1, look)
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("float", [])
        y = apply_op("Neg", x)
        apply_op("Exp", y)
    Session(graph, passes=registry).run(y, {x: 1.0})
    whole, part = ["Exp", "Neg", "Placeholder"], ["Neg", "_Arg", "_Retval"]
    device = "/job:localhost/replica:0/task:0/device:CPU"
    on_device = (part, True, device)
    assert seen == {0: (whole, False, ""), 1: (whole, True, ""), 2: (part, True, ""), 3: on_device, 4: on_device}


def test_a_pass_may_rewrite():
    """A user's pass on the registry that the session uses."""
    registry = OptimizationPassRegistry()

    def negate_twice(options):
        for node in list(options.graph.nodes.values()):
            for k, tensor in enumerate(node.inputs):
                if tensor.node.op == "Neg" and tensor.node.inputs[0].node.op == "Neg":
                    node.inputs[k] = tensor.node.inputs[0].node.inputs[0]

    registry.register(Grouping.POST_REWRITE_FOR_EXEC, 10, negate_twice)
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("float", [])
        y = apply_op("Exp", apply_op("Neg", apply_op("Neg", x)))
    session = Session(graph, passes=registry)
    assert ops_that_ran(session, y, {x: 0.0})[0] == 1


def test_an_error_names_the_pass():
    registry = OptimizationPassRegistry()

    def refuse(options):
        raise InvalidArgumentError("no such graph")

    registry.register(Grouping.PRE_PLACEMENT, 3, refuse)
    graph = Graph()
    with pytest.raises(InvalidArgumentError) as caught:
        Session(graph, passes=registry).run(graph.constant(1.0))
    assert caught.value.where == "pass 'refuse' (PRE_PLACEMENT, phase 3)"
    registry.unregister("refuse")
    assert registry.passes() == []


# --- constant folding -------------------------------------------------------------------------------------------------
def test_constants_are_folded():
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("float", [], name="x")
        y = x * apply_op("Sum", apply_op("Range", 0.0, 5.0, 1.0), 0) + apply_op("Sqrt", graph.constant(16.0))
    session = Session(graph)
    assert ops_that_ran(session, y, {x: 2.0}) == (24, ["AddV2", "Mul"])
    assert ops_that_ran(Session(graph, optimize=False), y, {x: 2.0})[0] == 24


def test_stateful_nodes_and_those_with_control_inputs_are_not_folded():
    ext, ran = Extension(), []

    def note(ctx):
        ran.append(1)
        ctx.set_output(0, ctx.input(0))

    ext.probe("Pure", note)
    ext.probe("Effect", note, stateful=True)
    graph = ext.graph()
    with graph.as_default():
        c = graph.constant(1.0)
        effect = apply_op("Effect", c)
        with graph.control_dependencies([effect]):
            held = apply_op("Pure", c)
        y = held + apply_op("Pure", c)
    session = ext.session(graph)
    for expected in (3, 5, 7):  # the free one once, while preparing
        assert session.run(y) == 2
        assert len(ran) == expected


def test_folding_leaves_errors_to_the_run():
    graph = Graph()
    with graph.as_default():
        bad = apply_op("CheckNumerics", graph.constant(np.float32(np.inf)), message="boom", name="bad")
        unneeded = apply_op("Neg", bad)
    session = Session(graph)
    with pytest.raises(InvalidArgumentError, match="boom") as caught:
        session.run(unneeded)
    assert caught.value.node == "bad"


def test_folded_results_can_be_fetched():
    graph = Graph()
    with graph.as_default():
        parts = apply_op("Split", 0, graph.constant([1.0, 2.0, 3.0]), num_split=3)
        text = apply_op("Identity", graph.constant([b"a", b"b"]))
    session = Session(graph)
    assert [v.tolist() for v in session.run([*parts, text])] == [[1.0], [2.0], [3.0], [b"a", b"b"]]


# --- common subgraphs -------------------------------------------------------------------------------------------------
def test_equal_nodes_become_one():
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("float", [], name="x")
        y = apply_op("Exp", x * 2.0) + apply_op("Exp", x * 2.0)
    result, ops = ops_that_ran(Session(graph), y, {x: 0.0})
    assert (result, ops) == (2, ["AddV2", "Exp", "Mul"])


@pytest.mark.parametrize(
    "op, left", [("AddV2", 1), ("Mul", 1), ("Maximum", 2), ("Add", 2), ("Equal", 1), ("Sub", 2), ("RealDiv", 2)]
)
def test_operands_of_commutative_ops_may_be_exchanged(op, left):
    graph = Graph()
    with graph.as_default():
        x, y = graph.placeholder("float", []), graph.placeholder("float", [])
        apply_op(op, x, y)
        apply_op(op, y, x)
    eliminate(graph)
    assert sum(node.op == op for node in graph.nodes.values()) == left


def test_different_nodes_are_kept():
    """Other attributes, constants, control inputs, devices; and stateful nodes always."""
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("float", [2, 2])
        apply_op("MatMul", x, x, transpose_a=True)
        apply_op("MatMul", x, x)
        graph.constant(0.0), graph.constant(-0.0), graph.constant(0)
        apply_op("RandomUniform", [2], dtype="float"), apply_op("RandomUniform", [2], dtype="float")
        with graph.control_dependencies([apply_op("NoOp")]):
            apply_op("Neg", x)
        apply_op("Neg", x)
    for node, device in zip([apply_in(graph, "Abs", x), apply_in(graph, "Abs", x)], "ab", strict=True):
        node.assigned_device = device
    before = sorted(node.op for node in graph.nodes.values())
    eliminate(graph)  # only the two constants [2] are equal
    after = sorted(node.op for node in graph.nodes.values())
    before.remove("Const")
    assert after == before


def apply_in(graph, op, *inputs):
    with graph.as_default():
        return apply_op(op, *inputs).node


def test_loops_survive():
    graph = Graph()
    with graph.as_default():
        zero = graph.constant(0.0)
        outs = [
            while_loop(
                graph,
                lambda i: apply_op("Less", i, constant_like(i, 5)),
                lambda i: [i + constant_like(i, 1) * constant_like(i, 1)],
                [zero],
            )[0]
            for _ in range(2)
        ]
        y = outs[0] + outs[1]
    assert Session(graph).run(y) == 10


# --- both -------------------------------------------------------------------------------------------------------------
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_random_graphs_give_the_same_with_and_without_passes(data):
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("float", [2], name="x")
        tensors = [x, graph.constant([1.0, 2.0]), graph.constant([1.0, 2.0]), graph.constant(3.0)]
        for _ in range(data.draw(st.integers(1, 15))):
            op = data.draw(st.sampled_from(["AddV2", "Mul", "Sub", "Neg", "Maximum", "Square"]))
            arity = 1 if op in ("Neg", "Square") else 2
            chosen = [data.draw(st.sampled_from(tensors)) for _ in range(arity)]
            controls = data.draw(st.lists(st.sampled_from(tensors), max_size=1))
            with graph.control_dependencies(controls):
                tensors.append(apply_op(op, *chosen))
    fetches = data.draw(st.lists(st.sampled_from(tensors), min_size=1, max_size=4))
    values = [Session(graph, optimize=flag).run(fetches, {x: [0.5, -2.0]}) for flag in (False, True)]
    for plain, optimised in zip(*values, strict=True):
        np.testing.assert_array_equal(plain, optimised)


# --- aggregation by devices -------------------------------------------------------------------------------------------
def sum_of_three_devices(op="AddN", readers=(), **attrs):
    """A sum on the first device of two tensors of each of three devices; other nodes there read some of them, too."""
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("int32", [4], name="x")
        tensors = []
        for device in range(3):
            with graph.device(f"/cpu:{device}"):
                tensors += [apply_op("Mul", x, np.int32(10**device * k), name=f"t{device}{k}") for k in (1, 2)]
        with graph.device("/cpu:0"):
            y = apply_op(op, [*tensors, tensors[-1]], **attrs, name="y")
            others = [apply_op("Neg", tensors[k]) for k in readers]
    return graph, [y, *others]


def run_on_three_devices(graph, fetches, **options):
    """Results, and the numbers of tensors that the second and the third device send."""
    metadata = RunMetadata()
    session = Session(graph, devices={"CPU": 3}, **options)
    results = session.run(fetches, {"x:0": [1, 2, 3, 4]}, metadata=metadata)
    sends = [node.assigned_device[-1] for part in metadata.partition_graphs for node in part.nodes.values()
             if node.op == "_Send" and node.assigned_device[-1] != "0"]  # fmt: skip
    return results, [sends.count("1"), sends.count("2")]


@pytest.mark.parametrize("op, attrs", [("AddN", {}), ("AccumulateNV2", {"shape": [4]})])
def test_each_device_sends_one_partial_sum(op, attrs):
    graph, fetches = sum_of_three_devices(op, **attrs)
    wanted, before = run_on_three_devices(graph, fetches, optimize=False)
    found, after = run_on_three_devices(graph, fetches)
    assert (before, after) == ([2, 2], [1, 1])
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(found[0], 533 * np.arange(1, 5))


def test_tensors_that_are_sent_anyway_are_not_aggregated():
    """One of the second device: the other is sent alone, as it is. Both of the third."""
    graph, fetches = sum_of_three_devices(readers=(2, 4, 5))
    wanted, before = run_on_three_devices(graph, fetches, optimize=False)
    found, after = run_on_three_devices(graph, fetches)
    assert (before, after) == ([2, 2], [2, 2])
    np.testing.assert_array_equal(found, wanted)


def test_sums_on_one_device_stay():
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("float", [])
        y = apply_op("AddN", [x, x * 2.0, x * 3.0])
    assert ops_that_ran(Session(graph, devices={"CPU": 2}), y, {x: 1.0})[1].count("AddN") == 1


def test_sums_of_devices_without_a_kernel_stay():
    ext = Extension()
    ext.op("Sum3", "x: N * int32 -> y: int32", "N: int >= 1", aggregate=True)
    ext.kernel("Sum3")(lambda ctx: ctx.set_output(0, sum(ctx.input_list("x"))))
    ext.kernel("Sum3", device="TPU")(lambda ctx: ctx.set_output(0, sum(ctx.input_list("x"))))
    for device, count in (("CPU", 1), ("TPU", 1), ("GPU", 0)):
        graph = ext.graph()
        with graph.as_default():
            tensors = [graph.constant(k, "int32") for k in (1, 2)]
            y = apply_op("Sum3", tensors)
        for tensor in tensors:
            tensor.node.assigned_device = f"/job:localhost/replica:0/task:0/device:{device}:1"
        y.node.assigned_device = "/job:localhost/replica:0/task:0/device:CPU:0"
        engine = ext.session(graph).engine
        assert tree_aggregation(OptimizationPassOptions(graph, engine)) == count
        assert len(y.node.inputs) == 2 - count
