"""Accumulators: how a recognised combiner runs over many elements, for each kind of element type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cyxla.types import ElementType
from cyxla.types.dtype import Kind
from cyxla.xla.cpu import scalar


@dataclass(frozen=True)
class Accumulator:
    """One to three C variables that take in elements in any order.

    Attributes
    ----------
    opcode : str
        The combiner.
    dtype : ElementType
        Of the elements.
    kept : ElementType
        Of the totals, before they are rounded to the declared type.
    variables : tuple of (str, str)
        C type and start value of each variable.
    update : callable
        (variables, element) -> the variables' new values.
    total : callable
        (variables) -> the total, in the register type of `kept`.
    lanes : int
        How many lanes a row is spread over; 0: one variable takes all.
    """

    opcode: str
    dtype: ElementType
    kept: ElementType
    variables: tuple[tuple[str, str], ...]
    update: Callable[[list[str], str], list[str]]
    total: Callable[[list[str]], str]
    lanes: int = 0

    @property
    def unit(self) -> str:
        """An element that changes no total, in register type."""
        if self.dtype.is_float and self.opcode in ("maximum", "minimum"):
            infinity = "__builtin_inf()" if self.dtype is ElementType.F64 else "__builtin_inff()"
            return infinity if self.opcode == "minimum" else f"-{infinity}"
        return f"({self.variables[0][1]})"

    def join(self, init: str, total: str) -> str:
        """The declared result: a total and the initial value, rounded once."""
        return scalar.expression(self.opcode, self.dtype, [self.dtype, self.dtype], {}, [init, total])


_SIGN = {"add": "+", "multiply": "*"}
_INFINITY = {"f32": ("0x7f800000", "0xff800000u"), "f64": ("0x7ff0000000000000ll", "0xfff0000000000000ull")}  # and -inf


def accumulator(opcode: str, dtype: ElementType) -> Accumulator | None:
    """The accumulator of a combiner; None if elements of this type have to be combined one after the other."""
    if dtype.kind is Kind.PRED:
        return _by_expression(opcode, dtype, "1" if opcode in ("multiply", "and", "minimum") else "0")
    if dtype.is_integer:
        return _integer(opcode, dtype)
    if dtype.is_float:
        kept = ElementType.F64 if dtype is ElementType.F64 else ElementType.F32
        return _float(opcode, dtype, kept) if opcode in ("add", "multiply") else _extreme(opcode, dtype, kept)
    if dtype.is_complex and opcode == "add":
        return _by_expression(opcode, dtype, f"cyx_{dtype}_of(-0.0, -0.0)")
    return None


def _by_expression(opcode: str, dtype: ElementType, unit: str) -> Accumulator:
    def update(variables: list[str], element: str) -> list[str]:
        return [scalar.expression(opcode, dtype, [dtype, dtype], {}, [variables[0], element])]

    return Accumulator(opcode, dtype, dtype, ((scalar.register_type(dtype), unit),), update, _first)


def _integer(opcode: str, dtype: ElementType) -> Accumulator:
    if opcode in _SIGN:
        wide = scalar.unsigned_type(dtype)
        return Accumulator(
            opcode, dtype, dtype, ((wide, "0" if opcode == "add" else "1"),),
            lambda v, x: [f"{v[0]} {_SIGN[opcode]} ({wide}){x}"], lambda v: scalar.wrap(dtype, v[0]),
        )  # fmt: skip
    lowest = -(2 ** (dtype.bits - 1)) if dtype.is_signed else 0
    highest = 2 ** (dtype.bits - dtype.is_signed) - 1
    ones = -1 if dtype.is_signed else highest
    units = {"and": ones, "or": 0, "xor": 0, "maximum": lowest, "minimum": highest}
    return _by_expression(opcode, dtype, scalar.literal(dtype, units[opcode]))


def _float(opcode: str, dtype: ElementType, kept: ElementType) -> Accumulator:
    unit = "1" if opcode == "multiply" else "-0.0"  # -0 + x is x for every x
    sign = _SIGN[opcode]
    return Accumulator(
        opcode, dtype, kept, ((scalar.register_type(kept), unit),), lambda v, x: [f"{v[0]} {sign} {x}"], _first,
        lanes=32 if kept is ElementType.F64 else 64,
    )  # fmt: skip


def _extreme(opcode: str, dtype: ElementType, kept: ElementType) -> Accumulator | None:
    """The ends of the bits: the highest and the lowest as signed integers, and the highest as unsigned ones.

    Integers, which vectorise, and one operation each. Floats with the same sign are ordered as their bits are, those
    below zero the other way round. A NaN shows at one of the two upper ends.
    """
    if opcode not in ("maximum", "minimum"):
        return None
    t = str(kept)
    signed, unsigned = ("int64_t", "uint64_t") if t == "f64" else ("int32_t", "uint32_t")
    infinity, minus = _INFINITY[t]
    start = minus if opcode == "maximum" else infinity

    def update(v: list[str], x: str) -> list[str]:
        bits = f"cyx_bits_{t}({x})"
        lines = [f"{v[0]} > {{0}} ? {v[0]} : {{0}}", f"{v[1]} < {{0}} ? {v[1]} : {{0}}"]
        return [*(line.format(f"({signed}){bits}") for line in lines), f"{v[2]} > {bits} ? {v[2]} : {bits}"]

    def total(v: list[str]) -> str:
        inside = f"{v[0]} >= 0 ? {v[0]} : {v[1]}" if opcode == "maximum" else f"({signed}){v[2]} < 0 ? {v[2]} : {v[1]}"
        nan = '__builtin_nan("")' if t == "f64" else '__builtin_nanf("")'
        found = f"cyx_from_bits_{t}({inside})"
        return f"(({v[0]} > {infinity}) | ({v[2]} > {minus})) ? {nan} : {found}"

    variables = ((signed, f"({signed}){start}"), (signed, f"({signed}){start}"), (unsigned, start))
    return Accumulator(opcode, dtype, kept, variables, update, total)


def _first(variables: list[str]) -> str:
    return variables[0]
