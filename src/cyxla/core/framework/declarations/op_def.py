"""Declarations of ops: arguments, attributes and flags."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cyxla.core.framework.attr_value import AttrValue
from cyxla.core.framework.types import DataType
from cyxla.errors import InvalidArgumentError, UnimplementedError

_log = logging.getLogger(__name__)
DATA_TYPES = {name: t for t in DataType if t for name in (t.text, t.numpy_name)}  # as declarations may spell them


@dataclass(frozen=True, slots=True)
class ArgDef:
    """Declaration of an input or output, a tensor or a list; its type is given by exactly one of ``type*``.

    ``number_attr`` names the int attribute that counts tensors of one type, ``type_list_attr`` the attribute that
    lists a type for each.
    """

    name: str
    type: DataType = DataType.DT_INVALID
    type_attr: str = ""
    number_attr: str = ""
    type_list_attr: str = ""
    is_ref: bool = False
    description: str = ""

    @property
    def is_list(self) -> bool:
        """True if the argument is a list of tensors."""
        return bool(self.number_attr or self.type_list_attr)

    @property
    def type_text(self) -> str:
        """Type as written after the colon in a declaration."""
        text = self.type_list_attr or self.type_attr or self.type.text
        if self.number_attr:
            text = f"{self.number_attr} * {text}"
        return f"Ref({text})" if self.is_ref else text


@dataclass(frozen=True, slots=True)
class AttrDef:
    """Declaration of an attribute: its kind and the constraints of its values.

    ``minimum`` bounds the value of an int and the length of a list; ``allowed`` are the types or strings that it (or
    an element of it) may be.
    """

    name: str
    type: str
    default: AttrValue | None = None
    minimum: int | None = None
    allowed: tuple[DataType | str, ...] | None = None
    description: str = ""

    @property
    def is_list(self) -> bool:
        """True if values are lists."""
        return self.type.startswith("list(")

    @property
    def base_type(self) -> str:
        """Kind of the value, or of the elements of a list."""
        return self.type[5:-1] if self.is_list else self.type


@dataclass(frozen=True, slots=True)
class OpDeprecation:
    """First graph version that must not contain an op, and the reason."""

    version: int
    explanation: str


@dataclass(frozen=True, slots=True)
class OpDef:
    """Declaration of an op."""

    name: str
    input_arg: tuple[ArgDef, ...] = ()
    output_arg: tuple[ArgDef, ...] = ()
    attr: tuple[AttrDef, ...] = ()
    summary: str = ""
    description: str = ""
    deprecation: OpDeprecation | None = None
    is_aggregate: bool = False
    is_stateful: bool = False
    is_commutative: bool = False
    allows_uninitialized_input: bool = False
    is_distributed_communication: bool = False
    control_output: tuple[str, ...] = ()

    def find_attr(self, name: str) -> AttrDef | None:
        """Return the attribute of a name, or None."""
        return next((a for a in self.attr if a.name == name), None)

    def find_input(self, name: str) -> ArgDef | None:
        """Return the input of a name, or None."""
        return next((a for a in self.input_arg if a.name == name), None)

    def __str__(self) -> str:
        return summarize_op_def(self)


FLAGS = ("is_commutative", "is_aggregate", "is_stateful", "allows_uninitialized_input", "is_distributed_communication")


def summarize_attr_value(value: AttrValue | None) -> str:
    """Return the value of an attribute on one line, as in the text format."""
    return "" if value is None else _quote(value.value)


def _quote(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_quote, value)) + "]"
    if isinstance(value, DataType):
        return value.name
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(np.float32(value))  # the shortest text that gives these 32 bits
    if isinstance(value, str):
        return '"' + value.encode("unicode_escape").decode().replace('"', '\\"') + '"'
    return str(value)


def _summarize_attr(attr: AttrDef) -> str:
    text = f"{attr.name}:{attr.type}"
    text += f",default={summarize_attr_value(attr.default)}" if attr.default is not None else ""
    text += f",min={attr.minimum}" if attr.minimum is not None else ""
    return text + (f",allowed={_quote(attr.allowed)}" if attr.allowed is not None else "")


def summarize_op_def(op_def: OpDef) -> str:
    """Return a declaration on one line: name, signature, attributes, flags."""
    inputs, outputs = (
        ", ".join(f"{a.name}:{a.type_text.replace(' ', '')}" for a in args)
        for args in (op_def.input_arg, op_def.output_arg)
    )
    parts = [f"name={op_def.name}", f"signature={inputs} -> {outputs}"]
    parts += [f"attr={_summarize_attr(a)}" for a in op_def.attr]
    parts += [f"{flag}=true" for flag in FLAGS if getattr(op_def, flag)]
    return f"Op<{'; '.join(parts)}>"


# Rules of a declaration ------------------------------------------------------------------------------------------

_OP_NAME = re.compile(r"_\w[\w>]*|(?:[A-Z]\w*>)*[A-Z]\w*")
_MINIMUM_OF = ("int",)
_ALLOWED_OF = ("string", "type")


def check_attr_value(value: AttrValue, attr: AttrDef, op_name: str = "") -> None:
    """Check the kind of an attribute's value and its constraints.

    Raises
    ------
    InvalidArgumentError
        The value is of another kind, too small, too short, or not allowed.
    """
    fault = attr_value_fault(value, attr)
    if fault:
        raise InvalidArgumentError(fault + (f" of op {op_name}" if op_name else ""))


def attr_value_fault(value: AttrValue, attr: AttrDef) -> str | None:
    """Return the fault of an attribute's value, or None."""
    if value.kind == "placeholder":
        return None
    if value.kind != attr.type and not (value.kind == "list" and attr.is_list and not value.value):
        return f"attr {attr.name!r} has a value of type {value.kind}, but its declared type is {attr.type}"
    if attr.minimum is not None:
        size, quantity = (len(value.value), "length") if attr.is_list else (value.value, "value")
        if size < attr.minimum:
            return f"attr {attr.name!r} has {quantity} {size}, which is less than the minimum {attr.minimum}"
    if attr.allowed is None:
        return None
    bad = next((v for v in (value.value if attr.is_list else (value.value,)) if v not in attr.allowed), None)
    if bad is None:
        return None
    allowed_text = ", ".join(v.text if isinstance(v, DataType) else repr(v) for v in attr.allowed)
    value_text = bad.text if isinstance(bad, DataType) else repr(bad)
    return f"attr {attr.name!r} is {value_text}, which is not in the list of allowed values: {allowed_text}"


def op_def_faults(op_def: OpDef) -> list[str]:
    """Return all faults of a declaration."""
    return list(_faults(op_def))


def validate_op_def(op_def: OpDef) -> None:
    """Check a declaration.

    Raises
    ------
    InvalidArgumentError
        The declaration is invalid; the message lists all faults.
    """
    faults = op_def_faults(op_def)
    if faults:
        raise InvalidArgumentError("; ".join(faults), where=f"the declaration of op {op_def.name!r}")


def _faults(op_def: OpDef) -> Iterator[str]:
    if not _OP_NAME.fullmatch(op_def.name):
        yield f"the op's name {op_def.name!r} is not in CamelCase"
    names: set[str] = set()
    for attr in op_def.attr:
        if attr.name in names:
            yield f"duplicate name: {attr.name!r}"
        names.add(attr.name)
        yield from _attr_faults(attr)
    attrs = {a.name: a for a in op_def.attr}
    for arg in (*op_def.input_arg, *op_def.output_arg):
        if arg.name in names:
            yield f"duplicate name: {arg.name!r}"
        names.add(arg.name)
        yield from _arg_faults(arg, attrs)


def _attr_faults(attr: AttrDef) -> Iterator[str]:
    if attr.name in DATA_TYPES:
        yield f"attr {attr.name!r} is named like a data type"
    if attr.minimum is not None and not attr.is_list and attr.base_type not in _MINIMUM_OF:
        yield f"attr {attr.name!r} of type {attr.type} has a minimum; only int and lists may"
    if attr.minimum is not None and attr.is_list and attr.minimum < 0:
        yield f"attr {attr.name!r} is a list with the minimum length {attr.minimum}, which is negative"
    if attr.allowed is not None and attr.base_type not in _ALLOWED_OF:
        yield f"attr {attr.name!r} of type {attr.type} has allowed values; only string and type may"
    fault = attr.default and attr_value_fault(attr.default, attr)
    if fault:
        yield f"the default is wrong: {fault}"


def _arg_faults(arg: ArgDef, attrs: dict[str, AttrDef]) -> Iterator[str]:
    if sum(map(bool, (arg.type, arg.type_attr, arg.type_list_attr))) != 1:
        yield f"argument {arg.name!r} must declare its type in exactly one way"
    if arg.number_attr and arg.type_list_attr:
        yield f"argument {arg.name!r} has both a number_attr and a type_list_attr"
    references = ((arg.number_attr, "int"), (arg.type_attr, "type"), (arg.type_list_attr, "list(type)"))
    for name, kind in references:
        if name and name not in attrs:
            yield f"argument {arg.name!r} refers to the unknown attr {name!r}"
        elif name and attrs[name].type != kind:
            yield f"argument {arg.name!r} needs attr {name!r} to be of type {kind}, not {attrs[name].type}"
        elif name and kind == "int" and (attrs[name].minimum is None or (attrs[name].minimum or 0) < 0):
            yield f"argument {arg.name!r} needs attr {name!r} to have a minimum of 0 or more"


# Deprecation -----------------------------------------------------------------------------------------------------

_warned: set[str] = set()


def check_op_deprecation(op_def: OpDef, graph_version: int) -> None:
    """Refuse a deprecated op in graphs of the deprecating version or later; warn once per op in older ones.

    Raises
    ------
    UnimplementedError
        The graph's version is that of the deprecation or a later one.
    """
    deprecation = op_def.deprecation
    if deprecation is None:
        return
    if graph_version >= deprecation.version:
        raise UnimplementedError(
            f"op {op_def.name} is not available in GraphDef version {graph_version}: it has been removed in version "
            f"{deprecation.version}. {deprecation.explanation}"
        )
    if op_def.name not in _warned:
        _warned.add(op_def.name)
        _log.warning(
            "op %s is removed in GraphDef version %d: %s", op_def.name, deprecation.version, deprecation.explanation
        )
