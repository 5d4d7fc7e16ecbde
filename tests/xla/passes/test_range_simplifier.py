"""Ranges of loop counters: what they decide, and what they do not."""

# ruff: noqa: E501  programs read best a line at a time

import pytest

from cyxla.xla.hlo import parse_module
from cyxla.xla.passes.simplify import loop_updates, range_simplifier, simplification
from cyxla.xla.passes.simplify.index_ranges import IndexRanges

LOOP = """HloModule m
step {{
  s = (s64[], s64[], f32[60]) parameter(0)
  i = s64[] get-tuple-element(s), index=0
  n = s64[] get-tuple-element(s), index=1
  a = f32[60] get-tuple-element(s), index=2
  one = s64[] constant(1)
  zero = s64[] constant(0)
  size = s64[] constant(60)
  j = s64[] add(i, one)
{body}
  ROOT t = (s64[], s64[], f32[60]) tuple(j, n, {result})
}}
more {{
  s = (s64[], s64[], f32[60]) parameter(0)
  i = s64[] get-tuple-element(s), index=0
  n = s64[] get-tuple-element(s), index=1
  ROOT l = pred[] compare(i, n), direction=LT
}}
ENTRY e {{
  p = f32[60] parameter(0)
  m = s64[] parameter(1)
  zero = s64[] constant(0)
  last = s64[] constant({last})
  bound = s64[] minimum(m, last)
  t = (s64[], s64[], f32[60]) tuple(zero, bound, p)
  w = (s64[], s64[], f32[60]) while(t), condition=more, body=step
  ROOT r = f32[60] get-tuple-element(w), index=2
}}
"""
READ = "r = f32[1] dynamic-slice(a, {index}), dynamic_slice_sizes={{1}} u = f32[60] dynamic-update-slice(a, r, {index})"
CHECKED = {
    "in bounds": ("w = pred[] compare(i, zero), direction=LT x = s64[] add(i, size) k = s64[] select(w, x, i)", 60, "i"),
    "the next one in bounds": (
        "w = pred[] compare(j, size), direction=GE k = s64[] select(w, zero, j)", 59, "add",
    ),
    "clamped": ("x = s64[] maximum(i, zero) k = s64[] minimum(x, size)", 60, "i"),
    "a sum back and forth": ("x = s64[] add(i, size) k = s64[] subtract(x, size)", 60, "i"),
    "may be out of bounds": (
        "w = pred[] compare(j, size), direction=GE k = s64[] select(w, zero, j)", 60, "select",
    ),
    "may be clamped": ("x = s64[] subtract(i, one) k = s64[] maximum(x, zero)", 60, "maximum"),
}  # fmt: skip


@pytest.mark.parametrize("case", CHECKED.values(), ids=CHECKED)
def test_counters_decide_indices(case):
    body, last, expected = case
    module = parse_module(LOOP.format(body=f"{body} {READ.format(index='k')}", result="u", last=last))
    while range_simplifier.run(module):
        simplification.run(module)
    (read,) = [i for c in module.post_order() for i in c.instructions if i.opcode == "dynamic-slice" and i.users]
    index = read.operands[1]
    assert (index.opcode if expected != "i" else index.attrs["index"]) == (0 if expected == "i" else expected)


def test_a_bound_at_run_time_gives_a_range():
    module = parse_module(LOOP.format(body="", result="a", last=40))
    ranges = IndexRanges(module.entry)
    (loop,) = [i for i in module.entry.instructions if i.opcode == "while"]
    assert ranges.element(loop.called[0].parameters[0], 0) == (0, 39)
    assert ranges.element(loop, 0) == (0, 40)


UPDATES = {
    "pieces": (
        "h = f32[1] slice(a), slice={[0:1]} b = f32[58] slice(a), slice={[1:59]} e = f32[58] exponential(b) "
        "t1 = f32[1] slice(a), slice={[59:60]} u = f32[60] concatenate(h, e, t1), dimensions={0}"
    ),
    "a slice of a slice": (
        "h = f32[58] slice(a), slice={[1:59]} q = f32[1] constant({5}) v = f32[58] dynamic-update-slice(h, q, one) "
        "u = f32[60] dynamic-update-slice(a, v, one)"
    ),
    "a box of a mask": (
        "y = pred[] constant(true) no = pred[] constant(false) ys = pred[58] broadcast(y), dimensions={} "
        "k = pred[60] pad(ys, no), padding=1_1 b = f32[58] slice(a), slice={[2:60]} e = f32[58] exponential(b) "
        "f = f32[] constant(0) v = f32[60] pad(e, f), padding=1_1 u = f32[60] select(k, v, a)"
    ),
}


@pytest.mark.parametrize("body", UPDATES.values(), ids=UPDATES)
def test_writes_are_updates_of_the_state(body):
    module = parse_module(LOOP.format(body=body, result="u", last=60))
    assert loop_updates.run(module)
    (loop,) = [i for i in module.entry.instructions if i.opcode == "while"]
    update = loop.called[0].root.operands[2]
    assert update.opcode == "dynamic-update-slice"
    assert update.operands[0].opcode == "get-tuple-element"
    assert update.operands[1].shape.dims != (60,)


@pytest.mark.parametrize("left, is_update", [(1, True), (0, False), (2, False)])
def test_pieces_computed_from_elements_around_them_make_a_new_array(left, is_update):
    body = f"""
  new = f32[58] slice(a), slice={{[{left}:{left + 58}]}}
  twice = f32[58] add(new, new)
  low = f32[1] slice(a), slice={{[0:1]}}
  high = f32[1] slice(a), slice={{[59:60]}}
  u = f32[60] concatenate(low, twice, high), dimensions={{0}}"""
    module = parse_module(LOOP.format(body=body, result="u", last=60))
    assert loop_updates.run(module) == is_update
    (loop,) = [i for i in module.entry.instructions if i.opcode == "while"]
    assert loop.called[0].root.operands[2].opcode == ("dynamic-update-slice" if is_update else "concatenate")


def test_a_program_without_loops_is_left_alone():
    module = parse_module("ENTRY e { i = s64[] constant(3) ROOT x = s64[] maximum(i, i) }")
    assert not range_simplifier.run(module)
    assert not loop_updates.run(module)


def nest(depth):
    """Text of loops in loops, each of which carries a counter and a number that stays within its first range."""
    state, parts = "(s64[], s64[], s64[])", []
    for level in range(depth):
        inner = f"while(t), condition=more{level - 1}, body=step{level - 1}" if level else ""
        body = f"z = s64[] constant(0) t = {state} tuple(z, k, m) w = {state} {inner}" if level else ""
        last = "g = s64[] get-tuple-element(w), index=1" if level else "g = s64[] minimum(k, m)"
        parts.append(f"""
            step{level} {{
              s = {state} parameter(0)
              i = s64[] get-tuple-element(s), index=0
              k = s64[] get-tuple-element(s), index=1
              m = s64[] get-tuple-element(s), index=2
              {body} {last}
              one = s64[] constant(1) j = s64[] add(i, one)
              ROOT r = {state} tuple(j, g, m)
            }}
            more{level} {{
              s = {state} parameter(0)
              i = s64[] get-tuple-element(s), index=0
              n = s64[] constant(9)
              ROOT l = pred[] compare(i, n), direction=LT
            }}""")
    return (
        "HloModule m"
        + "".join(parts)
        + f"""
        ENTRY e {{
          z = s64[] constant(0) five = s64[] constant(5)
          t = {state} tuple(z, five, five)
          w = {state} while(t), condition=more{depth - 1}, body=step{depth - 1}
          ROOT r = s64[] get-tuple-element(w), index=1
        }}"""
    )


@pytest.mark.parametrize("depth", [2, 4])
def test_loops_in_loops_are_visited_a_few_times(depth, monkeypatch):
    visits = []
    visit = IndexRanges._visit
    monkeypatch.setattr(
        IndexRanges, "_visit", lambda self, computation: (visits.append(computation), visit(self, computation))
    )
    module = parse_module(nest(depth))
    known = IndexRanges(module.entry)
    assert known.of(module.entry.root) == (5, 5)
    assert max(visits.count(c) for c in visits) <= depth + 2
