"""Epilogues of fused products and convolutions: bias, normalisation, addition, activation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cyxla.core.framework.numeric_limits import wide_type
from cyxla.errors import InvalidArgumentError, ShapeError, UnimplementedError

Array = np.ndarray[Any, Any]
FUSED_ATTRS = ("fused_ops", "epsilon", "leakyrelu_alpha")


def _gelu(x: Array) -> Array:
    from scipy.special import erf

    return np.asarray(0.5 * x * (1 + erf(x * np.sqrt(0.5))))


def _gelu_tanh(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))


_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "Relu": lambda x: np.maximum(x, 0),
    "Relu6": lambda x: np.clip(x, 0, 6),
    "Elu": lambda x: np.where(x < 0, np.expm1(np.minimum(x, 0)), x),
    "Tanh": np.tanh,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "GeluExact": _gelu,
    "GeluApproximate": _gelu_tanh,
}
_EXTRA_INPUTS = {"BiasAdd": 1, "FusedBatchNorm": 4, "Add": 1}  # number of extra inputs of each op


def apply_fused_ops(
    result: Array, args: Sequence[Array], *, fused_ops: Sequence[str], epsilon: float, leakyrelu_alpha: float
) -> Array:
    """Apply fused ops, in order, to a channels-last result.

    Raises
    ------
    InvalidArgumentError
        `fused_ops` is empty, or there are too few or too many extra inputs.
    UnimplementedError
        The op cannot be fused.
    ShapeError
        An extra input does not fit the channels or the result.
    """
    if not fused_ops:
        raise InvalidArgumentError("fused_ops is empty", hint="use the op that is not fused")
    x, remaining = result.astype(wide_type(result.dtype), copy=False), list(args)
    with np.errstate(all="ignore"):
        for name in fused_ops:
            count = _EXTRA_INPUTS.get(name, 0)
            if len(remaining) < count:
                raise InvalidArgumentError(f"{list(fused_ops)} takes more inputs than the {len(args)} given")
            extra, remaining = [a.astype(x.dtype, copy=False) for a in remaining[:count]], remaining[count:]
            x = _apply(name, x, extra, epsilon, leakyrelu_alpha)
    if remaining:
        raise InvalidArgumentError(f"{list(fused_ops)} leaves {len(remaining)} of {len(args)} further inputs over")
    return np.asarray(x).astype(result.dtype, copy=False)


def _apply(name: str, x: Array, args: list[Array], epsilon: float, alpha: float) -> Array:
    if name == "Add":
        if args[0].shape != x.shape:
            raise ShapeError(f"what is added has the shape {list(args[0].shape)}, the result {list(x.shape)}")
        return x + args[0]
    for vector in args:
        if vector.shape != x.shape[-1:]:
            raise ShapeError(f"{name} needs one number for each of {x.shape[-1]} channels, not {list(vector.shape)}")
    if name == "BiasAdd":
        return x + args[0]
    if name == "FusedBatchNorm":
        scale, offset, mean, variance = args
        return (x - mean) * (scale / np.sqrt(variance + x.dtype.type(epsilon))) + offset
    if name == "LeakyRelu":
        return np.where(x > 0, x, x * x.dtype.type(alpha))
    if name not in _ACTIVATIONS:
        raise UnimplementedError(
            f"fusing {name!r}", hint=f"{sorted([*_ACTIVATIONS, *_EXTRA_INPUTS, 'LeakyRelu'])} can be fused"
        )
    return _ACTIVATIONS[name](x)
