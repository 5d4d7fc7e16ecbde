"""Fingerprints: equal for equal programs in every process, different for different ones."""

# ruff: noqa: E501
from __future__ import annotations

import os
import subprocess
import sys

import pytest
from support.interrupts import lines_run

from cyxla.xla.hlo import parse_module
from cyxla.xla.hlo.fingerprint import fingerprint, fingerprint_computation

BASE = """HloModule m, entry_computation_layout={(f32[2,3]{1,0}, f32[])->f32[2]{0}}

sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

ENTRY main {
  p = f32[2,3]{1,0} parameter(0)
  z = f32[] parameter(1)
  c = f32[2,3]{1,0} constant({{1, 2, 3}, {4, 5, 6}})
  q = f32[2,3]{1,0} multiply(p, c), metadata={op_name="here" source_line=7}
  u = f32[2]{0} custom-call(q), custom_call_target="t", backend_config="one"
  r = f32[2]{0} reduce(q, z), dimensions={1}, to_apply=sum
  ROOT t = f32[2]{0} subtract(r, u)
}
"""

SAME = {
    "module name": ("HloModule m", "HloModule other"),
    "instruction name": ("q", "quotient"),
    "computation name": ("sum", "total"),
    "metadata": ('op_name="here"', 'op_name="there"'),
    "sharding": ("subtract(r, u)", "subtract(r, u), sharding={replicated}"),
    "order": (
        "  u = f32[2]{0} custom-call(q), custom_call_target=\"t\", backend_config=\"one\"\n  r = f32[2]{0} reduce(q, z), dimensions={1}, to_apply=sum\n",
        "  r = f32[2]{0} reduce(q, z), dimensions={1}, to_apply=sum\n  u = f32[2]{0} custom-call(q), custom_call_target=\"t\", backend_config=\"one\"\n",
    ),
    "implied layouts": ("f32[2,3]{1,0} multiply", "f32[2,3] multiply"),
}  # fmt: skip
OTHER = {
    "opcode": ("multiply(p, c)", "divide(p, c)"),
    "operand order": ("multiply(p, c)", "multiply(c, p)"),
    "constant": ("5, 6", "5, 7"),
    "negative zero": ("{1, 2, 3}", "{-0, 2, 3}"),
    "attribute": ('custom_call_target="t"', 'custom_call_target="v"'),
    "backend_config": ('backend_config="one"', 'backend_config="two"'),
    "called computation": ("add(x, y)", "maximum(x, y)"),
    "called operand order": ("add(x, y)", "add(y, x)"),
    "entry layout": ("(f32[2,3]{1,0}, f32[])", "(f32[2,3]{0,1}, f32[])"),
    "replicas": ("HloModule m,", "HloModule m, replica_count=2,"),
    "donation": ("HloModule m,", "HloModule m, buffer_donor={ (0, {}) },"),
    "control": ("to_apply=sum", "to_apply=sum, control-predecessors={u}"),
    "root": ("ROOT t = f32[2]{0} subtract(r, u)", "ROOT t = f32[2]{0} subtract(u, r)"),
}


def changed(old: str, new: str) -> str:
    """The base program with a word replaced, once it has been seen to be there."""
    import re

    text = re.sub(rf"\b{old}\b", new, BASE) if old.isidentifier() else BASE.replace(old, new)
    assert text != BASE
    return text


@pytest.mark.parametrize("what", SAME)
def test_irrelevant_changes_keep_the_fingerprint(what):
    assert fingerprint(parse_module(changed(*SAME[what]))) == fingerprint(parse_module(BASE))


@pytest.mark.parametrize("what", OTHER)
def test_relevant_changes_alter_the_fingerprint(what):
    assert fingerprint(parse_module(changed(*OTHER[what]))) != fingerprint(parse_module(BASE))


def test_no_two_changes_give_the_same():
    texts = [BASE, *(changed(*pair) for pair in OTHER.values())]
    assert len({fingerprint(parse_module(t)) for t in texts}) == len(texts)


def test_unreachable_computations_do_not_count():
    text = BASE.replace("sum {", "lonely {\n  ROOT x = f32[] parameter(0)\n}\n\nsum {", 1)
    assert fingerprint(parse_module(text)) == fingerprint(parse_module(BASE))


def test_a_computation_has_one_of_its_own():
    module = parse_module(BASE)
    both = {fingerprint_computation(c) for c in module.post_order()}
    assert len(both) == 2
    assert all(len(f) == 32 for f in both)


@pytest.mark.slow
def test_every_process_finds_the_same():
    code = "import sys; from cyxla.xla.hlo import parse_module; print(parse_module(sys.stdin.read()).fingerprint())"
    found = {fingerprint(parse_module(BASE))}
    for seed in ("0", "1"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-c", code], input=BASE, env=env, capture_output=True, text=True, check=True
        )
        found.add(done.stdout.strip())
    assert len(found) == 1


def test_a_long_program_is_quick_and_needs_no_recursion():
    def work(length):
        lines = ["  x0 = f32[4,5]{1,0} parameter(0)"]
        lines += [f"  x{i} = f32[4,5]{{1,0}} add(x{i - 1}, x{i - 1})" for i in range(1, length)]
        return lines_run(fingerprint, parse_module("HloModule m\nENTRY main {\n" + "\n".join(lines) + "\n}"))

    work(10)
    assert work(3500) < 2.2 * work(1750)
    assert work(3500) < 100 * 3500
