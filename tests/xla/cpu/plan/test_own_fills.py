"""A scatter into zeros that others read, too, writes to zeros of its own, and copies none."""

import numpy as np
import pytest
from support.hlo.differential import flat

import cyxla
from cyxla.xla.evaluator import evaluate

HEAD = """HloModule m
add { a = s64[] parameter(0) b = s64[] parameter(1) ROOT r = s64[] add(a, b) }
two { a = s64[] parameter(0) b = s64[] parameter(1) c = s64[] parameter(2) d = s64[] parameter(3)
  e = s64[] add(a, c) f = s64[] add(b, d) ROOT r = (s64[], s64[]) tuple(e, f) }
ENTRY e { x = s64[9] parameter(0) i = s64[9,1] reshape(x) zero = s64[] constant(0) one = s64[] constant(1)
  ones = s64[9] broadcast(one), dimensions={} zeros = s64[700] broadcast(zero), dimensions={}
"""
WINDOW = "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
COUNTS = f"s = s64[700] scatter(zeros, i, ones), {WINDOW}, to_apply=add"
MASK = """k = s64[700] iota(), iota_dimension=0 n = s64[] reduce(x, zero), dimensions={0}, to_apply=add
  m = s64[700] broadcast(n), dimensions={} live = pred[700] compare(k, m), direction=LT"""

#: Programs, and the bytes that they copy.
CASES = {
    "nothing else reads them": (f"{COUNTS} ROOT r = s64[700] negate(s)", 0),
    "they are the filler of a mask": (
        f"{COUNTS} {MASK} v = s64[700] select(live, s, zeros) ROOT r = s64[] reduce(v, zero), dimensions={{0}}, "
        "to_apply=add", 0,
    ),
    "two scatters": (
        f"{COUNTS} t = s64[700] scatter(zeros, i, x), {WINDOW}, to_apply=add ROOT r = s64[700] subtract(s, t)", 0,
    ),
    "one scatter of two arrays": (
        f"s = (s64[700], s64[700]) scatter(zeros, zeros, i, ones, x), {WINDOW}, to_apply=two "
        "a = s64[700] get-tuple-element(s), index=0 b = s64[700] get-tuple-element(s), index=1 "
        "ROOT r = s64[700] subtract(a, b)", 0,
    ),
    "they are known at run time": (
        "n = s64[] reduce(x, zero), dimensions={0}, to_apply=add y = s64[700] broadcast(n), dimensions={} "
        f"s = s64[700] scatter(y, i, ones), {WINDOW}, to_apply=add ROOT r = (s64[700], s64[700]) tuple(s, y)", 700 * 8,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_scatters(name):
    body, copied = CASES[name]
    text = f"{HEAD} {body} }}"
    x = np.array([3, 5, 3, 0, 699, 12, -1, 700, 5])
    made = cyxla.compile(text)
    for got, want in zip(flat(made(x)), flat(evaluate(cyxla.hlo.parse_module(text), [x])), strict=True):
        np.testing.assert_array_equal(got, want)
    assert sum(c.nbytes for some in made._emitted[1].copies.values() for c in some) == copied
