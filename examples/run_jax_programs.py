"""Run two programs that JAX lowered to HLO text: compiled, and checked against the interpreter.

The transformer block has attention with a causal mask, two layer norms and a GELU; the training step has a forward
pass, a backward pass and gradient descent. Prints the first numbers of each result, how far the two platforms are
apart, and both times.
"""

import sys
import time
from pathlib import Path

import numpy as np

import cyxla

PROGRAMS = Path(__file__).parent / "programs"
TOLERANCE = 1e-5  # of the largest element


def best_of(call, repeat):
    """The shortest of several times, in seconds."""
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return min(times)


def arguments(executable, seed=0):
    """Random arrays of the shapes that the program takes."""
    rng = np.random.default_rng(seed)
    return [(rng.standard_normal(s.dims) * 0.1).astype(s.dtype.numpy_dtype) for s in executable.inputs]


def distance(got, want):
    """The largest difference, as a part of the largest element."""
    return max(float(np.abs(g - w).max() / np.abs(w).max()) for g, w in zip(got, want, strict=True))


def as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


def show(name):
    """Run one program; returns whether the platforms agree."""
    text = (PROGRAMS / f"{name}.hlo").read_text()
    started = time.perf_counter()
    compiled = cyxla.compile(text)
    compile_ms = (time.perf_counter() - started) * 1e3
    oracle = cyxla.compile(text, platform="interpreter")
    args = arguments(compiled)
    got, want = as_tuple(compiled(*args)), as_tuple(oracle(*args))
    apart = distance(got, want)
    fast, slow = best_of(lambda: compiled(*args), 200), best_of(lambda: oracle(*args), 5)
    print(f"{name}: {len(args)} arguments, {len(got)} results, compiled in {compile_ms:.0f} ms")
    print(f"  first result {got[0].dtype}{list(got[0].shape)}: {np.array2string(got[0].ravel()[:4], precision=5)} ..")
    print(f"  cpu {fast * 1e6:.1f} us, interpreter {slow * 1e6:.1f} us: {slow / fast:.0f} times as fast")
    print(f"  largest difference {apart:.1e} of the largest element: {'agrees' if apart <= TOLERANCE else 'DIFFERS'}")
    return apart <= TOLERANCE


if __name__ == "__main__":
    sys.exit(not all([show("transformer_block"), show("mlp_train_step")]))
