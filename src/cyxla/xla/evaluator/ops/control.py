"""Calls, loops, branches, and opcodes that only order execution."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.errors import DeadlineExceededError
from cyxla.xla.evaluator.custom_calls import find_custom_call
from cyxla.xla.evaluator.evaluation import Evaluation
from cyxla.xla.evaluator.registry import Steps, evaluates
from cyxla.xla.evaluator.values import TOKEN_VALUE, Value, array_of, tuple_of, zeros
from cyxla.xla.hlo.instruction import Instruction


@evaluates("parameter")
def parameter(ev: Evaluation, ins: Instruction) -> Value:
    """Return the argument of a number."""
    return ev.argument(int(ins.attrs["parameter_number"]))


@evaluates("call", "fusion")
def call(ev: Evaluation, ins: Instruction, *operands: Value) -> Steps:
    """Return the result of the called computation."""
    return (yield ins.called[0], operands)


@evaluates("custom-call")
def custom_call(ev: Evaluation, ins: Instruction, *operands: Value) -> Value:
    """Call the implementation of the target."""
    return find_custom_call(ins.attrs["custom_call_target"], ev.options.custom_calls)(ev, ins, *operands)


@evaluates("while")
def while_loop(ev: Evaluation, ins: Instruction, state: Value) -> Steps:
    """Run the body while the condition, which is evaluated before each iteration, is true."""
    body, condition = ins.called
    trips, most = 0, ev.options.max_trips
    while array_of((yield condition, (state,))):
        if most is not None and trips >= most:
            raise DeadlineExceededError(f"a while loop took more than {most} trips")
        state = yield body, (state,)
        trips += 1
    return state


@evaluates("conditional")
def conditional(ev: Evaluation, ins: Instruction, selector: Value, *operands: Value) -> Steps:
    """Run one branch on its own operand: the first for true, or by index; an index out of range runs the last."""
    number = array_of(selector)
    index = int(number) if number.dtype != np.bool_ else int(not number)
    if not 0 <= index < len(ins.called):
        index = len(ins.called) - 1
    return (yield ins.called[index], (operands[index],))


@evaluates("async-start")
def async_start(ev: Evaluation, ins: Instruction, *operands: Value) -> Steps:
    """Run the wrapped computation; `async-done` takes the result from the tuple."""
    result = yield ins.called[0], operands
    return (operands, result, *(zeros(e) for e in ins.shape.elements[2:]))


@evaluates("async-update")
def async_update(ev: Evaluation, ins: Instruction, started: Value) -> Value:
    """Return the operand; the work was done at the start."""
    return started


@evaluates("async-done")
def async_done(ev: Evaluation, ins: Instruction, started: Value) -> Value:
    """Return the result that the start computed."""
    return tuple_of(started)[1]


@evaluates("copy-start")
def copy_start(ev: Evaluation, ins: Instruction, value: Value) -> Value:
    """Return (destination, source, context); the copy is done at once."""
    return value, value, np.zeros((), np.uint32)


@evaluates("copy-done")
def copy_done(ev: Evaluation, ins: Instruction, started: Value) -> Value:
    """Return the destination of the copy."""
    return tuple_of(started)[0]


@evaluates("copy", "opt-barrier", "domain")
def identity(ev: Evaluation, ins: Instruction, value: Value) -> Value:
    """Return the operand."""
    return value


@evaluates("after-all")
def after_all(ev: Evaluation, ins: Instruction, *tokens: Value) -> Value:
    """Return a token."""
    return TOKEN_VALUE


@evaluates("add-dependency")
def add_dependency(ev: Evaluation, ins: Instruction, value: Value, token: Value) -> Value:
    """Return the first operand."""
    return value


@evaluates("tuple")
def make_tuple(ev: Evaluation, ins: Instruction, *elements: Value) -> Value:
    """Return the operands as a tuple."""
    return elements


@evaluates("get-tuple-element")
def get_tuple_element(ev: Evaluation, ins: Instruction, value: Value) -> Value:
    """Return one element of a tuple."""
    return tuple_of(value)[int(ins.attrs["index"])]


@evaluates("constant")
def constant(ev: Evaluation, ins: Instruction) -> Value:
    """Return the value of the literal."""
    return _literal(ins.attrs["literal"])


def _literal(literal: Any) -> Value:
    if literal.shape.is_tuple:
        return tuple(_literal(e) for e in literal.elements)
    value: Value = literal.array
    return value
