"""A matrix times its own transpose: half of the result is computed, and equals that of the whole product to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cyxla

#: name: function of the two operands, sizes of both; results of four panels at least, of 64 columns with AVX-512
FORMS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "rows": (lambda x, y: x @ y.T, (260, 300)),
    "columns": (lambda x, y: x.T @ y, (300, 260)),
    "rows of several panels at once": (lambda x, y: x @ y.T, (515, 97)),
    "many rows in several blocks": (lambda x, y: x @ y.T, (260, 2500)),
    "columns in several blocks": (lambda x, y: x.T @ y, (1100, 203)),
    "batches": (lambda x, y: x @ y.transpose(0, 2, 1), (3, 260, 120)),
    "batches of columns": (lambda x, y: x.transpose(0, 2, 1) @ y, (3, 120, 260)),
    "scaled": (lambda x, y: (x @ y.T) / 3, (260, 300)),
    "scaled in several blocks": (lambda x, y: (x @ y.T) * y[0, 0], (260, 2500)),
    "a mean of columns": (lambda x, y: (x - x.mean(0)).T @ (y - y.mean(0)) / (len(x) - 1), (300, 260)),
}
#: Functions whose results are not symmetric although the same matrix is on both sides, and sizes.
ASYMMETRIC: dict[str, tuple[Any, tuple[int, ...]]] = {
    "an epilogue by element": (lambda x, y: x @ y.T + np.arange(260.0), (260, 300)),
    "an epilogue with a matrix": (lambda x, y: x @ y.T + x[:, :260], (260, 300)),
    "a square matrix": (lambda x, y: x @ y, (260, 260)),
    "another order of rows": (
        lambda x, y: x @ y.reshape(10, 26, 260).transpose(1, 0, 2).reshape(260, 260).T,
        (260, 260),
    ),
    "another order of a batch": (lambda x, y: x @ y[::-1].transpose(0, 2, 1), (2, 260, 120)),
}


def _phases(function: Any, *arrays: Any) -> list[int]:
    """Return the numbers of phases of all kernels."""
    executable = cyxla.compile(function, *arrays)
    plan, _, _ = executable._emitted  # type: ignore[attr-defined]
    return [step.kernel.phases for step in plan.steps() if step.kernel.kind.name == "DOT"]


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", FORMS)
def test_halves_are_equal_to_the_whole(name: str, dtype: str) -> None:
    function, sizes = FORMS[name]
    x = np.random.default_rng(3).standard_normal(sizes).astype(dtype)
    whole = cyxla.jit(function)(x, x.copy())
    half = cyxla.jit(lambda x: function(x, x))(x)
    assert np.isfinite(half).all()
    np.testing.assert_array_equal(half, np.swapaxes(half, -1, -2), strict=True)
    np.testing.assert_array_equal(half, whole, strict=True)
    assert _phases(lambda x: function(x, x), x) == [2]
    assert _phases(function, x, x) == [1]


@pytest.mark.parametrize("name", ASYMMETRIC)
def test_other_products_are_computed_whole(name: str) -> None:
    function, sizes = ASYMMETRIC[name]
    x = np.random.default_rng(3).standard_normal(sizes)
    np.testing.assert_allclose(cyxla.jit(lambda x: function(x, x))(x), function(x, x), rtol=1e-9, atol=1e-9)
    assert _phases(lambda x: function(x, x), x) == [1]


def test_special_values() -> None:
    x = np.random.default_rng(3).standard_normal((260, 300))
    x[5, 7], x[9, 7], x[100, 3] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(cyxla.jit(lambda x: x @ x.T)(x), x @ x.T, rtol=1e-9, atol=1e-9)


def test_bits_do_not_depend_on_threads() -> None:
    x = np.random.default_rng(3).standard_normal((700, 310))
    function = cyxla.jit(lambda x: x @ x.T)
    before, results = cyxla.threads(), set()
    try:
        for threads in (1, 2, 5):
            cyxla.threads(threads)
            results.add(function(x).tobytes())
    finally:
        cyxla.threads(before)
    assert len(results) == 1
