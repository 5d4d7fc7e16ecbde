"""Recognition of the combiner of a reduction, for implementations that need not call it for each element."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

import numpy as np

from cyxla.types import ElementType
from cyxla.xla.hlo.computation import Computation
from cyxla.xla.hlo.instruction import Instruction

COMBINERS: Final = frozenset({"add", "multiply", "maximum", "minimum", "and", "or", "xor"})
IDEMPOTENT: Final = frozenset({"maximum", "minimum", "and", "or"})  # combining an element twice has no effect
_EQUALITY: Final = frozenset({"EQ", "NE"})


def combiner(computation: Computation) -> str | None:
    """Return the single opcode that a binary computation is equivalent to, such as ``"add"``, or None.

    A computation in a wider type, between `convert` instructions, counts as its opcode: it only rounds more often.
    """
    parameters = computation.parameters
    root = _strip_converts(computation.root)
    if len(parameters) != 2 or root.opcode not in COMBINERS or not root.shape.is_scalar:
        return None
    if {_strip_converts(o) for o in root.operands} != set(parameters):
        return None
    widened = root.shape.dtype is not parameters[0].shape.dtype
    if widened and not (root.shape.dtype.is_float and parameters[0].shape.dtype.is_float):
        return None
    same = computation.root.shape.dtype is parameters[0].shape.dtype is parameters[1].shape.dtype
    return root.opcode if same else None


def is_commutative(computation: Computation) -> bool:
    """Return True if the two halves of the parameters can change places without an effect on the results.

    Compares expressions, not their values: ``max(a, b) + log(exp(a - m) + exp(b - m))`` with ``m = max(a, b)`` is
    recognized, but a computation that commutes for another reason is not.
    """
    half = len(computation.parameters) // 2
    numbers: dict[Hashable, int] = {}  # value number of each expression
    straight, swapped = (_number_root(computation, shift, numbers) for shift in (0, half))
    return straight == swapped


def _number_root(computation: Computation, shift: int, numbers: dict[Hashable, int]) -> int:
    """Number the value of a root, with parameter k in the place of parameter k + `shift`."""
    count = len(computation.parameters)
    of: dict[Instruction, int] = {p: (p.attrs["parameter_number"] + shift) % count for p in computation.parameters}
    for ins in computation.post_order():
        if ins not in of:
            of[ins] = numbers.setdefault(_expression(ins, of), count + len(numbers))
    return of[computation.root]


def _expression(ins: Instruction, number: dict[Instruction, int]) -> Hashable:
    """Return a key that is equal for two expressions of equal values."""
    operands, opcode = ins.operands, ins.opcode
    commutes = opcode in COMBINERS or (opcode == "compare" and ins.attrs["direction"] in _EQUALITY)
    if opcode == "abs" and operands[0].opcode == "subtract" and ins.shape.dtype.is_float:  # unsigned ones wrap around
        opcode, operands, commutes = "distance", operands[0].operands, True
    values = [number[o] for o in operands]
    attrs = ins.attrs["literal"].digest() if opcode == "constant" else repr(ins.attrs)
    return opcode, ins.shape.to_text(), attrs, tuple(sorted(values) if commutes else values), ins.called


def _strip_converts(ins: Instruction) -> Instruction:
    while ins.opcode in ("convert", "copy") and ins.shape.dtype.is_float and ins.operands[0].shape.dtype.is_float:
        inner = ins.operands[0]
        if ins.opcode == "convert" and not (ins.shape.dtype.bits >= 32 or inner.shape.dtype.bits >= 32):
            break
        ins = inner
    return ins


def identity(opcode: str, dtype: ElementType) -> Any:
    """Return the identity element of a combiner, or None if the type has none."""
    if opcode in ("add", "or", "xor"):
        return 0
    if opcode == "multiply" or (dtype is ElementType.PRED and opcode in ("and", "minimum")):
        return 1
    if dtype is ElementType.PRED:
        return 0
    if dtype.is_integer:
        lowest, highest = (
            (-(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1) if dtype.is_signed else (0, (1 << dtype.bits) - 1)
        )
        return {"and": -1 if dtype.is_signed else highest, "maximum": lowest, "minimum": highest}[opcode]
    if not dtype.is_float or opcode == "and" or not np.isinf(np.asarray(np.inf).astype(dtype.numpy_dtype)):
        return None
    return -np.inf if opcode == "maximum" else np.inf


def starts_from_identity(opcode: str, init: Instruction) -> bool:
    """Return True if an initial value is a constant identity; for sums of floats, zero of either sign."""
    if init.opcode != "constant":
        return False
    unit = identity(opcode, init.shape.dtype)
    return unit is not None and bool(
        np.asarray(init.attrs["literal"].array) == np.asarray(unit).astype(init.shape.dtype.numpy_dtype)
    )
