"""TensorFlow's data types: their numbers, names and NumPy dtypes.

A value in a graph is always a `numpy.ndarray`, rank 0 included. Strings, resources and variants are object arrays
(of `bytes`, of `ResourceHandle`, of anything); quantised integers are arrays of the integers that hold them.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import ml_dtypes
import numpy as np

from cyxla.errors import InvalidArgumentError, UnimplementedError

_REF = 100  # offset from a type to the type of a reference to a variable of it

# number: (name in op declarations, name in NumPy, dtype of the arrays)
_FACTS: dict[int, tuple[str, str, Any]] = {
    1: ("float", "float32", np.float32),
    2: ("double", "float64", np.float64),
    3: ("int32", "int32", np.int32),
    4: ("uint8", "uint8", np.uint8),
    5: ("int16", "int16", np.int16),
    6: ("int8", "int8", np.int8),
    7: ("string", "string", np.object_),
    8: ("complex64", "complex64", np.complex64),
    9: ("int64", "int64", np.int64),
    10: ("bool", "bool", np.bool_),
    11: ("qint8", "qint8", np.int8),
    12: ("quint8", "quint8", np.uint8),
    13: ("qint32", "qint32", np.int32),
    14: ("bfloat16", "bfloat16", ml_dtypes.bfloat16),
    15: ("qint16", "qint16", np.int16),
    16: ("quint16", "quint16", np.uint16),
    17: ("uint16", "uint16", np.uint16),
    18: ("complex128", "complex128", np.complex128),
    19: ("half", "float16", np.float16),
    20: ("resource", "resource", np.object_),
    21: ("variant", "variant", np.object_),
    22: ("uint32", "uint32", np.uint32),
    23: ("uint64", "uint64", np.uint64),
    24: ("float8_e5m2", "float8_e5m2", ml_dtypes.float8_e5m2),
    25: ("float8_e4m3fn", "float8_e4m3fn", ml_dtypes.float8_e4m3fn),
    26: ("float8_e4m3fnuz", "float8_e4m3fnuz", ml_dtypes.float8_e4m3fnuz),
    27: ("float8_e4m3b11fnuz", "float8_e4m3b11fnuz", ml_dtypes.float8_e4m3b11fnuz),
    28: ("float8_e5m2fnuz", "float8_e5m2fnuz", ml_dtypes.float8_e5m2fnuz),
    29: ("int4", "int4", ml_dtypes.int4),
    30: ("uint4", "uint4", ml_dtypes.uint4),
    31: ("int2", "int2", ml_dtypes.int2),
    32: ("uint2", "uint2", ml_dtypes.uint2),
    33: ("float4_e2m1fn", "float4_e2m1fn", ml_dtypes.float4_e2m1fn),
}


class DataType(IntEnum):
    """TensorFlow's ``DataType`` enum; ``DT_FLOAT_REF`` and the like are references to variables.

    ``text`` is the name in op declarations (``"half"``), ``numpy_name`` the name by width (``"float16"``).
    """

    DT_INVALID = 0
    DT_FLOAT = 1
    DT_DOUBLE = 2
    DT_INT32 = 3
    DT_UINT8 = 4
    DT_INT16 = 5
    DT_INT8 = 6
    DT_STRING = 7
    DT_COMPLEX64 = 8
    DT_INT64 = 9
    DT_BOOL = 10
    DT_QINT8 = 11
    DT_QUINT8 = 12
    DT_QINT32 = 13
    DT_BFLOAT16 = 14
    DT_QINT16 = 15
    DT_QUINT16 = 16
    DT_UINT16 = 17
    DT_COMPLEX128 = 18
    DT_HALF = 19
    DT_RESOURCE = 20
    DT_VARIANT = 21
    DT_UINT32 = 22
    DT_UINT64 = 23
    DT_FLOAT8_E5M2 = 24
    DT_FLOAT8_E4M3FN = 25
    DT_FLOAT8_E4M3FNUZ = 26
    DT_FLOAT8_E4M3B11FNUZ = 27
    DT_FLOAT8_E5M2FNUZ = 28
    DT_INT4 = 29
    DT_UINT4 = 30
    DT_INT2 = 31
    DT_UINT2 = 32
    DT_FLOAT4_E2M1FN = 33
    DT_FLOAT_REF = 101
    DT_DOUBLE_REF = 102
    DT_INT32_REF = 103
    DT_UINT8_REF = 104
    DT_INT16_REF = 105
    DT_INT8_REF = 106
    DT_STRING_REF = 107
    DT_COMPLEX64_REF = 108
    DT_INT64_REF = 109
    DT_BOOL_REF = 110
    DT_QINT8_REF = 111
    DT_QUINT8_REF = 112
    DT_QINT32_REF = 113
    DT_BFLOAT16_REF = 114
    DT_QINT16_REF = 115
    DT_QUINT16_REF = 116
    DT_UINT16_REF = 117
    DT_COMPLEX128_REF = 118
    DT_HALF_REF = 119
    DT_RESOURCE_REF = 120
    DT_VARIANT_REF = 121
    DT_UINT32_REF = 122
    DT_UINT64_REF = 123
    DT_FLOAT8_E5M2_REF = 124
    DT_FLOAT8_E4M3FN_REF = 125
    DT_FLOAT8_E4M3FNUZ_REF = 126
    DT_FLOAT8_E4M3B11FNUZ_REF = 127
    DT_FLOAT8_E5M2FNUZ_REF = 128
    DT_INT4_REF = 129
    DT_UINT4_REF = 130
    DT_INT2_REF = 131
    DT_UINT2_REF = 132
    DT_FLOAT4_E2M1FN_REF = 133

    @property
    def is_ref(self) -> bool:
        """True if the type is a reference to a variable."""
        return self > _REF

    @property
    def base(self) -> DataType:
        """The type of the value behind a reference."""
        return DataType(self - _REF) if self > _REF else self

    @property
    def ref(self) -> DataType:
        """The type of references to this type; references are unchanged."""
        return self if self > _REF or self == 0 else DataType(self + _REF)

    @property
    def text(self) -> str:
        """Name in op declarations."""
        return "invalid" if not self else _FACTS[self.base][0] + ("_ref" if self.is_ref else "")

    @property
    def numpy_name(self) -> str:
        """Name by width."""
        return "invalid" if not self else _FACTS[self.base][1] + ("_ref" if self.is_ref else "")

    @property
    def numpy(self) -> np.dtype[Any]:
        """Dtype of the arrays that hold values of the type."""
        if not self:
            raise InvalidArgumentError("DT_INVALID has no arrays")
        return _NUMPY_TYPES[self.base]

    def __str__(self) -> str:
        return self.text


_NUMPY_TYPES: dict[DataType, np.dtype[Any]] = {
    DataType(number): np.dtype(scalar) for number, (_, _, scalar) in _FACTS.items()
}
# Object arrays convert to strings: resources and variants are never created from arrays.
_TYPE_OF_NUMPY = {
    dtype: t for t, dtype in reversed(_NUMPY_TYPES.items()) if not t.text.startswith("q") and t.text != "variant"
}
_TYPE_OF_NUMPY[np.dtype(np.object_)] = DataType.DT_STRING
_TYPE_OF_TEXT = {name: t for t in DataType if t for name in (t.text, t.numpy_name, t.name)}


def as_data_type(value: Any) -> DataType:
    """Convert a number, a name, a NumPy dtype or a scalar type to a data type.

    Parameters
    ----------
    value : DataType, int, str, numpy.dtype or type
        Data type; ``"float"``, ``"float32"``, ``"DT_FLOAT"``, ``1`` and ``numpy.float32`` are equal.

    Raises
    ------
    InvalidArgumentError
        There is no such type.
    UnimplementedError
        TensorFlow has no type for the NumPy dtype, such as ``longdouble``.
    """
    if isinstance(value, DataType):
        return value
    if isinstance(value, str) and value in _TYPE_OF_TEXT:
        return _TYPE_OF_TEXT[value]
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            return DataType(value)
        except ValueError:
            raise InvalidArgumentError(f"{value} is not the number of a data type") from None
    try:
        dtype = np.dtype(value)
    except TypeError:
        raise InvalidArgumentError(f"{value!r} does not name a data type") from None
    if dtype.kind in "SU":
        return DataType.DT_STRING
    if dtype not in _TYPE_OF_NUMPY:
        raise UnimplementedError(f"there is no data type for arrays of {dtype}")
    return _TYPE_OF_NUMPY[dtype]


def _types(*names: str) -> tuple[DataType, ...]:
    return tuple(_TYPE_OF_TEXT[name] for name in names)


# Sets of types for kernels and declarations
FLOATING = _types("half", "bfloat16", "float", "double")
COMPLEX = _types("complex64", "complex128")
SIGNED = _types("int8", "int16", "int32", "int64")
UNSIGNED = _types("uint8", "uint16", "uint32", "uint64")
INTEGRAL = SIGNED + UNSIGNED
REAL = FLOATING + INTEGRAL
NUMBER = REAL + COMPLEX
INDEX = _types("int32", "int64")
QUANTIZED = _types("qint8", "quint8", "qint32", "qint16", "quint16")
HANDLES = _types("resource", "variant")  # types other than plain data
FLOAT8 = _types("float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz")
INT4 = _types("int4", "uint4")
DATA = (*NUMBER, *_types("bool", "string"))  # types that a client can feed and fetch, except quantised types

# The groups of the grammar of op declarations, in TensorFlow's order.
GROUPS = {
    "numbertype": _types(
        "float", "double", "int32", "uint8", "int16", "int8", "complex64", "int64", "qint8", "quint8", "qint32",
        "bfloat16", "qint16", "quint16", "uint16", "complex128", "half", "uint32", "uint64",
    ),
    "realnumbertype": _types(
        "float", "double", "int32", "uint8", "int16", "int8", "int64", "bfloat16", "uint16", "half", "uint32", "uint64",
    ),
    "quantizedtype": _types("qint8", "quint8", "qint32", "qint16", "quint16"),
}  # fmt: skip
