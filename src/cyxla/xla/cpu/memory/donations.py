"""Matching of donated arguments with the results that may take their memory, by types alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cyxla.types import Shape
from cyxla.xla.cpu.plan.nodes import Plan


def usable(donated: Mapping[int, int | None], plan: Plan) -> dict[int, int | None]:
    """Return the donated inputs of a plan that have a result, sorted.

    A named result belongs to its input alone; the other inputs are no more than the results of their size.
    """
    usable: dict[int, int | None] = {
        k: n
        for k, n in donated.items()
        if n is not None and plan.parameters[k].shape.nbytes == plan.results[n].shape.nbytes > 0
    }
    named = set(usable.values())
    unnamed = [n for n in range(len(plan.results)) if n not in named]
    usable.update(dict.fromkeys(match_results(plan, sorted(set(donated) - set(usable)), unnamed)))
    return dict(sorted(usable.items()))


def match_results(plan: Plan, inputs: Sequence[int], results: Sequence[int]) -> dict[int, int]:
    """Pair inputs with results, in order: first those of equal type, then those of equal size."""
    pairs: dict[int, int] = {}
    unmatched = dict.fromkeys(results)
    for kind in (_type, _size):
        for k in inputs:
            shape = plan.parameters[k].shape
            candidates = (n for n in unmatched if kind(plan.results[n].shape) == kind(shape))
            n = next(candidates, None) if k not in pairs and shape.nbytes else None
            if n is not None:
                pairs[k] = n
                del unmatched[n]
    return pairs


def _type(shape: Shape) -> Any:
    return shape.dtype, shape.dims


def _size(shape: Shape) -> Any:
    return shape.nbytes
