"""StableHLO programs of open sizes: one executable for all sizes, and for values of arguments that give sizes."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import cyxla
from cyxla.errors import DTypeError, InvalidArgumentError, ResourceExhaustedError, ShapeError, UnimplementedError
from cyxla.xla.client import any_size


def f32(*sizes):
    return np.arange(np.prod(sizes, dtype=int), dtype=np.float32).reshape(sizes) + 1


def i64(*values):
    return np.array(values, np.int64)


def main(arguments, results, body, more=""):
    return f"func.func @main({arguments}) -> {results} {{ {body} }}\n{more}"


V, S = "tensor<?xf32>", "tensor<f32>"
TWICE = main(f"%x: {V}", V, f"%0 = stablehlo.add %x, %x : {V} return %0 : {V}")
ROWS = main(
    "%x: tensor<?x3xf32>",
    "tensor<?xf32>",
    """
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
  %c = stablehlo.constant dense<3> : tensor<i32> %m = stablehlo.multiply %n, %c : tensor<i32>
  %s = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
  %0 = stablehlo.dynamic_reshape %x, %s : (tensor<?x3xf32>, tensor<1xi32>) -> tensor<?xf32>
  %1 = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
  %2 = stablehlo.add %0, %1 : tensor<?xf32> return %2 : tensor<?xf32>""",
)
LOOP = main(
    f"%x: {V}, %k: tensor<i32>",
    V,
    f"""
  %n = stablehlo.get_dimension_size %x, dim = 0 : ({V}) -> tensor<i32>
  %s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32> %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, {V} cond {{
    %c = stablehlo.compare LT, %i, %k : (tensor<i32>, tensor<i32>) -> tensor<i1> stablehlo.return %c : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : tensor<i32> %j = stablehlo.add %i, %one : tensor<i32>
    %r = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi32>) -> {V}
    %z = stablehlo.add %y, %r : {V} stablehlo.return %j, %z : tensor<i32>, {V}
  }} return %0#1 : {V}""",
)
SCALAR = main(
    "%x: tensor<f32>, %y: tensor<?x?xf32>",
    "tensor<?x?xf32>, tensor<f32>".join("()"),
    """
  %0 = stablehlo.negate %y : tensor<?x?xf32> return %0, %x : tensor<?x?xf32>, tensor<f32>""",
)

RESHAPE = main(
    "%x: tensor<?xf32>, %s: tensor<2xi64>",
    "tensor<?x?xf32>",
    """
  %0 = stablehlo.dynamic_reshape %x, %s : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>""",
)
BROADCAST = main(
    "%x: tensor<?xf32>, %s: tensor<2xi64>",
    "tensor<?x?xf32>",
    """
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [1] : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>""",
)
IOTA = main("%n: tensor<1xi32>", V, f"%0 = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi32>) -> {V} return %0 : {V}")
PAD = main(
    "%x: tensor<?xf32>, %v: tensor<f32>, %l: tensor<1xi64>, %h: tensor<1xi64>, %i: tensor<1xi64>",
    V,
    f"""
  %0 = stablehlo.dynamic_pad %x, %v, %l, %h, %i : ({V}, {S}, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> {V}
  return %0 : {V}""",
)
SLICE = main(
    "%x: tensor<?xf32>, %l: tensor<1xi64>, %h: tensor<1xi64>, %d: tensor<1xi64>",
    V,
    f"""
  %0 = stablehlo.real_dynamic_slice %x, %l, %h, %d : ({V}, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> {V}
  return %0 : {V}""",
)
GATHER = main(
    "%x: tensor<?x?xf32>, %i: tensor<?xi32>, %w: tensor<i64>",
    "tensor<?x?xf32>",
    """
  %o = stablehlo.constant dense<1> : tensor<1xi64> %v = stablehlo.reshape %w : (tensor<i64>) -> tensor<1xi64>
  %s = stablehlo.concatenate %o, %v, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %0 = "stablehlo.dynamic_gather"(%x, %i, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}>
    : (tensor<?x?xf32>, tensor<?xi32>, tensor<2xi64>) -> tensor<?x?xf32> return %0 : tensor<?x?xf32>""",
)
CONV = main(
    "%x: tensor<1x?x1xf32>, %w: tensor<?x1x1xf32>, %p: tensor<1x2xi64>",
    "tensor<1x?x1xf32>",
    """
  %0 = "stablehlo.dynamic_conv"(%x, %w, %p) <{dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>,
    batch_group_count = 1 : i64, feature_group_count = 1 : i64}>
    : (tensor<1x?x1xf32>, tensor<?x1x1xf32>, tensor<1x2xi64>) -> tensor<1x?x1xf32> return %0 : tensor<1x?x1xf32>""",
)
# As exporters print a dynamic slice of an open size: the start is computed twice, and clamped into the array.
FROM = main(
    f"%n: tensor<i64>, %x: {V}, %i: tensor<i64>",
    V,
    f"""
  %a = stablehlo.reshape %i : (tensor<i64>) -> tensor<1xi64> %b = stablehlo.reshape %i : (tensor<i64>) -> tensor<1xi64>
  %m = stablehlo.reshape %n : (tensor<i64>) -> tensor<1xi64> %l = stablehlo.add FIRST, SECOND : tensor<1xi64>
  %d = stablehlo.constant dense<1> : tensor<1xi64>
  %0 = stablehlo.real_dynamic_slice %x, %a, %l, %d : ({V}, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> {V}
  return %0 : {V}""",
)
IN_FUNCTION = main(
    "%x: tensor<3xf32>, %l: tensor<1xi64>",
    "tensor<5xf32>",
    """
  %0 = call @padded(%x, %l) : (tensor<3xf32>, tensor<1xi64>) -> tensor<5xf32> return %0 : tensor<5xf32>""",
    """
func.func private @padded(%x: tensor<3xf32>, %l: tensor<1xi64>) -> tensor<5xf32> {
  %v = stablehlo.constant dense<0.0> : tensor<f32> %zero = stablehlo.constant dense<0> : tensor<1xi64>
  %two = stablehlo.constant dense<2> : tensor<1xi64> %h = stablehlo.subtract %two, %l : tensor<1xi64>
  %0 = stablehlo.dynamic_pad %x, %v, %l, %h, %zero
    : (tensor<3xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<5xf32>
  return %0 : tensor<5xf32> }""",
)
BRANCH = main(
    f"%x: {V}, %b: tensor<i1>, %n: tensor<i32>",
    V,
    f"""
  %s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %0 = "stablehlo.if"(%b) ({{
    %1 = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi32>) -> {V} stablehlo.return %1 : {V}
  }}, {{ stablehlo.return %x : {V} }}) : (tensor<i1>) -> {V} return %0 : {V}""",
)


def counted(body, more="", arguments="%x: tensor<?x?xf32>"):
    """A program whose result has as many elements as the body computes, as %k, from the sizes %n and %m."""
    return main(
        arguments,
        V,
        f"""
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?xf32>) -> tensor<i32>
  %m = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?xf32>) -> tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32> %two = stablehlo.constant dense<2> : tensor<i32>
  {body}
  %q = stablehlo.reshape %k : (tensor<i32>) -> tensor<1xi32>
  %o = stablehlo.dynamic_iota %q, dim = 0 : (tensor<1xi32>) -> {V} return %o : {V}""",
        more,
    )


LESS = "%c = stablehlo.compare LT, %n, %two, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>"
IF_OF = """%k = "stablehlo.if"(CONDITION) ({ stablehlo.return %m : tensor<i32> }, { stablehlo.return %n : tensor<i32> })
  : (tensor<i1>) -> tensor<i32>"""
IF = LESS + IF_OF.replace("CONDITION", "%c")
CASE = """%k = "stablehlo.case"(%n) ({ stablehlo.return %one : tensor<i32> }, { stablehlo.return %m : tensor<i32> },
  { %t = stablehlo.multiply %n, %m : tensor<i32> stablehlo.return %t : tensor<i32> }) : (tensor<i32>) -> tensor<i32>"""
DOUBLED = """%k = stablehlo.while(%a = %one) : tensor<i32> cond {
    %c = stablehlo.compare LT, %a, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do { %d = func.call @twice(%a) : (tensor<i32>) -> tensor<i32> stablehlo.return %d : tensor<i32> }"""
TWICE_OF_SIZE = """func.func private @twice(%a: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.add %a, %a : tensor<i32> return %0 : tensor<i32> }"""
# The count of iterations is a size; the array beside it and the number of its sum are not known.
BESIDE_ARRAY = """%z = stablehlo.constant dense<0> : tensor<i32> %f = stablehlo.constant dense<0.0> : tensor<f32>
  %r:3 = stablehlo.while(%y = %x, %k1 = %z, %s = %f) : tensor<?x?xf32>, tensor<i32>, tensor<f32> cond {
    %c = stablehlo.compare LT, %k1, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do { %w = stablehlo.negate %y : tensor<?x?xf32>
    %t = stablehlo.reduce(%w init: %f) applies stablehlo.add across dimensions = [0, 1]
      : (tensor<?x?xf32>, tensor<f32>) -> tensor<f32>
    %b = stablehlo.compare LT, %k1, %two, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %p = "stablehlo.if"(%b) ({ stablehlo.return %one : tensor<i32> }, { stablehlo.return %two : tensor<i32> })
      : (tensor<i1>) -> tensor<i32>
    %d = stablehlo.add %k1, %p : tensor<i32> stablehlo.return %w, %d, %t : tensor<?x?xf32>, tensor<i32>, tensor<f32> }
  %k = stablehlo.add %r#1, %one : tensor<i32>"""
# A loop that ends when the number that an argument holds is reached.
COUNT_TO = """%k:2 = stablehlo.while(%a = %n, %y = %l) : tensor<i32>, tensor<3xi32> cond {
    %c = stablehlo.compare LT, %a, %h, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do { %d = stablehlo.add %a, %two : tensor<i32> %w = stablehlo.add %y, %y : tensor<3xi32>
    stablehlo.return %d, %w : tensor<i32>, tensor<3xi32> }"""
UNEQUAL_BRANCHES = main(
    f"%x: {V}",
    V,
    f"""
  %n = stablehlo.get_dimension_size %x, dim = 0 : ({V}) -> tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32> {LESS}
  %o = "stablehlo.if"(%c) ({{ stablehlo.return %x : {V} }}, {{
    %s = stablehlo.slice %x [0:2] : ({V}) -> tensor<2xf32> stablehlo.return %s : tensor<2xf32> }}) : (tensor<i1>) -> {V}
  return %o : {V}""",
)
SHARDING = main(
    "%x: tensor<?x3xf32>",
    "tensor<?x3xf32>",
    """
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32> %c = stablehlo.constant dense<3> : tensor<1xi32>
  %s = stablehlo.concatenate %n1, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %0 = stablehlo.custom_call @TARGET(%x, %s) {indices_of_shape_operands = dense<1> : tensor<1xi64>,
    mhlo.sharding = "{replicated}"} : (tensor<?x3xf32>, tensor<2xi32>) -> tensor<?x3xf32>
  return %0 : tensor<?x3xf32>""",
)
RANDOM = main(
    "%s: tensor<2xui64>, %n: tensor<1xi64>",
    "tensor<?xui32>",
    """
  %0:2 = stablehlo.custom_call @stablehlo.dynamic_rng_bit_generator(%s, %n)
    {rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}
    : (tensor<2xui64>, tensor<1xi64>) -> (tensor<2xui64>, tensor<?xui32>) return %0#1 : tensor<?xui32>""",
)
REDUCE_WINDOW = main(
    f"%x: {V}, %w: tensor<1xi64>, %p: tensor<1x2xi64>",
    V,
    f"""
  %one = stablehlo.constant dense<1> : tensor<1xi64> %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %z, %w, %one, %one, %one, %p)
    {{called_computations = [@sum]}} : ({V}, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>,
    tensor<1x2xi64>) -> {V} return %r : {V}""",
    """func.func private @sum(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.add %a, %b : tensor<f32> return %0 : tensor<f32> }""",
)


def numbers(count):
    return np.arange(count, dtype="f4")


def window(n, x, start):
    start = int(np.clip(start, 0, len(x) - n))
    return x[start : start + n]


def gathered(x, indices, width):
    return x[indices][:, :width]


def convolved(x, w, padding):
    padded = np.pad(x[0, :, 0], padding[0])
    return np.correlate(padded, w[:, 0, 0], "valid").astype(np.float32)[None, :, None]


def spread(x, value, low, high, interior):
    step = int(interior[0]) + 1
    wide = np.full(len(x) * step - step + 1, value, np.float32)
    wide[::step] = x
    return np.pad(wide, (int(low[0]), int(high[0])), constant_values=value)


SIZES = [(3, 4), (0, 2), (1, 5), (8, 3)]
CASES = {
    "twice": (TWICE, lambda x: x + x, [(f32(3),), (f32(0),), (f32(1000),), (f32(6)[::2],)]),
    "rows": (ROWS, lambda x: x.ravel() + np.arange(x.size, dtype="f4"), [(f32(2, 3),), (f32(5, 3),), (f32(0, 3),)]),
    "loop": (LOOP, lambda x, k: x + k * np.arange(len(x), dtype="f4"), [(f32(4), np.int32(2)), (f32(2), np.int32(0))]),
    "scalar": (SCALAR, lambda x, y: (-y, np.float32(x)), [(np.float32(2), f32(2, 3)), (1.5, f32(4, 1))]),
    "reshape": (RESHAPE, np.reshape, [(f32(6), i64(2, 3)), (f32(6), i64(6, 1)), (f32(8), i64(2, 4))]),
    "broadcast": (BROADCAST, np.broadcast_to, [(f32(3), i64(2, 3)), (f32(3), i64(0, 3)), (f32(1), i64(2, 5))]),
    "iota": (IOTA, lambda n: np.arange(n[0], dtype="f4"), [(np.int32([k]),) for k in (3, 0, 40)]),
    "pad": (PAD, spread, [(f32(3), np.float32(7), i64(1), i64(2), i64(k)) for k in (0, 1, 2)]),
    "slice": (SLICE, lambda x, a, b, c: x[a[0]:b[0]:c[0]], [
        (f32(9), i64(1), i64(7), i64(2)), (f32(9), i64(0), i64(9), i64(1)), (f32(3), i64(3), i64(3), i64(1)),
    ]),
    "from": (FROM.replace("FIRST", "%b").replace("SECOND", "%m"), window, [
        (np.int64(2), f32(9), np.int64(k)) for k in (0, 3, 8, -1)
    ]),
    "gather": (GATHER, gathered, [
        (f32(4, 3), np.int32([2, 0]), np.int64(2)), (f32(4, 3), np.int32([1]), np.int64(3)),
        (f32(2, 5), np.int32([1, 1, 0]), np.int64(1)),
    ]),
    "convolution": (CONV, convolved, [
        (f32(1, 6, 1), f32(3, 1, 1), i64(p)) for p in ([0, 0], [1, 1], [2, 0])
    ] + [(f32(1, 9, 1), f32(2, 1, 1), i64([3, 1]))]),
    "in_function": (IN_FUNCTION, lambda x, low: np.pad(x, (low[0], 2 - low[0])), [(f32(3), i64(k)) for k in (0, 1, 2)]),
    "branch": (BRANCH, lambda x, b, n: np.arange(n, dtype="f4") if b else x, [
        (f32(3), np.True_, np.int32(3)), (f32(4), np.False_, np.int32(4)),
    ]),
    "if": (counted(IF), lambda x: numbers(x.shape[len(x) < 2]), [(f32(*s),) for s in SIZES]),
    "case": (counted(CASE), lambda x: numbers([1, x.shape[1], x.size][min(len(x), 2)]), [(f32(*s),) for s in SIZES]),
    "while": (counted(DOUBLED, TWICE_OF_SIZE), lambda x: numbers(1 << max(len(x) - 1, 0).bit_length()), [
        (f32(*s),) for s in SIZES
    ]),
    "while_beside_array": (counted(BESIDE_ARRAY), lambda x: numbers(1 + min(len(x), 2) + (len(x) - 1) // 2 * 2
        if len(x) > 2 else 1 + len(x)), [(f32(*s),) for s in SIZES]),
    "while_of_argument": (counted(COUNT_TO.replace("%k:2", "%r:2") + "%k = stablehlo.add %r#0, %one : tensor<i32>",
        arguments="%x: tensor<?x?xf32>, %h: tensor<i32>, %l: tensor<3xi32>"),
        lambda x, h, _: numbers(1 + len(x) + max(h - len(x) + 1, 0) // 2 * 2), [
            (f32(*s), np.int32(h), np.int32([1, 2, 3])) for s, h in zip(SIZES, (9, 4, 0, 40), strict=True)
    ]),
    "unequal_branches": (UNEQUAL_BRANCHES, lambda x: x[:2], [(f32(3),), (f32(0),), (f32(1),), (f32(2),)]),
    **{target: (SHARDING.replace("TARGET", target), lambda x: x, [(f32(2, 3),), (f32(0, 3),)]) for target in (
        "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape",
    )},
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_one_executable_serves_all_sizes(name, backend):
    text, want, calls = CASES[name]
    run = cyxla.compile(text, platform=backend)
    for arguments in [*calls, *calls]:
        got, expected = run(*arguments), want(*arguments)
        for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in (got, expected)), strict=True):
            assert (a.dtype, a.shape) == (np.float32, b.shape)
            np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("name, given, error, match", [
    ("rows", (f32(2, 4),), ShapeError, r"argument 0: got float32\[2,4\], want f32\[\?,3\]"),
    ("rows", (f32(3),), ShapeError, r"argument 0: got float32\[3\], want f32\[\?,3\]"),
    ("rows", (f32(2, 3).astype(float),), DTypeError, r"argument 0: got float64\[2,3\], want float32\[2,3\]"),
    ("rows", (), InvalidArgumentError, "takes 1 argument, got 0"),
    ("rows", (f32(2, 3),) * 2, InvalidArgumentError, "takes 1 argument, got 2"),
    ("reshape", (f32(6), np.int32([2, 3])), DTypeError, "argument 1: got int32"),
    ("reshape", (f32(6), i64(2, 4)), ShapeError, r"6 elements cannot become .*arguments f32\[6\], s64\[2\]"),
    ("reshape", (f32(6), i64(-1, 4)), InvalidArgumentError, r"arguments f32\[6\], s64\[2\]"),
    ("branch", (f32(3), np.True_, np.int32(4)), InvalidArgumentError, r"arguments f32\[3\], pred\[\], s32\[\]"),
])  # fmt: skip
@pytest.mark.parametrize("warm", [False, True])
def test_arguments_that_do_not_fit(name, given, error, match, backend, warm):
    text, want, calls = CASES[name]
    run = cyxla.compile(text, platform=backend)
    if warm:
        run(*calls[0])
    with pytest.raises(error, match=match):
        run(*given)
    np.testing.assert_array_equal(run(*calls[0]), want(*calls[0]))


SMALLEST = -(2**63)  # which stands for an open size in shapes


@pytest.mark.parametrize("text, given, match", [
    (IOTA.replace("xi32", "xi64"), (i64(SMALLEST),), "a size is negative"),
    (IOTA.replace("xi32", "xi64"), (i64(-1),), "a size is negative"),
    (RESHAPE, (f32(0), i64(SMALLEST, 1)), "a size is negative"),
    (BROADCAST, (f32(1), i64(0, SMALLEST)), "a size is negative"),
    (BROADCAST, (f32(1), i64(SMALLEST, 1)), "a size is negative"),
    (RANDOM, (np.uint64([1, 2]), i64(SMALLEST)), "a size is negative"),
    (RANDOM, (np.uint64([1, 2]), i64(2**62)), "more than 2.63 - 1 bytes"),
    (PAD, (f32(3), np.float32(0), i64(SMALLEST), i64(-3), i64(0)), "makes dimension 0 of 3 negative"),
    (REDUCE_WINDOW, (f32(5), i64(2**63 - 1), i64([2**62, 2**62])), "more than 2.63 - 1 bytes"),
    (REDUCE_WINDOW.replace("tensor<1x2xi64>", "tensor<3x2xi64>"), (f32(5), i64(2), np.zeros((3, 2), np.int64)),
     "the operands of a window are for 1, 1, 3, 3, 1, 1 dimensions"),
    (SHARDING.replace("TARGET", "Sharding").replace("dense<3>", "dense<4>"), (f32(2, 3),),
     r"states the sizes \[2, 4\]"),
])  # fmt: skip
def test_sizes_that_no_array_has(text, given, match, backend):
    with pytest.raises(ShapeError, match=match):
        cyxla.compile(text, platform=backend)(*given)


@pytest.mark.parametrize("value", ["%x", "%one"])
def test_sizes_beside_0_that_no_array_has(value, backend):
    text = main(
        f"%x: {S}, %s: tensor<2xi64>",
        "tensor<?x?xf32>",
        f"""%one = stablehlo.constant dense<1.0> : {S}
      %0 = stablehlo.dynamic_broadcast_in_dim {value}, %s, dims = [] : ({S}, tensor<2xi64>) -> tensor<?x?xf32>
      %1 = call @same(%0) : (tensor<?x?xf32>) -> tensor<?x?xf32> return %1 : tensor<?x?xf32>""",
        "func.func private @same(%x: tensor<?x?xf32>) -> tensor<?x?xf32> { return %x : tensor<?x?xf32> }",
    )
    run = cyxla.compile(text, platform=backend)
    assert run(np.float32(1), i64(2**60, 0)).shape == (2**60, 0)
    for sizes in ((2**62, 0), (0, 2**62)):
        with pytest.raises(ResourceExhaustedError, match="if no size were 0"):
            run(np.float32(1), i64(*sizes))


X = main(f"%x: {V}", "RESULT", "BODY return %0 : RESULT")
ASSERTION = (
    """stablehlo.custom_call @shape_assertion(%t) {error_message = "m", has_side_effect = true} : (TYPE) -> ()"""
    f" %0 = stablehlo.negate %x : {V}"
)
ONE = "%n = stablehlo.constant dense<1.0> : tensor<1xf32> "


@pytest.mark.parametrize("result, body, match", [
    (V, f"%0 = stablehlo.iota dim = 0 : {V}", r"stablehlo.iota has a result f32\[\?\] of open sizes"),
    ("tensor<?xui32>", "%s = stablehlo.constant dense<1> : tensor<2xui64> %1, %0 = stablehlo.rng_bit_generator %s, "
     "algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<?xui32>)",
     r"stablehlo.rng_bit_generator has a result u32\[\?\] of open sizes"),
    ("tensor<?x1xf32>", f"%0 = stablehlo.reshape %x : ({V}) -> tensor<?x1xf32>", "stablehlo.reshape has a result"),
    ("tensor<?x1xf32>", f"%0 = stablehlo.broadcast_in_dim %x, dims = [0] : ({V}) -> tensor<?x1xf32>",
     "stablehlo.broadcast_in_dim has a result"),
    (V, f"%t = stablehlo.create_token : !stablehlo.token %0, %1 = stablehlo.infeed %t : "
     f"(!stablehlo.token) -> ({V}, !stablehlo.token)", "stablehlo.infeed has a result"),
    (V, "%t = stablehlo.constant dense<[true, false]> : tensor<2xi1> " + ASSERTION.replace("TYPE", "tensor<2xi1>"),
     r"custom_call @shape_assertion asserts pred\[2\], not a tensor<i1>"),
    (V, "%t = stablehlo.constant dense<7> : tensor<i32> " + ASSERTION.replace("TYPE", "tensor<i32>"),
     r"custom_call @shape_assertion asserts s32\[\], not a tensor<i1>"),
    (V, f"{ONE} %0 = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xf32>) -> {V}",
     r"the result of stablehlo.dynamic_iota is given by f32\[1\], which is not of integers"),
    ("tensor<1xf32>", f"{ONE} %0 = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xf32>) -> tensor<1xf32>",
     "stablehlo.dynamic_iota is given by"),
    (V, f"{ONE} %0 = stablehlo.dynamic_reshape %x, %n : ({V}, tensor<1xf32>) -> {V}", "dynamic_reshape is given by"),
    (V, f"{ONE} %v = stablehlo.constant dense<0.0> : tensor<f32> %0 = stablehlo.dynamic_pad %x, %v, %n, %n, %n "
     f": ({V}, tensor<f32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> {V}", "the padding of .* is given by"),
    (V, "%k = stablehlo.constant dense<[1, 2]> : tensor<2xi32> %0, %1 = stablehlo.custom_call @stablehlo.dynamic_top_k"
     f"(%x, %k) : ({V}, tensor<2xi32>) -> ({V}, tensor<?xi32>)", r"given by s32\[2\], which is not one integer"),
    ("tensor<4xf32, #stablehlo.bounds<9>>", "%0 = stablehlo.iota dim = 0 : tensor<4xf32>",
     "has the size 4, and a bound 9"),
])  # fmt: skip
def test_rules_of_sizes(result, body, match, backend):
    text = X.replace("BODY", body).replace("RESULT", result)
    with pytest.raises(InvalidArgumentError, match=match):
        cyxla.compile(text, platform=backend)(f32(4))


@pytest.mark.parametrize("name, read", [("if", ""), ("while_beside_array", ""), ("while_of_argument", "1")])
def test_the_values_that_loops_and_branches_turn_on_are_read(name, read):
    text, _, calls = CASES[name]
    run = cyxla.compile(text, platform="interpreter")
    run(*calls[0])
    assert ("depend on the values of arguments: " in run.explain()) == bool(read)
    assert f"values of arguments: {read}\n" in run.explain() or not read


def test_a_size_at_the_end_of_a_long_loop_is_refused():
    text = counted(DOUBLED.replace("@twice(%a) : (tensor<i32>)", "@next(%a) : (tensor<i32>)"),
                   TWICE_OF_SIZE.replace("@twice", "@next").replace("add %a, %a", "maximum %a, %a"))  # fmt: skip
    with pytest.raises(UnimplementedError, match=r"(?s)depends on the arguments.*loops are followed for \d+ in"):
        cyxla.compile(text, platform="interpreter")(f32(2, 3))


@pytest.mark.parametrize("first, second, read", [("%b", "%m", "0"), ("%m", "%b", "0"), ("%m", "%m", "0, 2")])
def test_the_start_of_a_slice_is_not_read_for_its_size(first, second, read):
    run = cyxla.compile(FROM.replace("FIRST", first).replace("SECOND", second), platform="interpreter")
    np.testing.assert_array_equal(run(np.int64(2), f32(9), np.int64(2)), [3, 4])
    assert f"values of arguments: {read}\n" in run.explain()


@pytest.mark.parametrize("text, error, match", [
    (TWICE.replace(".add", ".advance"), UnimplementedError, "stablehlo.advance is not supported"),
    (TWICE.replace("?", "!"), InvalidArgumentError, "expected a tensor type"),
    (TWICE.replace(V, f"tuple<{V}>"), UnimplementedError, r"argument 0 is \(f32\[\?\]\), in a program"),
])  # fmt: skip
def test_programs_are_refused_before_a_call(text, error, match):
    with pytest.raises(error, match=match):
        cyxla.compile(text)


def test_sizes_that_depend_on_floats_are_refused():
    text = main(
        "%x: tensor<1xf32>",
        V,
        f"""%n = stablehlo.convert %x : (tensor<1xf32>) -> tensor<1xi32>
      %0 = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi32>) -> {V} return %0 : {V}""",
    )
    with pytest.raises(UnimplementedError, match="depends on the arguments"):
        cyxla.compile(text)


@pytest.mark.parametrize("given", [([1, 2, 3],), (f32(3).astype(">f4"),), (np.float32([9, 1, 9, 2, 9, 3])[1::2],)])
def test_arguments_are_converted(given):
    np.testing.assert_array_equal(cyxla.compile(TWICE)(*given), [2, 4, 6])


@pytest.mark.parametrize("sizes", [np.array([2, 3], ">i8"), [2, 3], i64(2, 9, 3)[::2]])
def test_values_that_are_read_are_converted(sizes):
    run = cyxla.compile(RESHAPE)
    for _ in range(2):
        np.testing.assert_array_equal(run(f32(6), sizes), f32(2, 3))


def test_results_are_written_to_out():
    out = np.empty(3, np.float32)
    assert cyxla.compile(TWICE)(f32(3), out=out) is out
    np.testing.assert_array_equal(out, f32(3) * 2)


@pytest.mark.parametrize("text, fixed, given, want", [
    (TWICE, {0: f32(3)}, (), f32(3) * 2), (RESHAPE, {1: i64(3, 2)}, (f32(6),), f32(3, 2)),
    (RESHAPE, {"arg0": f32(6)}, (i64(3, 2),), f32(3, 2)), (LOOP, {"arg1": 1}, (f32(2),), [1, 3]),
])  # fmt: skip
def test_arguments_are_bound(text, fixed, given, want, backend):
    run = cyxla.compile(text, platform=backend)
    bound = run.bind(fixed)
    assert len(bound.inputs) == len(given)
    for each in (bound, pickle.loads(pickle.dumps(bound))):
        np.testing.assert_array_equal(each(*given), want)
    assert run.bind({}) is run


def test_bound_arguments_are_checked():
    with pytest.raises(ShapeError, match=r"bound argument 0: got float32\[2,4\]"):
        cyxla.compile(ROWS).bind({0: f32(2, 4)})


def test_the_executables_of_the_last_calls_are_kept(monkeypatch):
    monkeypatch.setattr(any_size, "MAX_SPECIALISATIONS", 2)
    run = cyxla.compile(TWICE, platform="interpreter")
    for size in (1, 2, 1, 3):
        run(f32(size))
    assert [str(s) for s in ("f32[1]", "f32[2]", "f32[3]") if f"\n  {s}" in run.explain()] == ["f32[1]", "f32[3]"]


def test_threads_share_an_executable():
    run = cyxla.compile(RESHAPE)
    calls = [(f32(12), i64(k, 12 // k)) for k in (1, 2, 3, 4, 6, 12)] * 4
    with ThreadPoolExecutor(6) as pool:
        for got, call in zip(pool.map(lambda call: run(*call), calls), calls, strict=True):
            np.testing.assert_array_equal(got, np.reshape(*call))


def test_descriptions_before_and_after_a_call():
    run = cyxla.compile(RESHAPE)
    assert repr(run) == "<AnySizeExecutable @main(f32[?], s64[2]) -> f32[?,?] on cpu>"
    assert (run.tier, list(map(str, run.inputs))) == ("unspecialised", ["f32[?]", "s64[2]"])
    for describe in (run.hlo, run.explanation, run.profile, lambda: run.memory, lambda: run.cost, lambda: run.c_source):
        with pytest.raises(InvalidArgumentError, match="was not called"):
            describe()
    run(f32(6), i64(2, 3))
    assert "depend on the values of arguments: 1\n  f32[6], s64[2]" in run.explain()
    assert "f32[2,3]" in run.hlo()
    assert run.tier == run._last().tier
    assert run.memory["arguments"] == 6 * 4 + 2 * 8
    assert run.c_source
    assert run.cost
    assert run.explanation().platform == "cpu"


def test_static_programs_have_executables_of_their_own():
    static = TWICE.replace("?", "3")
    assert not isinstance(cyxla.compile(static), any_size.AnySizeExecutable)
    assert not isinstance(cyxla.compile(TWICE, f32(3)), any_size.AnySizeExecutable)
