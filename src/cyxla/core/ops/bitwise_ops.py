"""Operations on bits."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import broadcast_binary_shape, unchanged_shape

op("BitwiseAnd", "x: T, y: T -> z: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
    commutative=True, shape=broadcast_binary_shape, doc="Bits that both have.",
)  # fmt: skip
op("BitwiseOr", "x: T, y: T -> z: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}", commutative=True,
    shape=broadcast_binary_shape, doc="Bits that either has.",
)  # fmt: skip
op("BitwiseXor", "x: T, y: T -> z: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
    commutative=True, shape=broadcast_binary_shape, doc="Bits that just one has.",
)  # fmt: skip
op("Invert", "x: T -> y: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}", shape=unchanged_shape,
    doc="All bits flipped.",
)  # fmt: skip
op("LeftShift", "x: T, y: T -> z: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
    shape=broadcast_binary_shape, doc="Bits shifted to the left.",
)  # fmt: skip
op("PopulationCount", "x: T -> y: uint8", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
    shape=unchanged_shape, doc="The number of bits set.",
)  # fmt: skip
op("RightShift", "x: T, y: T -> z: T", "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}",
    shape=broadcast_binary_shape, doc="Bits shifted to the right; the sign stays.",
)  # fmt: skip
