"""Rows of the tables that test NumPy's functions, and how they are checked.

A row names a function and calls of it. Each call runs twice on the same arrays, by NumPy and traced and compiled; the
results must agree in dtype, shape and values. `numpy_rows/<subject>.py` hold the rows in lists called ``ROWS``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np

import cyxla
from cyxla.numpy import jit

FLOATS = "efd"
COMPLEX = "FD"
SIGNED = "bhil"
UNSIGNED = "BHIL"
INTEGERS = SIGNED + UNSIGNED
REALS = INTEGERS + FLOATS
NUMBERS = REALS + COMPLEX
ANY = "?" + NUMBERS
INEXACT = FLOATS + COMPLEX
SUBJECTS = (
    "creation", "movement", "indexing", "indices", "reductions", "statistics", "quantiles", "histograms",
    "sorting", "sets", "contractions",
    "linalg", "fft", "polynomials", "mathematics", "convolutions", "logic", "ufuncs", "special", "random",
)  # fmt: skip
MATRIX, VECTOR, SCALAR, CUBE, EMPTY = (3, 4), (5,), (), (2, 3, 4), (0, 3)


@dataclass(frozen=True)
class Row:
    """A function, and calls of it that must give NumPy's results.

    Attributes
    ----------
    name : str
        NumPy's function, without ``numpy.``.
    calls : sequence of callable
        Functions of the arrays.
    shapes : sequence of tuples of shapes
        One array for each shape of a tuple; every call runs on every tuple.
    dtypes : str
        Letters of NumPy's dtypes; the calls run once for each, with all arrays of that dtype.
    ulp : float
        Largest error in units in the last place, of the largest expected value (`of_largest`) or of each one.
    of_largest : bool
        Whether errors are measured by the largest expected value.
    low, high : float
        Range of the random numbers, clipped to the range of the dtype.
    make : callable, optional
        Function from a random generator, a shape and a dtype to an array, where a range is not enough.
    special : bool
        Whether nan, infinities and zeros of both signs are mixed in.
    differentiable : bool
        Whether the gradient with respect to all inexact arrays is compared with central differences.
    """

    name: str
    calls: Sequence[Callable[..., Any]]
    shapes: Sequence[tuple[tuple[int, ...], ...]] = ((MATRIX,), (SCALAR,), (EMPTY,))
    dtypes: str = NUMBERS
    ulp: float = 4
    of_largest: bool = False
    low: float = -10
    high: float = 10
    make: Callable[[np.random.Generator, tuple[int, ...], np.dtype], np.ndarray] | None = None
    special: bool = False
    differentiable: bool = False
    platforms: tuple[str, ...] = field(default=("interpreter",))

    def arrays(self, rng: np.random.Generator, shapes: Sequence[tuple[int, ...]], letter: str) -> list[np.ndarray]:
        """Return random arrays of these shapes."""
        dtype = np.dtype(ml_dtypes.bfloat16) if letter == "E" else np.dtype(letter)
        return [(self.make or self._drawn)(rng, shape, dtype) for shape in shapes]

    def _drawn(self, rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        if dtype.kind == "b":
            return rng.integers(0, 2, shape).astype(bool)
        if dtype.kind in "iu":
            low = max(self.low, np.iinfo(dtype).min)
            return rng.integers(int(low), int(min(self.high, np.iinfo(dtype).max)) + 1, shape).astype(dtype)
        made = np.asarray(rng.uniform(self.low, self.high, shape))
        if dtype.kind == "c":
            made = made + 1j * rng.uniform(self.low, self.high, shape)
        made = np.asarray(made).astype(dtype)
        if self.special and made.size:
            spots = rng.integers(0, made.size, min(4, made.size))
            made.reshape(-1)[spots] = np.array([np.nan, np.inf, -np.inf, -0.0])[: spots.size].astype(dtype)
        return made


def rows(subject: str) -> list[Row]:
    """Return the rows of a subject; none if it has no file."""
    try:
        return list(import_module(f"numpy_rows.{subject}").ROWS)
    except ModuleNotFoundError as error:
        if error.name != f"numpy_rows.{subject}":
            raise
        return []


def outcome(function: Callable[..., Any], arrays: Sequence[np.ndarray]) -> tuple[Any, BaseException | None]:
    """Return the result of a call and None, or None and its exception."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # compiled code has no equivalent of NumPy's warnings
            return function(*[a.copy() for a in arrays]), None
    except Exception as error:
        return None, error


def check(row: Row, call: Callable[..., Any], arrays: Sequence[np.ndarray], platform: str = "interpreter") -> None:
    """Check that a traced and compiled call gives NumPy's result, or fails where NumPy fails."""
    want, failure = outcome(call, arrays)
    got, ours = outcome(jit(call, platform=platform), arrays)
    what = f"{row.name} on {[f'{a.dtype}{a.shape}' for a in arrays]}"
    if failure is not None:
        assert ours is not None, f"{what}: NumPy raises {failure!r}, we give {got!r}"
        assert not isinstance(ours, cyxla.errors.InternalError), ours
        return
    if ours is not None:
        raise AssertionError(f"{what}: {ours}") from ours
    alike(got, want, row, what)


def alike(got: Any, want: Any, row: Row, what: str) -> None:
    """Check that results have the same type, dtype and shape, and values within the tolerance of the row."""
    if isinstance(want, (tuple, list)):
        assert isinstance(got, list if isinstance(want, list) else tuple), f"{what}: {got!r} is not {want!r}"
        assert len(got) == len(want), f"{what}: {got!r} is not {want!r}"
        for g, w in zip(got, want, strict=True):
            alike(g, w, row, what)
        return
    assert type(got) is type(want), f"{what}: a {type(got).__name__} is no {type(want).__name__}"
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape), (
        f"{what}: {got.dtype}{got.shape} is not {want.dtype}{want.shape}"
    )
    if want.dtype.kind in "biu":
        np.testing.assert_array_equal(got, want, err_msg=what)
        return
    close(got, want, row, what)


def close(got: np.ndarray, want: np.ndarray, row: Row, what: str) -> None:
    """Check floats within the tolerance of the row; NaN and infinities must be at the same indices."""
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    real = np.dtype(f"f{want.dtype.itemsize // 2}") if want.dtype.kind == "c" else want.dtype
    eps, tiny = float(ml_dtypes.finfo(real).eps), float(ml_dtypes.finfo(real).tiny)
    g, w = got.astype(wide).reshape(-1), want.astype(wide).reshape(-1)
    finite = np.isfinite(w)
    np.testing.assert_array_equal(np.isnan(g), np.isnan(w), err_msg=what)
    if want.dtype.kind != "c":
        np.testing.assert_array_equal(g[~finite], w[~finite], err_msg=what)
    if finite.any():
        size = np.abs(w[finite])
        scale = np.maximum(size.max() if row.of_largest else size, tiny)
        off = np.abs(g[finite] - w[finite]) / scale / eps
        assert off.max() <= row.ulp, f"{what}: {off.max():.3g} ulp off\n{got}\n{want}"
