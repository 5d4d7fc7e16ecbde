"""A backend gives the results that XLA gave, or refuses a program and names an opcode of it."""

from __future__ import annotations

from typing import Any

import pytest

import cyxla
from cyxla.errors import OpError
from cyxla.testing import cases
from cyxla.testing.compiling import compile_or_skip


@pytest.mark.parametrize("case", cases.index(), ids=lambda case: case["id"])
def test_program(backend: str, case: dict[str, Any]) -> None:
    """Text as XLA printed it."""
    text = cases.read(case["id"] + "/program.hlo").decode()
    cases.check(case, compile_or_skip(text, backend, case["opcodes"]))


@pytest.mark.parametrize("case", cases.index(), ids=lambda case: case["id"])
def test_serialised_program(backend: str, case: dict[str, Any]) -> None:
    """The same program as a HloModuleProto."""
    cases.check(case, compile_or_skip(cases.read(case["id"] + "/program.pb"), backend, case["opcodes"]))


@pytest.mark.parametrize("case", cases.grammar()["semantic"], ids=lambda case: case["id"])
def test_ill_typed_program_is_refused(backend: str, case: dict[str, Any]) -> None:
    """A program that breaks a rule of HLO is an error, not a wrong result."""
    with pytest.raises(OpError):
        cyxla.compile(case["text"], platform=backend)
