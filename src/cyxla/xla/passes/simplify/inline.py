"""Inline the computations of call, fusion, map and async chains.

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

A map is inlined if every instruction of its computation applies to each element; other maps stay.
"""

from __future__ import annotations

from cyxla.errors import ResourceExhaustedError
from cyxla.types import Shape
from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.passes.engine.clone import copy_body, copy_instruction
from cyxla.xla.passes.engine.observer import replace

#: Nested calls may double the program at each level; more instructions than this are refused.
MAX_INSTRUCTIONS = 500_000
_SCALAR_ONLY = frozenset(
    {"parameter", "constant", "tuple", "get-tuple-element", "copy", "broadcast", "reshape", "opt-barrier"}
)


def run(module: HloModule) -> bool:
    """Inline every call, fusion, map and async chain that the entry reaches."""
    _check_growth(module)
    changed = False
    for computation in module.post_order():  # callees first: inlined bodies have no calls left
        constrained = [i for i in computation.instructions if i.control_predecessors]
        for ins in list(computation.instructions):
            rewrite = _REWRITES.get(ins.opcode)
            new = rewrite(ins) if rewrite is not None else None
            if new is None:
                continue
            replace(ins, new, f"{ins.opcode} -> its computation")
            changed = True
            for other in constrained:  # the replaced instruction is dead, so its control edges are obsolete
                other.control_predecessors = tuple(p for p in other.control_predecessors if p is not ins)
            if not ins.users:  # else its side effects would happen twice
                computation.remove(ins)
            _check_size(computation, len(computation.instructions))
    return changed


def _check_growth(module: HloModule) -> None:
    """Raise before anything is copied if the program would be too large; a few constants of maps are not counted."""
    sizes: dict[Computation, int] = {}  # instructions in a copy of a computation, its own calls inlined
    is_elementwise: dict[Computation, bool] = {}  # True if it applies to each element, its own calls inlined
    for computation in module.post_order():
        size, is_elementwise[computation] = len(computation.instructions), True
        for ins in computation.instructions:
            body = _inlined_computation(ins)
            if body is not None and (ins.opcode != "map" or is_elementwise[body]):
                size += sizes[body] - 1
                _check_size(computation, size)
            is_elementwise[computation] &= _is_elementwise(ins) or (body is not None and is_elementwise[body])
        sizes[computation] = size - len(computation.parameters)


def _check_size(computation: Computation, size: int) -> None:
    if size > MAX_INSTRUCTIONS:
        raise ResourceExhaustedError(
            f"inlining calls makes {computation.name} larger than {MAX_INSTRUCTIONS} instructions"
        )


def _inlined_computation(ins: Instruction) -> Computation | None:
    """Return the computation that would replace an instruction, or None."""
    start = _start(ins) if ins.opcode == "async-done" else ins if ins.opcode in _REWRITES else None
    return None if start is None else start.called[0]


def _inline_call(ins: Instruction) -> Instruction | None:
    return copy_body(ins.called[0], ins.computation, ins.operands)


def _inline_async(ins: Instruction) -> Instruction | None:
    start = _start(ins)
    return None if start is None else copy_body(start.called[0], ins.computation, start.operands)


def _start(done: Instruction) -> Instruction | None:
    """Return the async-start of a chain."""
    start = done.operands[0]
    while start.opcode == "async-update":
        start = start.operands[0]
    return start if start.opcode == "async-start" else None


def _inline_map(ins: Instruction) -> Instruction | None:
    body = ins.called[0]
    if not all(_is_elementwise(i) for i in body.instructions):
        return None
    copies: dict[Instruction, Instruction] = {}
    for inner in body.post_order():
        copies[inner] = _widen(inner, [copies[o] for o in inner.operands], ins)
    return copies[body.root]


def _is_elementwise(ins: Instruction) -> bool:
    if any(leaf.rank or not leaf.is_array for leaf in ins.shape.leaves()):
        return False
    if ins.opcode == "constant" and ins.shape.is_tuple:
        return False
    return ins.row.elementwise or ins.opcode in _SCALAR_ONLY or ins.opcode == "bitcast-convert"


def _widen(inner: Instruction, operands: list[Instruction], outer: Instruction) -> Instruction:
    """Apply an instruction of a map's computation to arrays."""
    target, dims = outer.computation, outer.shape.dims
    if inner.opcode == "parameter":
        return outer.operands[int(inner.attrs["parameter_number"])]
    if inner.opcode == "constant" and inner.shape.is_array:
        scalar = copy_instruction(inner, target, ())
        return target.add("broadcast", [scalar], {"dimensions": ()}, shape=inner.shape.with_dims(dims))
    if inner.opcode in ("broadcast", "reshape"):  # of a scalar to a scalar
        return operands[0]
    return copy_instruction(inner, target, operands, shape=_widened_shape(inner.shape, dims))


def _widened_shape(shape: Shape, dims: tuple[int, ...]) -> Shape:
    if shape.is_tuple:
        return Shape.tuple([_widened_shape(e, dims) for e in shape.elements])
    return shape.with_dims(dims)


_REWRITES = {"call": _inline_call, "fusion": _inline_call, "map": _inline_map, "async-done": _inline_async}

__all__ = ["MAX_INSTRUCTIONS", "run"]
