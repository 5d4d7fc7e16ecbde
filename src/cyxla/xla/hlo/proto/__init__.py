"""Conversion of modules to HloModuleProto and back."""

from cyxla.xla.hlo.proto.reader import from_proto
from cyxla.xla.hlo.proto.writer import to_proto

__all__ = ["from_proto", "to_proto"]
