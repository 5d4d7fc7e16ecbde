"""Selection by masks, beside NumPy: elements, indices and rows, with zeros behind the selected ones and without."""

import numpy as np
import pytest

import cyxla
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaBuilder
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.compaction import compact, compact_indices
from cyxla.xla.lib.values import zeros_like

N = 1_000_000
TABLE = (1000, 1000)
RNG = np.random.default_rng(0)
ROWS = RNG.random(TABLE[0]) < 0.5
VARIANTS = {"zeros": True, "no zeros": False}


def elements(dtype, **options):
    b = XlaBuilder("elements")
    x = xla.parameter(b, 0, Shape.array(dtype, (N,)), "x")
    (packed,), count = compact(xla.gt(x, zeros_like(x)), [x], **options)
    return b.build(xla.tuple_(b, [packed, count]))


def indices(dtype, **options):
    b = XlaBuilder("indices")
    x = xla.parameter(b, 0, Shape.array(dtype, (N,)), "x")
    return b.build(xla.tuple_(b, compact_indices(xla.gt(x, zeros_like(x)), **options)))


def rows(dtype, **options):
    b = XlaBuilder("rows")
    x = xla.parameter(b, 0, Shape.array(dtype, TABLE), "x")
    mask = xla.parameter(b, 1, Shape.array(ElementType.PRED, TABLE[:1]), "mask")
    (packed,), count = compact(mask, [x], **options)
    return b.build(xla.tuple_(b, [packed, count]))


CASES = {
    "x[x > 0]": (elements, lambda x: x[x > 0], (N,), ()),
    "nonzero(x > 0)": (indices, lambda x: np.nonzero(x > 0)[0], (N,), ()),
    "compress(mask, table, axis=0)": (rows, lambda x, mask: np.compress(mask, x, axis=0), TABLE, (ROWS,)),
}

WIDE = (20_000, 1024)  # rows of 8 KB, more of them than any cache holds
WIDE_ROWS = RNG.random(WIDE[0]) < 0.5
MOVES = {
    "t[mask]": lambda t: t[WIDE_ROWS],
    "compress": lambda t: np.compress(WIDE_ROWS, t, axis=0),
    "take": lambda t: np.take(t, np.flatnonzero(WIDE_ROWS), axis=0),
    "concatenate": lambda t: np.concatenate([t[:5000], t[5000:10_000]]),
    "repeat": lambda t: np.repeat(t[:5000], 2, axis=0),
}


@pytest.mark.parametrize("name", MOVES)
def test_moves_of_wide_rows(name, claim, best_time):
    t = RNG.standard_normal(WIDE)
    made = cyxla.jit(MOVES[name])
    np.testing.assert_array_equal(made(t), MOVES[name](t))
    ours, numpy = (best_time(lambda f=f: f(t)) for f in (made, MOVES[name]))
    claim(f"{name} of {WIDE}: NumPy's time over ours", numpy / ours)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", CASES)
def test_selection(name, dtype, claim, best_time):
    program, numpy, dims, more = CASES[name]
    x = RNG.standard_normal(dims).astype(np.float32 if dtype == "f32" else np.float64)
    for title, zero_fill in VARIANTS.items():
        made = cyxla.compile(program(ElementType[dtype.upper()], zero_fill=zero_fill))
        packed, count = made(x, *more)
        np.testing.assert_array_equal(packed[:count], numpy(x, *more))
        ours = best_time(lambda made=made: made(x, *more))
        claim(f"{name} {dtype}, {title}", ours * 1e6, "us")
    claim(f"{name} {dtype}, NumPy", best_time(lambda: numpy(x, *more)) * 1e6, "us")
