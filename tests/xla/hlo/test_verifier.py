"""The verifier: faults that text can express, and faults that only passes can cause."""

from __future__ import annotations

import pytest
from support.interrupts import lines_run

from cyxla.errors import InvalidArgumentError, ResourceExhaustedError, ShapeError
from cyxla.types import Shape
from cyxla.xla.hlo import Computation, HloModule, parse_module, verify
from cyxla.xla.hlo.attributes import BufferDonor, EntryLayout, InputOutputAlias
from cyxla.xla.hlo.verifier import verify_computation

F = Shape.array("f32", (2,))
G = Shape.array("f32", (3,))


def chain(length: int) -> HloModule:
    """A parameter, added to itself over and over."""
    module = HloModule("m")
    comp = module.entry = module.new_computation("main")
    x = comp.add("parameter", (), {"parameter_number": 0}, shape=F, name="x")
    for _ in range(length):
        x = comp.add("add", (x, x), shape=F)
    comp.root = x
    return module


def refused(module: HloModule, rule: str, where: str = "") -> InvalidArgumentError:
    """The error of a module that breaks a rule."""
    with pytest.raises(InvalidArgumentError) as error:
        verify(module)
    assert error.value.rule == rule, str(error.value)
    assert where in error.value.where
    return error.value


def test_a_right_module_passes():
    module = chain(3)
    assert verify(module) is None
    assert module.verify() is None


def test_the_key_of_a_computation_is_its_name():
    module = chain(1)
    module.entry.name = "other"
    refused(module, "module V1")


def test_there_is_one_entry_and_it_belongs_to_the_module():
    module = HloModule("m")
    comp = module.new_computation("main")
    comp.root = comp.add("parameter", (), {"parameter_number": 0}, shape=F)
    assert "no entry" in refused(module, "module V2").message
    module.entry = chain(1).entry
    refused(module, "module V2")
    module.entry = comp
    verify(module)


def test_no_computation_calls_itself():
    module = chain(1)
    comp = module.entry
    for name, callee in (("a", comp), ("b", None)):
        other = module.new_computation(name)
        x = other.add("parameter", (), {"parameter_number": 0}, shape=F)
        other.root = other.add("call", [x], shape=F, called=[callee or module.computations["a"]])
    verify(module)
    x = comp.parameters[0]
    comp.root = comp.add("call", [x], shape=F, called=[module.computations["b"]])
    assert "calls itself" in refused(module, "module V3").message


def test_called_computations_belong_to_the_module():
    module, stranger = chain(1), chain(1).entry
    comp = module.entry
    comp.root = comp.add("call", [comp.parameters[0]], shape=F, called=[stranger])
    refused(module, "module V4")


def test_operands_belong_to_the_computation():
    module, other = chain(1), chain(1)
    comp = module.entry
    comp.root = comp.add("negate", [other.entry.parameters[0]], shape=F, name="n")
    assert "%x" in refused(module, "module V5", "%n").message


def test_control_predecessors_belong_to_the_computation():
    module = chain(1)
    comp = module.entry
    comp.root = comp.add("negate", [comp.root], shape=F, control_predecessors=[chain(1).entry.root])
    refused(module, "module V5")


def test_an_instruction_knows_its_computation():
    module = chain(1)
    module.entry.root.computation = Computation("elsewhere")
    refused(module, "module V5")


@pytest.mark.parametrize("users", [0, 1, 3])
def test_users_mirror_operands(users):
    module = chain(1)
    x, y = module.entry.instructions
    if users:
        x.users[y] = users
    else:
        del x.users[y]
    refused(module, "module V6")


def test_a_user_that_is_no_user_is_found():
    module = chain(2)
    x, _, z = module.entry.instructions
    x.users[z] = 1
    refused(module, "module V6")


@pytest.mark.parametrize("numbers", [[1], [0, 2], [0, 0]])
def test_parameters_are_numbered_without_gaps(numbers):
    module = HloModule("m")
    comp = module.entry = module.new_computation("main")
    for n in numbers:
        comp.root = comp.add("parameter", (), {"parameter_number": n}, shape=F)
    refused(module, "module V7", "main")


def test_the_root_is_there_and_belongs_to_the_computation():
    module = HloModule("m")
    comp = module.entry = module.new_computation("main")
    refused(module, "module V8")
    comp.root = chain(1).entry.root
    refused(module, "module V8")


HALVES = [
    ("copy-done", "(f32[2], f32[2], u32[])"),
    ("async-done", "((f32[2]), f32[2])"),
    ("async-update", "((f32[2]), f32[2])"),
    ("all-gather-done", "(f32[2], f32[2])"),
    ("collective-permute-done", "(f32[2], f32[2])"),
    ("all-reduce-done", "f32[2]"),
]


@pytest.mark.parametrize("done, shape", HALVES)
def test_the_second_half_of_an_operation_follows_the_first(done, shape):
    result = shape if done == "async-update" else "f32[2]"
    module = parse_module(f"HloModule m\nENTRY main {{\n p = {shape} parameter(0)\n ROOT r = {result} {done}(p)\n}}")
    refused(module, "module V9", "%r")


def test_halves_of_operations_that_belong_together_pass():
    text = """HloModule m
        ENTRY main {
          p = f32[2] parameter(0)
          s = (f32[2], f32[2], u32[]) copy-start(p)
          ROOT r = f32[2] copy-done(s)
        }"""
    verify(parse_module(text))


def test_a_cycle_is_found():
    module = chain(2)
    _, y, z = module.entry.instructions
    module.entry.replace_operand(y, 0, z)
    with pytest.raises(ShapeError, match="depends on itself"):
        verify(module)


def test_operands_may_come_later_in_the_list():
    module = chain(2)
    comp = module.entry
    x, y, z = comp.instructions
    comp.instructions = dict.fromkeys((z, y, x))
    verify(module)


def test_wrong_result_is_named_with_its_place():
    module = chain(1)
    module.entry.root.shape = G
    error = refused(module, "add result", "of computation main")
    assert "f32[2]" in error.message
    assert "f32[3]" in error.message


def test_unreachable_computations_are_checked():
    module = chain(1)
    other = module.new_computation("unused")
    other.root = other.add("iota", (), {"iota_dimension": 1}, shape=F)
    refused(module, "iota C3", "unused")


def test_layouts_and_dynamic_sizes_do_not_matter():
    text = """HloModule m
        ENTRY main {
          p = f32[<=4,2]{0,1} parameter(0)
          ROOT r = f32[4,2]{1,0} negate(p)
        }"""
    verify(parse_module(text))


@pytest.mark.parametrize(
    "layout, message",
    [(EntryLayout((), F), "0 parameters"), (EntryLayout((G,), F), "parameter 0"), (EntryLayout((F,), G), "result")],
)
def test_entry_layout_has_the_shapes_of_the_entry(layout, message):
    module = chain(1)
    module.config.entry_layout = EntryLayout((F,), F)
    verify(module)
    module.config.entry_layout = layout
    assert message in refused(module, "module V10").message


@pytest.mark.parametrize(
    "aliases, donors, rule",
    [
        ([InputOutputAlias((), 0, ())], [], ""),
        ([], [BufferDonor(0, ())], ""),
        ([InputOutputAlias((0,), 0, ())], [], "module V11"),
        ([InputOutputAlias((), 1, ())], [], "module V11"),
        ([InputOutputAlias((), 0, (0,))], [], "module V11"),
        ([InputOutputAlias((), 0, ()), InputOutputAlias((), 0, ())], [], "module V12"),
        ([], [BufferDonor(1, ())], "module V11"),
        ([InputOutputAlias((), 0, ())], [BufferDonor(0, ())], "module V13"),
        ([], [BufferDonor(0, ()), BufferDonor(0, ())], "module V13"),
    ],
)
def test_aliases_and_donors_name_existing_buffers_once(aliases, donors, rule):
    module = chain(1)
    module.config.input_output_alias, module.config.buffer_donor = tuple(aliases), tuple(donors)
    if rule:
        refused(module, rule)
    else:
        verify(module)


def test_aliased_buffers_have_the_same_size():
    module = chain(1)
    comp = module.entry
    comp.root = comp.add("concatenate", [comp.root, comp.root], {"dimensions": (0,)}, shape=Shape.array("f32", (4,)))
    module.config.input_output_alias = (InputOutputAlias((), 0, ()),)
    refused(module, "module V12")


def test_one_computation_can_be_checked_alone():
    comp = chain(2).entry
    verify_computation(comp)
    comp.root.shape = G
    with pytest.raises(ShapeError):
        verify_computation(comp)


def test_a_long_chain_is_quick():
    verify(chain(10))
    assert lines_run(verify, chain(10_000)) < 2.2 * lines_run(verify, chain(5000))


def test_programs_have_as_many_dimensions_as_numpy():
    def program(rank: int) -> HloModule:
        sizes = ",".join(["1"] * rank)
        return parse_module(f"ENTRY e {{ x = f32[{sizes}] parameter(0) ROOT r = f32[{sizes}] negate(x) }}")

    verify(program(64))
    with pytest.raises(ResourceExhaustedError, match="65 dimensions, but at most 64"):
        verify(program(65))
