"""Updates that are one constant are in the code of a scatter, not in memory."""

import numpy as np
import pytest
from support.hlo.differential import flat
from support.strategies import random_array

import cyxla
from cyxla.types import Shape, element_type
from cyxla.xla.evaluator import evaluate

WINDOW = "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
ROWS = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
NUMBERS = {"f32": "-1.5", "f64": "0.1", "bf16": "2", "f16": "-0", "s8": "-7", "u64": "18446744073709551615", "s4": "3"}
NUMBERS |= {"s64": "-9223372036854775808", "u32": "4294967295", "c64": "(1, -2)", "f8e4m3fn": "2"}

#: Dimensions of the operand and of the updates, and the windows.
SHAPES = {"elements": ("40", "9", WINDOW), "rows": ("40,50", "9,50", ROWS)}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", NUMBERS)
def test_constant_updates(dtype, shape):
    dims, updates, windows = SHAPES[shape]
    text = f"""HloModule m
      add {{ a = {dtype}[] parameter(0) b = {dtype}[] parameter(1) ROOT r = {dtype}[] add(a, b) }}
      ENTRY e {{ x = {dtype}[{dims}] parameter(0) i = s32[9,1] parameter(1) c = {dtype}[] constant({NUMBERS[dtype]})
        u = {dtype}[{updates}] broadcast(c), dimensions={{}}
        ROOT r = {dtype}[{dims}] scatter(x, i, u), {windows}, to_apply=add }}"""
    x = random_array(Shape.array(element_type(dtype), tuple(map(int, dims.split(",")))), 0)
    indices = np.array([3, 5, 3, 0, 39, 40, -1, 5, 3], np.int32).reshape(9, 1)
    made = cyxla.compile(text)
    for got, want in zip(
        flat(made(x, indices)), flat(evaluate(cyxla.hlo.parse_module(text), [x, indices])), strict=True
    ):
        assert np.asarray(got).tobytes() == np.asarray(want).tobytes()
    assert "broadcast" not in made.explain()


def test_several_arrays_of_which_one_has_constant_updates():
    text = f"""HloModule m
      both {{ a = s32[] parameter(0) b = f32[] parameter(1) c = s32[] parameter(2) d = f32[] parameter(3)
        e = s32[] add(a, c) f = f32[] multiply(b, d) ROOT r = (s32[], f32[]) tuple(e, f) }}
      ENTRY e {{ x = s32[40] parameter(0) y = f32[40] parameter(1) i = s32[9,1] parameter(2) v = f32[9] parameter(3)
        c = s32[] constant(1) u = s32[9] broadcast(c), dimensions={{}}
        ROOT r = (s32[40], f32[40]) scatter(x, y, i, u, v), {WINDOW}, to_apply=both }}"""
    rng = np.random.default_rng(0)
    args = [
        rng.integers(0, 9, 40).astype(np.int32), rng.random(40).astype(np.float32),
        rng.integers(-2, 42, (9, 1)).astype(np.int32), rng.random(9).astype(np.float32),
    ]  # fmt: skip
    got, want = cyxla.compile(text)(*args), evaluate(cyxla.hlo.parse_module(text), args)
    for g, w in zip(flat(got), flat(want), strict=True):
        np.testing.assert_array_equal(g, w)
