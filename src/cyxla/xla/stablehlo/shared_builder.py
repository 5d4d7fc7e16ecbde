"""Builders that share one module, each for one of its computations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from cyxla.errors import OpError
from cyxla.types import Shape
from cyxla.xla.hlo import Computation, HloModule
from cyxla.xla.hlo.attributes import Metadata
from cyxla.xla.hlo.builder import XlaBuilder, XlaComputation, XlaOp


class SharedModule:
    """A module that several builders add to."""

    def __init__(self, name: str) -> None:
        self.module = HloModule(name)
        self.copies: dict[XlaComputation, Computation] = {}
        self._suffixes: dict[str, int] = {}

    def unique(self, name: str) -> str:
        """Return a name that no computation has."""
        unique = name
        while unique in self.module.computations:
            self._suffixes[name] = self._suffixes.get(name, 0) + 1
            unique = f"{name}.{self._suffixes[name]}"
        return unique


class SharedBuilder(XlaBuilder):
    """Builder of a computation in a shared module, which raises errors at once.

    Parameters
    ----------
    shared : SharedModule
        Module of the computation.
    name : str
        Suggested name.
    """

    def __init__(self, shared: SharedModule, name: str) -> None:
        super().__init__(shared.unique(name))
        self._module = shared.module
        self._computation = shared.module.new_computation(self.name)
        self._imported = shared.copies

    def _import(self, computation: XlaComputation | Computation) -> Computation:
        return computation if isinstance(computation, Computation) else super()._import(computation)

    def call(
        self,
        opcode: str,
        operands: Sequence[XlaOp],
        called: Sequence[Computation],
        attrs: Mapping[str, Any] | None = None,
        shape: Shape | None = None,
    ) -> XlaOp:
        """Append an instruction that calls computations of the same module."""
        # `add` passes them to `_import` above, which returns them unchanged.
        return self.add(opcode, operands, attrs, called=cast("Sequence[XlaComputation]", called), shape=shape)

    def report(self, error: OpError, operation: str = "") -> XlaOp:
        """Raise the error; the reader adds the line."""
        raise error

    def describe(self, metadata: Metadata, extras: dict[str, Any]) -> None:
        """Set metadata and extras of the instructions that follow."""
        self._metadata, self._extras = metadata, extras

    def finish(self, root: XlaOp) -> Computation:
        """Return the computation with the result `root`."""
        assert root.instruction is not None  # errors are raised at once
        self._computation.root = root.instruction
        self._built = True
        return self._computation
