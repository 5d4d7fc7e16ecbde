"""Building blocks of ufunc loops: constants, dispatch on the element kind, derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.trace import Rule
from cyxla.types import ElementType, Kind
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla

Emit = Callable[..., Any]
Ops = Sequence[XlaOp]
Cotangents = Sequence[XlaOp | None]
Vjp = Callable[[Ops, Ops, Cotangents], Cotangents]

NARROW = (ElementType.F16, ElementType.BF16)
BITS = {
    ElementType.F16: ElementType.S16, ElementType.BF16: ElementType.S16, ElementType.F32: ElementType.S32,
    ElementType.F64: ElementType.S64,
}  # fmt: skip
MANTISSA = {ElementType.F16: 10, ElementType.BF16: 7, ElementType.F32: 23, ElementType.F64: 52}
BIAS = {ElementType.F16: 15, ElementType.BF16: 127, ElementType.F32: 127, ElementType.F64: 1023}
UNSIGNED_OF = {
    ElementType.S8: ElementType.U8, ElementType.S16: ElementType.U16, ElementType.S32: ElementType.U32,
    ElementType.S64: ElementType.U64,
}  # fmt: skip


def full(like: XlaOp, value: Any, dtype: ElementType | None = None) -> XlaOp:
    """Broadcast a constant to the shape of a value, by default in its dtype."""
    shape = like.shape
    scalar = xla.constant(like.builder, value, dtype or shape.dtype)
    return xla.broadcast(scalar, shape.dims) if shape.dims else scalar


def by_kind(
    pred: Emit | None = None, signed: Emit | None = None, unsigned: Emit | None = None, real: Emit | None = None,
    complex_: Emit | None = None, integer: Emit | None = None,
) -> Emit:  # fmt: skip
    """Return a loop that dispatches on the kind of the first operand's elements."""
    rows = {
        Kind.PRED: pred, Kind.SIGNED: signed or integer, Kind.UNSIGNED: unsigned or integer, Kind.FLOAT: real,
        Kind.COMPLEX: complex_,
    }  # fmt: skip

    def emit(*ops: XlaOp) -> Any:
        row = rows[ops[0].shape.dtype.kind]
        assert row is not None  # NumPy has no loop for this kind
        return row(*ops)

    return emit


def identity(x: XlaOp) -> XlaOp:
    """Return the operand."""
    return x


def in_f32(function: Emit) -> Emit:
    """Return a loop that computes 16-bit floats in f32 and rounds once, as NumPy does."""

    def emit(*ops: XlaOp) -> Any:
        dtype = ops[0].shape.dtype
        if dtype not in NARROW:
            return function(*ops)
        result = function(*(xla.convert(x, ElementType.F32) if x.shape.dtype is dtype else x for x in ops))
        if isinstance(result, tuple):
            return tuple([_round_to(m, dtype) for m in result])
        return _round_to(result, dtype)

    return emit


def _round_to(result: XlaOp, dtype: ElementType) -> XlaOp:
    return xla.convert(result, dtype) if result.shape.dtype is ElementType.F32 else result


def with_vjp(function: Emit, vjp: Vjp) -> Emit:
    """Return a function with a custom derivative.

    Parameters
    ----------
    function : callable
        Function from operands to a result or a tuple of them.
    vjp : callable
        Function from operands, results and cotangents of the results to cotangents of the operands; see `Rule`.
    """

    def emit(*ops: XlaOp) -> Any:
        returned = function(*ops)
        results = list(returned) if isinstance(returned, tuple) else [returned]
        rule = Rule(list(ops), results, vjp)
        operands = {op.instruction for op in ops}
        trace = _trace.current()
        for result in results:
            if trace is not None and result.instruction is not None and result.instruction not in operands:
                trace.rules[result.instruction] = rule
        return returned

    return emit


def zero_gradient(function: Emit) -> Emit:
    """Return a function with a zero derivative: one that is constant almost everywhere."""
    return with_vjp(function, lambda ops, results, cotangents: [None] * len(ops))
