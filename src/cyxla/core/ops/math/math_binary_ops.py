"""Element-wise functions of two broadcasting arguments."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import broadcast_binary_shape, merge_both_inputs_shape, unchanged_shape
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.errors import ShapeError


def _equal_shape(c: InferenceContext) -> None:
    """Broadcast; a failure is an error, or gives a single bool."""
    try:
        broadcast_binary_shape(c)
    except ShapeError:
        if c.attr("incompatible_shape_error"):
            raise


op("Add", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128, string}",
    shape=broadcast_binary_shape, doc="Add; strings are concatenated.",
)  # fmt: skip
op("AddV2", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, uint16, uint32, uint64, int8, int16, int32, int64, complex64, "
    "complex128}", commutative=True, aggregate=True, shape=broadcast_binary_shape, doc="Add.",
)  # fmt: skip
op("ApproximateEqual", "x: T, y: T -> z: bool", "T: numbertype", "tolerance: float = 1e-05", commutative=True,
    shape=merge_both_inputs_shape, doc="Test if the distance is below a tolerance.",
)  # fmt: skip
op("Atan2", "y: T, x: T -> z: T", "T: {bfloat16, half, float, double}", shape=broadcast_binary_shape,
    doc="Compute the angle of the point (x, y).",
)  # fmt: skip
op("Complex", "real: T, imag: T -> out: Tout", "T: {float, double} = DT_FLOAT",
    "Tout: {complex64, complex128} = DT_COMPLEX64", shape=broadcast_binary_shape,
    doc="Make complex numbers from real and imaginary parts.",
)  # fmt: skip
op("Div", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
    "complex128}", shape=broadcast_binary_shape, doc="Divide; integer quotients are rounded towards zero.",
)  # fmt: skip
op("DivNoNan", "x: T, y: T -> z: T", "T: {half, float, bfloat16, double, complex64, complex128}",
    shape=broadcast_binary_shape, doc="Divide; the result is zero where the divisor is zero.",
)  # fmt: skip
op("Equal", "x: T, y: T -> z: bool", "T: type", "incompatible_shape_error: bool = true", commutative=True,
    shape=_equal_shape, doc="Test for equality.",
)  # fmt: skip
op("FloorDiv", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
    "complex128}", shape=broadcast_binary_shape, doc="Divide and round down.",
)  # fmt: skip
op("FloorMod", "x: T, y: T -> z: T",
    "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64, bfloat16, half, float, double}",
    shape=broadcast_binary_shape, doc="Compute the remainder with the sign of the divisor.",
)  # fmt: skip
op("Greater", "x: T, y: T -> z: bool", "T: realnumbertype", shape=broadcast_binary_shape,
    doc="Test if x is greater than y.",
)  # fmt: skip
op("GreaterEqual", "x: T, y: T -> z: bool", "T: realnumbertype", shape=broadcast_binary_shape,
    doc="Test if x is greater than or equal to y.",
)  # fmt: skip
op("Less", "x: T, y: T -> z: bool", "T: realnumbertype", shape=broadcast_binary_shape, doc="Test if x is less than y.")
op("LessEqual", "x: T, y: T -> z: bool", "T: realnumbertype", shape=broadcast_binary_shape,
    doc="Test if x is less than or equal to y.",
)  # fmt: skip
op("LogicalAnd", "x: bool, y: bool -> z: bool", commutative=True, shape=broadcast_binary_shape,
    doc="Compute the logical and.",
)  # fmt: skip
op("LogicalOr", "x: bool, y: bool -> z: bool", commutative=True, shape=broadcast_binary_shape,
    doc="Compute the logical or.",
)  # fmt: skip
op("Maximum", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}",
    shape=broadcast_binary_shape, doc="Compute the maximum of two numbers.",
)  # fmt: skip
op("Minimum", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}",
    shape=broadcast_binary_shape, doc="Compute the minimum of two numbers.",
)  # fmt: skip
op("Mod", "x: T, y: T -> z: T", "T: {int32, int64, half, half, bfloat16, float, double}", shape=broadcast_binary_shape,
    doc="Compute the remainder with the sign of the dividend.",
)  # fmt: skip
op("Mul", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
    "complex128}", commutative=True, shape=broadcast_binary_shape, doc="Multiply.",
)  # fmt: skip
op("MulNoNan", "x: T, y: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}",
    shape=broadcast_binary_shape, doc="Multiply; the result is zero where the second factor is zero.",
)  # fmt: skip
op("NextAfter", "x1: T, x2: T -> output: T", "T: {double, float} = DT_FLOAT", shape=broadcast_binary_shape,
    doc="Return the next representable number towards another.",
)  # fmt: skip
op("NotEqual", "x: T, y: T -> z: bool", "T: type", "incompatible_shape_error: bool = true", commutative=True,
    shape=_equal_shape, doc="Test for inequality.",
)  # fmt: skip
op("Pow", "x: T, y: T -> z: T", "T: {bfloat16, float, half, double, int8, int16, int32, int64, complex64, complex128}",
    shape=broadcast_binary_shape, doc="Raise to a power.",
)  # fmt: skip
op("RealDiv", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
    "complex128}", shape=broadcast_binary_shape, doc="Divide.",
)  # fmt: skip
op("ReciprocalGrad", "y: T, dy: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}",
    shape=unchanged_shape, doc="Compute the gradient of Reciprocal from its result.",
)  # fmt: skip
op("RsqrtGrad", "y: T, dy: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}",
    shape=unchanged_shape, doc="Compute the gradient of Rsqrt from its result.",
)  # fmt: skip
op("SigmoidGrad", "y: T, dy: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}",
    shape=unchanged_shape, doc="Compute the gradient of Sigmoid from its result.",
)  # fmt: skip
op("SqrtGrad", "y: T, dy: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}",
    shape=unchanged_shape, doc="Compute the gradient of Sqrt from its result.",
)  # fmt: skip
op("SquaredDifference", "x: T, y: T -> z: T", "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
    commutative=True, shape=broadcast_binary_shape, doc="Compute the square of the difference.",
)  # fmt: skip
op("Sub", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, int64, complex64, complex128, "
    "uint32, uint64}", shape=broadcast_binary_shape, doc="Subtract.",
)  # fmt: skip
op("TanhGrad", "y: T, dy: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}",
    shape=unchanged_shape, doc="Compute the gradient of Tanh from its result.",
)  # fmt: skip
op("TruncateDiv", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
    "complex128}", shape=broadcast_binary_shape, doc="Divide and round towards zero.",
)  # fmt: skip
op("TruncateMod", "x: T, y: T -> z: T", "T: {int32, int64, bfloat16, half, float, double}",
    shape=broadcast_binary_shape, doc="Compute the remainder with the sign of the dividend.",
)  # fmt: skip
op("Xdivy", "x: T, y: T -> z: T", "T: {half, bfloat16, float, double, complex64, complex128}",
    shape=broadcast_binary_shape, doc="Divide; the result is zero where the dividend is zero.",
)  # fmt: skip
op("Xlog1py", "x: T, y: T -> z: T", "T: {half, bfloat16, float, double, complex64, complex128}",
    shape=broadcast_binary_shape, doc="Compute x * log(1 + y), zero where x is zero.",
)  # fmt: skip
op("Xlogy", "x: T, y: T -> z: T", "T: {half, bfloat16, float, double, complex64, complex128}",
    shape=broadcast_binary_shape, doc="Compute x * log(y), zero where x is zero.",
)  # fmt: skip
