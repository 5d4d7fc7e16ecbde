"""Special functions."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import broadcast_binary_shape, elementwise_shape
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import SCALAR, UNKNOWN


def _betainc_shape(c: InferenceContext) -> None:
    """Merge the shapes; scalars broadcast."""
    shapes = [c.input(i) for i in range(3)]
    merged = UNKNOWN
    for shape in shapes:
        merged = shape if merged.dims is None else c.merge(merged, shape) if shape.rank != 0 else merged
        merged = UNKNOWN if merged.rank == 0 else merged
    c.set_output(0, SCALAR if all(shape.rank == 0 for shape in shapes) else merged)


op("BesselI0", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=elementwise_shape,
    doc="Compute the modified Bessel function of order 0.",
)  # fmt: skip
op("BesselI0e", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=elementwise_shape,
    doc="Compute the modified Bessel function of order 0, scaled by exp(-|x|).",
)  # fmt: skip
op("BesselI1", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=elementwise_shape,
    doc="Compute the modified Bessel function of order 1.",
)  # fmt: skip
op("BesselI1e", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=elementwise_shape,
    doc="Compute the modified Bessel function of order 1, scaled by exp(-|x|).",
)  # fmt: skip
op("Betainc", "a: T, b: T, x: T -> z: T", "T: {float, double}", shape=_betainc_shape,
    doc="Compute the regularised incomplete beta integral.",
)  # fmt: skip
op("Digamma", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=elementwise_shape,
    doc="Compute the derivative of the logarithm of the gamma function.",
)  # fmt: skip
op("Erfinv", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=elementwise_shape,
    doc="Compute the inverse of the error function.",
)  # fmt: skip
op("Igamma", "a: T, x: T -> z: T", "T: {bfloat16, half, float, double}", shape=broadcast_binary_shape,
    doc="Compute the lower regularised incomplete gamma function.",
)  # fmt: skip
op("IgammaGradA", "a: T, x: T -> z: T", "T: {float, double}", shape=broadcast_binary_shape,
    doc="Compute the derivative of Igamma with respect to a.",
)  # fmt: skip
op("Igammac", "a: T, x: T -> z: T", "T: {bfloat16, half, float, double}", shape=broadcast_binary_shape,
    doc="Compute the upper regularised incomplete gamma function.",
)  # fmt: skip
op("Lgamma", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=elementwise_shape,
    doc="Compute the logarithm of the absolute value of the gamma function.",
)  # fmt: skip
op("Ndtri", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=elementwise_shape,
    doc="Compute the quantile of the normal distribution.",
)  # fmt: skip
op("Polygamma", "a: T, x: T -> z: T", "T: {float, double}", shape=broadcast_binary_shape,
    doc="Compute higher derivatives of the logarithm of the gamma function.",
)  # fmt: skip
op("Zeta", "x: T, q: T -> z: T", "T: {float, double}", shape=broadcast_binary_shape,
    doc="Compute the Hurwitz zeta function.",
)  # fmt: skip
