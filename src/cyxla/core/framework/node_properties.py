"""What is known of a node before it runs, worked out once and shared by everything that asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cyxla.core.framework.op_def import ArgDef, OpDef
from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError

if TYPE_CHECKING:
    from cyxla.core.framework.node_def import NodeDef

Ranges = dict[str, range]


@dataclass(frozen=True, eq=False)
class NodeProperties:
    """A node with its declaration, its attributes as plain values, and the types and places of its arguments.

    Attributes
    ----------
    attrs : dict
        Attributes as Python values: see `attr_value`.
    input_types, output_types : tuple of DataType
        One per value, lists laid out flat.
    input_ranges, output_ranges : dict of ranges
        Where each argument's values stand.
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
    """Work out a node's properties.

    Raises
    ------
    InvalidArgumentError
        An attribute that tells the type or number of an argument is missing or of another kind.
    """
    attrs = {name: attr.value for name, attr in node_def.attr.items()}
    try:
        inputs, outputs = ([_arg_types(arg, attrs) for arg in args] for args in (op_def.input_arg, op_def.output_arg))
    except (KeyError, TypeError) as error:
        raise InvalidArgumentError(
            f"attribute {error} that tells the arguments of {node_def.op} is missing or of another kind",
            where=f"node '{node_def.name}'",
        ) from None
    return NodeProperties(
        node_def,
        op_def,
        attrs,
        _flat(inputs),
        _flat(outputs),
        _ranges(op_def.input_arg, inputs),
        _ranges(op_def.output_arg, outputs),
        _lists(op_def.input_arg),
        _lists(op_def.output_arg),
    )


def _arg_types(arg: ArgDef, attrs: Mapping[str, Any]) -> list[DataType]:
    if arg.type_list_attr:
        types = list(attrs[arg.type_list_attr])
    else:
        one = DataType(arg.type or attrs[arg.type_attr])
        types = [one] * int(attrs[arg.number_attr] if arg.number_attr else 1)
    return [t.ref for t in types] if arg.is_ref else types


def _flat(types: Sequence[Sequence[DataType]]) -> tuple[DataType, ...]:
    return tuple(t for group in types for t in group)


def _ranges(args: Sequence[ArgDef], types: Sequence[Sequence[DataType]]) -> Ranges:
    ranges, start = {}, 0
    for arg, group in zip(args, types, strict=True):
        ranges[arg.name] = range(start, start + len(group))
        start += len(group)
    return ranges


def _lists(args: Sequence[ArgDef]) -> frozenset[str]:
    return frozenset(arg.name for arg in args if arg.is_list)
