"""Groups of ops that ``--tf_xla_ops_to_cluster`` accepts by name."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches

from cyxla.core.framework.declarations.op import OpRegistry
from cyxla.core.framework.shape_fns.common import ELEMENTWISE_SHAPES
from cyxla.errors import InvalidArgumentError
from cyxla.tf2xla.xla_op_registry import XlaOpRegistry

# Ops of the group PW besides those that compute element by element by their shape functions.
_PW_TOO = """
ApproximateEqual Equal NotEqual AddN Select ClipByValue Bitcast Const Empty Identity IdentityN Transpose
ConjugateTranspose ReciprocalGrad RsqrtGrad SqrtGrad SigmoidGrad TanhGrad SoftplusGrad SoftsignGrad ReluGrad Relu6Grad
LeakyReluGrad EluGrad SeluGrad _UnaryOpsComposition CollectiveReduceV2 CollectiveAssignGroupV2
"""
_OTHERS = {
    "RED": "All Any Min Max Mean Prod Sum",
    "PWRED": "ArgMax ArgMin DiagPart Softmax SparseSoftmaxCrossEntropyWithLogits LogSoftmax",
    "REDUCEWINDOW": "ArgMax ArgMin DiagPart Softmax LogSoftmax",
    "REDUCEWINDOWPW": "MaxPoolGrad MaxPool3DGrad AvgPoolGrad AvgPool3DGrad LRNGrad",
    "BN": """FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 _FusedBatchNormEx FusedBatchNormGrad FusedBatchNormGradV2
        FusedBatchNormGradV3""",
    "Conv": "_FusedConv2D",
    "SORT": "TopKV2",
    "MISC": """ApproxTopK BroadcastTo ExpandDims Fill NoOp Range Rank Reshape Shape ShapeN Size Squeeze Transpose
        ZerosLike OnesLike BiasAdd BroadcastArgs BroadcastGradientArgs OneHot Concat ConcatV2 ConcatOffset Const
        MirrorPad MirrorPadGrad Pack Pad PadV2 Reverse ReverseV2 ReverseSequence Slice Split SplitV StridedSlice
        StridedSliceGrad TensorScatterUpdate Tile Unpack GatherNd Gather GatherV2 ScatterNd Where BiasAddGrad""",
}
_NAMES = ("PW", *_OTHERS)
_ALIASES = {"FUSIBLE": _NAMES}


def members(group: str) -> frozenset[str]:
    """Return the ops of a group."""
    if group != "PW":
        return frozenset(_OTHERS[group].split())
    ops = OpRegistry.global_().get_op_registration_data()
    return frozenset(o.op_def.name for o in ops if o.shape_inference_fn in ELEMENTWISE_SHAPES).union(_PW_TOO.split())


def known_ops() -> frozenset[str]:
    """Return the op names that the flag accepts: ops with an XLA kernel, and those of the groups."""
    return frozenset(XlaOpRegistry.global_().get_all_registered_ops()).union(*map(members, _NAMES))


def expand(names: Iterable[str], known: Collection[str] | None = None) -> frozenset[str]:
    """Replace the names of groups by their ops.

    Raises
    ------
    InvalidArgumentError
        A name is neither a group nor an op that can be compiled.
    """
    known = known_ops() if known is None else known
    found: set[str] = set()
    for name in names:
        groups = _ALIASES.get(name, (name,) if name in _NAMES else ())
        if groups:
            found = found.union(*map(members, groups))
        elif name in known:
            found.add(name)
        else:
            near = get_close_matches(name, [*known, *_NAMES, *_ALIASES], 1)
            raise InvalidArgumentError(
                f"--tf_xla_ops_to_cluster: '{name}' is neither an op that can be compiled nor a group of them",
                hint=f"did you mean {near[0]}?" if near else f"groups are {', '.join([*_NAMES, *_ALIASES])}",
            )
    return frozenset(found)
