"""One function for each opcode, and XLA's own names for them.

A function has the name of its opcode with underscores for dashes, and one more at the end where Python takes the name
for itself (`not_`, `while_`, `tuple_`). XLA's names (`Add`, `ConvGeneralDilated`, `CustomCall`) are attributes too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cyxla.xla.hlo.builder import contraction, effects, elementwise, functional, movement
from cyxla.xla.hlo.builder.contraction import *  # noqa: F403
from cyxla.xla.hlo.builder.core import XlaOp
from cyxla.xla.hlo.builder.effects import *  # noqa: F403
from cyxla.xla.hlo.builder.elementwise import *  # noqa: F403
from cyxla.xla.hlo.builder.functional import *  # noqa: F403
from cyxla.xla.hlo.builder.movement import *  # noqa: F403

_PARTS = (elementwise, movement, contraction, functional, effects)

# fmt: off
XLA_NAMES: Final = {
    "Abs": "abs_", "Acos": "acos", "Acosh": "acosh", "Add": "add", "AddDependency": "add_dependency",
    "AfterAll": "after_all", "AllGather": "all_gather", "AllReduce": "all_reduce", "AllToAll": "all_to_all",
    "And": "and_", "Asin": "asin", "Asinh": "asinh", "Atan2": "atan2", "Atanh": "atanh",
    "BatchNormGrad": "batch_norm_grad", "BatchNormInference": "batch_norm_inference",
    "BatchNormTraining": "batch_norm_training", "BitcastConvertType": "bitcast_convert", "Broadcast": "broadcast",
    "BroadcastInDim": "broadcast_in_dim", "Call": "call", "Cbrt": "cbrt", "Ceil": "ceil", "Cholesky": "cholesky",
    "Clamp": "clamp", "Clz": "count_leading_zeros", "Collapse": "collapse",
    "CollectiveBroadcast": "collective_broadcast", "CollectivePermute": "collective_permute", "Compare": "compare",
    "Complex": "complex_", "ConcatInDim": "concatenate", "Conditional": "conditional", "ConstantLiteral": "constant",
    "Conv": "conv", "ConvGeneral": "conv", "ConvWithGeneralPadding": "conv",
    "ConvGeneralDilated": "conv_general_dilated", "ConvertElementType": "convert", "Copy": "copy", "Cos": "cosine",
    "Cosh": "cosh", "CreateToken": "after_all", "CrossReplicaSum": "cross_replica_sum", "CustomCall": "custom_call",
    "Div": "divide", "Dot": "dot", "DotGeneral": "dot_general", "DynamicReshape": "dynamic_reshape",
    "DynamicSlice": "dynamic_slice", "DynamicUpdateSlice": "dynamic_update_slice", "Eq": "eq",
    "EqTotalOrder": "eq_total_order", "Erf": "erf", "Exp": "exponential", "Expm1": "exponential_minus_one",
    "Fft": "fft", "Floor": "floor", "Gather": "gather", "Ge": "ge", "GeTotalOrder": "ge_total_order",
    "GetDimensionSize": "get_dimension_size", "GetTupleElement": "get_tuple_element", "Gt": "gt",
    "GtTotalOrder": "gt_total_order", "Imag": "imag", "InfeedWithToken": "infeed", "Iota": "iota",
    "IsFinite": "is_finite", "Le": "le", "LeTotalOrder": "le_total_order", "Log": "log", "Log1p": "log_plus_one",
    "Logistic": "logistic", "Lt": "lt", "LtTotalOrder": "lt_total_order", "Map": "map_", "Max": "maximum",
    "Min": "minimum", "Mul": "multiply", "MulHi": "mulhi", "Ne": "ne", "NeTotalOrder": "ne_total_order",
    "Neg": "negate", "Not": "not_", "OptimizationBarrier": "opt_barrier", "Or": "or_", "OutfeedWithToken": "outfeed",
    "Pad": "pad", "PadInDim": "pad_in_dim", "Parameter": "parameter", "PartitionId": "partition_id",
    "PopulationCount": "popcnt", "Pow": "power", "RaggedAllToAll": "ragged_all_to_all", "RaggedDot": "ragged_dot",
    "Real": "real", "RecvWithToken": "recv", "Reduce": "reduce", "ReduceAll": "reduce_all",
    "ReducePrecision": "reduce_precision", "ReduceScatter": "reduce_scatter", "ReduceWindow": "reduce_window",
    "ReduceWindowWithGeneralPadding": "reduce_window", "Rem": "remainder", "ReplicaId": "replica_id",
    "Reshape": "reshape", "Rev": "reverse", "RngBitGenerator": "rng_bit_generator", "RngNormal": "rng_normal",
    "RngUniform": "rng_uniform", "Round": "round_nearest_afz", "RoundNearestEven": "round_nearest_even",
    "Rsqrt": "rsqrt", "ScaledDot": "scaled_dot", "Scan": "scan", "Scatter": "scatter", "Select": "select",
    "SelectAndScatter": "select_and_scatter", "SelectAndScatterWithGeneralPadding": "select_and_scatter",
    "SendWithToken": "send", "SetDimensionSize": "set_dimension_size", "ShiftLeft": "shift_left",
    "ShiftRightArithmetic": "shift_right_arithmetic", "ShiftRightLogical": "shift_right_logical", "Sign": "sign",
    "Sin": "sine", "Sinh": "sinh", "Slice": "slice_", "SliceInDim": "slice_in_dim", "Sort": "sort", "Sqrt": "sqrt",
    "StochasticConvertType": "stochastic_convert", "Sub": "subtract", "Tan": "tan", "Tanh": "tanh", "TopK": "topk",
    "Transpose": "transpose", "TriangularSolve": "triangular_solve", "Tuple": "tuple_", "While": "while_",
    "Xor": "xor",
}
# fmt: on


def function_of(opcode: str) -> Callable[..., XlaOp]:
    """The function that makes an opcode's instructions.

    Raises
    ------
    AttributeError
        There is none.
    """
    name = opcode.replace("-", "_")
    return _find(name) or _find(name + "_") or __getattr__(name)


def _find(name: str) -> Callable[..., XlaOp] | None:
    found: Callable[..., XlaOp] | None = next((getattr(m, name) for m in _PARTS if hasattr(m, name)), None)
    return found


def __getattr__(name: str) -> Callable[..., XlaOp]:
    found = _find(XLA_NAMES.get(name, ""))
    if found is None:
        raise AttributeError(f"no builder function {name!r}")
    return found
