"""Passes over single computations, which a pipeline repeats only where something has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cyxla.xla.hlo import Computation, HloModule
from cyxla.xla.passes.engine.pipeline import HloModulePass


class EachComputation(NamedTuple):
    """Function of a `LocalPass` in a table of passes."""

    function: Callable[[Computation], bool]


class LocalPass(HloModulePass):
    """Pass that rewrites one computation after the other, callees first, by what stands in it and in its callees.

    A run leaves out the computations in which an earlier one has found nothing, if neither they nor their callees have
    changed since. The change logs of the computations must not be cleared in between.

    Parameters
    ----------
    name : str
        Name of the pass.
    function : callable
        Function that changes a computation, and returns whether it did.
    """

    def __init__(self, name: str, function: Callable[[Computation], bool]) -> None:
        super().__init__(name)
        self.function = function
        self._versions: dict[tuple[Computation, int, tuple[int, ...]], int] = {}
        self._found_nothing: dict[Computation, int] = {}  # version of the computation

    def run(self, module: HloModule) -> bool:
        """Rewrite the computations that may have changed since the last run."""
        changed = False
        versions: dict[Computation, int] = {}
        for computation in module.post_order():
            version = self._version(computation, versions)
            if self._found_nothing.get(computation) != version:
                if self.function(computation):
                    changed = True
                    version = self._version(computation, versions)
                else:
                    self._found_nothing[computation] = version
            versions[computation] = version
        return changed

    def _version(self, computation: Computation, versions: dict[Computation, int]) -> int:
        """Return a number that tells apart the states of a computation and of those that it calls.

        A computation that the function has just made is known by the instruction that calls it.
        """
        called = dict.fromkeys(c for ins in computation.instructions if ins.called for c in ins.called)
        state = computation, len(computation.changed), tuple([versions.get(c, -1) for c in called])
        return self._versions.setdefault(state, len(self._versions))
