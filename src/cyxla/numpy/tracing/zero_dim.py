"""Results without dimensions: NumPy gives an array of shape ``()`` in some cases, a scalar in others."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Rank0(IntEnum):
    """What NumPy would have given for a traced value without dimensions.

    The numbers are those that `cyxla._native.dispatch.Compiled` knows.
    """

    SCALAR = 0  #: such as ``np.float64(1.0)``: of ufuncs, reductions and indexing
    ARRAY = 1  #: of shape ``()``
    PYTHON = 2  #: a bool, int, float or complex


# fmt: off
#: Functions that give arrays whatever they are given.
ARRAYS: Final = frozenset((
    "apply_along_axis", "array", "asanyarray", "asarray", "asarray_chkfinite", "ascontiguousarray", "asfortranarray",
    "block", "broadcast_arrays", "broadcast_to", "copy", "cov", "empty_like", "expand_dims", "fft.fftn", "fft.ifftn",
    "full", "full_like", "i0", "isin", "linalg.tensordot", "linalg.tensorsolve", "ones_like", "pad", "piecewise",
    "require", "roll", "select", "tensordot", "tile", "where", "zeros_like",
))
#: Functions that give an array but for a scalar, which they leave one.
LIKE: Final = frozenset(("astype", "imag", "moveaxis", "real", "reshape", "squeeze", "swapaxes", "transpose"))
#: Those of them that leave a Python number one, too.
OF_NUMBERS: Final = frozenset(("imag", "real"))
#: Functions that give a Python number.
PYTHON: Final = frozenset(("allclose", "array_equal", "array_equiv"))
#: Functions for which it depends on more than that: they say it themselves.
OWN: Final = frozenset((
    "einsum", "linalg.matrix_rank", "linspace", "nanpercentile", "nanquantile", "percentile", "quantile",
))
# fmt: on
