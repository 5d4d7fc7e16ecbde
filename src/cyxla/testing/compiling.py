"""Compilation of a test's program, which a backend may refuse."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

import cyxla
from cyxla.errors import UnimplementedError
from cyxla.xla.service import Executable


def compile_or_skip(program: str | bytes, backend: str, opcodes: Iterable[str]) -> Executable:
    """Compile a program; skip the test if the backend refuses it, and fail if the message names none of the opcodes."""
    try:
        return cyxla.compile(program, platform=backend)
    except UnimplementedError as error:
        text = str(error)
        assert any(opcode in text for opcode in opcodes), f"the refusal names no opcode of the program: {text}"
        pytest.skip(f"refused: {error.message}")
