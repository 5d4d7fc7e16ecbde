"""Protobuf message classes built from text tables, without generated code.

The classes belong to a descriptor pool of their own, which other users of protobuf in the process do not see. A table
is a text: the name of a message on a line, then its fields, indented, as ``name=number:type``. After the type, ``*``
means repeated, ``?`` explicit presence, ``@group`` a member of the oneof ``group``; ``key>value`` is a map. A type that
is not a scalar is the name of a message or enum, with a leading dot if it belongs to another package. A dotted name is
a nested message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cyxla.errors import UnimplementedError

SCALARS = {
    "f64": 1, "f32": 2, "i64": 3, "u64": 4, "i32": 5, "x64": 6, "x32": 7, "bool": 8, "str": 9, "bytes": 12, "u32": 13,
    "s64": 18,
}  # fmt: skip
_OPTIONAL, _REPEATED = 1, 3


class ProtoFile:
    """The messages of one package.

    Parameters
    ----------
    package : str
        Name of the protobuf package.
    table : str
        Table of the messages.
    enums : mapping, optional
        Enums by name, each a mapping of value names to numbers.
    scalars : mapping, optional
        Protobuf type numbers of the scalar types in the table.
    """

    def __init__(
        self,
        package: str,
        table: str,
        enums: Mapping[str, Mapping[str, int]] | None = None,
        scalars: Mapping[str, int] = SCALARS,
    ) -> None:
        try:
            from google.protobuf import descriptor_pb2
        except ImportError as e:
            raise UnimplementedError("protos need the package protobuf", hint="pip install protobuf") from e
        self.package, self._scalars = package, scalars
        self.descriptor = descriptor_pb2.FileDescriptorProto(
            name=f"cyxla/{package}.proto", package=package, syntax="proto3"
        )
        self._messages: dict[str, Any] = {}
        for name, values in (enums or {}).items():
            self._add_enum(name, values)
        self._read(table)

    def depend(self, other: ProtoFile) -> None:
        """Import another file, so that fields can have its messages as types."""
        self.descriptor.dependency.append(other.descriptor.name)

    def classes(self, pool: Any) -> dict[str, Any]:
        """Add the file to a descriptor pool, and return the message classes by name."""
        from google.protobuf import message_factory

        pool.Add(self.descriptor)
        return {
            name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{self.package}.{name}"))
            for name in self._messages
        }

    def _add_enum(self, name: str, values: Mapping[str, int]) -> None:
        outer, _, inner = name.rpartition(".")
        enum = self._message(outer).enum_type.add(name=inner) if outer else self.descriptor.enum_type.add(name=name)
        for value, number in values.items():
            enum.value.add(name=value, number=number)

    def _message(self, name: str) -> Any:
        """Return the descriptor of a message, adding it if it does not exist yet."""
        if name not in self._messages:
            outer, _, inner = name.rpartition(".")
            siblings = self._message(outer).nested_type if outer else self.descriptor.message_type
            self._messages[name] = siblings.add(name=inner)
        return self._messages[name]

    def _read(self, table: str) -> None:
        name = ""
        for line in table.strip().splitlines():
            if line.startswith(" "):
                for field_text in line.split():
                    self._add_field(name, field_text)
            else:
                name = line
                self._message(name)

    def _add_field(self, message: str, field_text: str) -> None:
        name, _, rest = field_text.partition("=")
        number, _, kind = rest.partition(":")
        kind, _, group = kind.partition("@")
        if ">" in kind:
            kind = self._add_entry(message, name, kind) + "*"
        base = kind.rstrip("*?")
        proto = self._message(message)
        field = proto.field.add(name=name, number=int(number), label=_REPEATED if kind.endswith("*") else _OPTIONAL)
        if base in self._scalars:
            field.type = self._scalars[base]
        else:  # the pool resolves the name to a message or an enum
            field.type_name = base if base.startswith(".") else f".{self.package}.{base}"
        if group or kind.endswith("?"):
            field.oneof_index = _group_index(proto, group or f"has_{name}")

    def _add_entry(self, message: str, name: str, kind: str) -> str:
        """Add the entry message of a map field, and return its name."""
        key, _, value = kind.partition(">")
        entry = f"{message}.{''.join(word.capitalize() for word in name.split('_'))}Entry"
        self._add_field(entry, f"key=1:{key}")
        self._add_field(entry, f"value=2:{value}")
        self._messages[entry].options.map_entry = True
        return entry


def _group_index(message: Any, name: str) -> int:
    names = [group.name for group in message.oneof_decl]
    if name not in names:
        message.oneof_decl.add(name=name)
        names.append(name)
    return names.index(name)
