"""Every element-wise opcode agrees with the evaluator, on ordinary and on special values of the common types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cyxla.testing.cases import assert_close, finfo
from cyxla.testing.compiling import compile_or_skip
from cyxla.testing.values import random_array
from cyxla.types import ElementType, Shape, element_type
from cyxla.xla.evaluator import evaluate
from cyxla.xla.hlo import OPCODES, HloModule

TYPES = tuple(element_type(t) for t in ("pred", "s8", "s32", "s64", "u8", "u32", "u64", "bf16", "f32", "f64", "c64"))
DIMS = (3, 37)
_COMPLEX_ULP = 16  # of the size of a complex number: its parts lose digits near their zeros
_COMPLEX_OF = {ElementType.F32: ElementType.C64}
_DIRECTIONS = ("EQ", "NE", "GE", "GT", "LE", "LT")
_UNDEFINED = {("power", ElementType.C64)}  # at infinite operands, in XLA
Variant = tuple[str, dict[str, Any], tuple[ElementType, ...], ElementType]


def _variants(name: str, dtype: ElementType) -> Iterator[Variant]:
    """Yield a label, attributes, types of the operands and type of the result of an opcode at a type."""
    if name == "convert":
        yield from ((f"-{to}", {}, (dtype,), to) for to in TYPES if to.is_complex or not dtype.is_complex)
    elif name == "compare":
        for direction in _DIRECTIONS[: 2 if dtype.is_complex else 6]:
            yield f"-{direction}", {"direction": direction}, (dtype, dtype), ElementType.PRED
    elif name == "select":
        yield "", {}, (ElementType.PRED, dtype, dtype), dtype
    elif name == "reduce-precision":
        yield "", {"exponent_bits": 5, "mantissa_bits": 10}, (dtype,), dtype
    elif name == "complex":
        yield from (("", {}, (dtype, dtype), _COMPLEX_OF[t]) for t in _COMPLEX_OF if t is dtype)
    elif name != "stochastic-convert":  # the evaluator's own choice of bits is not required
        real = dtype.real_part if name in ("abs", "real", "imag") else dtype
        yield "", {}, (dtype,) * OPCODES[name].arity[0], ElementType.PRED if name == "is-finite" else real


CASES = [
    pytest.param(name, attrs, operands, result, id=f"{name}-{dtype}{label}")
    for name, row in OPCODES.items()
    if row.elementwise
    for dtype in TYPES
    if name == "select" or dtype in row.accepts
    for label, attrs, operands, result in _variants(name, dtype)
]


@pytest.mark.parametrize("name, attrs, operands, result", CASES)
def test_opcode(
    backend: str, name: str, attrs: dict[str, Any], operands: tuple[ElementType, ...], result: ElementType
) -> None:
    """Results within twice the error that compiled code may have; infinities and NaN where the evaluator has them."""
    module = HloModule("elementwise")
    module.entry = entry = module.new_computation("main")
    shapes = [Shape.array(t, DIMS) for t in operands]
    parameters = [entry.add("parameter", attrs={"parameter_number": k}, shape=s) for k, s in enumerate(shapes)]
    entry.root = entry.add(name, parameters, attrs, shape=Shape.array(result, DIMS))
    module.verify()
    executable = compile_or_skip(module.to_text(), backend, [name])
    for seed, special in enumerate((0.0, 0.3, 1.0)):
        if special and (name, operands[-1]) in _UNDEFINED:
            continue
        args = [random_array(s, 10 * seed + k, special) for k, s in enumerate(shapes)]
        want: Any = evaluate(module, args)
        is_complex = result.is_complex or operands[-1].is_complex
        assert_close(executable(*args), want, _tolerance(name, operands[-1], result), 1.0 if is_complex else 0.0)


def _tolerance(name: str, dtype: ElementType, result: ElementType) -> float:
    """Return the relative error that a result may have."""
    if not (result.is_float or result.is_complex):
        return 0.0
    epsilon = float(finfo(result.real_part.numpy_dtype).eps)
    return epsilon * (_COMPLEX_ULP if dtype.is_complex else 2 * OPCODES[name].ulp)
