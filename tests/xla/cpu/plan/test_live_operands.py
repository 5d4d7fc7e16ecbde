"""Operands of which a leading part alone is read: by masks, bounded indices, neutral updates, transforms and copies."""

# ruff: noqa: E501  programs read best a line at a time

import numpy as np
import pytest
from support.hlo.programs import assert_same

import cyxla

BOUND = 1000
SIZES = (-1, 0, 1, 7, 300, BOUND - 1, BOUND, BOUND + 5)
HEAD = """
HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
least { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] minimum(a, b) }
ENTRY main {
  x = f32[1000] parameter(0)
  n = s32[] parameter(1)
  k = s32[1000] parameter(2)
  zero = f32[] constant(0)
  zeros = f32[1000] broadcast(zero), dimensions={}
  none = s32[] constant(0)
  nothing = s32[1000] broadcast(none), dimensions={}
  one = s32[] constant(1)
  i = s32[1000] iota(), iota_dimension=0
  s = s32[1000] broadcast(n), dimensions={}
  live = pred[1000] compare(i, s), direction=LT
  e = f32[1000] exponential(x)
"""
#: Lines after the mask, and what the explanation says of the loop that is cut, by name.
PROGRAMS = {
    "a conjunction with a mask": ("""
  big = pred[1000] compare(e, zeros), direction=GT
  both = pred[1000] and({operands})
  end = s32[] constant(1000)
  ends = s32[1000] broadcast(end), dimensions={{}}
  first = s32[1000] select(both, i, ends)
  r = s32[] reduce(first, end), dimensions={{0}}, to_apply=least
  o = f32[1000] select(both, e, zeros)
  at = f32[1] dynamic-slice(o, r), dynamic_slice_sizes={{1}}
  ROOT q = (s32[], f32[1]) tuple(r, at)
""", "is combined below %n alone"),
    "elements at indices below a size": ("""
  m = s32[] maximum(n, one)
  last = s32[] {last}
  lasts = s32[1000] broadcast(last), dimensions={{}}
  top = s32[] constant(999)
  j = s32[1000] minimum(k, lasts)
  c = s32[1000] clamp(none, j, top)
  e2 = f32[1000] sine(e)
  w = f32[1000] gather(e2, c), offset_dims={{}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1}}
  k2 = s32[1000] reverse(k), dimensions={{0}}
  j2 = s32[1000] minimum(k2, lasts)
  w2 = f32[1000] gather(e2, j2), offset_dims={{}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1}}
  u = f32[1000] add(w, w2)
  v = f32[1000] select(live, u, zeros)
  ROOT r = (f32[1000]) tuple(v)
""", "dimension 0 is computed below %m alone"),
    "updates that change nothing": ("""
  v = f32[1000] select(live, e, zeros)
  at = s32[1000] select(live, k, nothing)
  sums = f32[5] broadcast(zero), dimensions={{}}
  h = f32[5] scatter(sums, at, v), update_window_dims={{}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=add
  ROOT r = (f32[5]) tuple(h)
""", "dimension 0 is combined below %n alone"),
}  # fmt: skip


def arguments(dtype=np.float32):
    rng = np.random.default_rng(5)
    return rng.standard_normal(BOUND).astype(dtype), rng.integers(0, BOUND, BOUND).astype(np.int32)


def check(text: str, args) -> None:
    """Compare every size with the interpreter, after a call that leaves nan in the memory of temporaries."""
    compiled, oracle = cyxla.compile(text), cyxla.compile(text, platform="interpreter")
    shapes = cyxla.hlo.parse_module(text).entry.root.shape.elements
    x, *others = args
    for size in SIZES:
        compiled(np.full_like(x, np.nan), np.int32(BOUND), *others)
        got, want = compiled(x, np.int32(size), *others), oracle(x, np.int32(size), *others)
        for a, b, shape in zip(got, want, shapes, strict=True):
            assert_same(np.asarray(a), np.asarray(b), shape.dtype, 64, 1.0)


@pytest.mark.parametrize("name, options", [
    ("a conjunction with a mask", {"operands": "big, live"}),
    ("a conjunction with a mask", {"operands": "live, big"}),
    ("elements at indices below a size", {"last": "subtract(m, one)"}),
    ("updates that change nothing", {}),
])  # fmt: skip
def test_operands_are_read_in_part(name, options):
    lines, said = PROGRAMS[name]
    text = HEAD + lines.format(**options) + "}\n"
    assert said in str(cyxla.compile(text).explain())
    check(text, arguments())


@pytest.mark.parametrize("last", ["subtract(n, one)", "subtract(one, m)", "add(m, one)"])
def test_elements_at_other_indices_may_be_any(last):
    """An index of no size counts as 0; nothing is known of an index that is not cut off."""
    text = HEAD + PROGRAMS["elements at indices below a size"][0].format(last=last) + "}\n"
    assert "is computed below %m alone" not in str(cyxla.compile(text).explain())
    check(text, arguments())


@pytest.mark.parametrize("init, filler", [("-0.0", "0"), ("1", "0"), ("0", "1")])
def test_updates_that_change_an_element_are_all_made(init, filler):
    lines = f"""
  other = f32[] constant({filler})
  others = f32[1000] broadcast(other), dimensions={{}}
  v = f32[1000] select(live, e, others)
  at = s32[1000] select(live, k, nothing)
  start = f32[] constant({init})
  sums = f32[5] broadcast(start), dimensions={{}}
  h = f32[5] scatter(sums, at, v), update_window_dims={{}}, inserted_window_dims={{0}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=add
  ROOT r = (f32[5]) tuple(h)
"""
    text = HEAD + lines + "}\n"
    assert "is combined below" not in str(cyxla.compile(text).explain())
    check(text, arguments())


# ------------------------------------------------------------------------------------------------------------- transforms
TRANSFORMS = {
    "short lines": ("c64[{rows},16]", "c64[{rows},16]", "FFT", "16", (0,)),
    "real lines": ("f32[{rows},60]", "c64[{rows},31]", "RFFT", "60", (0,)),
    "lines of a prime length": ("c64[{rows},211]", "c64[{rows},211]", "IFFT", "211", (0,)),
    "long lines": ("c64[{rows},1024]", "c64[{rows},1024]", "FFT", "1024", (0,)),
    "inner dimensions": ("c64[{rows},3,32]", "c64[{rows},3,32]", "FFT", "32", (0,)),
    "two dimensions": ("c64[{rows},8,16]", "c64[{rows},8,16]", "FFT", "8,16", (0,)),
    "two dimensions of large lines": ("c64[{rows},64,64]", "c64[{rows},64,64]", "IFFT", "64,64", (0,)),
}
ROWS = 40


@pytest.mark.parametrize("name", TRANSFORMS)
def test_lines_beyond_a_size_are_not_transformed(name):
    operand, result, kind, length, _ = TRANSFORMS[name]
    operand, result = operand.format(rows=ROWS), result.format(rows=ROWS)
    text = f"""HloModule m
ENTRY main {{
  x = {operand} parameter(0)
  n = s64[] parameter(1)
  y = {operand} negate(x)
  f = {result} fft(y), fft_type={kind}, fft_length={{{length}}}
  ROOT o = ({result}, s64[]) tuple(f, n)
}}"""
    live, whole = cyxla.compile(text, live_results=((0, 0, 1),)), cyxla.compile(text)
    assert "a fft has a kernel of its own; dimension 0 is computed below %n alone" in str(live.explain())
    shape = live.inputs[0]
    rng = np.random.default_rng(1)
    x = rng.standard_normal(shape.dims).astype(shape.dtype.numpy_dtype)
    for size in (0, 1, 5, 8, 13, ROWS, ROWS + 1, -1):
        out = [np.full(s.dims, 7, s.dtype.numpy_dtype) for s in live.outputs.elements]
        live(x, np.int64(size), out=tuple(out))
        kept = min(max(size, 0), ROWS)
        assert out[0][:kept].tobytes() == np.asarray(whole(x, np.int64(size))[0])[:kept].tobytes()
        assert (out[0][kept + 16 :] == 7).all(), size  # a panel has at most 16 lines


# ----------------------------------------------------------------------------------------------------------------- copies
@pytest.mark.parametrize("cut", [((0, 0, 1),), ((0, 0, 1), (0, 1, 1)), ((0, 1, 1),), ((0, 0, 1), (0, 0, 2))])
def test_arguments_that_are_results_are_copied_in_part(cut):
    text = """HloModule m
ENTRY main {
  x = f32[64,200] parameter(0)
  n = s32[] parameter(1)
  m = s64[] parameter(2)
  ROOT o = (f32[64,200], s32[], s64[]) tuple(x, n, m)
}"""
    compiled = cyxla.compile(text, live_results=cut)
    assert "cyx_live" in compiled.c_source
    x = np.random.default_rng(0).standard_normal((64, 200), np.float32)
    for n, m in ((-1, 0), (0, 3), (5, 2), (64, 1), (100, 70)):
        out = (np.full((64, 200), 7, np.float32), np.zeros((), np.int32), np.zeros((), np.int64))
        compiled(x, np.int32(n), np.int64(m), out=out)
        want = np.full_like(x, 7)
        size = max(n, m) if len(cut) == 2 and cut[1][1] == 0 else n
        rows, columns = (max(size, 0) if any(d == axis for _, d, _ in cut) else None for axis in (0, 1))
        want[:rows, :columns] = x[:rows, :columns]
        assert out[0].tobytes() == want.tobytes()
        assert (out[1], out[2]) == (n, m)


@pytest.mark.parametrize("first", ["y, z", "z, y"])
@pytest.mark.parametrize("computed", ["add(x, x)", "copy(x)"])
def test_results_of_several_shapes_are_copied_in_part(first, computed):
    """The sizes count rows of each result, whatever shape the array has in memory."""
    shapes = {"y": "f32[64,200]", "z": "f32[12800]"}
    types = ", ".join(shapes[name] for name in first.split(", "))
    text = f"""HloModule m
ENTRY main {{
  x = f32[12800] parameter(0)
  n = s32[] parameter(1)
  m = s32[] parameter(2)
  z = f32[12800] {computed}
  y = f32[64,200] reshape(z)
  ROOT o = ({types}, s32[], s32[]) tuple({first}, n, m)
}}"""
    compiled = cyxla.compile(text, live_results=((0, 0, 2), (1, 0, 3)))
    x = np.random.default_rng(0).standard_normal(12800, np.float32)
    whole = [x + x if "add" in computed else x] * 2
    whole[first.split(", ").index("y")] = whole[0].reshape(64, 200)
    for rows in (0, 1, 5, 64):
        sizes = [rows if w.ndim > 1 else 200 * rows for w in whole]
        out = (*[np.full(w.shape, 7, np.float32) for w in whole], np.zeros((), np.int32), np.zeros((), np.int32))
        compiled(x, *map(np.int32, sizes), out=out)
        for got, wanted, size in zip(out, whole, sizes, strict=False):
            assert got[:size].tobytes() == wanted[:size].tobytes()


LOOP = """HloModule m
body {
  s = (s32[], s32[], f32[4096]) parameter(0)
  t = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  v = f32[4096] get-tuple-element(s), index=2
  one = s32[] constant(1)
  u = s32[] add(t, one)
  r = s32[] add(n, one)
  zero = s32[] constant(0)
  at = s32[] multiply(n, one)
  d = f32[] convert(t)
  b = f32[1] broadcast(d), dimensions={}
  w = f32[4096] dynamic-update-slice(v, b, at)
  ROOT o = (s32[], s32[], f32[4096]) tuple(u, r, w)
}
more {
  s = (s32[], s32[], f32[4096]) parameter(0)
  t = s32[] get-tuple-element(s), index=0
  most = s32[] constant(5)
  ROOT c = pred[] compare(t, most), direction=LT
}
ENTRY main {
  zero = s32[] constant(0)
  none = f32[] constant(0)
  v = f32[4096] broadcast(none), dimensions={}
  s = (s32[], s32[], f32[4096]) tuple(zero, zero, v)
  w = (s32[], s32[], f32[4096]) while(s), condition=more, body=body
  n = s32[] get-tuple-element(w), index=1
  r = f32[4096] get-tuple-element(w), index=2
  ROOT o = (f32[4096], s32[]) tuple(r, n)
}"""


def test_a_state_that_starts_empty_is_not_filled():
    compiled = cyxla.compile(LOOP, live_results=((0, 0, 1),))
    got, size = compiled()
    assert size == 5
    np.testing.assert_array_equal(np.asarray(got)[:5], np.arange(5, dtype=np.float32))


BRANCHES = """HloModule m
left {
  s = (s32[], f32[4096]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  v = f32[4096] get-tuple-element(s), index=1
  ROOT o = (f32[4096], s32[]) tuple(v, n)
}
right {
  s = (s32[], f32[4096]) parameter(0)
  two = s32[] constant(2)
  v = f32[4096] get-tuple-element(s), index=1
  ROOT o = (f32[4096], s32[]) tuple(v, two)
}
ENTRY main {
  x = f32[4096] parameter(0)
  n = s32[] parameter(1)
  p = pred[] parameter(2)
  s = (s32[], f32[4096]) tuple(n, x)
  ROOT c = (f32[4096], s32[]) conditional(p, s, s), true_computation=left, false_computation=right
}"""


@pytest.mark.parametrize("choice", [True, False])
def test_branches_copy_their_live_results(choice):
    compiled = cyxla.compile(BRANCHES, live_results=((0, 0, 1),))
    assert compiled.c_source.count("cyx_live(cyx_size_s32") == 2
    x = np.random.default_rng(0).standard_normal(4096, np.float32)
    for n in (0, 3, 4096, 5000, -2):
        out = (np.full(4096, 7, np.float32), np.zeros((), np.int32))
        compiled(x, np.int32(n), np.bool_(choice), out=out)
        size = n if choice else 2
        assert out[1] == size
        kept = min(max(size, 0), 4096)
        assert out[0][:kept].tobytes() == x[:kept].tobytes()
        assert (out[0][kept:] == 7).all()


NESTED = """HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY main { x = f32[<=400,<=64] parameter(0) z = f32[] constant(0)
  ROOT r = f32[] reduce(x, z), dimensions={0,1}, to_apply=add }"""


def test_masks_of_two_dimensions():
    """A reduction of both went over the bound of the first one."""
    compiled, plain = (cyxla.compile(NESTED, platform=p) for p in ("cpu", "interpreter"))
    text = compiled.explain()
    assert "dimension 0 is combined below" in text
    assert "dimension 1 is combined below" in text
    for sizes in ((0, 0), (400, 64), (3, 5), (400, 1), (1, 64), (399, 63), (0, 64)):
        x = np.random.default_rng(0).random(sizes, np.float32)
        np.testing.assert_allclose(compiled(x), plain(x), rtol=1e-5)
