"""Compiled loops and branches agree with the interpreter, and copy no more than needed."""

# ruff: noqa: E501  programs read best a line at a time

import numpy as np
import pytest
from support.hlo.differential import agree

import cyxla
from cyxla.errors import UnimplementedError
from cyxla.xla.cpu.plan.planner import MAX_NESTING

COUNT = """
more {{
  s = (s32[], {state}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({turns})
  ROOT l = pred[] compare(i, n), direction=LT
}}
step {{
  s = (s32[], {state}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
{body}
}}
ENTRY e {{
{entry}
}}
"""


def loop(state: str, body: str, entry: str, turns: int = 5) -> str:
    return "HloModule m\n" + COUNT.format(state=state, body=body, entry=entry, turns=turns)


@pytest.mark.parametrize("turns", [-1, 0, 1, 4, 5])
def test_state_that_changes_places(turns):
    body = """
  a = f32[8] get-tuple-element(s), index=1
  b = f32[8] get-tuple-element(s), index=2
  c = f32[8] get-tuple-element(s), index=3
  d = f32[8] negate(c)
  ROOT t = (s32[], f32[8], f32[8], f32[8]) tuple(j, b, a, d)"""
    entry = """
  p = f32[8] parameter(0)
  q = f32[8] negate(p)
  z = s32[] constant(0)
  t = (s32[], f32[8], f32[8], f32[8]) tuple(z, p, q, q)
  ROOT w = (s32[], f32[8], f32[8], f32[8]) while(t), condition=more, body=step"""
    agree(loop("f32[8], f32[8], f32[8]", body, entry, turns))


def test_an_update_in_a_loop_is_in_place():
    body = """
  a = f32[64,80] get-tuple-element(s), index=1
  zero = s32[] constant(0)
  row = f32[1,80] dynamic-slice(a, i, zero), dynamic_slice_sizes={1,80}
  new = f32[1,80] exponential(row)
  b = f32[64,80] dynamic-update-slice(a, new, i, zero)
  ROOT t = (s32[], f32[64,80]) tuple(j, b)"""
    entry = """
  p = f32[64,80] parameter(0)
  z = s32[] constant(0)
  t = (s32[], f32[64,80]) tuple(z, p)
  w = (s32[], f32[64,80]) while(t), condition=more, body=step
  ROOT r = f32[64,80] get-tuple-element(w), index=1"""
    executable = agree(loop("f32[64,80]", body, entry, 64))
    (inside,) = executable.c_source.split("for (int64_t t1 = 0; t1 < 64; ++t1)")[1:]
    assert "memcpy" not in inside.split("return CYX_OK")[0]  # not even of the counter


def test_loop_states_are_not_copied():
    body = """
  a = f32[1000] get-tuple-element(s), index=1
  x = f32[] get-tuple-element(s), index=2
  at = f32[1] dynamic-slice(a, i), dynamic_slice_sizes={1}
  y = f32[] reshape(at)
  z = f32[] add(x, y)
  ROOT t = (s32[], f32[1000], f32[]) tuple(j, a, z)"""
    entry = """
  p = f32[1000] parameter(0)
  z = s32[] constant(0)
  x = f32[] constant(0)
  t = (s32[], f32[1000], f32[]) tuple(z, p, x)
  w = (s32[], f32[1000], f32[]) while(t), condition=more, body=step
  ROOT r = f32[] get-tuple-element(w), index=2"""
    executable = agree(loop("f32[1000], f32[]", body, entry, 500), ulp=64)
    assert ", 4000);" not in executable.c_source


def test_a_loop_in_a_loop():
    text = """HloModule m
inner_more { s = (s32[], f32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(3) ROOT l = pred[] compare(i, n), direction=LT }
inner_step {
  s = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[4] get-tuple-element(s), index=1
  y = f32[4] sine(x)
  ROOT t = (s32[], f32[4]) tuple(j, y)
}
more { s = (s32[], f32[4], f32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(4) ROOT l = pred[] compare(i, n), direction=LT }
step {
  s = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[4] get-tuple-element(s), index=1
  y = f32[4] get-tuple-element(s), index=2
  zero = s32[] constant(0)
  t = (s32[], f32[4]) tuple(zero, x)
  w = (s32[], f32[4]) while(t), condition=inner_more, body=inner_step
  x2 = f32[4] get-tuple-element(w), index=1
  u = (s32[], f32[4]) tuple(one, y)
  v = (s32[], f32[4]) while(u), condition=inner_more, body=inner_step
  y2 = f32[4] get-tuple-element(v), index=1
  k = s32[] get-tuple-element(v), index=0
  sum = f32[4] add(x2, y2)
  ROOT r = (s32[], f32[4], f32[4]) tuple(j, sum, x)
}
ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[4], f32[4]) tuple(zero, x, y)
  w = (s32[], f32[4], f32[4]) while(t), condition=more, body=step
  ROOT r = (f32[4], f32[4], s32[]) tuple(get-tuple-element(w), get-tuple-element(w), zero)
}"""
    text = text.replace(
        "ROOT r = (f32[4], f32[4], s32[]) tuple(get-tuple-element(w), get-tuple-element(w), zero)",
        "a = f32[4] get-tuple-element(w), index=1\n  b = f32[4] get-tuple-element(w), index=2\n"
        "  ROOT r = (f32[4], f32[4], s32[]) tuple(a, b, zero)",
    )  # fmt: skip
    agree(text, ulp=32)


BRANCHES = """HloModule m
a { x = f32[4] parameter(0) ROOT r = f32[4] negate(x) }
b { x = f32[4] parameter(0) ROOT r = f32[4] copy(x) }
c { x = f32[4] parameter(0) k = f32[] constant(7) ROOT r = f32[4] broadcast(k), dimensions={} }
ENTRY e {
  s = s32[] parameter(0)
  x = f32[4] parameter(1)
  y = f32[4] exponential(x)
  ROOT r = f32[4] conditional(s, y, x, y), branch_computations={a, b, c}
}"""


def test_a_number_that_is_no_branch_takes_the_last():
    executable = agree(BRANCHES, np.int32(0), np.ones(4, np.float32))
    x = np.arange(4, dtype=np.float32)
    for selector, want in [
        (-(2**31), x * 0 + 7),
        (-1, x * 0 + 7),
        (0, -np.exp(x)),
        (1, x),
        (2, x * 0 + 7),
        (99, x * 0 + 7),
    ]:
        np.testing.assert_allclose(executable(np.int32(selector), x), want, rtol=1e-6)


@pytest.mark.parametrize("choice", [True, False])
def test_branches_on_a_predicate_inside_a_loop(choice):
    text = """HloModule m
up { p = (f32[4], f32[4]) parameter(0) x = f32[4] get-tuple-element(p), index=0 y = f32[4] get-tuple-element(p), index=1 z = f32[4] add(x, y) ROOT r = (f32[4], f32[4]) tuple(z, y) }
swap { p = (f32[4], f32[4]) parameter(0) x = f32[4] get-tuple-element(p), index=0 y = f32[4] get-tuple-element(p), index=1 ROOT r = (f32[4], f32[4]) tuple(y, x) }
more { s = (s32[], pred[], f32[4], f32[4]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(4) ROOT l = pred[] compare(i, n), direction=LT }
step {
  s = (s32[], pred[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  f = pred[] get-tuple-element(s), index=1
  x = f32[4] get-tuple-element(s), index=2
  y = f32[4] get-tuple-element(s), index=3
  p = (f32[4], f32[4]) tuple(x, y)
  c = (f32[4], f32[4]) conditional(f, p, p), true_computation=up, false_computation=swap
  x2 = f32[4] get-tuple-element(c), index=0
  y2 = f32[4] get-tuple-element(c), index=1
  g = pred[] not(f)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT t = (s32[], pred[], f32[4], f32[4]) tuple(j, g, x2, y2)
}
ENTRY e {
  f = pred[] parameter(0)
  x = f32[4] parameter(1)
  y = f32[4] parameter(2)
  zero = s32[] constant(0)
  t = (s32[], pred[], f32[4], f32[4]) tuple(zero, f, x, y)
  ROOT w = (s32[], pred[], f32[4], f32[4]) while(t), condition=more, body=step
}"""
    x, y = np.random.default_rng(0).standard_normal((2, 4)).astype(np.float32)
    agree(text, np.bool_(choice), x, y)


def nested(depth: int) -> str:
    lines = ["HloModule m"]
    for k in range(depth):
        inner = f"while(n), condition=more{k - 1}, body=step{k - 1}" if k else "copy(n)"
        lines.append(
            f"more{k} {{ s = (s32[]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant({k + 1}) ROOT l = pred[] compare(i, n), direction=LT }}"
        )
        lines.append(
            f"step{k} {{ s = (s32[]) parameter(0) i = s32[] get-tuple-element(s), index=0 one = s32[] constant(1) "
            f"j = s32[] add(i, one) n = (s32[]) tuple(j) ROOT w = (s32[]) {inner} }}"
        )
    lines.append(
        f"ENTRY e {{ x = s32[] parameter(0) t = (s32[]) tuple(x) ROOT w = (s32[]) while(t), condition=more{depth - 1}, body=step{depth - 1} }}"
    )
    return "\n".join(lines)


def test_deep_nesting():
    agree(nested(MAX_NESTING), np.int32(0))


def test_deeper_nesting_is_refused():
    with pytest.raises(UnimplementedError, match="nested deeper"):
        cyxla.compile(nested(MAX_NESTING + 1))
    with pytest.raises(UnimplementedError, match="nested deeper"):
        cyxla.compile(nested(2000))
