"""Lowering of branches: an HLO `conditional` whose branches each take the values that they use."""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.numpy.control.lower_while import Ops, state_computation, take_failures, used_parameters
from cyxla.numpy.gradient.backward import Linearised, or_zeros
from cyxla.numpy.gradient.composites import attach
from cyxla.numpy.gradient.table import Cotangents
from cyxla.numpy.tracing.bodies import Body, inline, record_body
from cyxla.numpy.tracing.trace import Pullback, require_current
from cyxla.types import Shape
from cyxla.xla.hlo.builder import XlaComputation, XlaOp
from cyxla.xla.hlo.builder import functions as xla


def emit_conditional(branches: Sequence[Body], selector: XlaOp, operands: Sequence[XlaOp]) -> Ops:
    """Emit a conditional and return its results; failures join those of the current trace.

    Parameters
    ----------
    branches : sequence of Body
        Branches, with the same parameters and result shapes.
    selector : XlaOp
        pred[] to choose between the first and the second branch, or s32[] for an index.
    operands : sequence of XlaOp
        Operands of the branches.
    """
    results = emit_conditional_with_failure(branches, selector, operands)
    count = len(branches[0].results)
    if len(results) > count:
        require_current().failures.append((results[count], results[count + 1]))
    return results[:count]


def emit_conditional_with_failure(branches: Sequence[Body], selector: XlaOp, operands: Sequence[XlaOp]) -> Ops:
    """Emit a conditional and return its results, then the failure if a branch contains checks."""
    captured = [require_current().capture(x) for x in (selector, *operands)]
    fails = any(b.fails for b in branches)
    pairs = [_branch_computation(b, captured[1:], fails) for b in branches]
    result = xla.conditional(captured[0], [c for c, _ in pairs], [x for _, x in pairs])
    results = [xla.get_tuple_element(result, k) for k in range(len(result.shape.elements))]

    def forward(values: Ops, active: list[bool]) -> tuple[Ops, Pullback]:
        def pullback(cotangents: Cotangents) -> Cotangents:
            return _pull_back(branches, values, active, cotangents[: len(branches[0].results)])

        return emit_conditional_with_failure(branches, values[0], values[1:]), pullback

    return attach(captured, results, forward=forward)


def _branch_computation(body: Body, operands: Ops, fails: bool) -> tuple[XlaComputation, XlaOp]:
    """Return a branch as a computation of a tuple, and the operand tuple."""
    used = sorted(used_parameters(body))

    def step(values: Ops) -> Ops:
        arguments: list[XlaOp | None] = [None] * len(operands)
        for k, v in zip(used, values, strict=True):
            arguments[k] = v
        results = inline(body, arguments)
        return [*results, *take_failures()] if fails else results

    used_operands = [operands[k] for k in used]
    computation = state_computation(body.trace.builder.name, Shape.tuple([x.shape for x in used_operands]), step)
    return computation, xla.tuple_(require_current().builder, used_operands)


def _pull_back(branches: Sequence[Body], values: Ops, active: Sequence[bool], cotangents: Cotangents) -> Cotangents:
    """Pull cotangents back: the chosen branch is recomputed and differentiated."""
    present_results = [k for k, c in enumerate(cotangents) if c is not None]
    count = len(values) - 1
    active_operands = [k for k in range(count) if active[1 + k]]
    present_cotangents = [c for c in cotangents if c is not None]

    def pull_branch(branch: Body) -> Body:
        def step(*inputs: XlaOp) -> Ops:
            cotangents_: list[XlaOp | None] = [None] * len(cotangents)
            for k, c in zip(present_results, inputs[count:], strict=True):
                cotangents_[k] = c
            gradients = Linearised(branch, inputs[:count], active[1:]).pull(cotangents_)
            return or_zeros([gradients[k] for k in active_operands], [branch.shapes[k] for k in active_operands])

        return record_body("pullback", [*branch.shapes, *[c.shape for c in present_cotangents]], step)

    results = emit_conditional([pull_branch(b) for b in branches], values[0], [*values[1:], *present_cotangents])
    gradients: list[XlaOp | None] = [None] * len(values)
    for k, c in zip(active_operands, results, strict=True):
        gradients[1 + k] = c
    return gradients
