"""The gradient of Einstein's sums: another such sum of the gradient and the other operands.

What an operand's labels say goes back one at a time: a label that was summed away is spread again, one that stood
twice becomes a diagonal, and what ``...`` repeated is summed.
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
    """To each operand what the others carry."""
    left, output = op.attr("equation").replace(" ", "").split("->")
    labels = left.split(",")
    return [_operand_grad(op, dz, labels, output, k) for k in range(len(labels))]


def _operand_grad(op: Any, dz: Tensor, labels: list[str], output: str, k: int) -> Tensor:
    mine, others = labels[k], labels[:k] + labels[k + 1 :]
    x = op.inputs[k]
    known = set("".join((output, *others))) - {"."}
    letters = "".join(dict.fromkeys(mine.replace(_DOTS, "")))
    kept = "".join(label for label in letters if label in known)
    dots = _DOTS if _DOTS in output else ""
    factors = [conj(t) for i, t in enumerate(op.inputs) if i != k]
    grad = (
        dz
        if not others and output == dots + kept
        else _einsum(f"{','.join([output, *others])}->{dots}{kept}", dz, *factors)
    )
    if dots:
        grad = _unrepeated(grad, x, mine, len(kept))
        dots = _DOTS if _DOTS in mine else ""
    return _spread(grad, x, dots + kept, mine)


def _unrepeated(grad: Tensor, x: Tensor, mine: str, named: int) -> Tensor:
    """Sum over the dimensions that ``...``, which stands first, has repeated."""
    have = apply_op("Shape", grad)
    inner = apply_op("StridedSlice", have, [-named], [0], [1], end_mask=1) if named else []
    outer = apply_op("StridedSlice", have, [0], [-named], [1], begin_mask=1) if named else have
    own: Any = _dots_shape(x, mine) if _DOTS in mine else apply_op("Slice", have, [0], [0])
    axes, _ = apply_op("BroadcastGradientArgs", own, outer)
    target = apply_op("ConcatV2", [own, inner], 0) if named else own
    return apply_op("Reshape", apply_op("Sum", grad, axes), target)


def _dots_shape(x: Tensor, mine: str) -> Tensor:
    before, after = (len(part) for part in mine.split(_DOTS))
    shape = apply_op("Shape", x)
    return apply_op("StridedSlice", shape, [before], [-after], [1], end_mask=0 if after else 1)


def _spread(grad: Tensor, x: Tensor, have: str, mine: str) -> Tensor:
    """Bring back labels that are gone, or that stand again, one after the other; then the operand's order."""
    wanted, fresh = "", iter(c for c in _LETTERS if c not in mine)
    for label in mine.replace(_DOTS, "."):
        if label == ".":
            wanted += _DOTS
        elif label not in wanted:
            if label not in have:
                grad, have = _einsum(f"{have},{label}->{have}{label}", grad, _ones(x, mine, label)), have + label
            wanted += label
        else:
            twin = next(fresh, None)
            if twin is None:
                raise UnimplementedError(f"the gradient of an equation with all letters, as {mine!r}")
            diagonal = apply_op("MatrixDiag", _ones(x, mine, label))
            grad, have = _einsum(f"{have},{label}{twin}->{have}{twin}", grad, diagonal), have + twin
            wanted += twin
    return grad if have == wanted else _einsum(f"{have}->{wanted}", grad)


def _ones(x: Tensor, mine: str, label: str) -> Tensor:
    """As many ones as a label counts."""
    before, _, after = mine.partition(_DOTS)
    place = before.index(label) if label in before else after.index(label) - len(after)
    if _DOTS not in mine:
        place = mine.index(label)
    open_end = int(place == -1)
    size = apply_op("StridedSlice", apply_op("Shape", x), [place], [place + 1], [1], end_mask=open_end)
    return apply_op("Fill", size, apply_op("Cast", 1.0, DstT=x.dtype))
