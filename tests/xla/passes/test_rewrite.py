"""The engine applies rules to the fixpoint, in time that grows with the program, and says when they never end."""

# ruff: noqa: E501  programs read best a line at a time

import logging

import pytest
from support.interrupts import at_most, lines_run

from cyxla.errors import ShapeError
from cyxla.types import Literal, Shape
from cyxla.xla.hlo import HloModule, parse_module
from cyxla.xla.passes.engine.pattern import Uniform, Var, attr, op
from cyxla.xla.passes.engine.rewrite import Again, RewritePass, rule
from cyxla.xla.passes.simplify import algebra as rules_of_algebra

x, y, z = Var("x"), Var("y"), Var("z")
F32 = Shape.array("f32", (4,))
S32 = Shape.array("s32")


def chain(opcode: str, length: int, shape: Shape, operand=None) -> HloModule:
    """A parameter through `length` instructions."""
    module = HloModule("chain")
    entry = module.entry = module.new_computation("e")
    value = entry.add("parameter", attrs={"parameter_number": 0}, shape=shape)
    others = [operand(entry)] if operand else []
    for _ in range(length):
        value = entry.add(opcode, [value, *others], shape=shape)
    entry.root = value
    return module


def zero(entry):
    return entry.add("constant", attrs={"literal": Literal(0, S32)}, shape=S32)


def opcodes(module):
    return [i.opcode for i in module.entry.post_order()]


@pytest.mark.parametrize("text", ["add(x, z)", "add(z, x)"])
def test_commutative_operands_match_in_either_order(text):
    m = parse_module(f"HloModule m\nENTRY e {{ x = s32[] parameter(0) z = s32[] constant(0) ROOT r = s32[] {text} }}")
    assert RewritePass("p", [rule(x + 0, x)]).run(m)
    assert opcodes(m) == ["parameter"]


def test_operands_of_others_do_not():
    m = parse_module(
        "HloModule m\nENTRY e { x = s32[] parameter(0) z = s32[] constant(0) ROOT r = s32[] subtract(z, x) }"
    )
    assert not RewritePass("p", [rule(x - 0, x)]).run(m)


def test_a_variable_stands_for_one_instruction():
    m = parse_module(
        "HloModule m\nENTRY e { x = s32[] parameter(0) y = s32[] parameter(1) ROOT r = s32[] subtract(x, y) }"
    )
    assert not RewritePass("p", [rule(x - x, 0)]).run(m)


def test_an_attribute_variable_stands_for_one_value():
    p = attr("p")
    twice = rule(op("reverse", op("reverse", x, dimensions=p), dimensions=p), x)
    text = "HloModule m\nENTRY e {{ x = f32[2,2] parameter(0) a = f32[2,2] reverse(x), dimensions={{0}} ROOT b = f32[2,2] reverse(a), dimensions={{{}}} }}"
    assert RewritePass("p", [twice]).run(parse_module(text.format(0)))
    assert not RewritePass("p", [twice]).run(parse_module(text.format(1)))


def test_inexact_rules_are_off_unless_asked_for():
    rules = [rule(x + 0, x, exact=False)]
    assert not RewritePass("p", rules).run(chain("add", 1, S32, zero))
    assert RewritePass("p", rules, exact=False).run(chain("add", 1, S32, zero))


def test_a_rule_that_changes_the_shape_raises():
    wrong = rule(
        op("negate", x), lambda m: m.root.computation.add("is-finite", [m.x], shape=m.x.shape.with_dtype(PRED))
    )
    with pytest.raises(ShapeError, match=r"negate\(x\)"):
        RewritePass("p", [wrong]).run(chain("negate", 1, F32))


PRED = Shape.array("pred").dtype


def test_rules_that_undo_each_other_are_named_and_stopped(caplog):
    there = rule(op("floor", x), op("ceil", x))
    back = rule(op("ceil", x), op("floor", x))
    with caplog.at_level(logging.WARNING):
        assert RewritePass("p", [there, back]).run(chain("floor", 1, F32))
    assert len(caplog.records) == 1
    assert str(there) in caplog.text
    assert str(back) in caplog.text


def test_a_rule_that_matches_its_own_result_is_stopped(caplog):
    grows = rule(
        op("negate", x),
        lambda m: m.root.computation.add("abs", [m.root.computation.add("negate", [m.x], shape=F32)], shape=F32),
    )
    assert RewritePass("p", [grows]).run(chain("negate", 1, F32))
    assert "undo each other" in caplog.text


def test_rules_match_results_of_other_rules():
    m = chain("negate", 6, F32)
    assert RewritePass("p", [rule(op("negate", -x), x)]).run(m)
    assert opcodes(m) == ["parameter"]
    assert len(m.entry.instructions) == 1  # what nobody reads is gone


def test_control_dependencies_are_left_alone():
    m = parse_module("""HloModule m
ENTRY e { x = f32[4] parameter(0) a = f32[4] negate(x) b = f32[4] negate(a)
  c = f32[4] exponential(x), control-predecessors={b} ROOT t = (f32[4], f32[4]) tuple(b, c) }""")
    assert not RewritePass("p", [rule(op("negate", -x), x)]).run(m)


def test_dynamic_sizes_are_left_alone():
    m = parse_module(
        "HloModule m\nENTRY e { x = f32[<=4] parameter(0) a = f32[<=4] negate(x) ROOT b = f32[<=4] negate(a) }"
    )
    assert not RewritePass("p", [rule(op("negate", -x), x)]).run(m)


def test_a_bitcast_keeps_the_layout_it_reads():
    m = parse_module("""HloModule m
ENTRY e { x = f32[2,3]{1,0} parameter(0) c = f32[2,3]{0,1} copy(x) ROOT b = f32[6]{0} bitcast(c) }""")
    assert not rules_of_algebra.run(m)


def test_again_looks_only_at_changes():
    looked = []
    watch = rule(op("negate", x), lambda m: looked.append(m.root))
    again, m = Again(RewritePass("p", [watch])), chain("negate", 5, F32)
    again.run(m)
    assert len(looked) == 5
    again.run(m)
    assert len(looked) == 5
    last = m.entry.root
    m.entry.root = m.entry.add("negate", [last], shape=F32)
    again.run(m)
    assert len(looked) == 6


def test_constants_merge_only_once():
    c, d = Uniform("c"), Uniform("d")
    assert str(rule((x + c) + d, x + (c + d))) == "add(add(x, c), d) -> add(x, add(c, d))"


@pytest.mark.parametrize("opcode", ["negate", "add"])
def test_work_grows_with_the_program(opcode):
    def work(length):
        m = chain(opcode, length, S32, zero if opcode == "add" else None)
        lines = lines_run(rules_of_algebra.run, m)
        assert opcodes(m) == ["parameter"]
        return lines

    work(4)
    assert work(4000) < 2.2 * work(2000)


def test_a_program_without_anything_to_do_takes_little_time():
    m = chain("exponential", 3000, F32)
    with at_most(lines=100 * 3000):
        assert not rules_of_algebra.run(m)
