"""Reading of tensors from checkpoints of version 1."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.core.framework.checkpoint.slice_file import SliceFileReader
from cyxla.core.framework.tensor_shape import TensorShape
from cyxla.core.framework.types import DataType
from cyxla.core.kernels.lib.checkpoint_operands import parse_shape_and_slice
from cyxla.errors import InvalidArgumentError

Array = np.ndarray[Any, Any]


def restore_tensor(reader: SliceFileReader, name: str, text: str, dtype: DataType) -> Array:
    """Read a tensor, or the slice that a text such as ``"4 3 0,2:-"`` describes.

    Raises
    ------
    NotFoundError
        The checkpoint has no tensor of that name.
    InvalidArgumentError
        The tensor has another type, or not the shape in the text.
    """
    entry = reader.entry(name)
    if entry.dtype != dtype:
        raise InvalidArgumentError(
            f"Expected to restore a tensor of type {dtype}, got a tensor of type {entry.dtype} instead: tensor_name = "
            f"{name}"
        )
    parsed = parse_shape_and_slice(text, name)
    if parsed is None:
        return reader.read(name)
    shape, extents = parsed
    if shape != entry.shape:
        raise InvalidArgumentError(
            "Shape in shape_and_slice spec does not match the shape in the save file: "
            f"{TensorShape(shape)}, save file shape: {TensorShape(entry.shape)}"
        )
    return reader.read(name, extents)
