"""Gradients of conditionals made of Switch and Merge; loops of Enter and Exit are not differentiable."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient, no_gradient
from cyxla.core.gradients.common import Tensor


@gradient("Switch", "RefSwitch", none_grads=True)
def switch_grad(op: Any, if_false: Tensor, if_true: Tensor) -> tuple[Tensor, None]:
    """Merge the gradients of the branches; a missing one is zero."""
    data, pred = op.inputs
    if if_false is None or if_true is None:
        zeros = apply_op("Switch", apply_op("ZerosLike", data), pred)
        if_false, if_true = (z if g is None else g for g, z in zip((if_false, if_true), zeros, strict=True))
    return apply_op("Merge", [if_false, if_true])[0], None


@gradient("Merge", "RefMerge", none_grads=True)
def merge_grad(op: Any, dy: Tensor, _: Any) -> list[Tensor]:
    """Switch the gradient to the input that was alive; the gradients of the others are dead."""
    number = op.outputs[1]
    return [apply_op("Switch", dy, apply_op("Equal", number, i))[1] for i in range(len(op.inputs))]


@gradient("RefIdentity")
def ref_identity_grad(op: Any, dy: Tensor) -> Tensor:
    """Pass the gradient unchanged."""
    return dy


no_gradient("ControlTrigger", "LoopCond", "NoOp")
