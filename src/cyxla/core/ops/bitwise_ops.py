"""Operations on bits."""

from cyxla.core.framework.common_shape_fns import broadcast_binary_shape, unchanged_shape
from cyxla.core.framework.op import op

op("BitwiseAnd", "x: T, y: T -> z: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
    commutative=True, shape=broadcast_binary_shape,
)  # fmt: skip
op("BitwiseOr", "x: T, y: T -> z: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}", commutative=True,
    shape=broadcast_binary_shape,
)  # fmt: skip
op("BitwiseXor", "x: T, y: T -> z: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
    commutative=True, shape=broadcast_binary_shape,
)  # fmt: skip
op("Invert", "x: T -> y: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}", shape=unchanged_shape)
op("LeftShift", "x: T, y: T -> z: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
    shape=broadcast_binary_shape,
)  # fmt: skip
op("PopulationCount", "x: T -> y: uint8", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
    shape=unchanged_shape,
)  # fmt: skip
op("RightShift", "x: T, y: T -> z: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
    shape=broadcast_binary_shape,
)  # fmt: skip
