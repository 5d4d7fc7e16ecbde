"""Kernels over arrays of which a leading part alone matters, whose size is known at run time."""

# ruff: noqa: E501  programs read best a line at a time

import numpy as np
import pytest
from support.hlo.programs import assert_same

import cyxla
from cyxla.xla.cpu.plan.live_rows import live_rows
from cyxla.xla.cpu.plan.live_rules import update_part

BOUND = 640
SIZES = (-1, 0, 1, 7, 300, BOUND - 1, BOUND, BOUND + 5)
HEAD = """
HloModule m
add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
max {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }}
least {{ a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] minimum(a, b) }}
up {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }}
ENTRY main {{
  x = f32[{dims}] parameter(0)
  n = {type}[] parameter(1)
  zero = f32[] constant(0)
  least = f32[] constant(-inf)
  zeros = f32[{dims}] broadcast(zero), dimensions={{}}
  lows = f32[{dims}] broadcast(least), dimensions={{}}
  i = {type}[{dims}] iota(), iota_dimension={axis}
  s = {type}[{dims}] broadcast(n), dimensions={{}}
  live = pred[{dims}] compare(i, s), direction=LT
"""
#: Dimensions, masked dimension, and the lines after the mask, by name; the root is a tuple of arrays.
PROGRAMS = {
    "masked vector": ((BOUND,), 0, """
  e = f32[{dims}] exponential(x)
  k = f32[{dims}] select(live, e, zeros)
  r = f32[] reduce(k, zero), dimensions={{0}}, to_apply=add
  ROOT o = (f32[]) tuple(r)
"""),
    "sum of rows": ((BOUND, 24), 0, """
  e = f32[{dims}] exponential(x)
  k = f32[{dims}] select(live, e, zeros)
  r = f32[24] reduce(k, zero), dimensions={{0}}, to_apply=add
  ROOT o = (f32[24]) tuple(r)
"""),
    "maximum of a middle dimension": ((3, BOUND, 20), 1, """
  e = f32[{dims}] tanh(x)
  k = f32[{dims}] select(live, e, lows)
  r = f32[3,20] reduce(k, least), dimensions={{1}}, to_apply=max
  ROOT o = (f32[3,20]) tuple(r)
"""),
    "sum of everything": ((3, BOUND, 20), 1, """
  e = f32[{dims}] tanh(x)
  k = f32[{dims}] select(live, e, zeros)
  r = f32[] reduce(k, zero), dimensions={{0,1,2}}, to_apply=add
  ROOT o = (f32[]) tuple(r)
"""),
    "sum along the last dimension": ((5, BOUND), 1, """
  e = f32[{dims}] cosine(x)
  k = f32[{dims}] select(live, e, zeros)
  r = f32[5] reduce(k, zero), dimensions={{1}}, to_apply=add
  ROOT o = (f32[5]) tuple(r)
"""),
    "product": ((BOUND, 32), 0, """
  e = f32[{dims}] exponential(x)
  g = f32[32,32] dot(e, zeros), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
  w = f32[32,48] iota(), iota_dimension=0
  d = f32[{rows},48] dot(e, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  t = f32[{rows},48] tanh(d)
  j = {type}[{rows},48] iota(), iota_dimension=0
  u = {type}[{rows},48] broadcast(n), dimensions={{}}
  m = pred[{rows},48] compare(j, u), direction=LT
  z = f32[{rows},48] broadcast(zero), dimensions={{}}
  k = f32[{rows},48] select(m, t, z)
  r = f32[48] reduce(k, zero), dimensions={{0}}, to_apply=add
  ROOT o = (f32[48], f32[32,32]) tuple(r, g)
"""),
    "scores": ((BOUND, 16), 0, """
  e = f32[{dims}] sine(x)
  c = f32[{rows},{rows}] dot(e, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
  j = {type}[{rows},{rows}] iota(), iota_dimension=0
  h = {type}[{rows},{rows}] iota(), iota_dimension=1
  u = {type}[{rows},{rows}] broadcast(n), dimensions={{}}
  p = pred[{rows},{rows}] compare(j, u), direction=LT
  q = pred[{rows},{rows}] compare(u, h), direction=GT
  m = pred[{rows},{rows}] and(p, q)
  z = f32[{rows},{rows}] broadcast(zero), dimensions={{}}
  k = f32[{rows},{rows}] select(m, c, z)
  r = f32[{rows}] reduce(k, zero), dimensions={{0}}, to_apply=add
  ROOT o = (f32[{rows}]) tuple(r)
"""),
    "softmax of rows": ((4, BOUND, 64), 1, """
  a = f32[4,{bound}] reduce(x, least), dimensions={{2}}, to_apply=max
  b = f32[{dims}] broadcast(a), dimensions={{0,1}}
  c = f32[{dims}] subtract(x, b)
  e = f32[{dims}] exponential(c)
  f = f32[4,{bound}] reduce(e, zero), dimensions={{2}}, to_apply=add
  g = f32[{dims}] broadcast(f), dimensions={{0,1}}
  h = f32[{dims}] divide(e, g)
  k = f32[{dims}] select(live, h, zeros)
  r = f32[4,64] reduce(k, zero), dimensions={{1}}, to_apply=add
  ROOT o = (f32[4,64]) tuple(r)
"""),
    "attention": ((BOUND, 16), 0, """
  c = f32[{rows},{rows}] dot(x, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
  h = {type}[{rows},{rows}] iota(), iota_dimension=1
  u = {type}[{rows},{rows}] broadcast(n), dimensions={{}}
  q = pred[{rows},{rows}] compare(h, u), direction=LT
  lowest = f32[{rows},{rows}] broadcast(least), dimensions={{}}
  z = f32[{rows},{rows}] broadcast(zero), dimensions={{}}
  c1 = f32[{rows},{rows}] select(q, c, lowest)
  a = f32[{rows}] reduce(c1, least), dimensions={{1}}, to_apply=max
  b = f32[{rows},{rows}] broadcast(a), dimensions={{0}}
  d = f32[{rows},{rows}] subtract(c, b)
  e = f32[{rows},{rows}] exponential(d)
  e1 = f32[{rows},{rows}] select(q, e, z)
  f = f32[{rows}] reduce(e1, zero), dimensions={{1}}, to_apply=add
  g = f32[{rows},{rows}] broadcast(f), dimensions={{0}}
  p = f32[{rows},{rows}] divide(e, g)
  p1 = f32[{rows},{rows}] select(q, p, z)
  v = f32[{dims}] select(live, x, zeros)
  o1 = f32[{rows},16] dot(p1, v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  o2 = f32[{rows},16] select(live, o1, zeros)
  r = f32[16] reduce(o2, zero), dimensions={{0}}, to_apply=add
  ROOT o = (f32[16]) tuple(r)
"""),
    "normalised rows": ((40, BOUND), 1, """
  k = f32[{dims}] select(live, x, zeros)
  f = f32[40] reduce(k, zero), dimensions={{1}}, to_apply=add
  g = f32[{dims}] broadcast(f), dimensions={{0}}
  d = f32[{dims}] subtract(x, g)
  t = f32[{dims}] multiply(d, d)
  k2 = f32[{dims}] select(live, t, zeros)
  v = f32[40] reduce(k2, zero), dimensions={{1}}, to_apply=add
  w = f32[{dims}] broadcast(v), dimensions={{0}}
  y = f32[{dims}] divide(d, w)
  y2 = f32[{dims}] tanh(y)
  k3 = f32[{dims}] select(live, y2, lows)
  r = f32[40] reduce(k3, least), dimensions={{1}}, to_apply=max
  ROOT o = (f32[40]) tuple(r)
"""),
    "indices and divisors": ((BOUND, 8), 0, """
  t = f32[8] reduce(x, zero), dimensions={{0}}, to_apply=add
  w = f32[8,{bound}] broadcast(t), dimensions={{0}}
  d = f32[{rows},{bound}] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  g = f32[{rows},1] slice(d), slice={{[0:{bound}],[0:1]}}
  h = s32[{rows},1] convert(g)
  low = s32[] constant(0)
  high = s32[] constant(7)
  j = s32[{rows},1] clamp(low, h, high)
  picked = f32[{rows},8] gather(x, j), offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1,8}}
  k1 = s32[{dims}] convert(picked)
  k2 = s32[{rows}] reshape(j)
  k3 = s32[{dims}] broadcast(k2), dimensions={{0}}
  q = s32[{dims}] divide(k1, k3)
  e = s32[{dims}] remainder(k3, k1)
  y = s32[{dims}] add(q, e)
  f = f32[{dims}] convert(y)
  k = f32[{dims}] select(live, f, zeros)
  r = f32[8] reduce(k, zero), dimensions={{0}}, to_apply=add
  ROOT o = (f32[8]) tuple(r)
"""),
    "a transpose tile by tile": ((64, BOUND), 1, """
  p = f32[{bound},64] transpose(x), dimensions={{1,0}}
  t = f32[{bound},64] tanh(p)
  j = {type}[{bound},64] iota(), iota_dimension=0
  u = {type}[{bound},64] broadcast(n), dimensions={{}}
  m = pred[{bound},64] compare(j, u), direction=LT
  z = f32[{bound},64] broadcast(zero), dimensions={{}}
  w = f32[64,64] iota(), iota_dimension=0
  d = f32[{bound},64] dot(t, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  k = f32[{bound},64] select(m, d, z)
  r = f32[64] reduce(k, zero), dimensions={{0}}, to_apply=add
  ROOT o = (f32[64]) tuple(r)
"""),
    "shapes that change": ((BOUND, 6, 4), 0, """
  e = f32[{dims}] exponential(x)
  f = f32[{rows},24] reshape(e)
  g = f32[24,{rows}] transpose(f), dimensions={{1,0}}
  h = f32[24,{rows}] negate(g)
  l = f32[{rows},24] transpose(h), dimensions={{1,0}}
  q = f32[{dims}] reshape(l)
  k = f32[{dims}] select(live, q, zeros)
  r = f32[6,4] reduce(k, zero), dimensions={{0}}, to_apply=add
  ROOT o = (f32[6,4], f32[{dims}]) tuple(r, k)
"""),
    "a size that is computed": ((BOUND, 8), 0, """
  two = {type}[] constant(2)
  half = {type}[] divide(n, two)
  e = f32[{dims}] exponential(x)
  t = {type}[{dims}] broadcast(half), dimensions={{}}
  l = pred[{dims}] compare(i, t), direction=LT
  k = f32[{dims}] select(l, e, zeros)
  p = f32[{dims}] select(live, e, lows)
  r = f32[8] reduce(k, zero), dimensions={{0}}, to_apply=add
  q = f32[8] reduce(p, least), dimensions={{0}}, to_apply=max
  ROOT o = (f32[8], f32[8]) tuple(r, q)
"""),
    "padding, pieces and slices": ((BOUND, 8), 0, """
  e = f32[{dims}] exponential(x)
  p = f32[{longer},8] pad(e, zero), padding=0_9x0_0
  y = f32[{twice},8] concatenate(p, e), dimensions={{0}}
  c = f32[{dims}] slice(y), slice={{[0:{bound}],[0:8]}}
  v = f32[{dims}] reverse(c), dimensions={{1}}
  k = f32[{dims}] select(live, v, zeros)
  r = f32[8] reduce(k, zero), dimensions={{0}}, to_apply=add
  ROOT o = (f32[8]) tuple(r)
"""),
    "elements scattered by two indices": ((BOUND,), 0, """
  e = f32[{dims}] exponential(x)
  hundred = f32[] constant(100)
  hundreds = f32[{dims}] broadcast(hundred), dimensions={{}}
  h = f32[{dims}] multiply(x, hundreds)
  number = s32[{dims}] convert(h)
  ten = s32[] constant(10)
  tens = s32[{dims}] broadcast(ten), dimensions={{}}
  none = s32[] constant(0)
  nones = s32[{dims}] broadcast(none), dimensions={{}}
  a = s32[{dims}] abs(number)
  row = s32[{dims}] remainder(a, tens)
  column = s32[{dims}] divide(a, tens)
  rows = s32[{dims}] select(live, row, tens)
  columns = s32[{dims}] select(live, column, nones)
  p = s32[{bound},1] reshape(rows)
  q = s32[{bound},1] reshape(columns)
  at = s32[{bound},2] concatenate(p, q), dimensions={{1}}
  start = f32[10,30] broadcast(zero), dimensions={{}}
  r = f32[10,30] scatter(start, at, e), update_window_dims={{}}, inserted_window_dims={{0,1}}, scatter_dims_to_operand_dims={{0,1}}, index_vector_dim=1, to_apply=add
  ROOT o = (f32[10,30]) tuple(r)
"""),
    "first index of a condition": ((BOUND,), 0, """
  above = pred[{dims}] compare(x, zeros), direction=GT
  both = pred[{dims}] and(above, live)
  k = s32[{dims}] iota(), iota_dimension=0
  length = s32[] constant({bound})
  lengths = s32[{dims}] broadcast(length), dimensions={{}}
  c = s32[{dims}] select(both, k, lengths)
  r = s32[] reduce(c, length), dimensions={{0}}, to_apply=least
  ROOT o = (s32[]) tuple(r)
"""),
    "masks of stored elements": ((BOUND, 24), 0, """
  e = f32[{dims}] exponential(x)
  k = f32[{dims}] select(live, e, lows)
  y = f32[{dims}] sort(k), dimensions={{1}}, to_apply=up
  z = f32[{dims}] select(live, y, zeros)
  r = f32[24] reduce(z, zero), dimensions={{0}}, to_apply=add
  ROOT o = (f32[24]) tuple(r)
"""),
}  # fmt: skip


def text_of(name: str, dtype: str = "s32") -> str:
    dims, axis, lines = PROGRAMS[name]
    names = {
        "dims": ",".join(map(str, dims)), "rows": dims[0], "bound": BOUND, "axis": axis, "type": dtype,
        "longer": BOUND + 9, "twice": 2 * BOUND + 9,
    }  # fmt: skip
    return (HEAD + lines).format(**names) + "}\n"


@pytest.fixture
def threads():
    before = cyxla.threads()
    yield cyxla.threads
    cyxla.threads(before)


def argument(name: str) -> np.ndarray:
    return np.random.default_rng(3).standard_normal(PROGRAMS[name][0], np.float32)


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("dtype", ["s32", "s64", "u32"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_size_gives_the_results_of_the_interpreter(name, dtype, threads):
    text, x = text_of(name, dtype), argument(name)
    module = cyxla.hlo.parse_module(text)
    compiled, oracle = cyxla.compile(text), cyxla.compile(text, platform="interpreter")
    integer = {"s32": np.int32, "s64": np.int64, "u32": np.uint32}[dtype]
    for size in SIZES[dtype == "u32" :]:
        seen = []
        for count in (1, 2, 8):
            threads(count)
            compiled(np.full_like(x, np.nan), integer(BOUND))  # what temporaries hold before the call
            seen.append([np.asarray(a) for a in compiled(x, integer(size))])
        for got, want, leaf in zip(seen[0], oracle(x, integer(size)), module.entry.root.shape.elements, strict=True):
            assert_same(got, np.asarray(want), leaf.dtype, 64, 1.0)
        assert all(a.tobytes() == b.tobytes() for other in seen[1:] for a, b in zip(seen[0], other, strict=True))


#: Programs whose live elements are one loop, as they are not where a mask depends on one of several dimensions.
IN_OTHER_ORDER = {"sum of everything"}


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("name", [n for n in PROGRAMS if n != "a size that is computed"])
def test_live_elements_have_the_bits_of_a_program_that_computes_all_elements(name):
    text, x = text_of(name), argument(name)
    whole = text.replace("direction=LT", "direction=LE").replace(
        "compare(u, h), direction=GT", "compare(u, h), direction=GE"
    )
    compiled, reference = cyxla.compile(text), cyxla.compile(whole)
    assert "cyx_live" in compiled.c_source
    assert "cyx_live" not in reference.c_source
    for size in SIZES:
        compiled(np.full_like(x, np.nan), np.int32(BOUND))
        for got, want in zip(compiled(x, np.int32(size)), reference(x, np.int32(size - 1)), strict=True):
            if name in IN_OTHER_ORDER:
                np.testing.assert_allclose(got, want, rtol=1e-5)
            else:
                assert np.asarray(got).tobytes() == np.asarray(want).tobytes(), size


CHAIN = """
HloModule m
ENTRY main {
  x = f32[4096,16] parameter(0)
  n = s64[] parameter(1)
  w = f32[16,16] parameter(2)
  e = f32[4096,16] exponential(x)
  d = f32[4096,16] dot(e, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[4096,16] tanh(d)
  ROOT o = (f32[4096,16], f32[4096,16], s64[]) tuple(t, e, n)
}
"""


@pytest.mark.parametrize("size", [0, 1, 300, 4096])
@pytest.mark.parametrize("at", [2, ~1], ids=["result", "parameter"])
def test_results_beyond_their_size_are_not_written(at, size):
    live = cyxla.compile(CHAIN, live_results=((0, 0, at), (1, 0, at)))
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((4096, 16), np.float32), rng.standard_normal((16, 16), np.float32)
    out = (*(np.full((4096, 16), 7, np.float32) for _ in range(2)), np.zeros((), np.int64))
    live(x, np.int64(size), w, out=out)
    want = cyxla.compile(CHAIN)(x, np.int64(size), w)
    unit = 256  # rows that one block computes, at most
    for got, whole in zip(out[:2], want, strict=False):
        assert got[:size].tobytes() == whole[:size].tobytes()
        assert (got[size + unit :] == 7).all()
    assert out[2] == size


def test_an_explanation_names_the_sizes():
    text = cyxla.compile(CHAIN, live_results=((0, 0, 2), (1, 0, 2))).explain()
    assert str(text).count("dimension 0 is computed below %n alone") == 2
    masked = cyxla.compile(text_of("sum of rows")).explain()
    assert "dimension 0 is combined below %n alone" in str(masked)


@pytest.mark.parametrize("live_results", [
    ((3, 0, 2),), ((0, 2, 2),), ((0, 0, 1),), ((0, 0, 3),), ((0, 0, ~0),), ((0, 0, ~3),),
])  # fmt: skip
def test_live_results_that_do_not_exist_are_refused(live_results):
    with pytest.raises(cyxla.errors.InvalidArgumentError, match="live_results"):
        cyxla.compile(CHAIN, live_results=live_results)


def test_a_reduction_of_a_masked_result_stops_too():
    dims, _, _ = PROGRAMS["sum of rows"]
    lines = PROGRAMS["sum of rows"][2].replace(
        "ROOT o = (f32[24]) tuple(r)", "ROOT o = (f32[24], f32[{dims}]) tuple(r, k)"
    )
    text = (HEAD + lines).format(dims=",".join(map(str, dims)), axis=0, type="s32") + "}\n"
    assert "dimension 0 is combined below %n alone" in str(cyxla.compile(text).explain())
    x = argument("sum of rows")
    for size in SIZES:
        got, want = (cyxla.compile(text, platform=p)(x, np.int32(size)) for p in ("cpu", "interpreter"))
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4)


#: Types, combiners, initial values and fillers of reductions that end at their size.
ENDED = [
    *((t, c, i, f) for t in ("f64", "f32") for c, i, f in (("add", "0", "0"), ("multiply", "1", "1"))),
    *(("f64", c, f, f) for c, f in (("maximum", "-inf"), ("minimum", "inf"))),
    *(("s32", c, i, f) for c, i, f in (("add", "5", "0"), ("and", "-1", "-1"), ("or", "0", "0"), ("xor", "3", "0"))),
    *(("pred", c, f, f) for c, f in (("or", "false"), ("and", "true"))),
    ("s8", "maximum", "-128", "-128"), ("u16", "minimum", "65535", "65535"), ("bf16", "add", "0", "0"),
    ("f16", "maximum", "-inf", "-inf"), ("s64", "add", "0", "0"), ("u8", "multiply", "1", "1"),
]  # fmt: skip


@pytest.mark.parametrize(
    "dims, axis",
    [
        ((9,), 0),
        ((5000,), 0),
        ((1237,), 0),
        ((7, 900), 1),
        ((900, 7), 0),
        ((3, 450, 20), 1),
        ((8, 1, 1), 1),
        ((40, 1), 1),
    ],
)
@pytest.mark.parametrize("type_, combiner, init, filler", ENDED)
def test_reductions_end_at_sizes_that_are_computed(type_, combiner, init, filler, dims, axis):
    bound, shape = dims[axis], ",".join(map(str, dims))
    text = f"""HloModule m
combine {{ a = {type_}[] parameter(0) b = {type_}[] parameter(1) ROOT c = {type_}[] {combiner}(a, b) }}
ENTRY main {{
  x = {type_}[{shape}] parameter(0)
  n = s64[] parameter(1)
  one = s64[] constant(1)
  size = s64[] subtract(n, one)
  i = s64[{shape}] iota(), iota_dimension={axis}
  s = s64[{shape}] broadcast(size), dimensions={{}}
  live = pred[{shape}] compare(i, s), direction=LT
  filler = {type_}[] constant({filler})
  fillers = {type_}[{shape}] broadcast(filler), dimensions={{}}
  k = {type_}[{shape}] select(live, x, fillers)
  init = {type_}[] constant({init})
  ROOT r = {type_}[] reduce(k, init), dimensions={{{",".join(map(str, range(len(dims))))}}}, to_apply=combine
}}"""
    compiled, oracle = cyxla.compile(text), cyxla.compile(text, platform="interpreter")
    assert bound == 1 or f"dimension {axis} is combined below" in str(compiled.explain())
    dtype = cyxla.hlo.parse_module(text).parameters[0].shape.dtype.numpy_dtype
    x = np.random.default_rng(1).integers(-2, 4, dims).astype(dtype)
    for size in (0, 1, 2, 31, 33, bound // 3, bound // 2, bound - 1, bound, bound + 9):
        got, want = (np.asarray(f(x, np.int64(size + 1))) for f in (compiled, oracle))
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=1e-12, err_msg=str(size))


#: Types, dimensions of two operands and the contracted dimension of each, by the kernel of the product.
STOPPED_PRODUCTS = {
    "inner product of floats": ("f64", (90,), (90,), 0, 0),
    "short inner product": ("f64", (12,), (12,), 0, 0),
    "inner products of one row": ("f32", (90,), (40, 90), 0, 1),
    "combination of rows": ("f32", (90,), (90, 40), 0, 0),
    "tiles": ("f32", (30, 90), (90, 40), 1, 0),
    "inner product of integers": ("s32", (150,), (150,), 0, 0),
    "short inner product of integers": ("s32", (22,), (22,), 0, 0),
    "tiles of integers": ("s32", (30, 90), (90, 40), 1, 0),
    "halves of words": ("s16", (30, 90), (90, 40), 1, 0),
}


def repeated_and_masked(name, number, type_, shape, axis):
    """Return the lines of an operand whose elements are repeated and masked along an axis: its rows are cut exactly."""
    dims, half = ",".join(map(str, shape)), [n // 2 if d == axis else n for d, n in enumerate(shape)]
    pairs = [*half[: axis + 1], 2, *half[axis + 1 :]]
    kept = ",".join(str(d) for d in range(len(pairs)) if d != axis + 1)
    return f"""
  {name} = {type_}[{",".join(map(str, half))}] parameter({number})
  {name}p = {type_}[{",".join(map(str, pairs))}] broadcast({name}), dimensions={{{kept}}}
  {name}r = {type_}[{dims}] reshape({name}p)
  {name}i = s32[{dims}] iota(), iota_dimension={axis}
  {name}n = s32[{dims}] broadcast(n), dimensions={{}}
  {name}l = pred[{dims}] compare({name}i, {name}n), direction=LT
  {name}z = {type_}[{dims}] broadcast(zero), dimensions={{}}
  {name}k = {type_}[{dims}] select({name}l, {name}r, {name}z)"""


@pytest.mark.parametrize("kind", STOPPED_PRODUCTS)
def test_sums_of_products_read_nothing_beyond_their_size(kind):
    """Memory beyond it keeps the great numbers of an earlier call."""
    type_, *dims, left, right = STOPPED_PRODUCTS[kind]
    axes, bound = (left, right), dims[0][left]
    free = ",".join(str(n) for shape, axis in zip(dims, axes, strict=True) for d, n in enumerate(shape) if d != axis)
    operands = [repeated_and_masked("ab"[k], k, type_, dims[k], axes[k]) for k in range(2)]
    compiled = cyxla.compile(f"""HloModule m
ENTRY main {{
  n = s32[] parameter(2)
  zero = {type_}[] constant(0)
  {operands[0]}
  {operands[1]}
  ROOT r = {type_}[{free}] dot(ak, bk), lhs_contracting_dims={{{left}}}, rhs_contracting_dims={{{right}}}
}}""")
    assert "is combined below %n alone" in str(compiled.explain())
    dtype = np.dtype({"f": "f", "s": "i"}[type_[0]] + str(int(type_[1:]) // 8))
    rng = np.random.default_rng(0)
    halves = [[n // 2 if d == axis else n for d, n in enumerate(s)] for s, axis in zip(dims, axes, strict=True)]
    small = [rng.integers(-9, 10, half).astype(dtype) for half in halves]
    great = [np.full(half, 12345 if dtype.kind == "i" else np.inf, dtype) for half in halves]
    for size in (0, 1, 2, 7, bound // 2, bound - 1, bound):
        compiled(*great, np.int32(bound))
        cut = [np.repeat(v, 2, axis).take(range(size), axis) for v, axis in zip(small, axes, strict=True)]
        np.testing.assert_array_equal(compiled(*small, np.int32(size)), np.tensordot(*cut, axes), f"size {size}")


UNARY = ("tanh", "negate", "abs", "logistic")
BINARY = ("add", "multiply", "subtract", "maximum")
ROWS, WIDTH = 130, 24
RANDOM_HEAD = """
HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
add_s32 { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = s32[] add(a, b) }
max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }
second { a = f32[] parameter(0) ROOT b = f32[] parameter(1) }
before { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT, type=TOTALORDER }
key { a = f32[] parameter(0) b = f32[] parameter(1) c = s32[] parameter(2) d = s32[] parameter(3)
      ROOT e = pred[] compare(a, b), direction=LT, type=TOTALORDER }
"""


class RandomProgram:
    """A program of rows, of which those below ``n`` matter: two results and a sum over them.

    Its size is the argument ``n`` itself, or inside of a loop a part of the state.
    """

    def __init__(self, seed: int, steps: tuple[str, ...] = ()) -> None:
        self.draw = np.random.default_rng(seed)
        self.shape = f"f32[{ROWS},{WIDTH}]"
        self.steps = steps or tuple(name.removeprefix("step_") for name in dir(self) if name.startswith("step_"))
        self.lines: list[str] = []
        self.made = ["x"]

    def define(self, kind: str, text: str) -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {kind} {text}")
        return name

    def masked(self, name: str, filler: str) -> str:
        return self.define(self.shape, f"select(live, {name}, {filler})")

    def pick(self) -> str:
        return str(self.draw.choice(self.made))

    def random_step(self) -> None:
        self.made.append(getattr(self, f"step_{self.draw.choice(self.steps)}")())

    # -- steps: each takes arrays of rows to another, whose live rows follow from those of its operands

    def step_unary(self) -> str:
        return self.define(self.shape, f"{self.draw.choice(UNARY)}({self.pick()})")

    def step_binary(self) -> str:
        return self.define(self.shape, f"{self.draw.choice(BINARY)}({self.pick()}, {self.pick()})")

    def step_dot(self) -> str:
        return self.define(self.shape, f"dot({self.pick()}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}")

    def step_sum_of_rows(self) -> str:
        along = self.define(f"f32[{ROWS}]", f"reduce({self.pick()}, zero), dimensions={{1}}, to_apply=add")
        return self.define(self.shape, f"broadcast({along}), dimensions={{0}}")

    def step_sum(self) -> str:
        masked = self.masked(self.pick(), "zeros")
        total = self.define(f"f32[{WIDTH}]", f"reduce({masked}, zero), dimensions={{0}}, to_apply=add")
        return self.define(self.shape, f"broadcast({total}), dimensions={{1}}")

    def step_scan(self) -> str:
        window = f"{{size={ROWS}x1 pad={ROWS - 1}_0x0_0}}"
        return self.define(self.shape, f"reduce-window({self.pick()}, zero), window={window}, to_apply=add")

    def step_scan_of_rows(self) -> str:
        window = f"{{size=1x{WIDTH} pad=0_0x0_{WIDTH - 1}}}"
        return self.define(self.shape, f"reduce-window({self.pick()}, zero), window={window}, to_apply=add")

    def step_backward_scan(self) -> str:
        window = f"{{size={ROWS}x1 pad=0_{ROWS - 1}x0_0}}"
        masked = self.masked(self.pick(), "zeros")
        return self.define(self.shape, f"reduce-window({masked}, zero), window={window}, to_apply=add")

    def step_sort(self) -> str:
        masked = self.masked(self.pick(), "nans")
        return self.define(self.shape, f"sort({masked}), dimensions={{0}}, is_stable=true, to_apply=before")

    def step_sort_rows(self) -> str:
        return self.define(self.shape, f"sort({self.pick()}), dimensions={{1}}, to_apply=before")

    def step_argsort(self) -> str:
        masked, numbers = self.masked(self.pick(), "nans"), f"s32[{ROWS},{WIDTH}]"
        both = self.define(
            f"({self.shape}, {numbers})", f"sort({masked}, i), dimensions={{0}}, is_stable=true, to_apply=key"
        )
        order = self.define(numbers, f"get-tuple-element({both}), index=1")
        values = self.define(self.shape, f"convert({order})")
        ordered = self.define(self.shape, f"get-tuple-element({both}), index=0")
        return self.define(self.shape, f"add({values}, {ordered})")

    def step_gather(self) -> str:
        numbers = self.define(f"s32[{ROWS}]", f"slice(rows), slice={{[0:{ROWS}]}}")
        other = self.define(f"s32[{ROWS}]", f"remainder({numbers}, limits)")
        index = self.define(f"s32[{ROWS},1]", f"reshape({other})")
        attrs = "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1"
        source = self.masked(self.pick(), "zeros")
        return self.define(self.shape, f"gather({source}, {index}), {attrs}, slice_sizes={{1,{WIDTH}}}")

    def step_scatter(self) -> str:
        index = self.define(f"s32[{ROWS}]", "select(live_rows, halves, beyond)")
        attrs = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
        into, updates = self.pick(), self.pick()
        return self.define(self.shape, f"scatter({into}, {index}, {updates}), {attrs}, to_apply=add")

    def step_compact(self) -> str:
        column = self.define(f"f32[{ROWS},1]", f"slice({self.pick()}), slice={{[0:{ROWS}],[0:1]}}")
        flat = self.define(f"f32[{ROWS}]", f"reshape({column})")
        above = self.define(f"pred[{ROWS}]", f"compare({flat}, zero_rows), direction=GT")
        mask = self.define(f"pred[{ROWS}]", f"and({above}, live_rows)")
        call = 'custom_call_target="cyxla_compact"'
        both = self.define(f"({self.shape}, s64[])", f"custom-call({mask}, {self.pick()}), {call}")
        return self.define(self.shape, f"get-tuple-element({both}), index=0")

    def step_integer_dot(self) -> str:
        numbers = self.define(f"s32[{ROWS},{WIDTH}]", f"convert({self.pick()})")
        attrs = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
        product = self.define(f"s32[{ROWS},{WIDTH}]", f"dot({numbers}, whole_w), {attrs}")
        return self.define(self.shape, f"convert({product})")

    def step_gram(self) -> str:
        one, other = self.masked(self.pick(), "zeros"), self.masked(self.pick(), "zeros")
        attrs = "lhs_contracting_dims={0}, rhs_contracting_dims={0}"
        square = self.define(f"f32[{WIDTH},{WIDTH}]", f"dot({one}, {other}), {attrs}")
        return self.define(
            self.shape, f"dot({self.pick()}, {square}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
        )

    def step_integer_gram(self) -> str:
        numbers = self.define(f"s32[{ROWS},{WIDTH}]", f"convert({self.pick()})")
        masked = self.define(f"s32[{ROWS},{WIDTH}]", f"select(live, {numbers}, whole_zeros)")
        attrs = "lhs_contracting_dims={0}, rhs_contracting_dims={0}"
        square = self.define(f"s32[{WIDTH},{WIDTH}]", f"dot({masked}, {masked}), {attrs}")
        product = self.define(f"f32[{WIDTH},{WIDTH}]", f"convert({square})")
        return self.define(
            self.shape, f"dot({self.pick()}, {product}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
        )

    def step_transpose(self) -> str:
        turned = f"f32[{WIDTH},{ROWS}]"
        there = self.define(turned, f"transpose({self.pick()}), dimensions={{1,0}}")
        between = self.define(turned, f"tanh({there})")
        return self.define(self.shape, f"transpose({between}), dimensions={{1,0}}")

    def step_update(self) -> str:
        at = self.define("s32[]", f"constant({self.draw.integers(WIDTH)})")
        attrs = f"dynamic_slice_sizes={{{ROWS},1}}"
        into, other = self.pick(), self.pick()
        old = self.define(f"f32[{ROWS},1]", f"dynamic-slice({into}, no_rows, {at}), {attrs}")
        new = self.define(f"f32[{ROWS},1]", f"dynamic-slice({other}, no_rows, no_rows), {attrs}")
        flat_mask = self.define(f"pred[{ROWS},1]", "reshape(live_rows)")
        kept = self.define(f"f32[{ROWS},1]", f"select({flat_mask}, {new}, {old})")
        return self.define(self.shape, f"dynamic-update-slice({into}, {kept}, no_rows, {at})")

    # -- the program

    def body(self, length: int) -> list[str]:
        """Return the lines of some random steps."""
        for _ in range(length):
            self.random_step()
        return self.lines

    def constants(self) -> list[str]:
        """Return the lines before the steps, which define the mask from ``n``, and the numbers that they need."""
        flat = f"[{ROWS}]"
        return [
            "zero = f32[] constant(0)", "least = f32[] constant(-inf)", "nan = f32[] constant(nan)",
            f"zeros = {self.shape} broadcast(zero), dimensions={{}}",
            f"lows = {self.shape} broadcast(least), dimensions={{}}",
            f"nans = {self.shape} broadcast(nan), dimensions={{}}",
            f"i = s32[{ROWS},{WIDTH}] iota(), iota_dimension=0", f"s = s32[{ROWS},{WIDTH}] broadcast(n), dimensions={{}}",
            f"live = pred[{ROWS},{WIDTH}] compare(i, s), direction=LT",
            f"rows = s32{flat} iota(), iota_dimension=0", f"size_rows = s32{flat} broadcast(n), dimensions={{}}",
            f"live_rows = pred{flat} compare(rows, size_rows), direction=LT",
            "two = s32[] constant(2)", f"twos = s32{flat} broadcast(two), dimensions={{}}",
            f"halves = s32{flat} divide(rows, twos)", "far = s32[] constant(1000)",
            f"beyond = s32{flat} broadcast(far), dimensions={{}}", f"zero_rows = f32{flat} broadcast(zero), dimensions={{}}",
            "limit = s32[] constant(17)", f"limits = s32{flat} broadcast(limit), dimensions={{}}",
            "no_rows = s32[] constant(0)", f"whole_zeros = s32[{ROWS},{WIDTH}] broadcast(no_rows), dimensions={{}}",
            f"whole_w = s32[{WIDTH},{WIDTH}] convert(w)",
        ]  # fmt: skip

    def text(self) -> str:
        """Return the program: (sum, rows, rows, size) of (x, n, w)."""
        lines = self.body(int(self.draw.integers(4, 14)))
        most = self.define(
            f"f32[{WIDTH}]", f"reduce({self.masked(self.made[-1], 'lows')}, least), dimensions={{0}}, to_apply=max"
        )
        first, second = self.draw.choice(self.made[1:], 2)
        head = [f"x = {self.shape} parameter(0)", "n = s32[] parameter(1)", f"w = f32[{WIDTH},{WIDTH}] parameter(2)"]
        root = f"ROOT o = (f32[{WIDTH}], {self.shape}, {self.shape}, s32[]) tuple({most}, {first}, {second}, n)"
        return RANDOM_HEAD + "ENTRY main {\n" + "\n".join([*head, *self.constants(), *lines, root, "}\n"])

    def loop_text(self, *, grows: bool, branches: bool = False) -> str:
        """Return a program that runs the steps three times, with a size that the loop carries.

        Parameters
        ----------
        grows : bool
            Whether the size grows.
        branches : bool
            Whether the second of the iterations takes another branch, which runs no steps.
        """
        lines = self.body(int(self.draw.integers(2, 8)))
        state = f"(s32[], {self.shape}, s32[], f32[{WIDTH},{WIDTH}])"
        size = "n_next = s32[] add(n, two)" if grows else "n_next = s32[] copy(n)"
        next_x = self.masked(self.made[-1], "lows") if grows else self.made[-1]
        body = [
            f"p = {state} parameter(0)", "k = s32[] get-tuple-element(p), index=0", f"x = {self.shape} get-tuple-element(p), index=1",
            "n = s32[] get-tuple-element(p), index=2", f"w = f32[{WIDTH},{WIDTH}] get-tuple-element(p), index=3",
            *self.constants(), *lines, "one = s32[] constant(1)", "k_next = s32[] add(k, one)", size,
            f"bounded = {self.shape} tanh({next_x})",
            f"ROOT o = {state} tuple(k_next, bounded, n_next, w)",
        ]  # fmt: skip
        condition = [
            f"p = {state} parameter(0)", "k = s32[] get-tuple-element(p), index=0", "three = s32[] constant(3)",
            "ROOT c = pred[] compare(k, three), direction=LT",
        ]  # fmt: skip
        main = [
            f"x = {self.shape} parameter(0)", "n = s32[] parameter(1)", f"w = f32[{WIDTH},{WIDTH}] parameter(2)",
            "k = s32[] constant(0)", f"t = {self.shape} tanh(x)", f"start = {state} tuple(k, t, n, w)",
            f"end = {state} while(start), condition=condition, body=body",
            f"y = {self.shape} get-tuple-element(end), index=1", "size = s32[] get-tuple-element(end), index=2",
            f"z = {self.shape} negate(y)", f"ROOT o = ({self.shape}, {self.shape}, s32[]) tuple(y, z, size)",
        ]  # fmt: skip
        parts = [("body", body), ("condition", condition), ("ENTRY main", main)]
        if branches:
            parts = [("step", body), ("other", self._other_branch(state)), ("body", self._branching(state)), *parts[1:]]
        return RANDOM_HEAD + "\n".join(f"{name} {{\n" + "\n".join(lines) + "\n}" for name, lines in parts) + "\n"

    def _branching(self, state: str) -> list[str]:
        return [
            f"p = {state} parameter(0)", "k = s32[] get-tuple-element(p), index=0", "one = s32[] constant(1)",
            "is_second = pred[] compare(k, one), direction=EQ",
            f"ROOT o = {state} conditional(is_second, p, p), true_computation=other, false_computation=step",
        ]  # fmt: skip

    def _other_branch(self, state: str) -> list[str]:
        return [
            f"p = {state} parameter(0)", "k = s32[] get-tuple-element(p), index=0", f"x = {self.shape} get-tuple-element(p), index=1",
            "n = s32[] get-tuple-element(p), index=2", f"w = f32[{WIDTH},{WIDTH}] get-tuple-element(p), index=3",
            "one = s32[] constant(1)", "k_next = s32[] add(k, one)", f"y = {self.shape} negate(x)",
            f"ROOT o = {state} tuple(k_next, y, n, w)",
        ]  # fmt: skip


#: Steps whose sums are rounded in another order where another program fuses them otherwise.
ROUNDED = frozenset({"sum", "gram", "integer_gram", "sum_of_rows"})
STEPS = sorted(name.removeprefix("step_") for name in dir(RandomProgram) if name.startswith("step_"))
EXACT = tuple(s for s in STEPS if s not in ROUNDED)


def agree(got: np.ndarray, want: np.ndarray) -> None:
    """Assert that arrays agree up to the rounding of sums, of values that steps have made large or infinite."""
    most = np.abs(want).max(initial=1.0, where=np.isfinite(want))
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * most)


def same(got: np.ndarray, want: np.ndarray, steps: tuple[str, ...]) -> None:
    """Assert that arrays have the same bits, or agree if a step sums in an order of its own."""
    if ROUNDED.isdisjoint(steps):
        assert got.tobytes() == want.tobytes()
    else:
        agree(got, want)


def check_random_program(seed: int, steps: tuple[str, ...] = EXACT) -> None:
    """Compare a random program with one that computes all elements, which knows no mask."""
    text = RandomProgram(seed, steps).text()
    whole = cyxla.compile(text.replace("direction=LT\n", "direction=LE\n"))
    live = cyxla.compile(text, live_results=((1, 0, 3), (2, 0, 3)))
    rng = np.random.default_rng(seed)
    x, w = rng.standard_normal((ROWS, WIDTH), np.float32), rng.standard_normal((WIDTH, WIDTH), np.float32)
    for size in (0, 1, 33, ROWS):
        live(np.full_like(x, np.nan), np.int32(ROWS), w)
        got, want = live(x, np.int32(size), w), whole(x, np.int32(size - 1), w)
        for a, b in zip(got[:3], want[:3], strict=True):
            rows = slice(size if a.ndim == 2 else None)
            same(a[rows], b[rows], steps)


def check_random_loop(seed: int, steps: tuple[str, ...] = EXACT, *, branches: bool = False) -> None:
    """Compare a random loop that carries an array and its size with one that computes all elements."""
    text = RandomProgram(seed, steps).loop_text(grows=bool(seed % 2), branches=branches)
    whole = cyxla.compile(
        text.replace("direction=LT\n", "direction=LE\n").replace(
            "compare(k, three), direction=LE", "compare(k, three), direction=LT"
        )
    )
    live = cyxla.compile(text, live_results=((0, 0, 2), (1, 0, 2)))
    rng = np.random.default_rng(seed)
    x, w = rng.standard_normal((ROWS, WIDTH), np.float32), rng.standard_normal((WIDTH, WIDTH), np.float32)
    for size in (0, 1, 33, ROWS - 6):
        live(np.full_like(x, np.nan), np.int32(ROWS), w)
        got, want = live(x, np.int32(size), w), whole(x, np.int32(size - 1), w)
        end = int(got[2])
        for a, b in zip(got[:2], want[:2], strict=True):
            same(a[:end], b[:end], steps)


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("seed", range(24))
def test_random_programs_agree_with_programs_that_compute_all_elements(seed):
    check_random_program(seed)


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("seed", range(12))
def test_random_loops_agree_with_loops_that_compute_all_elements(seed):
    check_random_loop(seed)


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("seed", range(12))
def test_random_loops_with_branches_agree_with_loops_that_compute_all_elements(seed):
    check_random_loop(seed, branches=True)


def test_a_branch_computes_live_rows_alone():
    texts = [RandomProgram(0, ("unary",)).loop_text(grows=False, branches=b) for b in (False, True)]
    found = [cyxla.compile(text, live_results=((0, 0, 2), (1, 0, 2))).c_source.count("cyx_live") for text in texts]
    assert found[1] > found[0]  # the other branch is one kernel more


@pytest.mark.slow_but_every(6)
@pytest.mark.parametrize("step", STEPS)
def test_programs_of_one_kind_agree_with_programs_that_compute_all_elements(step):
    check_random_program(7, (step,))
    check_random_loop(7, (step,))


def test_updates_with_elements_that_are_there_need_these():
    """The loop over such an update ends at the size, rounded up: what it writes beyond must be what is there."""
    module = cyxla.hlo.parse_module("""HloModule m
ENTRY e {
  a = s32[4,4] parameter(0)
  u = s32[4,3] parameter(1)
  n = s32[] parameter(2)
  k = s32[] parameter(3)
  index = s32[4,3] iota(), iota_dimension=1
  size = s32[4,3] broadcast(n), dimensions={}
  mask = pred[4,3] compare(index, size), direction=LT
  old = s32[4,3] dynamic-slice(a, k, k), dynamic_slice_sizes={4,3}
  new = s32[4,3] select(mask, u, old)
  ROOT d = s32[4,4] dynamic-update-slice(a, new, k, k)
}""")
    update = module.entry.root
    new = update.operands[1]
    mask, given, old = new.operands
    parts = {ins: part[()] for ins, part in live_rows(module.entry).parts.items() if () in part}
    assert parts[new] == parts[mask] == parts[old] == {}
    assert set(parts[given]) == set(update_part(update, {(): {}})) == {1}


def test_bits_of_elements_matter_where_these_do():
    lines = """
  e = f32[{dims}] exponential(x)
  b = s32[{dims}] bitcast-convert(e)
  o = s32[{dims}] or(b, b)
  f = f32[{dims}] bitcast-convert(o)
  k = f32[{dims}] select(live, f, zeros)
  ROOT r = f32[] reduce(k, zero), dimensions={{0}}, to_apply=add
}}"""
    module = cyxla.hlo.parse_module((HEAD + lines).format(dims=BOUND, type="s64", axis=0))
    parts = live_rows(module.entry).parts
    exponential = next(ins for ins in parts if ins.opcode == "exponential")
    assert set(parts[exponential][()]) == {0}


MASKED_ROWS = """
HloModule m
add {{ a = {t}[] parameter(0) b = {t}[] parameter(1) ROOT c = {t}[] add(a, b) }}
max {{ a = {t}[] parameter(0) b = {t}[] parameter(1) ROOT c = {t}[] maximum(a, b) }}
ENTRY main {{
  x = {t}[9,{bound}] parameter(0)
  n = s64[] parameter(1)
  zero = {t}[] constant(0)
  least = {t}[] constant(-inf)
  zeros = {t}[9,{bound}] broadcast(zero), dimensions={{}}
  lows = {t}[9,{bound}] broadcast(least), dimensions={{}}
  i = s64[9,{bound}] iota(), iota_dimension=1
  s = s64[9,{bound}] broadcast(n), dimensions={{}}
  live = pred[9,{bound}] compare(i, s), direction=LT
  y = {t}[9,{bound}] multiply(x, x)
  k = {t}[9,{bound}] select(live, y, lows)
  m = {t}[9] reduce(k, least), dimensions={{1}}, to_apply=max
  ms = {t}[9,{bound}] broadcast(m), dimensions={{0}}
  d = {t}[9,{bound}] subtract(y, ms)
  f = {t}[9,{bound}] select(live, d, zeros)
  total = {t}[9] reduce(f, zero), dimensions={{1}}, to_apply=add
  ROOT o = ({t}[9], {t}[9]) tuple(m, total)
}}
"""


@pytest.mark.parametrize("bound", [320, 330])  # whole rounds of all lanes, or not
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_elements_beyond_the_size_are_left_out(dtype, bound):
    """The last round of lanes may read them: they are NaN."""
    text = MASKED_ROWS.format(t=dtype, bound=bound)
    compiled, oracle = (cyxla.compile(text, platform=p) for p in ("cpu", "interpreter"))
    for n in (*range(70), bound - 17, bound - 1, bound):
        x = np.random.default_rng(n).standard_normal((9, bound)).astype(compiled.inputs[0].dtype.numpy_dtype)
        x[:, n:] = np.nan
        for got, want in zip(compiled(x, n), oracle(x, n), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5 if dtype == "f32" else 1e-12)
