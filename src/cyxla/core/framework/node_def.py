"""Node definitions as in a GraphDef, and their validation against op declarations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.framework.declarations.op_def import ArgDef, OpDef, attr_value_fault
from cyxla.core.framework.protos.attrs import attr_from_proto, attr_to_proto, attrs_from_proto, attrs_to_proto
from cyxla.core.framework.protos.messages import message
from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError

__all__ = [
    "NodeDef", "add_defaults_to_node_def", "arg_types", "attr_from_proto", "attr_to_proto", "input_types",
    "name_ranges", "output_types", "same_value", "strip_defaults", "validate_node_def",
]  # fmt: skip

_MAX_ARGS = 1 << 20  # a corrupt count must not exhaust memory
STACK_TRACE_ATTR = "_stack_trace"  # annotation that holds the lines that created the node


@dataclass(slots=True)
class NodeDef:
    """Definition of a node: its op, the names of its inputs, its attributes.

    ``input`` holds ``"node"`` or ``"node:k"`` for data, then ``"^node"`` for control. ``debug_names`` are the names of
    the original nodes, ``debug_functions`` the functions that contained them.
    """

    name: str
    op: str
    input: list[str] = field(default_factory=list)
    device: str = ""
    attr: dict[str, AttrValue] = field(default_factory=dict)
    debug_names: tuple[str, ...] = ()
    debug_functions: tuple[str, ...] = ()

    @classmethod
    def from_proto(cls, proto: Any) -> NodeDef:
        """Read a ``NodeDef`` message.

        Raises
        ------
        InvalidArgumentError
            The value of an attribute is invalid; the error names the node.
        """
        try:
            attrs = attrs_from_proto(proto.attr)
        except InvalidArgumentError as e:
            raise InvalidArgumentError(e.message, node=proto.name, op=proto.op, where=f"node '{proto.name}'") from None
        node = cls(proto.name, proto.op, list(proto.input), proto.device, attrs)
        if proto.HasField("experimental_debug_info"):
            node.debug_names = tuple(proto.experimental_debug_info.original_node_names)
            node.debug_functions = tuple(proto.experimental_debug_info.original_func_names)
        return node

    def to_proto(self) -> Any:
        """Return the ``NodeDef`` message."""
        proto = message("NodeDef")(name=self.name, op=self.op, input=self.input, device=self.device)
        attrs_to_proto(self.attr, proto.attr)
        if self.debug_names:
            proto.experimental_debug_info.original_node_names.extend(self.debug_names)
        if self.debug_functions:
            proto.experimental_debug_info.original_func_names.extend(self.debug_functions)
        return proto

    def __str__(self) -> str:
        """Return the node in the form of error messages."""
        return f"{{{{node {self.name}}}}} = {self.op}[{', '.join(sorted(self.attr))}]({', '.join(self.input)})"


def validate_node_def(node_def: NodeDef, op_def: OpDef) -> None:
    """Check a node against the declaration of its op.

    Raises
    ------
    InvalidArgumentError
        Control inputs precede data inputs, attributes are missing, undeclared or of another kind, or the number of
        inputs is wrong.
    """
    fault = _node_fault(node_def, op_def)
    if fault:
        raise InvalidArgumentError(
            f"{fault}; node: {node_def}",
            node=node_def.name,
            op=node_def.op,
            where=f"node '{node_def.name}'",
        )


def _node_fault(node_def: NodeDef, op_def: OpDef) -> str | None:
    if node_def.op != op_def.name:
        return f"the node's op {node_def.op!r} is not the op {op_def.name!r} of the declaration"
    fault = _attrs_fault(node_def, op_def)
    if fault:
        return fault
    data = [i for i, name in enumerate(node_def.input) if not name.startswith("^")]
    if data and data[-1] >= len(data):
        return f"the data input {node_def.input[data[-1]]!r} comes after a control input"
    try:
        count = len(input_types(node_def, op_def))
    except InvalidArgumentError as e:
        return e.message
    if len(data) != count:
        return f"the node has {len(data)} data inputs, but its declaration has {count}"
    return None


def _attrs_fault(node_def: NodeDef, op_def: OpDef) -> str | None:
    declared = {attr.name: attr for attr in op_def.attr}
    for name, value in node_def.attr.items():
        if name in declared:
            fault = attr_value_fault(value, declared[name]) or _reference_fault(name, value)
            if fault:
                return fault
        elif not name.startswith("_"):
            return f"the node has the attr {name!r}, which is not declared in {op_def}"
    missing_names = [name for name in declared if name not in node_def.attr]
    return f"the node lacks the attrs {', '.join(map(repr, missing_names))} of {op_def}" if missing_names else None


def _reference_fault(name: str, value: AttrValue) -> str | None:
    types = value.value if value.kind == "list(type)" else (value.value,) if value.kind == "type" else ()
    bad = next((t for t in types if t.is_ref), None)
    return None if bad is None else f"attr {name!r} is the reference type {bad}, which attrs must not have"


def add_defaults_to_node_def(node_def: NodeDef, op_def: OpDef) -> None:
    """Set missing attributes of a node to their declared defaults."""
    attrs = node_def.attr
    for attr in op_def.attr:
        if attr.default is not None and attr.name not in attrs:
            attrs[attr.name] = attr.default


def strip_defaults(node_def: NodeDef, op_def: OpDef) -> None:
    """Remove the attributes of a node that equal their declared defaults."""
    for attr in op_def.attr:
        value = node_def.attr.get(attr.name)
        if value is not None and attr.default is not None and same_value(value, attr.default):
            del node_def.attr[attr.name]


def same_value(a: AttrValue, b: AttrValue) -> bool:
    """Return True if two values are equal; an empty list matches lists of any kind."""
    return bool(a.value == b.value) and (a.kind == b.kind or a.kind == "list" or b.kind == "list")


# Types of inputs and outputs -------------------------------------------------------------------------------------


def arg_types(arg: ArgDef, attrs: Mapping[str, AttrValue]) -> tuple[DataType, ...]:
    """Return the types of the tensors of an argument.

    Raises
    ------
    InvalidArgumentError
        An attribute that determines them is missing or of another kind.
    """
    types: tuple[DataType, ...]
    if arg.type_list_attr:
        types = _require_attr(arg.type_list_attr, attrs, "list(type)", "list")
    else:
        dtype = arg.type or _require_attr(arg.type_attr, attrs, "type")
        types = (dtype,) * (_count(arg.number_attr, attrs) if arg.number_attr else 1)
    return tuple(t.ref for t in types) if arg.is_ref else types


def _require_attr(name: str, attrs: Mapping[str, AttrValue], *kinds: str) -> Any:
    value = attrs.get(name)
    if value is None:
        raise InvalidArgumentError(
            f"the attr {name!r} , which determines the type or number of an argument, is missing"
        )
    if value.kind not in kinds:
        raise InvalidArgumentError(f"the attr {name!r} is of type {value.kind}, but must be of type {kinds[0]}")
    return value.value


def _count(name: str, attrs: Mapping[str, AttrValue]) -> int:
    count: int = _require_attr(name, attrs, "int")
    if not 0 <= count <= _MAX_ARGS:
        raise InvalidArgumentError(f"the attr {name!r} is {count}, which is not a valid number of arguments")
    return count


def _types(args: Iterable[ArgDef], node_def: NodeDef) -> tuple[DataType, ...]:
    return tuple(t for arg in args for t in arg_types(arg, node_def.attr))


def input_types(node_def: NodeDef, op_def: OpDef) -> tuple[DataType, ...]:
    """Return the type of each data input.

    Raises
    ------
    InvalidArgumentError
        An attribute that determines them is missing or of another kind.
    """
    return _types(op_def.input_arg, node_def)


def output_types(node_def: NodeDef, op_def: OpDef) -> tuple[DataType, ...]:
    """Return the type of each output; raises as `input_types` does."""
    return _types(op_def.output_arg, node_def)


def name_ranges(args: Iterable[ArgDef], attrs: Mapping[str, AttrValue]) -> dict[str, range]:
    """Return the index range of the tensors of each argument; raises as `input_types` does."""
    ranges, start = {}, 0
    for arg in args:
        count = len(arg_types(arg, attrs))
        ranges[arg.name] = range(start, start + count)
        start += count
    return ranges
