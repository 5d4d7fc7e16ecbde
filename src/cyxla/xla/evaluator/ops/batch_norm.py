"""Batch normalisation: training, inference, and gradient."""

from __future__ import annotations

import numpy as np

from cyxla.types import Shape
from cyxla.xla.evaluator.evaluation import Evaluation
from cyxla.xla.evaluator.numerics.conversion import convert_array
from cyxla.xla.evaluator.registry import evaluates
from cyxla.xla.evaluator.values import Array, Value, array_of
from cyxla.xla.hlo.instruction import Instruction


class _BatchNorm:
    """The attributes of a batch-norm, and its operands in double precision."""

    def __init__(self, ins: Instruction, *operands: Value) -> None:
        self.feature = int(ins.attrs["feature_index"])
        self.x, *self.columns = (array_of(o).astype(np.float64) for o in operands)
        if any(o.shape.is_dynamic for o in ins.operands):
            self._cut()
        self.epsilon = float(np.float32(ins.attrs["epsilon"]))
        self.axes = tuple(d for d in range(self.x.ndim) if d != self.feature)
        self.count = max(self.x.size // max(self.x.shape[self.feature], 1), 0)

    def _cut(self) -> None:
        """Cut all operands to the least number of features."""
        features = min(self.x.shape[self.feature], *(len(c) for c in self.columns))
        self.x = self.x[tuple(slice(features if d == self.feature else None) for d in range(self.x.ndim))]
        self.columns = [c[:features] for c in self.columns]

    def broadcast(self, column: Array) -> Array:
        """Reshape one value for each feature so that it broadcasts over the operand."""
        shape = [1] * self.x.ndim
        shape[self.feature] = -1
        return column.reshape(shape)

    def total(self, x: Array) -> Array:
        """Sum over all dimensions but the features."""
        return np.asarray(x.sum(axis=self.axes))


def _results(shape: Shape, *arrays: Array) -> Value:
    return tuple(convert_array(a, e.dtype) for a, e in zip(arrays, shape.elements, strict=True))


@evaluates("batch-norm-training")
def batch_norm_training(ev: Evaluation, ins: Instruction, x: Value, scale: Value, offset: Value) -> Value:
    """Return (normalised, mean, biased variance)."""
    norm = _BatchNorm(ins, x, scale, offset)
    gain, shift = norm.columns
    mean = norm.total(norm.x) / norm.count
    centred = norm.x - norm.broadcast(mean)
    variance = norm.total(centred * centred) / norm.count
    y = centred / norm.broadcast(np.sqrt(variance + norm.epsilon)) * norm.broadcast(gain) + norm.broadcast(shift)
    return _results(ins.shape, y, mean, variance)


@evaluates("batch-norm-inference")
def batch_norm_inference(
    ev: Evaluation, ins: Instruction, x: Value, scale: Value, offset: Value, mean: Value, variance: Value
) -> Value:
    """Normalise with a given mean and variance."""
    norm = _BatchNorm(ins, x, scale, offset, mean, variance)
    gain, shift, centre, var = norm.columns
    y = (norm.x - norm.broadcast(centre)) / norm.broadcast(np.sqrt(var + norm.epsilon)) * norm.broadcast(
        gain
    ) + norm.broadcast(shift)
    return convert_array(np.asarray(y), ins.shape.dtype)


@evaluates("batch-norm-grad")
def batch_norm_grad(
    ev: Evaluation, ins: Instruction, x: Value, scale: Value, mean: Value, variance: Value, grad: Value
) -> Value:
    """Return the gradients of x, scale and offset of the training form."""
    common = [slice(min(n)) for n in zip(array_of(x).shape, array_of(grad).shape, strict=True)]
    norm = _BatchNorm(ins, array_of(x)[tuple(common)], scale, mean, variance)
    gain, centre, var = norm.columns
    dy = array_of(grad)[tuple(map(slice, norm.x.shape))].astype(np.float64)
    inverse = 1.0 / np.sqrt(var + norm.epsilon)
    unit = (norm.x - norm.broadcast(centre)) * norm.broadcast(inverse)
    d_scale, d_offset = norm.total(dy * unit), norm.total(dy)
    mean_part = norm.broadcast(d_offset / norm.count) + unit * norm.broadcast(d_scale / norm.count)
    dx = norm.broadcast(gain * inverse) * (dy - mean_part)
    return _results(ins.shape, dx, d_scale, d_offset)
