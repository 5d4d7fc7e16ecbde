"""Expand scan into a while loop over slices.

Before::

    ROOT r = (f32[6,2], f32[2]) scan(x, z), dimensions={0}, num_carries=1, to_apply=step

After::

    init = (s32[], f32[6,2], f32[6,2], f32[2]) tuple(0, x, zeros, z)
    w = while(init), condition=scan_more, body=scan_step
    ROOT r = (f32[6,2], f32[2]) tuple(w.2, w.3)

where scan_step reads slice i of x, applies `step` to it and to the carry, and writes the result into slice i of the
stack.
"""

from __future__ import annotations

from cyxla.types import ElementType, Shape
from cyxla.xla.hlo import Computation, HloModule, Instruction
from cyxla.xla.passes.engine.clone import copy_body
from cyxla.xla.passes.engine.rewrite_helpers import Writer, rewrite_each


def run(module: HloModule) -> bool:
    """Expand scan."""
    return rewrite_each(module, {"scan": _scan})


def _scan(ins: Instruction) -> Instruction | None:
    carried, axis = ins.attrs["num_carries"], ins.attrs["dimensions"][0]
    count = len(ins.operands) - carried
    shapes = ins.shape.elements if ins.shape.is_tuple else (ins.shape,)
    stacked = shapes[: len(shapes) - carried]
    if not count or any(not o.shape.is_array or o.shape.is_dynamic for o in ins.operands):
        return None
    write, length = Writer(ins.computation), ins.operands[0].shape.dims[axis]
    stacks = [write.full(0, s) for s in stacked]
    inputs, carries = ins.operands[:count], ins.operands[count:]
    if length == 0:
        results = [*stacks, *carries]
    else:
        start = (write.constant(0, ElementType.S32), *inputs, *stacks, *carries)
        state = Shape.tuple([x.shape.logical for x in start])
        loop = _Loop(ins, state, count, len(stacks), length, axis)
        called = (write.function("scan_step", loop.body), write.function("scan_more", loop.condition))
        init = write.op("tuple", *start, shape=state)
        done = ins.computation.add("while", (init,), shape=state, called=called)
        results = [_element(write, done, n) for n in range(1 + count, len(start))]
    return write.op("tuple", *results, shape=ins.shape) if ins.shape.is_tuple else results[0]


def _element(write: Writer, tuple_: Instruction, index: int) -> Instruction:
    return write.op("get-tuple-element", tuple_, shape=tuple_.shape.elements[index], index=index)


class _Loop:
    """The condition and the body of the loop."""

    def __init__(self, ins: Instruction, state: Shape, inputs: int, stacks: int, length: int, axis: int) -> None:
        self.ins, self.state, self.inputs, self.stacks = ins, state, inputs, stacks
        self.length, self.axis = length, axis

    def condition(self, c: Computation) -> Instruction:
        """Write the condition: there are slices left."""
        write = Writer(c)
        state = c.add("parameter", (), {"parameter_number": 0}, shape=self.state)
        attrs = {"direction": "LT"}
        operands = (_element(write, state, 0), write.constant(self.length, ElementType.S32))
        return c.add("compare", operands, attrs, shape=Shape.array(ElementType.PRED))

    def body(self, c: Computation) -> Instruction:
        """Write the body, which processes one slice."""
        write = Writer(c)
        state = c.add("parameter", (), {"parameter_number": 0}, shape=self.state)
        parts = [_element(write, state, n) for n in range(len(self.state.elements))]
        number, inputs = parts[0], parts[1 : 1 + self.inputs]
        stacks, carries = parts[1 + self.inputs : 1 + self.inputs + self.stacks], parts[1 + self.inputs + self.stacks :]
        at = number
        if self.ins.attrs["is_reverse"]:
            at = write.op("subtract", write.constant(self.length - 1, ElementType.S32), number)
        slices = [self._read_slice(write, x, at) for x in inputs]
        result = copy_body(self.ins.called[0], c, (*slices, *carries))
        results = (
            [_element(write, result, n) for n in range(len(result.shape.elements))]
            if result.shape.is_tuple
            else [result]
        )
        stacks_after = [self._write_slice(write, s, m, at) for s, m in zip(stacks, results[: self.stacks], strict=True)]
        after = write.op("add", number, write.constant(1, ElementType.S32))
        return write.op("tuple", after, *inputs, *stacks_after, *results[self.stacks :], shape=self.state)

    def _starts(self, write: Writer, rank: int, at: Instruction) -> list[Instruction]:
        zero = write.constant(0, ElementType.S32)
        return [at if d == self.axis else zero for d in range(rank)]

    def _read_slice(self, write: Writer, x: Instruction, at: Instruction) -> Instruction:
        sizes = tuple(1 if d == self.axis else n for d, n in enumerate(x.shape.dims))
        slice_ = write.op(
            "dynamic-slice",
            x,
            *self._starts(write, x.shape.rank, at),
            shape=x.shape.with_dims(sizes),
            dynamic_slice_sizes=sizes,
        )
        return write.reshape(slice_, [n for d, n in enumerate(x.shape.dims) if d != self.axis])

    def _write_slice(self, write: Writer, stack: Instruction, value: Instruction, at: Instruction) -> Instruction:
        sizes = [1 if d == self.axis else n for d, n in enumerate(stack.shape.dims)]
        return write.op(
            "dynamic-update-slice", stack, write.reshape(value, sizes), *self._starts(write, stack.shape.rank, at)
        )
