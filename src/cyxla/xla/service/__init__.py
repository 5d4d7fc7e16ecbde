"""The interface of a backend: compilers by platform, and the executables that they build."""

from cyxla.xla.service.compiler import Compiler, compiler_for, load_entry_points, platforms, register_compiler
from cyxla.xla.service.executable import Executable, RunOptions, WrappedExecutable
from cyxla.xla.service.local_service import LocalService
from cyxla.xla.service.options import CompileOptions

__all__ = [
    "CompileOptions", "Compiler", "Executable", "LocalService", "RunOptions", "WrappedExecutable", "compiler_for",
    "load_entry_points", "platforms", "register_compiler",
]  # fmt: skip
