"""Elementary functions of one argument."""

from cyxla.core.framework.op import op

op("Abs", "x: T -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64}", shape=None)
op("Acos", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=None)
op("Acosh", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=None)
op("Angle", "input: T -> output: Tout", "T: {complex64, complex128} = DT_COMPLEX64", "Tout: {float, double} = DT_FLOAT",
    shape=None,
)  # fmt: skip
op("Asin", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=None)
op("Asinh", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=None)
op("Atan", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=None)
op("Atanh", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=None)
op("Ceil", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=None)
op("ComplexAbs", "x: T -> y: Tout", "T: {complex64, complex128} = DT_COMPLEX64", "Tout: {float, double} = DT_FLOAT",
    shape=None,
)  # fmt: skip
op("Conj", "input: T -> output: T", "T: {complex64, complex128, variant} = DT_COMPLEX64", shape=None)
op("Cos", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=None)
op("Cosh", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=None)
op("Erf", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=None)
op("Erfc", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=None)
op("Exp", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=None)
op("Expm1", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=None)
op("Floor", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=None)
op("Imag", "input: T -> output: Tout", "T: {complex64, complex128} = DT_COMPLEX64", "Tout: {float, double} = DT_FLOAT",
    shape=None,
)  # fmt: skip
op("Inv", "x: T -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
    shape=None,
)  # fmt: skip
op("IsFinite", "x: T -> y: bool", "T: {bfloat16, half, float, double}", shape=None)
op("IsInf", "x: T -> y: bool", "T: {bfloat16, half, float, double}", shape=None)
op("IsNan", "x: T -> y: bool", "T: {bfloat16, half, float, double}", shape=None)
op("Log", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=None)
op("Log1p", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=None)
op("LogicalNot", "x: bool -> y: bool", shape=None)
op("Neg", "x: T -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
    shape=None,
)  # fmt: skip
op("Real", "input: T -> output: Tout", "T: {complex64, complex128} = DT_COMPLEX64", "Tout: {float, double} = DT_FLOAT",
    shape=None,
)  # fmt: skip
op("Reciprocal", "x: T -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
    shape=None,
)  # fmt: skip
op("Rint", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=None)
op("Round", "x: T -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
    shape=None,
)  # fmt: skip
op("Rsqrt", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=None)
op("Sigmoid", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=None)
op("Sign", "x: T -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
    shape=None,
)  # fmt: skip
op("Sin", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=None)
op("Sinh", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=None)
op("Sqrt", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=None)
op("Square", "x: T -> y: T",
    "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, "
    "complex128}", shape=None,
)  # fmt: skip
op("Tan", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=None)
op("Tanh", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=None)
