"""Pack the weights of convolutions into panels of features, each contiguous.

Before::

    ROOT c = f32[1,5,5,128] convolution(f32[1,7,7,9] x, f32[3,3,9,128] w), window={size=3x3}, dim_labels=b01f_01io->b01f

After, for panels of 64 features::

    a = f32[1,7,7,1,9] reshape(x)
    b = f32[3,3,9,2,64] reshape(w)
    p = f32[2,3,3,9,64] transpose(b), dimensions={3,0,1,2,4}
    d = f32[1,5,5,2,64] convolution(a, p), window={size=3x3x2 pad=0_0x0_0x1_1 rhs_reversal=0x0x1},
        dim_labels=b012f_201io->b012f
    ROOT r = f32[1,5,5,128] reshape(d)

The panels are another spatial dimension, in which the input has size 1: result p meets tap p of the reversed window,
and all other taps are outside. Kernels take that form. If the weights are known, ``p`` is computed once.
"""

from __future__ import annotations

from cyxla.types import ElementType
from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.passes.engine.rewrite_helpers import Writer, rewrite_each
from cyxla.xla.passes.expand.convolution import PANEL_BYTES, channels_last, packed_labels, panel_window


def run(module: HloModule) -> bool:
    """Pack the weights of every convolution that allows it."""
    return rewrite_each(module, {"convolution": pack})


def panel_width(ins: Instruction) -> int | None:
    """Return the number of features of a panel for a convolution in channels-last form.

    None if the weights stay as they are: they are one panel already, have no equal panels, or are of a type or in
    groups that other kernels are for.
    """
    if ins.attrs["dim_labels"] != channels_last(ins.shape.rank - 2) or ins.shape.size == 0:
        return None
    if ins.attrs["feature_group_count"] != 1 or ins.attrs["batch_group_count"] != 1:
        return None
    if ins.shape.dtype not in (ElementType.F32, ElementType.F64) or ins.operands[1].shape.size == 0:
        return None
    features = ins.shape.dims[-1]
    widths = [n // ins.shape.dtype.itemsize for n in PANEL_BYTES]
    width = next((n for n in widths if features % n == 0), features)
    return width if width < features else None


def pack(ins: Instruction) -> Instruction | None:
    """Return the packed form of one convolution, reshaped to the old shape, or None if `panel_width` is None."""
    panel = panel_width(ins)
    if panel is None:
        return None
    write, spatial = Writer(ins.computation), ins.shape.rank - 2
    x, w = ins.operands
    count = ins.shape.dims[-1] // panel
    panels = write.reshape(w, (*w.shape.dims[:-1], count, panel))
    packed = write.transpose(panels, (spatial + 1, *range(spatial + 1), spatial + 2))
    wide = write.reshape(x, (*x.shape.dims[:-1], 1, x.shape.dims[-1]))
    window = (*(ins.attrs["window"] or ()), panel_window(count))
    attrs = {**ins.attrs, "window": window, "dim_labels": packed_labels(spatial + 1)}
    shape = ins.shape.with_dims((*ins.shape.dims[:-1], count, panel))
    product = ins.computation.add("convolution", (wide, packed), attrs, shape=shape)
    return write.reshape(product, ins.shape.dims)
