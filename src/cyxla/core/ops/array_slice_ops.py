"""Cutting, joining, padding, permuting, gathering and scattering."""

from cyxla.core.framework.op import op

op("BatchToSpace", "input: T, crops: Tidx -> output: T", "T: type", "block_size: int >= 2",
    "Tidx: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("BatchToSpaceND", "input: T, block_shape: Tblock_shape, crops: Tcrops -> output: T", "T: type",
    "Tblock_shape: {int32, int64} = DT_INT32", "Tcrops: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("Concat", "concat_dim: int32, values: N * T -> output: T", "N: int >= 2", "T: type", shape=None)
op("ConcatOffset", "concat_dim: int32, shape: N * shape_type -> offset: N * shape_type", "N: int >= 2",
    "shape_type: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("ConcatV2", "values: N * T, axis: Tidx -> output: T", "N: int >= 2", "T: type", "Tidx: {int32, int64} = DT_INT32",
    shape=None,
)  # fmt: skip
op("ConjugateTranspose", "x: T, perm: Tperm -> y: T", "T: type", "Tperm: {int32, int64} = DT_INT32", shape=None)
op("DepthToSpace", "input: T -> output: T", "T: type", "block_size: int >= 2",
    "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'", shape=None,
)  # fmt: skip
op("Gather", "params: Tparams, indices: Tindices -> output: Tparams", "validate_indices: bool = true", "Tparams: type",
    "Tindices: {int32, int64}", shape=None,
)  # fmt: skip
op("GatherNd", "params: Tparams, indices: Tindices -> output: Tparams", "Tparams: type",
    "Tindices: {int16, int32, int64}", "bad_indices_policy: string = ''", shape=None,
)  # fmt: skip
op("GatherV2", "params: Tparams, indices: Tindices, axis: Taxis -> output: Tparams", "batch_dims: int = 0",
    "Tparams: type", "Tindices: {int16, int32, int64}", "Taxis: {int32, int64}", shape=None,
)  # fmt: skip
op("MirrorPad", "input: T, paddings: Tpaddings -> output: T", "T: type", "Tpaddings: {int32, int64} = DT_INT32",
    "mode: {'REFLECT', 'SYMMETRIC'}", shape=None,
)  # fmt: skip
op("MirrorPadGrad", "input: T, paddings: Tpaddings -> output: T", "T: type", "Tpaddings: {int32, int64} = DT_INT32",
    "mode: {'REFLECT', 'SYMMETRIC'}", shape=None,
)  # fmt: skip
op("Pack", "values: N * T -> output: T", "N: int", "T: type", "axis: int = 0", shape=None)
op("Pad", "input: T, paddings: Tpaddings -> output: T", "T: type", "Tpaddings: {int32, int64} = DT_INT32", shape=None)
op("PadV2", "input: T, paddings: Tpaddings, constant_values: T -> output: T", "T: type",
    "Tpaddings: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("Reverse", "tensor: T, dims: bool -> output: T",
    "T: {uint8, int8, uint16, int16, uint32, int32, uint64, int64, bool, bfloat16, half, float, double, "
    "complex64, complex128, string}", shape=None,
)  # fmt: skip
op("ReverseSequence", "input: T, seq_lengths: Tlen -> output: T", "seq_dim: int", "batch_dim: int = 0", "T: type",
    "Tlen: {int32, int64} = DT_INT64", shape=None,
)  # fmt: skip
op("ReverseV2", "tensor: T, axis: Tidx -> output: T", "Tidx: {int32, int64} = DT_INT32",
    "T: {uint8, int8, uint16, int16, int32, uint32, int64, uint64, bool, bfloat16, half, float, double, "
    "complex64, complex128, string}", shape=None,
)  # fmt: skip
op("Roll", "input: T, shift: Tshift, axis: Taxis -> output: T", "T: type", "Tshift: {int32, int64}",
    "Taxis: {int32, int64}", shape=None,
)  # fmt: skip
op("ScatterNd", "indices: Tindices, updates: T, shape: Tindices -> output: T", "T: type",
    "Tindices: {int16, int32, int64}", "bad_indices_policy: string = ''", shape=None,
)  # fmt: skip
op("ScatterNdNonAliasingAdd", "input: T, indices: Tindices, updates: T -> output: T", "T: {numbertype, bool}",
    "Tindices: {int32, int64}", "bad_indices_policy: string = ''", shape=None,
)  # fmt: skip
op("Slice", "input: T, begin: Index, size: Index -> output: T", "T: type", "Index: {int32, int64}", shape=None)
op("SpaceToBatch", "input: T, paddings: Tpaddings -> output: T", "T: type", "Tpaddings: {int32, int64} = DT_INT32",
    "block_size: int >= 2", shape=None,
)  # fmt: skip
op("SpaceToBatchND", "input: T, block_shape: Tblock_shape, paddings: Tpaddings -> output: T", "T: type",
    "Tblock_shape: {int32, int64} = DT_INT32", "Tpaddings: {int32, int64} = DT_INT32", shape=None,
)  # fmt: skip
op("SpaceToDepth", "input: T -> output: T", "T: type", "block_size: int >= 2",
    "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'", shape=None,
)  # fmt: skip
op("Split", "split_dim: int32, value: T -> output: num_split * T", "num_split: int", "T: type", shape=None)
op("SplitV", "value: T, size_splits: Tlen, split_dim: int32 -> output: num_split * T", "num_split: int", "T: type",
    "Tlen: {int8, int32, int64} = DT_INT64", shape=None,
)  # fmt: skip
op("StridedSlice", "input: T, begin: Index, end: Index, strides: Index -> output: T", "T: type",
    "Index: {int16, int32, int64}", "begin_mask: int = 0", "end_mask: int = 0", "ellipsis_mask: int = 0",
    "new_axis_mask: int = 0", "shrink_axis_mask: int = 0", shape=None,
)  # fmt: skip
op("StridedSliceGrad", "shape: Index, begin: Index, end: Index, strides: Index, dy: T -> output: T", "T: type",
    "Index: {int32, int64}", "begin_mask: int = 0", "end_mask: int = 0", "ellipsis_mask: int = 0",
    "new_axis_mask: int = 0", "shrink_axis_mask: int = 0", shape=None,
)  # fmt: skip
op("TensorScatterAdd", "tensor: T, indices: Tindices, updates: T -> output: T", "T: type", "Tindices: {int32, int64}",
    "bad_indices_policy: string = ''", shape=None,
)  # fmt: skip
op("TensorScatterMax", "tensor: T, indices: Tindices, updates: T -> output: T", "T: type", "Tindices: {int32, int64}",
    "bad_indices_policy: string = ''", shape=None,
)  # fmt: skip
op("TensorScatterMin", "tensor: T, indices: Tindices, updates: T -> output: T", "T: type", "Tindices: {int32, int64}",
    "bad_indices_policy: string = ''", shape=None,
)  # fmt: skip
op("TensorScatterSub", "tensor: T, indices: Tindices, updates: T -> output: T", "T: type", "Tindices: {int32, int64}",
    "bad_indices_policy: string = ''", shape=None,
)  # fmt: skip
op("TensorScatterUpdate", "tensor: T, indices: Tindices, updates: T -> output: T", "T: type",
    "Tindices: {int16, int32, int64, uint16}", "bad_indices_policy: string = ''", shape=None,
)  # fmt: skip
op("TensorStridedSliceUpdate", "input: T, begin: Index, end: Index, strides: Index, value: T -> output: T", "T: type",
    "Index: {int32, int64}", "begin_mask: int = 0", "end_mask: int = 0", "ellipsis_mask: int = 0",
    "new_axis_mask: int = 0", "shrink_axis_mask: int = 0", shape=None,
)  # fmt: skip
op("Tile", "input: T, multiples: Tmultiples -> output: T", "T: type", "Tmultiples: {int32, int64} = DT_INT32",
    shape=None,
)  # fmt: skip
op("Transpose", "x: T, perm: Tperm -> y: T", "T: type", "Tperm: {int32, int64} = DT_INT32", shape=None)
op("Unpack", "value: T -> output: num * T", "num: int >= 0", "T: type", "axis: int = 0", shape=None)
op("ExtractImagePatches", "images: T -> patches: T", "ksizes: list(int) >= 4", "strides: list(int) >= 4",
    "rates: list(int) >= 4",
    "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, "
    "complex128, bool}", "padding: {'SAME', 'VALID'}", shape=None,
)  # fmt: skip
