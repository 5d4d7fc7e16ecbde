"""Conversion of functions and libraries from and to protobuf messages."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.declarations.op_def_proto import op_def_from_proto, op_def_to_proto
from cyxla.core.framework.function import FunctionDef, FunctionLibraryDefinition
from cyxla.core.framework.node_def import NodeDef, attr_from_proto, attr_to_proto
from cyxla.core.framework.protos import messages as proto


def function_from_proto(message: Any) -> FunctionDef:
    """Convert a FunctionDef message to a function."""
    return FunctionDef(
        op_def_from_proto(message.signature),
        [NodeDef.from_proto(node) for node in message.node_def],
        dict(message.ret),
        dict(message.control_ret),
        {name: attr_from_proto(attr) for name, attr in message.attr.items()},
        {i: {name: attr_from_proto(a) for name, a in attrs.attr.items()} for i, attrs in message.arg_attr.items()},
    )


def function_to_proto(function: FunctionDef) -> Any:
    """Convert a function to a FunctionDef message."""
    message = proto.message("FunctionDef")()
    message.signature.CopyFrom(op_def_to_proto(function.signature))
    message.node_def.extend(node.to_proto() for node in function.node_def)
    message.ret.update(function.ret)
    message.control_ret.update(function.control_ret)
    for name, attr in sorted(function.attr.items()):
        message.attr[name].CopyFrom(attr_to_proto(attr))
    for i, attrs in sorted(function.arg_attr.items()):
        for name, attr in sorted(attrs.items()):
            message.arg_attr[i].attr[name].CopyFrom(attr_to_proto(attr))
    return message


def library_from_proto(message: Any, registry: Any) -> FunctionLibraryDefinition:
    """Convert a FunctionDefLibrary message to a library over a registry of ops."""
    library = FunctionLibraryDefinition(registry)
    for function in message.function:
        library.add(function_from_proto(function))
    for gradient in message.gradient:
        library.add_gradient(gradient.function_name, gradient.gradient_func)
    return library


def library_to_proto(library: FunctionLibraryDefinition) -> Any:
    """Convert a library to a FunctionDefLibrary message."""
    message = proto.message("FunctionDefLibrary")()
    message.function.extend(function_to_proto(function) for function in library)
    for name, gradient in library.gradients.items():
        message.gradient.add(function_name=name, gradient_func=gradient)
    return message
