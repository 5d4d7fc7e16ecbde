"""Connectionist temporal classification: likelihood of labels summed over all alignments to frames.

Graves, "Supervised sequence labelling with recurrent neural networks", 2012, chapter 7; computed in the log domain.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from cyxla.core.framework.kernel_decorators import array_kernel
from cyxla.errors import InvalidArgumentError, ShapeError

Array = np.ndarray[Any, Any]


@array_kernel(
    "CTCLoss",
    attrs=("preprocess_collapse_repeated", "ctc_merge_repeated", "ignore_longer_outputs_than_inputs"),
)
def _ctc_loss(
    inputs: Array,
    indices: Array,
    values: Array,
    lengths: Array,
    *,
    preprocess_collapse_repeated: bool,
    ctc_merge_repeated: bool,
    ignore_longer_outputs_than_inputs: bool,
) -> tuple[Array, Array]:
    """Return the loss of each sequence, and its gradient with respect to the inputs."""
    labels = _labels_by_batch(inputs, indices, values, lengths)
    logits = inputs.astype(np.float64)
    loss, gradients = np.zeros(inputs.shape[1]), np.zeros(inputs.shape)
    for b, (targets, length) in enumerate(zip(labels, lengths.tolist(), strict=True)):
        if not length:
            continue
        if preprocess_collapse_repeated:
            targets = [k for i, k in enumerate(targets) if not i or k != targets[i - 1]]
        needed = len(targets) + sum(x == y for x, y in pairwise(targets)) * ctc_merge_repeated
        if needed > length and not ignore_longer_outputs_than_inputs:
            raise InvalidArgumentError(
                f"sequence {b} has {length} frames, but its labels need {needed}",
                hint="give longer sequences, or set ignore_longer_outputs_than_inputs",
            )
        if needed > length:
            loss[b] = np.inf
        else:
            loss[b], gradients[:length, b] = _sequence_loss(logits[:length, b], targets, ctc_merge_repeated)
    return loss.astype(inputs.dtype), gradients.astype(inputs.dtype)


def _labels_by_batch(inputs: Array, indices: Array, values: Array, lengths: Array) -> list[list[int]]:
    if inputs.ndim != 3:
        raise ShapeError(f"inputs must have rank 3: times, batch, classes; the shape is {list(inputs.shape)}")
    times, batch, classes = inputs.shape
    if not classes:
        raise InvalidArgumentError("inputs must have at least one class: the last one is the blank")
    if indices.ndim != 2 or values.shape != indices.shape[:1] or (len(indices) and indices.shape[1] != 2):
        raise ShapeError(f"labels_indices {list(indices.shape)} and labels_values {list(values.shape)} do not fit")
    if lengths.shape != (batch,):
        raise ShapeError(f"sequence_length {list(lengths.shape)} must hold one length for each of {batch} sequences")
    if ((lengths < 0) | (lengths > times)).any():
        raise InvalidArgumentError(f"sequence_length must lie in [0, {times}]: {lengths.tolist()}")
    if ((values < 0) | (values >= classes - 1)).any():
        raise InvalidArgumentError(f"labels must lie in [0, {classes - 1}): the last class is the blank")
    labels: list[list[int]] = [[] for _ in range(batch)]
    for (b, _), value in zip(indices.tolist(), values.tolist(), strict=True):
        if not 0 <= b < batch:
            raise InvalidArgumentError(f"a label is for sequence {b} of {batch}")
        labels[b].append(value)
    return labels


def _sequence_loss(logits: Array, targets: list[int], merge: bool) -> tuple[float, Array]:
    """Return loss and gradient of one sequence, f64[times, classes]."""
    blank = logits.shape[1] - 1
    states = np.full(2 * len(targets) + 1, blank)
    states[1::2] = targets
    may_stay = (states == blank) | merge
    skip = states != blank
    skip[:2] = False
    skip[2:] &= ~(merge & (states[2:] == states[:-2]))
    shifted = logits - logits.max(axis=1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    emissions = logs[:, states]
    forward, backward = _forward_variables(emissions, may_stay, skip), _backward_variables(emissions, may_stay, skip)
    total = np.logaddexp.reduce(forward[-1, -2:])
    if total == -np.inf:
        return np.inf, np.zeros(logits.shape)
    gradients = np.exp(logs)
    np.subtract.at(gradients.T, states, np.exp(forward + backward - total).T)
    return -total, gradients


def _shift(x: Array, by: int) -> Array:
    """Shift along the first axis, filling with -inf, the logarithm of 0."""
    shifted = np.full(x.shape, -np.inf)
    if by > 0:
        shifted[by:] = x[:-by]
    else:
        shifted[:by] = x[-by:]
    return shifted


def _forward_variables(emissions: Array, may_stay: Array, may_skip: Array) -> Array:
    """Return the log likelihoods of all paths to each state, including its emission (the forward variables)."""
    log_probs = np.full(emissions.shape, -np.inf)
    log_probs[0, :2] = emissions[0, :2]
    for t in range(1, len(emissions)):
        last = log_probs[t - 1]
        paths = [np.where(may_stay, last, -np.inf), _shift(last, 1), np.where(may_skip, _shift(last, 2), -np.inf)]
        log_probs[t] = emissions[t] + np.logaddexp.reduce(paths)
    return log_probs


def _backward_variables(emissions: Array, may_stay: Array, may_skip: Array) -> Array:
    """Return the log likelihoods of all paths from each state to an end, without its emission (backward variables)."""
    log_probs = np.full(emissions.shape, -np.inf)
    log_probs[-1, -2:] = 0
    for t in range(len(emissions) - 2, -1, -1):
        after = log_probs[t + 1] + emissions[t + 1]
        paths = [np.where(may_stay, after, -np.inf), _shift(after, -1), _shift(np.where(may_skip, after, -np.inf), -2)]
        log_probs[t] = np.logaddexp.reduce(paths)
    return log_probs
