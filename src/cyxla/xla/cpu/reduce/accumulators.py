"""Accumulators of recognised combiners, for each kind of element type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cyxla.types import ElementType
from cyxla.types.dtype import Kind
from cyxla.xla.cpu.c import scalar


@dataclass(frozen=True)
class Accumulator:
    """One or two C variables that take in elements in any order.

    Attributes
    ----------
    opcode : str
        The combiner.
    dtype : ElementType
        Of the elements.
    total_dtype : ElementType
        Of the totals, before they are rounded to the declared type.
    variables : tuple of (str, str)
        C type and start value of each variable.
    update : callable
        (variables, element) -> the variables' new values.
    total : callable
        (variables) -> the total, in the register type of `total_dtype`.
    lanes : int
        How many lanes a row is spread over; 0: one variable takes all.
    merge : callable, optional
        (variables, other variables) -> the variables' new values; where the order of elements is of no matter.
    """

    opcode: str
    dtype: ElementType
    total_dtype: ElementType
    variables: tuple[tuple[str, str], ...]
    update: Callable[[list[str], str], list[str]]
    total: Callable[[list[str]], str]
    lanes: int = 0
    merge: Callable[[list[str], list[str]], list[str]] | None = None

    @property
    def identity(self) -> str:
        """An element that changes no total, in register type."""
        if self.dtype.is_float and self.opcode in ("maximum", "minimum"):
            infinity = "__builtin_inf()" if self.dtype is ElementType.F64 else "__builtin_inff()"
            return infinity if self.opcode == "minimum" else f"-{infinity}"
        return f"({self.variables[0][1]})"

    def with_init(self, init: str, total: str) -> str:
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
        total_dtype = ElementType.F64 if dtype is ElementType.F64 else ElementType.F32
        return (
            _float(opcode, dtype, total_dtype)
            if opcode in ("add", "multiply")
            else _extreme(opcode, dtype, total_dtype)
        )
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


def _float(opcode: str, dtype: ElementType, total_dtype: ElementType) -> Accumulator:
    unit = "1" if opcode == "multiply" else "-0.0"  # -0 + x is x for every x
    sign = _SIGN[opcode]
    return Accumulator(
        opcode, dtype, total_dtype, ((scalar.register_type(total_dtype), unit),),
        lambda v, x: [f"{v[0]} {sign} {x}"], _first, lanes=32 if total_dtype is ElementType.F64 else 64,
    )  # fmt: skip


def _extreme(opcode: str, dtype: ElementType, total_dtype: ElementType) -> Accumulator | None:
    """Ends of the bits, as integers, which vectorise.

    Floats with one sign are ordered as their bits are, those below zero the other way round; and adding `gap` has the
    NaNs of one sign just cross the end of the range.

    For the largest, the first variable has the largest bits, and decides unless all elements are below zero. The second
    one then has the smallest bits; moved, for a NaN below zero to be smaller still. For the smallest, likewise from the
    other end.
    """
    if opcode not in ("maximum", "minimum"):
        return None
    t = str(total_dtype)
    signed, unsigned = ("int64_t", "uint64_t") if t == "f64" else ("int32_t", "uint32_t")
    infinity, minus = _INFINITY[t]
    gap = "0xfffffffffffffull" if t == "f64" else "0x7fffffu"
    most = opcode == "maximum"
    sign = "0" if most else "0x8000000000000000ull" if t == "f64" else "0x80000000u"
    first, second = (signed, unsigned) if most else (unsigned, signed)

    def update(v: list[str], x: str) -> list[str]:
        return merge(v, [f"({first})cyx_bits_{t}({x})", f"({second})(cyx_bits_{t}({x}) + {gap})"])

    def merge(v: list[str], w: list[str]) -> list[str]:
        return [f"{v[0]} > {w[0]} ? {v[0]} : {w[0]}", f"{v[1]} < {w[1]} ? {v[1]} : {w[1]}"]

    def total(v: list[str]) -> str:
        decides = f"{v[0]} >= 0" if most else f"({signed}){v[0]} < 0"
        inside = f"{decides} ? ({unsigned}){v[0]} : ({unsigned}){v[1]} - {gap}"
        nan = '__builtin_nan("")' if t == "f64" else '__builtin_nanf("")'
        past = f"({v[0]} > {infinity if most else minus}) | ({v[1]} < ({second})({sign} + {gap}))"
        return f"({past}) ? {nan} : cyx_from_bits_{t}({inside})"

    start = minus if most else infinity
    variables = ((first, f"({first}){start}"), (second, f"({second})({start} + {gap})"))
    return Accumulator(opcode, dtype, total_dtype, variables, update, total, merge=merge)


def _first(variables: list[str]) -> str:
    return variables[0]
