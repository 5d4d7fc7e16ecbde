"""Compiled reductions of segments and scatters of sparse values against the eager kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.graphs.compiled import PLATFORMS, check, drawn, run

from cyxla.errors import InvalidArgumentError

NAMES = ["Sum", "Prod", "Max", "Min"]
TYPES = [np.float16, np.float32, np.float64, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", NAMES)
def test_segments(name: str, dtype: Any) -> None:
    """Segments without rows are the initial value of the reduction."""
    data = drawn((6, 2), dtype)
    platforms = PLATFORMS if dtype is np.float32 else PLATFORMS[:1]
    check(f"Segment{name}V2", data, np.array([0, 0, 1, 3, 3, 3]), np.int32(5), platforms=platforms)
    check(f"UnsortedSegment{name}", data, np.array([4, 0, -1, 2, 2, 0]), np.int64(5), platforms=platforms)


@pytest.mark.parametrize("name", ["Sum", "Prod"])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_segments_of_complex_numbers(dtype: Any, name: str) -> None:
    check(f"UnsortedSegment{name}", drawn((4, 3), dtype), np.array([1, 0, 1, 1], np.int32), np.int32(3))


@pytest.mark.parametrize(
    "shape, ids", [((2, 3, 4), (2, 3)), ((3,), (3,)), ((0, 2), (0,)), ((3, 0), (3,)), ((2, 2), (2, 2)), ((2,), ())]
)
@pytest.mark.parametrize("name", NAMES)
def test_shapes(name: str, shape: tuple[int, ...], ids: tuple[int, ...]) -> None:
    numbers = np.abs(drawn(ids, np.int32)).astype(np.int32)
    check(f"UnsortedSegment{name}", drawn(shape), numbers, np.int32(6), platforms=PLATFORMS[:1])
    check(f"UnsortedSegment{name}", drawn(shape), np.minimum(numbers, -1), np.int32(0), platforms=PLATFORMS[:1])


def test_numbers_out_of_range() -> None:
    """Where the eager kernel raises, compiled code leaves the rows out."""
    data, ids = np.ones(3, np.float32), np.array([0, 7, 1], np.int32)
    for op in ("UnsortedSegmentSum", "SegmentSumV2"):
        np.testing.assert_array_equal(run(op, data, ids, np.int32(2))[0], [1, 1])


@pytest.mark.parametrize("op, ids, count", [("UnsortedSegmentSum", (2,), 3), ("SegmentSumV2", (2,), 3)])
def test_wrong_shapes(op: str, ids: tuple[int, ...], count: int) -> None:
    with pytest.raises(InvalidArgumentError):
        run(op, drawn((3, 2)), np.zeros(ids, np.int32), np.int32(count), known=False)
    with pytest.raises(InvalidArgumentError, match="negative"):
        run(op, drawn((3, 2)), np.zeros(3, np.int32), np.int32(-1))


PLACES: list[tuple[Any, list[int], Any]] = [
    ([[0, 1], [2, 0]], [3, 2], [1, 2]),
    ([[0, 1], [2, 0]], [3, 2], 5),
    ([1, 3], [4], [1, 2]),
    (2, [4], 7),
    (np.zeros((0, 2)), [2, 2], []),
]


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_, np.complex64])
@pytest.mark.parametrize("indices, shape, values", PLACES)
def test_sparse_to_dense(indices: Any, shape: list[int], values: Any, dtype: Any) -> None:
    """Indices may be a scalar, a vector or a matrix; one value may stand for all."""
    default = np.array(3).astype(dtype)
    platforms = PLATFORMS if dtype is np.float32 else PLATFORMS[:1]
    places = np.array(indices, np.int64)
    check("SparseToDense", places, np.array(shape), np.array(values).astype(dtype), default, platforms=platforms)


@pytest.mark.parametrize("indices, shape, values", [([[0, 1]], [3], [1]), ([0, 1], [3], [1, 2, 3])])
def test_wrong_sparse_values(indices: Any, shape: list[int], values: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        run(
            "SparseToDense",
            np.array(indices),
            np.array(shape),
            np.array(values, np.float32),
            np.float32(0),
            known=False,
        )
