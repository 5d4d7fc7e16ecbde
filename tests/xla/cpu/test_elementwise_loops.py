"""Loop kernels against the evaluator: movement in all its combinations, several outputs, in-place updates, tasks."""

# ruff: noqa: E501  programs read best a line at a time

import re

import numpy as np
import pytest
from support.hlo.kernel_groups import build, check

import cyxla

RNG = np.random.default_rng(7)


def random(text: str) -> np.ndarray:
    """An array for a spelling such as f32[3,4]."""
    dtype, dims = text.rstrip("]").split("[")
    shape = [int(d) for d in dims.split(",") if d]
    if dtype == "pred":
        return RNG.integers(0, 2, shape).astype(bool)
    if dtype[0] in "su":
        return RNG.integers(0, 100, shape).astype({"s": "int", "u": "uint"}[dtype[0]] + dtype[1:])
    if dtype == "c64":
        return (RNG.normal(size=shape) + 1j * RNG.normal(size=shape)).astype(np.complex64)
    return RNG.normal(size=shape).astype({"f16": np.float16, "f32": np.float32, "f64": np.float64}[dtype])


# name: parameters; lines, the last of which is the root
CASES = {
    "scalar": ("f32[] f32[]", "a = f32[] add(p0, p1)", "r = f32[] multiply(a, a)"),
    "flat": ("f32[7]", "r = f32[7] negate(p0)"),
    "prime": ("f32[5003]", "r = f32[5003] negate(p0)"),
    "prime rows": ("f32[3,5003] f32[5003]", "b = f32[3,5003] broadcast(p1), dimensions={1}", "r = f32[3,5003] add(p0, b)"),
    "rows": ("f32[37,100] f32[100]", "b = f32[37,100] broadcast(p1), dimensions={1}", "r = f32[37,100] add(p0, b)"),
    "columns": ("f32[37,100] f32[37]", "b = f32[37,100] broadcast(p1), dimensions={0}", "r = f32[37,100] add(p0, b)"),
    "middle": ("f32[3,5,7] f32[5]", "b = f32[3,5,7] broadcast(p1), dimensions={1}", "r = f32[3,5,7] add(p0, b)"),
    "transposed broadcast": ("f32[5,3]", "r = f32[3,2,5] broadcast(p0), dimensions={2,0}"),
    "transpose": ("f32[20,33]", "t = f32[33,20] transpose(p0), dimensions={1,0}", "r = f32[33,20] negate(t)"),
    "transpose and itself": ("f32[20,20]", "t = f32[20,20] transpose(p0), dimensions={1,0}", "r = f32[20,20] add(t, p0)"),
    "transpose 3": ("f32[4,5,6]", "r = f32[6,4,5] transpose(p0), dimensions={2,0,1}"),
    "split then transpose": ("f32[12,10]", "s = f32[3,4,10] reshape(p0)", "r = f32[4,3,10] transpose(s), dimensions={1,0,2}"),
    "transpose then merge": ("f32[4,6,5]", "t = f32[6,4,5] transpose(p0), dimensions={1,0,2}", "r = f32[24,5] reshape(t)"),
    "merge innermost": ("f32[4,6,5]", "t = f32[4,5,6] transpose(p0), dimensions={0,2,1}", "r = f32[4,30] reshape(t)"),
    "odd reshape": (
        "f32[6,4]", "s = f32[8,3] reshape(p0)", "t = f32[3,8] transpose(s), dimensions={1,0}", "u = f32[4,6] reshape(t)",
        "v = f32[6,4] transpose(u), dimensions={1,0}", "r = f32[6,4] add(v, p0)"),
    "reverse": ("f32[7,9]", "r = f32[7,9] reverse(p0), dimensions={1}"),
    "reverse both, reshaped": ("f32[8,9]", "v = f32[8,9] reverse(p0), dimensions={0,1}", "r = f32[6,12] reshape(v)"),
    "slice": ("f32[10,20]", "r = f32[4,5] slice(p0), slice={[1:9:2], [3:18:3]}"),
    "slices overlap": (
        "f32[100]", "a = f32[99] slice(p0), slice={[0:99]}", "b = f32[99] slice(p0), slice={[1:100]}", "r = f32[99] subtract(b, a)"),
    "pad": ("f32[5,6] f32[]", "n = f32[5,6] negate(p0)", "r = f32[8,9] pad(n, p1), padding=1_2x0_3"),
    "pad inside": ("f32[5,6] f32[]", "r = f32[12,17] pad(p0, p1), padding=1_2_1x1_0_2"),
    "pad negative": ("f32[9,9] f32[]", "r = f32[7,10] pad(p0, p1), padding=-1_-1x-2_3"),
    "pad negative inside": ("f32[9] f32[]", "r = f32[22] pad(p0, p1), padding=-2_-1_2"),
    "pad to nothing but filler": ("f32[3] f32[]", "r = f32[4] pad(p0, p1), padding=5_-4"),
    "pad of pad, added": (
        "f32[30,40] f32[]", "a = f32[32,42] pad(p0, p1), padding=1_1x1_1", "b = f32[32,42] pad(p0, p1), padding=2_0x0_2",
        "r = f32[32,42] add(a, b)"),
    "pad 4": ("f32[2,5,6,3] f32[]", "r = f32[2,7,8,3] pad(p0, p1), padding=0_0x1_1x1_1x0_0"),
    "concatenate": (
        "f32[3,4] f32[3,5] f32[3,1]", "n = f32[3,5] negate(p1)", "r = f32[3,10] concatenate(p0, n, p2), dimensions={1}"),
    "concatenate rows": ("f32[3,4] f32[0,4] f32[2,4]", "r = f32[5,4] concatenate(p0, p1, p2), dimensions={0}"),
    "concatenate many": (
        "f32[2,2]", "r = f32[2,60] concatenate(" + ", ".join(["p0"] * 30) + "), dimensions={1}"),
    "concatenate read": (
        "f32[30] f32[40]", "c = f32[70] concatenate(p0, p1), dimensions={0}", "v = f32[70] reverse(c), dimensions={0}",
        "r = f32[70] add(c, v)"),
    "iota": ("f32[]", "i = s32[5,7] iota(), iota_dimension=1", "j = s32[5,7] iota(), iota_dimension=0", "r = s32[5,7] subtract(i, j)"),
    "iota of narrow types": ("f32[]", "i = s8[300] iota(), iota_dimension=0", "j = f16[300] iota(), iota_dimension=0", "c = f16[300] convert(i)",
        "r = f16[300] add(c, j)"),
    "iota reshaped": ("f32[]", "i = s32[24] iota(), iota_dimension=0", "r = s32[4,6] reshape(i)"),
    "triangle": (
        "f32[40,40]", "i = s32[40,40] iota(), iota_dimension=0", "j = s32[40,40] iota(), iota_dimension=1",
        "m = pred[40,40] compare(i, j), direction=GE", "z = f32[] constant(0)", "zz = f32[40,40] broadcast(z), dimensions={}",
        "r = f32[40,40] select(m, p0, zz)"),
    "select by scalar": ("pred[] f32[9] f32[9]", "r = f32[9] select(p0, p1, p2)"),
    "clamp by scalars": ("f32[] f32[90] f32[]", "r = f32[90] clamp(p0, p1, p2)"),
    "table": ("f32[4,3]", "t = f32[3] constant({1, nan, -3.5})", "b = f32[4,3] broadcast(t), dimensions={1}", "r = f32[4,3] multiply(p0, b)"),
    "table of f64": ("f64[3]", "t = f64[3] constant({1, inf, -3.5})", "r = f64[3] multiply(p0, t)"),
    "table of s64": ("s64[2]", "t = s64[2] constant({-9223372036854775808, 5})", "r = s64[2] add(p0, t)"),
    "dynamic-slice": (
        "f32[20,30] s32[] s32[]", "s = f32[4,5] dynamic-slice(p0, p1, p2), dynamic_slice_sizes={4,5}", "r = f32[4,5] negate(s)"),
    "dynamic-slice by vector": ("f32[20,30] s32[2]", "r = f32[4,5] dynamic-slice(p0, p1), dynamic_slice_sizes={4,5}"),
    "dynamic-slice by constants": (
        "f32[20,30]", "a = s32[] constant(-3)", "b = u8[] constant(200)", "c = s32[] convert(b)",
        "r = f32[4,5] dynamic-slice(p0, a, c), dynamic_slice_sizes={4,5}"),
    "gather rows": (
        "f32[20,30] s32[6]",
        "r = f32[6,30] gather(p0, p1), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,30}"),
    "gather windows": (
        "f32[20,30] s64[3,4,2]",
        "r = f32[3,5,4,6] gather(p0, p1), offset_dims={1,3}, collapsed_slice_dims={}, start_index_map={1,0}, index_vector_dim=2, "
        "slice_sizes={5,6}"),
    "gather batched": (
        "f32[3,9] s32[3,4]",
        "r = f32[3,4] gather(p0, p1), offset_dims={}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, "
        "start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1}"),
    "gather of computed": (
        "f32[20,30] s32[6]", "n = f32[20,30] negate(p0)", "z = s32[] constant(0)", "zz = s32[6] broadcast(z), dimensions={}",
        "t = s32[] constant(20)", "tt = s32[6] broadcast(t), dimensions={}", "l = pred[6] compare(p1, zz), direction=LT",
        "a = s32[6] add(p1, tt)", "i = s32[6] select(l, a, p1)",
        "r = f32[6,30] gather(n, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,30}"),
    "update": ("f32[20,30] f32[4,5] s32[] s32[]", "n = f32[4,5] negate(p1)", "r = f32[20,30] dynamic-update-slice(p0, n, p2, p3)"),
    "update from itself": (
        "f32[20] s32[]", "one = s32[] constant(1)", "j = s32[] add(p1, one)", "s = f32[5] dynamic-slice(p0, p1), dynamic_slice_sizes={5}",
        "n = f32[5] negate(s)", "r = f32[20] dynamic-update-slice(p0, n, j)"),
    "update of scalar": ("f32[] f32[]", "n = f32[] negate(p0)", "r = f32[] dynamic-update-slice(n, p1)"),
    "two outputs": (
        "f32[50,20]", "a = f32[50,20] exponential(p0)", "b = f32[50,20] add(a, a)", "c = f32[50,20] negate(a)",
        "r = (f32[50,20], f32[50,20], f32[50,20]) tuple(b, a, c)"),
    "two outputs reshaped": (
        "f32[50,20]", "a = f32[50,20] negate(p0)", "b = f32[1000] reshape(a)", "c = f32[1000] add(b, b)",
        "r = (f32[50,20], f32[1000]) tuple(a, c)"),
    "two outputs that depend through a transpose": (
        "f32[20,20]", "a = f32[20,20] exponential(p0)", "t = f32[20,20] transpose(a), dimensions={1,0}", "b = f32[20,20] add(a, t)",
        "r = (f32[20,20], f32[20,20]) tuple(a, b)"),
    "complex": ("c64[33] c64[33]", "a = c64[33] multiply(p0, p1)", "r = f32[33] abs(a)"),
    "mixed": (
        "f16[100] s8[100] pred[100]", "a = f32[100] convert(p0)", "b = f32[100] convert(p1)", "c = f32[100] add(a, b)",
        "d = f32[100] select(p2, c, a)", "r = f16[100] convert(d)"),
    "bitcast": ("f32[100]", "r = s32[100] bitcast-convert(p0)"),
    "map": ("f32[100] f32[100]", "r = f32[100] map(p0, p1), dimensions={0}, to_apply=mul_add"),
    "remainder": ("f32[300] f32[300]", "r = f32[300] remainder(p0, p1)"),
    "empty": ("f32[0,3]", "r = f32[0,3] negate(p0)"),
    "long rows broadcast down": ("f32[2,40000]", "s = f32[40000] slice(p0), slice={[0:40000]}".replace("f32[40000] slice(p0), slice={[0:40000]}",
        "f32[1,40000] slice(p0), slice={[1:2], [0:40000]}"), "t = f32[40000] reshape(s)", "b = f32[3,40000] broadcast(t), dimensions={1}",
        "r = f32[3,40000] negate(b)"),
}  # fmt: skip
MAP = """
mul_add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  m = f32[] multiply(x, y)
  ROOT a = f32[] add(m, x)
}
"""
ULP = {"two outputs": 4, "two outputs that depend through a transpose": 4, "complex": 4}


def module(name: str) -> tuple[str, list[np.ndarray]]:
    """Text and inputs of a case."""
    parameters, *lines = CASES[name]
    shapes = parameters.split()
    head = [f"p{i} = {s} parameter({i})" for i, s in enumerate(shapes)]
    body = "\n  ".join([*head, *lines[:-1], "ROOT " + lines[-1]])
    return f"HloModule m\n{MAP}\nENTRY e {{\n  {body}\n}}\n", [random(s) for s in shapes]


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("name", CASES)
def test_like_the_evaluator(name):
    text, inputs = module(name)
    check(text, *inputs, ulp=ULP.get(name, 0))


@pytest.mark.parametrize("start", [-5, 0, 3, 16, 17, 1000])
def test_starts_are_clamped(start):
    for name in ("dynamic-slice", "update"):
        text, inputs = module(name)
        check(text, *inputs[:-2], np.int32(start), np.int32(2 * start))


@pytest.mark.parametrize("start", [-5, 0, 2, 3, 4, 16, 1000])
@pytest.mark.parametrize("operands, line", [
    ("f32[20,7,4] s32[]", "r = f32[4,5,2] dynamic-slice(p0, p1, p1, p1), dynamic_slice_sizes={4,5,2}"),
    ("f32[20,7,4] s32[] f32[4,5,2]", "r = f32[20,7,4] dynamic-update-slice(p0, p2, p1, p1, p1)"),
])  # fmt: skip
def test_one_start_is_clamped_in_each_dimension_of_its_own(operands, line, start):
    shapes = operands.split()
    body = "\n  ".join([*(f"p{i} = {s} parameter({i})" for i, s in enumerate(shapes)), "ROOT " + line])
    inputs = [random(s) if s != "s32[]" else np.int32(start) for s in shapes]
    check(f"HloModule m\nENTRY e {{\n  {body}\n}}\n", *inputs)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("start", [-5, 0, 3, 149, 150, 1000])
@pytest.mark.parametrize("dtype", ["f32", "f64", "s8", "s64", "f16", "c64", "pred"])
def test_parts_of_padded_arrays_are_masked_loads(dtype, start):
    text = f"""HloModule m
ENTRY e {{
  p0 = {dtype}[6,150] parameter(0)
  p1 = s32[] parameter(1)
  zero = s32[] constant(0)
  filler = {dtype}[] constant({{}})
  wide = {dtype}[6,300] pad(p0, filler), padding=0_0x0_150
  ROOT r = {dtype}[6,150] dynamic-slice(wide, zero, p1), dynamic_slice_sizes={{6,150}}
}}
""".replace("{}", {"pred": "true", "c64": "(1, 2)"}.get(dtype, "3"))
    compiled = check(text, random(f"{dtype}[6,150]"), np.int32(start))
    assert dtype == "c64" or not re.search(r"const int32_t n\d+ = .*\? .* : 0;", compiled.text)


@pytest.mark.parametrize("size", [1, 2, 15, 16, 63, 1000, 4096, 4097, 4160, 5000, 8191, 100003])
def test_lengths(size):
    text = f"HloModule m\nENTRY e {{\n p = f32[{size}] parameter(0)\n e = f32[{size}] negate(p)\n ROOT r = f32[{size}] cosine(e)\n}}"
    compiled = check(text, np.linspace(-3, 25, size, dtype=np.float32), ulp=4)
    assert len(compiled.steps) == 1


def test_rare_lanes_of_blocks():
    x = np.linspace(-3, 3, 3000, dtype=np.float32)
    x[[5, 1500, 2999]] = 1e10, -3e38, np.inf
    check("HloModule m\nENTRY e {\n p = f32[3000] parameter(0)\n ROOT r = f32[3000] cosine(p)\n}", x, ulp=4)


def test_large_outputs_are_streamed():
    n = 7_000_001
    compiled = check(
        f"HloModule m\nENTRY e {{\n p = f32[{n}] parameter(0)\n ROOT r = f32[{n}] negate(p)\n}}", random(f"f32[{n}]")
    )
    assert "cyx_stream(" in compiled.text
    assert compiled.steps[0].kernel.tasks > 1


def test_boxes_have_no_guards():
    text, _ = module("pad 4")
    c = build(text).steps[0].kernel.text
    assert "?" not in c
    text, _ = module("concatenate")
    assert "?" not in build(text).steps[0].kernel.text


def test_in_place_only_where_each_element_is_read_where_it_is_written():
    step = build(module("flat")[0]).steps[0]
    assert step.in_place == ((0, 0),)
    assert build(module("transpose")[0]).steps[0].in_place == ()
    assert build(module("transpose and itself")[0]).steps[0].in_place == ()


def test_equal_work_gives_equal_text():
    a, b = (
        build(f"HloModule m\nENTRY e {{\n {x} = f32[9] parameter(0)\n ROOT {y} = f32[9] negate({x})\n}}").steps[0]
        for x, y in ("ab", "cd")
    )
    assert a.kernel.text == b.kernel.text


def test_the_first_task_is_one_of_the_largest_box():
    """The thread pool times it to see whether the others are worth waking."""
    text = (
        "HloModule m\nENTRY e { x = f32[500,1000] parameter(0) a = f32[1,1000] slice(x), slice={[0:1], [0:1000]} "
        "b = f32[499,1000] slice(x), slice={[1:500], [0:1000]} c = f32[499,1000] tanh(b) "
        "ROOT r = f32[500,1000] concatenate(a, c), dimensions={0} }"
    )
    source = cyxla.compile(text).c_source
    kernel = source[source.index("if (begin < ") :]
    first = kernel[: kernel.index("(bufs")].split()[-1]
    assert "cyx_tanh" in source.split(f"static void {first}(")[1].split("return CYX_OK")[0].split("static void")[0]
