"""Builder functions for each element, with broadcasting of operands."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from keyword import iskeyword
from typing import Any, Final

import numpy as np

from cyxla.errors import DTypeError, ShapeError
from cyxla.types import ElementType, Literal, Shape, element_type
from cyxla.xla.hlo.attributes import ResultAccuracy
from cyxla.xla.hlo.builder.xla_builder import XlaBuilder, XlaOp, deferred
from cyxla.xla.hlo.opcode import OPCODES

Scalar = bool | int | float | complex | np.generic
Operand = XlaOp | Scalar | np.ndarray[Any, Any]


def as_dtype(dtype: ElementType | str) -> ElementType:
    """Return an element type, which may be given by name."""
    return element_type(dtype) if isinstance(dtype, str) else dtype


@deferred
def constant(builder: XlaBuilder, value: Any, dtype: ElementType | str | None = None) -> XlaOp:
    """Create a constant.

    Parameters
    ----------
    builder : XlaBuilder
        Builder of the computation.
    value : Literal or array_like
        The value; a tuple of literals gives a tuple.
    dtype : ElementType or str, optional
        Element type; by default that of the NumPy array.
    """
    return builder.add("constant", (), {"literal": _literal(value, None if dtype is None else as_dtype(dtype))})


def _literal(value: Any, dtype: ElementType | None) -> Literal:
    if isinstance(value, Literal) or (
        isinstance(value, tuple) and value and all(isinstance(v, Literal) for v in value)
    ):
        return value if isinstance(value, Literal) else Literal(value)
    if dtype is None:
        return Literal(np.asarray(value))
    try:
        array = np.array(value, dtype=dtype.numpy_dtype)
    except (OverflowError, TypeError, ValueError) as e:
        raise DTypeError(f"{value!r} is not a value of type {dtype}: {e}") from e
    return Literal(array, Shape.array(dtype, array.shape))


def _kind_fits(value: Any, dtype: ElementType) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return True
    if isinstance(value, (int, np.integer)):
        return dtype is not ElementType.PRED
    if isinstance(value, (complex, np.complexfloating)):
        return dtype.is_complex
    return dtype.is_float or dtype.is_complex


def lift(builder: XlaBuilder, value: Operand, like: Shape) -> XlaOp:
    """Return an operand as an XlaOp: a scalar gets the element type of `like`, an array keeps its own.

    Raises
    ------
    DTypeError
        The element type cannot hold the scalar, such as 0.5 for integers.
    """
    if isinstance(value, XlaOp):
        return value
    if isinstance(value, np.ndarray):
        return constant(builder, value)
    if not _kind_fits(value, like.dtype):
        raise DTypeError(f"{value!r} is not a value of type {like.dtype}", hint="convert the other operand first")
    return constant(builder, value, like.dtype)


def _lift_both(lhs: Operand, rhs: Operand) -> tuple[XlaOp, XlaOp]:
    traced = lhs if isinstance(lhs, XlaOp) else rhs
    assert isinstance(traced, XlaOp)  # checked by `deferred`
    return lift(traced.builder, lhs, traced.shape), lift(traced.builder, rhs, traced.shape)


@deferred
def broadcast_in_dim(operand: XlaOp, dims: Sequence[int], broadcast_dims: Sequence[int]) -> XlaOp:
    """Repeat an array along new dimensions, and along its dimensions of size 1.

    Parameters
    ----------
    operand : XlaOp
        Array to broadcast.
    dims : sequence of int
        Sizes of the result.
    broadcast_dims : sequence of int
        Dimension of the result for each dimension of the operand.
    """
    x = operand.shape
    if len(broadcast_dims) != x.rank or any(not 0 <= d < len(dims) for d in broadcast_dims):
        raise ShapeError(
            f"broadcast_dims {list(broadcast_dims)} do not map the {x.rank} dimensions of {x} to {list(dims)}"
        )
    unit_dims = [i for i, d in enumerate(broadcast_dims) if x.dims[i] == 1 and dims[d] != 1]
    if unit_dims:
        kept_dims = [i for i in range(x.rank) if i not in unit_dims]
        operand = operand.builder.add(
            "reshape", [operand], shape=x.with_dims([x.dims[i] for i in kept_dims], [x.dynamic[i] for i in kept_dims])
        )
        broadcast_dims = [broadcast_dims[i] for i in kept_dims]
    flags = [False] * len(dims)
    for i, d in enumerate(broadcast_dims):
        flags[d] = operand.shape.dynamic[i]
    result = x.with_dims(dims, flags)
    return operand.builder.add("broadcast", [operand], {"dimensions": tuple(broadcast_dims)}, shape=result)


@deferred
def broadcast(operand: XlaOp, sizes: Sequence[int]) -> XlaOp:
    """Repeat an array along new leading dimensions of the given sizes."""
    x = operand.shape
    result = x.with_dims((*sizes, *x.dims), (*[False] * len(sizes), *x.dynamic))
    return operand.builder.add(
        "broadcast", [operand], {"dimensions": tuple(range(len(sizes), result.rank))}, shape=result
    )


def _align(lhs: XlaOp, rhs: XlaOp, broadcast_dimensions: Sequence[int]) -> tuple[XlaOp, XlaOp]:
    """Broadcast two operands to one shape; operands of different ranks need `broadcast_dimensions`."""
    a, b = lhs.shape, rhs.shape
    if a is b or (a.dims == b.dims and not broadcast_dimensions) or not (a.is_array and b.is_array):
        return lhs, rhs
    if a.rank > b.rank:
        lhs, rhs = _align(rhs, lhs, broadcast_dimensions)[::-1]
        return lhs, rhs
    if a.rank < b.rank:
        dims = list(broadcast_dimensions)
        if len(dims) != a.rank:
            hint = "give the dimensions of the larger operand to which those of the smaller one correspond"
            raise ShapeError(f"operands {a} and {b} have different ranks, broadcast_dimensions are {dims}", hint=hint)
    else:
        dims = list(range(a.rank))
    if any(not 0 <= d < b.rank for d in dims):
        raise ShapeError(f"broadcast_dimensions {dims} leave {b}")
    sizes = list(b.dims)
    for i, d in enumerate(dims):
        if 1 not in (a.dims[i], b.dims[d]) and a.dims[i] != b.dims[d]:
            raise ShapeError(
                f"operands {a} and {b}: sizes {a.dims[i]} and {b.dims[d]} of dimensions {i} and {d} differ"
            )
        sizes[d] = a.dims[i] if b.dims[d] == 1 else b.dims[d]
    return _stretch(lhs, sizes, dims), _stretch(rhs, sizes, list(range(b.rank)))


def _stretch(x: XlaOp, sizes: Sequence[int], dims: Sequence[int]) -> XlaOp:
    return x if x.shape.dims == tuple(sizes) else broadcast_in_dim(x, sizes, dims)


def _add_documentation(function: Callable[..., XlaOp], name: str, text: str) -> Callable[..., XlaOp]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = text
    return deferred(function)


def _unary(opcode: str, name: str = "") -> Callable[..., XlaOp]:
    def unary_op(operand: XlaOp, *, result_accuracy: ResultAccuracy | None = None) -> XlaOp:
        attrs = {"result_accuracy": result_accuracy} if result_accuracy is not None else {}
        return operand.builder.add(opcode, [operand], attrs)

    return _add_documentation(unary_op, name or opcode.replace("-", "_"), f"`{opcode}` of each element.")


def _binary(opcode: str, name: str = "", **attrs: Any) -> Callable[..., XlaOp]:
    def binary_op(lhs: Operand, rhs: Operand, broadcast_dimensions: Sequence[int] = ()) -> XlaOp:
        x, y = _align(*_lift_both(lhs, rhs), broadcast_dimensions)
        return x.builder.add(opcode, [x, y], attrs)

    text = f"`{opcode}` of the elements of two arrays; scalars and dimensions of size 1 are repeated."
    return _add_documentation(binary_op, name or opcode.replace("-", "_"), text)


# fmt: off
eq = _binary("compare", "eq", direction="EQ")
ne = _binary("compare", "ne", direction="NE")
lt = _binary("compare", "lt", direction="LT")
le = _binary("compare", "le", direction="LE")
gt = _binary("compare", "gt", direction="GT")
ge = _binary("compare", "ge", direction="GE")
eq_total_order = _binary("compare", "eq_total_order", direction="EQ", type="TOTALORDER")
ne_total_order = _binary("compare", "ne_total_order", direction="NE", type="TOTALORDER")
lt_total_order = _binary("compare", "lt_total_order", direction="LT", type="TOTALORDER")
le_total_order = _binary("compare", "le_total_order", direction="LE", type="TOTALORDER")
gt_total_order = _binary("compare", "gt_total_order", direction="GT", type="TOTALORDER")
ge_total_order = _binary("compare", "ge_total_order", direction="GE", type="TOTALORDER")
# fmt: on


@deferred
def compare(
    lhs: Operand, rhs: Operand, direction: str, type: str | None = None, broadcast_dimensions: Sequence[int] = ()
) -> XlaOp:
    """Compare the elements of two arrays.

    Parameters
    ----------
    lhs, rhs : XlaOp or scalar
        Operands of one element type.
    direction : str
        Direction: EQ, NE, LT, LE, GT or GE.
    type : str, optional
        Comparison type: FLOAT, TOTALORDER, SIGNED or UNSIGNED; by default that of the element type.
    broadcast_dimensions : sequence of int, optional
        Dimension of the other operand for each dimension of the operand of lower rank.
    """
    x, y = _align(*_lift_both(lhs, rhs), broadcast_dimensions)
    return x.builder.add("compare", [x, y], {"direction": direction, "type": type})


@deferred
def shift_right(lhs: Operand, rhs: Operand) -> XlaOp:
    """Shift right: arithmetic for signed integers, logical for unsigned ones."""
    x, y = _lift_both(lhs, rhs)
    return _SHIFTS_RIGHT[x.shape.dtype.is_signed](x, y)


_SHIFTS_RIGHT: Final = {True: _binary("shift-right-arithmetic"), False: _binary("shift-right-logical")}


@deferred
def convert(operand: XlaOp, dtype: ElementType | str) -> XlaOp:
    """Convert each element to another type."""
    return operand.builder.add("convert", [operand], shape=operand.shape.with_dtype(as_dtype(dtype)))


@deferred
def bitcast_convert(operand: XlaOp, dtype: ElementType | str) -> XlaOp:
    """Reinterpret the bits of the elements as another type; a change of width removes or adds a last dimension."""
    x, target_dtype = operand.shape, as_dtype(dtype)
    return operand.builder.add("bitcast-convert", [operand], shape=x.with_dtype(target_dtype))


@deferred
def reduce_precision(operand: XlaOp, exponent_bits: int, mantissa_bits: int) -> XlaOp:
    """Round each element to a floating-point format of fewer bits."""
    return operand.builder.add(
        "reduce-precision", [operand], {"exponent_bits": exponent_bits, "mantissa_bits": mantissa_bits}
    )


@deferred
def stochastic_convert(operand: XlaOp, random: XlaOp, dtype: ElementType | str) -> XlaOp:
    """Convert floats to integers, rounding by random bits of the same width."""
    return operand.builder.add("stochastic-convert", [operand, random], shape=operand.shape.with_dtype(as_dtype(dtype)))


@deferred
def select(pred: XlaOp, on_true: Operand, on_false: Operand) -> XlaOp:
    """Select each element from one of two arrays; a scalar among these is repeated."""
    traced = on_true if isinstance(on_true, XlaOp) else on_false
    if not isinstance(traced, XlaOp):
        raise DTypeError("select needs at least one value whose element type is known")
    x, y = lift(traced.builder, on_true, traced.shape), lift(traced.builder, on_false, traced.shape)
    if pred.shape.rank and x.shape.is_scalar and y.shape.is_scalar:
        x = broadcast(x, pred.shape.dims)
    x, y = _align(x, y, ())
    return pred.builder.add("select", [pred, x, y])


@deferred
def clamp(low: Operand, operand: XlaOp, high: Operand) -> XlaOp:
    """Clamp each element to low .. high, which may be scalars."""
    bounds = [lift(operand.builder, b, operand.shape) for b in (low, high)]
    return operand.builder.add("clamp", [bounds[0], operand, bounds[1]])


def python_name(opcode: str) -> str:
    """Return the name of an opcode's function: underscores for dashes, and one more if Python has the name already."""
    name = opcode.replace("-", "_")
    return f"{name}_" if iskeyword(name) or hasattr(builtins, name) else name


_MAKERS: Final = {1: _unary, 2: _binary}
for _row in OPCODES.values():  # opcodes with no arguments but operands
    _name, _make = python_name(_row.name), _MAKERS.get(_row.arity[0])
    if _row.elementwise and _make is not None and _name not in globals():
        globals()[_name] = _make(_row.name, _name)
