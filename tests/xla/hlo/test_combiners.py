"""Combiners of reductions: computations that commute are told from those that may not."""

import pytest

from cyxla.xla.hlo import parse_module
from cyxla.xla.hlo.combiners import is_commutative

LOG_SUM = "m = f32[] maximum(a, b) p = f32[] subtract(a, m) q = f32[] subtract(b, m) ROOT r = f32[] add(p, q)"
COMMUTES = {
    "sum": ("ROOT r = f32[] add(b, a)", True),
    "distance": ("d = f32[] subtract(b, a) ROOT r = f32[] abs(d)", True),
    "from the larger": (LOG_SUM, True),
    "equal": ("e = pred[] compare(a, b), direction=EQ ROOT r = f32[] convert(e)", True),
    "constants": ("c = f32[] constant(2) s = f32[] multiply(b, a) ROOT r = f32[] subtract(s, c)", True),
    "constants that differ": (
        "c = f32[] constant(2) d = f32[] constant(3) s = f32[] multiply(a, c) t = f32[] multiply(b, d) "
        "ROOT r = f32[] add(s, t)",
        False,
    ),
    "less": ("e = pred[] compare(a, b), direction=LT ROOT r = f32[] convert(e)", False),
    "difference": ("ROOT r = f32[] subtract(a, b)", False),
    "last": ("ROOT r = f32[] copy(b)", False),
}


@pytest.mark.parametrize("body, commutes", COMMUTES.values(), ids=COMMUTES)
def test_commutative(body, commutes):
    text = f"HloModule m\nENTRY f {{ a = f32[] parameter(0) b = f32[] parameter(1) {body} }}"
    assert is_commutative(parse_module(text).entry) is commutes


def test_distances_of_unsigned_numbers_do_not_commute():
    body = "a = u8[] parameter(0) b = u8[] parameter(1) d = u8[] subtract(a, b) ROOT r = u8[] abs(d)"
    assert not is_commutative(parse_module(f"HloModule m\nENTRY f {{ {body} }}").entry)


@pytest.mark.parametrize("second, commutes", [("multiply(b, d)", True), ("subtract(b, d)", False)])
def test_commutative_in_pairs(second, commutes):
    text = f"""HloModule m
ENTRY f {{ a = f32[] parameter(0) b = f32[] parameter(1) c = f32[] parameter(2) d = f32[] parameter(3)
 p = f32[] add(a, c) q = f32[] {second} ROOT r = (f32[], f32[]) tuple(p, q) }}"""
    assert is_commutative(parse_module(text).entry) is commutes
