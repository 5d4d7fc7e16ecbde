"""infeed, outfeed, send and recv: the other end is `Options.feeds`."""

from __future__ import annotations

import numpy as np

from cyxla.errors import UnimplementedError
from cyxla.xla.evaluator.evaluation import Evaluation
from cyxla.xla.evaluator.registry import evaluates
from cyxla.xla.evaluator.values import TOKEN_VALUE, Value, export_value, zeros
from cyxla.xla.feeds import Feeds
from cyxla.xla.hlo.instruction import Instruction


@evaluates("infeed")
def infeed(ev: Evaluation, ins: Instruction, token: Value) -> Value:
    """Take the next value of the infeed queue."""
    return _feeds(ev, ins).take_infeed(ins.shape.elements[0].logical), TOKEN_VALUE


@evaluates("outfeed")
def outfeed(ev: Evaluation, ins: Instruction, value: Value, token: Value) -> Value:
    """Append a value to the outfeed queue."""
    _feeds(ev, ins).put_outfeed(export_value(value))
    return TOKEN_VALUE


@evaluates("send")
def send(ev: Evaluation, ins: Instruction, value: Value, token: Value) -> Value:
    """Send a value to the host or to another program, without waiting for its receipt."""
    _feeds(ev, ins).program_send(_channel(ins), export_value(value), to_host=ins.attrs["is_host_transfer"])
    return value, np.zeros((), np.uint32), TOKEN_VALUE


@evaluates("send-done")
def send_done(ev: Evaluation, ins: Instruction, started: Value) -> Value:
    """Return the token of a value that `send` has sent."""
    return TOKEN_VALUE


@evaluates("recv")
def recv(ev: Evaluation, ins: Instruction, token: Value) -> Value:
    """Return a place for a value, which `recv-done` waits for: a program may send before it does."""
    _feeds(ev, ins)
    return zeros(ins.shape.elements[0].logical), np.zeros((), np.uint32), TOKEN_VALUE


@evaluates("recv-done")
def recv_done(ev: Evaluation, ins: Instruction, started: Value) -> Value:
    """Wait for the next value of the channel."""
    shape, from_host = ins.shape.elements[0].logical, ins.attrs["is_host_transfer"]
    return _feeds(ev, ins).program_recv(_channel(ins), shape, from_host=from_host), TOKEN_VALUE


def _channel(ins: Instruction) -> int:
    return int(ins.attrs["channel_id"] or 0)


def _feeds(ev: Evaluation, ins: Instruction) -> Feeds:
    if ev.options.feeds is None:
        raise UnimplementedError(
            f"{ins.opcode}: no host is connected", hint="evaluate it with Options(feeds=cyxla.Feeds())"
        )
    return ev.options.feeds
