"""Loop carries and branch results: containers whose structure must agree, and leaves whose types must."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cyxla.errors import TraceError
from cyxla.numpy.tracing.arrays.known_array import KnownArray
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, traced
from cyxla.numpy.tracing.bodies import Body, inline, record_body
from cyxla.numpy.tracing.containers import Tree, flatten, map_leaves, paths
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.promotion import WEAK_DTYPES, Kind, common_kind, dtype_of
from cyxla.numpy.tracing.trace import user_line
from cyxla.types import from_numpy
from cyxla.xla.hlo.builder import XlaOp


def is_array(leaf: Any) -> bool:
    """Return True if a leaf of a container can be traced."""
    return isinstance(leaf, (TracedArray, np.ndarray, np.generic, list)) or type(leaf) in WEAK_DTYPES


def known_value(value: Any) -> Any:
    """Return the values of a known array; other values as they are."""
    known = value.known if isinstance(value, KnownArray) else None
    return value if known is None else known


def to_numpy(value: Any) -> Any:
    """Convert the leaves of a container to the types that a compiled function returns."""
    return map_leaves(lambda x: np.asarray(x)[()] if is_array(x) else x, value)


def copy_arrays(value: Any) -> Any:
    """Copy the NumPy arrays of a container, so that they may be written to."""
    return map_leaves(lambda x: x.copy() if isinstance(x, np.ndarray) else x, value)


def match_dict_order(value: Any, pattern: Any) -> Any:
    """Reorder the dicts of a container like those of another one."""
    if isinstance(pattern, dict) and type(value) is type(pattern) and set(value) == set(pattern):
        return type(value)((k, match_dict_order(value[k], pattern[k])) for k in pattern)
    if type(pattern) in (list, tuple) and type(value) is type(pattern) and len(value) == len(pattern):
        return type(value)(match_dict_order(v, p) for v, p in zip(value, pattern, strict=True))
    return value


def check_same_structure(caller: str, first: tuple[str, Tree], other: tuple[str, Tree]) -> None:
    """Check that two containers have the same structure.

    Raises
    ------
    TraceError
        The structures differ; the message shows both.
    """
    if first[1] != other[1]:
        raise TraceError(
            f"{caller}: {first[0]} {tree_text(first[1])}, but {other[0]} {tree_text(other[1])}", where=user_line(),
            hint="return containers of the same structure",
        )  # fmt: skip


def tree_text(tree: Tree) -> str:
    """Return the text of a container with * for its leaves."""
    if tree.kind is None:
        return "*"
    text = str(tree.build([_LeafMark() for _ in range(tree.count)]))
    return text if len(text) < 120 else text[:117] + "..."


class _LeafMark:
    def __repr__(self) -> str:
        return "*"


def leaf_paths(tree: Tree, name: str) -> list[str]:
    """Return the access path of each leaf of a container."""
    return paths(tree.build(range(tree.count)), name)


def array_text(array: TracedArray) -> str:
    """Return dtype and shape for messages."""
    name = array.weak.__name__ if array.weak else str(array.dtype)
    return f"{name}[{','.join(map(str, array.shape))}]"


def convert_results(body: Body, kinds: Sequence[Kind]) -> Body:
    """Convert the first results of a body to these types."""
    dtypes = [from_numpy(dtype_of(k)) for k in kinds]
    if all(r.shape.dtype is w for r, w in zip(body.results, dtypes, strict=False)):
        return body

    def step(*values: XlaOp) -> list[XlaOp]:
        results = inline(body, values)
        converted = [convert(r, dtype_of(k)) for r, k in zip(results, kinds, strict=False)]
        return [*converted, *results[len(kinds) :]]

    return record_body(body.trace.builder.name, body.shapes, step)


def agreed_kind(kinds: Sequence[Kind]) -> Kind | None:
    """Return the common kind of results of several branches; None if there is none."""
    strong = {k for k in kinds if not isinstance(k, type)}
    if len(strong) > 1:
        return None
    if not strong:
        return common_kind(*kinds)
    strong_kind = next(iter(strong))
    weak = [k for k in kinds if isinstance(k, type)]
    return (
        strong_kind
        if all(np.can_cast(dtype_of(k), strong_kind, "same_kind") or _can_adopt(k, strong_kind) for k in weak)
        else None
    )


def _can_adopt(weak: type, dtype: np.dtype[Any]) -> bool:
    """Return True if a Python number can adopt a dtype."""
    order = {bool: "b", int: "iu", float: "fV", complex: "c"}
    return list("biufVc").index(order[weak][0]) <= list("biufVc").index(dtype.kind)


def as_arrays(values: Sequence[XlaOp], kinds: Sequence[Kind]) -> list[TracedArray]:
    """Wrap values as arrays, weakly typed if their kind is."""
    return [traced(v, k if isinstance(k, type) and k is not bool else None) for v, k in zip(values, kinds, strict=True)]


class Arguments:
    """Container of arguments of a body: its arrays become parameters, its other leaves are static."""

    def __init__(self, value: Any) -> None:
        self.leaves, self.tree = flatten(value)
        self.positions = [k for k, leaf in enumerate(self.leaves) if isinstance(leaf, TracedArray)]

    @property
    def arrays(self) -> list[TracedArray]:
        """Arrays among the leaves."""
        return [self.leaves[k] for k in self.positions]

    def build(self, arrays: Sequence[Any]) -> Any:
        """Build the container with other arrays."""
        leaves = list(self.leaves)
        for k, array in zip(self.positions, arrays, strict=True):
            leaves[k] = array
        return self.tree.build(leaves)
