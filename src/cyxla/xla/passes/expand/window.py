"""Expand large windows into few steps: one dimension at a time, and by doubling along a dimension.

Before::

    ROOT r = f32[1000] reduce-window(f32[1100] x, -inf), window={size=101}, to_apply=max

After::

    y1 = f32[1099] maximum(x[0:1099], x[1:1100])
    y2 = f32[1097] maximum(y1[0:1097], y1[2:1099])
    ..
    y6 = f32[1037] maximum(y5[0:1037], y5[32:1069])
    ROOT r = f32[1000] maximum(y6[0:1000], y6[37:1037])

A window of w elements takes about log2(w) steps, or twice as many if the combined windows must not overlap, as for
sums. The initial value must be the identity, because it may be combined more than once.
"""

from __future__ import annotations

from math import prod

from cyxla.types import Shape
from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.hlo.attributes import PaddingDim, SliceDim, Window, WindowDim
from cyxla.xla.hlo.combiners import IDEMPOTENT, combiner, starts_from_identity
from cyxla.xla.passes.engine.rewrite_helpers import Writer, rewrite_each

_SMALL = 32  # elements of a window for which there is a kernel


def run(module: HloModule) -> bool:
    """Expand large windows."""
    return rewrite_each(module, {"reduce-window": _window})


def _window(ins: Instruction) -> Instruction | None:
    window: Window = ins.attrs["window"] or ()
    if not ins.shape.is_array or not ins.shape.size or prod(w.size for w in window) <= _SMALL:
        return None
    opcode = combiner(ins.called[0])
    if opcode is None or (opcode in ("add", "multiply") and ins.shape.dtype.bits < 32 and ins.shape.dtype.is_float):
        return None  # sums of narrow numbers are rounded once
    if ins.shape.is_dynamic or not starts_from_identity(opcode, ins.operands[1]):
        return None
    wide = [d for d, w in enumerate(window) if w.size > 1]
    if len(wide) > 1:
        return _separate_dims(ins, window, wide)
    return _by_doubling(ins, wide[0], window[wide[0]], opcode) if _pays(ins, wide[0], window[wide[0]], opcode) else None


def _separate_dims(ins: Instruction, window: Window, wide: list[int]) -> Instruction:
    """Split a window into one for each dimension, in order of increasing size of the results."""
    x, init = ins.operands
    unit = WindowDim(1)
    rest = [d for d, w in enumerate(window) if w != unit]
    order = sorted(rest, key=lambda d: (ins.shape.dims[d] / max(x.shape.dims[d], 1), -d))
    for d in order:
        dims = [ins.shape.dims[k] if k == d else n for k, n in enumerate(x.shape.dims)]
        attrs = {**ins.attrs, "window": tuple(w if k == d else unit for k, w in enumerate(window))}
        x = ins.computation.add(
            "reduce-window", (x, init), attrs, shape=ins.shape.logical.with_dims(dims), called=ins.called
        )
        opcode = combiner(ins.called[0])
        assert opcode is not None
        if d in wide and _pays(x, d, window[d], opcode):
            x = _by_doubling(x, d, window[d], opcode)
    return x


def _pays(ins: Instruction, d: int, w: WindowDim, opcode: str) -> bool:
    """Return True if doubling takes fewer steps than each window has elements; a running total is better still."""
    if w.base_dilation != 1 or _is_prefix(ins, d, w):
        return False
    steps = w.size.bit_length() if opcode in IDEMPOTENT else 2 * w.size.bit_length()
    return w.size > _SMALL // 2 and w.size > 2 * steps * w.stride


def _is_prefix(ins: Instruction, d: int, w: WindowDim) -> bool:
    n = ins.operands[0].shape.dims[d]
    return (
        w.size == n
        and (w.stride, w.window_dilation) == (1, 1)
        and (w.padding_low, w.padding_high) in ((n - 1, 0), (0, n - 1))
    )


def _by_doubling(ins: Instruction, d: int, w: WindowDim, opcode: str) -> Instruction:
    """Compute a window along one dimension from windows of 1, 2, 4 .. elements."""
    write = Writer(ins.computation)
    x, init = ins.operands
    length = x.shape.dims[d] + w.padding_low + w.padding_high
    padded = x
    if w.padding_low or w.padding_high:
        edges = tuple(
            PaddingDim(w.padding_low, w.padding_high, 0) if k == d else PaddingDim(0, 0, 0) for k in range(x.shape.rank)
        )
        padded = write.op("pad", x, init, shape=_with_size(x, d, length), padding=edges)
    powers = [padded]  # powers[k]: windows of 2**k elements
    while 2 << (len(powers) - 1) <= w.size:
        distance = w.window_dilation << (len(powers) - 1)
        last = powers[-1]
        count = last.shape.dims[d] - distance
        powers.append(
            write.op(opcode, _slice_range(write, last, d, 0, count), _slice_range(write, last, d, distance, count))
        )
    count = length - (w.size - 1) * w.window_dilation
    combined = _combine_powers(write, powers, d, w, opcode, count)
    return combined if w.stride == 1 else _slice_range(write, combined, d, 0, count, w.stride)


def _combine_powers(
    write: Writer, powers: list[Instruction], d: int, w: WindowDim, opcode: str, count: int
) -> Instruction:
    """Combine windows of the wanted size: two that overlap, or one for each binary digit."""
    most = len(powers) - 1
    if opcode in IDEMPOTENT:
        result = _slice_range(write, powers[most], d, 0, count)
        shift = (w.size - (1 << most)) * w.window_dilation
        return write.op(opcode, result, _slice_range(write, powers[most], d, shift, count)) if shift else result
    parts, start = [], 0
    for k in range(most, -1, -1):
        if w.size >> k & 1:
            parts.append(_slice_range(write, powers[k], d, start * w.window_dilation, count))
            start += 1 << k
    total = parts[-1]  # smallest first, to round large sums less often
    for part in reversed(parts[:-1]):
        total = write.op(opcode, part, total)
    return total


def _slice_range(write: Writer, x: Instruction, d: int, start: int, count: int, stride: int = 1) -> Instruction:
    """Slice `count` elements along a dimension, or every `stride`-th of them."""
    if not start and count == x.shape.dims[d] and stride == 1:
        return x
    ranges = tuple(
        SliceDim(start, start + count, stride) if k == d else SliceDim(0, n, 1) for k, n in enumerate(x.shape.dims)
    )
    return write.op("slice", x, shape=_with_size(x, d, -(-count // stride)), slice=ranges)


def _with_size(x: Instruction, d: int, size: int) -> Shape:
    return x.shape.logical.with_dims([size if k == d else n for k, n in enumerate(x.shape.dims)])
