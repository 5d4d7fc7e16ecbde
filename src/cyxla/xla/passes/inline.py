"""Puts the bodies of call, fusion, map and async chains in the place of the call.

Before::

    double {
      a = f32[] parameter(0)
      ROOT b = f32[] add(a, a)
    }
    ENTRY main {
      x = f32[4] parameter(0)
      ROOT y = f32[4] map(x), dimensions={0}, to_apply=double
    }

After::

    ENTRY main {
      x = f32[4] parameter(0)
      ROOT y = f32[4] add(x, x)
    }

A map is inlined when every instruction of its function works element by element; another map stays.
"""

from __future__ import annotations

from cyxla.errors import ResourceExhaustedError
from cyxla.types import Shape
from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.passes.clone import copy_body, copy_instruction

#: Calls of calls of calls may double the program at each level; beyond this many instructions it is refused.
MAX_INSTRUCTIONS = 500_000
_SCALAR_ONLY = frozenset(
    {"parameter", "constant", "tuple", "get-tuple-element", "copy", "broadcast", "reshape", "opt-barrier"}
)


def run(module: HloModule) -> bool:
    """Inline every call, fusion, map and async chain that the entry reaches."""
    changed = False
    for computation in module.post_order():  # callees first: what is inlined has nothing left to inline
        ordered = [i for i in computation.instructions if i.control_predecessors]
        for ins in list(computation.instructions):
            rewrite = _REWRITES.get(ins.opcode)
            new = rewrite(ins) if rewrite is not None else None
            if new is None:
                continue
            computation.replace_all_uses(ins, new)
            changed = True
            for other in ordered:  # what was replaced is dead and orders nothing any more
                other.control_predecessors = tuple(p for p in other.control_predecessors if p is not ins)
            if not ins.users:  # else its side effects, if it has any, would happen twice
                computation.remove(ins)
            if len(computation.instructions) > MAX_INSTRUCTIONS:
                raise ResourceExhaustedError(
                    f"inlining calls makes {computation.name} larger than {MAX_INSTRUCTIONS} instructions"
                )
    return changed


def _inline_call(ins: Instruction) -> Instruction | None:
    return copy_body(ins.called[0], ins.computation, ins.operands)


def _inline_async(ins: Instruction) -> Instruction | None:
    start = ins.operands[0]
    while start.opcode == "async-update":
        start = start.operands[0]
    if start.opcode != "async-start":
        return None
    return copy_body(start.called[0], ins.computation, start.operands)


def _inline_map(ins: Instruction) -> Instruction | None:
    body = ins.called[0]
    if not all(_is_elementwise(i) for i in body.instructions):
        return None
    made: dict[Instruction, Instruction] = {}
    for inner in body.post_order():
        made[inner] = _widen(inner, [made[o] for o in inner.operands], ins)
    return made[body.root]


def _is_elementwise(ins: Instruction) -> bool:
    if any(leaf.rank or not leaf.is_array for leaf in ins.shape.leaves()):
        return False
    if ins.opcode == "constant" and ins.shape.is_tuple:
        return False
    return ins.row.elementwise or ins.opcode in _SCALAR_ONLY or ins.opcode == "bitcast-convert"


def _widen(inner: Instruction, operands: list[Instruction], outer: Instruction) -> Instruction:
    """The instruction of a map's function, applied to arrays."""
    target, dims = outer.computation, outer.shape.dims
    if inner.opcode == "parameter":
        return outer.operands[int(inner.attrs["parameter_number"])]
    if inner.opcode == "constant" and inner.shape.is_array:
        scalar = copy_instruction(inner, target, ())
        return target.add("broadcast", [scalar], {"dimensions": ()}, shape=inner.shape.with_dims(dims))
    if inner.opcode in ("broadcast", "reshape"):  # from scalar to scalar
        return operands[0]
    return copy_instruction(inner, target, operands, shape=_widened(inner.shape, dims))


def _widened(shape: Shape, dims: tuple[int, ...]) -> Shape:
    if shape.is_tuple:
        return Shape.tuple([_widened(e, dims) for e in shape.elements])
    return shape.with_dims(dims)


_REWRITES = {"call": _inline_call, "fusion": _inline_call, "map": _inline_map, "async-done": _inline_async}

__all__ = ["MAX_INSTRUCTIONS", "run"]
