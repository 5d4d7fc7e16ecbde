"""The dimensions of operands and results that have the same size, by op.

With such a layout, a kernel that takes static sizes alone is called with padded operands, and its results get the
sizes of the operands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np

from cyxla.core.framework.geometry.shape_operands import axis_of
from cyxla.errors import InvalidArgumentError, OpError, ShapeError
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.lib.values import max_value, min_value, scalar

Array = np.ndarray[Any, Any]
Labels: TypeAlias = tuple[Any, ...]
Filler: TypeAlias = Callable[[XlaOp], XlaOp]


class Node(Protocol):
    """Inputs and attributes of a node that is being compiled."""

    num_inputs: int

    def shape(self, key: int) -> tuple[int, ...]:
        """Return the shape of an input, with bounds for dynamic sizes; () if it is no array."""

    def rank(self, key: int) -> int:
        """Return the rank of an input."""

    def attr(self, name: str, default: Any = None) -> Any:
        """Return an attribute, `default` if the node does not have it."""

    def constant_input(self, key: int) -> Array:
        """Return the value of an input that must be a compile-time constant."""

    def known_input(self, key: int) -> Array | None:
        """Return the value of an input if it is a compile-time constant."""


@dataclass(frozen=True)
class SizeLayout:
    """Dimensions of one size.

    Parameters
    ----------
    operands, results : sequence of tuple
        Labels of the dimensions of each array. Dimensions of one label have the same size. Those labelled None must be
        static in operands, and have the size that the kernel gives them in results, as those of results that are left
        out.
    fillers : mapping of int to callable
        Functions of operands, by their index, that return the scalar which the kernel reads in place of padding.
        Padding of other operands has any values, and does not reach results inside of their sizes.
    nonempty : sequence
        Labels of dimensions that must have elements.
    indices : mapping of int to label
        Operands, by their index, that hold indices of a dimension.
    index_rows : mapping of int to tuple of labels
        Operands, by their index, of which the last dimension holds an index of each of several dimensions.
    skips_negative : bool
        Whether negative indices are allowed.
    sizes : mapping of int to label or tuple of labels
        Operands, by their index, that are a size, or a vector of sizes, of results: constants, or computed at run time
        of other sizes. The kernel reads their bounds.
    mismatch : type
        Error of runs in which sizes of one label differ.
    """

    operands: Sequence[Labels]
    results: Sequence[Labels]
    fillers: Mapping[int, Filler] = field(default_factory=dict)
    nonempty: Sequence[Any] = ()
    indices: Mapping[int, Any] = field(default_factory=dict)
    index_rows: Mapping[int, Labels] = field(default_factory=dict)
    skips_negative: bool = False
    sizes: Mapping[int, Any] = field(default_factory=dict)
    mismatch: type[OpError] = ShapeError


def _filled(number: Any) -> Filler:
    return lambda x: scalar(x, number)


Layout: TypeAlias = Callable[[Node], SizeLayout | None]  # None if nothing is known of a node's sizes

LAYOUTS: dict[str, Layout] = {}


def _layout(*names: str) -> Callable[[Layout], Layout]:
    def register(function: Layout) -> Layout:
        LAYOUTS.update(dict.fromkeys(names, function))
        return function

    return register


def _but(rank: int, *static: int) -> Labels:
    """Return labels of all dimensions but some."""
    return tuple(None if d in static or d - rank in static else d for d in range(rank))


def _static(node: Node) -> list[Labels]:
    """Return labels of static inputs."""
    return [(None,) * node.rank(i) for i in range(node.num_inputs)]


def _with(node: Node, *labels: Labels) -> list[Labels]:
    """Return labels of inputs, the first of which are given."""
    return [*labels, *_static(node)[len(labels) :]]


# -------------------------------------------------------------------------------------------------- arrays of one shape


@_layout(
    "AccumulateNV2", "AddN", "ApproximateEqual", "Betainc", "Bucketize", "CheckNumerics", "ClipByValue", "EluGrad",
    "FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxArgsGradient", "FakeQuantWithMinMaxVars", "LeakyReluGrad",
    "OnesLike", "ReciprocalGrad", "Relu6Grad", "ReluGrad", "RsqrtGrad", "SeluGrad", "SigmoidGrad", "SoftplusGrad",
    "SoftsignGrad", "SqrtGrad", "TanhGrad", "XlaReducePrecision", "ZerosLike", "_UnaryOpsComposition",
)  # fmt: skip
def _same_shape(node: Node) -> SizeLayout:
    """Arrays of one shape, or scalars."""
    ranks = [node.rank(i) for i in range(node.num_inputs)]
    return SizeLayout([_but(rank) for rank in ranks], [_but(max(ranks))])


@_layout("Select")
def _select(node: Node) -> SizeLayout:
    """Two arrays of one shape, and conditions of that shape, or of its first dimension."""
    rank = node.rank(1)
    return SizeLayout([_but(rank)[: node.rank(0)], _but(rank), _but(node.rank(2))], [_but(rank)])


@_layout("Diag")
def _diag(node: Node) -> SizeLayout:
    labels = _but(node.rank(0))
    return SizeLayout([labels], [labels * 2])


@_layout("Bitcast")
def _bitcast(node: Node) -> SizeLayout | None:
    widths = [node.attr(name).numpy.itemsize for name in ("T", "type")]
    return _same_shape(node) if widths[0] == widths[1] else None


@_layout("BiasAdd", "BiasAddV1")
def _bias_add(node: Node) -> SizeLayout:
    """The bias is of the channels, the last dimension or the second."""
    labels = _but(node.rank(0))
    return SizeLayout([labels, _channels(node, labels)], [labels])


def _channels(node: Node, labels: Labels) -> Labels:
    return labels[1:2] if node.attr("data_format") in ("NCHW", b"NCHW") else labels[-1:]


@_layout("BiasAddGrad")
def _bias_add_grad(node: Node) -> SizeLayout:
    labels = _but(node.rank(0))
    return SizeLayout([labels], [_channels(node, labels)], {0: _filled(0)})


@_layout("Empty", "Fill", "RandomStandardNormal", "RandomUniform", "TruncatedNormal")
def _made_of_sizes(node: Node) -> SizeLayout:
    """Values that do not depend on their index."""
    labels = _but(*node.shape(0)) if node.rank(0) == 1 else ()
    return SizeLayout(_static(node), [labels], sizes={0: labels})


@_layout("L2Loss")
def _l2_loss(node: Node) -> SizeLayout:
    return SizeLayout([_but(node.rank(0))], [()], {0: _filled(0)})


# ----------------------------------------------------------------------------- leading dimensions, for batches of rows

#: Number of trailing dimensions that are static, for each operand (None: all of its dimensions) and each result.
_BATCHED: dict[str, tuple[Sequence[int | None], Sequence[int]]] = {
    **dict.fromkeys(("HSVToRGB", "RGBToHSV", "FFT", "IFFT"), ((1,), (1,))),
    **dict.fromkeys(("RFFT", "IRFFT"), ((1, None), (1,))),
    **dict.fromkeys(("Cholesky", "MatrixInverse", "FFT2D", "IFFT2D"), ((2,), (2,))),
    **dict.fromkeys(("RFFT2D", "IRFFT2D"), ((2, None), (2,))),
    **dict.fromkeys(("FFT3D", "IFFT3D"), ((3,), (3,))),
    **dict.fromkeys(("RFFT3D", "IRFFT3D"), ((3, None), (3,))),
    "MatrixDiagPart": ((2,), (1,)),
    "MatrixSetDiag": ((2, 1), (2,)),
    "MatrixSolve": ((2, 2), (2,)),
    "Qr": ((2,), (2, 2)),
    "SelfAdjointEigV2": ((2,), (1, 2)),
    "Cross": ((1, 1), (1,)),
    "InTopKV2": ((1, 0, None), (0,)),
    "SoftmaxCrossEntropyWithLogits": ((1, 1), (0, 1)),
    "SparseSoftmaxCrossEntropyWithLogits": ((1, 0), (0, 1)),
    **dict.fromkeys(("AdjustContrastv2", "AdjustHue", "AdjustSaturation"), ((3, None), (3,))),
    **dict.fromkeys(("Conv2D", "DepthwiseConv2dNative"), ((3, None), (3,))),
    **dict.fromkeys(("AvgPool", "MaxPool", "LRN", "DepthToSpace", "SpaceToDepth", "ExtractImagePatches"), ((3,), (3,))),
    **dict.fromkeys(("ResizeBilinear", "ResizeNearestNeighbor"), ((3, None), (3,))),
    "MaxPoolGrad": ((3, 3, 3), (3,)),
    "MaxPoolV2": ((3, None, None), (3,)),
    "Conv3D": ((4, None), (4,)),
    **dict.fromkeys(("AvgPool3D", "MaxPool3D"), ((4,), (4,))),
}  # fmt: skip


def _batched(operands: Sequence[int | None], results: Sequence[int]) -> Layout:
    def layout(node: Node) -> SizeLayout | None:
        ranks = [node.rank(i) for i in range(len(operands))]
        batch = ranks[0] - (operands[0] or 0)
        if batch < 0:
            return None
        labels = [_leading(0 if n is None else r - n, r) for n, r in zip(operands, ranks, strict=True)]
        return SizeLayout(_with(node, *labels), [_leading(batch, batch + n) for n in results])

    return layout


def _leading(batch: int, rank: int) -> Labels:
    return tuple(d if d < batch else None for d in range(rank))


for _name, (_operands, _results) in _BATCHED.items():
    _layout(_name)(_batched(_operands, _results))


@_layout("BatchMatrixBandPart", "MatrixBandPart")
def _band_part(node: Node) -> SizeLayout:
    """Widths of bands must not exceed the sizes, which all and none do."""
    rank, widths = node.rank(0), [node.known_input(i) for i in (1, 2)]
    is_any_size = all(width is not None and (width <= 0).all() for width in widths)
    labels = _but(rank) if is_any_size else _leading(rank - 2, rank)
    return SizeLayout(_with(node, labels), [labels])


@_layout("BatchMatrixDiag", "MatrixDiag")
def _square_of_diagonal(node: Node) -> SizeLayout:
    labels = _but(node.rank(0))
    return SizeLayout([labels], [labels + labels[-1:]])


def _diagonals(node: Node) -> int:
    """Return the number of dimensions of a band's diagonals: one if it is a single diagonal, else two."""
    return 1 if len(set(node.constant_input(1).reshape(-1).tolist())) == 1 else 2


@_layout("MatrixDiagV2", "MatrixDiagV3")
def _matrix_diag(node: Node) -> SizeLayout:
    batch = node.rank(0) - _diagonals(node)
    return SizeLayout(_with(node, _leading(batch, node.rank(0))), [_leading(batch, batch + 2)])


@_layout("MatrixDiagPartV2", "MatrixDiagPartV3")
def _matrix_diag_part(node: Node) -> SizeLayout:
    batch = node.rank(0) - 2
    return SizeLayout(_with(node, _leading(batch, node.rank(0))), [_leading(batch, batch + _diagonals(node))])


@_layout("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def _fused_batch_norm(node: Node) -> SizeLayout | None:
    """In training, mean and variance are of all images."""
    if node.attr("is_training"):
        return None
    labels = _leading(1, node.rank(0))
    return SizeLayout(_with(node, labels), [labels])


# ----------------------------------------------------------------------------------------------- dimensions of an axis


@_layout("LogSoftmax", "Softmax")
def _softmax(node: Node) -> SizeLayout:
    labels = _but(node.rank(0))
    return SizeLayout([labels], [labels], {0: _filled(-np.inf)})


def _arg(filler: Filler) -> Layout:
    def layout(node: Node) -> SizeLayout:
        """Padding comes last, and so does not win against equal elements."""
        labels, axis = _but(node.rank(0)), axis_of(node.constant_input(1), node.rank(0))
        rest = labels[:axis] + labels[axis + 1 :]
        return SizeLayout(_with(node, labels), [rest], {0: filler}, nonempty=[axis])

    return layout


_layout("ArgMax")(_arg(min_value))
_layout("ArgMin")(_arg(max_value))


def _scan(number: Any) -> Layout:
    def layout(node: Node) -> SizeLayout:
        """In a reversed scan, the padding comes first."""
        return SizeLayout(_with(node, _but(node.rank(0))), [_but(node.rank(0))], {0: _filled(number)})

    return layout


for _name, _number in (("Cumsum", 0), ("Cumprod", 1), ("CumulativeLogsumexp", -np.inf)):
    _layout(_name)(_scan(_number))


@_layout("OneHot")
def _one_hot(node: Node) -> SizeLayout:
    labels, axis = _but(node.rank(0)), node.attr("axis")
    at = len(labels) if axis == -1 else axis
    return SizeLayout(_with(node, labels), [(*labels[:at], "depth", *labels[at:])], sizes={1: "depth"})


@_layout("Pack")
def _pack(node: Node) -> SizeLayout:
    labels = _but(node.rank(0))
    at = axis_of(np.array(node.attr("axis")), len(labels) + 1)
    return SizeLayout([labels] * node.num_inputs, [(*labels[:at], None, *labels[at:])])


@_layout("Unpack")
def _unpack(node: Node) -> SizeLayout:
    axis = axis_of(np.array(node.attr("axis")), node.rank(0))
    labels = _but(node.rank(0), axis)
    return SizeLayout([labels], [labels[:axis] + labels[axis + 1 :]] * node.attr("num"))


@_layout("Split")
def _split(node: Node) -> SizeLayout:
    labels = _but(node.rank(1), axis_of(node.constant_input(0), node.rank(1)))
    return SizeLayout([(), labels], [labels] * node.attr("num_split"))


@_layout("SplitV")
def _split_v(node: Node) -> SizeLayout:
    labels = _but(node.rank(0), axis_of(node.constant_input(2), node.rank(0)))
    return SizeLayout(_with(node, labels), [labels] * node.attr("num_split"))


@_layout("Tile")
def _tile(node: Node) -> SizeLayout:
    labels = _but(node.rank(0), *np.flatnonzero(node.constant_input(1) != 1).tolist())
    return SizeLayout(_with(node, labels), [labels])


@_layout("MirrorPad")
def _mirror_pad(node: Node) -> SizeLayout | None:
    """In reflections without the border, no dimension may be empty."""
    if node.attr("mode") not in ("SYMMETRIC", b"SYMMETRIC"):
        return None
    labels = _but(node.rank(0), *np.flatnonzero(node.constant_input(1).any(1)).tolist())
    return SizeLayout(_with(node, labels), [labels])


@_layout("Roll")
def _roll(node: Node) -> SizeLayout:
    axes = [axis_of(np.array(d), node.rank(0)) for d in node.constant_input(2).reshape(-1).tolist()]
    labels = _but(node.rank(0), *axes)
    return SizeLayout(_with(node, labels), [labels])


# ------------------------------------------------------------------------------------------------- gathers and scatters


def _gathered(node: Node, axis: int, batch: int) -> SizeLayout:
    """The batch, then dimensions of the operand around those of the indices."""
    params, indices = node.rank(0), node.rank(1)
    of_params = tuple(("batch" if d < batch else "params", d) for d in range(params))
    of_indices = tuple(("batch" if d < batch else "indices", d) for d in range(indices))
    result = of_params[:axis] + of_indices[batch:] + of_params[axis + 1 :]
    return SizeLayout(_with(node, of_params, of_indices), [result], indices={1: of_params[axis]})


@_layout("Gather")
def _gather(node: Node) -> SizeLayout:
    return _gathered(node, 0, 0)


@_layout("GatherV2")
def _gather_v2(node: Node) -> SizeLayout:
    batch = node.attr("batch_dims")
    axis = axis_of(node.constant_input(2), node.rank(0))
    return _gathered(node, axis, batch + node.rank(1) if batch < 0 else batch)


@_layout("GatherNd")
def _gather_nd(node: Node) -> SizeLayout:
    depth = node.shape(1)[-1] if node.rank(1) else 0
    of_params = tuple(("params", d) for d in range(node.rank(0)))
    of_indices = tuple(("indices", d) for d in range(node.rank(1) - 1))
    return SizeLayout(
        [of_params, (*of_indices, None)], [of_indices + of_params[depth:]], index_rows={1: of_params[:depth]}
    )


@_layout("Where")
def _where(node: Node) -> SizeLayout:
    return SizeLayout([_but(node.rank(0))], [(None, None)], {0: _filled(0)})


@_layout(
    *(f"UnsortedSegment{name}" for name in ("Max", "Min", "Prod", "Sum")),
    *(f"Segment{name}V2" for name in ("Max", "Min", "Prod", "Sum")),
)
def _segments(node: Node) -> SizeLayout:
    """Rows of padding have a negative number, with which they are skipped."""
    labels, ids = _but(node.rank(0)), node.rank(1)
    return SizeLayout(
        _with(node, labels, labels[:ids]),
        [("segments", *labels[ids:])],
        {1: _filled(-1)},
        indices={1: "segments"},
        skips_negative=True,
        sizes={2: "segments"},
    )


@_layout("Bincount")
def _bincount(node: Node) -> SizeLayout:
    labels = _but(node.rank(0))
    weights = labels if node.rank(2) == len(labels) and 0 not in node.shape(2) else (None,) * node.rank(2)
    return SizeLayout([labels, (), weights], [("size",)], {0: max_value}, sizes={1: "size"})


@_layout("ScatterNd")
def _scatter_nd(node: Node) -> SizeLayout:
    result = tuple(("result", d) for d in range(*node.shape(2)))
    labels, updates, rows = _scattered(node, 0, result)
    return SizeLayout(
        [labels, updates, (None,)],
        [result],
        {0: _filled(-1)},
        index_rows={0: rows},
        sizes={2: result},
        mismatch=InvalidArgumentError,
    )


def _scattered(node: Node, key: int, target: Labels) -> tuple[Labels, Labels, Labels]:
    """Return labels of rows of indices, of their updates, and of the dimensions that the indices are of.

    Rows of padding have a negative index, with which they are skipped.
    """
    labels = _but(node.rank(key), -1)
    depth = node.shape(key)[-1] if labels else 0
    return labels, labels[:-1] + target[depth:], target[:depth]


@_layout(
    "ScatterNdNonAliasingAdd", "TensorScatterAdd", "TensorScatterMax", "TensorScatterMin", "TensorScatterSub",
    "TensorScatterUpdate",
)  # fmt: skip
def _tensor_scatter(node: Node) -> SizeLayout:
    target = tuple(("target", d) for d in range(node.rank(0)))
    labels, updates, rows = _scattered(node, 1, target)
    return SizeLayout(
        [target, labels, updates], [target], {1: _filled(-1)}, index_rows={1: rows}, mismatch=InvalidArgumentError
    )


@_layout(*(f"ResourceScatter{name}" for name in ("Add", "Div", "Max", "Min", "Mul", "Sub", "Update")))
def _resource_scatter(node: Node) -> SizeLayout:
    labels = _but(node.rank(1))
    updates = (*labels, *[None] * (node.rank(2) - len(labels))) if node.rank(2) else ()
    return SizeLayout([(), labels, updates], [], {1: _filled(-1)})


@_layout("DynamicPartition")
def _partition(node: Node) -> SizeLayout:
    labels, count = _but(node.rank(0)), node.rank(1)
    parts = [(None, *labels[count:])] * node.attr("num_partitions")
    return SizeLayout([labels, labels[:count]], parts, {1: _filled(-1)})


# ------------------------------------------------------------------------------------------------------------ products


@_layout("Einsum", "XlaEinsum")
def _einsum(node: Node) -> SizeLayout | None:
    """Sizes are those of the labels of the equation; elements that are summed are zeros in padding."""
    equation = node.attr("equation")
    text = (equation.decode() if isinstance(equation, bytes) else str(equation)).replace(" ", "")
    if "." in text or "->" not in text:
        return None
    inputs, output = text.split("->")
    operands = [tuple(part) for part in inputs.split(",")]
    if [len(part) for part in operands] != [node.rank(i) for i in range(node.num_inputs)]:
        return None  # the kernel raises
    return SizeLayout(operands, [tuple(output)], dict.fromkeys(range(node.num_inputs), _filled(0)))
