"""Arithmetic of batch norms: sums and element-wise operations in the work type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cyxla.types import ElementType, Shape
from cyxla.xla.hlo import Instruction
from cyxla.xla.passes.engine.rewrite_helpers import Writer


class BatchNorm:
    """The parts that the three opcodes share: operands in the work type, and broadcasts of feature vectors."""

    def __init__(self, write: Writer, attrs: Mapping[str, Any], operands: Sequence[Instruction]) -> None:
        self.write = write
        self.feature: int = attrs["feature_index"]
        dtype = operands[0].shape.dtype
        self.dtype = dtype
        self.work_type = dtype if dtype.bits >= 32 else ElementType.F32
        self.operands = [self.write.convert(o, self.work_type) for o in operands]
        self.shape: Shape = self.operands[0].shape.logical
        self.reduced_dims = tuple(d for d in range(self.shape.rank) if d != self.feature)
        features = self.shape.dims[self.feature]
        self.count = self.shape.size // features if features else 0
        self.epsilon: float = attrs["epsilon"]

    def broadcast(self, vector: Instruction) -> Instruction:
        """Broadcast a feature vector over the whole array."""
        return self.write.broadcast(vector, self.shape, (self.feature,))

    def sum(self, x: Instruction) -> Instruction:
        """Compute the sum over all dimensions but the features."""
        return self.write.sum(x, self.reduced_dims)

    def mean(self, x: Instruction) -> Instruction:
        """Compute the mean over all dimensions but the features."""
        total = self.sum(x)
        return self.write.op("divide", total, self.number_of_elements(total.shape))

    def number_of_elements(self, shape: Shape) -> Instruction:
        """Return the number of elements of a feature, for each."""
        return self.write.full(self.count, shape)

    def inverse_deviation(self, variance: Instruction) -> Instruction:
        """Compute 1 / sqrt(variance + epsilon)."""
        return self.write.op("rsqrt", self.write.op("add", variance, self.write.full(self.epsilon, variance.shape)))

    def normalised(
        self, centred: Instruction, variance: Instruction, scale: Instruction, offset: Instruction
    ) -> Instruction:
        """Scale and shift distances from the mean."""
        factor = self.write.op("multiply", self.inverse_deviation(variance), scale)
        product = self.write.op("multiply", centred, self.broadcast(factor))
        return self.write.op("add", product, self.broadcast(offset))

    def centred(self, mean: Instruction) -> Instruction:
        """Compute distances from the mean."""
        return self.write.op("subtract", self.operands[0], self.broadcast(mean))

    def result(self, x: Instruction) -> Instruction:
        """Round a result to the operand's element type."""
        return self.write.convert(x, self.dtype)


def _inference(norm: BatchNorm) -> list[Instruction]:
    _, scale, offset, mean, variance = norm.operands
    return [norm.result(norm.normalised(norm.centred(mean), variance, scale, offset))]


def _training(norm: BatchNorm) -> list[Instruction]:
    _, scale, offset = norm.operands
    mean = norm.mean(norm.operands[0])
    centred = norm.centred(mean)
    variance = norm.mean(norm.write.op("multiply", centred, centred))
    return [norm.result(x) for x in (norm.normalised(centred, variance, scale, offset), mean, variance)]


def _grad(norm: BatchNorm) -> list[Instruction]:
    """Expand to dx = scale * r * (dy - mean(dy) - centred * r^2 * mean(dy * centred)), r the inverse deviation."""
    write = norm.write
    _, scale, mean, variance, dy = norm.operands
    centred, r = norm.centred(mean), norm.inverse_deviation(variance)
    along = write.op("multiply", dy, centred)
    d_offset = norm.sum(dy)
    d_scale = write.op("multiply", norm.sum(along), r)
    slope = write.op("multiply", write.op("multiply", r, r), norm.mean(along))
    level = write.op("subtract", dy, norm.broadcast(norm.mean(dy)))
    inner = write.op("subtract", level, write.op("multiply", centred, norm.broadcast(slope)))
    dx = write.op("multiply", inner, norm.broadcast(write.op("multiply", scale, r)))
    return [norm.result(x) for x in (dx, d_scale, d_offset)]


#: Functions that write the results of an opcode.
RESULTS: Mapping[str, Callable[[BatchNorm], list[Instruction]]] = {
    "batch-norm-grad": _grad,
    "batch-norm-inference": _inference,
    "batch-norm-training": _training,
}
