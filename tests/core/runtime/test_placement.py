"""Devices, their factories, placement, and graphs on several devices."""

import numpy as np
import pytest
from support.graphs.running import Extension, constant_like, while_loop

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.device_base import DeviceName
from cyxla.core.graph.graph import Graph
from cyxla.core.runtime.device import Device, DeviceSet, full_name
from cyxla.core.runtime.device_factory import DeviceFactoryRegistry, ThreadPoolDeviceFactory, register_device
from cyxla.core.runtime.placer import Placer
from cyxla.core.runtime.session import Session
from cyxla.core.runtime.step_stats import RunMetadata
from cyxla.errors import AlreadyExistsError, InvalidArgumentError, OpError, UnimplementedError

CPU0, CPU1 = full_name("CPU", 0), full_name("CPU", 1)


def devices(*kinds, **priorities):
    """A set of devices: kinds are types, numbered from 0 each."""
    made = []
    for kind in kinds:
        made.append(Device(full_name(kind, sum(d.device_type == kind for d in made)), kind))
    return DeviceSet(made, {"CPU": 60, **priorities})


@pytest.fixture
def ext():
    """Toy kernels for Toy devices: ``Both`` runs on Toy and CPU, ``OnlyToy`` and ``OnlyCpu`` on one of them."""
    ext = Extension()

    def give(ctx):
        ctx.set_output(0, ctx.input(0) + np.float32(1))

    for name, types in (("Both", ("Toy", "CPU")), ("OnlyToy", ("Toy",)), ("OnlyCpu", ("CPU",))):
        ext.op(name, "x: float -> y: float")
        for device in types:
            ext.kernel(name, device=device)(give)
    ext.op("Jit", "x: float -> y: float")
    ext.kernel("Jit", device="XLA_CPU_JIT")(give)
    for op in ("Const", "Identity", "Neg"):
        for row in ext.kernels.global_().registrations(op):
            facts = row.kernel_def
            if facts.device_type == "CPU":
                from dataclasses import replace

                ext.kernels.register(replace(facts, device_type="Toy"), row.factory)
    return ext


def place(graph, ext, kinds, soft=True, **priorities):
    """Types and numbers of the devices that nodes are placed on, by name."""
    Placer(graph, devices(*kinds, **priorities), soft_placement=soft, kernels=ext.kernels).run()
    return {n.name: n.assigned_device.rpartition("device:")[2] for n in graph.nodes.values()}


# --- devices ----------------------------------------------------------------------------------------------------------
def test_factories_have_priorities():
    registry = DeviceFactoryRegistry()
    registry.register("CPU", ThreadPoolDeviceFactory(), 60)
    register_device("Toy", ThreadPoolDeviceFactory(), registry=registry)
    assert [(e.device_type, e.priority) for e in registry.entries()] == [("CPU", 60), ("Toy", 50)]
    with pytest.raises(AlreadyExistsError):
        registry.register("Toy", ThreadPoolDeviceFactory())
    registry.register("Toy", ThreadPoolDeviceFactory(), 40)  # lower: ignored
    registry.register("Toy", ThreadPoolDeviceFactory(), 210)
    made = registry.create_devices({"CPU": 2})
    assert made.names() == [full_name("Toy", 0), CPU0, CPU1]
    assert made.types == ["Toy", "CPU"]


@pytest.mark.parametrize(
    "counts, message", [({"TPU": 1}, "no factory"), ({"CPU": -1}, "-1 devices"), ({"CPU": 10**9}, "0 to")]
)
def test_wrong_counts_of_devices(counts, message):
    with pytest.raises(InvalidArgumentError, match=message):
        Session(Graph(), devices=counts)


def test_no_device_at_all():
    with pytest.raises(InvalidArgumentError, match="no device to run on"):
        Session(Graph(), devices={"CPU": 0})


def test_devices_are_found_by_name():
    made = devices("CPU", "CPU", "XLA_CPU_JIT")
    assert made.find(CPU1).name == CPU1
    assert made.find("/cpu:1").name == CPU1
    assert [d.name for d in made.matching(DeviceName.parse("/device:CPU:*"))] == [CPU0, CPU1]
    assert len(made.placeable) == 2
    with pytest.raises(InvalidArgumentError, match=r"no device '/device:GPU:0'[\s\S]*CPU:0"):
        made.find("/device:GPU:0")


# --- placement --------------------------------------------------------------------------------------------------------
def build(ext, *nodes):
    """A graph of one-input nodes in a row: (op, name, device)."""
    graph = ext.graph()
    with graph.as_default():
        t = graph.placeholder("float", [], name="x")
        for op, name, device in nodes:
            with graph.device(device):
                t = apply_op(op, t, name=name)
    return graph


@pytest.mark.parametrize("nodes, priority, places", [
    ([("Both", "a", "")],                              500, {"a": "Toy:0"}),
    ([("Both", "a", "")],                              40,  {"a": "CPU:0"}),
    ([("OnlyCpu", "a", ""), ("OnlyToy", "b", "")],     500, {"a": "CPU:0", "b": "Toy:0"}),
    ([("Both", "a", "/device:CPU:1")],                 500, {"a": "CPU:1"}),
    ([("Both", "a", "/cpu:1")],                        500, {"a": "CPU:1"}),
    ([("Both", "a", "/device:CPU:*")],                 500, {"a": "CPU:0"}),
    ([("Both", "a", "/job:localhost/task:0")],         500, {"a": "Toy:0"}),
    ([("OnlyCpu", "a", "/device:Toy:0")],              500, {"a": "CPU:0"}),   # soft: no kernel there
    ([("Both", "a", "/device:GPU:0")],                 40,  {"a": "CPU:0"}),   # soft: no such device
    ([("Both", "a", "/device:CPU:7")],                 500, {"a": "Toy:0"}),
    ([("OnlyToy", "a", ""), ("Shape", "s", "")],       40,  {"a": "Toy:0", "s": "CPU:0"}),  # Shape has no Toy kernel
])  # fmt: skip
def test_placement(ext, nodes, priority, places):
    found = place(build(ext, *nodes), ext, ["CPU", "CPU", "Toy"], Toy=priority)
    assert {name: found[name] for name in places} == places


def test_sources_go_where_their_consumers_are(ext):
    """First heuristic."""
    graph = ext.graph()
    with graph.as_default():
        shared, own = graph.constant(1.0, name="shared"), graph.constant(1.0, name="own")
        with graph.device("/cpu:1"):
            apply_op("Both", own, name="a")
            apply_op("Both", shared, name="b")
        with graph.device("/cpu:0"):
            apply_op("Both", shared, name="c")
    found = place(graph, ext, ["CPU", "CPU"])
    assert (found["own"], found["shared"]) == ("CPU:1", "CPU:0")


def test_ops_that_look_at_shapes_go_where_their_input_is(ext):
    """Second heuristic."""
    found = place(build(ext, ("OnlyCpu", "a", "/cpu:1"), ("Shape", "s", "")), ext, ["CPU", "CPU"])
    assert found["s"] == "CPU:1"


def test_colocation_and_resources_keep_nodes_together(ext):
    graph = ext.graph()
    with graph.as_default():
        with graph.device("/cpu:1"):
            handle = apply_op("VarHandleOp", dtype="float", shape=[], name="v")
        apply_op("ReadVariableOp", handle, dtype="float", name="read")
        ref = apply_op("VariableV2", dtype="float", shape=[], name="ref")
        with graph.device("/cpu:1"):
            apply_op("Assign", ref, np.float32(1), name="assign")
        with graph.colocate_with(ref):
            apply_op("Both", graph.constant(1.0), name="near")
    found = place(graph, ext, ["CPU", "CPU"])
    assert {found[name] for name in ("v", "read", "ref", "assign", "near")} == {"CPU:1"}


def test_colocated_nodes_with_different_requests(ext):
    """Hard placement refuses, soft placement drops the part in dispute."""
    graph = ext.graph()
    with graph.as_default():
        with graph.device("/cpu:1"):
            handle = apply_op("VarHandleOp", dtype="float", shape=[], name="v")
        with graph.device("/cpu:0"):
            apply_op("ReadVariableOp", handle, dtype="float", name="read")
    with pytest.raises(InvalidArgumentError, match="node 'read' cannot be placed on any device"):
        place(graph.copy(), ext, ["CPU", "CPU"], soft=False)
    found = place(graph, ext, ["CPU", "CPU"])
    assert found["v"] == found["read"]


@pytest.mark.parametrize("node, message", [
    (("Both", "a", "/device:GPU:0"),         r"'/device:GPU:0' was requested, but the devices are \[.*CPU:0"),
    (("OnlyCpu", "a", "/device:Toy:0"),      "no device that matches '/device:Toy:0' has kernels"),
    (("Jit", "a", "/device:XLA_CPU_JIT:0"),  "XLA_CPU_JIT devices serve compilers only"),
    (("Both", "a", "/job:other"),            "'/job:other' was requested"),
])  # fmt: skip
def test_impossible_requests(ext, node, message):
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        place(build(ext, node), ext, ["CPU", "Toy", "XLA_CPU_JIT"], soft=False)
    assert caught.value.node == "a"


def test_nothing_is_placed_on_a_compilation_device(ext):
    found = place(build(ext, ("Jit", "a", ""), ("Both", "b", "")), ext, ["CPU", "XLA_CPU_JIT"], XLA_CPU_JIT=900)
    assert set(found.values()) == {"CPU:0"}


def test_assigned_devices_stay(ext):
    graph = build(ext, ("Both", "a", "/cpu:0"))
    graph.node("a").assigned_device = CPU1
    assert place(graph, ext, ["CPU", "CPU"])["a"] == "CPU:1"


def test_a_session_refuses_or_moves(ext):
    graph = build(ext, ("Both", "a", "/device:GPU:0"))
    assert ext.session(graph).run("a:0", {"x:0": 1.0}) == 2
    with pytest.raises(InvalidArgumentError, match=r"devices are \[.*CPU:0"):
        ext.session(graph, soft_placement=False).run("a:0", {"x:0": 1.0})


def test_a_request_that_is_no_name(ext):
    graph = build(ext, ("Both", "a", ""))
    graph.node("a").device = "/nonsense"
    with pytest.raises(InvalidArgumentError, match="nonsense"):
        ext.session(graph).run("a:0", {"x:0": 1.0})


def test_placement_is_logged_once_a_node(ext, capsys):
    graph = build(ext, ("Both", "a", ""))
    session = ext.session(graph, log_device_placement=True)
    for _ in range(2):
        session.run("a:0", {"x:0": 1.0})
    assert capsys.readouterr().err.splitlines() == [f"x: (Placeholder): {CPU0}", f"a: (Both): {CPU0}"]


# --- several devices --------------------------------------------------------------------------------------------------
def two_devices(ext=None):
    graph = (ext or Extension()).graph()
    with graph.as_default():
        x = graph.placeholder("float", [2], name="x")
        with graph.device("/cpu:0"):
            a = apply_op("Mul", x, np.float32(2), name="a")
        with graph.device("/cpu:1"):
            b = apply_op("AddV2", a, np.float32(1), name="b")
            c = apply_op("Neg", a, name="c")
        with graph.device("/cpu:0"):
            apply_op("Sub", b, c, name="y")
    return graph


def test_a_graph_on_two_devices():
    """A value is sent to each other device once."""
    session = Session(two_devices(), devices={"CPU": 2})
    metadata = RunMetadata()
    np.testing.assert_array_equal(session.run("y:0", {"x:0": [1, 2]}, metadata=metadata), [5, 9])
    ops = [
        sorted(n.op for n in part.nodes.values() if n.op in ("_Send", "_Recv")) for part in metadata.partition_graphs
    ]
    assert sorted(ops) == [["_Recv", "_Recv", "_Send"], ["_Recv", "_Send", "_Send"]]
    assert {row.device for row in metadata.step_stats.nodes} == {CPU0, CPU1}


def test_one_thread_is_enough_for_receives_before_sends():
    session = Session(two_devices(), devices={"CPU": 2}, threads=1)
    for _ in range(50):
        np.testing.assert_array_equal(session.run("y:0", {"x:0": [1, 2]}), [5, 9])


def test_control_edges_cross_devices():
    graph = Graph()
    with graph.as_default():
        with graph.device("/cpu:0"):
            handle = apply_op("VarHandleOp", dtype="float", shape=[], shared_name="v")
            assign = apply_op("AssignVariableOp", handle, np.float32(3), name="assign")
        with graph.device("/cpu:1"), graph.control_dependencies([assign]):
            middle = apply_op("NoOp", name="middle")
        with graph.device("/cpu:0"), graph.control_dependencies([middle]):
            apply_op("ReadVariableOp", handle, dtype="float", name="read")
    assert Session(graph, devices={"CPU": 2}).run("read:0") == 3


@pytest.mark.parametrize("taken", [True, False])
def test_deadness_crosses_devices(taken):
    graph = Graph()
    with graph.as_default():
        pred = graph.placeholder("bool", [], name="p")
        off, on = apply_op("Switch", graph.constant(1.0), pred)
        with graph.device("/cpu:1"):
            a, b = apply_op("Neg", on, name="a"), apply_op("Identity", off, name="b")
            with graph.control_dependencies([a]):
                c = apply_op("Const", value=np.float32(9), dtype="float", name="c")
        with graph.device("/cpu:0"):
            merged = apply_op("Merge", [a, b], name="m")[0]
            apply_op("Merge", [c, b], name="n")
    session = Session(graph, devices={"CPU": 2}, optimize=False)
    assert session.run(merged, {pred: taken}) == (-1 if taken else 1)
    assert session.run("n:0", {pred: taken}) == (9 if taken else 1)


def test_errors_cross_devices():
    """An error aborts the rendezvous, and is the one reported."""
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("float", [], name="x")
        with graph.device("/cpu:1"):
            checked = apply_op("CheckNumerics", x, message="found", name="check")
        with graph.device("/cpu:0"):
            apply_op("Neg", checked, name="y")
    session = Session(graph, devices={"CPU": 2})
    with pytest.raises(InvalidArgumentError, match="found") as caught:
        session.run("y:0", {"x:0": np.nan})
    assert caught.value.node == "check"
    assert session.run("y:0", {"x:0": 1.0}) == -1


def loop_graph(device):
    graph = Graph()
    with graph.as_default():
        with graph.device("/cpu:0"):
            start = apply_op("Identity", graph.constant(0.0))

        def body(i):
            with graph.device(device):
                return [i + constant_like(i, 1)]

        with graph.device("/cpu:1"):
            out = while_loop(graph, lambda i: apply_op("Less", i, constant_like(i, 5)), body, [start])
        with graph.device("/cpu:0"):
            apply_op("Neg", out[0], name="y")
    return graph


def test_a_loop_on_a_device_of_its_own():
    assert Session(loop_graph("/cpu:1"), devices={"CPU": 2}).run("y:0") == -5


def test_a_loop_that_spans_devices_is_not_supported():
    with pytest.raises(UnimplementedError, match="must stay on one device") as caught:
        Session(loop_graph("/cpu:0"), devices={"CPU": 2}).run("y:0")
    assert isinstance(caught.value, OpError)


def test_a_function_on_two_devices():
    from cyxla.core.framework.attr_value import NameAttrList
    from cyxla.core.graph.function_body import graph_to_function

    inner = two_devices()
    function = graph_to_function("f", [inner.tensor("x:0")], [inner.tensor("y:0")])
    graph = Graph()
    graph.library.add(function)
    with graph.as_default():
        x = graph.placeholder("float", [2], name="x")
        y = apply_op("PartitionedCall", [x], Tout=["float"], f=NameAttrList("f"))[0]
    np.testing.assert_array_equal(Session(graph, devices={"CPU": 2}).run(y, {x: [1, 2]}), [5, 9])


def test_the_same_graph_on_another_type_of_device(ext):
    """Only placement changes, the result does not."""
    registry = DeviceFactoryRegistry.global_()
    registry.register("Toy", ThreadPoolDeviceFactory(), 500)
    try:
        graph = build(ext, ("Both", "a", ""), ("Both", "b", ""))
        session, metadata = ext.session(graph), RunMetadata()
        assert session.run("b:0", {"x:0": 1.0}, metadata=metadata) == 3
        assert {row.device for row in metadata.step_stats.nodes if row.op == "Both"} == {full_name("Toy", 0)}
        on_cpu = ext.session(graph, devices={"Toy": 0})
        assert on_cpu.run("b:0", {"x:0": 1.0}) == 3
    finally:
        registry.unregister("Toy")
