"""Declarations built piece by piece."""

import logging

import pytest

from cyxla.core.framework.declarations import op_def as op_def_module
from cyxla.core.framework.declarations.op import OpRegistry, op
from cyxla.core.framework.declarations.op_def import (
    ArgDef,
    AttrDef,
    OpDef,
    OpDeprecation,
    check_op_deprecation,
    validate_op_def,
)
from cyxla.core.framework.declarations.op_def_builder import OpDefBuilder
from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError, UnimplementedError


def built(*attrs, inputs=(), outputs=(), name="A"):
    builder = OpDefBuilder(name)
    for spec in inputs:
        builder.input(spec)
    for spec in outputs:
        builder.output(spec)
    for spec in attrs:
        builder.attr(spec)
    return builder.finalize().op_def


def test_a_chain_gives_a_declaration_and_setters_return_the_builder():
    builder = OpDefBuilder("A")
    calls = [
        builder.input("x: T"),
        builder.output("y: T"),
        builder.attr("T: type"),
        builder.doc("A."),
        builder.set_is_stateful(),
        builder.set_is_commutative(),
        builder.set_is_aggregate(),
        builder.set_allows_uninitialized_input(),
        builder.set_is_distributed_communication(),
        builder.deprecated(3, "Use B."),
        builder.control_output("done"),
        builder.set_shape_fn(None),
    ]
    assert all(result is builder for result in calls)
    made = builder.finalize().op_def
    assert made.is_stateful
    assert made.is_commutative
    assert made.is_aggregate
    assert made.allows_uninitialized_input
    assert (made.deprecation, made.control_output) == (OpDeprecation(3, "Use B."), ("done",))
    assert str(OpDefBuilder("A").input("x: T").attr("T: type").finalize().op_def) == (
        "Op<name=A; signature=x:T -> ; attr=T:type>"
    )


def test_attrs_may_follow_the_inputs_that_use_them():
    made = built("T: type", "N: int", inputs=["x: N * T"])
    assert made.input_arg == (ArgDef("x", type_attr="T", number_attr="N"),)
    assert made.attr == (AttrDef("T", "type"), AttrDef("N", "int", minimum=1))


def test_all_faults_are_reported_together():
    """One error, code 3."""
    with pytest.raises(InvalidArgumentError) as caught:
        OpDefBuilder("A").input("X: T").output("y: Q").attr("a: nonsense").attr("T: type 7").finalize()
    assert caught.value.code == "INVALID_ARGUMENT"
    for part in ("'X: T'", "'Q'", "nonsense", "'7'"):
        assert part in caught.value.message


BAD = {
    "duplicate attr": {"attrs": ["a: int", "a: int"]},
    "duplicate argument": {"inputs": ["x: float"], "outputs": ["x: float"]},
    "argument named like an attr": {"attrs": ["x: int"], "inputs": ["x: float"]},
    "attr named like a type": {"attrs": ["float: int"]},
    "attr named like a type by width": {"attrs": ["float32: int"]},
    "minimum of a string": {"attrs": ["a: string >= 1"]},
    "negative length": {"attrs": ["a: list(int) >= -1"]},
    "default below the minimum": {"attrs": ["a: int >= 2 = 1"]},
    "default too short": {"attrs": ["a: list(int) >= 2 = [1]"]},
    "default that is not allowed": {"attrs": ["a: {'x', 'y'} = 'z'"]},
    "default type that is not allowed": {"attrs": ["a: {float, half} = DT_INT32"]},
    "lower-case name": {"name": "zeroOut"},
    "name with a dash": {"name": "Zero-Out"},
    "empty name": {"name": ""},
    "number of a type list": {"attrs": ["L: list(type)", "N: int"], "inputs": ["x: N * L"]},
    "length without a lower bound of 0": {"attrs": ["N: int >= -1"], "inputs": ["x: N * float"]},
}


@pytest.mark.parametrize("parts", BAD.values(), ids=BAD)
def test_rules_of_declarations(parts):
    """Every violation is code 3."""
    with pytest.raises(InvalidArgumentError):
        built(*parts.pop("attrs", ()), **parts)


@pytest.mark.parametrize("name", ["ZeroOut", "_Internal", "_XlaRun", "Addons>Gelu", "Conv2D", "A_b"])
def test_good_names(name):
    assert built(name=name).name == name


COUNT = AttrDef("N", "int", minimum=0)
ILL_FORMED = [
    OpDef("A", (ArgDef("x"),)),
    OpDef("A", (ArgDef("x", DataType.DT_FLOAT, type_attr="T"),), attr=(AttrDef("T", "type"),)),
    OpDef("A", (ArgDef("x", number_attr="N", type_list_attr="L"),), attr=(COUNT, AttrDef("L", "list(type)"))),
    OpDef("A", (ArgDef("x", type_attr="T"),)),
    OpDef("A", (ArgDef("x", DataType.DT_FLOAT, number_attr="N"),), attr=(AttrDef("N", "int"),)),
    OpDef("A", attr=(AttrDef("a", "int", allowed=("x",)),)),
]  # fmt: skip


@pytest.mark.parametrize("op_def", ILL_FORMED, ids=range(len(ILL_FORMED)))
def test_one_way_to_say_the_type(op_def):
    with pytest.raises(InvalidArgumentError):
        validate_op_def(op_def)


DOC = """
Scale rows.

Each row of x is multiplied.
  Indented stays.

x: what is scaled
  over two lines
    deeper
T: the type
y: the result
"""


def test_doc_lands_in_the_right_fields():
    """Summary, description, texts of arguments and attributes."""
    made = OpDefBuilder("A").input("x: T").output("y: T").attr("T: type").doc(DOC).finalize().op_def
    assert made.summary == "Scale rows."
    assert made.description == "Each row of x is multiplied.\n  Indented stays."
    assert made.input_arg[0].description == "what is scaled\nover two lines\n  deeper"
    assert (made.attr[0].description, made.output_arg[0].description) == ("the type", "the result")


@pytest.mark.parametrize("build", [
    lambda: OpDefBuilder("A").doc("Summary.\n\nnobody: is here"),
    lambda: OpDefBuilder("A").doc("One.").doc("Two."),
    lambda: OpDefBuilder("A").deprecated(1, "a").deprecated(2, "b"),
    lambda: OpDefBuilder("A").set_shape_fn(lambda c: None).set_shape_fn(lambda c: None),
])  # fmt: skip
def test_duplicate_or_unknown_descriptions(build):
    """An unknown name in the doc is code 3."""
    with pytest.raises(InvalidArgumentError):
        build().finalize()


def test_decorator_and_chain_give_the_same():
    """Two spellings of one thing."""
    registry = OpRegistry()

    @op("Scale", "x: T, ss: N * T -> y: T", "T: {float, double}", "N: int", stateful=True, registry=registry)
    def shape_fn(c):
        """Scale."""
        c.set_output(0, c.input(0))

    chain = (
        OpDefBuilder("Scale").input("x: T").input("ss: N * T").output("y: T").attr("T: {float, double}").attr("N: int")
    )
    chain.set_is_stateful().doc("Scale.").set_shape_fn(shape_fn)
    assert registry.look_up("Scale") == chain.finalize()


def test_a_signature_needs_an_arrow():
    with pytest.raises(InvalidArgumentError, match="->"):
        op("A", "x: float", shape=None, registry=OpRegistry())


def test_deprecated_op_in_graphs_of_different_versions(caplog, monkeypatch):
    """Refused from the version on (code 12), one warning before."""
    monkeypatch.setattr(op_def_module, "_warned", set())
    made = OpDefBuilder("Old").deprecated(10, "Use New.").finalize().op_def
    with caplog.at_level(logging.WARNING):
        check_op_deprecation(made, 9)
        check_op_deprecation(made, 9)
    assert len(caplog.records) == 1
    with pytest.raises(UnimplementedError, match="version 10"):
        check_op_deprecation(made, 10)
