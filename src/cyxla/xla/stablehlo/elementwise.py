"""Operations on each element."""

from __future__ import annotations

from typing import Any, Final

from cyxla.errors import InvalidArgumentError
from cyxla.types import ElementType
from cyxla.xla.hlo.attributes import ResultAccuracy
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.hlo.opcode import OPCODES
from cyxla.xla.stablehlo.attributes import Record
from cyxla.xla.stablehlo.context import Context
from cyxla.xla.stablehlo.registry import Results, choice, field_int, handles, integer, keyword, required, word
from cyxla.xla.stablehlo.syntax import Operation

_PLAIN = [row for row in OPCODES.values() if row.elementwise and row.dialect]
#: Opcodes by operation, of those with one operand.
UNARY: Final = {row.identifier: row.name for row in _PLAIN if row.arity == (1, 1)} | {"copy": "copy"}
#: Opcodes by operation, of those with two operands.
BINARY: Final = {row.identifier: row.name for row in _PLAIN if row.arity == (2, 2)}


def arity(op: Operation, xs: list[XlaOp], *counts: int) -> None:
    """Raise if the number of operands is not one of `counts`."""
    if len(xs) not in counts:
        raise InvalidArgumentError(f"{op.name} takes {' or '.join(map(str, counts))} operands, not {len(xs)}")


@handles(*UNARY)
def _unary(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 1)
    accuracy = op.attributes.get("result_accuracy")
    attrs = {"result_accuracy": _accuracy(accuracy)} if isinstance(accuracy, Record) else None
    return c.builder.add(UNARY[op.kind], xs, attrs)


def _accuracy(record: Record) -> ResultAccuracy:
    fields: dict[str, Any] = record.fields
    mode = word(fields.get("mode", "DEFAULT"), "the mode of an accuracy").lower()
    atol, rtol = (fields.get(k, 0) for k in ("atol", "rtol"))
    if mode not in ("default", "highest", "tolerance") or not all(isinstance(v, (int, float)) for v in (atol, rtol)):
        raise InvalidArgumentError("an accuracy that HLO does not have")
    return ResultAccuracy(mode, float(atol), float(rtol), field_int(fields, "ulps"))


@handles(*(name for name in BINARY if name != "stochastic_convert"))
def _binary(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 2)
    return c.builder.add(BINARY[op.kind], xs)


_COMPARE_TYPES = ("NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED")


@handles("compare")
def _compare(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 2)
    kind = choice(op, "compare_type", _COMPARE_TYPES, "NOTYPE")
    direction = choice(op, "comparison_direction", ("EQ", "NE", "GE", "GT", "LE", "LT"))
    attrs = {"direction": direction, "type": None if kind == "NOTYPE" else kind}
    return c.builder.add("compare", xs, attrs)


@handles("select", "clamp")
def _ternary(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 3)
    return c.builder.add(op.kind, xs)


@handles("convert")
def _convert(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 1)
    target = c.stated(op).dtype
    return xs[0] if xs[0].shape.dtype is target else xla.convert(xs[0], target)


@handles("bitcast_convert")
def _bitcast_convert(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    """Lower bitcast_convert; a pred is a byte in HLO and one bit in StableHLO, so it is converted from or to u1."""
    arity(op, xs, 1)
    x, target = xs[0], c.stated(op).dtype
    if (x.shape.dtype is ElementType.PRED) is (target is ElementType.PRED):
        return xla.bitcast_convert(x, target)
    if target is not ElementType.PRED:
        return xla.bitcast_convert(xla.convert(x, ElementType.U1), target)
    return xla.convert(xla.bitcast_convert(x, ElementType.U1), target)


@handles("stochastic_convert")
def _stochastic_convert(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 2)
    return xla.stochastic_convert(xs[0], xs[1], c.stated(op).dtype)


@handles("reduce_precision")
def _reduce_precision(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 1)
    if "format" not in op.attributes:
        return xla.reduce_precision(xs[0], integer(op, "exponent_bits"), integer(op, "mantissa_bits"))
    exponent, mark, mantissa = keyword(op, "format").removeprefix("e").partition("m")
    if not (mark and exponent.isdecimal() and mantissa.isdecimal()):
        raise InvalidArgumentError(f"format {keyword(op, 'format')[:40]!r} is not like e5m10")
    return xla.reduce_precision(xs[0], int(exponent[:20]), int(mantissa[:20]))


@handles("constant")
def _constant(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    value = required(op, "value")
    if isinstance(value, (bool, int, float)) and op.results:  # arith.constant
        return xla.constant(c.builder, value, op.results[0].type.dtype)
    shape, literal = getattr(value, "shape", None), getattr(value, "literal", None)
    if shape is None or literal is None:
        raise InvalidArgumentError(f"{op.name} needs an array")
    constant = xla.constant(c.builder, literal)
    return constant if literal.shape is shape else xla.broadcast(constant, shape.dims)


@handles("iota")
def _iota(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    return xla.iota(c.builder, c.stated_statically(op, instead="dynamic_iota"), integer(op, "iota_dimension"))
