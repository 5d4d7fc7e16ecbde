"""infeed, outfeed, send and recv: the host is a pair of queues in the options."""

from __future__ import annotations

from cyxla.errors import UnimplementedError
from cyxla.xla.evaluator.evaluation import Evaluation
from cyxla.xla.evaluator.registry import evaluates
from cyxla.xla.evaluator.values import TOKEN_VALUE, Value, import_value
from cyxla.xla.hlo.instruction import Instruction


@evaluates("infeed")
def infeed(ev: Evaluation, ins: Instruction, token: Value) -> Value:
    """Take the next value from the infeed queue."""
    if not ev.options.infeed:
        raise UnimplementedError(
            "infeed: the infeed queue is empty", hint="put a value for each infeed into Options.infeed"
        )
    return import_value(ev.options.infeed.pop(0), ins.shape.elements[0]), TOKEN_VALUE


@evaluates("outfeed")
def outfeed(ev: Evaluation, ins: Instruction, value: Value, token: Value) -> Value:
    """Append a value to the outfeed queue."""
    ev.options.outfeed.append(value)
    return TOKEN_VALUE


@evaluates("send", "send-done", "recv", "recv-done")
def transfer(ev: Evaluation, ins: Instruction, *operands: Value) -> Value:
    """Raise, since channels have no other end here."""
    raise UnimplementedError(
        f"{ins.opcode}: no other program or host is connected to channel {ins.attrs['channel_id']}",
        hint="infeed and outfeed reach the host",
    )
