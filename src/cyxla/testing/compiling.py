"""Compilation of a test's program, which a backend may refuse."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import pytest

import cyxla
from cyxla.errors import UnimplementedError
from cyxla.types import ElementType
from cyxla.xla.service import Executable

_TYPES: Final = {dtype.text for dtype in ElementType}


def compile_or_skip(program: str | bytes, backend: str, opcodes: Iterable[str]) -> Executable:
    """Compile a program; skip the test if the backend refuses it.

    The message of a refusal must name one of the opcodes, or an element type.
    """
    try:
        return cyxla.compile(program, platform=backend)
    except UnimplementedError as error:
        text = str(error)
        is_named = any(opcode in text for opcode in opcodes) or not _TYPES.isdisjoint(re.findall(r"\w+", text))
        assert is_named, f"the refusal names no opcode of the program, and no type: {text}"
        pytest.skip(f"refused: {error.message}")
