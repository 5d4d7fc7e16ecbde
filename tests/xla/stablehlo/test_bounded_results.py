"""Results with bounds (`#stablehlo.bounds`) whose sizes are operands, computed at run time or known."""

import numpy as np
import pytest

import cyxla
from cyxla.errors import ShapeError


def bounded(*bounds):
    """The type of an array of f32 with bounds; None stands for an open size without one."""
    texts = ["?" if n is None else str(n) for n in bounds]
    return f"tensor<{'?x' * len(bounds)}f32, #stablehlo.bounds<{', '.join(texts)}>>"


def main(arguments, result, body):
    return f"func.func @main({arguments}) -> {result} {{ {body} return %r : {result} }}"


def f32(*sizes):
    return np.arange(np.prod(sizes, dtype=int), dtype="f4").reshape(sizes) - 2


V, B8, B48, B84 = "tensor<?xf32>", bounded(8), bounded(4, 8), bounded(8, 4)
OPEN_ROWS = bounded(None, 8)
SIZE = (
    "%n = stablehlo.get_dimension_size %x, dim = 0 : (TYPE) -> tensor<i32> %s = stablehlo.reshape %n : (tensor<i32>) "
)
SIZE += "-> tensor<1xi32> "
JOINED = "%s2 = stablehlo.concatenate %A, %B, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32> "
BROADCAST = "%r = stablehlo.dynamic_broadcast_in_dim %x, %SIZES, dims = DIMS : (FROM, tensor<RANKxINDEX>) -> TO"
IOTA = "%i = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi32>) -> TYPE "


def broadcast(given, result, dims, sizes="s", rank=1, index="i32"):
    text = BROADCAST.replace("SIZES", sizes).replace("DIMS", dims).replace("RANK", str(rank)).replace("INDEX", index)
    return text.replace("FROM", given).replace("TO", result)


def size(given):
    return SIZE.replace("TYPE", given)


def joined(first, second):
    return JOINED.replace("%A", first).replace("%B", second)


def iota(result):
    return IOTA.replace("TYPE", result)


def iota_of(index):
    return main(f"%s: tensor<1x{index}>", B8, f"%r = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1x{index}>) -> {B8}")


def repeated(one, other):
    """A broadcast of an array of one bound to another, with the sizes that suit both."""
    sizes = [(k, k) for k in (0, 2, 3, 8) if k <= min(one, other)] + [(1, m) for m in (0, 1, 3, 8) if m <= other]
    text = main(
        f"%x: {bounded(one)}, %s: tensor<1xi64>", bounded(other),
        broadcast(bounded(one), bounded(other), "[0]", index="i64"),
    )  # fmt: skip
    return text, lambda x, m: np.broadcast_to(x, m), [(f32(k), np.array([m])) for k, m in sizes]


ALONG = [(f32(k), np.int32([m])) for k in (3, 8, 0, 1) for m in (0, 2, 4)]
CASES = {
    **{
        f"iota_{index}": (
            iota_of(index),
            lambda n: np.arange(n[0], dtype="f4"),
            [(np.array([k], dtype),) for k in (8, 3, 0)],
        )
        for index, dtype in (("i32", "i4"), ("i64", "i8"), ("ui32", "u4"), ("ui64", "u8"), ("i8", "i1"))
    },
    "iota_of_size": (
        main(f"%x: {B8}", B8, size(B8) + iota(B8) + f"%r = stablehlo.add %x, %i : {B8}"),
        lambda x: x + np.arange(len(x), dtype="f4"),
        [(f32(k),) for k in (3, 8, 0)],
    ),
    "scalar": (
        main(
            f"%y: {B8}",
            B8,
            (
                size(B8).replace("%x", "%y")
                + "%x = stablehlo.constant dense<2.0> : tensor<f32> "
                + broadcast("tensor<f32>", B8, "[]").replace("%r", "%z")
                + f" %r = stablehlo.add %y, %z : {B8}"
            ),
        ),
        lambda y: y + 2,
        [(f32(k),) for k in (3, 8, 0)],
    ),
    "rows": (
        main(f"%x: {B8}, %m: tensor<1xi32>", B48, size(B8) + joined("%m", "%s") + broadcast(B8, B48, "[1]", "s2", 2)),
        lambda x, m: np.broadcast_to(x, (m[0], len(x))),
        ALONG,
    ),
    "columns": (
        main(f"%x: {B8}, %m: tensor<1xi32>", B84, size(B8) + joined("%s", "%m") + broadcast(B8, B84, "[0]", "s2", 2)),
        lambda x, m: np.broadcast_to(x[:, None], (len(x), m[0])),
        ALONG,
    ),
    "both": (
        main(f"%x: {B48}, %s: tensor<2xi32>", B48, broadcast(B48, B48, "[0, 1]", rank=2)),
        np.broadcast_to,
        [
            (f32(*dims), np.int32(sizes))
            for *dims, sizes in (
                (1, 1, (4, 3)),
                (1, 2, (3, 2)),
                (2, 1, (2, 8)),
                (4, 8, (4, 8)),
                (1, 3, (0, 3)),
                (2, 2, (2, 2)),
            )
        ],
    ),
    **{f"repeated_{a}_{b}": repeated(a, b) for a, b in ((8, 8), (4, 8), (8, 4), (1, 8), (8, 1))},
    **{
        f"static_{k}": (
            main(f"%x: tensor<{k}xf32>, %s: tensor<1xi32>", B8, broadcast(f"tensor<{k}xf32>", B8, "[0]")),
            np.broadcast_to,
            [(f32(k), np.int32([m])) for m in ((0, 1, 2, 8) if k == 1 else (k,))],
        )
        for k in (1, 3, 8)
    },
    "open_rows": (
        main(
            f"%x: {B8}, %y: {V}",
            OPEN_ROWS,
            size(B8)
            + size(V).replace("%x", "%y").replace("%n", "%k").replace("%s ", "%t ")
            + joined("%t", "%s")
            + broadcast(B8, OPEN_ROWS, "[1]", "s2", 2),
        ),
        lambda x, y: np.broadcast_to(x, (len(y), len(x))),
        [(f32(k), f32(m)) for k in (0, 3, 8) for m in (1, 2)],
    ),
    "known": (
        main(f"%x: {V}", B8, size(V) + iota(B8) + f"%r = stablehlo.negate %i : {B8}"),
        lambda x: -np.arange(len(x), dtype="f4"),
        [(f32(k),) for k in (8, 3, 0)],
    ),
    "known_again": (
        main(
            f"%x: {V}",
            V,
            size(V)
            + iota(B8)
            + size(B8).replace("%x", "%i").replace("%n", "%k").replace("%s ", "%t ")
            + f"%r = stablehlo.dynamic_iota %t, dim = 0 : (tensor<1xi32>) -> {V}",
        ),
        lambda x: np.arange(len(x), dtype="f4"),
        [(f32(k),) for k in (8, 3, 0)],
    ),
    "known_reshape": (
        main(f"%x: {V}", B8, size(V) + f"%r = stablehlo.dynamic_reshape %x, %s : ({V}, tensor<1xi32>) -> {B8}"),
        lambda x: x,
        [(f32(k),) for k in (8, 3, 0)],
    ),
    "known_beside_bounded": (
        main(
            f"%x: {B8}",
            B8,
            "%s = stablehlo.constant dense<3> : tensor<1xi32> " + iota(B8) + f"%r = stablehlo.add %i, %x : {B8}",
        ),
        lambda x: x + np.arange(3, dtype="f4"),
        [(f32(3),)],
    ),
    "reshape_to_known": (
        main(
            f"%x: {B48}",
            bounded(32),
            "%s = stablehlo.constant dense<6> : tensor<1xi32> "
            f"%r = stablehlo.dynamic_reshape %x, %s : ({B48}, tensor<1xi32>) -> {bounded(32)}",
        ),
        np.ravel,
        [(f32(2, 3),), (f32(1, 6),)],
    ),
    "reshape": (
        main(
            f"%x: {B48}, %s: tensor<1xi32>",
            bounded(32),
            f"%r = stablehlo.dynamic_reshape %x, %s : ({B48}, tensor<1xi32>) -> {bounded(32)}",
        ),
        lambda x, n: x.ravel(),
        [(f32(*dims), np.int32([dims[0] * dims[1]])) for dims in ((4, 8), (2, 3), (0, 5))],
    ),
    "pad": (
        main(
            "%x: tensor<2xf32>, %s: tensor<1xi64>",
            B8,
            "%z = stablehlo.constant dense<0.0> : tensor<f32> "
            "%o = stablehlo.constant dense<0> : tensor<1xi64> "
            "%r = stablehlo.dynamic_pad %x, %z, %s, %o, %o : (tensor<2xf32>, "
            f"tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> {B8}",
        ),
        lambda x, low: np.pad(x, (low[0], 0)),
        [(f32(2), np.array([k])) for k in (0, 1, 6)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_results_have_their_present_sizes(name, backend):
    text, want, calls = CASES[name]
    run = cyxla.compile(text, platform=backend)
    for call in calls:
        got, expected = run(*call), want(*call)
        assert (got.dtype, got.shape) == (np.float32, expected.shape)
        np.testing.assert_array_equal(got, expected)


def test_the_values_of_sizes_at_run_time_are_not_read(backend):
    run = cyxla.compile(iota_of("i32"), platform=backend)
    assert str(run.outputs) == "f32[<=8]"
    assert "<=8" in run.hlo("input")


def test_one_element_is_repeated_with_its_bits(backend):
    x = np.array([-0.0], "f4")
    got = cyxla.compile(CASES["repeated_8_8"][0], platform=backend)(x, np.array([3]))
    assert np.signbit(got).tolist() == [True] * 3


@pytest.mark.parametrize("value, rows", [(9, 8), (2**32 + 3, 8), (-1, 0), (-(2**32) + 3, 0)])
def test_sizes_at_run_time_are_clamped_to_the_bound(value, rows, backend):
    assert cyxla.compile(iota_of("i64"), platform=backend)(np.array([value])).shape == (rows,)


@pytest.mark.parametrize("text, match", [
    (CASES["known"][0], r"gives f32\[9\], but the text states f32\[<=8\]"),
    (CASES["known_reshape"][0], r"gives f32\[9\], but the text states f32\[<=8\]"),
])  # fmt: skip
def test_known_sizes_beyond_the_bound_are_refused(text, match, backend):
    with pytest.raises(ShapeError, match=match):
        cyxla.compile(text, platform=backend)(f32(9))


def test_a_vector_of_another_number_of_sizes_is_refused(backend):
    text = iota_of("i32").replace("tensor<1x", "tensor<2x")
    with pytest.raises(ShapeError, match=r"s32\[2\] does not hold the sizes of f32\[<=8\]"):
        cyxla.compile(text, platform=backend)
