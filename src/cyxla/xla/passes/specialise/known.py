"""Which values of a program are settled once some of its arguments are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from cyxla.types import Shape
from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.passes.engine.writer import Writer
from cyxla.xla.passes.simplify.while_simplifier import effects_of

#: What differs from call to call, keeps things apart, or belongs to the outside.
_NEVER: Final = frozenset({
    "parameter", "rng", "rng-get-and-update-state", "custom-call", "partition-id", "replica-id", "opt-barrier",
    "add-dependency", "after-all", "domain", "infeed", "outfeed", "send", "recv", "send-done", "recv-done",
    "async-start", "async-update", "async-done", "copy-start", "copy-done", "set-dimension-size", "dynamic-reshape",
    "all-reduce", "all-gather", "all-to-all", "collective-permute", "collective-broadcast", "reduce-scatter",
    "ragged-all-to-all", "all-reduce-start", "all-reduce-done", "all-gather-start", "all-gather-done",
    "collective-permute-start", "collective-permute-done", "fusion", "call",
})  # fmt: skip


class Known:
    """The instructions whose values depend on constants and given parameters alone.

    Parameters
    ----------
    module : HloModule
        The program; changes of it are not followed, save those told by `learn`.
    given : iterable of Instruction
        Parameters of its entry.
    """

    def __init__(self, module: HloModule, given: Iterable[Instruction]) -> None:
        self.effects = effects_of(module)
        self._given = dict.fromkeys(p for p in given if all(leaf.is_array for leaf in p.shape.leaves()))
        self._sizes = [sum(leaf.nbytes for leaf in p.shape.leaves()) for p in self._given]
        self._behind: dict[Instruction, int] = {p: 1 << k for k, p in enumerate(self._given)}
        self._roots: set[Instruction] = set(self._given)
        self._callers = Counter(c for m in module.computations.values() for i in m.instructions for c in i.called)
        self._spread(module.entry)

    def __contains__(self, ins: Instruction) -> bool:
        return ins in self._behind

    def depends(self, ins: Instruction) -> bool:
        """Whether it is known, and depends on given parameters."""
        return self._behind.get(ins, 0) != 0

    def is_given(self, ins: Instruction) -> bool:
        """Whether it is a given parameter, or what a loop is handed of known values."""
        return ins in self._roots

    def bytes_behind(self, ins: Instruction) -> int:
        """Bytes of the given parameters that it depends on."""
        mask = self._behind[ins]
        return sum(size for k, size in enumerate(self._sizes) if mask >> k & 1)

    def learn(self, ins: Instruction) -> Instruction:
        """Take in a new instruction whose operands are all known."""
        mask = 0
        for o in ins.operands:
            mask |= self._behind.get(o, 0)  # constants may be new as well
        self._behind[ins] = mask
        return ins

    def unchanged(self, loop: Instruction) -> Mapping[int, Instruction]:
        """The elements of a loop's state that are known before it and that its body hands on, by number."""
        body, start = loop.called[0], loop.operands[0]
        if start.opcode != "tuple" or body.root.opcode != "tuple" or self._callers[body] != 1:
            return {}
        parameter = body.parameters[0]
        return {
            n: start.operands[n]
            for n, r in enumerate(body.root.operands)
            if is_element(r, parameter, n) and start.operands[n] in self._behind
        }

    def _spread(self, computation: Computation, *, repeated: bool = False) -> None:
        pinned = {p for i in computation.instructions for p in i.control_predecessors}
        for ins in computation.post_order():
            if ins in self._behind:
                continue
            endless = repeated and ins.opcode == "while"  # for all we know, and the outer loop may never come to it
            if ins not in pinned and self._is_settled(ins) and not endless:
                self.learn(ins)
            elif ins.opcode == "while":
                self._enter(ins)

    def _is_settled(self, ins: Instruction) -> bool:
        if ins.opcode in _NEVER or ins.control_predecessors or ins.row.side_effect:
            return False
        if any(o not in self._behind for o in ins.operands) or any(self.effects.get(c, True) for c in ins.called):
            return False
        return not ins.shape.is_dynamic and all(leaf.is_array for leaf in ins.shape.leaves())

    def _enter(self, loop: Instruction) -> None:
        """Follow known values into a loop."""
        body, values = loop.called[0], self.unchanged(loop)
        if not values:
            return
        parameter = body.parameters[0]
        for user in parameter.users:
            value = values.get(user.attrs["index"]) if user.opcode == "get-tuple-element" else None
            if value is not None and value.shape.is_array:
                self._behind[user] = self._behind[value]
                self._roots.add(user)
        self._spread(body, repeated=True)


class KnownWriter(Writer):
    """Writes instructions that are known because their operands are."""

    def __init__(self, computation: Computation, known: Known) -> None:
        super().__init__(computation)
        self.known = known

    def op(self, opcode: str, *operands: Instruction, shape: Shape | None = None, **attrs: Any) -> Instruction:
        """Any instruction of known operands."""
        return self.known.learn(super().op(opcode, *operands, shape=shape, **attrs))

    def all_of(self, value: float, shape: Shape) -> Instruction:
        """An array of one number."""
        return self.spread(self.known.learn(self.constant(value, shape.dtype)), shape, ())

    def spread(self, x: Instruction, shape: Shape, places: tuple[int, ...]) -> Instruction:
        """`x` over an array of which its dimensions are those at `places`."""
        if places == tuple(range(shape.rank)):
            return x
        return self.op("broadcast", x, shape=shape.logical, dimensions=places)

    def vector(self, ins: Instruction, places: tuple[int, ...]) -> Instruction | None:
        """What a known array is along the dimensions at `places`, if it is the same all along the others."""
        sizes = ins.shape.with_dims([ins.shape.dims[d] for d in places])
        if ins.opcode == "broadcast" and set(ins.attrs["dimensions"]) <= set(places):
            inner = tuple(places.index(d) for d in ins.attrs["dimensions"])
            return self.spread(ins.operands[0], sizes, inner)
        others = [n for d, n in enumerate(ins.shape.dims) if d not in places]
        if any(n != 1 for n in others) or list(places) != sorted(places):
            return None
        return ins if ins.shape.dims == sizes.dims else self.op("reshape", ins, shape=sizes)


def is_element(ins: Instruction, parameter: Instruction, number: int) -> bool:
    """Whether an instruction reads an element of a tuple."""
    return ins.opcode == "get-tuple-element" and ins.operands[0] is parameter and ins.attrs["index"] == number
