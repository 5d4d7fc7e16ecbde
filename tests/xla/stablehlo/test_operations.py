# ruff: noqa: E501 - programs are longer than lines
"""Every operation, in its short and its generic form, agrees with NumPy."""

import ml_dtypes
import numpy as np
import pytest
import scipy.special

import cyxla
from cyxla.xla.stablehlo import read_stablehlo
from cyxla.xla.stablehlo.registry import HANDLERS

NAMES = "abcdef"
TYPES = {
    "float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64", "int8": "i8", "uint8": "ui8", "uint32": "ui32",
    "uint64": "ui64", "bool": "i1", "complex64": "complex<f32>", "float16": "f16", "bfloat16": "bf16",
}  # fmt: skip


def type_of(array):
    """The type of an array as MLIR spells it."""
    return f"tensor<{''.join(f'{n}x' for n in array.shape)}{TYPES[array.dtype.name]}>"


def program(lines, results, *args):
    """A module whose function takes arrays as %a, %b .. and returns values of these types."""
    given = ", ".join(f"%{n}: {type_of(x)}" for n, x in zip(NAMES, args, strict=False))
    names = ", ".join(f"%{k}" for k in range(len(results))) if len(results) > 1 else "%0"
    types = ", ".join(results)
    return f"""module @m {{
  func.func public @main({given}) -> ({types}) {{
    {lines}
    return {names} : {types}
  }}
}}"""


def run(text, *args, platform="interpreter"):
    found = cyxla.compile(text, platform=platform)(*args)
    return found if isinstance(found, tuple) else (found,)


def check(text, args, expected, platform="interpreter", rtol=2e-6):
    expected = expected if isinstance(expected, tuple) else (expected,)
    found = run(text, *args, platform=platform)
    assert len(found) == len(expected)
    for got, want in zip(found, expected, strict=True):
        want = np.asarray(want)
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(np.asarray(got, np.complex128), np.asarray(want, np.complex128), rtol, 1e-6)


def arr(*values, dtype=np.float32):
    return np.array(values, dtype)


X = arr(0.25, -0.5, 0.75)
P = arr(0.5, 1.5, 2.5)
INTS = arr(5, -3, 12, dtype=np.int32)
J = arr(2, 2, 5, dtype=np.int32)
C = arr(1 + 2j, -0.5j, 0.25, dtype=np.complex64)
B = arr(True, False, True, dtype=np.bool_)
M = np.arange(6, dtype=np.float32).reshape(2, 3)
N = np.arange(12, dtype=np.float32).reshape(3, 4)
SPD = arr([4.0, 1.0], [1.0, 3.0])


UNARY = [
    ("abs", X, np.abs), ("abs", INTS, np.abs), ("abs", C, np.abs), ("cbrt", P, np.cbrt), ("ceil", X, np.ceil),
    ("cosine", X, np.cos), ("count_leading_zeros", arr(1, 0, dtype=np.int32), lambda x: arr(31, 32, dtype=np.int32)),
    ("exponential", X, np.exp), ("exponential_minus_one", X, np.expm1), ("floor", X, np.floor), ("imag", C, np.imag),
    ("is_finite", arr(1.0, np.inf, np.nan), np.isfinite), ("log", P, np.log), ("log_plus_one", P, np.log1p),
    ("logistic", X, lambda x: 1 / (1 + np.exp(-x))), ("negate", INTS, np.negative), ("not", B, np.logical_not),
    ("popcnt", J, lambda x: arr(1, 1, 2, dtype=np.int32)), ("real", C, np.real),
    ("round_nearest_afz", arr(0.5, 1.5, -2.5), lambda x: arr(1, 2, -3)),
    ("round_nearest_even", arr(0.5, 1.5, -2.5), np.rint), ("rsqrt", P, lambda x: 1 / np.sqrt(x)), ("sign", X, np.sign),
    ("sine", X, np.sin), ("sqrt", P, np.sqrt), ("tan", X, np.tan), ("tanh", X, np.tanh),
]  # fmt: skip
CHLO = [
    ("acos", X, np.arccos), ("acosh", P + 1, np.arccosh), ("asin", X, np.arcsin), ("asinh", X, np.arcsinh),
    ("atan", X, np.arctan), ("atanh", X, np.arctanh), ("bessel_i1e", P, scipy.special.i1e), ("conj", C, np.conj),
    ("cosh", X, np.cosh), ("digamma", P, scipy.special.digamma), ("erf", X, scipy.special.erf),
    ("erf_inv", X, scipy.special.erfinv), ("erfc", X, scipy.special.erfc), ("is_inf", arr(1, np.inf, -np.inf), np.isinf),
    ("is_neg_inf", arr(1, np.inf, -np.inf), np.isneginf), ("is_pos_inf", arr(1, np.inf, -np.inf), np.isposinf),
    ("lgamma", P, scipy.special.gammaln), ("sinh", X, np.sinh), ("square", P, np.square), ("tan", X, np.tan),
    ("asin", C, np.arcsin), ("acos", C, np.arccos), ("atan", C, np.arctan), ("asinh", C, np.arcsinh),
]  # fmt: skip
BINARY = [
    ("add", X, P, np.add), ("add", B, B, np.logical_or), ("and", INTS, J, np.bitwise_and), ("atan2", X, P, np.arctan2),
    ("complex", X, P, lambda x, y: (x + 1j * y).astype(np.complex64)), ("divide", X, P, np.divide),
    ("divide", INTS, J, lambda x, y: np.trunc(x / y).astype(np.int32)), ("maximum", X, P, np.maximum),
    ("minimum", X, P, np.minimum), ("multiply", C, C, np.multiply), ("or", INTS, J, np.bitwise_or),
    ("power", P, P, np.power), ("remainder", INTS, J, np.fmod), ("shift_left", INTS, J, np.left_shift),
    ("shift_right_arithmetic", INTS, J, np.right_shift), ("subtract", X, P, np.subtract), ("xor", B, ~B, np.logical_xor),
    ("shift_right_logical", INTS, J, lambda x, y: (x.view(np.uint32) >> y.view(np.uint32)).view(np.int32)),
]  # fmt: skip
CHLO_BINARY = [
    ("next_after", X, P, np.nextafter), ("zeta", P + 1, P, scipy.special.zeta),
    ("zeta", arr(0, 2, -2, 1, 3, np.inf), arr(0, -1, -3, np.nan, np.inf, 2), lambda x, q: arr(*[np.inf] * 4, np.nan, np.nan)),
    ("polygamma", arr(1, 3, np.inf, 0), arr(np.inf, np.inf, 2, np.inf), lambda n, x: arr(np.nan, np.nan, np.nan, np.inf)),
    ("polygamma", arr(1, 2, 0), P, lambda n, x: arr(*map(scipy.special.polygamma, n.astype(int), x))),
]  # fmt: skip


@pytest.mark.parametrize("dialect, row", [*(("stablehlo", r) for r in UNARY), *(("chlo", r) for r in CHLO)])
def test_unary(dialect, row):
    name, x, meaning = row
    want = np.asarray(meaning(x))
    want = want.astype(x.dtype) if want.dtype == np.float64 else want
    kinds = type_of(x), type_of(want)
    short = f"%0 = {dialect}.{name} %a : " + ("{0} -> {1}" if dialect == "chlo" else "({0}) -> {1}").format(*kinds)
    check(program(short, [kinds[1]], x), (x,), want, rtol=1e-5)
    generic = f'%0 = "{dialect}.{name}"(%a) : ({kinds[0]}) -> {kinds[1]}'
    assert (
        read_stablehlo(program(generic, [kinds[1]], x)).fingerprint()
        == read_stablehlo(program(short, [kinds[1]], x)).fingerprint()
    )
    if kinds[0] == kinds[1] and dialect == "stablehlo":
        check(program(f"%0 = stablehlo.{name} %a : {kinds[0]}", [kinds[1]], x), (x,), want, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16, "float32", "float64"])
def test_erf_inv_of_the_signs_of_zero(dtype, backend):
    x = np.array([-0.0, 0.0, -1.0, 1.0, -0.5, 0.5], dtype)
    text = program(f"%0 = chlo.erf_inv %a : {type_of(x)} -> {type_of(x)}", [type_of(x)], x)
    (got,) = run(text, x, platform=backend)
    np.testing.assert_array_equal(np.signbit(got.astype("f8")), [True, False] * 3)
    wanted = scipy.special.erfinv(x.astype("f8"))
    np.testing.assert_allclose(got.astype("f8"), wanted, 1e-2 if x.itemsize == 2 else 1e-6)


@pytest.mark.parametrize("dialect, row", [*(("stablehlo", r) for r in BINARY), *(("chlo", r) for r in CHLO_BINARY)])
def test_binary(dialect, row):
    name, x, y, meaning = row
    want = np.asarray(meaning(x, y))
    want = want.astype(x.dtype) if want.dtype == np.float64 else want
    kind, result = type_of(x), type_of(want)
    generic = f'%0 = "{dialect}.{name}"(%a, %b) : ({kind}, {kind}) -> {result}'
    check(program(generic, [result], x, y), (x, y), want, rtol=1e-5)
    types = f"{kind}, {kind} -> {result}" if dialect == "chlo" else kind if kind == result else result
    check(program(f"%0 = {dialect}.{name} %a, %b : {types}", [result], x, y), (x, y), want, rtol=1e-5)


SUM = "({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): %s = stablehlo.add %x, %y : tensor<f32> stablehlo.return %s : tensor<f32> })"
GREATER = SUM.replace("stablehlo.add %x, %y : tensor<f32>", "stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>").replace("%s : tensor<f32>", "%s : tensor<i1>")  # fmt: skip
Z = np.float32(0)
GATHER = "#stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>"
SCATTER = (
    "#stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
    "index_vector_dim = 1>"
)
IDX = arr([1], [0], [1], dtype=np.int32)
IMAGE = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
KERNEL = np.arange(4, dtype=np.float32).reshape(2, 2, 1, 1)
CONV = np.array([[[[sum(IMAGE[0, i + u, j + v, 0] * KERNEL[u, v, 0, 0] for u in (0, 1) for v in (0, 1))]
                   for j in range(3)] for i in range(3)]], np.float32)  # fmt: skip


def scattered(x, u):
    found = x.copy()
    np.add.at(found, IDX[:, 0], u)
    return found


# name, lines, result types, arguments, expected
ROWS = [
    ("compare", "%0 = stablehlo.compare LT, %a, %b, FLOAT : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xi1>",
     ["tensor<3xi1>"], (X, P), X < P),
    ("compare", '%0 = "stablehlo.compare"(%a, %b) {comparison_direction = #stablehlo<comparison_direction NE>} : '
     "(tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>", ["tensor<3xi1>"], (INTS, J), INTS != J),
    ("compare", "%0 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>",
     ["tensor<i1>"], (np.float32(-0.0), np.float32(0)), np.bool_(True)),
    ("select", "%0 = stablehlo.select %a, %b, %c : tensor<3xi1>, tensor<3xf32>", ["tensor<3xf32>"], (B, X, P),
     np.where(B, X, P)),
    ("select", "%0 = stablehlo.select %a, %b, %c : (tensor<i1>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>",
     ["tensor<3xf32>"], (np.bool_(True), X, P), X),
    ("clamp", "%0 = stablehlo.clamp %a, %b, %c : tensor<3xf32>", ["tensor<3xf32>"], (X, P, P + 1), np.clip(P, X, P + 1)),
    ("clamp", "%0 = stablehlo.clamp %a, %b, %a : (tensor<f32>, tensor<3xf32>, tensor<f32>) -> tensor<3xf32>",
     ["tensor<3xf32>"], (Z, X), X * 0),
    ("convert", "%0 = stablehlo.convert %a : (tensor<3xf32>) -> tensor<3xi32>", ["tensor<3xi32>"], (P,),
     P.astype(np.int32)),
    ("convert", "%0 = stablehlo.convert %a : tensor<3xf32>", ["tensor<3xf32>"], (P,), P),
    ("bitcast_convert", "%0 = stablehlo.bitcast_convert %a : (tensor<3xf32>) -> tensor<3xi32>", ["tensor<3xi32>"], (P,),
     P.view(np.int32)),
    ("bitcast_convert", "%0 = stablehlo.bitcast_convert %a : (tensor<3xf32>) -> tensor<3x4xui8>", ["tensor<3x4xui8>"],
     (P,), P.view(np.uint8).reshape(3, 4)),
    ("reduce_precision", "%0 = stablehlo.reduce_precision %a, format = e8m0 : tensor<3xf32>", ["tensor<3xf32>"], (P,),
     arr(0.5, 2, 2)),
    ("reduce_precision", '%0 = "stablehlo.reduce_precision"(%a) {exponent_bits = 8 : i32, mantissa_bits = 0 : i32} : '
     "(tensor<3xf32>) -> tensor<3xf32>", ["tensor<3xf32>"], (P,), arr(0.5, 2, 2)),
    ("constant", "%0 = stablehlo.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>", ["tensor<2x2xi32>"], (),
     arr([1, 2], [3, 4], dtype=np.int32)),
    ("constant", '%0 = "stablehlo.constant"() <{value = dense<1.5> : tensor<2xf32>}> : () -> tensor<2xf32>',
     ["tensor<2xf32>"], (), arr(1.5, 1.5)),
    ("constant", "%0 = stablehlo.constant {note = 1 : i32} dense<true> : tensor<i1>", ["tensor<i1>"], (), np.bool_(True)),
    ("constant", "%0 = stablehlo.constant() {value = dense<7> : tensor<i8>} : () -> tensor<i8>", ["tensor<i8>"], (),
     np.int8(7)),
    ("constant", "%0 = arith.constant dense<[1, 2]> : tensor<2xi64>", ["tensor<2xi64>"], (), arr(1, 2, dtype=np.int64)),
    ("constant", "%0 = chlo.constant dense<2.0> : tensor<f32>", ["tensor<f32>"], (), np.float32(2)),
    ("constant_like", '%0 = "chlo.constant_like"(%a) {value = 3.0 : f32} : (tensor<3xf32>) -> tensor<3xf32>',
     ["tensor<3xf32>"], (X,), arr(3, 3, 3)),
    ("iota", "%0 = stablehlo.iota dim = 1 : tensor<2x3xi32>", ["tensor<2x3xi32>"], (),
     np.tile(np.arange(3, dtype=np.int32), (2, 1))),
    ("dynamic_iota", "%s = stablehlo.constant dense<[2, 3]> : tensor<2xi64> %0 = stablehlo.dynamic_iota %s, dim = 0 : "
     "(tensor<2xi64>) -> tensor<2x3xf32>", ["tensor<2x3xf32>"], (), arr([0, 0, 0], [1, 1, 1])),
    ("broadcast", "%0 = stablehlo.broadcast %a, sizes = [2] : (tensor<3xf32>) -> tensor<2x3xf32>", ["tensor<2x3xf32>"],
     (X,), np.stack([X, X])),
    ("broadcast_in_dim", "%0 = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<3xf32>) -> tensor<3x2xf32>",
     ["tensor<3x2xf32>"], (X,), np.stack([X, X], 1)),
    ("broadcast_in_dim", '%0 = "stablehlo.broadcast_in_dim"(%a) {broadcast_dimensions = dense<1> : tensor<1xi64>} : '
     "(tensor<3xf32>) -> tensor<2x3xf32>", ["tensor<2x3xf32>"], (X,), np.stack([X, X])),
    ("dynamic_broadcast_in_dim", "%s = stablehlo.constant dense<[2, 3]> : tensor<2xi64> %0 = "
     "stablehlo.dynamic_broadcast_in_dim %a, %s, dims = [1] : (tensor<3xf32>, tensor<2xi64>) -> tensor<?x?xf32>",
     ["tensor<?x?xf32>"], (X,), np.stack([X, X])),
    ("reshape", "%0 = stablehlo.reshape %a : (tensor<2x3xf32>) -> tensor<3x2xf32>", ["tensor<3x2xf32>"], (M,),
     M.reshape(3, 2)),
    ("dynamic_reshape", "%s = stablehlo.constant dense<[3, 2]> : tensor<2xi32> %0 = stablehlo.dynamic_reshape %a, %s : "
     "(tensor<2x3xf32>, tensor<2xi32>) -> tensor<?x2xf32>", ["tensor<?x2xf32>"], (M,), M.reshape(3, 2)),
    ("transpose", "%0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>",
     ["tensor<3x2xf32>"], (M,), M.T),
    ("reverse", "%0 = stablehlo.reverse %a, dims = [1] : tensor<2x3xf32>", ["tensor<2x3xf32>"], (M,), M[:, ::-1]),
    ("concatenate", "%0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<3xf32>, tensor<3xf32>) -> tensor<6xf32>",
     ["tensor<6xf32>"], (X, P), np.concatenate([X, P])),
    ("slice", "%0 = stablehlo.slice %a [0:2, 0:3:2] : (tensor<2x3xf32>) -> tensor<2x2xf32>", ["tensor<2x2xf32>"], (M,),
     M[:, ::2]),
    ("slice", '%0 = "stablehlo.slice"(%a) <{limit_indices = array<i64: 3>, start_indices = array<i64: 1>, '
     "strides = array<i64: 1>}> : (tensor<3xf32>) -> tensor<2xf32>", ["tensor<2xf32>"], (X,), X[1:]),
    ("real_dynamic_slice", "%l = stablehlo.constant dense<1> : tensor<1xi64> %h = stablehlo.constant dense<3> : "
     "tensor<1xi64> %0 = stablehlo.real_dynamic_slice %a, %l, %h, %l : (tensor<3xf32>, tensor<1xi64>, tensor<1xi64>, "
     "tensor<1xi64>) -> tensor<2xf32>", ["tensor<2xf32>"], (X,), X[1:]),
    ("real_dynamic_slice", "%h = stablehlo.constant dense<3> : tensor<1xi64> %o = stablehlo.constant dense<1> : "
     "tensor<1xi64> %0 = stablehlo.real_dynamic_slice %a, %b, %h, %o : (tensor<3xf32>, tensor<1xi64>, tensor<1xi64>, "
     "tensor<1xi64>) -> tensor<2xf32>", ["tensor<2xf32>"], (X, arr(1, dtype=np.int64)), X[1:]),
    ("real_dynamic_slice", "%k = stablehlo.constant dense<2> : tensor<1xi64> %o = stablehlo.constant dense<1> : "
     "tensor<1xi64> %h = stablehlo.add %b, %k : tensor<1xi64> %0 = stablehlo.real_dynamic_slice %a, %b, %h, %o : "
     "(tensor<3xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>", ["tensor<?xf32>"],
     (X, arr(1, dtype=np.int64)), X[1:]),
    ("dynamic_slice", "%0 = stablehlo.dynamic_slice %a, %b, sizes = [2] : (tensor<3xf32>, tensor<i32>) -> tensor<2xf32>",
     ["tensor<2xf32>"], (X, np.int32(9)), X[1:]),
    ("dynamic_update_slice", "%0 = stablehlo.dynamic_update_slice %a, %b, %c : (tensor<3xf32>, tensor<1xf32>, "
     "tensor<i32>) -> tensor<3xf32>", ["tensor<3xf32>"], (X, arr(9), np.int32(1)), arr(0.25, 9, 0.75)),
    ("pad", "%0 = stablehlo.pad %a, %b, low = [1], high = [0], interior = [1] : (tensor<3xf32>, tensor<f32>) -> "
     "tensor<6xf32>", ["tensor<6xf32>"], (X, Z), arr(0, 0.25, 0, -0.5, 0, 0.75)),
    ("dynamic_pad", "%l = stablehlo.constant dense<1> : tensor<1xi64> %h = stablehlo.constant dense<0> : tensor<1xi64> "
     "%0 = stablehlo.dynamic_pad %a, %b, %l, %h, %h : (tensor<3xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, "
     "tensor<1xi64>) -> tensor<4xf32>", ["tensor<4xf32>"], (X, Z), arr(0, 0.25, -0.5, 0.75)),
    ("gather", f'%0 = "stablehlo.gather"(%a, %b) <{{dimension_numbers = {GATHER}, slice_sizes = array<i64: 1, 3>, '
     "indices_are_sorted = false}> : (tensor<2x3xf32>, tensor<3x1xi32>) -> tensor<3x3xf32>", ["tensor<3x3xf32>"],
     (M, IDX), M[IDX[:, 0]]),
    ("dynamic_gather", "%s = stablehlo.constant dense<[1, 3]> : tensor<2xi64> "
     f'%0 = "stablehlo.dynamic_gather"(%a, %b, %s) <{{dimension_numbers = {GATHER}}}> : (tensor<2x3xf32>, '
     "tensor<3x1xi32>, tensor<2xi64>) -> tensor<3x3xf32>", ["tensor<3x3xf32>"], (M, IDX), M[IDX[:, 0]]),
    ("torch_index_select", "%0 = stablehlo.torch_index_select %a, %b, dim = 1, batch_dims = 0 : (tensor<2x3xf32>, "
     "tensor<2xi32>) -> tensor<2x2xf32>", ["tensor<2x2xf32>"], (M, arr(2, 0, dtype=np.int32)), M[:, [2, 0]]),
    ("torch_index_select", "%0 = stablehlo.torch_index_select %a, %b, dim = 1, batch_dims = 1 : (tensor<2x3xf32>, "
     "tensor<2x1xi32>) -> tensor<2x1xf32>", ["tensor<2x1xf32>"], (M, arr([2], [0], dtype=np.int32)), arr([2], [3])),
    ("scatter", f'%0 = "stablehlo.scatter"(%a, %b, %c) <{{scatter_dimension_numbers = {SCATTER}, '
     f"indices_are_sorted = false, unique_indices = false}}> {SUM} : (tensor<2x3xf32>, tensor<3x1xi32>, tensor<3x3xf32>)"
     " -> tensor<2x3xf32>", ["tensor<2x3xf32>"], (M, IDX, N[:, :3].copy()), scattered(M, N[:, :3])),
    ("tuple", "%t = stablehlo.tuple %a, %b : tuple<tensor<3xf32>, tensor<3xi32>> %0 = stablehlo.get_tuple_element %t[1] "
     ": (tuple<tensor<3xf32>, tensor<3xi32>>) -> tensor<3xi32>", ["tensor<3xi32>"], (X, INTS), INTS),
    ("get_tuple_element", '%t = "stablehlo.tuple"(%a, %b) : (tensor<3xf32>, tensor<3xi32>) -> tuple<tensor<3xf32>, '
     'tensor<3xi32>> %0 = "stablehlo.get_tuple_element"(%t) {index = 0 : i32} : (tuple<tensor<3xf32>, tensor<3xi32>>) '
     "-> tensor<3xf32>", ["tensor<3xf32>"], (X, INTS), X),
    ("get_dimension_size", "%0 = stablehlo.get_dimension_size %a, dim = 1 : (tensor<2x3xf32>) -> tensor<i32>",
     ["tensor<i32>"], (M,), np.int32(3)),
    ("shape_of", "%s = shape.shape_of %a : tensor<2x3xf32> -> tensor<2xindex> %0 = stablehlo.convert %s : "
     "(tensor<2xindex>) -> tensor<2xi32>", ["tensor<2xi32>"], (M,), arr(2, 3, dtype=np.int32)),
    ("set_dimension_size", "%1 = stablehlo.set_dimension_size %a, %b, dim = 0 : (tensor<3xf32>, tensor<i32>) -> "
     "tensor<?xf32, #stablehlo.bounds<3>> %2 = stablehlo.constant dense<0.0> : tensor<f32> %0 = stablehlo.reduce(%1 "
     "init: %2) applies stablehlo.add across dimensions = [0] : (tensor<?xf32, #stablehlo.bounds<3>>, tensor<f32>) -> "
     "tensor<f32>", ["tensor<f32>"], (P, np.int32(2)), np.float32(2)),
    ("dim", "%i = arith.constant 1 : index %0 = tensor.dim %a, %i : (tensor<2x3xf32>, index) -> tensor<i64>",
     ["tensor<i64>"], (M,), np.int64(3)),
    ("dot", "%0 = stablehlo.dot %a, %b, precision = [DEFAULT, HIGHEST] : (tensor<2x3xf32>, tensor<3x4xf32>) -> "
     "tensor<2x4xf32>", ["tensor<2x4xf32>"], (M, N), M @ N),
    ("dot_general", "%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT], "
     "algorithm = <lhs_precision_type = f32, rhs_precision_type = f32, accumulation_type = f32, lhs_component_count = 1,"
     " rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<2x3xf32>, "
     "tensor<3x4xf32>) -> tensor<2x4xf32>", ["tensor<2x4xf32>"], (M, N), M @ N),
    ("dot_general", "%0 = stablehlo.dot_general %a, %a, batching_dims = [0] x [0], contracting_dims = [1] x [1] : "
     "(tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2xf32>", ["tensor<2xf32>"], (M,), (M * M).sum(1)),
    ("dot_general", '%0 = "stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<'
     "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision "
     "HIGHEST>, #stablehlo<precision DEFAULT>]}> : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>",
     ["tensor<2x4xf32>"], (M, N), M @ N),
    ("ragged_dot", '%0 = "chlo.ragged_dot"(%a, %b, %c) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<'
     "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], "
     "rhs_group_dimensions = [0]>}> : (tensor<2x3xf32>, tensor<2x3x4xf32>, tensor<2xi32>) -> tensor<2x4xf32>",
     ["tensor<2x4xf32>"], (M, np.stack([N, -N]), arr(1, 1, dtype=np.int32)), np.stack([M[0] @ N, -M[1] @ N])),
    ("einsum", '%0 = stablehlo.einsum %a, %b, config = "ij,jk->ki" : (tensor<2x3xf32>, tensor<3x4xf32>) -> '
     "tensor<4x2xf32>", ["tensor<4x2xf32>"], (M, N), (M @ N).T),
    ("unary_einsum", '%0 = stablehlo.unary_einsum %a, config = "ij->i" : (tensor<2x3xf32>) -> tensor<2xf32>',
     ["tensor<2xf32>"], (M,), M.sum(1)),
    ("convolution", "%0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = "
     "{stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} "
     "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x4x1xf32>, tensor<2x2x1x1xf32>) -> "
     "tensor<1x3x3x1xf32>", ["tensor<1x3x3x1xf32>"], (IMAGE, KERNEL), CONV),
    ("convolution", '%0 = "stablehlo.convolution"(%a, %b) <{batch_group_count = 1 : i64, dimension_numbers = '
     "#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, padding = dense<0> : "
     "tensor<2x2xi64>, window_strides = array<i64: 1, 1>}> : (tensor<1x4x4x1xf32>, tensor<2x2x1x1xf32>) -> "
     "tensor<1x3x3x1xf32>", ["tensor<1x3x3x1xf32>"], (IMAGE, KERNEL), CONV),
    ("convolution", '%0 = "stablehlo.convolution"(%a, %b) {dimension_numbers = #stablehlo.conv<raw '
     "input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], "
     "kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1], "
     "output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>} : "
     "(tensor<1x4x4x1xf32>, tensor<2x2x1x1xf32>) -> tensor<1x3x3x1xf32>", ["tensor<1x3x3x1xf32>"], (IMAGE, KERNEL),
     CONV),
    ("dynamic_conv", "%p = stablehlo.constant dense<0> : tensor<2x2xi32> "
     '%0 = "stablehlo.dynamic_conv"(%a, %b, %p) <{dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->'
     "[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64}> : (tensor<1x4x4x1xf32>, "
     "tensor<2x2x1x1xf32>, tensor<2x2xi32>) -> tensor<1x3x3x1xf32>", ["tensor<1x3x3x1xf32>"], (IMAGE, KERNEL), CONV),
    ("fft", "%0 = stablehlo.fft %a, type = RFFT, length = [3] : (tensor<2x3xf32>) -> tensor<2x2xcomplex<f32>>",
     ["tensor<2x2xcomplex<f32>>"], (M,), np.fft.rfft(M).astype(np.complex64)),
    ("cholesky", "%0 = stablehlo.cholesky %a, lower = true : tensor<2x2xf32>", ["tensor<2x2xf32>"], (SPD,),
     np.linalg.cholesky(SPD)),
    ("triangular_solve", '%0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, transpose_a = '
     "#stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<2x2xf32>, tensor<2x2xf32>) -> "
     "tensor<2x2xf32>", ["tensor<2x2xf32>"], (np.tril(SPD), SPD), np.linalg.solve(np.tril(SPD), SPD)),
    ("batch_norm_inference", '%0 = "stablehlo.batch_norm_inference"(%a, %b, %b, %c, %b) <{epsilon = 0.0 : f32, '
     "feature_index = 1 : i64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> "
     "tensor<2x3xf32>", ["tensor<2x3xf32>"], (M, P, X), (M - X) / np.sqrt(P) * P + P),
    ("reduce", "%0 = stablehlo.reduce(%a init: %b) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, "
     "tensor<f32>) -> tensor<2xf32>", ["tensor<2xf32>"], (M, Z), M.sum(1)),
    ("reduce_window", f'%0 = "stablehlo.reduce_window"(%a, %b) <{{window_dimensions = array<i64: 2>, padding = '
     f"dense<[[1, 0]]> : tensor<1x2xi64>}}> {SUM} : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>", ["tensor<3xf32>"],
     (P, Z), arr(0.5, 2, 4)),
    ("select_and_scatter", '%0 = "stablehlo.select_and_scatter"(%a, %b, %c) <{window_dimensions = array<i64: 3>, '
     f"window_strides = array<i64: 3>}}> ({GREATER[1:-1]}, {SUM[1:-1]}) : (tensor<3xf32>, tensor<1xf32>, tensor<f32>) -> "
     "tensor<3xf32>", ["tensor<3xf32>"], (P, arr(7), Z), arr(0, 0, 7)),
    ("map", f'%0 = "stablehlo.map"(%a, %b) <{{dimensions = array<i64: 0>}}> {SUM} : (tensor<3xf32>, tensor<3xf32>) -> '
     "tensor<3xf32>", ["tensor<3xf32>"], (X, P), X + P),
    ("sort", f'%0 = "stablehlo.sort"(%a) <{{dimension = 0 : i64, is_stable = true}}> {GREATER.replace("GE", "GT")} : '
     "(tensor<3xf32>) -> tensor<3xf32>", ["tensor<3xf32>"], (X,), -np.sort(-X)),
    ("top_k", "%v, %i = chlo.top_k(%a, k = 2) : tensor<3xf32> -> (tensor<2xf32>, tensor<2xi32>) %0 = stablehlo.convert "
     "%v : tensor<2xf32>", ["tensor<2xf32>"], (X,), arr(0.75, 0.25)),
    ("topk", '%v:2 = "mhlo.topk"(%a) <{k = 1 : i64, largest = false}> : (tensor<3xf32>) -> (tensor<1xf32>, tensor<1xi32>)'
     " %0 = stablehlo.convert %v#1 : tensor<1xi32>", ["tensor<1xi32>"], (X,), arr(1, dtype=np.int32)),
    ("if", '%0 = "stablehlo.if"(%a) ({ stablehlo.return %b : tensor<3xf32> }, { %n = stablehlo.negate %b : tensor<3xf32> '
     "stablehlo.return %n : tensor<3xf32> }) : (tensor<i1>) -> tensor<3xf32>", ["tensor<3xf32>"], (np.bool_(False), X),
     -X),
    ("case", '%0 = "stablehlo.case"(%a) ({ stablehlo.return %b : tensor<3xf32> }, { %n = stablehlo.negate %b : '
     "tensor<3xf32> stablehlo.return %n : tensor<3xf32> }) : (tensor<i32>) -> tensor<3xf32>", ["tensor<3xf32>"],
     (np.int32(9), X), -X),
    ("case", '%0 = "stablehlo.case"(%a) ({ stablehlo.return %b : tensor<3xf32> }) : (tensor<i32>) -> tensor<3xf32>',
     ["tensor<3xf32>"], (np.int32(3), X), X),
    ("optimization_barrier", "%v:2 = stablehlo.optimization_barrier %a, %b : tensor<3xf32>, tensor<3xi32> %0 = "
     "stablehlo.negate %v#1 : tensor<3xi32>", ["tensor<3xi32>"], (X, INTS), -INTS),
    ("after_all", "%t = stablehlo.create_token : !stablehlo.token %u = stablehlo.after_all %t, %t : !stablehlo.token "
     "%w = stablehlo.after_all : !stablehlo.token %0 = stablehlo.negate %a : tensor<3xf32>", ["tensor<3xf32>"], (X,), -X),
    ("replica_id", "%p = stablehlo.partition_id : tensor<ui32> %r = stablehlo.replica_id : tensor<ui32> %0 = "
     "stablehlo.add %p, %r : tensor<ui32>", ["tensor<ui32>"], (), np.uint32(0)),
    ("all_reduce", f'%0 = "stablehlo.all_reduce"(%a) <{{replica_groups = dense<0> : tensor<1x1xi64>, channel_handle = '
     f"#stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}}> {SUM} : (tensor<3xf32>) -> "
     "tensor<3xf32>", ["tensor<3xf32>"], (X,), X),
    ("all_gather", '%0 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0]]> : '
     "tensor<1x1xi64>}> : (tensor<3xf32>) -> tensor<3xf32>", ["tensor<3xf32>"], (X,), X),
    ("reduce_scatter", '%0 = "stablehlo.reduce_scatter"(%a) <{scatter_dimension = 0 : i64, replica_groups = dense<0> : '
     f"tensor<1x1xi64>}}> {SUM} : (tensor<3xf32>) -> tensor<3xf32>", ["tensor<3xf32>"], (X,), X),
    ("all_to_all", '%0 = "stablehlo.all_to_all"(%a) <{concat_dimension = 1 : i64, replica_groups = dense<0> : '
     "tensor<1x1xi64>, split_count = 1 : i64, split_dimension = 0 : i64}> : (tensor<2x3xf32>) -> tensor<2x3xf32>",
     ["tensor<2x3xf32>"], (M,), M),
    ("collective_permute", '%0 = "stablehlo.collective_permute"(%a) <{source_target_pairs = dense<> : tensor<0x2xi64>}> '
     ": (tensor<3xf32>) -> tensor<3xf32>", ["tensor<3xf32>"], (X,), X * 0),
    ("collective_broadcast", '%0 = "stablehlo.collective_broadcast"(%a) <{replica_groups = dense<0> : tensor<1x1xi64>}> '
     ": (tensor<3xf32>) -> tensor<3xf32>", ["tensor<3xf32>"], (X,), X),
    ("cross-replica-sum", '%0 = "stablehlo.cross-replica-sum"(%a) <{replica_groups = dense<0> : tensor<1x1xi64>}> : '
     "(tensor<3xf32>) -> tensor<3xf32>", ["tensor<3xf32>"], (X,), X),
    ("rng_bit_generator", "%s, %v = stablehlo.rng_bit_generator %a, algorithm = THREE_FRY : (tensor<2xui64>) -> "
     "(tensor<2xui64>, tensor<4xui32>) %0 = stablehlo.subtract %s, %a : tensor<2xui64>", ["tensor<2xui64>"],
     (arr(1, 2, dtype=np.uint64),), arr(0, 2, dtype=np.uint64)),
    ("rng", "%s = stablehlo.constant dense<3> : tensor<1xi64> %r = stablehlo.rng %a, %b, %s, distribution = UNIFORM : "
     "(tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<3xf32> %0 = stablehlo.compare LT, %r, %r : (tensor<3xf32>, "
     "tensor<3xf32>) -> tensor<3xi1>", ["tensor<3xi1>"], (Z, np.float32(1)), B & ~B),
    ("custom_call", '%0 = stablehlo.custom_call @Sharding(%a) {mhlo.sharding = "{replicated}", api_version = 2 : i32} : '
     "(tensor<3xf32>) -> tensor<3xf32>", ["tensor<3xf32>"], (X,), X),
    ("broadcast_add", "%0 = chlo.broadcast_add %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>",
     ["tensor<2x3xf32>"], (M, X), M + X),
    ("broadcast_subtract", "%0 = chlo.broadcast_subtract %a, %b {broadcast_dimensions = array<i64: 0>} : (tensor<3xf32>, "
     "tensor<3x4xf32>) -> tensor<3x4xf32>", ["tensor<3x4xf32>"], (X, N), X[:, None] - N),
    ("broadcast_compare", "%0 = chlo.broadcast_compare %a, %b {comparison_direction = #chlo<comparison_direction LT>} : "
     "(tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xi1>", ["tensor<2x3xi1>"], (M, np.float32(2)), M < 2),
    ("broadcast_select", "%0 = chlo.broadcast_select %a, %b, %c : (tensor<3xi1>, tensor<2x3xf32>, tensor<f32>) -> "
     "tensor<2x3xf32>", ["tensor<2x3xf32>"], (B, M, Z), np.where(B, M, Z)),
    ("sharding_constraint", '%0 = sdy.sharding_constraint %a <@mesh, [{"x"}]> : tensor<3xf32>', ["tensor<3xf32>"], (X,),
     X),
    ("manual_computation", '%0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{}]>]'
     ' manual_axes={"x"} (%q: tensor<3xf32>) { %n = stablehlo.negate %q : tensor<3xf32> sdy.return %n : tensor<3xf32> } '
     ": (tensor<3xf32>) -> tensor<3xf32>", ["tensor<3xf32>"], (X,), -X),
    ("scan", '%v:2 = chlo.scan(%a) inits(%b) dimension=0 attributes {is_reverse = true, scan_dim_size = 3 : i64} { '
     "^bb0(%x: tensor<f32>, %y: tensor<f32>): %s = stablehlo.add %x, %y : tensor<f32> "
     "stablehlo.return %s, %s : tensor<f32>, tensor<f32> } : (tensor<3xf32>, tensor<f32>) -> "
     "(tensor<3xf32>, tensor<f32>) %0 = stablehlo.negate %v#0 : tensor<3xf32>", ["tensor<3xf32>"], (P, Z),
     -np.cumsum(P[::-1])[::-1]),
    ("scan", '%v:2 = "chlo.scan"(%a, %b) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 1, 1>, '
     "resultSegmentSizes = array<i32: 1, 1>}> ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): %s = stablehlo.add %x, %y : "
     "tensor<f32> stablehlo.return %s, %s : tensor<f32>, tensor<f32> }) : (tensor<3xf32>, tensor<f32>) -> "
     "(tensor<3xf32>, tensor<f32>) %0 = stablehlo.negate %v#0 : tensor<3xf32>", ["tensor<3xf32>"], (P, Z), -np.cumsum(P)),
]  # fmt: skip


@pytest.mark.parametrize("name, lines, results, args, expected", ROWS, ids=[f"{k}-{r[0]}" for k, r in enumerate(ROWS)])
def test_operations(name, lines, results, args, expected):
    check(program(lines, results, *map(np.asarray, args)), args, expected)


@pytest.mark.parametrize("name", ["dot", "reduce", "sort", "case", "gather", "top_k", "fft"])
def test_operations_on_the_cpu(name):
    for row in ROWS:
        if row[0] == name:
            check(program(*row[1:3], *map(np.asarray, row[3])), row[3], row[4], platform="cpu")


def test_several_results_are_a_tuple():
    lines = (
        '%0, %1, %2 = "stablehlo.batch_norm_training"(%a, %b, %b) <{epsilon = 0.0 : f32, feature_index = 1 : i64}> : '
    )
    lines += "(tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)"
    mean, variance = M.mean(0), M.var(0)
    want = ((M - mean) / np.sqrt(variance) * P + P, mean, variance)
    check(program(lines, ["tensor<2x3xf32>", "tensor<3xf32>", "tensor<3xf32>"], M, P), (M, P), want)
    lines = lines.replace("_training", "_grad").replace("(%a, %b, %b)", "(%a, %b, %b, %b, %a)")
    lines = lines.replace("tensor<3xf32>) ->", "tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>) ->")
    found = run(program(lines, ["tensor<2x3xf32>", "tensor<3xf32>", "tensor<3xf32>"], M, P), M, P)
    np.testing.assert_allclose(found[2], M.sum(0))


def test_long_form_of_reduce_pairs_its_arguments():
    """Each pair of a reducer is an accumulator and an element; the region takes all accumulators first."""
    lines = (
        "%v:2 = stablehlo.reduce(%a init: %b), (%c init: %d) across dimensions = [0] : (tensor<3xf32>, tensor<3xi32>, "
        "tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>) reducer(%p: tensor<f32>, %q: tensor<f32>) (%r: tensor<i32>, "
        "%s: tensor<i32>) { %x = stablehlo.add %p, %q : tensor<f32> %y = stablehlo.multiply %r, %s : tensor<i32> "
        "stablehlo.return %x, %y : tensor<f32>, tensor<i32> } %0 = stablehlo.negate %v#0 : tensor<f32> "
        "%1 = stablehlo.negate %v#1 : tensor<i32>"
    )
    args = (X, Z, INTS, np.int32(1))
    check(
        program(lines, ["tensor<f32>", "tensor<i32>"], *map(np.asarray, args)),
        args,
        (-X.sum(), -INTS.prod(dtype=np.int32)),
    )


def test_nothing_is_returned_as_an_empty_tuple():
    assert cyxla.compile("func.func @main(%a: tensor<f32>) { return }", platform="interpreter")(Z) == ()


LATER = {
    "infeed", "outfeed", "send", "recv", "trace", "uniform_quantize", "uniform_dequantize", "ragged_all_to_all", "copy",
    "stochastic_convert", "mulhi", "composite", "call", "while", "create_token", "cross_replica_sum", "partition_id",
    "reshard", "batch_norm_training", "batch_norm_grad",
}  # fmt: skip


def test_every_operation_has_a_row():
    """Operations in `LATER` are tested elsewhere, or reach outside of the program."""
    rows = {r[0] for r in (*UNARY, *CHLO, *BINARY, *CHLO_BINARY, *ROWS)} | LATER
    assert [n for n in HANDLERS if n not in rows and not n.startswith("broadcast_")] == []


@pytest.mark.parametrize("lines, opcode", [
    ('%t = stablehlo.create_token : !stablehlo.token %r:2 = "stablehlo.infeed"(%t) <{infeed_config = "c"}> : '
     "(!stablehlo.token) -> (tensor<3xf32>, !stablehlo.token)", "infeed"),
    ('%t = stablehlo.create_token : !stablehlo.token %o = "stablehlo.outfeed"(%a, %t) <{outfeed_config = "c"}> : '
     "(tensor<3xf32>, !stablehlo.token) -> !stablehlo.token", "outfeed"),
    ('%t = stablehlo.create_token : !stablehlo.token %o = "stablehlo.send"(%a, %t) <{channel_handle = '
     "#stablehlo.channel_handle<handle = 5, type = 2>, is_host_transfer = true}> : (tensor<3xf32>, !stablehlo.token) -> "
     "!stablehlo.token", "send-done"),
    ('%t = stablehlo.create_token : !stablehlo.token %r:2 = "stablehlo.recv"(%t) <{channel_handle = '
     "#stablehlo.channel_handle<handle = 5, type = 3>, is_host_transfer = true}> : (!stablehlo.token) -> "
     "(tensor<3xf32>, !stablehlo.token)", "recv-done"),
    ('%m = "mhlo.copy"(%a) : (tensor<3xf32>) -> tensor<3xf32>', "copy"),
    ("%m = chlo.mulhi %a, %a : tensor<3xi32>, tensor<3xi32> -> tensor<3xi32>", "mulhi"),
])  # fmt: skip
def test_operations_that_reach_outside(lines, opcode):
    array = INTS if opcode == "mulhi" else X
    module = read_stablehlo(program(f"{lines} %0 = stablehlo.negate %a : {type_of(array)}", [type_of(array)], array))
    module.verify()
    assert opcode in {i.opcode for i in module.entry.instructions}


@pytest.mark.parametrize("text, dtype, want", [
    ("dense<[1.5, 0x7F800000, 0xFF800000, 0x7FC00000]> : tensor<4xf32>", np.float32, [1.5, np.inf, -np.inf, np.nan]),
    ('dense<"0x0000803F00000040"> : tensor<2xf32>', np.float32, [1, 2]), ("dense<[true, false]> : tensor<2xi1>", bool, [1, 0]),
    ('dense<"0x010001"> : tensor<3xi1>', bool, [1, 0, 1]), ('dense<"0x05"> : tensor<2xi1>', bool, [1, 1]),
    ("dense<[-128, 255]> : tensor<2xi8>", np.int8, [-128, -1]), ("dense<[0, 255]> : tensor<2xui8>", np.uint8, [0, 255]),
    ("dense<18446744073709551615> : tensor<1xui64>", np.uint64, [2**64 - 1]), ("dense<[0x10, 2]> : tensor<2xi32>", np.int32, [16, 2]),
    ("dense<[(1.0, 2.0), (0.0, -1.0)]> : tensor<2xcomplex<f32>>", np.complex64, [1 + 2j, -1j]),
    ("dense<(1.0, 2.0)> : tensor<2xcomplex<f64>>", np.complex128, [1 + 2j, 1 + 2j]), ("dense<> : tensor<0xf32>", np.float32, []),
    ("dense<[1.5, -2.0]> : tensor<2xbf16>", ml_dtypes.bfloat16, [1.5, -2]), ("dense<[-1, 7]> : tensor<2xi4>", ml_dtypes.int4, [-1, 7]),
    ("dense<[15]> : tensor<1xui4>", ml_dtypes.uint4, [15]), ("dense<[1.5, 0x7F]> : tensor<2xf8E4M3FN>", ml_dtypes.float8_e4m3fn, [1.5, np.nan]),
    ("dense<[0x7C00, 1.0]> : tensor<2xf16>", np.float16, [np.inf, 1]), ("dense<2.0> : tensor<2xf8E5M2>", ml_dtypes.float8_e5m2, [2, 2]),
    ("dense_resource<big> : tensor<2xf32>", np.float32, [1, 2]),
])  # fmt: skip
def test_constants(text, dtype, want):
    kind = text.partition(" : ")[2]
    whole = f"func.func @main() -> {kind} {{ %0 = stablehlo.constant {text} return %0 : {kind} }}"
    whole += '\n{-#\n  dialect_resources: {\n    builtin: {\n      big: "0x040000000000803F00000040"\n    }\n  }\n#-}\n'
    (found,) = run(whole)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.astype(np.complex128), np.array(want, np.complex128))
