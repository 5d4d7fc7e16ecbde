"""Interfering values have separate memory, and the arena is not larger than the values that live at once."""

# ruff: noqa: E501  programs read best a line at a time

import numpy as np
import pytest
from support.hlo.differential import arguments
from support.hlo.kernel_groups import flat

import cyxla
from cyxla.xla.cpu.dump import Dump
from cyxla.xla.cpu.lowering import run_passes
from cyxla.xla.cpu.memory import buffers
from cyxla.xla.cpu.memory.liveness import BufferLiveness
from cyxla.xla.cpu.plan.planner import plan
from cyxla.xla.hlo import parse_module
from cyxla.xla.service import CompileOptions

LESS = "less { p = f32[] parameter(0) q = f32[] parameter(1) ROOT r = pred[] compare(p, q), direction=LT }\n"
LOOP = """
more { s = (s32[], f32[2000], f32[2000]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(9) ROOT l = pred[] compare(i, n), direction=LT }
step { s = (s32[], f32[2000], f32[2000]) parameter(0) i = s32[] get-tuple-element(s), index=0 one = s32[] constant(1) j = s32[] add(i, one)
  a = f32[2000] get-tuple-element(s), index=1 b = f32[2000] get-tuple-element(s), index=2
  c = f32[2000] sort(a), dimensions={0}, to_apply=less d = f32[2000] reverse(b), dimensions={0} e = f32[2000] add(c, d)
  ROOT t = (s32[], f32[2000], f32[2000]) tuple(j, e, c) }
"""


def sort(x: str, size: int = 1000) -> str:
    return f"f32[{size}] sort({x}), dimensions={{0}}, to_apply=less"


PROGRAMS = {
    "chain": LESS + f"ENTRY e {{ x = f32[1000] parameter(0) a = {sort('x')} b = {sort('a')} c = {sort('b')} ROOT d = {sort('c')} }}",
    "tree": LESS + f"ENTRY e {{ x = f32[1000] parameter(0) y = f32[1000] parameter(1) a = {sort('x')} b = {sort('y')} c = f32[1000] add(a, b) d = {sort('c')} e = {sort('a')} ROOT f = f32[1000] multiply(d, e) }}",
    "two results": LESS + f"ENTRY e {{ x = f32[1000] parameter(0) a = {sort('x')} n = f32[1000] reverse(a), dimensions={{0}} b = {sort('n')} ROOT t = (f32[1000], f32[1000]) tuple(a, b) }}",
    "loop": LESS + LOOP + f"ENTRY e {{ x = f32[2000] parameter(0) z = s32[] constant(0) a = {sort('x', 2000)} t = (s32[], f32[2000], f32[2000]) tuple(z, a, x) w = (s32[], f32[2000], f32[2000]) while(t), condition=more, body=step ROOT r = f32[2000] get-tuple-element(w), index=1 }}",
}  # fmt: skip


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_interfering_values_have_separate_memory(text):
    module = run_passes(
        parse_module("HloModule m\n" + text), CompileOptions(), Dump(parse_module("HloModule m\n" + text))
    )
    planned = plan(module.entry)
    liveness, places = BufferLiveness(planned), buffers.assign(planned).locations
    values = list(places)
    assert any(liveness.may_interfere(a, b) for a in values for b in values)
    for a in values:
        for b in values:
            assert liveness.may_interfere(a, b) == liveness.may_interfere(b, a)
            if liveness.may_interfere(a, b):
                assert not overlap(places[a], a.shape.nbytes, places[b], b.shape.nbytes)
    assert all(liveness.maybe_live_out(v) for v in planned.results)


def overlap(p, n: int, q, m: int) -> bool:
    if p.kind != q.kind:
        return False
    return p.at < q.at + m and q.at < p.at + n if p.kind == "arena" else p.at == q.at


def test_ranges_of_a_chain():
    module = parse_module("HloModule m\n" + PROGRAMS["chain"])
    x, a, b, c, d = (next(i for i in module.entry.instructions if i.name == n) for n in "xabcd")
    liveness = BufferLiveness(plan(module.entry))
    assert not liveness.may_interfere(a, c)
    assert not liveness.may_interfere(b, d)
    assert [liveness.maybe_live_out(i) for i in (x, a, b, c, d)] == [False, False, False, False, True]
    assert liveness.live_range(a)[1] == liveness.live_range(b)[0]


# the most arrays at a time, beside what a sort works in
@pytest.mark.parametrize(
    "name, arrays, size", [("chain", 2, 4096), ("tree", 4, 4096), ("two results", 2, 4096), ("loop", 5, 8192)]
)
def test_memory_is_bounded(name, arrays, size):
    executable = cyxla.compile("HloModule m\n" + PROGRAMS[name])
    alone = cyxla.compile(
        "HloModule m\n" + LESS + f"ENTRY e {{ x = f32[{size // 4}] parameter(0) ROOT a = {sort('x', size // 4)} }}"
    )
    assert executable.memory["temporaries"] <= arrays * size + alone.memory["temporaries"]
    given = arguments(parse_module("HloModule m\n" + PROGRAMS[name]))
    want = flat(cyxla.compile("HloModule m\n" + PROGRAMS[name], platform="interpreter")(*given))
    assert all(np.array_equal(g, w) for g, w in zip(flat(executable(*given)), want, strict=True))


def attention(size: int, width: int, layers: int) -> str:
    """Layers of self-attention and a feed-forward part, one after the other."""
    x, s = f"f32[{size},{width}]", f"f32[{size},{size}]"
    lines, last = [f"x0 = {x} parameter(0)", f"w = f32[{width},{width}] parameter(1)", "zero = f32[] constant(0)"], "x0"
    dims = "lhs_contracting_dims={1}, rhs_contracting_dims="
    for k in range(layers):
        lines += [
            f"q{k} = {x} dot({last}, w), {dims}{{0}}", f"s{k} = {s} dot(q{k}, {last}), {dims}{{1}}", f"e{k} = {s} exponential(s{k})",
            f"t{k} = f32[{size}] reduce(e{k}, zero), dimensions={{1}}, to_apply=sum", f"b{k} = {s} broadcast(t{k}), dimensions={{0}}",
            f"p{k} = {s} divide(e{k}, b{k})", f"v{k} = {x} dot(p{k}, {last}), {dims}{{0}}", f"y{k} = {x} add(v{k}, {last})",
        ]  # fmt: skip
        last = f"y{k}"
    return (
        "HloModule m\nsum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\nENTRY e {\n"
        + "\n".join(lines) + f"\nROOT r = {x} negate({last}) }}"
    )  # fmt: skip


@pytest.mark.parametrize("layers", [1, 2, 6])
def test_memory_of_a_transformer_does_not_grow_with_its_layers(layers):
    size, width = 128, 64
    held = 4 * (3 * size * width + 2 * size * size)  # of one layer
    executable = cyxla.compile(attention(size, width, layers))
    assert executable.memory["temporaries"] <= held + (64 << 10)  # what products pack
