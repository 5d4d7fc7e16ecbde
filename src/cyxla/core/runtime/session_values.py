"""Arguments and results of a session: look-up of tensors by name, conversion of feeds, ownership of results."""

from __future__ import annotations

from sys import getrefcount
from typing import Any

import numpy as np

from cyxla.core.framework.apply import to_array
from cyxla.core.framework.types import DataType
from cyxla.core.framework.variable import Ref
from cyxla.core.graph.graph import Graph, Node, Tensor
from cyxla.errors import DTypeError, FailedPreconditionError, InvalidArgumentError, NotFoundError, ShapeError

Array = np.ndarray[Any, Any]
_OWN_REFERENCES = (
    3  # references to an unshared array: the list of values, the local variable, the argument of getrefcount
)


def take_ownership(values: list[Any], index: int) -> Array:
    """Return a value that the caller may modify, copying it if it is shared or read-only."""
    value: Any = values[index]
    if isinstance(value, Ref):
        value = value.read()
        if value is None:
            raise FailedPreconditionError("the variable has no value yet", hint="run its initializer")
    if value.base is not None or getrefcount(value) > _OWN_REFERENCES or not value.flags.writeable:
        value = value.copy()
    values[index] = value  # an array that is fetched twice is copied the second time
    return value  # type: ignore[no-any-return]


def resolve(graph: Graph, fetch: Any) -> Tensor | Node:
    """Return the tensor or node of a fetch."""
    if isinstance(fetch, str) and ":" not in fetch:
        return graph.node(fetch.removeprefix("^"))
    if isinstance(fetch, Node):
        return _check_graph(graph, fetch)
    return resolve_tensor(graph, fetch)


def resolve_tensor(graph: Graph, name: Any) -> Tensor:
    """Return the tensor of a feed or fetch."""
    if isinstance(name, Tensor):
        _check_graph(graph, name.node)
        return name
    if not isinstance(name, str):
        raise InvalidArgumentError(f"{name!r} is neither a tensor nor the name of one")
    try:
        return graph.tensor(name)
    except NotFoundError:
        raise NotFoundError(f"'{name}' is not a tensor of the graph", hint="names look like 'node:0'") from None


def _check_graph(graph: Graph, node: Node) -> Node:
    if node.graph is not graph:
        raise InvalidArgumentError(f"'{node.name}' belongs to another graph", node=node.name, op=node.op)
    return node


def fed_value(tensor: Tensor, value: Any) -> Array:
    """Convert a fed value to an array of the tensor's type.

    Raises
    ------
    DTypeError
        The value is an array of another type.
    ShapeError
        The shape is incompatible with that of the tensor.
    """
    dtype = tensor.dtype.base
    if isinstance(value, (np.ndarray, np.generic)):
        array = _typed_array(tensor, np.asarray(value), dtype)
    else:
        array = to_array(value, dtype, f"the value fed to '{tensor.name}'")
    dims = tensor.shape.dims
    if dims is not None and (
        len(dims) != array.ndim or any(d is not None and d != n for d, n in zip(dims, array.shape, strict=True))
    ):
        raise ShapeError(
            f"'{tensor.name}' has shape {tensor.shape}, but an array of shape {list(array.shape)} is fed",
            node=tensor.node.name,
            op=tensor.node.op,
        )
    return array


def _typed_array(tensor: Tensor, array: Array, dtype: DataType) -> Array:
    if array.dtype == dtype.numpy and dtype != DataType.DT_STRING:
        return array
    if dtype == DataType.DT_STRING and array.dtype.kind in "SUO":
        return to_array(array, dtype)
    raise DTypeError(
        f"'{tensor.name}' is {dtype}, but an array of {array.dtype} is fed",
        node=tensor.node.name,
        op=tensor.node.op,
        hint=f"feed an array of {dtype.numpy_name}",
    )
