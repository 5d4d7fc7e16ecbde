"""Activations and their gradients."""

from __future__ import annotations

import numpy as np

from cyxla.core.framework.types import FLOATING
from cyxla.errors import ShapeError
from cyxla.tf2xla.lib.softmax import subtract_max
from cyxla.tf2xla.xla_op_kernel import lowering
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import (
    broadcast_to,
    epsilon,
    full_like,
    in_f32,
    scalar,
    select,
    sizes_of,
    sum_of,
    zeros_like,
)

# Klambauer et al., "Self-normalizing neural networks", NIPS 2017
_SCALE, _SCALE_ALPHA = 1.0507009873554804934193349852946, 1.7580993408473768599402175208123
_FLOATS = {"T": FLOATING}


def _relu(x: XlaOp) -> XlaOp:
    return xla.maximum(x, zeros_like(x))


def _relu6(x: XlaOp) -> XlaOp:
    return xla.clamp(scalar(x, 0), x, scalar(x, 6))


def _elu(x: XlaOp) -> XlaOp:
    return select(xla.gt(x, zeros_like(x)), x, xla.exponential_minus_one(x))


def _selu(x: XlaOp) -> XlaOp:
    below = scalar(x, _SCALE_ALPHA) * xla.exponential_minus_one(x)
    return select(xla.gt(x, zeros_like(x)), scalar(x, _SCALE) * x, below)


def _softplus(x: XlaOp) -> XlaOp:
    """Return log(1 + exp(x)), by one term of the sum where the other is lost in rounding."""
    limit = float(np.log(epsilon(x)) + 2)
    grown = xla.exponential(x)
    small = select(xla.lt(x, full_like(x, limit)), grown, xla.log_plus_one(grown))
    return select(xla.gt(x, full_like(x, -limit)), x, small)


def _check(a: XlaOp, b: XlaOp) -> None:
    if sizes_of(a) != sizes_of(b):
        raise ShapeError(f"the gradients {list(sizes_of(a))} and {list(sizes_of(b))} must have one shape")


def _relu_grad(dy: XlaOp, x: XlaOp) -> XlaOp:
    _check(dy, x)
    return select(xla.gt(x, zeros_like(x)), dy, zeros_like(dy))


def _relu6_grad(dy: XlaOp, x: XlaOp) -> XlaOp:
    _check(dy, x)
    inside = xla.and_(xla.gt(x, zeros_like(x)), xla.lt(x, full_like(x, 6)))
    return select(inside, dy, zeros_like(dy))


def _elu_grad(dy: XlaOp, y: XlaOp) -> XlaOp:
    _check(dy, y)
    return select(xla.gt(y, zeros_like(y)), dy, (y + scalar(y, 1)) * dy)


def _selu_grad(dy: XlaOp, y: XlaOp) -> XlaOp:
    _check(dy, y)
    below = (y + scalar(y, _SCALE_ALPHA)) * dy
    return select(xla.lt(y, zeros_like(y)), below, scalar(y, _SCALE) * dy)


# fmt: off
lowering("Relu",         _relu)
lowering("Relu6",        _relu6)
lowering("Elu",          in_f32(_elu),                                                      types=_FLOATS)
lowering("Selu",         in_f32(_selu),                                                     types=_FLOATS)
lowering("Softplus",     in_f32(_softplus),                                                 types=_FLOATS)
lowering("Softsign",     in_f32(lambda x: x / (scalar(x, 1) + xla.abs_(x))),                types=_FLOATS)
lowering("ReluGrad",     _relu_grad)
lowering("Relu6Grad",    _relu6_grad)
lowering("EluGrad",      in_f32(_elu_grad),                                                 types=_FLOATS)
lowering("SeluGrad",     in_f32(_selu_grad),                                                types=_FLOATS)
lowering("SoftplusGrad", in_f32(lambda dy, x: dy / (xla.exponential(-x) + scalar(x, 1))),   types=_FLOATS)
# fmt: on


@lowering("SoftsignGrad", types=_FLOATS)
@in_f32
def _softsign_grad(dy: XlaOp, x: XlaOp) -> XlaOp:
    size = scalar(x, 1) + xla.abs_(x)
    return dy / (size * size)


@lowering("LeakyRelu", attrs=("alpha",), types=_FLOATS)
def _leaky_relu(x: XlaOp, *, alpha: float) -> XlaOp:
    return select(xla.gt(x, zeros_like(x)), x, x * scalar(x, alpha))


@lowering("LeakyReluGrad", attrs=("alpha",), types=_FLOATS)
def _leaky_relu_grad(dy: XlaOp, x: XlaOp, *, alpha: float) -> XlaOp:
    return select(xla.gt(x, zeros_like(x)), dy, dy * scalar(dy, alpha))


@lowering("Softmax", types=_FLOATS)
@in_f32
def _softmax(x: XlaOp) -> XlaOp:
    exponentials = xla.exponential(subtract_max(x))
    return exponentials / broadcast_to(sum_of(exponentials, [-1], keep=True), sizes_of(x))


@lowering("LogSoftmax", types=_FLOATS)
@in_f32
def _log_softmax(x: XlaOp) -> XlaOp:
    logits = subtract_max(x)
    total = xla.log(sum_of(xla.exponential(logits), [-1], keep=True))
    return logits - broadcast_to(total, sizes_of(x))
