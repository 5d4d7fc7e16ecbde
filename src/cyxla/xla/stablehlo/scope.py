"""Builders that share one module: each collects a computation of it."""

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
        self._numbers: dict[str, int] = {}

    def unique(self, name: str) -> str:
        """A name that no computation has."""
        found = name
        while found in self.module.computations:
            self._numbers[name] = self._numbers.get(name, 0) + 1
            found = f"{name}.{self._numbers[name]}"
        return found


class Scope(XlaBuilder):
    """Collects a computation of a shared module, and raises errors at once.

    Parameters
    ----------
    shared : SharedModule
        Where the computation belongs.
    name : str
        Wished name.
    """

    def __init__(self, shared: SharedModule, name: str) -> None:
        super().__init__(shared.unique(name))
        self._module = shared.module
        self._computation = shared.module.new_computation(self.name)
        self._copies = shared.copies

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
        # `add` hands them to `_import` above, which takes these as they are.
        return self.add(opcode, operands, attrs, called=cast("Sequence[XlaComputation]", called), shape=shape)

    def report(self, error: OpError, what: str = "") -> XlaOp:
        """Raise the error; the reader knows the line it belongs to."""
        raise error

    def describe(self, metadata: Metadata, extras: dict[str, Any]) -> None:
        """Let the instructions that follow say where they come from."""
        self._metadata, self._extras = metadata, extras

    def finish(self, root: XlaOp) -> Computation:
        """The computation, whose result is `root`."""
        assert root.instruction is not None  # errors are raised
        self._computation.root = root.instruction
        self._built = True
        return self._computation
