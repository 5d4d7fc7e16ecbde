"""Opcodes with their own kernels agree with the interpreter, many instructions in one program to save compilations."""

# ruff: noqa: E501  programs read best a line at a time

import numpy as np
import pytest
from support.hlo.differential import agree, arguments

import cyxla
from cyxla.types import element_type
from cyxla.xla.cpu.kernel.cost import MAX_TASKS, TASK_NS, tasks


def entry(parameters: list[str], lines: list[str], functions: str = "") -> str:
    """A program whose result is a tuple of all its lines; a line is ``shape opcode(..)``."""
    names = [f"  p{n} = {shape} parameter({n})" for n, shape in enumerate(parameters)]
    body = [f"  v{n} = {line}" for n, line in enumerate(lines)]
    shapes = ", ".join(shape_of(line) for line in lines)
    root = f"  ROOT r = ({shapes}) tuple({', '.join(f'v{n}' for n in range(len(lines)))})"
    return "\n".join(["HloModule m", functions, "ENTRY e {", *names, *body, root, "}"])


def shape_of(line: str) -> str:
    if not line.startswith("("):
        return line.split(" ")[0]
    depth = 0
    for k, c in enumerate(line):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return line[: k + 1]
    raise AssertionError(line)


# --- dot ----------------------------------------------------------------------------------------------------------

SIZES = [(1, 1, 1), (3, 5, 7), (7, 33, 65), (1, 100, 300), (300, 100, 1), (40, 20, 130), (4, 0, 5), (0, 3, 2)]


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f16", "s32", "s8", "u64", "pred", "c64", "c128"])
def test_dot(dtype):
    parameters, lines = [], []
    for m, k, n in SIZES:
        p = len(parameters)
        parameters += [
            f"{dtype}[{m},{k}]",
            f"{dtype}[{k},{n}]",
            f"{dtype}[{n},{k}]",
            f"{dtype}[2,{k},{m}]",
            f"{dtype}[{n},2,{k}]",
        ]
        lines += [
            f"{dtype}[{m},{n}] dot(p{p}, p{p + 1}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
            f"{dtype}[{m},{n}] dot(p{p}, p{p + 2}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}",
            f"{dtype}[2,{m},{n}] dot(p{p + 3}, p{p + 4}), lhs_batch_dims={{0}}, rhs_batch_dims={{1}}, "
            "lhs_contracting_dims={1}, rhs_contracting_dims={2}",
        ]  # fmt: skip
    agree(entry(parameters, lines), ulp=64, floor=1.0)


DIMS = [
    ("f32[2,3,4,5]", "f32[4,2,5,6]", "f32[2,3,6] dot(p0, p1), lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2,3}, rhs_contracting_dims={0,2}"),
    ("f32[4,3]", "f32[5,2]", "f32[4,3,5,2] dot(p0, p1)"),
    ("f32[4,3]", "f32[4,3]", "f32[] dot(p0, p1), lhs_contracting_dims={1,0}, rhs_contracting_dims={1,0}"),
    ("s8[40,30]", "s8[30,20]", "s32[40,20] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    ("bf16[40,30]", "bf16[30,20]", "f32[40,20] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    ("f32[100,8,1,9]", "f32[9,100,1,8]", "f32[100,1,1] dot(p0, p1), lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={3,1}, rhs_contracting_dims={0,3}"),
]  # fmt: skip


@pytest.mark.parametrize("lhs, rhs, line", DIMS, ids=[d[2].split("),")[0][:40] for d in DIMS])
def test_dot_dimensions(lhs, rhs, line):
    agree(entry([lhs, rhs], [line]), ulp=64, floor=1.0)


def test_a_product_large_enough_for_tasks_and_panels():
    line = "f32[500,300] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={1}"
    executable = agree(entry(["f32[500,1024]", "f32[300,1024]"], [line]), ulp=64, floor=1.0)
    assert "parallel_for(ctx, k" in executable.c_source


# --- convolution --------------------------------------------------------------------------------------------------

WINDOWS = [
    ("f32[2,9,8,3]", "f32[3,2,3,70]", "f32[2,7,7,70]", "window={size=3x2}, dim_labels=b01f_01io->b01f"),
    ("f32[2,3,9,8]", "f32[5,3,3,3]", "f32[2,5,5,5]", "window={size=3x3 stride=2x2 pad=1_1x2_1}, dim_labels=bf01_oi01->bf01"),
    ("bf16[1,6,10]", "bf16[8,3,4]", "bf16[1,8,18]", "window={size=4 pad=2_3 lhs_dilate=2 rhs_dilate=2 rhs_reversal=1}, dim_labels=bf0_oi0->bf0, feature_group_count=2"),
    ("f64[2,5,6,40]", "f64[3,3,1,40]", "f64[2,5,6,40]", "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=40"),
    ("f32[4,7,3]", "f32[2,3,8]", "f32[2,6,8]", "window={size=2}, dim_labels=b0f_0io->b0f, batch_group_count=2"),
    ("s32[1,4,5,2]", "s32[2,2,2,3]", "s32[1,3,4,3]", "window={size=2x2}, dim_labels=b01f_01io->b01f"),
    ("c64[1,4,5,2]", "c64[2,2,2,3]", "c64[1,3,4,3]", "window={size=2x2}, dim_labels=b01f_01io->b01f"),
    ("f32[3,4]", "f32[4,5]", "f32[3,5]", "dim_labels=bf_io->bf"),
    ("f32[2,5,40,7]", "f32[3,3,7,37]", "f32[2,5,20,37]", "window={size=3x3 stride=1x2 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"),
    ("f32[2,6,31,4]", "f32[2,5,4,130]", "f32[2,4,22,130]", "window={size=2x5 pad=-1_0x-2_1 rhs_dilate=1x2}, dim_labels=b01f_01io->b01f"),
    ("s32[3,4,6,2]", "s32[3,3,1,2]", "s32[3,3,6,2]", "window={size=3x3 stride=2x1 pad=2_1x2_0}, dim_labels=b01f_01io->b01f, feature_group_count=2"),
    ("f32[1,3,4]", "f32[3,4,17]", "f32[1,1,17]", "window={size=3 pad=2_0 rhs_dilate=2}, dim_labels=b0f_0io->b0f"),
    ("f64[1,30,600]", "f64[3,600,24]", "f64[1,30,24]", "window={size=3 pad=1_1 rhs_reversal=1}, dim_labels=b0f_0io->b0f"),
]  # fmt: skip


@pytest.mark.parametrize("x, w, result, attributes", WINDOWS, ids=[f"{w[0]}*{w[1]}" for w in WINDOWS])
def test_convolution(x, w, result, attributes):
    agree(entry([x, w], [f"{result} convolution(p0, p1), {attributes}"]), ulp=64, floor=1.0)


# --- sort, topk ---------------------------------------------------------------------------------------------------

ORDERS = """
up { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT, type=TOTALORDER }
last_digit {
  a = s32[] parameter(0) b = s32[] parameter(1) c = f32[] parameter(2) d = f32[] parameter(3)
  ten = s32[] constant(10) x = s32[] remainder(a, ten) y = s32[] remainder(b, ten)
  ROOT r = pred[] compare(x, y), direction=GT
}
"""


def test_sort():
    lines = [
        "f32[7,50] sort(p0), dimensions={1}, to_apply=up",
        "f32[7,50] sort(p0), dimensions={0}, to_apply=up",
        "(s32[7,50], f32[7,50]) sort(p1, p0), dimensions={1}, is_stable=true, to_apply=last_digit",
        "(s32[7,50], f32[7,50]) sort(p1, p0), dimensions={0}, is_stable=true, to_apply=last_digit",
        "f32[1] sort(p2), dimensions={0}, to_apply=up",
        "f32[3000] sort(p3), dimensions={0}, to_apply=up",
    ]
    text = entry(["f32[7,50]", "s32[7,50]", "f32[1]", "f32[3000]"], lines, ORDERS)
    args = arguments(cyxla.hlo.parse_module(text), 3, 0.4)
    agree(text, *args, ulp=0)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "s32", "u8"])
def test_topk(dtype):
    lines = [f"({dtype}[3,4], s32[3,4]) topk(p0), k=4, largest={flag}" for flag in ("true", "false")]
    text = entry([f"{dtype}[3,20]"], lines)
    agree(text, *arguments(cyxla.hlo.parse_module(text), 5, 0.5), ulp=0)


# --- scatter, select-and-scatter ----------------------------------------------------------------------------------

SCATTERS = """
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }
last { a = f32[] parameter(0) ROOT b = f32[] parameter(1) }
both {
  a = f32[] parameter(0) b = s32[] parameter(1) c = f32[] parameter(2) d = s32[] parameter(3)
  x = f32[] maximum(a, c) y = s32[] subtract(b, d) ROOT r = (f32[], s32[]) tuple(x, y)
}
ge { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=GE }
"""


def test_scatter():
    rows = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
    points = "update_window_dims={}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={1,0}, index_vector_dim=0"
    windows = (
        "update_window_dims={0,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1"
    )
    batched = (
        "update_window_dims={1}, inserted_window_dims={}, input_batching_dims={0}, scatter_indices_batching_dims={0}, "
        "scatter_dims_to_operand_dims={1}, index_vector_dim=1"
    )
    lines = [
        f"f32[6,4] scatter(p0, p1, p2), {rows}, to_apply=add",
        f"f32[6,4] scatter(p0, p1, p2), {rows}, to_apply=last",
        f"f32[6,4] scatter(p0, p3, p4), {points}, to_apply=add",
        f"f32[6,4] scatter(p0, p5, p6), {windows}, to_apply=add",
        f"(f32[6,4], s32[6,4]) scatter(p0, p7, p1, p2, p8), {rows}, to_apply=both",
        f"f32[6,4] scatter(p0, p9, p10), {batched}, to_apply=add",
    ]
    shapes = [
        "f32[6,4]",
        "s32[5]",
        "f32[5,4]",
        "s64[2,9]",
        "f32[9]",
        "s32[3,2]",
        "f32[2,3,3]",
        "s32[6,4]",
        "s32[5,4]",
        "s8[6]",
        "f32[6,2]",
    ]
    text = entry(shapes, lines, SCATTERS)
    args = arguments(cyxla.hlo.parse_module(text))
    rng = np.random.default_rng(1)
    for k, dtype in ((1, np.int32), (3, np.int64), (5, np.int32), (9, np.int8)):  # some outside, on either side
        args[k] = rng.integers(-2, 8, args[k].shape).astype(dtype)
    agree(text, *args)


def test_select_and_scatter():
    lines = [
        "f32[6,7] select-and-scatter(p0, p1, p2), window={size=2x3 stride=2x2}, select=ge, scatter=add",
        "f32[6,7] select-and-scatter(p0, p3, p2), window={size=3x3 stride=1x2 pad=1_1x1_1}, select=ge, scatter=add",
    ]
    agree(entry(["f32[6,7]", "f32[3,3]", "f32[]", "f32[6,4]"], lines, SCATTERS), ulp=16)


# --- random bits --------------------------------------------------------------------------------------------------

DRAWS = [
    ("rng_three_fry", 2, ["u32[7]", "u32[3,6,5]", "u64[9]", "u8[5,5]", "u16[40000]", "u32[]"]),
    ("rng_philox", 3, ["u32[7]", "u64[9]", "u8[5,5]", "u16[40001]", "u32[]"]),
    ("rng_philox", 2, ["u32[7]", "u64[3]"]),
    ("rng_default", 2, ["u32[9]"]),
]


@pytest.mark.parametrize("algorithm, words, shapes", DRAWS)
def test_random_bits(algorithm, words, shapes):
    lines = [f"(u64[{words}], {s}) rng-bit-generator(p0), algorithm={algorithm}" for s in shapes]
    state = np.array([0x0123456789ABCDEF, 2**64 - 3, 2**64 - 1][:words], np.uint64)  # both carries happen
    agree(entry([f"u64[{words}]"], lines), state, ulp=0)


# --- transforms and factorisations --------------------------------------------------------------------------------


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("dtype", ["f32", "f64", "c64", "c128", "bf16"])
def test_linear_algebra(dtype):
    n, m, kind = 20, 33, element_type(dtype).numpy_dtype
    rng = np.random.default_rng(0)
    a = rng.standard_normal((2, n, n)) + (1j * rng.standard_normal((2, n, n)) if dtype[0] == "c" else 0)
    positive = a @ a.conj().transpose(0, 2, 1) + n * np.eye(n)
    square, tall, wide = f"{dtype}[2,{n},{n}]", f"{dtype}[2,{n},{m}]", f"{dtype}[2,{m},{n}]"
    lines = [f"{square} cholesky(p0), lower={lower}" for lower in ("true", "false")]
    for lower in ("true", "false"):
        for transpose in ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"):
            tail = f"lower={lower}, transpose_a={transpose}"
            lines += [
                f"{tall} triangular-solve(p1, p2), left_side=true, {tail}",
                f"{wide} triangular-solve(p1, p3), left_side=false, {tail}",
                f"{tall} triangular-solve(p4, p2), left_side=true, unit_diagonal=true, {tail}",
            ]
    args = [
        positive, a + 4 * n * np.eye(n), rng.standard_normal((2, n, m)), rng.standard_normal((2, m, n)), a / (4 * n)
    ]  # fmt: skip
    agree(entry([square, square, tall, wide, square], lines), *(x.astype(kind) for x in args), ulp=64, floor=1.0)


def test_cholesky_of_indefinite_matrices_is_nan():
    x = np.stack([np.eye(3), np.array([[1, 2, 0], [2, 1, 0], [0, 0, 1]])]).astype(np.float32)
    agree(entry(["f32[2,3,3]"], ["f32[2,3,3] cholesky(p0), lower=true"]), x)


# --- control-like -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reverse", ["true", "false"])
@pytest.mark.parametrize("length", [0, 1, 6])
def test_scan(length, reverse):
    step = """
step {
  a = f32[3] parameter(0) c = f32[3] parameter(1)
  s = f32[3] add(a, c) p = f32[3] multiply(a, c)
  ROOT t = (f32[3], f32[3]) tuple(p, s)
}"""
    line = (
        f"(f32[3,{length}], f32[3]) scan(p0, p1), dimensions={{1}}, num_carries=1, is_reverse={reverse}, to_apply=step"
    )
    agree(entry([f"f32[3,{length}]", "f32[3]"], [line], step))


def test_bits_between_widths():
    lines = [
        "u8[3,4] bitcast-convert(p0)",
        "u16[3,2] bitcast-convert(p0)",
        "f32[3] bitcast-convert(p1)",
        "f64[2] bitcast-convert(p2)",
        "bf16[3,2] bitcast-convert(p0)",
        "u4[3,8] bitcast-convert(p0)",
        "c64[3] bitcast-convert(p3)",
        "c64[3,2] bitcast-convert(p4)",
        "c128[3] bitcast-convert(p5)",
    ]
    agree(entry(["f32[3]", "s8[3,4]", "u32[2,2]", "c64[3]", "c128[3]", "c64[3,2]"], lines), ulp=0)


@pytest.mark.parametrize("ns, units, wanted", [
    (10, 1000, 1), (0.49 * TASK_NS, 1000, 1), (TASK_NS, 1000, 1), (5.5 * TASK_NS, 1000, 5), (5.5 * TASK_NS, 3, 3),
    (1e12, 1000, MAX_TASKS), (1e12, 0, 1),
])  # fmt: skip
def test_work_is_cut_into_tasks_by_its_cost(ns, units, wanted):
    assert tasks(ns, units) == wanted
