"""Type checkers see the signature of the function that `cyxla.jit` decorates."""

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from cyxla.numpy.calls.jit_options import JitOptions
from cyxla.xla.service import CompileOptions

SOURCE = Path(__file__).parents[3] / "src"
DEFINITIONS = """\
import numpy as np
from numpy.typing import NDArray
import cyxla

F = NDArray[np.float64]

@cyxla.jit
def scale(x: F, n: int, *, flag: bool = True) -> F:
    return x * n

@cyxla.jit(static=("n",), bounds="clamp", sizes="any", profile=True)
def repeat(x: F, n: int) -> tuple[F, int]:
    return x, n

class Model:
    @cyxla.jit
    def run(self, x: F) -> F:
        return x

    @staticmethod
    @cyxla.jit
    def twice(x: F) -> F:
        return x + x

    @property
    @cyxla.jit
    def size(self) -> int:
        return 3

x: F = np.zeros(3)
"""
REVEALED = {
    "scale(x, 3, flag=False)": "F",
    "scale(x, 3, out=x)": "F",
    "repeat(x, 2)": "tuple[F, int]",
    "Model().run(x)": "F",
    "Model.run(Model(), x)": "F",
    "Model.twice(x)": "F",
    "Model().size": "int",
    "scale": "cyxla.numpy.calls.jitted.Jitted[[x: F, n: int, *, flag: bool =], F]",
    "Model().run": "cyxla.numpy.calls.jitted.BoundJitted[[x: F], F]",
    "cyxla.jit(lambda y: y)": "cyxla.numpy.calls.jitted.Jitted[[y: Any], Any]",
    "scale.lower(x, 3)": "cyxla.numpy.calls.stages.LoweredModule",
    "scale.explain()": "str",
    "Model().run.explain(x)": "str",
    "scale.cache_info().entries": "int",
    "scale.wait(1.0)": "None",
}  # fmt: skip
REFUSED = {
    'scale("x", 3)': "call-overload", "scale(x)": "call-overload", "scale(x, 3, flags=True)": "call-overload",
    "Model().run(3)": "call-overload", 'cyxla.jit(abs, bounds="what")': "call-overload",
    'cyxla.jit(statics=("n",))': "call-overload", "scale.lowered": "attr-defined",
}  # fmt: skip


@pytest.fixture(scope="module")
def messages(tmp_path_factory):
    """Return mypy's messages by the text of the line that they are about."""
    pytest.importorskip("mypy")
    folder = tmp_path_factory.mktemp("typing")
    program = folder / "program.py"
    lines = [*(f"reveal_type({e})" for e in REVEALED), *REFUSED, "with cyxla.disable_jit(): pass"]
    program.write_text(DEFINITIONS + "\n".join(lines) + "\n")
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary"]
    environment = {**os.environ, "MYPYPATH": str(SOURCE)}
    run = subprocess.run(
        [*command, "--cache-dir", folder / "cache", "--config-file", os.devnull, program],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    text = program.read_text().splitlines()
    found = {}
    for number, message in re.findall(r"program\.py:(\d+): (?:error|note): (.*)", run.stdout):
        found.setdefault(text[int(number) - 1], []).append(message)
    assert found, run.stdout + run.stderr
    return found


@pytest.mark.slow
@pytest.mark.parametrize("expression", REVEALED)
def test_revealed_types(messages, expression):
    array = "numpy.ndarray[tuple[Any, ...], numpy.dtype[numpy.float64]]"
    (message,) = messages[f"reveal_type({expression})"]
    assert message == f'Revealed type is "{REVEALED[expression]}"'.replace("F,", f"{array},").replace(
        "F]", f"{array}]"
    ).replace('"F"', f'"{array}"')


@pytest.mark.slow
@pytest.mark.parametrize("expression", REFUSED)
def test_refused_calls(messages, expression):
    assert any(m.endswith(f"[{REFUSED[expression]}]") for m in messages[expression])


@pytest.mark.slow
def test_nothing_else_is_reported(messages):
    assert set(messages) == {*(f"reveal_type({e})" for e in REVEALED), *REFUSED}


def test_options_are_those_of_a_compilation():
    """Every option is typed but those that programs alone have."""
    own = {"static", "donate", "platform", "bounds", "sizes", "fallback", "name"}
    of_compilation = {f.name for f in fields(CompileOptions)} - {"live_results", "in_place", "sparse", "feeds"}
    assert set(JitOptions.__annotations__) == own | of_compilation
