"""Claims: a warm call of `a + 1` on 8 floats takes at most 0.3 us, with three arguments 0.35 us, with ten 0.5 us."""

import numpy as np
import pytest

import cyxla

PROGRAM = """
ENTRY e {
  a = f32[8] parameter(0)
  one = f32[] constant(1)
  ones = f32[8] broadcast(one), dimensions={}
  ROOT r = f32[8] add(a, ones)
}
"""


def test_add_one(benchmark, claim, best_time):
    a = np.arange(8, dtype=np.float32)
    add_one = cyxla.compile(PROGRAM)
    np.testing.assert_array_equal(add_one(a), a + 1)
    claim("warm call of a + 1 on 8 floats", best_time(lambda: add_one(a)) * 1e6, "us", at_most=0.3)
    claim("  the same in NumPy", best_time(lambda: a + np.float32(1)) * 1e6, "us")
    benchmark(add_one, a)


@pytest.mark.parametrize("count, at_most", [(1, 0.3), (3, 0.35), (10, 0.5)])
def test_arrays(benchmark, claim, best_time, count, at_most):
    """Several arguments, one result."""
    text = "ENTRY e { " + " ".join(f"p{k} = f32[16] parameter({k})" for k in range(count)) + " s0 = f32[16] negate(p0)"
    text += "".join(f" s{k} = f32[16] add(s{k - 1}, p{k})" for k in range(1, count))
    text += f" ROOT r = f32[16] negate(s{count - 1}) }}"
    args = [np.full(16, k, np.float32) for k in range(count)]
    run = cyxla.compile(text)
    np.testing.assert_array_equal(run(*args), args[0] - sum(args[1:]))
    claim(f"warm call with {count} arrays", best_time(lambda: run(*args)) * 1e6, "us", at_most=at_most)
    benchmark(run, *args)


def test_ten_arrays(benchmark, claim, best_time):
    text = "ENTRY e { " + " ".join(f"p{k} = f32[8] parameter({k})" for k in range(10))
    text += " " + " ".join(f"n{k} = f32[8] negate(p{k})" for k in range(10))
    text += " ROOT t = (" + ", ".join(["f32[8]"] * 10) + ") tuple(" + ", ".join(f"n{k}" for k in range(10)) + ") }"
    args = [np.full(8, k, np.float32) for k in range(10)]
    negate = cyxla.compile(text)
    np.testing.assert_array_equal(negate(*args)[3], -args[3])
    claim("warm call of ten arrays in, ten out", best_time(lambda: negate(*args)) * 1e6, "us", at_most=1.0)
    benchmark(negate, *args)
