"""`TracedGenerator`: what stands for a `numpy.random.Generator` while a function is being traced."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from cyxla.errors import UnimplementedError
from cyxla.numpy.random import keys
from cyxla.numpy.random.multivariate import Multivariate
from cyxla.numpy.random.selection import Selection
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.traced_array import TracedArray

_INSTEAD = {"bytes": "integers(0, 256, length, np.uint8)", "bit_generator": "cyxla.random.key and split"}


class TracedGenerator(Selection, Multivariate):
    """Stands for a generator: its methods are those of `numpy.random.Generator`, and draw anew in every run.

    The numbers are not those that NumPy would draw, but have the same distributions. They depend on the 128 bits that
    each call takes from NumPy's generator, so seeding it makes runs repeatable.
    """

    def spawn(self, n_children: int) -> list[TracedGenerator]:
        """Generators that have nothing in common with this one or with each other."""
        made = self.words((n_children, keys.WORDS))
        return [generator(made[k]) for k in range(n_children)]

    def __repr__(self) -> str:
        return "TracedGenerator()"

    def __getattr__(self, name: str) -> NoReturn:
        if not name.startswith("__") and hasattr(np.random.Generator, name):
            refuse(name, _INSTEAD.get(name, "call it outside of the traced function"))
        raise AttributeError(f"'TracedGenerator' object has no attribute {name!r}")


def refuse(name: str, instead: str) -> NoReturn:
    """Say what to use in place of a method.

    Raises
    ------
    UnimplementedError
        Always.
    """
    raise UnimplementedError(f"numpy.random.Generator.{name} cannot be traced", where=_trace.place(), hint=instead)


def generator(key: Any) -> TracedGenerator:
    """A generator, inside of a traced function, that draws what a key determines.

    Parameters
    ----------
    key : array of uint64[2]
        Of `cyxla.random.key` or `split`.
    """
    keys.require_trace("generator(key)")
    return TracedGenerator(TracedArray(keys.state_of(key)))
