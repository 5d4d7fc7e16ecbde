"""Helpers of rewriting passes: a driver for tables of rewrites, and short forms of new instructions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from cyxla.types import ElementType, Literal, Shape
from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.passes.engine.observer import replace

Rewrite: TypeAlias = Callable[[Instruction], Instruction | None]
MAX_FOLLOWED = 200  # instructions that `any_behind` inspects


def rewrite_each(module: HloModule, table: Mapping[str, Rewrite]) -> bool:
    """Replace each instruction by the result of the function for its opcode, unless that is None.

    Replaced instructions are left without users, for `dce` to remove.
    """
    changed = False
    for computation in module.post_order():
        changed |= rewrite_in(computation, table)
    return changed


def rewrite_in(computation: Computation, table: Mapping[str, Rewrite]) -> bool:
    """Replace instructions of one computation; see `rewrite_each`."""
    changed = False
    for ins in [i for i in computation.instructions if i.opcode in table]:
        rewrite = table[ins.opcode]
        new = rewrite(ins)
        if new is not None and new is not ins:
            replace(ins, new, rewrite)
            changed = True
    return changed


def any_behind(
    ins: Instruction, test: Callable[[Instruction], bool], followed: Callable[[Instruction], Iterable[Instruction]]
) -> bool:
    """Return whether a test holds for an instruction or one behind it; only the first `MAX_FOLLOWED` are inspected.

    Parameters
    ----------
    ins : Instruction
        Instruction to begin with.
    test : callable
        Function from an instruction to a bool.
    followed : callable
        Function from an instruction to the ones behind it to go on with.
    """
    stack, seen = [ins], {ins}
    while stack and len(seen) < MAX_FOLLOWED:
        inspected = stack.pop()
        if test(inspected):
            return True
        behind = [i for i in followed(inspected) if i not in seen]
        seen.update(behind)
        stack += behind
    return False


class Writer:
    """Builder of instructions in a computation, with shapes from the operands."""

    def __init__(self, computation: Computation) -> None:
        self.computation = computation

    def op(self, opcode: str, *operands: Instruction, shape: Shape | None = None, **attrs: Any) -> Instruction:
        """Add any instruction; by default its shape is the first operand's."""
        return self.computation.add(
            opcode, operands, attrs, shape=operands[0].shape.logical if shape is None else shape
        )

    def constant(self, value: Any, dtype: ElementType) -> Instruction:
        """Add a constant; `value` is a number or nested lists of numbers."""
        array = np.asarray(value).astype(dtype.numpy_dtype)
        return self.computation.add(
            "constant",
            (),
            {"literal": Literal(array, Shape.array(dtype, array.shape))},
            shape=Shape.array(dtype, array.shape),
        )

    def broadcast(self, x: Instruction, shape: Shape, dimensions: Sequence[int] = ()) -> Instruction:
        """Broadcast `x` to the sizes of `shape`; dimension i of `x` becomes ``dimensions[i]``."""
        if x.shape.dims == shape.dims:
            return x
        return self.op("broadcast", x, shape=shape.with_dtype(x.shape.dtype), dimensions=tuple(dimensions))

    def full(self, value: Any, shape: Shape) -> Instruction:
        """Add an array of one number."""
        return self.broadcast(self.constant(value, shape.dtype), shape.logical)

    def convert(self, x: Instruction, dtype: ElementType) -> Instruction:
        """Convert `x` to another element type."""
        return x if x.shape.dtype is dtype else self.op("convert", x, shape=x.shape.with_dtype(dtype))

    def iota(self, shape: Shape, dimension: int) -> Instruction:
        """Add the index of each element along a dimension."""
        return self.computation.add("iota", (), {"iota_dimension": dimension}, shape=shape.logical)

    def compare(self, direction: str, x: Instruction, y: Instruction) -> Instruction:
        """Compare element by element."""
        return self.op("compare", x, y, shape=x.shape.with_dtype(ElementType.PRED), direction=direction)

    def select(self, predicate: Instruction, x: Instruction, y: Instruction) -> Instruction:
        """Select `x` where the predicate holds, else `y`."""
        return self.op("select", predicate, x, y, shape=x.shape.logical)

    def reshape(self, x: Instruction, dims: Sequence[int]) -> Instruction:
        """Reshape `x` to other sizes."""
        return x if x.shape.dims == tuple(dims) else self.op("reshape", x, shape=x.shape.with_dims(dims))

    def transpose(self, x: Instruction, order: Sequence[int]) -> Instruction:
        """Transpose the dimensions of `x`."""
        if tuple(order) == tuple(range(x.shape.rank)):
            return x
        return self.op(
            "transpose", x, shape=x.shape.with_dims([x.shape.dims[d] for d in order]), dimensions=tuple(order)
        )

    def sum(self, x: Instruction, dimensions: Sequence[int]) -> Instruction:
        """Sum `x` over some dimensions."""
        dims = [d for i, d in enumerate(x.shape.dims) if i not in dimensions]
        zero = self.constant(0, x.shape.dtype)
        return self.computation.add(
            "reduce",
            (x, zero),
            {"dimensions": tuple(dimensions)},
            shape=x.shape.with_dims(dims),
            called=(self.adder(x.shape.dtype),),
        )

    def adder(self, dtype: ElementType) -> Computation:
        """Return the computation that adds two scalars, one for the module."""
        assert self.computation.module is not None
        computation = self.computation.module.computations.get(f"add_{dtype}")
        if (
            computation is not None
            and computation.root.opcode == "add"
            and computation.root.shape is Shape.array(dtype)
            and len(computation.instructions) == 3
        ):
            return computation

        def body(c: Computation) -> Instruction:
            x, y = (c.add("parameter", (), {"parameter_number": n}, shape=Shape.array(dtype)) for n in range(2))
            return c.add("add", (x, y), shape=Shape.array(dtype))

        return self.function(f"add_{dtype}", body)

    def function(self, name: str, body: Callable[[Computation], Instruction]) -> Computation:
        """Return a new computation; `body` fills it and returns its root."""
        module = self.computation.module
        assert module is not None
        later = dict(module.computations)
        function = Computation(name if name not in later else _unused_name(name, later))
        module.computations.clear()  # callees precede callers
        module.add_computation(function)
        module.computations.update(later)
        function.root = body(function)
        return function


def _unused_name(name: str, used: Mapping[str, Any]) -> str:
    n = 1
    while f"{name}.{n}" in used:
        n += 1
    return f"{name}.{n}"
