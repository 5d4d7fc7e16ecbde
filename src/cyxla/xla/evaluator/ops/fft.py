"""Fourier transforms over the trailing dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.xla.evaluator.evaluation import Evaluation
from cyxla.xla.evaluator.registry import evaluates
from cyxla.xla.evaluator.values import Array, Value, array_of, numpy_dtype
from cyxla.xla.hlo.instruction import Instruction

_FUNCTIONS = {"FFT": "fftn", "IFFT": "ifftn", "RFFT": "rfftn", "IRFFT": "irfftn"}


@evaluates("fft")
def fft(ev: Evaluation, ins: Instruction, operand: Value) -> Value:
    """Transform in double precision, and round once; inverse transforms scale by 1/n."""
    from scipy import fft as scipy_fft

    x, dtype = array_of(operand), numpy_dtype(ins.shape)
    lengths, kind = tuple(ins.attrs["fft_length"]), ins.attrs["fft_type"]
    if not lengths:
        return x.astype(dtype)
    if 0 in (*ins.shape.dims, *x.shape):
        return np.zeros((*x.shape[: x.ndim - len(lengths)], *ins.shape.dims[x.ndim - len(lengths) :]), dtype)
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    transform: Callable[..., Any] = getattr(scipy_fft, _FUNCTIONS[kind])
    axes = tuple(range(x.ndim - len(lengths), x.ndim))
    return _round(transform(wide, s=lengths, axes=axes), dtype)


def _round(x: Any, dtype: np.dtype[Any]) -> Array:
    return np.asarray(x).astype(dtype)
