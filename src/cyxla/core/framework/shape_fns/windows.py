"""Shape functions of ops with a data format: convolutions, pooling, biases and batch normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import Dim, TensorShape
from cyxla.errors import InvalidArgumentError, ShapeError

# The dimensions in order: N for the batch, C for channels, and digits for spatial dimensions.
_LAYOUTS = {
    "NHWC": "N01C", "NCHW": "NC01", "NDHWC": "N012C", "NCDHW": "NC012", "NWC": "N0C", "NCW": "NC0",
    "CHANNELS_LAST": "N01C", "CHANNELS_FIRST": "NC01", "NCHW_VECT_C": "NC01V",
}  # fmt: skip
_FILTERS = {"HWIO": "01IO", "OIHW": "OI01", "OIHW_VECT_I": "OI01V"}


@dataclass(frozen=True)
class Layout:
    """Positions of batch, channels and spatial dimensions in a shape."""

    rank: int
    batch: int
    channels: int
    spatial: tuple[int, ...]

    @classmethod
    def of(cls, name: str, spatial: int | None = None) -> Layout:
        """Return the layout of a data format.

        Raises
        ------
        InvalidArgumentError
            The format is unknown, or has another number of spatial dimensions.
        """
        text = _LAYOUTS.get(name)
        if text is None:
            raise InvalidArgumentError(f"unknown data format {name!r}")
        digits = tuple(text.index(d) for d in "012" if d in text)
        if spatial is not None and len(digits) != spatial:
            raise InvalidArgumentError(f"the data format {name!r} has {len(digits)} spatial dimensions, not {spatial}")
        return cls(len(text), text.index("N"), text.index("C"), digits)

    def shape(self, batch: Dim, channels: Dim, spatial: Sequence[Dim]) -> TensorShape:
        """Return a shape in this layout."""
        dims: list[Dim] = [None] * self.rank
        dims[self.batch], dims[self.channels] = batch, channels
        for at, size in zip(self.spatial, spatial, strict=True):
            dims[at] = size
        return TensorShape(dims)


def windowed_output_size(
    size: Dim, window: Dim, stride: int, padding: str, dilation: int = 1, explicit: tuple[int, int] = (0, 0)
) -> Dim:
    """Return the number of windows that fit a dimension.

    Raises
    ------
    ShapeError
        No window fits without padding, or a stride or dilation is not positive.
    """
    if stride <= 0 or dilation <= 0:
        raise ShapeError(f"the stride {stride} and the dilation {dilation} must be positive")
    if size is None or (window is None and padding != "SAME"):
        return None
    if padding == "SAME":
        return -(-size // stride)
    reach = ((window or 0) - 1) * dilation + 1
    size += sum(explicit) if padding == "EXPLICIT" else 0
    if reach > size:
        raise ShapeError(f"a window of {reach} does not fit a dimension of {size}")
    return (size - reach) // stride + 1


def _data_format(c: InferenceContext, default: str) -> str:
    has_attr = any(a.name == "data_format" for a in c.op_def.attr)
    return (c.attr("data_format") or default) if has_attr else default


def _has_attr(c: InferenceContext, name: str) -> bool:
    return any(a.name == name for a in c.op_def.attr)


def _int_list(c: InferenceContext, name: str, rank: int) -> Sequence[int]:
    """Return a list attribute with one number for each dimension."""
    values: Sequence[int] = c.attr(name)
    if len(values) != rank:
        raise ShapeError(f"{c.op_def.name}: {name} must have {rank} numbers, but is {list(values)}")
    return values


def _explicit_paddings(c: InferenceContext, layout: Layout) -> list[tuple[int, int]]:
    """Return the low and high padding of each spatial dimension."""
    paddings: Sequence[int] = c.attr("explicit_paddings") if _has_attr(c, "explicit_paddings") else ()
    if c.attr("padding") != "EXPLICIT":
        if paddings:
            raise ShapeError(f"{c.op_def.name}: explicit_paddings must be empty unless padding is EXPLICIT")
        return [(0, 0)] * len(layout.spatial)
    if len(paddings) != 2 * layout.rank:
        raise ShapeError(f"{c.op_def.name}: explicit_paddings must have {2 * layout.rank} numbers, not {len(paddings)}")
    if min(paddings) < 0:
        raise ShapeError(f"{c.op_def.name}: explicit_paddings has a negative number: {list(paddings)}")
    if any(paddings[2 * at] or paddings[2 * at + 1] for at in (layout.batch, layout.channels)):
        raise ShapeError(f"{c.op_def.name}: neither batch nor channels may be padded")
    return [(paddings[2 * at], paddings[2 * at + 1]) for at in layout.spatial]


def _spatial_sizes(
    c: InferenceContext, layout: Layout, x: TensorShape, window: Sequence[Dim], strides: Sequence[int],
    dilations: Sequence[int],
) -> list[Dim]:  # fmt: skip
    paddings = _explicit_paddings(c, layout)
    return [
        windowed_output_size(x[at], w, strides[at], c.attr("padding"), dilations[at], padding)
        for at, w, padding in zip(layout.spatial, window, paddings, strict=True)
    ]


# Convolutions ----------------------------------------------------------------------------------------------------


def _conv(c: InferenceContext, layout: Layout, filter_layout: str) -> None:
    x, kernel = c.with_rank(c.input(0), layout.rank), c.with_rank(c.input(1), len(filter_layout))
    strides = _int_list(c, "strides", layout.rank)
    dilations = _int_list(c, "dilations", layout.rank) if _has_attr(c, "dilations") and c.attr("dilations") else None
    window = [kernel[filter_layout.index(str(i))] for i in range(len(layout.spatial))]
    channels, per_group = x[layout.channels], kernel[filter_layout.index("I")]
    _check_groups(c, channels, per_group, kernel[filter_layout.index("O")])
    sizes = _spatial_sizes(c, layout, x, window, strides, dilations or (1,) * layout.rank)
    c.set_output(0, layout.shape(x[layout.batch], kernel[filter_layout.index("O")], sizes))


def _check_groups(c: InferenceContext, channels: Dim, per_group: Dim, out: Dim) -> None:
    if channels is None or per_group is None:
        return
    if per_group == 0:
        raise ShapeError(f"{c.op_def.name}: the filter has 0 input channels")
    if channels % per_group:
        raise ShapeError(f"{c.op_def.name}: {channels} input channels are not a multiple of the filter's {per_group}")
    groups = channels // per_group
    if groups > 1 and out is not None and out % groups:
        raise ShapeError(f"{c.op_def.name}: {out} output channels are not a multiple of the {groups} groups")


def conv2d_shape(c: InferenceContext) -> None:
    """Two spatial dimensions; the filter is ``[height, width, in, out]`` unless ``filter_format`` says otherwise."""
    filter_layout = _FILTERS[c.attr("filter_format")] if _has_attr(c, "filter_format") else "01IO"
    _conv(c, Layout.of(_data_format(c, "NHWC"), 2), filter_layout)


def conv3d_shape(c: InferenceContext) -> None:
    """Three spatial dimensions; the filter is ``[depth, height, width, in, out]``."""
    _conv(c, Layout.of(_data_format(c, "NDHWC"), 3), "012IO")


def conv_shape(c: InferenceContext) -> None:
    """Two or three spatial dimensions behind any number of batch dimensions; the filter's rank tells how many."""
    batch_dims, rank = c.attr("batch_dims"), c.input(1).rank
    if rank is None or c.input(0).rank is None:
        return
    if rank not in (4, 5):
        raise ShapeError(f"{c.op_def.name}: the filter must be of rank 4 or 5, but is {c.input(1)}")
    x = c.with_rank(c.input(0), rank + batch_dims - 1)
    spatial = rank - 2
    last = c.attr("data_format") == "CHANNELS_LAST"
    first = batch_dims + (0 if last else 1)
    layout = Layout(x.rank or 0, 0, -1 if last else batch_dims, tuple(range(first, first + spatial)))
    strides = _int_list(c, "strides", spatial + 2)
    dilations = _int_list(c, "dilations", spatial + 2) if c.attr("dilations") else (1,) * (spatial + 2)
    kernel = c.input(1)
    _check_groups(c, x[layout.channels], kernel[spatial], kernel[spatial + 1])
    offset = 1 if last else 2
    explicit = c.attr("padding") == "EXPLICIT"
    paddings = _int_list(c, "explicit_paddings", 2 * spatial + 4) if explicit else (0,) * (2 * spatial + 4)
    sizes = [
        windowed_output_size(
            x[at], kernel[i], strides[offset + i], c.attr("padding"), dilations[offset + i],
            (paddings[2 * (offset + i)], paddings[2 * (offset + i) + 1]),
        )
        for i, at in enumerate(layout.spatial)
    ]  # fmt: skip
    batch = x[:batch_dims]
    out = kernel[spatial + 1]
    c.set_output(0, c.concatenate(batch, (*sizes, out) if last else (out, *sizes)))


def depthwise_conv2d_shape(c: InferenceContext) -> None:
    """A filter ``[height, width, channels, multiplier]`` on each channel."""
    layout = Layout.of(_data_format(c, "NHWC"), 2)
    x, kernel = c.with_rank(c.input(0), 4), c.with_rank(c.input(1), 4)
    strides = _int_list(c, "strides", 4)
    dilations = _int_list(c, "dilations", 4) if c.attr("dilations") else (1,) * 4
    channels = c.merge_dim(x[layout.channels], kernel[2])
    sizes = _spatial_sizes(c, layout, x, [kernel[0], kernel[1]], strides, dilations)
    c.set_output(0, layout.shape(x[layout.batch], c.multiply(channels, kernel[3]), sizes))


# Pooling ---------------------------------------------------------------------------------------------------------


def _pool(c: InferenceContext, layout: Layout, window: Sequence[Dim], strides: Sequence[int]) -> TensorShape:
    x = c.with_rank(c.input(0), layout.rank)
    sizes = _spatial_sizes(c, layout, x, [window[at] for at in layout.spatial], strides, (1,) * layout.rank)
    w, s = window[layout.channels], strides[layout.channels]
    channels = windowed_output_size(x[layout.channels], w, s, "VALID") if w != 1 else x[layout.channels]
    return layout.shape(x[layout.batch], channels, sizes)


def avg_pool_shape(c: InferenceContext) -> None:
    """Two spatial dimensions; window and strides are attributes."""
    layout = Layout.of(_data_format(c, "NHWC"), 2)
    c.set_output(0, _pool(c, layout, _int_list(c, "ksize", 4), _int_list(c, "strides", 4)))


max_pool_shape = avg_pool_shape


def max_pool_v2_shape(c: InferenceContext, first: int | None = None) -> None:
    """Two spatial dimensions; window and strides are the last two inputs, or those from `first` on."""
    first = c.num_inputs - 2 if first is None else first
    layout = Layout.of(_data_format(c, "NHWC"), 2)
    values = [c.input_tensor(first), c.input_tensor(first + 1)]
    for value in values:
        if value is not None and value.shape != (4,):
            raise ShapeError(f"{c.op_def.name}: window and strides must have 4 numbers")
    window, strides = values
    if window is None or strides is None:
        c.set_output(0, c.unknown_shape_of_rank(4))
        return
    c.set_output(0, _pool(c, layout, window.tolist(), strides.tolist()))


def avg_pool_grad_shape(c: InferenceContext) -> None:
    """Set the output to the shape in the first input, that of the pooled array."""
    c.set_output(0, c.with_rank(c.make_shape_from_shape_tensor(0), Layout.of(c.attr("data_format")).rank))


def pool3d_shape(c: InferenceContext) -> None:
    """Three spatial dimensions; window and strides are attributes."""
    layout = Layout.of(_data_format(c, "NDHWC"), 3)
    c.set_output(0, _pool(c, layout, _int_list(c, "ksize", 5), _int_list(c, "strides", 5)))


# Channels --------------------------------------------------------------------------------------------------------


def _channel_axis(name: str, rank: int) -> int:
    return 1 if name.startswith("NC") else rank - 1


def bias_add_shape(c: InferenceContext) -> None:
    """A vector added along the channels, which are last, or second where the data format says so."""
    name = _data_format(c, "NHWC")
    x = c.with_rank_at_least(c.input(0), 3 if name == "NCHW" else 2)
    bias = c.with_rank(c.input(1), 1)
    if x.dims is None:
        return
    axis = _channel_axis(name, len(x.dims))
    c.set_output(0, c.replace_dim(x, axis, c.merge_dim(x[axis], bias[0])))


def bias_add_grad_shape(c: InferenceContext) -> None:
    """A vector of the size of the channels."""
    name = _data_format(c, "NHWC")
    x = c.with_rank_at_least(c.input(0), 3 if name == "NCHW" else 2)
    c.set_output(0, (None if x.dims is None else x[_channel_axis(name, len(x.dims))],))


def fused_batch_norm_shape(c: InferenceContext) -> None:
    """The output is shaped like the input, then come vectors along its channels."""
    name = _data_format(c, "NHWC")
    x = c.with_rank(c.input(0), 5 if "D" in name else 4)
    axis = _channel_axis(name, len(x))
    channels = x[axis]
    training = c.attr("is_training")
    exponential = _has_attr(c, "exponential_avg_factor") and c.attr("exponential_avg_factor") != 1.0
    for i in range(1, 5 if not training or exponential else 3):
        channels = c.merge_dim(channels, c.with_rank(c.input(i), 1)[0])
    c.set_output(0, c.replace_dim(x, axis, channels))
    for i in range(1, min(c.num_outputs, 5)):
        c.set_output(i, (channels,))


def fused_batch_norm_grad_shape(c: InferenceContext) -> None:
    """The gradient is shaped like the input; scale and offset are vectors along its channels."""
    name = _data_format(c, "NHWC")
    rank = 5 if "D" in name else 4
    x = c.merge(c.with_rank(c.input(0), rank), c.with_rank(c.input(1), rank))
    axis = _channel_axis(name, rank)
    channels = x[axis]
    for i in (2, 3, 4):
        channels = c.merge_dim(channels, c.with_rank(c.input(i), 1)[0])
    c.set_output(0, c.replace_dim(x, axis, channels))
    for i in (1, 2):
        c.set_output(i, (channels,))
    for i in (3, 4):
        c.set_output(i, (0,) if c.attr("is_training") else (channels,))
