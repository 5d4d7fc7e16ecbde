"""Static properties of a node, computed once and shared by all users."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cyxla.core.framework.declarations.op_def import OpDef
from cyxla.core.framework.node_def import NodeDef, input_types, name_ranges, output_types
from cyxla.core.framework.types import DataType

Ranges = dict[str, range]


@dataclass(frozen=True, eq=False)
class NodeProperties:
    """Node with its declaration, its attributes as plain values, and the types and ranges of its arguments.

    Attributes
    ----------
    attrs : dict
        Attributes as Python values; see `attr_value`.
    input_types, output_types : tuple of DataType
        Type of each value, lists flattened.
    input_ranges, output_ranges : dict of ranges
        Indices of the values of each argument.
    input_lists, output_lists : frozenset of str
        Arguments that are lists.
    """

    node_def: NodeDef
    op_def: OpDef
    attrs: Mapping[str, Any]
    input_types: tuple[DataType, ...]
    output_types: tuple[DataType, ...]
    input_ranges: Ranges
    output_ranges: Ranges
    input_lists: frozenset[str]
    output_lists: frozenset[str]


def resolve(node_def: NodeDef, op_def: OpDef) -> NodeProperties:
    """Compute the properties of a node.

    Raises
    ------
    InvalidArgumentError
        An attribute that determines the type or number of an argument is missing or of another kind.
    """
    return NodeProperties(
        node_def,
        op_def,
        {name: attr.value for name, attr in node_def.attr.items()},
        input_types(node_def, op_def),
        output_types(node_def, op_def),
        name_ranges(op_def.input_arg, node_def.attr),
        name_ranges(op_def.output_arg, node_def.attr),
        frozenset(arg.name for arg in op_def.input_arg if arg.is_list),
        frozenset(arg.name for arg in op_def.output_arg if arg.is_list),
    )
