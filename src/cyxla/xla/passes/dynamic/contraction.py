"""Products and convolutions: elements beyond the sizes of what is summed over are zeros."""

from __future__ import annotations

from cyxla.xla.hlo import Instruction
from cyxla.xla.hlo.attributes import ConvDims
from cyxla.xla.passes.dynamic.packing import Bounded, Value
from cyxla.xla.passes.dynamic.padder import Padder, Sizes, moved, pads, refuse


@pads("dot")
def dot(pad: Padder, ins: Instruction, lhs: Value, rhs: Value) -> Value:
    """Multiply; contracted dimensions are as long as the shorter operand's."""
    left, right, a = pad.array(lhs), pad.array(rhs), ins.attrs
    pairs = zip(a["lhs_contracting_dims"], a["rhs_contracting_dims"], strict=True)
    x, y = _masked(pad, left, right, list(pairs))
    batch = list(zip(a["lhs_batch_dims"], a["rhs_batch_dims"], strict=True))
    sizes: Sizes = {}
    for k, (i, j) in enumerate(batch):
        size = pad.common_size([(left, i), (right, j)])
        if size is not None:
            sizes[k] = size
    used = ([*a["lhs_batch_dims"], *a["lhs_contracting_dims"]], [*a["rhs_batch_dims"], *a["rhs_contracting_dims"]])
    at = len(batch)
    for operand, excluded in zip((left, right), used, strict=True):
        free = [d for d in range(operand.padded.shape.rank) if d not in excluded]
        sizes.update({at + k: size for k, size in moved(operand.sizes, free).items()})
        at += len(free)
    return Bounded(pad.copy(ins, [x, y]), sizes)


def _masked(
    pad: Padder, left: Bounded, right: Bounded, pairs: list[tuple[int, int]]
) -> tuple[Instruction, Instruction]:
    """Return operands with zeros beyond the common sizes of summed dimensions: in both, since zero times NaN is NaN."""
    x, y = left.padded, right.padded
    for i, j in pairs:
        size = pad.common_size([(left, i), (right, j)])
        if size is not None:
            x = pad.masked(Bounded(x, {i: size}), [i], pad.constant(0, x.shape.dtype))
            y = pad.masked(Bounded(y, {j: size}), [j], pad.constant(0, y.shape.dtype))
    return x, y


@pads("convolution")
def convolution(pad: Padder, ins: Instruction, lhs: Value, rhs: Value) -> Value:
    """Convolve an input of dynamic batch, features or space."""
    image, kernel = pad.array(lhs), pad.array(rhs)
    labels: ConvDims = ins.attrs["dim_labels"]
    grouped = ins.attrs["feature_group_count"] > 1 or ins.attrs["batch_group_count"] > 1
    _check_convolution(ins, labels, image, kernel, grouped)
    x, y = _masked(pad, image, kernel, [(labels.input_feature, labels.kernel_input_feature)])
    spatial = [d for d in labels.input_spatial if d in image.sizes]
    x = pad.masked(Bounded(x, image.sizes), spatial, pad.constant(0, x.shape.dtype))
    sizes: Sizes = {}
    for k, d in enumerate(labels.input_spatial):
        if d in image.sizes:
            sizes[labels.output_spatial[k]] = pad.window_count(image.sizes[d], ins.attrs["window"][k])
    if labels.input_batch in image.sizes:
        sizes[labels.output_batch] = image.sizes[labels.input_batch]
    if labels.kernel_output_feature in kernel.sizes:
        sizes[labels.output_feature] = kernel.sizes[labels.kernel_output_feature]
    return Bounded(pad.copy(ins, [x, y]), sizes)


def _check_convolution(ins: Instruction, labels: ConvDims, image: Bounded, kernel: Bounded, grouped: bool) -> None:
    if any(d in kernel.sizes for d in labels.kernel_spatial):
        refuse(ins, "the window has a dynamic size")
    divided = any(d in image.sizes for d in (labels.input_feature, labels.input_batch))
    if grouped and (divided or kernel.sizes):
        refuse(ins, "dimensions that are split into groups have dynamic sizes")
