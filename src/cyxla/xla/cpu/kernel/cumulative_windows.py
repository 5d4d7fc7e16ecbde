"""Windows of cumulative reductions."""

from __future__ import annotations

from typing import NamedTuple

from cyxla.xla.hlo import Instruction
from cyxla.xla.hlo.combiners import is_commutative


class Prefix(NamedTuple):
    """Window of a cumulative reduction: it grows along one dimension, from its start or from its end."""

    dimension: int
    backward: bool


def prefix(ins: Instruction) -> Prefix | None:
    """Return the cumulative window of a reduce-window; None if its window is of another form.

    A window that grows from the end combines its elements last to first, as XLA allows; but not by a computation that
    is not seen to be commutative.
    """
    dims, window = ins.operands[0].shape.dims, ins.attrs["window"] or ()
    scanned = [d for d, w in enumerate(window) if w.size != 1]
    is_unit_step = all((w.stride, w.base_dilation, w.window_dilation) == (1, 1, 1) for w in window)
    is_unpadded = all((w.padding_low, w.padding_high) == (0, 0) for d, w in enumerate(window) if d not in scanned)
    if len(scanned) != 1 or not is_unit_step or not is_unpadded or not ins.shape.is_array:
        return None
    n, w = dims[scanned[0]], window[scanned[0]]
    if w.size != n or (w.padding_low, w.padding_high) not in ((n - 1, 0), (0, n - 1)):
        return None
    backward = w.padding_low == 0
    return None if backward and not is_commutative(ins.called[0]) else Prefix(scanned[0], backward)
