"""Element types: numbers, names, NumPy twins."""

import pickle

import ml_dtypes
import numpy as np
import pytest

from cyxla.errors import DTypeError
from cyxla.types import ElementType, Kind, element_type, from_numpy, is_element_type

ARRAYS = [e for e in ElementType if e.is_array]


@pytest.mark.parametrize("name, number, bits, kind, twin", [
    ("pred",       1,  8,   Kind.PRED,     np.bool_),
    ("s4",         21, 4,   Kind.SIGNED,   ml_dtypes.int4),
    ("s8",         2,  8,   Kind.SIGNED,   np.int8),
    ("u64",        9,  64,  Kind.UNSIGNED, np.uint64),
    ("f16",        10, 16,  Kind.FLOAT,    np.float16),
    ("bf16",       16, 16,  Kind.FLOAT,    ml_dtypes.bfloat16),
    ("f8e4m3fn",   20, 8,   Kind.FLOAT,    ml_dtypes.float8_e4m3fn),
    ("f8e5m2fnuz", 24, 8,   Kind.FLOAT,    ml_dtypes.float8_e5m2fnuz),
    ("f4e2m1fn",   32, 4,   Kind.FLOAT,    ml_dtypes.float4_e2m1fn),
    ("f6e3m2fn",   35, 6,   Kind.FLOAT,    ml_dtypes.float6_e3m2fn),
    ("f64",        12, 64,  Kind.FLOAT,    np.float64),
    ("c64",        15, 64,  Kind.COMPLEX,  np.complex64),
    ("c128",       18, 128, Kind.COMPLEX,  np.complex128),
])  # fmt: skip
def test_facts(name, number, bits, kind, twin):
    dtype = element_type(name)
    assert (dtype.value, dtype.bits, dtype.kind, dtype.numpy_dtype) == (number, bits, kind, np.dtype(twin))
    assert ElementType(number) is dtype


@pytest.mark.parametrize("name", ["tuple", "token", "opaque", "buffer"])
def test_types_that_are_no_array_element(name):
    dtype = element_type(name)
    assert not dtype.is_array
    assert (dtype.bits, dtype.itemsize, dtype.numpy_dtype) == (0, 0, None)


@pytest.mark.parametrize("dtype", ElementType, ids=str)
def test_names_and_pickles_lead_back(dtype):
    assert element_type(str(dtype)) is dtype
    assert is_element_type(str(dtype))
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    kinds = (dtype.is_signed, dtype.is_unsigned, dtype.is_float, dtype.is_complex, dtype.kind is Kind.PRED)
    assert sum(kinds) == dtype.is_array


# One byte holds the one-bit integers, as NumPy and ml_dtypes have none.
@pytest.mark.parametrize("dtype", [e for e in ARRAYS if e.bits != 1], ids=str)
def test_numpy_twins_lead_back(dtype):
    assert from_numpy(dtype.numpy_dtype) is dtype
    assert from_numpy(np.zeros(2, dtype.numpy_dtype).dtype.newbyteorder(">")) is dtype


@pytest.mark.parametrize("name, part", [("c64", "f32"), ("c128", "f64"), ("f16", "f16"), ("s8", "s8")])
def test_real_part(name, part):
    assert element_type(name).real_part is element_type(part)


@pytest.mark.parametrize("name", ["F32", "float32", "", "f32 ", "i32"])
def test_unknown_names_are_refused(name):
    assert not is_element_type(name)
    with pytest.raises(DTypeError, match="is not an element type"):
        element_type(name)


@pytest.mark.parametrize("dtype", ["U3", "S4", object, "M8[s]", np.longdouble, [("a", "f4")]])
def test_numpy_dtypes_without_a_twin_are_refused(dtype):
    with pytest.raises(DTypeError, match="cannot be compiled"):
        from_numpy(dtype)
