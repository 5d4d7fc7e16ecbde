"""Expressions of arrays whose size is known at run time, and how they are compared with NumPy."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import cyxla

ROWS, COLUMNS = 6, 4
SELECTIONS = ("none", "one", "some", "all")


def arguments(selected: str, seed: int = 0) -> dict[str, Any]:
    """Return the names that expressions use; `selected` is the number of rows of masks: none, one, some or all."""
    rng = np.random.default_rng(seed)
    mask = {
        "none": np.zeros(ROWS, bool), "one": np.arange(ROWS) == 3, "some": np.arange(ROWS) % 3 != 1,
        "all": np.ones(ROWS, bool),
    }[selected]  # fmt: skip
    x = rng.integers(-9, 10, ROWS).astype(float)
    special = x.copy()
    special[[0, 2, 5]] = [np.nan, np.inf, np.nan]
    return {
        "x": x, "A": rng.integers(-9, 10, (ROWS, COLUMNS)) / 4, "m": mask, "n": rng.integers(0, 5, ROWS), "f": special,
        "c": x + 1j * x[::-1], "i": np.array([1, 2, 0]), "k": np.int64(2), "b": mask.astype(np.int8),
    }  # fmt: skip


def outcome(function: Any, values: Mapping[str, Any]) -> tuple[Any, BaseException | None]:
    """Return the result of a function of copies of arguments and None, or None and its exception."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(**{n: v.copy("K") for n, v in values.items()}), None
    except Exception as error:
        return None, error


def function_of(expression: str, names: Mapping[str, Any]) -> Any:
    """Return a function of named arguments for an expression or, with line breaks, the body of a function."""
    space: dict[str, Any] = {"np": np, "cyxla": cyxla}
    body = expression if "\n" in expression else f"return {expression}"
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    exec(f"def function({', '.join(names)}):\n{lines}", space)
    return space["function"]


def check(expression: str, platform: str, selections: Sequence[str] = SELECTIONS) -> None:
    """Check that a compiled function gives NumPy's results, or fails with a class of NumPy's error, for all masks."""
    function = function_of(expression, arguments("all"))
    compiled = cyxla.jit(function, platform=platform)
    for selected in selections:
        values, text = arguments(selected), f"{expression} of {selected}"
        want, failure = outcome(function, values)
        got, ours = outcome(compiled, values)
        if failure is not None:
            assert isinstance(ours, _public_class(failure)), f"{text}: NumPy raises {failure!r}, we {got!r}, {ours!r}"
        elif ours is not None:
            raise AssertionError(f"{text}: {ours}") from ours
        else:
            alike(got, want, text)


def _public_class(error: BaseException) -> type[BaseException]:
    return next(c for c in (IndexError, TypeError, ValueError, ArithmeticError, Exception) if isinstance(error, c))


def alike(got: Any, want: Any, text: str) -> None:
    """Check that results have the same type, dtype and shape and close values."""
    assert type(got) is type(want), f"{text}: a {type(got).__name__} is no {type(want).__name__}"
    if isinstance(want, dict):
        assert list(got) == list(want), text
        got, want = list(got.values()), list(want.values())
    if want is None:
        return
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want), text
        for g, w in zip(got, want, strict=True):
            alike(g, w, text)
        return
    if isinstance(got, np.ndarray):
        assert got.dtype == want.dtype, f"{text}: {got.dtype} is not {want.dtype}"
    assert np.shape(got) == np.shape(want), f"{text}: {np.shape(got)} is not {np.shape(want)}"
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12, err_msg=text)
