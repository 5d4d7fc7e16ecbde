"""The messages of TensorFlow's graphs, saved models and configurations, and their two formats.

The tables are read at first use; see `cyxla.types.proto_table` for how they are spelled.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError
from cyxla.types.proto_table import ProtoFile

_MESSAGES = """
GraphDef
    node=1:NodeDef* library=2:FunctionDefLibrary version=3:i32 versions=4:VersionDef debug_info=5:GraphDebugInfo
NodeDef
    name=1:str op=2:str input=3:str* device=4:str attr=5:str>AttrValue
    experimental_debug_info=6:NodeDef.ExperimentalDebugInfo experimental_type=7:FullTypeDef
AttrValue
    list=1:AttrValue.ListValue@value s=2:bytes@value i=3:i64@value f=4:f32@value b=5:bool@value
    type=6:DataType@value shape=7:TensorShapeProto@value tensor=8:TensorProto@value placeholder=9:str@value
    func=10:NameAttrList@value
AttrValue.ListValue
    s=2:bytes* i=3:i64* f=4:f32* b=5:bool* type=6:DataType* shape=7:TensorShapeProto* tensor=8:TensorProto*
    func=9:NameAttrList*
TensorShapeProto
    dim=2:TensorShapeProto.Dim* unknown_rank=3:bool
TensorShapeProto.Dim
    size=1:i64 name=2:str
TensorProto
    dtype=1:DataType tensor_shape=2:TensorShapeProto version_number=3:i32 tensor_content=4:bytes float_val=5:f32*
    double_val=6:f64* int_val=7:i32* string_val=8:bytes* scomplex_val=9:f32* int64_val=10:i64* bool_val=11:bool*
    dcomplex_val=12:f64* half_val=13:i32* resource_handle_val=14:ResourceHandleProto*
    variant_val=15:VariantTensorDataProto* uint32_val=16:u32* uint64_val=17:u64* float8_val=18:bytes
ResourceHandleProto
    device=1:str container=2:str name=3:str hash_code=4:u64 maybe_type_name=5:str
    dtypes_and_shapes=6:ResourceHandleProto.DtypeAndShape*
ResourceHandleProto.DtypeAndShape
    dtype=1:DataType shape=2:TensorShapeProto
VariantTensorDataProto
    type_name=1:str metadata=2:bytes tensors=3:TensorProto*
NameAttrList
    name=1:str attr=2:str>AttrValue
NodeDef.ExperimentalDebugInfo
    original_node_names=1:str* original_func_names=2:str*
FullTypeDef
    type_id=1:FullTypeId args=2:FullTypeDef* s=3:str@attr i=4:i64@attr
FunctionDefLibrary
    function=1:FunctionDef* gradient=2:GradientDef* registered_gradients=3:RegisteredGradient*
FunctionDef
    signature=1:OpDef node_def=3:NodeDef* ret=4:str>str attr=5:str>AttrValue control_ret=6:str>str
    arg_attr=7:u32>FunctionDef.ArgAttrs resource_arg_unique_id=8:u32>u32
OpDef
    name=1:str input_arg=2:OpDef.ArgDef* output_arg=3:OpDef.ArgDef* attr=4:OpDef.AttrDef* summary=5:str
    description=6:str deprecation=8:OpDeprecation is_aggregate=16:bool is_stateful=17:bool is_commutative=18:bool
    allows_uninitialized_input=19:bool control_output=20:str* is_distributed_communication=21:bool
OpDef.ArgDef
    name=1:str description=2:str type=3:DataType type_attr=4:str number_attr=5:str type_list_attr=6:str
    handle_data=7:ResourceHandleProto.DtypeAndShape* is_ref=16:bool experimental_full_type=17:FullTypeDef
OpDef.AttrDef
    name=1:str type=2:str default_value=3:AttrValue description=4:str has_minimum=5:bool minimum=6:i64
    allowed_values=7:AttrValue
OpDeprecation
    version=1:i32 explanation=2:str
FunctionDef.ArgAttrs
    attr=1:str>AttrValue
GradientDef
    function_name=1:str gradient_func=2:str
RegisteredGradient
    gradient_func=1:str registered_op_type=2:str
VersionDef
    producer=1:i32 min_consumer=2:i32 bad_consumers=3:i32*
GraphDebugInfo
    files=1:str* traces=2:str>GraphDebugInfo.StackTrace frames_by_id=4:x64>GraphDebugInfo.FileLineCol
    name_to_trace_id=5:str>x64 traces_by_id=6:x64>GraphDebugInfo.StackTrace
GraphDebugInfo.StackTrace
    file_line_cols=1:GraphDebugInfo.FileLineCol* frame_id=2:x64*
GraphDebugInfo.FileLineCol
    file_index=1:i32 line=2:i32 col=3:i32 func=4:str code=5:str
OpList
    op=1:OpDef*
KernelDef
    op=1:str device_type=2:str constraint=3:KernelDef.AttrConstraint* host_memory_arg=4:str* label=5:str
    priority=6:i32
KernelDef.AttrConstraint
    name=1:str allowed_values=2:AttrValue
SavedModel
    saved_model_schema_version=1:i64 meta_graphs=2:MetaGraphDef*
MetaGraphDef
    meta_info_def=1:MetaGraphDef.MetaInfoDef graph_def=2:GraphDef saver_def=3:SaverDef
    collection_def=4:str>CollectionDef signature_def=5:str>SignatureDef asset_file_def=6:AssetFileDef*
    object_graph_def=7:SavedObjectGraph
MetaGraphDef.MetaInfoDef
    meta_graph_version=1:str stripped_op_list=2:OpList any_info=3:.google.protobuf.Any tags=4:str*
    tensorflow_version=5:str tensorflow_git_version=6:str stripped_default_attrs=7:bool function_aliases=8:str>str
SaverDef
    filename_tensor_name=1:str save_tensor_name=2:str restore_op_name=3:str max_to_keep=4:i32 sharded=5:bool
    keep_checkpoint_every_n_hours=6:f32 version=7:SaverDef.CheckpointFormatVersion
CollectionDef
    node_list=1:CollectionDef.NodeList@kind bytes_list=2:CollectionDef.BytesList@kind
    int64_list=3:CollectionDef.Int64List@kind float_list=4:CollectionDef.FloatList@kind
    any_list=5:CollectionDef.AnyList@kind
CollectionDef.NodeList
    value=1:str*
CollectionDef.BytesList
    value=1:bytes*
CollectionDef.Int64List
    value=1:i64*
CollectionDef.FloatList
    value=1:f32*
CollectionDef.AnyList
    value=1:.google.protobuf.Any*
SignatureDef
    inputs=1:str>TensorInfo outputs=2:str>TensorInfo method_name=3:str defaults=4:str>TensorProto
TensorInfo
    name=1:str@encoding dtype=2:DataType tensor_shape=3:TensorShapeProto coo_sparse=4:TensorInfo.CooSparse@encoding
    composite_tensor=5:TensorInfo.CompositeTensor@encoding
TensorInfo.CooSparse
    values_tensor_name=1:str indices_tensor_name=2:str dense_shape_tensor_name=3:str
TensorInfo.CompositeTensor
    type_spec=1:TypeSpecProto components=2:TensorInfo*
TypeSpecProto
    type_spec_class=1:TypeSpecProto.TypeSpecClass type_state=2:StructuredValue type_spec_class_name=3:str
    num_flat_components=4:i32
StructuredValue
    none_value=1:NoneValue@kind float64_value=11:f64@kind int64_value=12:s64@kind string_value=13:str@kind
    bool_value=14:bool@kind tensor_shape_value=31:TensorShapeProto@kind tensor_dtype_value=32:DataType@kind
    tensor_spec_value=33:TensorSpecProto@kind type_spec_value=34:TypeSpecProto@kind
    bounded_tensor_spec_value=35:BoundedTensorSpecProto@kind list_value=51:ListValue@kind
    tuple_value=52:TupleValue@kind dict_value=53:DictValue@kind named_tuple_value=54:NamedTupleValue@kind
    tensor_value=55:TensorProto@kind numpy_value=56:TensorProto@kind
NoneValue
TensorSpecProto
    name=1:str shape=2:TensorShapeProto dtype=3:DataType
BoundedTensorSpecProto
    name=1:str shape=2:TensorShapeProto dtype=3:DataType minimum=4:TensorProto maximum=5:TensorProto
ListValue
    values=1:StructuredValue*
TupleValue
    values=1:StructuredValue*
DictValue
    fields=1:str>StructuredValue
NamedTupleValue
    name=1:str values=2:PairValue*
PairValue
    key=1:str value=2:StructuredValue
AssetFileDef
    tensor_info=1:TensorInfo filename=2:str
SavedObjectGraph
    nodes=1:SavedObject* concrete_functions=2:str>SavedConcreteFunction
SavedObject
    children=1:TrackableObjectGraph.TrackableObject.ObjectReference*
    slot_variables=3:TrackableObjectGraph.TrackableObject.SlotVariableReference* user_object=4:SavedUserObject@kind
    asset=5:SavedAsset@kind function=6:SavedFunction@kind variable=7:SavedVariable@kind
    bare_concrete_function=8:SavedBareConcreteFunction@kind constant=9:SavedConstant@kind
    resource=10:SavedResource@kind saveable_objects=11:str>SaveableObject captured_tensor=12:CapturedTensor@kind
    registered_name=13:str serialized_user_proto=14:.google.protobuf.Any
    dependencies=15:TrackableObjectGraph.TrackableObject.ObjectReference* registered_saver=16:str
TrackableObjectGraph.TrackableObject.ObjectReference
    node_id=1:i32 local_name=2:str
TrackableObjectGraph.TrackableObject.SlotVariableReference
    original_variable_node_id=1:i32 slot_name=2:str slot_variable_node_id=3:i32
SavedUserObject
    identifier=1:str version=2:VersionDef metadata=3:str
SavedAsset
    asset_file_def_index=1:i32
SavedFunction
    concrete_functions=1:str* function_spec=2:FunctionSpec
FunctionSpec
    fullargspec=1:StructuredValue is_method=2:bool input_signature=5:StructuredValue
    jit_compile=6:FunctionSpec.JitCompile
SavedVariable
    dtype=1:DataType shape=2:TensorShapeProto trainable=3:bool synchronization=4:VariableSynchronization
    aggregation=5:VariableAggregation name=6:str device=7:str
    experimental_distributed_variable_components=8:SavedVariable*
SavedBareConcreteFunction
    concrete_function_name=1:str argument_keywords=2:str* allowed_positional_arguments=3:i64
    function_spec=4:FunctionSpec
SavedConstant
    operation=1:str
SavedResource
    device=1:str
SaveableObject
    save_function=2:i32 restore_function=3:i32
CapturedTensor
    name=1:str concrete_function=2:str
SavedConcreteFunction
    bound_inputs=2:i32* canonicalized_input_signature=3:StructuredValue output_signature=4:StructuredValue
VariableDef
    variable_name=1:str initializer_name=2:str snapshot_name=3:str save_slice_info_def=4:SaveSliceInfoDef
    is_resource=5:bool initial_value_name=6:str trainable=7:bool synchronization=8:VariableSynchronization
    aggregation=9:VariableAggregation
SaveSliceInfoDef
    full_name=1:str full_shape=2:i64* var_offset=3:i64* var_shape=4:i64*
TrackableObjectGraph
    nodes=1:TrackableObjectGraph.TrackableObject*
TrackableObjectGraph.TrackableObject
    children=1:TrackableObjectGraph.TrackableObject.ObjectReference*
    attributes=2:TrackableObjectGraph.TrackableObject.SerializedTensor*
    slot_variables=3:TrackableObjectGraph.TrackableObject.SlotVariableReference* registered_saver=4:RegisteredSaver
    has_checkpoint_values=5:.google.protobuf.BoolValue
TrackableObjectGraph.TrackableObject.SerializedTensor
    name=1:str full_name=2:str checkpoint_key=3:str
RegisteredSaver
    name=1:str object_name=2:str
BundleHeaderProto
    num_shards=1:i32 endianness=2:BundleHeaderProto.Endianness version=3:VersionDef
BundleEntryProto
    dtype=1:DataType shape=2:TensorShapeProto shard_id=3:i32 offset=4:i64 size=5:i64 crc32c=6:x32
    slices=7:TensorSliceProto*
TensorSliceProto
    extent=1:TensorSliceProto.Extent*
TensorSliceProto.Extent
    start=1:i64 length=2:i64@has_length_hack
SavedTensorSlices
    meta=1:SavedTensorSliceMeta data=2:SavedSlice
SavedTensorSliceMeta
    tensor=1:SavedSliceMeta* versions=2:VersionDef
SavedSliceMeta
    name=1:str shape=2:TensorShapeProto type=3:DataType slice=4:TensorSliceProto*
SavedSlice
    name=1:str slice=2:TensorSliceProto data=3:TensorProto
OpGenOverrides
    op=1:OpGenOverride*
OpGenOverride
    name=1:str skip=2:bool hide=3:bool rename_to=4:str alias=5:str* attr_default=6:OpGenOverride.AttrDefault*
    attr_rename=7:OpGenOverride.Rename* input_rename=8:OpGenOverride.Rename* output_rename=9:OpGenOverride.Rename*
OpGenOverride.AttrDefault
    name=1:str value=2:AttrValue
OpGenOverride.Rename
    from=1:str to=2:str
ApiDefs
    op=1:ApiDef*
ApiDef
    graph_op_name=1:str visibility=2:ApiDef.Visibility endpoint=3:ApiDef.Endpoint* in_arg=4:ApiDef.Arg*
    out_arg=5:ApiDef.Arg* attr=6:ApiDef.Attr* summary=7:str description=8:str description_prefix=9:str
    description_suffix=10:str arg_order=11:str* deprecation_message=12:str deprecation_version=13:i32
ApiDef.Endpoint
    name=1:str deprecated=3:bool deprecation_version=4:i32
ApiDef.Arg
    name=1:str rename_to=2:str description=3:str
ApiDef.Attr
    name=1:str rename_to=2:str default_value=3:AttrValue description=4:str
UniformQuantizedConvolutionDimensionNumbersAttr
    input_batch_dimension=1:i64 input_feature_dimension=2:i64 input_spatial_dimensions=3:i64*
    kernel_input_feature_dimension=4:i64 kernel_output_feature_dimension=5:i64 kernel_spatial_dimensions=6:i64*
    output_batch_dimension=7:i64 output_feature_dimension=8:i64 output_spatial_dimensions=9:i64*
"""
_CONFIG_MESSAGES = """
Config
    feed=1:Feed* fetch=2:Fetch* variable=3:Variable* conversion_options=4:ConversionOptions
Feed
    id=1:TensorId shape=2:.tensorflow.TensorShapeProto name=3:str type=4:.tensorflow.DataType
TensorId
    node_name=1:str output_index=2:i64
Fetch
    id=1:TensorId name=2:str shape=3:.tensorflow.TensorShapeProto type=4:.tensorflow.DataType
Variable
    node_name=1:str name=2:str shape=3:.tensorflow.TensorShapeProto type=4:.tensorflow.DataType readonly=5:bool
ConversionOptions
    custom_fake_quant_op_calls=1:bool
"""
_WELL_KNOWN_MESSAGES = """
Any
    type_url=1:str value=2:bytes
BoolValue
    value=1:bool
"""
_ENUMS = """
ApiDef.Visibility: DEFAULT_VISIBILITY=0 VISIBLE=1 SKIP=2 HIDDEN=3
SaverDef.CheckpointFormatVersion: LEGACY=0 V1=1 V2=2
TypeSpecProto.TypeSpecClass: UNKNOWN=0 SPARSE_TENSOR_SPEC=1 INDEXED_SLICES_SPEC=2 RAGGED_TENSOR_SPEC=3
    TENSOR_ARRAY_SPEC=4 DATA_DATASET_SPEC=5 DATA_ITERATOR_SPEC=6 OPTIONAL_SPEC=7 PER_REPLICA_SPEC=8 VARIABLE_SPEC=9
    ROW_PARTITION_SPEC=10 REGISTERED_TYPE_SPEC=12 EXTENSION_TYPE_SPEC=13
FunctionSpec.JitCompile: DEFAULT=0 ON=1 OFF=2
VariableSynchronization: VARIABLE_SYNCHRONIZATION_AUTO=0 VARIABLE_SYNCHRONIZATION_NONE=1
    VARIABLE_SYNCHRONIZATION_ON_WRITE=2 VARIABLE_SYNCHRONIZATION_ON_READ=3
VariableAggregation: VARIABLE_AGGREGATION_NONE=0 VARIABLE_AGGREGATION_SUM=1 VARIABLE_AGGREGATION_MEAN=2
    VARIABLE_AGGREGATION_ONLY_FIRST_REPLICA=3
BundleHeaderProto.Endianness: LITTLE=0 BIG=1
FullTypeId: TFT_UNSET=0 TFT_VAR=1 TFT_ANY=2 TFT_PRODUCT=3 TFT_NAMED=4 TFT_FOR_EACH=20 TFT_CALLABLE=100 TFT_BOOL=200
    TFT_UINT8=201 TFT_UINT16=202 TFT_UINT32=203 TFT_UINT64=204 TFT_INT8=205 TFT_INT16=206 TFT_INT32=207
    TFT_INT64=208 TFT_HALF=209 TFT_FLOAT=210 TFT_DOUBLE=211 TFT_COMPLEX64=212 TFT_COMPLEX128=213 TFT_STRING=214
    TFT_BFLOAT16=215 TFT_TENSOR=1000 TFT_ARRAY=1001 TFT_OPTIONAL=1002 TFT_LITERAL=1003 TFT_ENCODED=1004
    TFT_SHAPE_TENSOR=1005 TFT_DATASET=10102 TFT_RAGGED=10103 TFT_ITERATOR=10104 TFT_MUTEX_LOCK=10202
    TFT_LEGACY_VARIANT=10203
"""


def _enums() -> dict[str, dict[str, int]]:
    enums = {"DataType": {t.name: int(t) for t in DataType}}
    for part in re.split(r"\n(?=\S)", _ENUMS.strip()):
        name, _, values = part.partition(":")
        enums[name] = {key: int(number) for key, _, number in (v.partition("=") for v in values.split())}
    return enums


@lru_cache(maxsize=1)
def _load() -> tuple[Any, dict[str, Any]]:
    """The pool, and the message classes by name."""
    well_known = ProtoFile("google.protobuf", _WELL_KNOWN_MESSAGES)
    graph = ProtoFile("tensorflow", _MESSAGES, _enums())
    config = ProtoFile("tensorflow.tf2xla", _CONFIG_MESSAGES)
    from google.protobuf import descriptor_pool

    graph.depend(well_known)
    config.depend(graph)
    pool = descriptor_pool.DescriptorPool()
    classes = {f"google.protobuf.{name}": c for name, c in well_known.classes(pool).items()}
    classes |= graph.classes(pool)
    return pool, classes | {f"tf2xla.{name}": c for name, c in config.classes(pool).items()}


def message(name: str) -> Any:
    """The class of a message such as ``"GraphDef"``, ``"AttrValue.ListValue"`` or ``"tf2xla.Config"``.

    Raises
    ------
    InvalidArgumentError
        There is no such message.
    """
    classes = _load()[1]
    if name not in classes:
        raise InvalidArgumentError(f"unknown message {name!r}")
    return classes[name]


def parse_binary(name: str, data: bytes | bytearray | memoryview) -> Any:
    """A message from its binary format.

    Raises
    ------
    InvalidArgumentError
        The bytes are no such message.
    """
    from google.protobuf.message import DecodeError

    proto = message(name)()
    try:
        proto.ParseFromString(bytes(data))
    except (DecodeError, UnicodeDecodeError, ValueError) as e:
        raise InvalidArgumentError(f"the bytes are not a valid {name}: {e}") from None
    return proto


def parse_text(name: str, text: str) -> Any:
    """A message from its text format.

    Raises
    ------
    InvalidArgumentError
        The text is no such message; the error says in which line and column.
    """
    from google.protobuf import text_format

    proto = message(name)()
    try:
        text_format.Parse(text, proto, descriptor_pool=_load()[0])
    except text_format.ParseError as e:
        at = (e.GetLine(), e.GetColumn())
        where = "" if at[0] is None else f"line {at[0]}, column {at[1]}"
        raise InvalidArgumentError(f"the text is not a valid {name}: {str(e)[:300]}", where=where) from None
    except RecursionError:
        raise InvalidArgumentError(f"the text is not a valid {name}: it is nested too deeply") from None
    except (ValueError, TypeError) as e:
        raise InvalidArgumentError(f"the text is not a valid {name}: {e}") from None
    return proto


def to_text(proto: Any) -> str:
    """The text format of a message.

    Examples
    --------
    >>> print(to_text(message("VersionDef")(producer=2)), end="")
    producer: 2
    """
    from google.protobuf import text_format

    text: str = text_format.MessageToString(proto, descriptor_pool=_load()[0])
    return text


def to_bytes(proto: Any) -> bytes:
    """The binary format of a message, maps in the order of their keys: equal messages give equal bytes."""
    data: bytes = proto.SerializeToString(deterministic=True)
    return data
