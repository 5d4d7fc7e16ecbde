"""Lowering of loops: an HLO `while` over a tuple."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cyxla.errors import UnimplementedError
from cyxla.numpy.gradient.composites import attach
from cyxla.numpy.tracing.bodies import Body, inline, instruction_of, reachable
from cyxla.numpy.tracing.trace import Pullback, Trace, require_current, tracing, user_line
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaComputation, XlaOp
from cyxla.xla.hlo.builder import functions as xla

Ops = list[XlaOp]
INDEX = Shape.array(ElementType.S64)


def index_constant(value: int) -> XlaOp:
    """Return an s64 constant of the current trace."""
    return require_current().constant(value, np.dtype(np.int64))


def state_computation(name: str, shape: Shape, step: Callable[[Ops], XlaOp | Sequence[XlaOp]]) -> XlaComputation:
    """Build a computation from a tuple to a value, or to another tuple."""
    trace = Trace(name)
    with tracing(trace):
        state = trace.parameter(shape, "state")
        result = step([xla.get_tuple_element(state, k) for k in range(len(shape.elements))])
        return trace.build(result if isinstance(result, XlaOp) else xla.tuple_(trace.builder, result))


def emit_state_loop(
    condition: Callable[[Ops], XlaOp], step: Callable[[Ops], Sequence[XlaOp]], init: Sequence[XlaOp]
) -> Ops:
    """Emit a while loop and return its final state.

    Parameters
    ----------
    condition : callable
        Function from the state, in a trace of its own, to pred[].
    step : callable
        Function from the state, in a trace of its own, to the next one.
    init : sequence of XlaOp
        Initial state.
    """
    shape = Shape.tuple([x.shape for x in init])
    condition_computation = state_computation("condition", shape, condition)
    body = state_computation("body", shape, step)
    final = xla.while_(condition_computation, body, xla.tuple_(require_current().builder, init))
    return [xla.get_tuple_element(final, k) for k in range(len(init))]


def used_parameters(body: Body) -> set[int]:
    """Return the indices of the parameters that results, failures and side effects of a body depend on."""
    values = [*body.results, *[v for pair in body.trace.failures for v in pair]]
    effects = [ins for ins in body.instructions if ins.has_side_effect]
    reached = reachable([*map(instruction_of, values), *effects], {}, body.trace.rules, ())
    return {k for k, p in enumerate(body.parameters) if instruction_of(p) in reached}


# -- failures as results of loops and branches


def take_failures() -> Ops:
    """Remove the first failure from the current trace and return it as two values, zeros for success."""
    trace = require_current()
    failure = trace.first_failure()
    trace.failures.clear()
    return list(failure) if failure is not None else [index_constant(0), index_constant(0)]


def first_failure_of(status: Sequence[XlaOp], later: Sequence[XlaOp]) -> Ops:
    """Return the earlier of two failures."""
    has_failed = xla.ne(status[0], index_constant(0))
    return [xla.select(has_failed, first, second) for first, second in zip(status, later, strict=True)]


# -- loops of unknown trip count


def emit_while(condition: Body, body: Body, constants: Sequence[XlaOp], init: Sequence[XlaOp]) -> Ops:
    """Emit a loop that runs while a condition holds, and return its final state.

    Parameters
    ----------
    condition, body : Body
        Functions from the state and the constants to pred[], and to the next state.
    constants : sequence of XlaOp
        Values that both use besides the state.
    init : sequence of XlaOp
        Initial state.
    """
    results = _emit_with_failure(condition, body, [*init, *constants], len(init))
    if len(results) > len(init):
        require_current().failures.append((results[-2], results[-1]))
    return results[: len(init)]


def _emit_with_failure(condition: Body, body: Body, inputs: Ops, count: int) -> Ops:
    """Emit the loop and return its final state, then the failure if condition or body contain checks."""
    captured = [require_current().capture(x) for x in inputs]
    emit = _emit_until_failure if condition.fails or body.fails else _emit_plain

    def forward(values: Ops, active: list[bool]) -> tuple[Ops, Pullback]:
        return _emit_with_failure(condition, body, values, count), _no_pullback

    return attach(captured, emit(condition, body, captured, count), forward=forward)


def _no_pullback(cotangents: Sequence[XlaOp | None]) -> Sequence[XlaOp | None]:
    raise UnimplementedError(
        "a loop of unknown trip count cannot be differentiated in reverse mode", where=user_line(),
        hint="use cyxla.scan, or cyxla.fori_loop with Python numbers as bounds",
    )  # fmt: skip


def _emit_plain(condition: Body, body: Body, inputs: Ops, count: int) -> Ops:
    final = emit_state_loop(
        lambda state: inline(condition, state)[0], lambda state: [*inline(body, state), *state[count:]], inputs
    )
    return final[:count]


def _emit_until_failure(condition: Body, body: Body, inputs: Ops, count: int) -> Ops:
    """Emit a loop that a failure ends; the condition is evaluated with the state, since it may fail as well."""

    def test(state: Ops) -> XlaOp:
        return inline(condition, state)[0]

    def evaluate_condition(state: Ops) -> Ops:
        holds = test(state)
        status = take_failures()
        return [xla.and_(holds, xla.eq(status[0], index_constant(0))), *status]

    def step(state: Ops) -> Ops:
        values = state[3:]
        next_values = [*inline(body, values), *values[count:]]
        status = take_failures()
        holds, *later = evaluate_condition(next_values)
        status = first_failure_of(status, later)
        return [xla.and_(holds, xla.eq(status[0], index_constant(0))), *status, *next_values]

    trace = require_current()
    earlier_failures = list(trace.failures)
    trace.failures.clear()
    first = evaluate_condition(inputs)
    trace.failures.extend(earlier_failures)
    final = emit_state_loop(lambda state: state[0], step, [*first, *inputs])
    return [*final[3 : 3 + count], final[1], final[2]]
