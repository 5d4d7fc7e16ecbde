"""Elementary functions of two arguments, with broadcasting."""

from cyxla.core.framework.op import op

op("Add", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128, string}", shape=None,
)  # fmt: skip
op("AddV2", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, uint16, uint32, uint64, int8, int16, int32, int64, complex64, "
    "complex128}", commutative=True, aggregate=True, shape=None,
)  # fmt: skip
op("ApproximateEqual", "x: T, y: T -> z: bool", "T: numbertype", "tolerance: float = 1e-05", commutative=True,
    shape=None,
)  # fmt: skip
op("Atan2", "y: T, x: T -> z: T", "T: {bfloat16, half, float, double}", shape=None)
op("Complex", "real: T, imag: T -> out: Tout", "T: {float, double} = DT_FLOAT",
    "Tout: {complex64, complex128} = DT_COMPLEX64", shape=None,
)  # fmt: skip
op("Div", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
    "complex128}", shape=None,
)  # fmt: skip
op("DivNoNan", "x: T, y: T -> z: T", "T: {half, float, bfloat16, double, complex64, complex128}", shape=None)
op("Equal", "x: T, y: T -> z: bool", "T: type", "incompatible_shape_error: bool = true", commutative=True, shape=None)
op("FloorDiv", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
    "complex128}", shape=None,
)  # fmt: skip
op("FloorMod", "x: T, y: T -> z: T",
    "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64, bfloat16, half, float, double}", shape=None,
)  # fmt: skip
op("Greater", "x: T, y: T -> z: bool", "T: realnumbertype", shape=None)
op("GreaterEqual", "x: T, y: T -> z: bool", "T: realnumbertype", shape=None)
op("Less", "x: T, y: T -> z: bool", "T: realnumbertype", shape=None)
op("LessEqual", "x: T, y: T -> z: bool", "T: realnumbertype", shape=None)
op("LogicalAnd", "x: bool, y: bool -> z: bool", commutative=True, shape=None)
op("LogicalOr", "x: bool, y: bool -> z: bool", commutative=True, shape=None)
op("Maximum", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}", shape=None,
)  # fmt: skip
op("Minimum", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}", shape=None,
)  # fmt: skip
op("Mod", "x: T, y: T -> z: T", "T: {int32, int64, half, half, bfloat16, float, double}", shape=None)
op("Mul", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
    "complex128}", commutative=True, shape=None,
)  # fmt: skip
op("MulNoNan", "x: T, y: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=None)
op("NextAfter", "x1: T, x2: T -> output: T", "T: {double, float} = DT_FLOAT", shape=None)
op("NotEqual", "x: T, y: T -> z: bool", "T: type", "incompatible_shape_error: bool = true", commutative=True,
    shape=None,
)  # fmt: skip
op("Pow", "x: T, y: T -> z: T", "T: {bfloat16, float, half, double, int8, int16, int32, int64, complex64, complex128}",
    shape=None,
)  # fmt: skip
op("RealDiv", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
    "complex128}", shape=None,
)  # fmt: skip
op("ReciprocalGrad", "y: T, dy: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=None)
op("RsqrtGrad", "y: T, dy: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=None)
op("SigmoidGrad", "y: T, dy: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=None)
op("SqrtGrad", "y: T, dy: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=None)
op("SquaredDifference", "x: T, y: T -> z: T", "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
    commutative=True, shape=None,
)  # fmt: skip
op("Sub", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, int64, complex64, complex128, "
    "uint32, uint64}", shape=None,
)  # fmt: skip
op("TanhGrad", "y: T, dy: T -> z: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=None)
op("TruncateDiv", "x: T, y: T -> z: T",
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, "
    "complex128}", shape=None,
)  # fmt: skip
op("TruncateMod", "x: T, y: T -> z: T", "T: {int32, int64, bfloat16, half, float, double}", shape=None)
op("Xdivy", "x: T, y: T -> z: T", "T: {half, bfloat16, float, double, complex64, complex128}", shape=None)
op("Xlog1py", "x: T, y: T -> z: T", "T: {half, bfloat16, float, double, complex64, complex128}", shape=None)
op("Xlogy", "x: T, y: T -> z: T", "T: {half, bfloat16, float, double, complex64, complex128}", shape=None)
