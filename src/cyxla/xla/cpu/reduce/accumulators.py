"""Accumulators of known combiners, for each kind of element type."""

from __future__ import annotations

from collections.abc import Callable

from cyxla.records import dataclass
from cyxla.types import ElementType
from cyxla.types.dtype import Kind
from cyxla.xla.cpu.c import scalar


@dataclass(frozen=True)
class Accumulator:
    """Accumulator: one or two C variables that combine elements in any order.

    Attributes
    ----------
    opcode : str
        Opcode of the combiner.
    dtype : ElementType
        Element type of the operand and the result.
    total_dtype : ElementType
        Element type of the total, before it is rounded to `dtype`.
    variables : tuple of (str, str)
        C type and start value of each variable.
    update : callable
        C of an update: (variables, element) -> new values of the variables.
    total : callable
        C of the total: (variables) -> expression in the register type of `total_dtype`.
    lanes : int
        Number of lanes that a row is spread over; 0 if one accumulator takes all elements.
    merge : callable, optional
        C of a merge: (variables, other variables) -> new values of the variables; None if the order of elements
        matters.
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
        """Identity of the combiner as a C constant in register type."""
        if self.dtype.is_float and self.opcode in ("maximum", "minimum"):
            infinity = "__builtin_inf()" if self.dtype is ElementType.F64 else "__builtin_inff()"
            return infinity if self.opcode == "minimum" else f"-{infinity}"
        return f"({self.variables[0][1]})"

    def with_init(self, init: str, total: str) -> str:
        """Return the C of the result: the total combined with the initial value, rounded once."""
        return scalar.expression(self.opcode, self.dtype, [self.dtype, self.dtype], {}, [init, total])


_SIGN = {"add": "+", "multiply": "*"}
_INFINITY = {
    "f32": ("0x7f800000", "0xff800000u"),
    "f64": ("0x7ff0000000000000ll", "0xfff0000000000000ull"),
}  # bits of inf and -inf


def accumulator(opcode: str, dtype: ElementType) -> Accumulator | None:
    """Return the accumulator of a combiner; None if elements of this type have to be combined in order."""
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

    return Accumulator(opcode, dtype, dtype, ((scalar.register_type(dtype), unit),), update, _first_variable)


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
    unit = "1" if opcode == "multiply" else "-0.0"  # -0 + x == x for every x, also for -0
    sign = _SIGN[opcode]
    return Accumulator(
        opcode, dtype, total_dtype, ((scalar.register_type(total_dtype), unit),),
        lambda v, x: [f"{v[0]} {sign} {x}"], _first_variable, lanes=32 if total_dtype is ElementType.F64 else 64,
    )  # fmt: skip


def _extreme(opcode: str, dtype: ElementType, total_dtype: ElementType) -> Accumulator | None:
    """Return an accumulator of maximum or minimum on the bits of floats as integers, which vectorises.

    Non-negative floats are ordered as their bits are, negative ones in reverse; adding `gap` makes the NaNs of one sign
    wrap around the end of the range.

    For a maximum, the first variable holds the largest bits, and decides unless all elements are negative. The second
    one then holds the smallest bits, shifted by `gap` so that a negative NaN is smaller still. For a minimum, likewise
    from the other end.
    """
    if opcode not in ("maximum", "minimum"):
        return None
    t = str(total_dtype)
    signed, unsigned = ("int64_t", "uint64_t") if t == "f64" else ("int32_t", "uint32_t")
    infinity, minus = _INFINITY[t]
    gap = "0xfffffffffffffull" if t == "f64" else "0x7fffffu"
    is_maximum = opcode == "maximum"
    sign = "0" if is_maximum else "0x8000000000000000ull" if t == "f64" else "0x80000000u"
    first_type, second_type = (signed, unsigned) if is_maximum else (unsigned, signed)

    def update(v: list[str], x: str) -> list[str]:
        return merge(v, [f"({first_type})cyx_bits_{t}({x})", f"({second_type})(cyx_bits_{t}({x}) + {gap})"])

    def merge(v: list[str], w: list[str]) -> list[str]:
        return [f"{v[0]} > {w[0]} ? {v[0]} : {w[0]}", f"{v[1]} < {w[1]} ? {v[1]} : {w[1]}"]

    def total(v: list[str]) -> str:
        first_decides = f"{v[0]} >= 0" if is_maximum else f"({signed}){v[0]} < 0"
        bits = f"{first_decides} ? ({unsigned}){v[0]} : ({unsigned}){v[1]} - {gap}"
        nan = '__builtin_nan("")' if t == "f64" else '__builtin_nanf("")'
        is_nan = f"({v[0]} > {infinity if is_maximum else minus}) | ({v[1]} < ({second_type})({sign} + {gap}))"
        return f"({is_nan}) ? {nan} : cyx_from_bits_{t}({bits})"

    start = minus if is_maximum else infinity
    variables = ((first_type, f"({first_type}){start}"), (second_type, f"({second_type})({start} + {gap})"))
    return Accumulator(opcode, dtype, total_dtype, variables, update, total, merge=merge)


def _first_variable(variables: list[str]) -> str:
    return variables[0]
