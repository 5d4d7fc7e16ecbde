"""Derivative of the custom call that compacts arrays by a mask."""

from __future__ import annotations

from cyxla.numpy.gradient.backward import no_derivative
from cyxla.numpy.gradient.table import Cotangents, Node, rule
from cyxla.xla.hlo.compaction_signature import COMPACT
from cyxla.xla.lib.compaction import expand


@rule("custom-call")
def custom_call(node: Node) -> Cotangents:
    """Expand the cotangents of a compaction; rows that the mask does not select get zeros."""
    if node.attrs["custom_call_target"] != COMPACT:
        raise no_derivative(node.instruction)
    mask, *_ = node.operands
    *cotangents, _ = node.cotangents
    return [None, *(None if g is None else expand(mask, g) for g in cotangents)]
