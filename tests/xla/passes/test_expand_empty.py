"""Arrays without elements leave the program, and results stay the interpreter's."""

import numpy as np
import pytest

import cyxla
from cyxla.xla.hlo import parse_module
from cyxla.xla.passes.engine.clone import clone
from cyxla.xla.passes.expand import empty as expand_empty
from cyxla.xla.passes.simplify import dce

ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
BOTH = """
both {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  m = f32[] maximum(a, b)
  k = s32[] maximum(i, j)
  ROOT t = (f32[], s32[]) tuple(m, k)
}
"""
CASES = {
    "negate": ("ENTRY e { x = f32[0,3] parameter(0) ROOT n = f32[0,3] negate(x) }", [(0, 3)]),
    "sum to nothing": (
        ADD + "ENTRY e { x = f32[4,0] parameter(0) z = f32[] constant(2) "
        "ROOT r = f32[0] reduce(x, z), dimensions={0}, to_apply=add }",
        [(4, 0)],
    ),
    "sum of nothing": (
        ADD + "ENTRY e { x = f32[4,0] parameter(0) z = f32[] constant(2) "
        "ROOT r = f32[4] reduce(x, z), dimensions={1}, to_apply=add }",
        [(4, 0)],
    ),
    "several sums of nothing": (
        BOTH + "ENTRY e { x = f32[0] parameter(0) i = s32[0] iota(), iota_dimension=0 z = f32[] constant(-1) "
        "k = s32[] constant(7) ROOT r = (f32[], s32[]) reduce(x, i, z, k), dimensions={0}, to_apply=both }",
        [(0,)],
    ),
    "joined nothings": (
        "ENTRY e { x = f32[0,2] parameter(0) c = f32[0,4] concatenate(x, x), dimensions={1} "
        "z = f32[] constant(3) ROOT p = f32[2,4] pad(c, z), padding=1_1x0_0 }",
        [(0, 2)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_results_stay(name):
    text, dims = CASES[name]
    args = [np.zeros(d, np.float32) for d in dims]
    results = [cyxla.compile(text, platform=p, cache=False)(*args) for p in ("cpu", "interpreter")]
    for got, want in zip(*(r if isinstance(r, tuple) else (r,) for r in results), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_left_to_compute(name):
    module = clone(parse_module(CASES[name][0]))
    assert expand_empty.run(module)
    dce.run(module)
    module.verify()
    left = {i.opcode for i in module.entry.instructions if i.shape.is_array and i.shape.size == 0}
    assert left <= {"parameter", "constant", "reshape"}
    assert "reduce" not in {i.opcode for i in module.entry.instructions}
