"""Compiled Fourier transforms against the eager ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.graphs.compiled import PLATFORMS, check, drawn, run

from cyxla.errors import InvalidArgumentError

SUFFIXES = [(1, ""), (2, "2D"), (3, "3D")]


@pytest.mark.parametrize("rank, suffix", SUFFIXES)
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", ["FFT", "IFFT"])
def test_complex_transforms(name: str, dtype: Any, rank: int, suffix: str) -> None:
    for shape in [(3, 4, 5), (2, 1, 6, 7), (0, 2, 3), (1, 1, 1)]:
        check(name + suffix, drawn(shape, dtype), scale=4, platforms=PLATFORMS if shape[0] == 3 else PLATFORMS[:1])


@pytest.mark.parametrize("rank, suffix", SUFFIXES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_real_transforms(dtype: Any, rank: int, suffix: str) -> None:
    """Of even and odd lengths, cut where the input is longer."""
    wide = {np.float32: np.complex64, np.float64: np.complex128}[dtype]
    for k, lengths in enumerate([(4, 5, 6), (2, 3, 5), (1, 1, 1), (3, 4, 0)]):
        n = np.array(lengths[-rank:], np.int32)
        platforms = PLATFORMS if not k else PLATFORMS[:1]
        check("RFFT" + suffix, drawn((2, 4, 6, 7), dtype), n, Tcomplex=_type(wide), scale=4, platforms=platforms)
        check("IRFFT" + suffix, drawn((2, 4, 6, 5), wide), n, Treal=_type(dtype), scale=4, platforms=platforms)


def _type(dtype: Any) -> Any:
    from cyxla.core.framework.types import as_data_type

    return as_data_type(dtype)


WRONG: list[tuple[str, tuple[int, ...], list[int] | None]] = [
    ("FFT2D", (3,), None),
    ("RFFT", (4,), [5]),
    ("RFFT", (4,), [2, 2]),
    ("RFFT2D", (4,), [2, 2]),
    ("RFFT", (4,), [-1]),
    ("IRFFT", (4,), [9]),
]


@pytest.mark.parametrize("name, shape, lengths", WRONG)
def test_wrong_shapes_and_lengths(name: str, shape: tuple[int, ...], lengths: list[int] | None) -> None:
    """Nothing is padded."""
    x = drawn(shape, np.float32 if name.startswith("R") else np.complex64)
    with pytest.raises(InvalidArgumentError):
        run(name, x, *([] if lengths is None else [np.array(lengths, np.int32)]), known=False)
