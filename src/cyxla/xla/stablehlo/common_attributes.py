"""Attributes that any operation may carry: shardings and frontend attributes."""

from __future__ import annotations

from typing import Any

from cyxla.errors import HloParseError
from cyxla.xla.hlo.attributes import Sharding
from cyxla.xla.hlo.text.lexer import Cursor
from cyxla.xla.hlo.text.sharding import read_sharding

_NONE: dict[str, Any] = {}


def extras_of(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of an operation that HLO keeps outside of the opcode's attributes."""
    if "mhlo.sharding" not in attributes and "mhlo.frontend_attributes" not in attributes:
        return _NONE
    extras: dict[str, Any] = {}
    sharding = sharding_of(attributes.get("mhlo.sharding"))
    if sharding is not None:
        extras["sharding"] = sharding
    frontend_attributes = attributes.get("mhlo.frontend_attributes")
    if isinstance(frontend_attributes, dict):
        extras["frontend_attributes"] = tuple(
            sorted((k, v if isinstance(v, str) else str(v)) for k, v in frontend_attributes.items())
        )
    return extras


def sharding_of(text: Any) -> Sharding | None:
    """Return the sharding in a string; None if there is none, or its form is unknown to HLO."""
    if not isinstance(text, str):
        return None
    try:
        return read_sharding(Cursor(text))
    except HloParseError:  # shardings are carried along and have no effect
        return None
