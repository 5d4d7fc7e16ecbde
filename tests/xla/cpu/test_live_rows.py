"""Kernels over arrays of which a leading part alone matters, whose size is known at run time."""

# ruff: noqa: E501  programs read best a line at a time

import numpy as np
import pytest
from support.programs import assert_same

import cyxla

BOUND = 640
SIZES = (-1, 0, 1, 7, 300, BOUND - 1, BOUND, BOUND + 5)
HEAD = """
HloModule m
add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
max {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }}
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


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n != "a size that is computed"])
def test_live_elements_have_the_bits_of_a_program_that_computes_all_elements(name):
    text, x = text_of(name), argument(name)
    whole = text.replace("direction=LT", "direction=LE").replace(
        "compare(u, h), direction=GT", "compare(u, h), direction=GE"
    )
    compiled, reference = cyxla.compile(text), cyxla.compile(whole)
    assert "cyx_live_steps" in compiled.c_source
    assert "cyx_live_steps" not in reference.c_source
    for size in SIZES:
        compiled(np.full_like(x, np.nan), np.int32(BOUND))
        for got, want in zip(compiled(x, np.int32(size)), reference(x, np.int32(size - 1)), strict=True):
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
def test_results_beyond_their_size_are_not_written(size):
    live = cyxla.compile(CHAIN, live_results=((0, 0, 2), (1, 0, 2)))
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


@pytest.mark.parametrize("live_results", [((3, 0, 2),), ((0, 2, 2),), ((0, 0, 1),), ((0, 0, 3),)])
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


UNARY = ("tanh", "negate", "abs", "logistic")
BINARY = ("add", "multiply", "subtract", "maximum")
ROWS, WIDTH = 130, 24


def random_program(seed: int) -> str:
    """Return a program of rows, of which those below ``n`` matter: two results and a sum over them."""
    draw = np.random.default_rng(seed)
    shape, flat = f"f32[{ROWS},{WIDTH}]", f"f32[{ROWS}]"
    lines, made = [], ["x"]

    def define(kind: str, text: str) -> str:
        name = f"v{len(lines)}"
        lines.append(f"{name} = {kind} {text}")
        return name

    def masked(name: str, filler: str) -> str:
        return define(shape, f"select(live, {name}, {filler})")

    for _ in range(draw.integers(4, 14)):
        one, other = draw.choice(made, 2)
        match draw.integers(6):
            case 0 | 1:
                made.append(define(shape, f"{draw.choice(UNARY)}({one})"))
            case 2:
                made.append(define(shape, f"{draw.choice(BINARY)}({one}, {other})"))
            case 3:
                made.append(define(shape, f"dot({one}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"))
            case 4:
                along = define(flat, f"reduce({one}, zero), dimensions={{1}}, to_apply=add")
                made.append(define(shape, f"broadcast({along}), dimensions={{0}}"))
            case 5:
                total = define(f"f32[{WIDTH}]", f"reduce({masked(one, 'zeros')}, zero), dimensions={{0}}, to_apply=add")
                made.append(define(shape, f"broadcast({total}), dimensions={{1}}"))
    most = define(f"f32[{WIDTH}]", f"reduce({masked(made[-1], 'lows')}, least), dimensions={{0}}, to_apply=max")
    first, second = draw.choice(made[1:], 2)
    head = HEAD.format(dims=f"{ROWS},{WIDTH}", type="s32", axis=0)
    weights = f"w = f32[{WIDTH},{WIDTH}] parameter(2)"
    root = f"ROOT o = (f32[{WIDTH}], {shape}, {shape}, s32[]) tuple({most}, {first}, {second}, n)"
    return head + "\n".join([weights, *lines, root, "}\n"])


@pytest.mark.parametrize("seed", range(24))
def test_random_programs_agree_with_programs_that_compute_all_elements(seed):
    text = random_program(seed)
    whole = cyxla.compile(text.replace("direction=LT", "direction=LE"))
    live = cyxla.compile(text, live_results=((1, 0, 3), (2, 0, 3)))
    rng = np.random.default_rng(seed)
    x, w = rng.standard_normal((ROWS, WIDTH), np.float32), rng.standard_normal((WIDTH, WIDTH), np.float32)
    for size in (0, 1, 33, ROWS):
        live(np.full_like(x, np.nan), np.int32(ROWS), w)
        got, want = live(x, np.int32(size), w), whole(x, np.int32(size - 1), w)
        for a, b in zip(got[:3], want[:3], strict=True):
            rows = slice(size if a.ndim == 2 else None)
            most = np.abs(b[rows]).max(initial=1.0, where=np.isfinite(b[rows]))
            np.testing.assert_allclose(a[rows], b[rows], rtol=0, atol=1e-5 * most)
