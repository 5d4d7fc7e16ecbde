"""Operations across devices."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient, no_gradient
from cyxla.core.gradients.common import Tensor
from cyxla.errors import UnimplementedError

no_gradient("CollectiveAssignGroupV2", "CollectiveReduceV2")


@gradient("NcclAllReduce")
def all_reduce_grad(op: Any, dy: Tensor) -> Tensor:
    """Sum the gradients of all devices."""
    if op.attr("reduction") != "sum":
        raise UnimplementedError("NcclAllReduce has a gradient only for the reduction 'sum'")
    name = f"{op.attr('shared_name')}_grad"
    return apply_op("NcclAllReduce", dy, reduction="sum", num_devices=op.attr("num_devices"), shared_name=name)
