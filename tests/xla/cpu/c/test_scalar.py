"""The C of single elements: narrow floats against ml_dtypes, integers and conversions against Python arithmetic."""

import ctypes
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from support.builds.shared_builds import build_once

import cyxla
from cyxla.types import ElementType as E
from cyxla.types import element_type
from cyxla.xla.cpu.c import scalar

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

INCLUDE = Path(__file__).parents[4] / "include" / "cyxla"
NARROW = [e for e in E if scalar.is_narrow(e)]
FLOAT_SOURCES = [E.F32, E.F64, E.S32, E.S64, E.U64, E.F16, E.BF16]


class Library:
    """Element functions, each compiled as a loop over arrays."""

    def __init__(self) -> None:
        self.parts, self.number = [], 0

    def add(self, result: E, operands: list[E], form: str) -> str:
        """Queue ``out[i] = form(x0, x1..)`` and return its symbol."""
        name, self.number = f"f{self.number}", self.number + 1
        reads = "".join(
            f"const {scalar.register_type(o)} x{k} = {scalar.load(o, f'p{k}[i]')};" for k, o in enumerate(operands)
        )
        params = "".join(f"const {scalar.storage_type(o)} *p{k}, " for k, o in enumerate(operands))
        self.parts.append(
            f"void {name}({params}{scalar.storage_type(result)} *out, int64_t n)"
            f"{{ for (int64_t i = 0; i < n; ++i) {{ {reads} const {scalar.register_type(result)} v = {form}; "
            f"out[i] = {scalar.store(result, 'v')}; }} }}"
        )
        return name

    def build(self, folder: Path) -> None:
        """Compile ``elements.so`` in a folder."""
        headers = [f'#include "{INCLUDE / "scalar.h"}"']
        source = folder / "elements.c"
        source.write_text("\n".join([*headers, *self.parts]))
        flags = ["-O2", "-shared", "-fPIC", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-mpopcnt"]
        subprocess.run(["gcc", *flags, str(source), "-o", str(folder / "elements.so")], check=True)


def call(library: ctypes.CDLL, name: str, result: E, *arrays: np.ndarray) -> np.ndarray:
    out = np.empty(arrays[0].shape, result.numpy_dtype)
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*arrays, out)]
    getattr(library, name)(*pointers, ctypes.c_int64(out.size))
    return out


CONVERSIONS = [(to, of) for to in [*NARROW, E.F32, E.F64] for of in [*FLOAT_SOURCES, *NARROW] if to is not of]
INTEGERS = [e for e in E if e.is_integer]
SATURATIONS = [(to, of) for to in INTEGERS for of in (E.F32, E.F64, E.F16, E.BF16)]
BINARY = ["add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and", "or", "xor", "shift-left",
          "shift-right-logical", "shift-right-arithmetic", "mulhi", "power"]  # fmt: skip
UNARY = ["negate", "not", "popcnt", "count-leading-zeros", "sign", "abs"]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    lib, names = Library(), {}
    for to, of in [*CONVERSIONS, *SATURATIONS]:
        names["convert", to, of] = lib.add(to, [of], scalar.convert(to, of, "x0"))
    for dtype in INTEGERS:
        for op in UNARY:
            names[op, dtype] = lib.add(dtype, [dtype], scalar.expression(op, dtype, [dtype], {}, ["x0"]))
        for op in BINARY:
            names[op, dtype] = lib.add(dtype, [dtype] * 2, scalar.expression(op, dtype, [dtype] * 2, {}, ["x0", "x1"]))
    return ctypes.CDLL(str(build_once(tmp_path_factory, "elements", lib.build) / "elements.so")), names


def every_value(dtype: E) -> np.ndarray:
    return np.arange(2**dtype.bits, dtype=f"u{dtype.itemsize}").view(dtype.numpy_dtype)


@cache
def samples(dtype: E) -> np.ndarray:
    rng = np.random.default_rng(0)
    if dtype.itemsize <= 2 and not dtype.is_integer:
        return every_value(dtype)
    bits = rng.integers(0, 2**64, 40_000, dtype=np.uint64, endpoint=False)
    if dtype.is_integer:
        shifted = bits >> rng.integers(0, 64, bits.shape, dtype=np.uint64)
        return np.concatenate([shifted, ~shifted]).astype(dtype.numpy_dtype)
    narrow = rng.integers(0, 2**32, 60_000, dtype=np.uint32).view(np.float32)
    halfway = np.concatenate([every_value(E.F16).astype(np.float32), every_value(E.BF16).astype(np.float32)])
    middles = (halfway[:-1].astype(np.float64) + halfway[1:]) / 2
    return np.concatenate([narrow, middles, [np.inf, -np.inf, np.nan, -0.0]]).astype(dtype.numpy_dtype)


def exact_round(values: np.ndarray, to: E) -> np.ndarray:
    """The float of type `to` nearest to each exact value: rounding once, through a sticky longer mantissa."""
    if to is E.F64:
        return values.astype(np.float64)
    if values.dtype.kind in "iu":
        low = values & np.array(0x7FF, values.dtype)
        big = np.abs(values.astype(object)) >= 2**53
        head = (values.astype(object) // 2048 * 2 + (low != 0)) * 1024
        values = np.where(big, head, values.astype(object)).astype(np.float64)
    if values.dtype == np.float64 and to is not E.F32:
        single = values.astype(np.float32)
        bits = single.view(np.uint32)
        inexact = (single != values) & ~np.isnan(values) & ((bits & 1) == 0)
        step = np.where(np.abs(single.astype(np.float64)) > np.abs(values), np.uint32(0xFFFFFFFF), np.uint32(1))
        values = np.where(inexact, bits + step, bits).astype(np.uint32).view(np.float32)
    return values.astype(to.numpy_dtype)


@pytest.mark.slow_but_every(10)
@pytest.mark.parametrize("to, of", CONVERSIONS, ids=lambda e: str(e))
def test_float_conversion_rounds_once(library, to, of):
    lib, names = library
    x = samples(of)
    got = call(lib, names["convert", to, of], to, x)
    want = exact_round(x if of not in NARROW else x.astype(np.float32), to)
    got_wide, want_wide = got.astype(np.float64), want.astype(np.float64)
    nan = np.isnan(want_wide)
    finite_only = to in (E.F4E2M1FN, E.F6E3M2FN, E.F6E2M3FN)  # no NaN to give back
    if finite_only:
        keep = ~np.isnan(x.astype(np.float64))
        got_wide, want_wide, nan = got_wide[keep], want_wide[keep], nan[keep]
    if to is E.F8E8M0FNU:  # what lies below the smallest power is unspecified
        keep = ~((np.abs(x.astype(np.float64)) < 2.0**-126) & (x.astype(np.float64) != 0))
        got_wide, want_wide, nan = got_wide[keep], want_wide[keep], nan[keep]
    np.testing.assert_array_equal(np.isnan(got_wide), nan)
    np.testing.assert_array_equal(got_wide[~nan], want_wide[~nan])
    np.testing.assert_array_equal(np.signbit(got_wide[~nan]), np.signbit(want_wide[~nan]))


@pytest.mark.slow_but_every(8)
@pytest.mark.parametrize("to, of", SATURATIONS, ids=lambda e: str(e))
def test_float_to_integer_saturates(library, to, of):
    lib, names = library
    x = samples(of)
    low, high = (-(2 ** (to.bits - 1)), 2 ** (to.bits - 1) - 1) if to.is_signed else (0, 2**to.bits - 1)
    want = [0 if v != v else high if v == np.inf else low if v == -np.inf else min(max(int(v), low), high)
            for v in x.astype(np.float64)]  # fmt: skip
    got = call(lib, names["convert", to, of], to, x)
    np.testing.assert_array_equal(got.astype(object).astype(np.dtype(object)), np.array(want, object))


def reference(op: str, a: int, b: int, dtype: E) -> int:
    w = dtype.bits
    mask, signed = 2**w - 1, dtype.is_signed
    ua, ub = a & mask, b & mask
    sa = ua - 2**w if ua >> (w - 1) else ua
    quotient = 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    table = {
        "add": lambda: a + b, "subtract": lambda: a - b, "multiply": lambda: a * b,
        "negate": lambda: -a, "not": lambda: ~a,
        "divide": lambda: -1 if b == 0 else quotient, "remainder": lambda: a if b == 0 else a - quotient * b,
        "maximum": lambda: max(a, b), "minimum": lambda: min(a, b),
        "and": lambda: a & b, "or": lambda: a | b, "xor": lambda: a ^ b,
        "shift-left": lambda: 0 if ub >= w else ua << ub, "shift-right-logical": lambda: 0 if ub >= w else ua >> ub,
        "shift-right-arithmetic": lambda: sa >> min(ub, w - 1), "mulhi": lambda: (a * b) >> w,
        "popcnt": lambda: ua.bit_count(),
        "count-leading-zeros": lambda: w - ua.bit_length(), "sign": lambda: (a > 0) - (a < 0), "abs": lambda: abs(a),
        "power": lambda: pow(a, b, 2**w) if b >= 0 else {1: 1, -1: -1 if b % 2 else 1}.get(a, 0),
    }  # fmt: skip
    r = table[op]() & mask
    return r - 2**w if signed and r >> (w - 1) else r


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("op", [*UNARY, *BINARY])
def test_integer_arithmetic(library, op, dtype):
    lib, names = library
    rng = np.random.default_rng(1)
    low, high = (-(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1) if dtype.is_signed else (0, 2**dtype.bits - 1)
    edges = [
        v for v in (low, low + 1, -2, -1, 0, 1, 2, 3, 7, dtype.bits, dtype.bits - 1, high - 1, high) if low <= v <= high
    ]
    wide = rng.integers(low, high, 60, dtype=np.int64 if low else np.uint64, endpoint=True)
    shifts = rng.integers(0, max(dtype.bits - 1, 1), 60)
    random = [int(v) >> int(s) for v, s in zip(wide, shifts, strict=True)]
    pool = sorted(set(edges + random))
    pairs = [(a, b) for a in pool for b in pool]
    a, b = (
        np.array(side, object).astype(np.int64 if low else np.uint64).astype(dtype.numpy_dtype)
        for side in zip(*pairs, strict=True)
    )
    got = call(lib, names[op, dtype], dtype, a, *([b] if op in BINARY else []))
    want = [reference(op, x, y, dtype) for x, y in pairs]
    np.testing.assert_array_equal(got.astype(np.int64 if low else np.uint64).astype(object), np.array(want, object))


@pytest.mark.parametrize("dtype", [e for e in E if e.is_array], ids=str)
def test_literals_are_c(dtype, tmp_path):
    values = [0, 1] if dtype.bits < 8 or dtype is E.PRED else [0, 1, 100]
    for v in np.array(values).astype(dtype.numpy_dtype):
        assert scalar.literal(dtype, v)


def test_names_are_those_of_the_element_types():
    assert scalar.register_type(element_type("bf16")) == "float"
    assert scalar.store(E.F8E4M3FN, "v") == "cyx_f8e4m3fn_from_f32(v)"


WIDTHS = {
    2: ["s2", "u2"],
    4: ["s4", "u4", "f4e2m1fn"],
    8: ["s8", "u8", "f8e5m2", "f8e4m3fn", "f8e4m3b11fnuz", "f8e8m0fnu"],
    16: ["s16", "u16", "f16", "bf16"],
    32: ["s32", "u32", "f32"],
    64: ["s64", "u64", "f64"],
}


@pytest.mark.parametrize("bits", WIDTHS)
def test_bits_are_read_as_any_type_of_their_width_in_computations_of_scalars(bits):
    pairs = [(of, to) for of in WIDTHS[bits] for to in WIDTHS[bits]]
    bodies = [
        f"n{k} {{ x = {of}[] parameter(0) ROOT r = {to}[] bitcast-convert(x) }}" for k, (of, to) in enumerate(pairs)
    ]
    maps = [
        f"m{k} = {to}[512] map(p{WIDTHS[bits].index(of)}), dimensions={{0}}, to_apply=n{k}"
        for k, (of, to) in enumerate(pairs)
    ]
    parameters = [f"p{k} = {t}[512] parameter({k})" for k, t in enumerate(WIDTHS[bits])]
    root = f"ROOT t = tuple({', '.join(f'm{k}' for k in range(len(pairs)))})"
    text = "\n".join([*bodies, "ENTRY e {", *parameters, *maps, root, "}"])
    rng = np.random.default_rng(bits)
    wide = rng.integers(0, 256, (512, max(bits // 8, 1)), dtype=np.uint8).reshape(-1)
    args = [_bits_of(wide, element_type(t)) for t in WIDTHS[bits]]
    for got, want in zip(cyxla.compile(text)(*args), cyxla.compile(text, platform="interpreter")(*args), strict=True):
        numbers = want == want
        assert (got[~numbers] != got[~numbers]).all()
        np.testing.assert_array_equal(got[numbers].view(np.uint8), want[numbers].view(np.uint8))


def _bits_of(random, dtype):
    """Arrays of random bits, but for NaNs, whose bits may change on the way."""
    if dtype.bits < 8:
        low, high = (-(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1)) if dtype.is_signed else (0, 2**dtype.bits)
        if not dtype.is_float:
            return np.random.default_rng(1).integers(low, high, 512).astype(np.int8).astype(dtype.numpy_dtype)
        return (random % 2**dtype.bits).view(dtype.numpy_dtype)
    x = random.view(dtype.numpy_dtype).copy()
    x[x != x] = 1
    return x
