"""Random expressions of arrays of run-time size, and their gradients."""

import numpy as np
import pytest
from support.functions.sized import arguments, check, function_of

import cyxla

STARTS = (
    "x[m]", "x[x > 1]", "A[m, 1]", "np.unique(x)", "np.flatnonzero(m) * 1.5", "x[: m.sum()]", "np.repeat(x, m)",
    "np.setdiff1d(x, x[m])", "x[np.flatnonzero(n > 1)]", "np.arange(m.sum()) - 1.0", "A[A > 0]", "f[m]",
)  # fmt: skip
STEPS = (
    "({} * 2 - 1)", "({}[1:])", "({}[:-1])", "({}[::-1])", "({}[::2])", "({}[-3:])", "np.sort({})", "np.cumsum({})",
    "np.diff({})", "np.abs({})", "({} + y)", "np.concatenate([{}, y])", "np.concatenate([y, x, {}])", "np.unique({})",
    "np.roll({}, 1)", "np.where({} > 0, {}, 1.0)", "({} - {}.sum())", "({}[{} > 0])", "np.clip({}, -3, 5)",
    "np.append({}, 2.0)", "np.repeat({}, 2)", "({} * ({} > 1))", "np.trim_zeros({})", "({}.reshape(-1, 1)[:, 0])",
    "np.stack([{}, {}]).ravel()", "np.argsort({}, kind='stable') * 1.0", "({}[np.argsort({}, kind='stable')])",
)  # fmt: skip
ENDS = (
    "{}", "{}.sum()", "np.sum({} > 0)", "{}.size", "np.any({} > 2)", "np.nanmax(np.append({}, 0.0))", "{}.mean()",
    "np.median({})", "np.argmax(np.append({}, -50.0))", "np.unique({}, return_counts=True)", "{} @ {}",
    "np.isin(x, {})",
    "np.histogram(np.nan_to_num({}, posinf=9), np.arange(-9.0, 9.0, 3))",
    "np.searchsorted(np.sort({}), x)",
)  # fmt: skip
COUNT = 60


def expression(seed):
    """Return the body of a function: a start, some steps and an end, drawn at random."""
    rng = np.random.default_rng(seed)
    lines = [f"y = {rng.choice(STARTS)}", "z = y"]
    lines += [f"z = {rng.choice(STEPS).replace('{}', 'z')}" for _ in range(rng.integers(1, 5))]
    return "\n".join([*lines, f"return {rng.choice(ENDS).replace('{}', 'z')}"])


@pytest.mark.slow_after(20)
@pytest.mark.parametrize("seed", range(COUNT))
def test_random_expressions(seed):
    check(expression(seed), "interpreter")


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("seed", range(COUNT, COUNT + 8))
def test_random_expressions_on_cpu(seed):
    check(expression(seed), "cpu")


GRADIENTS = (
    "x[m].sum()", "(x[m] ** 2).sum()", "np.sort(x[m] + A[m, 0] / 7)[:2].sum()", "(np.cumsum(x[m]) * x[m]).sum()",
    "x[m] @ x[m]",
    "np.exp(x[m] / 9).sum()", "(np.concatenate([x[m], x[~m] * 2]) ** 2).sum()", "(x[m][::-1] * n[m]).sum()",
    "(x[np.flatnonzero(m)] ** 3).sum()", "(A[m] * A[m]).mean()", "(A[m].T @ A[m]).sum()", "np.diff(x[m]).sum()",
    "(x[i[0] : i[1] + 2] ** 2).sum()", "np.log(x[m] * x[m] + 1).sum()", "np.sqrt(np.abs(x[m]) + 1).sum()",
    "(A[m] / np.sqrt(1 + (A[m] ** 2).sum(axis=1, keepdims=True))).sum()",
    "np.stack([x[m], 2 * x[m]]).prod(axis=0).sum()",
)  # fmt: skip
STEP = 1e-6


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("text", GRADIENTS)
def test_gradients(text):
    for selected in ("one", "some", "all"):
        values = {k: v for k, v in arguments(selected).items() if k not in ("f", "c")}
        function = function_of(text, values)
        for name in ("x", "A"):
            others = {k: v for k, v in values.items() if k != name}
            gradient = cyxla.grad(lambda p, f=function, name=name, others=others: f(**{name: p}, **others))
            got = cyxla.jit(gradient, platform="interpreter")(values[name])
            want = np.zeros_like(values[name])
            for k in np.ndindex(want.shape):
                moved = [values[name].copy() for _ in range(2)]
                for array, step in zip(moved, (STEP, -STEP), strict=True):
                    array[k] += step
                high, low = (function(**{name: p}, **others) for p in moved)
                want[k] = (high - low) / (2 * STEP)
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5, err_msg=f"{text} by {name}, {selected}")


#: Functions of x and a mask whose derivatives are infinite at elements that are left out.
SINGULAR = (
    "np.log(x[x > 0]).sum()", "np.log(x[m]).sum()", "np.sqrt(x[m] * 2).sum()", "(np.cumsum(x[m]) * x[m]).sum()",
    "(1 / np.sort(x[m])).sum()", "np.cumsum(np.log(x[m])).sum()", "np.power(x[m], 0.5).sum()",
    "np.log(x[k : k + 2]).sum()", "(np.log(x[m])[:2] ** 2).sum()",
)  # fmt: skip


@pytest.mark.parametrize("text", SINGULAR)
def test_gradients_beside_singularities(text, backend):
    x, m, k = np.array([0.0, 1.5, 2.0, -1.0, 0.0]), np.array([False, True, True, False, False]), np.int64(1)
    function = function_of(text, {"x": x, "m": m, "k": k})
    got = cyxla.jit(cyxla.grad(function), platform=backend)(x, m, k)
    want = np.zeros_like(x)
    for n in (1, 2):
        high, low = x.copy(), x.copy()
        high[n] += STEP
        low[n] -= STEP
        want[n] = (function(high, m, k) - function(low, m, k)) / (2 * STEP)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
