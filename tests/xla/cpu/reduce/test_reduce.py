"""Reductions and windows against the evaluator."""

# ruff: noqa: E501  programs read best a line at a time

import itertools
from functools import partial

import numpy as np
import pytest
from support.hlo.kernel_groups import build
from support.hlo.kernel_groups import check as compare

import cyxla

check = partial(compare, near=1.0)
RNG = np.random.default_rng(11)
NUMPY = {"pred": "bool", "s8": "int8", "u8": "uint8", "s32": "int32", "u32": "uint32", "s64": "int64", "f16": "float16", "f32": "float32",
    "f64": "float64", "c64": "complex64"}  # fmt: skip


def body(dtype: str, opcode: str) -> str:
    return f"f {{\n a = {dtype}[] parameter(0)\n b = {dtype}[] parameter(1)\n ROOT r = {dtype}[] {opcode}(a, b)\n}}\n"


def text(dtype: str, dims: list[int], gone: list[int], opcode: str = "add", init: str = "0", more: str = "") -> str:
    kept = ",".join(str(n) for d, n in enumerate(dims) if d not in gone)
    shape = ",".join(map(str, dims))
    along = ",".join(map(str, gone))
    root = f"ROOT r = {dtype}[{kept}] reduce(p, z), dimensions={{{along}}}, to_apply=f"
    return f"HloModule m\n{body(dtype, opcode)}ENTRY e {{\n p = {dtype}[{shape}] parameter(0)\n z = {dtype}[] constant({init})\n {root}\n{more}}}\n"


def values(dtype: str, dims: list[int]) -> np.ndarray:
    if dtype == "c64":
        return (RNG.normal(size=dims) + 1j * RNG.normal(size=dims)).astype(np.complex64)
    if dtype[0] == "f":
        return RNG.normal(size=dims).astype(NUMPY[dtype])
    return RNG.integers(0, 2 if dtype == "pred" else 100, dims).astype(NUMPY[dtype])


SHAPES = [
    ([40], [0]), ([5000], [0]), ([100003], [0]), ([1, 7], [0]), ([7, 1], [1]), ([37, 100], [1]), ([37, 100], [0]), ([100, 3], [1]),
    ([100, 3], [0]), ([5, 6, 7], [1]), ([5, 6, 7], [0, 2]), ([5, 6, 70], [1, 2]), ([64, 1500], [0]), ([9, 5003], [1]), ([3, 4, 5, 6], [0, 3]),
    ([24, 2100], [0]), ([0, 4], [0]), ([4, 0], [0]), ([4, 5], []), ([16, 3, 40], [0, 1]),
]  # fmt: skip


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("dims,gone", SHAPES)
def test_sums(dims, gone):
    check(text("f32", dims, gone, init="0.5"), values("f32", dims), ulp=8)


@pytest.mark.parametrize("dtype,opcode", [
    *itertools.product(["s8", "u8", "s32", "u32", "s64"], ["add", "multiply", "maximum", "minimum", "and", "or", "xor"]),
    *itertools.product(["pred"], ["and", "or", "xor", "maximum", "minimum"]),
    *itertools.product(["f16", "f32", "f64"], ["add", "maximum", "minimum"]),
    ("f32", "multiply"), ("c64", "add"), ("c64", "multiply"),
])  # fmt: skip
@pytest.mark.slow_but_every(5)
def test_combiners(dtype, opcode):
    arrays, parameters, results, kept = [], [], [], []
    for k, (dims, gone) in enumerate((([6, 100], 1), ([100, 6], 0), ([20, 3], 1), ([40, 70], 0))):
        x = values(dtype, dims)
        arrays.append((x / np.abs(x)).astype(x.dtype) if opcode == "multiply" and dtype[0] in "fc" else x)
        kept.append(f"{dtype}[{dims[1 - gone]}]")
        parameters.append(f"p{k} = {dtype}[{dims[0]},{dims[1]}] parameter({k})")
        results.append(f"r{k} = {kept[k]} reduce(p{k}, z), dimensions={{{gone}}}, to_apply=f")
    one = f"z = {dtype}[] constant({'(1,0)' if dtype == 'c64' else '1'})"
    root = f"ROOT t = ({', '.join(kept)}) tuple(r0, r1, r2, r3)"
    check(module(";".join([*parameters, one, *results, root]), body(dtype, opcode)), *arrays, ulp=8)


@pytest.mark.parametrize("opcode,dims", list(itertools.product(["maximum", "minimum"], [[2, 100], [100, 20]])))
def test_extremes_of_odd_values(opcode, dims):
    gone = [1] if dims[0] == 2 else [0]
    init = "-inf" if opcode == "maximum" else "inf"
    for special in ([np.nan], [-np.nan], [0.0, -0.0], [-0.0], [np.inf, -np.inf]):
        x = np.full(dims, -1.0 if opcode == "maximum" else 1.0, np.float32)
        x[1, : len(special)] = special
        x[0, :] = -0.0
        compiled = check(text("f32", dims, gone, opcode, init), x)
        got = compiled(x)[0]
        want = (np.maximum if opcode == "maximum" else np.minimum).reduce(x, axis=gone[0])
        if not np.isnan(special[0]) and len(special) == 1:
            assert (np.signbit(got) == np.signbit(want)).all()


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
@pytest.mark.parametrize("opcode", ["maximum", "minimum"])
def test_extremes_of_rows_of_either_sign(opcode, dtype):
    rows = [
        (fill, special)
        for fill in (-2, 2, -np.inf, np.inf)
        for special in (-3, 3, -0.0, 0.0, np.inf, -np.inf, np.nan, -np.nan)
    ]
    x = np.repeat(np.array([fill for fill, _ in rows])[:, None], 70, axis=1).astype(f"f{int(dtype[1:]) // 8}")
    x[:, 33] = [special for _, special in rows]
    got = check(text(dtype, x.shape, [1], opcode, "-inf" if opcode == "maximum" else "inf"), x)(x)[0]
    want = (np.maximum if opcode == "maximum" else np.minimum).reduce(x, axis=1)
    assert (np.isnan(got) == np.isnan(want)).all()
    assert (np.signbit(got) == np.signbit(want))[~np.isnan(want)].all()
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dims,gone", [([40, 999], [1]), ([3_000_000], [0]), ([999, 40], [0])])
def test_bits_do_not_depend_on_the_processor(dims, gone):
    x = values("f32", dims)
    one, other = (build(text("f32", dims, gone), *flags)(x)[0] for flags in ((), ("-march=x86-64-v2",)))
    assert (one.view(np.uint32) == other.view(np.uint32)).all()


def test_signed_zero_of_sums():
    x = np.full([3, 100], -0.0, np.float32)
    assert np.signbit(check(text("f32", [3, 100], [1], init="-0.0"), x)(x)[0]).all()
    assert not np.signbit(check(text("f32", [3, 100], [1], init="0"), x)(x)[0]).any()


@pytest.mark.parametrize(
    "dims,gone", [([3_000_000], [0]), ([40000, 50], [0]), ([400000, 5], [0]), ([2, 600_000], [1]), ([300, 9000], [0])]
)
def test_long_ones_are_cut_into_parts(dims, gone):
    compiled = check(text("f32", dims, gone), values("f32", dims), ulp=64)
    assert len(compiled.steps) == 2
    assert compiled.steps[0].kernel.tasks > 1
    check(text("f32", dims, gone, "maximum", "-inf"), values("f32", dims))
    check(text("s32", dims, gone, "add"), values("s32", dims))


def module(lines: str, functions: str = body("f32", "add")) -> str:
    return f"HloModule m\n{functions}ENTRY e {{\n" + lines.replace(";", "\n") + "\n}\n"


FUSED = {
    "mean of squares": (
        "f32[30,200]",
        """
        p = f32[30,200] parameter(0); s = f32[30,200] multiply(p, p); z = f32[] constant(0)
        r = f32[30] reduce(s, z), dimensions={1}, to_apply=f; n = f32[] constant(0.005); b = f32[30] broadcast(n), dimensions={}
        ROOT m = f32[30] multiply(r, b)""",
    ),
    "exponentials along rows": (
        "f32[30,6000]",
        """
        p = f32[30,6000] parameter(0); s = f32[30,6000] exponential(p); z = f32[] constant(0)
        r = f32[30] reduce(s, z), dimensions={1}, to_apply=f; ROOT m = f32[30] log(r)""",
    ),
    "sines along columns": (
        "f32[30,60]",
        """
        p = f32[30,60] parameter(0); t = f32[] constant(1e5); b = f32[30,60] broadcast(t), dimensions={}; q = f32[30,60] multiply(p, b)
        s = f32[30,60] sine(q); z = f32[] constant(0); ROOT r = f32[60] reduce(s, z), dimensions={0}, to_apply=f""",
    ),
    "sines along rows": (
        "f32[30,60]",
        """
        p = f32[30,60] parameter(0); t = f32[] constant(1e5); b = f32[30,60] broadcast(t), dimensions={}; q = f32[30,60] multiply(p, b)
        s = f32[30,60] cosine(q); z = f32[] constant(0); ROOT r = f32[30] reduce(s, z), dimensions={1}, to_apply=f""",
    ),
    "transposed": (
        "f32[30,60]",
        """
        p = f32[30,60] parameter(0); t = f32[60,30] transpose(p), dimensions={1,0}; z = f32[] constant(0)
        ROOT r = f32[60] reduce(t, z), dimensions={1}, to_apply=f""",
    ),
    "reshaped": (
        "f32[30,60]",
        """
        p = f32[30,60] parameter(0); q = f32[30,60] negate(p); t = f32[36,50] reshape(q); z = f32[] constant(0)
        ROOT r = f32[36] reduce(t, z), dimensions={1}, to_apply=f""",
    ),
    "of a transposed reshape": (
        "f32[8,60]",
        """
        p = f32[8,60] parameter(0); t = f32[60,8] transpose(p), dimensions={1,0}; s = f32[20,24] reshape(t); z = f32[] constant(0)
        ROOT r = f32[20] reduce(s, z), dimensions={1}, to_apply=f""",
    ),
    "padded": (
        "f32[30,60]",
        """
        p = f32[30,60] parameter(0); z = f32[] constant(0); q = f32[33,62] pad(p, z), padding=1_2x0_2
        ROOT r = f32[33] reduce(q, z), dimensions={1}, to_apply=f""",
    ),
    "with two results": (
        "f32[30,60]",
        """
        p = f32[30,60] parameter(0); z = f32[] constant(0); q = f32[30] reduce(p, z), dimensions={1}, to_apply=f
        e = f32[30] exponential(q); n = f32[30] negate(e); ROOT t = (f32[30], f32[30]) tuple(e, n)""",
    ),
    "soft-max": (
        "f32[30,60]",
        """
        p = f32[30,60] parameter(0); z = f32[] constant(0); l = f32[] constant(-inf); x = f32[30] reduce(p, l), dimensions={1}, to_apply=m
        xb = f32[30,60] broadcast(x), dimensions={0}; d = f32[30,60] subtract(p, xb); e = f32[30,60] exponential(d)
        s = f32[30] reduce(e, z), dimensions={1}, to_apply=f; sb = f32[30,60] broadcast(s), dimensions={0}; ROOT q = f32[30,60] divide(e, sb)""",
    ),
    "scalar epilogue of parts": (
        "f32[3000000]",
        """
        p = f32[3000000] parameter(0); z = f32[] constant(0); q = f32[3000000] multiply(p, p)
        r = f32[] reduce(q, z), dimensions={0}, to_apply=f; ROOT s = f32[] sqrt(r)""",
    ),
    "bf16": (
        "f32[30,60]",
        """
        p = f32[30,60] parameter(0); q = f32[30,60] round-nearest-even(p); h = bf16[30,60] convert(q); z = bf16[] constant(0)
        ROOT r = bf16[30] reduce(h, z), dimensions={1}, to_apply=h""",
    ),
}
MAXIMUM = "m {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] maximum(a, b)\n}\n"
WIDENED = """h {
 a = bf16[] parameter(0)
 b = bf16[] parameter(1)
 c = f32[] convert(a)
 d = f32[] convert(b)
 s = f32[] add(c, d)
 ROOT r = bf16[] convert(s)
}
"""


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("name", FUSED)
def test_fused(name):
    shape, lines = FUSED[name]
    dims = [int(d) for d in shape[4:-1].split(",")]
    check(module(lines, body("f32", "add") + MAXIMUM + WIDENED), values("f32", dims), ulp=32)


def test_a_prologue_and_epilogue_make_one_kernel():
    compiled = build(module(FUSED["mean of squares"][1]))
    assert [g.kind for g in compiled.groups] == ["reduce"]


ARGMAX = """best {
 a = f32[] parameter(0)
 i = s32[] parameter(1)
 b = f32[] parameter(2)
 j = s32[] parameter(3)
 g = pred[] compare(a, b), direction=GE
 v = f32[] select(g, a, b)
 w = s32[] select(g, i, j)
 ROOT t = (f32[], s32[]) tuple(v, w)
}
"""


@pytest.mark.parametrize("gone", [0, 1])
def test_several_arrays(gone):
    kept = 70 - gone * 40
    lines = f"""p = f32[30,70] parameter(0); i = s32[30,70] iota(), iota_dimension={gone}; z = f32[] constant(-inf); y = s32[] constant(0)
        ROOT r = (f32[{kept}], s32[{kept}]) reduce(p, i, z, y), dimensions={{{gone}}}, to_apply=best"""
    check(module(lines, ARGMAX), values("f32", [30, 70]))


def test_a_result_of_several_feeds_another():
    lines = """p = f32[30,70] parameter(0); i = s32[30,70] iota(), iota_dimension=1; z = f32[] constant(-inf); y = s32[] constant(0)
        r = (f32[30], s32[30]) reduce(p, i, z, y), dimensions={1}, to_apply=best; v = s32[30] get-tuple-element(r), index=1
        ROOT n = s32[30] negate(v)"""
    check(module(lines, ARGMAX), values("f32", [30, 70]))


def test_order_of_noncommutative_reductions():
    lines = (
        "p = f32[5,40] parameter(0); z = f32[] constant(100); ROOT r = f32[5] reduce(p, z), dimensions={1}, to_apply=f"
    )
    check(module(lines, body("f32", "subtract")), np.round(values("f32", [5, 40])))


WINDOWS = {
    "valid": ("f32[10,12]", "f32[8,6]", "size=3x2 stride=1x2"),
    "same": ("f32[10,12]", "f32[10,12]", "size=3x3 pad=1_1x1_1"),
    "dilated": ("f32[10,12]", "f32[6,3]", "size=3x3 stride=1x2 rhs_dilate=2x3"),
    "base dilated": ("f32[5,6]", "f32[9,9]", "size=1x3 lhs_dilate=2x2"),
    "prefix": ("f32[100]", "f32[100]", "size=100 pad=99_0"),
    "suffix": ("f32[100]", "f32[100]", "size=100 pad=0_99"),
    "prefixes of rows": ("f32[37,50]", "f32[37,50]", "size=1x50 pad=0_0x49_0"),
    "prefixes of columns": ("f32[50,37]", "f32[50,37]", "size=50x1 pad=49_0x0_0"),
    "suffixes between": ("f32[3,5,1100]", "f32[3,5,1100]", "size=1x5x1 pad=0_0x0_4x0_0"),
    "pool": ("f32[2,9,9,40]", "f32[2,4,4,40]", "size=1x3x3x1 stride=1x2x2x1"),
    "over nothing": ("f32[0]", "f32[1]", "size=2 pad=0_2"),
    "over rows of nothing": ("f32[3,0]", "f32[3,2]", "size=1x3 pad=0_0x2_2"),
    "negative": ("f32[10,12]", "f32[6,12]", "size=3x1 pad=-1_-1x0_0"),
}


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize(
    "name,opcode,init", [(n, o, i) for n in WINDOWS for o, i in (("add", "0.25"), ("maximum", "-inf"))]
)
def test_windows(name, opcode, init):
    shape, out, window = WINDOWS[name]
    lines = f"p = {shape} parameter(0); z = f32[] constant({init}); ROOT r = {out} reduce-window(p, z), window={{{window}}}, to_apply=f"
    check(module(lines, body("f32", opcode)), values("f32", [int(d) for d in shape[4:-1].split(",")]), ulp=8)


LOG_ADD = """f { x = f32[] parameter(0) y = f32[] parameter(1) m = f32[] maximum(x, y) d = f32[] subtract(x, y) a = f32[] abs(d)
    n = f32[] negate(a) e = f32[] exponential(n) l = f32[] log-plus-one(e) ROOT r = f32[] add(m, l) }"""


@pytest.mark.parametrize("name", [n for n in WINDOWS if "fixes" in n or "fix" in n])
def test_prefixes_by_any_computation(name):
    shape, out, window = WINDOWS[name]
    lines = f"p = {shape} parameter(0); z = f32[] constant(-1e30); ROOT r = {out} reduce-window(p, z), window={{{window}}}, to_apply=f"
    text = module(lines, LOG_ADD)
    check(text, values("f32", [int(d) for d in shape[4:-1].split(",")]), ulp=64)
    assert " scan " in cyxla.compile(text).explain()


def test_windows_of_several_arrays():
    lines = """p = f32[40] parameter(0); i = s32[40] iota(), iota_dimension=0; z = f32[] constant(-inf); y = s32[] constant(-1)
        ROOT r = (f32[20], s32[20]) reduce-window(p, i, z, y), window={size=3 stride=2 pad=0_1}, to_apply=best"""
    check(module(lines, ARGMAX), values("f32", [40]))


#: name: sizes of the array, first column of the part that is added up along dimension 0
PARTS = {
    "the whole array": ([80, 300], 0),
    "the part ends in the array": ([80, 600], 77),
    "the part ends behind it": ([80, 300], 77),
    "the part begins at the end": ([80, 300], 300),
    "few columns": ([640, 37], 5),
}


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("dtype", ["f32", "f64", "s32", "f16"])
@pytest.mark.parametrize("name", PARTS)
def test_columns_of_padded_parts(name, dtype):
    """Conditions of a block of columns are tested once where they hold for all its columns."""
    (rows, columns), start = PARTS[name]
    part = [rows, min(columns, 300)]
    shape, whole = f"{dtype}[{part[0]},{part[1]}]", f"{dtype}[{rows},{columns}]"
    program = f"""HloModule m
{body(dtype, "add")}
ENTRY e {{
  x = {whole} parameter(0)
  w = {dtype}[{rows}] parameter(1)
  i = s32[] constant(0)
  j = s32[] parameter(2)
  z = {dtype}[] constant(0)
  padded = {dtype}[{rows},{2 * columns}] pad(x, z), padding=0_0x0_{columns}
  part = {shape} dynamic-slice(padded, i, j), dynamic_slice_sizes={{{part[0]},{part[1]}}}
  factors = {shape} broadcast(w), dimensions={{0}}
  product = {shape} multiply(part, factors)
  ROOT r = {dtype}[{part[1]}] reduce(product, z), dimensions={{0}}, to_apply=f
}}"""
    kind = NUMPY[dtype]
    x, w = RNG.integers(-4, 5, (rows, columns)).astype(kind), RNG.integers(-4, 5, rows).astype(kind)
    inside = np.pad(x, ((0, 0), (0, columns)))[:, start:][:, : part[1]]
    result = cyxla.compile(program)(x, w, np.int32(start))
    np.testing.assert_array_equal(result, (inside * w[:, None]).sum(0).astype(kind), strict=True)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("dtype", ["s64", "s32", "u8"])
@pytest.mark.parametrize("dims,gone", [
    ([0], [0]), ([63], [0]), ([64], [0]), ([16384 + 63], [0]), ([100_001], [0]), ([3, 16321], [1]), ([1_300_000], [0]),
    ([320, 70], [0]), ([40, 700], [0]), ([33, 64, 5], [0, 2]), ([0, 3], [0]),
])  # fmt: skip
def test_bools_are_counted_without_overflow(dims, gone, dtype):
    """Sums of bytes that stand for bools are widened in time, also if all of them are true."""
    kept = ",".join(str(n) for d, n in enumerate(dims) if d not in gone)
    shape = ",".join(map(str, dims))
    program = f"""HloModule m
{body(dtype, "add")}
ENTRY e {{
  p = pred[{shape}] parameter(0)
  w = {dtype}[{shape}] convert(p)
  z = {dtype}[] constant(3)
  ROOT r = {dtype}[{kept}] reduce(w, z), dimensions={{{",".join(map(str, gone))}}}, to_apply=f
}}"""
    run = cyxla.compile(program)
    kind = {"u8": np.uint8, "s32": np.int32, "s64": np.int64}[dtype]
    for mask in (np.ones(dims, bool), RNG.random(dims) > 0.3):
        np.testing.assert_array_equal(run(mask), mask.sum(tuple(gone), dtype=kind) + kind(3), strict=True)


#: Reductions of elements that are gathered one by one, from another row each.
OF_GATHERED = {
    "sum": lambda z, i: np.take_along_axis(z, i, 0).sum(),
    "sums of rows": lambda z, i: np.take_along_axis(z, i, 0).sum(1),
    "sums of columns": lambda z, i: np.take_along_axis(z, i, 0).sum(0),
    "extremes": lambda z, i: (np.take_along_axis(z, i, 0).max(), np.take_along_axis(z, i, 0).min(1)),
    "count": lambda z, i: np.take_along_axis(z > 0, i, 0).sum(),
    "counts of rows": lambda z, i: np.take_along_axis(z > 0, i, 0).sum(1),
    "deviation of rows": lambda z, i: np.take_along_axis(z, i, 0).std(1),
    "of a product": lambda z, i: (np.take_along_axis(z, i, 0) * z).sum(1),
    "by two indices": lambda z, i: z[i, np.arange(z.shape[1])].sum(1),
    "known bools": lambda z, i: np.take_along_axis((z > 0).copy() ^ (z.T.copy().T < 1), i, 0).sum(1),
}


@pytest.mark.parametrize("rows, columns", [(7, 5), (3, 40), (40, 3), (9, 700), (2, 1)])
@pytest.mark.parametrize("name", OF_GATHERED)
def test_gathered_elements(name, rows, columns):
    rng = np.random.default_rng(5)
    z, i = rng.standard_normal((rows, columns)), rng.integers(0, rows, (rows, columns))
    got, want = cyxla.jit(OF_GATHERED[name], sizes="exact")(z, i), OF_GATHERED[name](z, i)
    for a, b in zip(*(v if isinstance(v, tuple) else (v,) for v in (got, want)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
