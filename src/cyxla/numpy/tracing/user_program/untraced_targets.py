"""Augmented assignments of traced values to arrays of NumPy, such as results of SciPy.

Such an assignment cannot write to the array, and binds its target to a traced one instead. Nobody notices if the array
has no other name.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from cyxla.numpy.tracing.trace import plain_run
from cyxla.numpy.tracing.user_program.api_boundary import api_boundary
from cyxla.numpy.tracing.user_program.user_frames import is_augmented_assignment

_BASE_REFERENCES = 3  # of a view, and of this module


def refuse_shared_target(kwargs: Mapping[str, Any]) -> None:
    """Refuse an augmented assignment to an array of NumPy that has other names.

    Called by each ``__array_ufunc__`` first of all, since it counts references.

    Raises
    ------
    PlainRunError
        The array, or the one that it is a view of, has other names.
    """
    out = kwargs.get("out")
    if out and type(out[0]) is np.ndarray and is_augmented_assignment() and _has_other_names(out):
        raise plain_run(
            "an augmented assignment of a traced value changes an array that was computed by NumPy itself, and that "
            "has other names", "change a copy: np.array(x)",
        )  # fmt: skip


def _has_other_names(out: tuple[Any, ...]) -> bool:
    if _references(out) > _least_references():
        return True
    base = out[0].base
    return base is not None and (type(base) is not np.ndarray or sys.getrefcount(base) > _BASE_REFERENCES)


def _references(out: tuple[Any, ...]) -> int:
    return sys.getrefcount(out[0])


class _Probe:
    """Operand that counts the references to the target of an augmented assignment."""

    @api_boundary
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> int:
        return _references(kwargs["out"])


@cache
def _least_references() -> int:
    """Return the number of references to an array with one name while its ``__array_ufunc__`` runs."""
    target: Any = np.zeros(1)
    target += _Probe()
    return int(target)
