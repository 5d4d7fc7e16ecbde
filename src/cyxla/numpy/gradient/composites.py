"""Custom derivatives of groups of instructions that the table of opcodes cannot differentiate, or not as well."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cyxla.numpy.tracing.trace import Rule, current, require_current
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla

Vjp = Callable[[list[XlaOp], list[XlaOp], Sequence[XlaOp | None]], Sequence[XlaOp | None]]


def composite(
    inputs: Sequence[XlaOp], results: Callable[..., XlaOp | Sequence[XlaOp]] | Sequence[XlaOp], vjp: Vjp
) -> list[XlaOp]:
    """Attach a derivative to a group of instructions.

    Parameters
    ----------
    inputs : sequence of XlaOp
        Operands of the group.
    results : sequence of XlaOp, or callable
        Results of the group, or a function from the inputs to one or more results.
    vjp : callable
        Function from inputs, results, and cotangents of the results (None where nothing depends on a result) to
        cotangents of the inputs (None for zero). It must not use other values of the trace, since it is also called for
        inlined copies. For second derivatives its instructions are differentiated in turn.

    Returns
    -------
    list of XlaOp
        Results with the derivative attached.
    """
    trace = current()
    captured = list(inputs) if trace is None else [trace.capture(x) for x in inputs]
    emitted = results(*captured) if callable(results) else results
    outputs = [emitted] if isinstance(emitted, XlaOp) else list(emitted)
    return outputs if trace is None else attach(captured, outputs, vjp=vjp)


def attach(
    inputs: Sequence[XlaOp],
    results: Sequence[XlaOp],
    vjp: Vjp | None = None,
    forward: Callable[[list[XlaOp], list[bool]], tuple[list[XlaOp], Callable[..., Sequence[XlaOp | None]]]]
    | None = None,
) -> list[XlaOp]:
    """Attach a rule to results; see `cyxla.numpy.tracing.trace.Rule`.

    Returns
    -------
    list of XlaOp
        Results; those that are inputs, constants, or have a rule already are copied.
    """
    trace = require_current()
    outputs = _fresh_outputs(inputs, results)
    rule = Rule(list(inputs), outputs, vjp, forward)
    for o in outputs:
        assert o.instruction is not None
        trace.rules[o.instruction] = rule
    return outputs


def _fresh_outputs(inputs: Sequence[XlaOp], results: Sequence[XlaOp]) -> list[XlaOp]:
    used = {x.instruction for x in inputs} | set(require_current().rules)
    outputs: list[XlaOp] = []
    for r in results:
        assert r.instruction is not None
        is_new = r.instruction not in used and r.instruction.opcode not in ("parameter", "constant")
        outputs.append(r if is_new else xla.copy(r))
        used.add(r.instruction)
    return outputs
