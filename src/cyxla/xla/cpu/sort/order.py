"""Comparators of the form ``f(a) < f(b)`` over one operand: they sort by a key.

Before::

    a = f32[] parameter(0)  b = f32[] parameter(1)
    ROOT r = pred[] compare(a, b), direction=GT, type=TOTALORDER

After: the elements' keys, unsigned integers that stand in the comparator's order, so that sorting needs no comparator.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np

from cyxla.records import dataclass
from cyxla.types import ElementType
from cyxla.xla.cpu.c import scalar, scalar_computation
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.hlo import Computation, Instruction
from cyxla.xla.hlo.comparators import same_key

_INFINITIES = {
    ElementType.F16: 0x7C00,
    ElementType.BF16: 0x7F80,
    ElementType.F32: 0x7F800000,
    ElementType.F64: 0x7FF0000000000000,
}


@dataclass(frozen=True)
class Pattern:
    """Function from the bits of elements to keys, as ``sort_by_bits.h`` computes it.

    Attributes
    ----------
    width : int
        Bits of an element.
    fold : int
        Bits that change sides in negative elements.
    max_bits : int
        The greatest bits without the sign that are no NaN.
    nan : int
        Bits that stand for all NaNs.
    keep : int
        Bits that are kept of zeros.
    flip : int
        Bits to flip.
    """

    width: int
    fold: int
    max_bits: int
    nan: int
    keep: int
    flip: int

    def bits_of(self, element: Any) -> int:
        """Return the bits of an element, a NumPy scalar."""
        return int.from_bytes(np.asarray(element).tobytes(), sys.byteorder)

    def key(self, bits: int) -> int:
        """Return the key of the bits of an element."""
        magnitude = bits & (1 << self.width - 1) - 1
        bits = self.nan if magnitude > self.max_bits else bits
        bits = bits & self.keep if bits & (1 << self.width - 1) - 1 == 0 else bits
        sign = bits >> self.width - 1
        return bits ^ (self.fold if sign else 0) ^ self.flip

    @property
    def extremes(self) -> tuple[int, ...]:
        """Bits of elements of which one comes first and one last: of each sign the least, the greatest and a NaN."""
        top = 1 << self.width - 1
        return tuple(sign | n for sign in (0, top) for n in (0, self.max_bits, top - 1))

    @property
    def numbers(self) -> list[int]:
        """All but the width, as signed numbers of 64 bits."""
        return [n - (n >> 63 << 64) for n in (self.fold, self.max_bits, self.nan, self.keep, self.flip)]


@dataclass(frozen=True)
class Order:
    """An order by key.

    Attributes
    ----------
    operand : int
        Index of the operand by which all are sorted.
    function : Instruction
        The compared value, as a function of the comparator's left parameter for that operand.
    descending : bool
        Whether the greatest comes first.
    total : bool
        Whether floats are in total order; else zeros are equal, and NaNs are equal and greater than all else.
    """

    operand: int
    function: Instruction
    descending: bool
    total: bool

    @staticmethod
    def of(comparator: Computation) -> Order | None:
        """Return the order of a comparator; None if it compares no single key."""
        return Order.of_root(comparator.root)

    @staticmethod
    def of_root(root: Instruction) -> Order | None:
        """Return the order of a comparison in a comparator; None if it compares no single key."""
        if root.opcode != "compare" or root.attrs["direction"] not in ("LT", "GT"):
            return None
        if root.operands[0].shape.dtype.is_complex:
            return None
        descending = root.attrs["direction"] == "GT"
        left, right = root.operands
        for first, second, is_swapped in ((left, right, False), (right, left, True)):
            operand = same_key(first, second)
            if operand is not None:
                total = root.attrs.get("type") == "TOTALORDER"
                return Order(operand, first, descending is not is_swapped, total)
        return None

    @property
    def inverse(self) -> str | None:
        """``exact`` if keys give back their elements, ``lossy`` if all but zeros and NaNs do, else None."""
        dtype = self.function.shape.dtype
        is_canonical = _is_canonical(self.function)
        if is_canonical is None or (is_canonical and not self.total):
            return None
        return "lossy" if is_canonical or (dtype.is_float and not self.total) else "exact"

    def pattern(self, dtype: ElementType) -> Pattern | None:
        """Return the function from the bits of elements to keys; None if keys are another function of elements."""
        is_canonical, total_order = _is_canonical(self.function), pattern_of(dtype, descending=self.descending)
        if is_canonical is None or total_order is None or self.function.shape.dtype is not dtype:
            return None
        if not dtype.is_float or (self.total and not is_canonical):
            return total_order
        nan = _nan_bits(self.function, total_order.width) if self.total else total_order.max_bits
        return replace(total_order, max_bits=_INFINITIES[dtype], nan=nan, keep=0)

    def is_last(self, dtype: ElementType, element: Any) -> bool:
        """Return whether no element of a type comes after one; False if keys are another function of elements."""
        pattern = self.pattern(dtype)
        if pattern is None:
            return False
        greatest = pattern.key(pattern.bits_of(element))
        extremes = (0, 1) if dtype is ElementType.PRED else pattern.extremes
        return all(pattern.key(bits) <= greatest for bits in extremes)

    @property
    def bits(self) -> int:
        """Width of the keys: narrow floats are compared, so ordered, as f32."""
        dtype = self.function.shape.dtype
        return 32 if dtype.is_float and dtype.bits < 32 else max(dtype.bits, 8)

    def key(self, c: CWriter, element: str) -> str:
        """Return the C of an element's key, the element in register type."""
        parameters = self.function.computation.parameters
        sides = [element if n // 2 == self.operand else "0" for n in range(len(parameters))]
        (value,) = scalar_computation.inline_subgraph(self.function, sides, c)
        return f"~({self._ascending(c, value)})" if self.descending else self._ascending(c, value)

    def element(self, c: CWriter, dtype: ElementType, key: str) -> str:
        """Return the C of the element, in register type, that has a key, unless `inverse` is None."""
        unsigned, signed = f"uint{self.bits}_t", f"int{self.bits}_t"
        ascending = f"~{key}" if self.descending else key
        if not dtype.is_float:
            flip = 1 << (self.bits - 1) if dtype.is_signed else 0
            return c.local(
                scalar.register_type(dtype), f"({signed if flip else unsigned})(({unsigned})({ascending}) ^ {flip:#x}u)"
            )
        top = f"(({unsigned})1 << {self.bits - 1})"
        t = "f64" if dtype is ElementType.F64 else "f32"
        total = c.local(signed, f"({signed})(({unsigned})({ascending}) ^ {top})")
        return c.local(scalar.register_type(dtype), f"cyx_from_total_{t}({total})")

    def _ascending(self, c: CWriter, x: str) -> str:
        dtype, unsigned = self.function.shape.dtype, f"uint{self.bits}_t"
        if self.total or not dtype.is_float:
            return f"({unsigned}){total_key(c, dtype, x, self.bits)} ^ (({unsigned})1 << {self.bits - 1})"
        ordered = total_key(c, dtype, c.local(scalar.register_type(dtype), f"{x} + 0"), self.bits)  # -0 + 0 is +0
        top = f"(({unsigned})1 << {self.bits - 1})"
        return c.local(unsigned, f"{x} == {x} ? ({unsigned}){ordered} ^ {top} : ({unsigned})-1")


def _is_canonical(function: Instruction) -> bool | None:
    """Return True if a function makes all zeros +0 and all NaNs one, False if it is a parameter, else None."""
    canonical: set[str] = set()
    tested: set[Instruction] = set()
    steps = {function}  # each has the same zeros and NaNs as the parameter
    while function.opcode == "select":
        test, replacement, function = function.operands
        steps.add(function)
        if test.opcode != "compare" or test.attrs.get("type") == "TOTALORDER" or replacement.opcode != "constant":
            return None
        value = replacement.attrs["literal"].array.reshape(-1)[0]
        (x, y), direction = test.operands, test.attrs["direction"]
        tested.add(x)
        if direction == "NE" and y is x and value != value:
            canonical.add("nan")
        elif direction == "EQ" and _is_zero(y) and value == 0 and not np.signbit(value):
            canonical.add("zero")
        else:
            return None
    if function.opcode != "parameter" or len(canonical) == 1 or not tested <= steps:
        return None
    return bool(canonical)


def pattern_of(dtype: ElementType, *, descending: bool) -> Pattern | None:
    """Return the function from the bits of elements to keys in total order; None for some types."""
    if not (dtype in _INFINITIES or (dtype.is_integer and dtype.bits >= 8) or dtype is ElementType.PRED):
        return None
    width = max(dtype.bits, 8)
    ones, top = (1 << width) - 1, 1 << (width - 1)
    fold = top - 1 if dtype.is_float else 0
    flip = (top if dtype.is_float or dtype.is_signed else 0) ^ (ones if descending else 0)
    return Pattern(width, fold, top - 1, 0, ones, flip)


def _nan_bits(function: Instruction, width: int) -> int:
    """Return the bits of the NaN that a canonical function makes of all NaNs; 0 if it makes none."""
    while function.opcode == "select":
        _, replacement, function = function.operands
        value = replacement.attrs["literal"].array.reshape(-1)
        if (value != value).any():
            return int(value.view(f"u{width // 8}")[0])
    return 0


def _is_zero(ins: Instruction) -> bool:
    return ins.opcode == "constant" and not ins.attrs["literal"].array.any()


def total_key(c: CWriter, dtype: ElementType, x: str, bits: int) -> str:
    """Define a signed local whose order is the total order of an element, given in register type."""
    signed = f"int{bits}_t"
    if dtype.is_float:
        return c.local(signed, f"cyx_total_{'f64' if dtype is ElementType.F64 else 'f32'}({x})")
    if dtype.is_signed:
        return c.local(signed, f"({signed}){x}")
    return c.local(signed, f"({signed})((uint{bits}_t){x} ^ ((uint{bits}_t)1 << {bits - 1}))")
