"""Groups of ops that ``--tf_xla_ops_to_cluster`` accepts by name."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches

from cyxla.core.framework.declarations.op import OpRegistry
from cyxla.core.framework.shape_fns.common import ELEMENTWISE_SHAPES
from cyxla.errors import InvalidArgumentError
from cyxla.tf2xla.xla_op_registry import XlaOpRegistry

# Ops of the group PW besides those that compute element by element by their shape functions.
_OTHER_ELEMENTWISE = """
ApproximateEqual Equal NotEqual AddN Select ClipByValue Bitcast Const Empty Identity IdentityN Transpose
ConjugateTranspose ReciprocalGrad RsqrtGrad SqrtGrad SigmoidGrad TanhGrad SoftplusGrad SoftsignGrad ReluGrad Relu6Grad
LeakyReluGrad EluGrad SeluGrad _UnaryOpsComposition CollectiveReduceV2 CollectiveAssignGroupV2
"""
_OPS_OF_GROUP = {
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
_GROUP_NAMES = ("PW", *_OPS_OF_GROUP)
_ALIASES = {"FUSIBLE": _GROUP_NAMES}


def members(group: str) -> frozenset[str]:
    """Return the ops of a group."""
    if group != "PW":
        return frozenset(_OPS_OF_GROUP[group].split())
    ops = OpRegistry.global_().get_op_registration_data()
    return frozenset(o.op_def.name for o in ops if o.shape_inference_fn in ELEMENTWISE_SHAPES).union(
        _OTHER_ELEMENTWISE.split()
    )


def known_ops() -> frozenset[str]:
    """Return the op names that the flag accepts: ops with an XLA kernel, and those of the groups."""
    return frozenset(XlaOpRegistry.global_().get_all_registered_ops()).union(*map(members, _GROUP_NAMES))


def expand(names: Iterable[str], valid_names: Collection[str] | None = None) -> frozenset[str]:
    """Replace the names of groups by their ops.

    Raises
    ------
    InvalidArgumentError
        A name is neither a group nor an op that can be compiled.
    """
    valid_names = known_ops() if valid_names is None else valid_names
    ops: set[str] = set()
    for name in names:
        groups = _ALIASES.get(name, (name,) if name in _GROUP_NAMES else ())
        if groups:
            ops = ops.union(*map(members, groups))
        elif name in valid_names:
            ops.add(name)
        else:
            close_matches = get_close_matches(name, [*valid_names, *_GROUP_NAMES, *_ALIASES], 1)
            raise InvalidArgumentError(
                f"--tf_xla_ops_to_cluster: '{name}' is neither an op that can be compiled nor a group of such ops",
                hint=f"did you mean {close_matches[0]}?"
                if close_matches
                else f"groups are {', '.join([*_GROUP_NAMES, *_ALIASES])}",
            )
    return frozenset(ops)
