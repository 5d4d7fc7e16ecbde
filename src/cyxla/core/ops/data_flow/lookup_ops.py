"""Lookup tables."""

from cyxla.core.framework.declarations.op import op
from cyxla.core.framework.shape_fns.common import no_outputs, scalar_shape
from cyxla.core.framework.shape_inference import InferenceContext


def _find_shape(c: InferenceContext) -> None:
    """Set one value per key if values are scalars."""
    if c.with_rank_at_most(c.input(2), 1).rank == 0:
        c.set_output(0, c.input(1))


op("HashTableV2", "-> table_handle: resource", "container: string = ''", "shared_name: string = ''",
    "use_node_name_sharing: bool = false", "key_dtype: type", "value_dtype: type", stateful=True, shape=scalar_shape,
    doc="Create a table of keys and values, which is filled once.",
)  # fmt: skip
op("LookupTableFindV2", "table_handle: resource, keys: Tin, default_value: Tout -> values: Tout", "Tin: type",
    "Tout: type", stateful=True, shape=_find_shape, doc="Look up keys, with a default for missing ones.",
)  # fmt: skip
op("LookupTableImportV2", "table_handle: resource, keys: Tin, values: Tout ->", "Tin: type", "Tout: type",
    stateful=True, shape=no_outputs, doc="Replace the contents of a table.",
)  # fmt: skip
op("LookupTableSizeV2", "table_handle: resource -> size: int64", stateful=True, shape=scalar_shape,
    doc="Return the number of entries of a table.",
)  # fmt: skip
