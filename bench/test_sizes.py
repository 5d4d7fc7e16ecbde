"""Claims: programs of a bound, and functions compiled for any size, take little longer than those of one size."""

from math import prod
from time import perf_counter

import numpy as np
import pytest

import cyxla

BOUND, COLUMNS = 4096, 64
SIZES = (1, 16, 100, 1000, 4000)
CHAIN = ("exponential", "tanh", "negate", "abs") * 5


def program(rows: int, *, masked: bool) -> str:
    """Return the sum over rows of twenty element-wise operations on a product, with a size at run time if masked."""
    shape = f"f32[{rows},{COLUMNS}]"
    lines, last = [], "d"
    for k, opcode in enumerate(CHAIN):
        lines.append(f"v{k} = {shape} {opcode}({last})")
        last = f"v{k}"
    if masked:
        lines += [
            f"i = s32[{rows},{COLUMNS}] iota(), iota_dimension=0",
            f"s = s32[{rows},{COLUMNS}] broadcast(n), dimensions={{}}",
            f"m = pred[{rows},{COLUMNS}] compare(i, s), direction=LT",
            f"z = {shape} broadcast(zero), dimensions={{}}",
            f"k = {shape} select(m, {last}, z)",
        ]
        last = "k"
    return "\n".join([
        "HloModule m",
        "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }",
        "ENTRY main {",
        f"x = {shape} parameter(0)",
        f"w = f32[{COLUMNS},{COLUMNS}] parameter(1)",
        "n = s32[] parameter(2)",
        "zero = f32[] constant(0)",
        f"e = {shape} multiply(x, x)",
        f"d = {shape} dot(e, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
        *lines,
        f"ROOT r = f32[{COLUMNS}] reduce({last}, zero), dimensions={{0}}, to_apply=add",
        "}",
    ])  # fmt: skip


@pytest.fixture(scope="module")
def bounded():
    return cyxla.compile(program(BOUND, masked=True))


def test_sizes(bounded, claim, best_time):
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((BOUND, COLUMNS), np.float32), rng.standard_normal((COLUMNS, COLUMNS), np.float32)
    ratios = []
    for size in SIZES:
        exact, n = cyxla.compile(program(size, masked=False)), np.int32(size)
        part = np.ascontiguousarray(x[:size])
        ratios.append(best_time(lambda n=n: bounded(x, w, n)) / best_time(lambda e=exact, p=part, n=n: e(p, w, n)))
        claim(f"{size} of {BOUND} rows, against a program of {size} rows", ratios[-1])
    claim("geometric mean", prod(ratios) ** (1 / len(ratios)), at_most=1.25)


LENGTHS = np.random.default_rng(1).permutation(np.arange(1, 4001))[:1000]


def layer(x, w):
    """Return a product with twenty element-wise operations on it."""
    y = x @ w
    for _ in range(4):
        y = np.tanh(y) * 0.5 + y
        y = np.exp(-np.abs(y))
    return y


def test_new_sizes(claim):
    """Calls with sizes that none before had, which compile nothing."""
    compiled = cyxla.jit(lambda x, y: x * 2 + y)
    for n in (5, 9, 7):
        compiled(np.ones(n), np.ones(n))
    compiled.wait()
    calls = [(np.ones(n), np.ones(n)) for n in range(10, 1000)]
    seconds = []
    for _ in range(2):
        started = perf_counter()
        for x, y in calls:
            compiled(x, y)
        seconds.append((perf_counter() - started) / len(calls))
    claim("call with a new size", seconds[0] * 1e6, "us", at_most=20)
    claim("  the same size again", seconds[1] * 1e6, "us")


@pytest.mark.filterwarnings("ignore::cyxla.RecompileWarning")  # of the programs for one size
def test_any_size(claim, best_time):
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((4000, COLUMNS)), rng.standard_normal((COLUMNS, COLUMNS))
    any_size, exact = cyxla.jit(layer), cyxla.jit(layer, sizes="exact")
    for n in LENGTHS:
        any_size(x[:n], w)
    any_size.wait()
    claim("programs for 1,000 lengths", any_size.cache_info().misses, at_most=3)
    ratios = []
    for n in LENGTHS[:20]:
        part = x[:n].copy()
        exact(part, w)
        exact.wait()
        ratios.append(best_time(lambda p=part: any_size(p, w)) / best_time(lambda p=part: exact(p, w)))
    claim("any size against each size, geometric mean of 20 lengths", prod(ratios) ** (1 / len(ratios)), at_most=1.25)


def attention(x, w):
    """Return causal attention, whose scores have two dimensions of any size."""
    q, k = x @ w, x @ w.T
    scores = q @ k.T / np.sqrt(q.shape[-1]) + (1 - np.tri(len(x))) * -1e10
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True)) @ x


def test_any_size_of_two_dimensions(claim, best_time):
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((1000, COLUMNS)), rng.standard_normal((COLUMNS, COLUMNS))
    any_size, exact = cyxla.jit(attention), cyxla.jit(attention, sizes="exact")
    for n in (12, 13, *range(14, 1000, 9)):
        any_size(x[:n], w)
    any_size.wait()
    claim("programs of attention for 112 lengths", any_size.cache_info().misses, at_most=3)
    ratios = []
    for n in (60, 100, 200, 255, 400, 900):
        part = x[:n].copy()
        exact(part, w)
        exact.wait()
        ratios.append(best_time(lambda p=part: any_size(p, w)) / best_time(lambda p=part: exact(p, w)))
    claim("attention of any size against each size, geometric mean", prod(ratios) ** (1 / len(ratios)), at_most=1.6)
