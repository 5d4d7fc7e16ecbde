"""Maps of tensors."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import scalar_shape, unknown_shape

_KEY = "key_dtype: type"
_TYPES = (_KEY, "value_dtype: type")

op("EmptyTensorMap", "-> handle: variant", shape=scalar_shape, doc="Make an empty map.")
op("TensorMapErase", "input_handle: variant, key: key_dtype -> output_handle: variant", *_TYPES, shape=scalar_shape,
    doc="Remove a key from a map.",
)  # fmt: skip
op("TensorMapHasKey", "input_handle: variant, key: key_dtype -> has_key: bool", _KEY, shape=scalar_shape,
    doc="Test if a map has a key.",
)  # fmt: skip
op("TensorMapInsert", "input_handle: variant, key: key_dtype, value: value_dtype -> output_handle: variant", *_TYPES,
    shape=scalar_shape, doc="Set the value of a key of a map.",
)  # fmt: skip
op("TensorMapLookup", "input_handle: variant, key: key_dtype -> value: value_dtype", *_TYPES, shape=unknown_shape,
    doc="Return the value of a key of a map.",
)  # fmt: skip
op(
    "TensorMapSize",
    "input_handle: variant -> size: int32",
    shape=scalar_shape,
    doc="Return the number of keys of a map.",
)
op("TensorMapStackKeys", "input_handle: variant -> keys: key_dtype", _KEY, shape=unknown_shape,
    doc="Return the keys of a map as one tensor.",
)  # fmt: skip
