"""Operations on bits."""

from cyxla.core.framework.op import op

op("BitwiseAnd", "x: T, y: T -> z: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
    commutative=True, shape=None,
)  # fmt: skip
op("BitwiseOr", "x: T, y: T -> z: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}", commutative=True,
    shape=None,
)  # fmt: skip
op("BitwiseXor", "x: T, y: T -> z: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
    commutative=True, shape=None,
)  # fmt: skip
op("Invert", "x: T -> y: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}", shape=None)
op("LeftShift", "x: T, y: T -> z: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}", shape=None)
op("PopulationCount", "x: T -> y: uint8", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}", shape=None)
op("RightShift", "x: T, y: T -> z: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}", shape=None)
