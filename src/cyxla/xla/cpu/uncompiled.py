"""Platform cpu where there is no C compiler: programs are evaluated, and the first of a process says so."""

from __future__ import annotations

import warnings
from functools import cache

from cyxla.errors import UnimplementedError
from cyxla.xla.cpu.toolchain import HOW_TO_GET_ONE, NO_COMPILER
from cyxla.xla.hlo import HloModule
from cyxla.xla.service import CompileOptions
from cyxla.xla.service.evaluated import EvaluatedExecutable


class UncompiledExecutable(EvaluatedExecutable):
    """A program of platform cpu that the evaluator runs, since nothing here can make native code of it."""

    platform = "cpu"

    def __init__(self, module: HloModule, options: CompileOptions) -> None:
        super().__init__(module, options)
        _warn()

    def explain(self) -> str:
        """Say how the program runs, and what would make it faster."""
        return f"{NO_COMPILER}: {super().explain()}\nfor native code, {HOW_TO_GET_ONE}"

    @property
    def c_source(self) -> str:
        """There is none."""
        raise UnimplementedError(NO_COMPILER, hint=HOW_TO_GET_ONE)


@cache  # once in a process, whatever the filters of warnings say
def _warn() -> None:
    warnings.warn(
        f"{NO_COMPILER}: programs of platform cpu are evaluated on NumPy, which is far slower; {HOW_TO_GET_ONE}",
        RuntimeWarning,
        stacklevel=2,
    )
