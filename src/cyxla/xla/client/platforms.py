"""The built-in platforms; a backend is imported on first use."""

from __future__ import annotations

from importlib import import_module

from cyxla.xla.service import Compiler, register_compiler

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
