"""Shapes that state the dimensions as dynamic that have a size of their own, and no others.

XLA tracks dynamic sizes beside shapes, so its programs may state fewer dimensions as dynamic, or more::

    d = f32[6] set-dimension-size(x, n), dimensions={0}        becomes  f32[<=6]
    e = f32[3,2] reshape(d), inferred_dimension=0              becomes  f32[<=3,2]
    o = f32[<=6] broadcast(one), dimensions={}                 becomes  f32[6]

The result of the entry stays as stated, and so do parameters and what control flow carries, which may only gain
dynamic dimensions.
"""

from __future__ import annotations

from operator import is_

from cyxla.types import UNBOUNDED, Shape
from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.hlo.reshape_groups import dynamic_result, reshape_groups
from cyxla.xla.hlo.shape_inference import infer_instruction

# Opcodes whose results have the dynamic dimensions that they state.
_AS_STATED = frozenset({"parameter", "dynamic-reshape", "custom-call", "infeed", "recv", "rng-bit-generator"})


def has_dynamic(computation: Computation) -> bool:
    """Return whether any array of a computation has, or may have, a dynamic dimension."""
    return any(i.shape.is_dynamic or i.opcode == "set-dimension-size" for i in computation.instructions)


def state_sizes(module: HloModule) -> bool:
    """State the dimensions of a module as dynamic that have a size of their own; return whether any shape changed."""
    computations = module.post_order()
    if not any(map(has_dynamic, computations)):
        return False
    changed = False
    while _state_all(module, computations):  # until nothing changes: loops carry sizes from their bodies
        changed = True
    return changed


def _state_all(module: HloModule, computations: list[Computation]) -> bool:
    changed = False
    for computation in reversed(computations):  # callers first
        for ins in computation.post_order():
            if ins is not module.entry.root:
                changed = _state(ins, _inferred(ins)) or changed
            for parameter, shape in _arguments(ins):
                changed = _state(parameter, _union(parameter.shape, shape)) or changed
    return changed


def _state(ins: Instruction, shape: Shape) -> bool:
    """Give an instruction a shape, unless it has the same dynamic dimensions."""
    if ins.shape is shape or [s.dynamic for s in ins.shape.leaves()] == [s.dynamic for s in shape.leaves()]:
        return False
    ins.shape = shape
    return True


def _union(stated: Shape, shape: Shape) -> Shape:
    """Return a shape with the dynamic dimensions of two; the layout is lost if there are more than before."""
    if stated.is_tuple:
        parts = [_union(s, o) for s, o in zip(stated.elements, shape.elements, strict=True)]
        return stated if all(map(is_, parts, stated.elements)) else Shape.tuple(parts)
    if not stated.is_array or UNBOUNDED in stated.dims:
        return stated
    sizes = zip(stated.dynamic, shape.dynamic, stated.dims, shape.dims, strict=True)
    flags = [m or (o and n == b) for m, o, n, b in sizes]
    return stated if tuple(flags) == tuple(stated.dynamic) else stated.logical.with_dims(stated.dims, flags)


def _inferred(ins: Instruction) -> Shape:
    """Return the shape of an instruction with the dynamic dimensions that its operands give."""
    sources = (ins.shape, *(o.shape for o in ins.operands), *(c.root.shape for c in ins.called))
    if ins.opcode in _AS_STATED or (ins.opcode != "set-dimension-size" and not any(s.is_dynamic for s in sources)):
        return ins.shape
    if any(UNBOUNDED in leaf.dims for s in sources for leaf in s.leaves()):
        return ins.shape
    return _RULES.get(ins.opcode, infer_instruction)(ins)


def _resized(ins: Instruction) -> Shape:
    """Return the shape of a set-dimension-size: a dimension that is set to its bound is static."""
    (along,), size = ins.attrs["dimensions"], ins.operands[1]
    shape = infer_instruction(ins)
    if size.opcode == "constant" and int(size.attrs["literal"].array) >= shape.dims[along]:
        return shape.with_dims(shape.dims, [m and d != along for d, m in enumerate(shape.dynamic)])
    return shape


def _static(ins: Instruction) -> Shape:
    return ins.shape.static


def _broadcast(ins: Instruction) -> Shape:
    operand, flags = ins.operands[0].shape, [False] * ins.shape.rank
    for k, d in enumerate(ins.attrs["dimensions"]):
        flags[d] = operand.dynamic[k]
    return ins.shape.logical.with_dims(ins.shape.dims, flags)


def _reshape(ins: Instruction) -> Shape:
    operand, shape = ins.operands[0].shape, ins.shape
    if operand.dtype.bits != shape.dtype.bits:  # a bitcast
        return shape
    flags = [False] * shape.rank
    for group in reshape_groups(operand.dims, shape.dims):
        if any(operand.dynamic[d] for d in group.operand):
            d = dynamic_result(group, shape, ins.attrs.get("inferred_dimension"))
            if d is not None:
                flags[d] = True
    return shape if flags == list(shape.dynamic) else shape.logical.with_dims(shape.dims, flags)


def _joint(ins: Instruction) -> Shape:
    """Return results that all have the dynamic dimensions of each."""
    shape = infer_instruction(ins)
    if not shape.is_tuple:
        return shape
    every = [any(flags) for flags in zip(*(e.dynamic for e in shape.elements), strict=True)]
    return Shape.tuple([e.with_dims(e.dims, every) for e in shape.elements])


def _batch_norm(ins: Instruction) -> Shape:
    """Return the shape with the features of any operand, and the other dimensions of arrays and gradients."""
    feature, shape = int(ins.attrs["feature_index"]), ins.shape
    rank = ins.operands[0].shape.rank
    wide = [o.shape.dynamic for o in ins.operands if o.shape.rank == rank]
    flags = [any(own) for own in zip(*wide, strict=True)]
    flags[feature] = flags[feature] or any(o.shape.is_dynamic for o in ins.operands if o.shape.rank != rank)
    first, *columns = shape.elements if shape.is_tuple else (shape,)
    results = [
        first.logical.with_dims(first.dims, flags),
        *(c.logical.with_dims(c.dims, flags[feature : feature + 1]) for c in columns),
    ]
    return Shape.tuple(results) if shape.is_tuple else results[0]


def _solution(ins: Instruction) -> Shape:
    """Return the shape of a right-hand side with the dynamic batch and order of the system."""
    (a, b), rank = (o.shape for o in ins.operands), ins.shape.rank
    flags = [m or (o and d < rank - 2) for d, (m, o) in enumerate(zip(b.dynamic, a.dynamic, strict=True))]
    along = rank - 2 if ins.attrs["left_side"] else rank - 1
    flags[along] = flags[along] or any(a.dynamic[-2:])
    return ins.shape.logical.with_dims(ins.shape.dims, flags)


def _square(ins: Instruction) -> Shape:
    *batch, rows, columns = ins.operands[0].shape.dynamic
    return ins.shape.logical.with_dims(ins.shape.dims, [*batch, rows or columns, rows or columns])


def _while(ins: Instruction) -> Shape:
    return _union(_union(ins.shape, ins.operands[0].shape), ins.called[0].root.shape)


def _called(ins: Instruction) -> Shape:
    shape = ins.shape
    for computation in ins.called:
        shape = _union(shape, computation.root.shape)
    return shape


_RULES = {
    "set-dimension-size": _resized, "broadcast": _broadcast, "reshape": _reshape, "bitcast": _reshape, "while": _while,
    "sort": _joint, "scatter": _joint, "cholesky": _square, "triangular-solve": _solution,
    "batch-norm-training": _batch_norm, "batch-norm-inference": _batch_norm, "batch-norm-grad": _batch_norm,
    "call": _called, "conditional": _called, "fusion": _called, "constant": _static, "iota": _static, "rng": _static,
}  # fmt: skip


def _arguments(ins: Instruction) -> list[tuple[Instruction, Shape]]:
    """Return the parameters of called computations that take arrays, and the shapes of their arguments."""
    if ins.opcode == "while":
        return [(c.parameters[0], ins.shape) for c in ins.called]
    if ins.opcode == "conditional":
        return [(c.parameters[0], o.shape) for c, o in zip(ins.called, ins.operands[1:], strict=True)]
    if ins.opcode == "scan":
        (along,), count = ins.attrs["dimensions"], len(ins.operands) - ins.attrs["num_carries"]
        shapes = [_without(o.shape, along) if k < count else o.shape for k, o in enumerate(ins.operands)]
        return list(zip(ins.called[0].parameters, shapes, strict=True))
    if ins.opcode not in ("call", "fusion"):
        return []
    return [(p, o.shape) for c in ins.called for p, o in zip(c.parameters, ins.operands, strict=True)]


def _without(shape: Shape, along: int) -> Shape:
    kept = [d for d in range(shape.rank) if d != along]
    return shape.logical.with_dims([shape.dims[d] for d in kept], [shape.dynamic[d] for d in kept])
