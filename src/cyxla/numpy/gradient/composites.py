"""Derivatives given by hand: for what a table of opcodes cannot know, or knows worse."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cyxla.numpy.tracing.trace import Rule, current, require_current
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla

Vjp = Callable[[list[XlaOp], list[XlaOp], Sequence[XlaOp | None]], Sequence[XlaOp | None]]


def composite(
    inputs: Sequence[XlaOp], results: Callable[..., XlaOp | Sequence[XlaOp]] | Sequence[XlaOp], vjp: Vjp
) -> list[XlaOp]:
    """Instructions whose derivative is known as a whole.

    Parameters
    ----------
    inputs : sequence of XlaOp
        What they compute from.
    results : sequence of XlaOp, or callable
        What they compute; or a function from the inputs to a result or several.
    vjp : callable
        From inputs, results, and the cotangents of these (None where nothing depends on a result) to those of the
        inputs (None for zero). It must use no other values of the trace than these: it is called for copies, too. What
        it writes is differentiated in its turn for second derivatives.

    Returns
    -------
    list of XlaOp
        The results.
    """
    trace = current()
    given = list(inputs) if trace is None else [trace.inner(x) for x in inputs]
    made = results(*given) if callable(results) else results
    found = [made] if isinstance(made, XlaOp) else list(made)
    return found if trace is None else attach(given, found, vjp=vjp)


def attach(
    inputs: Sequence[XlaOp],
    results: Sequence[XlaOp],
    vjp: Vjp | None = None,
    again: Callable[[list[XlaOp], list[bool]], tuple[list[XlaOp], Callable[..., Sequence[XlaOp | None]]]] | None = None,
) -> list[XlaOp]:
    """Give results a derivative; see `cyxla.numpy.tracing.trace.Rule`.

    Returns
    -------
    list of XlaOp
        The results; copies of those that are inputs, constants, or have a derivative already.
    """
    trace = require_current()
    outputs = _own(inputs, results)
    made = Rule(list(inputs), outputs, vjp, again)
    for o in outputs:
        assert o.instruction is not None
        trace.rules[o.instruction] = made
    return outputs


def _own(inputs: Sequence[XlaOp], results: Sequence[XlaOp]) -> list[XlaOp]:
    taken = {x.instruction for x in inputs} | set(require_current().rules)
    made: list[XlaOp] = []
    for r in results:
        assert r.instruction is not None
        fresh = r.instruction not in taken and r.instruction.opcode not in ("parameter", "constant")
        made.append(r if fresh else xla.copy(r))
        taken.add(r.instruction)
    return made
