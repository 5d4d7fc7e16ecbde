"""Emitters by what they write, imported when they are needed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import cyxla.xla.cpu
from cyxla.xla.cpu import emitters

FOLDER = Path(cyxla.xla.cpu.__file__).parent
DECORATOR = re.compile(r"^@emits(?:_group)?\(((?:\"[\w-]+\",? ?)+)", re.MULTILINE)


def test_the_table_names_the_module_of_every_emitter():
    found = {
        name: ".".join(path.relative_to(FOLDER).with_suffix("").parts)
        for path in FOLDER.rglob("*.py")
        for names in DECORATOR.findall(path.read_text())
        for name in re.findall(r"[\w-]+", names)
    }
    assert found == emitters.MODULES


COMPILE = """
import sys, cyxla
from cyxla.xla.cpu import emitters
from cyxla.hlo import parse_module
from cyxla.xla.cpu.compiler import CpuCompiler
from cyxla.xla.service import CompileOptions
compiler, options = CpuCompiler(), CompileOptions()
compiler.emit(compiler.run_hlo_passes(parse_module(sys.argv[1]), options), options)
imported = {name for name in emitters.MODULES.values() if f"cyxla.xla.cpu.{name}" in sys.modules}
print(*sorted(imported), *(["evaluator"] if "cyxla.xla.evaluator" in sys.modules else []))
"""


@pytest.mark.parametrize(
    "text, imported",
    [
        ("ENTRY e { a = f32[8] parameter(0) ROOT r = f32[8] tanh(a) }", {"loops.elementwise"}),
        ("ENTRY e { a = f32[8,2] parameter(0) ROOT r = (f32[8,1], s32[8,1]) topk(a), k=1, largest=true }",
         {"sort.topk"}),
    ],
)  # fmt: skip
def test_a_program_imports_the_emitters_that_it_needs(text, imported):
    said = subprocess.run([sys.executable, "-c", COMPILE, text], capture_output=True, text=True, check=True).stdout
    assert set(said.split()) == imported
