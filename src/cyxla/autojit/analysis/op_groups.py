"""Groups of ops that ``--tf_xla_ops_to_cluster`` accepts by name."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches

from cyxla.errors import InvalidArgumentError
from cyxla.tf2xla.xla_op_registry import XlaOpRegistry

_PW = """
ComplexAbs Angle Conj Abs Acos Acosh Asin Atan Atanh Ceil Cos Cosh Sin Exp Expm1 Floor IsFinite IsInf IsNan Inv
Reciprocal Log Log1p Invert LogicalNot Ndtri Neg Rint Round Rsqrt Sigmoid Sign Sinh Softplus Softsign Sqrt Square Tan
Tanh Real Imag Erf Erfinv Erfc Lgamma Digamma Add AddV2 Sub Mul Div Atan2 Complex DivNoNan MulNoNan FloorDiv Xlogy
Xlog1py Xdivy FloorMod BitwiseAnd BitwiseOr BitwiseXor LeftShift RightShift LogicalAnd LogicalOr Mod Maximum Minimum
RealDiv ReciprocalGrad RsqrtGrad SqrtGrad TruncateDiv TruncateMod Equal NotEqual Greater GreaterEqual Less LessEqual
SigmoidGrad SoftplusGrad SoftsignGrad TanhGrad Pow SquaredDifference ApproximateEqual AddN Bitcast Cast ClipByValue
Const Empty Identity IdentityN Relu Relu6 ReluGrad Relu6Grad LeakyReluGrad Elu EluGrad Selu SeluGrad Select SelectV2
Transpose ConjugateTranspose _UnaryOpsComposition CollectiveReduceV2 CollectiveAssignGroupV2
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
GROUPS = {name: frozenset(text.split()) for name, text in {"PW": _PW, **_OTHERS}.items()}
_ALIASES = {"FUSIBLE": tuple(GROUPS)}


def known_ops() -> frozenset[str]:
    """Return the op names that the flag accepts: ops with an XLA kernel, and those of the groups."""
    return frozenset(XlaOpRegistry.global_().get_all_registered_ops()).union(*GROUPS.values())


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
        groups = _ALIASES.get(name, (name,) if name in GROUPS else ())
        if groups:
            found = found.union(*(GROUPS[group] for group in groups))
        elif name in known:
            found.add(name)
        else:
            near = get_close_matches(name, [*known, *GROUPS, *_ALIASES], 1)
            raise InvalidArgumentError(
                f"--tf_xla_ops_to_cluster: '{name}' is neither an op that can be compiled nor a group of them",
                hint=f"did you mean {near[0]}?" if near else f"groups are {', '.join([*GROUPS, *_ALIASES])}",
            )
    return frozenset(found)
