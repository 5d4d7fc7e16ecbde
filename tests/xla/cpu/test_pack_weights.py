"""Weights that are laid out in panels: when that happens, and that results stay the same."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hlo.differential import arguments, flat
from support.hlo.programs import assert_same

import cyxla
from cyxla.xla.cpu.run import pack_weights
from cyxla.xla.evaluator import evaluate

# name: (left operand, weights, result, attributes of the dot, whether the weights come in panels)
CASES = {
    "plain":                ("f32[9,128]",    "f32[128,128]",   "f32[9,128]",    (1, 0), True),
    "f64":                  ("f64[9,64]",     "f64[64,128]",    "f64[9,128]",    (1, 0), True),
    "one row":              ("f32[1,512]",    "f32[512,96]",    "f32[1,96]",     (1, 0), True),
    "a vector":             ("f32[512]",      "f32[512,64]",    "f32[64]",       (0, 0), True),
    "transposed":           ("f32[9,128]",    "f32[160,128]",   "f32[9,160]",    (1, 1), True),
    "many rows":            ("f32[2,3,128]",  "f32[128,128]",   "f32[2,3,128]",  (2, 0), True),
    "two free":             ("f32[9,128]",    "f32[128,4,64]",  "f32[9,4,64]",   (1, 0), True),
    "two free, around":     ("f32[9,128]",    "f32[2,128,96]",  "f32[9,2,96]",   (1, 1), True),
    "contracted in front":  ("f32[128,9]",    "f32[128,128]",   "f32[9,128]",    (0, 0), False),
    "odd":                  ("f32[9,128]",    "f32[128,131]",   "f32[9,131]",    (1, 0), False),
    "small":                ("f32[9,32]",     "f32[32,32]",     "f32[9,32]",     (1, 0), False),
    "weights to the left":  ("f32[128,9]",    "f32[128,128]",   "f32[128,9]",    None,   False),
    "integers":             ("s32[9,128]",    "s32[128,128]",   "s32[9,128]",    (1, 0), False),
    "empty":                ("f32[0,128]",    "f32[128,128]",   "f32[0,128]",    (1, 0), False),
}  # fmt: skip
TOGETHER = """ENTRY e {
  x = f32[5,4,32] parameter(0)
  w = f32[4,32,128] parameter(1)
  b = f32[128] parameter(2)
  v = f32[5,128] broadcast(b), dimensions={1}
  d = f32[5,128] dot(x, w), lhs_contracting_dims={1,2}, rhs_contracting_dims={0,1}
  a = f32[5,128] add(d, v)
  ROOT r = f32[5,128] tanh(a)
}"""
LOOP = """
body {
  s = (s32[], f32[4,128], f32[128,128]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  h = f32[4,128] get-tuple-element(s), index=1
  w = f32[128,128] get-tuple-element(s), index=2
  d = f32[4,128] dot(h, w), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  t = f32[4,128] abs(d)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], f32[4,128], f32[128,128]) tuple(j, t, w)
}
less {
  s = (s32[], f32[4,128], f32[128,128]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY e {
  h = f32[4,128] parameter(0)
  w = f32[128,128] parameter(1)
  k = s32[] constant(0)
  s = (s32[], f32[4,128], f32[128,128]) tuple(k, h, w)
  l = (s32[], f32[4,128], f32[128,128]) while(s), condition=less, body=body
  ROOT r = f32[4,128] get-tuple-element(l), index=1
}"""


def program(left, weights, result, dims):
    operands, (a, b) = ("x, w", dims) if dims else ("w, x", (1, 0))
    attrs = f"lhs_contracting_dims={{{a}}}, rhs_contracting_dims={{{b}}}"
    return (
        f"ENTRY e {{ x = {left} parameter(0) w = {weights} parameter(1) ROOT r = {result} dot({operands}), {attrs} }}"
    )


def check(text, seed=0):
    """Bind all but the first argument; gives the dots that are left."""
    module = cyxla.hlo.parse_module(text)
    values = arguments(module, seed)
    bound = cyxla.compile(text).bind(dict(enumerate(values[1:], 1)))
    for g, w in zip(flat(bound(values[0])), flat(evaluate(module, values)), strict=True):
        assert_same(np.asarray(g), np.asarray(w), module.entry.root.shape.dtype, 64, floor=1.0)
    main = cyxla.hlo.parse_module(bound.hlo())
    return [i for c in main.computations.values() for i in c.instructions if i.opcode == "dot"]


def in_panels(dot):
    weights = dot.operands[1].shape
    return weights.rank == 3 and dot.attrs["rhs_contracting_dims"] == (1,) and dot.attrs["lhs_batch_dims"] == ()


@pytest.mark.parametrize("name", CASES)
def test_panels(name):
    *shapes, expected = CASES[name]
    dots = check(program(*shapes))
    widths = [d.operands[1].shape.dims[2] for d in dots if in_panels(d)]
    assert bool(widths) == expected
    assert all(w % 8 == 0 for w in widths)


def test_several_contracted_dimensions_become_one():
    (dot,) = check(TOGETHER)
    assert in_panels(dot)


def test_in_a_loop():
    (dot,) = check(LOOP)
    assert in_panels(dot)


CONVOLUTION = """ENTRY e {{
  x = f32[2,9,9,{c}] parameter(0)
  w = f32[3,3,{c},{o}] parameter(1)
  s = f32[{o}] parameter(2)
  v = f32[2,9,9,{o}] broadcast(s), dimensions={{3}}
  d = f32[2,9,9,{o}] convolution(x, w), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f
  ROOT r = f32[2,9,9,{o}] multiply(d, v)
}}"""


@pytest.mark.parametrize("c, o, packed", [(32, 128, True), (3, 64, False), (24, 192, True), (32, 100, False)])
def test_convolutions(c, o, packed):
    text = CONVOLUTION.format(c=c, o=o)
    module = cyxla.hlo.parse_module(text)
    values = arguments(module, 2)
    bound = cyxla.compile(text).bind({1: values[1], 2: values[2]})
    assert_same(bound(values[0]), evaluate(module, values), module.entry.root.shape.dtype, 64, floor=1.0)
    found = cyxla.hlo.parse_module(bound.hlo()).entry.instructions
    (kernel,) = (i.operands[1] for i in found if i.opcode == "convolution")
    assert (kernel.opcode, kernel.shape.rank) == ("parameter", 5 if packed else 4)
    assert not any(i.opcode == "multiply" for i in found)


@settings(max_examples=20, deadline=None)
@given(m=st.integers(1, 70), k=st.integers(1, 300), n=st.integers(1, 40), dtype=st.sampled_from(["f32", "f64"]))
def test_any_size(m, k, n, dtype):
    shapes = (f"{dtype}[{m},{k}]", f"{dtype}[{k},{8 * n}]", f"{dtype}[{m},{8 * n}]", (1, 0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pack_weights, "MIN_PACKED_BYTES", 0)
        check(program(*shapes), seed=m * k)
