"""Rewrite dynamic arrays as padded arrays with their sizes beside them.

Before::

    d = f32[<=6] set-dimension-size(f32[6] p, s32[] n), dimensions={0}
    e = f32[<=6] exponential(d)
    ROOT s = f32[] reduce(e, zero), dimensions={0}, to_apply=add

After::

    e = f32[6] exponential(p)
    m = f32[6] select(iota < n, e, zero)
    ROOT s = f32[] reduce(m, zero), dimensions={0}, to_apply=add

Elements beyond the dynamic size are arbitrary, and replaced where they would be read. Instructions that are not in the
table below, or have operands that could not be rewritten, stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from cyxla.types import ElementType, Literal
from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.passes.engine.observer import replace
from cyxla.xla.passes.engine.rewrite_helpers import Writer

_S32: Final = ElementType.S32


class _Padded(NamedTuple):
    """A padded array and, for each dynamic dimension, its size (an s32 scalar)."""

    padded: Instruction
    sizes: Mapping[int, Instruction]


def run(module: HloModule) -> bool:
    """Rewrite dynamic arrays in each computation."""
    computations = [c for c in module.post_order() if any(i.opcode == "set-dimension-size" for i in c.instructions)]
    changed = [_Expansion(c).run() for c in computations]
    return any(changed)


class _Expansion:
    def __init__(self, computation: Computation) -> None:
        self.computation = computation
        self.write = Writer(computation)
        self.padded: dict[Instruction, _Padded] = {}

    def run(self) -> bool:
        changed = False
        for ins in list(self.computation.post_order()):
            rewrite = _TABLE.get("elementwise" if ins.row.elementwise else ins.opcode)
            if rewrite is None or not self._is_expandable(ins):
                continue
            replacement = rewrite(self, ins)
            if replacement is None:
                continue
            self.padded[ins] = replacement
            if not ins.shape.is_dynamic:
                replace(ins, replacement.padded, f"{ins.opcode} of arrays with dynamic sizes -> of padded arrays")
                changed = True
        return changed

    def _is_expandable(self, ins: Instruction) -> bool:
        """Return True if an instruction has dynamic sizes, and all of them are known."""
        dynamic = [o for o in ins.operands if o.shape.is_dynamic]
        return (ins.shape.is_dynamic or bool(dynamic)) and all(o in self.padded for o in dynamic)

    def of(self, ins: Instruction) -> _Padded:
        return self.padded.get(ins) or _Padded(ins, {})

    def masked(self, x: _Padded, dimensions: tuple[int, ...], filler: Instruction) -> Instruction:
        """Return the array with a scalar in place of the elements beyond its sizes."""
        padded, write = x.padded, self.write
        for d in dimensions:
            if d not in x.sizes:
                continue
            index = write.iota(padded.shape.with_dtype(_S32), d)
            inside = write.compare("LT", index, write.broadcast(x.sizes[d], index.shape))
            padded = write.select(inside, padded, write.broadcast(filler, padded.shape))
        return padded

    # --- by opcode --------------------------------------------------------------------------------------------------

    def set_size(self, ins: Instruction) -> _Padded | None:
        (along,) = ins.attrs["dimensions"]
        if not ins.shape.is_dynamic or not ins.shape.dynamic[along]:
            return None
        old, write = self.of(ins.operands[0]), self.write
        zero = write.constant(0, ins.shape.dtype)
        padded = self.masked(old, (along,), zero)  # a size that grows again exposes zeros
        size = write.convert(ins.operands[1], _S32)
        least, most = write.constant(0, _S32), write.constant(ins.shape.dims[along], _S32)
        return _Padded(padded, {**old.sizes, along: write.op("clamp", least, size, most)})

    def get_size(self, ins: Instruction) -> _Padded | None:
        (along,) = ins.attrs["dimensions"]
        x = self.of(ins.operands[0])
        return _Padded(x.sizes.get(along) or self.write.constant(x.padded.shape.dims[along], _S32), {})

    def elementwise(self, ins: Instruction) -> _Padded | None:
        operands = [self.of(o) for o in ins.operands]
        sizes: dict[int, Instruction] = {}
        for x in operands:
            for d, size in x.sizes.items():
                merged_size = sizes.get(d, size)
                sizes[d] = merged_size if merged_size is size else self.write.op("minimum", merged_size, size)
        if not ins.shape.is_dynamic or sizes.keys() != {d for d, dynamic in enumerate(ins.shape.dynamic) if dynamic}:
            return None
        padded = self.computation.add(ins.opcode, [x.padded for x in operands], ins.attrs, shape=ins.shape.static)
        return _Padded(padded, sizes)

    def transpose(self, ins: Instruction) -> _Padded | None:
        order, x = ins.attrs["dimensions"], self.of(ins.operands[0])
        padded = self.computation.add("transpose", [x.padded], ins.attrs, shape=ins.shape.static)
        return _Padded(padded, {k: x.sizes[d] for k, d in enumerate(order) if d in x.sizes})

    def reduce(self, ins: Instruction) -> _Padded | None:
        if len(ins.operands) != 2 or not _starts_from_identity(ins):
            return None
        dims, x, initial = ins.attrs["dimensions"], self.of(ins.operands[0]), ins.operands[1]
        padded = self.masked(x, tuple(dims), initial)
        kept_dims = [d for d in range(padded.shape.rank) if d not in dims]
        reduced = self.computation.add(
            "reduce", [padded, initial], ins.attrs, shape=ins.shape.static, called=ins.called
        )
        return _Padded(reduced, {k: x.sizes[d] for k, d in enumerate(kept_dims) if d in x.sizes})


_TABLE: Final[Mapping[str, Callable[[_Expansion, Instruction], _Padded | None]]] = {
    "set-dimension-size": _Expansion.set_size,
    "get-dimension-size": _Expansion.get_size,
    "elementwise": _Expansion.elementwise,
    "transpose": _Expansion.transpose,
    "reduce": _Expansion.reduce,
}


def _starts_from_identity(ins: Instruction) -> bool:
    """Return True if a reduction starts from its identity, which then may replace elements beyond the size as well."""
    from cyxla.xla.evaluator.scalar_computations import scalar_function  # most programs have no dynamic sizes

    initial = ins.operands[1]
    if initial.opcode != "constant":
        return False
    literal: Literal = initial.attrs["literal"]
    value, dtype = literal.array[()], literal.shape.dtype
    identities = {"add": 0, "multiply": 1, "or": 0, "and": -1 if dtype.is_signed else 2**dtype.bits - 1}
    if dtype is ElementType.PRED:
        identities = {"or": False, "and": True, "maximum": False, "minimum": True}
    elif dtype.is_float:
        identities = {**identities, "maximum": float("-inf"), "minimum": float("inf")}
    name = scalar_function(ins.called[0])
    return name in identities and bool(value == identities[name])
