"""Compare compiled programs with the interpreter."""

from typing import Any

import numpy as np

import cyxla
from cyxla.types import Shape
from cyxla.xla.evaluator import evaluate
from cyxla.xla.hlo import HloModule
from support.hlo.programs import assert_same
from support.strategies import random_array


def flat(value: Any) -> list[Any]:
    """Return the arrays of nested tuples."""
    return [leaf for part in value for leaf in flat(part)] if isinstance(value, tuple) else [value]


def arguments(module: HloModule, seed: int = 0, special: float = 0.0) -> list[Any]:
    """Return random arrays for the parameters of a module."""

    def make(shape: Shape, seed: int) -> Any:
        if shape.is_tuple:
            return tuple(make(e, seed * 31 + k) for k, e in enumerate(shape.elements))
        return random_array(shape.static, seed, special)

    return [make(p.shape, seed * 1009 + k) for k, p in enumerate(module.parameters)]


def agree(text: str, *args: Any, ulp: float = 4, floor: float = 0.0, seed: int = 0) -> cyxla.Executable:
    """Check that both platforms agree, on random arguments unless some are given, and return the executable."""
    module = cyxla.hlo.parse_module(text)
    given = list(args) or arguments(module, seed)
    compiled = cyxla.compile(text)
    got, want = flat(compiled(*given)), flat(evaluate(module, given))
    shapes = module.entry.root.shape.leaves()
    for g, w, shape in zip(got, want, shapes, strict=True):
        assert_same(np.asarray(g), np.asarray(w), shape.dtype, ulp, floor)
    return compiled
