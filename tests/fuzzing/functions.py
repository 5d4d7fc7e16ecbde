"""Functions of NumPy, run by Python, and traced and compiled. An input is the text of a function and its arguments."""

from __future__ import annotations

import contextlib
import random
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import cyxla
from cyxla.errors import OpError, TraceError, UnimplementedError
from cyxla.numpy.tracing.containers import flatten
from fuzzing.expressions import EPSILON, Function, coarsest
from fuzzing.kind import DifferenceError, Kind, Stage
from fuzzing.loops import loop

FAMILIES = (OverflowError, ZeroDivisionError, TypeError, (ValueError, IndexError), NotImplementedError, AttributeError)
REFUSALS = (UnimplementedError, TraceError)
STAGES = ("plain", "interpreter", "cpu")


def values(seed: int, dtype: str, shape: tuple[int, ...], how: str = "") -> np.ndarray:
    """An array of small numbers, some of them special, in memory of a certain kind."""
    rng = np.random.default_rng(seed)
    wide = (*shape[:-1], 2 * shape[-1]) if how == "strided" and shape else shape
    made = np.asarray(_drawn(rng, np.dtype(dtype), wide, "plain" in how))
    if shape and how == "strided":
        made = made[..., ::2]
    elif how == "turned":
        made = np.asfortranarray(made)
    elif shape and how == "reversed":
        made = made[::-1].copy()[::-1]
    return made


def _drawn(rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...], plain: bool) -> np.ndarray:
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        return (_drawn(rng, part, shape, True) + 1j * _drawn(rng, part, shape, True)).astype(dtype)
    low = 0 if dtype.kind == "u" else -12
    made = rng.integers(low, 13, shape)
    if dtype.kind == "f":
        made = np.asarray(made / 4).astype(dtype)
        special = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e4]).astype(dtype)
    else:
        made = np.asarray(made).astype(dtype)
        limits = np.iinfo(dtype)
        special = np.array([limits.min, limits.max, limits.max - 1, 0, 1, 2], dtype)
    if plain or rng.random() < 0.5:
        return made
    return np.where(rng.random(shape) < 0.15, special[rng.integers(0, 6, shape)], made).astype(dtype)


def defined(text: str) -> tuple[Any, tuple[Any, ...], tuple[str, ...]]:
    """The function of a text, its arguments, and the coarsest type in which each result was rounded, "" if none."""
    names: dict[str, Any] = {"np": np, "cyxla": cyxla, "values": values}
    exec(compile(text, "<input>", "exec"), names)  # a text that this module made, or one given for a replay
    return names["f"], names["args"], names["rounded"]


def outcome(function: Any, args: Sequence[Any]) -> Any:
    """A call's result, or its error."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*[a.copy() if isinstance(a, np.ndarray) else a for a in args])
        except Exception as error:
            return error


def casts_beyond(function: Any, args: Sequence[Any]) -> bool:
    """Tell whether NumPy casts floats to integers that do not hold them: C leaves the result open."""
    with np.errstate(all="ignore", invalid="warn"), warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        with contextlib.suppress(Exception):
            function(*[a.copy() if isinstance(a, np.ndarray) else a for a in args])
    return any("in cast" in str(w.message) for w in given)


def compare(got: Any, want: Any, rounded: Sequence[str], scale: float = 1.0) -> None:
    """Raise unless a traced function behaves like NumPy or is refused with an error of `cyxla.errors`."""
    if isinstance(got, REFUSALS) or (isinstance(got, OpError) and "cannot be traced" in got.message):
        raise got
    if isinstance(want, Exception) or isinstance(got, Exception):
        if not _is_alike(got, want):
            raise DifferenceError(f"NumPy: {want!r}\ntraced: {got!r}") from got if isinstance(got, Exception) else None
        return
    (ours, form), (theirs, wanted) = flatten(got), flatten(want)
    if form != wanted:
        raise DifferenceError(f"NumPy: {want!r}\ntraced: {got!r}")
    rounded = rounded if len(rounded) == len(theirs) else [coarsest(rounded)] * len(theirs)
    for g, w, coarse in zip(ours, theirs, rounded, strict=True):
        _compare_arrays(np.asarray(g), np.asarray(w), coarse, scale)


def _is_alike(got: Any, want: Any) -> bool:
    """Whether both are errors of one family."""
    if not (isinstance(want, Exception) and isinstance(got, Exception)):
        return False
    families = [f for f in FAMILIES if isinstance(want, f)] or [type(want)]
    return any(isinstance(got, f) for f in families)


def _compare_arrays(got: np.ndarray, want: np.ndarray, rounded: str, scale: float) -> None:
    told = f"NumPy: {want.dtype}{list(want.shape)} {want}\ntraced: {got.dtype}{list(got.shape)} {got}"
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        raise DifferenceError(told)
    if not rounded or want.dtype.kind not in "fc":
        if not np.array_equal(got, want, equal_nan=want.dtype.kind in "fc"):
            raise DifferenceError(told)
        return
    with np.errstate(all="ignore"):
        wide = np.complex128 if want.dtype.kind == "c" else np.float64
        g, w = got.astype(wide), want.astype(wide)
        finite = np.isfinite(w)
        overflows = want.dtype.char != "e" and np.isfinite(g[~finite]).any()  # NumPy's sums of float16 overflow early
        # NumPy's BLAS has NaN where products of complex numbers are infinite.
        is_other = want.dtype.char in "fd" and not np.array_equal(np.isnan(g), np.isnan(w))
        if overflows or is_other or not np.isfinite(g[finite]).all():
            raise DifferenceError(told)
        largest = max(np.abs(w[finite]).max(initial=0.0), scale)
        if (np.abs(g[finite] - w[finite]) > EPSILON[coarsest((rounded, want.dtype.char))] * largest).any():
            raise DifferenceError(told)


def _huge(argument: Any) -> float:
    """How large whole numbers are that sums of floats lose digits of."""
    whole = isinstance(argument, np.ndarray) and argument.dtype.kind in "iu" and argument.size
    return float(np.abs(argument.astype(np.float64)).max()) if whole else 0.0


class Traced(Kind):
    """Functions as texts."""

    suffix = ".py"
    stages = runs = STAGES
    deep = 0.1
    seconds = 60.0

    def prepare(self, folders: Sequence[Path]) -> None:
        pass

    def attempt(self, data: bytes, deep: bool, stage: Stage) -> None:
        stage("plain")
        try:
            function, args, rounded = defined(data.decode())
        except Exception:  # a text that was cut
            return
        want, scale = outcome(function, args), max(1.0, *map(_huge, args))
        if casts_beyond(function, args):
            return
        stage("interpreter")
        compare(outcome(cyxla.jit(function, platform="interpreter"), args), want, rounded, scale)
        if deep:
            stage("cpu")
            compare(outcome(cyxla.jit(function), args), want, rounded, scale)

    def cuts(self, data: bytes) -> list[list[bytes]]:
        return [data.splitlines(keepends=True)]


class Numpy(Traced):
    name = "numpy"

    def make(self, rng: random.Random) -> bytes:
        return Function(rng, values).text().encode()


class Loops(Traced):
    name = "loops"

    def make(self, rng: random.Random) -> bytes:
        return loop(rng).encode()
