"""0-d results: NumPy returns an array of shape ``()`` in some cases, a scalar in others."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Rank0(IntEnum):
    """Kind of NumPy's result for a traced value of rank 0.

    The numbers are known to `cyxla._native.dispatch.Compiled`.
    """

    SCALAR = 0  #: such as ``np.float64(1.0)``: result of ufuncs, reductions and indexing
    ARRAY = 1  #: array of shape ``()``
    PYTHON = 2  #: Python's bool, int, float or complex


# fmt: off
#: Functions that always return arrays.
ARRAY_RESULTS: Final = frozenset((
    "apply_along_axis", "array", "asanyarray", "asarray", "asarray_chkfinite", "ascontiguousarray", "asfortranarray",
    "block", "broadcast_arrays", "broadcast_to", "copy", "cov", "empty_like", "expand_dims", "fft.fftn", "fft.ifftn",
    "full", "full_like", "i0", "isin", "lib.stride_tricks.as_strided", "linalg.tensordot", "linalg.tensorsolve",
    "ones_like", "pad", "piecewise",
    "require", "roll", "select", "tensordot", "tile", "where", "zeros_like",
))
#: Functions that return an array, or a scalar for a scalar.
SAME_KIND_RESULTS: Final = frozenset((
    "astype", "imag", "moveaxis", "real", "reshape", "squeeze", "swapaxes", "transpose",
))
#: Functions of `SAME_KIND_RESULTS` that also return a Python number for one.
NUMBER_RESULTS: Final = frozenset(("imag", "real"))
#: Functions that return a Python number.
PYTHON_RESULTS: Final = frozenset(("allclose", "array_equal", "array_equiv"))
#: Functions that set the kind of their result themselves, since it depends on more than this.
RANK0_SET_BY_FUNCTION: Final = frozenset((
    "einsum", "linalg.matrix_rank", "linspace", "nanpercentile", "nanquantile", "percentile", "quantile",
))
# fmt: on
