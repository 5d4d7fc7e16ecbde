"""Results of `eig` and `eigvals`, which NumPy returns as real arrays if all eigenvalues are real."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cyxla.numpy.tracing.arrays.traced_array import TracedArray, value_of
from cyxla.numpy.tracing.trace import Trace, require_current
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import zeros_like


class Spectrum(TracedArray):
    """Complex eigenvalues or eigenvectors of real matrices.

    While tracing they are complex, as is everything computed from them. Returned from the compiled function as they
    are, they become real arrays at run time if all imaginary parts of the eigenvalues are zero; where other results
    that are computed from them are complex, the plain function runs then.

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
        require_current().program.spectra.append((op, eigenvalues))

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


def leave_if_real(trace: Trace, results: Sequence[TracedArray]) -> None:
    """Make the plain function run where eigenvalues are real from which a complex result is computed."""
    is_direct = [isinstance(r, Spectrum) and r.unchanged for r in results]
    computed = [r.op for r, direct in zip(results, is_direct, strict=True) if r.dtype.kind == "c" and not direct]
    if not computed or not trace.program.exact_classes:
        return
    used = _instructions_of(computed)
    for spectrum, eigenvalues in trace.program.spectra:
        if spectrum.instruction in used:
            all_: Any = np.all
            is_real = value_of(all_(TracedArray(xla.eq(xla.imag(eigenvalues), zeros_like(xla.imag(eigenvalues))))))
            trace.leave_if(is_real, lambda _: TypeError("NumPy's eigenvalues are real here, and a program's complex"))


def _instructions_of(ops: Sequence[XlaOp]) -> set[Any]:
    """Return all instructions that values are computed from."""
    found: set[Any] = set()
    pending = [op.instruction for op in ops]
    while pending:
        instruction = pending.pop()
        if instruction is not None and instruction not in found:
            found.add(instruction)
            pending += instruction.operands
    return found
