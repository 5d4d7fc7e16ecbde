"""Messages, attributes' values, tensors and nodes: to bytes and text, and back."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cyxla.core.framework.attr_value import AttrValue, NameAttrList, TensorValue
from cyxla.core.framework.declarations.op import OpListOpRegistry, OpRegistry
from cyxla.core.framework.declarations.op_def_builder import OpDefBuilder
from cyxla.core.framework.declarations.op_def_proto import (
    op_def_from_proto,
    op_def_to_proto,
    op_list_from,
    op_list_to_text,
)
from cyxla.core.framework.node_def import (
    NodeDef,
    add_defaults_to_node_def,
    input_types,
    name_ranges,
    output_types,
    strip_defaults,
    validate_node_def,
)
from cyxla.core.framework.protos.attrs import (
    attr_from_proto,
    attr_from_text,
    attr_to_proto,
    shape_from_proto,
    shape_to_proto,
    tensor_from_proto,
    tensor_to_proto,
)
from cyxla.core.framework.protos.messages import message, parse_binary, parse_text, to_bytes, to_text
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError, NotFoundError, OpError, ResourceExhaustedError, UnimplementedError

F32, I32 = DataType.DT_FLOAT, DataType.DT_INT32

# Messages --------------------------------------------------------------------------------------------------------

GRAPH = """
node { name: "a" op: "Const" device: "/cpu:0" attr { key: "dtype" value { type: DT_FLOAT } }
       attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: 1.5 } } } }
library { function { signature { name: "f" input_arg { name: "x" type: DT_INT32 } } ret { key: "y" value: "n:z:0" }
                     arg_attr { key: 0 value { attr { key: "_k" value { i: 7 } } } } } }
versions { producer: 1 bad_consumers: 2 bad_consumers: 3 }
"""


def test_text_and_binary_round_trip():
    """Both formats."""
    graph = parse_text("GraphDef", GRAPH)
    assert graph.library.function[0].arg_attr[0].attr["_k"].i == 7
    assert parse_text("GraphDef", to_text(graph)) == graph
    assert parse_binary("GraphDef", to_bytes(graph)) == graph


def test_other_packages_and_nested_messages():
    config = parse_text("tf2xla.Config", "feed { id { node_name: 'x' } shape { dim { size: 2 } } type: DT_HALF }")
    assert config.feed[0].type == DataType.DT_HALF
    assert message("SavedModel")(saved_model_schema_version=1).saved_model_schema_version == 1
    assert message("TrackableObjectGraph.TrackableObject.ObjectReference")(node_id=3).node_id == 3
    value = parse_text("StructuredValue", 'dict_value { fields { key: "k" value { int64_value: -1 } } }')
    assert value.dict_value.fields["k"].int64_value == -1
    with pytest.raises(InvalidArgumentError):
        message("NoSuchMessage")


BAD_TEXTS = [
    ("node {\n name: 'a'\n foo: 3 }", "line 3"),
    ("node {", "line 1"),
    ("versions { producer: 'x' }", "line 1"),
    ("node { attr { key: 'T' value { type: DT_NONSENSE } } }", "DT_NONSENSE"),
]


@pytest.mark.parametrize("text, where", BAD_TEXTS)
def test_errors_of_bad_text_name_the_line(text, where):
    with pytest.raises(InvalidArgumentError) as caught:
        parse_text("GraphDef", text)
    assert where in str(caught.value)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data):
    try:
        for node in parse_binary("GraphDef", data).node:
            NodeDef.from_proto(node)
    except OpError:
        pass


@given(st.integers(0, 10**9), st.integers(0, 255))
def test_changed_bytes_are_read_or_refused(place, value):
    data = bytearray(to_bytes(parse_text("GraphDef", GRAPH)))
    data[place % len(data)] = value
    try:
        for node in parse_binary("GraphDef", data).node:
            NodeDef.from_proto(node)
    except OpError:
        pass


# Attributes ------------------------------------------------------------------------------------------------------

VALUES = [
    AttrValue("string", "text"), AttrValue("string", b"\xff\x00".decode("utf-8", "surrogateescape")),
    AttrValue("int", -(2**63)), AttrValue("float", 0.5), AttrValue("bool", False), AttrValue("type", F32),
    AttrValue("shape", TensorShape([2, None])), AttrValue("shape", TensorShape()), AttrValue("shape", TensorShape([])),
    AttrValue("tensor", TensorValue(F32, np.array([1, 2], np.float32))),
    AttrValue("func", NameAttrList("f", {"T": AttrValue("type", I32)})), AttrValue("placeholder", "T"),
    AttrValue("list(string)", ("a", "b")), AttrValue("list(int)", (1, 2)), AttrValue("list(float)", (0.5,)),
    AttrValue("list(bool)", (True, False)), AttrValue("list(type)", (F32, I32)),
    AttrValue("list(shape)", (TensorShape([1]),)), AttrValue("list(func)", (NameAttrList("g"),)),
    AttrValue("list(tensor)", (TensorValue(I32, np.array(1, np.int32)),)), AttrValue("list", ()), AttrValue("", None),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda v: v.kind)
def test_attribute_round_trip(value):
    """Every kind, in both formats."""
    proto = attr_to_proto(value)
    assert attr_from_proto(proto) == value
    assert attr_from_proto(parse_text("AttrValue", to_text(proto))) == value
    assert attr_from_proto(parse_binary("AttrValue", to_bytes(proto))) == value


def test_bad_attributes():
    for text in ("list { i: 1 b: true }", "type: 77", "shape { dim { size: -2 } }", "tensor { dtype: DT_FLOAT_REF }"):
        with pytest.raises(InvalidArgumentError):
            attr_from_proto(parse_text("AttrValue", text))
    with pytest.raises(InvalidArgumentError):
        attr_from_text("int", "x")
    assert attr_from_text("shape", "{ dim { size: 3 } }").value == TensorShape([3])


def test_shapes():
    for shape in (TensorShape(), TensorShape([]), TensorShape([0, None, 5])):
        assert shape_from_proto(shape_to_proto(shape)) == shape
    with pytest.raises(InvalidArgumentError):
        shape_from_proto(parse_text("TensorShapeProto", "unknown_rank: true dim { size: 1 }"))


# Tensors ---------------------------------------------------------------------------------------------------------

NUMERIC = [t for t in DataType if t and not t.is_ref and not t.numpy.hasobject]


@pytest.mark.parametrize("dtype", NUMERIC, ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (0, 3)])
def test_tensor_round_trip(dtype, shape):
    array = (np.arange(np.prod(shape, dtype=int)) % 2).astype(dtype.numpy).reshape(shape)
    value = TensorValue(dtype, array)
    again = tensor_from_proto(parse_binary("TensorProto", to_bytes(tensor_to_proto(value))))
    assert again == value
    assert again.array.dtype == dtype.numpy


def test_strings_round_trip():
    array = np.array([[b"a", b"\xff"], [b"", b"long " * 9]], object)
    value = TensorValue(DataType.DT_STRING, array)
    assert tensor_from_proto(tensor_to_proto(value)) == value


@given(
    hnp.arrays(
        st.sampled_from([np.float32, np.float64, np.complex64, np.int64, np.bool_]),
        hnp.array_shapes(min_dims=0, min_side=0),
    )
)
def test_arrays_survive_bit_by_bit(array):
    value = TensorValue(DataType(tensor_type(array)), array)
    assert tensor_from_proto(tensor_to_proto(value)) == value


def tensor_type(array):
    names = {"f4": 1, "f8": 2, "c8": 8, "i8": 9, "b1": 10}
    return names[array.dtype.str[1:]]


#                text                                                                      elements
TYPED = [
    ("dtype: DT_FLOAT tensor_shape { dim { size: 3 } } float_val: 1 float_val: 2",         [1.0, 2.0, 2.0]),
    ("dtype: DT_FLOAT tensor_shape { dim { size: 2 } }",                                   [0.0, 0.0]),
    ("dtype: DT_FLOAT tensor_shape { dim { size: 1 } } float_val: 1 float_val: 2",         [1.0]),
    ("dtype: DT_STRING tensor_shape { dim { size: 2 } } string_val: 'x'",                  [b"x", b"x"]),
    ("dtype: DT_STRING tensor_shape { dim { size: 1 } }",                                  [b""]),
    ("dtype: DT_HALF tensor_shape { dim { size: 1 } } half_val: 0x3c00",                   [1.0]),
    ("dtype: DT_BFLOAT16 tensor_shape { dim { size: 1 } } half_val: 0x3f80",               [1.0]),
    ("dtype: DT_COMPLEX64 tensor_shape { dim { size: 1 } } scomplex_val: 1 scomplex_val: 2", [1 + 2j]),
    ("dtype: DT_UINT8 tensor_shape { dim { size: 1 } } int_val: 200",                      [200]),
    ("dtype: DT_QINT8 tensor_shape { dim { size: 1 } } int_val: -3",                       [-3]),
    ("dtype: DT_BOOL tensor_shape { dim { size: 2 } } bool_val: true",                     [True, True]),
    ("dtype: DT_BOOL tensor_shape { dim { size: 2 } } tensor_content: '\\002\\000'",       [True, False]),
    ("dtype: DT_UINT64 tensor_shape { dim { size: 1 } } uint64_val: 18446744073709551615", [2**64 - 1]),
    ("dtype: DT_INT32 tensor_shape { dim { size: 1 } } tensor_content: '\\001\\000\\000\\000'", [1]),
]  # fmt: skip


@pytest.mark.parametrize("text, want", TYPED)
def test_reading_rules(text, want):
    """Missing elements repeat the last one, or are zero."""
    assert tensor_from_proto(parse_text("TensorProto", text)).array.tolist() == want


BAD_TENSORS = [
    ("dtype: DT_INVALID", InvalidArgumentError),
    ("dtype: 99", InvalidArgumentError),
    ("dtype: DT_FLOAT_REF", InvalidArgumentError),
    ("dtype: DT_FLOAT tensor_shape { unknown_rank: true }", InvalidArgumentError),
    ("dtype: DT_FLOAT tensor_shape { dim { size: -1 } }", InvalidArgumentError),
    ("dtype: DT_FLOAT tensor_shape { dim { size: 2 } } tensor_content: 'abcd'", InvalidArgumentError),
    ("dtype: DT_FLOAT tensor_shape { dim { size: 1 } } tensor_content: 'abc'", InvalidArgumentError),
    ("dtype: DT_STRING tensor_shape { dim { size: 1 } } tensor_content: 'abc'", InvalidArgumentError),
    ("dtype: DT_FLOAT tensor_shape { dim { size: 1099511627776 } dim { size: 1099511627776 } }", InvalidArgumentError),
    ("dtype: DT_FLOAT tensor_shape { dim { size: 1099511627776 } } float_val: 1 float_val: 2", ResourceExhaustedError),
    ("dtype: DT_DOUBLE tensor_shape { dim { size: 0 } dim { size: 9223372036854775807 } }", InvalidArgumentError),
    ("dtype: DT_RESOURCE resource_handle_val { name: 'v' }", UnimplementedError),
]


@pytest.mark.parametrize("text, error", BAD_TENSORS)
def test_tensors_that_do_not_hold_together(text, error):
    with pytest.raises(error):
        tensor_from_proto(parse_text("TensorProto", text))


def test_a_splat_takes_no_memory():
    text = "dtype: DT_FLOAT tensor_shape { dim { size: 1099511627776 } } float_val: 3"
    value = tensor_from_proto(parse_text("TensorProto", text))
    assert value.array.shape == (2**40,)
    assert value.array[-1] == 3
    assert list(tensor_to_proto(value).float_val) == [3.0]


def test_small_floats_write_as_bits():
    value = TensorValue(DataType.DT_BFLOAT16, np.array([1.0, 2.0], ml_dtypes.bfloat16))
    assert tensor_to_proto(value).tensor_content == b"\x80\x3f\x00\x40"


# Declarations ----------------------------------------------------------------------------------------------------


def test_declarations_round_trip():
    """Every op, as a message and as a list in text."""
    ops = OpRegistry.global_().export(include_internal=True)
    assert [op_def_from_proto(op_def_to_proto(op_def)) for op_def in ops] == ops
    again = op_list_from(op_list_to_text(ops))
    assert again == ops
    assert OpListOpRegistry(again).look_up_op_def("MatMul") == OpRegistry.global_().look_up_op_def("MatMul")
    assert op_list_from(to_bytes(message("OpList")(op=[op_def_to_proto(ops[0])]))) == ops[:1]


# Nodes -----------------------------------------------------------------------------------------------------------

OP = (
    OpDefBuilder("Op").input("x: T").input("ys: N * float").input("zs: L").output("w: L").attr("T: {float, int32}")
    .attr("N: int").attr("L: list(type)").attr("k: int >= 0 = 3").finalize().op_def
)  # fmt: skip


def node(**changes):
    attrs = {"T": AttrValue("type", I32), "N": AttrValue("int", 2), "L": AttrValue("list(type)", (F32, I32))}
    attrs |= changes.pop("attr", {"k": AttrValue("int", 0)})
    inputs = changes.pop("input", ["a", "b:1", "c", "d", "e", "^f"])
    return NodeDef("n", changes.pop("op", "Op"), inputs, "", {k: v for k, v in attrs.items() if v is not None})


def test_nodes_round_trip():
    made = node()
    made.debug_names, made.debug_functions = ("o",), ("g",)
    assert NodeDef.from_proto(parse_binary("NodeDef", to_bytes(made.to_proto()))) == made


def test_types_and_ranges():
    made = node()
    assert input_types(made, OP) == (I32, F32, F32, F32, I32)
    assert output_types(made, OP) == (F32, I32)
    assert name_ranges(OP.input_arg, made.attr) == {"x": range(1), "ys": range(1, 3), "zs": range(3, 5)}
    validate_node_def(made, OP)


FAULTS = [
    ({"op": "Other"}, "'Other'"),
    ({"attr": {"k": None}}, "lacks the attrs 'k'"),
    ({"attr": {"T": None, "k": AttrValue("int", 1)}}, "lacks the attrs 'T'"),
    ({"attr": {"T": AttrValue("type", DataType.DT_HALF)}}, "not in the list of allowed values: float, int32"),
    ({"attr": {"T": AttrValue("int", 1)}}, "declared type is type"),
    ({"attr": {"k": AttrValue("int", -1)}}, "less than the minimum 0"),
    ({"attr": {"k": AttrValue("list(int)", (1,))}}, "declared type is int"),
    ({"attr": {"L": AttrValue("list(type)", (DataType.DT_FLOAT_REF,)), "k": AttrValue("int", 1)}}, "reference"),
    ({"attr": {"foo": AttrValue("int", 1), "k": AttrValue("int", 1)}}, "'foo'"),
    ({"attr": {"N": AttrValue("int", 2**40), "k": AttrValue("int", 1)}}, "not a valid number of arguments"),
    ({"input": ["a", "^f", "b", "c", "d", "e"]}, "comes after a control input"),
    ({"input": ["a", "b"]}, "has 2 data inputs"),
]


@pytest.mark.parametrize("changes, message", FAULTS, ids=[row[1] for row in FAULTS])
def test_faults_of_nodes(changes, message):
    """Each is code 3."""
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        validate_node_def(node(**changes), OP)
    assert caught.value.node == "n"


def test_annotations_are_free():
    """Attributes that start with an underscore."""
    validate_node_def(node(attr={"_mine": AttrValue("int", 1), "k": AttrValue("int", 1)}), OP)


def test_defaults_come_and_go():
    made = node(attr={})
    add_defaults_to_node_def(made, OP)
    assert made.attr["k"] == AttrValue("int", 3)
    strip_defaults(made, OP)
    assert "k" not in made.attr
    kept = node()
    strip_defaults(kept, OP)
    assert kept.attr["k"] == AttrValue("int", 0)


def test_allowed_strings():
    """A reduction that is none."""
    op_def = OpDefBuilder("R").attr("reduction: {'min', 'max'}").finalize().op_def
    with pytest.raises(InvalidArgumentError, match="'avg'"):
        validate_node_def(NodeDef("n", "R", [], "", {"reduction": AttrValue("string", "avg")}), op_def)


def test_a_graph_with_an_op_that_has_no_kernel():
    """A declared op can be looked up, an undeclared one cannot."""
    assert OpRegistry.global_().look_up_op_def("XlaSend").name == "XlaSend"
    with pytest.raises(NotFoundError):
        OpRegistry.global_().look_up_op_def("NoSuchOp")
