"""Compiler and executables of the platform ``interpreter``."""

from __future__ import annotations

from typing import ClassVar

from cyxla.xla.hlo import HloModule
from cyxla.xla.passes.dynamic.stated_sizes import has_dynamic, state_sizes
from cyxla.xla.passes.engine.clone import clone
from cyxla.xla.service import CompileOptions, Compiler, Executable
from cyxla.xla.service.evaluated_executable import EvaluatedExecutable


class InterpreterCompiler(Compiler):
    """Compiler without code generation: the executable evaluates the module."""

    platform: ClassVar[str] = "interpreter"

    def run_hlo_passes(self, module: HloModule, options: CompileOptions) -> HloModule:
        """Return the module with all dynamic dimensions stated."""
        if not any(map(has_dynamic, module.post_order())):
            return module
        copy = clone(module)
        return copy if state_sizes(copy) else module

    def run_backend(self, module: HloModule, options: CompileOptions) -> Executable:
        """Return an executable that evaluates the module."""
        return InterpreterExecutable(module, options)


class InterpreterExecutable(EvaluatedExecutable):
    """Executable that evaluates a module on NumPy arrays."""

    platform = "interpreter"
