"""Sorts of masked arrays stop at the size, also if others compute with all of the result."""

import numpy as np
import pytest

import cyxla

HEAD = """HloModule m
up {{ a = {type}[] parameter(0) b = {type}[] parameter(1) ROOT c = pred[] compare(a, b), direction={order} }}
pairs {{ a = {type}[] parameter(0) b = {type}[] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3)
  ROOT c = pred[] compare(a, b), direction={order} }}
add {{ a = {type}[] parameter(0) b = {type}[] parameter(1) ROOT c = {type}[] add(a, b) }}
ENTRY main {{
  x = {type}[{dims}] parameter(0)
  n = s64[] parameter(1)
  k = s64[{dims}] iota(), iota_dimension={axis}
  s = s64[{dims}] broadcast(n), dimensions={{}}
  live = pred[{dims}] compare(k, s), direction=LT
  filler = {type}[] constant({filler})
  fillers = {type}[{dims}] broadcast(filler), dimensions={{}}
  y = {type}[{dims}] select(live, x, fillers)
"""
NEXT = """
  z = {type}[700] sort(y), dimensions={{0}}, to_apply=up
  ROOT r = {type}[699] slice(z), slice={{[1:700]}}"""
#: Dimensions, the sorted one, type, direction, filler, and the lines after the masked array, by name.
CASES = {
    "neighbours": ((700,), 0, "s32", "LT", "2147483647", NEXT),
    "descending": ((700,), 0, "s32", "GT", "-2147483648", NEXT),
    "another shape": ((700,), 0, "s64", "LT", "9223372036854775807", """
  w = s64[1,700] reshape(y)
  z = s64[1,700] sort(w), dimensions={{1}}, to_apply=up
  ROOT r = s64[1,600] slice(z), slice={{[0:1], [100:700]}}"""),
    "rows": ((5, 300), 1, "u16", "LT", "65535", """
  z = u16[5,300] sort(y), dimensions={{1}}, to_apply=up
  ROOT r = u16[5,300] reverse(z), dimensions={{1}}"""),
    "columns": ((300, 5), 0, "s8", "LT", "127", """
  z = s8[300,5] sort(y), dimensions={{0}}, to_apply=up
  t = s8[300,5] reverse(z), dimensions={{0}}
  ROOT r = (s8[300,5], s8[300,5]) tuple(t, z)"""),
    "indices": ((700,), 0, "s32", "LT", "2147483647", """
  i = s32[700] iota(), iota_dimension=0
  z = (s32[700], s32[700]) sort(y, i), dimensions={{0}}, is_stable=true, to_apply=pairs
  v = s32[700] get-tuple-element(z), index=0
  o = s32[700] get-tuple-element(z), index=1
  a = s32[699] slice(v), slice={{[1:700]}}
  b = s32[699] slice(o), slice={{[1:700]}}
  ROOT r = (s32[699], s32[699]) tuple(a, b)"""),
}  # fmt: skip


#: Programs whose result is the sorted array itself.
WHOLE = {"columns"}


@pytest.mark.parametrize("name", CASES)
def test_a_sort_stops_at_the_size(name):
    dims, axis, type_, order, filler, lines = CASES[name]
    names = {"type": type_, "order": order, "axis": axis, "filler": filler, "dims": ",".join(map(str, dims))}
    text = (HEAD + lines).format(**names) + "\n}"
    compiled, oracle = cyxla.compile(text), cyxla.compile(text, platform="interpreter")
    (line,) = [line for line in str(compiled.explain()).splitlines() if "a sort has a kernel of its own" in line]
    assert ("is computed below %n alone" in line) is (name not in WHOLE)
    dtype = np.dtype(cyxla.hlo.parse_module(text).parameters[0].shape.dtype.numpy_dtype)
    x = np.random.default_rng(2).integers(-9 if dtype.kind == "i" else 0, 9, dims).astype(dtype)
    for size in (-3, 0, 1, 2, 77, dims[axis] - 1, dims[axis], dims[axis] + 4):
        got, want = (f(x, np.int64(size)) for f in (compiled, oracle))
        for a, b in zip(*(v if isinstance(v, tuple) else (v,) for v in (got, want)), strict=True):
            np.testing.assert_array_equal(a, b, str(size))
