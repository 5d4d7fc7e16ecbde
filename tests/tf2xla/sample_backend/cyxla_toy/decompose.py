"""Opcodes in terms of others: windows become slices, a convolution becomes products of matrices."""

from collections.abc import Iterator, Sequence
from itertools import product

from cyxla.types import Shape
from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.hlo.attributes import PaddingDim, SliceDim, WindowDim
from cyxla.xla.passes.engine.rewrite_helpers import Writer, rewrite_each


def run(module: HloModule) -> bool:
    """Rewrite every instruction that has a rule."""
    return rewrite_each(module, RULES)


def logistic(ins: Instruction) -> Instruction:
    """1 / (1 + exp(-x))."""
    write, (x,) = Writer(ins.computation), ins.operands
    one = write.full(1, x.shape)
    return write.op("divide", one, write.op("add", one, write.op("exponential", write.op("negate", x))))


def rsqrt(ins: Instruction) -> Instruction:
    """1 / sqrt(x)."""
    write, (x,) = Writer(ins.computation), ins.operands
    return write.op("divide", write.full(1, x.shape), write.op("sqrt", x))


def clamp(ins: Instruction) -> Instruction:
    """min(max(x, low), high)."""
    write, (low, x, high) = Writer(ins.computation), ins.operands
    low, high = (write.broadcast(bound, x.shape.logical) for bound in (low, high))
    return write.op("minimum", write.op("maximum", x, low), high)


def sign(ins: Instruction) -> Instruction:
    """Zeros and NaNs stay; others divided by their size."""
    write, (x,) = Writer(ins.computation), ins.operands
    zero = write.full(0, x.shape)
    return write.select(write.compare("NE", x, zero), write.op("divide", x, write.op("abs", x)), x)


def reduce_window(ins: Instruction) -> Instruction | None:
    """A slice for each place in the window, joined one by one."""
    if len(ins.operands) != 2:
        return None
    write, (x, init) = Writer(ins.computation), ins.operands
    window = ins.attrs["window"]
    padded = _padded(write, x, init, window)
    found = write.broadcast(init, ins.shape.logical)
    for place in product(*(range(d.size) for d in window)):
        part = _slice(write, padded, window, place, ins.shape.dims)
        found = write.op(ins.called[0].root.opcode, found, part)
    return found


def convolution(ins: Instruction) -> Instruction | None:
    """A product of matrices for each place in the window, all added up; NHWC, HWIO, no groups."""
    dims, window = ins.attrs["dim_labels"], ins.attrs["window"]
    spatial = tuple(range(1, 1 + len(window)))
    plain = (dims.input_batch, dims.input_spatial, dims.input_feature) == (0, spatial, len(spatial) + 1)
    plain &= (dims.output_batch, dims.output_spatial) == (0, spatial)
    plain &= dims.kernel_spatial == tuple(range(len(spatial))) and dims.kernel_output_feature == len(spatial) + 1
    reversed_ = any(d.window_reversal for d in window)
    if not plain or reversed_ or ins.attrs["feature_group_count"] * ins.attrs["batch_group_count"] != 1:
        return None
    write, (x, kernel) = Writer(ins.computation), ins.operands
    whole = (WindowDim(1), *window, WindowDim(1))
    padded = _padded(write, x, write.constant(0, x.shape.dtype), whole)
    return _sum(write, _products(write, ins, padded, kernel, whole))


def _products(
    write: Writer, ins: Instruction, x: Instruction, kernel: Instruction, window: Sequence[WindowDim]
) -> Iterator[Instruction]:
    rank = x.shape.rank
    for place in product(*(range(d.size) for d in window[1:-1])):
        part = _slice(write, x, window, (0, *place, 0), (*ins.shape.dims[:-1], x.shape.dims[-1]))
        at = tuple(SliceDim(k, k + 1) for k in place) + tuple(SliceDim(0, n) for n in kernel.shape.dims[-2:])
        sizes = (1,) * len(place) + kernel.shape.dims[-2:]
        matrix = write.op("slice", kernel, shape=kernel.shape.with_dims(sizes), slice=at)
        matrix = write.reshape(matrix, kernel.shape.dims[-2:])
        yield write.op(
            "dot", part, matrix, shape=ins.shape.logical, lhs_contracting_dims=(rank - 1,), rhs_contracting_dims=(0,)
        )


def _sum(write: Writer, parts: Iterator[Instruction]) -> Instruction:
    total = next(parts)
    for part in parts:
        total = write.op("add", total, part)
    return total


def _padded(write: Writer, x: Instruction, value: Instruction, window: Sequence[WindowDim]) -> Instruction:
    padding = tuple(PaddingDim(d.padding_low, d.padding_high, d.base_dilation - 1) for d in window)
    sizes = [
        max(n - 1, 0) * d.base_dilation + min(n, 1) + d.padding_low + d.padding_high
        for n, d in zip(x.shape.dims, window, strict=True)
    ]
    return write.op("pad", x, value, shape=x.shape.with_dims(sizes), padding=padding)


def _slice(
    write: Writer, x: Instruction, window: Sequence[WindowDim], place: Sequence[int], sizes: Sequence[int]
) -> Instruction:
    """Return the elements at one position of the window, for all positions of the window itself."""
    shape: Shape = x.shape.with_dims(sizes)
    dims = []
    for d, k, n in zip(window, place, sizes, strict=True):
        start = k * d.window_dilation
        dims.append(SliceDim(start, start + (n - 1) * d.stride + 1, d.stride))
    return write.op("slice", x, shape=shape, slice=tuple(dims))


RULES = {
    "logistic": logistic,
    "rsqrt": rsqrt,
    "clamp": clamp,
    "sign": sign,
    "reduce-window": reduce_window,
    "convolution": convolution,
}
