"""Type promotion: dtypes of operands and results, as NumPy itself resolves them.

Python's numbers are weakly typed (NEP 50): they adopt the type of the other operand. Like NumPy, this module denotes
their types by the classes `int`, `float` and `complex`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from cyxla.errors import DTypeError

try:
    from numpy._core._exceptions import UFuncTypeError as NumpyLoopError
    from numpy._core._exceptions import _UFuncOutputCastingError as NumpyOutputError
except ImportError:  # private in NumPy

    class NumpyLoopError(TypeError):  # type: ignore[no-redef]
        """No loop of a ufunc takes these types."""

    NumpyOutputError = NumpyLoopError  # type: ignore[misc, assignment]


Dtype = np.dtype[Any]
Kind = Dtype | type  # a weak type is the class bool, int, float or complex
WEAK_DTYPES: dict[type, Dtype] = {
    bool: np.dtype(bool), int: np.dtype(np.int64), float: np.dtype(np.float64), complex: np.dtype(np.complex128),
}  # fmt: skip
_SAMPLES = {bool: False, int: 0, float: 0.0, complex: 0j}


class LoopError(DTypeError, NumpyLoopError):
    """No loop of a ufunc takes these types or gives the requested one; also NumPy's ``UFuncTypeError``."""


def dtype_of(kind: Kind) -> Dtype:
    """Return the dtype of a kind on its own."""
    return WEAK_DTYPES[kind] if isinstance(kind, type) else kind


def kind_of(value: Any) -> Kind:
    """Return the kind of a Python number, a NumPy scalar or an array."""
    return type(value) if type(value) in (int, float, complex) else np.asarray(value).dtype


Signature = tuple[Dtype | None, ...]


@lru_cache(maxsize=4096)
def loop_types(
    ufunc: np.ufunc, kinds: tuple[Kind, ...], dtype: Dtype | Signature | None = None, casting: str = "same_kind"
) -> tuple[Dtype, ...]:
    """Return the dtypes of operands and results of the loop that NumPy would run.

    Parameters
    ----------
    ufunc : numpy.ufunc
        Function to resolve.
    kinds : tuple
        Kind of each operand.
    dtype : dtype or tuple, optional
        Requested dtype of the results, or a dtype or None for each operand and result.
    casting : str
        Rule for conversions of operands.

    Raises
    ------
    DTypeError
        NumPy has no such loop.
    """
    options: dict[str, Any] = {}
    if dtype is not None:
        options["signature"] = dtype if isinstance(dtype, tuple) else (*[None] * ufunc.nin, *[dtype] * ufunc.nout)
    if all(k is int for k in kinds):  # NumPy compares Python's integers as objects
        kinds = (WEAK_DTYPES[int],) * len(kinds)
    operand_types = (*[bool_as_array(k) for k in kinds], *[None] * ufunc.nout)
    rule = casting
    if rule == "equiv" and any(isinstance(k, type) for k in operand_types):  # NumPy crashes on this
        _check_equivalent(kinds, loop_types(ufunc, kinds, dtype))
        casting = "no"
    try:
        return tuple(ufunc.resolve_dtypes(operand_types, casting=casting, **options))  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        error_class: Any = type(error)
        raise _class_like(error_class)(_first_line(error).replace("rule 'no'", f"rule '{rule}'")) from None


@lru_cache
def _class_like(error: Any) -> type[DTypeError]:
    """Return a class of errors of this package that is also the class of a NumPy error."""
    if not issubclass(error, NumpyLoopError):
        return DTypeError
    return type("LoopError", (LoopError, error), {"__module__": __name__, "__doc__": LoopError.__doc__})


def output_error(name: str, source: Dtype, target: Dtype, casting: str) -> DTypeError:
    """Return the error of results that cannot be cast to the type of ``out=``."""
    return _class_like(NumpyOutputError)(
        f"Cannot cast ufunc '{name}' output from {source!r} to {target!r} with casting rule '{casting}'"
    )


def _check_equivalent(kinds: tuple[Kind, ...], types: tuple[Dtype, ...]) -> None:
    """Refuse Python numbers in a loop of another dtype than their own."""
    for kind, dtype in zip(kinds, types, strict=False):
        if isinstance(kind, type) and WEAK_DTYPES[kind] != dtype:
            raise DTypeError(f"cannot cast Python {kind.__name__} to {dtype} under the casting rule 'equiv'")


def bool_as_array(kind: Kind) -> Kind:
    """Replace the kind bool by its dtype: Python's bool is not weak in NumPy."""
    return np.dtype(bool) if kind is bool else kind


@lru_cache(maxsize=4096)
def result_type(*kinds: Kind) -> Dtype:
    """Return NumPy's common dtype of these kinds.

    Raises
    ------
    DTypeError
        There is no common dtype.
    """
    try:
        return np.result_type(*[_SAMPLES[k] if isinstance(k, type) else k for k in kinds])
    except TypeError as error:
        raise DTypeError(_first_line(error)) from None


@lru_cache(maxsize=512)
def common_kind(*kinds: Kind) -> Kind:
    """Return the common kind: that of `result_type`, or a weak one if all are weak."""
    if all(isinstance(k, type) for k in kinds):
        return max((k for k in kinds if isinstance(k, type)), key=list(WEAK_DTYPES).index)
    return result_type(*kinds)


def same_kind(first: Kind, second: Kind) -> bool:
    """Return True for equal kinds: a weak type equals no dtype, although NumPy's dtypes compare equal to it."""
    return first is second or (isinstance(first, type) is isinstance(second, type) and first == second)


@lru_cache(maxsize=512)
def inexact(kind: Kind) -> Dtype:
    """Return the dtype of NumPy's mean or sqrt of a kind: floats and complex as they are, else float64."""
    dtype = dtype_of(kind)
    return dtype if dtype.kind in "fcV" else np.dtype(np.float64)


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]
