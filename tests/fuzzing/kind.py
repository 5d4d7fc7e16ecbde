"""Kinds of input, and the outcomes that an input may have."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path

from cyxla.errors import OpError

NEVER = ("INTERNAL", "UNKNOWN")  # codes that say that cyxla itself is broken
LONGEST, MOST_LINES = 900, 15  # of an error's text
Stage = Callable[[str], None]


class DifferenceError(AssertionError):
    """Two ways to run one program that do not agree."""


class Kind(ABC):
    """A kind of input.

    Attributes
    ----------
    name : str
        As the command line has it.
    suffix : str
        Of the files that inputs are kept in.
    stages : tuple of str
        Stages that an input passes, in order.
    runs : tuple of str
        Those of the stages that run a program: they may take as much memory as the program asks for.
    slow : tuple of str
        Stages that a program may rightly be slow in, if it can be interrupted.
    deep : float
        Part of the inputs that go on to the expensive stages.
    seconds : float
        Processor time after which an input counts as a hang.
    megabytes : int
        Memory that the other stages may take.
    """

    name = ""
    suffix = ".txt"
    stages: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    slow: tuple[str, ...] = ()
    deep = 0.01
    seconds = 20.0
    megabytes = 512

    def prepare(self, folders: Sequence[Path]) -> None:  # noqa: B027 - some kinds need none
        """Collect the material of inputs, files of these folders included."""

    @abstractmethod
    def make(self, rng: random.Random) -> bytes:
        """An input."""

    @abstractmethod
    def attempt(self, data: bytes, deep: bool, stage: Stage) -> None:
        """Take an input through the stages, each of which is named before it begins.

        Raises
        ------
        OpError
            A clean refusal.
        DifferenceError
            Results that should be the same are not.
        """

    def cuts(self, data: bytes) -> list[list[bytes]]:
        """The input in pieces, in several grains, coarse ones first: any of them may be left out to make it smaller."""
        return [data.splitlines(keepends=True), [data[k : k + 1] for k in range(len(data))]]


def complaint(error: Exception, stage: str, kind: Kind) -> str | None:
    """Return the fault of an error as an outcome; None if the input was refused properly."""
    if isinstance(error, DifferenceError):
        return "difference"
    if isinstance(error, MemoryError):
        return None if stage in kind.runs or isinstance(error, OpError) else "memory"
    if not isinstance(error, OpError):
        return "foreign exception"
    if error.code in NEVER:
        return f"{error.code} error"
    text = str(error)
    return "long message" if len(text) > LONGEST or text.count("\n") >= MOST_LINES else None


def files(folders: Sequence[Path], suffixes: Sequence[str], most: int = 100_000) -> list[bytes]:
    """Return the contents of files with these endings, but for large ones."""
    found = sorted(p for folder in folders for s in suffixes for p in folder.rglob("*" + s))
    return [p.read_bytes() for p in found if p.is_file() and p.stat().st_size <= most]
