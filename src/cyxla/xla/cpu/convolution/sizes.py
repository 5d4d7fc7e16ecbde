"""Sizes and strides of a convolution, channels last."""

from __future__ import annotations

from math import prod

from cyxla.records import dataclass
from cyxla.types import ElementType
from cyxla.xla.cpu.c.isa_levels import VECTOR_BITS
from cyxla.xla.cpu.c.target import isa_level
from cyxla.xla.cpu.kernel import cost, machine
from cyxla.xla.hlo import Instruction
from cyxla.xla.hlo.attributes import Window, WindowDim
from cyxla.xla.passes.expand.convolution import images_last, is_packed

# ns of a multiply-add in vector registers (True), and elsewhere: floats take 1.2 to 1.5 times the estimate, integers
# 1.2 times (SPR, see `kernel.machine`).
MAC_NS = {True: 0.01, False: 0.15}

TASK_NS = machine.TASK_NS / 4  # of a task: models are chains of small convolutions, for which all cores wait


def tasks(ns: float, units: int) -> int:
    """Return the number of tasks of a convolution, which depends only on the work."""
    return 1 if ns < cost.SERIAL_NS else int(max(1, min(ns / TASK_NS, cost.MAX_TASKS, units)))


def vector_bytes() -> int:
    """Bytes of a vector register of the processor that code is written for."""
    return VECTOR_BITS.get(isa_level(), 128) // 8


@dataclass(frozen=True)
class Sizes:
    """The numbers of a convolution.

    Attributes
    ----------
    dtype : ElementType
        Element type of the result.
    batch : int
        Number of images of the result.
    space : tuple of int
        Size of the result along each spatial dimension.
    window : tuple of WindowDim
        Window along each spatial dimension.
    depth : int
        Number of input features that a result sums over.
    features : int
        Number of features of the result.
    groups : int
        Number of groups.
    by_batch : bool
        True if the groups divide the images instead of the input features.
    input_dims : tuple of int
        Dimensions of the input.
    panel : int
        Number of features of a panel if the weights are packed (see `passes.pack_convolution`), else 0.
    """

    dtype: ElementType
    batch: int
    space: tuple[int, ...]
    window: Window
    depth: int
    features: int
    groups: int
    by_batch: bool
    input_dims: tuple[int, ...]
    panel: int = 0

    @staticmethod
    def of(ins: Instruction) -> Sizes:
        """Return the sizes of an instruction."""
        x, w, dims = ins.operands[0].shape.dims, ins.operands[1].shape.dims, ins.shape.dims
        by_batch = ins.attrs["batch_group_count"] > 1
        groups = max(ins.attrs["batch_group_count"], ins.attrs["feature_group_count"])
        window = tuple(ins.attrs["window"] or ())
        spatial = len(dims) - 2
        if ins.attrs["dim_labels"] == images_last(spatial):
            return Sizes(ins.shape.dtype, dims[-2], dims[:-2], window, w[0], w[-1], groups, by_batch, x)
        if not is_packed(ins):
            return Sizes(ins.shape.dtype, dims[0], dims[1:-1], window, w[-2], w[-1], groups, by_batch, x)
        features, x = dims[-2] * dims[-1], (*x[:-2], x[-1])
        return Sizes(ins.shape.dtype, dims[0], dims[1:-2], window[:-1], w[-2], features, 1, False, x, w[-1])

    @property
    def group_features(self) -> int:
        """Features of the result in one group."""
        return self.features // self.groups

    @property
    def is_depthwise(self) -> bool:
        """True for depthwise convolutions: each feature of the result reads one feature of the input."""
        return not self.by_batch and self.depth == 1 and self.group_features == 1 and self.groups > 1

    @property
    def taps(self) -> int:
        """Number of positions of the window."""
        return prod(w.size for w in self.window)

    @property
    def positions(self) -> int:
        """Number of positions of the result, over all images."""
        return self.batch * prod(self.space)

    @property
    def is_float(self) -> bool:
        """True if sums are kept in vector registers."""
        return self.dtype in (ElementType.F32, ElementType.F64)

    @property
    def ns(self) -> float:
        """Estimated time on one core."""
        mac_ns = MAC_NS[self.is_float] * (2 if self.dtype is ElementType.F64 else 1) * (5 if self.is_depthwise else 1)
        return self.positions * self.features * self.taps * self.depth * mac_ns


def reach(dim: WindowDim, size: int) -> int:
    """Return the extent of an input of `size` elements after base dilation."""
    return max((size - 1) * dim.base_dilation + 1, 0)
