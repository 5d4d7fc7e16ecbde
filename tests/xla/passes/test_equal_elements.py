"""Elements of loop states and of conditionals' tuples that are always equal become one, others stay apart."""

# ruff: noqa: E501  programs read best a line at a time

from __future__ import annotations

import numpy as np
import pytest
from support.hlo.differential import arguments, flat

from cyxla.xla.evaluator import evaluate
from cyxla.xla.hlo import HloModule, parse_module
from cyxla.xla.passes.engine.clone import clone
from cyxla.xla.passes.simplify import conditional_simplifier, dce, equal_elements, simplification

LOOP = """HloModule m
smaller {{ s = ({state}) parameter(0) i = s32[] get-tuple-element(s), index=0 n = s32[] constant(4) ROOT c = pred[] compare(i, n), direction=LT }}
{functions}
body {{
  s = ({state}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  two = s32[] constant(2)
  j = s32[] add(i, one)
  {body}
}}
ENTRY e {{
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  zero = s32[] constant(0)
  half = f32[] constant(0.5)
  halves = f32[8] broadcast(half), dimensions={{}}
  s = ({state}) tuple({start})
  ROOT w = ({state}) while(s), condition=smaller, body=body
}}"""


def loop(state: str, start: str, body: str, functions: str = "") -> HloModule:
    return parse_module(LOOP.format(state=state, start=start, body=body, functions=functions))


def elements(count: int, dtype: str = "s32[]") -> str:
    """C of reads of the elements behind the counter, named e1, e2 .."""
    return " ".join(f"e{k} = {dtype} get-tuple-element(s), index={k}" for k in range(1, count + 1))


COMPACT = 'custom_call_target="cyxla_compact"'
CHOICE = """yes { s = (s32[], s32[]) parameter(0) a = s32[] get-tuple-element(s), index=0 b = s32[] get-tuple-element(s), index=1 one = s32[] constant(1)
  c = s32[] add(a, one) d = s32[] add(b, one) ROOT t = (s32[], s32[]) tuple(c, d) }
no { s = (s32[], s32[]) parameter(0) a = s32[] get-tuple-element(s), index=0 b = s32[] get-tuple-element(s), index=1 k = s32[] constant(OTHER)
  d = s32[] multiply(b, k) c = s32[] multiply(k, a) ROOT t = (s32[], s32[]) tuple(c, d) }"""
IN_LOOP = """p = pred[] compare(e1, i), direction=LT t = (s32[], s32[]) tuple(e1, e2)
  w = (s32[], s32[]) conditional(p, t, t), true_computation=yes, false_computation=no
  a = s32[] get-tuple-element(w), index=0 b = s32[] get-tuple-element(w), index=1 ROOT r = (s32[], s32[], s32[]) tuple(j, a, b)"""

#: name: state, initial state, body, other computations, elements of the state that are still read
LOOPS = {
    "two counters": ("s32[], s32[], s32[]", "zero, zero, zero", f"{elements(2)} a = s32[] add(e1, two) b = s32[] add(two, e2) ROOT r = (s32[], s32[], s32[]) tuple(j, a, b)", "", {0, 1}),
    "a counter like the loop's": ("s32[], s32[]", "zero, zero", f"{elements(1)} a = s32[] add(e1, one) ROOT r = (s32[], s32[]) tuple(j, a)", "", {0}),
    "other steps": ("s32[], s32[], s32[]", "zero, zero, zero", f"{elements(2)} a = s32[] add(e1, two) b = s32[] multiply(e2, two) ROOT r = (s32[], s32[], s32[]) tuple(j, a, b)", "", {0, 1, 2}),
    "swapped": ("s32[], f32[8], f32[8]", "zero, x, x", f"{elements(2, 'f32[8]')} ROOT r = (s32[], f32[8], f32[8]) tuple(j, e2, e1)", "", {0, 1}),
    "swapped, other starts": ("s32[], f32[8], f32[8]", "zero, x, y", f"{elements(2, 'f32[8]')} ROOT r = (s32[], f32[8], f32[8]) tuple(j, e2, e1)", "", {0, 1, 2}),
    "one of three differs later": ("s32[], f32[8], f32[8], f32[8]", "zero, x, x, x", f"{elements(3, 'f32[8]')} a = f32[8] add(e1, e2) b = f32[8] add(e2, e1) c = f32[8] add(e1, e1) d = f32[8] negate(c) ROOT r = (s32[], f32[8], f32[8], f32[8]) tuple(j, a, c, d)", "", {0, 1, 3}),
    "differences spread": ("s32[], s32[], s32[], s32[]", "zero, zero, zero, zero", f"{elements(3)} a = s32[] add(e2, two) b = s32[] add(e3, two) c = s32[] add(e3, one) ROOT r = (s32[], s32[], s32[], s32[]) tuple(j, a, b, c)", "", {0, 1, 2}),
    "numbers of selected rows": ("s32[], s64[], s64[]", "zero, LENGTH, LENGTH", "", "", {0, 1}),
    "numbers of other rows": ("s32[], s64[], s64[]", "zero, LENGTH, LENGTH", "", "", {0, 1, 2}),
    "branches": ("s32[], s32[], s32[]", "zero, zero, zero", f"{elements(2)} {IN_LOOP}", CHOICE.replace("OTHER", "3"), {0, 1}),
    "a branch that tells them apart": ("s32[], s32[], s32[]", "zero, zero, zero", f"{elements(2)} {IN_LOOP}", CHOICE.replace("OTHER", "3").replace("multiply(k, a)", "add(k, a)"), {0, 1, 2}),
    "random numbers": ("s32[], f32[8], f32[8]", "zero, x, x", "zero = f32[] constant(0) top = f32[] constant(1) a = f32[8] rng(zero, top), distribution=rng_uniform b = f32[8] rng(zero, top), distribution=rng_uniform ROOT r = (s32[], f32[8], f32[8]) tuple(j, a, b)", "", {0, 1, 2}),
}  # fmt: skip


def _selected(second: str) -> HloModule:
    """A loop that counts the rows at which a mask is true, by two calls."""
    text = LOOP.format(
        state="s32[], s64[], s64[], f32[8], f32[8]",
        start="zero, length, length, x, y",
        functions="",
        body=f"""n = s64[] get-tuple-element(s), index=1
  m = s64[] get-tuple-element(s), index=2
  u = f32[8] get-tuple-element(s), index=3
  v = f32[8] get-tuple-element(s), index=4
  half = f32[] constant(0.5)
  halves = f32[8] broadcast(half), dimensions={{}}
  first = pred[8] compare(u, halves), direction=GT
  second = pred[8] compare({second}, halves), direction=GT
  a = (f32[8], s64[]) custom-call(first, u), {COMPACT}
  b = (f32[8], s64[]) custom-call(second, v), {COMPACT}
  au = f32[8] get-tuple-element(a), index=0
  bv = f32[8] get-tuple-element(b), index=0
  an = s64[] get-tuple-element(a), index=1
  bn = s64[] get-tuple-element(b), index=1
  nm = s64[] maximum(n, an)
  mm = s64[] maximum(m, bn)
  ROOT r = (s32[], s64[], s64[], f32[8], f32[8]) tuple(j, nm, mm, au, bv)""",
    )
    return parse_module(
        text.replace("zero = s32[] constant(0)\n", "zero = s32[] constant(0)\n  length = s64[] constant(0)\n", 1)
    )


def program(name: str) -> HloModule:
    state, start, body, functions, _ = LOOPS[name]
    if name.startswith("numbers of"):
        return _selected("u" if name == "numbers of selected rows" else "v")
    return loop(state, start, body, functions)


def same(before: HloModule, after: HloModule) -> None:
    for seed in range(3):
        given = arguments(before, seed)
        for one, other in zip(flat(evaluate(after, given)), flat(evaluate(before, given)), strict=True):
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other), strict=True)


def with_reads(module: HloModule) -> HloModule:
    """Read the elements of a loop that is a program's result, as its users do."""
    entry = module.entry
    loop = entry.root
    parts = [entry.add("get-tuple-element", [loop], {"index": k}, shape=s) for k, s in enumerate(loop.shape.elements)]
    entry.root = entry.add("tuple", parts, shape=loop.shape)
    return module


@pytest.mark.parametrize("name", LOOPS)
def test_states_of_loops(name: str) -> None:
    before = with_reads(program(name))
    after = clone(before)
    kept = LOOPS[name][-1] | ({3, 4} if name.startswith("numbers of") else set())
    changed = equal_elements.run(after)
    after.verify()
    (outer,) = [ins for ins in after.entry.instructions if ins.opcode == "while"]
    read = {u.attrs["index"] for u in outer.users if u.users}
    assert read == kept
    assert changed == (len(kept) < len(outer.shape.elements))
    if name != "random numbers":
        same(before, after)
    assert not equal_elements.run(after)


BRANCHES = """HloModule m
yes {{ s = (f32[8], f32[8]) parameter(0) a = f32[8] get-tuple-element(s), index=0 b = f32[8] get-tuple-element(s), index=1 {yes} }}
no {{ s = (f32[8], f32[8]) parameter(0) a = f32[8] get-tuple-element(s), index=0 b = f32[8] get-tuple-element(s), index=1 {no} }}
ENTRY e {{
  p = pred[] parameter(0)
  x = f32[8] parameter(1)
  y = f32[8] parameter(2)
  s = (f32[8], f32[8]) tuple(x, {second})
  w = (f32[8], f32[8]) conditional(p, s, s), true_computation=yes, false_computation=no
  u = f32[8] get-tuple-element(w), index=0
  v = f32[8] get-tuple-element(w), index=1
  ROOT r = f32[8] {result}
}}"""
SUMS = "c = f32[8] add(a, b) d = f32[8] add(b, a) ROOT t = (f32[8], f32[8]) tuple(c, d)"
#: name: branches, the second argument, elements of the result that are still read
RESULTS = {
    "equal in both branches": (SUMS, SUMS, "y", {0}),
    "equal in one branch": (SUMS, "ROOT t = (f32[8], f32[8]) tuple(a, b)", "y", {0, 1}),
    "equal for equal arguments": (SUMS, "ROOT t = (f32[8], f32[8]) tuple(a, b)", "x", {0}),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_of_conditionals(name: str) -> None:
    yes, no, second, kept = RESULTS[name]
    before = parse_module(BRANCHES.format(yes=yes, no=no, second=second, result="subtract(u, v)"))
    after = clone(before)
    assert equal_elements.run(after) == (kept == {0})
    after.verify()
    (choice,) = [ins for ins in after.entry.instructions if ins.opcode == "conditional"]
    assert {u.attrs["index"] for u in choice.users if u.users} == kept
    same(before, after)


@pytest.mark.parametrize("unused", ["u", "v"])
def test_unused_results_of_conditionals_are_dropped(unused: str) -> None:
    costly = "c = f32[8] exponential(a) d = f32[8] tanh(b) ROOT t = (f32[8], f32[8]) tuple(c, d)"
    text = BRANCHES.format(yes=costly, no="ROOT s2 = (f32[8], f32[8]) copy(s)", second="y", result=f"negate({unused})")
    before = parse_module(text)
    after = clone(before)
    assert conditional_simplifier.run(after)
    dce.run(after)
    after.verify()
    opcodes = {ins.opcode for c in after.computations.values() for ins in c.instructions}
    assert ("exponential" in opcodes) == (unused == "u")
    assert ("tanh" in opcodes) == (unused == "v")
    same(before, after)
    assert not conditional_simplifier.run(after)


def test_a_loop_that_is_called_twice_keeps_its_state() -> None:
    """Its second caller starts it with other values."""
    before = with_reads(program("two counters"))
    entry = before.entry
    (loop_,) = [ins for ins in entry.instructions if ins.opcode == "while"]
    one = next(ins for ins in entry.instructions if ins.opcode == "constant")
    negative = entry.add("not", [one], shape=one.shape)
    state = entry.add("tuple", [one, one, negative], shape=loop_.shape)
    other = entry.add("while", [state], shape=loop_.shape, called=loop_.called)
    third = entry.add("get-tuple-element", [other], {"index": 2}, shape=one.shape)
    entry.root = entry.add("add", [entry.root.operands[2], third], shape=one.shape)
    after = clone(before)
    assert not equal_elements.run(after)
    same(before, after)


def test_merged_state_is_not_carried() -> None:
    module = with_reads(program("two counters"))
    equal_elements.run(module)
    simplification.run(module)
    (outer,) = [ins for ins in module.entry.instructions if ins.opcode == "while"]
    assert len(outer.shape.elements) == 2


EFFECTS = """HloModule m
yes { s = (f32[8], f32[8]) parameter(0) a = f32[8] get-tuple-element(s), index=0 b = f32[8] get-tuple-element(s), index=1
  c = f32[8] custom-call(a), custom_call_target="effect", custom_call_has_side_effect=true
  ROOT t = (f32[8], f32[8]) tuple(c, b) }
no { ROOT s = (f32[8], f32[8]) parameter(0) }
ENTRY e {
  x = f32[8] parameter(0)
  p = pred[] PREDICATE
  s = (f32[8], f32[8]) tuple(x, x)
  w = (f32[8], f32[8]) conditional(p, s, s), true_computation=yes, false_computation=no
  ROOT r = f32[8] get-tuple-element(w), index=INDEX
}"""


@pytest.mark.parametrize("predicate", ["parameter(1)", "constant(true)"])
@pytest.mark.parametrize("index", ["0", "1"])
def test_side_effects_of_branches_happen_once(predicate: str, index: str) -> None:
    module = parse_module(EFFECTS.replace("PREDICATE", predicate).replace("INDEX", index))
    simplification.run(module)
    module.verify()
    reached = [ins for c in module.post_order() for ins in c.instructions]
    assert sum(ins.opcode == "custom-call" for ins in reached) == 1
    assert sum(ins.opcode == "conditional" for ins in reached) == (predicate == "parameter(1)")
