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


def _intersection_over_union(boxes: Array, k: int, candidates: Array) -> Array:
    """Return the intersection over union of box k with others; 0 for boxes without area."""
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    overlap = np.maximum(np.minimum(high[k], high[candidates]) - np.maximum(low[k], low[candidates]), 0)
    areas = (high - low).prod(axis=1)
    intersection = overlap.prod(axis=1)
    with np.errstate(all="ignore"):
        ratio = intersection / (areas[k] + areas[candidates] - intersection)
    return np.where((areas[k] <= 0) | (areas[candidates] <= 0), 0, ratio)


def select_boxes(boxes: Array, scores: Array, options: NmsOptions) -> tuple[list[int], list[float]]:
    """Return indices and scores of the selected boxes, best first; equal scores keep the order of the boxes."""
    wide = boxes.astype(np.float32)
    # (negated score, index, score, number of selected boxes that have lowered it)
    queue = [(-s, k, s, 0) for k, s in enumerate(scores.astype(np.float32).tolist()) if s > options.score_threshold]
    heapq.heapify(queue)
    selected: list[int] = []
    selected_scores: list[float] = []
    while queue and len(selected) < options.max_boxes:
        _, k, score, num_compared = heapq.heappop(queue)
        lowered, is_suppressed = _suppress(
            _intersection_over_union(wide, k, np.array(selected[num_compared:], np.intp)), score, options
        )
        if is_suppressed:
            continue
        if lowered == score:
            selected.append(k)
            selected_scores.append(score)
        elif lowered > options.score_threshold:
            heapq.heappush(queue, (-lowered, k, lowered, len(selected)))
    return selected, selected_scores


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
