"""Analysis of the values of a program that are known once some of its arguments are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from cyxla.types import Shape
from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.passes.engine.rewrite_helpers import Writer
from cyxla.xla.passes.simplify.while_simplifier import effects_of

#: Opcodes that depend on the call, keep values apart, or communicate with the outside.
_NEVER_KNOWN: Final = frozenset({
    "parameter", "rng", "rng-get-and-update-state", "custom-call", "partition-id", "replica-id", "opt-barrier",
    "add-dependency", "after-all", "domain", "infeed", "outfeed", "send", "recv", "send-done", "recv-done",
    "async-start", "async-update", "async-done", "copy-start", "copy-done", "set-dimension-size", "dynamic-reshape",
    "all-reduce", "all-gather", "all-to-all", "collective-permute", "collective-broadcast", "reduce-scatter",
    "ragged-all-to-all", "all-reduce-start", "all-reduce-done", "all-gather-start", "all-gather-done",
    "collective-permute-start", "collective-permute-done", "fusion", "call",
})  # fmt: skip


class Known:
    """The instructions whose values depend on constants and given parameters only.

    Parameters
    ----------
    module : HloModule
        The program; changes to it are not followed, except those added by `learn`.
    given : iterable of Instruction
        Known parameters of the entry.
    """

    def __init__(self, module: HloModule, parameters: Iterable[Instruction]) -> None:
        self.effects = effects_of(module)
        self._fixed = dict.fromkeys(p for p in parameters if all(leaf.is_array for leaf in p.shape.leaves()))
        self._sizes = [sum(leaf.nbytes for leaf in p.shape.leaves()) for p in self._fixed]
        self._sources: dict[Instruction, int] = {p: 1 << k for k, p in enumerate(self._fixed)}
        self._roots: set[Instruction] = set(self._fixed)
        self._callers = Counter(c for m in module.computations.values() for i in m.instructions for c in i.called)
        self._propagate(module.entry)

    def __contains__(self, ins: Instruction) -> bool:
        return ins in self._sources

    def depends(self, ins: Instruction) -> bool:
        """Return True if an instruction is known and depends on given parameters."""
        return self._sources.get(ins, 0) != 0

    def is_given(self, ins: Instruction) -> bool:
        """Return True for a given parameter, or a known value in the state of a loop."""
        return ins in self._roots

    def source_bytes(self, ins: Instruction) -> int:
        """Return the number of bytes of the given parameters that an instruction depends on."""
        mask = self._sources[ins]
        return sum(size for k, size in enumerate(self._sizes) if mask >> k & 1)

    def learn(self, ins: Instruction) -> Instruction:
        """Add a new instruction whose operands are all known, and return it."""
        mask = 0
        for o in ins.operands:
            mask |= self._sources.get(o, 0)  # constants may be new as well
        self._sources[ins] = mask
        return ins

    def unchanged(self, loop: Instruction) -> Mapping[int, Instruction]:
        """Return the elements of a loop's state that are known before it and loop-invariant, by index."""
        body, start = loop.called[0], loop.operands[0]
        if start.opcode != "tuple" or body.root.opcode != "tuple" or self._callers[body] != 1:
            return {}
        parameter = body.parameters[0]
        return {
            n: start.operands[n]
            for n, r in enumerate(body.root.operands)
            if is_element(r, parameter, n) and start.operands[n] in self._sources
        }

    def _propagate(self, computation: Computation, *, repeated: bool = False) -> None:
        predecessors = {p for i in computation.instructions for p in i.control_predecessors}
        for ins in computation.post_order():
            if ins in self._sources:
                continue
            may_not_run = repeated and ins.opcode == "while"  # it may not terminate, and may never be reached
            if ins not in predecessors and self._is_known(ins) and not may_not_run:
                self.learn(ins)
            elif ins.opcode == "while":
                self._enter_loop(ins)

    def _is_known(self, ins: Instruction) -> bool:
        if ins.opcode in _NEVER_KNOWN or ins.control_predecessors or ins.row.side_effect:
            return False
        if any(o not in self._sources for o in ins.operands) or any(self.effects.get(c, True) for c in ins.called):
            return False
        return not ins.shape.is_dynamic and all(leaf.is_array for leaf in ins.shape.leaves())

    def _enter_loop(self, loop: Instruction) -> None:
        """Propagate known values into a loop."""
        body, values = loop.called[0], self.unchanged(loop)
        if not values:
            return
        parameter = body.parameters[0]
        for user in parameter.users:
            value = values.get(user.attrs["index"]) if user.opcode == "get-tuple-element" else None
            if value is not None and value.shape.is_array:
                self._sources[user] = self._sources[value]
                self._roots.add(user)
        self._propagate(body, repeated=True)


class KnownWriter(Writer):
    """Writer of instructions that are known because their operands are."""

    def __init__(self, computation: Computation, known: Known) -> None:
        super().__init__(computation)
        self.known = known

    def op(self, opcode: str, *operands: Instruction, shape: Shape | None = None, **attrs: Any) -> Instruction:
        """Write an instruction of known operands."""
        return self.known.learn(super().op(opcode, *operands, shape=shape, **attrs))

    def splat(self, value: float, shape: Shape) -> Instruction:
        """Write a splat of a number."""
        return self.broadcast_known(self.known.learn(self.constant(value, shape.dtype)), shape, ())

    def broadcast_known(self, x: Instruction, shape: Shape, dims: tuple[int, ...]) -> Instruction:
        """Broadcast `x`, whose dimensions are the dimensions `dims` of the result."""
        if dims == tuple(range(shape.rank)):
            return x
        return self.op("broadcast", x, shape=shape.logical, dimensions=dims)

    def vector(self, ins: Instruction, dims: tuple[int, ...]) -> Instruction | None:
        """Return a known array along the dimensions `dims`, or None if it varies along the others."""
        sizes = ins.shape.with_dims([ins.shape.dims[d] for d in dims])
        if ins.opcode == "broadcast" and set(ins.attrs["dimensions"]) <= set(dims):
            inner = tuple(dims.index(d) for d in ins.attrs["dimensions"])
            return self.broadcast_known(ins.operands[0], sizes, inner)
        other_sizes = [n for d, n in enumerate(ins.shape.dims) if d not in dims]
        if any(n != 1 for n in other_sizes) or list(dims) != sorted(dims):
            return None
        return ins if ins.shape.dims == sizes.dims else self.op("reshape", ins, shape=sizes)


def is_element(ins: Instruction, parameter: Instruction, number: int) -> bool:
    """Return True if an instruction is a get-tuple-element of `number`."""
    return ins.opcode == "get-tuple-element" and ins.operands[0] is parameter and ins.attrs["index"] == number
