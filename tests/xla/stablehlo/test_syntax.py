# ruff: noqa: E501 - programs are longer than lines
"""MLIR's text form: operations, types, attributes, locations; errors with line and column."""

import numpy as np
import pytest

import cyxla
from cyxla.errors import HloParseError, InvalidArgumentError, OpError, ShapeError, UnimplementedError
from cyxla.xla.hlo.attributes import BufferDonor, InputOutputAlias
from cyxla.xla.stablehlo import is_stablehlo, read_stablehlo
from cyxla.xla.stablehlo.parser import Parser

BODY = "%0 = stablehlo.add %arg0, %arg0 : tensor<3xf32>\n    return %0 : tensor<3xf32>"
PLAIN = f"func.func @main(%arg0: tensor<3xf32>) -> tensor<3xf32> {{\n    {BODY}\n}}"
X = np.array([1, 2, 3], np.float32)


def run(text, *args):
    return cyxla.compile(text, platform="interpreter")(*args)


@pytest.mark.parametrize("text", [
    PLAIN,
    f"module {{ {PLAIN} }}",
    f"module @jit_f attributes {{mhlo.num_partitions = 1 : i32, jax.x = dense<0> : tensor<i1>}} {{\n{PLAIN}\n}}",
    f"\n  // a comment {{\nbuiltin.module @\"a b\" {{ // another\n{PLAIN} }}",
    PLAIN.replace("@main", "public @main"), PLAIN.replace("@main", '@"main"'), PLAIN.replace("@main", "@other"),
    PLAIN.replace("-> tensor<3xf32> {", '-> (tensor<3xf32> {jax.result_info = "x"}) attributes {a.b = [1, "c", @d, {e}]} {'),
    PLAIN.replace("%arg0: tensor<3xf32>)", '%arg0: tensor<3xf32> {mhlo.sharding = "{replicated}", x.y} loc("q"))'),
    PLAIN.replace("tensor<3xf32>", "tensor< 3 x f32 >"),
    PLAIN.replace("return %0", "func.return %0"),
    PLAIN.replace("%0", "%sum$1.x-y"), PLAIN.replace("%arg0", "%7"),
    PLAIN.replace("{\n    %0", "{\n  ^bb0:\n    %0"),
    PLAIN.replace("%arg0 : tensor<3xf32>\n", "%arg0 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>\n"),
    PLAIN.replace("%arg0 : tensor<3xf32>\n", "%arg0 {note = #stablehlo<precision HIGH>} : tensor<3xf32> loc(unknown)\n"),
    "#loc1 = loc(\"f\"(\"a.py\":1:2))\n#map = affine_map<(d0) -> (d0 + 1)>\n" + PLAIN.replace("\n    return", " loc(#loc1)\n    return"),
    PLAIN.replace("\n    return", " loc(#loc9)\n    return") + "\n#loc9 = loc(callsite(#loc8 at fused<1>[#loc8, unknown]))\n#loc8 = loc(\"a.py\":1:2 to :4)",
    '"builtin.module"() <{sym_name = "m"}> ({\n"func.func"() <{function_type = (tensor<3xf32>) -> tensor<3xf32>, sym_name = "main"}> ({\n'
    '^bb0(%arg0: tensor<3xf32>):\n%0 = "stablehlo.add"(%arg0, %arg0) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>\n'
    '"func.return"(%0) : (tensor<3xf32>) -> ()\n}) {x.y = 1 : i64} : () -> ()\n}) : () -> ()',
    'module { sdy.mesh @mesh = <["x"=2]> {a = 1 : i32} ' + PLAIN.replace(") ->", ' {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) ->') + "}",
    PLAIN.replace("stablehlo.", "mhlo."),
    "func.func private @f(tensor<f32> {a.b}, tensor<f32>) -> (tensor<f32>, tensor<f32>)\n" + PLAIN,
    PLAIN + "\n{-# dialect_resources: {} #-}",
])  # fmt: skip
def test_forms(text):
    assert is_stablehlo(text)
    np.testing.assert_array_equal(run(text, X), 2 * X)


@pytest.mark.parametrize(
    "text", ["", "HloModule m", "module_x { a = f32[] parameter(0) }", "f32[2] add(a, b)", "ENTRY e {}", "modules"]
)
def test_texts_that_are_not_stablehlo(text):
    assert not is_stablehlo(text)


@pytest.mark.parametrize("type_, shape", [
    ("tensor<f32>", "f32[]"), ("tensor<2x3xi1>", "pred[2,3]"), ("tensor<0xui16>", "u16[0]"), ("tensor<2xcomplex<f64>>", "c128[2]"),
    ("tensor<2xi4>", "s4[2]"), ("tensor<2xui2>", "u2[2]"), ("tensor<2xf8E4M3B11FNUZ>", "f8e4m3b11fnuz[2]"), ("tensor<2xf8E8M0FNU>", "f8e8m0fnu[2]"),
    ("tensor<2xf4E2M1FN>", "f4e2m1fn[2]"), ("tensor<2xindex>", "s64[2]"), ("tensor<2xsi8>", "s8[2]"), ("tensor<2xbf16>", "bf16[2]"),
    ("tensor<?x2xf32, #stablehlo.bounds<4, ?>>", "f32[<=4,2]"), ("tensor<?xf32, #stablehlo.type_extensions<bounds = [4]>>", "f32[<=4]"),
    ("tensor<2xf32, #sparse.thing<a = 1>>", "f32[2]"), ("!stablehlo.token", "token[]"), ("i32", "s32[]"), ("complex<f32>", "c64[]"),
    ("tuple<tensor<f32>, tuple<tensor<2xi8>>, !stablehlo.token>", "(f32[], (s8[2]), token[])"), ("tuple<>", "()"),
])  # fmt: skip
def test_types(type_, shape):
    module = read_stablehlo(f"func.func @main(%a: {type_}) -> {type_} {{ return %a : {type_} }}")
    assert str(module.entry.root.shape) == shape


@pytest.mark.parametrize("text, line, column, match", [
    ("module {", 1, 9, "expected '}'"), ("module @m {\n  func.func @main(%a tensor<f32>)", 2, 22, "expected ':'"),
    (PLAIN.replace("%arg0 :", "%arg1 :"), 2, 31, "not defined"), (PLAIN.replace("return %0", "return %0#1"), 3, 12, "1 results"),
    (PLAIN.replace("tensor<3xf32>\n", "(tensor<4xf32>, tensor<3xf32>) -> tensor<3xf32>\n"), 2, 37, "operand 0 of stablehlo.add"),
    (PLAIN.replace("tensor<3xf32>\n", "tensor<3xq32>\n"), 2, 39, "q32"), (PLAIN.replace("stablehlo.add", "add"), 2, 10, "an operation"),
    (PLAIN.replace("tensor<3xf32>\n", "tensor<3>\n"), 2, 39, "tensor type"), (PLAIN.replace("    return", "    %0 = stablehlo.negate %0 : tensor<3xf32>\n return"), 3, 5, "twice"),
    (PLAIN.replace("%0 = stablehlo", "%0:2 = stablehlo"), 2, 5, "1 results, but 2 names"), (PLAIN + " }", 4, 3, "an operation"),
    (PLAIN.replace("add %arg0,", "constant dense<[1, 2> : tensor<2xf32> //"), 2, 29, "brackets do not fit"),
    (PLAIN.replace("add %arg0,", 'constant dense<"0x00"> : tensor<2xf32> //'), 2, 29, "1 bytes"),
    (PLAIN.replace("add %arg0,", "constant dense<[1, x]> : tensor<2xi32> //"), 2, 29, "not of type s32"),
    (PLAIN.replace("add %arg0,", "constant dense<300> : tensor<i8> //"), 2, 29, "out of the range"),
    (PLAIN.replace("add %arg0,", "negate {a = 1, a = 2} %arg0 //"), 2, 35, "twice"), (PLAIN.replace("add %arg0,", "negate #nothing //"), 2, 27, "expected ':'"),
    (PLAIN.replace("add %arg0, %arg0", "negate %arg0 {a = #nothing}"), 2, 38, "not defined"), ("func.func", 1, 10, "name of a function"),
    (PLAIN.replace("add %arg0,", "slice %arg0 [0:1:] //"), 2, 37, "stride"), ("module {} module {}", 1, 11, "the end"), ("module {}", 1, 10, "a function"),
    (PLAIN.replace("@main", "@a") + PLAIN.replace("@main", "@b"), 7, 2, "none of the 2"), (PLAIN + PLAIN, 4, 2, "a second function"),
    ("module { stablehlo.return }", 1, 10, "expected a function"), (PLAIN.replace("return %0 : tensor<3xf32>", "return %0 : tensor<3xf32> %1"), 3, 31, "expected '}'"),
])  # fmt: skip
def test_errors_say_where(text, line, column, match):
    with pytest.raises(HloParseError, match=match) as caught:
        read_stablehlo(text)
    assert (caught.value.line, caught.value.column) == (line, column), str(caught.value)


@pytest.mark.parametrize("attribute", [
    "128 : si8", "256 : i8", "-129 : i8", "-1 : ui8", "256 : ui8", "65536 : i16", "4294967296 : i32", "-2147483649 : i32", "0x100000000 : i32",
    "9223372036854775807 : i32", "18446744073709551616 : i64", "18446744073709551616 : index", "2 : i1", "18446744073709551616", "-9223372036854775809",
    "1.5 : i32", "0x10000 : f16", "99999999999999999999",
])  # fmt: skip
def test_numbers_that_their_type_does_not_hold(attribute):
    with pytest.raises(HloParseError, match=r"out of the range of|not an integer") as caught:
        read_stablehlo(PLAIN.replace("@main(%arg0: tensor<3xf32>)", f"@main(%arg0: tensor<3xf32> {{a = {attribute}}})"))
    assert (caught.value.line, caught.value.column) == (1, 43)


@pytest.mark.parametrize(
    "array",
    ["array<i32: 1, 4294967296>", "array<i8: 1, -129>", "array<i64: 1, 18446744073709551616>", "array<i1: 1, 2>"],
)
def test_numbers_that_the_type_of_an_array_does_not_hold(array):
    with pytest.raises(HloParseError, match="out of the range of") as caught:
        read_stablehlo(PLAIN.replace("@main(%arg0: tensor<3xf32>)", f"@main(%arg0: tensor<3xf32> {{a = {array}}})"))
    assert (caught.value.line, caught.value.column) == (1, 43 + array.rindex(" ") + 1)


@pytest.mark.parametrize("attribute, want", [
    ("255 : i8", -1), ("-128 : i8", -128), ("255 : ui8", 255), ("127 : si8", 127), ("4294967295 : i32", -1), ("0xFF : i8", -1), ("18446744073709551615 : i64", -1),
    ("9223372036854775807", 2**63 - 1), ("-9223372036854775808 : index", -(2**63)), ("1 : i1", True), ("-1 : i1", True), ("0 : i1", False), ("true", True),
    ("false", False), ("0x7C00 : f16", np.inf), ("1.5 : f32", 1.5), ("array<i8: 255, -1, 127>", (-1, -1, 127)), ("array<ui64: 18446744073709551615>", (2**64 - 1,)),
    ("array<i1: true, 1, 0>", (True, True, False)), ("2 : ui2", 2), ("3 : i2", -1),
])  # fmt: skip
def test_numbers_of_a_type(attribute, want):
    found = Parser(attribute).attributes.attribute()
    assert (found, type(found)) == (want, type(want))


@pytest.mark.parametrize("head", [
    "!t0 = tensor<3xf32>\n", "!a = i32\n!t0 = tensor<3xf32> // as all below\n#loc = loc(unknown)\n", "!b = tensor<3xf32>\n!a.b = !b\n!t0 = !a.b\n",
])  # fmt: skip
@pytest.mark.parametrize("text", [
    PLAIN, PLAIN.replace("tensor<3xf32> {", "(tensor<3xf32> {a.b = tensor<3xf32>}) attributes {a.c = !t0} {"),
    PLAIN.replace("add %arg0, %arg0 : tensor<3xf32>", "add %arg0, %arg0 : (!t0, tensor<3xf32>) -> !t0"),
    PLAIN.replace("%0 =", "%c = stablehlo.constant dense<0.0> : tensor<3xf32>\n %0 ="),
])  # fmt: skip
def test_aliases_of_types(head, text):
    text = head + text.replace("tensor<3xf32>", "!t0")
    assert is_stablehlo(text)
    np.testing.assert_array_equal(run(text, X), 2 * X)


def test_aliases_of_tuples_and_functions():
    text = """!t = tensor<3xf32>
    !pair = tuple<!t, !t>
    !both = (!pair) -> !t
    module {
      "func.func"() <{function_type = !both, sym_name = "main"}> ({
      ^bb0(%p: !pair):
        %0 = stablehlo.get_tuple_element %p[1] : (!pair) -> !t
        "func.return"(%0) : (!t) -> ()
      }) : () -> ()
    }"""
    np.testing.assert_array_equal(run(text, (X, -X)), -X)


@pytest.mark.parametrize("text, line, column, match", [
    ("!a = !a\n" + PLAIN, 1, 6, "!a is not defined"), ("!a = tuple<!b>\n!b = tuple<!a>\n" + PLAIN, 1, 12, "!b is not defined"),
    (PLAIN.replace("tensor<3xf32>", "!t0"), 1, 24, "!t0 is not defined"), ("!t0 = tensor<f32>\n!t0 = tensor<f32>\n" + PLAIN, 2, 1, "defined twice"),
    ("!t0 = () -> ()\n" + PLAIN.replace("tensor<3xf32>", "!t0"), 2, 24, "is a function's"), ("!t0 = 5\n" + PLAIN, 1, 7, "expected a type"),
    ("!f = tensor<f32>\n" + '"func.func"() <{function_type = !f, sym_name = "main"}> ({}) : () -> ()', 2, 1, "a name and a type"),
    ("!stablehlo.token = tensor<f32>\n" + PLAIN, 1, 1, "!stablehlo.token"),
])  # fmt: skip
def test_aliases_of_types_that_make_no_sense(text, line, column, match):
    with pytest.raises(HloParseError, match=match) as caught:
        read_stablehlo(text)
    assert (caught.value.line, caught.value.column) == (line, column), str(caught.value)


def test_a_byte_order_mark_is_skipped(backend):
    np.testing.assert_array_equal(cyxla.compile("\ufeff" + PLAIN, platform=backend)(X), 2 * X)
    with pytest.raises(HloParseError) as caught:
        read_stablehlo("\ufeffmodule {")
    assert (caught.value.line, caught.value.column) == (1, 9)


@pytest.mark.parametrize("lines, error, match", [
    ("%0 = stablehlo.frobnicate %arg0 : tensor<3xf32>", UnimplementedError, "stablehlo.frobnicate"),
    ("%0 = foo.add %arg0, %arg0 : tensor<3xf32>", UnimplementedError, "foo.add"),
    ("%0 = stablehlo.reverse %arg0, dims = [4] : tensor<3xf32>", ShapeError, "reverse"),
    ("%0 = stablehlo.add %arg0 : tensor<3xf32>", InvalidArgumentError, "2 operands"),
    ('%0 = "stablehlo.reverse"(%arg0) : (tensor<3xf32>) -> tensor<3xf32>', InvalidArgumentError, "dimensions"),
    ("%0 = stablehlo.abs %arg0 : (tensor<3xf32>) -> tensor<4xf32>", ShapeError, "states f32\\[4\\]"),
    ("%0 = func.call @none(%arg0) : (tensor<3xf32>) -> tensor<3xf32>", InvalidArgumentError, "@none"),
    ("%0 = stablehlo.custom_call @f(%arg0) {api_version = 9 : i32} : (tensor<3xf32>) -> tensor<3xf32>", InvalidArgumentError, "api_version"),
    ('%0 = "stablehlo.reduce"(%arg0) : (tensor<3xf32>) -> tensor<3xf32>', InvalidArgumentError, "operands"),
    ('%0 = "stablehlo.if"(%arg0) : (tensor<3xf32>) -> tensor<3xf32>', InvalidArgumentError, "branches"),
    ('%0 = "stablehlo.compare"(%arg0, %arg0) {comparison_direction = 3 : i32} : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>', InvalidArgumentError, "a word"),
])  # fmt: skip
def test_errors_name_the_operation_and_its_line(lines, error, match):
    text = f"func.func @main(%arg0: tensor<3xf32>) -> tensor<3xf32> {{\n  {lines}\n  return %arg0 : tensor<3xf32>\n}}"
    with pytest.raises(error, match=match) as caught:
        read_stablehlo(text)
    assert "line 2, column 8" in caught.value.where


@pytest.mark.parametrize("text, match", [
    ("module { vhlo.func_v1 @main() {} }", "vhlo.func_v1"), (PLAIN.replace("tensor<3xf32>", "tensor<*xf32>"), "unranked"),
    (PLAIN.replace("tensor<3xf32>", "tensor<3x!quant.uniform<i8:f32, 0.5:3>>"), "quantised"), (PLAIN.replace("tensor<3xf32>", "memref<3xf32>"), "memref"),
    (f"module {{ module {{ {PLAIN} }} }}", "module inside a module"), (PLAIN.replace("tensor<3xf32>", "tensor<3xtf32>"), "tf32"),
    (PLAIN.replace("    return", "    return %0 : tensor<3xf32>\n ^bb1:\n return"), "several blocks"), (PLAIN.replace("tensor<3xf32>", "!foo.bar"), "!foo.bar"),
    ('"func.func"() <{function_type = () -> (), sym_name = "main"}> ({ "cf.br"()[^bb1] : () -> () }) : () -> ()', "control flow"),
])  # fmt: skip
def test_unsupported_syntax_raises_errors(text, match):
    with pytest.raises(OpError, match=match) as caught:
        read_stablehlo(text)
    assert isinstance(caught.value, (UnimplementedError, HloParseError))


def test_locations_become_metadata():
    text = PLAIN.replace("\n    return", ' loc("jit(f)/add"(callsite("g"("a.py":3:7) at unknown)))\n    return')
    assert dict(read_stablehlo(text).entry.root.metadata) == {
        "op_name": "jit(f)/add", "source_file": "a.py", "source_line": 3, "source_column": 7,
    }  # fmt: skip


def test_attributes_of_module_and_arguments():
    text = """module @m attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 2 : i32} {
      func.func @main(%a: tensor<f32> {tf.aliasing_output = 1 : i32}, %b: tensor<f32> {jax.buffer_donor = true, mhlo.sharding = "{replicated}"},
                      %c: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
        %0 = stablehlo.negate %a {mhlo.frontend_attributes = {k = "v"}, mhlo.sharding = "{maximal device=0}"} : tensor<f32>
        return %b, %0 : tensor<f32>, tensor<f32>
      }
    }"""
    module = read_stablehlo(text)
    assert (module.name, module.config.replica_count, module.config.num_partitions) == ("m", 2, 1)
    assert module.config.input_output_alias == (InputOutputAlias((1,), 0, ()),)
    assert module.config.buffer_donor == (BufferDonor(1, ()),)
    negated = module.entry.root.operands[1]
    assert negated.extras["frontend_attributes"] == (("k", "v"),)
    assert negated.extras["sharding"].kind == "maximal"
    assert module.parameters[1].extras["sharding"].kind == "replicated"
    assert not module.parameters[2].extras


def test_custom_calls():
    text = """func.func @main(%a: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>) {
      %0:2 = stablehlo.custom_call @lapack_spotrf_ffi(%a) {backend_config = "", has_side_effect = true, custom_call_schedule = 2 : i32,
        mhlo.backend_config = {uplo = 76 : ui8}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], api_version = 4 : i32,
        output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>],
        result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]} : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>)
      return %0#0, %0#1 : tensor<2x2xf32>, tensor<i32>
    }"""
    module = read_stablehlo(text)
    call = module.entry.root.operands[0].operands[0]
    assert call.extras["backend_config"] == "{uplo = 76 : ui8}"
    assert call.attrs["api_version"] == "API_VERSION_TYPED_FFI"
    assert call.attrs["custom_call_has_side_effect"]
    assert call.attrs["schedule"] == "SCHEDULE_EARLIEST"
    assert call.attrs["output_to_operand_aliasing"] == (((0,), 0, ()),)
    assert [s.to_text() for s in call.attrs["operand_layout_constraints"]] == ["f32[2,2]{0,1}"]
    assert call.shape.to_text() == "(f32[2,2]{0,1}, s32[])"
    factor, info = run(text, np.array([[4, 1], [1, 3]], np.float32))
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky([[4, 1], [1, 3]]), rtol=1e-6)
    assert info == 0
    quoted = text.replace('backend_config = "", has', 'backend_config = "plain", has').replace(
        "mhlo.backend_config = {uplo = 76 : ui8},", ""
    )
    assert read_stablehlo(quoted).entry.root.operands[0].operands[0].extras["backend_config"] == "plain"
