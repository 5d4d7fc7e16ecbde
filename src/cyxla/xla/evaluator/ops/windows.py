"""Sliding windows: reduce-window and select-and-scatter, and the views of an array that they and convolution share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from cyxla.errors import UnimplementedError
from cyxla.types import ElementType, from_numpy
from cyxla.xla.evaluator.evaluation import Evaluation
from cyxla.xla.evaluator.ops.convert import convert_array
from cyxla.xla.evaluator.ops.elementwise import apply_named
from cyxla.xla.evaluator.ops.functional import folding
from cyxla.xla.evaluator.ops.gather_scatter import combine_at
from cyxla.xla.evaluator.registry import evaluates
from cyxla.xla.evaluator.values import Array, Value, array_of, is_narrow_float
from cyxla.xla.hlo.attributes import Window, WindowDim
from cyxla.xla.hlo.computation import Computation
from cyxla.xla.hlo.instruction import Instruction
from cyxla.xla.hlo.limits import MAX_RANK

# Windows of more elements than this may be reduced by doubling: log2(n) steps in place of n.
DOUBLING_FROM = 16


def dilated(size: int, dilation: int) -> int:
    """Extent of `size` elements that stand `dilation` apart."""
    return (size - 1) * dilation + 1 if size > 0 else 0


def count(size: int, w: WindowDim) -> int:
    """Count the places of a window over a dimension of `size` elements."""
    room = dilated(size, w.base_dilation) + w.padding_low + w.padding_high - dilated(w.size, w.window_dilation)
    return max(room // w.stride + 1, 0) if room >= 0 else 0


def spread(x: Array, window: Window, fill: Any) -> Array:
    """Lay out an array as the window sees it: base dilation and padding filled, negative padding cut away."""
    sizes, source, target = [], [], []
    for n, w in zip(x.shape, window, strict=True):
        low, step = w.padding_low, w.base_dilation
        size = max(dilated(n, step) + low + w.padding_high, 0)
        first = max(-(low // step), 0) if low < 0 else 0  # the first element that is not cut away: i * step + low >= 0
        last = min(n, max((size - 1 - low) // step + 1, first)) if size else first
        sizes.append(size)
        source.append(slice(first, last))
        start = first * step + low
        target.append(slice(start, start + dilated(last - first, step), step) if last > first else slice(0, 0))
    out = np.full(sizes, fill, x.dtype)
    out[tuple(target)] = x[tuple(source)]
    return out


def is_plain(window: Window) -> bool:
    """Whether `spread` would change nothing."""
    return all(w.base_dilation == 1 and w.padding_low == 0 and w.padding_high == 0 for w in window)


def patches(x: Array, window: Window, places: Sequence[int]) -> Array:
    """View an array that `spread` laid out as ``[places.., window..]``."""
    strides = [s * w.stride for s, w in zip(x.strides, window, strict=True)]
    inner = [s * w.window_dilation for s, w in zip(x.strides, window, strict=True)]
    shape = (*places, *(w.size for w in window))
    if len(shape) > MAX_RANK:
        raise UnimplementedError(f"windows over {x.ndim} dimensions", hint=f"{MAX_RANK // 2} is the limit")
    if 0 in shape:
        return np.empty(shape, x.dtype)
    bits = x.view(np.uint8) if x.dtype.itemsize == 1 else x  # NumPy would look for 8-bit floats of its own
    return np.lib.stride_tricks.as_strided(bits, shape, (*strides, *inner), writeable=False).view(x.dtype)


def positions(window: Window) -> Iterator[tuple[int, ...]]:
    """Coordinates inside a window in row-major order; a reversed dimension runs backwards."""
    for at in np.ndindex(*(w.size for w in window)):
        yield tuple(w.size - 1 - i if w.window_reversal else i for i, w in zip(at, window, strict=True))


@dataclass(frozen=True)
class Sliding:
    """Arrays of one shape under a window, element by element of the window.

    Attributes
    ----------
    views : list of array
        ``[places.., window..]`` for each array.
    inside : array or None
        Where the views show elements, not padding or holes; None where they always do.
    places : tuple of int
        Number of places of the window in each dimension.
    """

    views: list[Array]
    inside: Array | None
    window: Window
    places: tuple[int, ...]

    @staticmethod
    def over(arrays: Sequence[Array], window: Window) -> Sliding:
        """Slide a window over arrays."""
        shape = arrays[0].shape
        places = tuple(count(n, w) for n, w in zip(shape, window, strict=True))
        views = [patches(spread(a, window, 0), window, places) for a in arrays]
        inside = None if is_plain(window) else patches(spread(np.ones(shape, np.bool_), window, False), window, places)
        return Sliding(views, inside, window, places)

    def steps(self) -> Iterator[tuple[list[Array], Array | None]]:
        """For each position in the window: the elements at all places, and which of them are real."""
        for at in positions(self.window):
            here: Any = (..., *at)
            yield [v[here] for v in self.views], None if self.inside is None else self.inside[here]


@evaluates("reduce-window")
def reduce_window(ev: Evaluation, ins: Instruction, *operands: Value) -> Value:
    """Fold each window's elements into the initial value, in row-major order; padding and holes take no part."""
    number = len(operands) // 2
    arrays, inits = [array_of(o) for o in operands[:number]], [array_of(o) for o in operands[number:]]
    window: Window = ins.attrs["window"] or tuple(WindowDim(1) for _ in arrays[0].shape)
    body = ins.called[0]
    name = folding(ev, body) if number == 1 else None
    if name in _ASSOCIATIVE and _doubles(name, arrays[0], inits[0], window):
        return _by_doubling(name, arrays[0], inits[0], window)
    results = _fold(ev, body, Sliding.over(arrays, window), inits)
    return tuple(results) if ins.shape.is_tuple else results[0]


def _fold(ev: Evaluation, body: Computation, sliding: Sliding, inits: list[Array]) -> list[Array]:
    totals = [np.full(sliding.places, i, i.dtype) for i in inits]
    if totals[0].size == 0:
        return totals
    for elements, real in sliding.steps():
        folded = ev.apply_elementwise(body, [*totals, *elements])
        totals = folded if real is None else [np.where(real, f, t) for f, t in zip(folded, totals, strict=True)]
    return totals


_ROUNDED = ("add", "multiply")
_ASSOCIATIVE = frozenset({*_ROUNDED, "maximum", "minimum", "and", "or", "xor"})


def _doubles(name: str, x: Array, init: Array, window: Window) -> bool:
    """Whether a reduction runs by doubling: a long one, and sums of narrow floats, which are rounded once."""
    if is_narrow_float(from_numpy(x.dtype)) and name in _ROUNDED:
        return True
    return prod(w.size for w in window) > DOUBLING_FROM and _is_unit(name, init)


def _is_unit(name: str, init: Array) -> bool:
    """Whether the initial value leaves every element as it is, so that it may be folded in any number of times."""
    dtype, value = from_numpy(init.dtype), init[()]
    if name in ("add", "or", "xor"):
        return bool(value == 0)
    if name == "multiply" or (dtype is ElementType.PRED and name == "and"):
        return bool(value == 1)
    if name == "and":
        return int(value) == (-1 if dtype.is_signed else 2**dtype.bits - 1)
    return not dtype.is_complex and bool(value == _extreme(dtype, highest=name == "minimum"))


def _extreme(dtype: ElementType, *, highest: bool) -> Any:
    if dtype is ElementType.PRED:
        return highest
    if dtype.is_float:
        return np.inf if highest else -np.inf
    top = 2 ** (dtype.bits - dtype.is_signed) - 1
    return top if highest else (-top - 1 if dtype.is_signed else 0)


def _by_doubling(name: str, x: Array, init: Array, window: Window) -> Array:
    """Reduce one dimension after the other; in each, windows of 2n are made of two windows of n."""
    dtype = from_numpy(x.dtype)
    wide, fill = dtype, init
    if name in _ROUNDED and (dtype.is_float or dtype.is_complex):
        wide = ElementType.F64 if dtype.is_float else ElementType.C128
        fill = (np.ones if name == "multiply" else _minus_zeros)((), wide.numpy_dtype)
    work = spread(convert_array(x, wide), window, fill)
    for d, w in enumerate(window):
        work = _along(name, np.moveaxis(work, d, 0), w, wide)
        work = np.moveaxis(work, 0, d)
    return convert_array(apply_named(name, wide, work, convert_array(init, wide)), dtype)


def _minus_zeros(sizes: tuple[int, ...], dtype: Any) -> Array:
    """Make what added to anything, -0 too, changes nothing."""
    return np.asarray(-np.zeros(sizes, dtype))


def _along(name: str, x: Array, w: WindowDim, dtype: ElementType) -> Array:
    places = (x.shape[0] - dilated(w.size, w.window_dilation)) // w.stride + 1
    if places <= 0:
        return x[:0]
    total: Array | None = None
    covered, width, left = 0, 1, w.size
    while left:
        if left & 1:
            start = covered * w.window_dilation
            part = x[start : start + (places - 1) * w.stride + 1 : w.stride]
            total = part if total is None else apply_named(name, dtype, total, part)
            covered += width
        left >>= 1
        if left:
            reach = width * w.window_dilation
            x = apply_named(name, dtype, x[:-reach], x[reach:])
            width *= 2
    return x[:0] if total is None else total


@evaluates("select-and-scatter")
def select_and_scatter(ev: Evaluation, ins: Instruction, operand: Value, source: Value, init: Value) -> Value:
    """Pick one element of each window, then scatter the window's source value to where it came from."""
    select, scatter = ins.called
    x, updates, start = array_of(operand), array_of(source), array_of(init)
    window: Window = ins.attrs["window"] or tuple(WindowDim(1) for _ in x.shape)
    place = np.arange(x.size, dtype=np.int64).reshape(x.shape)
    chosen, where, found = _choose(ev, select, Sliding.over([x, place], window))
    del chosen
    flat = np.full(x.size, start, x.dtype)
    keep = found.ravel()
    return combine_at(ev, scatter, [flat], where.ravel()[keep], [updates.ravel()[keep]])[0].reshape(x.shape)


def _choose(ev: Evaluation, select: Computation, sliding: Sliding) -> tuple[Array, Array, Array]:
    """Choose an element of each window: (it, its place, if there is one). `select` says if the current one stays."""
    best, where = (np.zeros(sliding.places, v.dtype) for v in sliding.views)
    found = np.zeros(sliding.places, np.bool_)
    if found.size == 0:
        return best, where, found
    for (candidate, place), real in sliding.steps():
        keep = ev.apply_elementwise(select, [best, candidate])[0] & found
        if real is not None:
            keep = keep | ~real
        best, where = np.where(keep, best, candidate), np.where(keep, where, place)
        found = np.ones_like(found) if real is None else found | real
    return best, where, found
