"""Scatter agrees with the oracle: windows of every form, in and out of bounds, every combiner, one index or many."""

import numpy as np
import pytest
from support.hlo.differential import agree, arguments

import cyxla

ROWS = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
COLUMNS = "update_window_dims={1}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, index_vector_dim=1"
POINTS = "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
BLOCK = "update_window_dims={0,1}, inserted_window_dims={}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=0"
TURNED = "update_window_dims={0}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"

# operand, indices, updates, attributes
FORMS = [
    ("[40,30]", "[7,1]", "[7,30]", ROWS),
    ("[40,30]", "[7,1]", "[7,11]", ROWS),
    ("[40,3]", "[7,1]", "[7,3]", ROWS),
    ("[20,2100]", "[9,1]", "[9,2100]", ROWS),
    ("[20,1024]", "[9,1]", "[9,1024]", ROWS),
    ("[40,30]", "[7,1]", "[7,40]", COLUMNS),
    ("[40]", "[100,1]", "[100]", POINTS),
    ("[40,30]", "[2]", "[20,17]", BLOCK),
    ("[40,30]", "[2]", "[40,30]", BLOCK),
    ("[400,300]", "[2]", "[398,299]", BLOCK),
    ("[40,30]", "[7,1]", "[30,7]", TURNED),
]
COMBINERS = {
    "add": "ROOT r = {t}[] add(a, b)",
    "set": "ROOT r = {t}[] copy(b)",
    "multiply": "ROOT r = {t}[] multiply(a, b)",
    "maximum": "ROOT r = {t}[] maximum(a, b)",
    "odd": "c = {t}[] subtract(b, a) ROOT r = {t}[] add(c, c)",
}


def program(dtype: str, form: tuple[str, str, str, str], combiner: str) -> str:
    operand, indices, updates, attributes = form
    body = COMBINERS[combiner].format(t=dtype)
    return (
        f"HloModule m\nf {{ a = {dtype}[] parameter(0) b = {dtype}[] parameter(1) {body} }}\n"
        f"ENTRY e {{ x = {dtype}{operand} parameter(0) i = s32{indices} parameter(1) u = {dtype}{updates} parameter(2) "
        f"ROOT r = {dtype}{operand} scatter(x, i, u), {attributes}, to_apply=f }}"
    )


def check(text: str, low: int, high: int) -> None:
    args = arguments(cyxla.hlo.parse_module(text), 1, 0.1)
    args[1] = np.random.default_rng(0).integers(low, high, args[1].shape).astype(np.int32)
    agree(text, *args, ulp=0)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("form", FORMS, ids=[f"{f[0]}{f[2]}" for f in FORMS])
@pytest.mark.parametrize("combiner", COMBINERS)
def test_forms(combiner, form):
    text = program("f32", form, combiner)
    check(text, 0, 2)
    check(text, -1, 42)


@pytest.mark.parametrize("dtype", ["f64", "bf16", "f16", "s8", "u16", "s64", "pred", "c64", "c128", "s4"])
def test_types(dtype):
    for form in (FORMS[0], FORMS[6], FORMS[7]):
        check(program(dtype, form, "add"), -1, 42)


def test_a_window_beyond_every_edge_changes_nothing():
    text = program("f32", FORMS[9], "add")
    for at in ((-1, 0), (0, -1), (3, 0), (0, 2), (2**31 - 1, 0), (-(2**31), 1)):
        args = arguments(cyxla.hlo.parse_module(text))
        args[1] = np.array(at, np.int32)
        agree(text, *args, ulp=0)


def test_an_array_into_itself():
    text = (
        "HloModule m\nf { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
        "ENTRY e { p = f32[40,30] parameter(0) i = s32[2] parameter(1) x = f32[40,30] multiply(p, p) "
        f"ROOT r = f32[40,30] scatter(x, i, x), {BLOCK}, to_apply=f }}"
    )
    check(text, 0, 1)


def test_a_single_large_window_is_shared_out():
    large = program("f32", ("[1024,1024]", "[2]", "[1022,1022]", BLOCK), "add")
    assert "parallel_for(ctx, k" in cyxla.compile(large).c_source
    check(large, 0, 3)


@pytest.mark.parametrize("opcode", ["maximum", "minimum"])
@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "s32", "u8"])
@pytest.mark.parametrize("swapped", [False, True])
def test_extremes_of_points(opcode: str, dtype: str, swapped: bool) -> None:
    """NaN on either side stays, of the zeros the right one does, and whatever comes later may win again."""
    text = (
        f"HloModule m\nf {{ a = {dtype}[] parameter(0) b = {dtype}[] parameter(1) "
        f"ROOT r = {dtype}[] {opcode}({'b, a' if swapped else 'a, b'}) }}\n"
        f"ENTRY e {{ x = {dtype}[30] parameter(0) i = s32[600,1] parameter(1) u = {dtype}[600] parameter(2) "
        f"s = {dtype}[30] scatter(x, i, u), {POINTS}, to_apply=f "
        f"one = {dtype}[] constant(1) ones = {dtype}[30] broadcast(one), dimensions={{}} "
        f"q = {dtype}[30] divide(ones, s) ROOT r = ({dtype}[30], {dtype}[30]) tuple(s, q) }}"
    )
    args = arguments(cyxla.hlo.parse_module(text), 1, 0.1)
    rng = np.random.default_rng(2)
    args[1] = rng.integers(-2, 33, (600, 1)).astype(np.int32)
    if dtype.startswith("f"):
        odd, zeros = np.array([np.nan, 0.0, -0.0, np.inf, -np.inf, 1.0]), np.array([0.0, -0.0])
        args[1][args[1] < 18] = -1
        for places, values in ((range(12), odd), (range(12, 18), zeros)):
            some = slice(places.start * 10, places.stop * 10)
            args[0][places.start : places.stop] = np.resize(values, len(places))
            args[1][some, 0] = rng.integers(places.start, places.stop, 10 * len(places))
            args[2][some] = rng.choice(values, 10 * len(places))
    agree(text, *args, ulp=0)
