"""C of one element: types, loads and stores, and an expression for every element-wise opcode.

An element lives in a local of its *register type*: narrow floats as an already rounded ``float``, the rest as in
memory. Expressions repeat their operands, so these must be locals or constants. The tables below drive everything; the
functions named in them are defined in ``include/cyxla/{scalar,math,complex}.h``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cyxla.errors import UnimplementedError
from cyxla.types import ElementType as E
from cyxla.xla.hlo.opcode import OPCODES

_NATIVE = {
    E.PRED: "uint8_t", E.F32: "float", E.F64: "double", E.C64: "cyx_c64", E.C128: "cyx_c128",
    E.S1: "int8_t", E.S2: "int8_t", E.S4: "int8_t", E.S8: "int8_t", E.S16: "int16_t", E.S32: "int32_t",
    E.S64: "int64_t", E.U1: "uint8_t", E.U2: "uint8_t", E.U4: "uint8_t", E.U8: "uint8_t", E.U16: "uint16_t",
    E.U32: "uint32_t", E.U64: "uint64_t",
}  # fmt: skip


def is_narrow(dtype: E) -> bool:
    """Return whether a float type is computed in `float` and rounded after each operation."""
    return dtype.is_float and dtype.bits < 32


def storage_type(dtype: E) -> str:
    """Return the C type of an element in memory."""
    return _NATIVE.get(dtype) or ("uint16_t" if dtype.bits == 16 else "uint8_t")


def memory_typedef(name: str, dtype: E) -> str:
    """Return the typedef of an unaligned element in memory."""
    alias = "" if dtype.is_complex else ", may_alias"  # gcc takes that attribute for scalars only
    return f"typedef {storage_type(dtype)} {name} __attribute__((aligned(1){alias}));"


def register_type(dtype: E) -> str:
    """Return the C type of an element in a local."""
    return _NATIVE.get(dtype, "float")


def local_type(dtype: E) -> str:
    """Return the C type of a local that is set once: gcc packs and unpacks vectors of byte-sized predicates."""
    return "int32_t" if dtype is E.PRED else register_type(dtype)


def load(dtype: E, source: str) -> str:
    """Convert from memory to register type; integers below a byte are extended, as their unused bits are arbitrary."""
    if is_narrow(dtype):
        return f"cyx_f32_from_{dtype}({source})"
    return wrap(dtype, source) if dtype.bits < 8 else source


def store(dtype: E, value: str) -> str:
    """Convert from register to memory type; integers below a byte get zeros in their unused bits."""
    if dtype in (E.F16, E.BF16):
        return f"cyx_{dtype}_of_rounded({value})"
    if is_narrow(dtype):
        return f"cyx_{dtype}_from_f32({value})"
    return f"({storage_type(dtype)})({value} & {2**dtype.bits - 1})" if dtype.bits < 8 else value


def literal(dtype: E, value: Any) -> str:
    """Return an exact C constant in register type."""
    if dtype.is_complex:
        part = dtype.real_part
        return f"cyx_{dtype}_of({literal(part, value.real)}, {literal(part, value.imag)})"
    if dtype is E.PRED:
        return "1" if value else "0"
    if dtype.is_integer:
        return _integer_literal(dtype, int(value))
    return _float_literal(dtype, value)


def _integer_literal(dtype: E, value: int) -> str:
    if dtype.bits < 64:
        return f"{value}u" if dtype is E.U32 else f"({value})" if value > -(2**31) else "(-2147483647 - 1)"
    if dtype.is_unsigned:
        return f"{value}ull"
    return f"({value}ll)" if value > -(2**63) else "(-9223372036854775807ll - 1)"


def _float_literal(dtype: E, value: Any) -> str:
    wide = np.float64(value)
    if np.isfinite(wide):
        return f"({float(wide).hex()}{'' if dtype is E.F64 else 'f'})"
    if dtype is E.F64:
        return f"cyx_from_bits_f64({hex(np.array(value, np.float64).view(np.uint64))}ull)"
    return f"cyx_from_bits_f32({hex(np.asarray(value).astype(np.float32).view(np.uint32))}u)"


def wrap(dtype: E, value: str) -> str:
    """Truncate an integer C value to the type's width."""
    c = storage_type(dtype)
    if dtype.bits >= 8:
        return f"({c})({value})"
    shift = 8 - dtype.bits
    return f"({c})(({c})((uint8_t)({value}) << {shift}) >> {shift})"


def unsigned_type(dtype: E) -> str:
    """Return the C type in which integer arithmetic of a width wraps around without undefined behaviour."""
    return "uint64_t" if dtype.bits == 64 else "uint32_t"


# ----------------------------------------------------------------------------------------------------------- conversion
def convert(to: E, of: E, x: str) -> str:
    """Convert between element types by the rules of `convert`."""
    if to is of:
        return x
    if of.is_complex:
        return _convert_complex(to, of, x)
    if to.is_complex:
        part = to.real_part
        return f"cyx_{to}_of({convert(part, of, x)}, 0)"
    if to is E.PRED:
        return f"(uint8_t)({x} != 0)"
    if to.is_integer:
        return _to_integer(to, of, x)
    return _to_float(to, of, x)


def _convert_complex(to: E, of: E, x: str) -> str:
    if to.is_complex:
        return f"cyx_{to}_from_{of}({x})"
    return convert(to, of.real_part, f"{x}.re")


def _to_integer(to: E, of: E, x: str) -> str:
    if not of.is_float:
        return wrap(to, x)
    wide = "f64" if of is E.F64 else "f32"
    if to.bits >= 32:
        return f"cyx_{to}_from_{wide}({x})"
    low, high = (-(2 ** (to.bits - 1)), 2 ** (to.bits - 1) - 1) if to.is_signed else (0, 2**to.bits - 1)
    suffix = "" if of is E.F64 else "f"
    return f"({storage_type(to)})cyx_saturate_{wide}({x}, {low}.0{suffix}, {high}.0{suffix})"


def _to_float(to: E, of: E, x: str) -> str:
    if of is E.PRED:
        x = f"(int32_t)({x})"  # gcc 12 does not vectorise a conversion of byte-sized predicates to floats
    if of is E.S64 and to is E.F64:
        return f"cyx_f64_of_s64({x})"
    if not is_narrow(to):
        return f"({register_type(to)})({x})"
    if of is E.F64:
        return round_narrow(to, f"cyx_odd_f32_f64({x})")
    if of.is_integer and of.bits >= 32:
        double = f"cyx_odd_f64_{of}({x})" if of.bits == 64 else f"(double)({x})"
        return round_narrow(to, f"cyx_odd_f32_f64({double})")
    return round_narrow(to, f"(float)({x})")


def round_narrow(dtype: E, x: str) -> str:
    """Round a float expression to a narrow type, staying in register."""
    return f"cyx_round_{dtype}({x})" if dtype in (E.F16, E.BF16) else f"cyx_f32_from_{dtype}(cyx_{dtype}_from_f32({x}))"


def bitcast(to: E, of: E, x: str) -> str:
    """Reinterpret a register value as another type of the same width."""
    if to is of:
        return x
    bits, c_to = store(of, x), storage_type(to)
    if of in (E.F32, E.F64):
        bits = f"cyx_bits_{of}({bits})"
    if to in (E.F32, E.F64):
        return f"cyx_from_bits_{to}({bits})"
    if to.is_complex or of.is_complex:
        raise UnimplementedError(f"bitcast-convert from {of} to {to} in registers")
    return load(to, wrap(to, bits) if to.is_integer else f"({c_to})({bits})")


def iota(dtype: E, index: str) -> str:
    """Convert an index, an int64_t expression, to an element."""
    return convert(dtype, E.S64, index)


# ---------------------------------------------------------------------------------------------------------- expressions

# Opcodes whose C is a function of the headers, since they round more than once.
_FUNCTIONS = tuple(row.name for row in OPCODES.values() if row.elementwise and row.ulp)


def _call(opcode: str, suffix: str) -> str:
    """Return the form of a call of the header's function for an opcode."""
    row = OPCODES[opcode]
    return f"cyx_{row.identifier}_{suffix}({', '.join(f'{{{k}}}' for k in range(row.arity[0]))})"


# One row per opcode and kind of element: {0} {1} {2} operands, {t} type name, {c} C type, {u} unsigned C type,
# {w} width.
# fmt: off
_INTEGER = {
    "add": "({u}){0} + ({u}){1}", "subtract": "({u}){0} - ({u}){1}", "multiply": "({u}){0} * ({u}){1}",
    "negate": "0 - ({u}){0}", "not": "~{0}", "and": "{0} & {1}", "or": "{0} | {1}", "xor": "{0} ^ {1}",
    "maximum": "{0} > {1} ? {0} : {1}", "minimum": "{0} < {1} ? {0} : {1}",
    "shift-left": "({b}){1} >= {w} ? 0 : ({u}){0} << (({b}){1} & {m})",
    "shift-right-logical": "({b}){1} >= {w} ? 0 : ({z}) >> (({b}){1} & {m})",
    "shift-right-arithmetic": "({x}) >> (({b}){1} >= {w} ? {m} : ({b}){1})",
    "popcnt": "__builtin_popcountll((uint64_t)({z}))",
    "count-leading-zeros": "({z}) == 0 ? {w} : __builtin_clzll((uint64_t)({z})) - (64 - {w})",
}
_SIGNED = {
    "abs": "{0} < 0 ? 0 - ({u}){0} : ({u}){0}",
    "sign": "({0} > 0) - ({0} < 0)",
    "divide": "{1} == 0 ? ({c})-1 : {1} == -1 ? ({c})(0 - ({u}){0}) : {0} / ({1} == 0 || {1} == -1 ? 1 : {1})",
    "remainder": "{1} == 0 ? {0} : {1} == -1 ? 0 : {0} % ({1} == 0 || {1} == -1 ? 1 : {1})",
    "power": "cyx_power_s64({0}, {1})",
}
_UNSIGNED = {
    "divide": "{1} == 0 ? ({c})-1 : {0} / ({1} == 0 ? 1 : {1})",
    "remainder": "{1} == 0 ? {0} : {0} % ({1} == 0 ? 1 : {1})",
    "power": "cyx_power_u64({0}, {1})",
}
_PREDICATE = {
    "add": "{0} | {1}", "multiply": "{0} & {1}", "and": "{0} & {1}", "or": "{0} | {1}", "xor": "{0} ^ {1}",
    "not": "{0} ^ 1", "maximum": "{0} | {1}", "minimum": "{0} & {1}",
}
_REAL = {   # computed in {t}, which is f32 for narrow types
    "add": "{0} + {1}", "subtract": "{0} - {1}", "multiply": "{0} * {1}", "divide": "{0} / {1}", "negate": "-{0}",
    "real": "{0}", "abs": "cyx_magnitude_{t}({0})", "sqrt": "__builtin_sqrt{s}({0})",
    **{name: _call(name, "{t}") for name in (
        "sign", "ceil", "floor", "round-nearest-afz", "round-nearest-even", "remainder", *_FUNCTIONS,
    ) if name != "sqrt"},
}
# functions with one comparison, for a constant operand other than NaN and the zero of this sign
_WITH_CONSTANT = {"maximum": ("at_least", "-"), "minimum": ("at_most", "")}
_NUMBER = re.compile(r"\((?P<sign>-?)(?:(?P<zero>0x0\.0p\+0)|0x[01]\.[0-9a-f]+p[+-]\d+)f?\)")
_EXACT = frozenset({"negate", "real", "abs", "maximum", "minimum", "sign"})  # results need no rounding in signed types
_INTEGRAL = frozenset({"ceil", "floor"})  # nor do these, in types whose largest finite value is integral
_COMPLEX_FORMS = {   # forms for both complex types; all others convert c64 to c128
    "add": "cyx_add_{t}({0}, {1})", "subtract": "cyx_subtract_{t}({0}, {1})", "multiply": "cyx_multiply_{t}({0}, {1})",
    "divide": "cyx_divide_{t}({0}, {1})", "negate": "cyx_negate_{t}({0})", "abs": "cyx_abs_{t}({0})",
    "maximum": "cyx_maximum_{t}({0}, {1})", "minimum": "cyx_minimum_{t}({0}, {1})",
    "clamp": "cyx_minimum_{t}(cyx_maximum_{t}({1}, {0}), {2})", "real": "{0}.re", "imag": "{0}.im",
}
_COMPLEX_C128 = {name: _call(name, "c128") for name in ("sign", *_FUNCTIONS)}
_DIRECTION = {"EQ": "==", "NE": "!=", "GE": ">=", "GT": ">", "LE": "<=", "LT": "<"}
# fmt: on


def _integer(opcode: str, dtype: E, xs: Sequence[str]) -> str | None:
    form = _INTEGER.get(opcode) or (_SIGNED if dtype.is_signed else _UNSIGNED).get(opcode)
    if opcode == "mulhi":
        wide = "__int128" if dtype.bits == 64 else "int64_t"
        wide = "unsigned __int128" if wide == "__int128" and dtype.is_unsigned else wide
        return wrap(dtype, f"(({wide}){xs[0]} * ({wide}){xs[1]}) >> {dtype.bits}")
    if opcode == "clamp":
        low = f"({xs[1]} > {xs[0]} ? {xs[1]} : {xs[0]})"
        return f"({low} < {xs[2]} ? {low} : {xs[2]})"
    if opcode in ("sign", "abs") and dtype.is_unsigned:
        return xs[0] if opcode == "abs" else f"({xs[0]} != 0)"
    if form is None:
        return None
    u, bits = unsigned_type(dtype), dtype.bits
    byte = {64: "uint64_t", 32: "uint32_t", 16: "uint16_t"}.get(bits, "uint8_t")
    zero_extended = f"({byte}){xs[0]}" if bits >= 8 else f"(uint8_t){xs[0]} & {2**bits - 1}"
    signed = f"(({byte[1:]}){xs[0]})" if bits >= 8 else f"((int8_t)((uint8_t){xs[0]} << {8 - bits}) >> {8 - bits})"
    count = f"{byte}" if bits >= 8 else "uint8_t"
    amount = xs[1] if len(xs) > 1 else ""
    filled = form.format(
        xs[0], amount, u=u, c=storage_type(dtype), w=bits, m=bits - 1, b=count, z=zero_extended, x=signed
    )
    return wrap(dtype, filled)


def _float(opcode: str, dtype: E, xs: Sequence[str], attrs: Mapping[str, Any]) -> str | None:
    t = "f64" if dtype is E.F64 else "f32"
    if opcode == "reduce-precision":
        return _reduce_precision(dtype, t, xs[0], attrs)
    if opcode == "imag":
        return load(dtype, "0") if is_narrow(dtype) else "0"
    if opcode == "clamp":
        return _extreme("minimum", t, _extreme("maximum", t, xs[1], xs[0]), xs[2])
    form = _REAL.get(opcode)
    if form is None and opcode not in _WITH_CONSTANT:
        return None
    value = form.format(*xs, t=t, s="" if t == "f64" else "f") if form else _extreme(opcode, t, xs[0], xs[1])
    is_exact = (opcode in _EXACT and dtype is not E.F8E8M0FNU) or (opcode in _INTEGRAL and dtype.bits == 16)
    return f"({value})" if is_exact or not is_narrow(dtype) else round_narrow(dtype, value)


def _extreme(opcode: str, t: str, a: str, b: str) -> str:
    """Return the C of a maximum or minimum; one comparison if an operand is a constant."""
    function, excluded_sign = _WITH_CONSTANT[opcode]
    for constant, x in ((b, a), (a, b)):
        number = _NUMBER.fullmatch(constant)
        if number and not (number["zero"] and number["sign"] == excluded_sign):
            return f"cyx_{function}_{t}({x}, {constant})"
    return f"cyx_{opcode}_{t}({a}, {b})"


def _reduce_precision(dtype: E, t: str, x: str, attrs: Mapping[str, Any]) -> str:
    e, m = int(attrs["exponent_bits"]), int(attrs["mantissa_bits"])
    if dtype is E.F16:  # denormals are rounded at their own bit positions
        return load(dtype, f"cyx_reduce_precision_f16({store(dtype, x)}, {e}, {m})")
    value = f"cyx_reduce_precision_{t}({x}, {e}, {m})"
    return round_narrow(dtype, value) if is_narrow(dtype) else value


def _complex(opcode: str, dtype: E, xs: Sequence[str]) -> str | None:
    if opcode in _COMPLEX_FORMS:
        return _COMPLEX_FORMS[opcode].format(*xs, t=dtype)
    form = _COMPLEX_C128.get(opcode) if dtype in OPCODES[opcode].accepts else None
    if form is None or dtype is E.C128:
        return form.format(*xs) if form else None
    return f"cyx_c64_from_c128({form.format(*[f'cyx_c128_from_c64({x})' for x in xs])})"


def _compare(of: E, xs: Sequence[str], attrs: Mapping[str, Any]) -> str:
    op, (a, b) = _DIRECTION[attrs["direction"]], xs
    if of.is_complex:
        equality, join = ("==", "&") if op == "==" else ("!=", "|")
        return f"(({a}.re {equality} {b}.re) {join} ({a}.im {equality} {b}.im))"
    if attrs.get("type") == "TOTALORDER" and of.is_float:
        t = "f64" if of is E.F64 else "f32"
        a, b = f"cyx_total_{t}({a})", f"cyx_total_{t}({b})"
    return f"(1 & -(int32_t)({a} {op} {b}))"  # gcc 12 vectorises masks, but not byte-sized predicates


def _stochastic(to: E, random: E, xs: Sequence[str]) -> str:
    return convert(to, E.F64, f"cyx_stochastic((double)({xs[0]}), {xs[1]}, 0x1p{random.bits})")


def _bitcast(result: E, of: Sequence[E], xs: Sequence[str]) -> str | None:
    first = of[0]
    same_width = result is first or (result.bits == first.bits and not (result.is_complex or first.is_complex))
    return bitcast(result, first, xs[0]) if same_width else None


_CONVERSIONS: dict[str, Callable[[E, Sequence[E], Sequence[str]], str | None]] = {
    "convert": lambda result, of, xs: convert(result, of[0], xs[0]),
    "stochastic-convert": lambda result, of, xs: _stochastic(result, of[1], xs),
    "bitcast-convert": _bitcast,
}


def _find_expression(
    opcode: str, result: E, of: Sequence[E], attrs: Mapping[str, Any], xs: Sequence[str]
) -> str | None:
    first = of[0]
    if opcode in _CONVERSIONS:
        return _CONVERSIONS[opcode](result, of, xs)
    if opcode == "compare":
        return _compare(first, xs, attrs)
    if opcode == "select":
        return f"({xs[0]} ? {xs[1]} : {xs[2]})"
    if opcode == "complex":
        return f"cyx_{result}_of({xs[0]}, {xs[1]})"
    if opcode == "is-finite":
        return f"(__builtin_fabs{'' if first is E.F64 else 'f'}({xs[0]}) < __builtin_inf())"
    if opcode == "copy":
        return xs[0]
    if first is E.PRED:
        if opcode == "clamp":
            return f"(({xs[1]} | {xs[0]}) & {xs[2]})"
        form = _PREDICATE.get(opcode)
        return f"({form.format(*xs)})" if form else None
    if first.is_integer:
        return _integer(opcode, first, xs)
    return _complex(opcode, first, xs) if first.is_complex else _float(opcode, first, xs, attrs)


def expression(opcode: str, result: E, operands: Sequence[E], attrs: Mapping[str, Any], values: Sequence[str]) -> str:
    """Return the C expression of one element of an element-wise instruction.

    Parameters
    ----------
    opcode : str
        Name of an element-wise opcode.
    result : ElementType
        Element type of the result.
    operands : sequence of ElementType
        Element types of the operands.
    attrs : mapping
        Attributes of the instruction.
    values : sequence of str
        Locals or constants holding the operands, in register type.

    Raises
    ------
    UnimplementedError
        There is no native code for this opcode at these types.
    """
    text = _find_expression(opcode, result, operands, attrs, values)
    if text is None:
        raise UnimplementedError(f"no native code for {opcode} on {', '.join(map(str, operands))}")
    return text


def is_supported(opcode: str, result: E, operands: Sequence[E], attrs: Mapping[str, Any]) -> bool:
    """Return whether `expression` has native code for an opcode at these types."""
    return _find_expression(opcode, result, operands, attrs, ("x", "y", "z")[: len(operands)]) is not None


# Opcodes with a fast path for common arguments only: a predicate in the header finds the lanes that need the slow path.
_WITH_SLOW_PATH = frozenset({"sine", "cosine", "tan"})


def slow_path(opcode: str, dtype: E) -> tuple[str, str] | None:
    """Return the names of the predicate and of the slow function for arguments beyond the fast path, or None."""
    if opcode not in _WITH_SLOW_PATH or not dtype.is_float:
        return None
    t = "f64" if dtype is E.F64 else "f32"
    return f"cyx_{opcode}_{t}_needs_slow", f"cyx_{opcode}_{t}_slow"


def cost(opcode: str, dtype: E) -> float:
    """Return the estimated ns per element on one core."""
    row = OPCODES.get(opcode)
    # An opcode without a row is taken for a cheap one.
    return (row.cost if row else 0.05) * (4.0 if dtype.is_complex else max(dtype.bits, 8) / 32)
