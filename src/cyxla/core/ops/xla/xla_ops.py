"""Ops for HLO instructions, and ops that launch compiled clusters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import (
    explicit_shape,
    no_outputs,
    reduced_shape,
    scalar_outputs,
    scalar_shape,
    unchanged_shape,
    unknown_shape,
)
from cyxla.core.framework.shape_fns.gathers import split_nd_shape, tiles
from cyxla.core.framework.shape_inference import InferenceContext
from cyxla.core.framework.tensor_shape import SCALAR, UNKNOWN, Dim, TensorShape
from cyxla.errors import ShapeError


def _same_shapes(c: InferenceContext) -> None:
    """Copy each input's shape to the output of the same index."""
    for i in range(c.num_outputs):
        c.set_output(i, c.input(i))


def _attr_shapes(c: InferenceContext, name: str) -> None:
    shapes: Sequence[TensorShape] = c.attr(name)
    if len(shapes) != c.num_outputs:
        raise ShapeError(f"{c.op_def.name}: {name} has {len(shapes)} shapes for {c.num_outputs} outputs")
    for i, shape in enumerate(shapes):
        c.set_output(i, shape)


def _call_module_shape(c: InferenceContext) -> None:
    _attr_shapes(c, "Sout")


def _custom_call_shape(c: InferenceContext) -> None:
    _attr_shapes(c, "result_shapes")


def _host_compute_shape(c: InferenceContext) -> None:
    if c.attr("shapes"):
        _attr_shapes(c, "shapes")


def _full_shape(c: InferenceContext) -> None:
    c.set_output(0, c.attr("full_shape"))


def _keep_rank(c: InferenceContext) -> None:
    """Keep the rank only."""
    if c.input(0).rank is not None:
        c.set_output(0, c.unknown_shape_of_rank(len(c.input(0))))


def _numbers(c: InferenceContext, i: int) -> list[int] | None:
    """Return the numbers of a constant input, or None if unknown."""
    value = c.input_tensor(i)
    return None if value is None else [int(v) for v in value.ravel()]


def _broadcast_helper_shape(c: InferenceContext) -> None:
    """Reshape the operand of lower rank to the given dimensions; the other is unchanged."""
    lhs, rhs, dims = c.input("lhs"), c.input("rhs"), _numbers(c, 2)
    if dims is None or lhs.rank is None or rhs.rank is None:
        return
    swap = lhs.rank > rhs.rank
    low, high = (rhs, lhs) if swap else (lhs, rhs)
    if dims and len(dims) != low.rank:
        raise ShapeError(f"XlaBroadcastHelper: {len(dims)} broadcast_dims for an operand of rank {low.rank}")
    if not dims and low.rank not in (0, high.rank):
        raise ShapeError(f"XlaBroadcastHelper: ranks {low.rank} and {high.rank} need broadcast_dims")
    expanded: list[Dim] = [1] * len(high)
    for at, size in zip(dims or range(len(low)), low, strict=True):
        expanded[c.axis(at, high)] = size
    wide = TensorShape(expanded) if dims or low.rank == high.rank else low
    c.set_output(0, high if swap else wide)
    c.set_output(1, wide if swap else high)


def _concat_nd_shape(c: InferenceContext) -> None:
    """Multiply the sizes of a tile and subtract the padding."""
    tile = UNKNOWN
    for i in range(c.num_inputs):
        tile = c.merge(tile, c.input(i))
    counts, paddings = tiles(c, "num_concats", c.num_inputs)
    tile = c.with_rank(tile, len(counts))
    c.set_output(0, [c.subtract(c.multiply(d, n), p) for d, n, p in zip(tile, counts, paddings, strict=True)])


def _split_nd_shape(c: InferenceContext) -> None:
    split_nd_shape(c, c.input(0))


def _dynamic_slice_shape(c: InferenceContext) -> None:
    """Set the shape given by the sizes, if known."""
    x, start = c.input("input"), c.with_rank_at_most(c.input("start_indices"), 1)
    sizes = c.make_shape_from_shape_tensor(2)
    if sizes.rank is not None:
        x = c.with_rank(x, sizes.rank)
    if start.rank == 1 and x.rank is not None:
        c.merge_dim(start[0], x.rank)
    c.set_output(0, sizes if sizes.rank is not None or x.rank is None else c.unknown_shape_of_rank(x.rank))


def _einsum_shape(c: InferenceContext) -> None:
    """Look up each output letter's size among the operands."""
    inputs_text, arrow, result = c.attr("equation").partition("->")
    terms = inputs_text.split(",")
    if not arrow or len(terms) != 2:
        raise ShapeError(f"XlaEinsum: the equation {c.attr('equation')!r} is not of the form 'a,b->c'")
    sizes: dict[str, Dim] = {}
    for i, term in enumerate(terms):
        for letter, size in zip(term, c.with_rank(c.input(i), len(term)), strict=True):
            sizes[letter] = c.merge_dim(sizes.get(letter), size)
    if any(letter not in sizes for letter in result):
        raise ShapeError(f"XlaEinsum: the result {result!r} has letters that no operand has")
    c.set_output(0, [sizes[letter] for letter in result])


def _pad_shape(c: InferenceContext) -> None:
    """Apply low, high and interior padding; negative padding crops."""
    x, paddings = c.input(0), [_numbers(c, i) for i in (2, 3, 4)]
    c.with_rank(c.input(1), 0)
    if x.rank is None or any(k is None for k in paddings):
        _keep_rank(c)
        return
    low, high, inner = (k for k in paddings if k is not None)
    if not len(low) == len(high) == len(inner) == x.rank:
        raise ShapeError(f"XlaPad: the paddings must have {x.rank} numbers each")
    sizes = [
        None if d is None else max(0, d + lo + hi + max(d - 1, 0) * n)
        for d, lo, hi, n in zip(x, low, high, inner, strict=True)
    ]
    c.set_output(0, sizes)


def _reduce_shape(c: InferenceContext) -> None:
    c.set_output(0, _remove_reduced_dims(c, c.input(0)))


def _remove_reduced_dims(c: InferenceContext, shape: TensorShape) -> TensorShape:
    """Remove the reduced dimensions."""
    return reduced_shape(c, shape, np.array(c.attr("dimensions_to_reduce"), np.int64), False)


def _variadic_reduce_shape(c: InferenceContext) -> None:
    half = c.num_inputs // 2
    shape = UNKNOWN
    for i in range(half):
        shape = c.merge(shape, c.input(i))
        c.with_rank(c.input(half + i), 0)
    for i in range(c.num_outputs):
        c.set_output(i, _remove_reduced_dims(c, shape))


def _scatter_dimension_shape(c: InferenceContext) -> None:
    """Divide one dimension by the number of replicas in a group."""
    c.with_rank(c.input(2), 0)
    groups, axis, x = c.with_rank(c.input(1), 2), c.input_tensor(2), c.input(0)
    if x.rank is None or axis is None:
        _keep_rank(c)
        return
    at = c.axis(int(axis), x)
    c.set_output(0, c.replace_dim(x, at, c.divide(x[at], groups[1])))


def _bits_shape(c: InferenceContext) -> None:
    """Set the unchanged state, and bits of the requested shape."""
    c.with_rank(c.input(0), 0)
    c.set_output(0, c.input(1))
    c.set_output(1, c.make_shape_from_shape_tensor(2))


def _eigh_shape(c: InferenceContext) -> None:
    """Set eigenvalues and eigenvectors."""
    a = c.with_rank_at_least(c.input(0), 2)
    n = c.merge_dim(a[-1], a[-2])
    batch = c.sub_shape(a, 0, -2)
    c.set_output(0, c.concatenate(batch, (n,)))
    c.set_output(1, c.concatenate(batch, (n, n)))


def _svd_shape(c: InferenceContext) -> None:
    """Set min(m, n) singular values, and full sets of singular vectors."""
    a = c.with_rank_at_least(c.input(0), 2)
    batch, m, n = c.sub_shape(a, 0, -2), a[-2], a[-1]
    for i, tail in enumerate([(c.min(m, n),), (m, m), (n, n)]):
        c.set_output(i, c.concatenate(batch, tail))


def _dynamic_size_shape(c: InferenceContext) -> None:
    """Make the size of a dimension unknown."""
    c.with_rank(c.input(1), 0)
    axis, x = c.input_tensor(1), c.input(0)
    if axis is None:
        _keep_rank(c)
    elif x.rank is not None:
        c.set_output(0, c.replace_dim(x, int(axis), None))


def _merged_shape(c: InferenceContext) -> None:
    """Set the common shape of both inputs."""
    a, b = c.input(0), c.input(1)
    if a.rank is not None and a.rank == b.rank:
        c.set_output(0, [d if d == e else None for d, e in zip(a, b, strict=True)])


def _handle_shape(c: InferenceContext) -> None:
    c.set_output(0, SCALAR)
    c.set_output_handle(0, ((c.attr("shape"), c.attr("dtype")),))


op("XlaAllReduce", "input: T, group_assignment: int32 -> output: T", "T: {half, bfloat16, float, int32, uint32}",
    "reduce_op: {'Min', 'Max', 'Mul', 'Add', 'Mean'}", "mode: {'CrossReplica', 'CrossReplicaAndPartition'}",
    shape=unchanged_shape, doc="Reduce over replicas.",
)  # fmt: skip
op("XlaBroadcastHelper", "lhs: T, rhs: T, broadcast_dims: Tindices -> lhs_output: T, rhs_output: T", "T: numbertype",
    "Tindices: {int32, int64}", shape=_broadcast_helper_shape,
    doc="Reshape two operands to ranks that broadcast in HLO.",
)  # fmt: skip
op("XlaCallModule", "args: Tin -> output: Tout", "version: int", "module: string", "Sout: list(shape) >= 0",
    "Tout: list(type) >= 0", "Tin: list(type) >= 0", "dim_args_spec: list(string) = []", "platforms: list(string) = []",
    "function_list: list(func) = []", "has_token_input_output: bool = false", "disabled_checks: list(string) = []",
    "use_shardy_partitioner: bool = false", stateful=True, shape=_call_module_shape,
    doc="Call a serialised StableHLO module.",
)  # fmt: skip
op("XlaClusterOutput", "input: T -> outputs: T", "T: type", shape=unchanged_shape, doc="Mark a result of a cluster.")
op("XlaConcatND", "inputs: N * T -> output: T", "T: type", "N: int", "num_concats: list(int)",
    "paddings: list(int) = []", shape=_concat_nd_shape, doc="Concatenate tiles along several dimensions.",
)  # fmt: skip
op("XlaConv", "lhs: T, rhs: T, window_strides: Tindices, padding: Tindices, lhs_dilation: Tindices, rhs_dilation: "
    "Tindices, feature_group_count: Tindices -> output: T", "T: numbertype", "Tindices: {int32, int64}",
    "dimension_numbers: string", "precision_config: string", shape=unknown_shape, doc="Emit HLO's convolution.",
)  # fmt: skip
op("XlaConvV2",
    "lhs: LhsT, rhs: RhsT, window_strides: Tindices, padding: Tindices, lhs_dilation: Tindices, rhs_dilation: "
    "Tindices, feature_group_count: Tindices -> output: preferred_element_type", "LhsT: numbertype", "RhsT: numbertype",
    "Tindices: {int32, int64}", "dimension_numbers: string", "precision_config: string",
    "preferred_element_type: numbertype", "batch_group_count: int = 1", shape=unknown_shape,
    doc="Emit HLO's convolution with a result of any type.",
)  # fmt: skip
op("XlaCustomCall", "args: T -> output: dtype", "target_name: string", "backend_config: string", "T: list(type) >= 0",
    "dtype: type", "shape: shape", shape=explicit_shape, doc="Emit HLO's custom call.",
)  # fmt: skip
op("XlaCustomCallV2", "operands: operand_dtypes -> results: result_dtypes", "call_target_name: string",
    "backend_config: string", "has_side_effect: bool", "operand_dtypes: list(type) >= 0",
    "result_dtypes: list(type) >= 0", "result_shapes: list(shape) >= 0", shape=_custom_call_shape,
    doc="Emit HLO's custom call with several results.",
)  # fmt: skip
op("XlaDequantize", "input: uint32 -> output: bfloat16", "min_range: float", "max_range: float", "mode: string",
    "transpose_output: bool", stateful=True, shape=unknown_shape, doc="Convert packed quantised numbers to bfloat16.",
)  # fmt: skip
op("XlaDot", "lhs: T, rhs: T -> output: T", "T: numbertype", "dimension_numbers: string", "precision_config: string",
    shape=unknown_shape, doc="Emit HLO's general dot.",
)  # fmt: skip
op("XlaDotV2", "lhs: LhsT, rhs: RhsT -> output: preferred_element_type", "LhsT: numbertype", "RhsT: numbertype",
    "dimension_numbers: string", "precision_config: string", "preferred_element_type: numbertype", shape=unknown_shape,
    doc="Emit HLO's general dot with a result of any type.",
)  # fmt: skip
op("XlaDynamicSlice", "input: T, start_indices: Tindices, size_indices: Tindices -> output: T", "T: type",
    "Tindices: {int32, int64}", shape=_dynamic_slice_shape, doc="Slice a box at indices that are data.",
)  # fmt: skip
op("XlaDynamicUpdateSlice", "input: T, update: T, indices: Tindices -> output: T", "T: type",
    "Tindices: {int32, int64}", shape=unchanged_shape, doc="Replace a box at indices that are data.",
)  # fmt: skip
op("XlaEinsum", "a: T, b: T -> product: T", "equation: string", "T: {complex64, bfloat16, float}", shape=_einsum_shape,
    doc="Evaluate an Einstein summation of two operands.",
)  # fmt: skip
op("XlaGather", "operand: T, start_indices: Tindices, slice_sizes: Tindices -> output: T", "dimension_numbers: string",
    "indices_are_sorted: bool", "T: {numbertype, bool}", "Tindices: {int32, int64}", shape=unknown_shape,
    doc="Emit HLO's gather.",
)  # fmt: skip
op("XlaHostCompute", "inputs: Tinputs -> outputs: Toutputs", "Tinputs: list(type) >= 0", "Toutputs: list(type) >= 0",
    "ancestors: list(string) >= 0", "shapes: list(shape) >= 0", "shape_inference_graph: func", "key: string",
    "send_key: string = ''", "recv_key: string = ''", "cost_estimate_ns: int = 1000000", "tpu_core: int = 0",
    stateful=True, shape=_host_compute_shape, doc="Call the host from compiled code.",
)  # fmt: skip
op("XlaIf", "cond: Tcond, inputs: Tin -> output: Tout", "Tcond: type", "then_branch: func", "else_branch: func",
    "Tin: list(type) >= 0", "Tout: list(type) >= 0", stateful=True, shape=unknown_shape,
    doc="Call one of two functions in compiled code.",
)  # fmt: skip
op("XlaKeyValueSort", "keys: K, values: V -> sorted_keys: K, sorted_values: V", "K: realnumbertype", "V: type",
    shape=_same_shapes, doc="Sort keys together with their values.",
)  # fmt: skip
op("XlaLaunch", "constants: Tconstants, args: Targs, resources: Nresources * resource -> results: Tresults",
    "Tconstants: list(type) >= 0", "Targs: list(type) >= 0", "Nresources: int >= 0", "Tresults: list(type) >= 0",
    "function: func", stateful=True, shape=unknown_shape, doc="Compile a function and run it.",
)  # fmt: skip
op("XlaLaunchV2", "args: Targs -> results: Tresults", "Targs: list(type) >= 0", "Tresults: list(type) >= 0",
    "constants: list(int) >= 0", "resources: list(int) >= 0", "function: func", shape=unknown_shape,
    doc="Compile a function and run it; attributes list the constant arguments.",
)  # fmt: skip
op("XlaOptimizationBarrier", "input: T -> output: T", "T: list(type) >= 0", shape=_same_shapes,
    doc="Return the inputs, a barrier for code motion.",
)  # fmt: skip
op("XlaPad", "input: T, padding_value: T, padding_low: Tindices, padding_high: Tindices, padding_interior: Tindices -> "
    "output: T", "T: type", "Tindices: {int32, int64}", shape=_pad_shape,
    doc="Emit HLO's pad, with negative and interior padding.",
)  # fmt: skip
op("XlaRecv", "-> tensor: dtype", "dtype: type", "tensor_name: string", "shape: shape", stateful=True,
    shape=explicit_shape, doc="Receive a tensor in compiled code.",
)  # fmt: skip
op("XlaReduce", "input: T, init_value: T -> output: T", "T: {numbertype, bool}", "dimensions_to_reduce: list(int)",
    "reducer: func", shape=_reduce_shape, doc="Emit HLO's reduction by a function.",
)  # fmt: skip
op("XlaReducePrecision", "operand: T -> output: T", "T: {bfloat16, half, float, double}", "exponent_bits: int",
    "mantissa_bits: int", shape=unchanged_shape, doc="Round floats to fewer bits.",
)  # fmt: skip
op("XlaReduceScatter", "input: T, group_assignment: int32, scatter_dimension: int32 -> output: T",
    "T: {half, bfloat16, float, int32, uint32}", "reduce_op: {'Min', 'Max', 'Mul', 'Add', 'Mean'}",
    shape=_scatter_dimension_shape, doc="Reduce over replicas and scatter the result to them.",
)  # fmt: skip
op("XlaReduceWindow",
    "input: T, init_value: T, window_dimensions: Tindices, window_strides: Tindices, base_dilations: Tindices, "
    "window_dilations: Tindices, padding: Tindices -> output: T", "T: {numbertype, bool}", "Tindices: {int32, int64}",
    "computation: func", shape=_keep_rank, doc="Emit HLO's windowed reduction by a function.",
)  # fmt: skip
op("XlaRemoveDynamicDimensionSize", "input: T, dim_index: int32 -> output: T", "T: type", shape=unchanged_shape,
    doc="Make a dynamic dimension static.",
)  # fmt: skip
op("XlaReplicaId", "-> id: int32", shape=scalar_shape, doc="Return the number of the replica.")
op("XlaRngBitGenerator", "algorithm: int32, initial_state: uint64, shape: Tshape -> output_key: uint64, output: dtype",
    "dtype: {uint8, int8, int32, int64, uint32, uint64} = DT_UINT64", "Tshape: {int32, int64} = DT_INT32",
    shape=_bits_shape, doc="Generate random bits, and the next state.",
)  # fmt: skip
op("XlaScatter", "operand: T, scatter_indices: Tindices, updates: T -> output: T", "update_computation: func",
    "dimension_numbers: string", "indices_are_sorted: bool", "T: {numbertype, bool}", "Tindices: {int32, int64}",
    shape=unchanged_shape, doc="Emit HLO's scatter by a function.",
)  # fmt: skip
op("XlaSelectAndScatter",
    "operand: T, window_dimensions: Tindices, window_strides: Tindices, padding: Tindices, source: T, "
    "init_value: T -> output: T", "T: numbertype", "Tindices: {int32, int64}", "select: func", "scatter: func",
    shape=unchanged_shape, doc="Emit HLO's select-and-scatter.",
)  # fmt: skip
op("XlaSelfAdjointEig", "a: T -> w: T, v: T", "lower: bool", "max_iter: int", "epsilon: float", "T: numbertype",
    shape=_eigh_shape, doc="Compute eigenvalues and eigenvectors of self-adjoint matrices.",
)  # fmt: skip
op("XlaSend", "tensor: T ->", "T: type", "tensor_name: string", stateful=True, shape=no_outputs,
    doc="Send a tensor from compiled code.",
)  # fmt: skip
op("XlaSetBound", "input: int32, bound: int32 -> output: int32", shape=unchanged_shape,
    doc="Return a number with a guaranteed upper bound.",
)  # fmt: skip
op("XlaSetDynamicDimensionSize", "input: T, dim_index: int32, size: int32 -> output: T", "T: type",
    shape=_dynamic_size_shape, doc="Set the dynamic size of a dimension.",
)  # fmt: skip
op("XlaSharding", "input: T -> output: T", "T: type", "sharding: string = ''", "unspecified_dims: list(int) = []",
    shape=unchanged_shape, doc="Return the input, annotated with a sharding.",
)  # fmt: skip
op("XlaSort", "input: T -> output: T", "T: type", shape=unchanged_shape,
    doc="Sort along the last dimension.",
)  # fmt: skip
op("XlaSplitND", "input: T -> outputs: N * T", "T: type", "N: int", "num_splits: list(int)", "paddings: list(int) = []",
    shape=_split_nd_shape, doc="Split into equal tiles along several dimensions.",
)  # fmt: skip
op("XlaSpmdFullToShardShape", "input: T -> output: T", "T: type", "manual_sharding: string", "dim: int = -1",
    "unspecified_dims: list(int) = []", shape=_keep_rank, doc="Return a device's shard of a tensor.",
)  # fmt: skip
op("XlaSpmdShardToFullShape", "input: T -> output: T", "T: type", "manual_sharding: string", "full_shape: shape",
    "dim: int = -1", "unspecified_dims: list(int) = []", shape=_full_shape,
    doc="Return the tensor assembled from all shards.",
)  # fmt: skip
op("XlaSvd", "a: T -> s: T, u: T, v: T", "max_iter: int", "epsilon: float", "precision_config: string", "T: numbertype",
    shape=_svd_shape, doc="Compute singular value decompositions of matrices.",
)  # fmt: skip
op("XlaVariadicReduce", "input: N * T, init_value: N * T -> output: N * T", "N: int", "T: {numbertype, bool}",
    "dimensions_to_reduce: list(int)", "reducer: func", shape=_variadic_reduce_shape,
    doc="Emit HLO's reduction of several operands.",
)  # fmt: skip
op("XlaVariadicReduceV2", "inputs: T, init_values: T -> outputs: T", "T: list(type)", "dimensions_to_reduce: list(int)",
    "reducer: func", shape=_variadic_reduce_shape,
    doc="Emit HLO's reduction of several operands of different types.",
)  # fmt: skip
op("XlaVariadicSort", "inputs: T, dimension: int32 -> outputs: T", "T: list(type)", "comparator: func",
    "is_stable: bool", shape=_same_shapes, doc="Sort several operands together by a comparator.",
)  # fmt: skip
op("XlaWhile", "input: T -> output: T", "T: list(type) >= 0", "cond: func", "body: func", stateful=True,
    shape=_same_shapes, doc="Call a function while a condition holds, in compiled code.",
)  # fmt: skip
op("_XlaAotOnlyVarHandleOp", "-> resource: resource", "container: string = ''", "shared_name: string = ''",
    "debug_name: string = ''", "dtype: type", "shape: shape", stateful=True, shape=_handle_shape,
    doc="Return the handle of a variable in code compiled ahead of time.",
)  # fmt: skip
op("_XlaCompile", "constants: Tconstants, args: Targs, resources: Nresources * resource -> key: string, "
    "compilation_successful: bool", "Tconstants: list(type) >= 0", "must_compile: bool", "Targs: list(type) >= 0",
    "Nresources: int >= 0", "function: func", stateful=True, shape=scalar_outputs,
    doc="Compile a cluster; return the key of the result, and True if there is one.",
)  # fmt: skip
op("_XlaMerge", "partitioned_call: T, xla_run: T -> output: T", "T: type", shape=_merged_shape,
    doc="Return the result of a cluster, compiled or not.",
)  # fmt: skip
op("_XlaRun", "args: Targs, key: string -> results: Tresults", "Targs: list(type) >= 0", "Tresults: list(type) >= 0",
    stateful=True, shape=unknown_shape, doc="Run a compiled cluster.",
)  # fmt: skip
