"""Arrays that shrink together in a loop, and arrays whose run-time sizes broadcast."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cyxla


def escape_times(c: Any, count: int) -> tuple[Any, Any]:
    """Number of the step at which each point has left the disc, and where it was then."""
    times, places = np.zeros(c.shape, np.int64), np.zeros(c.shape, np.complex128)
    rows, columns = np.indices(c.shape).reshape(2, -1)
    c = c.reshape(-1)
    z = np.zeros(c.shape, np.complex128)
    for k in range(count):
        if not len(z):
            break
        np.multiply(z, z, z)
        np.add(z, c, z)
        out = abs(z) > 2
        times[rows[out], columns[out]] = k + 1
        places[rows[out], columns[out]] = z[out]
        np.logical_not(out, out)
        z, rows, columns, c = z[out], rows[out], columns[out], c[out]
    return times, places


#: name: points on the plane
POINTS = {
    "some stay": np.linspace(-2, 0.5, 12)[:, None] + 1j * np.linspace(-1.2, 1.2, 11),
    "all leave": np.full((3, 5), 2.0 + 1j) * np.arange(1, 16).reshape(3, 5),
    "one stays": np.where(np.arange(12).reshape(3, 4) == 7, 0, 3 + 1j),
    "one point": np.full((1, 1), -0.1j),
    "no points": np.zeros((0, 4), np.complex128),
}


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("name", POINTS)
def test_points_that_leave(name: str, backend: str) -> None:
    c = POINTS[name].astype(np.complex128)
    times, places = cyxla.jit(escape_times, platform=backend)(c, 9)
    want_times, want_places = escape_times(c, 9)
    np.testing.assert_array_equal(times, want_times, strict=True)
    np.testing.assert_allclose(places, want_places, rtol=1e-13)


def two_sums(x: Any, y: Any, t: float, u: float) -> Any:
    a, b = x[x > t], y[y > u]
    return a + b, np.where(a > b, a, 2 * b), a * b.sum()


X, Y = np.arange(10.0), 10 - np.arange(10.0)
#: name: thresholds of both
THRESHOLDS = {
    "equal sizes": (4.5, 5.5),
    "one and several": (8.5, 3.5),
    "several and one": (3.5, 9.5),
    "one and one": (8.5, 9.5),
    "one and none": (8.5, 10.5),
    "none and none": (9.5, 10.5),
}


@pytest.mark.parametrize("name", THRESHOLDS)
def test_sizes_that_broadcast(name: str, backend: str) -> None:
    got = cyxla.jit(two_sums, platform=backend)(X, Y, *THRESHOLDS[name])
    for one, other in zip(got, two_sums(X, Y, *THRESHOLDS[name]), strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


@pytest.mark.parametrize("thresholds", [(3.5, 5.5), (9.5, 5.5)])
def test_sizes_that_do_not_broadcast(thresholds: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="broadcast"):
        cyxla.jit(two_sums)(X, Y, *thresholds)


def writes(x: Any, y: Any, t: float) -> Any:
    """Write scalars, arrays of the same size and of size 1 at indices that a mask selects."""
    result, table = np.zeros(10), np.zeros((10, 3))
    (at,) = np.nonzero(x > t)
    result[at] = y[x > t]
    result[at[::-1]] += 1
    table[at, at % 3] = x[at]
    table[at] += y[at][:, None]
    table[at, -1] = np.array([0.5])
    return result, table


@pytest.mark.parametrize("t", [-1.0, 3.5, 8.5, 9.5])
def test_writes_at_selected_indices(t: float, backend: str) -> None:
    for one, other in zip(cyxla.jit(writes, platform=backend)(X, Y, t), writes(X, Y, t), strict=True):
        np.testing.assert_array_equal(one, other, strict=True)
