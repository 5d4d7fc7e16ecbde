"""The messages of ``hlo.proto`` and ``xla_data.proto`` that cyxla reads and writes, as a table.

Descriptors are created from it on first use; `cyxla.types.proto_table` documents the notation. Three types differ
from XLA's, with the same wire format: strings are bytes (to detect invalid UTF-8), enums are integers, and packed
floats and bools are the packed bytes (to keep the bits of every NaN).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from cyxla.errors import DataLossError
from cyxla.types.proto_table import SCALARS, ProtoFile

_MESSAGES = """
HloProto
    hlo_module=1:HloModuleProto
HloModuleProto
    name=1:str entry_computation_name=2:str entry_computation_id=6:i64 computations=3:HloComputationProto*
    host_program_shape=4:ProgramShapeProto id=5:i64 schedule=7:HloScheduleProto
    input_output_alias=8:HloInputOutputAliasProto buffer_donor=18:HloBufferDonorProto is_dynamic=11:bool
    stack_frame_index=17:StackFrameIndexProto frontend_attributes=19:FrontendAttributes
HloComputationProto
    name=1:str instructions=2:HloInstructionProto* program_shape=4:ProgramShapeProto id=5:i64 root_id=6:i64
    is_fusion_computation=7:bool execution_thread=8:str
HloInstructionProto
    name=1:str opcode=2:str shape=3:ShapeProto metadata=7:OpMetadata literal=8:LiteralProto
    parameter_number=9:i64 fusion_kind=11:str tuple_index=13:i64 dimensions=14:i64* window=15:Window
    convolution_dimension_numbers=16:ConvolutionDimensionNumbers feature_group_count=50:i64
    batch_group_count=58:i64 slice_dimensions=17:SliceDimensions* exponent_bits=18:i32 mantissa_bits=19:i32
    dynamic_slice_sizes=20:i64* padding_config=21:PaddingConfig outfeed_config=22:str distribution=23:enum
    epsilon=24:f32 feature_index=25:i64 channel_id=26:i64 infeed_config=27:str custom_call_target=28:str
    outfeed_shape=29:ShapeProto dot_dimension_numbers=30:DotDimensionNumbers
    ragged_dot_dimension_numbers=90:RaggedDotDimensionNumbers fft_type=31:enum fft_length=32:i64*
    comparison_direction=63:str comparison_type=72:str gather_dimension_numbers=33:GatherDimensionNumbers
    gather_slice_sizes=34:i64* id=35:i64 operand_ids=36:i64* control_predecessor_ids=37:i64*
    called_computation_ids=38:i64* sharding=40:OpSharding backend_config=43:str replica_groups=49:ReplicaGroup*
    use_global_device_ids=71:bool is_host_transfer=47:bool is_stable=60:bool
    scatter_dimension_numbers=48:ScatterDimensionNumbers precision_config=51:PrecisionConfig
    source_target_pairs=52:SourceTarget* domain_entry_sharding=54:OpSharding domain_exit_sharding=55:OpSharding
    constrain_layout=56:bool operand_shapes_with_layout=57:ShapeProto*
    triangular_solve_options=59:TriangularSolveOptions cholesky_options=62:CholeskyOptions
    parameter_replication=61:ParameterReplication custom_call_has_side_effect=65:bool
    output_operand_aliasing=74:OutputOperandAliasing* custom_call_schedule=76:enum delta=66:i64
    indices_are_sorted=67:bool frontend_attributes=68:FrontendAttributes unique_indices=69:bool
    rng_algorithm=70:enum cross_program_prefetch_index=80:i32? padding_type=75:enum
    custom_call_api_version=77:enum async_execution_thread=79:str k=81:i64 largest=85:bool
    statistics_viz=82:StatisticsViz collective_device_list=87:CollectiveDeviceListProto
    iota_collective_device_list=92:IotaReplicaGroupListProto mesh_axes_replica_group_list=93:Anything?
    is_composite=89:bool result_accuracy=91:ResultAccuracy is_reverse=94:bool num_carries=95:i64
    is_associative=96:enum
Anything
SliceDimensions
    start=1:i64 limit=2:i64 stride=3:i64
HloScheduleProto
    sequences=1:SequencesEntry*
SequencesEntry
    key=1:i64 value=2:InstructionSequence
InstructionSequence
    instruction_ids=1:i64*
HloInputOutputAliasProto
    entries=1:AliasEntryProto*
AliasEntryProto
    output_shape_index=1:i64* parameter_number=2:i64 parameter_shape_index=3:i64* kind=4:enum
HloBufferDonorProto
    entries=1:BufferDonorEntryProto*
BufferDonorEntryProto
    parameter_number=1:i64 parameter_shape_index=2:i64*
StackFrameIndexProto
    file_names=1:str* function_names=2:str* file_locations=3:FileLocation* stack_frames=4:StackFrame*
FileLocation
    file_name_id=1:i32 function_name_id=2:i32 line=3:i32 end_line=5:i32 column=4:i32 end_column=6:i32
StackFrame
    file_location_id=1:i32 parent_frame_id=2:i32
PaddingConfig
    dimensions=1:PaddingConfigDimension*
PaddingConfigDimension
    edge_padding_low=1:i64 edge_padding_high=2:i64 interior_padding=3:i64
TileProto
    dimensions=1:i64*
SplitConfigProto
    dimension=1:i64 split_indices=2:i64*
LayoutProto
    minor_to_major=1:i64* dim_level_types=9:enum* tiles=6:TileProto* tail_padding_alignment_in_elements=16:i64
    element_size_in_bits=7:i64 memory_space=8:i64 index_primitive_type=11:enum pointer_primitive_type=12:enum
    physical_shape=10:ShapeProto dynamic_shape_metadata_prefix_bytes=15:i64 split_configs=17:SplitConfigProto*
ShapeProto
    element_type=2:enum dimensions=3:i64* is_dynamic_dimension=6:bool* tuple_shapes=4:ShapeProto*
    layout=5:LayoutProto
ProgramShapeProto
    parameters=1:ShapeProto* result=2:ShapeProto parameter_names=3:str*
OpMetadata
    op_type=1:str op_name=2:str source_file=3:str source_line=4:i32 source_end_line=17:i32 source_column=18:i32
    source_end_column=19:i32 profile_type=5:enum* deduplicated_name=12:str stack_frame_id=15:i32
    scheduling_name=16:str size_of_generated_code_in_bytes=8:i64 size_of_memory_working_set_in_bytes=9:i64
LiteralProto
    shape=1:ShapeProto preds=2:str* s1s=30:str s2s=26:str s4s=21:str s8s=15:str u1s=31:str u2s=27:str u4s=22:str
    u8s=3:str s32s=4:i32* s64s=5:i64* u32s=6:u32* u64s=7:u64* f32s=8:str* f64s=9:str* c64s=12:str* c128s=18:str*
    tuple_literals=10:LiteralProto* f16s=11:str bf16s=13:str u16s=16:str s16s=17:str f4e2m1fns=32:str
    f8e3m4s=29:str f8e4m3b11fnuzs=23:str f8e4m3fns=20:str f8e4m3fnuzs=25:str f8e4m3s=28:str f8e5m2fnuzs=24:str
    f8e5m2s=19:str f8e8m0fnus=33:str f6e3m2fns=35:str f6e2m3fns=36:str dynamic_sizes=34:i32*
Window
    dimensions=1:WindowDimension*
WindowDimension
    size=1:i64 stride=2:i64 padding_low=3:i64 padding_high=4:i64 window_dilation=5:i64 base_dilation=6:i64
    window_reversal=7:bool
GatherDimensionNumbers
    offset_dims=1:i64* collapsed_slice_dims=2:i64* start_index_map=3:i64* index_vector_dim=4:i64
    operand_batching_dims=5:i64* start_indices_batching_dims=6:i64*
ScatterDimensionNumbers
    update_window_dims=1:i64* inserted_window_dims=2:i64* scatter_dims_to_operand_dims=3:i64*
    index_vector_dim=4:i64 input_batching_dims=5:i64* scatter_indices_batching_dims=6:i64*
ConvolutionDimensionNumbers
    input_batch_dimension=7:i64 input_feature_dimension=8:i64 input_spatial_dimensions=11:i64*
    kernel_input_feature_dimension=3:i64 kernel_output_feature_dimension=4:i64 kernel_spatial_dimensions=6:i64*
    output_batch_dimension=9:i64 output_feature_dimension=10:i64 output_spatial_dimensions=12:i64*
DotDimensionNumbers
    lhs_contracting_dimensions=1:i64* rhs_contracting_dimensions=2:i64* lhs_batch_dimensions=3:i64*
    rhs_batch_dimensions=4:i64*
RaggedDotDimensionNumbers
    dot_dimension_numbers=1:DotDimensionNumbers lhs_ragged_dimensions=2:i64* rhs_group_dimensions=3:i64*
TriangularSolveOptions
    left_side=1:bool lower=2:bool unit_diagonal=3:bool transpose_a=4:enum
CholeskyOptions
    lower=1:bool
FrontendAttributes
    map=1:FrontendEntry*
FrontendEntry
    key=1:str value=2:str
StatisticsViz
    stat_index_to_visualize=1:i64 statistics=2:Statistic*
Statistic
    stat_name=1:str stat_val=2:f64
OpSharding
    type=1:enum tile_assignment_dimensions=3:i64* tile_assignment_devices=4:i64* tuple_shardings=5:OpSharding*
    replicate_on_last_tile_dim=6:bool last_tile_dims=8:enum* iota_reshape_dims=9:i64*
    iota_transpose_perm=10:i32* is_shard_group=11:bool shard_group_id=12:i64 shard_group_type=13:enum
    named_sharding=14:Anything?
ReplicaGroup
    replica_ids=1:i64*
CollectiveDeviceListProto
    replica_groups=1:ReplicaGroup*
IotaReplicaGroupListProto
    num_replica_groups=1:i64 num_devices_per_group=2:i64 iota_reshape_dims=3:i64* iota_transpose_perm=4:i32*
SourceTarget
    source=1:i64 target=2:i64
ResultAccuracy
    mode=1:enum tolerance=2:Tolerance?
Tolerance
    atol=1:f64 rtol=2:f64 ulps=3:i64
PrecisionConfig
    operand_precision=1:enum* algorithm=2:enum
ParameterReplication
    replicated_at_leaf_buffers=1:bool*
OutputOperandAliasing
    output_shape_index=1:i64* operand_index=2:i64 operand_shape_index=3:i64*
"""
_SCALARS = SCALARS | {"enum": SCALARS["i32"], "str": SCALARS["bytes"]}


@lru_cache(maxsize=1)
def messages() -> dict[str, Any]:
    """Return the message classes by name.

    Raises
    ------
    UnimplementedError
        protobuf is not installed.
    """
    file = ProtoFile("cyxla", _MESSAGES, scalars=_SCALARS)
    from google.protobuf import descriptor_pool

    return file.classes(descriptor_pool.DescriptorPool())


def text(data: bytes) -> str:
    """Return a string field as str.

    Raises
    ------
    DataLossError
        The bytes are not UTF-8.
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise DataLossError(f"a string of the proto is not UTF-8: {data[:80]!r}") from None


def escaped(data: bytes) -> str:
    """Return a bytes field as str; bytes that are not UTF-8 become lone surrogates."""
    return data.decode("utf-8", "surrogateescape")


def raw(string: str) -> bytes:
    """Return the bytes of a string that `escaped` returned."""
    return string.encode("utf-8", "surrogateescape")


def utf8(string: str) -> bytes:
    """Return the bytes of a string for a field that other readers require to be UTF-8."""
    return string.encode("utf-8", "replace")
