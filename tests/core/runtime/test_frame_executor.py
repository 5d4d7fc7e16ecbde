"""Branches, loops and kernels that wait: the executor of frames."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.graphs.running import Extension, cond, constant_like, while_loop

from cyxla.core.framework import AsyncOpKernel
from cyxla.core.framework.apply import apply_op
from cyxla.core.graph.graph import Graph
from cyxla.core.runtime.session import RunOptions, Session
from cyxla.errors import DeadlineExceededError, InternalError, InvalidArgumentError, OpError


def scalar(value):
    return np.float32(value)


def count_to(graph, limit, *, body=None, **options):
    """A loop that counts, and carries a value along."""

    def step(i, x):
        return i + constant_like(i, 1), body(x) if body else x * constant_like(x, 2)

    zero, one = graph.constant(0.0), graph.constant(1.0)
    return while_loop(graph, lambda i, x: apply_op("Less", i, constant_like(i, limit)), step, [zero, one], **options)


# --- branches ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("taken", [True, False])
def test_only_the_branch_taken_runs(taken):
    """Dead branches are not executed."""
    ext, ran = Extension(), []

    def note(ctx):
        ran.append(ctx.op_kernel.name)
        ctx.set_output(0, ctx.input(0))

    ext.probe("Note", note)
    graph = ext.graph()
    with graph.as_default():
        pred, x = graph.placeholder("bool", [], name="p"), graph.placeholder("float", [], name="x")
        [y] = cond(
            pred,
            lambda v: [apply_op("Note", v, name="then") + constant_like(v, 1)],
            lambda v: [apply_op("Note", v, name="else") + constant_like(v, 2)],
            [x],
        )
    assert ext.session(graph).run(y, {pred: taken, x: 10.0}) == (11 if taken else 12)
    assert ran == ["then" if taken else "else"]


def test_a_dead_result_cannot_be_fetched():
    graph = Graph()
    with graph.as_default():
        off, on = apply_op("Switch", graph.constant(1.0), graph.placeholder("bool", [], name="p"), name="s")
    session = Session(graph)
    assert session.run(on, {"p:0": True}) == 1
    with pytest.raises(InvalidArgumentError, match=r"'s:0' has no value: it is dead") as caught:
        session.run([on, off], {"p:0": True})
    assert (caught.value.node, caught.value.op) == ("s", "Switch")


def test_deadness_goes_along_control_edges_but_not_past_a_control_trigger():
    graph = Graph()
    with graph.as_default():
        off, on = apply_op("Switch", graph.constant(1.0), graph.constant(True))
        with graph.control_dependencies([apply_op("Identity", off)]):
            after = apply_op("Identity", graph.constant(5.0), name="after")
            trigger = apply_op("ControlTrigger")
        with graph.control_dependencies([trigger]):
            live = apply_op("Identity", graph.constant(6.0), name="live")
        merged, index = apply_op("Merge", [after, on])
    session = Session(graph)
    assert session.run(live) == 6
    assert [v.item() for v in session.run([merged, index])] == [1.0, 1]
    with pytest.raises(InvalidArgumentError, match="dead"):
        session.run(after)


def test_a_merge_waits_for_its_control_inputs():
    ext, order = Extension(), []

    def slow(ctx):
        order.append(ctx.op_kernel.name)
        ctx.set_output(0, ctx.input(0))

    ext.probe("Slow", slow)
    graph = ext.graph()
    with graph.as_default():
        x = graph.placeholder("float", [], name="x")
        late = apply_op("Slow", apply_op("Slow", x, name="first"), name="second")
        with graph.control_dependencies([late]):
            merged, _ = apply_op("Merge", [x, x])
        y = apply_op("Slow", merged, name="behind")
    assert ext.session(graph).run(y, {x: 3.0}) == 3
    assert order == ["first", "second", "behind"]


# --- loops ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("parallel", [1, 2, 10, 32])
@pytest.mark.parametrize("limit", [0, 1, 7, 100])
def test_a_loop_counts(limit, parallel):
    graph = Graph()
    with graph.as_default():
        i, x = count_to(graph, limit, body=lambda x: x + constant_like(x, 3), parallel_iterations=parallel)
    assert [v.item() for v in Session(graph).run([i, x])] == [limit, 1 + 3 * limit]


def test_loop_invariants_reach_every_iteration():
    graph = Graph()
    with graph.as_default():
        c = graph.placeholder("float", [], name="c")
        zero = graph.constant(0.0)
        [i, s] = while_loop(
            graph,
            lambda i, s, c: apply_op("Less", i, constant_like(i, 25)),
            lambda i, s, c: (i + constant_like(i, 1), s + c),
            [zero, zero],
            invariants=[c],
            parallel_iterations=3,
        )
    assert [v.item() for v in Session(graph).run([i, s], {c: 2.0})] == [25, 50]


def test_loops_in_loops():
    graph = Graph()

    def inner(x):
        _, y = while_loop(
            graph,
            lambda j, y: apply_op("Less", j, constant_like(j, 3)),
            lambda j, y: (j + constant_like(j, 1), y + constant_like(y, 1)),
            [constant_like(x, 0), x],
            name="inner",
        )
        return y

    with graph.as_default():
        i, x = count_to(graph, 5, body=inner)
    assert [v.item() for v in Session(graph).run([i, x])] == [5, 16]


@pytest.mark.parametrize("taken", [True, False])
def test_a_loop_in_a_branch(taken):
    """The exits of a loop that is never entered are dead, and so are their users."""
    graph = Graph()
    with graph.as_default():
        pred = graph.placeholder("bool", [], name="p")

        def loop(x):
            out = while_loop(
                graph,
                lambda y: apply_op("Less", y, constant_like(y, 100)),
                lambda y: [y * constant_like(y, 2)],
                [x],
            )
            return [apply_op("Neg", out[0], name="behind_loop")]

        [y] = cond(pred, loop, lambda x: [x], [graph.constant(3.0)])
        dead = graph.tensor("behind_loop:0")
    session = Session(graph)
    assert session.run(y, {pred: taken}) == (-192 if taken else 3)
    if not taken:
        with pytest.raises(InvalidArgumentError, match="'behind_loop:0' has no value"):
            session.run(dead, {pred: taken})


def test_a_branch_in_a_loop():
    """Collatz: the loop body has a conditional."""
    graph = Graph()

    def body(n, steps):
        odd = apply_op("Equal", apply_op("FloorMod", n, constant_like(n, 2)), constant_like(n, 1))
        [m] = cond(
            odd,
            lambda v: [v * constant_like(v, 3) + constant_like(v, 1)],
            lambda v: [apply_op("FloorDiv", v, constant_like(v, 2))],
            [n],
        )
        return m, steps + constant_like(steps, 1)

    with graph.as_default():
        n = graph.placeholder("int32", [], name="n")
        _, steps = while_loop(
            graph, lambda n, s: apply_op("NotEqual", n, constant_like(n, 1)), body, [n, graph.constant(0)]
        )
    session = Session(graph)
    assert [session.run(steps, {n: k}).item() for k in (1, 6, 27)] == [0, 8, 111]


def test_a_tensor_inside_a_loop_cannot_be_fetched():
    graph = Graph()
    with graph.as_default():
        count_to(graph, 3)
    inside = next(n for n in graph.nodes.values() if n.op == "LoopCond")
    with pytest.raises(InvalidArgumentError, match="is inside the loop 'loop' and cannot be fetched"):
        Session(graph).run(inside.outputs[0])


def test_inputs_from_different_frames_are_refused():
    graph = Graph()
    with graph.as_default():
        x = graph.constant(1.0)
        inside = apply_op("Enter", x, frame_name="f")
        y = apply_op("Exit", inside + x)
    with pytest.raises(InvalidArgumentError, match="has inputs from different frames"):
        Session(graph).run(y)


def test_iterations_are_forgotten():
    """A long loop keeps no state of its past."""
    graph = Graph()
    with graph.as_default():
        i, _ = count_to(graph, 20_000, body=lambda x: x + constant_like(x, 1))
    assert Session(graph).run(i) == 20_000


# --- random programs --------------------------------------------------------------------------------------------------
EXPRESSIONS = st.recursive(
    st.sampled_from(["x", "c"]),
    lambda inner: st.tuples(st.sampled_from(["add", "mul", "cond", "loop"]), inner, inner),
    max_leaves=12,
)


def modulo(x, number):
    return apply_op("FloorMod", x, constant_like(x, number))


def build(graph, expression, x):
    """The expression as a graph; every value is an int32 scalar."""
    if expression == "x":
        return x
    if expression == "c":
        return constant_like(x, 3)
    kind, left, right = expression
    if kind == "loop":  # as often as left modulo 4 says, x -> right(x) modulo 97
        times = modulo(build(graph, left, x), 4)
        _, _, result = while_loop(
            graph,
            lambda i, n, v: apply_op("Less", i, n),
            lambda i, n, v: (
                i + constant_like(i, 1),
                n,
                apply_op("FloorMod", build(graph, right, v), constant_like(v, 97)),
            ),
            [constant_like(x, 0), times, x],
            parallel_iterations=2,
        )
        return result
    if kind == "cond":
        pred = apply_op("Less", modulo(x, 5), constant_like(x, 2))
        return cond(pred, lambda v: [build(graph, left, v)], lambda v: [build(graph, right, v)], [x])[0]
    a, b = build(graph, left, x), build(graph, right, x)
    return a + b if kind == "add" else modulo(a * b, 89)


def meaning(expression, x):
    """The expression in Python."""
    if expression in ("x", "c"):
        return x if expression == "x" else 3
    kind, left, right = expression
    if kind == "loop":
        for _ in range(meaning(left, x) % 4):
            x = meaning(right, x) % 97
        return x
    if kind == "cond":
        return meaning(left if x % 5 < 2 else right, x)
    a, b = meaning(left, x), meaning(right, x)
    return a + b if kind == "add" else a * b % 89


@settings(max_examples=60, deadline=None)
@given(expression=EXPRESSIONS, x=st.integers(0, 50))
def test_random_branches_and_loops(expression, x):
    graph = Graph()
    with graph.as_default():
        fed = graph.placeholder("int32", [], name="x")
        y = build(graph, expression, apply_op("Identity", fed))
    assert Session(graph, threads=2).run(y, {fed: x}) == meaning(expression, x)


# --- kernels that wait ------------------------------------------------------------------------------------------------
class Later(AsyncOpKernel):
    """Gives its input after a while, from another thread."""

    def compute_async(self, ctx, done):
        def work():
            ctx.set_output(0, ctx.input(0) + np.float32(1))
            done()

        threading.Timer(0.01, work).start()


def test_async_kernels_overlap_and_everything_else_goes_on():
    ext = Extension()
    ext.op("Later", "x: float -> y: float")
    ext.kernel("Later")(Later)
    graph = ext.graph()
    with graph.as_default():
        x = graph.placeholder("float", [], name="x")
        parts = [apply_op("Later", x) for _ in range(20)]
        total = apply_op("AddN", parts)
    session = ext.session(graph, optimize=False)
    assert session.run(total, {x: 1.0}) == 40


class Waiting(AsyncOpKernel):
    """Waits until it is cancelled."""

    def compute_async(self, ctx, done):
        from cyxla.errors import CancelledError

        def cancelled():
            ctx.set_status(CancelledError("told to stop"))
            done()

        manager = ctx.cancellation_manager
        if not manager.register_callback(manager.get_cancellation_token(), cancelled):
            cancelled()


def waiting_graph():
    ext = Extension()
    ext.op("Waiting", "x: float -> y: float")
    ext.kernel("Waiting")(Waiting)
    graph = ext.graph()
    with graph.as_default():
        x = graph.placeholder("float", [], name="x")
        apply_op("Waiting", x, name="w")
        apply_op("Log", apply_op("CheckNumerics", x, message="bad"), name="check")
    return ext.session(graph)


def test_a_deadline_ends_a_wait():
    with pytest.raises(DeadlineExceededError, match="did not end before its deadline"):
        waiting_graph().run("w:0", {"x:0": 1.0}, options=RunOptions(timeout=0.05))


def test_cancelling_ends_a_wait():
    from cyxla.core.framework.step.cancellation import CancellationManager
    from cyxla.errors import CancelledError

    manager = CancellationManager()
    threading.Timer(0.05, manager.start_cancel).start()
    with pytest.raises(CancelledError):
        waiting_graph().run("w:0", {"x:0": 1.0}, options=RunOptions(cancellation=manager))


def test_closing_the_session_ends_a_wait():
    from cyxla.errors import CancelledError

    session = waiting_graph()
    threading.Timer(0.05, session.close).start()
    with pytest.raises(CancelledError):
        session.run("w:0", {"x:0": 1.0})


def test_the_first_real_error_ends_the_others_and_is_the_one_reported():
    with pytest.raises(InvalidArgumentError, match="bad") as caught:
        waiting_graph().run(["w:0", "check:0"], {"x:0": np.inf})
    assert caught.value.op == "CheckNumerics"


def test_done_twice_and_an_escaping_exception():

    class Twice(AsyncOpKernel):
        def compute_async(self, ctx, done):
            ctx.set_output(0, ctx.input(0))
            done()
            try:
                done()
            except InternalError as error:
                complaints.append(error.code)

    class Escaping(AsyncOpKernel):
        def compute_async(self, ctx, done):
            raise InvalidArgumentError("escaped")

    ext, complaints = Extension(), []
    for name, cls in (("Twice", Twice), ("Escaping", Escaping)):
        ext.op(name, "x: float -> y: float")
        ext.kernel(name)(cls)
    graph = ext.graph()
    with graph.as_default():
        x = graph.placeholder("float", [], name="x")
        apply_op("Twice", x, name="twice")
        apply_op("Escaping", x, name="escaping")
    session = ext.session(graph)
    assert session.run("twice:0", {x: 4.0}) == 4
    assert complaints == ["INTERNAL"]
    with pytest.raises(InvalidArgumentError, match="escaped") as caught:
        session.run("escaping:0", {x: 4.0})
    assert caught.value.node == "escaping"


def test_expensive_kernels_go_to_the_pool_and_cheap_ones_do_not():
    from cyxla.core.runtime.step_stats import RunMetadata

    ext = Extension()

    def work(ctx):
        ctx.set_output(0, ctx.input(0))

    ext.op("Heavy", "x: float -> y: float")
    ext.kernel("Heavy", expensive=True)(work)
    graph = ext.graph()
    with graph.as_default():
        x = graph.placeholder("float", [], name="x")
        [y] = cond(graph.constant(True), lambda v: [v], lambda v: [v], [x])
        total = apply_op("AddN", [apply_op("Heavy", y) for _ in range(6)])
    session = ext.session(graph, threads=4, optimize=False)
    metadata = RunMetadata()
    assert session.run(total, {x: 2.0}, metadata=metadata) == 12
    scheduled = {row.op for row in metadata.step_stats.nodes if row.scheduled}
    assert scheduled == {"Heavy"}
    inline = RunMetadata()
    session.run(total, {x: 2.0}, options=RunOptions(inline=True), metadata=inline)
    assert not any(row.scheduled for row in inline.step_stats.nodes)


def test_an_error_in_a_pool_thread_is_reported_with_its_node():
    ext = Extension()

    def fail(ctx):
        raise ValueError("not an OpError")

    ext.op("Fails", "x: float -> y: float")
    ext.kernel("Fails", expensive=True)(fail)
    graph = ext.graph()
    with graph.as_default():
        x = graph.placeholder("float", [], name="x")
        [y] = cond(graph.constant(True), lambda v: [v], lambda v: [v], [x])
        total = apply_op("AddN", [apply_op("Fails", y, name=f"f{k}") for k in range(3)])
    with pytest.raises(InternalError, match="Fails failed with ValueError: not an OpError") as caught:
        ext.session(graph, threads=2, optimize=False).run(total, {x: 2.0})
    assert caught.value.node in ("f0", "f1", "f2")
    assert isinstance(caught.value, OpError)
