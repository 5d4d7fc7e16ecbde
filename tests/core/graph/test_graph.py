"""Building graphs: names, scopes, operators, shapes and values known on the way."""

import numpy as np
import pytest

from cyxla import Graph, Session
from cyxla.core.framework import NodeDef
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DataType
from cyxla.core.graph.constant_value import constant_shape, constant_value
from cyxla.errors import InvalidArgumentError, NotFoundError, OpError

A, B = np.array([[1.0, -2.0], [3.5, 4.0]], np.float32), np.array([[2.0, 5.0], [-1.0, 3.0]], np.float32)
OPERATORS = {
    "a + b": A + B, "a - b": A - B, "a * b": A * B, "a / b": A / B, "a // b": A // B, "a % b": A % B, "-a": -A,
    "abs(a)": abs(A), "a @ b": A @ B, "a < b": A < B, "a <= b": A <= B, "a > b": A > B, "a >= b": A >= B,
    "1 + a": 1 + A, "1.5 - a": 1.5 - A, "2 * a": 2 * A, "1 / a": 1 / A, "5 // a": 5 // A, "5 % a": 5 % A,
    "a ** 2": A**2,
    "~(a < b)": ~(A < B), "(a < b) & (a > 0)": (A < B) & (A > 0), "(a < b) | (a > 0)": (A < B) | (A > 0),
    "a[0]": A[0], "a[-1]": A[-1], "a[:, 1]": A[:, 1], "a[..., 0]": A[..., 0], "a[None]": A[None], "a[::-1]": A[::-1],
    "a[1:, :1]": A[1:, :1], "a[0, 1]": A[0, 1],
}  # fmt: skip


@pytest.mark.parametrize("expression", OPERATORS)
def test_operators_are_ops(expression):
    graph = Graph()
    a, b = graph.placeholder("float", [2, 2], name="a"), graph.placeholder("float", [2, 2], name="b")
    result = eval(expression, {"a": a, "b": b})
    found = Session(graph).run(result, {a: A, b: B})
    np.testing.assert_allclose(found, OPERATORS[expression], rtol=1e-6)
    assert result.shape.as_list() == list(found.shape)


def test_arrays_meet_tensors_on_either_side():
    graph = Graph()
    a = graph.placeholder("float", [2, 2])
    np.testing.assert_array_equal(Session(graph).run(B + a, {a: A}), B + A)


def test_names_are_unique_regardless_of_case():
    graph = Graph()
    with graph.as_default():
        names = [apply_op("NoOp", name=name).name for name in ("n", "n", "N", "n_1")]
        with graph.name_scope("s"), graph.name_scope("t"):
            names.append(apply_op("NoOp").name)
    assert names == ["n", "n_1", "N_2", "n_1_1", "s/t/NoOp"]


@pytest.mark.parametrize("name", ["", "a b", "a:0", "^a", "-a"])
def test_bad_names(name):
    graph = Graph()
    with graph.as_default(), pytest.raises(InvalidArgumentError, match="name"):
        graph.unique_name(name)


def test_attributes_that_the_op_does_not_declare():
    """Annotations, whose names begin with _, are carried; others are refused."""

    def add(**attrs):
        node = NodeDef("y", "Neg", ["x"], "", {"T": AttrValue("type", DataType.DT_FLOAT), **attrs})
        graph = Graph()
        graph.placeholder("float", [2], name="x")
        return graph.add_node(node)

    assert add(_mine=AttrValue("bool", True)).attr("_mine") is True
    with pytest.raises(InvalidArgumentError, match="has the attr 'mine', which is not declared") as caught:
        add(mine=AttrValue("bool", True))
    assert caught.value.where == "node 'y'"
    with Graph().as_default(), pytest.raises(InvalidArgumentError, match="no input or attribute 'mine'"):
        apply_op("Neg", np.float32(1), mine=True)
    with Graph().as_default():
        assert apply_op("Neg", np.float32(1), _mine=True).node.attr("_mine") is True


def test_scopes_give_devices_controls_and_colocation():
    """Inner requests for devices win, and are merged with outer ones."""
    graph = Graph()
    with graph.as_default():
        first = apply_op("NoOp", name="first")
        with graph.device("/job:localhost"), graph.device("/cpu:0"):
            placed = apply_op("NoOp", name="placed")
        with graph.control_dependencies([first]), graph.colocate_with(placed):
            after = apply_op("NoOp", name="after")
    assert "job:localhost" in placed.device
    assert "CPU:0" in placed.device
    assert after.control_inputs == [first]
    assert after.colocation == ["placed"]
    assert first.device == ""


@pytest.mark.parametrize(
    "name, error", [("nope:0", NotFoundError), ("x:1", InvalidArgumentError), (":0", InvalidArgumentError)]
)
def test_tensors_by_name(name, error):
    graph = Graph()
    x = graph.placeholder("float", [2], name="x")
    assert graph.tensor("x:0") is x
    assert graph.tensor("x") is x
    with pytest.raises(error):
        graph.tensor(name)


WRONG_CALLS = [
    (("MatMul", np.ones((2, 2))), {}, "'b' is missing"),
    (("Neg", 1.0, 2.0), {}, "takes 1"),
    (("Neg", 1.0), {"nope": 3}, "nope"),
    (("AddN", 1.0), {}, "list"),
    (("AddN", []), {}, "less than the minimum"),
    (("Add", np.float32(1), np.float64(1)), {}, "double"),
    (("Neg", "text"), {}, "not in the list"),
    (("Placeholder",), {}, "'dtype'"),
    (("MatMul", np.ones((2, 3)), np.ones((2, 3))), {}, "3 and 2"),
    (("Softmax", object()), {}, "object"),
    (("Sum", np.ones(3), 0), {"keep_dims": "yes"}, "keep_dims"),
    (("NoSuchOp", 1.0), {}, "NoSuchOp"),
]


@pytest.mark.parametrize("call, attrs, says", WRONG_CALLS, ids=[f"{c[0][0]}-{c[2]}" for c in WRONG_CALLS])
def test_errors_of_wrong_calls(call, attrs, says):
    graph = Graph()
    with graph.as_default(), pytest.raises(OpError, match=says):
        apply_op(*call, **attrs)
    assert "MatMul" not in graph.nodes  # what fails leaves no node


def test_python_numbers_take_the_type_of_the_others():
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("double", [2])
        assert (x + 1).dtype.text == "double"
        assert apply_op("Pack", [x[0], 2.0]).shape.as_list() == [2]
        assert apply_op("Reshape", x, [x.shape[0], 1]).shape.as_list() == [2, 1]
        assert graph.constant([1, 2]).dtype.text == "int32"
        assert graph.constant([1.0]).dtype.text == "float"
        assert graph.constant("text").dtype.text == "string"
        assert graph.constant(2**40).dtype.text == "int64"


def test_values_known_while_building_shape_what_follows():
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder("float", [None, 4, 3])
        shape = apply_op("Shape", x)
        assert constant_value(shape) is None
        assert constant_shape(shape) == TensorShape([None, 4, 3])
        assert constant_value(shape[1:]).tolist() == [4, 3]
        assert constant_value(apply_op("Prod", shape[1:], 0)) == 12
        flat = apply_op("Reshape", x, apply_op("Pack", [shape[0], 12]))
        assert flat.shape == TensorShape([None, 12])
        both = apply_op("ConcatV2", [shape[:1], [7]], 0)
        assert apply_op("Fill", both, 0.0).shape == TensorShape([None, 7])
        assert constant_value(apply_op("Rank", x)) == 3
        assert constant_value(apply_op("Range", 0, apply_op("Rank", x), 1)).tolist() == [0, 1, 2]


def test_tensors_of_another_graph_are_refused():
    one, other = Graph(), Graph()
    x, y = one.placeholder("float", [2]), other.placeholder("float", [2])
    with pytest.raises(InvalidArgumentError, match="another graph"):
        _ = x + y


def test_a_tensor_has_no_truth_and_no_length_that_is_not_known():
    graph = Graph()
    x = graph.placeholder("float", [None])
    with pytest.raises(InvalidArgumentError, match="no value"):
        bool(x)
    with pytest.raises(InvalidArgumentError, match="iterate"):
        iter(x)
    assert len(list(graph.placeholder("float", [3]))) == 3
