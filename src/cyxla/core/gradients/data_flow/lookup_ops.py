"""Lookup tables, which have no gradients."""

from cyxla.core.framework.gradient import no_gradient

no_gradient("HashTableV2", "LookupTableFindV2", "LookupTableImportV2", "LookupTableSizeV2")
