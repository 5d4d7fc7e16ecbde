"""Protobuf messages made from tables."""

import pytest
from google.protobuf import descriptor_pool

from cyxla.types.proto_table import SCALARS, ProtoFile

TABLE = """
Outer
    a=1:i64* b=2:str? inner=3:Outer.Inner* which=4:bytes@kind other=5:f32@kind colour=6:Colour by_name=7:str>Outer.Inner
Outer.Inner
    n=1:u32 deep=2:Outer.Inner.Deep
Outer.Inner.Deep
Empty
"""


@pytest.fixture(scope="module")
def classes():
    return ProtoFile("probe", TABLE, {"Colour": {"RED": 0, "BLUE": 2}}).classes(descriptor_pool.DescriptorPool())


def test_fields_of_every_kind(classes):
    made = classes["Outer"](a=[1, 2], inner=[{"n": 3}], which=b"x", colour=2)
    made.by_name["k"].n = 7
    again = classes["Outer"].FromString(made.SerializeToString())
    assert again == made
    assert (list(again.a), again.inner[0].n, again.by_name["k"].n, again.WhichOneof("kind")) == ([1, 2], 3, 7, "which")


def test_presence(classes):
    assert not classes["Outer"]().HasField("b")
    assert classes["Outer"](b="").HasField("b")


def test_enums_have_names(classes):
    assert "colour: BLUE" in str(classes["Outer"](colour=2))


def test_nested_messages_are_found_by_dotted_names(classes):
    assert sorted(name for name in classes if "Entry" not in name) == [
        "Empty",
        "Outer",
        "Outer.Inner",
        "Outer.Inner.Deep",
    ]


def test_other_packages():
    first = ProtoFile("one", "A\n    x=1:i64")
    second = ProtoFile("two", "B\n    a=1:.one.A")
    second.depend(first)
    pool = descriptor_pool.DescriptorPool()
    first.classes(pool)
    assert second.classes(pool)["B"](a={"x": 3}).a.x == 3


def test_scalars_can_be_read_differently():
    made = ProtoFile("bytes", "A\n    x=1:str", scalars=SCALARS | {"str": SCALARS["bytes"]})
    assert made.classes(descriptor_pool.DescriptorPool())["A"](x=b"\xff").x == b"\xff"
