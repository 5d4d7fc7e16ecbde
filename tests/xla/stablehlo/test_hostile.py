# ruff: noqa: E501 - programs are longer than lines
"""Texts made to break a reader: every one ends in an error of cyxla's own, or in a module, and soon."""

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.interrupts import at_most, lines_run

from cyxla.errors import HloParseError, OpError, UnimplementedError
from cyxla.xla.stablehlo import is_stablehlo, read_stablehlo

SEEDS = [
    """#loc1 = loc("f"("a.py":1:2))
module @jit_f attributes {mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<4x3xf32> {mhlo.sharding = "{replicated}"}, %arg1: tensor<i32>) -> (tensor<4xf32> {jax.result_info = "x"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc1)
    %0 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<4x3xf32>, tensor<f32>) -> tensor<4xf32>
    %1 = call @f(%0, %arg1) : (tensor<4xf32>, tensor<i32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
  func.func private @f(%arg0: tensor<4xf32>, %arg1: tensor<i32>) -> tensor<4xf32> {
    %c = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
    %1:2 = stablehlo.while(%i = %arg1, %s = %arg0) : tensor<i32>, tensor<4xf32>
    cond {
      %n = stablehlo.constant dense<3> : tensor<i32>
      %2 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %2 = stablehlo.add %i, %one : tensor<i32>
      %3 = stablehlo.slice %s [0:4:1] : (tensor<4xf32>) -> tensor<4xf32>
      stablehlo.return %2, %3 : tensor<i32>, tensor<4xf32>
    }
    %4 = "stablehlo.sort"(%1#1) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %5 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %5 : tensor<i1>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    return %4 : tensor<4xf32>
  }
}""",
    """func.func @main(%a: tensor<1x4x4x1xf32>, %k: tensor<2x2x1x1xf32>, %t: !stablehlo.token) -> (tensor<1x3x3x1xf32>, tensor<2xf32>) {
  %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[0, 0], [0, 0]]} {batch_group_count = 1 : i64} : (tensor<1x4x4x1xf32>, tensor<2x2x1x1xf32>) -> tensor<1x3x3x1xf32>
  %1 = stablehlo.constant dense<"0x0000803F00000040"> : tensor<2xf32>
  %2 = stablehlo.dot_general %1, %1, contracting_dims = [0] x [0], precision = [DEFAULT, HIGH], algorithm = <lhs_precision_type = f32, rhs_precision_type = f32, accumulation_type = f32> : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>
  %3 = stablehlo.pad %1, %2, low = [1], high = [-1], interior = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %4 = stablehlo.custom_call @Sharding(%3) {backend_config = {a = [1, 2.5, "s"], b = dense<1> : tensor<1xi64>}, api_version = 4 : i32} : (tensor<2xf32>) -> tensor<2xf32>
  %v, %i = chlo.top_k(%4, k = 2) : tensor<2xf32> -> (tensor<2xf32>, tensor<2xi32>)
  %5 = "stablehlo.gather"(%v, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<2xf32>, tensor<2xi32>) -> tensor<2xf32>
  return %0, %5 : tensor<1x3x3x1xf32>, tensor<2xf32>
}""",
]  # fmt: skip
TOKEN = re.compile(r"\s+|[\w.#%@$]+|.")
PIECES = sorted(
    {t for s in SEEDS for t in TOKEN.findall(s)}
    | {"<<", "{-#", '"', "-1", "99999999999999999999", "0x", "?", "\0", "\u2028", "complex<", "loc("}
)


def attempt(text):
    try:
        read_stablehlo(text)
    except OpError as e:
        message = str(e)
    else:
        return
    assert len(message) <= 900
    assert message.count("\n") < 15


def mutated(rng):
    tokens = TOKEN.findall(rng.choice(SEEDS))
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(tokens))
        match rng.randrange(5):
            case 0:
                del tokens[at : at + rng.randint(1, 3)]
            case 1:
                tokens[at] = rng.choice(PIECES)
            case 2:
                tokens.insert(at, rng.choice(PIECES))
            case 3:
                other = rng.randrange(len(tokens))
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 4:
                del tokens[at:]
        if not tokens:
            return ""
    return "".join(tokens)


def test_the_seeds_are_read():
    for text in SEEDS:
        read_stablehlo(text).verify()


@settings(max_examples=250, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_changed_texts_are_read_or_refused(seed):
    attempt(mutated(random.Random(seed)))


@settings(max_examples=60, deadline=None)
@given(text=st.text(st.sampled_from('%@#!^<>(){}[]"=:,.-x0123456789abft \n'), max_size=60))
def test_noise_is_refused(text):
    attempt("func.func @main() {" + text)
    is_stablehlo(text)


NESTED = {
    "regions": ("func.func @main(%p: tensor<i1>) {" + '"stablehlo.if"(%p) ({' * 5000, ""),
    "attributes": ("func.func @main() attributes {a = " + "[" * 100000, ""),
    "dictionaries": ("func.func @main() attributes " + "{a = " * 100000, ""),
    "tuples": ("func.func @main(%a: " + "tuple<" * 100000, ""),
    "locations": ("func.func @main() {} loc(" + "callsite(" * 100000, ""),
    "modules": ("module {" * 100000, ""),
    "brackets": ("func.func @main() { %0 = stablehlo.constant dense<" + "[" * 100000 + "]" * 100000 + "> : tensor<f32>", ""),
    "opaque": ("func.func @main() attributes {a = #sdy.x" + "<" * 100000, ""),
    "records": ("func.func @main() attributes {a = #stablehlo.x" + "<a = #stablehlo.x" * 100000, ""),
    "functions": ("func.func @main() attributes {a = " + "(tuple<" * 100000, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", NESTED)
def test_deep_nesting_is_refused(name):
    with at_most(lines=5_000_000), pytest.raises(OpError):
        read_stablehlo("".join(NESTED[name]))


@pytest.mark.parametrize("text", [
    "func.func @main() { %0 = stablehlo.constant dense<0.0> : tensor<1000000x1000000xf32> return }",
    "func.func @main() { %0 = stablehlo.constant dense<0> : tensor<9999999999999999999xi8> return }",
    "func.func @main() { %0 = stablehlo.constant dense<" + "9" * 100000 + "> : tensor<i64> return }",
    "func.func @main() { %0 = stablehlo.constant dense<1e" + "9" * 100000 + "> : tensor<f32> return }",
    "func.func @main() { %0 = stablehlo.constant dense<1.0e" + "9" * 1000 + "> : tensor<f32> return }",
    "func.func @main() { %0 = stablehlo.iota dim = " + "9" * 100000 + " : tensor<3xf32> return }",
    "func.func @main() attributes {a = " + "9" * 100000 + "} { return }",
    "func.func @main() attributes {a = 1." + "9" * 100000 + "} { return }",
    "func.func @main(%a: tensor<" + "1x" * 300 + "f32>) { return }",
    "func.func @main() { %0:99999999999 = stablehlo.constant dense<1> : tensor<i8> return }",
    "func.func @main(%a: tensor<3xf32>) { %0 = stablehlo.slice %a [0:3:0] : (tensor<3xf32>) -> tensor<3xf32> return }",
    "func.func @main(%a: tensor<f32>) { %0 = stablehlo.reduce_precision %a, format = e99999999999999999999m1 : tensor<f32> return }",
    'func.func @main() { "stablehlo.infeed"() : () -> () return }', 'func.func @main() { "stablehlo.sort"() : () -> () return }',
    'func.func @main() { "stablehlo.dynamic_slice"() {slice_sizes = array<i64>} : () -> () return }', 'func.func @main() { "stablehlo.all_reduce"() : () -> () return }',
    'func.func @main() { "stablehlo.send"() : () -> () return }', 'func.func @main() { "stablehlo.map"() ({ stablehlo.return }) : () -> () return }',
    'func.func @main() { "stablehlo.while"() ({ stablehlo.return }, { stablehlo.return }) : () -> () return }', 'func.func @main() { "stablehlo.recv"() : () -> () return }',
    "func.func @main() { stablehlo.custom_call @ApproxTopK() {called_computations = [@main]} : () -> () return }", "func.func @main() { stablehlo.custom_call @shape_assertion() : () -> () return }",
    "func.func @main(%a: tensor<f32>) { stablehlo.custom_call @ApproxTopK(%a, %a) {backend_config = {}, called_computations = [@f]} : (tensor<f32>, tensor<f32>) -> () return } "
    "func.func private @f(%a: tensor<f32>, %b: tensor<f32>) -> tensor<i1> { %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1> return %0 : tensor<i1> }",
    "func.func @main() { %0 = stablehlo.constant dense<[[true]]> : tensor<2x2147483648xi1> return }",
    "func.func @main() attributes {a = \u00b2} { return }", "func.func @main() attributes {a = \u0663} { return }",
    "func.func @main() { %0 = stablehlo." + "odd" * 2000 + "(%1) : tensor<f32> return }",
    "func.func @main(%a: tensor<" + "1x" * 256 + "f32>) -> tensor<f32> { return %a : tensor<f32> }",
    "func.func @main(%a: tensor<f32>) { %0 = stablehlo." + "odd" * 2000 + " %a : tensor<f32> return }",
    'func.func @main(%a: tensor<2x2xf32>) { %0 = "stablehlo.transpose"(%a) <{permutation = dense<0> : tensor<4294967296xi64>}> : (tensor<2x2xf32>) -> tensor<2x2xf32> return }',
    'func.func @main(%a: tensor<2xf32>) { %0 = "stablehlo.collective_permute"(%a) <{source_target_pairs = dense<0> : tensor<2147483648x2xi64>}> : (tensor<2xf32>) -> tensor<2xf32> return }',
    'func.func @main() { "stablehlo.outfeed"() : () -> () return }', 'func.func @main() { "stablehlo.convolution"() : () -> () return }',
    *(f"func.func @main() attributes {{a = {value}}} {{ return }}" for value in (
        "array<tuple<>: 0>", "array<!stablehlo.token: 1>", "array<none: 1>", "array<complex<f32>: 1>", "array<tensor<3xi64>: 1>",
        "dense<[[0]]> : tensor<1x0xi64>", "dense<[[], [0]]> : tensor<2x0xi64>", "dense<[0]> : tensor<0xi64>", "1 : tuple<>",
    )),
])  # fmt: skip
def test_too_large_or_invalid_programs_are_refused(text):
    with at_most(lines=5_000_000):
        attempt(text)


def test_calls_that_double_at_each_level_are_shared():
    """A hundred functions, each called twice by each of two above."""
    call = "call @{1}{2}({0}) : (tensor<f32>) -> tensor<f32>"
    lines = []
    for k in range(100):
        for a, b in ("fg", "gf"):
            body = f"%0 = {call.format('%a', a, k + 1)} %1 = {call.format('%0', b, k + 1)}"
            lines.append(
                f"func.func private @{a}{k}(%a: tensor<f32>) -> tensor<f32> {{ {body} return %1 : tensor<f32> }}"
            )
    lines += [f"func.func private @{a}100(%a: tensor<f32>) -> tensor<f32> {{ return %a : tensor<f32> }}" for a in "fg"]
    lines.append(
        f"func.func @main(%a: tensor<f32>) -> tensor<f32> {{ %0 = {call.format('%a', 'f', 0)} return %0 : tensor<f32> }}"
    )
    assert len(read_stablehlo("\n".join(lines)).computations) == 202


@pytest.mark.parametrize("parts", ["!t{0}, !t{0}", "!t{0}", "!t{0}, !t{0}, tuple<>"])
def test_aliases_that_double_or_nest_at_each_level_are_refused(parts):
    first = "tuple<>" if "tuple" in parts else "tensor<3xf32>"
    lines = [f"!t0 = {first}", *(f"!t{k + 1} = tuple<{parts.format(k)}>" for k in range(5000))]
    with at_most(lines=2_000_000), pytest.raises(HloParseError, match=r"parts|deep") as caught:
        read_stablehlo("\n".join(lines) + "\nfunc.func @main(%a: !t5000) { return }")
    assert caught.value.line in range(10, 80)


def test_work_grows_with_the_length_of_a_text():
    def work(count):
        lines = "\n".join(f"%{k + 1} = stablehlo.add %{k}, %{k} : tensor<f32> loc(#l)" for k in range(count))
        text = f"func.func @main(%0: tensor<f32>) -> tensor<f32> {{ {lines} return %{count} : tensor<f32> }}\n#l = loc(unknown)"
        return lines_run(read_stablehlo, text)

    work(100)
    assert work(2000) < 2.2 * work(1000)


@pytest.mark.parametrize("types", ["i16", "f64", "f32, num_primitive_operations = 7"])
def test_unknown_algorithms_are_refused(types):
    algorithm = f"<lhs_precision_type = f32, rhs_precision_type = f32, accumulation_type = {types}>"
    text = f"""func.func @main(%a: tensor<2xf32>) -> tensor<f32> {{
      %0 = stablehlo.dot_general %a, %a, contracting_dims = [0] x [0], algorithm = {algorithm}
        : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>
      return %0 : tensor<f32>
    }}"""
    with pytest.raises(UnimplementedError, match="does not support the algorithm dot_f32_f32_"):
        read_stablehlo(text)


@pytest.mark.parametrize("name", ["tensor.negate", "arith.constant_like", "shape.broadcast", "func.abs", "sdy.sort"])
def test_other_dialects_do_not_lend_their_name(name: str) -> None:
    """An operation of another dialect is not one of StableHLO that has the same name."""
    text = f"""func.func @main(%a: tensor<3xf32>) -> tensor<3xf32> {{
      %0 = "{name}"(%a) : (tensor<3xf32>) -> tensor<3xf32>
      return %0 : tensor<3xf32>
    }}"""
    with pytest.raises(UnimplementedError, match=f"operation {name} is not supported"):
        read_stablehlo(text)
