"""Arrays that programs compute up to their bounds."""

import pytest

from cyxla.xla.cpu.plan.whole_arrays import whole_arrays
from cyxla.xla.hlo import parse_module

HEAD = """
HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY main {
  x = f32[8,8] parameter(0)
  n = s64[] parameter(1)
  zero = f32[] constant(0)
  zeros = f32[8,8] broadcast(zero), dimensions={}
  rows = s64[8,8] iota(), iota_dimension=0
  columns = s64[8,8] iota(), iota_dimension=1
  sizes = s64[8,8] broadcast(n), dimensions={}
  above = pred[8,8] compare(rows, sizes), direction=LT
  before = pred[8,8] compare(columns, sizes), direction=LT
  live = pred[8,8] and(above, before)
"""
#: The rest of each program, and the shapes of rank 2 that are computed whole.
PROGRAMS = {
    "masked sum": ("""
  e = f32[8,8] exponential(x)
  k = f32[8,8] select(live, e, zeros)
  ROOT r = f32[] reduce(k, zero), dimensions={0,1}, to_apply=add
""", []),
    "masked rows": ("""
  e = f32[8,8] exponential(x)
  k = f32[8,8] select(above, e, zeros)
  ROOT r = f32[] reduce(k, zero), dimensions={0,1}, to_apply=add
""", []),
    "reversed result": ("""
  k = f32[8,8] select(live, x, zeros)
  e = f32[8,8] exponential(k)
  ROOT v = f32[8,8] reverse(e), dimensions={0,1}
""", ["f32[8,8]", "f32[8,8]"]),
    "reverse": ("""
  e = f32[8,8] exponential(x)
  v = f32[8,8] reverse(e), dimensions={0,1}
  k = f32[8,8] select(live, v, zeros)
  ROOT r = f32[] reduce(k, zero), dimensions={0,1}, to_apply=add
""", ["f32[8,8]"]),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_arrays_that_are_computed_whole(name):
    text, expected = PROGRAMS[name]
    module = parse_module(HEAD + text + "}\n")
    assert [str(s) for s in whole_arrays(module.entry, (), lambda shape: shape.rank == 2)] == expected


def test_programs_without_sizes_have_none():
    module = parse_module("HloModule m\nENTRY main { x = f32[8,8] parameter(0) ROOT y = f32[8,8] exponential(x) }")
    assert whole_arrays(module.entry, (), lambda shape: True) == []
