"""C of a statement's values: loads from the arrays of a nest, and indices that are scalars of known range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cyxla.xla.cpu.c import scalar
from cyxla.xla.cpu.c.writer import CWriter
from cyxla.xla.cpu.loops.hoisting import Level, LoopNest
from cyxla.xla.cpu.loops.index_map import Atom
from cyxla.xla.cpu.loops.nodes import Load
from cyxla.xla.cpu.nests.space import NestBody, ScalarAtom


class NestLines(LoopNest):
    """Loop nest whose loads read the arrays that hold the values at this moment.

    Parameters
    ----------
    body, levels, names, scalar
        See `LoopNest`.
    pointers : mapping of int to str
        C pointers of the values by slot.
    """

    def __init__(
        self,
        body: NestBody,
        levels: Sequence[Level],
        names: CWriter,
        pointers: Mapping[int, str],
        *,
        scalar: bool = False,
    ) -> None:
        super().__init__(body, levels, names, scalar=scalar)
        self._pointers = pointers

    def atom(self, atom: Atom) -> str:
        """Return the C of an atom."""
        return f"(int64_t){self.text(atom.node)}" if isinstance(atom, ScalarAtom) else super().atom(atom)

    def _load(self, node: Load) -> str:
        pointer = self._pointers.get(node.slot, f"p{node.slot}")
        return scalar.load(node.dtype, f"{pointer}[{self.form(node.form)}]")
