"""The process that runs inputs. It records each step before it takes it, for the supervisor to read if it dies."""

from __future__ import annotations

import faulthandler
import mmap
import os
import random
import resource
import signal
import struct
import time
import traceback
import warnings
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from fuzzing.kind import Kind, complaint

MOST_STAGES = 16
SPACE = 4 << 30  # address space beyond what a worker begins with


class Page:
    """Memory that a worker and its supervisor share: which input is under way, in which stage, since when."""

    _FORM = struct.Struct("qqdd")  # input, stage, the clock and the processor time at the input's beginning

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 4096)
        self.began(-1)

    def began(self, index: int) -> None:
        packed = self._FORM.pack(index, -1, time.monotonic(), time.process_time())
        self._memory[: len(packed)] = packed  # pack_into writes zeros first, which the supervisor might read

    def entered(self, stage: int) -> None:
        struct.pack_into("q", self._memory, 8, stage)
        at = self._FORM.size + 8 * stage
        struct.pack_into("q", self._memory, at, 1 + struct.unpack_from("q", self._memory, at)[0])

    @property
    def now(self) -> tuple[int, int, float, float]:
        return self._FORM.unpack_from(self._memory, 0)

    @property
    def counts(self) -> tuple[int, ...]:
        """How many inputs came to each stage."""
        return struct.unpack_from(f"{MOST_STAGES}q", self._memory, self._FORM.size)


@dataclass
class Finding:
    """An input that does not end as it should.

    Attributes
    ----------
    label : str
        Kind of finding: crash, hang, memory, difference, foreign exception ..
    place : str
        Stage, and where in the code: findings of one label and place count as one.
    detail : str
        Traceback or what the process left behind.
    index : int
        Number of the input; -1 for one that was given.
    data : bytes
        The input, where it is at hand.
    """

    label: str
    place: str
    detail: str
    index: int = -1
    data: bytes = b""

    @property
    def signature(self) -> tuple[str, str]:
        return self.label, self.place


def rng_of(kind: Kind, seed: int, index: int) -> random.Random:
    """Random numbers that depend on these three alone."""
    return random.Random(f"{kind.name} {seed} {index}")


def made(kind: Kind, seed: int, index: int, deep: float) -> tuple[bytes, bool]:
    """An input, and whether it goes on to the expensive stages."""
    rng = rng_of(kind, seed, index)
    return kind.make(rng), rng.random() < deep


def attempted(kind: Kind, data: bytes, deep: bool, page: Page, index: int = -1) -> Finding | None:
    """Try one input."""
    at = ""

    def stage(name: str) -> None:
        nonlocal at
        at = name
        page.entered(kind.stages.index(name))

    page.began(index)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        kind.attempt(data, deep, stage)
    except KeyboardInterrupt:
        raise
    except Exception as error:
        label = complaint(error, at, kind)
        if label is not None:
            place = f"{at}: {type(error).__name__} in {_innermost(error)}"
            return Finding(label, place, "".join(traceback.format_exception(error)), index, data)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    if at not in kind.runs and grown > kind.megabytes << 10:
        return Finding("memory", at, f"{grown >> 10} MB more", index, data)
    return None


def _innermost(error: BaseException) -> str:
    """The last function of cyxla that an error came through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "cyxla" in Path(f.filename).parts] or frames[-1:]
    return f"{Path(ours[-1].filename).name}:{ours[-1].name}" if ours else "?"


def serve(kind: Kind, seed: int, deep: float, pipe: Connection, page: Page, log: Path) -> None:
    """Answer requests for ever: a process of its own, which ends when the pipe does."""
    os.setsid()
    _confine(log)
    while True:
        try:
            request = pipe.recv()
        except EOFError:
            os._exit(0)
        try:
            answer = _answer(kind, seed, deep, pipe, page, request)
        except KeyboardInterrupt as error:
            index, stage, *_ = page.now
            name = kind.stages[stage] if stage >= 0 else "make"
            answer = ("interrupted", index, name, "".join(traceback.format_exception(error)))
        pipe.send(answer)
        page.began(-1)


def _answer(
    kind: Kind, seed: int, deep: float, pipe: Connection, page: Page, request: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Execute a request; findings are sent before the answer, since the process may end before it."""
    match request:
        case ("range", first, last):
            for index in range(first, last):
                page.began(index)
                finding = attempted(kind, *made(kind, seed, index, deep), page, index)
                if finding:
                    pipe.send(("finding", finding))
        case ("make", index):
            return "made", made(kind, seed, index, deep)[0]
        case ("try", data):
            finding = attempted(kind, data, True, page)
            if finding:
                pipe.send(("finding", finding))
    return ("done",)


def _confine(log: Path) -> None:
    """Set limits, have crashes written to a log, and work in a folder of its own."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    faulthandler.enable(2)
    faulthandler.register(signal.SIGUSR1, file=2, all_threads=True)
    warnings.simplefilter("ignore")
    os.chdir(log.parent)
    if not os.environ.get("CYXLA_SANITIZE"):  # which has terabytes of shadow memory
        used = int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
        resource.setrlimit(resource.RLIMIT_AS, (used + SPACE, used + SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
