"""Rewrite products with sparse constant matrices as weighted sums of a few gathers, as in image resizing.

Before::

    w = f32[224,512] ..        (a constant expression; at most two numbers of each column are not zero)
    ROOT r = f32[512,64] dot(w, f32[224,64] x), lhs_contracting_dims={0}, rhs_contracting_dims={0}

After::

    first = f32[512,64] gather(x, s32[512] constant), ..
    second = f32[512,64] gather(x, s32[512] constant), ..
    ROOT r = f32[512,64] add(multiply(broadcast(f32[512] constant), first), multiply(.., second))

Zero times infinity is NaN, so this is right only if no element of x is infinite, NaN, or so large that a sum overflows:
a conditional tests for that, and computes the products in the other case. Several such products of one array, along
different dimensions, are rewritten together, the innermost dimensions first.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from cyxla.records import dataclass
from cyxla.types import ElementType, Literal, Shape
from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.passes.engine.clone import copy_instruction
from cyxla.xla.passes.engine.observer import replace
from cyxla.xla.passes.engine.rewrite_helpers import Writer
from cyxla.xla.passes.simplify.constant_folding import NOT_FOLDED, work

MAX_TAPS: Final = 8  # nonzero elements of a column
_MIN_GAIN: Final = 8  # least ratio of a column's length to its nonzero elements
_MIN_SIZE: Final = 1 << 14  # elements of a result that is worth the rewrite
_MAX_WORK: Final = 8_000_000  # element operations to evaluate a matrix
_NARROW: Final = 16  # elements inside a dimension that are too few for a loop of their own
_MAX_TABLE: Final = 1 << 16  # elements of one table


@dataclass
class _Step:
    """One product along a dimension of the base by a matrix [contracted, free]."""

    dot: Instruction
    axis: int
    matrix: np.ndarray[Any, Any]
    taps: int


def run(module: HloModule) -> bool:
    """Rewrite every chain of such products."""
    changed = False
    matrices: dict[Instruction, np.ndarray[Any, Any] | None] = {}
    done: set[Instruction] = set()
    for computation in module.post_order():
        for ins in reversed(list(computation.instructions)):
            if ins in done or ins.opcode != "dot" or not (ins.users or ins.is_root) or ins.control_predecessors:
                continue
            base, steps, axes = _chain(ins, matrices)
            if steps:
                _rewrite(ins, base, steps, axes)
                done.update(s.dot for s in steps)
                changed = True
    return changed


def _chain(ins: Instruction, matrices: dict[Instruction, Any]) -> tuple[Instruction, list[_Step], list[int]]:
    """Return the base of a chain of products, the products, first one first, and the order of the base's dimensions."""
    dots: list[tuple[Instruction, int, np.ndarray[Any, Any]]] = []  # with the side of the base
    top = ins
    while top.opcode == "dot" and (top is ins or (len(top.users) == 1 and not top.is_root)):
        side = next((s for s in (0, 1) if _is_plain(top, s) and _matrix(top, 1 - s, matrices) is not None), None)
        if side is None:
            break
        matrix = _matrix(top, 1 - side, matrices)
        assert matrix is not None
        dots.append((top, side, matrix))
        top = top.operands[side]
    while dots:
        axes = list(range(top.shape.rank))
        steps = []
        for dot, side, matrix in reversed(dots):
            (contracted,) = dot.attrs["lhs_contracting_dims" if side == 0 else "rhs_contracting_dims"]
            axis = axes.pop(contracted)
            axes = [*axes, axis] if side == 0 else [axis, *axes]
            steps.append(_Step(dot, axis, matrix, int((matrix != 0).sum(0).max(initial=0))))
        if len({s.axis for s in steps}) == len(steps):
            return top, steps, axes
        top = dots.pop()[0]
    return top, [], []


def _is_plain(dot: Instruction, side: int) -> bool:
    """Return True if a product is one of an array by a matrix, in one float type."""
    a, shapes = dot.attrs, [dot.shape, *(o.shape for o in dot.operands)]
    matrix = dot.operands[1 - side].shape
    if a["lhs_batch_dims"] or len(a["lhs_contracting_dims"]) != 1 or matrix.rank != 2 or dot.shape.size < _MIN_SIZE:
        return False
    return dot.shape.dtype in (ElementType.F32, ElementType.F64) and len({s.dtype for s in shapes}) == 1


def _matrix(dot: Instruction, side: int, matrices: dict[Instruction, Any]) -> np.ndarray[Any, Any] | None:
    """Return an operand as [contracted, free] if it is constant and sparse."""
    ins = dot.operands[side]
    if ins not in matrices:
        matrices[ins] = _evaluate(ins)
    value = matrices[ins]
    if value is None:
        return None
    (contracted,) = dot.attrs["lhs_contracting_dims" if side == 0 else "rhs_contracting_dims"]
    matrix: np.ndarray[Any, Any] = value if contracted == 0 else value.T
    taps = (matrix != 0).sum(0).max(initial=0)
    worth = taps <= MAX_TAPS and taps * _MIN_GAIN <= matrix.shape[0] and np.isfinite(matrix).all()
    return matrix if worth and 0 not in matrix.shape else None


def _evaluate(root: Instruction) -> np.ndarray[Any, Any] | None:
    from cyxla.xla.evaluator import evaluate_instruction  # most programs have nothing to evaluate

    cone = _cone(root)
    if cone is None:
        return None
    values: dict[Instruction, Any] = {}
    for ins in cone:
        if ins.opcode == "constant":
            values[ins] = ins.attrs["literal"].array
        else:
            values[ins] = evaluate_instruction(ins, *(values[o] for o in ins.operands))
    value = values[root]
    return value if isinstance(value, np.ndarray) else None


def _cone(root: Instruction) -> list[Instruction] | None:
    """Return the instructions that an instruction depends on, operands first, if they are constant and cheap."""
    cone: dict[Instruction, None] = {}
    stack, total = [(root, False)], 0
    while stack:
        ins, ready = stack.pop()
        if ready:
            cone.setdefault(ins)
            continue
        if ins in cone:
            continue
        if ins.opcode != "constant":
            total += work(ins)
            if ins.opcode in NOT_FOLDED or ins.has_side_effect or not ins.shape.is_array or total > _MAX_WORK:
                return None
        stack.append((ins, True))
        stack += [(o, False) for o in ins.operands if o not in cone]
    return list(cone)


# ------------------------------------------------------------------------------------------------------------ rewriting
def _rewrite(ins: Instruction, base: Instruction, steps: list[_Step], axes: list[int]) -> None:
    root, order = ins, axes
    users = list(ins.users)
    if len(users) == 1 and users[0].opcode == "transpose" and not ins.is_root and not users[0].control_predecessors:
        root = users[0]
        order = [axes[d] for d in root.attrs["dimensions"]]
    write = Writer(ins.computation)
    dtype, shape = ins.shape.dtype, root.shape.logical
    gathers = write.function("few", lambda c: _as_gathers(c, base.shape.logical, steps, order, shape))
    dots = write.function("all", lambda c: _as_dots(c, base, steps, root))
    most = write.computation.add(
        "reduce",
        (write.op("abs", base), write.constant(0, dtype)),
        {"dimensions": tuple(range(base.shape.rank))},
        shape=Shape.array(dtype),
        called=(_maximum(write, dtype),),
    )
    is_small = write.compare("LE", most, write.constant(_bound(steps, dtype), dtype))
    new = write.computation.add("conditional", (is_small, base, base), {}, shape=shape, called=(gathers, dots))
    replace(root, new, "dot with a constant matrix of few elements that are not zero -> gathers")


def _bound(steps: list[_Step], dtype: ElementType) -> float:
    """Return the largest magnitude of elements for which no sum overflows, with some margin."""
    limit = float(np.finfo(dtype.numpy_dtype).max) / 2
    for step in steps:
        limit /= max(1.0, 2.0 * float(np.abs(step.matrix.astype(np.float64)).sum(0).max()))
    return limit


def _maximum(write: Writer, dtype: ElementType) -> Computation:
    def body(c: Computation) -> Instruction:
        x, y = (c.add("parameter", (), {"parameter_number": n}, shape=Shape.array(dtype)) for n in range(2))
        return c.add("maximum", (x, y), shape=Shape.array(dtype))

    return write.function("largest", body)


def _as_dots(c: Computation, base: Instruction, steps: list[_Step], root: Instruction) -> Instruction:
    """Write the products as they were."""
    copies = {base: c.add("parameter", (), {"parameter_number": 0}, shape=base.shape.logical)}
    for step in steps:
        for o in step.dot.operands:
            for inner in () if o in copies else _cone(o) or ():
                copies.setdefault(inner, copy_instruction(inner, c, [copies[p] for p in inner.operands]))
        copies[step.dot] = copy_instruction(step.dot, c, [copies[o] for o in step.dot.operands])
    last = copies[steps[-1].dot]
    if root is not steps[-1].dot:
        last = copy_instruction(root, c, [last])
    return last


def _as_gathers(c: Computation, base: Shape, steps: list[_Step], order: list[int], shape: Shape) -> Instruction:
    """Write the products as sums of a few elements."""
    write = Writer(c)
    x = c.add("parameter", (), {"parameter_number": 0}, shape=base)

    def cost(step: _Step) -> tuple[bool, float]:
        return prod(base.dims[step.axis + 1 :]) >= _NARROW, step.matrix.shape[1] / step.matrix.shape[0]

    for n, step in enumerate(sorted(steps, key=cost)):
        if n:  # else fusion would recompute every sum for each of its users
            x = write.op("opt-barrier", x)
        x = _apply(write, x, step)
    return write.op("transpose", x, shape=shape, dimensions=tuple(order))


def _apply(write: Writer, x: Instruction, step: _Step) -> Instruction:
    """Write one product along a dimension, which keeps its position."""
    dims, axis, dtype = x.shape.dims, step.axis, x.shape.dtype
    count, size = step.matrix.shape
    shape = Shape.array(dtype, (*dims[:axis], size, *dims[axis + 1 :]))
    if not step.taps:  # all zeros
        return write.full(0, shape)
    before, after = prod(dims[:axis]), prod(dims[axis + 1 :])
    indices, weights = _tables(step)
    if after < _NARROW and size * after <= _MAX_TABLE:  # one long row of all elements inside the dimension
        indices = (indices[:, :, None] * after + np.arange(after)).reshape(step.taps, -1)
        weights = np.repeat(weights, after, axis=1)
        count, size, after = count * after, size * after, 1
    flat = write.reshape(x, (before, count, after))
    rows = flat.shape.with_dims((before, size, after))
    total = write.full(0, rows)
    for at, weight in zip(indices, weights, strict=True):
        table = _constant(write, at.astype(np.int32), ElementType.S32)
        gathered = write.op(
            "gather", flat, table, shape=rows, offset_dims=(0, 2), collapsed_slice_dims=(1,), start_index_map=(1,),
            operand_batching_dims=(), start_indices_batching_dims=(), index_vector_dim=1,
            slice_sizes=(before, 1, after), indices_are_sorted=False,
        )  # fmt: skip
        factor = write.broadcast(_constant(write, weight, dtype), rows, (1,))
        total = write.op("add", total, write.op("multiply", gathered, factor))
    return write.reshape(total, shape.dims)


def _constant(write: Writer, array: np.ndarray[Any, Any], dtype: ElementType) -> Instruction:
    shape = Shape.array(dtype, array.shape)
    return write.computation.add("constant", (), {"literal": Literal(array, shape)}, shape=shape)


def _tables(step: _Step) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return row and weight of each tap of each column; columns with fewer taps have weights of zero."""
    indices = np.zeros((step.taps, step.matrix.shape[1]), np.int64)
    weights = np.zeros(indices.shape, step.matrix.dtype)
    for column in range(step.matrix.shape[1]):
        (rows,) = np.nonzero(step.matrix[:, column])
        indices[:, column] = rows[-1] if len(rows) else 0
        indices[: len(rows), column] = rows
        weights[: len(rows), column] = step.matrix[rows, column]
    return indices, weights
