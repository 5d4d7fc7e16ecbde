"""Windows: their layout, reduce-window and select-and-scatter against their definitions."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyxla.types import Shape
from cyxla.xla.evaluator import evaluate_instruction
from cyxla.xla.evaluator.numerics.window_views import pad_window, window_count
from cyxla.xla.evaluator.ops import windows
from cyxla.xla.hlo import Computation
from cyxla.xla.hlo.attributes import WindowDim

FUNCTIONS = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "maximum": max,
    "minimum": min,
    "xor": lambda a, b: a ^ b,
}


def combiner(name, dtype, result=None, **attrs):
    comp = Computation(name)
    a, b = (comp.add("parameter", attrs={"parameter_number": n}, shape=Shape.array(dtype)) for n in range(2))
    comp.root = comp.add(name, [a, b], attrs, shape=Shape.array(result or dtype))
    return comp


def instruction(opcode, operands, shape, called, window):
    comp = Computation("main")
    params = [comp.add("parameter", attrs={"parameter_number": n}, shape=Shape.of(o)) for n, o in enumerate(operands)]
    return comp.add(opcode, params, {"window": window}, shape=shape, called=called)


def elements(x, w_dims, at):
    """Coordinates of the elements under a window, in row-major order."""
    for tap in np.ndindex(*(w.size for w in w_dims)):
        tap = [w.size - 1 - t if w.window_reversal else t for t, w in zip(tap, w_dims, strict=True)]
        found = [p * w.stride + t * w.window_dilation - w.padding_low for p, t, w in zip(at, tap, w_dims, strict=True)]
        if all(
            f % w.base_dilation == 0 and 0 <= f // w.base_dilation < n
            for f, w, n in zip(found, w_dims, x.shape, strict=True)
        ):
            yield tuple(f // w.base_dilation for f, w in zip(found, w_dims, strict=True))


@st.composite
def problems(draw, padding=(-2, 3), dilations=2):
    sizes = draw(st.lists(st.integers(0, 5), min_size=1, max_size=2))
    pads, small, dilation = st.integers(*padding), st.integers(1, 3), st.integers(1, dilations)
    window = tuple(draw(st.builds(WindowDim, small, small, pads, pads, dilation, dilation)) for _ in sizes)
    return np.random.default_rng(draw(st.integers(0, 99))).integers(0, 4, sizes).astype(np.int32), window


@settings(max_examples=200, deadline=None)
@given(problems(), st.sampled_from(sorted(FUNCTIONS)), st.integers(0, 3), st.sampled_from([0, 1000]))
def test_reduce_window_is_its_definition(problem, name, init, threshold):
    x, window = problem
    want = np.zeros([window_count(n, w) for n, w in zip(x.shape, window, strict=True)], np.int32)
    for at in np.ndindex(want.shape):
        total = init
        for place in elements(x, window, at):
            total = FUNCTIONS[name](total, int(x[place]))
        want[at] = total
    start = np.array(init, np.int32)
    ins = instruction("reduce-window", [x, start], Shape.of(want), [combiner(name, "s32")], window)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "DOUBLING_FROM", threshold)
        np.testing.assert_array_equal(evaluate_instruction(ins, x, start), want)


@settings(max_examples=150, deadline=None)
@given(problems(padding=(0, 2), dilations=1), st.sampled_from(["GE", "GT", "LE", "LT"]))
def test_select_and_scatter_is_its_definition(problem, direction):
    x, window = problem
    source = (
        np.ones([window_count(n, w) for n, w in zip(x.shape, window, strict=True)], np.int32).cumsum().astype(np.int32)
    )
    source = source.reshape([window_count(n, w) for n, w in zip(x.shape, window, strict=True)])
    keeps = {"GE": int.__ge__, "GT": int.__gt__, "LE": int.__le__, "LT": int.__lt__}[direction]
    want = np.full(x.shape, 7, np.int32)
    for at in np.ndindex(source.shape):
        best = None
        for place in elements(x, window, at):
            best = place if best is None or not keeps(int(x[best]), int(x[place])) else best
        if best is not None:
            want[best] += source[at]
    seven = np.array(7, np.int32)
    called = [combiner("compare", "s32", "pred", direction=direction), combiner("add", "s32")]
    ins = instruction("select-and-scatter", [x, source, seven], Shape.of(x), called, window)
    np.testing.assert_array_equal(evaluate_instruction(ins, x, source, seven), want)


# fmt: off
LAID_OUT = [
    (WindowDim(1, 1, 2, 1),           [9, 9, 1, 2, 3, 9]),
    (WindowDim(1, 1, -1, 0),          [2, 3]),
    (WindowDim(1, 1, 0, -2),          [1]),
    (WindowDim(1, 1, -2, -2),         []),
    (WindowDim(1, 1, 0, 0, 1, 2),     [1, 9, 2, 9, 3]),
    (WindowDim(1, 1, -1, 0, 1, 2),    [9, 2, 9, 3]),
    (WindowDim(1, 1, -1, -1, 1, 3),   [9, 9, 2, 9, 9]),
    (WindowDim(1, 1, 4, -6),          [9]),
    (WindowDim(1, 1, -4, 6),          [9, 9, 9, 9, 9]),
]
# fmt: on


@pytest.mark.parametrize("dim, want", LAID_OUT)
def test_spread(dim, want):
    assert pad_window(np.array([1, 2, 3]), (dim,), 9).tolist() == want


@pytest.mark.parametrize("name, init", [("add", 0.0), ("maximum", -math.inf), ("multiply", 1.0), ("minimum", math.inf)])
def test_long_windows(name, init):
    x = (np.random.default_rng(0).random(300) + 0.5).astype(np.float32)
    window = (WindowDim(300, 1, 299, 0),)
    start = np.array(init, np.float32)
    ins = instruction("reduce-window", [x, start], Shape.of(x), [combiner(name, "f32")], window)
    running = {"add": np.add, "maximum": np.maximum, "multiply": np.multiply, "minimum": np.minimum}[name]
    np.testing.assert_allclose(evaluate_instruction(ins, x, start), running.accumulate(x.astype(np.float64)), rtol=1e-5)


@pytest.mark.parametrize("init", [0, -0.0, 256])
@pytest.mark.parametrize("dtype", ["bf16", "f16", "f8e5m2"])
def test_sums_of_narrow_floats_are_rounded_once(dtype, init):
    x = np.array([256, 1, 1, 2, -0.0], np.float32).astype(Shape.array(dtype).dtype.numpy_dtype)
    start = np.asarray(init, x.dtype)
    window = (WindowDim(4, 1, 1, 4),)
    ins = instruction("reduce-window", [x, start], Shape.array(dtype, (7,)), [combiner("add", dtype)], window)
    exact = [sum([256, 1, 1, 2, -0.0][max(i - 1, 0) : i + 3], init) for i in range(7)]
    got, want = evaluate_instruction(ins, x, start), np.array(exact, np.float32).astype(x.dtype)
    assert got.tobytes() == want.tobytes()


def test_variadic_reduce_window(hlo):
    text = """
    body {
      a = f32[] parameter(0)
      i = s32[] parameter(1)
      b = f32[] parameter(2)
      j = s32[] parameter(3)
      p = pred[] compare(a, b), direction=GE
      v = f32[] select(p, a, b)
      w = s32[] select(p, i, j)
      ROOT t = (f32[], s32[]) tuple(v, w)
    }
    ENTRY main {
      x = f32[5] parameter(0)
      y = s32[5] parameter(1)
      low = f32[] constant(-inf)
      none = s32[] constant(-1)
      ROOT r = (f32[5], s32[5]) reduce-window(x, y, low, none), window={size=3 pad=1_1}, to_apply=body
    }
    """
    best, where = hlo(text, np.float32([3, 1, 2, 2, 5]), np.arange(5, dtype=np.int32))
    assert (best.tolist(), where.tolist()) == ([3, 3, 2, 5, 5], [0, 0, 2, 4, 4])
