"""Programs of one opcode, and the comparison of results between platforms."""

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from cyxla.types import ElementType, Shape
from cyxla.xla.hlo import HloModule, infer_shape


def single(
    opcode: str, operands: Sequence[Shape], attrs: Mapping[str, Any] | None = None, result: Shape | None = None
) -> HloModule:
    """Return a module whose root applies an opcode to its parameters."""
    module = HloModule(opcode)
    module.entry = entry = module.new_computation("main")
    params = [entry.add("parameter", attrs={"parameter_number": k}, shape=s) for k, s in enumerate(operands)]
    shape = infer_shape(opcode, params, attrs or {}, declared=result)
    entry.root = entry.add(opcode, params, attrs, shape=shape)
    return module


def epsilon(dtype: ElementType) -> float:
    """Return the distance from 1 to the next number of a type."""
    return float(ml_dtypes.finfo(dtype.real_part.numpy_dtype).eps)


def smallest_normal(dtype: ElementType) -> float:
    return float(ml_dtypes.finfo(dtype.real_part.numpy_dtype).tiny)


def assert_same(got: np.ndarray, want: np.ndarray, dtype: ElementType, ulp: float, floor: float = 0.0) -> None:
    """Check equality within `ulp` of each element, or of `floor` times the largest; all NaNs count as equal."""
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    if not (dtype.is_float or dtype.is_complex):
        np.testing.assert_array_equal(got, want)
        return
    wide = np.complex128 if dtype.is_complex else np.float64
    with np.errstate(all="ignore"):
        g, w = got.astype(wide), want.astype(wide)
        for a, b in ((g.real, w.real), (g.imag, w.imag)):
            special = ~(np.isfinite(a) & np.isfinite(b))
            np.testing.assert_array_equal(a[special], b[special])
        finite = np.isfinite(g) & np.isfinite(w)
        size = np.abs(w[finite])
        scale = np.maximum(np.maximum(size, floor * size.max(initial=0.0)), smallest_normal(dtype))
        error = np.where((g == w)[finite], 0.0, np.abs(g - w)[finite] / scale / epsilon(dtype))
    worst = float(error.max(initial=0.0))
    if worst > ulp:
        k = np.argmax(error)
        at = np.argwhere(finite)[k]
        raise AssertionError(f"{worst:.3g} ulp at {at}: {g[finite][k]!r}, want {w[finite][k]!r}")
