"""Maps of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.core.framework.kernel_decorators import array_kernel
from cyxla.core.framework.op_kernel_context import as_value
from cyxla.core.framework.types import DataType
from cyxla.core.kernels.lib.tensor_map import TensorMap, unwrap_map
from cyxla.errors import InvalidArgumentError

Array = np.ndarray[Any, Any]


@array_kernel("EmptyTensorMap")
def empty_map() -> Array:
    """Make a map without keys."""
    return as_value(TensorMap())


@array_kernel("TensorMapSize")
def map_size(handle: Array) -> Array:
    """Return the number of keys."""
    return np.array(unwrap_map(handle).size, np.int32)


@array_kernel("TensorMapLookup", attrs=("value_dtype",))
def map_lookup(handle: Array, key: Array, *, value_dtype: DataType) -> Array:
    """Return the value of a key."""
    value = unwrap_map(handle).look_up(key)
    if value.dtype != value_dtype.numpy:
        raise InvalidArgumentError(f"the value of the key is of {value.dtype}, but {value_dtype} is declared")
    return value


@array_kernel("TensorMapInsert")
def map_insert(handle: Array, key: Array, value: Array) -> Array:
    """Set the value of a key."""
    return as_value(unwrap_map(handle).insert(key, value))


@array_kernel("TensorMapErase")
def map_erase(handle: Array, key: Array) -> Array:
    """Remove a key."""
    return as_value(unwrap_map(handle).erase(key))


@array_kernel("TensorMapHasKey")
def map_has_key(handle: Array, key: Array) -> Array:
    """Test for a key."""
    return np.array(unwrap_map(handle).has(key))


@array_kernel("TensorMapStackKeys", attrs=("key_dtype",))
def map_keys(handle: Array, *, key_dtype: DataType) -> Array:
    """Stack all keys, which must have one type and shape."""
    keys = unwrap_map(handle).keys
    if not keys:
        raise InvalidArgumentError("TensorMapStackKeys cannot be called on empty map.")
    if any(key.dtype != key_dtype.numpy for key in keys):
        raise InvalidArgumentError("Key does not match requested dtype.")
    if any(key.shape != keys[0].shape for key in keys):
        raise InvalidArgumentError("Keys must all have the same shape.")
    return np.stack(keys)
