"""Devices on which everything is compiled."""

import numpy as np
import pytest
from support.graphs.jitting import UNARY, cache, clusters, nodes_that_run, ones

import cyxla
from cyxla.autojit.devices import Policy, get_compilation_device
from cyxla.autojit.flags import flags
from cyxla.autojit.runtime.xla_device import XlaDeviceFactory, register_devices
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.types import DataType
from cyxla.core.graph.graph import Graph
from cyxla.core.runtime.device_factory import DeviceFactoryRegistry
from cyxla.errors import InvalidArgumentError, NotFoundError

PLATFORM = {"XLA_CPU": "cpu", "XLA_INTERPRETER": "interpreter"}


def placed(*parts):
    """A chain of ops on several devices: ``(device, how many)``."""
    graph = Graph()
    x = y = graph.placeholder("float", [None], name="x")
    with graph.as_default():
        for device, count in parts:
            with graph.device(f"/device:{device}:0"):
                for k in range(count):
                    y = apply_op(UNARY[k % 4], y)
    return graph, x, y


def test_devices_are_there_when_asked_for():
    """Absent without the flag; the interpreter has priority 40."""
    registry = DeviceFactoryRegistry()
    register_devices(registry)
    assert registry.priorities() == {"XLA_CPU": 50, "XLA_INTERPRETER": 40}
    assert len(registry.create_devices()) == 0
    with flags(tf_xla_enable_xla_devices=True):
        assert [d.device_type for d in registry.create_devices()] == ["XLA_CPU", "XLA_INTERPRETER"]


@pytest.mark.parametrize("device", PLATFORM)
@pytest.mark.parametrize("count, clustered", [(2, 0), (4, 1)])
def test_nodes_on_the_device_are_compiled(device, count, clustered):
    """The size rule applies, and nodes of clusters that are too small are compiled op by op."""
    graph, x, y = placed((device, count))
    plain = cyxla.Session(graph).run(y, {x: ones(3)})
    with flags(tf_xla_enable_xla_devices=True):
        session = cyxla.Session(graph)
        ran = nodes_that_run(session, y, {x: ones(3)})
        np.testing.assert_allclose(session.run(y, {x: ones(3)}), plain, rtol=1e-5)
    assert len(clusters(session)) == clustered
    assert ("cluster_0_1/xla_run" in ran) == bool(clustered)
    assert cache(session, PLATFORM[device]).compile_count == (1 if clustered else count)


def test_parts_on_three_devices():
    graph, x, y = placed(("CPU", 2), ("XLA_CPU", 5), ("XLA_INTERPRETER", 2), ("CPU", 1))
    plain = cyxla.Session(graph).run(y, {x: ones(3)})
    with flags(tf_xla_enable_xla_devices=True):
        session = cyxla.Session(graph)
        np.testing.assert_allclose(session.run(y, {x: ones(3)}), plain, rtol=1e-5)
    assert len(clusters(session)) == 1


def test_each_op_by_itself():
    """--tf_xla_compile_on_demand."""
    graph, x, y = placed(("XLA_INTERPRETER", 5))
    with flags(tf_xla_enable_xla_devices=True, tf_xla_compile_on_demand=True):
        session = cyxla.Session(graph)
        session.run(y, {x: ones(3)})
    assert not clusters(session)
    assert "on its own" in session.clusters()["Exp"].reason


def test_constants_and_variables_by_themselves():
    """Arguments that must be known, and variables, of ops that are compiled alone."""
    graph = Graph()
    x, shape = graph.placeholder("float", [4], name="x"), graph.placeholder("int32", [2], name="shape")
    with graph.as_default(), graph.device("/device:XLA_INTERPRETER:0"):
        y = apply_op("Reshape", x, shape)
        handle = apply_op("VarHandleOp", dtype=DataType.DT_FLOAT, shape=[4], name="v")
        init = apply_op("AssignVariableOp", handle, graph.constant(ones(4)), dtype=DataType.DT_FLOAT)
        add = apply_op("AssignAddVariableOp", handle, x, dtype=DataType.DT_FLOAT)
        with graph.control_dependencies([add]):
            after = apply_op("ReadVariableOp", handle, dtype=DataType.DT_FLOAT)
    with flags(tf_xla_enable_xla_devices=True):
        session = cyxla.Session(graph)
        session.run(init)
        feeds = {x: np.arange(4).astype("f"), shape: np.array([2, 2], np.int32)}
        found = session.run([y, after], feeds)
    assert found[0].tolist() == [[0, 1], [2, 3]]
    assert found[1].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("device", ["XLA_CPU_JIT", "XLA_INTERPRETER_JIT"])
def test_compilation_devices_take_no_nodes(device):
    """A request for one is code 3."""
    graph, x, y = placed((device, 1))
    with flags(tf_xla_enable_xla_devices=True), pytest.raises(InvalidArgumentError, match=device):
        cyxla.Session(graph, soft_placement=False).run(y, {x: ones(1)})


def test_compilation_devices_of_devices():
    info = get_compilation_device("CPU")
    assert (info.compilation_device, info.policy) == ("XLA_CPU_JIT", Policy.IF_REQUESTED)
    XlaDeviceFactory("XLA_CPU_JIT", "cpu").create_devices("XLA_CPU", 1)
    info = get_compilation_device("XLA_CPU")
    assert (info.compilation_device, info.policy) == ("XLA_CPU_JIT", Policy.ALWAYS)
    with pytest.raises(NotFoundError, match="ABACUS"):
        get_compilation_device("ABACUS")
