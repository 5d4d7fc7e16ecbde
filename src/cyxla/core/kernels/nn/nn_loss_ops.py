"""Classification losses together with their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.core.framework.kernel_decorators import array_kernel
from cyxla.core.framework.numeric_limits import wide_type
from cyxla.core.framework.types import FLOATING
from cyxla.errors import InvalidArgumentError, ShapeError

Array = np.ndarray[Any, Any]


def _log_softmax(logits: Array) -> Array:
    """Return the log-softmax of each row in the wide type."""
    wide = logits.astype(wide_type(logits.dtype))
    shifted = wide - wide.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


@array_kernel("SoftmaxCrossEntropyWithLogits", types={"T": FLOATING})
def _cross_entropy(features: Array, labels: Array) -> tuple[Array, Array]:
    """Return the loss of each row of logits for a row of probabilities; either may broadcast."""
    try:
        logits, targets = np.broadcast_arrays(features, labels)
    except ValueError:
        raise ShapeError(f"logits {list(features.shape)} and labels {list(labels.shape)} do not broadcast") from None
    if logits.ndim != 2:
        raise ShapeError(f"logits must be a matrix of rows of classes; with the labels they are {list(logits.shape)}")
    if not logits.size:
        return np.zeros(len(logits), features.dtype), np.zeros(logits.shape, features.dtype)
    with np.errstate(all="ignore"):
        log_probs = _log_softmax(logits)
        wide = targets.astype(log_probs.dtype)
        loss = -(wide * log_probs).sum(axis=1)
        return loss.astype(features.dtype), (np.exp(log_probs) - wide).astype(features.dtype)


@array_kernel("SparseSoftmaxCrossEntropyWithLogits", types={"T": FLOATING})
def _sparse_cross_entropy(features: Array, labels: Array) -> tuple[Array, Array]:
    """Return the loss of each row of logits for the index of its class."""
    if features.ndim != 2:
        raise ShapeError(f"logits must be a matrix of rows of classes; their shape is {list(features.shape)}")
    if labels.shape != features.shape[:1]:
        raise ShapeError(f"labels {list(labels.shape)} must hold one number for each of {len(features)} rows of logits")
    if features.size and not features.shape[1]:
        raise InvalidArgumentError("there must be at least one class")
    bad = (labels < 0) | (labels >= features.shape[1])
    if bad.any():
        raise InvalidArgumentError(f"label {labels[bad][0]} is outside of [0, {features.shape[1]})")
    if not features.size:
        return np.zeros(len(features), features.dtype), np.zeros(features.shape, features.dtype)
    with np.errstate(all="ignore"):
        log_probs = _log_softmax(features)
        rows = np.arange(len(features))
        loss, gradient = -log_probs[rows, labels], np.exp(log_probs)
    gradient[rows, labels] -= 1
    return loss.astype(features.dtype), gradient.astype(features.dtype)
