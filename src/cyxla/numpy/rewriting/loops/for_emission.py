"""Emission of recorded bodies of loops over iterables."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.numpy.control.lower_scan import Scan, emit_scan
from cyxla.numpy.rewriting.loops.emission import converted_body, emit_loop, within
from cyxla.numpy.rewriting.loops.recordings import Recording
from cyxla.numpy.tracing.arrays.traced_array import value_of
from cyxla.numpy.tracing.bodies import inline, record_body
from cyxla.numpy.tracing.trace import require_current
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla


def emit_counted(recording: Recording, count: int) -> tuple[Any, ...]:
    """Emit a loop of a known number of iterations, and return the state after it."""
    body = converted_body(recording, recording.results(), [], recording.part.trace.failures)
    constants, slots = body.captures, recording.slots
    split = len(constants)
    shapes = [recording.index.shape, *[c.shape for c in constants], *[s.parameter.aval.static for s in slots]]
    iteration = record_body(
        "iteration", shapes, lambda number, *v: inline(body, [number, *v[split:], *v[:split]])
    )  # fmt: skip
    inits = [value_of(s.init) for s in slots]
    results = emit_scan(Scan(iteration, count, split, len(slots)), [*constants, *inits])
    return recording.after(results, [])


def emit_open(recording: Recording, length: XlaOp | int, first: int) -> tuple[Any, ...]:
    """Emit a loop that may end early, and return the state after it.

    Parameters
    ----------
    recording : Recording
        Recorded body.
    length : XlaOp or int
        Greatest number of iterations; if it is traced, with those before the loop.
    first : int
        Number of iterations before the loop.
    """
    trace = recording.part.trace
    limit = trace.constant(length, np.dtype(np.int64)) if isinstance(length, int) else _behind(recording, length, first)
    with within(recording):
        one = require_current().constant(1, np.dtype(np.int64))
        going = xla.lt(recording.index, limit)
        following = recording.index + one
    begin = require_current().constant(0, np.dtype(np.int64))
    return emit_loop(recording, going, [], [following], list(trace.failures), [begin])


def _behind(recording: Recording, length: XlaOp, first: int) -> XlaOp:
    """Return a length without the first iterations."""
    with within(recording):
        return length - require_current().constant(first, np.dtype(np.int64)) if first else length
