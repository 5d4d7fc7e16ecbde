"""Sizes known at run time: padded arrays under masks agree with the interpreter on arrays of those sizes."""

import numpy as np
import pytest

import cyxla
from cyxla.errors import UnimplementedError

COMBINERS = """
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }
"""
BODIES = {
    "size": ("s32[]", "ROOT r = s32[] get-dimension-size(d), dimensions={0}"),
    "other size": ("s32[]", "ROOT r = s32[] get-dimension-size(d), dimensions={1}"),
    "sum": ("f32[]", "ROOT r = f32[] reduce(d, zero), dimensions={0,1}, to_apply=add"),
    "sum of exponentials": (
        "f32[4]",
        "e = f32[<=6,4] exponential(d) ROOT r = f32[4] reduce(e, zero), dimensions={0}, to_apply=add",
    ),
    "maximum": (
        "f32[4]",
        "low = f32[] constant(-inf) ROOT r = f32[4] reduce(d, low), dimensions={0}, to_apply=max",
    ),
    "turned": (
        "f32[4]",
        "t = f32[4,<=6] transpose(d), dimensions={1,0} ROOT r = f32[4] reduce(t, zero), dimensions={1}, to_apply=add",
    ),
    "rows": (
        "s32[]",
        "q = f32[<=6] reduce(d, zero), dimensions={1}, to_apply=add "
        "ROOT r = s32[] get-dimension-size(q), dimensions={0}",
    ),
    "two sizes": (
        "f32[]",
        "three = s32[] constant(3) o = f32[<=6,4] set-dimension-size(p, three), dimensions={0} "
        "s = f32[<=6,4] add(d, o) ROOT r = f32[] reduce(s, zero), dimensions={0,1}, to_apply=add",
    ),
    "grown again": (
        "f32[]",
        "five = s32[] constant(5) o = f32[<=6,4] set-dimension-size(d, five), dimensions={0} "
        "one = f32[<=6,4] cosine(o) ROOT r = f32[] reduce(one, zero), dimensions={0,1}, to_apply=add",
    ),
}


def program(result, body):
    return f"""HloModule m
{COMBINERS}
ENTRY e {{
  p = f32[6,4] parameter(0)
  n = s32[] parameter(1)
  zero = f32[] constant(0)
  d = f32[<=6,4] set-dimension-size(p, n), dimensions={{0}}
  {body}
}}"""


@pytest.mark.parametrize("name", BODIES)
def test_compiled_agrees_with_interpreter(name):
    text = program(*BODIES[name])
    compiled, oracle = cyxla.compile(text), cyxla.compile(text, platform="interpreter")
    p = np.random.default_rng(1).standard_normal((6, 4)).astype("f4")
    for n in (0, 1, 4, 6, 9, -2):
        np.testing.assert_allclose(compiled(p, n), oracle(p, n), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("body", [
    "one = f32[] constant(1) ROOT r = f32[] reduce(d, one), dimensions={0,1}, to_apply=add",
    "ROOT r = f32[<=6,4] negate(d)",
])  # fmt: skip
def test_dynamic_sizes_without_native_code(body):
    with pytest.raises(UnimplementedError):
        cyxla.compile(program("", body))
