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
class NmsOptions:
    """Options of non-maximum suppression.

    Parameters
    ----------
    max_boxes : int
        Maximum number of selected boxes.
    max_overlap : float
        Intersection over union above which a box is suppressed.
    score_threshold : float
        Threshold that scores must exceed.
    sigma : float
        Decay of soft suppression (Bodla et al., "Soft-NMS", ICCV 2017): if not 0, overlaps lower scores instead.
    """

    max_boxes: int
    max_overlap: float
    score_threshold: float = _LOWEST
    sigma: float = 0.0


def _intersection_over_union(boxes: Array, k: int, others: Array) -> Array:
    """Return the intersection over union of box k with others; 0 for boxes without area."""
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    sides = np.maximum(np.minimum(high[k], high[others]) - np.maximum(low[k], low[others]), 0)
    areas = (high - low).prod(axis=1)
    shared = sides.prod(axis=1)
    with np.errstate(all="ignore"):
        ratio = shared / (areas[k] + areas[others] - shared)
    return np.where((areas[k] <= 0) | (areas[others] <= 0), 0, ratio)


def select_boxes(boxes: Array, scores: Array, options: NmsOptions) -> tuple[list[int], list[float]]:
    """Return indices and scores of the selected boxes, best first; equal scores keep the order of the boxes."""
    wide = boxes.astype(np.float32)
    # (negated score, index, score, number of selected boxes that have lowered it)
    queue = [(-s, k, s, 0) for k, s in enumerate(scores.astype(np.float32).tolist()) if s > options.score_threshold]
    heapq.heapify(queue)
    chosen: list[int] = []
    kept: list[float] = []
    while queue and len(chosen) < options.max_boxes:
        _, k, score, seen = heapq.heappop(queue)
        lowered, dropped = _suppress(
            _intersection_over_union(wide, k, np.array(chosen[seen:], np.intp)), score, options
        )
        if dropped:
            continue
        if lowered == score:
            chosen.append(k)
            kept.append(score)
        elif lowered > options.score_threshold:
            heapq.heappush(queue, (-lowered, k, lowered, len(chosen)))
    return chosen, kept


def _suppress(overlaps: Array, score: float, options: NmsOptions) -> tuple[float, bool]:
    """Return a score lowered by the overlaps, latest selection first, and True if the box is suppressed."""
    for overlap in reversed(overlaps.tolist()):
        if not options.sigma and overlap > options.max_overlap:
            return score, True
        if options.sigma:
            score = float(np.float32(score * exp(-0.5 / options.sigma * overlap * overlap)))
        if score <= options.score_threshold:
            break
    return score, False
