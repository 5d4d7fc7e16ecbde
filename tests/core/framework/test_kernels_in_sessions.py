"""The contract of kernels, seen from kernels that run in a session."""

import threading

import numpy as np
import pytest
from support.graphs.running import Extension

from cyxla.core.framework import (
    AsyncOpKernel,
    CancellationManager,
    DeviceBase,
    NameAttrList,
    OpKernel,
    ResourceBase,
    create_op_kernel,
    op_requires,
)
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.op_kernel_context import as_value
from cyxla.core.graph.function_body import graph_to_function
from cyxla.core.graph.graph import Graph
from cyxla.core.runtime.session import RunOptions, Session
from cyxla.core.runtime.step_stats import RunMetadata
from cyxla.errors import CancelledError, InternalError, InvalidArgumentError

X = np.float32([1, 2, 3])


class Buffer(ResourceBase):
    """A queue whose readers wait without holding a thread."""

    def __init__(self):
        self.values, self.waiting, self.lock = [], [], threading.Lock()


def queue_ops(ext):
    """Enqueue and a Dequeue that waits for it."""
    buffer = Buffer()

    class Dequeue(AsyncOpKernel):
        def compute_async(self, ctx, done):
            def take(value):
                ctx.set_output(0, value)
                done()

            def stop():
                with buffer.lock:
                    was_waiting = take in buffer.waiting
                    if was_waiting:
                        buffer.waiting.remove(take)
                if was_waiting:
                    ctx.set_status(CancelledError("dequeue was cancelled"))
                    done()

            manager = ctx.cancellation_manager
            with buffer.lock:
                if not buffer.values:
                    buffer.waiting.append(take)
                    manager.register_callback(manager.get_cancellation_token(), stop)
                    return
                value = buffer.values.pop(0)
            take(value)

    def enqueue(ctx):
        with buffer.lock:
            reader = buffer.waiting.pop(0) if buffer.waiting else None
            if reader is None:
                buffer.values.append(ctx.input(0))
        if reader is not None:
            reader(ctx.input(0))

    ext.op("Dequeue", "-> y: float", stateful=True)
    ext.op("Enqueue", "x: float ->", stateful=True)
    ext.kernel("Dequeue")(Dequeue)
    ext.kernel("Enqueue")(enqueue)


def test_a_waiting_kernel_holds_no_thread():
    """The reader is first in the graph, and there is one thread."""
    ext = Extension()
    queue_ops(ext)
    graph = ext.graph()
    with graph.as_default():
        read = apply_op("Dequeue") * np.float32(2)
        apply_op("Enqueue", graph.placeholder("float", [3], name="x"), name="put")
    session = ext.session(graph, threads=1)
    for _ in range(20):
        result, _ = session.run([read, "put"], {"x:0": X})
        assert result.tolist() == [2, 4, 6]


def test_a_cancelled_wait_ends():
    """With code 1."""
    ext = Extension()
    queue_ops(ext)
    graph = ext.graph()
    with graph.as_default():
        read = apply_op("Dequeue")
    manager = CancellationManager()
    timer = threading.Timer(0.05, manager.start_cancel)
    timer.start()
    with pytest.raises(CancelledError):
        ext.session(graph).run(read, options=RunOptions(cancellation=manager))
    timer.join()


def test_the_value_of_a_constant_kernel():
    graph = Graph()
    with graph.as_default():
        c = graph.constant(X)
    made = create_op_kernel(DeviceBase(), c.node.node_def)
    np.testing.assert_array_equal(made.const_tensor, X)


@pytest.mark.parametrize("device", ["/cpu:0", "/cpu:1"])
def test_one_graph_on_several_devices(device):
    """Only the placement differs."""
    ext, places = Extension(), []

    def where(ctx):
        places.append(ctx.device.parsed_name.id)
        ctx.set_output(0, ctx.input(0) + 1)

    ext.probe("Where2", where, stateful=True)
    graph = ext.graph()
    with graph.as_default(), graph.device(device):
        y = apply_op("Where2", graph.constant(X))
    session = ext.session(graph, devices={"CPU": 2})
    assert session.run(y).tolist() == [2, 3, 4]
    assert places == [int(device[-1])]


def test_kernels_call_functions():
    """A kernel instantiates a function once and calls it in its step."""
    ext, handles = Extension(), set()

    class Twice(OpKernel):
        def __init__(self, construction):
            super().__init__(construction)
            self.function = construction.get_attr("f")

        def compute(self, ctx):
            handle = ctx.instantiate(self.function)
            handles.add(id(handle))
            (once,) = ctx.call_function(handle, [ctx.input(0)])
            ctx.set_output(0, ctx.call_function(handle, [once])[0])

    ext.op("Twice", "x: float -> y: float", "f: func")
    ext.kernel("Twice")(Twice)
    graph = ext.graph()
    _define(graph, "triple", lambda x: x * np.float32(3))
    with graph.as_default():
        y = apply_op("Twice", graph.constant(X), f=NameAttrList("triple"))
    session = ext.session(graph)
    assert session.run(y).tolist() == [9, 18, 27]
    assert session.run(y).tolist() == [9, 18, 27]
    assert len(handles) == 1


def _define(graph, name, body):
    """A function of one float in the graph's library."""
    inner = Graph()
    with inner.as_default():
        x = inner.placeholder("float", name="x")
        y = body(x)
    graph.library.add(graph_to_function(name, [x], [y]))


def test_step_resources_vanish():
    """Stacks and tensor arrays of a thousand runs leave nothing."""
    graph = Graph()
    with graph.as_default():
        handle = apply_op("StackV2", graph.constant(np.int32(3)), elem_type="float", stack_name="s")
        pushed = apply_op("StackPushV2", handle, graph.constant(X))
        with graph.control_dependencies([pushed]):
            popped = apply_op("StackPopV2", handle, elem_type="float")
        array, flow = apply_op("TensorArrayV3", graph.constant(np.int32(2)), dtype="float")
        flow = apply_op("TensorArrayWriteV3", array, graph.constant(np.int32(0)), graph.constant(X), flow)
        read = apply_op("TensorArrayReadV3", array, graph.constant(np.int32(0)), flow, dtype="float")
    session = Session(graph)
    for _ in range(1000):
        a, b = session.run([popped, read])
    assert a.tolist() == b.tolist() == [1, 2, 3]
    assert len(session.engine.resource_manager) == 0


def test_no_update_of_a_reference_is_lost():
    """AssignAdd with its lock, from four threads."""
    graph = Graph()
    with graph.as_default():
        v = apply_op("VariableV2", shape=[], dtype="float", name="v")
        init = apply_op("Assign", v, np.float32(0), name="init")
        add = apply_op("AssignAdd", v, np.float32(1), use_locking=True, name="add")
    session = Session(graph)
    session.run(init.node.name)
    threads = [threading.Thread(target=lambda: [session.run(add.node.name) for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert session.run(v).item() == 200


@pytest.mark.parametrize("validate", [True, False])
def test_assign_may_change_the_shape(validate):
    """Where the node says so."""
    graph = Graph()
    with graph.as_default():
        v = apply_op("VariableV2", shape=[3], dtype="float", name="v")
        apply_op("Assign", v, X, name="init")
        apply_op("Assign", v, graph.placeholder("float", name="new"), validate_shape=validate, name="again")
    session = Session(graph)
    session.run("init")
    if validate:
        with pytest.raises(InvalidArgumentError, match="the variable has the shape"):
            session.run("again", {"new:0": np.float32([1])})
    else:
        session.run("again", {"new:0": np.float32([1])})
        assert session.run(v).tolist() == [1]


@pytest.mark.parametrize("others", [False, True], ids=["only use", "used again"])
def test_relu_in_place(others):
    """In the memory of its input where nobody else needs it."""
    ext, indices = Extension(), []

    def relu(ctx):
        x = ctx.input(0)
        out, index = ctx.forward_input_or_allocate_output([0], 0, x.shape)
        indices.append(index)
        np.maximum(x, 0, out=out)

    ext.probe("ReluInPlace", relu)
    graph = ext.graph()
    with graph.as_default():
        x = graph.placeholder("float", [3], name="x")
        y = x * np.float32(-1)
        z = apply_op("ReluInPlace", y)
    session = ext.session(graph)
    fetches = [z, y] if others else [z]
    for _ in range(3):
        results = session.run(fetches, {"x:0": -X})
    assert results[0].tolist() == [1, 2, 3]
    assert set(indices) == ({-1} if others else {0})
    assert session.run(apply_fed(graph, x), {"x:0": -X}).tolist() == [0, 0, 0]
    assert indices[-1] == -1  # what the caller fed stays his


def apply_fed(graph, x):
    """The op on a fed value."""
    with graph.as_default():
        return apply_op("ReluInPlace", x)


def test_variables_are_never_written_to():
    """A value read from a variable stays the variable's."""
    ext, indices = Extension(), []

    def overwrite(ctx):
        out, index = ctx.forward_input_or_allocate_output([0], 0, ctx.input(0).shape)
        indices.append(index)
        out[...] = 7

    ext.probe("Overwrite", overwrite)
    graph = ext.graph()
    with graph.as_default():
        handle = apply_op("VarHandleOp", dtype="float", shape=[3], shared_name="v")
        apply_op("AssignVariableOp", handle, graph.placeholder("float", [3], name="x"), name="set")
        value = apply_op("ReadVariableOp", handle, dtype="float", name="get")
        y = apply_op("Overwrite", value)
    session = ext.session(graph)
    session.run("set", {"x:0": X})
    assert session.run(y).tolist() == [7, 7, 7]
    assert session.run("get:0").tolist() == [1, 2, 3]
    assert indices == [-1]


def test_a_check_fails_the_step():
    ext = Extension()
    ext.probe("Checked", lambda ctx: op_requires(False, InvalidArgumentError("by the check")))
    graph = ext.graph()
    with graph.as_default():
        y = apply_op("Checked", graph.constant(X))
    with pytest.raises(InvalidArgumentError, match="by the check") as error:
        ext.session(graph).run(y)
    assert error.value.op == "Checked"
    assert "test_kernels_in_sessions.py" in error.value.where


def test_statistics_have_start_and_end():
    ext = Extension()
    ext.probe("Allocates", lambda ctx: ctx.allocate_output(0, (10,)), stateful=True)
    graph = ext.graph()
    with graph.as_default():
        y = apply_op("Allocates", graph.constant(X), name="a")
    metadata = RunMetadata()
    ext.session(graph).run(y, metadata=metadata)
    (node,) = [node for node in metadata.step_stats.nodes if node.name == "a"]
    assert node.start <= node.end
    assert node.allocated == {"output": 40}
    assert node.label == "a:Allocates#shape=(3)#"


def test_outputs_of_a_wrong_type_are_internal():
    ext = Extension()
    ext.probe("Wrong", lambda ctx: ctx.set_output(0, as_value(b"text")))
    graph = ext.graph()
    with graph.as_default():
        y = apply_op("Wrong", graph.constant(X))
    with pytest.raises(InternalError, match="object, but float is declared"):
        ext.session(graph).run(y)
