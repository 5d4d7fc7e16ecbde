"""From a computation to an executable, in this process."""

from __future__ import annotations

from cyxla.xla.hlo import HloModule, verify
from cyxla.xla.service.compiler import Compiler, compiler_for
from cyxla.xla.service.executable import Executable
from cyxla.xla.service.options import CompileOptions


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
        verify(module)
        return self.compiler.compile(module, options)
