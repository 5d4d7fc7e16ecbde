"""Rows of buffers, read and written at dynamic indices."""

from __future__ import annotations

from typing import Any

from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import sizes_of


def read_row(buffer: XlaOp, index: XlaOp) -> XlaOp:
    """Emit a dynamic-slice of one row; an index out of range is clamped."""
    rest = sizes_of(buffer)[1:]
    row = xla.dynamic_slice(buffer, _start(buffer, index), (1, *rest))
    return xla.reshape(row, rest)


def write_row(buffer: XlaOp, index: XlaOp, row: XlaOp) -> XlaOp:
    """Emit a dynamic-update-slice of one row."""
    if not sizes_of(buffer)[0]:
        return buffer
    return xla.dynamic_update_slice(buffer, xla.reshape(row, (1, *sizes_of(row))), _start(buffer, index))


def _start(buffer: XlaOp, index: XlaOp) -> list[Any]:
    return [index, *[0] * (len(sizes_of(buffer)) - 1)]
