"""NumPy's functions take Python's numbers among the arguments of compiled functions, as they take arrays."""

from __future__ import annotations

import numpy as np
import pytest

import cyxla

ONES, EYE = np.ones(3), np.eye(3)

FUNCTIONS = {
    "expand_dims": lambda r: np.expand_dims(r, 0),
    "atleast_3d": np.atleast_3d,
    "stack": lambda r: np.stack([r, r]),
    "hstack": lambda r: np.hstack([r, r]),
    "repeat": lambda r: np.repeat(r, 3),
    "tile": lambda r: np.tile(r, 3),
    "matrix_rank, tol": lambda r: np.linalg.matrix_rank(EYE, tol=r),
    "matrix_rank, rtol": lambda r: np.linalg.matrix_rank(EYE, rtol=r),
    "pinv": lambda r: np.linalg.pinv(EYE * 3, rtol=r / 9),
    "lstsq": lambda r: np.linalg.lstsq(EYE, ONES, rcond=r / 9)[0],
    "interp": lambda r: np.interp(r, [0.0, 9.0], [2.0, 3.0]),
    "searchsorted": lambda r: np.searchsorted(np.arange(3.0), r),
    "quantile": lambda r: np.quantile(np.arange(9.0), r / 9),
    "append": lambda r: np.append(ONES, r),
    "insert": lambda r: np.insert(ONES, 1, r),
    "full": lambda r: np.full(3, r),
    "pad": lambda r: np.pad(ONES, 1, constant_values=r),
    "broadcast_to": lambda r: np.broadcast_to(r, (2, 2)),
    "linspace": lambda r: np.linspace(r, ONES, 3),
    "diff": lambda r: np.diff(ONES, prepend=r),
    "ediff1d": lambda r: np.ediff1d(ONES, to_begin=r),
    "trapezoid": lambda r: np.trapezoid(ONES, dx=r),
    "gradient": lambda r: np.gradient(np.arange(3.0), r),
    "select": lambda r: np.select([r > ONES], [r], 0),
    "choose": lambda r: np.choose(1, [r, r]),
    "meshgrid": lambda r: np.meshgrid(r, ONES)[0],
    "reshape": lambda r: np.reshape(r, (1, 1)),
    "index of an array": lambda r: (np.array(r)[...], np.asarray(r)[None], np.asarray(r)[()], np.float64(r)[...]),
    "einsum": lambda r: np.einsum("i,->i", ONES, r),
    "outer": lambda r: np.outer(r, ONES),
    "clip": lambda r: np.clip(ONES, 0, r),
}


@pytest.mark.parametrize("number", [2.0, 1, True], ids=["float", "int", "bool"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers_among_the_arguments(name, number):
    found, expected = cyxla.jit(FUNCTIONS[name])(number), FUNCTIONS[name](number)
    for pair in zip(*(v if isinstance(v, tuple) else (v,) for v in (found, expected)), strict=True):
        np.testing.assert_allclose(*pair, rtol=1e-12, atol=1e-12)
        assert pair[0].dtype == pair[1].dtype
