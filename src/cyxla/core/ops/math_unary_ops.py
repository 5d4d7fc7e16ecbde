"""Elementary functions of one argument."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import unchanged_shape

op("Abs", "x: T -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64}", shape=unchanged_shape,
    doc="Absolute value.",
)  # fmt: skip
op("Acos", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape,
    doc="Arc cosine.",
)  # fmt: skip
op("Acosh", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape,
    doc="Inverse hyperbolic cosine.",
)  # fmt: skip
op("Angle", "input: T -> output: Tout", "T: {complex64, complex128} = DT_COMPLEX64", "Tout: {float, double} = DT_FLOAT",
    shape=unchanged_shape, doc="Angle of a complex number.",
)  # fmt: skip
op("Asin", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape,
    doc="Arc sine.",
)  # fmt: skip
op("Asinh", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape,
    doc="Inverse hyperbolic sine.",
)  # fmt: skip
op("Atan", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape,
    doc="Arc tangent.",
)  # fmt: skip
op("Atanh", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape,
    doc="Inverse hyperbolic tangent.",
)  # fmt: skip
op("Ceil", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=unchanged_shape, doc="Least integer not below.")
op("ComplexAbs", "x: T -> y: Tout", "T: {complex64, complex128} = DT_COMPLEX64", "Tout: {float, double} = DT_FLOAT",
    shape=unchanged_shape, doc="Length of a complex number.",
)  # fmt: skip
op("Conj", "input: T -> output: T", "T: {complex64, complex128, variant} = DT_COMPLEX64", shape=unchanged_shape,
    doc="Complex conjugate.",
)  # fmt: skip
op("Cos", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape,
    doc="Cosine.",
)  # fmt: skip
op("Cosh", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape,
    doc="Hyperbolic cosine.",
)  # fmt: skip
op("Erf", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=unchanged_shape, doc="Error function.")
op("Erfc", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=unchanged_shape,
    doc="One minus the error function.",
)  # fmt: skip
op("Exp", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape,
    doc="Power of e.",
)  # fmt: skip
op("Expm1", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape,
    doc="Power of e, less one.",
)  # fmt: skip
op("Floor", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=unchanged_shape,
    doc="Greatest integer not above.",
)  # fmt: skip
op("Imag", "input: T -> output: Tout", "T: {complex64, complex128} = DT_COMPLEX64", "Tout: {float, double} = DT_FLOAT",
    shape=unchanged_shape, doc="Imaginary part.",
)  # fmt: skip
op("Inv", "x: T -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
    shape=unchanged_shape, doc="One divided by the input.",
)  # fmt: skip
op("IsFinite", "x: T -> y: bool", "T: {bfloat16, half, float, double}", shape=unchanged_shape,
    doc="Whether neither infinite nor NaN.",
)  # fmt: skip
op("IsInf", "x: T -> y: bool", "T: {bfloat16, half, float, double}", shape=unchanged_shape, doc="Whether infinite.")
op("IsNan", "x: T -> y: bool", "T: {bfloat16, half, float, double}", shape=unchanged_shape, doc="Whether NaN.")
op("Log", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape,
    doc="Natural logarithm.",
)  # fmt: skip
op("Log1p", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape,
    doc="Natural logarithm of one plus the input.",
)  # fmt: skip
op("LogicalNot", "x: bool -> y: bool", shape=unchanged_shape, doc="Whether false.")
op("Neg", "x: T -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
    shape=unchanged_shape, doc="Negative.",
)  # fmt: skip
op("Real", "input: T -> output: Tout", "T: {complex64, complex128} = DT_COMPLEX64", "Tout: {float, double} = DT_FLOAT",
    shape=unchanged_shape, doc="Real part.",
)  # fmt: skip
op("Reciprocal", "x: T -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
    shape=unchanged_shape, doc="One divided by the input.",
)  # fmt: skip
op("Rint", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=unchanged_shape,
    doc="Nearest integer, halves to even ones.",
)  # fmt: skip
op("Round", "x: T -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
    shape=unchanged_shape, doc="Nearest integer, halves to even ones.",
)  # fmt: skip
op("Rsqrt", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape,
    doc="One divided by the square root.",
)  # fmt: skip
op("Sigmoid", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape,
    doc="Logistic function.",
)  # fmt: skip
op("Sign", "x: T -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
    shape=unchanged_shape, doc="-1, 0 or 1; the direction of a complex number.",
)  # fmt: skip
op("Sin", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape,
    doc="Sine.",
)  # fmt: skip
op("Sinh", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape,
    doc="Hyperbolic sine.",
)  # fmt: skip
op("Sqrt", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape,
    doc="Square root.",
)  # fmt: skip
op("Square", "x: T -> y: T",
    "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, "
    "complex128}", shape=unchanged_shape, doc="Square.",
)  # fmt: skip
op("Tan", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape,
    doc="Tangent.",
)  # fmt: skip
op("Tanh", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=unchanged_shape,
    doc="Hyperbolic tangent.",
)  # fmt: skip
