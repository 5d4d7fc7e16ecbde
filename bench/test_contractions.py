"""Claims: matrix products of n = 256 and above run at 80 % of the multiply-add peak, 3x3 convolutions at 75 %.

Products are faster than NumPy's at every size, those of a few rows or a vector with a large matrix included.
"""

import numpy as np
import pytest

import cyxla

DOT = (
    "ENTRY e {{ a = {t}[{n},{n}] parameter(0) b = {t}[{n},{n}] parameter(1) "
    "ROOT r = {t}[{n},{n}] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}} }}"
)
#: Sizes (m, k, n), and whether each operand is transposed in memory.
SHAPES = {
    "a row, of memory": ((1, 15000, 2000), "nn"),
    "four rows, of memory": ((4, 15000, 2000), "nn"),
    "eight rows, of memory": ((8, 15000, 2000), "nn"),
    "sixteen rows, of memory": ((16, 15000, 2000), "nn"),
    "eight rows, of L3": ((8, 1000, 1000), "nn"),
    "a column, of memory": ((4000, 5000, 1), "nn"),
    "a column, of L3": ((1000, 1000, 1), "nn"),
    "a row, of L3": ((1, 1000, 1000), "nn"),
    "two rows along k": ((2, 7500, 4000), "nt"),
    "sizes of no power": ((500, 500, 500), "nn"),
    "uneven sizes": ((1000, 1100, 1200), "nn"),
    "left transposed": ((500, 600, 500), "tn"),
    "right transposed": ((500, 600, 500), "nt"),
}
CONVOLUTION = (
    "ENTRY e {{ x = f32[{n},{s},{s},{c}] parameter(0) w = f32[3,3,{c},{c}] parameter(1) "
    "ROOT r = f32[{n},{s},{s},{c}] convolution(x, w), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f }}"
)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("n", [64, 128, 256, 512, 1024, 2048])
def test_matmul(benchmark, claim, best_time, against, machine, n, dtype):
    a, b = np.random.default_rng(0).standard_normal((2, n, n)).astype({"f32": "f4", "f64": "f8"}[dtype])
    run = cyxla.compile(DOT.format(n=n, t=dtype))
    np.testing.assert_allclose(run(a, b), a @ b, rtol=1e-3, atol=1e-3)
    against(
        f"product of {n}x{n} {dtype}",
        "GFLOP/s",
        lambda: machine.flops(dtype),
        2 * n**3,
        run,
        (a, b),
        at_least=0.8 if n >= 256 else None,
    )
    claim("  times as fast as NumPy", best_time(lambda: a @ b) / best_time(lambda: run(a, b)), "x", at_least=1)
    benchmark(run, a, b)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", SHAPES)
def test_shapes(benchmark, claim, best_time, name, dtype):
    (m, k, n), order = SHAPES[name]
    shapes = [(m, k) if order[0] == "n" else (k, m), (k, n) if order[1] == "n" else (n, k)]
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape, np.float32).astype({"f32": "f4", "f64": "f8"}[dtype]) for shape in shapes)
    left, right = (x if turn == "n" else x.T for x, turn in zip((a, b), order, strict=True))
    run = cyxla.compile(
        f"ENTRY e {{ a = {dtype}[{a.shape[0]},{a.shape[1]}] parameter(0) b = {dtype}[{b.shape[0]},{b.shape[1]}] "
        f"parameter(1) ROOT r = {dtype}[{m},{n}] dot(a, b), lhs_contracting_dims={{{int(order[0] == 'n')}}}, "
        f"rhs_contracting_dims={{{int(order[1] == 't')}}} }}"
    )
    np.testing.assert_allclose(run(a, b), left @ right, rtol=1e-2, atol=1e-2)
    times = [(best_time(lambda: left @ right, 0.1), best_time(lambda: run(a, b), 0.1)) for _ in range(5)]
    ratio = min(t for t, _ in times) / min(t for _, t in times)
    claim(f"{name}, {m}x{k}x{n} {dtype}: times as fast as NumPy", ratio, "x", at_least=1)
    benchmark(run, a, b)


@pytest.mark.parametrize("n, size, channels", [(8, 56, 64), (8, 28, 128), (8, 14, 256), (8, 7, 512)])
def test_convolution(benchmark, against, machine, n, size, channels):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, size, size, channels), dtype=np.float32)
    w = rng.standard_normal((3, 3, channels, channels), dtype=np.float32)
    text = CONVOLUTION.format(n=n, s=size, c=channels)
    run = cyxla.compile(text).bind({1: w})
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    want = sum(padded[:, i : i + size, j : j + size] @ w[i, j] for i in range(3) for j in range(3))
    np.testing.assert_allclose(run(x), want, rtol=1e-3, atol=2e-3)
    against(
        f"3x3 convolution of {n}x{size}x{size}x{channels}",
        "GFLOP/s",
        lambda: machine.flops("f32"),
        2 * 9 * channels * x.size,
        run,
        (x,),
        at_least=0.75,
    )
    benchmark(run, x)
