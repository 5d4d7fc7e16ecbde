"""Executors by name, deferred operations, graphs of functions, and stack traces of nodes."""

import threading
import time

import numpy as np
import pytest
from support.graphs.running import Extension, cond

import cyxla
from cyxla.core.framework import AsyncOpKernel, OpKernel
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.attr_value import NameAttrList
from cyxla.core.graph.function_body import graph_to_function
from cyxla.core.graph.graph import Graph
from cyxla.core.runtime.executor_factory import DEFAULT, SINGLE_THREADED, ExecutorRegistry
from cyxla.core.runtime.session import RunOptions, Session
from cyxla.errors import (
    AlreadyExistsError,
    DeadlineExceededError,
    FailedPreconditionError,
    InternalError,
    NotFoundError,
    OpError,
)

F = np.float32


@pytest.fixture
def graph():
    """y = f(x) + 1 with f(x) = 2 x, called by a node that can name its executor."""
    inner = Graph()
    with inner.as_default():
        x = inner.placeholder("float", [2], name="x")
        y = apply_op("Mul", x, F(2))
    graph = Graph()
    graph.library.add(graph_to_function("f", [x], [y]))
    with graph.as_default():
        x = graph.placeholder("float", [2], name="x")
        for kind in ("", DEFAULT, SINGLE_THREADED, "NONE"):
            (called,) = apply_op("PartitionedCall", [x], Tout=["float"], f=NameAttrList("f"), executor_type=kind)
            apply_op("AddV2", called, F(1), name=f"y_{kind or 'plain'}")
    return graph


@pytest.mark.parametrize("executor", ["", DEFAULT, SINGLE_THREADED])
@pytest.mark.parametrize("call", ["plain", DEFAULT, SINGLE_THREADED])
def test_executors_give_equal_results(graph, executor, call):
    session = Session(graph, executor_type=executor)
    assert session.run(f"y_{call}:0", {"x:0": F([1, 2])}).tolist() == [3, 5]


MISSING = (
    "No executor factory registered for the given executor type: NONE Registered factories are "
    "{DEFAULT, SINGLE_THREADED_EXECUTOR}."
)


@pytest.mark.parametrize("session, call", [("NONE", "plain"), ("", "NONE")])
def test_an_unknown_executor(graph, session, call):
    with pytest.raises(NotFoundError) as caught:
        Session(graph, executor_type=session).run(f"y_{call}:0", {"x:0": F([1, 2])})
    assert caught.value.message == MISSING


def test_an_executor_of_a_user():
    made = []

    class Reversed:
        def __init__(self, parts):
            self.inner = ExecutorRegistry.global_().make("", parts)
            made.append(len(parts))

        def run(self, step, args):
            return [np.flip(v) for v in self.inner.run(step, args)]

    registry = ExecutorRegistry.global_()
    registry.register("REVERSED", Reversed)
    try:
        with pytest.raises(AlreadyExistsError, match="REVERSED"):
            registry.register("REVERSED", Reversed)
        graph = Graph()
        session = Session(graph, executor_type="REVERSED")
        assert session.run(graph.constant([1.0, 2.0])).tolist() == [2, 1]
    finally:
        registry.unregister("REVERSED")
    assert made == [1]


def test_the_single_threaded_executor_refuses_branches_of_single_nodes():
    graph = Graph()
    with graph.as_default():
        (y,) = cond(graph.constant(True), lambda x: [-x], lambda x: [x], [graph.constant(1.0)])
    with pytest.raises(FailedPreconditionError, match="but saw control flow node Switch"):
        Session(graph, executor_type=SINGLE_THREADED).run(y)


def test_the_single_threaded_executor_runs_all_on_the_calling_thread():
    threads = set()
    extension = Extension()

    def see(ctx):
        threads.add(threading.get_ident())
        ctx.set_output(0, ctx.input(0))

    class Later(AsyncOpKernel):
        def compute_async(self, ctx, done):
            ctx.set_output(0, ctx.input(0))
            threading.Timer(0.01, done).start()

    extension.op("Later", "x: T -> y: T", "T: type")
    extension.kernel("Later")(Later)
    extension.op("Sees", "x: T -> y: T", "T: type")
    extension.kernel("Sees", expensive=True)(see)
    graph = extension.graph()
    with graph.as_default():
        ys = [apply_op("Sees", apply_op("Later", F(k))) for k in range(4)]
    session = extension.session(graph, executor_type=SINGLE_THREADED, threads=3)
    assert [float(v) for v in session.run(ys)] == [0, 1, 2, 3]
    assert threads == {threading.get_ident()}


def test_a_deadline_wakes_a_kernel_that_waits_on_the_calling_thread():
    graph = Graph()
    with graph.as_default():
        queue = apply_op("FIFOQueueV2", component_types=["float"])
        (y,) = apply_op("QueueDequeueV2", queue, component_types=["float"])
    session = Session(graph, executor_type=SINGLE_THREADED)
    began = time.monotonic()
    with pytest.raises(DeadlineExceededError):
        session.run(y, options=RunOptions(timeout=0.05))
    assert time.monotonic() - began < 5


# Deferred operations ---------------------------------------------------------------------------------------------
def test_a_step_waits_for_deferred_operations():
    ended = []
    extension = Extension()

    class Deferred(OpKernel):
        is_deferred = True

        def compute(self, ctx):
            ctx.inc_num_deferred_ops()
            ctx.set_output(0, F(1))

            def end():
                ended.append(1)
                ctx.dec_num_deferred_ops()

            threading.Timer(0.05, end).start()

    extension.op("Defers", "-> y: float", stateful=True)
    extension.kernel("Defers")(Deferred)
    graph = extension.graph()
    with graph.as_default():
        y = apply_op("Defers")
        bad = apply_op("QueueSizeV2", graph.placeholder("resource", [], name="given"))
    session = extension.session(graph)
    session.run(y)
    assert ended == [1]
    with pytest.raises(OpError):
        session.run([y, bad], {"given:0": np.array(None, object)})
    assert len(ended) in (1, 2)  # the first kernel may not have started


def test_more_ends_than_beginnings():
    from cyxla.core.framework import StepContext

    with pytest.raises(InternalError, match="below zero"):
        StepContext().deferred_ops.decrement()


# Metadata --------------------------------------------------------------------------------------------------------
def test_graphs_of_called_functions_are_in_the_metadata(graph):
    metadata = cyxla.RunMetadata()
    session = Session(graph)
    session.run("y_plain:0", {"x:0": F([1, 2])}, metadata=metadata)
    (functions,) = metadata.function_graphs
    (part,) = functions.partition_graphs
    assert (functions.name, sorted(n.op for n in part.nodes.values())) == ("f", ["Const", "Mul", "_Arg", "_Retval"])


def test_memory_that_a_kernel_records_is_in_the_statistics():
    extension = Extension()

    def record(ctx):
        ctx.record_temp_memory_allocation(123)
        ctx.record_persistent_memory_allocation(45, alloc_id=6)
        ctx.set_output(0, ctx.input(0))

    extension.probe("Records", record)
    graph = extension.graph()
    with graph.as_default():
        y = apply_op("Records", F(1))
    metadata = cyxla.RunMetadata()
    extension.session(graph, optimize=False).run(y, metadata=metadata)
    (row,) = [row for row in metadata.step_stats.nodes if row.op == "Records"]
    assert row.allocated == {"temp": 123, "persistent": 45}
    assert row.persistent_alloc_ids == (6,)


# Facts of nodes --------------------------------------------------------------------------------------------------
def test_a_kernel_knows_where_its_node_was_created():
    traces = []
    extension = Extension()

    def see(ctx):
        traces.append(ctx.stack_trace)
        ctx.set_output(0, ctx.input(0))

    extension.probe("Traced", see)
    for records in (False, True):
        graph = extension.graph()
        graph.records_stack_traces = records
        with graph.as_default():
            y = apply_op("Traced", F(1))
        extension.session(graph, optimize=False).run(y)
    assert traces[0] == ()
    assert "test_executors.py:" in traces[1][-1]
    assert traces[1][-1].endswith("in test_a_kernel_knows_where_its_node_was_created")


def test_reservations_come_from_annotations_of_the_node():
    seen = []
    extension = Extension()

    def see(ctx):
        seen.append((ctx.output_expects_forwarding(0), ctx._forward_from))
        ctx.set_output(0, ctx.input(0))

    extension.probe("Reserves", see, "x: T, y: T -> z: T")
    graph = extension.graph()
    with graph.as_default():
        plain = apply_op("Reserves", F(1), F(2))
        reserved = apply_op("Reserves", F(1), F(2), _forward_input=[1, 0])
        never = apply_op("Reserves", F(1), F(2), _scoped_allocator=[0, 7])
    for y in (plain, reserved, never):
        extension.session(graph, optimize=False).run(y)
    assert seen == [(False, ()), (True, (1,)), (False, (-2,))]


def test_a_kernel_of_a_constant_keeps_no_second_copy():
    graph = Graph()
    y = graph.constant([1.0, 2.0])
    session = Session(graph)
    kernel = session.engine.kernel(y.node, keep=False)
    assert "value" not in kernel.node_def.attr
    assert "value" not in kernel.attrs
    assert kernel.const_tensor.tolist() == [1, 2]


def test_the_device_context_of_a_device():
    seen = []
    extension = Extension()

    def see(ctx):
        seen.append(ctx.op_device_context)
        ctx.set_output(0, ctx.input(0))

    extension.probe("SeesDevice", see, stateful=True)
    graph = extension.graph()
    with graph.as_default():
        y = apply_op("SeesDevice", F(1))
    session = extension.session(graph)
    session.run(y)
    session.engine.default_device.device_context = "stream"
    session.run(y)
    assert seen == [None, "stream"]
