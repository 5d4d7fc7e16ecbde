"""Reads before writes, in every cluster."""

import numpy as np
import pytest
from support.graphs.jitting import auto, clusters, ones

import cyxla
from cyxla.autojit.analysis.resource_safety import Access, access_of, incompatible_pairs, is_safe
from cyxla.autojit.flags import flags
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.types import DataType
from cyxla.core.graph.graph import Graph

F = DataType.DT_FLOAT
R, W, B = Access.READ, Access.WRITE, Access.BOTH
SAFE = {(R, R), (R, W), (R, B), (W, W), (B, W)}


@pytest.mark.parametrize("first", [R, W, B])
@pytest.mark.parametrize("second", [R, W, B])
def test_which_order_a_cluster_keeps(first, second):
    assert is_safe(first, second) == ((first, second) in SAFE)


def written_then_read():
    """A variable that is written, and then read: the graph, the handle, and the two nodes."""
    graph = Graph()
    x = graph.placeholder("float", [2], name="x")
    with graph.as_default():
        handle = apply_op("VarHandleOp", dtype=F, shape=[2], name="v")
        write = apply_op("AssignVariableOp", handle, apply_op("Neg", apply_op("Exp", x)), dtype=F)
        with graph.control_dependencies([write]):
            read = apply_op("ReadVariableOp", handle, dtype=F)
        y = apply_op("Sin", apply_op("Tanh", read))
    return graph, handle.node, write, read.node, y


def test_pairs():
    graph, handle, write, read, _ = written_then_read()
    assert [access_of(n) for n in (handle, write, read)] == [Access.NONE, W, R]
    assert incompatible_pairs(graph) == {(write, read)}


@pytest.mark.parametrize("ignored, count", [(False, 2), (True, 1)])
def test_a_write_and_a_later_read_are_in_two_clusters(ignored, count):
    """An edge from a write to a read is never inside of a cluster; unless a flag says so."""
    graph, _, _, _, y = written_then_read()
    x = np.array([0.5, -1], np.float32)
    with flags(tf_xla_min_cluster_size=1, tf_xla_disable_resource_variable_safety_checks_for_debugging=ignored):
        session = auto(graph)
        result = session.run(y, {"x:0": x})
    assert len(clusters(session)) == count
    np.testing.assert_allclose(result, cyxla.Session(graph).run(y, {"x:0": x}), rtol=1e-5)


def test_training_keeps_its_variables_right():
    """Five steps of a small training graph, clustered and not."""
    graph = Graph()
    x = graph.placeholder("float", [4, 3], name="x")
    with graph.as_default():
        handle = apply_op("VarHandleOp", dtype=F, shape=[3, 1], name="w")
        init = apply_op("AssignVariableOp", handle, graph.constant(ones(3, 1)), dtype=F)
        w = apply_op("ReadVariableOp", handle, dtype=F)
        loss = apply_op("L2Loss", apply_op("Tanh", apply_op("MatMul", x, w)))
        (dw,) = cyxla.gradients([loss], [w])
        step = apply_op("ResourceApplyGradientDescent", handle, graph.constant(np.float32(0.1)), dw)
        with graph.control_dependencies([step]):
            after = apply_op("ReadVariableOp", handle, dtype=F, name="after")
    sessions = [cyxla.Session(graph), auto(graph)]
    found = []
    for session in sessions:
        session.run(init)
        rng = np.random.default_rng(1)
        found.append([session.run([loss, after], {x: rng.standard_normal((4, 3)).astype("f")}) for _ in range(5)])
    for a, b in zip(*found, strict=True):
        for u, v in zip(a, b, strict=True):
            np.testing.assert_allclose(u, v, rtol=1e-5, atol=1e-6)
    assert len(clusters(sessions[1])) == 1
