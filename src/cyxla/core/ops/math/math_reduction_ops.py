"""Reductions and scans."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import reduction_shape, unchanged_shape
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import SCALAR, TensorShape


def _arg_shape(c: InferenceContext) -> None:
    """Remove one dimension; vectors and scalars become scalars for any axis."""
    c.with_rank(c.input(1), 0)
    x, axis = c.input(0), c.input_tensor(1)
    if x.dims is None:
        return
    if len(x.dims) <= 1:
        c.set_output(0, SCALAR)
    elif axis is None:
        c.set_output(0, c.unknown_shape_of_rank(len(x.dims) - 1))
    else:
        removed = c.axis(int(axis), x)
        c.set_output(0, TensorShape(d for i, d in enumerate(x.dims) if i != removed))


op("All", "input: bool, reduction_indices: Tidx -> output: bool", "keep_dims: bool = false",
    "Tidx: {int32, int64} = DT_INT32", shape=reduction_shape, doc="Test if all elements along some axes are true.",
)  # fmt: skip
op("Any", "input: bool, reduction_indices: Tidx -> output: bool", "keep_dims: bool = false",
    "Tidx: {int32, int64} = DT_INT32", shape=reduction_shape, doc="Test if any element along some axes is true.",
)  # fmt: skip
op("ArgMax", "input: T, dimension: Tidx -> output: output_type", "T: {realnumbertype, quantizedtype, bool}",
    "Tidx: {int16, int32, int64} = DT_INT32", "output_type: {int16, uint16, int32, int64} = DT_INT64", shape=_arg_shape,
    doc="Return the index of the first maximum along an axis.",
)  # fmt: skip
op("ArgMin", "input: T, dimension: Tidx -> output: output_type", "T: {realnumbertype, quantizedtype, bool}",
    "Tidx: {int32, int64} = DT_INT32", "output_type: {int32, int64} = DT_INT64", shape=_arg_shape,
    doc="Return the index of the first minimum along an axis.",
)  # fmt: skip
op("Cumprod", "x: T, axis: Tidx -> out: T", "exclusive: bool = false", "reverse: bool = false", "T: numbertype",
    "Tidx: {int32, int64} = DT_INT32", shape=unchanged_shape, doc="Compute the cumulative product along an axis.",
)  # fmt: skip
op("Cumsum", "x: T, axis: Tidx -> out: T", "exclusive: bool = false", "reverse: bool = false", "T: numbertype",
    "Tidx: {int32, int64} = DT_INT32", shape=unchanged_shape, doc="Compute the cumulative sum along an axis.",
)  # fmt: skip
op("CumulativeLogsumexp", "x: T, axis: Tidx -> out: T", "exclusive: bool = false", "reverse: bool = false",
    "T: {bfloat16, half, float, double}", "Tidx: {int32, int64} = DT_INT32", shape=unchanged_shape,
    doc="Compute the logarithm of the cumulative sum of exponentials along an axis.",
)  # fmt: skip
op("EuclideanNorm", "input: T, reduction_indices: Tidx -> output: T", "keep_dims: bool = false", "T: numbertype",
    "Tidx: {int32, int64} = DT_INT32", shape=reduction_shape,
    doc="Compute the root of the sum of squares along some axes.",
)  # fmt: skip
op("Max", "input: T, reduction_indices: Tidx -> output: T", "keep_dims: bool = false",
    "T: {realnumbertype, quantizedtype}", "Tidx: {int32, int64} = DT_INT32", shape=reduction_shape,
    doc="Compute the maximum along some axes.",
)  # fmt: skip
op("Mean", "input: T, reduction_indices: Tidx -> output: T", "keep_dims: bool = false", "T: numbertype",
    "Tidx: {int32, int64} = DT_INT32", shape=reduction_shape, doc="Compute the mean along some axes.",
)  # fmt: skip
op("Min", "input: T, reduction_indices: Tidx -> output: T", "keep_dims: bool = false",
    "T: {realnumbertype, quantizedtype}", "Tidx: {int32, int64} = DT_INT32", shape=reduction_shape,
    doc="Compute the minimum along some axes.",
)  # fmt: skip
op("Prod", "input: T, reduction_indices: Tidx -> output: T", "keep_dims: bool = false", "T: numbertype",
    "Tidx: {int32, int64} = DT_INT32", shape=reduction_shape, doc="Compute the product along some axes.",
)  # fmt: skip
op("Sum", "input: T, reduction_indices: Tidx -> output: T", "keep_dims: bool = false", "T: numbertype",
    "Tidx: {int32, int64} = DT_INT32", shape=reduction_shape, doc="Compute the sum along some axes.",
)  # fmt: skip
