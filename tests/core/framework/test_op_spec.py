"""The grammar of attributes and arguments."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyxla.core.framework.declarations.op_def import AttrDef
from cyxla.core.framework.declarations.op_spec import parse_arg, parse_attr, parse_value
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import GROUPS, DataType
from cyxla.errors import InvalidArgumentError

F32, F16, I32, STR = DataType.DT_FLOAT, DataType.DT_HALF, DataType.DT_INT32, DataType.DT_STRING

QUANTIZED = GROUPS["quantizedtype"]

#        spec                                   type           default            minimum  allowed
ATTRS = [
    ("a:string",                               "string",       None,              None,    None),
    ("a :int= 3",                              "int",          3,                 None,    None),
    ("  a  :  int  >=  -7  =  -3 ",            "int",          -3,                -7,      None),
    ("a: int = 0x10",                          "int",          16,                None,    None),
    ("a: float = 1e-05",                       "float",        float(np.float32(1e-5)), None, None),
    ("a: float = -.5",                         "float",        -0.5,              None,    None),
    ("a: float = inf",                         "float",        float("inf"),      None,    None),
    ("XlaCompile: bool=true",                  "bool",         True,              None,    None),
    ("a: bool = false",                        "bool",         False,             None,    None),
    ("a: type = DT_INT32",                     "type",         I32,               None,    None),
    ("a: type = 3",                            "type",         I32,               None,    None),
    ("a: shape = { unknown_rank: true }",      "shape",        TensorShape(),     None,    None),
    ("a: shape = { dim { size: 2 } dim { size: -1 } }", "shape", TensorShape([2, None]), None, None),
    ("a: shape = {}",                          "shape",        TensorShape([]),   None,    None),
    ("a: func",                                "func",         None,              None,    None),
    ("a: tensor",                              "tensor",       None,              None,    None),
    ("T: {half, float,}",                      "type",         None,              None,    (F16, F32)),
    ("T: {float32}",                           "type",         None,              None,    (F32,)),
    ("T: {quantizedtype, string} = DT_STRING", "type",         STR,               None,    (*QUANTIZED, STR)),
    ("T: numbertype = DT_HALF",                "type",         F16,               None,    GROUPS["numbertype"]),
    ("T: realnumbertype",                      "type",         None,              None,    GROUPS["realnumbertype"]),
    ("r: {'min', \"max\"} = 'min'",            "string",       "min",             None,    ("min", "max")),
    (r"s: string = '\n\x41\'\"'",              "string",       "\nA'\"",          None,    None),
    ("s: string = 'a' \"b\"",                  "string",       "ab",              None,    None),
    ("l: list(int) >= 2 = [1, 2]",             "list(int)",    (1, 2),            2,       None),
    ("l:list( int )=[]",                       "list(int)",    (),                None,    None),
    ("l: list({float, half}) = [DT_HALF]",     "list(type)",   (F16,),            None,    (F32, F16)),
    ("l: list(func) = []",                     "list(func)",   (),                None,    None),
    ("l: list(string) = ['a', 'b']",           "list(string)", ("a", "b"),        None,    None),
    ("l: list(shape) = [{ dim { size: 1 } }, {}]", "list(shape)", (TensorShape([1]), TensorShape([])), None, None),
]  # fmt: skip


@pytest.mark.parametrize("spec, kind, default, minimum, allowed", ATTRS, ids=[row[0] for row in ATTRS])
def test_attr(spec, kind, default, minimum, allowed):
    """Every form, with blanks wherever."""
    attr = parse_attr(spec)
    assert (attr.type, attr.minimum, attr.allowed) == (kind, minimum, allowed)
    assert (attr.default and attr.default.value) == default


def test_groups_are_those_of_tensorflow():
    """The lists behind the names, in order."""
    assert [t.text for t in parse_attr("T: realnumbertype").allowed] == [
        "float", "double", "int32", "uint8", "int16", "int8", "int64", "bfloat16", "uint16", "half", "uint32", "uint64",
    ]  # fmt: skip
    assert [t.text for t in parse_attr("T: quantizedtype").allowed] == [
        "qint8",
        "quint8",
        "qint32",
        "qint16",
        "quint16",
    ]


BAD_ATTRS = [
    ("a int", "expected a name"),
    ("1a: int", "expected a name"),
    ("a: integer", "integer"),
    ("a: int = 3 foo", "'foo'"),
    ("a: int >= b", ">= b"),
    ("a: int = 'x'", "expected an integer"),
    ("a: int = 99999999999999999999", "64 bits"),
    ("a: list(int", "expected '\\)'"),
    ("a: list(int) = 3", "expected '\\['"),
    ("a: list(int) = [3", "expected ',' or '\\]'"),
    ("T: {}", "allows no value"),
    ("T: {float half}", "expected ',' or '}'"),
    ("T: {float, number}", "number"),
    ("T: {'a', float}", "quoted string"),
    ("a: type = float", "DT_FLOAT"),
    ("a: type = DT_NONSENSE", "DT_NONSENSE"),
    ("a: shape = 3", "braces"),
    ("a: shape = { dims: 3 }", "could not parse the default"),
    ("a: string = 'open", "quoted string"),
    ("a: bool = yes", "true or false"),
]


@pytest.mark.parametrize("spec, message", BAD_ATTRS, ids=[row[0] for row in BAD_ATTRS])
def test_bad_attr_quotes_where_reading_stopped(spec, message):
    """Leftovers and nonsense are code 3."""
    with pytest.raises(InvalidArgumentError, match=message):
        parse_attr(spec)


ARG_ATTRS = {
    a.name: a for a in (AttrDef("T", "type"), AttrDef("N", "int"), AttrDef("L", "list(type)"), AttrDef("S", "string"))
}

#       spec              type    type_attr  number_attr  list  ref
ARGS = [
    ("x: float",          F32,    "",        "",          "",   False),
    ("x:T",               0,      "T",       "",          "",   False),
    ("x : N * int32",     I32,    "",        "N",         "",   False),
    ("x: N*T",            0,      "T",       "N",         "",   False),
    ("x: L",              0,      "",        "",          "L",  False),
    ("x: Ref(T)",         0,      "T",       "",          "",   True),
    ("x: Ref( N * T ) ",  0,      "T",       "N",         "",   True),
    ("x: Ref(float)",     F32,    "",        "",          "",   True),
]  # fmt: skip


@pytest.mark.parametrize("spec, dtype, type_attr, number, types, ref", ARGS, ids=[row[0] for row in ARGS])
def test_arg(spec, dtype, type_attr, number, types, ref):
    """The five forms."""
    arg = parse_arg(spec, dict(ARG_ATTRS))
    assert (arg.name, arg.type, arg.type_attr, arg.number_attr, arg.type_list_attr, arg.is_ref) == (
        "x", dtype, type_attr, number, types, ref,
    )  # fmt: skip


BAD_ARGS = [
    ("X: T", "trouble parsing"),
    ("x", "trouble parsing"),
    ("x: U", "unknown attr 'U'"),
    ("x: M * T", "unknown attr 'M'"),
    ("x: S", "'S' of type string"),
    ("x: T * T", "'T' of type type"),
    ("x: T extra", "'extra'"),
    ("x: Ref(T", "trouble parsing|extra"),
]


@pytest.mark.parametrize("spec, message", BAD_ARGS, ids=[row[0] for row in BAD_ARGS])
def test_bad_arg(spec, message):
    """An unknown attr is code 3 and named."""
    with pytest.raises(InvalidArgumentError, match=message):
        parse_arg(spec, dict(ARG_ATTRS))


def test_lengths_are_at_least_one_by_default():
    attrs = {"N": parse_attr("N: int"), "M": parse_attr("M: int >= 0"), "L": parse_attr("L: list(type)")}
    for spec in ("x: N * float", "y: M * float", "z: L"):
        parse_arg(spec, attrs)
    assert [attrs[name].minimum for name in "NML"] == [1, 0, 1]


@given(st.integers(-(2**63), 2**63 - 1))
def test_integers_survive(value):
    assert parse_value("int", str(value)).value == value


@given(st.floats(width=32, allow_nan=False))
def test_floats_survive(value):
    assert parse_value("float", repr(value)).value == value


@given(st.text())
def test_any_text_is_read_or_refused(text):
    with suppress(InvalidArgumentError):
        parse_attr(text)
    with suppress(InvalidArgumentError):
        parse_arg(text, dict(ARG_ATTRS))
