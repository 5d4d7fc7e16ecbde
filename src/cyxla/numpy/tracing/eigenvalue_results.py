"""Results of `eig` and `eigvals`, which NumPy returns as real arrays if all eigenvalues are real."""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.numpy.tracing.arrays.traced_array import TracedArray
from cyxla.xla.hlo.builder import XlaOp


class Spectrum(TracedArray):
    """Complex eigenvalues or eigenvectors of real matrices.

    While tracing they are complex, as is everything computed from them. Returned from the compiled function as they
    are, they become real arrays at run time if all imaginary parts of the eigenvalues are zero.

    Parameters
    ----------
    op : XlaOp
        Eigenvalues or eigenvectors, complex.
    eigenvalues : XlaOp
        Eigenvalues of the same matrices.
    """

    __slots__ = ("_initial_op", "eigenvalues")

    def __init__(self, op: XlaOp, eigenvalues: XlaOp) -> None:
        super().__init__(op)
        self._initial_op = op
        self.eigenvalues = eigenvalues

    @property
    def unchanged(self) -> bool:
        """True if the function has not written to the array since."""
        return self.op is self._initial_op


def real_if_zero(results: Sequence[TracedArray]) -> tuple[tuple[int, int], ...]:
    """Return the results that are real arrays if all imaginary parts of another result are zero.

    Eigenvectors follow their eigenvalues; if these are no results, the eigenvectors' own imaginary parts decide.

    Returns
    -------
    tuple of (int, int)
        Index of each, and that of the other result.
    """
    spectra = {k: r for k, r in enumerate(results) if isinstance(r, Spectrum) and r.unchanged}
    values = {r.eigenvalues: k for k, r in spectra.items() if r.eigenvalues is r.op}
    return tuple([(k, values.get(r.eigenvalues, k)) for k, r in spectra.items()])
