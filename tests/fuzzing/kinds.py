"""All kinds of input, by name."""

from __future__ import annotations

from fuzzing.kind import Kind
from fuzzing.programs import Hlo, Proto, StableHlo, Valid

KINDS: dict[str, type[Kind]] = {kind.name: kind for kind in (Hlo, StableHlo, Proto, Valid)}
