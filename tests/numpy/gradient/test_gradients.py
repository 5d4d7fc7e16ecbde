"""The gradient of every row of the table that has one, against central differences in float64."""

import zlib

import numpy as np
import pytest
from support.functions.function_rows import SUBJECTS, outcome, rows

from cyxla.numpy import jit
from cyxla.numpy.gradient import value_and_grad
from cyxla.numpy.tracing.containers import flatten

EXTRA_SHAPE_GROUPS = 1  # groups of shapes for each call of a row except the first call, which is tested on all groups
CASES = [
    pytest.param(row, call, len(row.shapes) if k == 0 else EXTRA_SHAPE_GROUPS, id=f"{subject}-{row.name}-{k}")
    for subject in SUBJECTS
    for row in rows(subject)
    if row.differentiable
    for k, call in enumerate(row.calls)
]
STEEP = {"std", "nanstd"}  # functions whose derivative is infinite at zeros


def weighted_sum(call):
    """Return the weighted sum of the real parts of all results."""

    def total(*arrays):
        found = 0.0
        for leaf in flatten(call(*arrays))[0]:
            leaf = np.asarray(leaf)
            if leaf.dtype.kind in "fcV":
                weights = np.sin(np.arange(leaf.size) + 1.0).reshape(leaf.shape)
                found = found + np.sum(np.real(leaf * weights) + (0.4 * np.imag(leaf * weights)))
        return found

    return total


@pytest.mark.slow_but_every(14)
@pytest.mark.parametrize("row, call, wanted", CASES)
def test_gradient(row, call, wanted, request):
    rng = np.random.default_rng(zlib.crc32(request.node.name.encode()))
    done = 0
    for shapes in row.shapes:
        taken = False
        for letter in "dD" if not done else "d":
            if letter in row.dtypes and done < wanted:
                arrays = [avoid_kinks(rng, a) for a in row.arrays(rng, shapes, letter)]
                taken = check(call, arrays, rng, row.name)
        done += taken


def avoid_kinks(rng, array):
    """Replace zeros and numbers that are not finite, where many functions have a kink."""
    if array.dtype.kind not in "fc":
        return array
    return np.where(np.isfinite(array) & (array != 0), array, rng.uniform(0.3, 0.9, array.shape))


def check(call, arrays, rng, what):
    """Compare the slope along a direction that all elements are part of; where NumPy refuses, so must we.

    Returns whether there was anything to compare.
    """
    results, failure = outcome(call, arrays)
    numbers = tuple(k for k, a in enumerate(arrays) if a.dtype.kind in "fc")
    run = jit(value_and_grad(weighted_sum(call), argnums=numbers), platform="interpreter")
    if failure is not None:
        with pytest.raises(Exception):  # noqa: B017, PT011 - the other table says which
            run(*arrays)
        return False
    value, slopes = run(*arrays)
    if not np.isfinite(value) or (what in STEEP and all(a.ndim == 0 for a in arrays)):
        return True
    ways = {k: random_direction(rng, arrays[k]) for k in numbers}
    step = step_size(results)
    above, below = (run(*[a + s * ways[k] if k in ways else a for k, a in enumerate(arrays)])[0] for s in (step, -step))
    got = sum(np.real(np.sum(g * ways[k])) for k, g in zip(numbers, slopes, strict=True))
    scale = max(1.0, abs(value), *[float(np.abs(g).max(initial=0)) for g in slopes])
    assert abs(got - (above - below) / (2 * step)) <= step * scale, (
        f"{what}: slope {got}, but {(above - below) / (2 * step)} by differences of {arrays}"
    )
    return True


def step_size(results):
    """Return the step of the difference quotient, by the result of the lowest precision."""
    kinds = [np.asarray(leaf).dtype for leaf in flatten(results)[0]]
    eps = max([float(np.finfo(k).eps) for k in kinds if k.kind in "fc"], default=1e-16)
    return 1e-6 if eps < 1e-15 else eps ** (1 / 3)


def random_direction(rng, array):
    result = rng.uniform(0.5, 1, array.shape) * rng.choice([-1, 1], array.shape)
    return result + 1j * rng.uniform(0.5, 1, array.shape) if array.dtype.kind == "c" else result
