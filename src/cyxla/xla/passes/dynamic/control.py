"""Calls, loops, branches and tuples: bounded values are packed where they enter or leave a computation."""

from __future__ import annotations

from cyxla.types import Shape
from cyxla.xla.hlo import Instruction
from cyxla.xla.passes.dynamic.packing import Value, packed_shape
from cyxla.xla.passes.dynamic.padder import Padder, pads, refuse


def _argument(pad: Padder, ins: Instruction, value: Value, shape: Shape) -> Instruction:
    return pad.pack(pad.conform(value, shape.logical, ins))


@pads("tuple")
def tuple_(pad: Padder, ins: Instruction, *elements: Value) -> Value:
    """Return the elements."""
    return elements


@pads("get-tuple-element")
def get_tuple_element(pad: Padder, ins: Instruction, value: Value) -> Value:
    """Return an element."""
    if isinstance(value, tuple):
        return value[int(ins.attrs["index"])]
    return pad.copy(ins, [pad.anchor(value)])


@pads("call", "fusion")
def call(pad: Padder, ins: Instruction, *operands: Value) -> Value:
    """Call the rewritten computation."""
    parameters = [p.shape for p in ins.called[0].parameters]
    packed = [_argument(pad, ins, o, s) for o, s in zip(operands, parameters, strict=True)]
    shape = ins.shape.logical
    return pad.unpack(pad.copy(ins, packed, shape=packed_shape(shape)), shape)


@pads("while")
def while_(pad: Padder, ins: Instruction, state: Value) -> Value:
    """Carry the sizes beside the arrays."""
    shape = ins.shape.logical
    for computation in ins.called:
        if computation.parameters[0].shape.logical is not shape:
            refuse(ins, f"{computation.name} takes {computation.parameters[0].shape} where the loop carries {shape}")
    return pad.unpack(pad.copy(ins, [_argument(pad, ins, state, shape)], shape=packed_shape(shape)), shape)


@pads("conditional")
def conditional(pad: Padder, ins: Instruction, selector: Value, *operands: Value) -> Value:
    """Give each branch its packed operand."""
    shapes = [c.parameters[0].shape for c in ins.called]
    packed = [_argument(pad, ins, o, s) for o, s in zip(operands, shapes, strict=True)]
    shape = ins.shape.logical
    return pad.unpack(pad.copy(ins, [pad.anchor(selector), *packed], shape=packed_shape(shape)), shape)


@pads("opt-barrier")
def opt_barrier(pad: Padder, ins: Instruction, value: Value) -> Value:
    """Hold arrays and sizes together."""
    shape = ins.shape.logical
    packed = _argument(pad, ins, value, shape)
    return pad.unpack(pad.copy(ins, [packed], shape=packed.shape.logical), shape)


@pads("after-all")
def after_all(pad: Padder, ins: Instruction, *tokens: Value) -> Value:
    """Wait for tokens."""
    return pad.copy(ins, [pad.anchor(t) for t in tokens])


@pads("add-dependency")
def add_dependency(pad: Padder, ins: Instruction, value: Value, token: Value) -> Value:
    """Hold a value back until a token is there."""
    shape = ins.shape.logical
    packed = _argument(pad, ins, value, shape)
    return pad.unpack(pad.copy(ins, [packed, pad.anchor(token)], shape=packed.shape.logical), shape)
