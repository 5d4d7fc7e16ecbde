"""Element-wise functions of one argument."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import elementwise_shape

op("Abs", "x: T -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64}", shape=elementwise_shape,
    doc="Compute the absolute value.",
)  # fmt: skip
op("Acos", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=elementwise_shape,
    doc="Compute the arc cosine.",
)  # fmt: skip
op("Acosh", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=elementwise_shape,
    doc="Compute the inverse hyperbolic cosine.",
)  # fmt: skip
op("Angle", "input: T -> output: Tout", "T: {complex64, complex128} = DT_COMPLEX64", "Tout: {float, double} = DT_FLOAT",
    shape=elementwise_shape, doc="Return the angle of a complex number.",
)  # fmt: skip
op("Asin", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=elementwise_shape,
    doc="Compute the arc sine.",
)  # fmt: skip
op("Asinh", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=elementwise_shape,
    doc="Compute the inverse hyperbolic sine.",
)  # fmt: skip
op("Atan", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=elementwise_shape,
    doc="Compute the arc tangent.",
)  # fmt: skip
op("Atanh", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=elementwise_shape,
    doc="Compute the inverse hyperbolic tangent.",
)  # fmt: skip
op("Ceil", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=elementwise_shape, doc="Round up.")
op("ComplexAbs", "x: T -> y: Tout", "T: {complex64, complex128} = DT_COMPLEX64", "Tout: {float, double} = DT_FLOAT",
    shape=elementwise_shape, doc="Compute the absolute value of a complex number.",
)  # fmt: skip
op("Conj", "input: T -> output: T", "T: {complex64, complex128, variant} = DT_COMPLEX64", shape=elementwise_shape,
    doc="Return the complex conjugate.",
)  # fmt: skip
op("Cos", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=elementwise_shape,
    doc="Compute the cosine.",
)  # fmt: skip
op("Cosh", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=elementwise_shape,
    doc="Compute the hyperbolic cosine.",
)  # fmt: skip
op("Erf", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=elementwise_shape,
    doc="Compute the error function.",
)  # fmt: skip
op("Erfc", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=elementwise_shape,
    doc="Compute the complementary error function.",
)  # fmt: skip
op("Exp", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=elementwise_shape,
    doc="Compute the exponential.",
)  # fmt: skip
op("Expm1", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=elementwise_shape,
    doc="Compute exp(x) - 1.",
)  # fmt: skip
op("Floor", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=elementwise_shape,
    doc="Round down.",
)  # fmt: skip
op("Imag", "input: T -> output: Tout", "T: {complex64, complex128} = DT_COMPLEX64", "Tout: {float, double} = DT_FLOAT",
    shape=elementwise_shape, doc="Return the imaginary part.",
)  # fmt: skip
op("Inv", "x: T -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
    shape=elementwise_shape, doc="Compute the reciprocal.",
)  # fmt: skip
op("IsFinite", "x: T -> y: bool", "T: {bfloat16, half, float, double}", shape=elementwise_shape,
    doc="Test if neither infinite nor NaN.",
)  # fmt: skip
op("IsInf", "x: T -> y: bool", "T: {bfloat16, half, float, double}", shape=elementwise_shape, doc="Test for infinity.")
op("IsNan", "x: T -> y: bool", "T: {bfloat16, half, float, double}", shape=elementwise_shape, doc="Test for NaN.")
op("Log", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=elementwise_shape,
    doc="Compute the natural logarithm.",
)  # fmt: skip
op("Log1p", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=elementwise_shape,
    doc="Compute log(1 + x).",
)  # fmt: skip
op("LogicalNot", "x: bool -> y: bool", shape=elementwise_shape, doc="Compute the logical not.")
op("Neg", "x: T -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
    shape=elementwise_shape, doc="Negate.",
)  # fmt: skip
op("Real", "input: T -> output: Tout", "T: {complex64, complex128} = DT_COMPLEX64", "Tout: {float, double} = DT_FLOAT",
    shape=elementwise_shape, doc="Return the real part.",
)  # fmt: skip
op("Reciprocal", "x: T -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
    shape=elementwise_shape, doc="Compute the reciprocal.",
)  # fmt: skip
op("Rint", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=elementwise_shape,
    doc="Round to the nearest integer, halves to even.",
)  # fmt: skip
op("Round", "x: T -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
    shape=elementwise_shape, doc="Round to the nearest integer, halves to even.",
)  # fmt: skip
op("Rsqrt", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=elementwise_shape,
    doc="Compute the reciprocal of the square root.",
)  # fmt: skip
op("Sigmoid", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=elementwise_shape,
    doc="Compute the logistic function.",
)  # fmt: skip
op("Sign", "x: T -> y: T", "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
    shape=elementwise_shape, doc="Return -1, 0 or 1; for complex numbers x / |x|, or 0.",
)  # fmt: skip
op("Sin", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=elementwise_shape,
    doc="Compute the sine.",
)  # fmt: skip
op("Sinh", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=elementwise_shape,
    doc="Compute the hyperbolic sine.",
)  # fmt: skip
op("Sqrt", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=elementwise_shape,
    doc="Compute the square root.",
)  # fmt: skip
op("Square", "x: T -> y: T",
    "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, "
    "complex128}", shape=elementwise_shape, doc="Compute the square.",
)  # fmt: skip
op("Tan", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=elementwise_shape,
    doc="Compute the tangent.",
)  # fmt: skip
op("Tanh", "x: T -> y: T", "T: {bfloat16, half, float, double, complex64, complex128}", shape=elementwise_shape,
    doc="Compute the hyperbolic tangent.",
)  # fmt: skip
