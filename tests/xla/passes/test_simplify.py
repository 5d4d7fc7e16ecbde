"""Simplifying passes: each rewrites as documented, and together they change no result."""

# ruff: noqa: E501  programs read best a line at a time

import numpy as np
import pytest
from support.hlo.differential import arguments, flat
from support.hlo.random_programs import random_module
from support.strategies import random_array

from cyxla.xla.evaluator import evaluate
from cyxla.xla.hlo import parse_module
from cyxla.xla.passes.engine.clone import clone
from cyxla.xla.passes.engine.pipeline import Settings
from cyxla.xla.passes.simplify import (
    conditional_simplifier,
    constant_folding,
    cse,
    dce,
    reshape_mover,
    simplification,
    tuple_simplifier,
    while_simplifier,
    zero_sized,
)

ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"
BRANCHES = """
yes { a = f32[4] parameter(0) ROOT r = f32[4] negate(a) }
no { b = f32[4] parameter(0) ROOT s = f32[4] floor(b) }
other { c = f32[4] parameter(0) ROOT t = f32[4] ceil(c) }
big { d = f32[4] parameter(0) ROOT u = f32[4] tanh(d) }
pair { e = f32[4] parameter(0) f = f32[4] abs(e) ROOT v = (f32[4], f32[4]) tuple(e, f) }
pair2 { g = f32[4] parameter(0) h = f32[4] ceil(g) ROOT w = (f32[4], f32[4]) tuple(h, g) }
"""


def entry(body: str, before: str = "") -> str:
    return f"HloModule m\n{before}ENTRY e {{ {body} }}"


def loop(
    start=0,
    bound=10,
    step=1,
    way="LT",
    state="s32[], f32[4], f32[4]",
    extra="",
    results="j, x, a",
    read=2,
    value="exponential(x)",
) -> str:
    """A loop that adds up f(x), and how it is called."""
    return f"""HloModule loop
body {{
  s = ({state}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[4] get-tuple-element(s), index=1
  t = f32[4] get-tuple-element(s), index=2
  one = s32[] constant({step})
  j = s32[] add(i, one)
  e = f32[4] {value}
  a = f32[4] add(t, e)
  {extra}
  ROOT r = ({state}) tuple({results})
}}
condition {{
  s = ({state}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({bound})
  ROOT c = pred[] compare(i, n), direction={way}
}}
ENTRY main {{
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  k = s32[] constant({start})
  s = ({state}) tuple({"k, x, y" if state.count(",") == 2 else "k, x, y, y"})
  w = ({state}) while(s), condition=condition, body=body
  ROOT r = f32[4] get-tuple-element(w), index={read}
}}"""


# name: (pass, opcodes that go, opcodes that must be there, program)
CASES = {
    "folding": (
        constant_folding,
        "multiply reverse",
        "",
        entry("a = s32[3] constant({1, 2, 3}) b = s32[3] multiply(a, a) ROOT s = s32[3] reverse(b), dimensions={0}"),
    ),
    "folding a reduction of an iota": (
        constant_folding,
        "reduce",
        "",
        entry(
            "a = f32[9] iota(), iota_dimension=0 z = f32[] constant(0) ROOT s = f32[] reduce(a, z), dimensions={0}, to_apply=add",
            ADD,
        ),
    ),
    "equal": (
        cse,
        "",
        "",
        entry(
            "x = f32[4] parameter(0) y = f32[4] parameter(1) a = f32[4] add(x, y) b = f32[4] add(y, x) ROOT r = f32[4] multiply(a, b)"
        ),
    ),
    "equal constants": (
        cse,
        "",
        "",
        entry(
            "x = f32[2] parameter(0) a = f32[2] constant({1, 2}) b = f32[2] constant({1, 2}) c = f32[2] add(x, a) d = f32[2] add(x, b) ROOT r = f32[2] multiply(c, d)"
        ),
    ),
    "equal reductions": (
        cse,
        "",
        "",
        entry(
            "x = f32[4] parameter(0) z = f32[] constant(0) a = f32[] reduce(x, z), dimensions={0}, to_apply=add b = f32[] reduce(x, z), dimensions={0}, to_apply=plus ROOT r = f32[] multiply(a, b)",
            ADD + ADD.replace("add {", "plus {"),
        ),
    ),
    "tuple": (
        tuple_simplifier,
        "tuple get-tuple-element",
        "",
        entry(
            "x = f32[4] parameter(0) n = s32[] parameter(1) t = (f32[4], s32[]) tuple(x, n) a = f32[4] get-tuple-element(t), index=0 ROOT r = f32[4] negate(a)"
        ),
    ),
    "tuple of all elements": (
        tuple_simplifier,
        "tuple get-tuple-element",
        "parameter",
        entry(
            "t = (f32[4], s32[]) parameter(0) a = f32[4] get-tuple-element(t), index=0 b = s32[] get-tuple-element(t), index=1 ROOT r = (f32[4], s32[]) tuple(a, b)"
        ),
    ),
    "part of a constant": (
        tuple_simplifier,
        "get-tuple-element",
        "constant",
        entry("t = (f32[2], s32[]) constant(({1, 2}, 3)) ROOT a = f32[2] get-tuple-element(t), index=0"),
    ),
    "empty": (
        zero_sized,
        "exponential",
        "constant",
        entry("x = f32[0,4] parameter(0) ROOT y = f32[0,4] exponential(x)"),
    ),
    "reshapes of both": (
        reshape_mover,
        "",
        "",
        entry(
            "x = f32[2,3] parameter(0) y = f32[2,3] parameter(1) a = f32[6] reshape(x) b = f32[6] reshape(y) ROOT r = f32[6] add(a, b)"
        ),
    ),
    "transposes and a number": (
        reshape_mover,
        "",
        "",
        entry(
            "x = f32[2,3] parameter(0) p = pred[2,3] parameter(1) a = f32[3,2] transpose(x), dimensions={1,0} q = pred[3,2] transpose(p), dimensions={1,0} c = f32[] constant(2) d = f32[3,2] broadcast(c), dimensions={} ROOT r = f32[3,2] select(q, a, d)"
        ),
    ),
    "a chain of transposes": (
        simplification,
        "transpose",
        "",
        entry(
            "x = f32[2,3] parameter(0) a = f32[3,2] transpose(x), dimensions={1,0} b = f32[3,2] floor(a) c = f32[3,2] negate(b) ROOT r = f32[2,3] transpose(c), dimensions={1,0}"
        ),
    ),
    "known predicate": (
        conditional_simplifier,
        "conditional",
        "negate",
        entry(
            "x = f32[4] parameter(0) p = pred[] constant(true) ROOT r = f32[4] conditional(p, x, x), true_computation=yes, false_computation=big",
            BRANCHES,
        ),
    ),
    "known number": (
        conditional_simplifier,
        "conditional",
        "tanh",
        entry(
            "x = f32[4] parameter(0) p = s32[] constant(7) ROOT r = f32[4] conditional(p, x, x, x), branch_computations={yes, no, big}",
            BRANCHES,
        ),
    ),
    "one branch": (
        conditional_simplifier,
        "conditional",
        "tanh",
        entry(
            "x = f32[4] parameter(0) p = s32[] parameter(1) ROOT r = f32[4] conditional(p, x), branch_computations={big}",
            BRANCHES,
        ),
    ),
    "tiny branches": (
        conditional_simplifier,
        "conditional",
        "select",
        entry(
            "x = f32[4] parameter(0) p = pred[] parameter(1) ROOT r = f32[4] conditional(p, x, x), true_computation=yes, false_computation=no",
            BRANCHES,
        ),
    ),
    "tiny numbered branches": (
        conditional_simplifier,
        "conditional",
        "select",
        entry(
            "x = f32[4] parameter(0) p = s32[] parameter(1) ROOT r = f32[4] conditional(p, x, x), branch_computations={yes, no}",
            BRANCHES,
        ),
    ),
    "tiny branches of tuples": (
        conditional_simplifier,
        "conditional",
        "select",
        entry(
            "x = f32[4] parameter(0) p = pred[] parameter(1) ROOT r = (f32[4], f32[4]) conditional(p, x, x), true_computation=pair, false_computation=pair2",
            BRANCHES,
        ),
    ),
    "no trip": (while_simplifier, "while", "", loop(start=10)),
    "one trip": (while_simplifier, "while", "exponential", loop(start=9)),
    "hoisting": (while_simplifier, "", "while exponential", loop()),
    "reading unchanged state": (simplification, "while", "", loop(read=1)),
    "dead state": (
        while_simplifier,
        "",
        "while",
        loop(
            state="s32[], f32[4], f32[4], f32[4]",
            extra="u = f32[4] get-tuple-element(s), index=3 v = f32[4] negate(u)",
            results="j, x, a, v",
        ),
    ),
    "counting down": (while_simplifier, "", "while", loop(start=10, bound=0, step=-1, way="GT", value="floor(x)")),
    "until equal": (while_simplifier, "", "while", loop(start=0, bound=8, step=2, way="NE", value="negate(t)")),
}


def opcodes(module, everywhere=False):
    return [i.opcode for c in (module.post_order() if everywhere else [module.entry]) for i in c.instructions]


def same(got, want):
    for g, w in zip(flat(got), flat(want), strict=True):
        assert g.shape == w.shape
        assert g.dtype == w.dtype
        with np.errstate(all="ignore"):
            wide = np.complex128 if g.dtype.kind == "c" else np.float64
            a, b = g.astype(wide), w.astype(wide)
        for x, y in ((a.real, b.real), (a.imag, b.imag)):
            nan = np.isnan(x)
            np.testing.assert_array_equal(nan, np.isnan(y))
            assert np.array(x[~nan]).tobytes() == np.array(y[~nan]).tobytes()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_pass_rewrites_as_documented(case):
    run, gone, there, text = case
    before = parse_module(text)
    after = clone(before)
    assert run.run(after)
    dce.run(after)
    after.verify()
    assert not set(gone.split()) & set(opcodes(after))
    assert set(there.split()) <= set(opcodes(after))
    if not gone and not there:
        assert len(after.entry.instructions) < len(before.entry.instructions)
    for seed in range(4):
        given = arguments(before, seed, 0.3)
        same(evaluate(after, given), evaluate(before, given))


# name: (pass, program that it must leave alone)
KEPT = {
    "large constants": (
        constant_folding,
        entry("c = f32[] constant(2) ROOT a = f32[100,100] broadcast(c), dimensions={}"),
    ),
    "iota": (constant_folding, entry("ROOT a = f32[4] iota(), iota_dimension=0")),
    "spreading": (
        constant_folding,
        entry("c = f32[2] constant({1, 2}) ROOT a = f32[2,50] broadcast(c), dimensions={0}"),
    ),
    "random numbers": (
        cse,
        entry(
            "a = f32[] constant(0) b = f32[] constant(1) x = f32[4] rng(a, b), distribution=rng_uniform y = f32[4] rng(a, b), distribution=rng_uniform ROOT r = f32[4] add(x, y)"
        ),
    ),
    "other order": (
        cse,
        entry(
            "x = f32[4] parameter(0) y = f32[4] parameter(1) a = f32[4] subtract(x, y) b = f32[4] subtract(y, x) ROOT r = f32[4] add(a, b)"
        ),
    ),
    "zeros of both signs": (
        cse,
        entry("a = f32[] constant(0) b = f32[] constant(-0.0) ROOT r = (f32[], f32[]) tuple(a, b)"),
    ),
    "part of the elements": (
        tuple_simplifier,
        entry("t = (f32[4], s32[]) parameter(0) a = f32[4] get-tuple-element(t), index=0 ROOT r = (f32[4]) tuple(a)"),
    ),
    "other reshapes": (
        reshape_mover,
        entry(
            "x = f32[2,3] parameter(0) y = f32[3,2] parameter(1) a = f32[6] reshape(x) b = f32[6] reshape(y) ROOT r = f32[6] add(a, b)"
        ),
    ),
    "one reshape alone": (
        reshape_mover,
        entry("x = f32[2,3] parameter(0) y = f32[6] parameter(1) a = f32[6] reshape(x) ROOT r = f32[6] add(a, y)"),
    ),
    "costly branches": (
        conditional_simplifier,
        entry(
            "x = f32[4] parameter(0) p = pred[] parameter(1) ROOT r = f32[4] conditional(p, x, x), true_computation=yes, false_computation=big",
            BRANCHES,
        ),
    ),
    "empty parameters": (zero_sized, entry("ROOT x = f32[0,4] parameter(0)")),
}


@pytest.mark.parametrize("case", KEPT.values(), ids=KEPT)
def test_unprofitable_rewrites_are_left_out(case):
    run, text = case
    module = parse_module(text)
    assert not run.run(module)


@pytest.mark.parametrize(
    "start, bound, step, way, trips",
    [
        (0, 10, 1, "LT", 10),
        (0, 10, 3, "LT", 4),
        (0, 9, 3, "LE", 4),
        (10, 0, -1, "GT", 10),
        (10, 0, -3, "GE", 4),
        (0, 8, 2, "NE", 4),
    ],
)
def test_trip_counts(start, bound, step, way, trips):
    module = parse_module(loop(start, bound, step, way))
    simplification.run(module)
    (ins,) = [i for i in module.entry.instructions if i.opcode == "while"]
    assert ins.extras["backend_config"] == f'{{"known_trip_count":{{"n":"{trips}"}}}}'


@pytest.mark.parametrize(
    "start, bound, step, way", [(0, 10, -1, "LT"), (0, 7, 2, "NE"), (0, 2147483647, 2, "LE"), (5, 5, 1, "GE")]
)
def test_loops_without_a_count(start, bound, step, way):
    module = parse_module(loop(start, bound, step, way))
    simplification.run(module)
    (ins,) = [i for i in module.entry.instructions if i.opcode == "while"]
    assert "backend_config" not in ins.extras


def test_loops_carry_only_used_values():
    module = parse_module(
        loop(
            state="s32[], f32[4], f32[4], f32[4]",
            extra="u = f32[4] get-tuple-element(s), index=3 v = f32[4] negate(u)",
            results="j, x, a, v",
        )
    )
    simplification.run(module)
    (ins,) = [i for i in module.entry.instructions if i.opcode == "while"]
    assert len(ins.shape.elements) == 3  # counter, sum, exponential(x)
    assert "exponential" not in [i.opcode for i in ins.called[0].instructions]


def test_one_of_the_passes_can_be_left_out():
    text = CASES["equal"][3]
    module = parse_module(text)
    assert not simplification.pipeline(Settings(disabled=("cse",))).run(module)
    assert simplification.pipeline(Settings()).run(module)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("seed", range(100))
def test_random_programs_keep_their_bits(seed):
    before, exact = random_module(seed, 40)
    after = clone(before)
    simplification.pipeline(Settings(verify=True)).run(after)
    given = [random_array(p.shape, seed + k, 0.2) for k, p in enumerate(before.parameters)]
    for got, want, settled in zip(evaluate(after, given), evaluate(before, given), exact, strict=True):
        if settled:
            same(got, want)
    assert not simplification.pipeline(Settings()).run(after)  # a second time finds nothing
