"""Attributes that any operation may carry: shardings and attributes for the frontend."""

from __future__ import annotations

from typing import Any

from cyxla.errors import HloParseError
from cyxla.xla.hlo.attributes import Sharding
from cyxla.xla.hlo.text.lexer import Cursor
from cyxla.xla.hlo.text.sharding import read_sharding

_NONE: dict[str, Any] = {}


def extras_of(attributes: dict[str, Any]) -> dict[str, Any]:
    """What an operation's attributes say that HLO keeps beside the attributes of its opcode."""
    if "mhlo.sharding" not in attributes and "mhlo.frontend_attributes" not in attributes:
        return _NONE
    found: dict[str, Any] = {}
    sharding = sharding_of(attributes.get("mhlo.sharding"))
    if sharding is not None:
        found["sharding"] = sharding
    given = attributes.get("mhlo.frontend_attributes")
    if isinstance(given, dict):
        found["frontend_attributes"] = tuple(sorted((k, v if isinstance(v, str) else str(v)) for k, v in given.items()))
    return found


def sharding_of(text: Any) -> Sharding | None:
    """The sharding that a string spells; None for none, and for a spelling that HLO does not have."""
    if not isinstance(text, str):
        return None
    try:
        return read_sharding(Cursor(text))
    except HloParseError:  # shardings are carried, never acted upon
        return None
