"""Sessions: feeds, fetches, state, errors, many threads and many runs."""

import threading
import tracemalloc

import numpy as np
import pytest
from support.graphs.running import Extension

from cyxla.core.framework import OpKernel
from cyxla.core.framework.apply import apply_op
from cyxla.core.graph.graph import Graph
from cyxla.core.runtime.session import RunOptions, Session, register_jit
from cyxla.core.runtime.step_stats import RunMetadata
from cyxla.errors import (
    CancelledError,
    DeadlineExceededError,
    DTypeError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
    ShapeError,
    UnimplementedError,
)


@pytest.fixture
def graph():
    """y = 2 x + 1 with x: float[2], z = -y."""
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("float", [2], name="x")
        y = apply_op("AddV2", apply_op("Mul", x, np.float32(2), name="twice"), np.float32(1), name="y")
        apply_op("Neg", y, name="z")
    return graph


X = np.float32([1, 2])


# --- feeds and fetches ------------------------------------------------------------------------------------------------
def test_one_fetch_and_many(graph):
    session = Session(graph)
    np.testing.assert_array_equal(session.run("y:0", {"x:0": X}), [3, 5])
    y, none, x, again = session.run(["y:0", "z", graph.tensor("x:0"), "y:0"], {graph.tensor("x"): X})
    assert none is None
    assert y is not again
    np.testing.assert_array_equal(y, again)
    np.testing.assert_array_equal(x, X)
    assert session.run([], {}) == []


def test_python_values_are_fed_and_intermediate_tensors_replaced(graph):
    session = Session(graph)
    np.testing.assert_array_equal(session.run("y:0", {"x": [1, 2]}), [3, 5])
    np.testing.assert_array_equal(session.run("z:0", {"twice:0": X}), [-2, -3])
    np.testing.assert_array_equal(session.run(["y:0", "z:0"], {"y:0": X}), [X, -X])


def test_texts_are_fed_as_bytes_or_str():
    graph = Graph()
    x = graph.placeholder("string", [2], name="x")
    with graph.as_default():
        y = apply_op("Identity", x)
    session = Session(graph)
    for value in (["a", b"\xff"], np.array([b"a", b"\xff"]), np.array(["a", b"\xff"], object)):
        assert session.run(y, {x: value}).tolist() == [b"a", b"\xff"]
    assert session.run(y, {x: np.array(["a", "b"])}).tolist() == [b"a", b"b"]
    for wrong in ([1, 2], np.array([1, "a"], object), ["a", ["b"]], [b"a", None]):
        with pytest.raises(InvalidArgumentError):
            session.run(y, {x: wrong})


@pytest.mark.parametrize("fetch, feeds, error, message", [
    ("y:0",    {},                                   InvalidArgumentError, "placeholder 'x'"),
    ("y:0",    {"x:0": np.float64([1, 2])},          DTypeError,           "'x:0' is float, but an array of float64"),
    ("y:0",    {"x:0": np.float32([1, 2, 3])},       ShapeError,           r"but an array of shape \[3\]"),
    ("y:0",    {"x:0": np.float32(1)},               ShapeError,           r"an array of shape \[\]"),
    ("y:0",    {"x:0": ["a", "b"]},                  InvalidArgumentError, "does not fit"),
    ("w:0",    {"x:0": X},                           NotFoundError,        "'w:0'"),
    ("w",      {"x:0": X},                           NotFoundError,        "'w'"),
    ("y:3",    {"x:0": X},                           InvalidArgumentError, "has 1 outputs"),
    ("y:0",    {"x:0": [[1, 2], [3]]},               InvalidArgumentError, "x:0"),
    ("y:0",    {"w:0": X},                           NotFoundError,        "'w:0'"),
    ("y:0",    {"x:0": X, "x": X},                   InvalidArgumentError, "fed twice"),
    (7,        {},                                   InvalidArgumentError, "neither a tensor nor the name"),
])  # fmt: skip
def test_wrong_feeds_and_fetches(graph, fetch, feeds, error, message):
    with pytest.raises(error, match=message):
        Session(graph).run([fetch], feeds)


def test_a_node_of_another_graph_is_refused(graph):
    with pytest.raises(InvalidArgumentError, match="belongs to another graph"):
        Session(graph).run(Graph().constant(1.0))


def test_results_are_the_callers_own():
    """Writing to a result changes neither a constant, nor a variable, nor a fed array."""
    graph = Graph()
    with graph.as_default():
        c = graph.constant([1.0, 2.0])
        view = apply_op("Reshape", c, [2, 1])
        handle = apply_op("VarHandleOp", dtype="float", shape=[2])
        init = apply_op("AssignVariableOp", handle, c)
        value = apply_op("ReadVariableOp", handle, dtype="float")
        x = graph.placeholder("float", [2])
        same = apply_op("Identity", x)
    session = Session(graph)
    session.run(init)
    fed = X.copy()
    for _ in range(2):
        for result in session.run([c, view, value, same, x], {x: fed}):
            np.testing.assert_array_equal(np.ravel(result), [1, 2])
            result[...] = 9
    np.testing.assert_array_equal(fed, X)


# --- executors --------------------------------------------------------------------------------------------------------
def test_executors_are_kept_by_sorted_feeds_fetches_and_targets(graph):
    session = Session(graph)
    session.run(["y:0", "z:0"], {"x:0": X})
    session.run(["z:0", "y:0", "z:0"], {"x:0": X})
    session.run([graph.tensor("z:0"), "y:0"], {graph.tensor("x:0"): X})
    assert session.num_executors == 1
    session.run(["z:0", "y"], {"x:0": X})
    session.run("z:0", {"twice:0": X})
    assert session.num_executors == 3


def test_a_graph_may_grow(graph):
    session = Session(graph)
    session.run("y:0", {"x:0": X})
    with graph.as_default():
        w = apply_op("Square", graph.tensor("y:0"), name="w")
    np.testing.assert_array_equal(session.run(w, {"x:0": X}), [9, 25])


def test_kernels_are_made_once():
    ext, made = Extension(), []

    class Counting(OpKernel):
        def __init__(self, construction):
            super().__init__(construction)
            made.append(self.name)
            self.runs = 0

        def compute(self, ctx):
            self.runs += 1
            ctx.set_output(0, np.int32(self.runs))

    ext.op("Counting", "-> y: int32", stateful=True)
    ext.kernel("Counting")(Counting)
    graph = ext.graph()
    with graph.as_default():
        y = apply_op("Counting", name="counter")
        z = y + 0
    session = ext.session(graph)
    assert [session.run(y).item() for _ in range(100)][-1] == 100
    assert session.run([y, z])[0] == 101  # another executor, the same state
    assert made == ["counter"]


def test_one_step_context_serves_all_kernels_of_a_run():
    """The step's part is built once; ids differ between runs."""
    ext, steps = Extension(), []

    def note(ctx):
        steps.append((id(ctx.step), ctx.step_id))
        ctx.set_output(0, ctx.input(0))

    ext.probe("Note", note, stateful=True)
    graph = ext.graph()
    with graph.as_default():
        t = graph.placeholder("float", [], name="x")
        for _ in range(5):
            t = apply_op("Note", t)
    session = ext.session(graph)
    for _ in range(3):
        session.run(t, {"x:0": 0.0})
    assert len(steps) == 15
    assert len({number for _, number in steps}) == 3


def test_stateful_nodes_run_and_unneeded_ones_do_not():
    ext, ran = Extension(), []
    ext.probe("Note", lambda ctx: (ran.append(ctx.op_kernel.name), ctx.set_output(0, ctx.input(0))), stateful=True)
    graph = ext.graph()
    with graph.as_default():
        x = graph.placeholder("float", [], name="x")
        a, b = apply_op("Note", x, name="a"), apply_op("Note", x, name="b")
        apply_op("Note", x, name="unneeded")
        y = a + b
    ext.session(graph).run(y, {x: 1.0})
    assert sorted(ran) == ["a", "b"]


# --- errors -----------------------------------------------------------------------------------------------------------
def failing(error):
    ext = Extension()

    def fail(ctx):
        raise error

    ext.probe("Fails", fail)
    graph = ext.graph()
    with graph.as_default():
        apply_op("Fails", graph.placeholder("float", [], name="x"), name="bad")
    return ext.session(graph)


@pytest.mark.parametrize("error, kind", [
    (NotFoundError("missing"),   NotFoundError),
    (ValueError("odd"),          InternalError),
    (MemoryError("all of it"),   ResourceExhaustedError),
])  # fmt: skip
def test_errors_of_kernels_name_the_node(error, kind):
    """Code, node, op and the kernel's line."""
    with pytest.raises(kind) as caught:
        failing(error).run("bad:0", {"x:0": 1.0})
    assert (caught.value.node, caught.value.op) == ("bad", "Fails")
    assert "node 'bad' (Fails)" in caught.value.where
    assert "test_session.py" in caught.value.where


def test_an_op_without_kernel_can_be_built_but_not_run():
    """The miss appears as an invalid argument, and lists the kernels there are."""
    ext = Extension()
    ext.op("Orphan", "x: T -> y: T", "T: type", shape=lambda c: c.set_output(0, c.input(0)))
    graph = ext.graph()
    with graph.as_default():
        x = graph.placeholder("float", [3], name="x")
        y = apply_op("Orphan", x, name="orphan")
    assert str(y.shape) == "[3]"
    assert b"Orphan" in graph.to_graph_def().SerializeToString()
    session = ext.session(graph)
    np.testing.assert_array_equal(session.run(x, {x: np.ones(3, np.float32)}), [1, 1, 1])
    with pytest.raises(
        InvalidArgumentError, match=r"there is no kernel of Orphan for CPU devices.  Registered:"
    ) as caught:
        session.run(y, {x: np.ones(3, np.float32)})
    assert (caught.value.node, caught.value.op) == ("orphan", "Orphan")


def test_a_wrong_label_is_an_invalid_argument():
    ext = Extension()
    ext.op("Labelled", "-> y: int32")
    ext.kernel("Labelled", label="fast")(lambda ctx: ctx.set_output(0, np.int32(1)))
    graph = ext.graph()
    with graph.as_default():
        good, bad = (apply_op("Labelled", name=label, _kernel=label) for label in ("fast", "slow"))
    session = ext.session(graph)
    assert session.run(good) == 1
    with pytest.raises(InvalidArgumentError, match=r"with label 'slow'.*[\s\S]*label='fast'"):
        session.run(bad)


def test_an_uninitialised_variable_is_a_failed_precondition():
    graph = Graph()
    with graph.as_default():
        handle = apply_op("VarHandleOp", dtype="float", shape=[2], shared_name="v")
        value = apply_op("ReadVariableOp", handle, dtype="float", name="read")
        ref = apply_op("VariableV2", dtype="float", shape=[2], name="ref")
        through = apply_op("Neg", ref, name="neg")
    session = Session(graph)
    for fetch in (value, ref, through):
        with pytest.raises(FailedPreconditionError):
            session.run(fetch)


def test_references_are_read_when_a_node_takes_a_value():
    graph = Graph()
    with graph.as_default():
        ref = apply_op("VariableV2", dtype="float", shape=[2], name="ref")
        init = apply_op("Assign", ref, graph.constant([1.0, 2.0]), name="init")
        negated = apply_op("Neg", ref)
    session = Session(graph)
    session.run("init")
    np.testing.assert_array_equal(session.run(negated), [-1, -2])
    np.testing.assert_array_equal(session.run(ref), [1, 2])
    assert init.dtype.is_ref


def test_a_missing_output_is_internal():
    ext = Extension()
    ext.probe("Lazy", lambda ctx: None)
    graph = ext.graph()
    with graph.as_default():
        apply_op("Lazy", graph.placeholder("float", [], name="x"), name="lazy")
    with pytest.raises(InternalError, match="Missing 0-th output"):
        ext.session(graph).run("lazy:0", {"x:0": 1.0})


@pytest.fixture(params=["flat", "framed"])
def half(request):
    """A kernel that sets y only; the graph of it, which runs in either executor."""
    ext, seen = Extension(), []

    def compute(ctx):
        seen.append(tuple(map(ctx.output_required, ("y", "z"))))
        ctx.set_output("y", ctx.input(0) + np.float32(1))

    ext.probe("Half", compute, "x: float -> y: float, z: float", stateful=True)
    graph = ext.graph()
    with graph.as_default():
        x = graph.placeholder("float", [], name="x")
        if request.param == "framed":
            x = apply_op("Switch", x, graph.constant(True))[1]
        y, z = apply_op("Half", x, name="half")
        apply_op("Neg", y, name="of_y")
        apply_op("Neg", z, name="of_z")
        with graph.control_dependencies([y.node]):
            apply_op("Const", value=np.float32(7), dtype="float", name="after")
    return ext.session(graph), seen


UNREAD = [
    # fetch, feed, result, what is required
    ("half:0", {}, 2, (True, False)),
    ("of_y:0", {}, -2, (True, False)),
    ("half", {}, None, (False, False)),
    ("after:0", {}, 7, (False, False)),
    (["of_y:0", "of_z:0"], {"half:1": np.float32(5)}, [-2, -5], (True, False)),
]


@pytest.mark.parametrize("fetch, feed, wanted, required", UNREAD, ids=["y", "of y", "node", "control", "fed over"])
def test_unused_outputs_may_stay_unset(half, fetch, feed, wanted, required):
    session, seen = half
    for metadata in (None, RunMetadata()):
        assert session.run(fetch, {"x:0": np.float32(1), **feed}, metadata=metadata) == wanted
    assert seen == [required] * 2


@pytest.mark.parametrize("fetch", ["half:1", "of_z:0", ["half:0", "half:1"]], ids=str)
def test_outputs_that_somebody_reads_must_be_set(half, fetch):
    session, seen = half
    with pytest.raises(InternalError, match=r"Missing 1-th output from .*half"):
        session.run(fetch, {"x:0": np.float32(1)})
    assert seen[0][1]


def test_jit_modes():
    graph = Graph()
    y = graph.constant(3.0)
    with pytest.raises(UnimplementedError, match="jit='probe'"):
        Session(graph, jit="probe")
    seen = []

    def prepare(engine, part):
        seen.append(sorted(part.nodes))
        return engine.prepare(part)

    from cyxla.core.runtime import session as home

    register_jit("probe", prepare)
    try:
        assert Session(graph, jit="probe").run(y) == 3
    finally:
        del home._JIT_MODES["probe"]
    assert seen == [["Const", "_retval_Const_0_0"]]


# --- limits -----------------------------------------------------------------------------------------------------------
def slow_session(seconds):
    import time

    ext = Extension()

    def sleep(ctx):
        time.sleep(seconds)
        ctx.set_output(0, ctx.input(0))

    ext.probe("Sleep", sleep)
    graph = ext.graph()
    with graph.as_default():
        t = graph.placeholder("float", [], name="x")
        for _ in range(50):
            t = apply_op("Sleep", t)
    return ext.session(graph), t


def test_a_deadline_stops_between_kernels():
    session, t = slow_session(0.02)
    with pytest.raises(DeadlineExceededError):
        session.run(t, {"x:0": 1.0}, options=RunOptions(timeout=0.05))
    assert session.run(t, {"x:0": 1.0}, options=RunOptions(timeout=600)) == 1


def test_closing_stops_between_kernels_and_for_good():
    session, t = slow_session(0.02)
    threading.Timer(0.05, session.close).start()
    with pytest.raises(CancelledError):
        session.run(t, {"x:0": 1.0})
    with pytest.raises(FailedPreconditionError, match="closed"):
        session.run(t, {"x:0": 1.0})


def test_a_memory_limit():
    ext = Extension()
    ext.probe("Alloc", lambda ctx: ctx.allocate_output(0, (1000,)).fill(0))
    graph = ext.graph()
    with graph.as_default():
        y = apply_op("Alloc", graph.placeholder("float", [], name="x"))
    session = ext.session(graph)
    assert session.run(y, {"x:0": 1.0}, options=RunOptions(memory_limit=4000)).size == 1000
    with pytest.raises(ResourceExhaustedError):
        session.run(y, {"x:0": 1.0}, options=RunOptions(memory_limit=3999))


# --- many -------------------------------------------------------------------------------------------------------------
def test_eight_threads_run_one_session(graph):
    with graph.as_default():
        apply_op("MatMul", apply_op("ExpandDims", graph.tensor("z:0"), 0), np.ones((2, 2), np.float32), name="m")
    session, wrong = Session(graph), []

    def work(number):
        for k in range(100):
            x = np.float32([number, k])
            z, m = session.run(["z:0", "m:0"], {"x:0": x})
            if z.tolist() != (-2 * x - 1).tolist() or m.tolist() != [[-2 * (number + k) - 2] * 2]:
                wrong.append((number, k, z, m))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("op, result", [("AssignAddVariableOp", 800), ("AssignSubVariableOp", -800)])
def test_updates_of_a_variable_lose_nothing(op, result):
    graph = Graph()
    with graph.as_default():
        handle = apply_op("VarHandleOp", dtype="double", shape=[], shared_name="v")
        init = apply_op("AssignVariableOp", handle, np.float64(0))
        update = apply_op(op, handle, np.float64(1))
        value = apply_op("ReadVariableOp", handle, dtype="double")
    session = Session(graph)
    session.run(init)
    threads = [threading.Thread(target=lambda: [session.run(update) for _ in range(100)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert session.run(value) == result


@pytest.mark.parametrize("indices", [(0, 0), (1, 2), (0, 2)])
def test_arguments_are_numbered_without_gaps(indices):
    graph = Graph()
    with graph.as_default():
        args = [apply_op("_Arg", T="float", index=i) for i in indices]
        apply_op("_Retval", args[0] + args[1], index=0)
    with pytest.raises(InvalidArgumentError, match=r"the _Arg nodes of a graph are numbered \["):
        Session(graph).engine.prepare(graph)


def test_a_chain_of_any_length_needs_no_recursion():
    graph = Graph()
    with graph.as_default():
        t = graph.placeholder("float", [], name="x")
        for _ in range(5000):
            t = apply_op("Neg", t)
    assert Session(graph).run(t, {"x:0": 3.0}) == 3


def test_runs_leave_nothing_behind():
    """Resources of a step end with it, and memory does not grow."""
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("float", [2], name="x")
        handle, flow = apply_op("TensorArrayV3", 1, dtype="float")
        written = apply_op("TensorArrayWriteV3", handle, 0, x, flow)
        y = apply_op("TensorArrayReadV3", handle, 0, written, dtype="float") + x
    session = Session(graph)

    def runs(count):
        for _ in range(count):
            session.run(y, {x: X})

    runs(200)
    tracemalloc.start()
    runs(100)
    before = tracemalloc.get_traced_memory()[0]
    runs(1000)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert len(session.engine.resource_manager) == 0
    assert grown < 20_000


# --- statistics -------------------------------------------------------------------------------------------------------
def test_step_stats_list_every_node_with_its_time_and_bytes(graph, tmp_path):
    metadata = RunMetadata()
    Session(graph).run("z:0", {"x:0": X}, metadata=metadata)
    rows = {row.name: row for row in metadata.step_stats.nodes}
    assert list(rows) == ["twice", "y", "z"]
    assert all(row.start <= row.end and row.output_bytes == 8 for row in rows.values())
    assert rows["z"].label == "z:Neg#shape=(2)#"
    assert rows["y"].device.endswith("CPU:0")
    trace = metadata.step_stats.chrome_trace()["traceEvents"]
    assert [event["args"]["name"] for event in trace if event["ph"] == "X"] == ["twice", "y", "z"]
    metadata.step_stats.save_trace(tmp_path / "trace.json")
    assert "twice" in (tmp_path / "trace.json").read_text()
    [part] = metadata.partition_graphs
    assert sorted(part.nodes)[-1] == "z"
    assert "1 x Neg" in str(metadata.step_stats)
