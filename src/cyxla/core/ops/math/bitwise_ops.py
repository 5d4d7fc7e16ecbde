"""Bitwise operations."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import broadcast_binary_shape, elementwise_shape

op("BitwiseAnd", "x: T, y: T -> z: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
    commutative=True, shape=broadcast_binary_shape, doc="Compute the bitwise and.",
)  # fmt: skip
op("BitwiseOr", "x: T, y: T -> z: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}", commutative=True,
    shape=broadcast_binary_shape, doc="Compute the bitwise or.",
)  # fmt: skip
op("BitwiseXor", "x: T, y: T -> z: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
    commutative=True, shape=broadcast_binary_shape, doc="Compute the bitwise exclusive or.",
)  # fmt: skip
op("Invert", "x: T -> y: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}", shape=elementwise_shape,
    doc="Invert all bits.",
)  # fmt: skip
op("LeftShift", "x: T, y: T -> z: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
    shape=broadcast_binary_shape, doc="Shift bits to the left.",
)  # fmt: skip
op("PopulationCount", "x: T -> y: uint8", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
    shape=elementwise_shape, doc="Count the set bits.",
)  # fmt: skip
op("RightShift", "x: T, y: T -> z: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
    shape=broadcast_binary_shape, doc="Shift bits to the right; signed integers keep their sign.",
)  # fmt: skip
