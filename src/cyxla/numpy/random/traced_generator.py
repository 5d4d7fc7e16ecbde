"""`TracedGenerator`: stand-in for a `numpy.random.Generator` while a function is being traced."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from cyxla.errors import UnimplementedError
from cyxla.numpy.random import keys
from cyxla.numpy.random.multivariate import Multivariate
from cyxla.numpy.random.permutations_and_choice import Selection
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.arrays.traced_array import TracedArray

_ALTERNATIVES = {"bytes": "integers(0, 256, length, np.uint8)", "bit_generator": "cyxla.random.key and split"}


class TracedGenerator(Selection, Multivariate):
    """Stand-in for a generator: it has the methods of `numpy.random.Generator`, which draw anew in every run.

    The numbers differ from NumPy's but have the same distributions. They depend on 128 bits that each call takes from
    NumPy's generator, so seeding it makes runs repeatable.
    """

    def spawn(self, n_children: int) -> list[TracedGenerator]:
        """Return generators that are independent of this one and of each other."""
        child_keys = self.words((n_children, keys.WORDS))
        return [generator(child_keys[k]) for k in range(n_children)]

    def __repr__(self) -> str:
        return "TracedGenerator()"

    def __getattr__(self, name: str) -> NoReturn:
        if not name.startswith("__") and hasattr(np.random.Generator, name):
            raise_untraceable(name, _ALTERNATIVES.get(name, "call it outside of the traced function"))
        raise AttributeError(f"'TracedGenerator' object has no attribute {name!r}")


def raise_untraceable(name: str, hint: str) -> NoReturn:
    """Refuse a method and name a replacement.

    Raises
    ------
    UnimplementedError
        Always.
    """
    raise UnimplementedError(f"numpy.random.Generator.{name} cannot be traced", where=_trace.user_line(), hint=hint)


def generator(key: Any) -> TracedGenerator:
    """Return a generator for a key, inside a traced function.

    Parameters
    ----------
    key : array of uint64[2]
        Key, as made by `cyxla.random.key` or `split`.
    """
    keys.require_trace("generator(key)")
    return TracedGenerator(TracedArray(keys.state_of(key)))
