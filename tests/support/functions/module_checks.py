"""A module's function as it is written against the same function under `cyxla.jit`."""

from __future__ import annotations

import importlib.util
import itertools
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import cyxla
from cyxla.errors import DTypeError, TraceError, UnimplementedError
from support.functions import rounding

REFUSALS = (TraceError, UnimplementedError, DTypeError)
#: Texts of refusals by the values of a call, which a fallback answers.
BY_VALUES = ("by the values", "a Python integer exceeds 64 bits", "a float beyond 64 bits, or NaN")
STATE = ("TABLE", "COUNT", "LEVEL", "LOG", "KNOWN", "BOX")
FAMILIES = (OverflowError, ZeroDivisionError, TypeError, IndexError, ValueError, NameError, AttributeError)
EPSILON = {"f": 1e-4, "d": 1e-9, "F": 1e-4, "D": 1e-9}
_NUMBERS = itertools.count()


def _every_other(array: np.ndarray) -> np.ndarray:
    made = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)[..., ::2]
    made[...] = array
    return made


#: Copies of arguments in memory, of which three in four are plain ones.
LAYOUTS = (np.copy,) * 9 + (np.asfortranarray, _every_other, lambda array: array[::-1].copy()[::-1])


class DifferentError(AssertionError):
    """The two functions differ."""


def loaded(text: str, folder: str) -> ModuleType:
    """Import a text as a module of its own."""
    name = f"written_module_{next(_NUMBERS)}"
    path = Path(folder) / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def arguments(module: ModuleType, call: int) -> tuple[Any, ...]:
    """Return arguments of a call: small numbers that are sums of quarters, in memory of any order."""
    spec, seed = module.ARGUMENTS
    rng = np.random.default_rng((seed, call))
    layout = LAYOUTS[seed % len(LAYOUTS)]
    made = []
    for _, dtype, shape in spec:
        whole = rng.integers(-8, 9, shape)
        number = {"i": whole, "u": np.abs(whole), "f": whole / 4, "c": whole * (0.25 + 0.5j)}[dtype[0]]
        made.append(layout(number.astype(dtype)))
    return (*made, float(rng.integers(-8, 9)) / 4, seed % 4)


def outcome(function: Any, args: tuple[Any, ...]) -> Any:
    """Return a call's result, or its exception."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*args)
        except Exception as error:
            return error


def check(text: str, platform: str, calls: tuple[int, ...] = (0, 0, 1)) -> str:
    """Compare calls of a module's function with those of the compiled one; return the errors of NumPy's, if any.

    Where the plain function may not run, loops make NumPy's numbers of Python's, and an error of tracing hides one that
    precedes it: types and errors are those of a function for which it may.
    """
    try:
        return _check_with(text, platform, calls, "error")
    except DifferentError as error:
        if not str(error).startswith(("type: ", "errors: ")):
            raise
        return _check_with(text, platform, calls, "numpy")


def turns_on_rounding(text: str, calls: tuple[int, ...] = (0, 0, 1)) -> bool:
    """Return whether the plain function gives other results with other last bits, or other values in `numpy.empty`."""
    return any(not _is_same_nudged(text, calls, seed) for seed in range(rounding.TRIES))


def _is_same_nudged(text: str, calls: tuple[int, ...], seed: int) -> bool:
    with _pair(rounding.nudged_text(text, seed), text) as (nudged, plain):
        try:
            _compare_calls(nudged.main, nudged, plain, calls)
        except DifferentError:
            return False
    return True


def _check_with(text: str, platform: str, calls: tuple[int, ...], fallback: str) -> str:
    with _pair(text, text) as (ours, theirs):
        return _compare_calls(cyxla.jit(ours.main, platform=platform, fallback=fallback), ours, theirs, calls)


@contextmanager
def _pair(text: str, other: str) -> Iterator[tuple[ModuleType, ModuleType]]:
    """Import two texts for as long as the block runs."""
    with tempfile.TemporaryDirectory(prefix="cyxla-modules-") as folder:
        modules = loaded(text, folder), loaded(other, folder)
        try:
            yield modules
        finally:
            for module in modules:
                del sys.modules[module.__name__]


def _compare_calls(run: Any, ours: ModuleType, theirs: ModuleType, calls: tuple[int, ...]) -> str:
    dtypes = {dtype for _, dtype, _ in theirs.ARGUMENTS[0]}
    is_single = not dtypes.isdisjoint(("f4", "c8"))  # values of f8 may come from functions of f4
    epsilon = dict.fromkeys(EPSILON, EPSILON["f"]) if is_single else EPSILON
    for number, call in enumerate(calls):
        given, copies = arguments(theirs, call), arguments(theirs, call)
        want, got = outcome(theirs.main, given), outcome(run, copies)
        where = f"call {number}"
        if isinstance(got, REFUSALS):
            raise got
        if isinstance(got, (TypeError, OverflowError, ValueError)) and any(text in str(got) for text in BY_VALUES):
            raise UnimplementedError(str(got))
        if isinstance(want, Exception) or isinstance(got, Exception):
            compare_errors(got, want, where)
            return f"{type(want).__name__}: {want}"
        _compare_values(got, want, f"{where}, result", epsilon)
        _compare_identities(got, copies, want, given, where)
        _compare_values(copies, given, f"{where}, arguments", epsilon)
        for name in STATE:
            if hasattr(theirs, name):
                one, other = getattr(ours, name), getattr(theirs, name)
                plain = (lambda v: dict(vars(v))) if name == "BOX" else (lambda v: v)
                _compare_values(plain(one), plain(other), f"{where}, {name}", epsilon)
    return ""


def compare_errors(got: Any, want: Any, where: str) -> None:
    both = isinstance(got, Exception) and isinstance(want, Exception)
    families = [f for f in FAMILIES if isinstance(want, f)] or [type(want)]
    if not both or not any(isinstance(got, f) for f in families):
        told = "errors: " if both else ""
        raise DifferentError(f"{told}{where}\nplain: {want!r}\njitted: {got!r}") from (
            got if isinstance(got, Exception) else None
        )


def _compare_identities(got: Any, copies: Any, want: Any, given: Any, where: str) -> None:
    results = [(got, want)] if not isinstance(want, tuple) else list(zip(got, want, strict=True))
    for one, other in results:
        for ours, theirs in zip(copies, given, strict=True):
            if isinstance(theirs, np.ndarray) and one is ours and other is not theirs:
                raise DifferentError(f"{where}: a result is an argument of the jitted function alone")


def _compare_values(got: Any, want: Any, where: str, epsilon: dict[str, float] = EPSILON) -> None:
    if isinstance(want, (tuple, list)):
        if type(got) is not type(want) or len(got) != len(want):
            raise DifferentError(f"{where}\nplain: {want!r}\njitted: {got!r}")
        for k, (one, other) in enumerate(zip(got, want, strict=True)):
            _compare_values(one, other, f"{where}[{k}]", epsilon)
    elif isinstance(want, dict):
        if list(got) != list(want):
            raise DifferentError(f"{where}\nplain: {want!r}\njitted: {got!r}")
        for key in want:
            _compare_values(got[key], want[key], f"{where}[{key!r}]", epsilon)
    else:
        compare_arrays(got, want, where, epsilon)


def compare_arrays(got: Any, want: Any, where: str, epsilon: dict[str, float] = EPSILON) -> None:
    told = f"{where}\nplain: {type(want).__name__} {want!r}\njitted: {type(got).__name__} {got!r}"
    g, w = np.asarray(got), np.asarray(want)
    if g.shape != w.shape or not _same_values(g, w, epsilon):
        raise DifferentError(told)
    if type(want) in (bool, int, float) and not isinstance(got, np.ndarray):
        return  # loops and branches carry it in the type that it has later
    if g.dtype != w.dtype or isinstance(got, np.ndarray) != isinstance(want, np.ndarray):
        raise DifferentError(f"type: {told}")


def _same_values(got: np.ndarray, want: np.ndarray, epsilon: dict[str, float]) -> bool:
    if want.dtype.char not in epsilon:
        return bool(np.array_equal(got, want))
    with np.errstate(all="ignore"):
        finite = np.isfinite(want)
        if not np.array_equal(finite, np.isfinite(got)) or not np.array_equal(np.isnan(want), np.isnan(got)):
            return False
        largest = max(float(np.abs(want[finite]).max(initial=0)), 1.0)
        return bool((np.abs(got[finite] - want[finite]) <= epsilon[want.dtype.char] * largest).all())
