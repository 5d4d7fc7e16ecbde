"""Writers of recipes: calls and copies, with the estimated time of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cyxla._native import kernels as library
from cyxla.xla.cpu.kernel import machine
from cyxla.xla.cpu.prebuilt.buffers import Buffers
from cyxla.xla.cpu.prebuilt.coverage import NotCoveredError
from cyxla.xla.cpu.prebuilt.survey import Survey
from cyxla.xla.hlo import Instruction

BYTE_NS: Final = 0.1  # ns of a byte that is moved; assumed: it bounds the programs that run without compilation


class RecipeWriter:
    """Writer of the recipe of a program.

    Parameters
    ----------
    survey : Survey
        Survey of the program.
    suffix : str
        End of the names of the functions for this processor.

    Attributes
    ----------
    buffers : Buffers
        Buffers of the program.
    cost : float
        Estimated time of a call in ns.
    current : Instruction
        Instruction of the steps that are being written.
    """

    current: Instruction

    def __init__(self, survey: Survey, suffix: str) -> None:
        self.survey, self.suffix = survey, suffix
        self.buffers = Buffers(survey)
        self.cost = 0.0
        self._words: list[int] = []
        self._steps = 0

    @property
    def recipe(self) -> bytes:
        """Return the encoded steps."""
        return library.recipe(self._words, self._steps)

    def function(self, name: str) -> int:
        """Return the number of a function."""
        number = library.numbers.get(name + self.suffix)
        if number is None:
            raise NotCoveredError(f"{name} is not prebuilt")
        return number

    def call(self, function: int, tasks: int, buffers: Sequence[int], numbers: Sequence[int], ns: float) -> None:
        """Write the call of a function."""
        self._words += [library.CALL, function, tasks, 1, len(buffers), *buffers, len(numbers), *numbers]
        self._steps += 1
        self.cost += machine.RECIPE_STEP_NS + ns

    def copy(self, source: int, target: int, nbytes: int) -> None:
        """Write the copy of a buffer."""
        self._words += [library.COPY, target, source, nbytes]
        self._steps += 1
        self.cost += machine.RECIPE_STEP_NS + nbytes * BYTE_NS


class RecordingWriter(RecipeWriter):
    """Writer that notes the prebuilt function and the instruction of each call."""

    def __init__(self, survey: Survey, suffix: str) -> None:
        super().__init__(survey, suffix)
        self.calls: list[tuple[int, Instruction]] = []

    def call(self, function: int, tasks: int, buffers: Sequence[int], numbers: Sequence[int], ns: float) -> None:
        """Write the call of a function, and note it."""
        self.calls.append((function, self.current))
        super().call(function, tasks, buffers, numbers, ns)
