"""Expand batch normalisation into sums and element-wise arithmetic.

Before::

    ROOT r = f32[8,4] batch-norm-inference(x, scale, offset, mean, variance), epsilon=0.001, feature_index=1

After, with the vectors broadcast over the dimensions that are not features::

    centred = f32[8,4] subtract(x, mean.all)
    factor = f32[4] multiply(rsqrt(variance + 0.001), scale)
    ROOT r = f32[8,4] add(multiply(centred, factor.all), offset.all)

16-bit and narrower types are computed in f32 and rounded once. The variance is the mean of squared distances, not the
difference of two means, which is cancelled when the mean is large.
"""

from __future__ import annotations

from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.passes.engine.batch_norm import RESULTS, BatchNorm
from cyxla.xla.passes.engine.rewrite_helpers import Writer, rewrite_each


def run(module: HloModule) -> bool:
    """Expand batch-norm-training, -inference and -grad."""
    return rewrite_each(module, dict.fromkeys(RESULTS, _rewrite))


def _rewrite(ins: Instruction) -> Instruction:
    norm = BatchNorm(Writer(ins.computation), ins.attrs, ins.operands)
    results = RESULTS[ins.opcode](norm)
    return norm.write.op("tuple", *results, shape=ins.shape) if ins.shape.is_tuple else results[0]
