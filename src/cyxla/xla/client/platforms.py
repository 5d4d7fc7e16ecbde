"""The built-in platforms; a backend is imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from cyxla.xla.service import Compiler, Executable, register_compiler
from cyxla.xla.service.pickling import rebuild, register_rebuild

_BUILT_IN = {
    "cpu": "cyxla.xla.cpu.compiler:CpuCompiler",
    "interpreter": "cyxla.xla.interpreter.compiler:InterpreterCompiler",
}


def _register(platform: str, path: str) -> None:
    def make_compiler() -> Compiler:
        module, name = path.split(":")
        compiler: Compiler = getattr(import_module(module), name)()
        return compiler

    register_compiler(platform, make_compiler)


for _platform, _path in _BUILT_IN.items():
    _register(_platform, _path)


def rebuild_executable(
    program: bytes, platform: str, options: dict[str, Any], fixed: dict[int | str, Any]
) -> Executable:
    """Compile the program of a pickle, which names this function so that the built-in platforms are registered."""
    return rebuild(program, platform, options, fixed)


register_rebuild(rebuild_executable)
