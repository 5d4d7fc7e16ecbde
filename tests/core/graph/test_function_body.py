"""Functions become graphs and graphs functions."""

import numpy as np
import pytest

from cyxla import Graph, Session, load_graph
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.attr_value import AttrValue, NameAttrList
from cyxla.core.framework.protos import messages as proto
from cyxla.core.framework.types import DataType
from cyxla.core.graph.function_body import graph_of_args_to_function, graph_to_function, instantiate
from cyxla.core.graph.function_proto import function_from_proto, function_to_proto
from cyxla.errors import InvalidArgumentError, NotFoundError

AFFINE = """
signature {
  name: "affine"
  input_arg { name: "x" type_attr: "T" } input_arg { name: "rest" type_attr: "T" number_attr: "N" }
  output_arg { name: "y" type_attr: "T" } output_arg { name: "parts" type_attr: "T" number_attr: "N" }
  attr { name: "T" type: "type" } attr { name: "N" type: "int" has_minimum: true minimum: 1 }
  control_output: "done"
}
node_def { name: "sum" op: "AddN" input: "rest" attr { key: "T" value { placeholder: "T" } }
           attr { key: "N" value { placeholder: "N" } } }
node_def { name: "out" op: "Mul" input: "x" input: "sum:sum:0" attr { key: "T" value { placeholder: "T" } } }
node_def { name: "cut" op: "IdentityN" input: "rest:0" input: "rest:1" input: "^out"
           attr { key: "T" value { list { type: DT_FLOAT type: DT_FLOAT } } } }
node_def { name: "end" op: "NoOp" input: "^x" }
ret { key: "y" value: "out:z:0" } ret { key: "parts" value: "cut:output" }
control_ret { key: "done" value: "end" }
"""


def affine(text=AFFINE):
    return function_from_proto(proto.parse_text("FunctionDef", text))


ATTRS = {"T": AttrValue("type", DataType.DT_FLOAT), "N": AttrValue("int", 2)}


def test_a_function_with_lists_and_attributes_becomes_a_graph():
    """Arguments and results are numbered through."""
    body = instantiate(affine(), ATTRS, Graph().library)
    assert [n.name for n in body.args] == ["x", "rest_0", "rest_1"]
    assert [n.attr("index") for n in body.args] == [0, 1, 2]
    assert [t.text for t in body.ret_types] == ["float"] * 3
    assert [n.attr("index") for n in body.rets] == [0, 1, 2]
    assert [n.name for n in body.control_rets] == ["end"]
    assert [n.name for n in body.graph.node("cut").control_inputs] == ["out"]
    assert body.results[2].name == "cut:1"


def test_a_function_survives_its_message():
    function = affine()
    assert function_from_proto(function_to_proto(function)) == function


WRONG = [
    ("missing attr", AFFINE, {"T": ATTRS["T"]}, InvalidArgumentError, "'N'"),
    ("other length", AFFINE, {**ATTRS, "N": AttrValue("int", 3)}, InvalidArgumentError, "3 tensors"),
    ("no source", AFFINE.replace('"out:z:0"', '"nowhere:z:0"'), ATTRS, InvalidArgumentError, "nowhere"),
    ("no such output", AFFINE.replace('"out:z:0"', '"out:w:0"'), ATTRS, InvalidArgumentError, "out:w:0"),
    ("index outside", AFFINE.replace('"sum:sum:0"', '"sum:sum:1"'), ATTRS, InvalidArgumentError, "sum:sum:1"),
    ("return missing", AFFINE.replace('ret { key: "y" value: "out:z:0" }', ""), ATTRS, InvalidArgumentError, "'y'"),
    ("unknown op", AFFINE.replace('"AddN"', '"AddAll"'), ATTRS, NotFoundError, "AddAll"),
    ("control return", AFFINE.replace('value: "end"', 'value: "gone"'), ATTRS, InvalidArgumentError, "gone"),
    ("unknown placeholder", AFFINE.replace('placeholder: "N"', 'placeholder: "M"'), ATTRS, InvalidArgumentError, "'M'"),
    ("list for one", AFFINE.replace('input: "x" input', 'input: "rest" input'), ATTRS, InvalidArgumentError, "3 data"),
]


@pytest.mark.parametrize("text, attrs, error, says", [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_errors_of_function_bodies(text, attrs, error, says):
    with pytest.raises(error, match=says):
        instantiate(affine(text), attrs, Graph().library)


def test_a_graph_becomes_a_function_that_computes_the_same():
    inner = Graph()
    with inner.as_default():
        x, y = inner.placeholder("float", [2], name="X"), inner.placeholder("float", [2], name="y/in")
        parts = apply_op("Split", 0, x * y, num_split=2, name="split")
    function = graph_to_function("halves", [x, y], parts, output_names=["first", "second"])
    assert [a.name for a in function.signature.input_arg] == ["x", "y_in"]
    assert function.ret == {"first": "split:output:0", "second": "split:output:1"}
    graph = Graph()
    graph.library.add(function)
    with graph.as_default():
        a = graph.placeholder("float", [2], name="a")
        results = apply_op("PartitionedCall", [a, a], Tout=["float"] * 2, f=NameAttrList("halves"))
    again = load_graph(graph.to_graph_def().SerializeToString())
    found = Session(again).run([t.name for t in results], {"a:0": np.float32([3, 4])})
    np.testing.assert_array_equal(np.concatenate(found), [9, 16])


def numbered(args, rets):
    graph = Graph()
    with graph.as_default():
        tensors = [apply_op("_Arg", T="float", index=i, name=f"arg_{i}") for i in args]
        for i, tensor in zip(rets, tensors, strict=True):
            apply_op("_Retval", -tensor, index=i, name=f"ret_{i}")
    return graph


def test_arguments_and_results_of_a_graph_are_numbered_through():
    """Indices stand without gaps, and types are checked."""
    function = graph_of_args_to_function(numbered([1, 0], [0, 1]), "swap")
    assert [a.name for a in function.signature.input_arg] == ["arg_0", "arg_1"]
    assert function.ret == {"ret_0": "Neg:y:0", "ret_1": "Neg_1:y:0"}
    for args, rets, says in (([0, 2], [0, 1], "arg_2"), ([0, 0], [0, 1], "arg_0"), ([0, 1], [1, 2], "ret_1")):
        with pytest.raises(InvalidArgumentError, match=says):
            graph_of_args_to_function(numbered(args, rets), "bad")
    graph = numbered([0], [0])
    with graph.as_default(), pytest.raises(InvalidArgumentError, match="float"):
        apply_op("_Retval", graph.tensor("arg_0"), index=1, T="int32")


def test_contents_of_the_library():
    graph = Graph()
    library = graph.library
    library.add(affine())
    library.add(affine())  # an equal one changes nothing
    assert "affine" in library
    assert library.look_up("affine").op_def.name == "affine"
    assert library.look_up("Neg").op_def.name == "Neg"
    with pytest.raises(InvalidArgumentError, match="affine"):
        library.add(affine(AFFINE.replace('"Mul"', '"Sub"')))
    library.add_gradient("affine", "affine_grad")
    assert library.gradient_of("affine") == "affine_grad"
    with pytest.raises(InvalidArgumentError, match="affine_grad"):
        library.add_gradient("affine", "other")
    copy = library.copy()
    copy.remove("affine")
    assert "affine" in library
    with pytest.raises(NotFoundError):
        copy.remove("affine")
    with pytest.raises(NotFoundError, match="nobody"):
        library.look_up("nobody")
    assert graph.copy().to_graph_def() == graph.to_graph_def()
