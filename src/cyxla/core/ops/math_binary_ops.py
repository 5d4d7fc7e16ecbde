"""Elementary functions of two arguments, with broadcasting."""

from cyxla.core.framework.common_shape_fns import broadcast_binary_shape, merge_both_inputs_shape, unchanged_shape
from cyxla.core.framework.op import op
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.errors import ShapeError


def _equal_shape(c: InferenceContext) -> None:
    """Broadcasts; where that fails, the answer is one False, unless it is an error."""
    try:
        broadcast_binary_shape(c)
    except ShapeError:
        if c.attr("incompatible_shape_error"):
            raise


op("Add", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128, string}",
    shape=broadcast_binary_shape,
)  # fmt: skip
op("AddV2", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, uint16, uint32, uint64, int8, int16, int32, int64, complex64, "
    "complex128}", commutative=True, aggregate=True, shape=broadcast_binary_shape,
)  # fmt: skip
op("ApproximateEqual", "x: T, y: T -> z: bool", "T: numbertype", "tolerance: float = 1e-05", commutative=True,
    shape=merge_both_inputs_shape,
)  # fmt: skip
op("Atan2", "y: T, x: T -> z: T", "T: {bfloat16, half, float, double}", shape=broadcast_binary_shape)
op("Complex", "real: T, imag: T -> out: Tout", "T: {float, double} = DT_FLOAT",
    "Tout: {complex64, complex128} = DT_COMPLEX64", shape=broadcast_binary_shape,
)  # fmt: skip
op("Div", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
    "complex128}", shape=broadcast_binary_shape,
)  # fmt: skip
op("DivNoNan", "x: T, y: T -> z: T", "T: {half, float, bfloat16, double, complex64, complex128}",
    shape=broadcast_binary_shape,
)  # fmt: skip
op("Equal", "x: T, y: T -> z: bool", "T: type", "incompatible_shape_error: bool = true", commutative=True,
    shape=_equal_shape,
)  # fmt: skip
op("FloorDiv", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
    "complex128}", shape=broadcast_binary_shape,
)  # fmt: skip
op("FloorMod", "x: T, y: T -> z: T",
    "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64, bfloat16, half, float, double}",
    shape=broadcast_binary_shape,
)  # fmt: skip
op("Greater", "x: T, y: T -> z: bool", "T: realnumbertype", shape=broadcast_binary_shape)
op("GreaterEqual", "x: T, y: T -> z: bool", "T: realnumbertype", shape=broadcast_binary_shape)
op("Less", "x: T, y: T -> z: bool", "T: realnumbertype", shape=broadcast_binary_shape)
op("LessEqual", "x: T, y: T -> z: bool", "T: realnumbertype", shape=broadcast_binary_shape)
op("LogicalAnd", "x: bool, y: bool -> z: bool", commutative=True, shape=broadcast_binary_shape)
op("LogicalOr", "x: bool, y: bool -> z: bool", commutative=True, shape=broadcast_binary_shape)
op("Maximum", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}",
    shape=broadcast_binary_shape,
)  # fmt: skip
op("Minimum", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}",
    shape=broadcast_binary_shape,
)  # fmt: skip
op("Mod", "x: T, y: T -> z: T", "T: {int32, int64, half, half, bfloat16, float, double}", shape=broadcast_binary_shape)
op("Mul", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
    "complex128}", commutative=True, shape=broadcast_binary_shape,
)  # fmt: skip
op("MulNoNan", "x: T, y: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}",
    shape=broadcast_binary_shape,
)  # fmt: skip
op("NextAfter", "x1: T, x2: T -> output: T", "T: {double, float} = DT_FLOAT", shape=broadcast_binary_shape)
op("NotEqual", "x: T, y: T -> z: bool", "T: type", "incompatible_shape_error: bool = true", commutative=True,
    shape=_equal_shape,
)  # fmt: skip
op("Pow", "x: T, y: T -> z: T", "T: {bfloat16, float, half, double, int8, int16, int32, int64, complex64, complex128}",
    shape=broadcast_binary_shape,
)  # fmt: skip
op("RealDiv", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
    "complex128}", shape=broadcast_binary_shape,
)  # fmt: skip
op("ReciprocalGrad", "y: T, dy: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}",
    shape=unchanged_shape,
)  # fmt: skip
op("RsqrtGrad", "y: T, dy: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}",
    shape=unchanged_shape,
)  # fmt: skip
op("SigmoidGrad", "y: T, dy: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}",
    shape=unchanged_shape,
)  # fmt: skip
op("SqrtGrad", "y: T, dy: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}",
    shape=unchanged_shape,
)  # fmt: skip
op("SquaredDifference", "x: T, y: T -> z: T", "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
    commutative=True, shape=broadcast_binary_shape,
)  # fmt: skip
op("Sub", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, int64, complex64, complex128, "
    "uint32, uint64}", shape=broadcast_binary_shape,
)  # fmt: skip
op("TanhGrad", "y: T, dy: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}",
    shape=unchanged_shape,
)  # fmt: skip
op("TruncateDiv", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
    "complex128}", shape=broadcast_binary_shape,
)  # fmt: skip
op("TruncateMod", "x: T, y: T -> z: T", "T: {int32, int64, bfloat16, half, float, double}",
    shape=broadcast_binary_shape,
)  # fmt: skip
op("Xdivy", "x: T, y: T -> z: T", "T: {half, bfloat16, float, double, complex64, complex128}",
    shape=broadcast_binary_shape,
)  # fmt: skip
op("Xlog1py", "x: T, y: T -> z: T", "T: {half, bfloat16, float, double, complex64, complex128}",
    shape=broadcast_binary_shape,
)  # fmt: skip
op("Xlogy", "x: T, y: T -> z: T", "T: {half, bfloat16, float, double, complex64, complex128}",
    shape=broadcast_binary_shape,
)  # fmt: skip
