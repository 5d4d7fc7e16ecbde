"""k-means: points in groups about their centres, found by turns.

Takes the number of points as an argument.
"""

import numpy as np
from helpers.judge import compare, size

import cyxla

GROUPS = 5


def nearest(points, centres):
    """Which centre is the nearest to each point."""
    squared = np.sum(centres**2, axis=1) - 2 * points @ centres.T  # the rest is the same for all centres
    return np.argmin(squared, axis=1)


@cyxla.jit
def improve(points, centres):
    """Centres in the middle of the points that are nearest to them; those without points stay."""
    member = (nearest(points, centres)[:, None] == np.arange(len(centres))).astype(points.dtype)
    count = member.sum(axis=0)[:, None]
    return np.where(count > 0, member.T @ points / np.maximum(count, 1), centres)


@cyxla.jit
def kmeans(points, centres, turns):
    """Centres after many turns, and the group of each point."""
    centres = cyxla.fori_loop(0, turns, lambda _, c: improve(points, c), centres)
    return centres, nearest(points, centres)


def kmeans_plainly(points, centres, turns):
    for _ in range(turns):
        centres = improve.__wrapped__(points, centres)
    return centres, nearest(points, centres)


def main(count):
    rng = np.random.default_rng(1)
    middles = np.array([[0, 0], [6, 0], [0, 6], [6, 6], [3, 12.0]])
    points = middles[rng.integers(0, GROUPS, count)] + rng.normal(size=(count, 2))
    start = points[np.argsort(points @ [1.0, 3.0])[:: count // GROUPS][:GROUPS]]
    centres, groups = compare(f"{count} points", kmeans, kmeans_plainly, points, start, 25, tolerance=1e-9)
    ordered = centres[np.lexsort(centres.round().T)]
    assert np.abs(ordered - middles[np.lexsort(middles.T)]).max() < 0.5
    print(f"  centres {ordered.round(2).tolist()}, groups of {np.bincount(groups).tolist()}")


if __name__ == "__main__":
    main(size(20_000))
