"""Sorting: by key, by any comparator, and the greatest few."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyxla.types import Literal, Shape
from cyxla.xla.evaluator import Evaluation
from cyxla.xla.evaluator.ops.sorting import _merge_sort, _order_by_key
from cyxla.xla.hlo import Computation

PRED, S32 = Shape.array("pred"), Shape.array("s32")


def comparator(direction, *dtypes, order=None, key=lambda comp, x: x):
    """key(first operand) compared; the other operands ride along."""
    comp = Computation("comparator")
    scalars = [Shape.array(t) for t in dtypes for _ in range(2)]
    ps = [comp.add("parameter", attrs={"parameter_number": n}, shape=s) for n, s in enumerate(scalars)]
    attrs = {"direction": direction} | ({"type": order} if order else {})
    comp.root = comp.add("compare", [key(comp, ps[0]), key(comp, ps[1])], attrs, shape=PRED)
    return comp


def lexicographic():
    """(a0, a1) < (b0, b1)."""
    comp = Computation("lexicographic")
    a0, b0, a1, b1 = (comp.add("parameter", attrs={"parameter_number": n}, shape=S32) for n in range(4))
    equal = comp.add("compare", [a0, b0], {"direction": "EQ"}, shape=PRED)
    first = comp.add("compare", [a0, b0], {"direction": "LT"}, shape=PRED)
    second = comp.add("compare", [a1, b1], {"direction": "LT"}, shape=PRED)
    comp.root = comp.add("select", [equal, second, first], shape=PRED)
    return comp


def canonical(comp, x):
    """Make both zeros one, as JAX does before it compares in total order."""
    zero = comp.add("constant", attrs={"literal": Literal(np.float32(0))}, shape=x.shape)
    is_zero = comp.add("compare", [x, zero], {"direction": "EQ"}, shape=PRED)
    return comp.add("select", [is_zero, zero, x], shape=x.shape)


@pytest.mark.parametrize("direction", ["LT", "GT"])
@pytest.mark.parametrize("dtype", ["s8", "u64", "f32", "bf16", "f16", "s4", "pred"])
def test_sort_is_stable_along_any_dimension(run, dtype, direction):
    x = np.random.default_rng(1).integers(0, 4, (7, 3)).astype(np.array(run.array(dtype, 0)).dtype)
    places = np.broadcast_to(np.arange(7, dtype=np.int32)[:, None], x.shape)
    shape = Shape.tuple([Shape.of(x), Shape.of(places)])
    comp = comparator(direction, Shape.of(x).dtype, "s32")
    values, order = run("sort", x, places, shape=shape, called=[comp], dimensions=(0,), is_stable=True)
    key = x.astype(np.float64) * (1 if direction == "LT" else -1)
    np.testing.assert_array_equal(order, np.argsort(key, axis=0, kind="stable"))
    np.testing.assert_array_equal(values.astype(np.float64), np.take_along_axis(x, order, 0).astype(np.float64))


def test_total_order_keys_as_jax_writes_them(run):
    x = np.float32([np.nan, 1, -0.0, 0.0, -np.inf])
    comp = comparator("LT", "f32", "s32", order="TOTALORDER", key=canonical)
    assert _order_by_key(Evaluation(), comp, [x, x]) is not None
    shape = Shape.tuple([Shape.of(x), Shape.array("s32", (5,))])
    _, order = run("sort", x, np.arange(5, dtype=np.int32), shape=shape, called=[comp], dimensions=(0,), is_stable=True)
    assert order.tolist() == [4, 2, 3, 1, 0]


def test_two_keys(run):
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 3, (2, 4, 33)).astype(np.int32)
    shape = Shape.tuple([Shape.of(a)] * 2)
    x, y = run("sort", a, b, shape=shape, called=[lexicographic()], dimensions=(1,))
    for row in range(4):
        assert list(zip(x[row], y[row], strict=True)) == sorted(zip(a[row], b[row], strict=True))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-3, 3), max_size=40), st.integers(1, 3))
def test_merge_sort_is_stable(values, count):
    rows = np.array([np.roll(values, n) for n in range(count)], np.int32).reshape(count, len(values))
    order = _merge_sort(Evaluation(), comparator("LT", "s32"), [rows])
    np.testing.assert_array_equal(order, np.argsort(rows, axis=1, kind="stable"))


# fmt: off
TOPK = [
    ("f32", [1, np.nan, 3, np.inf],  2, True,  [1, 3]),
    ("f32", [0.0, -0.0, -1],         3, True,  [0, 1, 2]),
    ("u8",  [5, 1, 1, 7],            2, False, [1, 2]),
    ("s32", [5, 7, 7, -2**31],       3, True,  [1, 2, 0]),
]
# fmt: on


@pytest.mark.parametrize("dtype, values, k, largest, want", TOPK)
def test_topk(run, dtype, values, k, largest, want):
    x = run.array(dtype, values)
    shape = Shape.tuple([Shape.array(dtype, (k,)), Shape.array("s32", (k,))])
    top, places = run("topk", x, shape=shape, k=k, largest=largest)
    assert places.tolist() == want
    np.testing.assert_array_equal(top, x[want])
