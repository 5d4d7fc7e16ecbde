"""Evaluate instructions whose operands are constants.

Before::

    a = s32[3] constant({1, 2, 3})
    b = s32[3] multiply(a, a)
    ROOT s = s32[3] reverse(b), dimensions={0}

After::

    ROOT s = s32[3] constant({9, 4, 1})

The evaluator computes the results, as the reference would at run time. Folding is cheap and never enlarges a program:
results of more than `MAX_BYTES`, work of more than `MAX_WORK` element operations, and arrays larger than the constants
they are computed from (a broadcast, an iota) are left to the program.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from cyxla.errors import OpError
from cyxla.types import Literal
from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.passes.engine.observer import replace

MAX_BYTES: Final = 64 << 10
MAX_WORK: Final = 1_000_000
ALWAYS_FOLDED_BYTES: Final = 64  # bytes that may be larger than the operands
#: Opcodes that are not folded: they depend on the run, are meant to stay, or are cheap to recompute.
NOT_FOLDED: Final = frozenset({
    "parameter", "constant", "rng", "rng-bit-generator", "rng-get-and-update-state", "custom-call", "partition-id",
    "replica-id", "opt-barrier", "add-dependency", "after-all", "domain", "tuple", "get-tuple-element", "infeed",
    "outfeed", "send", "recv", "send-done", "recv-done", "while", "conditional", "call", "async-start", "async-update",
    "async-done", "copy-start", "copy-done", "bitcast", "set-dimension-size", "dynamic-reshape", "copy", "fft",
    "all-reduce", "all-gather", "all-to-all", "collective-permute", "collective-broadcast", "reduce-scatter",
    "ragged-all-to-all", "all-reduce-start", "all-reduce-done", "all-gather-start", "all-gather-done",
    "collective-permute-start", "collective-permute-done", "fusion",
})  # fmt: skip
_GENERATED: Final = frozenset({"broadcast", "iota"})
_SOURCES: Final = frozenset({"constant", *_GENERATED})


def run(module: HloModule) -> bool:
    """Fold every instruction whose operands are constants, operands first."""
    changed = False
    for computation in module.post_order():
        changed |= run_computation(computation)
    return changed


def run_computation(computation: Computation) -> bool:
    """Fold those of one computation."""
    changed = False
    stack = [u for i in computation.instructions if i.opcode in _SOURCES for u in i.users]
    stack += [i for i in computation.instructions if i.opcode == "iota"]
    while stack:
        ins = stack.pop()
        if ins.opcode in NOT_FOLDED or not _foldable(ins):
            continue
        new = _fold(ins)
        if new is not None:
            replace(ins, new, "all operands are constants")
            stack.extend(new.users)
            changed = True
    return changed


def _foldable(ins: Instruction) -> bool:
    if not ins.operands and ins.opcode != "iota":
        return False
    for o in ins.operands:
        if o.opcode != "constant" and not _is_generated(o):
            return False
    shape = ins.shape
    if not shape.is_array or shape.is_dynamic or not (ins.users or ins.is_root) or ins.control_predecessors:
        return False
    return _is_cheap(ins) and not ins.has_side_effect


def _is_generated(ins: Instruction) -> bool:
    """Return True for an iota or a broadcast of a constant that is small enough to evaluate."""
    if ins.opcode not in _GENERATED or ins.shape.nbytes > MAX_BYTES:
        return False
    return not ins.operands or ins.operands[0].opcode == "constant"


def _is_cheap(ins: Instruction) -> bool:
    size = ins.shape.nbytes
    operand_bytes = sum(o.shape.nbytes for o in ins.operands if o.opcode == "constant")
    if size > max(ALWAYS_FOLDED_BYTES if ins.opcode not in _GENERATED else 0, operand_bytes) or size > MAX_BYTES:
        return ins.opcode in _GENERATED and ins.shape.size == 1
    return work(ins) <= MAX_WORK


def work(ins: Instruction) -> int:
    """Return the number of element operations of one evaluation."""
    most: int = max(ins.shape.size, *(o.shape.size for o in ins.operands), 1)
    if ins.opcode == "dot":
        lhs = ins.operands[0].shape
        return int(ins.shape.size * prod(lhs.dims[d] for d in ins.attrs["lhs_contracting_dims"]))
    if ins.opcode == "convolution":
        return ins.shape.size * ins.operands[1].shape.size
    if ins.attrs.get("window"):
        return int(ins.shape.size * prod(w.size for w in ins.attrs["window"]))
    if ins.opcode in ("cholesky", "triangular-solve"):
        return most * max(ins.operands[0].shape.dims[-1:] or (1,))
    return most * max(1, sum(len(c.instructions) for c in ins.called))


def _fold(ins: Instruction) -> Instruction | None:
    try:
        value = _evaluate(ins)
    except (OpError, ArithmeticError, ValueError, TypeError):
        return None  # the error is raised at run time
    if not isinstance(value, np.ndarray) or value.shape != ins.shape.dims:
        return None
    shape = ins.shape.logical
    return ins.computation.add("constant", (), {"literal": Literal(value, shape)}, shape=shape)


def _evaluate(ins: Instruction) -> Any:
    from cyxla.xla.evaluator import evaluate_instruction  # most programs have nothing to fold

    return evaluate_instruction(ins, *(_value(o) for o in ins.operands))


def _value(ins: Instruction) -> Any:
    if ins.opcode == "constant":
        literal = ins.attrs["literal"]
        return _tuple_value(literal) if literal.is_tuple else literal.array
    return _evaluate(ins)


def _tuple_value(literal: Literal) -> Any:
    return tuple(_tuple_value(e) if e.is_tuple else e.array for e in literal.elements)
