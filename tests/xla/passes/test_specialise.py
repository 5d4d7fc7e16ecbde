"""A program split for fixed arguments gives the results of the whole one and precomputes all it can."""

# ruff: noqa: E501  programs read best a line at a time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hlo.differential import arguments, flat
from support.hlo.programs import assert_same
from support.hlo.random_programs import random_module

from cyxla.xla.evaluator import evaluate
from cyxla.xla.hlo import HloModule, parse_module
from cyxla.xla.passes.specialise.prologue import specialise

ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"


def entry(body: str) -> str:
    return f"HloModule m\n{ADD}ENTRY e {{ {body} }}"


def scaled(chain: str, product: str = "", shape: str = "f32[4,6]") -> str:
    """A product p of x and w, and what is done to it with s and t, which are spread over the features."""
    product = product or "dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    spread = f"v = {shape} broadcast(s), dimensions={{1}} u = {shape} broadcast(t), dimensions={{1}}"
    return entry(
        f"x = f32[4,8] parameter(0) w = f32[8,6] parameter(1) s = f32[6] parameter(2) t = f32[6] parameter(3) p = {shape} {product} {spread} {chain}"
    )


CONV = "x = f32[2,7,7,3] parameter(0) w = f32[3,3,3,4] parameter(1) s = f32[4] parameter(2) t = f32[4] parameter(3) v = f32[2,7,7,4] broadcast(s), dimensions={3} u = f32[2,7,7,4] broadcast(t), dimensions={3} p = f32[2,7,7,4] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"
NCHW = "x = f32[2,3,7,7] parameter(0) w = f32[4,3,3,3] parameter(1) s = f32[4] parameter(2) t = f32[4] parameter(3) v = f32[2,4,7,7] broadcast(s), dimensions={1} u = f32[2,4,7,7] broadcast(t), dimensions={1} p = f32[2,4,7,7] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01"
DEPTHWISE = "x = f32[2,7,7,4] parameter(0) w = f32[3,3,1,4] parameter(1) s = f32[4] parameter(2) t = f32[4] parameter(3) v = f32[2,7,7,4] broadcast(s), dimensions={3} u = f32[2,7,7,4] broadcast(t), dimensions={3} p = f32[2,7,7,4] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=4"
FRONT = "x = f32[4,8] parameter(0) w = f32[8,6] parameter(1) s = f32[8] parameter(2) t = f32[8] parameter(3) v = f32[4,8] broadcast(s), dimensions={1} u = f32[4,8] broadcast(t), dimensions={1}"
DOT = "dot(b, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"

# name: (program, what is fixed, opcodes of the main program that are no parameters, broadcasts or tuples)
CASES = {
    "scale": (scaled("ROOT r = f32[4,6] multiply(p, v)"), (1, 2), "dot"),
    "scale and shift": (scaled("a = f32[4,6] multiply(p, v) ROOT r = f32[4,6] add(u, a)"), (1, 2, 3), "dot add"),
    "normalisation": (scaled("a = f32[4,6] subtract(p, u) b = f32[4,6] multiply(v, a) ROOT r = f32[4,6] add(b, u)"), (1, 2, 3), "dot add"),
    "two shifts": (scaled("a = f32[4,6] add(p, u) ROOT r = f32[4,6] subtract(a, v)"), (1, 2, 3), "dot add"),
    "one shift": (scaled("ROOT r = f32[4,6] add(p, u)"), (1, 2, 3), "dot add"),
    "division": (scaled("ROOT r = f32[4,6] divide(p, v)"), (1, 2), "dot"),
    "division of a scale": (scaled("a = f32[4,6] multiply(p, v) b = f32[4,6] divide(a, u) ROOT r = f32[4,6] add(b, v)"), (1, 2, 3), "dot add"),
    "division by the product": (scaled("ROOT r = f32[4,6] divide(v, p)"), (1, 2), "dot divide"),
    "negated": (scaled("a = f32[4,6] negate(p) ROOT r = f32[4,6] add(a, u)"), (1, 3), "dot add"),
    "subtracted": (scaled("a = f32[4,6] subtract(v, p) b = f32[4,6] subtract(u, a) c = f32[4,6] multiply(b, v) ROOT r = f32[4,6] subtract(v, c)"), (1, 2, 3), "dot add"),
    "a number": (scaled("h = f32[] constant(0.5) k = f32[4,6] broadcast(h), dimensions={} ROOT r = f32[4,6] multiply(p, k)"), (1,), "dot"),
    "the square of the product": (scaled("a = f32[4,6] multiply(p, p) ROOT r = f32[4,6] multiply(a, v)"), (1, 2), "dot multiply multiply"),
    "read twice": (scaled("a = f32[4,6] multiply(p, v) ROOT r = (f32[4,6], f32[4,6]) tuple(a, p)"), (1, 2), "dot multiply"),
    "the scale is free": (scaled("ROOT r = f32[4,6] multiply(p, v)"), (1,), "dot multiply"),
    "the weights are free": (scaled("ROOT r = f32[4,6] multiply(p, v)"), (2,), "dot multiply"),
    "along rows": (entry("x = f32[4,8] parameter(0) w = f32[8,4] parameter(1) s = f32[4] parameter(2) v = f32[4,4] broadcast(s), dimensions={0} p = f32[4,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0} ROOT r = f32[4,4] multiply(p, v)"), (1, 2), "dot multiply"),
    "weights to the left": (entry("x = f32[8,5] parameter(0) w = f32[3,8,2] parameter(1) s = f32[2,3] parameter(2) v = f32[3,2,5] broadcast(s), dimensions={1,0} p = f32[3,2,5] dot(w, x), lhs_contracting_dims={1}, rhs_contracting_dims={0} ROOT r = f32[3,2,5] multiply(p, v)"), (1, 2), "dot"),
    "batched weights": (entry("x = f32[3,4,8] parameter(0) w = f32[3,8,6] parameter(1) s = f32[3] parameter(2) v = f32[3,4,6] broadcast(s), dimensions={0} p = f32[3,4,6] dot(x, w), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1} ROOT r = f32[3,4,6] multiply(p, v)"), (1, 2), "dot"),
    "behind a reshape": (scaled("q = f32[2,2,6] reshape(p) y = f32[2,2,6] broadcast(s), dimensions={2} z = f32[2,2,6] broadcast(t), dimensions={2} a = f32[2,2,6] multiply(q, y) ROOT r = f32[2,2,6] add(a, z)"), (1, 2, 3), "dot add reshape"),
    "behind a reshape that mixes": (scaled("q = f32[4,3,2] reshape(p) y = f32[2] slice(s), slice={[0:2]} z = f32[4,3,2] broadcast(y), dimensions={2} ROOT r = f32[4,3,2] multiply(q, z)"), (1, 2), "dot multiply reshape"),
    "behind a transpose": (scaled("q = f32[6,4] transpose(p), dimensions={1,0} y = f32[6,4] broadcast(s), dimensions={0} ROOT r = f32[6,4] multiply(q, y)"), (1, 2), "dot transpose"),
    "one row": (entry("x = f32[1,8] parameter(0) w = f32[8,6] parameter(1) s = f32[6] parameter(2) v = f32[1,6] reshape(s) p = f32[1,6] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0} ROOT r = f32[1,6] multiply(p, v)"), (1, 2), "dot"),
    "one number": (entry("x = f32[8] parameter(0) w = f32[8] parameter(1) s = f32[] parameter(2) p = f32[] dot(x, w), lhs_contracting_dims={0}, rhs_contracting_dims={0} ROOT r = f32[] multiply(p, s)"), (1, 2), "dot"),
    "integers": (scaled("ROOT r = f32[4,6] multiply(p, v)").replace("f32", "s32"), (1, 2), "dot multiply"),
    "narrow floats": (scaled("ROOT r = f32[4,6] multiply(p, v)").replace("f32", "bf16"), (1, 2), "dot multiply"),
    "convolution": (entry(f"{CONV} a = f32[2,7,7,4] multiply(p, v) ROOT r = f32[2,7,7,4] add(a, u)"), (1, 2, 3), "add convolution"),
    "convolution, channels first": (entry(f"{NCHW} a = f32[2,4,7,7] multiply(p, v) ROOT r = f32[2,4,7,7] add(a, u)"), (1, 2, 3), "add convolution"),
    "convolution by channel": (entry(f"{DEPTHWISE} a = f32[2,7,7,4] multiply(p, v) ROOT r = f32[2,7,7,4] add(a, u)"), (1, 2, 3), "add convolution"),
    "convolution of what is fixed": (entry(f"{CONV} a = f32[2,7,7,4] multiply(p, v) ROOT r = f32[2,7,7,4] add(a, u)"), (0, 2, 3), "add convolution multiply"),
    "in front": (entry(f"{FRONT} a = f32[4,8] multiply(x, v) b = f32[4,8] add(u, a) ROOT r = f32[4,6] {DOT}"), (1, 2, 3), "add dot"),
    "in front, divided": (entry(f"{FRONT} a = f32[4,8] subtract(x, u) b = f32[4,8] divide(a, v) ROOT r = f32[4,6] {DOT}"), (1, 2, 3), "dot subtract"),
    "in front, of what is read elsewhere": (entry(f"{FRONT} b = f32[4,8] multiply(x, v) d = f32[4,6] {DOT} ROOT r = (f32[4,6], f32[4,8]) tuple(d, b)"), (1, 2, 3), "dot multiply"),
    "in front of two": (entry(f"{FRONT} z = f32[8,5] parameter(4) b = f32[4,8] multiply(x, v) d = f32[4,6] {DOT} f = f32[4,5] {DOT.replace('w', 'z')} ROOT r = (f32[4,6], f32[4,5]) tuple(d, f)"), (1, 2, 4), "dot dot"),
    "in front of two, one of them free": (entry(f"{FRONT} z = f32[8,5] parameter(4) b = f32[4,8] multiply(x, v) d = f32[4,6] {DOT} f = f32[4,5] {DOT.replace('w', 'z')} ROOT r = (f32[4,6], f32[4,5]) tuple(d, f)"), (1, 2), "dot dot multiply"),
    "in front and behind": (entry(f"{FRONT} g = f32[6] parameter(4) h = f32[4,6] broadcast(g), dimensions={{1}} a = f32[4,8] multiply(x, v) b = f32[4,8] add(a, u) d = f32[4,6] {DOT} f = f32[4,6] add(d, h) ROOT r = f32[4,6] multiply(f, h)"), (1, 2, 3, 4), "add dot"),
    "in front, along rows": (entry(f"{FRONT.replace('f32[8] parameter(2)', 'f32[4] parameter(2)').replace('broadcast(s), dimensions={1}', 'broadcast(s), dimensions={0}')} b = f32[4,8] multiply(x, v) ROOT r = f32[4,6] {DOT}"), (1, 2), "dot multiply"),
    "larger than what it comes from": (entry("x = f32[400,400] parameter(0) a = f32[400] parameter(1) u = f32[400,400] broadcast(a), dimensions={0} v = f32[400,400] broadcast(a), dimensions={1} w = f32[400,400] subtract(u, v) ROOT r = f32[400,400] add(x, w)"), (1,), "add subtract"),
    "a sort of two": (entry("x = f32[6] parameter(0) a = f32[6] parameter(1) b = f32[6] sqrt(a) c = f32[6] negate(b) d = f32[6] add(c, x) ROOT r = (f32[6], f32[6], f32[6]) tuple(d, b, a)"), (1,), "add"),
    "nothing depends on it": (entry("x = f32[6] parameter(0) a = f32[6] parameter(1) ROOT r = f32[6] negate(x)"), (1,), "negate"),
}  # fmt: skip


def split_results(module: HloModule, fixed, values, **options):
    """Return the results of the main program of a split."""
    plan = specialise(module, fixed, **options)
    plan.main.verify()
    made = ()
    if plan.prologue is not None:
        plan.prologue.verify()
        made = evaluate(plan.prologue, [values[k] for k in plan.used])
    free = [v for k, v in enumerate(values) if k not in fixed]
    return plan, evaluate(plan.main, [*free, *(values[k] for k in plan.kept), *made])


@pytest.mark.parametrize("name", CASES)
@given(seed=st.integers(0, 1000))
@settings(max_examples=5, deadline=None)
def test_both_sides(name, seed):
    text, fixed, opcodes = CASES[name]
    module = parse_module(text)
    values = arguments(module, seed)
    before = module.to_text()
    plan, got = split_results(module, fixed, values)
    assert module.to_text() == before
    found = sorted(i.opcode for i in plan.main.entry.instructions)
    quiet = ("parameter", "broadcast", "tuple", "constant")
    assert [o for o in found if o not in quiet] == sorted(opcodes.split())
    for g, w, shape in zip(flat(got), flat(evaluate(module, values)), module.entry.root.shape.leaves(), strict=True):
        assert_same(np.asarray(g), np.asarray(w), shape.dtype, 256, floor=1.0)


@given(seed=st.integers(0, 10**6), chosen=st.integers(0, 255))
@settings(max_examples=60, deadline=None)
def test_without_folding_no_bit_changes(seed, chosen):
    module, _ = random_module(seed)
    values = arguments(module, seed, 0.2)
    fixed = [k for k in range(len(values)) if chosen >> (k % 8) & 1]
    _, got = split_results(module, fixed, values, fold=False)
    for g, w, shape in zip(got, evaluate(module, values), module.entry.root.shape.elements, strict=True):
        assert_same(g, w, shape.dtype, 0)


def test_aliases_follow_the_arguments():
    text = """HloModule m, input_output_alias={ {}: (2, {}, may-alias) }
      ENTRY e { a = f32[4] parameter(0) b = f32[4] parameter(1) c = f32[4] parameter(2) s = f32[4] add(a, b) ROOT r = f32[4] multiply(s, c) }"""
    plan = specialise(parse_module(text), (0, 1))
    (alias,) = plan.main.config.input_output_alias
    assert alias.parameter == 0
    assert not specialise(parse_module(text), (2,)).main.config.input_output_alias
    plan.main.verify()
