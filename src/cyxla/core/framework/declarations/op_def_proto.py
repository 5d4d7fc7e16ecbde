"""Conversion of declarations to and from protos."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.framework.declarations.op_def import FLAGS, ArgDef, AttrDef, OpDef, OpDeprecation
from cyxla.core.framework.protos.attrs import attr_from_proto, attr_to_proto, bytes_of, data_type
from cyxla.core.framework.protos.messages import message, parse_binary, parse_text, to_text

_ARG_FIELDS = ("name", "type_attr", "number_attr", "type_list_attr", "is_ref", "description")


def op_def_from_proto(proto: Any) -> OpDef:
    """Convert an ``OpDef`` message to a declaration.

    Raises
    ------
    InvalidArgumentError
        A type, default or allowed value is invalid.
    """
    deprecation = OpDeprecation(proto.deprecation.version, proto.deprecation.explanation)
    return OpDef(
        proto.name,
        tuple(map(_arg_from_proto, proto.input_arg)),
        tuple(map(_arg_from_proto, proto.output_arg)),
        tuple(map(_attr_from_proto, proto.attr)),
        proto.summary,
        proto.description,
        deprecation if proto.HasField("deprecation") else None,
        control_output=tuple(proto.control_output),
        **{flag: getattr(proto, flag) for flag in FLAGS},
    )


def op_def_to_proto(op_def: OpDef) -> Any:
    """Convert a declaration to an ``OpDef`` message."""
    proto = message("OpDef")(name=op_def.name, summary=op_def.summary, description=op_def.description)
    proto.input_arg.extend(map(_arg_to_proto, op_def.input_arg))
    proto.output_arg.extend(map(_arg_to_proto, op_def.output_arg))
    proto.attr.extend(map(_attr_to_proto, op_def.attr))
    proto.control_output.extend(op_def.control_output)
    if op_def.deprecation:
        proto.deprecation.version = op_def.deprecation.version
        proto.deprecation.explanation = op_def.deprecation.explanation
    for flag in FLAGS:
        setattr(proto, flag, getattr(op_def, flag))
    return proto


def op_list_to_text(ops: Iterable[OpDef]) -> str:
    """Return declarations as text of an ``OpList`` message."""
    return to_text(message("OpList")(op=map(op_def_to_proto, ops)))


def op_list_from(data: str | bytes) -> list[OpDef]:
    """Parse the declarations of an ``OpList`` message in text (str) or binary (bytes) form.

    Raises
    ------
    InvalidArgumentError
        The data is not an ``OpList`` message.
    """
    proto = parse_text("OpList", data) if isinstance(data, str) else parse_binary("OpList", data)
    return [op_def_from_proto(op) for op in proto.op]


def _arg_from_proto(proto: Any) -> ArgDef:
    return ArgDef(type=data_type(proto.type), **{field: getattr(proto, field) for field in _ARG_FIELDS})


def _arg_to_proto(arg: ArgDef) -> Any:
    return message("OpDef.ArgDef")(type=int(arg.type), **{field: getattr(arg, field) for field in _ARG_FIELDS})


def _attr_from_proto(proto: Any) -> AttrDef:
    default = attr_from_proto(proto.default_value) if proto.HasField("default_value") else None
    if default is not None and default.kind == "list":
        default = AttrValue(proto.type, ())
    allowed = attr_from_proto(proto.allowed_values).value if proto.HasField("allowed_values") else None
    minimum = proto.minimum if proto.has_minimum else None
    return AttrDef(proto.name, proto.type, default, minimum, allowed, proto.description)


def _attr_to_proto(attr: AttrDef) -> Any:
    proto = message("OpDef.AttrDef")(name=attr.name, type=attr.type, description=attr.description)
    if attr.default is not None:
        proto.default_value.CopyFrom(attr_to_proto(attr.default))
    if attr.minimum is not None:
        proto.has_minimum, proto.minimum = True, attr.minimum
    if attr.allowed is not None:
        values = proto.allowed_values.list
        if attr.base_type == "string":
            values.s.extend(bytes_of(str(v)) for v in attr.allowed)
        else:
            values.type.extend(int(v) for v in attr.allowed)
    return proto
