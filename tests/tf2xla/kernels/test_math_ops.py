"""Chains of functions, and rounding at random: ops that only compiled code has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.graphs.compiled import PLATFORMS, close, run

from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError

KEY, COUNTER, PHILOX = np.array([7], np.uint64), np.array([1, 0], np.uint64), np.int32(1)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_chains(dtype: Any, platform: str) -> None:
    x = np.array([0.5, -0.25, 2], dtype)
    close(run("_UnaryOpsComposition", x, op_names=["Exp", "Neg", "Cos"], platform=platform), [np.cos(-np.exp(x))])
    close(run("_UnaryOpsComposition", x, op_names=[], platform=platform), [x])


def test_only_functions_of_one_number_make_a_chain() -> None:
    with pytest.raises(InvalidArgumentError, match="'MatMul'"):
        run("_UnaryOpsComposition", np.ones(2, np.float32), op_names=["Exp", "MatMul"])


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("to", [DataType.DT_INT8, DataType.DT_INT16, DataType.DT_INT32])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rounding_at_random(dtype: Any, to: DataType, platform: str) -> None:
    """To both neighbours, on average to the number itself; whole numbers stay."""
    x = np.full(2000, 2.25, dtype)
    x[:3] = [7, -3, 0]
    (got,) = run("StochasticCastToInt", x, KEY, COUNTER, PHILOX, Tout=to, platform=platform)
    assert got.dtype == to.numpy
    np.testing.assert_array_equal(got[:3], [7, -3, 0])
    assert set(got[3:].tolist()) == {2, 3}
    assert abs(got[3:].mean() - 2.25) < 0.05
