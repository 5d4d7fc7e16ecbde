"""Element-wise loops run block by block, with the results of the interpreter."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.hlo.differential import agree

from cyxla.xla.cpu.loops.blocked_while import block_width


def loop(
    dtype: str, dims: str, body: str, results: str, *, turns: int = 6, entry: str = "ROOT w =", last: str = ""
) -> str:
    """Two arrays a and b that change and one, c, that does not; i counts."""
    state = f"(s32[], {dtype}[{dims}], {dtype}[{dims}], {dtype}[{dims}])"
    gets = f"""s = {state} parameter(0)
i = s32[] get-tuple-element(s), index=0
a = {dtype}[{dims}] get-tuple-element(s), index=1
b = {dtype}[{dims}] get-tuple-element(s), index=2
c = {dtype}[{dims}] get-tuple-element(s), index=3"""
    body = body.replace("T[", f"{dtype}[").replace("[D]", f"[{dims}]")
    return f"""HloModule m
more {{ {gets}
n = s32[] constant({turns})
ROOT l = pred[] compare(i, n), direction=LT }}
step {{ {gets}
one = s32[] constant(1)
j = s32[] add(i, one)
{body}
ROOT t = {state} tuple(j, {results}, c) }}
ENTRY e {{
z = s32[] constant(0)
p = {dtype}[{dims}] parameter(0)
q = {dtype}[{dims}] parameter(1)
r = {dtype}[{dims}] parameter(2)
t = {state} tuple(z, p, q, r)
w = {state} while(t), condition=more, body=step
g = s32[] get-tuple-element(w), index=0
x = {dtype}[{dims}] get-tuple-element(w), index=1
y = {dtype}[{dims}] get-tuple-element(w), index=2
{last or f"ROOT o = (s32[], {dtype}[{dims}], {dtype}[{dims}]) tuple(g, x, y)"} }}
"""


BODIES = {
    "sums": ("d = T[D] add(a, c) e = T[D] multiply(b, c)", "d, e"),
    "places change": ("d = T[D] negate(a)", "b, d"),
    "the counter": ("x = T[] convert(i) y = T[D] broadcast(x), dimensions={} d = T[D] multiply(a, y)", "d, a"),
    "numbers of the elements": ("q = T[D] iota(), iota_dimension=0 d = T[D] add(q, a)", "d, b"),
    "another order of what stays": ("q = T[D] reverse(c), dimensions={0} d = T[D] add(q, a)", "d, b"),
    "constants": ("k = T[] constant(3) y = T[D] broadcast(k), dimensions={} d = T[D] add(y, a)", "d, y"),
    "choices": ("l = pred[D] compare(a, c), direction=LT d = T[D] select(l, b, c)", "d, a"),
}


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("dims", ["200,3", "1024", "35", "129", "3,7,11"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_blocks_agree_with_the_interpreter(body, dims):
    executable = agree(loop("f32", dims, *body), ulp=4)
    assert "lane loop" in executable.explain()


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f8e5m2", "f64", "c64", "c128", "s4", "s8", "u16", "s64"])
def test_every_type(dtype):
    executable = agree(loop(dtype, "150", "d = T[D] add(a, c) e = T[D] multiply(b, d)", "e, a", turns=3), ulp=8)
    assert "lane loop" in executable.explain()


def test_only_used_values_are_stored():
    executable = agree(loop("f32", "300", *BODIES["sums"], last="ROOT o = f32[300] negate(y)"))
    assert "-> f32[300] */" in executable.c_source


OTHERS = {
    "elements of others": ("d = T[D] reverse(a), dimensions={0}", "d, b"),
    "rare arguments": ("d = T[D] sine(a)", "d, b"),
    "a large result": ("d = T[D] sort(a), dimensions={0}, to_apply=less", "d, b"),
}


@pytest.mark.parametrize("body", OTHERS.values(), ids=OTHERS)
def test_other_loops_run_turn_by_turn(body):
    less = "less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }"
    executable = agree(loop("f32", "100", *body).replace("more {", less + "\nmore {", 1), ulp=16)
    assert "lane loop" not in {k.kind for k in executable.explanation().kernels}


def test_bits_do_not_depend_on_the_block():
    text = loop("f32", "5000", *BODIES["sums"], turns=50)
    executable = agree(text)
    x = np.linspace(-1, 1, 5000, dtype=np.float32)
    whole = executable(x, x, x)[1]
    assert np.array_equal(whole[100:200], agree(loop("f32", "100", *BODIES["sums"], turns=50))(*[x[100:200]] * 3)[1])


@given(st.integers(1, 100_000))
def test_widths(size):
    width = block_width(size)
    assert 1 <= width <= size
    assert width <= 256
