"""Shapes: interned, bounded, spelt."""

import copy
import gc
import os
import pickle
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyxla.errors import DTypeError, ShapeError
from cyxla.types import OPAQUE, TOKEN, UNBOUNDED, ElementType, Layout, Shape, row_major
from cyxla.xla.hlo import parse_shape

DTYPES = st.sampled_from([e for e in ElementType if e.is_array])


@st.composite
def array_shapes(draw):
    dims = draw(st.lists(st.integers(0, 9), max_size=4))
    order = draw(st.none() | st.permutations(range(len(dims))))
    dynamic = draw(st.lists(st.booleans(), min_size=len(dims), max_size=len(dims)))
    layout = Layout(tuple(order)) if order is not None else None
    return Shape.array(draw(DTYPES), dims, layout=layout, dynamic=dynamic)


SHAPES = st.recursive(
    array_shapes() | st.sampled_from([TOKEN, OPAQUE]), lambda parts: st.lists(parts, max_size=3).map(Shape.tuple)
)


@given(SHAPES)
def test_there_is_one_object_for_each_shape(shape):
    assert pickle.loads(pickle.dumps(shape)) is shape
    assert copy.deepcopy(shape) is shape
    assert parse_shape(str(shape)) is shape.logical
    assert shape.compatible(shape.logical)
    assert sum(leaf.nbytes for leaf in shape.leaves()) == sum(leaf.nbytes for leaf in shape.static.leaves())
    assert not shape.static.is_dynamic


@given(SHAPES)
def test_text_with_layouts_leads_back(shape):
    read = parse_shape(shape.to_text())
    assert read.logical is shape.logical
    assert [leaf.minor_to_major for leaf in read.leaves()] == [leaf.minor_to_major for leaf in shape.leaves()]


@pytest.mark.parametrize("shape, text, size, nbytes", [
    (Shape.array("f32"),                                      "f32[]",         1,  4),
    (Shape.array("bf16", (2, 3)),                             "bf16[2,3]",     6,  12),
    (Shape.array("s4", (5,)),                                 "s4[5]",         5,  5),
    (Shape.array("f64", (0, 2**40)),                          "f64[0,1099511627776]", 0, 0),
    (Shape.array("f32", (4, 3), dynamic=(True, False)),       "f32[<=4,3]",    12, 48),
    (Shape.array("f32", (UNBOUNDED, 3), dynamic=(True, False)), "f32[?,3]",    3,  12),
    (Shape.tuple([]),                                         "()",            1,  0),
    (Shape.tuple([Shape.array("f32"), TOKEN]),                "(f32[], token[])", 1, 0),
    (TOKEN,                                                   "token[]",       1,  0),
])  # fmt: skip
def test_facts(shape, text, size, nbytes):
    assert (str(shape), repr(shape), shape.size, shape.nbytes) == (text, text, size, nbytes)


@pytest.mark.parametrize("dims, more, error, match", [
    ((-1,),            {},                             ShapeError, "negative"),
    ((UNBOUNDED,),     {},                             ShapeError, "negative"),
    ((UNBOUNDED, 2),   {"dynamic": (False, True)},     ShapeError, "negative"),
    ((0, UNBOUNDED),   {},                             ShapeError, "negative"),
    ((2**32, 2**32),   {},                             ShapeError, "more than 2"),
    ((2**62,),         {},                             ShapeError, "more than 2"),
    (np.array([2**40, 2**40]), {},                     ShapeError, "more than 2"),
    ((2.5,),           {},                             ShapeError, "integers"),
    (("3",),           {},                             ShapeError, "integers"),
    ((2, 3),           {"layout": Layout((0,))},       ShapeError, "not an order"),
    ((2, 3),           {"layout": Layout((0, 0))},     ShapeError, "not an order"),
    ((2, 3),           {"dynamic": (True,)},           ShapeError, "dynamic flags"),
])  # fmt: skip
def test_impossible_shapes_are_refused(dims, more, error, match):
    with pytest.raises(error, match=match):
        Shape.array("f32", dims, **more)


def test_sizes_without_a_bound_are_kept_in_the_static_shape():
    shape = Shape.array("f32", (UNBOUNDED, 4, 3), dynamic=(True, True, False))
    assert str(shape.static) == "f32[?,4,3]"
    assert shape.static.static is shape.static


def test_unknown_types_and_direct_construction_are_refused():
    with pytest.raises(DTypeError):
        Shape.array("float", (2,))
    with pytest.raises(TypeError, match=r"Shape\.array"):
        Shape()


def test_sizes_become_pythons_integers():
    shape = Shape.array("u8", np.array([54321, 3]))
    assert all(type(d) is int for d in shape.dims)
    assert shape is Shape.array("u8", [54321, 3])


def test_kin():
    shape = Shape.array("f32", (2, 3), layout=Layout((0, 1)))
    assert shape.with_dtype(ElementType.S8) is Shape.array("s8", (2, 3))
    assert shape.with_dims((6,)) is Shape.array("f32", (6,))
    assert shape.with_layout(row_major(2)).minor_to_major == (1, 0)
    assert shape.compatible(Shape.array("f32", (2, 3)))
    assert not shape.compatible(Shape.array("f32", (3, 2)))
    assert Shape.of(np.zeros((2, 3), ">f4")) is shape.logical
    assert Shape.array("f32").is_scalar
    assert not TOKEN.is_scalar


def test_subshapes():
    inner = Shape.tuple([Shape.array("s8"), TOKEN])
    outer = Shape.tuple([Shape.array("f32"), inner])
    assert outer.subshape([1, 0]) is Shape.array("s8")
    assert outer.subshape([]) is outer
    for wrong in ([2], [0, 0], [-1]):
        with pytest.raises(ShapeError, match="leaves"):
            outer.subshape(wrong)


@pytest.fixture
def hasty_threads():
    """Threads that take turns after every few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty_threads")
def test_threads_get_the_same_object():
    """Many rounds, since the race needs two threads between one look-up and one store."""
    start, made = threading.Barrier(4), [[] for _ in range(4)]

    def work(k):
        for round_ in range(1000):
            start.wait()
            made[k].append(Shape.array("f32", (77, round_)))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(len({id(shape) for shape in shapes}) == 1 for shapes in zip(*made, strict=True))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_lock_held_while_forking_does_not_stop_the_child():
    import cyxla.types.shape as home

    with home._LOCK:
        child = os.fork()
        if child == 0:
            Shape.array("f32", (78, 1))
            os._exit(0)
        _, status = os.waitpid(child, 0)
    assert status == 0


def test_unused_shapes_go_away():
    import cyxla.types.shape as home

    before = len(home._ARRAYS)
    kept = [Shape.array("f32", (79, k)) for k in range(100)]
    assert len(home._ARRAYS) >= before + 100
    del kept
    gc.collect()
    assert len(home._ARRAYS) <= before


@pytest.mark.parametrize("dims", [(0, 2**63), (2**64, 2, 0)])
def test_sizes_beside_zero_are_held_by_64_bits(dims):
    assert Shape.array("u8", (0, 2**63 - 1)).size == 0
    with pytest.raises(ShapeError, match="a size of more than"):
        Shape.array("u8", dims)


@pytest.mark.parametrize("dims", [(1,) * 255, (2**31 - 1,) * 300_000])
def test_very_many_dimensions_are_refused_before_they_are_multiplied(dims):
    with pytest.raises(ShapeError, match=f"an array of {len(dims)} dimensions; 254 is the limit"):
        Shape.array("f32", dims)
