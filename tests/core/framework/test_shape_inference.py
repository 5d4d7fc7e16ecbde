"""Functions of the shape inference context on partly known shapes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.framework.declarations.op_def_builder import OpDefBuilder
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError, ShapeError

OP = (
    OpDefBuilder("Probe").input("a: float").input("bs: N * float").output("y: float").output("zs: N * float")
    .attr("N: int").attr("axis: int = 7").attr("given: int").finalize().op_def
)  # fmt: skip


def context(*shapes, **facts):
    count = max(len(shapes) - 1, 1)
    return InferenceContext(OP, {"N": AttrValue("int", count)}, list(shapes) or [TensorShape(), TensorShape()], **facts)


def shape(text):
    """``?`` is an unknown shape, ``2,?`` one with an unknown size, an empty text a scalar."""
    if text == "?":
        return TensorShape()
    return TensorShape(None if d == "?" else int(d) for d in text.split(",") if d)


def test_inputs_outputs_and_attributes():
    c = context(shape("1"), shape("2"), shape("3"))
    assert (c.num_inputs, c.num_outputs) == (3, 3)
    assert (c.input(0), c.input("a"), c.inputs("bs")) == (shape("1"), shape("1"), [shape("2"), shape("3")])
    assert c.attr("axis") == 7
    with pytest.raises(InvalidArgumentError, match="'given'"):
        c.attr("given")
    c.set_output("y", (4, None))
    c.set_outputs("zs", [(5,), shape("?")])
    assert [c.output(i) for i in range(3)] == [shape("4,?"), shape("5"), shape("?")]
    assert c.output("zs") == shape("5")


def test_handles_pass():
    held = ((shape("2"), DataType.DT_FLOAT),)
    c = context(shape(""), shape(""), input_handles=[held])
    assert (c.input_handle(0), c.input_handle(1), c.output_handles) == (held, None, [])
    c.set_output_handle(1, held)
    assert c.output_handles == [None, held]


#         method       a       b       result (None: an error)
BINARY = [
    ("merge",         "?",    "2,?",  "2,?"),
    ("merge",         "2,?",  "?",    "2,?"),
    ("merge",         "2,?",  "?,3",  "2,3"),
    ("merge",         "2,3",  "2,4",  None),
    ("merge",         "2",    "2,3",  None),
    ("broadcast",     "?",    "2",    "?"),
    ("broadcast",     "2,1",  "3",    "2,3"),
    ("broadcast",     "?",    "",     "?"),
    ("broadcast",     "",     "4,5",  "4,5"),
    ("broadcast",     "2,?",  "2,3",  "2,3"),
    ("broadcast",     "2,?",  "2,1",  "2,?"),
    ("broadcast",     "?,?",  "?,1",  "?,?"),
    ("broadcast",     "0",    "1",    "0"),
    ("broadcast",     "2",    "3",    None),
    ("concatenate",   "2",    "3,?",  "2,3,?"),
    ("concatenate",   "?",    "3",    "?"),
    ("concatenate",   "",     "",     ""),
]  # fmt: skip


@pytest.mark.parametrize("method, a, b, want", BINARY)
def test_two_shapes(method, a, b, want):
    """Merge and broadcast with unknown ranks and sizes."""
    run = getattr(context(), method)
    if want is None:
        with pytest.raises(ShapeError):
            run(shape(a), shape(b))
    else:
        assert run(shape(a), shape(b)) == shape(want)


RANKS = [
    ("with_rank",          "?",   2, "?,?"),
    ("with_rank",          "3,4", 2, "3,4"),
    ("with_rank",          "3",   2, None),
    ("with_rank_at_least", "?",   2, "?"),
    ("with_rank_at_least", "3,4", 1, "3,4"),
    ("with_rank_at_least", "3",   2, None),
    ("with_rank_at_most",  "?",   2, "?"),
    ("with_rank_at_most",  "3",   2, "3"),
    ("with_rank_at_most",  "3,4", 1, None),
]  # fmt: skip


@pytest.mark.parametrize("method, given_shape, rank, want", RANKS)
def test_ranks(method, given_shape, rank, want):
    """Demands on ranks."""
    run = getattr(context(), method)
    if want is None:
        with pytest.raises(ShapeError, match="Probe"):
            run(shape(given_shape), rank)
    else:
        assert run(shape(given_shape), rank) == shape(want)


PARTS = [
    ("1,2,3", 1, None, "2,3"), ("1,2,3", 0, -1, "1,2"), ("1,2,3", -2, None, "2,3"), ("1,2,3", 1, 1, ""),
    ("?", 0, None, "?"), ("?", -2, None, "?,?"), ("?", 1, 3, "?,?"), ("?", -3, -1, "?,?"), ("?", 1, -1, "?"),
    ("1,2", 3, None, None), ("1,2", -3, None, None),
]  # fmt: skip


@pytest.mark.parametrize("given_shape, start, stop, want", PARTS)
def test_parts(given_shape, start, stop, want):
    if want is None:
        with pytest.raises(ShapeError):
            context().sub_shape(shape(given_shape), start, stop)
    else:
        assert context().sub_shape(shape(given_shape), start, stop) == shape(want)


DIMS = [
    ("add", 2, 3, 5), ("add", None, 3, None), ("add", 2**62, 2**62, ShapeError),
    ("subtract", 5, 3, 2), ("subtract", 3, 5, ShapeError), ("subtract", None, 1, None),
    ("multiply", 2, 3, 6), ("multiply", 0, None, 0), ("multiply", None, 2, None),
    ("multiply", 2**40, 2**40, ShapeError),
    ("divide", 6, 3, 2), ("divide", 7, 2, ShapeError), ("divide", 6, 0, ShapeError), ("divide", None, 1, None),
    ("divide", None, 0, ShapeError), ("divide", 4, None, None),
    ("min", 2, 3, 2), ("min", 0, None, 0), ("min", None, 3, None),
    ("max", 2, 3, 3), ("max", 2, None, None),
    ("merge_dim", None, 3, 3), ("merge_dim", 3, None, 3), ("merge_dim", 3, 4, ShapeError),
    ("with_value", None, 3, 3), ("with_value", 3, 3, 3), ("with_value", 2, 3, ShapeError),
]  # fmt: skip


@pytest.mark.parametrize("method, d, e, want", DIMS)
def test_arithmetic_of_sizes(method, d, e, want):
    run = getattr(context(), method)
    if want is ShapeError:
        with pytest.raises(ShapeError):
            run(d, e)
    else:
        assert run(d, e) == want


def test_uneven_division():
    assert context().divide(7, 2, evenly=False) == 3


def test_other_makers():
    c = context()
    assert (c.scalar(), c.vector(None), c.matrix(2, None)) == (shape(""), TensorShape([None]), shape("2,?"))
    assert (c.unknown_shape(), c.unknown_shape_of_rank(2)) == (shape("?"), shape("?,?"))
    assert c.replace_dim(shape("1,2"), -1, 5) == shape("1,5")
    assert c.replace_dim(shape("?"), 3, 5) == shape("?")
    with pytest.raises(ShapeError):
        c.replace_dim(shape("1"), 1, 5)
    with pytest.raises(ShapeError):
        c.unknown_shape_of_rank(255)
    assert c.merge_prefix(shape("?,3,4"), shape("2,?")) == (shape("2,3,4"), shape("2,3"))


#                  value                              what is known in part   shape of the input   result
SHAPE_TENSORS = [
    (np.array([2, -1, 3]),                            None,                   "3",                 "2,?,3"),
    (np.array([], np.int32),                          None,                   "0",                 ""),
    (np.array(-1),                                    None,                   "",                  "?"),
    (None,                                            TensorShape([2, None]), "2",                 "2,?"),
    (None,                                            None,                   "3",                 "?,?,?"),
    (None,                                            None,                   "?",                 "?"),
    (np.array(3),                                     None,                   "",                  None),
    (np.array([-2]),                                  None,                   "1",                 None),
    (np.array([[1]]),                                 None,                   "1,1",               None),
    (None,                                            None,                   "1,1",               None),
]  # fmt: skip


@pytest.mark.parametrize("value, partial, held, want", SHAPE_TENSORS)
def test_shape_from_a_tensor(value, partial, held, want):
    """Shapes that depend on values."""
    c = context(shape(held), shape(""), input_tensors=[value], input_tensors_as_shapes=[partial])
    if want is None:
        with pytest.raises(ShapeError):
            c.make_shape_from_shape_tensor(0)
    else:
        expected = TensorShape([None] * 3) if want == "?,?,?" else shape(want)
        assert c.make_shape_from_shape_tensor(0) == expected


def test_huge_values_are_neither_read_nor_copied():
    huge = np.broadcast_to(np.int64(2), 2**40)
    c = context(TensorShape([2**40]), shape(""), input_tensors=[huge])
    assert c.input_tensor(0) is None
    with pytest.raises(ShapeError):
        c.make_shape_from_shape_tensor(0)
    with pytest.raises(ShapeError, match="254"):
        context(shape("300"), shape(""), input_tensors=[np.ones(300, int)]).make_shape_from_shape_tensor(0)


def test_size_from_a_scalar():
    assert context(shape(""), shape(""), input_tensors=[np.array(5)]).make_dim_for_scalar_input(0) == 5
    assert context(shape(""), shape("")).make_dim_for_scalar_input("a") is None
    for held, value in [("", np.array(-1)), ("1", np.array([2]))]:
        with pytest.raises(ShapeError):
            context(shape(held), shape(""), input_tensors=[value]).make_dim_for_scalar_input(0)


SHAPES = st.one_of(
    st.just(TensorShape()), st.lists(st.one_of(st.none(), st.integers(0, 3)), max_size=3).map(TensorShape)
)


@given(SHAPES, SHAPES)
def test_merge_commutes_and_refines(a, b):
    c = context()
    try:
        merged = c.merge(a, b)
    except ShapeError:
        assert not a.is_compatible_with(b)
        return
    assert merged == c.merge(b, a)
    assert c.merge(merged, a) == merged


@given(st.lists(st.integers(0, 3), max_size=3), st.lists(st.integers(0, 3), max_size=3), st.data())
def test_broadcast_of_less_known_shapes_never_contradicts(a, b, data):
    """Results on partly known shapes hold for every shape they stand for."""
    try:
        want = np.broadcast_shapes(tuple(a), tuple(b))
    except ValueError:
        return
    forget = lambda dims: TensorShape(None if data.draw(st.booleans()) else d for d in dims)  # noqa: E731
    assert context().broadcast(forget(a), forget(b)).is_compatible_with(TensorShape(want))
