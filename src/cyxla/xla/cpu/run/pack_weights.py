"""Packing of known weights into panels, in the order in which kernels of dots and convolutions read them.

Before, where w is known::

    ROOT d = f32[128,768] dot(f32[128,512] x, f32[512,768] w), lhs_contracting_dims={1}, rhs_contracting_dims={0}

After, with panels of 64 columns::

    p = f32[12,512,64] transpose(f32[512,12,64] reshape(w)), dimensions={1,0,2}
    d = f32[128,12,64] dot(x, p), lhs_contracting_dims={1}, rhs_contracting_dims={1}
    ROOT r = f32[128,768] reshape(d)

The transpose moves to the prologue. Small weights are not packed: they are cache hits in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Final, TypeAlias

from cyxla.types import Shape
from cyxla.xla.cpu.dot.emit import panel_width
from cyxla.xla.cpu.kernel import machine
from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.passes.engine.rewrite_helpers import Writer
from cyxla.xla.passes.expand.dot import DotDims, has_packed_rhs
from cyxla.xla.passes.specialise import pack_convolution
from cyxla.xla.passes.specialise.known_values import Known

Rewrite: TypeAlias = Callable[[Instruction, Known], Instruction | None]

MIN_PACKED_BYTES: Final = 2 * machine.L1_BYTES  # bytes of weights


def pack(module: HloModule, known: Known) -> bool:
    """Rewrite the dots and convolutions with large known weights; return whether any was. `known` is not updated."""
    return _pack(module, known, _REWRITES)


def pack_for_any_level(module: HloModule, known: Known) -> bool:
    """Rewrite as `pack` does, but only into layouts that are the same for all processor levels."""
    return _pack(module, known, _REWRITES_FOR_ANY_LEVEL)


def _pack(module: HloModule, known: Known, rewrites: Mapping[str, Rewrite]) -> bool:
    changed = False
    for computation in module.post_order():
        for ins in list(computation.instructions):
            rewrite = rewrites.get(ins.opcode)
            new = rewrite(ins, known) if rewrite is not None and (ins.users or ins.is_root) else None
            if new is not None:
                computation.replace_all_uses(ins, new)
                changed = True
    return changed


def _dot(ins: Instruction, known: Known) -> Instruction | None:
    left, right = ins.operands
    if not known.depends(right) or left in known or has_packed_rhs(ins) or ins.control_predecessors:
        return None
    if len({ins.shape.dtype, left.shape.dtype, right.shape.dtype}) != 1:
        return None
    dims = DotDims.of(ins)
    is_trailing = dims.lhs_contracting == tuple(range(left.shape.rank))[-len(dims.lhs_contracting) :]
    if dims.rhs_batch or not dims.lhs_contracting or not is_trailing or right.shape.nbytes < MIN_PACKED_BYTES:
        return None
    m, k, n = (prod(s.dims[d] for d in part) for s, part in _dims_by_role(ins, dims))
    width = panel_width(ins.shape.dtype, m, k, n)
    return None if width is None else _write_packed_dot(ins, dims, (k, n, width))


def _convolution(ins: Instruction, known: Known) -> Instruction | None:
    is_packable = (
        known.depends(ins.operands[1])
        and ins.operands[0] not in known
        and ins.operands[1].shape.nbytes >= MIN_PACKED_BYTES
    )
    return pack_convolution.pack(ins) if is_packable and not ins.control_predecessors else None


def _dims_by_role(ins: Instruction, dims: DotDims) -> list[tuple[Shape, tuple[int, ...]]]:
    left, right = (o.shape for o in ins.operands)
    return [(left, dims.lhs_free), (right, dims.rhs_contracting), (right, dims.rhs_free)]


def _write_packed_dot(ins: Instruction, dims: DotDims, sizes: tuple[int, int, int]) -> Instruction:
    left, right = ins.operands
    k, n, width = sizes
    write = Writer(ins.computation)
    matrix = write.transpose(right, (*dims.rhs_contracting, *dims.rhs_free))
    panels = write.transpose(write.reshape(matrix, (k, n // width, width)), (1, 0, 2))
    rows = [left.shape.dims[d] for d in dims.lhs_free]
    attrs = {
        **ins.attrs,
        "lhs_contracting_dims": (len(rows),),
        "rhs_contracting_dims": (1,),
    }
    shape = ins.shape.with_dims([*rows, n // width, width])
    new = ins.computation.add("dot", (write.reshape(left, [*rows, k]), panels), attrs, shape=shape)
    return write.reshape(new, ins.shape.dims)


_REWRITES: Final = {"dot": _dot, "convolution": _convolution}
_REWRITES_FOR_ANY_LEVEL: Final = {"convolution": _convolution}
