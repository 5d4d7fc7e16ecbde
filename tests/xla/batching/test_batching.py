"""Batching: each opcode's rule against the program for one element, run in a loop on the interpreter."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hlo import random_programs
from support.hlo.batching import batched, check

import cyxla
from cyxla.errors import UnimplementedError
from cyxla.testing import cases
from cyxla.xla.batching import table
from cyxla.xla.hlo import parse_module
from cyxla.xla.hlo.opcode import OPCODES

#: Opcodes that exchange data with other devices or the host, or that only other transformations make.
WITHOUT_RULE = {
    "all-gather", "all-gather-done", "all-gather-start", "all-reduce", "all-reduce-done", "all-reduce-start",
    "all-to-all", "async-done", "async-start", "async-update", "collective-broadcast", "collective-permute",
    "collective-permute-done", "collective-permute-start", "copy-done", "copy-start", "domain", "infeed", "outfeed",
    "partition-id", "ragged-all-to-all", "recv", "recv-done", "reduce-scatter", "replica-id", "send", "send-done",
}  # fmt: skip
WITHOUT_OPERANDS = {"parameter", "constant", "iota", "after-all"}  # the same for all elements
STATE = {"rng", "rng-get-and-update-state"}  # whose numbers differ from run to run
#: Reasons for which a program with a rule for each of its opcodes is refused.
REFUSALS = ("of a size that differs", "cannot differ by element", "of a token", "between memory layouts")


def programs():
    return [pytest.param(case, id=case["id"]) for case in cases.index()]


def test_every_opcode_has_a_rule_or_is_known_to_have_none():
    assert {name for name in OPCODES if table.find(name) is None} == WITHOUT_RULE | WITHOUT_OPERANDS


@pytest.mark.slow_but_every(6)
@pytest.mark.parametrize("case", programs())
def test_recorded_programs(case):
    module = parse_module(cases.read(case["id"] + "/program.hlo").decode())
    arguments = cases.arrays(case)[0]
    opcodes = {ins.opcode for c in module.computations.values() for ins in c.instructions}
    if opcodes & STATE or any(not isinstance(a, np.ndarray) for a in arguments):
        pytest.skip("tuples as arguments, or numbers that differ from run to run")
    rng = np.random.default_rng(len(case["id"]))
    choices = {tuple([True] * len(arguments)), tuple((rng.random(len(arguments)) < 0.5).tolist())}
    choices |= {tuple(k == n for n in range(len(arguments))) for k in range(len(arguments))}
    for flags in sorted(choices):
        try:
            check(module, arguments, flags, 3)
        except UnimplementedError as error:
            if not (opcodes & WITHOUT_RULE or any(r in str(error) for r in REFUSALS)):
                raise


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(0, 2), st.data())
def test_random_programs(seed, size, data):
    module, _ = random_programs.random_module(seed, 12)
    rng = np.random.default_rng(seed)
    arguments = [
        np.asarray(rng.uniform(-3, 3, p.shape.dims)).astype(p.shape.dtype.numpy_dtype)
        for p in module.entry.parameters
    ]  # fmt: skip
    flags = data.draw(st.lists(st.booleans(), min_size=len(arguments), max_size=len(arguments)))
    check(module, arguments, flags, size)


# -- loops and branches

COLLATZ = """
body { s = (s64[], s64[]) parameter(0)
  n = s64[] get-tuple-element(s), index=0  c = s64[] get-tuple-element(s), index=1
  one = s64[] constant(1)  two = s64[] constant(2)  three = s64[] constant(3)
  half = s64[] divide(n, two)  t = s64[] multiply(n, three)  up = s64[] add(t, one)
  r = s64[] remainder(n, two)  odd = pred[] compare(r, one), direction=EQ
  next = s64[] select(odd, up, half)  d = s64[] add(c, one)
  ROOT o = (s64[], s64[]) tuple(next, d) }
goes { s = (s64[], s64[]) parameter(0)  n = s64[] get-tuple-element(s), index=0  one = s64[] constant(1)
  ROOT p = pred[] compare(n, one), direction=GT }
ENTRY e { n = s64[] parameter(0)  z = s64[] constant(0)  i = (s64[], s64[]) tuple(n, z)
  ROOT w = (s64[], s64[]) while(i), body=body, condition=goes }
"""
#: The inner loop never ends for 0, which no element enters it with.
NESTED = """
inner { n = s64[] parameter(0)  two = s64[] constant(2)  ROOT h = s64[] divide(n, two) }
even { n = s64[] parameter(0)  two = s64[] constant(2)  r = s64[] remainder(n, two)  z = s64[] constant(0)
  ROOT p = pred[] compare(r, z), direction=EQ }
body { n = s64[] parameter(0)  w = s64[] while(n), body=inner, condition=even  one = s64[] constant(1)
  ROOT s = s64[] subtract(w, one) }
goes { n = s64[] parameter(0)  z = s64[] constant(0)  ROOT p = pred[] compare(n, z), direction=GT }
ENTRY e { n = s64[] parameter(0)  ROOT w = s64[] while(n), body=body, condition=goes }
"""
#: A branch with a loop that never ends unless the branch is taken.
GUARDED = """
halve { n = s64[] parameter(0)  two = s64[] constant(2)  ROOT h = s64[] divide(n, two) }
even { n = s64[] parameter(0)  two = s64[] constant(2)  r = s64[] remainder(n, two)  z = s64[] constant(0)
  ROOT p = pred[] compare(r, z), direction=EQ }
taken { n = s64[] parameter(0)  ROOT w = s64[] while(n), body=halve, condition=even }
other { n = s64[] parameter(0)  ROOT m = s64[] negate(n) }
ENTRY e { p = pred[] parameter(0)  n = s64[] parameter(1)
  ROOT c = s64[] conditional(p, n, n), true_computation=taken, false_computation=other }
"""
INDEXED = """
a { x = f32[2] parameter(0)  ROOT y = f32[2] negate(x) }
b { x = f32[2] parameter(0)  ROOT y = f32[2] multiply(x, x) }
c { x = f32[2] parameter(0)  ROOT y = f32[2] add(x, x) }
ENTRY e { i = s32[] parameter(0)  x = f32[2] parameter(1)
  ROOT r = f32[2] conditional(i, x, x, x), branch_computations={a, b, c} }
"""


def run(text, flags, size, *arguments):
    module = batched(parse_module(text), flags, size)
    results = cyxla.compile(module, platform="interpreter")(*[np.asarray(a) for a in arguments])
    return [np.asarray(r).tolist() for r in results]


def test_a_loop_ends_for_each_element_by_itself():
    n = [1, 6, 7, 27]
    assert run(COLLATZ, [True], 4, n) == [[1, 1, 1, 1], [0, 8, 16, 111]]


def test_loops_inside_do_not_run_for_elements_that_have_ended():
    assert run(NESTED, [True], 4, [0, 1, 12, 7]) == [[0, 0, 0, 0]]


@pytest.mark.parametrize("p, n, flags, want", [
    ([True, False, True], [12, 0, 7], [True, True], [3, 0, 7]),
    ([False, False], 0, [True, False], [0, 0]),  # no element enters the loop, which would not end
    (False, [0, 3], [False, True], [0, -3]),
    ([True, False], 12, [True, False], [3, -12]),
])  # fmt: skip
def test_branches_run_for_the_elements_that_take_them(p, n, flags, want):
    assert run(GUARDED, flags, len(want), p, n) == [want]


def test_an_index_out_of_range_takes_the_last_branch():
    x = np.full((5, 2), 3, np.float32)
    got = run(INDEXED, [True, True], 5, np.array([0, 1, 2, 9, -1], np.int32), x)
    assert [row[0] for row in got[0]] == [-3, 9, 6, 6, 6]


def test_values_that_all_elements_share_are_computed_once():
    module = batched(parse_module(
        "ENTRY e { w = f32[3] parameter(0)  x = f32[3] parameter(1)  s = f32[3] sine(w)  ROOT y = f32[3] add(s, x) }"
    ), [False, True], 4)  # fmt: skip
    sine = next(i for i in module.entry.instructions if i.opcode == "sine")
    assert sine.shape.dims == (3,)


def test_an_opcode_without_a_rule_is_named():
    text = "ENTRY e { x = f32[] parameter(0)  ROOT d = f32[] collective-permute(x), source_target_pairs={{0,0}} }"
    with pytest.raises(UnimplementedError, match="collective-permute has no batching rule"):
        batched(parse_module(text), [True], 2)
