"""HloModuleProto: reading, writing, and errors for damaged messages."""

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyxla.errors import DataLossError, InvalidArgumentError, OpError
from cyxla.types import ElementType, Literal, Shape
from cyxla.xla.hlo import OPCODES, HloModule, parse_module, parse_shape, to_text
from cyxla.xla.hlo.proto import from_proto, to_proto
from cyxla.xla.hlo.proto.attributes import codec
from cyxla.xla.hlo.proto.schema import messages
from cyxla.xla.hlo.proto.values import read_literal, read_shape, write_literal, write_shape

FIXTURE = (Path(__file__).parents[2] / "data" / "hlo_text.txt").read_text()
PROGRAMS = {
    name: text.split("\n--- as XLA prints it\n")[0]
    for name, _, text in (part.partition("\n") for part in FIXTURE.split("=== ")[1:])
}
NOT_IN_PROTO = ("replica_count=", "num_partitions=", "alias_passthrough_params=", "allow_spmd", "origin")


def entry(*lines: str) -> str:
    return "HloModule m\n\nENTRY e {\n  " + "\n  ".join(lines) + "\n}\n"


SIMPLE = entry("a = f32[2] parameter(0)", "b = f32[2] negate(a)", "ROOT c = f32[2] add(a, b)")
REDUCE = """HloModule m

sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

ENTRY e {
  a = f32[4] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(a, z), dimensions={0}, to_apply=sum
}
"""


def as_proto(text: str):
    message = messages()["HloModuleProto"]()
    message.ParseFromString(to_proto(parse_module(text)))
    return message


@pytest.mark.parametrize("name", [n for n, t in PROGRAMS.items() if not any(w in t for w in NOT_IN_PROTO)])
def test_a_program_survives_its_proto(name):
    module = parse_module(PROGRAMS[name])
    data = to_proto(module)
    again = from_proto(data)
    assert to_text(again) == to_text(module)
    assert to_proto(again) == data


@pytest.mark.parametrize("opcode", sorted(OPCODES))
def test_every_attribute_has_a_field(opcode):
    for attr in OPCODES[opcode].attrs:
        assert codec(opcode, attr.name)


def test_ids_are_keys_and_the_order_does_not_matter():
    message = as_proto(REDUCE)
    want = to_text(from_proto(message.SerializeToString()))
    renumber = {c.id: 2**60 - 7 * c.id for c in message.computations}
    for comp in message.computations:
        instructions = {i.id: 5 + 2**50 * n for n, i in enumerate(comp.instructions)}
        for i in comp.instructions:
            i.id = instructions[i.id]
            i.operand_ids[:] = [instructions[k] for k in i.operand_ids]
            i.called_computation_ids[:] = [renumber[k] for k in i.called_computation_ids]
        comp.id, comp.root_id = renumber[comp.id], instructions[comp.root_id]
        shuffled = list(comp.instructions)
        random.Random(1).shuffle(shuffled)
        del comp.instructions[:]
        comp.instructions.extend(shuffled)
    message.entry_computation_id = renumber[message.entry_computation_id]
    backwards = list(message.computations)[::-1]
    del message.computations[:]
    message.computations.extend(backwards)
    assert to_text(from_proto(message.SerializeToString())) == want


def test_an_hlo_proto_holds_a_module():
    outer = messages()["HloProto"]()
    outer.hlo_module.CopyFrom(as_proto(SIMPLE))
    assert to_text(from_proto(outer.SerializeToString())) == to_text(parse_module(SIMPLE))


def test_a_module_reads_and_writes_itself():
    module = parse_module(REDUCE)
    assert HloModule.from_proto(module.to_proto()).to_text() == module.to_text()


def test_a_schedule_keeps_the_order():
    text = SIMPLE.replace("HloModule m", "HloModule m, is_scheduled=true").replace(
        "  b =", "  d = f32[2] sine(a)\n  b ="
    )
    module = parse_module(text)
    assert [i.opcode for i in from_proto(to_proto(module)).entry.instructions] == ["parameter", "sine", "negate", "add"]


ARRAY_TYPES = [t for t in ElementType if t.is_array]


@pytest.mark.slow_but_every(6)
@pytest.mark.parametrize("dtype", ARRAY_TYPES, ids=str)
@given(data=st.data())
def test_every_bit_of_a_literal_survives(dtype, data):
    dims = data.draw(st.lists(st.integers(0, 3), max_size=3))
    size = int(np.prod(dims)) * dtype.itemsize
    raw = np.frombuffer(data.draw(st.binary(min_size=size, max_size=size)), np.uint8).copy()
    if dtype.text == "pred":
        raw &= 1
    elif dtype.bits < 8:
        raw &= 2**dtype.bits - 1
    array = raw.view(dtype.numpy_dtype) if not (dtype.bits < 8 and dtype.is_signed) else sign_extended(raw, dtype)
    literal = Literal(array.reshape(dims), Shape.array(dtype, dims))
    message = messages()["LiteralProto"]()
    write_literal(message, literal)
    message.ParseFromString(message.SerializeToString())
    assert read_literal(message) == literal


def sign_extended(raw: np.ndarray, dtype: ElementType) -> np.ndarray:
    return (raw.astype(np.int16) - (raw >> (dtype.bits - 1)) * 2**dtype.bits).astype(np.int8).astype(dtype.numpy_dtype)


def test_literals_come_in_the_order_of_their_layout():
    message = messages()["LiteralProto"]()
    write_shape(message.shape, parse_shape("s32[2,3]{0,1}"))
    message.s32s.extend([1, 4, 2, 5, 3, 6])
    assert read_literal(message).array.tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize("text", ["f32[2,3]{0,1:T(8,128)L(64)E(4)S(3)SC(1:32)}", "(f32[<=2,?]{1,0}, (), token[])"])
def test_shapes_survive(text):
    message = messages()["ShapeProto"]()
    write_shape(message, parse_shape(text))
    assert read_shape(message).to_text() == text


def test_layouts_that_no_text_can_say_are_refused():
    message = messages()["ShapeProto"]()
    write_shape(message, parse_shape("f32[2,3]{1,0:SC(1:32)}"))
    del message.layout.split_configs[0].split_indices[:]
    with pytest.raises(InvalidArgumentError, match="no index"):
        read_shape(message)


def first(message, opcode):
    return next(i for c in message.computations for i in c.instructions if i.opcode == opcode.encode())


def broken(change, text=REDUCE) -> bytes:
    message = as_proto(text)
    change(message)
    return message.SerializeToString()


def cycle(message):
    add = first(message, "add")
    add.operand_ids[0] = add.id


def calls_itself(message):
    reduce = first(message, "reduce")
    reduce.called_computation_ids[0] = message.entry_computation_id


def set_field(opcode, field, value):
    return lambda message: setattr(first(message, opcode), field, value)


BROKEN = {
    "operand without a target": lambda m: first(m, "add").operand_ids.__setitem__(0, 12345),
    "an instruction reads itself": cycle,
    "computation without a target": lambda m: first(m, "reduce").called_computation_ids.__setitem__(0, 12345),
    "a computation calls itself": calls_itself,
    "two equal ids": lambda m: [setattr(i, "id", 7) for i in m.computations[0].instructions],
    "two equal computations": lambda m: [setattr(c, "id", 7) for c in m.computations],
    "no root": lambda m: setattr(m.computations[0], "root_id", 999),
    "no entry": lambda m: (setattr(m, "entry_computation_id", 999), setattr(m, "entry_computation_name", b"nobody")),
    "unknown opcode": set_field("add", "opcode", b"frobnicate"),
    "too few operands": lambda m: first(m, "add").operand_ids.pop(),
    "no computation to call": lambda m: first(m, "reduce").called_computation_ids.pop(),
    "parameter 2^31 - 1": set_field("parameter", "parameter_number", 2**31 - 1),
    "parameter -1": set_field("parameter", "parameter_number", -1),
    "negative size": lambda m: first(m, "reduce").shape.dimensions.append(-5),
    "sizes that overflow": lambda m: first(m, "reduce").shape.dimensions.extend([2**40, 2**40]),
    "unknown type": lambda m: setattr(first(m, "add").shape, "element_type", 99),
    "layout of another rank": lambda m: first(m, "add").shape.layout.minor_to_major.append(3),
    "literal without data": lambda m: first(m, "constant").literal.f32s.pop(),
    "literal of another shape": lambda m: setattr(first(m, "constant").literal.shape, "element_type", 12),
    "no literal": lambda m: first(m, "constant").ClearField("literal"),
    "another program shape": lambda m: m.host_program_shape.parameters.pop(),
    "a schedule with a gap": lambda m: m.schedule.sequences.add(
        key=m.entry_computation_id
    ).value.instruction_ids.append(1),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_module_is_refused(name):
    with pytest.raises(InvalidArgumentError):
        from_proto(broken(BROKEN[name]))


def test_a_schedule_names_each_instruction_once():
    scheduled = SIMPLE.replace("HloModule m", "HloModule m, is_scheduled=true")
    for change in (lambda ids: ids.pop(), lambda ids: ids.append(ids[0]), lambda ids: ids.append(77)):
        with pytest.raises(InvalidArgumentError):
            from_proto(broken(lambda m, c=change: c(m.schedule.sequences[0].value.instruction_ids), scheduled))


def test_fields_have_the_numbers_of_xla():
    message = as_proto(entry("a = f32[2,3,4] parameter(0)", "b = f32[2,4,5] parameter(1)", DOT))
    dims = first(message, "dot").dot_dimension_numbers
    numbers = dims.lhs_contracting_dimensions, dims.rhs_contracting_dimensions, dims.lhs_batch_dimensions
    assert [list(n) for n in numbers] == [[2], [1], [0]]
    assert list(dims.rhs_batch_dimensions) == [0]
    raw = dims.SerializeToString()
    assert raw == b"\x0a\x01\x02\x12\x01\x01\x1a\x01\x00\x22\x01\x00"


DOT = (
    "ROOT r = f32[2,3,5] dot(a, b), lhs_batch_dims={0}, lhs_contracting_dims={2}, "
    "rhs_batch_dims={0}, rhs_contracting_dims={1}"
)


def test_a_huge_literal_without_data_takes_no_memory():
    def change(message):
        for shape in (first(message, "constant").shape, first(message, "constant").literal.shape):
            shape.dimensions.append(2**38)
            shape.layout.minor_to_major.append(0)

    with pytest.raises(InvalidArgumentError):
        from_proto(broken(change))


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff" * 100, b"HloModule m", to_proto(parse_module(SIMPLE))[:-5]])
def test_bytes_that_are_no_message_are_refused(data):
    with pytest.raises((DataLossError, InvalidArgumentError)):
        from_proto(data)


def test_strings_are_utf8():
    with pytest.raises(DataLossError):
        from_proto(broken(set_field("add", "name", b"\xff")))


def test_protos_must_be_bytes():
    with pytest.raises(InvalidArgumentError):
        from_proto("text")


@given(st.sampled_from(sorted(PROGRAMS)), st.integers(0, 10**6), st.integers(0, 255), st.booleans())
def test_damaged_bytes_never_raise_anything_but_our_errors(name, at, value, insert):
    data = bytearray(to_proto(parse_module(PROGRAMS[name])))
    at %= len(data)
    data[at : at + (0 if insert else 1)] = bytes([value])
    try:
        module = from_proto(bytes(data))
    except OpError:
        return
    assert to_text(parse_module(to_text(module))) == to_text(module)


def test_deep_tuples_are_refused():
    shape = "(" * 150 + "f32[]" + ")" * 150
    with pytest.raises(OpError):
        from_proto(to_proto(parse_module(entry(f"ROOT a = {shape} parameter(0)"))))


def test_long_chains_survive():
    lines = [f"x{i + 1} = f32[4] negate(x{i})" for i in range(5_000)]
    module = parse_module(entry("x0 = f32[4] parameter(0)", *lines))
    assert len(from_proto(to_proto(module)).entry.instructions) == 5_001
