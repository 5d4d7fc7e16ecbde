"""Special functions."""

from cyxla.core.framework.common_shape_fns import broadcast_binary_shape, unchanged_shape
from cyxla.core.framework.op import op
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import SCALAR, UNKNOWN


def _betainc_shape(c: InferenceContext) -> None:
    """Equal shapes, save that scalars go with any."""
    shapes = [c.input(i) for i in range(3)]
    merged = UNKNOWN
    for shape in shapes:
        merged = shape if merged.dims is None else c.merge(merged, shape) if shape.rank != 0 else merged
        merged = UNKNOWN if merged.rank == 0 else merged
    c.set_output(0, SCALAR if all(shape.rank == 0 for shape in shapes) else merged)


op("BesselI0", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=unchanged_shape)
op("BesselI0e", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=unchanged_shape)
op("BesselI1", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=unchanged_shape)
op("BesselI1e", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=unchanged_shape)
op("Betainc", "a: T, b: T, x: T -> z: T", "T: {float, double}", shape=_betainc_shape)
op("Digamma", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=unchanged_shape)
op("Erfinv", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=unchanged_shape)
op("Igamma", "a: T, x: T -> z: T", "T: {bfloat16, half, float, double}", shape=broadcast_binary_shape)
op("IgammaGradA", "a: T, x: T -> z: T", "T: {float, double}", shape=broadcast_binary_shape)
op("Igammac", "a: T, x: T -> z: T", "T: {bfloat16, half, float, double}", shape=broadcast_binary_shape)
op("Lgamma", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=unchanged_shape)
op("Ndtri", "x: T -> y: T", "T: {bfloat16, half, float, double}", shape=unchanged_shape)
op("Polygamma", "a: T, x: T -> z: T", "T: {float, double}", shape=broadcast_binary_shape)
op("Zeta", "x: T, q: T -> z: T", "T: {float, double}", shape=broadcast_binary_shape)
