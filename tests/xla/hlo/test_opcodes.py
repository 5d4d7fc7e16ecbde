"""The registry of opcodes as a whole."""

# ruff: noqa: E501
from __future__ import annotations

import pytest

from cyxla.errors import AlreadyExistsError, NotFoundError, ShapeError
from cyxla.types import Shape
from cyxla.xla.hlo import OPCODES, complete_attrs, lookup
from cyxla.xla.hlo.opcode import FLOAT, INTEGER, NUMBER, PRED, opcode

KINDS = {
    "int", "bool", "float", "string", "dims", "dims_list", "slice", "padding", "window", "dim_labels", "precision", "replica_groups",
    "pairs", "aliasing", "shape", "shapes", "literal", "domain", "accuracy", "tristate",
}  # fmt: skip


def test_there_are_as_many_opcodes_as_in_hlo():
    assert len(OPCODES) == 133


@pytest.mark.parametrize("name", sorted(OPCODES))
def test_rows_are_consistent(name):
    row = OPCODES[name]
    assert row.name == name
    least, most = row.arity
    assert least >= 0
    assert most is None or least <= most
    assert row.accepts <= NUMBER | PRED
    assert all(a.kind in KINDS or a.kind.startswith("enum:") for a in row.attrs)
    assert len({a.name for a in row.attrs}) == len(row.attrs)
    assert not row.many_calls or len(row.calls) == 1
    assert not row.commutes or row.arity == (2, 2)
    assert row.unit is None or row.arity == (2, 2)
    assert not row.elementwise or 1 <= least == most <= 3
    for attr in row.attrs:
        if attr.kind.startswith("enum:") and not attr.required and attr.default is not None:
            assert attr.default in attr.kind[5:].split(",")


def test_unknown_opcodes_are_answered_with_near_ones():
    with pytest.raises(NotFoundError) as error:
        lookup("reduce-windw")
    assert "reduce-window" in error.value.hint


def test_no_opcode_is_registered_twice():
    with pytest.raises(AlreadyExistsError):
        opcode("add", 2)
    assert lookup("add").commutes


def test_comparison_type_follows_the_element_type():
    row = lookup("compare")
    for dtype, kind in (
        ("s8", "SIGNED"),
        ("u8", "UNSIGNED"),
        ("pred", "UNSIGNED"),
        ("bf16", "FLOAT"),
        ("c64", "FLOAT"),
    ):
        assert complete_attrs(row, {"direction": "EQ"}, [Shape.array(dtype)] * 2)["type"] == kind
    assert complete_attrs(row, {"direction": "EQ", "type": "TOTALORDER"}, [])["type"] == "TOTALORDER"


def test_attributes_stand_in_the_order_of_the_row():
    row = lookup("rng-bit-generator")
    assert complete_attrs(row, {"algorithm": "rng_default"}, []) == {"algorithm": "rng_default"}
    full = complete_attrs(lookup("dot"), {"rhs_contracting_dims": (0,), "lhs_contracting_dims": (1,)}, [])
    assert list(full) == [a.name for a in lookup("dot").attrs]
    assert full["lhs_batch_dims"] == ()


def test_enumerated_attributes_take_only_their_words():
    with pytest.raises(ShapeError):
        complete_attrs(lookup("dot"), {"no_such": 1}, [])


def test_element_type_sets_do_not_overlap():
    assert not INTEGER & FLOAT
    assert not PRED & NUMBER
