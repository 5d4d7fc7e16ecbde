"""Reductions over segments of rows, each by one scatter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cyxla.core.framework.types import NUMBER, REAL, DataType, as_data_type
from cyxla.errors import InvalidArgumentError, ShapeError
from cyxla.tf2xla.lib.gather_scatter import scatter_rows
from cyxla.tf2xla.xla_op_kernel import lowering
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import is_narrow, max_finite_value, min_finite_value, rank_of, scalar, sizes_of, widened

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class _Reduction:
    """Reduction of the rows of a segment, and its value for an empty segment."""

    op: str
    empty: Callable[[XlaOp], XlaOp]
    types: tuple[DataType, ...]


_SUMMABLE = (*NUMBER, *map(as_data_type, ("qint8", "quint8", "qint32")))
# fmt: off
_REDUCTIONS = (
    ("Sum",  _Reduction("add", lambda x: scalar(x, 0), _SUMMABLE)),
    ("Prod", _Reduction("mul", lambda x: scalar(x, 1), _SUMMABLE)),
    ("Max",  _Reduction("max", min_finite_value,       REAL)),
    ("Min",  _Reduction("min", max_finite_value,       REAL)),
)
# fmt: on


def _reduce(data: XlaOp, ids: XlaOp, num_segments: Array, reduction: _Reduction) -> XlaOp:
    """Scatter rows of the data by segment; segment numbers out of range are skipped."""
    if num_segments.ndim:
        raise ShapeError(f"num_segments must be a scalar; its shape is {list(num_segments.shape)}")
    if num_segments < 0:
        raise InvalidArgumentError(f"num_segments must not be negative; it is {num_segments}")
    wide = widened(data) if reduction.op in ("add", "mul") else data
    start = xla.convert(reduction.empty(data), wide.shape.dtype)
    target = xla.broadcast(start, (int(num_segments), *sizes_of(data)[rank_of(ids) :]))
    result = scatter_rows(target, ids, wide, reduction.op)
    return xla.convert(result, data.shape.dtype) if is_narrow(data) and wide is not data else result


def _register(name: str, reduction: _Reduction) -> None:
    @lowering(f"Segment{name}V2", const=("num_segments",), types={"T": reduction.types})
    def kernel_with_count(data: XlaOp, ids: XlaOp, num_segments: Array) -> XlaOp:
        if rank_of(ids) != 1 or sizes_of(data)[:1] != sizes_of(ids):
            raise ShapeError(
                f"segment_ids {list(sizes_of(ids))} must hold a number for each row of {list(sizes_of(data))}"
            )
        return _reduce(data, ids, num_segments, reduction)

    @lowering(f"UnsortedSegment{name}", const=("num_segments",), types={"T": reduction.types})
    def unsorted(data: XlaOp, ids: XlaOp, num_segments: Array) -> XlaOp:
        if sizes_of(data)[: rank_of(ids)] != sizes_of(ids):
            raise ShapeError(f"data {list(sizes_of(data))} does not begin with the shape {list(sizes_of(ids))} of ids")
        if not rank_of(ids):
            data, ids = (xla.reshape(x, (1, *sizes_of(x))) for x in (data, ids))
        return _reduce(data, ids, num_segments, reduction)


for _name, _reduction in _REDUCTIONS:
    _register(_name, _reduction)
