"""Ops that stand for HLO, and those that launch compiled clusters."""

from cyxla.core.framework.op import op

op("XlaAllReduce", "input: T, group_assignment: int32 -> output: T", "T: {half, bfloat16, float, int32, uint32}",
    "reduce_op: {'Min', 'Max', 'Mul', 'Add', 'Mean'}", "mode: {'CrossReplica', 'CrossReplicaAndPartition'}", shape=None,
)  # fmt: skip
op("XlaBroadcastHelper", "lhs: T, rhs: T, broadcast_dims: Tindices -> lhs_output: T, rhs_output: T", "T: numbertype",
    "Tindices: {int32, int64}", shape=None,
)  # fmt: skip
op("XlaCallModule", "args: Tin -> output: Tout", "version: int", "module: string", "Sout: list(shape) >= 0",
    "Tout: list(type) >= 0", "Tin: list(type) >= 0", "dim_args_spec: list(string) = []", "platforms: list(string) = []",
    "function_list: list(func) = []", "has_token_input_output: bool = false", "disabled_checks: list(string) = []",
    "use_shardy_partitioner: bool = false", stateful=True, shape=None,
)  # fmt: skip
op("XlaClusterOutput", "input: T -> outputs: T", "T: type", shape=None)
op("XlaConcatND", "inputs: N * T -> output: T", "T: type", "N: int", "num_concats: list(int)",
    "paddings: list(int) = []", shape=None,
)  # fmt: skip
op("XlaConv", "lhs: T, rhs: T, window_strides: Tindices, padding: Tindices, lhs_dilation: Tindices, rhs_dilation: "
    "Tindices, feature_group_count: Tindices -> output: T", "T: numbertype", "Tindices: {int32, int64}",
    "dimension_numbers: string", "precision_config: string", shape=None,
)  # fmt: skip
op("XlaConvV2",
    "lhs: LhsT, rhs: RhsT, window_strides: Tindices, padding: Tindices, lhs_dilation: Tindices, rhs_dilation: "
    "Tindices, feature_group_count: Tindices -> output: preferred_element_type", "LhsT: numbertype", "RhsT: numbertype",
    "Tindices: {int32, int64}", "dimension_numbers: string", "precision_config: string",
    "preferred_element_type: numbertype", "batch_group_count: int = 1", shape=None,
)  # fmt: skip
op("XlaCustomCall", "args: T -> output: dtype", "target_name: string", "backend_config: string", "T: list(type) >= 0",
    "dtype: type", "shape: shape", shape=None,
)  # fmt: skip
op("XlaCustomCallV2", "operands: operand_dtypes -> results: result_dtypes", "call_target_name: string",
    "backend_config: string", "has_side_effect: bool", "operand_dtypes: list(type) >= 0",
    "result_dtypes: list(type) >= 0", "result_shapes: list(shape) >= 0", shape=None,
)  # fmt: skip
op("XlaDequantize", "input: uint32 -> output: bfloat16", "min_range: float", "max_range: float", "mode: string",
    "transpose_output: bool", stateful=True, shape=None,
)  # fmt: skip
op("XlaDot", "lhs: T, rhs: T -> output: T", "T: numbertype", "dimension_numbers: string", "precision_config: string",
    shape=None,
)  # fmt: skip
op("XlaDotV2", "lhs: LhsT, rhs: RhsT -> output: preferred_element_type", "LhsT: numbertype", "RhsT: numbertype",
    "dimension_numbers: string", "precision_config: string", "preferred_element_type: numbertype", shape=None,
)  # fmt: skip
op("XlaDynamicSlice", "input: T, start_indices: Tindices, size_indices: Tindices -> output: T", "T: type",
    "Tindices: {int32, int64}", shape=None,
)  # fmt: skip
op("XlaDynamicUpdateSlice", "input: T, update: T, indices: Tindices -> output: T", "T: type",
    "Tindices: {int32, int64}", shape=None,
)  # fmt: skip
op("XlaEinsum", "a: T, b: T -> product: T", "equation: string", "T: {complex64, bfloat16, float}", shape=None)
op("XlaGather", "operand: T, start_indices: Tindices, slice_sizes: Tindices -> output: T", "dimension_numbers: string",
    "indices_are_sorted: bool", "T: {numbertype, bool}", "Tindices: {int32, int64}", shape=None,
)  # fmt: skip
op("XlaHostCompute", "inputs: Tinputs -> outputs: Toutputs", "Tinputs: list(type) >= 0", "Toutputs: list(type) >= 0",
    "ancestors: list(string) >= 0", "shapes: list(shape) >= 0", "shape_inference_graph: func", "key: string",
    "send_key: string = ''", "recv_key: string = ''", "cost_estimate_ns: int = 1000000", "tpu_core: int = 0",
    stateful=True, shape=None,
)  # fmt: skip
op("XlaIf", "cond: Tcond, inputs: Tin -> output: Tout", "Tcond: type", "then_branch: func", "else_branch: func",
    "Tin: list(type) >= 0", "Tout: list(type) >= 0", stateful=True, shape=None,
)  # fmt: skip
op("XlaKeyValueSort", "keys: K, values: V -> sorted_keys: K, sorted_values: V", "K: realnumbertype", "V: type",
    shape=None,
)  # fmt: skip
op("XlaLaunch", "constants: Tconstants, args: Targs, resources: Nresources * resource -> results: Tresults",
    "Tconstants: list(type) >= 0", "Targs: list(type) >= 0", "Nresources: int >= 0", "Tresults: list(type) >= 0",
    "function: func", stateful=True, shape=None,
)  # fmt: skip
op("XlaLaunchV2", "args: Targs -> results: Tresults", "Targs: list(type) >= 0", "Tresults: list(type) >= 0",
    "constants: list(int) >= 0", "resources: list(int) >= 0", "function: func", shape=None,
)  # fmt: skip
op("XlaOptimizationBarrier", "input: T -> output: T", "T: list(type) >= 0", shape=None)
op("XlaPad", "input: T, padding_value: T, padding_low: Tindices, padding_high: Tindices, padding_interior: Tindices -> "
    "output: T", "T: type", "Tindices: {int32, int64}", shape=None,
)  # fmt: skip
op("XlaRecv", "-> tensor: dtype", "dtype: type", "tensor_name: string", "shape: shape", stateful=True, shape=None)
op("XlaReduce", "input: T, init_value: T -> output: T", "T: {numbertype, bool}", "dimensions_to_reduce: list(int)",
    "reducer: func", shape=None,
)  # fmt: skip
op("XlaReducePrecision", "operand: T -> output: T", "T: {bfloat16, half, float, double}", "exponent_bits: int",
    "mantissa_bits: int", shape=None,
)  # fmt: skip
op("XlaReduceScatter", "input: T, group_assignment: int32, scatter_dimension: int32 -> output: T",
    "T: {half, bfloat16, float, int32, uint32}", "reduce_op: {'Min', 'Max', 'Mul', 'Add', 'Mean'}", shape=None,
)  # fmt: skip
op("XlaReduceWindow",
    "input: T, init_value: T, window_dimensions: Tindices, window_strides: Tindices, base_dilations: Tindices, "
    "window_dilations: Tindices, padding: Tindices -> output: T", "T: {numbertype, bool}", "Tindices: {int32, int64}",
    "computation: func", shape=None,
)  # fmt: skip
op("XlaRemoveDynamicDimensionSize", "input: T, dim_index: int32 -> output: T", "T: type", shape=None)
op("XlaReplicaId", "-> id: int32", shape=None)
op("XlaRngBitGenerator", "algorithm: int32, initial_state: uint64, shape: Tshape -> output_key: uint64, output: dtype",
    "dtype: {uint8, int8, int32, int64, uint32, uint64} = DT_UINT64", "Tshape: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("XlaScatter", "operand: T, scatter_indices: Tindices, updates: T -> output: T", "update_computation: func",
    "dimension_numbers: string", "indices_are_sorted: bool", "T: {numbertype, bool}", "Tindices: {int32, int64}",
    shape=None,
)  # fmt: skip
op("XlaSelectAndScatter",
    "operand: T, window_dimensions: Tindices, window_strides: Tindices, padding: Tindices, source: T, "
    "init_value: T -> output: T", "T: numbertype", "Tindices: {int32, int64}", "select: func", "scatter: func",
    shape=None,
)  # fmt: skip
op("XlaSelfAdjointEig", "a: T -> w: T, v: T", "lower: bool", "max_iter: int", "epsilon: float", "T: numbertype",
    shape=None,
)  # fmt: skip
op("XlaSend", "tensor: T ->", "T: type", "tensor_name: string", stateful=True, shape=None)
op("XlaSetBound", "input: int32, bound: int32 -> output: int32", shape=None)
op("XlaSetDynamicDimensionSize", "input: T, dim_index: int32, size: int32 -> output: T", "T: type", shape=None)
op("XlaSharding", "input: T -> output: T", "T: type", "sharding: string = ''", "unspecified_dims: list(int) = []",
    shape=None,
)  # fmt: skip
op("XlaSort", "input: T -> output: T", "T: type", shape=None)
op("XlaSplitND", "input: T -> outputs: N * T", "T: type", "N: int", "num_splits: list(int)", "paddings: list(int) = []",
    shape=None,
)  # fmt: skip
op("XlaSpmdFullToShardShape", "input: T -> output: T", "T: type", "manual_sharding: string", "dim: int = -1",
    "unspecified_dims: list(int) = []", shape=None,
)  # fmt: skip
op("XlaSpmdShardToFullShape", "input: T -> output: T", "T: type", "manual_sharding: string", "full_shape: shape",
    "dim: int = -1", "unspecified_dims: list(int) = []", shape=None,
)  # fmt: skip
op("XlaSvd", "a: T -> s: T, u: T, v: T", "max_iter: int", "epsilon: float", "precision_config: string", "T: numbertype",
    shape=None,
)  # fmt: skip
op("XlaVariadicReduce", "input: N * T, init_value: N * T -> output: N * T", "N: int", "T: {numbertype, bool}",
    "dimensions_to_reduce: list(int)", "reducer: func", shape=None,
)  # fmt: skip
op("XlaVariadicReduceV2", "inputs: T, init_values: T -> outputs: T", "T: list(type)", "dimensions_to_reduce: list(int)",
    "reducer: func", shape=None,
)  # fmt: skip
op("XlaVariadicSort", "inputs: T, dimension: int32 -> outputs: T", "T: list(type)", "comparator: func",
    "is_stable: bool", shape=None,
)  # fmt: skip
op("XlaWhile", "input: T -> output: T", "T: list(type) >= 0", "cond: func", "body: func", stateful=True, shape=None)
op("_XlaAotOnlyVarHandleOp", "-> resource: resource", "container: string = ''", "shared_name: string = ''",
    "debug_name: string = ''", "dtype: type", "shape: shape", stateful=True, shape=None,
)  # fmt: skip
op("_XlaCompile", "constants: Tconstants, args: Targs, resources: Nresources * resource -> key: string, "
    "compilation_successful: bool", "Tconstants: list(type) >= 0", "must_compile: bool", "Targs: list(type) >= 0",
    "Nresources: int >= 0", "function: func", stateful=True, shape=None,
)  # fmt: skip
op("_XlaMerge", "partitioned_call: T, xla_run: T -> output: T", "T: type", shape=None)
op("_XlaRun", "args: Targs, key: string -> results: Tresults", "Targs: list(type) >= 0", "Tresults: list(type) >= 0",
    stateful=True, shape=None,
)  # fmt: skip
