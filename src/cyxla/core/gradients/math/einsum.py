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
    own_labels, other_labels = labels[k], labels[:k] + labels[k + 1 :]
    x = op.inputs[k]
    available = set("".join((output, *other_labels))) - {"."}
    letters = "".join(dict.fromkeys(own_labels.replace(_DOTS, "")))
    summed_labels = "".join(label for label in letters if label in available)
    dots = _DOTS if _DOTS in output else ""
    factors = [conj(t) for i, t in enumerate(op.inputs) if i != k]
    grad = (
        dz
        if not other_labels and output == dots + summed_labels
        else _einsum(f"{','.join([output, *other_labels])}->{dots}{summed_labels}", dz, *factors)
    )
    if dots:
        grad = _sum_broadcast(grad, x, own_labels, len(summed_labels))
        dots = _DOTS if _DOTS in own_labels else ""
    return _restore_labels(grad, x, dots + summed_labels, own_labels)


def _sum_broadcast(grad: Tensor, x: Tensor, own_labels: str, num_labels: int) -> Tensor:
    """Sum over the dimensions that the leading ``...`` broadcast."""
    shape = apply_op("Shape", grad)
    inner = apply_op("StridedSlice", shape, [-num_labels], [0], [1], end_mask=1) if num_labels else []
    outer = apply_op("StridedSlice", shape, [0], [-num_labels], [1], begin_mask=1) if num_labels else shape
    own_dots: Any = _dots_shape(x, own_labels) if _DOTS in own_labels else apply_op("Slice", shape, [0], [0])
    axes, _ = apply_op("BroadcastGradientArgs", own_dots, outer)
    target = apply_op("ConcatV2", [own_dots, inner], 0) if num_labels else own_dots
    return apply_op("Reshape", apply_op("Sum", grad, axes), target)


def _dots_shape(x: Tensor, own_labels: str) -> Tensor:
    before, after = (len(part) for part in own_labels.split(_DOTS))
    shape = apply_op("Shape", x)
    return apply_op("StridedSlice", shape, [before], [-after], [1], end_mask=0 if after else 1)


def _restore_labels(grad: Tensor, x: Tensor, current_labels: str, own_labels: str) -> Tensor:
    """Restore summed and repeated labels one by one, then transpose to the operand's order."""
    result, unused = "", iter(c for c in _LETTERS if c not in own_labels)
    for label in own_labels.replace(_DOTS, "."):
        if label == ".":
            result += _DOTS
        elif label not in result:
            if label not in current_labels:
                grad, current_labels = (
                    _einsum(f"{current_labels},{label}->{current_labels}{label}", grad, _ones(x, own_labels, label)),
                    current_labels + label,
                )
            result += label
        else:
            duplicate = next(unused, None)
            if duplicate is None:
                raise UnimplementedError(f"the gradient of an equation with all letters, as {own_labels!r}")
            diagonal = apply_op("MatrixDiag", _ones(x, own_labels, label))
            grad, current_labels = (
                _einsum(f"{current_labels},{label}{duplicate}->{current_labels}{duplicate}", grad, diagonal),
                current_labels + duplicate,
            )
            result += duplicate
    return grad if current_labels == result else _einsum(f"{current_labels}->{result}", grad)


def _ones(x: Tensor, own_labels: str, label: str) -> Tensor:
    """Return a vector of ones of a label's size."""
    before, _, after = own_labels.partition(_DOTS)
    position = before.index(label) if label in before else after.index(label) - len(after)
    if _DOTS not in own_labels:
        position = own_labels.index(label)
    open_end = int(position == -1)
    size = apply_op("StridedSlice", apply_op("Shape", x), [position], [position + 1], [1], end_mask=open_end)
    return apply_op("Fill", size, apply_op("Cast", 1.0, DstT=x.dtype))
