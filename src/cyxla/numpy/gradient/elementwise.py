"""Derivatives of element-wise opcodes.

A cotangent is that of ``sum(real(g * f(x)))``: complex values are propagated without conjugation, so that the gradient
with respect to ``z = x + iy`` is ``df/dx - i df/dy``; its conjugate is the direction of ascent.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt

from cyxla.numpy.gradient.table import Cotangents, Node, full_constant, rule
from cyxla.types import Shape
from cyxla.xla.hlo.builder import XlaOp, scalar_computation
from cyxla.xla.hlo.builder import functions as xla

Partial = Callable[..., XlaOp | None]


def zero_cotangents(node: Node) -> Cotangents:
    """Return zero cotangents, for opcodes that are constant almost everywhere or whose results are not inexact."""
    return [None] * len(node.needs)


def partials(opcode: str, *functions: Partial) -> None:
    """Register partial derivatives of an opcode: for each operand a function of cotangent, result and operands."""

    def pull(node: Node) -> Cotangents:
        pairs = zip(functions, node.needs, strict=True)
        return [f(node.g, node.out, *node.operands) if n else None for f, n in pairs]

    rule(opcode)(pull)


def full_like(like: XlaOp, value: float) -> XlaOp:
    """Broadcast a number to the shape and dtype of a value."""
    return full_constant(like.shape, value)


def where(mask: XlaOp, value: XlaOp, other: float = 0) -> XlaOp:
    """Select a value where a mask is true, else a number."""
    return xla.select(mask, value, full_like(value, other))


def is_zero(x: XlaOp) -> XlaOp:
    """Return a mask of zeros."""
    return xla.eq(x, full_like(x, 0))


def as_complex(x: XlaOp) -> XlaOp:
    """Convert a real value to a complex one."""
    return xla.complex_(x, full_like(x, 0))


def conjugate(x: XlaOp) -> XlaOp:
    """Compute the complex conjugate; real values are returned as they are."""
    return xla.complex_(xla.real(x), -xla.imag(x)) if x.shape.dtype.is_complex else x


def sum_over(x: XlaOp, dims: tuple[int, ...] | None = None) -> XlaOp:
    """Sum along dimensions, by default along all of them."""
    axes = tuple(range(x.shape.rank)) if dims is None else dims
    return xla.reduce(x, [zero_scalar(x)], scalar_computation("add", x.shape.dtype), axes) if axes else x


def zero_scalar(x: XlaOp) -> XlaOp:
    """Return the scalar 0 in the dtype of a value."""
    return full_constant(Shape.array(x.shape.dtype), 0)


def _power_base(g: XlaOp, out: XlaOp, x: XlaOp, y: XlaOp) -> XlaOp:
    zero_mask = is_zero(y)  # x ** 0 is 1 everywhere, also at x = 0
    return where(~zero_mask, g * y * xla.power(x, xla.select(zero_mask, full_like(y, 1), y - full_like(y, 1))))


def _power_exponent(g: XlaOp, out: XlaOp, x: XlaOp, y: XlaOp) -> XlaOp:
    return g * out * xla.log(where(~is_zero(x), x, 1))


def _share_of_selected(greater: Callable[[XlaOp, XlaOp], XlaOp]) -> Callable[[XlaOp, XlaOp, XlaOp], XlaOp]:
    """Return the partial derivative of an operand selected by comparison: 1, 0, or one half for equal ones."""

    def share(g: XlaOp, x: XlaOp, y: XlaOp) -> XlaOp:
        half = xla.select(xla.eq(x, y), g * full_like(g, 0.5), full_like(g, 0))
        return xla.select(greater(x, y), g, half)

    return share


_share_of_greater, _share_of_less = _share_of_selected(xla.gt), _share_of_selected(xla.lt)


def _absolute(g: XlaOp, out: XlaOp, x: XlaOp) -> XlaOp:
    if not x.shape.dtype.is_complex:
        return g * xla.sign(x)
    zero_mask = is_zero(out)
    factor = conjugate(x) * as_complex(xla.divide(full_like(out, 1), where(~zero_mask, out, 1)))
    return as_complex(g) * factor


def _sign(g: XlaOp, out: XlaOp, x: XlaOp) -> XlaOp | None:
    """Differentiate the sign; of complex numbers it is x / abs(x), which varies with the angle."""
    if not x.shape.dtype.is_complex:
        return None
    magnitude = xla.abs_(x)
    zero_mask = is_zero(magnitude)
    tangential = (g - conjugate(g * out * out)) * full_like(g, 0.5)
    return xla.select(zero_mask, full_like(g, 0), tangential / as_complex(where(~zero_mask, magnitude, 1)))


def _one_minus_square(x: XlaOp) -> XlaOp:
    return full_like(x, 1) - x * x


def asin_root(x: XlaOp) -> XlaOp:
    """Compute sqrt(1 - x**2); for complex x as a product of two roots, so that the sign of a zero selects the branch.

    An addition of 1 would lose the sign of a zero, so -1 is subtracted.
    """
    if not x.shape.dtype.is_complex:
        return xla.sqrt((full_like(x, 1) - x) * (full_like(x, 1) + x))
    return xla.sqrt(-(x - full_like(x, 1))) * xla.sqrt(x - full_like(x, -1))


def asinh_root(x: XlaOp) -> XlaOp:
    """Compute sqrt(x**2 + 1), as `asin_root` of ix."""
    if not x.shape.dtype.is_complex:
        return xla.sqrt(x * x + full_like(x, 1))
    a, b = xla.real(x), xla.imag(x)
    return xla.sqrt(xla.complex_(full_like(b, 1) + b, -a)) * xla.sqrt(xla.complex_(full_like(b, 1) - b, a))


def acosh_root(x: XlaOp) -> XlaOp:
    """Compute sqrt(x - 1) sqrt(x + 1)."""
    return xla.sqrt(x - full_like(x, 1)) * xla.sqrt(x - full_like(x, -1))


def _convert(g: XlaOp, out: XlaOp, x: XlaOp) -> XlaOp:
    source, target = g.shape.dtype, x.shape.dtype
    if source.is_complex and not target.is_complex:
        return xla.convert(xla.real(g), target)
    return xla.convert(g, target)


def _real(g: XlaOp, out: XlaOp, x: XlaOp) -> XlaOp:
    return as_complex(g) if x.shape.dtype.is_complex else g


def _imag(g: XlaOp, out: XlaOp, x: XlaOp) -> XlaOp | None:
    return xla.complex_(full_like(g, 0), -g) if x.shape.dtype.is_complex else None


def _over_norm2(g: XlaOp, y: XlaOp, x: XlaOp) -> XlaOp:
    return g / (x * x + y * y)


# fmt: off
partials("add",      lambda g, out, x, y: g,     lambda g, out, x, y: g)
partials("subtract", lambda g, out, x, y: g,     lambda g, out, x, y: -g)
partials("multiply", lambda g, out, x, y: g * y, lambda g, out, x, y: g * x)
partials("divide",   lambda g, out, x, y: g / y, lambda g, out, x, y: -(g / y) * out)
partials("power",    _power_base,                _power_exponent)
partials("maximum",  lambda g, out, x, y: _share_of_greater(g, x, y), lambda g, out, x, y: _share_of_greater(g, y, x))
partials("minimum",  lambda g, out, x, y: _share_of_less(g, x, y), lambda g, out, x, y: _share_of_less(g, y, x))
partials("atan2",    lambda g, out, y, x: _over_norm2(g, y, x) * x, lambda g, out, y, x: -_over_norm2(g, y, x) * y)
partials("complex",  lambda g, out, x, y: xla.real(g), lambda g, out, x, y: -xla.imag(g))
partials("remainder", lambda g, out, x, y: g, lambda g, out, x, y: -g * xla.sign(x / y) * xla.floor(xla.abs_(x / y)))

partials("negate",                lambda g, out, x: -g)
partials("abs",                   _absolute)
partials("sign",                  _sign)
partials("exponential",           lambda g, out, x: g * out)
partials("exponential-minus-one", lambda g, out, x: g * (out + full_like(out, 1)))
partials("log",                   lambda g, out, x: g / x)
partials("log-plus-one",          lambda g, out, x: g / (x + full_like(x, 1)))
partials("logistic",              lambda g, out, x: g * out * (full_like(out, 1) - out))
partials("tanh",                  lambda g, out, x: g * _one_minus_square(out))
partials("tan",                   lambda g, out, x: g * (out * out + full_like(out, 1)))
partials("sine",                  lambda g, out, x: g * xla.cosine(x))
partials("cosine",                lambda g, out, x: -g * xla.sine(x))
partials("sinh",                  lambda g, out, x: g * xla.cosh(x))
partials("cosh",                  lambda g, out, x: g * xla.sinh(x))
partials("asin",                  lambda g, out, x: g / asin_root(x))
partials("acos",                  lambda g, out, x: -g / asin_root(x))
partials("asinh",                 lambda g, out, x: g / asinh_root(x))
partials("acosh",                 lambda g, out, x: g / acosh_root(x))
partials("atanh",                 lambda g, out, x: g / _one_minus_square(x))
partials("sqrt",                  lambda g, out, x: g * full_like(g, 0.5) / out)
partials("rsqrt",                 lambda g, out, x: g * full_like(g, -0.5) * out / x)
partials("cbrt",                  lambda g, out, x: g * full_like(g, 1 / 3) / (out * out))
partials("erf",                   lambda g, out, x: g * full_like(g, 2 / sqrt(pi)) * xla.exponential(-x * x))
partials("real",                  _real)
partials("imag",                  _imag)
partials("convert",               _convert)
partials("copy",                  lambda g, out, x: g)
# fmt: on

rule("ceil", "floor", "round-nearest-afz", "round-nearest-even", "is-finite", "compare", "stochastic-convert")(
    zero_cotangents
)
rule("bitcast-convert")(zero_cotangents)


@rule("reduce-precision")
def reduce_precision(node: Node) -> Cotangents:
    """Reduce the precision of the cotangent likewise."""
    return [xla.reduce_precision(node.g, node.attrs["exponent_bits"], node.attrs["mantissa_bits"])]


@rule("select")
def select(node: Node) -> Cotangents:
    """Pass the cotangent to the chosen operand."""
    pred, zero = node.operands[0], full_constant(node.instruction.shape, 0)
    on_true = xla.select(pred, node.g, zero) if node.needs[1] else None
    return [None, on_true, xla.select(pred, zero, node.g) if node.needs[2] else None]


@rule("clamp")
def clamp(node: Node) -> Cotangents:
    """Pass the cotangent to the operand if it is strictly between the limits, else to the limit."""
    low, x, high = (_broadcast_limit(o, node.instruction.shape) for o in node.operands)
    inside, below = xla.and_(xla.gt(x, low), xla.lt(x, high)), xla.and_(xla.le(x, low), xla.lt(low, high))
    masks = (below, inside, xla.ge(xla.maximum(x, low), high))
    cotangents = [where(m, node.g) if n else None for m, n in zip(masks, node.needs, strict=True)]
    return [m if m is None or s.rank else sum_over(m) for m, s in zip(cotangents, node.shapes, strict=True)]


def _broadcast_limit(x: XlaOp, shape: Shape) -> XlaOp:
    return x if x.shape.rank == shape.rank else xla.broadcast(x, shape.dims)
