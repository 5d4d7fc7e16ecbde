"""Bound arguments: values computed in advance, unchanged results, and errors."""

import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hlo.differential import agree, arguments, flat
from support.hlo.programs import assert_same
from support.hlo.random_programs import random_module

import cyxla
from cyxla.errors import DTypeError, InvalidArgumentError, ShapeError, UnimplementedError
from cyxla.xla.cpu.run import bind as binding
from cyxla.xla.evaluator import evaluate

ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
LAYER = """ENTRY e {
  x = f32[5,8] parameter(0)
  weights = f32[8,6] parameter(1)
  scale = f32[6] parameter(2)
  unused = f32[1000] parameter(3)
  e = f32[6] exponential(scale)
  s = f32[5,6] broadcast(e), dimensions={1}
  d = f32[5,6] dot(x, weights), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  m = f32[5,6] multiply(d, s)
  ROOT t = (f32[5,6], f32[8,6]) tuple(m, weights)
}"""
NORM = """ENTRY e {
  x = f32[2,9,9,3] parameter(0)
  w = f32[3,3,3,4] parameter(1)
  g = f32[4] parameter(2)
  b = f32[4] parameter(3)
  m = f32[4] parameter(4)
  v = f32[4] parameter(5)
  c = f32[2,9,9,4] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  n = f32[2,9,9,4] batch-norm-inference(c, g, b, m, v), epsilon=0.001, feature_index=3
  z = f32[] constant(0)
  zs = f32[2,9,9,4] broadcast(z), dimensions={}
  ROOT r = f32[2,9,9,4] maximum(n, zs)
}"""
RECURRENT = """
body {
  s = (s32[], f32[4,8], f32[8,8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  h = f32[4,8] get-tuple-element(s), index=1
  w = f32[8,8] get-tuple-element(s), index=2
  b = f32[8] get-tuple-element(s), index=3
  t = f32[8,8] transpose(w), dimensions={1,0}
  u = f32[8,8] tanh(t)
  d = f32[4,8] dot(h, u), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  l = f32[8] logistic(b)
  m = f32[4,8] broadcast(l), dimensions={1}
  n = f32[4,8] multiply(d, m)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], f32[4,8], f32[8,8], f32[8]) tuple(j, n, w, b)
}
less {
  s = (s32[], f32[4,8], f32[8,8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY e {
  h = f32[4,8] parameter(0)
  w = f32[8,8] parameter(1)
  b = f32[8] parameter(2)
  k = s32[] constant(0)
  s = (s32[], f32[4,8], f32[8,8], f32[8]) tuple(k, h, w, b)
  l = (s32[], f32[4,8], f32[8,8], f32[8]) while(s), condition=less, body=body
  ROOT r = f32[4,8] get-tuple-element(l), index=1
}"""


def opcodes(run):
    module = cyxla.hlo.parse_module(run.hlo())
    return [i.opcode for c in module.computations.values() for i in c.instructions]


def same(bound, free, text, values, ulp=64, floor=1.0):
    module = cyxla.hlo.parse_module(text)
    leaves = module.entry.root.shape.leaves()
    for got, want, shape in zip(flat(bound(*free)), flat(evaluate(module, values)), leaves, strict=True):
        assert_same(np.asarray(got), np.asarray(want), shape.dtype, ulp, floor)


# name: (program, what is bound, opcodes that are gone from the program that runs)
CASES = {
    "a scale behind a dot": (LAYER, (1, 2, 3), "exponential multiply"),
    "only the scale": (LAYER, (2,), "exponential"),
    "only what nobody reads": (LAYER, (3,), ""),
    "everything": (LAYER, (0, 1, 2, 3), "exponential multiply dot"),
    "batch normalisation": (NORM, (1, 2, 3, 4, 5), "rsqrt subtract multiply"),
    "its vectors alone": (NORM, (2, 3, 4, 5), "rsqrt"),
    "its input": (NORM, (0,), ""),
    "in a loop": (RECURRENT, (1, 2), "transpose tanh logistic multiply"),
    "a loop's start": (RECURRENT, (0, 1, 2), "while dot"),
    "a state that changes": (RECURRENT, (0,), ""),
}


@pytest.mark.parametrize("name", CASES)
def test_results_stay_and_work_goes(name):
    text, fixed, gone = CASES[name]
    run = cyxla.compile(text)
    values = arguments(cyxla.hlo.parse_module(text), seed=3)
    if "batch-norm" in text:
        values[5] = np.abs(values[5]) + 0.1
    bound = run.bind({k: values[k] for k in fixed})
    free = [v for k, v in enumerate(values) if k not in fixed]
    same(bound, free, text, values)
    assert not set(gone.split()) & set(opcodes(bound))
    assert set(gone.split()) <= set(opcodes(run))
    assert [str(s) for s in bound.inputs] == [str(s) for k, s in enumerate(run.inputs) if k not in fixed]
    assert bound.hlo("input") == run.hlo("input")
    assert bound.outputs is run.outputs
    assert "kernel" in bound.explain()
    assert "cyx_main" in bound.c_source


def test_all_at_once_is_one_after_the_other():
    run, values = cyxla.compile(NORM), arguments(cyxla.hlo.parse_module(NORM), seed=5)
    values[5] = np.abs(values[5])
    steps = run.bind({5: values[5], 1: values[1]}).bind({"g": values[2]}).bind({2: values[4]}).bind({1: values[3]})
    assert [str(s) for s in steps.inputs] == ["f32[2,9,9,3]"]
    same(steps, values[:1], NORM, values)
    assert "rsqrt" not in opcodes(steps)
    same(steps.bind({0: values[0]}), (), NORM, values)


def test_by_name():
    run, values = cyxla.compile(LAYER), arguments(cyxla.hlo.parse_module(LAYER))
    assert run.names == ("x", "weights", "scale", "unused")
    bound = run.bind({"weights": values[1], "%scale": values[2]})
    assert bound.names == ("x", "unused")
    same(bound, (values[0], values[3]), LAYER, values)


@pytest.mark.parametrize("fixed, error, says", [
    ({4: 0},                         InvalidArgumentError, "no argument 4 to bind"),
    ({-1: 0},                        InvalidArgumentError, "no argument -1 to bind"),
    ({"weight": 0},                  InvalidArgumentError, "did you mean weights"),
    ({"": 0},                        InvalidArgumentError, "no argument ''"),
    ({1: 0, "weights": 0},           InvalidArgumentError, r"argument 1 \(weights\) is bound twice"),
    ({1: np.ones((6, 8), "f4")},     ShapeError,           r"bound argument 1 \(weights\): got float32\[6,8\]"),
    ({2: np.ones(6)},                DTypeError,           r"bound argument 2 \(scale\): got float64\[6\]"),
    ({2: "no"},                      InvalidArgumentError, r"bound argument 2 \(scale\)"),
    ({2: (np.ones(6, "f4"),)},       InvalidArgumentError, r"bound argument 2 \(scale\)"),
])  # fmt: skip
def test_wrong_arguments_are_refused(backend, fixed, error, says):
    with pytest.raises(error, match=says):
        cyxla.compile(LAYER, platform=backend).bind(fixed)


@pytest.mark.parametrize("fixed", [(1,), (1, 2)])
def test_later_changes_are_not_seen(backend, fixed):
    run, values = cyxla.compile(LAYER, platform=backend), arguments(cyxla.hlo.parse_module(LAYER))
    given = [v.copy() for v in values]
    bound = run.bind({k: given[k] for k in fixed})
    free = [v for k, v in enumerate(values) if k not in fixed]
    before = bound(*free)
    for k in fixed:
        given[k].fill(np.nan)
    for a, b in zip(flat(before), flat(bound(*free)), strict=True):
        np.testing.assert_array_equal(a, b)
    before[1].fill(7)  # a bound argument that is also a result: the caller's own copy
    np.testing.assert_array_equal(bound(*free)[1], values[1])


def test_nothing_unused_is_kept():
    run, values = cyxla.compile(LAYER), arguments(cyxla.hlo.parse_module(LAYER))

    class Watched(np.ndarray):
        pass

    given = values[3].view(Watched)
    seen = weakref.ref(given)
    bound = run.bind({1: values[1], 2: values[2], 3: given})
    del given
    assert seen() is None
    assert bound.memory["bound"] == 2 * 8 * 6 * 4  # the weights, and the weights times the scale
    assert "bound" not in run.memory


def test_scales_that_leave_the_range_are_not_folded():
    run, values = cyxla.compile(LAYER), arguments(cyxla.hlo.parse_module(LAYER))
    values[1] = np.full((8, 6), 1e10, "f4")
    values[2] = np.full(6, 80, "f4")  # e^80 is 5.5e34
    values[0] = np.full((5, 8), 1e-10, "f4")
    bound = run.bind({1: values[1], 2: values[2]})
    same(bound, (values[0], values[3]), LAYER, values)
    assert np.isfinite(bound(values[0], values[3])[0]).all()
    assert "multiply" in opcodes(bound)


def test_nested_tuples_scalars_and_empty_arrays():
    text = """ENTRY e {
      p = ((f32[3], s32[]), f32[0,2]) parameter(0)
      x = f32[3] parameter(1)
      q = (f32[3], s32[]) get-tuple-element(p), index=0
      a = f32[3] get-tuple-element(q), index=0
      n = s32[] get-tuple-element(q), index=1
      z = f32[0,2] get-tuple-element(p), index=1
      f = f32[] convert(n)
      g = f32[] sqrt(f)
      h = f32[3] broadcast(g), dimensions={}
      b = f32[3] multiply(x, h)
      c = f32[3] add(b, a)
      ROOT r = (f32[3], f32[0,2], (f32[3], s32[])) tuple(c, z, q)
    }"""
    run, values = agree(text), arguments(cyxla.hlo.parse_module(text), seed=1)
    values[0] = ((values[0][0][0], np.int32(16)), values[0][1])
    bound = run.bind({0: values[0]})
    same(bound, values[1:], text, values)
    assert "sqrt" not in opcodes(bound)
    with pytest.raises(InvalidArgumentError, match=r"bound argument 0 \(p\)\[0\]: got .* want a tuple of 2"):
        run.bind({0: (values[0][0][0], values[0][1])})


def test_a_prologue_with_much_work_is_compiled(monkeypatch):
    monkeypatch.setattr(binding, "MIN_COMPILED_OPS", 0)
    values = arguments(cyxla.hlo.parse_module(NORM), seed=7)
    values[5] = np.abs(values[5])
    bound = cyxla.compile(NORM).bind(dict(enumerate(values[1:], 1)))
    same(bound, values[:1], NORM, values)


def test_random_state_is_not_settled():
    text = """ENTRY e {
      lo = f32[] parameter(0)
      hi = f32[] parameter(1)
      r = f32[64] rng(lo, hi), distribution=rng_uniform
      ROOT t = f32[64] add(r, r)
    }"""
    run, values = cyxla.compile(text), (np.float32(0), np.float32(1))
    bound = run.bind(dict(enumerate(values)))
    assert "rng" in opcodes(bound)
    np.testing.assert_array_equal(bound(), run(*values))


def test_from_the_disk_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CYXLA_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("CYXLA_CACHE", "1")
    values = arguments(cyxla.hlo.parse_module(NORM), seed=7)
    results = [cyxla.compile(NORM).bind(dict(enumerate(values[1:], 1)))(values[0]) for _ in range(2)]
    np.testing.assert_array_equal(*results)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), chosen=st.integers(0, 255))
def test_random_programs(seed, chosen):
    module, exact = random_module(seed)
    values = arguments(module, seed, 0.2)
    fixed = [k for k in range(len(values)) if chosen >> (k % 8) & 1]
    try:
        bound = cyxla.compile(module, cache=False).bind({k: values[k] for k in fixed})
    except UnimplementedError:
        return
    got, want = bound(*(v for k, v in enumerate(values) if k not in fixed)), evaluate(module, values)
    for g, w, settled, r in zip(got, want, exact, module.entry.root.operands, strict=True):
        assert_same(g, w, r.shape.dtype, 0 if settled else 64, floor=0.0 if settled else 1.0)
