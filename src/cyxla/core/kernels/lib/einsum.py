"""Einstein summation of NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.einsum_equation import parse_equation
from cyxla.core.framework.numeric_limits import wide_type
from cyxla.errors import ShapeError

Array = np.ndarray[Any, Any]


def contract(equation: str, operands: Sequence[Array]) -> Array:
    """Evaluate an equation in the operands' type; narrow floats are summed in f32.

    A repeated label of the output puts the values on a diagonal, with zeros around it.

    Raises
    ------
    InvalidArgumentError
        The equation is malformed.
    ShapeError
        An operand does not fit its labels.
    """
    inputs, output = parse_equation(equation, len(operands))
    once = _without_repeats(output)
    sizes: dict[str, int] = {}
    for labels, x in zip(inputs, operands, strict=True):
        _check_operand(labels, x, sizes, equation)
    dtype = operands[0].dtype
    wide = wide_type(dtype)
    try:
        with np.errstate(all="ignore"):
            contracted = np.einsum(
                f"{','.join(inputs)}->{once}", *(x.astype(wide, copy=False) for x in operands), optimize=True
            )
    except ValueError as error:
        raise ShapeError(f"the operands do not fit {equation!r}: {error}") from None
    result = np.asarray(contracted).astype(dtype, copy=False)
    return result if once == output else _on_diagonals(result, once, output)


def _without_repeats(labels: str) -> str:
    """Drop repeated labels, keeping the first of each."""
    head, dots, tail = labels.partition("...")
    head = "".join(dict.fromkeys(head))
    return head + dots + "".join(label for label in dict.fromkeys(tail) if label not in head)


def _on_diagonals(values: Array, once: str, output: str) -> Array:
    """Place values on the diagonal of dimensions that share a label, zeros elsewhere."""
    head, dots, tail = once.partition("...")
    sizes = dict(zip(head, values.shape, strict=False)) | dict(
        zip(reversed(tail), reversed(values.shape), strict=False)
    )
    rest = values.shape[len(head) : values.ndim - len(tail)]
    before, _, after = output.partition("...")
    shape = [*(sizes[c] for c in before), *(rest if dots else ()), *(sizes[c] for c in after)]
    result = np.zeros(shape, values.dtype)
    np.einsum(f"{output}->{once}", result)[...] = values  # a view of the diagonals
    return result


def _check_operand(labels: str, x: Array, sizes: dict[str, int], equation: str) -> None:
    letters = labels.replace("...", "")
    if len(letters) > x.ndim or ("..." not in labels and len(letters) != x.ndim):
        raise ShapeError(f"the labels {labels!r} of {equation!r} do not fit an operand of rank {x.ndim}")
    before = labels.split("...")[0]
    after = letters[len(before) :]
    labelled_dims = [*enumerate(before), *((x.ndim - len(after) + k, label) for k, label in enumerate(after))]
    for d, label in labelled_dims:
        if sizes.setdefault(label, x.shape[d]) != x.shape[d]:
            raise ShapeError(f"the label {label!r} of {equation!r} is {sizes[label]} and {x.shape[d]} at once")
