"""Checks of nodes and graphs, with TensorFlow's codes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from cyxla.core.framework.attr_value import PLACEHOLDER
from cyxla.core.framework.node_def import add_defaults_to_node_def, same_value, validate_node_def
from cyxla.errors import InvalidArgumentError

if TYPE_CHECKING:
    from cyxla.core.framework.attr_value import AttrValue
    from cyxla.core.framework.node_def import NodeDef
    from cyxla.core.framework.op_def import OpDef
    from cyxla.core.graph.graph import Node, Tensor

_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_>./\\-]*\Z")
_INTERNAL_NAME = re.compile(r"_[A-Za-z0-9_>./\\-]*\Z")


def check_node_name(name: str, *, internal: bool = True) -> None:
    r"""Refuse what cannot name a node.

    Raises
    ------
    InvalidArgumentError
        Letters, digits and ``_ . / \ > -`` are allowed; only internal names begin with ``_``.
    """
    if not (_NAME.match(name) or (internal and _INTERNAL_NAME.match(name))):
        raise InvalidArgumentError(
            f"'{name}' is not a valid node name", node=name, hint="use letters, digits and _ . / \\ > -"
        )


def split_tensor_name(name: str) -> tuple[str, int]:
    """``"a:1"`` as node and output: ``("a", 1)``; the output is 0 where none is given.

    Raises
    ------
    InvalidArgumentError
        It names no tensor.
    """
    node, colon, index = name.rpartition(":")
    if not colon:
        return name, 0
    if not node or not (index.isascii() and index.isdigit()) or name.startswith("^"):
        raise InvalidArgumentError(f"'{name}' does not name a tensor", hint="write 'node' or 'node:output'")
    return node, int(index)


def check_inputs(node: Node) -> None:
    """See that a node has as many inputs as declared, of the declared types.

    Raises
    ------
    InvalidArgumentError
        Too many, too few, or of another type.
    """
    want = node.input_types
    if len(node.inputs) != len(want):
        raise InvalidArgumentError(
            f"node '{node.name}' ({node.op}) has {len(node.inputs)} inputs, its declaration asks for {len(want)}",
            node=node.name,
            op=node.op,
        )
    for i, tensor in enumerate(node.inputs):
        if tensor is not None:  # None: an edge that closes a loop, checked when it is set
            check_input(node, i, tensor)


def check_input(node: Node, position: int, tensor: Tensor) -> None:
    """See that a tensor may be an input of a node.

    Raises
    ------
    InvalidArgumentError
        It is of another type than declared.
    """
    dtype = node.input_types[position]
    have = tensor.node.output_types[tensor.index]
    if have is not dtype and (dtype.is_ref or have.base != dtype):
        raise InvalidArgumentError(
            f"input {position} of node '{node.name}' ({node.op}) is {have} from '{tensor.name}', but it takes {dtype}",
            node=node.name,
            op=node.op,
            hint="put a Cast between them",
        )


def complete_attrs(node_def: NodeDef, op_def: OpDef) -> dict[str, AttrValue]:
    """Attributes of a node with the defaults filled in, checked against the declaration."""
    add_defaults_to_node_def(node_def, op_def)
    validate_node_def(node_def, op_def)
    for name, value in node_def.attr.items():
        if value.kind == PLACEHOLDER:
            raise InvalidArgumentError(
                f"attr '{name}' stands for an attribute of a function, but the node is in none",
                node=node_def.name,
                op=node_def.op,
            )
    return node_def.attr


def drop_new_defaults(node_defs: Iterable[NodeDef], library: Any, producer_ops: Mapping[str, OpDef]) -> None:
    """Take away attributes that came after this version and hold what the producer declares as their default.

    Such a node means what it meant before there was the attribute. Any other value is left to be refused.
    """
    for node_def in node_defs:
        producer = producer_ops.get(node_def.op)
        for attr in () if producer is None else producer.attr:
            value = node_def.attr.get(attr.name)
            if value is not None and attr.default is not None and same_value(value, attr.default):
                if library.look_up(node_def.op).op_def.find_attr(attr.name) is None:
                    del node_def.attr[attr.name]
