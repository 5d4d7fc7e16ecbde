"""Writers of recipes: calls and copies, with the estimated time of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from cyxla._native import kernels as library
from cyxla.xla.cpu.kernel import machine
from cyxla.xla.cpu.prebuilt.buffers import Buffers
from cyxla.xla.cpu.prebuilt.coverage import NotCoveredError
from cyxla.xla.cpu.prebuilt.survey import Survey
from cyxla.xla.hlo import Instruction

BYTE_NS: Final = 0.1  # ns of a byte that is moved; assumed: it bounds the programs that run without compilation


TASK: Final = 1 << 15  # elements of an element-wise operation that are one task
LINK_TASK: Final = 1 << 12  # elements of a task of several, which stay in a cache in between


class Link(NamedTuple):
    """Call of an element-wise function.

    Attributes
    ----------
    function : int
        Number of the function.
    operands : tuple of int
        Buffers of the operands.
    result : int
        Buffer of the result.
    size : int
        Number of elements of the result.
    itemsizes : tuple of int
        Bytes of an element of each operand and of the result.
    apart : frozenset of int
        Buffers of which an element of the result reads other elements than its own.
    loops : tuple of int
        Numbers after those of the elements of the result and of a task.
    """

    function: int
    operands: tuple[int, ...]
    result: int
    size: int
    itemsizes: tuple[int, ...]
    apart: frozenset[int]
    loops: tuple[int, ...]


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
        self._links: list[Link] = []  # calls that may form a chain

    def recipe(self) -> bytes:
        """Return the encoded steps."""
        self._end_chain()
        return library.recipe(self._words, self._steps)

    def function(self, name: str) -> int:
        """Return the number of a function."""
        number = library.numbers.get(name + self.suffix)
        if number is None:
            raise NotCoveredError(f"{name} is not prebuilt")
        return number

    def call(self, function: int, tasks: int, buffers: Sequence[int], numbers: Sequence[int], ns: float) -> None:
        """Write the call of a function."""
        self._end_chain()
        self._add_call(function, tasks, buffers, numbers)
        self.note(function, ns)

    def copy(self, source: int, target: int, nbytes: int) -> None:
        """Write the copy of a buffer."""
        self._end_chain()
        self._words += [library.COPY, target, source, nbytes]
        self._steps += 1
        self.cost += machine.RECIPE_STEP_NS + nbytes * BYTE_NS

    def call_elementwise(self, link: Link, ns: float) -> None:
        """Write the call of an element-wise function, in one chain with those before it if possible."""
        if not self._may_follow(link):
            self._end_chain()
        self._links.append(link)
        self.note(link.function, ns)

    def note(self, function: int, ns: float) -> None:
        """Take note of the call of a function and its time."""
        self.cost += machine.RECIPE_STEP_NS + ns

    def _may_follow(self, link: Link) -> bool:
        """Return whether each task of a call needs no other task of the calls before it, and they none of its own."""
        links = self._links
        return bool(links) and (
            len(links) < library.LINKS
            and link.size == links[0].size
            and link.apart.isdisjoint([before.result for before in links])
            and not any(link.result in before.apart for before in links)
        )

    def _end_chain(self) -> None:
        """Write the calls that may form a chain, and form one if they have several tasks."""
        links, self._links = self._links, []
        if len(links) < 2 or links[0].size <= TASK:
            for link in links:
                numbers = (link.size, TASK, *link.loops)
                self._add_call(link.function, -(-link.size // TASK), (*link.operands, link.result), numbers)
            return
        tasks, passing = -(-links[0].size // LINK_TASK), self._passing(links)
        self._words += [library.CHAIN, len(links), tasks, 0]
        self._steps += 1
        for link in links:
            used = (*link.operands, link.result)
            steps = [LINK_TASK * n if b in passing else 0 for b, n in zip(used, link.itemsizes, strict=True)]
            self._add_call(link.function, tasks, used, (link.size, LINK_TASK, *link.loops, *steps))

    def _passing(self, links: Sequence[Link]) -> set[int]:
        """Return the temporaries that hold nothing before some calls, and nothing that is read after them."""
        written: set[int] = set()
        before: set[int] = set()
        for link in links:
            before.update(set(link.operands) - written)
            written.add(link.result)
        return {b for b in written - before if self.buffers.is_free(b)}

    def _add_call(self, function: int, tasks: int, buffers: Sequence[int], numbers: Sequence[int]) -> None:
        self._words += [library.CALL, function, tasks, 1, len(buffers), *buffers, len(numbers), *numbers]
        self._steps += 1


class RecordingWriter(RecipeWriter):
    """Writer that notes the prebuilt function and the instruction of each call."""

    def __init__(self, survey: Survey, suffix: str) -> None:
        super().__init__(survey, suffix)
        self.calls: list[tuple[int, Instruction]] = []

    def note(self, function: int, ns: float) -> None:
        """Take note of the call of a function, its time and the instruction."""
        self.calls.append((function, self.current))
        super().note(function, ns)
