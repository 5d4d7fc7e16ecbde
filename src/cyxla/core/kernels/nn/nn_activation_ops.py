"""Activations and their gradients."""

from __future__ import annotations

import numpy as np

from cyxla.core.framework.kernel_decorators import array_kernel
from cyxla.core.framework.numeric_limits import wide_type
from cyxla.core.framework.types import FLOATING, REAL
from cyxla.core.kernels.lib.elementwise import Array, binary, check_same_shape, unary
from cyxla.errors import ShapeError

# Klambauer et al., "Self-normalizing neural networks", NIPS 2017
_SELU_SCALE, _SELU_SCALE_ALPHA = 1.0507009873554804934193349852946, 1.7580993408473768599402175208123


def _softplus(x: Array) -> Array:
    """Return log(1 + exp(x)), by one term of the sum where the other is lost in rounding."""
    limit = np.log(np.finfo(x.dtype).eps) + 2
    exp_x = np.exp(x)
    return np.where(x > -limit, x, np.where(x < limit, exp_x, np.log1p(exp_x)))


def _relu(x: Array, top: float | None = None) -> Array:
    low = np.maximum(x, x.dtype.type(0))
    return low if top is None else np.minimum(low, x.dtype.type(top))


# fmt: off
unary("Relu",     _relu,                                        REAL)
unary("Relu6",    lambda x: _relu(x, 6),                        REAL)
unary("Elu",      lambda x: np.where(x < 0, np.expm1(x), x),    FLOATING)
unary("Selu",     lambda x: np.where(x < 0, _SELU_SCALE_ALPHA * np.expm1(x), _SELU_SCALE * x), FLOATING)
unary("Softplus", _softplus,                                    FLOATING)
unary("Softsign", lambda x: x / (1 + np.abs(x)),                FLOATING)

# Gradients take that of the result, and the features or, for exponential functions, the result.
binary("ReluGrad",     lambda dy, x: np.where(x > 0, dy, dy.dtype.type(0)),             REAL, same_shape=True)
binary("Relu6Grad",    lambda dy, x: np.where((x > 0) & (x < 6), dy, dy.dtype.type(0)), REAL, same_shape=True)
binary("EluGrad",      lambda dy, y: np.where(y < 0, dy * (y + 1), dy),                 FLOATING, same_shape=True)
binary("SeluGrad",     lambda dy, y: np.where(y < 0, dy * (y + dy.dtype.type(_SELU_SCALE_ALPHA)),
                                              dy * dy.dtype.type(_SELU_SCALE)),         FLOATING, same_shape=True)
binary("SoftplusGrad", lambda dy, x: dy / (np.exp(-x) + 1),                             FLOATING, same_shape=True)
binary("SoftsignGrad", lambda dy, x: dy / np.square(1 + np.abs(x)),                     FLOATING, same_shape=True)
# fmt: on


@array_kernel("LeakyRelu", attrs=("alpha",), types={"T": FLOATING})
def _leaky_relu(x: Array, *, alpha: float) -> Array:
    wide = x.astype(wide_type(x.dtype), copy=False)
    return np.where(wide > 0, wide, wide * wide.dtype.type(alpha)).astype(x.dtype, copy=False)


@array_kernel("LeakyReluGrad", attrs=("alpha",), types={"T": FLOATING})
def _leaky_relu_grad(dy: Array, x: Array, *, alpha: float) -> Array:
    check_same_shape(dy, x)
    wide = dy.astype(wide_type(dy.dtype), copy=False)
    return np.where(x > 0, wide, wide * wide.dtype.type(alpha)).astype(dy.dtype, copy=False)


def _subtract_max(x: Array) -> Array:
    """Subtract the maximum of each row, which keeps exponentials finite."""
    if not x.ndim:
        raise ShapeError("logits must have a last dimension of classes; this is a scalar")
    wide = x.astype(wide_type(x.dtype), copy=False)
    return wide - wide.max(axis=-1, keepdims=True, initial=-np.inf)


@array_kernel("Softmax", types={"T": FLOATING})
def _softmax(x: Array) -> Array:
    with np.errstate(all="ignore"):
        exponentials = np.exp(_subtract_max(x))
        return np.asarray(exponentials / exponentials.sum(axis=-1, keepdims=True)).astype(x.dtype, copy=False)


@array_kernel("LogSoftmax", types={"T": FLOATING})
def _log_softmax(x: Array) -> Array:
    with np.errstate(all="ignore"):
        shifted = _subtract_max(x)
        total = np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
        return np.asarray(shifted - total).astype(x.dtype, copy=False)
