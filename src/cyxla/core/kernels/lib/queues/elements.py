"""Elements of queues: their shapes, batches of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DataType
from cyxla.core.kernels.lib.queues.stores import Element
from cyxla.core.kernels.lib.tensor_list import zeros
from cyxla.errors import InvalidArgumentError

Array = np.ndarray[Any, Any]


def check_shape(index: int, shape: TensorShape, value: Array) -> None:
    """Check the shape of a component.

    Raises
    ------
    InvalidArgumentError
        It does not fit.
    """
    actual = TensorShape(value.shape)
    if not shape.is_compatible_with(actual):
        raise InvalidArgumentError(f"Shape mismatch in tuple component {index}. Expected {shape}, got {actual}")


def slices(components: Sequence[Array], size: int) -> list[Element]:
    """Return copies of the elements of a batch."""
    return [tuple(value[i, ...].copy() for value in components) for i in range(size)]


def stack(values: Sequence[Array], shape: TensorShape, dtype: DataType) -> Array:
    """Stack values; those that are smaller than others in an unknown dimension of the shape are padded with zeros."""
    sizes = [max((v.shape[k] for v in values), default=0) if d is None else d for k, d in enumerate(shape)]
    result = zeros((len(values), *sizes), dtype)
    for k, value in enumerate(values):
        result[k, ...][tuple(map(slice, value.shape))] = value
    return result
