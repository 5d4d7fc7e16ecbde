"""CHLO: functions above StableHLO, lowered to HLO opcodes or to functions of several."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cyxla.errors import InvalidArgumentError, ShapeError, UnimplementedError
from cyxla.types import Shape
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib import special, special_loops
from cyxla.xla.lib.arctangent import atan
from cyxla.xla.lib.special import in_f64
from cyxla.xla.lib.values import broadcast_shape, full_like, in_f32
from cyxla.xla.stablehlo.context import Context
from cyxla.xla.stablehlo.elementwise import BINARY, arity
from cyxla.xla.stablehlo.functional import only_region
from cyxla.xla.stablehlo.registry import (
    HANDLERS,
    Results,
    flag,
    handles,
    int_list,
    integer,
    required,
)
from cyxla.xla.stablehlo.syntax import Operation


def _square(x: XlaOp) -> XlaOp:
    """Return the square; complex ones as (re - im)(re + im), which overflows only if the result does."""
    if not x.shape.dtype.is_complex:
        return x * x
    re, im = xla.real(x), xla.imag(x)
    zero, even = full_like(re, 0), xla.and_(xla.is_finite(re), xla.eq(xla.abs_(re), xla.abs_(im)))
    twice = re * im
    return xla.complex_(xla.select(even, zero, (re - im) * (re + im)), twice + twice)


def _conj(x: XlaOp) -> XlaOp:
    return xla.complex_(xla.real(x), -xla.imag(x)) if x.shape.dtype.is_complex else x


def _equals(value: float) -> Callable[[XlaOp], XlaOp]:
    return lambda x: xla.eq(x, full_like(x, value))


def _zeta(x: XlaOp, q: XlaOp) -> XlaOp:
    """Return zeta with XLA's special values: poles of even powers are infinite for all x, infinity gives NaN."""
    nan, inf = full_like(x, np.nan), full_like(x, np.inf)
    half = x * full_like(x, 0.5)
    pole = xla.and_(xla.le(q, full_like(q, 0)), xla.eq(q, xla.floor(q)))
    pole = xla.and_(pole, xla.eq(half, xla.floor(half)))
    result = xla.select(xla.and_(pole, xla.is_finite(x)), inf, special_loops.zeta(x, q))
    unknown = xla.and_(xla.eq(q, inf), xla.ne(x, full_like(x, 1)))
    return xla.select(xla.or_(unknown, xla.eq(x, inf)), nan, result)


def _polygamma(n: XlaOp, x: XlaOp) -> XlaOp:
    """Return polygamma, NaN at infinity as in `_zeta`, except for digamma."""
    inf = full_like(x, np.inf)
    unknown = xla.or_(xla.eq(n, inf), xla.and_(xla.eq(x, inf), xla.gt(n, full_like(n, 0))))
    return xla.select(unknown, full_like(x, np.nan), special_loops.polygamma(n, x))


_UNARY: dict[str, Callable[[XlaOp], XlaOp]] = {
    "atan": atan,
    "bessel_i1e": in_f32(special.bessel_i1e),
    "conj": _conj,
    "digamma": in_f64(special.digamma),
    "erf_inv": in_f32(special.erfinv),
    "erfc": in_f32(special.erfc),
    "is_inf": lambda x: xla.eq(xla.abs_(x), full_like(x, np.inf)),
    "is_neg_inf": _equals(-np.inf),
    "is_pos_inf": _equals(np.inf),
    "lgamma": in_f64(special.lgamma),
    "square": _square,
}
_FLOAT = frozenset({"bessel_i1e", "digamma", "erf_inv", "erfc", "lgamma"})
_BINARY: dict[str, Callable[[XlaOp, XlaOp], XlaOp]] = {
    "next_after": special.next_after,
    "polygamma": in_f64(_polygamma),
    "zeta": in_f64(_zeta),
}


@handles(*_UNARY)
def _unary(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 1)
    _check_floats(op, xs, op.kind in _FLOAT)
    return _UNARY[op.kind](xs[0])


@handles(*_BINARY)
def _binary(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 2)
    _check_floats(op, xs, True)
    return _BINARY[op.kind](*xs)


def _check_floats(op: Operation, xs: Sequence[XlaOp], must_be_float: bool) -> None:
    for x in xs:
        if must_be_float and not x.shape.dtype.is_float:
            raise UnimplementedError(f"{op.name} of {x.shape.dtype}")
        if x.shape is not xs[0].shape and not x.shape.compatible(xs[0].shape):
            raise ShapeError(f"{op.name} of {xs[0].shape} and {x.shape}")


@handles("constant_like")
def _constant_like(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 1)
    value = required(op, "value")
    if not isinstance(value, (bool, int, float)):
        raise InvalidArgumentError(f"the value of {op.name} is to be a number")
    return full_like(xs[0], value)


@handles("top_k")
def _top_k(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 1)
    return c.tuple_elements(xla.topk(xs[0], integer(op, "k")), 2)


@handles("scan")
def _scan(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    count, carries = int_list(op, "operandSegmentSizes", (len(xs), 0))
    if count + carries != len(xs):
        raise InvalidArgumentError(f"{op.name} has {len(xs)} operands, not {count} and {carries}")
    dimension = integer(op, "dimension")
    size = integer(op, "scan_dim_size") if "scan_dim_size" in op.attributes else None
    for x in xs[:count]:
        if not 0 <= dimension < x.shape.rank or size not in (None, x.shape.dims[dimension]):
            raise InvalidArgumentError(f"{op.name} of {x.shape} along dimension {dimension} of size {size}")
    slice_shapes = [x.shape.with_dims([n for d, n in enumerate(x.shape.dims) if d != dimension]) for x in xs[:count]]
    body = c.embed(only_region(op), [*slice_shapes, *(x.shape for x in xs[count:])], "scan")
    stated = Shape.tuple([v.type for v in op.results])
    attrs = {
        "dimensions": (dimension,), "num_carries": carries, "is_reverse": flag(op, "is_reverse"),
        "is_associative": flag(op, "is_associative") if "is_associative" in op.attributes else None,
    }  # fmt: skip
    return c.tuple_elements(c.builder.call("scan", xs, [body], attrs, stated), len(op.results))


# Broadcasting forms


def _broadcast_together(op: Operation, xs: list[XlaOp]) -> list[XlaOp]:
    """Broadcast operands to one shape; without `broadcast_dimensions`, trailing dimensions are aligned."""
    sizes: tuple[int, ...] = ()
    for x in xs:
        sizes = broadcast_shape(sizes, x.shape.dims)
    broadcasted = []
    for x in xs:
        offset = range(len(sizes) - x.shape.rank, len(sizes))
        low = x.shape.rank < len(sizes)
        dims = int_list(op, "broadcast_dimensions", offset) if low else offset
        broadcasted.append(x if x.shape.dims == sizes else xla.broadcast_in_dim(x, sizes, dims))
    return broadcasted


def _broadcasting(name: str) -> None:
    @handles(f"broadcast_{name}")
    def _of(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
        arity(op, xs, 2)
        if "broadcast_dimensions" in op.attributes and xs[0].shape.rank != xs[1].shape.rank:
            xs = _expand_dims(op, xs)
        pair = _broadcast_together(op, xs)
        if name == "compare":
            return HANDLERS["compare"](c, op, pair)
        return c.builder.add(BINARY[name], pair) if name in BINARY else _BINARY[name](*pair)


def _expand_dims(op: Operation, xs: list[XlaOp]) -> list[XlaOp]:
    """Expand the operand of lower rank by sizes of 1 in the gaps of `broadcast_dimensions`."""
    smaller = min((0, 1), key=lambda k: xs[k].shape.rank)
    places, rank = int_list(op, "broadcast_dimensions"), xs[1 - smaller].shape.rank
    x = xs[smaller]
    if len(places) != x.shape.rank or any(not 0 <= p < rank for p in places):
        raise ShapeError(f"{op.name}: broadcast_dimensions {list(places)} do not place {x.shape}")
    dims = [1] * rank
    for n, dim in zip(x.shape.dims, places, strict=True):
        dims[dim] = n
    expanded = list(xs)
    expanded[smaller] = xla.broadcast_in_dim(x, dims, places)
    return expanded


for _name in (*BINARY, *_BINARY, "compare"):
    _broadcasting(_name)


@handles("broadcast_select")
def _broadcast_select(c: Context, op: Operation, xs: list[XlaOp]) -> Results:
    arity(op, xs, 3)
    return xla.select(*_broadcast_together(op, xs))
