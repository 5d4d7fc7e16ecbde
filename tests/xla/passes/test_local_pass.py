"""A pass over computations runs again only on those that have changed, or whose callees have."""

import pytest

from cyxla.xla.hlo import parse_module
from cyxla.xla.passes.engine.local_pass import LocalPass

TEXT = """
    inner { a = f32[] parameter(0) ROOT b = f32[] negate(a) }
    other { a = f32[] parameter(0) ROOT b = f32[] sine(a) }
    outer { a = f32[] parameter(0) ROOT b = f32[] call(a), to_apply=inner }
    ENTRY e {
      a = f32[] parameter(0) b = f32[] call(a), to_apply=outer
      c = f32[] call(b), to_apply=other
      ROOT d = f32[] add(b, c)
    }
"""
ALL = ["inner", "outer", "other", "e"]


def add_to(name):
    def change(module):
        computation = module.computations[name]
        computation.add("cosine", [computation.root], shape=computation.root.shape)

    return change


def call_another(module):
    computation, callee = module.computations["outer"], module.computations["other"]
    new = computation.add("call", computation.parameters, shape=computation.root.shape, called=[callee])
    computation.replace_all_uses(computation.root, new)


CHANGES = {
    "nothing": (lambda module: None, []),
    "the entry": (add_to("e"), ["e"]),
    "a callee": (add_to("other"), ["other", "e"]),
    "a callee of a callee": (add_to("inner"), ["inner", "outer", "e"]),
    "another callee": (call_another, ["outer", "e"]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_runs_after_changes(name):
    change, expected = CHANGES[name]
    module, visited = parse_module(TEXT), []
    local = LocalPass("p", lambda c: visited.append(c.name))
    assert not local.run(module)
    assert sorted(visited) == sorted(ALL)
    visited.clear()
    change(module)
    local.run(module)
    assert sorted(visited) == sorted(expected)


def test_changes_of_the_pass_itself_count():
    module, visited = parse_module(TEXT), []

    def function(computation):
        visited.append(computation.name)
        if computation.name == "inner" and len(computation.instructions) < 4:
            computation.add("cosine", [computation.root], shape=computation.root.shape)
            return True
        return False

    local = LocalPass("p", function)
    assert [local.run(module) for _ in range(4)] == [True, True, False, False]
    assert visited.count("inner") == 3
    assert visited.count("e") == 2
    assert visited.count("other") == 1
