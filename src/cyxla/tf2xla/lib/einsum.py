"""Einstein summation in HLO: diagonals by masks, and one dot per pair of operands."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from cyxla.core.framework.geometry.einsum_equation import parse_equation
from cyxla.errors import ShapeError
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import iota_along, is_narrow, rank_of, select, sizes_of, sum_of, widened, zeros_like

Label = str | int  # a letter, or for a dimension of an ellipsis its distance from the ellipsis' end


@dataclass(frozen=True)
class _Term:
    op: XlaOp
    labels: tuple[Label, ...]


def contract(equation: str, operands: Sequence[XlaOp]) -> XlaOp:
    """Evaluate an equation; narrow floats are summed in f32.

    Raises
    ------
    InvalidArgumentError
        The equation is malformed.
    ShapeError
        An operand does not fit its labels.
    """
    inputs, output = parse_equation(equation, len(operands))
    labels = [_labels(text, rank_of(x), equation) for text, x in zip(inputs, operands, strict=True)]
    sizes = _sizes(labels, operands, equation)
    ellipsis = sorted((label for label in sizes if isinstance(label, int)), reverse=True)
    if ellipsis and "..." not in output:
        raise ShapeError(f"the result of {equation!r} has no '...' for the dimensions {[sizes[d] for d in ellipsis]}")
    head, dots, tail = output.partition("...")
    output_labels: tuple[Label, ...] = (*head, *(ellipsis if dots else ()), *tail)
    terms = [_prepare(widened(x), own_labels, sizes) for x, own_labels in zip(operands, labels, strict=True)]
    computed = _sum_unused(terms[0], output_labels, [t.labels for t in terms[1:]])
    for k, term in enumerate(terms[1:], 1):
        later = [t.labels for t in terms[k + 1 :]]
        computed = _product(
            computed, _sum_unused(term, output_labels, [computed.labels, *later]), {*output_labels, *_union(later)}
        )
    result = _arrange(computed, output_labels)
    return xla.convert(result, operands[0].shape.dtype) if is_narrow(operands[0]) else result


def _union(groups: Sequence[Sequence[Label]]) -> set[Label]:
    return {label for group in groups for label in group}


def _labels(text: str, rank: int, equation: str) -> tuple[Label, ...]:
    head, dots, tail = text.partition("...")
    ellipsis = rank - len(head) - len(tail)
    if ellipsis < 0 or (ellipsis and not dots):
        raise ShapeError(f"the labels {text!r} of {equation!r} do not fit an operand of rank {rank}")
    return (*head, *range(ellipsis, 0, -1), *tail)


def _sizes(labels: Sequence[Sequence[Label]], operands: Sequence[XlaOp], equation: str) -> dict[Label, int]:
    """Return the size of each label; under an ellipsis, dimensions of size 1 broadcast."""
    sizes: dict[Label, int] = {}
    for own_labels, x in zip(labels, operands, strict=True):
        for label, size in zip(own_labels, sizes_of(x), strict=True):
            known_size = sizes.setdefault(label, size)
            if isinstance(label, int) and known_size == 1:
                sizes[label] = size
            elif known_size != size and not (isinstance(label, int) and size == 1):
                raise ShapeError(f"the label {label!r} of {equation!r} is {known_size} and {size} at once")
    return sizes


def _prepare(x: XlaOp, labels: tuple[Label, ...], sizes: dict[Label, int]) -> _Term:
    """Take diagonals of repeated labels, and drop dimensions of size 1 that broadcast."""
    kept_dims = [k for k, label in enumerate(labels) if not (sizes_of(x)[k] == 1 and sizes[label] != 1)]
    if len(kept_dims) < len(labels):
        x, labels = xla.reshape(x, [sizes_of(x)[k] for k in kept_dims]), tuple(labels[k] for k in kept_dims)
    while (second := _repeated(labels)) is not None:
        x = sum_of(_mask_diagonal(x, labels.index(labels[second]), second), [second])
        labels = labels[:second] + labels[second + 1 :]
    return _Term(x, labels)


def _repeated(labels: Sequence[Label]) -> int | None:
    """Return the index of the first repeated label."""
    return next((k for k, label in enumerate(labels) if label in labels[:k]), None)


def _mask_diagonal(x: XlaOp, a: int, b: int) -> XlaOp:
    """Set elements off the diagonal of two dimensions to zero."""
    indices = [iota_along(x.builder, ElementType.S32, sizes_of(x), d) for d in (a, b)]
    return select(xla.eq(*indices), x, zeros_like(x))


def _sum_unused(term: _Term, output_labels: Collection[Label], others: Sequence[Sequence[Label]]) -> _Term:
    """Sum over labels that occur nowhere else."""
    needed = {*output_labels, *_union(others)}
    axes = [k for k, label in enumerate(term.labels) if label not in needed]
    return _Term(sum_of(term.op, axes), tuple(label for label in term.labels if label in needed)) if axes else term


def _product(x: _Term, y: _Term, needed: Collection[Label]) -> _Term:
    """Emit a dot: shared labels are batch dimensions if needed later, else contracted."""
    batch = [label for label in x.labels if label in y.labels and label in needed]
    summed = [label for label in x.labels if label in y.labels and label not in needed]
    result = xla.dot_general(
        x.op,
        y.op,
        lhs_contracting_dims=tuple(x.labels.index(label) for label in summed),
        rhs_contracting_dims=tuple(y.labels.index(label) for label in summed),
        lhs_batch_dims=tuple(x.labels.index(label) for label in batch),
        rhs_batch_dims=tuple(y.labels.index(label) for label in batch),
    )
    free = [label for term in (x, y) for label in term.labels if label not in batch and label not in summed]
    return _Term(result, (*batch, *free))


def _arrange(term: _Term, output_labels: tuple[Label, ...]) -> XlaOp:
    """Transpose to the order of the result; repeated labels put the values on a diagonal."""
    once = tuple(dict.fromkeys(output_labels))
    op = term.op
    if once != term.labels:
        op = xla.transpose(op, [term.labels.index(label) for label in once])
    if once == output_labels:
        return op
    size = dict(zip(once, sizes_of(op), strict=True))
    full = [size[label] for label in output_labels]
    result = xla.broadcast_in_dim(op, full, [output_labels.index(label) for label in once])
    for k, label in enumerate(output_labels):
        if output_labels.index(label) < k:
            result = _mask_diagonal(result, output_labels.index(label), k)
    return result
