"""Reductions and scans."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import reduction_shape, unchanged_shape
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import SCALAR, TensorShape


def _arg_shape(c: InferenceContext) -> None:
    """One dimension goes; vectors and scalars become scalars whatever it is."""
    c.with_rank(c.input(1), 0)
    x, axis = c.input(0), c.input_tensor(1)
    if x.dims is None:
        return
    if len(x.dims) <= 1:
        c.set_output(0, SCALAR)
    elif axis is None:
        c.set_output(0, c.unknown_shape_of_rank(len(x.dims) - 1))
    else:
        gone = c.axis(int(axis), x)
        c.set_output(0, TensorShape(d for i, d in enumerate(x.dims) if i != gone))


op("All", "input: bool, reduction_indices: Tidx -> output: bool", "keep_dims: bool = false",
    "Tidx: {int32, int64} = DT_INT32", shape=reduction_shape, doc="Whether all along some axes are true.",
)  # fmt: skip
op("Any", "input: bool, reduction_indices: Tidx -> output: bool", "keep_dims: bool = false",
    "Tidx: {int32, int64} = DT_INT32", shape=reduction_shape, doc="Whether any along some axes is true.",
)  # fmt: skip
op("ArgMax", "input: T, dimension: Tidx -> output: output_type", "T: {realnumbertype, quantizedtype, bool}",
    "Tidx: {int16, int32, int64} = DT_INT32", "output_type: {int16, uint16, int32, int64} = DT_INT64", shape=_arg_shape,
    doc="Where the greatest element along an axis is; the first of equals.",
)  # fmt: skip
op("ArgMin", "input: T, dimension: Tidx -> output: output_type", "T: {realnumbertype, quantizedtype, bool}",
    "Tidx: {int32, int64} = DT_INT32", "output_type: {int32, int64} = DT_INT64", shape=_arg_shape,
    doc="Where the least element along an axis is; the first of equals.",
)  # fmt: skip
op("Cumprod", "x: T, axis: Tidx -> out: T", "exclusive: bool = false", "reverse: bool = false", "T: numbertype",
    "Tidx: {int32, int64} = DT_INT32", shape=unchanged_shape, doc="Products of all elements so far along an axis.",
)  # fmt: skip
op("Cumsum", "x: T, axis: Tidx -> out: T", "exclusive: bool = false", "reverse: bool = false", "T: numbertype",
    "Tidx: {int32, int64} = DT_INT32", shape=unchanged_shape, doc="Sums of all elements so far along an axis.",
)  # fmt: skip
op("CumulativeLogsumexp", "x: T, axis: Tidx -> out: T", "exclusive: bool = false", "reverse: bool = false",
    "T: {bfloat16, half, float, double}", "Tidx: {int32, int64} = DT_INT32", shape=unchanged_shape,
    doc="Logarithms of the sums of exponentials so far along an axis.",
)  # fmt: skip
op("EuclideanNorm", "input: T, reduction_indices: Tidx -> output: T", "keep_dims: bool = false", "T: numbertype",
    "Tidx: {int32, int64} = DT_INT32", shape=reduction_shape, doc="Root of the sum of squares along some axes.",
)  # fmt: skip
op("Max", "input: T, reduction_indices: Tidx -> output: T", "keep_dims: bool = false",
    "T: {realnumbertype, quantizedtype}", "Tidx: {int32, int64} = DT_INT32", shape=reduction_shape,
    doc="The greatest along some axes.",
)  # fmt: skip
op("Mean", "input: T, reduction_indices: Tidx -> output: T", "keep_dims: bool = false", "T: numbertype",
    "Tidx: {int32, int64} = DT_INT32", shape=reduction_shape, doc="The mean along some axes.",
)  # fmt: skip
op("Min", "input: T, reduction_indices: Tidx -> output: T", "keep_dims: bool = false",
    "T: {realnumbertype, quantizedtype}", "Tidx: {int32, int64} = DT_INT32", shape=reduction_shape,
    doc="The least along some axes.",
)  # fmt: skip
op("Prod", "input: T, reduction_indices: Tidx -> output: T", "keep_dims: bool = false", "T: numbertype",
    "Tidx: {int32, int64} = DT_INT32", shape=reduction_shape, doc="The product along some axes.",
)  # fmt: skip
op("Sum", "input: T, reduction_indices: Tidx -> output: T", "keep_dims: bool = false", "T: numbertype",
    "Tidx: {int32, int64} = DT_INT32", shape=reduction_shape, doc="The sum along some axes.",
)  # fmt: skip
