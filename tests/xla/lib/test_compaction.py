"""Compaction by a mask against NumPy's selection, on both platforms: element types, ranks, sizes, masks."""

import numpy as np
import pytest
from support.strategies import random_array

import cyxla
from cyxla._native import _rt
from cyxla.errors import ShapeError, UnimplementedError
from cyxla.hlo import parse_module
from cyxla.types import ElementType, Shape, element_type
from cyxla.xla.cpu.c.isa_levels import PREBUILT_LEVELS
from cyxla.xla.evaluator.constant_evaluator import ConstantEvaluator
from cyxla.xla.hlo.builder import XlaBuilder
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.compaction import compact, compact_indices, expand
from cyxla.xla.passes.simplify import cse

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
    compare(cyxla.compile(program(size, shapes), platform=platform), mask, arrays)


def compare(compiled, mask, arrays):
    size = len(mask)
    count, *rest = compiled(mask, *arrays)
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


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("size", SIZES)
def test_masks(size, kind, backend):
    dtypes = [element_type(t) for t in ("f32", "f64", "s8", "c128")]
    arrays = [random_array(Shape.array(t, (size,)), size + k, 0.1) for k, t in enumerate(dtypes)]
    check(backend, MASKS[kind](size), arrays, dtypes)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("dtype", TYPES)
def test_element_types(dtype, backend):
    for size in (65, 1000):
        shapes = [Shape.array(element_type(dtype), (size, *rest)) for rest in ((), (3,))]
        arrays = [random_array(s, size, 0.1) for s in shapes]
        check(backend, MASKS["half"](size), arrays, [element_type(dtype)] * 2)


@pytest.mark.parametrize("kind", MASKS)
def test_rows(kind, backend):
    for size in (0, 5, 130):
        dtypes = [element_type("f32")] * len(ROWS)
        arrays = [random_array(Shape.array(t, (size, *rest)), 7, 0.1) for t, rest in zip(dtypes, ROWS, strict=True)]
        check(backend, MASKS[kind](size), arrays, dtypes)


@pytest.mark.parametrize("size", [0, 1, 5, 63, 64, 65, 130])
def test_long_rows(size, backend):
    """Rows of so many bytes that no operand has short ones are copied in one phase."""
    dtypes = [element_type(t) for t in ("f32", "f64", "u8")]
    shapes = [Shape.array(t, (size, *rest)) for t, rest in zip(dtypes, ((128,), (9, 11), (1000,)), strict=True)]
    arrays = [random_array(s, 7, 0.1) for s in shapes]
    compiled = cyxla.compile(program(size, shapes), platform=backend)
    for mask in MASKS.values():
        compare(compiled, mask(size), arrays)


@pytest.mark.parametrize("isa", PREBUILT_LEVELS)
@pytest.mark.parametrize("prebuilt", ["0", "1"])
def test_levels(isa, prebuilt, monkeypatch):
    """Each level selects in its own way; the bits are the same."""
    if isa > _rt.isa_level():
        pytest.skip("not on this processor")
    monkeypatch.setenv("CYXLA_ISA", isa)
    monkeypatch.setenv("CYXLA_PREBUILT", prebuilt)
    dtypes = [element_type(t) for t in ("s8", "bf16", "f32", "s64", "c128", "f32", "f64")]
    shapes = [Shape.array(t, (4097, *rest)) for t, rest in zip(dtypes, ((),) * 5 + ((3,), (70,)), strict=True)]
    arrays = [random_array(s, 7, 0.1) for s in shapes]
    compiled = cyxla.compile(program(4097, shapes))
    for mask in MASKS.values():
        compare(compiled, mask(4097), arrays)


@pytest.mark.parametrize("kind", MASKS)
def test_without_zero_fill(kind, backend):
    for size, rest in ((0, ()), (65, (3,)), (4097, ()), (40, (200,))):
        b = XlaBuilder("compaction")
        mask = xla.parameter(b, 0, Shape.array(ElementType.PRED, (size,)), "mask")
        x = xla.parameter(b, 1, Shape.array(ElementType.F32, (size, *rest)), "x")
        (packed,), count = compact(mask, [x], zero_fill=False)
        indices, _ = compact_indices(mask, zero_fill=False)
        made = cyxla.compile(b.build(xla.tuple_(b, [count, packed, indices])), platform=backend)
        selected, array = MASKS[kind](size), random_array(x.shape, size, 0.1)
        found, rows, positions = made(selected, array)
        same(rows[:found], array[selected])
        same(positions[:found], np.flatnonzero(selected))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads(threads):
    """Tasks give the same result in any number of threads, and many rows are several tasks."""
    before = cyxla.threads()
    try:
        cyxla.threads(threads)
        dtypes = [element_type(t) for t in ("f32", "u8", "f64", "f32")]
        shapes = [Shape.array(t, (70_001, *rest)) for t, rest in zip(dtypes, ((), (), (3,), (20,)), strict=True)]
        for kind in MASKS:
            check("cpu", MASKS[kind](70_001), [random_array(s, 3, 0.1) for s in shapes], dtypes)
        long = Shape.array(ElementType.F32, (37, 20_000))
        check("cpu", MASKS["half"](37), [random_array(long, 3, 0.1)], [ElementType.F32])
    finally:
        cyxla.threads(before)


def test_own_kernel(monkeypatch):
    """A program without prebuilt functions defines the kernel itself."""
    monkeypatch.setenv("CYXLA_PREBUILT", "0")
    shapes = [Shape.array(ElementType.F32, (4097,)), Shape.array(ElementType.C128, (4097, 2))]
    made = cyxla.compile(program(4097, shapes))
    assert "cyx_prebuilt[" not in made.c_source
    assert "_indices_8_pack" in made.c_source
    check("cpu", MASKS["half"](4097), [random_array(s, 5, 0.1) for s in shapes], [s.dtype for s in shapes])


def test_a_call_is_one_kernel():
    text = cyxla.compile(program(100_000, [Shape.array(ElementType.F32, (100_000,))])).explain()
    assert text.count(" compaction ") == 3
    assert "python" not in text


TWO = """ENTRY e {{
  m = pred[4] parameter(0)
  x = f32[4] parameter(1)
  a = (f32[4], s64[]) custom-call(m, x), custom_call_target="cyxla_compact"
  b = (f32[4], s64[]) custom-call(m, x), custom_call_target="cyxla_compact"{}
  ROOT r = ((f32[4], s64[]), (f32[4], s64[])) tuple(a, b)
}}"""


@pytest.mark.parametrize(
    "attributes, calls",
    [("", 1), (", backend_config={zero_fill = false}", 2), (", custom_call_has_side_effect=true", 2)],
)
def test_equal_calls_are_merged(attributes, calls):
    module = parse_module(TWO.format(attributes))
    cse.run(module)
    assert len(set(module.entry.root.operands)) == calls


def test_calls_of_constants_are_constant():
    b = XlaBuilder("constants")
    indices, count = compact_indices(xla.constant(b, np.array([True, False, True])))
    np.testing.assert_array_equal(ConstantEvaluator().value(indices), [0, 2, 0])
    assert ConstantEvaluator().value(count) == 2


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
    ("pred[3000000000]", "u8[2]", "(s32[3000000000], s64[])", "m", "compact_indices", ShapeError, "result is .s64"),
    ("pred[<=2]", "f32[2]", "(f32[2], s64[])", "m, x", "compact", UnimplementedError, "known only at run time"),
]


@pytest.mark.parametrize("mask, x, result, operands, target, error, message", MISFITS)
def test_misfits(mask, x, result, operands, target, error, message):
    text = CALL.format(mask=mask, x=x, result=result, operands=operands, target=target)
    with pytest.raises(error, match=message) as caught:
        parse_module(text).verify()
    assert "custom-call C4" in str(caught.value)
