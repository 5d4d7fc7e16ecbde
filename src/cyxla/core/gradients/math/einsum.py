"""Gradient of Einstein summation: for each operand, a sum of products of the gradient and the other operands.

Labels of the operand are then restored one by one: a label that was summed over is broadcast, a repeated label becomes
a diagonal, and dimensions broadcast by ``...`` are summed.
"""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.gradients.common import Tensor, conj
from cyxla.errors import UnimplementedError

_DOTS = "..."
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _einsum(equation: str, *operands: Tensor) -> Tensor:
    return apply_op("Einsum", list(operands), equation=equation)


def einsum_grad(op: Any, dz: Tensor) -> list[Tensor]:
    """Return the gradient of each operand."""
    left, output = op.attr("equation").replace(" ", "").split("->")
    labels = left.split(",")
    return [_operand_grad(op, dz, labels, output, k) for k in range(len(labels))]


def _operand_grad(op: Any, dz: Tensor, labels: list[str], output: str, k: int) -> Tensor:
    own_labels, others = labels[k], labels[:k] + labels[k + 1 :]
    x = op.inputs[k]
    known = set("".join((output, *others))) - {"."}
    letters = "".join(dict.fromkeys(own_labels.replace(_DOTS, "")))
    kept = "".join(label for label in letters if label in known)
    dots = _DOTS if _DOTS in output else ""
    factors = [conj(t) for i, t in enumerate(op.inputs) if i != k]
    grad = (
        dz
        if not others and output == dots + kept
        else _einsum(f"{','.join([output, *others])}->{dots}{kept}", dz, *factors)
    )
    if dots:
        grad = _sum_broadcast(grad, x, own_labels, len(kept))
        dots = _DOTS if _DOTS in own_labels else ""
    return _restore_labels(grad, x, dots + kept, own_labels)


def _sum_broadcast(grad: Tensor, x: Tensor, own_labels: str, named: int) -> Tensor:
    """Sum over the dimensions that the leading ``...`` broadcast."""
    have = apply_op("Shape", grad)
    inner = apply_op("StridedSlice", have, [-named], [0], [1], end_mask=1) if named else []
    outer = apply_op("StridedSlice", have, [0], [-named], [1], begin_mask=1) if named else have
    own: Any = _dots_shape(x, own_labels) if _DOTS in own_labels else apply_op("Slice", have, [0], [0])
    axes, _ = apply_op("BroadcastGradientArgs", own, outer)
    target = apply_op("ConcatV2", [own, inner], 0) if named else own
    return apply_op("Reshape", apply_op("Sum", grad, axes), target)


def _dots_shape(x: Tensor, own_labels: str) -> Tensor:
    before, after = (len(part) for part in own_labels.split(_DOTS))
    shape = apply_op("Shape", x)
    return apply_op("StridedSlice", shape, [before], [-after], [1], end_mask=0 if after else 1)


def _restore_labels(grad: Tensor, x: Tensor, have: str, own_labels: str) -> Tensor:
    """Restore summed and repeated labels one by one, then transpose to the operand's order."""
    result, unused = "", iter(c for c in _LETTERS if c not in own_labels)
    for label in own_labels.replace(_DOTS, "."):
        if label == ".":
            result += _DOTS
        elif label not in result:
            if label not in have:
                grad, have = _einsum(f"{have},{label}->{have}{label}", grad, _ones(x, own_labels, label)), have + label
            result += label
        else:
            duplicate = next(unused, None)
            if duplicate is None:
                raise UnimplementedError(f"the gradient of an equation with all letters, as {own_labels!r}")
            diagonal = apply_op("MatrixDiag", _ones(x, own_labels, label))
            grad, have = _einsum(f"{have},{label}{duplicate}->{have}{duplicate}", grad, diagonal), have + duplicate
            result += duplicate
    return grad if have == result else _einsum(f"{have}->{result}", grad)


def _ones(x: Tensor, own_labels: str, label: str) -> Tensor:
    """Return a vector of ones of a label's size."""
    before, _, after = own_labels.partition(_DOTS)
    position = before.index(label) if label in before else after.index(label) - len(after)
    if _DOTS not in own_labels:
        position = own_labels.index(label)
    open_end = int(position == -1)
    size = apply_op("StridedSlice", apply_op("Shape", x), [position], [position + 1], [1], end_mask=open_end)
    return apply_op("Fill", size, apply_op("Cast", 1.0, DstT=x.dtype))
