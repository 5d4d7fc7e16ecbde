"""Conditionals, loops and calls of functions."""

import threading

import numpy as np
import pytest
from cyxla.core.kernels.control.functional_ops import to_bool

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.attr_value import NameAttrList
from cyxla.core.framework.types import DataType
from cyxla.core.graph.function_body import graph_to_function
from cyxla.core.graph.graph import Graph
from cyxla.core.runtime.session import RunOptions, Session
from cyxla.errors import (
    DeadlineExceededError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    ResourceExhaustedError,
)


def define(graph, name, body, *types, shapes=None):
    """Add a function to a graph's library, traced from a Python function of tensors."""
    inner = Graph(graph.library.default_registry)
    inner.library = graph.library
    with inner.as_default():
        args = [inner.placeholder(t, None if shapes is None else shapes[k], name=f"a{k}") for k, t in enumerate(types)]
        results = body(*args)
    results = list(results) if isinstance(results, (list, tuple)) else [results]
    effects = [node for node in inner.nodes.values() if node.is_stateful]
    graph.library.add(graph_to_function(name, args, results, control_outputs=effects))
    return NameAttrList(name)


def run(build, feeds=None, **options):
    """Return the values of the tensors that a builder returns."""
    graph = Graph()
    with graph.as_default():
        result = build(graph)
    return Session(graph).run(result, feeds, **options)


# --- conditions -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("value, truth", [
    (np.array(True), True), (np.array(0), False), (np.array(-0.0), False), (np.array(np.nan), True),
    (np.array(2 - 1j), True), (np.array(b"", object), False), (np.array(b"0", object), True),
    (np.zeros(3), True), (np.ones((2, 0)), False), (np.array([], object), False),
])  # fmt: skip
def test_truth_of_predicates(value, truth):
    assert to_bool(value) is truth


def test_a_resource_is_no_condition():
    with pytest.raises(InvalidArgumentError, match="cannot be a condition"):
        to_bool(np.array(object(), object))


@pytest.mark.parametrize("op", ["If", "StatelessIf"])
@pytest.mark.parametrize("cond", [True, False])
def test_if(op, cond):
    def build(graph):
        then = define(graph, "then", lambda x: x + 1.0, "float")
        otherwise = define(graph, "otherwise", lambda x: x * 2.0, "float")
        x = graph.constant(5.0)
        return apply_op(op, cond, [x], Tout=["float"], then_branch=then, else_branch=otherwise)[0]

    assert run(build) == (6 if cond else 10)


@pytest.mark.parametrize("index, result", [(0, 1), (1, 2), (2, 3), (3, 3), (-1, 3), (-(2**31), 3)])
@pytest.mark.parametrize("op", ["Case", "StatelessCase"])
def test_case_runs_the_last_branch_for_an_index_outside(op, index, result):
    def build(graph):
        branches = [define(graph, f"b{k}", lambda x, k=k: x + float(k + 1), "float") for k in range(3)]
        return apply_op(op, np.int32(index), [graph.constant(0.0)], Tout=["float"], branches=branches)[0]

    assert run(build) == result


@pytest.mark.parametrize("op", ["While", "StatelessWhile"])
def test_while(op):
    def build(graph):
        cond = define(graph, "cond", lambda i, x: apply_op("Less", i, 10), "int32", "float")
        body = define(graph, "body", lambda i, x: (i + 1, x + x), "int32", "float")
        return apply_op(op, [graph.constant(0), graph.constant(1.0)], cond=cond, body=body)

    assert [v.item() for v in run(build)] == [10, 1024.0]


def test_a_loop_that_never_runs_and_a_condition_that_is_a_vector():
    def build(graph):
        cond = define(graph, "cond", lambda v: v, "float")  # empty: stop
        body = define(graph, "body", lambda v: v[1:], "float")
        return apply_op("While", [graph.placeholder("float", None, name="v")], cond=cond, body=body)[0]

    assert run(build, {"v:0": np.ones(4, np.float32)}).shape == (0,)
    assert run(build, {"v:0": np.ones((0, 2), np.float32)}).shape == (0, 2)


@pytest.mark.parametrize("start, limit, delta, total", [(0, 5, 1, 10), (5, 0, -2, 9), (3, 3, 0, 0), (2, 2, 1, 0)])
def test_for(start, limit, delta, total):
    def build(graph):
        body = define(graph, "body", lambda i, s: s + i, "int32", "int32")
        return apply_op("For", start, limit, delta, [graph.constant(0)], body=body)[0]

    assert run(build) == total


@pytest.mark.parametrize("start, limit, delta", [(0, 5, 0), (0, 5, -1), (5, 0, 1)])
def test_for_that_leads_nowhere(start, limit, delta):
    def build(graph):
        body = define(graph, "body", lambda i, s: s + i, "int32", "int32")
        return apply_op("For", start, limit, delta, [graph.constant(0)], body=body)[0]

    with pytest.raises(InvalidArgumentError, match=f"steps of {delta} do not lead from {start} to {limit}"):
        run(build)


# --- calls ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("op", ["PartitionedCall", "StatefulPartitionedCall"])
def test_calls_may_be_nested(op):

    def build(graph):
        inner = define(graph, "inner", lambda x: (x + 1.0, x), "float")
        outer = define(graph, "outer", lambda x: apply_op(op, [x], Tout=["float"] * 2, f=inner), "float")
        return apply_op(op, [graph.constant(1.0)], Tout=["float"] * 2, f=outer)

    assert [v.item() for v in run(build)] == [2, 1]


def test_a_function_may_be_an_op():
    def build(graph):
        define(graph, "triple", lambda x: x * 3.0, "float")
        return apply_op("triple", graph.constant(2.0))

    assert run(build) == 6


def test_stateful_nodes_of_a_function_run_though_nothing_needs_them():
    graph = Graph()

    def body(x):
        handle = apply_op("VarHandleOp", dtype="float", shape=[], shared_name="v")
        apply_op("AssignVariableOp", handle, x)
        return x

    with graph.as_default():
        f = define(graph, "f", body, "float", shapes=[[]])
        call = apply_op("StatefulPartitionedCall", [graph.constant(7.0)], Tout=["float"], f=f)[0]
        handle = apply_op("VarHandleOp", dtype="float", shape=[], shared_name="v")
        value = apply_op("ReadVariableOp", handle, dtype="float")
    session = Session(graph)
    session.run(call)
    assert session.run(value) == 7


def recursive(graph, depth_limit):
    """A function that calls itself as often as its argument says."""
    define(graph, "stop", lambda n: n * 0, "int32")
    again = Graph(graph.library.default_registry)
    again.library = graph.library
    with again.as_default():
        n = again.placeholder("int32", [], name="n")
        rest = apply_op("PartitionedCall", [n - 1], Tout=["int32"], f=NameAttrList("down"))[0]
        result = rest + 1
    graph.library.add(graph_to_function("again", [n], [result]))
    down = Graph(graph.library.default_registry)
    down.library = graph.library
    with down.as_default():
        n = down.placeholder("int32", [], name="n")
        result = apply_op("If", n, [n], Tout=["int32"], then_branch="again", else_branch="stop")[0]
    graph.library.add(graph_to_function("down", [n], [result]))
    return apply_op("PartitionedCall", [np.int32(depth_limit)], Tout=["int32"], f=NameAttrList("down"))[0]


def test_functions_may_be_recursive():
    assert run(lambda graph: recursive(graph, 20)) == 20


def test_recursion_without_end_is_an_error_and_no_crash():
    with pytest.raises((ResourceExhaustedError, InvalidArgumentError)) as caught:
        run(lambda graph: recursive(graph, 10**6))
    assert isinstance(caught.value, OpError)


@pytest.mark.parametrize("build, error", [
    (lambda g: apply_op("If", True, [g.constant(1.0)], Tout=["float"], then_branch="no", else_branch="no")[0],
     NotFoundError),
    (lambda g: apply_op("Case", 0, [g.constant(1.0)], Tout=["float"], branches=["no"])[0], NotFoundError),
    (lambda g: apply_op("While", [g.constant(1.0)], cond="no", body="no")[0], NotFoundError),
    (lambda g: apply_op("PartitionedCall", [g.constant(1.0)], Tout=["float"], f="no")[0], InvalidArgumentError),
    (lambda g: apply_op("StatefulPartitionedCall", [g.constant(1.0)], Tout=["float"], f="no")[0],
     InvalidArgumentError),
])  # fmt: skip
def test_a_missing_function(build, error):
    with pytest.raises(error, match="'no' is not defined"):
        run(build)


def test_a_branch_that_is_not_taken_may_be_missing():
    def build(graph):
        then = define(graph, "then", lambda x: x, "float")
        return apply_op("If", True, [graph.constant(4.0)], Tout=["float"], then_branch=then, else_branch="no")[0]

    assert run(build) == 4


def call(types, results, **attrs):
    """A call of a function of one float that returns it once, with these declared types."""

    def build(graph):
        f = define(graph, "f", lambda x: x, "float")
        return apply_op("PartitionedCall", [graph.constant(1, t) for t in types], Tout=results, f=f, **attrs)

    return build


@pytest.mark.parametrize("types, results, message", [
    (["float", "float"], ["float"],          "takes 1 arguments, but 2 were given"),
    (["int32"],          ["float"],          "argument 0 of function 'f' is float, but a value of int32"),
    (["float"],          ["float", "float"], "has 2 outputs, but its function returned 1"),
    (["float"],          ["int32"],          "output 0 of PartitionedCall is int32, but its function returned float32"),
])  # fmt: skip
def test_signatures_that_do_not_fit(types, results, message):
    with pytest.raises(InvalidArgumentError, match=message):
        run(call(types, results))


def test_errors_inside_functions_name_the_node_inside():
    def build(graph):
        f = define(graph, "f", lambda x: apply_op("CheckNumerics", x, message="found one", name="check"), "float")
        return apply_op("PartitionedCall", [graph.constant(np.float32(np.inf))], Tout=["float"], f=f)[0]

    with pytest.raises(InvalidArgumentError, match="found one") as caught:
        run(build)
    assert (caught.value.node, caught.value.op) == ("check", "CheckNumerics")


def test_a_loop_without_end_stops_at_the_deadline():
    def build(graph):
        cond = define(graph, "cond", lambda x: apply_op("Less", x, 10.0), "float")
        body = define(graph, "body", lambda x: x * 1.0, "float")
        return apply_op("While", [graph.constant(1.0)], cond=cond, body=body)[0]

    with pytest.raises(DeadlineExceededError):
        run(build, options=RunOptions(timeout=0.1))


def test_functions_run_in_many_threads():
    graph = Graph()
    with graph.as_default():
        cond = define(graph, "cond", lambda i, x: apply_op("Less", i, 20), "int32", "float")
        body = define(graph, "body", lambda i, x: (i + 1, x + 1.0), "int32", "float")
        x = graph.placeholder("float", [], name="x")
        y = apply_op("While", [graph.constant(0), x], cond=cond, body=body)[1]
    session, results = Session(graph), {}

    def work(k):
        results[k] = session.run(y, {x: float(k)}).item()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {k: k + 20.0 for k in range(8)}


# --- the rest ---------------------------------------------------------------------------------------------------------
def test_map_defun():
    def build(graph):
        f = define(graph, "f", lambda x, c: x * c, "float", "float")
        rows = graph.placeholder("float", None, name="rows")
        return apply_op("MapDefun", [rows], [graph.constant(2.0)], output_types=["float"], output_shapes=[[2]], f=f)[0]

    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.testing.assert_array_equal(run(build, {"rows:0": x}), 2 * x)
    assert run(build, {"rows:0": x[:0]}).shape == (0, 2)
    with pytest.raises(InvalidArgumentError, match="no rows"):
        run(build, {"rows:0": np.float32(1)})


def test_to_bool_and_device_index_and_fake_param():
    assert run(lambda g: apply_op("ToBool", np.float32(0))).item() is False
    assert run(lambda g: apply_op("DeviceIndex", device_names=["GPU", "CPU"])) == 1
    assert run(lambda g: apply_op("DeviceIndex", device_names=["GPU"])) == 1
    fake = run(lambda g: apply_op("FakeParam", dtype="double", shape=[2, None]))
    assert (fake.shape, fake.dtype) == ((2, 0), np.float64)


def test_remote_call_stays_in_the_process():
    def build(graph, target):
        f = define(graph, "f", lambda x: x + 1.0, "float")
        return apply_op("RemoteCall", target, [graph.constant(1.0)], Tout=["float"], f=f)[0]

    assert run(lambda g: build(g, "/job:localhost/replica:0/task:0/device:CPU:0")) == 2
    assert run(lambda g: build(g, "/cpu:0")) == 2
    with pytest.raises(InvalidArgumentError, match="there is no device"):
        run(lambda g: build(g, "/job:far/task:3/cpu:0"))


def test_functions_take_attributes():
    """One definition serves several types: attributes are settled when it is instantiated."""
    from cyxla.core.framework.attr_value import PLACEHOLDER, AttrValue
    from cyxla.core.framework.declarations.op_def import ArgDef, AttrDef, OpDef
    from cyxla.core.framework.function import FunctionDef
    from cyxla.core.framework.node_def import NodeDef

    x, y = ArgDef("x", type_attr="T"), ArgDef("y", type_attr="T")
    signature = OpDef("negate", (x,), (y,), (AttrDef("T", "type"),))
    node = NodeDef("n", "Neg", ["x"], attr={"T": AttrValue(PLACEHOLDER, "T")})
    graph = Graph()
    graph.library.add(FunctionDef(signature, [node], {"y": "n:y:0"}))

    def typed(dtype):
        return NameAttrList("negate", {"T": AttrValue("type", dtype)})

    with graph.as_default():
        results = [
            apply_op("PartitionedCall", [graph.constant(3, t)], Tout=[t], f=typed(t))[0]
            for t in (DataType.DT_FLOAT, DataType.DT_INT64, DataType.DT_FLOAT)
        ]
    session = Session(graph)
    assert [v.dtype.name for v in session.run(results)] == ["float32", "int64", "float32"]
    assert len(session.engine.functions(graph.library)._handles) == 2


# --- gradients --------------------------------------------------------------------------------------------------------
def test_symbolic_gradient():
    """D(x² y, y) with weights w, v is (2 w x y, w x² + v)."""

    def build(graph):
        f = define(graph, "f", lambda x, y: (apply_op("Square", x) * y, y), "float", "float")
        inputs = [graph.constant(value) for value in (3.0, 5.0, 2.0, 7.0)]
        return apply_op("SymbolicGradient", inputs, Tout=["float"] * 2, f=f)

    assert [v.item() for v in run(build)] == [60, 25]


def test_symbolic_gradient_of_an_argument_that_is_not_used():
    def build(graph):
        f = define(graph, "f", lambda x, y: apply_op("Neg", y), "float", "float")
        x = graph.constant([1.0, 2.0])
        return apply_op("SymbolicGradient", [x, x, x], Tout=["float"] * 2, f=f)

    assert [v.tolist() for v in run(build)] == [[0, 0], [-1, -2]]


def test_symbolic_gradient_that_the_library_names():
    def build(graph):
        f = define(graph, "f", lambda x: x, "float")
        define(graph, "own", lambda x, dy: dy * 100.0, "float", "float")
        graph.library.add_gradient("f", "own")
        return apply_op("SymbolicGradient", [graph.constant(1.0), graph.constant(2.0)], Tout=["float"], f=f)[0]

    assert run(build) == 200


def test_symbolic_gradient_of_nothing():
    def build(graph):
        return apply_op("SymbolicGradient", [graph.constant(1.0)] * 2, Tout=["float"], f="no")[0]

    with pytest.raises(NotFoundError, match="'no' is not defined"):
        run(build)
