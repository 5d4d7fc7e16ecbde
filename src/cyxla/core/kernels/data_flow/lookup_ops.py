"""Lookup tables, which are filled once."""

from __future__ import annotations

from typing import Any

import numpy as np

from cyxla.core.framework.kernel_decorators import kernel
from cyxla.core.framework.op_kernel_context import OpKernelContext
from cyxla.core.framework.resource_mgr import ResourceBase
from cyxla.core.framework.types import DataType
from cyxla.errors import FailedPreconditionError, InvalidArgumentError, ShapeError
from cyxla.forking import new_lock

Array = np.ndarray[Any, Any]


class LookupTable(ResourceBase):
    """Map from keys to values.

    Parameters
    ----------
    key_dtype, value_dtype : DataType
        Element types of keys and values.
    """

    def __init__(self, key_dtype: DataType, value_dtype: DataType) -> None:
        self.key_dtype, self.value_dtype = key_dtype, value_dtype
        self._entries: dict[Any, Any] | None = None
        self._lock = new_lock()

    def __len__(self) -> int:
        return len(self._entries or ())

    def debug_string(self) -> str:
        """Return types and size."""
        return f"LookupTable[{len(self)}] {self.key_dtype} -> {self.value_dtype}"

    def fill(self, keys: Array, values: Array) -> None:
        """Set the entries.

        Raises
        ------
        FailedPreconditionError
            The table has different entries already.
        InvalidArgumentError
            A key occurs twice with different values.
        """
        entries: dict[Any, Any] = {}
        for key, value in zip(keys.reshape(-1).tolist(), values.reshape(-1).tolist(), strict=True):
            if entries.setdefault(key, value) != value:
                raise InvalidArgumentError(f"the key {key!r} comes twice, with {entries[key]!r} and {value!r}")
        with self._lock:
            if self._entries is not None and self._entries != entries:
                raise FailedPreconditionError(
                    "the table is already filled, with other entries", hint="make another table"
                )
            self._entries = entries

    def find(self, keys: Array, default: Array) -> Array:
        """Return the values of keys; the default for missing keys.

        Raises
        ------
        FailedPreconditionError
            The table was never filled.
        """
        if self._entries is None:
            raise FailedPreconditionError("the table has no entries yet", hint="import keys and values first")
        default_value = default.item()
        values = np.empty(keys.size, default.dtype)
        for i, key in enumerate(keys.reshape(-1).tolist()):
            values[i] = self._entries.get(key, default_value)
        return values.reshape(keys.shape)


@kernel("HashTableV2")
def hash_table(ctx: OpKernelContext) -> None:
    """Output the handle of a table; a missing one is created."""
    name = ctx.attr("shared_name") or ctx.op_kernel.name
    types = ctx.attr("key_dtype"), ctx.attr("value_dtype")
    handle = ctx.make_handle(ctx.attr("container"), name, LookupTable)
    table = ctx.lookup_or_create_resource(handle.item(), LookupTable, lambda: LookupTable(*types))
    if (table.key_dtype, table.value_dtype) != types:
        raise InvalidArgumentError(
            f"the table '{name}' is of {table.key_dtype} and {table.value_dtype}, not of {types[0]} and {types[1]}"
        )
    ctx.set_output(0, handle)


def _table(ctx: OpKernelContext) -> LookupTable:
    """Return the table of the first input after checking its types."""
    table = ctx.lookup_resource(0, LookupTable)
    types = ctx.attr("Tin"), ctx.attr("Tout")
    if (table.key_dtype, table.value_dtype) != types:
        raise InvalidArgumentError(
            f"the table is of {table.key_dtype} and {table.value_dtype}, the op is for {types[0]} and {types[1]}"
        )
    return table


@kernel("LookupTableFindV2")
def lookup_table_find(ctx: OpKernelContext) -> None:
    """Look up the value of each key."""
    default = ctx.input("default_value")
    if default.ndim:
        raise ShapeError(f"default_value must be a scalar, as values are; its shape is {list(default.shape)}")
    ctx.set_output(0, _table(ctx).find(ctx.input("keys"), default))


@kernel("LookupTableImportV2")
def lookup_table_import(ctx: OpKernelContext) -> None:
    """Fill the table."""
    keys, values = ctx.input("keys"), ctx.input("values")
    if keys.shape != values.shape:
        raise ShapeError(f"keys {list(keys.shape)} and values {list(values.shape)} must have one shape")
    _table(ctx).fill(keys, values)


@kernel("LookupTableSizeV2")
def lookup_table_size(ctx: OpKernelContext) -> None:
    """Return the number of entries."""
    ctx.set_output(0, np.array(len(ctx.lookup_resource(0, LookupTable)), np.int64))
