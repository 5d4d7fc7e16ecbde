"""Claims: reductions, softmax and layer norm of arrays in main memory run at 80 % of its bandwidth."""

import numpy as np
import pytest
from machine import aligned

import cyxla

SHAPE = (16384, 2048)
ADD = "add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) } "
MAX = "max { x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] maximum(x, y) } "
SUM = (
    "ENTRY e {{ a = f32[16384,2048] parameter(0) z = f32[] constant(0) "
    "ROOT r = f32[{to}] reduce(a, z), dimensions={{{over}}}, to_apply=add }}"
)
SOFTMAX = (
    ADD
    + MAX
    + """ENTRY e {
  a = f32[16384,2048] parameter(0)
  low = f32[] constant(-inf)
  m = f32[16384] reduce(a, low), dimensions={1}, to_apply=max
  mm = f32[16384,2048] broadcast(m), dimensions={0}
  d = f32[16384,2048] subtract(a, mm)
  p = f32[16384,2048] exponential(d)
  z = f32[] constant(0)
  s = f32[16384] reduce(p, z), dimensions={1}, to_apply=add
  ss = f32[16384,2048] broadcast(s), dimensions={0}
  ROOT r = f32[16384,2048] divide(p, ss)
}"""
)
NORM = (
    ADD
    + """ENTRY e {
  a = f32[16384,2048] parameter(0)
  g = f32[2048] parameter(1)
  b = f32[2048] parameter(2)
  z = f32[] constant(0)
  k = f32[] constant(0.00048828125)
  kk = f32[16384] broadcast(k), dimensions={}
  s = f32[16384] reduce(a, z), dimensions={1}, to_apply=add
  u = f32[16384] multiply(s, kk)
  uu = f32[16384,2048] broadcast(u), dimensions={0}
  c = f32[16384,2048] subtract(a, uu)
  q = f32[16384,2048] multiply(c, c)
  t = f32[16384] reduce(q, z), dimensions={1}, to_apply=add
  v = f32[16384] multiply(t, kk)
  e = f32[] constant(1e-5)
  ee = f32[16384] broadcast(e), dimensions={}
  w = f32[16384] add(v, ee)
  i = f32[16384] rsqrt(w)
  ii = f32[16384,2048] broadcast(i), dimensions={0}
  n = f32[16384,2048] multiply(c, ii)
  gg = f32[16384,2048] broadcast(g), dimensions={1}
  h = f32[16384,2048] multiply(n, gg)
  bb = f32[16384,2048] broadcast(b), dimensions={1}
  ROOT r = f32[16384,2048] add(h, bb)
}"""
)


@pytest.fixture(scope="module")
def a():
    made = aligned(4 * SHAPE[0] * SHAPE[1])  # as what the limit is measured on, and as every result
    np.random.default_rng(0).standard_normal(out=made, dtype=np.float32)
    return made.reshape(SHAPE)


@pytest.mark.parametrize(
    "name, to, over, axis", [("all", "", "0,1", None), ("rows", "16384", "1", 1), ("columns", "2048", "0", 0)]
)
def test_sum(benchmark, against, machine, a, name, to, over, axis):
    run = cyxla.compile(ADD + SUM.format(to=to, over=over))
    np.testing.assert_allclose(run(a), a.sum(axis, dtype=np.float64), rtol=1e-3, atol=5e-2)
    against(f"sum of {name}, 128 MiB", "GB/s", machine.read, a.nbytes, run, (a,), at_least=0.8)
    benchmark(run, a)


def softmax(a):
    p = np.exp(a - a.max(1, keepdims=True))
    return p / p.sum(1, keepdims=True)


def norm(a, g, b):
    c = a - a.mean(1, keepdims=True)
    return c / np.sqrt((c * c).mean(1, keepdims=True) + 1e-5) * g + b


@pytest.mark.parametrize("name, text, by_numpy", [("softmax", SOFTMAX, softmax), ("layer norm", NORM, norm)])
def test_row_group(benchmark, against, machine, a, name, text, by_numpy):
    args = (a,) if by_numpy is softmax else (a, *np.random.default_rng(1).standard_normal((2, SHAPE[1])).astype("f4"))
    run = cyxla.compile(text)
    np.testing.assert_allclose(run(*args), by_numpy(*args), rtol=1e-3, atol=1e-4)
    against(f"{name}, 128 MiB in and out", "GB/s", machine.copy, 2 * a.nbytes, run, args, at_least=0.8)
    benchmark(run, *args)
