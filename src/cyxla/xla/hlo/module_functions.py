"""Functions behind the methods of `HloModule` that need more than its data: text, protos, verifier, fingerprint.

Their modules import `cyxla.xla.hlo.module`, which therefore names none of them: the package hands this module to the
class. Text and protos are imported when needed, since few programs have both.
"""

from __future__ import annotations

from cyxla.xla.hlo.fingerprint import fingerprint
from cyxla.xla.hlo.module import HloModule
from cyxla.xla.hlo.verifier import verify

__all__ = ["fingerprint", "from_proto", "parse_module", "to_proto", "to_text", "verify"]


def parse_module(text: str) -> HloModule:
    """Read HLO text."""
    from cyxla.xla.hlo.text import parse_module

    return parse_module(text)


def to_text(module: HloModule) -> str:
    """Return the HLO text of a module."""
    from cyxla.xla.hlo.text import to_text

    return to_text(module)


def from_proto(data: bytes) -> HloModule:
    """Read a serialised HloModuleProto (or HloProto)."""
    from cyxla.xla.hlo.proto import from_proto

    return from_proto(data)


def to_proto(module: HloModule) -> bytes:
    """Serialise a module as HloModuleProto."""
    from cyxla.xla.hlo.proto import to_proto

    return to_proto(module)
