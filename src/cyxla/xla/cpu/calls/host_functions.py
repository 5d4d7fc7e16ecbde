"""Functions of this process that native code calls by number: SciPy's LAPACK and BLAS, and registered C.

A compiled program keeps the names of the functions that it calls; only names of the table below and registered ones
are looked up.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, Final

from cyxla.errors import UnimplementedError
from cyxla.xla.evaluator.targets import c_calls

_REAL: Final = ("orgqr", "ormqr", "syevd", "sytrd")
_COMPLEX: Final = ("ungqr", "unmqr", "heevd", "hetrd")
_ALL: Final = (
    "potrf", "getrf", "geqrf", "geqp3", "gesdd", "gesvd", "gees", "gehrd", "geev", "gtsv",
)  # fmt: skip
LAPACK: Final = frozenset(
    {letter + name for letter in "sdcz" for name in (*_ALL, *(_REAL if letter in "sd" else _COMPLEX))}
)
BLAS: Final = frozenset({letter + "trsm" for letter in "sdcz"})


C_CALL: Final = "c call "  # prefix of the name of a registered function


def address(name: str) -> int:
    """Return the address of a function.

    Raises
    ------
    UnimplementedError
        It is neither in the table nor registered, or SciPy's function has integers of another size.
    """
    return c_calls.address(name.removeprefix(C_CALL)) if name.startswith(C_CALL) else _scipy_address(name)


@cache
def _scipy_address(name: str) -> int:
    """Return the address of a function of the table; this imports SciPy.

    Raises
    ------
    UnimplementedError
        A name is not in the table, or SciPy's function has integers of another size.
    """
    capsule = _capsules(name)[name]
    api = ctypes.pythonapi
    get_name, get_pointer = api.PyCapsule_GetName, api.PyCapsule_GetPointer
    get_name.argtypes, get_name.restype = (ctypes.py_object,), ctypes.c_char_p
    get_pointer.argtypes, get_pointer.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
    signature: bytes = get_name(capsule)
    if b"int *" not in signature:
        raise UnimplementedError(f"{name} of SciPy has integers of another size than 32 bits")
    return int(get_pointer(capsule, signature))


def _capsules(name: str) -> dict[str, Any]:
    if name in BLAS:
        from scipy.linalg import cython_blas

        return cython_blas.__pyx_capi__  # type: ignore[no-any-return]
    if name in LAPACK:
        from scipy.linalg import cython_lapack

        return cython_lapack.__pyx_capi__  # type: ignore[no-any-return]
    raise UnimplementedError(f"native code cannot call {name!r}: it is not in the table of LAPACK and BLAS functions")
