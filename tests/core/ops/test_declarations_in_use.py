"""Effects of declarations on graphs that are built, saved, loaded and run."""

import numpy as np
import pytest

import cyxla
from cyxla.core.framework import apply_op
from cyxla.core.framework.declarations.op import OpRegistry, op
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.graph.graph import Graph
from cyxla.errors import AlreadyExistsError, FailedPreconditionError, InvalidArgumentError
from cyxla.tools.main import main

X = np.array([1.0, 2.0], np.float32)


def test_an_op_without_a_kernel_can_be_all_but_run():
    """Built, its shapes inferred, saved, loaded; only running it is an error of code 3."""
    if "ShapeOnly" not in OpRegistry.global_():
        op("ShapeOnly", "x: float -> y: float", shape=lambda c: c.set_output(0, (c.input(0)[0], 7)))
    graph = Graph()
    with graph.as_default():
        result = apply_op("ShapeOnly", X, name="here")
    assert result.shape == TensorShape([2, 7])
    loaded = cyxla.load_graph(graph.to_graph_def().SerializeToString())
    assert loaded.tensor("here:0").shape == TensorShape([2, 7])
    with pytest.raises(InvalidArgumentError, match="ShapeOnly"):
        cyxla.Session(loaded).run("here:0")


def test_a_user_declares_an_op(capsys):
    """The command line prints it; declared again it is ALREADY_EXISTS."""
    if "ZeroOutDeclared" not in OpRegistry.global_():
        op("ZeroOutDeclared", "to_zero: int32 -> zeroed: int32", shape=None)
    assert main(["op", "ZeroOutDeclared"]) == 0
    assert "signature=to_zero:int32 -> zeroed:int32" in capsys.readouterr().out
    with pytest.raises(AlreadyExistsError, match="ZeroOutDeclared"):
        op("ZeroOutDeclared", "to_zero: int32 -> zeroed: int32", shape=None)


def test_only_some_ops_take_variables_without_a_value():
    """Assign runs, Identity is FAILED_PRECONDITION."""
    graph = Graph()
    with graph.as_default():
        variable = apply_op("VariableV2", dtype="float32", shape=[2], name="v")
        apply_op("Assign", variable, X, name="assign")
        apply_op("Identity", variable, name="read")
    session = cyxla.Session(graph)
    with pytest.raises(FailedPreconditionError):
        session.run("read:0")
    session.run("assign:0")
    np.testing.assert_array_equal(session.run("read:0"), X)
