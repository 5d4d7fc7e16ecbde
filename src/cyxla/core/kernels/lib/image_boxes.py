"""Non-maximum suppression of boxes.

A box is two opposite corners (y1, x1, y2, x2), in either order.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from math import exp
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_LOWEST = float("-inf")


@dataclass(frozen=True)
class Choice:
    """Options of non-maximum suppression.

    Parameters
    ----------
    most : int
        Maximum number of selected boxes.
    overlap : float
        Intersection over union above which a box is suppressed.
    least_score : float
        Threshold that scores must exceed.
    sigma : float
        Decay of soft suppression (Bodla et al., "Soft-NMS", ICCV 2017): if not 0, overlaps lower scores instead.
    """

    most: int
    overlap: float
    least_score: float = _LOWEST
    sigma: float = 0.0


def _overlaps(boxes: Array, k: int, others: Array) -> Array:
    """Return the intersection over union of box k with others; 0 for boxes without area."""
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    sides = np.maximum(np.minimum(high[k], high[others]) - np.maximum(low[k], low[others]), 0)
    areas = (high - low).prod(axis=1)
    shared = sides.prod(axis=1)
    with np.errstate(all="ignore"):
        ratio = shared / (areas[k] + areas[others] - shared)
    return np.where((areas[k] <= 0) | (areas[others] <= 0), 0, ratio)


def choose(boxes: Array, scores: Array, how: Choice) -> tuple[list[int], list[float]]:
    """Return indices and scores of the selected boxes, best first; equal scores keep the order of the boxes."""
    wide = boxes.astype(np.float32)
    # (negated score, index, score, number of selected boxes that have lowered it)
    queue = [(-s, k, s, 0) for k, s in enumerate(scores.astype(np.float32).tolist()) if s > how.least_score]
    heapq.heapify(queue)
    chosen: list[int] = []
    kept: list[float] = []
    while queue and len(chosen) < how.most:
        _, k, score, seen = heapq.heappop(queue)
        lowered, dropped = _lowered(_overlaps(wide, k, np.array(chosen[seen:], np.intp)), score, how)
        if dropped:
            continue
        if lowered == score:
            chosen.append(k)
            kept.append(score)
        elif lowered > how.least_score:
            heapq.heappush(queue, (-lowered, k, lowered, len(chosen)))
    return chosen, kept


def _lowered(overlaps: Array, score: float, how: Choice) -> tuple[float, bool]:
    """Return a score lowered by the overlaps, latest selection first, and True if the box is suppressed."""
    for overlap in reversed(overlaps.tolist()):
        if not how.sigma and overlap > how.overlap:
            return score, True
        if how.sigma:
            score = float(np.float32(score * exp(-0.5 / how.sigma * overlap * overlap)))
        if score <= how.least_score:
            break
    return score, False
