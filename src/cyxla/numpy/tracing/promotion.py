"""Which types an operation computes in and gives: NumPy's own answers, asked of NumPy.

Python's numbers are weak (NEP 50): they take on the type of what they meet. NumPy writes them as the classes `int`,
`float` and `complex`, and so does this module.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from cyxla.errors import DTypeError

try:
    from numpy._core._exceptions import UFuncTypeError as NumpyLoopError
    from numpy._core._exceptions import _UFuncOutputCastingError as NumpyOutputError
except ImportError:  # NumPy keeps them to itself

    class NumpyLoopError(TypeError):  # type: ignore[no-redef]
        """No loop of a ufunc takes these types."""

    NumpyOutputError = NumpyLoopError  # type: ignore[misc, assignment]


Dtype = np.dtype[Any]
Kind = Dtype | type  # a weak type is bool's, int's, float's or complex's class
WEAK_DTYPES: dict[type, Dtype] = {
    bool: np.dtype(bool), int: np.dtype(np.int64), float: np.dtype(np.float64), complex: np.dtype(np.complex128),
}  # fmt: skip
_SAMPLES = {bool: False, int: 0, float: 0.0, complex: 0j}


class LoopError(DTypeError, NumpyLoopError):
    """No loop of a ufunc takes these types, or gives what is asked for; NumPy's ``UFuncTypeError``, too."""


def dtype_of(kind: Kind) -> Dtype:
    """The type that a value of this kind has when it meets nothing."""
    return WEAK_DTYPES[kind] if isinstance(kind, type) else kind


def kind_of(value: Any) -> Kind:
    """The kind of a Python number, a NumPy scalar or an array."""
    return type(value) if type(value) in (int, float, complex) else np.asarray(value).dtype


Signature = tuple[Dtype | None, ...]


@lru_cache(maxsize=4096)
def loop_types(
    ufunc: np.ufunc, kinds: tuple[Kind, ...], dtype: Dtype | Signature | None = None, casting: str = "same_kind"
) -> tuple[Dtype, ...]:
    """Types of the operands and results of the loop that NumPy would run.

    Parameters
    ----------
    ufunc : numpy.ufunc
        The function.
    kinds : tuple
        A kind for each operand.
    dtype : dtype or tuple, optional
        Type of the results that the caller asks for, or a type (or None) for each operand and result.
    casting : str
        Which conversions of operands are allowed.

    Raises
    ------
    DTypeError
        NumPy has no such loop.
    """
    asked: dict[str, Any] = {}
    if dtype is not None:
        asked["signature"] = dtype if isinstance(dtype, tuple) else (*[None] * ufunc.nin, *[dtype] * ufunc.nout)
    if all(k is int for k in kinds):  # NumPy compares Python's integers as objects
        kinds = (WEAK_DTYPES[int],) * len(kinds)
    wanted = (*[bool_as_array(k) for k in kinds], *[None] * ufunc.nout)
    rule = casting
    if rule == "equiv" and any(isinstance(k, type) for k in wanted):  # asked this, NumPy dies
        _check_equivalent(kinds, loop_types(ufunc, kinds, dtype))
        casting = "no"
    try:
        return tuple(ufunc.resolve_dtypes(wanted, casting=casting, **asked))  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        found: Any = type(error)
        raise _class_like(found)(_first_line(error).replace("rule 'no'", f"rule '{rule}'")) from None


@lru_cache
def _class_like(error: Any) -> type[DTypeError]:
    """The class of an error of ours that is one of NumPy's, too."""
    if not issubclass(error, NumpyLoopError):
        return DTypeError
    return type("LoopError", (LoopError, error), {"__module__": __name__, "__doc__": LoopError.__doc__})


def output_error(name: str, have: Dtype, wanted: Dtype, casting: str) -> DTypeError:
    """The error of results that are not to be converted to the type of ``out=``."""
    return _class_like(NumpyOutputError)(
        f"Cannot cast ufunc '{name}' output from {have!r} to {wanted!r} with casting rule '{casting}'"
    )


def _check_equivalent(kinds: tuple[Kind, ...], types: tuple[Dtype, ...]) -> None:
    """Refuse Python numbers in a loop of another type than their own."""
    for kind, wanted in zip(kinds, types, strict=False):
        if isinstance(kind, type) and WEAK_DTYPES[kind] != wanted:
            raise DTypeError(f"cannot cast Python {kind.__name__} to {wanted} under the casting rule 'equiv'")


def bool_as_array(kind: Kind) -> Kind:
    """Python's bool is no weak type of NumPy's."""
    return np.dtype(bool) if kind is bool else kind


@lru_cache(maxsize=4096)
def result_type(*kinds: Kind) -> Dtype:
    """NumPy's common type of these kinds.

    Raises
    ------
    DTypeError
        They have none.
    """
    try:
        return np.result_type(*[_SAMPLES[k] if isinstance(k, type) else k for k in kinds])
    except TypeError as error:
        raise DTypeError(_first_line(error)) from None


@lru_cache(maxsize=512)
def common_kind(*kinds: Kind) -> Kind:
    """Like `result_type`, but weak where all of them are."""
    if all(isinstance(k, type) for k in kinds):
        return max((k for k in kinds if isinstance(k, type)), key=list(WEAK_DTYPES).index)
    return result_type(*kinds)


@lru_cache(maxsize=512)
def inexact(kind: Kind) -> Dtype:
    """The type that NumPy's mean or sqrt of this kind would have: floats and complex stay, the rest becomes float64."""
    dtype = dtype_of(kind)
    return dtype if dtype.kind in "fcV" else np.dtype(np.float64)


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]
