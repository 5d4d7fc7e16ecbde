"""The values that instruction and module attributes take: plain, frozen and hashable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

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
    base_dilation: int = 1  # lhs_dilate: distance between elements of what it slides over
    window_reversal: bool = False


Window = tuple[WindowDim, ...]


class ConvDims(NamedTuple):
    """Which dimension of a convolution's operands and result plays which part (``dim_labels``)."""

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
    """Groups of a collective, listed or as an iota; both empty means one group of everybody."""

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
    """How a value is spread over devices. Carried, never acted upon.

    Attributes
    ----------
    kind : str
        replicated, maximal, manual, unknown, unreduced, devices, named or tuple.
    devices : tuple of int
        The device of `maximal`; the tile assignment of `devices`, in row-major order, unless `iota` says it.
    tile_dims : tuple of int
        Sizes of the tile assignment.
    iota : IotaTiles, optional
        The tile assignment, written as an iota.
    last_tile_dim_replicate : bool
        The last tile dimension replicates.
    last_tile_dims : tuple of str
        Kinds of the subgroup dimensions (``replicated``, ``manual`` ..).
    shard_group : tuple of (str, int), optional
        ``("shard_as", 7)`` or ``("shard_like", 7)``.
    elements : tuple of Sharding
        The parts of a tuple.
    metadata : tuple of str
        Verbatim texts.
    named : str
        A mesh and the axes of each dimension, as they are spelled.
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
    """Attribute of `domain`: sharding on either side."""

    kind: str
    entry: Sharding
    exit: Sharding


@dataclass(frozen=True)
class ResultAccuracy:
    """Accuracy asked of a transcendental function: a mode, or tolerances."""

    mode: str = "default"
    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0


class EntryLayout(NamedTuple):
    """Shapes with layouts of the entry computation's parameters and result."""

    parameters: tuple[Shape, ...]
    result: Shape


FrontendAttributes = tuple[tuple[str, str], ...]  # sorted by key; a nested {..} value is kept as its text
Metadata = tuple[tuple[str, object], ...]  # (field, value) in the order of OpMetadata's fields
