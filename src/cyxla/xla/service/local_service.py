"""From a computation to an executable, in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cyxla.xla.service.compiler import Compiler, compiler_for
from cyxla.xla.service.executable import Executable
from cyxla.xla.service.options import CompileOptions

if TYPE_CHECKING:
    from cyxla.xla.hlo import HloModule


class LocalService:
    """Compiles for one platform.

    Parameters
    ----------
    platform : str
        Name of a registered platform.
    """

    def __init__(self, platform: str) -> None:
        self.compiler: Compiler = compiler_for(platform)

    @property
    def platform(self) -> str:
        """Name of the platform."""
        return self.compiler.platform

    def build_executable(self, module: HloModule, options: CompileOptions) -> Executable:
        """Verify a module and compile it.

        Raises
        ------
        InvalidArgumentError
            The module breaks a rule of HLO.
        UnimplementedError
            The platform cannot run it; the message names every opcode in the way.
        """
        module.verify()
        return self.compiler.compile(module, options)

    def build_written(self, program: str | bytes, read: Callable[[], HloModule], options: CompileOptions) -> Executable:
        """Read a program, verify it and compile it; where the platform knows its bytes, neither is done.

        Parameters
        ----------
        program : str or bytes
            As the user gave it.
        read : callable
            Gives the module of it.
        options : CompileOptions
            How to compile.

        Raises
        ------
        InvalidArgumentError
            The module breaks a rule of HLO.
        UnimplementedError
            The platform cannot run it; the message names every opcode in the way.
        """

        def verified() -> HloModule:
            module = read()
            module.verify()
            return module

        return self.compiler.compile_written(program, verified, options)
