"""Calls, loops and branches, and the driver under them."""

import numpy as np
import pytest

import cyxla
from cyxla.errors import DeadlineExceededError, InternalError, InvalidArgumentError
from cyxla.types import TOKEN, Literal, Shape
from cyxla.xla.evaluator import TOKEN_VALUE, Options, evaluate, evaluate_computation
from cyxla.xla.hlo import Computation, HloModule

S32, PRED = Shape.array("s32"), Shape.array("pred")


def parameter(comp, shape=S32, number=0):
    return comp.add("parameter", attrs={"parameter_number": number}, shape=shape)


def constant(comp, value):
    literal = Literal(np.array(value, np.int32))
    return comp.add("constant", attrs={"literal": literal}, shape=literal.shape)


def plus(n):
    comp = Computation(f"plus{n}")
    comp.root = comp.add("add", [parameter(comp), constant(comp, n)], shape=S32)
    return comp


def below(n):
    comp = Computation("below")
    comp.root = comp.add("compare", [parameter(comp), constant(comp, n)], {"direction": "LT"}, shape=PRED)
    return comp


def counting(limit):
    comp = Computation("main")
    comp.root = comp.add("while", [parameter(comp)], shape=S32, called=[plus(1), below(limit)])
    return comp


@pytest.mark.parametrize("start, want", [(0, 5), (7, 7)])
def test_while_asks_before_each_trip(start, want):
    assert evaluate_computation(counting(5), [np.int32(start)]) == want


def test_while_can_be_capped():
    assert evaluate_computation(counting(5), [np.int32(0)], options=Options(max_trips=5)) == 5
    with pytest.raises(DeadlineExceededError, match="more than 4 trips"):
        evaluate_computation(counting(5), [np.int32(0)], options=Options(max_trips=4))


@pytest.mark.slow
def test_a_hundred_thousand_trips():
    assert evaluate_computation(counting(100_000), [np.int32(0)]) == 100_000


def test_poll_can_stop_a_loop():
    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate_computation(counting(10**9), [np.int32(0)], options=Options(poll=stop))


@pytest.mark.parametrize("index, want", [(0, 1), (1, 12), (2, 103), (5, 103), (-1, 103)])
def test_conditional_by_number(index, want):
    comp = Computation("main")
    which, branches = parameter(comp), [plus(1), plus(10), plus(100)]
    args = [constant(comp, n) for n in (0, 2, 3)]
    comp.root = comp.add("conditional", [which, *args], shape=S32, called=branches)
    assert evaluate_computation(comp, [np.int32(index)]) == want


@pytest.mark.parametrize("which, want", [(True, 1), (False, 10)])
def test_conditional_by_predicate(which, want):
    comp = Computation("main")
    zero = constant(comp, 0)
    comp.root = comp.add("conditional", [parameter(comp, PRED), zero, zero], shape=S32, called=[plus(1), plus(10)])
    assert evaluate_computation(comp, [np.array(which)]) == want


def test_calls_nested_five_thousand_deep():
    inner = plus(1)
    for n in range(5000):
        outer = Computation(f"c{n}")
        outer.root = outer.add("call", [parameter(outer)], shape=S32, called=[inner])
        inner = outer
    assert evaluate_computation(inner, [np.int32(41)]) == 42


@pytest.mark.slow
def test_a_chain_of_twenty_thousand():
    comp = Computation("main")
    x = parameter(comp)
    one = constant(comp, 1)
    for _ in range(20_000):
        x = comp.add("add", [x, one], shape=S32)
    comp.root = x
    assert evaluate_computation(comp, [np.int32(0)]) == 20_000


def test_async_chain():
    comp = Computation("main")
    p = parameter(comp)
    started = comp.add("async-start", [p], shape=Shape.tuple([Shape.tuple([S32]), S32, S32]), called=[plus(3)])
    updated = comp.add("async-update", [started], shape=started.shape)
    comp.root = comp.add("async-done", [updated], shape=S32)
    assert evaluate_computation(comp, [np.int32(1)]) == 4


def test_copy_chain_and_tokens():
    comp = Computation("main")
    p = parameter(comp)
    started = comp.add("copy-start", [p], shape=Shape.tuple([S32, S32, Shape.array("u32")]))
    done = comp.add("copy-done", [started], shape=S32)
    token = comp.add("after-all", [], shape=TOKEN)
    kept = comp.add("add-dependency", [done, token], shape=S32)
    same = comp.add("opt-barrier", [comp.add("copy", [kept], shape=S32)], shape=S32)
    comp.root = comp.add(
        "tuple",
        [same, token, comp.add("tuple", shape=Shape.tuple([]))],
        shape=Shape.tuple([S32, TOKEN, Shape.tuple([])]),
    )
    value, got, empty = evaluate_computation(comp, [np.int32(6)])
    assert value == 6
    assert got is TOKEN_VALUE
    assert empty == ()


def test_arguments_are_checked():
    module = HloModule("m")
    module.entry = module.add_computation(plus(1))
    with pytest.raises(InvalidArgumentError, match="takes 1 arguments, got 0"):
        evaluate(module, [])
    with pytest.raises(InvalidArgumentError, match="expected s32"):
        evaluate(module, [np.float32(1)])
    with pytest.raises(InvalidArgumentError, match="expected s32"):
        evaluate(module, [np.int32([1])])


def test_a_result_of_the_wrong_shape_is_an_internal_error():
    comp = Computation("main")
    comp.root = comp.add("add", [parameter(comp)] * 2, shape=Shape.array("s32", (3,)))
    with pytest.raises(InternalError, match=r"add gave int32\[\] where s32\[3\] is due"):
        evaluate_computation(comp, [np.int32(1)])


def test_dead_instructions_do_not_run():
    comp = plus(1)
    comp.add("while", [constant(comp, 0)], shape=S32, called=[plus(0), below(1)])
    assert evaluate_computation(comp, [np.int32(1)], options=Options(max_trips=10)) == 2


def test_results_have_rank_zero_not_numpy_scalars():
    assert isinstance(evaluate_computation(plus(1), [np.int32(1)]), np.ndarray)


def test_asynchronous_operations_that_get_their_operands_later(backend):
    text = """HloModule m
      minus { p = f32[4] parameter(0) q = f32[4] parameter(1) ROOT s = f32[4] subtract(p, q) }
      ENTRY e {
        x = f32[4] parameter(0), sharding={mesh['x'=2], [{'x'}]}
        s = ((), (), u32[]) call-start(), to_apply=minus
        y = f32[4] negate(x)
        u = ((f32[4]), (), u32[]) call-update(s, y)
        v = ((f32[4], f32[4]), f32[4], u32[]) call-update(u, x)
        ROOT d = f32[4] call-done(v) }"""
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(cyxla.compile(text, platform=backend)(x), -2 * x)
