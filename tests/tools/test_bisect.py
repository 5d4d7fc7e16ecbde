"""``cyxla bisect`` names the pass, or else the instruction, that makes a result wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from cyxla.tools import main as command
from cyxla.xla.cpu import lowering
from cyxla.xla.cpu.c import scalar
from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.passes.engine.rewrite_helpers import Writer, rewrite_each

PROGRAM = """HloModule small
ENTRY e {
  x = f32[40] parameter(0)
  y = f32[40] parameter(1)
  unused = f32[40] parameter(2)
  a = f32[40] maximum(x, y)
  b = f32[40] cosine(a)
  c = f32[40] subtract(b, y)
  ROOT t = (f32[40], f32[40]) tuple(c, a)
}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("CYXLA_CACHE", "0")
    (tmp_path / "small.hlo").write_text(PROGRAM)
    return str(tmp_path / "small.hlo")


def _swap(ins: Instruction) -> Instruction:
    """A rule that is wrong: it exchanges the operands of a difference."""
    return Writer(ins.computation).op("subtract", *ins.operands[::-1])


def _wrong_pass(module: HloModule) -> bool:
    return rewrite_each(module, {"subtract": _swap})


def test_right_results(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["bisect", file]) == 0
    assert "agree" in capsys.readouterr().out


@pytest.mark.parametrize("position", [0, 12, len(lowering.PASSES)])
def test_a_wrong_pass(
    position: int, file: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    passes = list(lowering.PASSES)
    passes.insert(position, ("wrong", _wrong_pass))
    monkeypatch.setattr(lowering, "PASSES", tuple(passes))
    assert command.main(["bisect", file]) == 1
    out = capsys.readouterr().out
    assert "differs from the interpreter: result 0" in out
    assert "pass wrong changes the result: result 0" in out
    assert "_swap" in out
    assert "disabled_passes=('wrong',)" in out


def test_wrong_code(file: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    right = scalar.expression

    def wrong(opcode: str, *args: object) -> str:
        return right("sine" if opcode == "cosine" else opcode, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(scalar, "expression", wrong)
    assert command.main(["bisect", file, "--seed", "3"]) == 1
    out = capsys.readouterr().out
    assert "no pass changes the result" in out
    assert "cosine" in out.split("first wrong instruction:")[1]
