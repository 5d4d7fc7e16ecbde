"""Recorded results of XLA in tests/data/xla_cases.zip, and the comparison with them."""

import io
import json
import zipfile
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np

from cyxla.types import element_type

ARCHIVE = Path(__file__).parents[1] / "data" / "xla_cases.zip"


@cache
def _archive():
    return zipfile.ZipFile(ARCHIVE)


def read(name: str) -> bytes:
    return _archive().read(name)


@cache
def index() -> list[dict]:
    return json.loads(read("index.json"))


@cache
def grammar() -> dict[str, list[dict]]:
    return json.loads(read("grammar.json"))


def arrays(case: dict) -> tuple[list, list]:
    """Return the arguments (nested like the parameters) and the expected results of a case."""
    with np.load(io.BytesIO(read(case["id"] + "/data.npz"))) as data:
        ins = [_typed(data[f"in{k}"], spec) for k, spec in enumerate(case["inputs"])]
        outs = [_typed(data[f"out{k}"], spec) for k, spec in enumerate(case["outputs"])]

    def nest(spec):
        return tuple(nest(s) for s in spec) if isinstance(spec, list) else ins[spec]

    return [nest(s) for s in case["args"]] if case.get("args") else ins, outs


def _typed(array, spec):
    dtype = element_type(spec["dtype"]).numpy_dtype
    return array if array.dtype == dtype else array.view(dtype)


def flatten(value) -> list:
    return [leaf for part in value for leaf in flatten(part)] if isinstance(value, (tuple, list)) else [value]


@np.errstate(all="ignore")  # conversions of NaN
def assert_close(got, want, rtol: float, floor: float, zero_sign: bool = False) -> None:
    """Compare integers, NaN and infinities exactly, finite x within rtol * max(|want|, floor * max|want|, tiny)."""
    assert isinstance(got, np.ndarray)
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    if want.dtype.kind in "biu" or "int" in want.dtype.name:
        np.testing.assert_array_equal(got, want)
        return
    real = np.dtype(f"f{want.dtype.itemsize // 2}") if want.dtype.kind == "c" else want.dtype
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    g, w = got.astype(wide), want.astype(wide)
    for a, b in ((g.real, w.real), (g.imag, w.imag)):
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
        infinite = np.isinf(a) | np.isinf(b)
        np.testing.assert_array_equal(a[infinite], b[infinite])
        if zero_sign:
            zero = (a == 0) & (b == 0)
            np.testing.assert_array_equal(np.signbit(a[zero]), np.signbit(b[zero]))
    finite = np.isfinite(g) & np.isfinite(w)
    if not finite.any():
        return
    size = np.abs(w[finite])
    scale = np.maximum(np.maximum(size, floor * size.max()), float(ml_dtypes.finfo(real).tiny))
    tiny = float(ml_dtypes.finfo(real).tiny)
    denormal = (np.abs(g[finite]) < tiny) & (size < tiny)  # XLA's CPU flushes these to zero, cyxla keeps them
    worst = float(np.where(denormal, 0.0, np.abs(g - w)[finite] / scale).max())
    assert worst <= rtol, f"off by {worst:.3g} of the scale, {rtol:.3g} is allowed"
