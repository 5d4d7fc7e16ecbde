"""Layouts: their HLO spelling."""

import dataclasses

import pytest

from cyxla.types import COMBINE, Layout, Shape, SplitConfig, row_major
from cyxla.xla.hlo import parse_shape


@pytest.mark.parametrize("fields, text", [
    ({},                                                                  "{1,0}"),
    ({"tiles": ((8, 128), (2, 1))},                                       "{1,0:T(8,128)(2,1)}"),
    ({"tiles": ((COMBINE, 4),)},                                          "{1,0:T(*,4)}"),
    ({"dim_level_types": ("D", "C")},                                     "{1,0:D(D,C)}"),
    ({"tail_padding_alignment": 8},                                       "{1,0:L(8)}"),
    ({"tail_padding_alignment": 0},                                       "{1,0:L(0)}"),
    ({"index_primitive_type": "u32", "pointer_primitive_type": "u64"},    "{1,0:#(u32)*(u64)}"),
    ({"element_size_in_bits": 4, "memory_space": 5},                      "{1,0:E(4)S(5)}"),
    ({"split_configs": (SplitConfig(1, (32, 64)), SplitConfig(0, (2,)))}, "{1,0:SC(1:32,64)(0:2)}"),
    ({"physical_shape": "f32[8]{0}"},                                     "{1,0:P(f32[8]{0})}"),
    ({"dynamic_shape_metadata_prefix_bytes": 16},                         "{1,0:M(16)}"),
])  # fmt: skip
def test_spelling(fields, text):
    layout = Layout((1, 0), **fields)
    assert str(layout) == text
    assert Shape.array("f32", (2, 3), layout=layout).to_text() == f"f32[2,3]{text}"


@pytest.mark.parametrize("text", ["f32[2,3]{0,1}", "f32[2,3]{1,0:T(2,128)(2,1)S(5)}", "s4[7]{0:E(4)}"])
def test_reading_leads_back(text):
    assert parse_shape(text).to_text() == text


@pytest.mark.parametrize("rank, order", [(0, ()), (1, (0,)), (3, (2, 1, 0))])
def test_row_major(rank, order):
    assert row_major(rank).minor_to_major == order
    assert row_major(rank) is row_major(rank)


def test_layouts_do_not_change():
    layout = row_major(2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        layout.memory_space = 1
