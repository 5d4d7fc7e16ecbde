# ruff: noqa: E501 - programs are longer than lines
"""HLO text: parsing, printing, and the positions of errors."""

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.interrupts import at_most

from cyxla.errors import HloParseError, UnimplementedError
from cyxla.types import ElementType, Literal, Shape
from cyxla.xla.evaluator.ops.collective import explicit_groups
from cyxla.xla.hlo import OPCODES, HloModule, parse_module, parse_shape, to_text
from cyxla.xla.hlo.attributes import (
    ConvDims,
    IotaTiles,
    PaddingDim,
    ReplicaGroups,
    ResultAccuracy,
    SliceDim,
    WindowDim,
)
from cyxla.xla.hlo.text.lexer import Cursor, escape, unescape
from cyxla.xla.hlo.text.literals import literal_text, read_literal

FIXTURE = (Path(__file__).parents[2] / "data" / "hlo_text.txt").read_text()
PROGRAMS = {
    name: tuple(text.split("\n--- as XLA prints it\n"))
    for name, _, text in (part.partition("\n") for part in FIXTURE.split("=== ")[1:])
}


def entry(*lines: str) -> str:
    return "HloModule m\n\nENTRY e {\n  " + "\n  ".join(lines) + "\n}\n"


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_and_the_way_xla_prints_it_print_alike(name):
    text, canonical = PROGRAMS[name]
    printed = to_text(parse_module(text))
    assert to_text(parse_module(printed)) == printed
    assert to_text(parse_module(canonical)) == printed


A = "a = f32[2] parameter(0)"
ERRORS = [
    # lines of the entry computation, line and column, part of the message
    (["ROOT r = f32[2] negate(b)"], (4, 26), "instruction b is not defined"),
    ([A, "a = f32[2] negate(a)"], (5, 3), "second instruction"),
    ([A, "ROOT r = f32[2] frobnicate(a)"], (5, 19), "unknown opcode"),
    ([A, "ROOT r = f32[2] add(a)"], (5, 22), "takes 2 operands"),
    ([A, "ROOT r = f32[2] negate(f32[3] a)"], (5, 26), "is f32[2], not f32[3]"),
    ([A, "ROOT r = f32[2] negate(a), bogus=3"], (5, 30), "no attribute bogus"),
    ([A, "ROOT r = f32[2] transpose(a)"], (6, 1), "needs the attribute dimensions"),
    ([A, "ROOT r = f32[2] transpose(a), dimensions={0}, dimensions={0}"], (5, 49), "appears twice"),
    ([A, "ROOT r = f32[2] negate(a) $"], (5, 29), "found '$'"),
    ([A, "ROOT r = f32[2] negate(a"], (5, 26), "expected an operand"),
    (["a = f32[2,n] parameter(0)"], (4, 13), "size of a dimension"),
    (["a = f32[2] parameter(1)"], (4, 25), "leave a gap"),
    (["a = s8[] constant(300)"], (4, 21), "out of range"),
    (["a = f32[2] constant({1, one})"], (4, 27), "a number"),
    (["a = s32[2,2] constant({1, 2, 3, 4})"], (4, 26), "expected '{'"),
    (["a = s32[2] constant({1, 2, 3})"], (4, 30), "3 elements"),
    (["a = c64[] constant((1, true))"], (4, 26), "complex"),
    (["a = c64[1] constant({(true, 1)})"], (4, 25), "complex"),
    (["a = f32[] constant(1e40)"], (4, 22), "out of range"),
    (["a = f32[] constant(nan(0x800000))"], (4, 22), "payload"),
    (["a = f32[8] parameter(0), sharding={sideways}"], (4, 38), "not a keyword of shardings"),
    (["a= f32[8] parameter(0)"], (4, 3), "blank"),
]


@pytest.mark.parametrize("lines, place, message", ERRORS, ids=[e[2] + str(e[1]) for e in ERRORS])
def test_errors_have_a_fault_and_a_location(lines, place, message):
    with pytest.raises(HloParseError) as caught:
        parse_module(entry(*lines))
    assert (caught.value.line, caught.value.column) == place
    assert message in caught.value.message


@pytest.mark.parametrize("name", list(PROGRAMS)[::7])
def test_a_text_cut_anywhere_is_an_error_with_a_place_or_a_program(name):
    text = PROGRAMS[name][1]
    for end in range(len(text)):
        try:
            to_text(parse_module(text[:end]))
        except HloParseError as error:
            assert min(error.line, error.column) >= 1  # noqa: PT017


@given(st.text('{}()[]%,=-.:x0129 \n"\\aefnpr_<>*/é\0', max_size=60), st.sampled_from(list(PROGRAMS)), st.randoms())
def test_noise_in_a_text_never_raises_anything_but_parse_errors(noise, name, rng):
    text = PROGRAMS[name][0]
    at = rng.randrange(len(text))
    with suppress(HloParseError):
        parse_module(text[:at] + noise + text[at + rng.randrange(9) :])


C = "a = f32[1,5,5,1] parameter(0)", "k = f32[3,3,1,1] parameter(1)"
VALUES = [
    # lines before, the instruction, an attribute and its value
    (C, "f32[1,2,2,1] convolution(a, k), window={size=3x2 stride=2x1 pad=-1_0x0_2 lhs_dilate=1x3 rhs_dilate=2x1 "
        "rhs_reversal=0x1}, dim_labels=b10f_01io->f0b1", "window",
        (WindowDim(3, 2, -1, 0, 2, 1, False), WindowDim(2, 1, 0, 2, 1, 3, True))),
    (C, "f32[1,2,2,1] convolution(a, k), window={size=3x3}, dim_labels=b10f_01io->f0b1", "dim_labels",
        ConvDims(0, 3, (2, 1), 2, 3, (0, 1), 2, 0, (1, 3))),
    (C, "f32[9] pad(a, k), padding=0_1_2x-3_4_5", "padding", (PaddingDim(0, 1, 2), PaddingDim(-3, 4, 5))),
    (C, "f32[9] slice(a), slice={[1:2], [3:9:2]}", "slice", (SliceDim(1, 2), SliceDim(3, 9, 2))),
    (C, "f32[9] all-gather(a), dimensions={0}, replica_groups=[2,2]<=[2,2]T(1,0)", "replica_groups",
        ReplicaGroups(iota=IotaTiles((2, 2), (2, 2), (1, 0)))),
    (C, "f32[9] collective-permute(a), source_target_pairs={{0,1},{2,3}}", "source_target_pairs", ((0, 1), (2, 3))),
    (C, "f32[9] dot(a, k), lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_contracting_dims={3}",
        "rhs_batch_dims", (1,)),
    (C, "f32[9] topk(a), k=2, is_stable=true", "is_stable", True),
    (C, "f32[9] tanh(a), result_accuracy={tolerance={atol=0.5,rtol=0.25,ulps=2}}", "result_accuracy",
        ResultAccuracy("tolerance", 0.5, 0.25, 2)),
]  # fmt: skip


SHARDINGS = [
    # text, how it is spelled again, empty where that is the same
    ("{mesh['x'=2], [{'x'}, {}]}", ""),
    ("{mesh['x'=2,'y'=4], [{'x', 'y':(1)2, ?}, {?}], replicated={'y':(2)2}}", ""),
    ("{mesh['a'=2,'b'=2], device_ids=(3,2,1,0), [{'a'}], unreduced=max{'b'}}", ""),
    ("{mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)), [{}, {'b'}], manual={'a'}}", ""),
    ('{mesh["x"=2], manual}', "{mesh['x'=2], manual}"),
    ("{mesh['x'=2] [{'0'}], metadata={op_name=\"m\"}}", "{mesh['x'=2], [{'x'}]}"),
    ("{mesh['x'=2], unreduced=sum}", "{mesh['x'=2], unreduced}"),
    ("{mesh['x'=2], replicated}", "{replicated}"),
    ("{maximal_mesh[device_id=3]}", ""),
    ("{{mesh['x'=2], [{'x'}]}, {replicated}}", ""),
]


@pytest.mark.parametrize("text, again", SHARDINGS)
def test_shardings_by_the_axes_of_a_mesh(text, again):
    module = parse_module(entry(f"ROOT p = f32[8] parameter(0), sharding={text}"))
    printed = to_text(module)
    assert f"sharding={again or text}" in printed
    assert to_text(parse_module(printed)) == printed


# fmt: off
MESH_GROUPS = [
    ("mesh['x'=2,'y'=3] {'y'}",                      [[0, 1, 2], [3, 4, 5]]),
    ("mesh['x'=2,'y'=3] {'x'}",                      [[0, 3], [1, 4], [2, 5]]),
    ("mesh['x'=2,'y'=3] {'y','x'}",                  [[0, 3, 1, 4, 2, 5]]),
    ("mesh['x'=2,'y'=3] {}",                         [[0], [1], [2], [3], [4], [5]]),
    ("mesh['x'=8] {'x':(2)2}",                       [[0, 2], [1, 3], [4, 6], [5, 7]]),
    ("mesh['x'=8] {'x':(4)2, 'x':(1)2}",             [[0, 4, 1, 5], [2, 6, 3, 7]]),
    ("mesh['x'=2,'y'=2], device_ids=(3,1,2,0) {'y'}", [[3, 1], [2, 0]]),
    ("mesh['x'=2,'y'=2], device_ids=([2,2]T(1,0)) {'y'}", [[0, 2], [1, 3]]),
]
# fmt: on


@pytest.mark.parametrize("text, groups", MESH_GROUPS)
def test_groups_along_the_axes_of_a_mesh(text, groups):
    lines = ("p = f32[8] parameter(0)", f"ROOT r = f32[8] all-to-all(p), replica_groups={text}, dimensions={{0}}")
    module = parse_module(entry(*lines))
    assert [list(g) for g in explicit_groups(module.entry.root.attrs["replica_groups"])] == groups
    assert to_text(parse_module(to_text(module))) == to_text(module)


@pytest.mark.parametrize("text", [
    "{mesh['x'=2], [{'z'}]}", "{mesh['x'=2], [{'x':(2)2}]}", "{mesh['x'=2], [{?, 'x'}]}", "{mesh['x'=2], device_ids=(0), [{}]}",
    "{mesh['x'], [{}]}", "{mesh[x=2], [{}]}", "{mesh['x'=2], unreduced=mean}", "{mesh['x'=2], [{}], replicated={'x'}, replicated={'x'}}",
    "{maximal_mesh[3]}", "{mesh['x'=2]}",
])  # fmt: skip
def test_meshes_that_do_not_fit(text):
    with pytest.raises(HloParseError):
        parse_module(entry(f"ROOT p = f32[8] parameter(0), sharding={text}"))


FOO = 'custom_call_target="foo"'
FORMS = [
    # lines of XLA's other and older forms, what they mean
    (["x = f32[2] parameter(0)", "ROOT r = f32[2] tanh(x), result_accuracy={mode=HIGHEST}"],
     ["x = f32[2] parameter(0)", "ROOT r = f32[2] tanh(x), result_accuracy={mode=highest}"]),
    (["x = f32[2] parameter(0)", "ROOT r = f32[] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}, operand_precision={HIGH,Highest}"],
     ["x = f32[2] parameter(0)", "ROOT r = f32[] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}, operand_precision={high,highest}"]),
    (["x = f32[2,3] parameter(0)", "ROOT r = f32[2,3] map(x), to_apply=minus"],
     ["x = f32[2,3] parameter(0)", "ROOT r = f32[2,3] map(x), dimensions={0,1}, to_apply=minus"]),
    (["t = (f32[2], (f32[3], s32[])) parameter(0)", "a = f32[3] negate(f32[3] %t#1#0)", "b = f32[3] add(a, t#1#0)", "ROOT r = tuple(b, s32[] %t#1#1, (f32[3], s32[]) t#1)"],
     ["t = (f32[2], (f32[3], s32[])) parameter(0)", "u = get-tuple-element(t), index=1", "v = get-tuple-element(u), index=0", "a = negate(v)",
      "b = add(a, v)", "w = get-tuple-element(u), index=1", "ROOT r = tuple(b, w, u)"]),
    (["x = f32[4] parameter(0)", f"s = ((), (), u32[]) custom-call-start(), {FOO}", "u = ((f32[4], f32[4]), f32[4], u32[]) custom-call-update(s, x, x)",
      "ROOT d = f32[4] custom-call-done(u)"],
     ["x = f32[4] parameter(0)", f"u = ((f32[4], f32[4]), f32[4], u32[]) custom-call-start(x, x), {FOO}", "ROOT d = f32[4] custom-call-done(u)"]),
    (["x = f32[4] parameter(0)", "s = ((), (), u32[]) call-start(), to_apply=twice", "u = ((f32[4]), (), u32[]) call-update(s, x)",
      "v = ((f32[4], f32[4]), f32[4], u32[]) call-update(u, x)", "ROOT d = f32[4] call-done(v)"],
     ["x = f32[4] parameter(0)", "v = ((f32[4], f32[4]), f32[4], u32[]) call-start(x, x), to_apply=twice", "ROOT d = f32[4] call-done(v)"]),
    (["x = f32[4] parameter(0)", "s = ((), ()) async-start(), calls=twice", "u = ((f32[4], f32[4]), f32[4]) async-update(s, x, x), output_to_operand_aliasing={{1}: (0, {})}",
      "ROOT d = f32[4] async-done(u)"],
     ["x = f32[4] parameter(0)", "u = ((f32[4], f32[4]), f32[4]) async-start(x, x), output_to_operand_aliasing={{1}: (0, {})}, calls=twice", "ROOT d = f32[4] async-done(u)"]),
    (["x = f32[4] parameter(0)", "ROOT r = f32[4] collective-broadcast(x), replica_groups={{0}}, has_dynamic_root=false"],
     ["x = f32[4] parameter(0)", "ROOT r = f32[4] collective-broadcast(x), replica_groups={{0}}"]),
]  # fmt: skip
BODIES = """
minus { p = f32[] parameter(0) ROOT n = f32[] negate(p) }
twice { p = f32[4] parameter(0) q = f32[4] parameter(1) ROOT s = f32[4] add(p, q) }
"""


@pytest.mark.parametrize("other, plain", FORMS)
def test_other_forms_of_xla_mean(other, plain):
    module, want = (parse_module(entry(*lines).replace("ENTRY", f"{BODIES}ENTRY")) for lines in (other, plain))
    assert module.fingerprint() == want.fingerprint()
    assert parse_module(to_text(module)).fingerprint() == module.fingerprint()


@pytest.mark.parametrize("text", [
    "HloModule m:\n\nENTRY e { ROOT x = f32[] parameter(0) }",
    "# RUN: tool %s\n\n# more\nHloModule m\nENTRY e { ROOT x = f32[] parameter(0) }",
    "HloModule m, allow_spmd_sharding_propagation_to_output=true\nENTRY e { ROOT x = f32[] parameter(0) }",
    'HloModule m, debug_attributes={ {"a"}:({log_mode=default}) }\nENTRY e { ROOT x = f32[] parameter(0) }',
])  # fmt: skip
def test_other_heads_of_modules(text):
    module = parse_module(text)
    assert module.name == "m"
    assert to_text(parse_module(to_text(module))) == to_text(module)


def test_lines_of_notes_keep_places_true():
    with pytest.raises(HloParseError) as caught:
        parse_module("# a note\n# another\nENTRY e { ROOT x = f32[] nonsense(0) }")
    assert caught.value.line == 3


def test_computations_in_place_inside_others():
    inner = "ROOT f = f32[2] fusion(a), kind=kLoop, calls={ b = f32[2] parameter(0) ROOT n = f32[2] negate(b) }"
    call = f"ROOT r = f32[2] call(x), to_apply={{ a = f32[2] parameter(0) {inner} }}"
    assert len(parse_module(entry("x = f32[2] parameter(0)", call)).computations) == 3


@pytest.mark.parametrize("line", [
    "ROOT r = f32[2] collective-broadcast(x), replica_groups={{0}}, has_dynamic_root=true",
    "ROOT r = f32[2] convolution(x, x), dim_labels=bf_io->bf, convolution_kind=dgrad",
])  # fmt: skip
def test_ignored_attributes(line):
    with pytest.raises(UnimplementedError, match="is not supported"):
        parse_module(entry("x = f32[2] parameter(0)", line))


@pytest.mark.parametrize("before, text, attr, value", VALUES, ids=[v[2] for v in VALUES])
def test_attributes_read_as(before, text, attr, value):
    module = parse_module(entry(*before, f"ROOT r = {text}"))
    assert module.entry.root.attrs[attr] == value
    assert parse_module(to_text(module)).entry.root.attrs[attr] == value
    assert HloModule.from_proto(module.to_proto()).entry.root.attrs == module.entry.root.attrs


SPELLINGS = [
    ("s32[2,2]", "{{1,-2}, {3,4}}", [[1, -2], [3, 4]]),
    ("pred[3]", "{true, 0, 7}", [True, False, True]),
    ("u64[2]", "{-1, 18446744073709551615}", [2**64 - 1, 2**64 - 1]),
    ("f32[4]", "{1e3, -0.0, -0, inf}", [1000, -0.0, 0.0, np.inf]),
    ("f32[3]", "{nan, -0, -0.0}", [np.nan, 0.0, -0.0]),
    ("c64[1]", "{(1, -inf)}", [complex(1, -np.inf)]),
    ("f32[0,2]", "{}", np.zeros((0, 2))),
    ("f32[2,0]", "{ {}, {} }", np.zeros((2, 0))),
    ("f16[]", "65519", 65504),
    ("f8e5m2[]", "5.7e+04", 57344),
]


@pytest.mark.parametrize("shape, text, want", SPELLINGS, ids=[s[1] for s in SPELLINGS])
def test_literals_read_as(shape, text, want):
    found = read_literal(Cursor(text), parse_shape(shape)).array
    wanted = np.array(want, found.dtype)
    assert found.shape == wanted.shape
    for part in ("real", "imag") if found.dtype.kind == "c" else ("real",):
        one, other = (np.asarray(getattr(a, part)).astype(float) for a in (found, wanted))
        assert np.array_equal(one, other, equal_nan=True)
        assert np.array_equal(np.signbit(one), np.signbit(other))


ARRAY_TYPES = [t for t in ElementType if t.is_array]


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("dtype", ARRAY_TYPES, ids=str)
@given(data=st.data())
def test_every_bit_pattern_survives_printing(dtype, data):
    size = data.draw(st.integers(0, 9))
    raw = data.draw(st.binary(min_size=size * dtype.itemsize, max_size=size * dtype.itemsize))
    array = np.frombuffer(raw, np.uint8).copy()
    if dtype.bits < 8:
        array &= 2**dtype.bits - 1
    if dtype.text == "pred":
        array &= 1
    literal = Literal(as_type(array, dtype), Shape.array(dtype, (size,)))
    again = read_literal(Cursor(literal_text(literal)), literal.shape)
    assert bits(again.array, dtype) == bits(literal.array, dtype)


def as_type(array: np.ndarray, dtype: ElementType) -> np.ndarray:
    if dtype.bits < 8 and dtype.is_signed:
        return (array.astype(np.int8) - (array >> (dtype.bits - 1)) * 2**dtype.bits).astype(dtype.numpy_dtype)
    return array.astype(dtype.numpy_dtype) if dtype.bits < 8 and dtype.is_integer else array.view(dtype.numpy_dtype)


def bits(array: np.ndarray, dtype: ElementType) -> bytes:
    """The bytes, with NaNs made one where the type has one NaN only."""
    if dtype.is_float and dtype.bits == 8:
        wide = array.astype(np.float32)
        return np.where(np.isnan(wide), np.uint8(0xFF), array.view(np.uint8)).tobytes()
    return array.tobytes()


@pytest.mark.parametrize(
    "text", ["f32[2,3]{0,1:T(8,128)(2,1)L(64)E(4)S(3)SC(1:32)}", "(f32[<=2,?]{1,0}, (), token[])", "u32[]{:S(2)}"]
)
def test_shapes_survive_printing(text):
    assert parse_shape(text).to_text() == text


@given(st.text())
def test_escapes_are_undone(text):
    encodable = text.encode("utf-8", "replace").decode()
    assert unescape(escape(encodable)) == encodable
    assert escape(encodable).isascii()


def test_names_are_numbered_in_print_order():
    text = to_text(
        parse_module(entry("x.7 = f32[] parameter(0)", "x.3 = f32[] negate(x.7)", "ROOT x = f32[] add(x.3, x.7)"))
    )
    assert "%x = f32[] parameter(0)" in text
    assert "%x.1 = f32[] negate(%x)" in text
    assert "ROOT %x.2 = f32[] add(%x.1, %x)" in text


def test_async_sugar_wraps_the_operation():
    text = entry(
        "x = f32[8] parameter(0)", 's = ((f32[8]), f32[8], u32[]) custom-call-start(x), custom_call_target="t"',
        "ROOT d = f32[8] custom-call-done(s)",
    )  # fmt: skip
    module = parse_module(text)
    start = next(i for i in module.entry.instructions if i.opcode == "async-start")
    assert start.called[0].root.opcode == "custom-call"
    assert 'custom-call-start(%x), custom_call_target="t"' in to_text(module)


def test_shapes_left_out_follow_from_the_operands_layouts_included():
    module = parse_module(entry("a = f32[2,3]{0,1} parameter(0)", "b = negate(a)", "ROOT t = tuple(a, b)"))
    assert module.entry.root.shape.to_text() == "(f32[2,3]{0,1}, f32[2,3]{0,1})"


@pytest.mark.parametrize("opcode", sorted(OPCODES))
def test_every_opcode_is_known_to_the_reader(opcode):
    with pytest.raises(HloParseError) as caught:
        parse_module(entry(f"x = f32[] {opcode}("))
    assert "unknown opcode" not in str(caught.value)


def chain(length: int) -> str:
    return entry("x0 = f32[4] parameter(0)", *(f"x{i + 1} = f32[4] negate(x{i})" for i in range(length)))


def doubling(depth: int) -> str:
    return entry("t0 = f32[] parameter(0)", *(f"t{i + 1} = tuple(t{i}, t{i})" for i in range(depth)))


HOSTILE = {
    "deep tuple type": entry("p = " + "(" * 20_000 + "f32[]" + ")" * 20_000 + " parameter(0)"),
    "deep literal": entry("p = f32[1] constant(" + "{" * 20_000),
    "deep operands": entry("p = f32[] " + "negate(" * 20_000),
    "deep bodies": entry(
        "p = f32[] parameter(0)", "q = f32[] " + "call(p), to_apply={ r = f32[] parameter(0) s = f32[] " * 9_999
    ),
    "deep sharding": entry("p = f32[] parameter(0), sharding=" + "{" * 20_000),
    "doubled tuples": doubling(40),
    "tuples in tuples": entry("t0 = f32[] parameter(0)", *(f"t{i + 1} = tuple(t{i})" for i in range(3_000))),
    "many digits": entry(f"p = f32[] parameter({'9' * 100_000})"),
    "many digits of a size": entry(f"p = f32[{'9' * 100_000}] parameter(0)"),
    "overflowing sizes": entry("p = f32[4294967296,4294967296,4] parameter(0)"),
    "very many dimensions": entry(f"p = f32[{','.join(['2147483647'] * 200_000)}] parameter(0)"),
    "very many tile dimensions": entry(f"p = f32[] parameter(0), sharding={{devices=[{','.join(['99'] * 200_000)}]0}}"),
    "very many iota dimensions": entry(
        f"p = f32[] parameter(0), sharding={{devices=[1]<=[{','.join(['99'] * 200_000)}]}}"
    ),
    "elided and huge": entry("p = f32[1000000000] constant({...})"),
    "parameter 2^31 - 1": entry("p = f32[] parameter(2147483647)"),
    "nul": "HloModule m\0" + entry("p = f32[] parameter(0)"),
    "lone surrogate": entry('p = f32[] parameter(0), metadata={op_name="\ud800"}'),
    "quotes": '"' * 300_000,
    "open comments": "/*" * 300_000,
    "blanks": " " * 1_000_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_ends_soon_in_a_parse_error(name):
    with at_most(lines=2_000_000), pytest.raises(HloParseError):
        parse_module(HOSTILE[name])


def test_long_chains_are_read():
    assert len(parse_module(chain(20_000)).entry.instructions) == 20_001
