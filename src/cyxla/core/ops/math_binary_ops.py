"""Elementary functions of two arguments, with broadcasting."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import broadcast_binary_shape, merge_both_inputs_shape, unchanged_shape
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
    shape=broadcast_binary_shape, doc="Sum; strings are joined.",
)  # fmt: skip
op("AddV2", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, uint16, uint32, uint64, int8, int16, int32, int64, complex64, "
    "complex128}", commutative=True, aggregate=True, shape=broadcast_binary_shape, doc="Sum.",
)  # fmt: skip
op("ApproximateEqual", "x: T, y: T -> z: bool", "T: numbertype", "tolerance: float = 1e-05", commutative=True,
    shape=merge_both_inputs_shape, doc="Whether the distance is below a tolerance.",
)  # fmt: skip
op("Atan2", "y: T, x: T -> z: T", "T: {bfloat16, half, float, double}", shape=broadcast_binary_shape,
    doc="Angle of the point (x, y).",
)  # fmt: skip
op("Complex", "real: T, imag: T -> out: Tout", "T: {float, double} = DT_FLOAT",
    "Tout: {complex64, complex128} = DT_COMPLEX64", shape=broadcast_binary_shape, doc="Complex number of two parts.",
)  # fmt: skip
op("Div", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
    "complex128}", shape=broadcast_binary_shape, doc="Quotient; integers are rounded towards zero.",
)  # fmt: skip
op("DivNoNan", "x: T, y: T -> z: T", "T: {half, float, bfloat16, double, complex64, complex128}",
    shape=broadcast_binary_shape, doc="Quotient, zero where the divisor is zero.",
)  # fmt: skip
op("Equal", "x: T, y: T -> z: bool", "T: type", "incompatible_shape_error: bool = true", commutative=True,
    shape=_equal_shape, doc="Whether equal.",
)  # fmt: skip
op("FloorDiv", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
    "complex128}", shape=broadcast_binary_shape, doc="Quotient rounded down.",
)  # fmt: skip
op("FloorMod", "x: T, y: T -> z: T",
    "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64, bfloat16, half, float, double}",
    shape=broadcast_binary_shape, doc="Remainder with the sign of the divisor.",
)  # fmt: skip
op("Greater", "x: T, y: T -> z: bool", "T: realnumbertype", shape=broadcast_binary_shape, doc="Whether greater.")
op("GreaterEqual", "x: T, y: T -> z: bool", "T: realnumbertype", shape=broadcast_binary_shape,
    doc="Whether greater or equal.",
)  # fmt: skip
op("Less", "x: T, y: T -> z: bool", "T: realnumbertype", shape=broadcast_binary_shape, doc="Whether less.")
op("LessEqual", "x: T, y: T -> z: bool", "T: realnumbertype", shape=broadcast_binary_shape,
    doc="Whether less or equal.",
)  # fmt: skip
op("LogicalAnd", "x: bool, y: bool -> z: bool", commutative=True, shape=broadcast_binary_shape, doc="Whether both.")
op("LogicalOr", "x: bool, y: bool -> z: bool", commutative=True, shape=broadcast_binary_shape, doc="Whether either.")
op("Maximum", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}",
    shape=broadcast_binary_shape, doc="The greater of two.",
)  # fmt: skip
op("Minimum", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}",
    shape=broadcast_binary_shape, doc="The lesser of two.",
)  # fmt: skip
op("Mod", "x: T, y: T -> z: T", "T: {int32, int64, half, half, bfloat16, float, double}", shape=broadcast_binary_shape,
    doc="Remainder with the sign of the dividend.",
)  # fmt: skip
op("Mul", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
    "complex128}", commutative=True, shape=broadcast_binary_shape, doc="Product.",
)  # fmt: skip
op("MulNoNan", "x: T, y: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}",
    shape=broadcast_binary_shape, doc="Product, zero where the second factor is zero.",
)  # fmt: skip
op("NextAfter", "x1: T, x2: T -> output: T", "T: {double, float} = DT_FLOAT", shape=broadcast_binary_shape,
    doc="The next number in the direction of another.",
)  # fmt: skip
op("NotEqual", "x: T, y: T -> z: bool", "T: type", "incompatible_shape_error: bool = true", commutative=True,
    shape=_equal_shape, doc="Whether different.",
)  # fmt: skip
op("Pow", "x: T, y: T -> z: T", "T: {bfloat16, float, half, double, int8, int16, int32, int64, complex64, complex128}",
    shape=broadcast_binary_shape, doc="Power.",
)  # fmt: skip
op("RealDiv", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
    "complex128}", shape=broadcast_binary_shape, doc="Quotient.",
)  # fmt: skip
op("ReciprocalGrad", "y: T, dy: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}",
    shape=unchanged_shape, doc="The gradient of Reciprocal from its result.",
)  # fmt: skip
op("RsqrtGrad", "y: T, dy: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}",
    shape=unchanged_shape, doc="The gradient of Rsqrt from its result.",
)  # fmt: skip
op("SigmoidGrad", "y: T, dy: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}",
    shape=unchanged_shape, doc="The gradient of Sigmoid from its result.",
)  # fmt: skip
op("SqrtGrad", "y: T, dy: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}",
    shape=unchanged_shape, doc="The gradient of Sqrt from its result.",
)  # fmt: skip
op("SquaredDifference", "x: T, y: T -> z: T", "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
    commutative=True, shape=broadcast_binary_shape, doc="Square of the difference.",
)  # fmt: skip
op("Sub", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, int64, complex64, complex128, "
    "uint32, uint64}", shape=broadcast_binary_shape, doc="Difference.",
)  # fmt: skip
op("TanhGrad", "y: T, dy: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}",
    shape=unchanged_shape, doc="The gradient of Tanh from its result.",
)  # fmt: skip
op("TruncateDiv", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
    "complex128}", shape=broadcast_binary_shape, doc="Quotient rounded towards zero.",
)  # fmt: skip
op("TruncateMod", "x: T, y: T -> z: T", "T: {int32, int64, bfloat16, half, float, double}",
    shape=broadcast_binary_shape, doc="Remainder with the sign of the dividend.",
)  # fmt: skip
op("Xdivy", "x: T, y: T -> z: T", "T: {half, bfloat16, float, double, complex64, complex128}",
    shape=broadcast_binary_shape, doc="Quotient, zero where the dividend is zero.",
)  # fmt: skip
op("Xlog1py", "x: T, y: T -> z: T", "T: {half, bfloat16, float, double, complex64, complex128}",
    shape=broadcast_binary_shape, doc="Product with log(1 + y), zero where x is zero.",
)  # fmt: skip
op("Xlogy", "x: T, y: T -> z: T", "T: {half, bfloat16, float, double, complex64, complex128}",
    shape=broadcast_binary_shape, doc="Product with log(y), zero where x is zero.",
)  # fmt: skip
