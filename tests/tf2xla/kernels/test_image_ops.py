"""Non-maximum suppression in compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.graphs.symbolic import compiled, constant, graph_of, parameter

import cyxla
from cyxla.core.framework.apply import apply_op
from cyxla.core.graph.graph import Graph

Array = np.ndarray[Any, Any]
INT, F = np.int32, np.float32


def squares(count: int, side: float, seed: int = 0) -> Array:
    """Return random squares in the unit square, with corners in any order."""
    draws = np.random.default_rng(seed)
    low = draws.random((count, 2)).astype(F)
    corners = [low, low + F(side)]
    return np.concatenate(corners[::-1] if seed % 2 else corners, 1)


def drawn_scores(count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed + 100).random(count).astype(F)


SAME = np.tile(F([0, 0, 1, 1]), (4, 1))
# boxes, scores, greatest number of results, least overlap that suppresses, least score
CASES = {
    "few": (squares(20, 0.3), drawn_scores(20), 5, 0.3, 0.1),
    "all": (squares(300, 0.05, 1), drawn_scores(300, 1), 300, 0.3, 0.0),
    "more than there are": (squares(7, 0.4), drawn_scores(7), 50, 0.5, 0.2),
    "one box": (squares(1, 0.5), drawn_scores(1), 3, 0.5, 0.0),
    "equal boxes": (SAME, F([0.2, 0.9, 0.9, 0.3]), 4, 0.5, 0.0),
    "equal boxes that all stay": (SAME, F([0.2, 0.9, 0.9, 0.3]), 3, 1.0, 0.0),
    "boxes without an area": (SAME * F([1, 0, 1, 0]), F([0.2, 0.9, 0.9, 0.3]), 4, 0.5, 0.0),
    "low scores": (squares(6, 0.3), drawn_scores(6), 4, 0.5, 2.0),
    "negative scores": (squares(6, 0.3), -drawn_scores(6), 4, 0.5, -0.5),
    "infinite scores": (squares(3, 0.1), F([np.inf, 1, -np.inf]), 3, 0.5, -1.0),
    "no results": (squares(6, 0.3), drawn_scores(6), 0, 0.5, 0.0),
    "no boxes": (np.zeros((0, 4), F), np.zeros(0, F), 3, 0.5, 0.0),
}


OPERANDS = ("float", "float", "int32", "float", "float")


def suppressed(*operands: Any) -> list[Any]:
    """Return the results of V3, and those of V4 with padding."""
    padded = apply_op("NonMaxSuppressionV4", *operands, pad_to_max_output_size=True)
    return [apply_op("NonMaxSuppressionV3", *operands), *padded]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_boxes_are_those_of_the_kernels(case: tuple[Any, ...], backend: str) -> None:
    boxes, scores, limit, *thresholds = case
    graph = Graph()
    with graph.as_default():
        given = graph.placeholder("float", (None, 4), name="boxes"), graph.placeholder("float", (None,), name="scores")
        fetches = [t.name for t in suppressed(*given, INT(limit), *map(F, thresholds))]
    feeds = {"boxes:0": boxes, "scores:0": scores}
    plain = cyxla.Session(graph, jit="off").run(fetches, feeds)
    for found, value in zip(cyxla.Session(graph, jit="on", platform=backend).run(fetches, feeds), plain, strict=True):
        np.testing.assert_array_equal(found, value)


def test_programs_for_many_boxes_are_not_larger() -> None:
    sizes = []
    for limit in (2, 300):
        operands = parameter("float", 300, 4), parameter("float", 300), constant(limit), parameter("float")
        made = compiled(graph_of(suppressed, *OPERANDS), *operands, parameter("float"))
        module = made.computation.module()
        sizes.append(sum(len(c.instructions) for c in module.computations.values()))
    assert sizes[0] == sizes[1]
