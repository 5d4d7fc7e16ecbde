"""Sparse tensors: a matrix of indices with one value per row."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from cyxla.core.framework.geometry.shape_operands import sizes_of as read_sizes
from cyxla.errors import ShapeError
from cyxla.tf2xla.lib.gather_scatter import scatter_nd
from cyxla.tf2xla.xla_op_kernel import lowering
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import broadcast_to, rank_of, sizes_of

Array = np.ndarray[Any, Any]


@lowering("SparseToDense", const=("output_shape",))
def _sparse_to_dense(indices: XlaOp, output_shape: Array, values: XlaOp, default: XlaOp) -> XlaOp:
    """Scatter into the default; indices are a scalar, a vector or a matrix, and a single value broadcasts."""
    sizes, depth = read_sizes(output_shape, "output_shape"), len(output_shape)
    if rank_of(indices) < 2:
        indices = xla.reshape(indices, (prod(sizes_of(indices)), 1))
    if rank_of(indices) != 2 or sizes_of(indices)[1] != depth:
        raise ShapeError(f"sparse_indices {list(sizes_of(indices))} do not name elements of rank {depth}")
    count = sizes_of(indices)[0]
    if sizes_of(values) not in ((), (count,)):
        raise ShapeError(f"sparse_values {list(sizes_of(values))} must be a scalar or hold {count} values")
    if rank_of(default):
        raise ShapeError(f"default_value must be a scalar; its shape is {list(sizes_of(default))}")
    return scatter_nd(xla.broadcast(default, sizes), indices, broadcast_to(values, (count,)), "update")
