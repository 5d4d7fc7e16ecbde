"""Values of instruction and module attributes: plain, frozen and hashable."""

from __future__ import annotations

from typing import NamedTuple

from cyxla.records import dataclass
from cyxla.types import Shape


class SliceDim(NamedTuple):
    """One dimension of `slice`: elements start, start + stride, .. below limit."""

    start: int
    limit: int
    stride: int = 1


class PaddingDim(NamedTuple):
    """One dimension of `pad`: elements added before, after and between; low and high may be negative."""

    low: int
    high: int
    interior: int = 0


class WindowDim(NamedTuple):
    """One dimension of a sliding window."""

    size: int
    stride: int = 1
    padding_low: int = 0
    padding_high: int = 0
    window_dilation: int = 1  # rhs_dilate: distance between elements of the window
    base_dilation: int = 1  # lhs_dilate: distance between elements of the base area
    window_reversal: bool = False


Window = tuple[WindowDim, ...]


class ConvDims(NamedTuple):
    """Dimension numbers of a convolution's operands and result (``dim_labels``)."""

    input_batch: int
    input_feature: int
    input_spatial: tuple[int, ...]
    kernel_input_feature: int
    kernel_output_feature: int
    kernel_spatial: tuple[int, ...]
    output_batch: int
    output_feature: int
    output_spatial: tuple[int, ...]


class IotaTiles(NamedTuple):
    """Devices written ``[dims]<=[reshape]T(permutation)``: iota over reshape, transposed, cut to dims."""

    dims: tuple[int, ...]
    reshape: tuple[int, ...]
    transpose: tuple[int, ...] = ()  # () is the identity


class ReplicaGroups(NamedTuple):
    """Groups of a collective, listed or as an iota; both empty means one group of all devices."""

    groups: tuple[tuple[int, ...], ...] = ()
    iota: IotaTiles | None = None


class Alias(NamedTuple):
    """``{output_index}: (operand, {operand_index})`` of fusion and custom-call."""

    output_index: tuple[int, ...]
    operand: int
    operand_index: tuple[int, ...]


class InputOutputAlias(NamedTuple):
    """One entry of a module's ``input_output_alias``; kind is ``may-alias`` or ``must-alias``."""

    output_index: tuple[int, ...]
    parameter: int
    parameter_index: tuple[int, ...]
    kind: str = "may-alias"


class BufferDonor(NamedTuple):
    """One entry of a module's ``buffer_donor``."""

    parameter: int
    parameter_index: tuple[int, ...]


@dataclass(frozen=True)
class Sharding:
    """Distribution of a value over devices. It is carried along and has no effect.

    Attributes
    ----------
    kind : str
        One of replicated, maximal, manual, unknown, unreduced, devices, named, tuple.
    devices : tuple of int
        The device of `maximal`; the tile assignment of `devices`, in row-major order, unless `iota` holds it.
    tile_dims : tuple of int
        Sizes of the tile assignment.
    iota : IotaTiles, optional
        The tile assignment in iota form.
    last_tile_dim_replicate : bool
        True if the last tile dimension is replicated.
    last_tile_dims : tuple of str
        Kinds of the subgroup dimensions (``replicated``, ``manual`` ..).
    shard_group : tuple of (str, int), optional
        ``("shard_as", 7)`` or ``("shard_like", 7)``.
    elements : tuple of Sharding
        Shardings of a tuple's elements.
    metadata : tuple of str
        Metadata as verbatim text.
    named : str
        A mesh and the axes of each dimension, as verbatim text.
    """

    kind: str
    devices: tuple[int, ...] = ()
    tile_dims: tuple[int, ...] = ()
    iota: IotaTiles | None = None
    last_tile_dim_replicate: bool = False
    last_tile_dims: tuple[str, ...] = ()
    shard_group: tuple[str, int] | None = None
    elements: tuple[Sharding, ...] = ()
    metadata: tuple[str, ...] = ()
    named: str = ""


@dataclass(frozen=True)
class DomainAttr:
    """Attribute of `domain`: the shardings on both sides."""

    kind: str
    entry: Sharding
    exit: Sharding


@dataclass(frozen=True)
class ResultAccuracy:
    """Requested accuracy of a transcendental function: a mode, or tolerances."""

    mode: str = "default"
    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0


class EntryLayout(NamedTuple):
    """Shapes, with layouts, of the entry computation's parameters and result."""

    parameters: tuple[Shape, ...]
    result: Shape


FrontendAttributes = tuple[tuple[str, str], ...]  # sorted by key; a nested {..} value is kept as text
Metadata = tuple[tuple[str, object], ...]  # (field, value) in the order of OpMetadata's fields
