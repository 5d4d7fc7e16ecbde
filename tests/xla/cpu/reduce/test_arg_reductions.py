"""The largest value and its place: in lanes and in parts the same as one element after the other."""

# ruff: noqa: E501  programs read best a line at a time

import numpy as np
import pytest
from support.hlo.differential import flat

import cyxla
from cyxla.types import element_type
from cyxla.xla.cpu.reduce.arg_reductions import allows_any_order
from cyxla.xla.evaluator import evaluate


def picks(value: str, place: str, direction: str) -> str:
    """The combiner of argmax and argmin: the first NaN, else the extreme, else the lower place."""
    return f"""best {{ a = {value}[] parameter(0) i = {place}[] parameter(1) b = {value}[] parameter(2) j = {place}[] parameter(3)
 beyond = pred[] compare(a, b), direction={direction} nan = pred[] compare(a, a), direction=NE keep = pred[] or(beyond, nan)
 x = {value}[] select(keep, a, b) same = pred[] compare(a, b), direction=EQ before = pred[] compare(i, j), direction=LT
 tie = pred[] and(same, before) stay = pred[] or(keep, tie) y = {place}[] select(stay, i, j) ROOT t = ({value}[], {place}[]) tuple(x, y) }}
"""


def naive(value: str, place: str, direction: str) -> str:
    """A combiner that loses NaNs: only one element after the other says which."""
    return f"""best {{ a = {value}[] parameter(0) i = {place}[] parameter(1) b = {value}[] parameter(2) j = {place}[] parameter(3)
 keep = pred[] compare(a, b), direction={direction} x = {value}[] select(keep, a, b) y = {place}[] select(keep, i, j)
 ROOT t = ({value}[], {place}[]) tuple(x, y) }}
"""


def program(combiner: str, value: str, place: str, dims: tuple[int, ...], axis: int, init: str) -> str:
    shape, kept = ",".join(map(str, dims)), ",".join(str(n) for d, n in enumerate(dims) if d != axis)
    return f"""HloModule m
{combiner}ENTRY e {{ p = {value}[{shape}] parameter(0) q = {place}[{shape}] iota(), iota_dimension={axis}
 z = {value}[] constant({init}) k = {place}[] constant(0)
 ROOT r = ({value}[{kept}], {place}[{kept}]) reduce(p, q, z, k), dimensions={{{axis}}}, to_apply=best }}"""


def values(dtype: str, dims: tuple[int, ...], nans: float) -> np.ndarray:
    rng = np.random.default_rng(5)
    x = rng.integers(0, 50, dims).astype(element_type(dtype).numpy_dtype)
    return np.where(rng.random(dims) < nans, np.nan, x).astype(x.dtype) if nans else x


def same(text: str, x: np.ndarray) -> None:
    module = cyxla.hlo.parse_module(text)
    for got, want in zip(flat(cyxla.compile(text)(x)), flat(evaluate(module, [x])), strict=True):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want))


SHAPES = [
    ((7, 100), 1),
    ((3, 5000), 1),
    ((300, 64), 1),
    ((200_003,), 0),
    ((3, 70_000), 1),
    ((40, 90), 0),
    ((2, 16, 9), 1),
    ((4, 17), 1),
]


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("dims, axis", SHAPES, ids=str)
@pytest.mark.parametrize("make", [picks, naive])
def test_places_of_extremes(make, dims, axis):
    for nans in (0, 0.001, 0.3) if make is picks else (0,):  # what loses NaNs hangs on the order
        same(program(make("f32", "s32", "GT"), "f32", "s32", dims, axis, "-inf"), values("f32", dims, nans))


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize(
    "value, place", [("f64", "s64"), ("f64", "s32"), ("s32", "s32"), ("u8", "s32"), ("bf16", "s64"), ("s64", "u32")]
)
def test_element_types(value, place):
    for direction, init in (("GT", "0"), ("LT", "100")):
        for dims, axis in SHAPES[:4]:
            same(program(picks(value, place, direction), value, place, dims, axis, init), values(value, dims, 0))


@pytest.mark.parametrize("combiner, wanted", [
    (picks("f32", "s32", "GT"), True), (picks("f32", "s32", "LT"), True), (naive("s32", "s32", "GE"), True),
    (naive("f32", "s32", "GE"), False), (naive("s32", "s32", "LE"), True), (picks("f32", "s32", "EQ"), False),
    (picks("f32", "s32", "GT").replace("select(stay, i, j)", "select(stay, j, i)"), False),
    (picks("f32", "s32", "GT").replace("select(keep, a, b)", "add(a, b)"), False),
])  # fmt: skip
def test_arg_reductions_are_recognised(combiner, wanted):
    module = cyxla.hlo.parse_module(
        program(combiner, *(("s32" if "a = s32" in combiner else "f32"), "s32"), (5,), 0, "0")
    )
    assert allows_any_order(module.entry.root) is wanted


def of_pairs(combiner: str, place: str, dims: str = "200", reduced: str = "0") -> str:
    """The reduction of values and of another array, made by some lines from `w`, a parameter of the same shape."""
    return f"""HloModule m
{combiner}ENTRY e {{ p = s32[{dims}] parameter(0) w = s32[{dims}] parameter(1) {place}
 z = s32[] constant(-9) k = s32[] constant(0)
 ROOT r = (s32[], s32[]) reduce(p, q, z, k), dimensions={{{reduced}}}, to_apply=best }}"""


#: Second arrays, their shapes, the reduced dimensions, and whether they increase along these.
PLACES = {
    "iota": ("q = s32[200] iota(), iota_dimension=0", "200", "0", True),
    "any numbers": ("q = s32[200] negate(w)", "200", "0", False),
    "the other dimension": ("q = s32[9,200] iota(), iota_dimension=0", "9,200", "0,1", False),
    "two dimensions": ("i = s32[1800] iota(), iota_dimension=0 q = s32[9,200] reshape(i)", "9,200", "0,1", True),
    "one of size 1": ("q = s32[1,200] iota(), iota_dimension=1", "1,200", "0,1", True),
    "rows": ("i = s32[200] iota(), iota_dimension=0 q = s32[9,200] broadcast(i), dimensions={1}", "9,200", "0,1", False),
    "downwards": ("i = s32[200] iota(), iota_dimension=0 q = s32[200] reverse(i), dimensions={0}", "200", "0", False),
    "constant": (f"q = s32[6] constant({{{', '.join(map(str, range(3, 21, 3)))}}})", "6", "0", True),
    "equal constants": ("q = s32[6] constant({0, 1, 2, 2, 3, 4})", "6", "0", False),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("direction", ["GE", "GT", "LE"])
def test_ties_of_pairs_of_which_the_second_is_no_place(name, direction):
    place, dims, reduced, increases = PLACES[name]
    ordered, free = (of_pairs(make("s32", "s32", direction), place, dims, reduced) for make in (naive, picks))
    assert allows_any_order(cyxla.hlo.parse_module(ordered).entry.root) is increases
    assert allows_any_order(cyxla.hlo.parse_module(free).entry.root) is (increases or direction == "GT")
    shape = tuple(map(int, dims.split(",")))
    rng = np.random.default_rng(4)
    for text in (ordered, free):
        module = cyxla.hlo.parse_module(text)
        x, w = rng.integers(0, 3, shape).astype(np.int32), rng.integers(-9, 9, shape).astype(np.int32)
        for got, want in zip(flat(cyxla.compile(text)(x, w)), flat(evaluate(module, [x, w])), strict=True):
            np.testing.assert_array_equal(np.asarray(got), np.asarray(want))
