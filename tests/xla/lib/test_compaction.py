"""Compaction by a mask against NumPy's selection, on both platforms: element types, ranks, sizes, masks."""

import numpy as np
import pytest
from support.strategies import random_array

import cyxla
from cyxla.errors import ShapeError, UnimplementedError
from cyxla.hlo import parse_module
from cyxla.types import ElementType, Shape, element_type
from cyxla.xla.hlo.builder import XlaBuilder
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.compaction import compact, compact_indices, expand

PLATFORMS = ["cpu", "interpreter"]
TYPES = [
    "pred", "s4", "u4", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f8e4m3fn", "f8e5m2", "bf16", "f16",
    "f32", "f64", "c64", "c128",
]  # fmt: skip
SIZES = [0, 1, 63, 64, 65, 4097, 100_000]
MASKS = {
    "none": lambda n: np.zeros(n, bool),
    "all": lambda n: np.ones(n, bool),
    "half": lambda n: np.random.default_rng(n).random(n) < 0.5,
    "few": lambda n: np.random.default_rng(n).random(n) < 0.003,
    "most": lambda n: np.random.default_rng(n).random(n) < 0.997,
    "last": lambda n: np.arange(n) == n - 1,
    "first half": lambda n: np.arange(n) < n // 2,
}  # fmt: skip
ROWS = [(), (1,), (2,), (3,), (4, 5), (0,), (300,)]


def program(size, shapes):
    """A compaction of operands of some shapes, of indices of both types, and the expansion of what was compacted."""
    b = XlaBuilder("compaction")
    mask = xla.parameter(b, 0, Shape.array(ElementType.PRED, (size,)), "mask")
    operands = [xla.parameter(b, k, s, f"x{k}") for k, s in enumerate(shapes, 1)]
    packed, count = compact(mask, operands)
    indices = [compact_indices(mask, dtype) for dtype in (ElementType.S64, ElementType.S32)]
    expanded = [expand(mask, p) for p in packed]
    return b.build(xla.tuple_(b, [count, *(part for pair in indices for part in pair), *packed, *expanded]))


def check(platform, mask, arrays, dtypes):
    size = len(mask)
    shapes = [Shape.array(t, x.shape) for t, x in zip(dtypes, arrays, strict=True)]
    count, *rest = cyxla.compile(program(size, shapes), platform=platform)(mask, *arrays)
    wanted = np.flatnonzero(mask)
    assert count.dtype == np.int64
    assert count == len(wanted)
    for indices, number, dtype in ((rest[0], rest[1], np.int64), (rest[2], rest[3], np.int32)):
        assert number == count
        same(indices, padded(wanted.astype(dtype), size))
    packed, expanded = rest[4 : 4 + len(arrays)], rest[4 + len(arrays) :]
    for x, p, e in zip(arrays, packed, expanded, strict=True):
        same(p, padded(x[mask], size))
        same(e, np.where(mask.reshape(-1, *[1] * (x.ndim - 1)), x, np.zeros((), x.dtype)))


def padded(rows, size):
    return np.concatenate([rows, np.zeros((size - len(rows), *rows.shape[1:]), rows.dtype)])


def same(got, wanted):
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    assert got.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("size", SIZES)
def test_masks(size, kind, platform):
    dtypes = [element_type(t) for t in ("f32", "f64", "s8", "c128")]
    arrays = [random_array(Shape.array(t, (size,)), size + k, 0.1) for k, t in enumerate(dtypes)]
    check(platform, MASKS[kind](size), arrays, dtypes)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("dtype", TYPES)
def test_element_types(dtype, platform):
    for size in (65, 1000):
        shapes = [Shape.array(element_type(dtype), (size, *rest)) for rest in ((), (3,))]
        arrays = [random_array(s, size, 0.1) for s in shapes]
        check(platform, MASKS["half"](size), arrays, [element_type(dtype)] * 2)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("kind", MASKS)
def test_rows(kind, platform):
    for size in (0, 5, 130):
        dtypes = [element_type("f32")] * len(ROWS)
        arrays = [random_array(Shape.array(t, (size, *rest)), 7, 0.1) for t, rest in zip(dtypes, ROWS, strict=True)]
        check(platform, MASKS[kind](size), arrays, dtypes)


CALL = "ENTRY e {{ m = {mask} parameter(0) x = {x} parameter(1) ROOT r = {result} custom-call({operands}), " \
    'custom_call_target="cyxla_{target}" }}'  # fmt: skip
MISFITS = [
    ("pred[4]", "f32[5]", "(f32[5], s64[])", "m, x", "compact", ShapeError, "does not have the 4 rows"),
    ("pred[4]", "f32[]", "(f32[], s64[])", "m, x", "compact", ShapeError, "does not have the 4 rows"),
    ("pred[2,2]", "f32[2]", "(f32[2], s64[])", "m, x", "compact", ShapeError, "mask pred"),
    ("s8[2]", "f32[2]", "(f32[2], s64[])", "m, x", "compact", ShapeError, "mask pred"),
    ("pred[2]", "f32[2]", "(f32[2], s64[])", "", "compact", ShapeError, "mask pred"),
    ("pred[2]", "f32[2]", "(f32[2], s32[])", "m, x", "compact", ShapeError, "result is"),
    ("pred[2]", "f32[2]", "f32[2]", "m, x", "compact", ShapeError, "result is"),
    ("pred[2]", "f32[2]", "(u8[2], s64[])", "m", "compact_indices", ShapeError, "result is"),
    ("pred[2]", "f32[2]", "(s64[2], s64[])", "m, x", "compact_indices", ShapeError, "only operand"),
    ("pred[<=2]", "f32[2]", "(f32[2], s64[])", "m, x", "compact", UnimplementedError, "known only at run time"),
]


@pytest.mark.parametrize("mask, x, result, operands, target, error, message", MISFITS)
def test_misfits(mask, x, result, operands, target, error, message):
    text = CALL.format(mask=mask, x=x, result=result, operands=operands, target=target)
    with pytest.raises(error, match=message) as caught:
        parse_module(text).verify()
    assert "custom-call C4" in str(caught.value)
