"""What the examples share: plain NumPy as the judge of a compiled function, and both times."""

import sys
import time

import numpy as np


def size(default):
    """The size that was asked for on the command line."""
    return int(sys.argv[1]) if sys.argv[1:] else default


def best_of(call, repeat):
    """The shortest of several times, in seconds."""
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return min(times)


def leaves(value):
    """The arrays in nested tuples, lists and dicts."""
    if isinstance(value, dict):
        value = list(value.values())
    return [x for part in value for x in leaves(part)] if isinstance(value, (tuple, list)) else [np.asarray(value)]


def distance(got, want):
    """The largest difference as a part of the largest element; types and sizes must be equal."""
    worst = 0.0
    for g, w in zip(leaves(got), leaves(want), strict=True):
        assert (g.dtype, g.shape) == (w.dtype, w.shape), f"{g.dtype}{g.shape} is not {w.dtype}{w.shape}"
        if g.size:
            apart = np.abs(g.astype(float) - w.astype(float)).max()
            worst = max(worst, float(apart / (np.abs(w.astype(float)).max() or 1)))
    return worst


def compare(name, compiled, plain, *args, tolerance=1e-5, repeat=3):
    """Run a compiled function and a plain one on the same arrays; they must agree. Returns what the first gives."""
    started = time.perf_counter()
    got = compiled(*args)
    first = time.perf_counter() - started
    apart = distance(got, plain(*args))
    assert apart <= tolerance, f"{name}: {apart:.1e} apart"
    fast, slow = best_of(lambda: compiled(*args), 10 * repeat), best_of(lambda: plain(*args), repeat)
    print(f"{name}: compiled {fast * 1e3:.3f} ms, NumPy {slow * 1e3:.3f} ms: {slow / fast:.1f} times as fast")
    print(f"  first call {first * 1e3:.0f} ms, largest difference {apart:.1e} of the largest element")
    return got
