"""Starts workers, watches them, and collects findings."""

from __future__ import annotations

import gc
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzzing.kind import Kind
from fuzzing.worker import Finding, Page, serve

FORK = multiprocessing.get_context("fork")
TICK = 0.2  # seconds between looks at a worker
IDLE = 20.0  # times the limit on processor time that may go by on the clock: for deadlocks
DEAF = 10.0  # seconds that an interrupted worker has
LIFE = 20_000  # inputs of one worker
BATCH = 1.0  # seconds


@dataclass
class Tally:
    """Counts of a hunt."""

    kind: str
    inputs: int = 0
    stages: Counter[str] = field(default_factory=Counter)
    slow: int = 0
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)

    def __str__(self) -> str:
        stages = ", ".join(f"{name} {count}" for name, count in self.stages.items() if count)
        slow = f", {self.slow} slow" if self.slow else ""
        return (
            f"{self.kind}: {self.inputs} inputs in {self.seconds:.0f} s ({stages}{slow}), {len(self.findings)} findings"
        )


class Worker:
    """A worker process, renewed when it ends."""

    def __init__(self, kind: Kind, seed: int, deep: float, scratch: Path) -> None:
        self.kind, self.seed, self.deep, self.scratch = kind, seed, deep, scratch
        self.stages: Counter[str] = Counter()
        self.found: list[Finding] = []
        self._process: Any = None
        self._count = 0

    def ask(self, *request: Any) -> tuple[Any, ...]:
        """Have something done. Gives the answer, or the input that the worker was slow with or ended in.

        Findings are added to `found`.
        """
        self._start()
        with suppress(BrokenPipeError):
            self._pipe.send(request)
        began = time.monotonic()
        while True:
            if self._pipe.poll(TICK):
                try:
                    answer = self._pipe.recv()
                except (EOFError, ConnectionResetError):
                    return self._crashed()
                if answer[0] != "finding":
                    return answer
                self.found.append(answer[1])
            elif not self._process.is_alive() and not self._pipe.poll():
                return self._crashed()
            elif self._is_stuck(began):
                return self._stuck()

    def close(self) -> None:
        """End the process and all it started."""
        if self._process is None:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.join()
        self._pipe.close()
        self._process = None
        self.stages.update(dict(zip(self.kind.stages, self._page.counts, strict=False)))
        for path in self._log.parent.iterdir():
            if path != self._log:
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)

    def _start(self) -> None:
        if self._process is not None and self._process.is_alive():
            return
        self.close()
        folder = self.scratch / str(self._count)
        folder.mkdir()
        self._count += 1
        self._log, self._page = folder / "log", Page()
        self._pipe, theirs = FORK.Pipe()
        args = (self.kind, self.seed, self.deep, theirs, self._page, self._log)
        self._process = FORK.Process(target=serve, args=args, daemon=True)
        self._process.start()
        theirs.close()

    def _is_stuck(self, began: float) -> bool:
        _, _, clock, processor = self._page.now
        limit = self.kind.seconds
        return self._processor_time() - processor > limit or time.monotonic() - max(began, clock) > IDLE * limit

    def _processor_time(self) -> float:
        """Return the processor time of the worker and of its finished children."""
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def _where(self) -> tuple[int, str]:
        index, stage, *_ = self._page.now
        return index, self.kind.stages[stage] if stage >= 0 else "make"

    def _crashed(self) -> tuple[Any, ...]:
        self._process.join()
        index, stage = self._where()
        code = self._process.exitcode
        name = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        detail = self._log.read_text(errors="replace")[-6000:]
        self.close()
        self.found.append(Finding("crash", f"{stage}: {name}", detail, index))
        return "ended", index

    def _stuck(self) -> tuple[Any, ...]:
        """Ask where it stands, interrupt it, and judge by how it takes that."""
        index, stage = self._where()
        os.kill(self._process.pid, signal.SIGUSR1)
        time.sleep(TICK)
        os.kill(self._process.pid, signal.SIGINT)
        heard = self._is_heard()
        detail = self._log.read_text(errors="replace")[-6000:]
        self.close()
        if heard and stage in self.kind.slow:
            return "slow", index
        self.found.append(Finding("hang" if heard else "hang, deaf to an interrupt", stage, detail, index))
        return "ended", index

    def _is_heard(self) -> bool:
        """Return whether an interrupt ends the current input."""
        deadline = time.monotonic() + DEAF
        while time.monotonic() < deadline:
            if self._pipe.poll(TICK):
                with suppress(EOFError, ConnectionResetError):
                    if self._pipe.recv()[0] != "finding":
                        return True
        return False


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for all that programs write; compilers too."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        before, tempfile.tempdir = tempfile.tempdir, folder
        os.environ["TMPDIR"] = folder
        try:
            yield Path(folder)
        finally:
            tempfile.tempdir = before
            del os.environ["TMPDIR"]


def hunt(
    kind: Kind, seed: int, seconds: float, *, count: int | None = None, deep: float | None = None, first: int = 0
) -> Tally:
    """Try inputs for some time, or so many of them."""
    tally = Tally(kind.name)
    gc.freeze()  # what workers share stays shared
    with scratch_folder() as scratch:
        worker = Worker(kind, seed, kind.deep if deep is None else deep, scratch)
        try:
            _hunt(worker, tally, first, None if count is None else first + count, seconds)
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
        worker.close()
        tally.findings = list(worker.found)
        for finding in tally.findings:
            if not finding.data and finding.index >= 0:
                answer = worker.ask("make", finding.index)
                finding.data = answer[1] if answer[0] == "made" else b""
        worker.close()
    tally.stages = worker.stages
    return tally


def _hunt(worker: Worker, tally: Tally, index: int, last: int | None, seconds: float) -> None:
    began, size, life = time.monotonic(), 1, 0
    while (last is None or index < last) and time.monotonic() < began + seconds:
        stop = index + size if last is None else min(last, index + size)
        started = time.monotonic()
        answer = worker.ask("range", index, stop)
        if answer[0] == "done":
            took = time.monotonic() - started
            size = max(1, min(2000, int(size * min(2.0, BATCH / max(took, 1e-3)))))
        else:
            stop = _after(answer, tally, index)
        tally.inputs += stop - index
        life = life + stop - index
        tally.seconds = time.monotonic() - began
        index = stop
        if life > LIFE:
            worker.close()
            life = 0


def _after(answer: tuple[Any, ...], tally: Tally, index: int) -> int:
    """Note how a batch ended early; gives the input to go on with."""
    if answer[0] == "interrupted":  # by the user
        raise KeyboardInterrupt
    tally.slow += answer[0] == "slow"
    return max(index, answer[1]) + 1
