"""Element types: their proto numbers, HLO names and NumPy dtypes."""

from __future__ import annotations

from enum import Enum
from functools import cache, cached_property
from typing import Any

import numpy as np

from cyxla.errors import DTypeError


class Kind(Enum):
    """Kind of an element type."""

    PRED = "pred"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    FLOAT = "float"
    COMPLEX = "complex"
    OTHER = "other"  # tuple, token, opaque, buffer: not array elements


_NUMPY_NAMES = {
    "pred": "bool", "f16": "float16", "f32": "float32", "f64": "float64", "c64": "complex64", "c128": "complex128",
    "bf16": "bfloat16", "s1": "int1", "u1": "uint1", "f4e2m1fn": "float4_e2m1fn",
}  # fmt: skip
_NOT_ARRAYS = ("tuple", "opaque", "token", "buffer")


def _numpy_name(text: str) -> str:
    if text in _NUMPY_NAMES:
        return _NUMPY_NAMES[text]
    if text[0] in "su":
        return ("int" if text[0] == "s" else "uint") + text[1:]
    return f"float{text[1]}_{text[2:]}"  # f8e5m2 -> float8_e5m2


def _kind_and_bits(text: str) -> tuple[Kind, int]:
    if text in _NOT_ARRAYS:
        return Kind.OTHER, 0
    kind = {"p": Kind.PRED, "s": Kind.SIGNED, "u": Kind.UNSIGNED, "c": Kind.COMPLEX}.get(text[0], Kind.FLOAT)
    return kind, int(text.removeprefix("b")[1:].split("e")[0]) if kind is not Kind.PRED else 8


def _numpy_dtype(text: str, kind: Kind) -> np.dtype[Any]:
    name = _numpy_name(text)
    scalar = getattr(np, name, None)
    if scalar is None:
        import ml_dtypes

        # Not every release of ml_dtypes has one-bit integers: a byte holds their values.
        scalar = getattr(ml_dtypes, name, None) or (np.int8 if kind is Kind.SIGNED else np.uint8)
    return np.dtype(scalar)


class ElementType(Enum):
    """An element type, named as in HLO text; the value is its number in ``xla_data.proto``.

    Attributes
    ----------
    text : str
        Spelling in HLO text, such as ``"f32"``.
    bits : int
        Width of one element in bits; 0 for types without arrays.
    kind : Kind
        Kind of the element.
    """

    PRED = 1
    S8 = 2
    S16 = 3
    S32 = 4
    S64 = 5
    U8 = 6
    U16 = 7
    U32 = 8
    U64 = 9
    F16 = 10
    F32 = 11
    F64 = 12
    TUPLE = 13
    OPAQUE = 14
    C64 = 15
    BF16 = 16
    TOKEN = 17
    C128 = 18
    F8E5M2 = 19
    F8E4M3FN = 20
    S4 = 21
    U4 = 22
    F8E4M3B11FNUZ = 23
    F8E5M2FNUZ = 24
    F8E4M3FNUZ = 25
    S2 = 26
    U2 = 27
    F8E4M3 = 28
    F8E3M4 = 29
    S1 = 30
    U1 = 31
    F4E2M1FN = 32
    F8E8M0FNU = 33
    BUFFER = 34
    F6E3M2FN = 35
    F6E2M3FN = 36

    text: str
    bits: int
    kind: Kind

    def __init__(self, number: int) -> None:
        self.text = self.name.lower()
        self.kind, self.bits = _kind_and_bits(self.text)

    @cached_property
    def numpy_dtype(self) -> np.dtype[Any] | None:
        """The dtype of host arrays, or None if the type has no arrays; types below 8 bits take one byte per element."""
        return _numpy_dtype(self.text, self.kind) if self.is_array else None

    # Enum members are singletons, so identity is the cheapest hash there is.
    __hash__ = object.__hash__

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.name

    @property
    def is_array(self) -> bool:
        """True if arrays can have this element type."""
        return self.kind is not Kind.OTHER

    @property
    def is_integer(self) -> bool:
        """True for signed and unsigned integers."""
        return self.kind in (Kind.SIGNED, Kind.UNSIGNED)

    @property
    def is_signed(self) -> bool:
        """True for signed integers."""
        return self.kind is Kind.SIGNED

    @property
    def is_unsigned(self) -> bool:
        """True for unsigned integers."""
        return self.kind is Kind.UNSIGNED

    @property
    def is_float(self) -> bool:
        """True for real floating-point types of any width."""
        return self.kind is Kind.FLOAT

    @property
    def is_complex(self) -> bool:
        """True for complex types."""
        return self.kind is Kind.COMPLEX

    @property
    def itemsize(self) -> int:
        """The number of bytes of one element in host memory."""
        return self.numpy_dtype.itemsize if self.numpy_dtype is not None else 0

    @property
    def real_part(self) -> ElementType:
        """The type of the real part of a complex type; any other type itself."""
        return {ElementType.C64: ElementType.F32, ElementType.C128: ElementType.F64}.get(self, self)


_BY_TEXT = {e.text: e for e in ElementType}


@cache
def _by_numpy(native: bool) -> dict[np.dtype[Any], ElementType]:
    """Return the first element type of each dtype; with `native`, only for dtypes of NumPy itself."""
    types: dict[np.dtype[Any], ElementType] = {}
    for e in ElementType:
        if e.is_array and (not native or hasattr(np, _numpy_name(e.text))) and e.numpy_dtype is not None:
            types.setdefault(e.numpy_dtype, e)
    return types


def element_type(name: str) -> ElementType:
    """Look up an element type by its HLO name.

    Raises
    ------
    DTypeError
        No element type has the name.
    """
    try:
        return _BY_TEXT[name]
    except KeyError:
        raise DTypeError(f"{name!r} is not an element type", hint=f"one of {', '.join(_BY_TEXT)}") from None


def is_element_type(name: str) -> bool:
    """Return True if HLO text has an element type of this name."""
    return name in _BY_TEXT


def from_numpy(dtype: Any) -> ElementType:
    """Return the element type of a NumPy dtype, or of anything that NumPy converts to one, of either byte order.

    Raises
    ------
    DTypeError
        The dtype has no HLO element type.
    """
    native = np.dtype(dtype).newbyteorder("=")
    element_type = _by_numpy(native=True).get(native) or _by_numpy(native=False).get(native)
    if element_type is None:
        raise DTypeError(f"arrays of dtype {native} cannot be compiled")
    return element_type
