"""The platform that evaluates: right before fast."""

from __future__ import annotations

from typing import ClassVar

from cyxla.xla.hlo import HloModule
from cyxla.xla.service import CompileOptions, Compiler, Executable
from cyxla.xla.service.evaluated import EvaluatedExecutable


class InterpreterCompiler(Compiler):
    """Compiles nothing: the executable evaluates the module as it came."""

    platform: ClassVar[str] = "interpreter"

    def run_hlo_passes(self, module: HloModule, options: CompileOptions) -> HloModule:
        """No rewriting: the oracle runs what was written."""
        return module

    def run_backend(self, module: HloModule, options: CompileOptions) -> Executable:
        """Wrap the module."""
        return InterpreterExecutable(module, options)


class InterpreterExecutable(EvaluatedExecutable):
    """Evaluates a module on NumPy arrays."""

    platform = "interpreter"
