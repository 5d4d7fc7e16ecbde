"""Elementary functions of one argument."""

from cyxla.core.framework.common_shape_fns import unchanged_shape
from cyxla.core.framework.op import op

op("Abs", "x: T -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64}", shape=unchanged_shape)
op("Acos", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape)
op("Acosh", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape)
op("Angle", "input: T -> output: Tout", "T: {complex64, complex128} = DT_COMPLEX64", "Tout: {float, double} = DT_FLOAT",
    shape=unchanged_shape,
)  # fmt: skip
op("Asin", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape)
op("Asinh", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape)
op("Atan", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape)
op("Atanh", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape)
op("Ceil", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=unchanged_shape)
op("ComplexAbs", "x: T -> y: Tout", "T: {complex64, complex128} = DT_COMPLEX64", "Tout: {float, double} = DT_FLOAT",
    shape=unchanged_shape,
)  # fmt: skip
op("Conj", "input: T -> output: T", "T: {complex64, complex128, variant} = DT_COMPLEX64", shape=unchanged_shape)
op("Cos", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape)
op("Cosh", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape)
op("Erf", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=unchanged_shape)
op("Erfc", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=unchanged_shape)
op("Exp", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape)
op("Expm1", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape)
op("Floor", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=unchanged_shape)
op("Imag", "input: T -> output: Tout", "T: {complex64, complex128} = DT_COMPLEX64", "Tout: {float, double} = DT_FLOAT",
    shape=unchanged_shape,
)  # fmt: skip
op("Inv", "x: T -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
    shape=unchanged_shape,
)  # fmt: skip
op("IsFinite", "x: T -> y: bool", "T: {bfloat16, half, float, double}", shape=unchanged_shape)
op("IsInf", "x: T -> y: bool", "T: {bfloat16, half, float, double}", shape=unchanged_shape)
op("IsNan", "x: T -> y: bool", "T: {bfloat16, half, float, double}", shape=unchanged_shape)
op("Log", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape)
op("Log1p", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape)
op("LogicalNot", "x: bool -> y: bool", shape=unchanged_shape)
op("Neg", "x: T -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
    shape=unchanged_shape,
)  # fmt: skip
op("Real", "input: T -> output: Tout", "T: {complex64, complex128} = DT_COMPLEX64", "Tout: {float, double} = DT_FLOAT",
    shape=unchanged_shape,
)  # fmt: skip
op("Reciprocal", "x: T -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
    shape=unchanged_shape,
)  # fmt: skip
op("Rint", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=unchanged_shape)
op("Round", "x: T -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
    shape=unchanged_shape,
)  # fmt: skip
op("Rsqrt", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape)
op("Sigmoid", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape)
op("Sign", "x: T -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
    shape=unchanged_shape,
)  # fmt: skip
op("Sin", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape)
op("Sinh", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape)
op("Sqrt", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape)
op("Square", "x: T -> y: T",
    "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, "
    "complex128}", shape=unchanged_shape,
)  # fmt: skip
op("Tan", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape)
op("Tanh", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape)
