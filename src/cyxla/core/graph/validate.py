"""Validation of nodes and graphs, with TensorFlow's error codes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from cyxla.core.framework.attr_value import PLACEHOLDER
from cyxla.core.framework.node_def import add_defaults_to_node_def, same_value, validate_node_def
from cyxla.errors import InvalidArgumentError, NotFoundError

if TYPE_CHECKING:
    from cyxla.core.framework.attr_value import AttrValue
    from cyxla.core.framework.declarations.op_def import OpDef
    from cyxla.core.framework.node_def import NodeDef
    from cyxla.core.graph.graph import Node, Tensor

_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_>./\\-]*\Z")
_INTERNAL_NAME = re.compile(r"_[A-Za-z0-9_>./\\-]*\Z")


def check_node_name(name: str, *, internal: bool = True) -> None:
    r"""Raise if a name is not a valid node name.

    Raises
    ------
    InvalidArgumentError
        The name has others than letters, digits and ``_ . / \ > -``, or begins with ``_`` and is not internal.
    """
    if not (_NAME.match(name) or (internal and _INTERNAL_NAME.match(name))):
        raise InvalidArgumentError(
            f"'{name}' is not a valid node name", node=name, hint="use letters, digits and _ . / \\ > -"
        )


def split_tensor_name(name: str) -> tuple[str, int]:
    """Split a tensor name ``"a:1"`` into the node and the output index ``("a", 1)``; the index is 0 by default.

    Raises
    ------
    InvalidArgumentError
        The name is malformed.
    """
    node, colon, index = name.rpartition(":")
    if not colon:
        return name, 0
    if not node or not (index.isascii() and index.isdigit()) or name.startswith("^"):
        raise InvalidArgumentError(f"'{name}' does not name a tensor", hint="write 'node' or 'node:output'")
    return node, int(index)


def check_inputs(node: Node) -> None:
    """Check number and types of a node's inputs against its declaration.

    Raises
    ------
    InvalidArgumentError
        The number or a type of the inputs differs from the declaration.
    """
    input_types = node.input_types
    if len(node.inputs) != len(input_types):
        raise InvalidArgumentError(
            f"node '{node.name}' ({node.op}) has {len(node.inputs)} inputs, but its declaration has {len(input_types)}",
            node=node.name,
            op=node.op,
        )
    for i, tensor in enumerate(node.inputs):
        if tensor is not None:  # None is an edge that closes a loop, which is checked when it is set
            check_input(node, i, tensor)


def check_input(node: Node, position: int, tensor: Tensor) -> None:
    """Check the type of a tensor as an input of a node.

    Raises
    ------
    InvalidArgumentError
        The type differs from the declaration.
    """
    dtype = node.input_types[position]
    found_type = tensor.node.output_types[tensor.index]
    if found_type is not dtype and (dtype.is_ref or found_type.base != dtype):
        raise InvalidArgumentError(
            f"input {position} of node '{node.name}' ({node.op}) is {found_type} from '{tensor.name}', but "
            f"it takes {dtype}",
            node=node.name,
            op=node.op,
            hint="put a Cast between them",
        )


def complete_attrs(node_def: NodeDef, op_def: OpDef) -> dict[str, AttrValue]:
    """Return the attributes of a node with defaults filled in, after a check against the declaration."""
    add_defaults_to_node_def(node_def, op_def)
    validate_node_def(node_def, op_def)
    for name, value in node_def.attr.items():
        if value.kind == PLACEHOLDER:
            raise InvalidArgumentError(
                f"attr '{name}' refers to an attribute of a function, but the node is not in a function",
                node=node_def.name,
                op=node_def.op,
            )
    return node_def.attr


def drop_undeclared(node_def: NodeDef, op_def: OpDef) -> list[str]:
    """Remove attributes that are not declared and do not begin with an underscore, and return their names."""
    names = [n for n in node_def.attr if not n.startswith("_") and op_def.find_attr(n) is None]
    for name in names:
        del node_def.attr[name]
    return names


def drop_new_defaults(node_defs: Iterable[NodeDef], library: Any, producer_ops: Mapping[str, OpDef]) -> None:
    """Remove attributes that only the producer declares and that have their default value.

    Such a node means the same as before the attribute was introduced.

    Raises
    ------
    InvalidArgumentError
        The attribute has another value, so that the meaning of the node is unknown to this version.
    """
    for node_def in node_defs:
        producer = producer_ops.get(node_def.op)
        for attr in () if producer is None else producer.attr:
            value = node_def.attr.get(attr.name)
            if value is None or _declares(library, node_def.op, attr.name):
                continue
            if attr.default is None or not same_value(value, attr.default):
                raise InvalidArgumentError(
                    f"the node has the attr '{attr.name}', which the version that wrote the graph declares for "
                    f"{node_def.op}, but this one does not know",
                    node=node_def.name,
                    op=node_def.op,
                    where=f"node '{node_def.name}' ({node_def.op})",
                    hint="export the graph with an older version, or without the attribute",
                )
            del node_def.attr[attr.name]


def _declares(library: Any, op: str, attr: str) -> bool:
    """Return True if an op declares an attribute, or if the op is unknown, which is an error elsewhere."""
    try:
        return library.look_up(op).op_def.find_attr(attr) is not None
    except NotFoundError:
        return True
