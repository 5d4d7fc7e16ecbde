"""Verification and compilation of programs in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cyxla.xla.service.compiler import Compiler, compiler_for
from cyxla.xla.service.executable import Executable
from cyxla.xla.service.options import CompileOptions

if TYPE_CHECKING:
    from cyxla.xla.hlo import HloModule


class LocalService:
    """A compilation service for one platform.

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
            The module violates a constraint of HLO.
        UnimplementedError
            The platform does not support an opcode; the message names all of them.
        """
        module.verify()
        return self.compiler.compile(module, options)

    def build_from_source(
        self, program: str | bytes, read: Callable[[], HloModule], options: CompileOptions
    ) -> Executable:
        """Read, verify and compile a program; a platform that finds its bytes in a cache skips the first two.

        Parameters
        ----------
        program : str or bytes
            Program as the user passed it.
        read : callable
            Function that returns the module of the program.
        options : CompileOptions
            Options of the compilation.

        Raises
        ------
        InvalidArgumentError
            The module violates a constraint of HLO.
        UnimplementedError
            The platform does not support an opcode; the message names all of them.
        """

        def verified() -> HloModule:
            module = read()
            module.verify()
            return module

        return self.compiler.compile_source(program, verified, options)
