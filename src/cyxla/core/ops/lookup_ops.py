"""Lookup tables."""

from cyxla.core.framework.op import op

op("HashTableV2", "-> table_handle: resource", "container: string = ''", "shared_name: string = ''",
    "use_node_name_sharing: bool = false", "key_dtype: type", "value_dtype: type", stateful=True, shape=None,
)  # fmt: skip
op("LookupTableFindV2", "table_handle: resource, keys: Tin, default_value: Tout -> values: Tout", "Tin: type",
    "Tout: type", stateful=True, shape=None,
)  # fmt: skip
op("LookupTableImportV2", "table_handle: resource, keys: Tin, values: Tout ->", "Tin: type", "Tout: type",
    stateful=True, shape=None,
)  # fmt: skip
op("LookupTableSizeV2", "table_handle: resource -> size: int64", stateful=True, shape=None)
