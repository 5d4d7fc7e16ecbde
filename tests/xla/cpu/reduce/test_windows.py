"""Windows agree with the oracle: every way to slide, over edges, dilated both ways, small and large, any element type."""

# ruff: noqa: E501  programs read best a line at a time

import numpy as np
import pytest
from support.hlo.differential import flat

import cyxla
from cyxla.types import element_type
from cyxla.xla.evaluator import evaluate
from cyxla.xla.hlo.attributes import WindowDim
from cyxla.xla.hlo.ops.window import window_count

W = WindowDim
ONE = W(1)
# windows without padding, over every edge, with gaps in either, some that see nothing but padding
WINDOWS = {
    "pool": ((2, 9, 11, 5), (ONE, W(2, 2), W(2, 2), ONE)),
    "pool over edges": ((2, 9, 11, 35), (ONE, W(3, 2, 1, 1), W(3, 2, 1, 1), ONE)),
    "channels first": ((3, 2, 8, 17), (ONE, ONE, W(3, 2, 1, 1), W(3, 2, 1, 0))),
    "odd paddings": ((17, 13), (W(2, 1, 1, 1), W(3, 1, 2, 2))),
    "holes": ((17, 13), (W(2, 1, 1, 0, 1, 2), W(2, 1, 0, 1, 1, 3))),
    "phases that stride": ((9, 21), (W(3, 3, 2, 2, 1, 2), W(2, 1, 1, 1, 1, 4))),
    "gaps": ((40,), (W(4, 3, 5, 7, 2),)),
    "both": ((7, 6), (W(3, 2, 2, 3, 2, 3), W(2, 1, 4, 1, 1, 2))),
    "large": ((5, 40), (W(2, 1, 1, 1), W(20, 1, 10, 9))),
    "nothing but padding": ((3,), (W(2, 1, 4, 4),)),
    "cut": ((12, 9), (W(3, 1, -1, -2), W(2, 2, 0, -1))),
    "single": ((6, 7), (ONE, ONE)),
    "many lanes": ((2, 7, 1, 200), (ONE, W(3, 2, 1, 1), ONE, ONE)),
    "one image": ((1, 33, 30, 3), (ONE, W(3, 1, 1, 1), W(2, 2), ONE)),
}
DTYPES = ("f64", "bf16", "f16", "s8", "u16", "s64", "c64", "pred")


def body(dtype: str, opcode: str, name: str = "f") -> str:
    return f"{name} {{ a = {dtype}[] parameter(0) b = {dtype}[] parameter(1) ROOT r = {dtype}[] {opcode}(a, b) }}\n"


def shape(dtype: str, dims: tuple[int, ...]) -> str:
    return f"{dtype}[{','.join(map(str, dims))}]"


def spelled(window: tuple[WindowDim, ...]) -> str:
    columns = {"size": "size", "stride": "stride", "lhs_dilate": "base_dilation", "rhs_dilate": "window_dilation"}
    found = [f"{name}={'x'.join(str(getattr(w, field)) for w in window)}" for name, field in columns.items()]
    return " ".join([*found, f"pad={'x'.join(f'{w.padding_low}_{w.padding_high}' for w in window)}"])


def slid(dims: tuple[int, ...], window: tuple[WindowDim, ...]) -> tuple[int, ...]:
    return tuple(window_count(n, w) for n, w in zip(dims, window, strict=True))


def values(dtype: str, dims: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Small whole numbers, of which every element type holds all sums: results are the same in any order."""
    x = np.random.default_rng(seed).integers(0, 2 if dtype == "pred" else 4, dims)
    return x.astype(element_type(dtype).numpy_dtype)


def same(text: str, *args: np.ndarray) -> None:
    module = cyxla.hlo.parse_module(text)
    for got, want in zip(flat(cyxla.compile(text)(*args)), flat(evaluate(module, list(args))), strict=True):
        got, want = (np.asarray(x).astype(np.complex128) for x in (got, want))
        np.testing.assert_array_equal(got, want)


def program(name: str, dtype: str, opcode: str, init: str, more: str = "ROOT n = {t} negate(r)") -> str:
    dims, window = WINDOWS[name]
    of, to = shape(dtype, dims), shape(dtype, slid(dims, window))
    root = "" if more else "ROOT "
    return f"""HloModule m
{body(dtype, opcode)}ENTRY e {{ p = {of} parameter(0) z = {dtype}[] constant({init}) q = {of} {"or" if dtype == "pred" else "add"}(p, p)
 {root}r = {to} reduce-window(q, z), window={{{spelled(window)}}}, to_apply=f
 {more.format(t=to)} }}"""


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("opcode, init", [("add", "1"), ("maximum", "-inf"), ("minimum", "2")])
@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name, opcode, init):
    same(program(name, "f32", opcode, init), values("f32", WINDOWS[name][0]))


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("dtype", DTYPES)
def test_element_types(dtype):
    for name in ("pool over edges", "holes"):
        dims = WINDOWS[name][0]
        opcodes = {"pred": ["or", "and"], "c64": ["add"]}.get(dtype, ["add", "multiply", "maximum"])
        for opcode in opcodes:
            init = "true" if dtype == "pred" else "(1, 0)" if dtype == "c64" else "1"
            x = values(dtype, dims)
            same(program(name, dtype, opcode, init, more=""), np.minimum(x, 1) if opcode == "multiply" else x)


def test_nans_show_and_infinities_stay():
    for opcode, init in (("maximum", "-inf"), ("minimum", "inf"), ("add", "0")):
        dims = WINDOWS["pool over edges"][0]
        x = values("f32", dims)
        x[np.random.default_rng(1).random(dims) < 0.1] = np.nan
        x[np.random.default_rng(2).random(dims) < 0.1] = -np.inf
        same(program("pool over edges", "f32", opcode, init), x)


@pytest.mark.parametrize("pad", ["4_0", "0_4"])
@pytest.mark.parametrize("result", ["a", "b", "subtract(a, b)", "subtract(b, a)"])
def test_cumulative_windows_combine_in_order(result, pad):
    root = f"ROOT r = f32[] {result}" if "(" in result else f"ROOT r = f32[] copy({result})"
    text = f"""HloModule m
f {{ a = f32[] parameter(0) b = f32[] parameter(1) {root} }}
ENTRY e {{ p = f32[3,5] parameter(0) z = f32[] constant(7)
 ROOT r = f32[3,5] reduce-window(p, z), window={{size=1x5 pad=0_0x{pad}}}, to_apply=f }}"""
    same(text, values("f32", (3, 5)))


def test_windows_over_dilated_padding():
    text = f"""HloModule m
{body("f32", "add")}ENTRY e {{ p = f32[3,9,11,20] parameter(0) z = f32[] constant(0) s = f32[3,9,11,20] multiply(p, p)
 w = f32[3,18,23,20] pad(s, z), padding=0_0_0x1_0_1x1_1_1x0_0_0
 ROOT r = f32[3,17,22,20] reduce-window(w, z), window={{size=1x2x2x1}}, to_apply=f }}"""
    same(text, values("f32", (3, 9, 11, 20)))


def scattered(name: str, dtype: str, select: str, scatter: str) -> str:
    dims, window = WINDOWS[name]
    of, source = shape(dtype, dims), shape(dtype, slid(dims, window))
    return f"""HloModule m
pick {{ a = {dtype}[] parameter(0) b = {dtype}[] parameter(1) ROOT r = pred[] compare(a, b), direction={select} }}
{body(dtype, scatter, "join")}ENTRY e {{ p = {of} parameter(0) s = {source} parameter(1) z = {dtype}[] constant(1)
 ROOT r = {of} select-and-scatter(p, s, z), window={{{spelled(window)}}}, select=pick, scatter=join }}"""


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("select", ["GE", "LT"])
@pytest.mark.parametrize("name", WINDOWS)
def test_select_and_scatter(name, select):
    dims, window = WINDOWS[name]
    same(scattered(name, "f32", select, "add"), values("f32", dims), values("f32", slid(dims, window), 1))


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("dtype", ["f64", "bf16", "s8", "u16", "s64"])
def test_select_and_scatter_element_types(dtype):
    for name, scatter in (("pool over edges", "add"), ("channels first", "maximum"), ("many lanes", "multiply")):
        dims, window = WINDOWS[name]
        same(scattered(name, dtype, "GE", scatter), values(dtype, dims), values(dtype, slid(dims, window), 1))


def test_select_and_scatter_of_nans():
    dims, window = WINDOWS["pool over edges"]
    x = values("f32", dims)
    x[np.random.default_rng(1).random(dims) < 0.3] = np.nan
    same(scattered("pool over edges", "f32", "GE", "add"), x, values("f32", slid(dims, window), 1))


@pytest.mark.parametrize("pad", ["-inf", "0"])
def test_select_and_scatter_with_padding(pad):
    """The gradient of a maximum over windows, as it comes from differentiation: padded before and cut after."""
    text = f"""HloModule m
pick {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=GE }}
{body("f32", "add", "join")}ENTRY e {{ p = f32[3,12,14,20] parameter(0) s = f32[3,6,7,20] parameter(1) z = f32[] constant(0) i = f32[] constant({pad})
 w = f32[3,14,16,20] pad(p, i), padding=0_0x1_1x1_1x0_0
 g = f32[3,14,16,20] select-and-scatter(w, s, z), window={{size=1x3x3x1 stride=1x2x2x1}}, select=pick, scatter=join
 ROOT r = f32[3,12,14,20] slice(g), slice={{[0:3], [1:13], [1:15], [0:20]}} }}"""
    same(text, values("f32", (3, 12, 14, 20)) - 2, values("f32", (3, 6, 7, 20), 1))
