"""What rewriting passes share: a table driver, and short forms for the instructions they write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from cyxla.types import ElementType, Literal, Shape
from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.passes.engine.observer import replace

Rewrite: TypeAlias = Callable[[Instruction], Instruction | None]


def rewrite_each(module: HloModule, table: Mapping[str, Rewrite]) -> bool:
    """Replace each instruction by what the function for its opcode makes of it; None leaves it alone.

    What is replaced stays behind without readers, for `dce` to remove.
    """
    changed = False
    for computation in module.post_order():
        for ins in list(computation.instructions):
            rewrite = table.get(ins.opcode)
            new = rewrite(ins) if rewrite is not None else None
            if new is not None and new is not ins:
                replace(ins, new, rewrite)
                changed = True
    return changed


class Writer:
    """Adds instructions to a computation, with shapes worked out from the operands."""

    def __init__(self, computation: Computation) -> None:
        self.computation = computation

    def op(self, opcode: str, *operands: Instruction, shape: Shape | None = None, **attrs: Any) -> Instruction:
        """Any instruction; by default its shape is the first operand's."""
        return self.computation.add(
            opcode, operands, attrs, shape=operands[0].shape.logical if shape is None else shape
        )

    def constant(self, value: Any, dtype: ElementType) -> Instruction:
        """A constant; `value` is a number or nested lists of them."""
        array = np.asarray(value).astype(dtype.numpy_dtype)
        return self.computation.add(
            "constant",
            (),
            {"literal": Literal(array, Shape.array(dtype, array.shape))},
            shape=Shape.array(dtype, array.shape),
        )

    def broadcast(self, x: Instruction, shape: Shape, dimensions: Sequence[int] = ()) -> Instruction:
        """`x` spread over the sizes of `shape`; dimension i of `x` becomes ``dimensions[i]``."""
        if x.shape.dims == shape.dims:
            return x
        return self.op("broadcast", x, shape=shape.with_dtype(x.shape.dtype), dimensions=tuple(dimensions))

    def full(self, value: Any, shape: Shape) -> Instruction:
        """An array of one number."""
        return self.broadcast(self.constant(value, shape.dtype), shape.logical)

    def convert(self, x: Instruction, dtype: ElementType) -> Instruction:
        """`x` as another element type."""
        return x if x.shape.dtype is dtype else self.op("convert", x, shape=x.shape.with_dtype(dtype))

    def iota(self, shape: Shape, dimension: int) -> Instruction:
        """Each element's place along a dimension."""
        return self.computation.add("iota", (), {"iota_dimension": dimension}, shape=shape.logical)

    def compare(self, direction: str, x: Instruction, y: Instruction) -> Instruction:
        """A predicate an element."""
        return self.op("compare", x, y, shape=x.shape.with_dtype(ElementType.PRED), direction=direction)

    def select(self, predicate: Instruction, x: Instruction, y: Instruction) -> Instruction:
        """`x` where the predicate holds, else `y`."""
        return self.op("select", predicate, x, y, shape=x.shape.logical)

    def reshape(self, x: Instruction, dims: Sequence[int]) -> Instruction:
        """`x` with other sizes."""
        return x if x.shape.dims == tuple(dims) else self.op("reshape", x, shape=x.shape.with_dims(dims))

    def transpose(self, x: Instruction, order: Sequence[int]) -> Instruction:
        """`x` with its dimensions reordered."""
        if tuple(order) == tuple(range(x.shape.rank)):
            return x
        return self.op(
            "transpose", x, shape=x.shape.with_dims([x.shape.dims[d] for d in order]), dimensions=tuple(order)
        )

    def sum(self, x: Instruction, dimensions: Sequence[int]) -> Instruction:
        """The sum of `x` over some dimensions."""
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
        """A computation that adds two scalars; one for all who ask."""
        assert self.computation.module is not None
        found = self.computation.module.computations.get(f"add_{dtype}")
        if (
            found is not None
            and found.root.opcode == "add"
            and found.root.shape is Shape.array(dtype)
            and len(found.instructions) == 3
        ):
            return found

        def body(c: Computation) -> Instruction:
            x, y = (c.add("parameter", (), {"parameter_number": n}, shape=Shape.array(dtype)) for n in range(2))
            return c.add("add", (x, y), shape=Shape.array(dtype))

        return self.function(f"add_{dtype}", body)

    def function(self, name: str, body: Callable[[Computation], Instruction]) -> Computation:
        """A new computation; `body` fills it and gives its root."""
        module = self.computation.module
        assert module is not None
        later = dict(module.computations)
        made = Computation(name if name not in later else _free(name, later))
        module.computations.clear()  # callees stand before callers
        module.add_computation(made)
        module.computations.update(later)
        made.root = body(made)
        return made


def _free(name: str, taken: Mapping[str, Any]) -> str:
    n = 1
    while f"{name}.{n}" in taken:
        n += 1
    return f"{name}.{n}"
