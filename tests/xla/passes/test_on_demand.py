"""Passes of rare opcodes are imported for programs with these opcodes only."""

import json
import subprocess
import sys

import pytest

from cyxla.xla.cpu import lowering
from cyxla.xla.hlo import parse_module
from cyxla.xla.passes.engine.on_demand import OnDemand
from cyxla.xla.passes.simplify import simplification

PASSES = {n: p for n, p in (*lowering.PASSES, *simplification.SIMPLIFY) if isinstance(p, OnDemand)}


class Recorded(Exception):  # noqa: N818
    """Table of rewrites that a pass hands to its driver."""


def record(_module, table):
    raise Recorded(frozenset(table))


BY_HAND = {"sparse_dot": {"dot"}, "conditional_simplifier": {"conditional"}}  # these visit the instructions themselves


@pytest.mark.parametrize("name", [n for n in PASSES if n not in BY_HAND])
def test_the_opcodes_are_those_that_a_pass_rewrites(name, monkeypatch):
    module = PASSES[name].load()
    monkeypatch.setattr(module, "rewrite_each", record)
    with pytest.raises(Recorded) as recorded:
        module.run(parse_module("ENTRY e { ROOT a = f32[2] parameter(0) }"))
    assert recorded.value.args[0] == PASSES[name].opcodes


@pytest.mark.parametrize("name", BY_HAND)
def test_opcodes_of_the_others(name):
    assert PASSES[name].opcodes == BY_HAND[name]


def test_opcodes_are_found_in_all_computations():
    text = """
        f { a = f32[2] parameter(0) ROOT b = f32[2] negate(a) }
        ENTRY e { a = f32[2] parameter(0) ROOT b = f32[2] call(a), to_apply=f }
    """
    module = parse_module(text)
    assert OnDemand("expand.scan", "negate").occurs_in(module)
    assert not OnDemand("expand.scan", "scan").occurs_in(module)
    assert not OnDemand("no.such.module", "scan")(module)
    with pytest.raises(ModuleNotFoundError, match=r"passes\.no"):
        OnDemand("no.such.module", "negate")(module)


COMPILE = """
import json, sys
import cyxla
cyxla.compile(sys.argv[1], cache=False)
print(json.dumps([name for name in sys.modules if name.startswith("cyxla.xla.passes.")]))
"""
SCAN = """
    step {
      c = f32[] parameter(0) x = f32[] parameter(1) s = f32[] add(c, x)
      ROOT t = (f32[], f32[]) tuple(s, s)
    }
    ENTRY e {
      x = f32[8] parameter(0) zero = f32[] constant(0)
      ROOT s = (f32[8], f32[]) scan(x, zero), dimensions={0}, num_carries=1, to_apply=step
    }
"""
PROGRAMS = {
    "negate": ("ENTRY e { a = f32[2] parameter(0) ROOT b = f32[2] negate(a) }", set()),
    "scan": (SCAN, {"scan"}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_imports_the_passes_that_it_needs(name):
    text, needed = PROGRAMS[name]
    out = subprocess.run([sys.executable, "-c", COMPILE, text], capture_output=True, text=True, check=True).stdout
    modules = {m.rpartition(".")[2] for m in json.loads(out)}
    assert modules & {"scan", "ragged_dot", "scaled_dot", "collectives", "batch_norm", "sparse_dot"} == needed
