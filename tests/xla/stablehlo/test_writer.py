"""HLO written as StableHLO reads as the same program."""

import numpy as np
import pytest
from support.hlo.random_programs import random_module
from support.strategies import random_array

import cyxla
from cyxla.testing.cases import arrays, assert_close, flatten, index, read
from cyxla.types import Literal, Shape
from cyxla.xla.hlo import OPCODES, parse_module, parse_shape
from cyxla.xla.stablehlo import read_stablehlo, write_stablehlo
from cyxla.xla.stablehlo.write_ops import WRITERS
from cyxla.xla.stablehlo.write_values import dense, quoted, type_of

# What StableHLO has no operation for.
WITHOUT = {
    "add-dependency", "all-gather-done", "all-gather-start", "all-reduce-done", "all-reduce-start", "async-done",
    "async-start", "async-update", "collective-permute-done", "collective-permute-start", "copy-done", "copy-start",
    "domain", "dynamic-reshape", "parameter", "ragged-all-to-all", "ragged-dot", "rng-get-and-update-state",
    "scaled-dot", "scan",
}  # fmt: skip


def again(module):
    """The module as StableHLO reads it."""
    return read_stablehlo(write_stablehlo(module))


def test_every_opcode_is_written_or_known_not_to_be():
    assert set(OPCODES) - set(WRITERS) == WITHOUT


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("case", index(), ids=lambda c: c["id"])
def test_recorded_programs(case):
    module = parse_module(read(case["id"] + "/program.hlo").decode())
    if WITHOUT - {"parameter"} & {i.opcode for c in module.post_order() for i in c.instructions}:
        with pytest.raises(cyxla.errors.UnimplementedError, match="has no form in StableHLO"):
            write_stablehlo(module)
        return
    given, wanted = arrays(case)
    got = flatten(cyxla.compile(again(module), platform="interpreter")(*flatten(given)))
    for g, w, tol in zip(got, wanted, case["tol"], strict=True):
        assert_close(g, w, tol["rtol"], tol["floor"], case.get("zero_sign", False))


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_keep_their_bits(seed):
    module, _ = random_module(seed)
    args = [random_array(p.shape, seed + k, 0.2) for k, p in enumerate(module.parameters)]
    want = cyxla.compile(module, platform="interpreter")(*args)
    got = cyxla.compile(again(module), platform="interpreter")(*args)
    for g, w in zip(got, want, strict=True):
        assert (g.dtype, g.shape, g.tobytes()) == (w.dtype, w.shape, w.tobytes())


@pytest.mark.parametrize(
    "shape, text",
    [
        ("f32[2,3]", "tensor<2x3xf32>"),
        ("pred[]", "tensor<i1>"),
        ("u8[1]", "tensor<1xui8>"),
        ("s4[1]", "tensor<1xi4>"),
        ("c64[2]", "tensor<2xcomplex<f32>>"),
        ("f8e4m3fn[2]", "tensor<2xf8E4M3FN>"),
        ("bf16[0]", "tensor<0xbf16>"),
        ("f32[<=4,2]", "tensor<?x2xf32, #stablehlo.bounds<4, ?>>"),
        ("(f32[2], token[])", "tuple<tensor<2xf32>, !stablehlo.token>"),
    ],
)
def test_types(shape, text):
    assert type_of(parse_shape(shape)) == text


@pytest.mark.parametrize(
    "array, text",
    [
        (np.float32([1, 2.5]), "dense<[1.0e+00, 2.5e+00]> : tensor<2xf32>"),
        (np.float32([[7, 7], [7, 7]]), "dense<7.0e+00> : tensor<2x2xf32>"),
        (np.float32(np.nan), "dense<0x7FC00000> : tensor<f32>"),
        (np.float32([0.0, -0.0]), "dense<[0.0e+00, -0.0e+00]> : tensor<2xf32>"),
        (np.array([True, False]), "dense<[true, false]> : tensor<2xi1>"),
        (np.complex64(1 - 2j), "dense<(1.0e+00, -2.0e+00)> : tensor<complex<f32>>"),
        (np.zeros((0, 3), np.int8), "dense<> : tensor<0x3xi8>"),
        (np.arange(40, dtype=np.uint8), f'dense<"0x{bytes(range(40)).hex().upper()}"> : tensor<40xui8>'),
        (np.float64(0.1), "dense<1.0e-01> : tensor<f64>"),
    ],
    ids=str,
)
def test_constants(array, text):
    assert dense(Literal(array)) == text


def test_text_of_a_program_stays_inside_its_quotes():
    assert quoted('a"b\\\n\u00e9') == '"a\\22b\\5C\\0A\\C3\\A9"'
    text = 'ENTRY e { ROOT c = f32[2] custom-call(), custom_call_target="x\\"y", backend_config="{1}" }'
    (call,) = [i for i in again(parse_module(text)).entry.instructions if i.opcode == "custom-call"]
    assert (call.attrs["custom_call_target"], call.extras["backend_config"]) == ('x"y', "{1}")


def test_names_of_functions_are_their_own():
    text = """HloModule 3-odd.name
    %main (p: f32[]) -> f32[] { p = f32[] parameter(0) ROOT n = f32[] negate(p) }
    ENTRY %e.1 (x: f32[]) -> f32[] { x = f32[] parameter(0) ROOT c = f32[] call(x), to_apply=main }"""
    written = write_stablehlo(parse_module(text))
    assert "module @_3_odd_name" in written
    assert "@main_0" in written
    assert cyxla.compile(written, platform="interpreter")(np.float32(2)) == -2


def test_tuples_are_taken_apart():
    text = """ENTRY e { p = (f32[2], (s32[], f32[3])) parameter(0) a = f32[2] get-tuple-element(p), index=0
    b = (s32[], f32[3]) get-tuple-element(p), index=1 ROOT t = (f32[2], (s32[], f32[3])) tuple(a, b) }"""
    module = again(parse_module(text))
    assert [p.shape for p in module.parameters] == [
        Shape.array("f32", (2,)),
        Shape.array("s32"),
        Shape.array("f32", (3,)),
    ]
    assert len(module.entry.root.operands) == 3


@pytest.mark.parametrize(
    "given, wanted",
    [
        ("f32[2,3]{0,1}", "f32[3,2]{1,0}"),
        ("f32[2,3,4]{0,2,1}", "f32[4,6]{0,1}"),
        ("f32[2,3]{0,1}", "s16[4,3]{0,1}"),
        ("u8[2,4]", "f32[2]"),
        ("s16[]", "bf16[]"),
        ("c64[3,2]{0,1}", "c64[6]"),
        ("f32[2,0]", "u8[0]"),
    ],
)
def test_bitcasts_read_the_memory_that_layouts_say(given, wanted):
    module = parse_module(f"ENTRY e {{ p = {given} parameter(0) ROOT b = {wanted} bitcast(p) }}")
    x = random_array(module.parameters[0].shape, 3, 0.0)
    got, want = (cyxla.compile(m, platform="interpreter")(x) for m in (again(module), module))
    assert (got.dtype, got.shape, got.tobytes()) == (want.dtype, want.shape, want.tobytes())


@pytest.mark.parametrize(
    "given, wanted, values",
    [
        ("pred[3,4]", "s32[3]", np.array([[1, 0, 1, 1]] * 3, bool)),
        ("pred[3]", "u8[3]", np.array([1, 0, 1], bool)),
        ("pred[3]", "s8[3]", np.array([1, 0, 1], bool)),
        ("s32[3]", "pred[3,4]", np.array([1, 256, 65537], np.int32)),
    ],
)
def test_bytes_of_predicates_are_not_their_bits(given, wanted, values):
    module = parse_module(f"ENTRY e {{ p = {given} parameter(0) ROOT b = {wanted} bitcast-convert(p) }}")
    got, want = (cyxla.compile(m, platform="interpreter")(values) for m in (again(module), module))
    assert (got.dtype, got.shape, got.tobytes()) == (want.dtype, want.shape, want.tobytes())


def test_bits_of_complex_numbers_have_no_form():
    module = parse_module("ENTRY e { p = c64[2] parameter(0) ROOT b = f32[4] bitcast(p) }")
    with pytest.raises(cyxla.errors.UnimplementedError, match="has no form in StableHLO"):
        write_stablehlo(module)
