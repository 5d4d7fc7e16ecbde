"""Each pass keeps the results of a program and removes the instructions that it is there to remove."""

# ruff: noqa: E501  programs read best a line at a time

import numpy as np
import pytest
from support.hlo.differential import arguments, flat
from support.hlo.programs import assert_same

from cyxla.errors import ResourceExhaustedError
from cyxla.xla.evaluator import evaluate
from cyxla.xla.hlo import HloModule, parse_module, verify
from cyxla.xla.passes.engine.clone import clone
from cyxla.xla.passes.expand import batch_norm as expand_batch_norm
from cyxla.xla.passes.expand import bitcast_convert as expand_bitcast_convert
from cyxla.xla.passes.expand import collectives as expand_collectives
from cyxla.xla.passes.expand import constant as expand_constant
from cyxla.xla.passes.expand import convolution as expand_convolution
from cyxla.xla.passes.expand import dot as expand_dot
from cyxla.xla.passes.expand import layout as expand_layout
from cyxla.xla.passes.expand import narrow as expand_narrow
from cyxla.xla.passes.expand import ragged_dot as expand_ragged_dot
from cyxla.xla.passes.expand import scan as expand_scan
from cyxla.xla.passes.expand import topk as expand_topk
from cyxla.xla.passes.simplify import dce, flatten_call_graph, inline

ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
NORM = "epsilon=0.01, feature_index=1"
VECTORS = "s = f32[5] parameter(1) o = f32[5] parameter(2) "

# name: (pass, opcodes that must be gone, program)
CASES = {
    "call": (inline, "call", ADD + "ENTRY e { x = f32[] parameter(0) y = f32[] call(x, x), to_apply=add ROOT r = f32[] call(y, x), to_apply=add }"),
    "calls of calls": (inline, "call", ADD + """
twice { a = f32[] parameter(0) b = f32[] call(a, a), to_apply=add ROOT c = f32[] call(b, a), to_apply=add }
ENTRY e { x = f32[] parameter(0) ROOT r = f32[] call(x), to_apply=twice }"""),
    "fusion": (inline, "fusion", "f { x = f32[4] parameter(0) y = f32[4] negate(x) ROOT t = (f32[4], f32[4]) tuple(y, x) }\n"
        "ENTRY e { x = f32[4] parameter(0) ROOT f = (f32[4], f32[4]) fusion(x), kind=kLoop, calls=f }"),
    "map": (inline, "map", """
f { x = f32[] parameter(0) y = s32[] parameter(1) k = f32[] constant(3) z = f32[] convert(y) a = f32[] multiply(x, k) ROOT b = f32[] atan2(a, z) }
ENTRY e { x = f32[2,3] parameter(0) y = s32[2,3] parameter(1) ROOT r = f32[2,3] map(x, y), dimensions={0,1}, to_apply=f }"""),
    "async": (inline, "async-start async-update async-done", """
f { x = f32[4] parameter(0) ROOT y = f32[4] negate(x) }
ENTRY e {
  x = f32[4] parameter(0)
  a = ((f32[4]), f32[4], s32[]) async-start(x), calls=f
  b = ((f32[4]), f32[4], s32[]) async-update(a)
  ROOT c = f32[4] async-done(b)
}"""),
    "dead code": (dce, "sine cosine while", ADD + """
more { s = (s32[]) parameter(0) ROOT p = pred[] constant(false) }
step { s = (s32[]) parameter(0) ROOT t = (s32[]) copy(s) }
ENTRY e {
  x = f32[4] parameter(0)
  i = s32[] constant(0)
  u = f32[4] sine(x)
  v = f32[4] cosine(u)
  t = (s32[]) tuple(i)
  w = (s32[]) while(t), condition=more, body=step
  ROOT r = f32[4] negate(x)
}"""),
    "a dead parameter stays": (dce, "sine", "ENTRY e { x = f32[4] parameter(0) y = f32[2] parameter(1) z = f32[2] sine(y) ROOT r = f32[4] negate(x) }"),
    "shared bodies": (flatten_call_graph, "", """
more { s = (s32[], f32[]) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(3) ROOT p = pred[] compare(i, n), direction=LT }
step {
  s = (s32[], f32[]) parameter(0) i = s32[] get-tuple-element(s), index=0 x = f32[] get-tuple-element(s), index=1
  one = s32[] constant(1) j = s32[] add(i, one) y = f32[] add(x, x) ROOT t = (s32[], f32[]) tuple(j, y)
}
ENTRY e {
  x = f32[] parameter(0)
  i = s32[] constant(0)
  t = (s32[], f32[]) tuple(i, x)
  v = (s32[], f32[]) while(t), condition=more, body=step
  y = f32[] get-tuple-element(v), index=1
  u = (s32[], f32[]) tuple(i, y)
  ROOT w = (s32[], f32[]) while(u), condition=more, body=step
}"""),
    "batch-norm-training": (expand_batch_norm, "batch-norm-training",
        f"ENTRY e {{ x = f32[3,5,4] parameter(0) {VECTORS} ROOT r = (f32[3,5,4], f32[5], f32[5]) batch-norm-training(x, s, o), {NORM} }}"),
    "batch-norm-inference": (expand_batch_norm, "batch-norm-inference",
        f"ENTRY e {{ x = bf16[3,5,4] parameter(0) {VECTORS.replace('f32', 'bf16')} m = bf16[5] parameter(3) v0 = bf16[5] parameter(4) "
        f"v = bf16[5] abs(v0) ROOT r = bf16[3,5,4] batch-norm-inference(x, s, o, m, v), {NORM} }}"),
    "batch-norm-grad": (expand_batch_norm, "batch-norm-grad",
        f"ENTRY e {{ x = f32[3,5,4] parameter(0) {VECTORS} v0 = f32[5] parameter(3) v = f32[5] abs(v0) d = f32[3,5,4] parameter(4) "
        f"ROOT r = (f32[3,5,4], f32[5], f32[5]) batch-norm-grad(x, s, o, v, d), {NORM} }}"),
    "collectives": (expand_collectives, "all-reduce all-to-all all-gather collective-permute replica-id partition-id", ADD + """
ENTRY e {
  x = f32[4] parameter(0)
  a = f32[4] all-reduce(x), replica_groups={}, to_apply=add
  b = f32[4] all-to-all(a), replica_groups={{0}}, dimensions={0}
  c = f32[4] all-gather(b), replica_groups={}, dimensions={0}
  d = f32[4] collective-permute(c), source_target_pairs={{0,0}}
  n = f32[4] collective-permute(c), source_target_pairs={}
  i = u32[] replica-id()
  j = u32[] partition-id()
  ROOT t = (f32[4], f32[4], u32[], u32[]) tuple(d, n, i, j)
}"""),
    "tuple constant": (expand_constant, "", "ENTRY e { c = (f32[2], (s32[], pred[3])) constant(({1,2}, (3, {1,0,1}))) ROOT t = (f32[2], (s32[], pred[3])) copy(c) }"),
    "bitcast": (expand_layout, "bitcast", "ENTRY e { x = f32[3,2]{1,0} parameter(0) ROOT r = f32[2,3]{0,1} bitcast(x) }"),
    "get-dimension-size": (expand_layout, "get-dimension-size", "ENTRY e { x = f32[3,2] parameter(0) ROOT r = s32[] get-dimension-size(x), dimensions={1} }"),
    "bits apart": (expand_bitcast_convert, "", "ENTRY e { x = f32[3] parameter(0) ROOT r = u8[3,4] bitcast-convert(x) }"),
    "bits together": (expand_bitcast_convert, "", "ENTRY e { x = s16[3,4] parameter(0) ROOT r = f64[3] bitcast-convert(x) }"),
    "narrow dot": (expand_dot, "", """
ENTRY e { a = bf16[3,8,4] parameter(0) b = bf16[4,3,5] parameter(1) ROOT d = bf16[8,5] dot(a, b), lhs_contracting_dims={0,2}, rhs_contracting_dims={1,0} }"""),
    "transposed dot": (expand_dot, "transpose", """
ENTRY e { a = f32[4,3] parameter(0) b = f32[5,4] parameter(1) t = f32[3,4] transpose(a), dimensions={1,0} u = f32[4,5] transpose(b), dimensions={1,0}
  ROOT d = f32[3,5] dot(t, u), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"""),
    "groups of what is summed": (expand_ragged_dot, "ragged-dot", """
ENTRY e { a = f32[2,5,6] parameter(0) b = f32[2,6,4] parameter(1) n = s32[3] constant({2,1,9})
  ROOT d = f32[3,2,5,4] ragged-dot(a, b, n), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}, lhs_ragged_dims={2} }"""),
    "groups of rows": (expand_ragged_dot, "ragged-dot", """
ENTRY e { a = f32[7,6] parameter(0) b = f32[3,6,4] parameter(1) n = s32[3] constant({2,0,3})
  ROOT d = f32[7,4] ragged-dot(a, b, n), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0} }"""),
    "groups of batch entries": (expand_ragged_dot, "ragged-dot", """
ENTRY e { a = f32[3,5,6] parameter(0) b = f32[3,6,4] parameter(1) n = s32[2] constant({2,1})
  ROOT d = f32[3,5,4] ragged-dot(a, b, n), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}, lhs_ragged_dims={0} }"""),
    "convolution": (expand_convolution, "", """
ENTRY e { x = f32[2,3,6,5] parameter(0) w = f32[4,3,3,2] parameter(1)
  ROOT c = f32[2,4,4,4] convolution(x, w), window={size=3x2}, dim_labels=bf01_oi01->bf01 }"""),
    "narrow cholesky": (expand_narrow, "", "ENTRY e { x = bf16[1,1] parameter(0) y = bf16[1,1] abs(x) ROOT c = bf16[1,1] cholesky(y), lower=true }"),
    "scan": (expand_scan, "scan", """
step { a = f32[2] parameter(0) c = f32[2] parameter(1) s = f32[2] add(a, c) ROOT t = (f32[2], f32[2]) tuple(s, s) }
ENTRY e { x = f32[6,2] parameter(0) z = f32[2] parameter(1)
  ROOT r = (f32[6,2], f32[2]) scan(x, z), dimensions={0}, num_carries=1, is_reverse=true, to_apply=step }"""),
    "topk": (expand_topk, "topk", "ENTRY e { x = f32[3,9] parameter(0) ROOT t = (f32[3,2], s32[3,2]) topk(x), k=2, largest=true }"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_pass_keeps_the_meaning(name):
    run, gone, text = CASES[name]
    module = parse_module("HloModule m\n" + text)
    args = arguments(module)
    want = flat(evaluate(module, args))
    before = module.to_text()
    changed = clone(module)
    assert run.run(changed)
    verify(changed)
    assert module.to_text() == before
    dce.run(changed)
    left = {i.opcode for c in changed.post_order() for i in c.instructions}
    assert not left & set(gone.split())
    for got, wanted, shape in zip(flat(evaluate(changed, args)), want, module.entry.root.shape.leaves(), strict=True):
        assert_same(np.asarray(got), np.asarray(wanted), shape.dtype, 64, 1.0)
    verify(changed)
    assert not run.run(changed), "a second run finds nothing"


def test_a_transpose_stays_where_it_orders_the_result():
    text = """HloModule m
ENTRY e { a = f32[2,3,4] parameter(0) b = f32[4,5] parameter(1) t = f32[3,2,4] transpose(a), dimensions={1,0,2}
  ROOT d = f32[3,2,5] dot(t, b), lhs_contracting_dims={2}, rhs_contracting_dims={0} }"""
    assert not expand_dot.run(parse_module(text))


def test_a_clone_shares_nothing_that_changes():
    module = parse_module("HloModule m\n" + CASES["scan"][2])
    twin = clone(module)
    assert twin.to_text() == module.to_text()
    assert twin.fingerprint() == module.fingerprint()
    mine = {i for c in module.post_order() for i in c.instructions}
    assert not mine & {i for c in twin.post_order() for i in c.instructions}


def test_unshared_loops_have_computations_of_their_own():
    module = clone(parse_module("HloModule m\n" + CASES["shared bodies"][2]))
    flatten_call_graph.run(module)
    called = [c for i in module.entry.instructions for c in i.called]
    assert len(called) == len(set(called)) == 4


@pytest.fixture
def few(monkeypatch):
    for module in (inline, flatten_call_graph):
        monkeypatch.setattr(module, "MAX_INSTRUCTIONS", 2000)


def exploding(levels: int, opcode: str) -> HloModule:
    """Each level calls the one below twice."""
    lines = ["HloModule m", "f0 { x = f32[] parameter(0) ROOT r = f32[] negate(x) }"]
    for k in range(levels):
        call = (
            f"call(x), to_apply=f{k}"
            if opcode == "call"
            else f"map(x), dimensions={{}}, to_apply=f{k}"
            if opcode == "map"
            else f"conditional(p, x, x), true_computation=f{k}, false_computation=f{k}"
        )
        lines.append(
            f"f{k + 1} {{ x = f32[] parameter(0) p = pred[] constant(true) a = f32[] {call} b = f32[] {call} ROOT r = f32[] add(a, b) }}"
        )
    lines.append(f"ENTRY e {{ x = f32[] parameter(0) ROOT r = f32[] call(x), to_apply=f{levels} }}")
    return parse_module("\n".join(lines))


@pytest.mark.parametrize("opcode", ["call", "map"])
def test_calls_that_explode_are_refused_before_any_is_copied(few, opcode):
    module = exploding(40, opcode)
    with pytest.raises(ResourceExhaustedError, match="larger than"):
        inline.run(module)
    assert {len(c.instructions) for c in module.post_order()} == {2, 5}


def test_the_size_that_calls_grow_to_is_known_beforehand(monkeypatch):
    grown = exploding(5, "call")
    inline.run(grown)
    size = len(grown.entry.instructions)
    monkeypatch.setattr(inline, "MAX_INSTRUCTIONS", size)
    inline.run(exploding(5, "call"))
    monkeypatch.setattr(inline, "MAX_INSTRUCTIONS", size - 1)
    module = exploding(5, "call")
    with pytest.raises(ResourceExhaustedError, match="inlining calls makes f5 larger"):
        inline.run(module)
    assert len(module.entry.instructions) == 2


def test_branches_that_explode_are_refused(few):
    module = exploding(40, "conditional")
    inline.run(module)
    with pytest.raises(ResourceExhaustedError, match="unfolds"):
        flatten_call_graph.run(module)


def test_inlining_keeps_effects_once():
    module = parse_module("""
HloModule m
f { x = f32[] parameter(0) ROOT y = f32[] custom-call(x), custom_call_target="t", custom_call_has_side_effect=true }
ENTRY e { x = f32[] parameter(0) ROOT r = f32[] call(x), to_apply=f }""")
    inline.run(module)
    dce.run(module)
    assert [i.opcode for i in module.entry.instructions] == ["parameter", "custom-call"]
