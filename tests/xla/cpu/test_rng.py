"""Random numbers of the opcode `rng`: ranges, moments, and which numbers repeat."""

import numpy as np
import pytest
from support.hlo.differential import agree

import cyxla
from cyxla.errors import OpError


def draw(hlo, low, high, kind="uniform", size=4000, **options):
    text = f"""ENTRY e {{
      a = {hlo}[] constant({low})
      b = {hlo}[] constant({high})
      ROOT r = {hlo}[{size}] rng(a, b), distribution=rng_{kind}
    }}"""
    return cyxla.compile(text, **options)()


@pytest.mark.parametrize("hlo, low, high", [
    ("f32", -2, 3), ("f64", 0, 1), ("bf16", 0, 1), ("f16", 1, 2), ("f32", 1, 1.0000001), ("s8", -100, 100),
    ("u8", 0, 255), ("s32", -2147483648, 2147483647), ("u32", 5, 9), ("s64", -9223372036854775808, 9223372036854775807),
    ("u64", 0, 18446744073709551615), ("s4", -8, 7), ("f8e4m3fn", 0, 2),
])  # fmt: skip
def test_uniform_stays_in_its_range_and_fills_it(hlo, low, high):
    drawn = draw(hlo, low, high)
    assert drawn.dtype.itemsize * 8 >= 4
    wide = drawn.astype(np.float64)
    assert wide.min() >= low
    assert drawn.max() < np.array(high).astype(drawn.dtype)
    if high - low > 1 and hlo != "f8e4m3fn":
        spread = (wide - low) / (float(high) - low)
        assert abs(spread.mean() - 0.5) < 0.2
        assert spread.min() < 0.1
        assert spread.max() > 0.7


def test_empty_ranges_give_their_start():
    assert set(draw("s32", 7, 7).tolist()) == {7}
    assert set(draw("f32", 2, 2).tolist()) == {2.0}
    assert set(draw("pred", "true", "true").tolist()) == {True}
    assert 0.4 < draw("pred", "false", "true").mean() < 0.6


@pytest.mark.parametrize("hlo", ["f32", "f64", "bf16"])
def test_normal(hlo):
    drawn = draw(hlo, 3, 2, "normal").astype(np.float64)
    assert abs(drawn.mean() - 3) < 0.15
    assert abs(drawn.std() - 2) < 0.15
    assert abs((np.abs(drawn - 3) < 2).mean() - 0.683) < 0.04


def test_calls_repeat_and_seeds_differ():
    first, again, other = draw("f32", 0, 1), draw("f32", 0, 1), draw("f32", 0, 1, seed=5)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


LOOP = """
more { s = (s32[], f32[8,4]) parameter(0) i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(8) ROOT p = pred[] compare(i, n), direction=LT }
step {
  s = (s32[], f32[8,4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  all = f32[8,4] get-tuple-element(s), index=1
  zero = f32[] constant(0)
  one = f32[] constant(1)
  row = f32[1,4] rng(zero, one), distribution=rng_uniform
  nothing = s32[] constant(0)
  new = f32[8,4] dynamic-update-slice(all, row, i, nothing)
  next = s32[] constant(1)
  j = s32[] add(i, next)
  ROOT t = (s32[], f32[8,4]) tuple(j, new)
}
ENTRY e {
  i = s32[] constant(0)
  zero = f32[] constant(0)
  none = f32[8,4] broadcast(zero), dimensions={}
  s = (s32[], f32[8,4]) tuple(i, none)
  w = (s32[], f32[8,4]) while(s), condition=more, body=step
  ROOT r = f32[8,4] get-tuple-element(w), index=1
}"""


def test_every_draw_of_a_call_is_another_one():
    run = cyxla.compile(LOOP)
    assert np.unique(run()).size == 32
    np.testing.assert_array_equal(run(), run())


@pytest.mark.parametrize("seed", [0, 3])
def test_global_state_is_the_interpreters(seed):
    text = """ENTRY e {
      a = u64[2] rng-get-and-update-state(), delta=18446744073709551
      b = u64[2] rng-get-and-update-state(), delta=2
      ROOT t = (u64[2], u64[2]) tuple(a, b)
    }"""
    got = cyxla.compile(text, seed=seed)()
    want = cyxla.compile(text, seed=seed, platform="interpreter")()
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g, w)
    agree(text)


def test_no_complex_numbers():
    with pytest.raises(OpError):
        draw("c64", 0, 1)
