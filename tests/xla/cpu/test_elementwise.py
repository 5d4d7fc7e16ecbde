"""Every element-wise opcode, at every element type that it accepts, compiled, agrees with the interpreter."""

import cyxla
import numpy as np
import pytest
from cyxla.errors import UnimplementedError
from cyxla.hlo import OPCODES
from cyxla.types import ElementType, Shape
from cyxla.xla.cpu import scalar
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from programs import assert_same, single
from strategies import arrays, hostile, random_array

DIRECTIONS = ("EQ", "NE", "GE", "GT", "LE", "LT")
UNSIGNED_OF = {16: ElementType.U16, 32: ElementType.U32, 64: ElementType.U64, 8: ElementType.U8}
# Sums of rounded parts: what complex functions lose near their zeros is measured by the size of the whole.
COMPLEX_ULP = 16


def variants(name: str, dtype: ElementType):
    """(operand types, attributes, result type) of an opcode at an element type."""
    if name == "compare":
        kinds = ["FLOAT", "TOTALORDER"] if dtype.is_float else [None]
        for direction in DIRECTIONS[: 2 if dtype.is_complex else 6]:
            for kind in kinds:
                yield (dtype, dtype), {"direction": direction, "type": kind}, ElementType.PRED
    elif name == "convert":
        for to in ElementType:
            if to.is_array:
                yield (dtype,), {}, to
    elif name == "select":
        yield (ElementType.PRED, dtype, dtype), {}, dtype
    elif name == "reduce-precision":
        for e, m in ((5, 10), (8, 7), (4, 3), (11, 52), (2, 1)):
            yield (dtype,), {"exponent_bits": e, "mantissa_bits": m}, dtype
    elif name == "stochastic-convert":
        yield from ()
    elif name == "complex":
        if dtype in (ElementType.F32, ElementType.F64):
            yield (dtype, dtype), {}, {ElementType.F32: ElementType.C64, ElementType.F64: ElementType.C128}[dtype]
    else:
        result = ElementType.PRED if name == "is-finite" else dtype
        if name in ("abs", "real", "imag"):
            result = dtype.real_part
        yield (dtype,) * OPCODES[name].arity[0], {}, result


def accepted(name: str):
    return [e for e in ElementType if e.is_array] if name == "select" else sorted(OPCODES[name].accepts, key=lambda e: e.value)


CASES = [
    pytest.param(name, operands, attrs, result, id="-".join([name, *map(str, operands[-1:]), *(str(v) for v in attrs.values() if v), str(result)]))
    for name, row in OPCODES.items() if row.elementwise for dtype in accepted(name) for operands, attrs, result in variants(name, dtype)
]  # fmt: skip


def has_native_code(name, operands, attrs, result):
    return scalar.supported(name, result, operands, attrs)


def tolerance(name: str, dtype: ElementType) -> float:
    if dtype.is_complex:
        return 0 if name in ("negate", "real", "imag", "add", "subtract") else COMPLEX_ULP
    ulp = OPCODES[name].ulp
    return 1 if ulp and scalar.is_narrow(dtype) else 2 * ulp


@pytest.mark.parametrize(("name", "operands", "attrs", "result"), CASES)
def test_compiled_agrees_with_interpreter(name, operands, attrs, result):
    shapes = [Shape.array(t, (3, 37)) for t in operands]
    module = single(name, shapes, attrs, Shape.array(result, (3, 37)))
    if not has_native_code(name, operands, attrs, result):
        with pytest.raises(UnimplementedError, match=name):
            cyxla.compile(module, cache=False)
        return
    compiled, oracle = cyxla.compile(module), cyxla.compile(module, platform="interpreter")
    for seed, pain in enumerate((0.0, 0.3, 1.0)):
        args = [random_array(s, 10 * seed + k, pain) for k, s in enumerate(shapes)]
        assert_same(compiled(*args), oracle(*args), result, tolerance(name, operands[-1]), floor=1.0 if operands[-1].is_complex else 0.0)


FUNCTIONS = [name for name, row in OPCODES.items() if row.elementwise and row.arity == (1, 1) and ElementType.F32 in row.accepts
             and name not in ("convert", "reduce-precision", "real", "imag", "is-finite")]  # fmt: skip


@pytest.mark.parametrize("dtype", [ElementType.F32, ElementType.F64], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_length_gives_the_bits_of_single_elements(name, dtype):
    """Vector loops, their remainders and short arrays round alike."""
    x = np.resize(np.concatenate([hostile(dtype), random_array(Shape.array(dtype, (100,)), 0, 0.0)]), 131)
    whole = cyxla.compile(single(name, [Shape.array(dtype, (131,))]))(x)
    bits = f"u{dtype.itemsize}"
    for n in (*range(0, 36), 63, 64, 65, 127, 128, 129, 130):
        part = cyxla.compile(single(name, [Shape.array(dtype, (n,))]))(np.ascontiguousarray(x[:n]))
        same = (part.view(bits) == whole[:n].view(bits)) | (np.isnan(part) & np.isnan(whole[:n]))
        assert same.all(), f"length {n}, element {np.argmin(same)}"


@pytest.mark.parametrize("name", ["add", "divide", "maximum", "power", "atan2"])
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_property_on_drawn_arrays(name, data):
    shape = Shape.array("f32", (5, 7))
    module = single(name, [shape, shape])
    args = [data.draw(arrays(shape)) for _ in range(2)]
    got, want = (cyxla.compile(module, platform=p)(*args) for p in ("cpu", "interpreter"))
    assert_same(got, want, shape.dtype, tolerance(name, shape.dtype))
