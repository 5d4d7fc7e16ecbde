"""Recorded results of XLA, and the comparison with them.

`data/xla_cases.zip` holds small programs as HLO text and as HloModuleProto, with inputs and the results that XLA's CPU
backend gave for them (jaxlib 0.10.2), and programs for the reader: well-formed, malformed, and ill-typed. `index.json`
in it says how far results may be off.
"""

from __future__ import annotations

import io
import json
import zipfile
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
import numpy.typing as npt

from cyxla.types import element_type
from cyxla.xla.service import Executable

Case: TypeAlias = dict[str, Any]

ARCHIVE = Path(__file__).parent / "data" / "xla_cases.zip"


@cache
def _archive() -> zipfile.ZipFile:
    return zipfile.ZipFile(ARCHIVE)


def read(name: str) -> bytes:
    """Return the content of a file of the archive."""
    return _archive().read(name)


@cache
def index() -> list[Case]:
    """Return the descriptions of the programs."""
    cases: list[Case] = json.loads(read("index.json"))
    return cases


@cache
def grammar() -> dict[str, list[Case]]:
    """Return programs for the reader by kind: ``"valid"``, ``"malformed"``, ``"semantic"`` (ill-typed)."""
    kinds: dict[str, list[Case]] = json.loads(read("grammar.json"))
    return kinds


def check(case: Case, executable: Executable) -> None:
    """Run a program, and compare its results with those of XLA."""
    args, expected = arrays(case)
    results = flatten(executable(*args))
    assert len(results) == len(expected), f"{len(results)} results, XLA gave {len(expected)}"
    for got, want, tolerance in zip(results, expected, case["tol"], strict=True):
        assert_close(got, want, tolerance["rtol"], tolerance["floor"], case.get("zero_sign", False))


def arrays(case: Case) -> tuple[list[Any], list[Any]]:
    """Return the arguments (nested like the parameters) and the expected results of a case."""
    with np.load(io.BytesIO(read(case["id"] + "/data.npz"))) as data:
        ins = [_typed(data[f"in{k}"], spec) for k, spec in enumerate(case["inputs"])]
        outs = [_typed(data[f"out{k}"], spec) for k, spec in enumerate(case["outputs"])]

    def nest(spec: Any) -> Any:
        return tuple(nest(s) for s in spec) if isinstance(spec, list) else ins[spec]

    return [nest(s) for s in case["args"]] if case.get("args") else ins, outs


def _typed(array: npt.NDArray[Any], spec: Case) -> npt.NDArray[Any]:
    dtype: Any = element_type(spec["dtype"]).numpy_dtype
    return array if array.dtype == dtype else array.view(dtype)


def flatten(value: Any) -> list[Any]:
    """Return the arrays of a nested tuple."""
    return [leaf for part in value for leaf in flatten(part)] if isinstance(value, (tuple, list)) else [value]


def finfo(dtype: Any) -> Any:
    """Return the limits of a floating-point type, also of those of ml_dtypes."""
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


@np.errstate(all="ignore")  # conversions of NaN
def assert_close(got: Any, want: npt.NDArray[Any], rtol: float, floor: float, zero_sign: bool = False) -> None:
    """Compare integers, NaN and infinities exactly, finite x within rtol * max(|want|, floor * max|want|, tiny)."""
    assert isinstance(got, np.ndarray), f"a result is a {type(got).__name__}, no array"
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    if want.dtype.kind in "biu" or "int" in want.dtype.name:
        np.testing.assert_array_equal(got, want)
        return
    real = np.dtype(f"f{want.dtype.itemsize // 2}") if want.dtype.kind == "c" else want.dtype
    wide: Any = np.complex128 if want.dtype.kind == "c" else np.float64
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
    tiny = float(finfo(real).tiny)
    scale = np.maximum(np.maximum(size, floor * size.max()), tiny)
    denormal = (np.abs(g[finite]) < tiny) & (size < tiny)  # XLA's CPU flushes these to zero, cyxla keeps them
    worst = float(np.where(denormal, 0.0, np.abs(g - w)[finite] / scale).max())
    assert worst <= rtol, f"off by {worst:.3g} of the scale, {rtol:.3g} is allowed"
