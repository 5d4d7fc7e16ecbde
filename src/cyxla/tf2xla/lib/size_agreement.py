"""The sizes of an op's operands that must agree, for operands whose sizes are known only at run time.

The eager kernels raise errors where they differ. Bounds are no sizes: where they differ, nothing is known of the sizes,
and the op is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from cyxla.core.framework.geometry.shape_operands import axis_of
from cyxla.errors import UnimplementedError
from cyxla.tf2xla.lib.dynamic_sizes import refuse_dynamic, split_dynamic
from cyxla.tf2xla.lib.size_checks import SizePair
from cyxla.xla.hlo.builder import XlaBuilder, XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import rank_of, scalar, select, sizes_of

Attrs: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Size:
    """The size of a dimension.

    Parameters
    ----------
    operand : XlaOp
        Array that has it.
    bound : int
        Greatest size.
    value : XlaOp, optional
        Size at run time; None if it is the bound.
    """

    operand: XlaOp
    bound: int
    value: XlaOp | None = None

    @property
    def is_one(self) -> bool:
        """True if the size is known to be 1."""
        return self.value is None and self.bound == 1

    @property
    def key(self) -> Any:
        """Key that is equal for sizes that are known to be the same."""
        return self.bound if self.value is None else self.value.instruction

    def as_op(self) -> XlaOp:
        """Return the size as an s32 scalar."""
        return _number(self.operand.builder, self.bound) if self.value is None else self.value


def _number(builder: XlaBuilder, value: int) -> XlaOp:
    return xla.constant(builder, np.int32(value))


def sizes_in(x: XlaOp) -> list[Size]:
    """Return the size of each dimension of an array."""
    padded, values = split_dynamic(x)
    return [Size(x, bound, values.get(d)) for d, bound in enumerate(sizes_of(padded))]


def sizes_at(operands: Sequence[XlaOp], position: int) -> list[Size]:
    """Return the sizes of a dimension, counted from the last, of the operands that have it."""
    return [sizes_in(x)[position] for x in operands if -position <= rank_of(x)]


def broadcast_size(sizes: Sequence[Size]) -> XlaOp:
    """Return the size to which dimensions are broadcast: that of those with other than one element."""
    distinct = list({size.key: size for size in sizes if not size.is_one}.values())
    if not distinct:
        return _number(sizes[0].operand.builder, 1)
    total = distinct[0].as_op()
    for size in distinct[1:]:
        n, one = size.as_op(), scalar(total, 1)
        total = select(xla.eq(total, one), n, select(xla.eq(n, one), total, xla.minimum(total, n)))
    return total


# -------------------------------------------------------------------------------------------- groups that must agree


def _check_bounds(sizes: Sequence[Size], bounds: set[int]) -> None:
    """Raise unless dimensions, some of which have sizes known only at run time, have one bound."""
    dynamic = next((size for size in sizes if size.value is not None), None)
    if dynamic is not None and len(bounds) > 1:
        other = next(size for size in sizes if size.bound in bounds and size.bound != dynamic.bound)
        refuse_dynamic(dynamic.operand, "an operand", f", beside {other.operand.shape}")


def equal_sizes(sizes: Sequence[Size], **failure: Any) -> Iterator[SizePair]:
    """Yield pairs of sizes that must be equal."""
    _check_bounds(sizes, {size.bound for size in sizes})
    if all(size.value is None for size in sizes):
        return  # the kernel compares them
    first, *others = {size.key: size for size in sizes}.values()
    for other in others:
        yield SizePair(first.as_op(), other.as_op(), **failure)


def _broadcast(sizes: Sequence[Size]) -> Iterator[SizePair]:
    """Yield pairs of sizes that must be equal, unless one of them is 1."""
    _check_bounds(sizes, {size.bound for size in sizes} - {1})
    distinct = {size.key: size for size in sizes if not size.is_one}
    if len(distinct) < 2 or all(size.value is None for size in distinct.values()):
        return
    first, *others = [size.as_op() for size in distinct.values()]
    for other in others:
        has_one = xla.or_(*(xla.eq(n, scalar(n, 1)) for n in (first, other)))
        yield SizePair(select(has_one, other, first), other)
        first = select(xla.eq(first, scalar(first, 1)), other, first)


# ------------------------------------------------------------------------------------------------------------- ops


def _broadcast_all(args: Sequence[Any], attrs: Attrs) -> Iterator[SizePair]:
    for position in range(-max(map(rank_of, args), default=0), 0):
        yield from _broadcast(sizes_at(args, position))


def _joined(values: Sequence[XlaOp], axis: Any) -> Iterator[SizePair]:
    """Yield the sizes of all dimensions but the one to join in."""
    rank = rank_of(values[0])
    if not rank or any(rank_of(x) != rank for x in values):
        return  # the kernel raises
    along = axis_of(axis, rank, "the dimension to join in")
    for d in range(rank):
        if d != along:
            yield from equal_sizes(sizes_at(values, d - rank))


def _multiplied(args: Sequence[Any], attrs: Attrs, *, is_broadcast: bool = False) -> Iterator[SizePair]:
    """Yield the inner sizes of two batches of matrices, and the sizes of the batches."""
    x, y = args
    if min(rank_of(x), rank_of(y)) < 2:
        return  # the kernel raises
    is_turned = list(attrs.values())
    yield from equal_sizes([sizes_in(x)[-2 if is_turned[0] else -1], sizes_in(y)[-1 if is_turned[1] else -2]])
    for position in range(-max(rank_of(x), rank_of(y)), -2):
        sizes = sizes_at(args, position)
        if is_broadcast:
            yield from _broadcast(sizes)
            many = [size for size in sizes if not size.is_one]
            yield from equal_sizes(many, error=UnimplementedError, reason="a batch of one element is not broadcast")
        else:
            yield from equal_sizes(sizes)


AGREEMENTS: dict[str, Callable[[Sequence[Any], Attrs], Iterator[SizePair]]] = {
    "Concat": lambda args, attrs: _joined(args[1], args[0]),
    "ConcatV2": lambda args, attrs: _joined(args[0], args[1]),
    "MatMul": _multiplied,
    "BatchMatMul": _multiplied,
    **dict.fromkeys(
        ("BatchMatMulV2", "BatchMatMulV3"), lambda args, attrs: _multiplied(args, attrs, is_broadcast=True)
    ),
}


def sizes_that_agree(op: str, is_elementwise: bool, args: Sequence[Any], attrs: Attrs) -> list[SizePair]:
    """Return the sizes that an op requires to be equal, and that are not known to be.

    Raises
    ------
    UnimplementedError
        They have different bounds.
    """
    rule = _broadcast_all if is_elementwise else AGREEMENTS.get(op)
    return [] if rule is None else list(rule(args, attrs))
