"""Stages between a function and its executable: the program that `Jitted.lower` returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cyxla.errors import InvalidArgumentError
from cyxla.xla.hlo import HloModule

if TYPE_CHECKING:
    from cyxla.xla.service import Executable


class LoweredModule(HloModule):
    """Program of a traced function: a module that compiles itself as the function would be compiled.

    Parameters
    ----------
    module : HloModule
        Program, whose computations it takes over.
    compile_ : callable
        Function from the module and options to the executable.
    """

    __slots__ = ("_compile",)

    def __init__(self, module: HloModule, compile_: Callable[[HloModule, dict[str, Any]], Executable]) -> None:
        super().__init__(module.name)
        self.computations, self._entry, self.config = module.computations, module._entry, module.config
        self.custom_call_locations = module.custom_call_locations
        for computation in self.computations.values():
            computation.module = self
        self._compile = compile_

    def compile(self, **options: Any) -> Executable:
        """Compile the program.

        Parameters
        ----------
        **options
            Fields of `cyxla.xla.service.CompileOptions`, in addition to those of the function or in their place.

        Returns
        -------
        Executable
            Executable that takes the arrays and numbers among the function's arguments in order, and returns one array
            or a tuple of arrays. As that of `Jitted.compile`, it raises the function's errors.
        """
        return self._compile(self, options)

    def as_text(self, dialect: str = "hlo") -> str:
        """Return the program as text.

        Parameters
        ----------
        dialect : str
            ``"hlo"`` or ``"stablehlo"``.
        """
        if dialect == "hlo":
            return self.to_text()
        if dialect != "stablehlo":
            raise InvalidArgumentError(f"as_text: unknown dialect {dialect!r}", hint="use hlo or stablehlo")
        from cyxla.xla.stablehlo import write_stablehlo  # few programs are written in it

        return write_stablehlo(self)

    def cost_analysis(self) -> dict[str, float]:
        """Return the number of arithmetic operations (``"flops"``) and of ``"bytes accessed"``, before optimisation."""
        from cyxla.xla.service.analysis import cost_analysis  # few programs are analysed

        return cost_analysis(self)
