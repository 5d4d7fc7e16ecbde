"""Emitters are registered by opcode and imported when they are needed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import cyxla.xla.cpu
from cyxla.xla.cpu import emitters
from cyxla.xla.cpu.kernel.groups import GroupKind

FOLDER = Path(cyxla.xla.cpu.__file__).parent
EMITTER = re.compile(r"^@emits\(((?:\"[\w-]+\",? ?)+)", re.MULTILINE)
GROUP_EMITTER = re.compile(r"^@emits_group\(GroupKind\.(\w+)\)", re.MULTILINE)


def registered(decorator):
    """The names in a decorator, with the module that they stand in."""
    return {
        name: ".".join(path.relative_to(FOLDER).with_suffix("").parts)
        for path in FOLDER.rglob("*.py")
        for names in decorator.findall(path.read_text())
        for name in re.findall(r"[\w-]+", names)
    }


def test_the_tables_name_the_module_of_every_emitter():
    of_groups = {GroupKind[name]: module for name, module in registered(GROUP_EMITTER).items()}
    assert of_groups == emitters.GROUP_MODULES
    assert set(GroupKind) - set(of_groups) == {GroupKind.SINGLE}
    of_opcodes = {opcode: module for opcode, module in emitters.MODULES.items() if opcode not in set(GroupKind)}
    assert registered(EMITTER) == of_opcodes
    for kind in set(GroupKind) & set(emitters.MODULES):
        assert emitters.MODULES[kind] == emitters.GROUP_MODULES[kind]


COMPILE = """
import sys, cyxla
from cyxla.xla.cpu import emitters
from cyxla.hlo import parse_module
from cyxla.xla.cpu.compiler import CpuCompiler
from cyxla.xla.service import CompileOptions
compiler, options = CpuCompiler(), CompileOptions()
compiler.emit(compiler.run_hlo_passes(parse_module(sys.argv[1]), options), options)
modules = {*emitters.MODULES.values(), *emitters.GROUP_MODULES.values()}
imported = {name for name in modules if f"cyxla.xla.cpu.{name}" in sys.modules}
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
