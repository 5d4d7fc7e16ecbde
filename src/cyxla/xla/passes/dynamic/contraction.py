"""Products and convolutions: elements beyond the sizes of what is summed over are zeros."""

from __future__ import annotations

from cyxla.xla.evaluator.targets.built_in import same_padding
from cyxla.xla.hlo import Instruction
from cyxla.xla.hlo.attributes import ConvDims, PaddingDim, Window, WindowDim
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
    _check_convolution(ins, labels, image, kernel)
    return _convolved(pad, ins, image, kernel, ins.attrs["window"])


def _convolved(pad: Padder, ins: Instruction, image: Bounded, kernel: Bounded, window: Window) -> Bounded:
    labels: ConvDims = ins.attrs["dim_labels"]
    x, y = _masked(pad, image, kernel, [(labels.input_feature, labels.kernel_input_feature)])
    spatial = [d for d in labels.input_spatial if d in image.sizes]
    x = pad.masked(Bounded(x, image.sizes), spatial, pad.constant(0, x.shape.dtype))
    sizes: Sizes = {}
    for k, d in enumerate(labels.input_spatial):
        if d in image.sizes:
            sizes[labels.output_spatial[k]] = pad.window_count(image.sizes[d], window[k])
    if labels.input_batch in image.sizes:
        sizes[labels.output_batch] = image.sizes[labels.input_batch]
    if labels.kernel_output_feature in kernel.sizes:
        sizes[labels.output_feature] = kernel.sizes[labels.kernel_output_feature]
    if ins.opcode == "convolution":
        return Bounded(pad.copy(ins, [x, y]), sizes)
    attrs = {name: ins.attrs[name] for name in ("dim_labels", "feature_group_count", "batch_group_count")}
    return Bounded(pad.op("convolution", x, y, shape=ins.shape.static, window=window, **attrs), sizes)


def dynamic_convolution_forward(pad: Padder, ins: Instruction, lhs: Value, rhs: Value) -> Value:
    """Convolve; with PADDING_SAME, dynamic dimensions are padded for their present sizes."""
    image, kernel = pad.array(lhs), pad.array(rhs)
    labels, padding = ins.attrs["dim_labels"], ins.attrs["padding_type"]
    window = list(ins.attrs["window"] or ())
    if padding not in ("PADDING_VALID", "PADDING_SAME") or any(w.base_dilation > 1 for w in window):
        refuse(ins, "its padding_type is neither PADDING_VALID nor PADDING_SAME, or its input is dilated")
    _check_convolution(ins, labels, image, kernel)
    counts: Sizes = {}
    for k, d in enumerate(labels.input_spatial if padding == "PADDING_SAME" else ()):
        if d not in image.sizes:
            window[k] = same_padding(window[k], image.padded.shape.dims[d])
        else:
            out = labels.output_spatial[k]
            image, counts[out] = _same_padded(pad, image, d, window[k], ins.shape.dims[out])
            window[k] = window[k]._replace(padding_low=0, padding_high=0)
    result = _convolved(pad, ins, image, kernel, tuple(window))
    return Bounded(result.padded, {**result.sizes, **counts})


def _same_padded(pad: Padder, x: Bounded, d: int, window: WindowDim, bound: int) -> tuple[Bounded, Instruction]:
    """Pad a dimension for one position of a window per stride; return the number of positions, too.

    The padding before the elements depends on their number: more is added, and the surplus is sliced off.
    """
    size, dims = x.sizes[d], x.padded.shape.dims
    zero = pad.constant(0, x.padded.shape.dtype)
    reach = (window.size - 1) * window.window_dilation + 1
    count = pad.integer("divide", pad.integer("add", size, window.stride - 1), window.stride)
    needed = pad.integer("add", pad.integer("multiply", pad.integer("subtract", count, 1), window.stride), reach)
    total = pad.integer("maximum", pad.integer("subtract", needed, size), 0)
    most, length = reach // 2, (bound - 1) * window.stride + reach
    room = tuple(PaddingDim(most, max(length - n, 0)) if k == d else PaddingDim(0, 0) for k, n in enumerate(dims))
    wide = x.padded.shape.with_dims([n + p.low + p.high for n, p in zip(dims, room, strict=True)])
    padded = pad.op("pad", pad.masked(x, [d], zero), zero, shape=wide, padding=room)
    starts = [pad.number(0)] * len(dims)
    starts[d] = pad.integer("subtract", pad.number(most), pad.integer("divide", total, 2))
    cut = x.padded.shape.with_dims([length if k == d else n for k, n in enumerate(dims)])
    part = pad.op("dynamic-slice", padded, *starts, shape=cut, dynamic_slice_sizes=cut.dims)
    return Bounded(part, {k: n for k, n in x.sizes.items() if k != d}), count


def _check_convolution(ins: Instruction, labels: ConvDims, image: Bounded, kernel: Bounded) -> None:
    if any(d in kernel.sizes for d in labels.kernel_spatial):
        refuse(ins, "the window has a dynamic size")
    by_feature, by_batch = ins.attrs["feature_group_count"] > 1, ins.attrs["batch_group_count"] > 1
    divided = (by_feature and (labels.input_feature in image.sizes or labels.kernel_input_feature in kernel.sizes)) or (
        by_batch and labels.input_batch in image.sizes
    )
    if divided or ((by_feature or by_batch) and labels.kernel_output_feature in kernel.sizes):
        refuse(ins, "dimensions that are split into groups have dynamic sizes")
