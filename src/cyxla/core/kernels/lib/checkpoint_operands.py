"""Operands of the ops that read and write checkpoints."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.core.framework.checkpoint.tensor_bundle import Extent, SavedPiece
from cyxla.core.framework.op_kernel_context import OpKernelContext
from cyxla.errors import InvalidArgumentError

Array = np.ndarray[Any, Any]


def text_of(value: Any) -> str:
    """Return a string element as text."""
    return bytes(value).decode("utf-8", "surrogateescape")


def scalar_text(ctx: OpKernelContext, name: str) -> str:
    """Return an input of one string."""
    value = ctx.input(name)
    ctx.require(value.size == 1, f"{name} must be one string, not {list(value.shape)}")
    return text_of(value.item())


def texts(ctx: OpKernelContext, name: str) -> list[str]:
    """Return an input that is a vector of strings."""
    value = ctx.input(name)
    ctx.require(value.ndim == 1, f"{name} must be a vector, not {list(value.shape)}")
    return [text_of(item) for item in value]


def parse_shape_and_slice(text: str, name: str) -> tuple[tuple[int, ...], tuple[Extent, ...]] | None:
    """Parse the full shape and bounds of a slice, such as ``"4 3 0,2:-"``; an empty text, the whole tensor, gives None.

    Raises
    ------
    InvalidArgumentError
        The text is malformed, or the slice exceeds the shape.
    """
    if not text:
        return None
    *sizes, bounds = text.split(" ")
    try:
        shape = tuple(int(size) for size in sizes)
        extents = tuple(_extent(part) for part in bounds.split(":"))
    except ValueError:
        raise InvalidArgumentError(
            f"'{text}' for '{name}' is not a valid shape and slice", hint="such as '4 3 0,2:-'"
        ) from None
    inside = all(
        start >= 0 and start + max(length, 0) <= size for (start, length), size in zip(extents, shape, strict=False)
    )
    if len(shape) != len(extents) or not inside:
        raise InvalidArgumentError(f"the slice in '{text}' for '{name}' does not fit its shape")
    return shape, extents


def _extent(part: str) -> Extent:
    if part == "-":
        return 0, -1
    start, length = part.split(",")
    return int(start), int(length)


def saved_piece(name: str, text: str, array: Array, dtype: Any) -> SavedPiece:
    """Return a tensor, or a slice of one, with its name, to be saved."""
    parsed = parse_shape_and_slice(text, name)
    if parsed is None:
        return SavedPiece(name, array, dtype)
    shape, extents = parsed
    slice_shape = tuple(size if length < 0 else length for (_, length), size in zip(extents, shape, strict=True))
    if slice_shape != array.shape:
        raise InvalidArgumentError(
            f"the slice '{text}' of '{name}' is {list(slice_shape)}, but the tensor {list(array.shape)}"
        )
    return SavedPiece(name, array, dtype, shape, extents)
