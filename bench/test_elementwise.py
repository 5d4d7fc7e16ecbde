"""Claims: exp and a chain of ten operations on 16M floats reach 80 % of the bandwidth of a copy.

They are faster than NumPy for 256 elements and more.
"""

import numpy as np
import pytest

import cyxla

LARGE = 16 * 2**20
CHAIN = """
ENTRY e {{
  x = f32[{n}] parameter(0)
  c = f32[] constant(0.5)
  h = f32[{n}] broadcast(c), dimensions={{}}
  a = f32[{n}] multiply(x, h)
  b = f32[{n}] add(a, x)
  d = f32[{n}] subtract(b, h)
  f = f32[{n}] abs(d)
  g = f32[{n}] maximum(f, h)
  i = f32[{n}] multiply(g, g)
  j = f32[{n}] minimum(i, x)
  k = f32[{n}] negate(j)
  l = f32[{n}] add(k, g)
  ROOT m = f32[{n}] multiply(l, h)
}}
"""
EXP = "ENTRY e {{ x = f32[{n}] parameter(0) ROOT r = f32[{n}] exponential(x) }}"


def chain_in_numpy(x):
    h = np.float32(0.5)
    d = x * h + x - h
    g = np.maximum(np.abs(d), h)
    return (-np.minimum(g * g, x) + g) * h


PROGRAMS = {"exp": (EXP, np.exp), "chain of 10": (CHAIN, chain_in_numpy)}


@pytest.mark.parametrize("name", PROGRAMS)
def test_large(benchmark, against, machine, name):
    text, by_numpy = PROGRAMS[name]
    x = np.random.default_rng(0).standard_normal(LARGE, dtype=np.float32)
    run = cyxla.compile(text.format(n=LARGE))
    np.testing.assert_allclose(run(x), by_numpy(x), rtol=1e-5, atol=1e-6)
    against(f"{name} over 16M floats", "GB/s", machine.copy, 2 * x.nbytes, run, (x,), at_least=0.8)
    benchmark.extra_info["bytes_moved"] = 2 * x.nbytes
    benchmark(run, x)


@pytest.mark.parametrize("n", [2**8, 2**12, 2**16, 2**20])
@pytest.mark.parametrize("name", PROGRAMS)
def test_against_numpy(benchmark, claim, best_time, name, n):
    text, by_numpy = PROGRAMS[name]
    x = np.random.default_rng(0).standard_normal(n, dtype=np.float32)
    run = cyxla.compile(text.format(n=n))
    np.testing.assert_allclose(run(x), by_numpy(x), rtol=1e-5, atol=1e-6)
    claim(
        f"{name}, {n} floats: times as fast as NumPy",
        best_time(lambda: by_numpy(x), 0.2) / best_time(lambda: run(x), 0.2),
        "x",
        at_least=1,
    )
    benchmark(run, x)
