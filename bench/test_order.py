"""Claims: sorts of arrays that are in order, in part or whole, and counts of few integers, beside NumPy.

Each function runs in turn with NumPy on the same arrays; ratios are of the medians.
``python bench/test_order.py [NAME ..]`` prints the table of ratios.
"""

import sys
import time
from statistics import median

import numpy as np
import pytest

N, ROWS = 1_000_000, (1000, 1000)
ROUNDS = 21
RNG = np.random.default_rng(0)


def pieces(x, count):
    return np.concatenate([np.sort(piece) for piece in np.array_split(x, count)])


#: Orders of elements along the last axis.
ORDERS = {
    "random": lambda x: x,
    "sorted": lambda x: np.sort(x, axis=-1),
    "reversed": lambda x: np.sort(x, axis=-1)[..., ::-1].copy(),
    "4 runs": lambda x: np.apply_along_axis(pieces, -1, x, 4),
    "10 appended": lambda x: np.concatenate([np.sort(x[..., :-10], axis=-1), x[..., -10:]], axis=-1),
}
FUNCTIONS = {
    "sort": lambda x: np.sort(x, axis=-1),
    "argsort": lambda x: np.argsort(x, axis=-1, kind="stable"),
    "median": lambda x: np.median(x, axis=-1),
}
COUNTS = {
    "bincount": lambda x: np.bincount(x),
    "largest count": lambda x: np.bincount(x).max(),
    "sum of counts": lambda x: np.bincount(x).sum(),
    "weighted": lambda x: np.bincount(x, x * 0.5),
}


def times(function, x, rounds=ROUNDS):
    """Return the seconds of NumPy and of the jitted function, medians of calls in turn."""
    import cyxla

    jitted = cyxla.jit(function)
    np.testing.assert_array_equal(jitted(x), function(x))
    started = time.perf_counter()
    function(x)
    repeat = max(1, int(1e-4 / (time.perf_counter() - started)))
    taken = [[], []]
    for _ in range(rounds):
        for into, run in zip(taken, (function, jitted), strict=True):
            started = time.perf_counter()
            for _ in range(repeat):
                run(x)
            into.append((time.perf_counter() - started) / repeat)
    return median(taken[0]), median(taken[1])


@pytest.mark.parametrize("dtype", ["f8", "f4", "i4"])
@pytest.mark.parametrize("dims", [(N,), ROWS], ids=["long", "rows"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_orders(claim, name, order, dims, dtype):
    x = ORDERS[order]((RNG.standard_normal(dims) * 1e6).astype(dtype))
    numpy, ours = times(FUNCTIONS[name], x)
    claim(f"{name} {dtype} {order} {dims}: NumPy's time over ours", numpy / ours)


@pytest.mark.parametrize("size", [100, 1000, 100_000])
@pytest.mark.parametrize("name", COUNTS)
def test_counts(claim, name, size):
    numpy, ours = times(COUNTS[name], RNG.integers(0, 100, size))
    claim(f"{name} of {size}: NumPy's time over ours", numpy / ours)


def main(names):
    """Print the ratios of some functions, by default of all."""
    for name in names or (*FUNCTIONS, *COUNTS):
        for order in ORDERS if name in FUNCTIONS else ():
            for dims in ((N,), ROWS):
                made = [ORDERS[order]((RNG.standard_normal(dims) * 1e6).astype(d)) for d in ("f8", "f4", "i4")]
                found = [numpy / ours for numpy, ours in (times(FUNCTIONS[name], x) for x in made)]
                print(f"{name:14s}{order:12s}{dims!s:14s}" + "".join(f"{r:9.2f}" for r in found), flush=True)
        for size in (100, 1000, 100_000) if name in COUNTS else ():
            numpy, ours = times(COUNTS[name], RNG.integers(0, 100, size))
            print(f"{name:14s}{size:<26d}{numpy / ours:9.2f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
