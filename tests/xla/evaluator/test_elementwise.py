"""Elementwise opcodes: edges by table, and laws that hold for all values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cyxla.types import ElementType, Shape
from cyxla.xla.evaluator import EVALUATORS, Options, evaluate_computation, evaluate_instruction
from cyxla.xla.evaluator.numerics.apply_elementwise import apply_named
from cyxla.xla.hlo import OPCODES, Computation

inf, nan = np.inf, np.nan
MIN32, MIN64 = -(2**31), -(2**63)

# fmt: off
CASES = [
    # opcode                   dtype   operands                                   want
    ("abs",                    "s32", [[MIN32, -3, 4]],                           [MIN32, 3, 4]),
    ("abs",                    "s4",  [[-8, -3, 4]],                              [-8, 3, 4]),
    ("negate",                 "s8",  [[-128, 5]],                                [-128, -5]),
    ("negate",                 "u8",  [[1, 0]],                                   [255, 0]),
    ("negate",                 "u4",  [[1, 0]],                                   [15, 0]),
    ("sign",                   "f32", [[-0.0, 0.0, nan, -2, 3, -inf]],            [-0.0, 0.0, nan, -1, 1, -1]),
    ("sign",                   "s2",  [[-2, -1, 0, 1]],                           [-1, -1, 0, 1]),
    ("not",                    "pred", [[True, False]],                           [False, True]),
    ("not",                    "u4",  [[0, 5]],                                   [15, 10]),
    ("popcnt",                 "s32", [[-1, 0, 5]],                               [32, 0, 2]),
    ("popcnt",                 "s4",  [[-1, 5]],                                  [4, 2]),
    ("count-leading-zeros",    "u32", [[0, 1, 2**31]],                            [32, 31, 0]),
    ("count-leading-zeros",    "s64", [[0, -1, 1]],                               [64, 0, 63]),
    ("count-leading-zeros",    "u4",  [[0, 1, 8]],                                [4, 3, 0]),
    ("ceil",                   "f32", [[-0.2, 0.2]],                              [-0.0, 1]),
    ("round-nearest-afz",      "f32", [[0.49999997, 0.5, -0.5, 2.5, 8388609, -0.2]], [0, 1, -1, 3, 8388609, -0.0]),
    ("round-nearest-even",     "f32", [[0.5, 1.5, 2.5, -0.2]],                    [0, 2, 2, -0.0]),
    ("sqrt",                   "f32", [[-0.0, 4, -1, inf]],                       [-0.0, 2, nan, inf]),
    ("rsqrt",                  "f64", [[-0.0, 0.0, 4, inf]],                      [-inf, inf, .5, 0]),
    ("cbrt",                   "f32", [[-8, 27]],                                 [-2, 3]),
    ("cbrt",                   "c128", [[3 + 4j, 0j]],                [1.6289371459221759 + 0.5201745023045458j, 0]),
    ("sign",                   "c128", [[1.7e308 * (1 + 1j)]],                    [.5**.5 * (1 + 1j)]),
    ("exponential",            "c128", [[complex(inf, inf), complex(-inf, nan)]], [complex(nan, nan)] * 2),
    ("maximum",                "c64", [[1 + 2j, 5], [1 + 3j, 4 + 9j]],            [1 + 3j, 5]),
    ("log",                    "f32", [[-1, 0, 1]],                               [nan, -inf, 0]),
    ("log-plus-one",           "f32", [[-1, -2, 0]],                              [-inf, nan, 0]),
    ("logistic",               "f32", [[-inf, 0, inf, -1000]],                    [0, .5, 1, 0]),
    ("exponential",            "f32", [[-inf, inf, 0, 100]],                      [0, inf, 1, inf]),
    ("add",                    "pred", [[True, True, False], [True, False, False]], [True, True, False]),
    ("multiply",               "pred", [[True, True, False], [True, False, False]], [True, False, False]),
    ("add",                    "s8",  [[127, -128], [1, -1]],                     [-128, 127]),
    ("add",                    "s4",  [[7, -8], [1, -1]],                         [-8, 7]),
    ("multiply",               "u8",  [[16, 255], [16, 255]],                     [0, 1]),
    ("divide",                 "s32", [[7, -7, 5, MIN32], [-2, 2, 0, -1]],        [-3, -3, -1, MIN32]),
    ("divide",                 "u8",  [[7, 7], [2, 0]],                           [3, 255]),
    ("divide",                 "s4",  [[-8, 7, -7], [-1, 0, 2]],                  [-8, -1, -3]),
    ("remainder",              "s32", [[7, -7, 5, MIN32], [-2, 2, 0, -1]],        [1, -1, 5, 0]),
    ("remainder",              "f32", [[-7, 7, inf, 3, 3], [2, -2, 1, 0, inf]],   [-1, 1, nan, nan, 3]),
    ("power",                  "s32", [[1, -1, -1, 0, 2], [-5, -2, -3, -1, -1]],  [1, 1, -1, 0, 0]),
    ("power",                  "s32", [[3], [40]],                                [np.int32(3**40 & 0xFFFFFFFF)]),
    ("power",                  "f32", [[nan, 1, -1, -8], [0, nan, inf, 1 / 3]],   [1, 1, 1, nan]),
    ("maximum",                "f32", [[-0.0, 0.0, nan, 1], [0.0, -0.0, 1, nan]], [0.0, 0.0, nan, nan]),
    ("minimum",                "f32", [[-0.0, 0.0, nan, 1], [0.0, -0.0, 1, nan]], [-0.0, -0.0, nan, nan]),
    ("maximum",                "bf16", [[-0.0, nan, 3], [0.0, 1, 4]],             [0.0, nan, 4]),
    ("maximum",                "u64", [[2**63 + 1], [2**63]],                     [2**63 + 1]),
    ("minimum",                "pred", [[True, False], [True, True]],             [True, False]),
    ("atan2",                  "f64", [[0.0, -0.0, 0.0, -0.0], [-0.0, -0.0, 0.0, 0.0]], [np.pi, -np.pi, 0.0, -0.0]),
    ("shift-left",             "s32", [[1, 1, 1, -1], [31, 32, -1, 4]],           [MIN32, 0, 0, -16]),
    ("shift-left",             "u4",  [[1, 1, 3], [3, 4, 3]],                     [8, 0, 8]),
    ("shift-right-logical",    "s32", [[-1, -1, -1], [28, 32, -1]],               [15, 0, 0]),
    ("shift-right-logical",    "s4",  [[-1, -8], [1, 3]],                         [7, 1]),
    ("shift-right-arithmetic", "s8",  [[-128, -128, 64, -128], [7, 100, 100, -1]], [-1, -1, 0, -1]),
    ("shift-right-arithmetic", "u8",  [[200, 200, 100], [8, 1, 8]],               [255, 228, 0]),
    ("mulhi",                  "s64", [[MIN64, -1, 2**62], [MIN64, 1, 8]],        [2**62, -1, 2]),
    ("mulhi",                  "u64", [[2**64 - 1], [2**64 - 1]],                 [2**64 - 2]),
    ("mulhi",                  "u32", [[2**32 - 1], [2**32 - 1]],                 [2**32 - 2]),
    ("mulhi",                  "s8",  [[-128, 127], [127, 127]],                  [-64, 63]),
    ("mulhi",                  "u4",  [[15, 7], [15, 7]],                         [14, 3]),
    ("add",                    "bf16", [[256], [1]],                              [256]),
    ("add",                    "f16", [[60000], [60000]],                         [inf]),
    ("multiply",               "f8e4m3fn", [[32], [32]],                          [nan]),
    ("multiply",               "f8e5m2", [[256], [256]],                          [inf]),
    ("sign",                   "c64", [[3 + 4j, 0, complex(nan, 1)]],             [.6 + .8j, 0, complex(nan, nan)]),
    ("power",                  "c64", [[0j, 2], [0j, 3]],                         [1, 8]),
    ("log",                    "c64", [[complex(-1, -0.0)]],                      [complex(0, -np.pi)]),
    ("divide",                 "c64", [[1 + 1j], [0j]],                           [complex(inf, inf)]),
    ("clamp",                  "f32", [[5, 5, 0, nan], [0, 9, 7, 1], [3, 8, 6, 2]], [3, 8, 6, nan]),
]
# fmt: on


def same(got, want):
    got, want = (
        np.asarray(x).astype(np.complex128 if np.asarray(x).dtype.kind == "c" else x.dtype) for x in (got, want)
    )
    assert got.shape == want.shape
    for a, b in ((got.real, want.real), (got.imag, want.imag)) if got.dtype.kind == "c" else ((got, want),):
        if got.dtype.kind in "fcV" and got.dtype.itemsize > 0 and a.dtype.kind != "b":
            a, b = a.astype(np.float64), b.astype(np.float64)
            np.testing.assert_allclose(a, b, rtol=3e-7, equal_nan=True)
            zero = (b == 0) & ~np.isnan(b)
            assert (np.signbit(a[zero]) == np.signbit(b[zero])).all() or got.dtype.kind == "c"
        else:
            assert (a == b).all(), (a, b)


@pytest.mark.parametrize("opcode, dtype, operands, want", CASES, ids=lambda v: v if isinstance(v, str) else "")
def test_edges(run, opcode, dtype, operands, want):
    same(run(opcode, *(run.array(dtype, o) for o in operands)), run.array(dtype, want))


def test_complex_modulus_is_real_and_nan_wins(run):
    x = np.array([3 + 4j, complex(inf, nan)], np.complex64)
    same(run("abs", x, to="f32"), np.array([5, nan], np.float32))


def test_parts_of_reals_and_complexes(run):
    x = np.array([1 + 2j, 3 - 4j], np.complex64)
    same(run("imag", x, to="f32"), np.float32([2, -4]))
    same(run("real", x, to="f32"), np.float32([1, 3]))
    same(run("imag", np.float32([5])), np.float32([0]))
    same(run("complex", np.float32([inf]), np.float32([-0.0]), to="c64"), np.array([complex(inf, -0.0)], np.complex64))


def test_select_takes_a_scalar_predicate(run):
    x, y = np.float32([1, 2]), np.float32([3, 4])
    same(run("select", np.array(True), x, y, shape=Shape.of(x)), x)
    same(run("select", np.array([True, False]), x, y, shape=Shape.of(x)), np.float32([1, 4]))


def test_is_finite(run):
    assert run("is-finite", run.array("bf16", [1, inf, nan]), to="pred").tolist() == [True, False, False]


TOTAL = [-nan, -inf, -1.0, -0.0, 0.0, 1.0, inf, nan]


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64", "f8e5m2"])
def test_total_order(run, dtype):
    x = run.array(dtype, TOTAL)
    x[0] = np.copysign(x[0], run.array(dtype, -1))
    x[-1] = np.copysign(x[-1], run.array(dtype, 1))
    assert run("compare", x[:-1], x[1:], to="pred", direction="LT", type="TOTALORDER").all()
    assert run("compare", x, x, to="pred", direction="EQ", type="TOTALORDER").all()


# fmt: off
COMPARISONS = [
    # direction, dtype, x, y, want
    ("EQ", "f32",  [nan, 0.0, 1], [nan, -0.0, 2],    [False, True, False]),
    ("NE", "f32",  [nan, 0.0, 1], [nan, -0.0, 2],    [True, False, True]),
    ("GE", "bf16", [nan, 2],      [1, 2],            [False, True]),
    ("LT", "u64",  [2**63],       [1],               [False]),
    ("LT", "s4",   [-8, 7],       [7, -8],           [True, False]),
    ("GT", "u2",   [3, 0],        [1, 1],            [True, False]),
    ("LE", "pred", [False, True], [True, False],     [True, False]),
    ("NE", "c64",  [1 + 1j, 1],   [1 + 1j, 1j],      [False, True]),
]
# fmt: on


@pytest.mark.parametrize("direction, dtype, x, y, want", COMPARISONS)
def test_compare(run, direction, dtype, x, y, want):
    got = run("compare", run.array(dtype, x), run.array(dtype, y), to="pred", direction=direction)
    assert got.tolist() == want


NAMED = [
    (row.name, row.arity[0], dtype)
    for row in OPCODES.values()
    if row.elementwise
    and row.name not in ("convert", "compare", "select", "stochastic-convert", "complex", "reduce-precision")
    for dtype in sorted(row.accepts, key=str)
    if dtype.numpy_dtype is not None
]


@pytest.mark.parametrize("name, arity, dtype", NAMED, ids=lambda v: str(v))
def test_every_opcode_has_a_meaning_for_every_type_it_accepts(name, arity, dtype):
    result = {"is-finite": ElementType.PRED}.get(name, dtype.real_part if name in ("abs", "real", "imag") else dtype)
    comp = Computation("main")
    operands = [
        comp.add("parameter", attrs={"parameter_number": n}, shape=Shape.array(dtype, (4,))) for n in range(arity)
    ]
    ins = comp.add(name, operands, shape=Shape.array(result, (4,)))
    values = np.array([0, 1, 1, 0]).astype(dtype.numpy_dtype)
    assert evaluate_instruction(ins, *[values] * arity).shape == (4,)


# --- laws ---

SMOOTH = [
    "exponential",
    "log",
    "tanh",
    "sine",
    "cosine",
    "log-plus-one",
    "exponential-minus-one",
    "cbrt",
    "tan",
    "logistic",
]
floats64 = st.floats(-50, 50, allow_nan=False)


@pytest.mark.parametrize("name", SMOOTH)
@settings(max_examples=25, deadline=None)
@given(x=arrays(np.float64, 8, elements=floats64))
def test_narrow_functions_round_results_of_f64(name, x):
    x32 = x.astype(np.float32)
    with np.errstate(all="ignore"):
        wide = apply_named(name, ElementType.F64, x32.astype(np.float64))
        narrow = apply_named(name, ElementType.F32, x32)
        np.testing.assert_allclose(narrow, wide.astype(np.float32), rtol=2.0**-23, atol=1e-45)


@settings(max_examples=50, deadline=None)
@given(x=arrays(np.int64, 4), y=arrays(np.int64, 4))
def test_division_and_remainder_agree(x, y):
    with np.errstate(all="ignore"):
        q, r = (apply_named(n, ElementType.S64, x, y) for n in ("divide", "remainder"))
        back = q * y + r
    assert (np.where(y == 0, x, back) == x).all()
    exact = [int(a) * int(b) >> 64 for a, b in zip(x, y, strict=True)]
    assert apply_named("mulhi", ElementType.S64, x, y).tolist() == exact


@pytest.mark.parametrize("dtype", ["bf16", "f32", "f64"])
def test_denormals_are_kept_unless_flushing_is_asked_for(run, dtype):
    tiny = {"f64": 2.0**-1022}.get(dtype, 2.0**-126)
    shape = Shape.array(dtype, (2,))
    comp = Computation("main")
    a, b = run.parameters(comp, [shape, shape])
    comp.root = comp.add("multiply", [a, b], shape=shape)
    args = [run.array(dtype, [tiny, -tiny]), run.array(dtype, [0.5, 0.5])]
    kept = evaluate_computation(comp, args).astype(np.float64)
    assert kept.tolist() == [tiny / 2, -tiny / 2]
    zeros = evaluate_computation(comp, args, options=Options(flush_denormals=True)).astype(np.float64)
    assert zeros.tolist() == [0, 0]
    assert np.signbit(zeros).tolist() == [False, True]


def test_every_row_has_a_meaning():
    assert set(OPCODES) == set(EVALUATORS)
