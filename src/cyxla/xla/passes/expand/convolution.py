"""Rewrite convolutions into the form that has kernels: channels last, one type throughout.

Before::

    ROOT c = bf16[1,8,5,5] convolution(bf16[1,3,7,7] x, bf16[8,3,3,3] w), window={size=3x3}, dim_labels=bf01_oi01->bf01

After::

    a = f32[1,7,7,3] transpose(convert(x)), dimensions={0,2,3,1}
    b = f32[3,3,3,8] transpose(convert(w)), dimensions={2,3,1,0}
    c = f32[1,5,5,8] convolution(a, b), window={size=3x3}, dim_labels=b01f_01io->b01f
    ROOT r = bf16[1,8,5,5] convert(transpose(c)), dimensions={0,3,1,2}

Floats narrower than 32 bits are multiplied and added in f32 and rounded once.
"""

from __future__ import annotations

from math import prod

from cyxla.types import ElementType
from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.hlo.attributes import ConvDims, WindowDim
from cyxla.xla.passes.engine.rewrite_helpers import Writer, rewrite_each

ROW_BYTES = 64  # least row of results of the kernels with the batch last
PANEL_BYTES = (256, 192, 128, 64)  # one row of a panel of weights, the best first


def run(module: HloModule) -> bool:
    """Rewrite convolutions that are not in that form."""
    return rewrite_each(module, {"convolution": _convolution})


def channels_last(spatial: int) -> ConvDims:
    """Return the dimension numbers of kernels: batch, space, features; space, input features, output features."""
    spatial_dims = tuple(range(1, spatial + 1))
    return ConvDims(
        0, spatial + 1, spatial_dims, spatial, spatial + 1, tuple(range(spatial)), 0, spatial + 1, spatial_dims
    )


def images_last(spatial: int) -> ConvDims:
    """Return the dimension numbers of kernels for few results from large windows: features, space, batch."""
    spatial_dims = tuple(range(1, spatial + 1))
    return ConvDims(
        spatial + 1, 0, spatial_dims, 0, spatial + 1, spatial_dims, spatial, spatial + 1, tuple(range(spatial))
    )


def is_gradient(ins: Instruction, dtype: ElementType) -> bool:
    """Return True if a convolution of products in a type has the form of a gradient by the weights.

    Its batch are features, contiguous in memory, its window is a large image, and its results are few.
    """
    dims: ConvDims = ins.attrs["dim_labels"]
    if dtype not in (ElementType.F32, ElementType.F64) or not dims.input_spatial or ins.shape.size == 0:
        return False
    groups = max(ins.attrs["batch_group_count"], ins.attrs["feature_group_count"])
    features = ins.shape.dims[dims.output_feature]
    pairs = ins.attrs["batch_group_count"] == groups == features == ins.operands[0].shape.dims[dims.input_batch]
    row = (features if pairs else features // groups) * dtype.itemsize
    num_positions = prod(ins.shape.dims[d] for d in dims.output_spatial)
    return (
        dims.input_batch > dims.input_feature
        and row >= ROW_BYTES
        and prod(w.size for w in ins.attrs["window"]) > num_positions
    )


def packed_labels(spatial: int) -> ConvDims:
    """Return the dimension numbers of a packed convolution, whose panels are one of the `spatial` dimensions."""
    return channels_last(spatial)._replace(kernel_spatial=(*range(1, spatial), 0))


def panel_window(count: int) -> WindowDim:
    """Return the window of a packed convolution along the panels: result p meets tap p, and no other."""
    return WindowDim(count, padding_low=count - 1, padding_high=count - 1, window_reversal=True)


def is_packed(ins: Instruction) -> bool:
    """Return True if a convolution has its weights in panels, see `pack_convolution`; kernels take that form, too."""
    spatial = ins.shape.rank - 2
    if spatial < 1 or ins.attrs["dim_labels"] != packed_labels(spatial):
        return False
    x, w = (o.shape.dims for o in ins.operands)
    types = {ins.shape.dtype, *(o.shape.dtype for o in ins.operands)}
    if len(types) != 1 or not types <= {ElementType.F32, ElementType.F64} or ins.shape.size == 0 or 0 in w:
        return False
    ungrouped = ins.attrs["feature_group_count"] == ins.attrs["batch_group_count"] == 1
    fits = x[-2] == 1 and w[-1] * ins.shape.dtype.itemsize in PANEL_BYTES
    return bool(ungrouped and fits and ins.attrs["window"][-1] == panel_window(w[0]))


def _convolution(ins: Instruction) -> Instruction | None:
    dims: ConvDims = ins.attrs["dim_labels"]
    types = [ins.shape.dtype, *(o.shape.dtype for o in ins.operands)]
    work = max((*types, ElementType.F32), key=lambda t: t.bits) if all(t.is_float for t in types) else None
    if is_packed(ins):
        return None
    by_images = is_gradient(ins, work or ins.shape.dtype)
    wanted_dims = (images_last if by_images else channels_last)(len(dims.input_spatial))
    if dims == wanted_dims and (work is None or all(t is work for t in types)):
        return None
    write = Writer(ins.computation)
    x, w = (write.convert(o, work) if work is not None else o for o in ins.operands)
    x = write.transpose(x, _order(_input(wanted_dims), _input(dims)))
    w = write.transpose(w, _order(_kernel(wanted_dims), _kernel(dims)))
    order = _order(_output(wanted_dims), _output(dims))
    shape = ins.shape.with_dtype(work or ins.shape.dtype)
    attrs = {**ins.attrs, "dim_labels": wanted_dims}
    product = ins.computation.add("convolution", (x, w), attrs, shape=shape.with_dims([shape.dims[d] for d in order]))
    restored = write.transpose(product, [order.index(d) for d in range(len(order))])
    return write.convert(restored, ins.shape.dtype)


def _input(dims: ConvDims) -> tuple[int, ...]:
    return dims.input_batch, dims.input_feature, *dims.input_spatial


def _kernel(dims: ConvDims) -> tuple[int, ...]:
    return dims.kernel_input_feature, dims.kernel_output_feature, *dims.kernel_spatial


def _output(dims: ConvDims) -> tuple[int, ...]:
    return dims.output_batch, dims.output_feature, *dims.output_spatial


def _order(target: tuple[int, ...], current: tuple[int, ...]) -> list[int]:
    """For each position in the wanted order, return the present position of its dimension."""
    return [current[target.index(position)] for position in range(len(target))]
