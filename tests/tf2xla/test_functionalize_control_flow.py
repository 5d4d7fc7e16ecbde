"""Loops and conditionals of frames and branches, compiled and not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from support.graphs.compiled import PLATFORMS, close
from support.graphs.control_flow import after, constant, merge

import cyxla
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.attr_value import NameAttrList
from cyxla.core.framework.types import DataType
from cyxla.core.graph.function_body import graph_to_function
from cyxla.core.graph.graph import Graph, Tensor
from cyxla.errors import InvalidArgumentError, UnimplementedError
from cyxla.tf2xla.functionalize.control_flow import functionalize_control_flow, has_control_flow

Array = np.ndarray[Any, Any]
Build = Callable[..., Any]


def loop(
    frame: str,
    inits: Sequence[Tensor],
    cond: Build,
    body: Build,
    invariants: Sequence[Tensor] = (),
) -> list[Tensor]:
    """A loop as TensorFlow writes it; `cond` and `body` take the variables, then the invariants."""
    fixed = [apply_op("Enter", x, frame_name=frame, is_constant=True) for x in invariants]
    merges = [merge(apply_op("Enter", x, frame_name=frame), None) for x in inits]
    graph = merges[0].graph
    with after(merges[0]):
        verdict = apply_op("LoopCond", cond(*merges, *fixed))
    with after(None, graph):
        switched = [apply_op("Switch", m, verdict) for m in merges]
        pivot = apply_op("Identity", switched[0][1])
        with after(pivot):
            results = body(*(s[1] for s in switched), *fixed)
        for m, result in zip(merges, results, strict=True):
            graph.set_input(m.node, 1, apply_op("NextIteration", result))
        return [apply_op("Exit", s[0]) for s in switched]


def cond(pred: Tensor, values: Sequence[Tensor], then: Build, other: Build) -> Tensor:
    """A conditional as TensorFlow writes it."""
    switched = [apply_op("Switch", v, pred) for v in values]
    sides = [apply_op("Identity", s) for s in apply_op("Switch", pred, pred)]
    with after(sides[0]):
        no = other(*(s[0] for s in switched))
    with after(sides[1]):
        yes = then(*(s[1] for s in switched))
    return merge(no, yes)


def agree(build: Build, *feeds: Array) -> list[Array]:
    """Check that a graph gives the same values in every mode, and return them."""

    def run(jit: str, platform: str) -> list[Array]:
        graph = Graph()
        with graph.as_default():
            given = [graph.placeholder(DataType.DT_BOOL if x.dtype == bool else DataType.DT_FLOAT) for x in feeds]
            made = build(*given)
        outputs = made if isinstance(made, (list, tuple)) else [made]
        named = {p.name: x for p, x in zip(given, feeds, strict=True)}
        return list(cyxla.Session(graph, jit=jit, platform=platform).run([o.name for o in outputs], named))

    wanted = run("off", "cpu")
    for platform in PLATFORMS:
        close(run("on", platform), wanted)
    return wanted


X = np.array([1, -2, 3], np.float32)


def counted(limit: int) -> Build:
    return lambda i, *_: apply_op("Less", i, constant(limit, np.int32))


# Loops


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_a_loop(turns):

    def build(x):
        zero = constant(0, np.int32)

        def below(i, _, n):
            return apply_op("Less", i, n)

        def step(i, y, _):
            return [i + constant(1, np.int32), y * constant(2)]

        return loop("while", [zero, x], below, step, [constant(turns, np.int32)])

    i, y = agree(build, X)
    assert int(i) == turns
    np.testing.assert_array_equal(y, X * 2**turns)


def test_conditions_may_use_values_of_the_body():
    def build(x):
        def small(y, limit):
            return apply_op("Less", apply_op("Sum", y * y, constant(0, np.int32)), limit)

        return loop("while", [x], small, lambda y, _: [y * constant(3)], [constant(1000)])

    agree(build, X)


def test_a_loop_in_a_loop():
    def build(x):
        def outer(i, y):
            inner = loop(
                "inner", [constant(0, np.int32), y], counted(3), lambda j, z: [j + constant(1, np.int32), z + y_in(z)]
            )
            return [i + constant(1, np.int32), inner[1]]

        def y_in(z):
            return constant(0.5)

        return loop("outer", [constant(0, np.int32), x], counted(2), outer)

    _, y = agree(build, X)
    np.testing.assert_array_equal(y, X + 3)


def test_values_of_the_outer_loop_enter_the_inner_one():
    def build(x):
        def outer(i, y):
            inner = loop(
                "inner",
                [constant(0, np.int32), y],
                counted(2),
                lambda j, z, w: [j + constant(1, np.int32), z + w],
                [apply_op("Cast", i, SrcT=DataType.DT_INT32, DstT=DataType.DT_FLOAT)],
            )
            return [i + constant(1, np.int32), inner[1]]

        return loop("outer", [constant(0, np.int32), x], counted(3), outer)

    _, y = agree(build, X)
    np.testing.assert_array_equal(y, X + 6)


def test_a_tensor_array_is_filled_by_a_loop():
    def build(x):
        handle, flow = apply_op("TensorArrayV3", constant(4, np.int32), dtype=DataType.DT_FLOAT)

        def step(i, y, f, h):
            f = apply_op("TensorArrayWriteV3", h, i, y, f)
            return [i + constant(1, np.int32), y * constant(2), f]

        _, y, flow = loop("while", [constant(0, np.int32), x, flow], counted(4), step, [handle])
        indices = apply_op("Range", constant(0, np.int32), constant(4, np.int32), constant(1, np.int32))
        return [y, apply_op("TensorArrayGatherV3", handle, indices, flow, dtype=DataType.DT_FLOAT)]

    agree(build, X)


def test_a_loop_makes_gradients_of_a_tensor_array():
    """The array of gradients is made inside, and read outside."""

    def build(x):
        handle, flow = apply_op("TensorArrayV3", constant(3, np.int32), dtype=DataType.DT_FLOAT)
        flow = apply_op("TensorArrayWriteV3", handle, constant(0, np.int32), x, flow)

        def step(i, f, h):
            gradient, f = apply_op("TensorArrayGradV3", h, f, source="g")
            return [i + constant(1, np.int32), apply_op("TensorArrayWriteV3", gradient, i, constant([1, 2, 3]), f)]

        _, flow = loop("while", [constant(0, np.int32), flow], counted(3), step, [handle])
        gradient, flow = apply_op("TensorArrayGradV3", handle, flow, source="g")
        return apply_op("TensorArrayReadV3", gradient, constant(2, np.int32), flow, dtype=DataType.DT_FLOAT)

    agree(build, X)


def test_a_stack_hands_values_from_one_loop_to_another():
    def build(x):
        stack = apply_op("StackV2", constant(3, np.int32), elem_type=DataType.DT_FLOAT)

        def push(i, y, s):
            return [i + constant(1, np.int32), apply_op("StackPushV2", s, y) * constant(2)]

        def pop(i, total, s):
            with after(apply_op("Identity", total)):
                top = apply_op("StackPopV2", s, elem_type=DataType.DT_FLOAT)
            return [i + constant(1, np.int32), total * constant(10) + top]

        _, y = loop("forward", [constant(0, np.int32), x], counted(3), push, [stack])
        return loop("backward", [constant(0, np.int32), y], counted(3), pop, [stack])

    agree(build, X)


def test_gradients_through_a_loop_of_a_stack_of_unknown_size_are_refused():
    def build(x):
        stack = apply_op("StackV2", constant(-1, np.int32), elem_type=DataType.DT_FLOAT)
        return apply_op("StackPushV2", stack, x)

    with pytest.raises(InvalidArgumentError, match="max_size is -1"):
        agree(build, X)


# Conditionals


@pytest.mark.parametrize("choice", [True, False])
def test_a_conditional(choice):

    def build(pred, x):
        y = cond(pred, [x], lambda a: a + constant(1), lambda a: apply_op("Neg", a))
        return [y, y.node.outputs[1]]

    _, index = agree(build, np.array(choice), X)
    assert int(index) == choice


@pytest.mark.parametrize("choice", [True, False])
@pytest.mark.parametrize("inner", [True, False])
def test_conditionals_in_conditionals(choice, inner):
    def build(pred, second, x):
        def then(a):
            chosen = apply_op("Switch", second, pred)[1]
            return cond(chosen, [a], lambda b: b * constant(5), lambda b: b)

        return cond(pred, [x], then, lambda a: constant([7, 7, 7]))

    agree(build, np.array(choice), np.array(inner), X)


@pytest.mark.parametrize("choice", [True, False])
def test_one_conditional_after_another_of_the_same_predicate(choice):
    def build(pred, x):
        y = cond(pred, [x], lambda a: a * constant(2), lambda a: a)
        return cond(pred, [y, x], lambda a, b: a + b, lambda a, b: a - b)

    agree(build, np.array(choice), X)


@pytest.mark.parametrize("choice", [True, False])
def test_a_loop_in_a_conditional_and_a_conditional_in_a_loop(choice):
    def build(pred, x):
        def turns(a):
            def step(i, y):
                odd = apply_op("Equal", apply_op("FloorMod", i, constant(2, np.int32)), constant(1, np.int32))
                return [i + constant(1, np.int32), cond(odd, [y], lambda z: z * constant(3), lambda z: z + constant(1))]

            return loop("while", [constant(0, np.int32), a], counted(4), step)[1]

        return cond(pred, [x], turns, lambda a: a)

    agree(build, np.array(choice), X)


@pytest.mark.parametrize("choice", [True, False])
def test_a_tensor_array_that_one_branch_fills(choice):
    """The shape of an element is known only in that branch; another conditional reads it."""

    def build(pred, x):
        handle, flow = apply_op("TensorArrayV3", constant(2, np.int32), dtype=DataType.DT_FLOAT)

        def write(array, f, a):
            return apply_op("TensorArrayWriteV3", array, constant(1, np.int32), a * constant(2), f)

        flow = cond(pred, [handle, flow, x], write, lambda _array, f, _a: f)

        def read(array, f, _a):
            return apply_op("TensorArrayReadV3", array, constant(1, np.int32), f, dtype=DataType.DT_FLOAT)

        return cond(pred, [handle, flow, x], read, lambda _array, _f, a: a)

    (value,) = agree(build, np.array(choice), X)
    np.testing.assert_array_equal(value, X * 2 if choice else X)


def test_effects_happen_in_the_chosen_branch_only():
    def run(jit: str, choice: bool) -> list[Any]:
        graph = Graph()
        with graph.as_default():
            pred = graph.placeholder(DataType.DT_BOOL, [], name="pred")
            handle = apply_op("VarHandleOp", dtype=DataType.DT_FLOAT, shape=[], shared_name="v")
            init = apply_op("AssignVariableOp", handle, graph.constant(np.float32(1)), dtype=DataType.DT_FLOAT)
            inside = apply_op("Switch", handle, pred)
            done = apply_op("AssignAddVariableOp", inside[1], graph.constant(np.float32(4)), dtype=DataType.DT_FLOAT)
            value = apply_op("ReadVariableOp", handle, dtype=DataType.DT_FLOAT)
        session = cyxla.Session(graph, jit=jit, platform="interpreter")
        session.run(init.name)
        session.run(done.name, {"pred:0": np.array(choice)})
        return session.run(value.name)

    for choice, wanted in ((True, 5), (False, 1)):
        assert run("on", choice) == run("off", choice) == wanted


def test_branches_in_functions():
    """The body of a function loses its branches when the function is compiled."""

    def build(pred, x):
        graph = x.graph
        inner = Graph(graph.library.default_registry)
        inner.library = graph.library
        with inner.as_default():
            p, a = inner.placeholder(DataType.DT_BOOL, name="p"), inner.placeholder(DataType.DT_FLOAT, name="a")
            result = cond(p, [a], lambda b: b + constant(1), lambda b: b - constant(1))
        graph.library.add(graph_to_function("chosen", [p, a], [result]))
        return apply_op("PartitionedCall", [pred, x], Tout=[DataType.DT_FLOAT], f=NameAttrList("chosen", {}))[0]

    agree(build, np.array(True), X)


# What is left, and what is refused


def test_nothing_is_left_of_frames_and_branches():
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder(DataType.DT_FLOAT)
        loop("while", [x], lambda y: apply_op("Less", y, constant(3)), lambda y: [y + constant(1)])
    functionalize_control_flow(graph)
    assert not has_control_flow(graph)
    assert [n.op for n in graph.nodes.values()].count("While") == 1
    assert {"while_cond", "while_body"} <= {f.name for f in graph.library}


def test_a_value_that_is_there_on_a_condition_only_is_no_result():
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder(DataType.DT_FLOAT, name="x")
        pred = graph.placeholder(DataType.DT_BOOL, [], name="pred")
        y = apply_op("Neg", apply_op("Switch", x, pred)[1])
    with pytest.raises(UnimplementedError, match="only under a condition"):
        cyxla.Session(graph, jit="on").run(y.name, {"x:0": X, "pred:0": np.array(True)})


def test_a_frame_without_a_condition_is_no_loop():
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder(DataType.DT_FLOAT)
        apply_op("Exit", apply_op("Enter", x, frame_name="f"))
    with pytest.raises(InvalidArgumentError, match="0 LoopCond"):
        functionalize_control_flow(graph)
