"""Large windows reduced in few steps agree with the reduction of each window."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hlo.programs import assert_same

import cyxla
from cyxla.types import element_type
from cyxla.xla.hlo import parse_module
from cyxla.xla.passes.expand import window as expand_window

UNITS = {"maximum": "-inf", "minimum": "inf", "add": "0", "multiply": "1"}


def text(dtype, dims, out, window, opcode, init):
    return (
        f"HloModule m f {{ x = {dtype}[] parameter(0) y = {dtype}[] parameter(1) ROOT r = {dtype}[] {opcode}(x, y) }} "
        f"ENTRY e {{ p = {dtype}[{dims}] parameter(0) z = {dtype}[] constant({init}) "
        f"ROOT r = {dtype}[{out}] reduce-window(p, z), window={{{window}}}, to_apply=f }}"
    )


def compare(program, x, dtype, ulp):
    module = parse_module(program)
    want = cyxla.compile(module, platform="interpreter")(x)
    changed = expand_window.run(module)
    module.verify()
    for platform in ("interpreter", "cpu"):
        assert_same(cyxla.compile(module, platform=platform, cache=False)(x), want, element_type(dtype), ulp, floor=1.0)
    return changed


def windows_of(module):
    return [i.attrs["window"] for i in module.entry.post_order() if i.opcode == "reduce-window"]


CASES = [  # dims, out, window, does it change
    ("200",     "100",     "size=101",                        True),
    ("200",     "200",     "size=101 pad=50_50",              True),
    ("200",     "50",      "size=101 stride=2",               True),
    ("300",     "100",     "size=101 rhs_dilate=2",           True),
    ("200",     "3",       "size=101 stride=40",              False),
    ("40,30",   "40,30",   "size=9x9 pad=4_4x4_4",            True),
    ("40,60",   "20,30",   "size=6x40 stride=2x1 pad=2_3x5_4", True),
    ("20,7,30", "5,7,24",  "size=16x1x7",                     True),
    ("100",     "100",     "size=100 pad=99_0",               False),
    ("10,12",   "8,10",    "size=3x3",                        False),
    ("60",      "40",      "size=60 lhs_dilate=2 pad=-10_-10", False),
]  # fmt: skip


@pytest.mark.slow_but_every(6)
@pytest.mark.parametrize("dims, out, window, changes", CASES)
def test_float_windows(dims, out, window, changes):
    functions, lines = "HloModule m\n", []
    for opcode, unit in UNITS.items():
        functions += f"{opcode} {{ x = f32[] parameter(0) y = f32[] parameter(1) ROOT r = f32[] {opcode}(x, y) }}\n"
        windows = f"reduce-window(p, z_{opcode}), window={{{window}}}, to_apply={opcode}"
        lines.append(f"z_{opcode} = f32[] constant({unit}) r_{opcode} = f32[{out}] {windows}")
    root = f"ROOT t = ({', '.join([f'f32[{out}]'] * len(UNITS))}) tuple({', '.join(f'r_{name}' for name in UNITS)})"
    program = "\n".join([f"{functions}ENTRY e {{ p = f32[{dims}] parameter(0)", *lines, root, "}"])
    x = np.random.default_rng(0).uniform(0.9, 1.1, [int(d) for d in dims.split(",")]).astype(np.float32)
    module = parse_module(program)
    wanted = cyxla.compile(module, platform="interpreter")(x)
    assert expand_window.run(module) == changes
    module.verify()
    for opcode, unit in UNITS.items():
        assert expand_window.run(parse_module(text("f32", dims, out, window, opcode, unit))) == changes, opcode
    for platform in ("interpreter", "cpu"):
        for got, want in zip(cyxla.compile(module, platform=platform, cache=False)(x), wanted, strict=True):
            assert_same(got, want, element_type("f32"), 200, floor=1.0)


@pytest.mark.parametrize("dtype, opcode, init", [
    ("s32", "add", "0"), ("s32", "add", "7"), ("u8", "maximum", "0"), ("s8", "minimum", "127"), ("s64", "and", "-1"),
    ("u16", "xor", "0"), ("pred", "or", "false"), ("pred", "and", "true"), ("s32", "multiply", "1"),
    ("f64", "add", "0"), ("bf16", "maximum", "-inf"), ("bf16", "add", "0"), ("c64", "add", "(0, 0)"),
])  # fmt: skip
def test_types(dtype, opcode, init):
    kind = element_type(dtype).numpy_dtype
    x = np.random.default_rng(1).integers(0, 100, (3, 90)).astype(kind)
    program = text(dtype, "3,90", "3,90", "size=1x45 pad=0_0x20_24", opcode, init)
    changed = compare(program, x, dtype, 64)
    assert changed == (init != "7" and (dtype, opcode) != ("bf16", "add"))


def test_nan_and_infinity_stay_where_they_are():
    x = np.zeros(300, np.float32)
    x[[60, 150, 151, 240]] = np.nan, np.inf, -np.inf, np.inf
    for opcode in ("maximum", "add"):
        assert compare(text("f32", "300", "200", "size=101", opcode, UNITS[opcode]), x, "f32", 0)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_window(data):
    draw = lambda low, high: data.draw(st.integers(low, high))  # noqa: E731
    n, size, stride, apart = draw(40, 120), draw(17, 60), draw(1, 3), draw(1, 2)
    low, high = draw(-3, 30), draw(-3, 30)
    reach = (size - 1) * apart + 1
    if n + low + high < reach:
        high += reach - (n + low + high)
    out = (n + low + high - reach) // stride + 1
    opcode = data.draw(st.sampled_from(["add", "maximum", "xor"]))
    window = f"size={size} stride={stride} pad={low}_{high} rhs_dilate={apart}"
    x = np.random.default_rng(draw(0, 99)).integers(-50, 50, n).astype(np.int32)
    init = "0" if opcode != "maximum" else "-2147483648"
    compare(text("s32", n, out, window, opcode, init), x, "s32", 0)
