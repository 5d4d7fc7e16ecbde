"""Sliding windows: reduce-window and select-and-scatter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from cyxla.records import dataclass
from cyxla.types import ElementType, from_numpy
from cyxla.xla.evaluator.evaluation import Evaluation
from cyxla.xla.evaluator.numerics.apply_elementwise import apply_named
from cyxla.xla.evaluator.numerics.combiners import combine_at, combining_opcode
from cyxla.xla.evaluator.numerics.conversion import convert_array
from cyxla.xla.evaluator.numerics.window_views import dilated, is_unpadded, pad_window, patches, window_count
from cyxla.xla.evaluator.registry import evaluates
from cyxla.xla.evaluator.values import Array, Value, array_of, is_narrow_float
from cyxla.xla.hlo.attributes import Window, WindowDim
from cyxla.xla.hlo.computation import Computation
from cyxla.xla.hlo.instruction import Instruction

# Windows of more elements than this may be reduced by doubling: log2(n) steps instead of n.
DOUBLING_FROM = 16


def window_indices(window: Window) -> Iterator[tuple[int, ...]]:
    """Yield the indices in a window in row-major order; a reversed dimension runs backwards."""
    for at in np.ndindex(*(w.size for w in window)):
        yield tuple(w.size - 1 - i if w.window_reversal else i for i, w in zip(at, window, strict=True))


@dataclass(frozen=True)
class Sliding:
    """Arrays of one shape under a sliding window.

    Attributes
    ----------
    views : list of array
        Views ``[positions.., window..]`` of each array.
    inside : array or None
        Mask of elements in the views that are not padding or holes; None if all are.
    positions : tuple of int
        Number of window positions in each dimension.
    """

    views: list[Array]
    inside: Array | None
    window: Window
    positions: tuple[int, ...]

    @staticmethod
    def over(arrays: Sequence[Array], window: Window) -> Sliding:
        """Slide a window over arrays."""
        shape = arrays[0].shape
        positions = tuple(window_count(n, w) for n, w in zip(shape, window, strict=True))
        views = [patches(pad_window(a, window, 0), window, positions) for a in arrays]
        inside = (
            None
            if is_unpadded(window)
            else patches(pad_window(np.ones(shape, np.bool_), window, False), window, positions)
        )
        return Sliding(views, inside, window, positions)

    def steps(self) -> Iterator[tuple[list[Array], Array | None]]:
        """Yield, for each index in the window, the elements at all positions, and a mask of those inside."""
        for at in window_indices(self.window):
            index: Any = (..., *at)
            yield [v[index] for v in self.views], None if self.inside is None else self.inside[index]


@evaluates("reduce-window")
def reduce_window(ev: Evaluation, ins: Instruction, *operands: Value) -> Value:
    """Combine each window's elements with the initial value, in row-major order, without padding and holes."""
    number = len(operands) // 2
    arrays, inits = [array_of(o) for o in operands[:number]], [array_of(o) for o in operands[number:]]
    window: Window = ins.attrs["window"] or tuple(WindowDim(1) for _ in arrays[0].shape)
    body = ins.called[0]
    name = combining_opcode(ev, body) if number == 1 else None
    if name in _ASSOCIATIVE and _use_doubling(name, arrays[0], inits[0], window):
        return _by_doubling(name, arrays[0], inits[0], window)
    results = _reduce(ev, body, Sliding.over(arrays, window), inits)
    return tuple(results) if ins.shape.is_tuple else results[0]


def _reduce(ev: Evaluation, body: Computation, sliding: Sliding, inits: list[Array]) -> list[Array]:
    totals = [np.full(sliding.positions, i, i.dtype) for i in inits]
    if totals[0].size == 0:
        return totals
    for elements, real in sliding.steps():
        folded = ev.apply_elementwise(body, [*totals, *elements])
        totals = folded if real is None else [np.where(real, f, t) for f, t in zip(folded, totals, strict=True)]
    return totals


_ROUNDED = ("add", "multiply")
_ASSOCIATIVE = frozenset({*_ROUNDED, "maximum", "minimum", "and", "or", "xor"})


def _use_doubling(name: str, x: Array, init: Array, window: Window) -> bool:
    """Return True if a reduction is by doubling: a long one, or sums of narrow floats, which are rounded once."""
    if is_narrow_float(from_numpy(x.dtype)) and name in _ROUNDED:
        return True
    return prod(w.size for w in window) > DOUBLING_FROM and _is_identity(name, init)


def _is_identity(name: str, init: Array) -> bool:
    """Return True if the initial value is the identity, so that it may be combined any number of times."""
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
    work = pad_window(convert_array(x, wide), window, fill)
    for d, w in enumerate(window):
        work = _double_along(name, np.moveaxis(work, d, 0), w, wide)
        work = np.moveaxis(work, 0, d)
    return convert_array(apply_named(name, wide, work, convert_array(init, wide)), dtype)


def _minus_zeros(sizes: tuple[int, ...], dtype: Any) -> Array:
    """Return negative zeros, the identity of addition even for -0."""
    return np.asarray(-np.zeros(sizes, dtype))


def _double_along(name: str, x: Array, w: WindowDim, dtype: ElementType) -> Array:
    positions = (x.shape[0] - dilated(w.size, w.window_dilation)) // w.stride + 1
    if positions <= 0:
        return x[:0]
    total: Array | None = None
    num_covered, width, remaining = 0, 1, w.size
    while remaining:
        if remaining & 1:
            start = num_covered * w.window_dilation
            part = x[start : start + (positions - 1) * w.stride + 1 : w.stride]
            total = part if total is None else apply_named(name, dtype, total, part)
            num_covered += width
        remaining >>= 1
        if remaining:
            distance = width * w.window_dilation
            x = apply_named(name, dtype, x[:-distance], x[distance:])
            width *= 2
    return x[:0] if total is None else total


@evaluates("select-and-scatter")
def select_and_scatter(ev: Evaluation, ins: Instruction, operand: Value, source: Value, init: Value) -> Value:
    """Select one element of each window, and scatter the window's source value to its index."""
    select, scatter = ins.called
    x, updates, start = array_of(operand), array_of(source), array_of(init)
    window: Window = ins.attrs["window"] or tuple(WindowDim(1) for _ in x.shape)
    index = np.arange(x.size, dtype=np.int64).reshape(x.shape)
    best, positions, has_choice = _choose(ev, select, Sliding.over([x, index], window))
    del best
    flat = np.full(x.size, start, x.dtype)
    common = tuple(slice(min(n)) for n in zip(positions.shape, updates.shape, strict=True))
    positions, has_choice, updates = positions[common], has_choice[common], updates[common]
    is_chosen = has_choice.ravel()
    return combine_at(ev, scatter, [flat], positions.ravel()[is_chosen], [updates.ravel()[is_chosen]])[0].reshape(
        x.shape
    )


def _choose(ev: Evaluation, select: Computation, sliding: Sliding) -> tuple[Array, Array, Array]:
    """Return the selected element of each window, its index, and a mask of windows with any element inside.

    `select` returns True if the current element is kept.
    """
    best, positions = (np.zeros(sliding.positions, v.dtype) for v in sliding.views)
    has_choice = np.zeros(sliding.positions, np.bool_)
    if has_choice.size == 0:
        return best, positions, has_choice
    for (candidate, index), real in sliding.steps():
        keeps_best = ev.apply_elementwise(select, [best, candidate])[0] & has_choice
        if real is not None:
            keeps_best = keeps_best | ~real
        best, positions = np.where(keeps_best, best, candidate), np.where(keeps_best, positions, index)
        has_choice = np.ones_like(has_choice) if real is None else has_choice | real
    return best, positions, has_choice
