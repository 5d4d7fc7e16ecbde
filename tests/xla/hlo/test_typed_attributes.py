"""Typed attributes of custom calls: text in both directions, types, errors."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyxla.errors import DTypeError, InvalidArgumentError
from cyxla.xla.hlo.typed_attributes import read_attributes, text_of

DTYPES = ["?", *"bhilBHIL", *"efd", ml_dtypes.bfloat16]
VALUES = [
    ({"a": 1, "b": -2.5, "c": True}, "{a = 1 : i64, b = -2.5 : f64, c = true}"),
    ({"i": np.int8(-3), "u": np.uint64(2**64 - 1)}, "{i = -3 : i8, u = 18446744073709551615 : ui64}"),
    ({"h": np.float16(0.5), "b": ml_dtypes.bfloat16(1.5)}, "{h = 0.5 : f16, b = 1.5 : bf16}"),
    ({"n": np.float32(np.nan), "m": -np.inf}, "{n = 0x7fc00000 : f32, m = 0xfff0000000000000 : f64}"),
    ({"s": 'x"\\\n\0é'}, r'{s = "x\22\5C\0A\00\C3\A9"}'),
    ({"a": [1, 2], "e": np.zeros(0, np.float32)}, "{a = array<i64: 1, 2>, e = array<f32>}"),
    ({"f": np.array([True, False])}, "{f = array<i1: true, false>}"),
    ({"inner": {"x y": {"deep": 1.0e-300}, "t": np.float32}}, '{inner = {"x y" = {deep = 1.0e-300 : f64}, t = f32}}'),
    ({}, "{}"),
]  # fmt: skip


def same(a, b):
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, str):
        return a == b
    if isinstance(a, (type, np.dtype)):
        return np.dtype(a) == b
    a, b = np.asarray(a), np.asarray(b)
    return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


@pytest.mark.parametrize("attributes, text", VALUES, ids=[text[:20] for _, text in VALUES])
def test_text(attributes, text):
    assert text_of(attributes) == text
    assert same(attributes, read_attributes(text))


NUMBERS = st.sampled_from(DTYPES).flatmap(
    lambda t: st.binary(min_size=np.dtype(t).itemsize * 3, max_size=np.dtype(t).itemsize * 3).map(
        lambda b: (np.frombuffer(b, np.uint8) % 2).astype(bool) if t == "?" else np.frombuffer(b, t)
    )
)  # fmt: skip
LEAVES = st.one_of(NUMBERS, NUMBERS.map(lambda a: a[0]), st.text(st.characters(exclude_categories=["Cs"])))
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


@given(st.recursive(st.dictionaries(NAMES, LEAVES), lambda inner: st.dictionaries(NAMES, inner | LEAVES), max_leaves=8))
def test_what_is_written_is_read(attributes):
    assert same(attributes, read_attributes(text_of(attributes)))


@pytest.mark.parametrize("dtype, bits", [
    (ml_dtypes.bfloat16, 0x7F81), (np.float16, 0x7C01), (np.float32, 0x7F800001), (np.float64, 0x7FF0000000000001),
])  # fmt: skip
def test_signalling_nans_keep_their_bits(dtype, bits):
    value = np.array([bits], f"u{np.dtype(dtype).itemsize}").view(dtype)
    read = read_attributes(text_of({"a": value}))["a"]
    assert read.dtype == dtype
    assert read.tobytes() == value.tobytes()


@pytest.mark.parametrize("text, want", [
    ("{a = 5, b = 1.5, unit}", {"a": 5, "b": 1.5, "unit": True}), ("{ a=1:i32 , b = 0x10 : ui8}",
     {"a": np.int32(1), "b": np.uint8(16)}), ("{a = 1 : i1}", {"a": True}), ('{"a" = "b\\n\\41"}', {"a": "b\nA"}),
    ("{a = 3 : f32}", {"a": np.float32(3)}), ("{a = array<si16: -1>}", {"a": np.array([-1], np.int16)}),
])  # fmt: skip
def test_other_spellings(text, want):
    assert same(want, read_attributes(text))


@pytest.mark.parametrize("text, message", [
    ("{a = }", "expected a value"), ("{a = 1 : i99}", "expected a type of numbers"),
    ("{a = 300 : i8}", "300 does not fit"),
    ("{a = -1 : ui8}", "-1 does not fit"), ("{a = 1.5 : i32}", "expected an integer of type i32"),
    ("{a = 1", "expected '}'"),
    ("a = 1", "expected '{'"), ("{a = 1, a = 2}", "given twice"), ("{a = [1]}", "expected a value"),
    ('{a = "x}', "a value"),
    ("{a = 1} x", "expected the end"), ("{a = dense<1> : tensor<i64>}", "expected a value"),
    ("{= 1}", "expected a name"),
    ("{a = array<i64: x>}", "expected a number"), ("{a = array<f32: true>}", "expected a number of type f32"),
    ("{a = " * 40 + "1" + "}" * 40, "more than 32 deep"), ("", "expected '{'"), ("{a = 0x1ffff : f16}", "does not fit"),
])  # fmt: skip
def test_malformed_texts(text, message):
    with pytest.raises(InvalidArgumentError, match=message):
        read_attributes(text)


@pytest.mark.parametrize("value, error", [
    (1j, DTypeError), (np.zeros((2, 2)), DTypeError), (None, DTypeError), (2**70, DTypeError), (["a"], DTypeError),
])  # fmt: skip
def test_values_without_a_form(value, error):
    with pytest.raises(error, match="attribute x"):
        text_of({"x": value})


@pytest.mark.parametrize("name", ["", "a\0b", 1])
def test_names_without_a_form(name):
    with pytest.raises(InvalidArgumentError, match="name of an attribute"):
        text_of({name: 1})
