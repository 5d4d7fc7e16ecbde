"""Fused recurrent cells; the gates are one product of the concatenated input and state."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from cyxla.core.framework.kernel_decorators import array_kernel
from cyxla.core.framework.types import as_data_type
from cyxla.errors import ShapeError

Array = np.ndarray[Any, Any]

_TYPES = {"T": tuple(map(as_data_type, ("half", "float")))}


def _sigmoid(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-x)))


def _check_shape(name: str, x: Array, *expected: int) -> None:
    if x.shape != expected:
        raise ShapeError(f"{name} must have the shape {list(expected)}; it has {list(x.shape)}")


class _Lstm:
    """Weights of a cell; gates are the input (i), cell (c), forget (f) and output (o) gate."""

    def __init__(
        self, x: Array, h: Array, weights: tuple[Array, ...], order: str, forget: float, clip: float, peephole: bool
    ) -> None:
        w, wci, wcf, wco, b = weights
        if x.ndim < 2 or h.ndim != 2:
            raise ShapeError(f"x {list(x.shape)} and h_prev {list(h.shape)} need a batch and a size each")
        cells = h.shape[1]
        _check_shape("w", w, x.shape[-1] + cells, 4 * cells)
        _check_shape("b", b, 4 * cells)
        _check_shape("h_prev", h, x.shape[-2], cells)
        if peephole:
            for name, vector in (("wci", wci), ("wcf", wcf), ("wco", wco)):
                _check_shape(name, vector, cells)
        self.dtype, self.order, self.forget, self.clip = x.dtype, order, np.float32(forget), clip
        self.w, self.b = w.astype(np.float32), b.astype(np.float32)
        self.peep = [p.astype(np.float32) if peephole else np.float32(0) for p in (wci, wcf, wco)]

    def step(self, x: Array, cs: Array, h: Array) -> list[Array]:
        """Return the op's seven results: i, cs, f, o, ci, co and h."""
        gates = np.concatenate([x, h], axis=1).astype(np.float32) @ self.w + self.b
        parts = dict(zip(self.order, np.split(gates, 4, axis=1), strict=True))
        before = cs.astype(np.float32)
        i = _sigmoid(parts["i"] + before * self.peep[0])
        f = _sigmoid(parts["f"] + self.forget + before * self.peep[1])
        ci = np.tanh(parts["c"])
        new = ci * i + before * f
        new = np.clip(new, -self.clip, self.clip) if self.clip > 0 else new
        o = _sigmoid(parts["o"] + new * self.peep[2])
        co = np.tanh(new)
        return [part.astype(self.dtype, copy=False) for part in (i, new, f, o, ci, co, co * o)]


@array_kernel("LSTMBlockCell", attrs=("forget_bias", "cell_clip", "use_peephole"), types=_TYPES)
def _lstm_cell(
    x: Array, cs: Array, h: Array, *weights: Array, forget_bias: float, cell_clip: float, use_peephole: bool
) -> tuple[Array, ...]:
    cell = _Lstm(x, h, weights, "icfo", forget_bias, cell_clip, use_peephole)
    _check_shape("x", x, h.shape[0], x.shape[-1])
    _check_shape("cs_prev", cs, *h.shape)
    return tuple(cell.step(x, cs, h))


def _run_steps(cell: _Lstm, length: Array, x: Array, cs: Array, h: Array) -> tuple[Array, ...]:
    """Run all steps below `length`; results of later steps are zeros."""
    if length.ndim:
        raise ShapeError(f"seq_len_max must be a scalar; its shape is {list(length.shape)}")
    if x.ndim != 3:
        raise ShapeError(f"x must have rank 3: times, batch, inputs; its shape is {list(x.shape)}")
    _check_shape("cs_prev", cs, *h.shape)
    results = tuple(np.zeros((x.shape[0], *h.shape), x.dtype) for _ in range(7))
    for t in range(min(int(length), x.shape[0])):
        outputs = cell.step(x[t], cs, h)
        for result, part in zip(results, outputs, strict=True):
            result[t] = part
        cs, h = outputs[1], outputs[6]
    return results


@array_kernel("BlockLSTM", attrs=("forget_bias", "cell_clip", "use_peephole"), types=_TYPES)
def _block_lstm(
    length: Array,
    x: Array,
    cs: Array,
    h: Array,
    *weights: Array,
    forget_bias: float,
    cell_clip: float,
    use_peephole: bool,
) -> tuple[Array, ...]:
    return _run_steps(_Lstm(x, h, weights, "icfo", forget_bias, cell_clip, use_peephole), length, x, cs, h)


@array_kernel("BlockLSTMV2", attrs=("cell_clip", "use_peephole"), types=_TYPES)
def _block_lstm_v2(
    length: Array, x: Array, cs: Array, h: Array, *weights: Array, cell_clip: float, use_peephole: bool
) -> tuple[Array, ...]:
    """Run with the gates in another order and without forget bias."""
    return _run_steps(_Lstm(x, h, weights, "ifco", 0.0, cell_clip, use_peephole), length, x, cs, h)


@array_kernel("GRUBlockCell")
def _gru_cell(x: Array, h: Array, w_ru: Array, w_c: Array, b_ru: Array, b_c: Array) -> tuple[Array, ...]:
    """Return r, u, c and h."""
    if x.ndim != 2 or h.ndim != 2:
        raise ShapeError(f"x {list(x.shape)} and h_prev {list(h.shape)} must be matrices")
    inputs, cells = x.shape[1], h.shape[1]
    _check_shape("h_prev", h, x.shape[0], cells)
    _check_shape("w_ru", w_ru, inputs + cells, 2 * cells)
    _check_shape("w_c", w_c, inputs + cells, cells)
    _check_shape("b_ru", b_ru, 2 * cells)
    _check_shape("b_c", b_c, cells)
    r, u = np.split(_sigmoid(np.concatenate([x, h], axis=1) @ w_ru + b_ru), 2, axis=1)
    c = np.tanh(np.concatenate([x, h * r], axis=1) @ w_c + b_c)
    dtype: DTypeLike = x.dtype
    return tuple(part.astype(dtype, copy=False) for part in (r, u, c, (1 - u) * c + u * h))
