"""From C texts to the image of a shared object: the processes of the compiler, side by side.

Where the compiler's driver would say what it runs (`Steps`), its parts are run directly, text and assembly going
through pipes: that saves the start of two programs and of the linker's plugin, and lets a compiler be started before
there is any text for it. Everywhere else the driver does all.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cyxla import errors
from cyxla.xla.cpu import cache as store

if TYPE_CHECKING:
    from cyxla.xla.cpu.toolchain import Toolchain, Unit

logger = logging.getLogger(__name__)

MAX_JOBS = 8
SLOW_COMPILE = 10.0  # seconds after which a compilation is worth a word
LIBRARY = "library.so"

# Undefined symbols are all right: what the compiler itself calls (memcpy ..) is in every process already. Not so its
# helpers for half precision and wide integers where the processor lacks them. With gcc they cost nothing when unused;
# some clangs link or even build them whole, so those are asked only when an image calls for a helper.
HELPERS = ("-lgcc",)
_HELPER_NAME = rb"\0__\w+(?:ti\w?|[hsdx]f)\d\0"  # __divti3, __truncsfhf2


class Job:
    """The compilation of one unit.

    Parameters
    ----------
    directory : Path
        Where it works.
    number : int
        Names its files.
    commands : sequence of tuple of str
        Each reads what the one before it writes; the first reads the text, or nothing if `fed` is False.
    fed : bool
        Whether it waits for a text.
    """

    def __init__(self, directory: Path, number: int, commands: Sequence[tuple[str, ...]], fed: bool) -> None:
        self.said = directory / f"errors{number}.txt"
        self.commands = commands
        self.seconds = 0.0
        self.processes: list[subprocess.Popen[bytes]] = []
        self._start = time.monotonic()
        with open(self.said, "wb") as stderr:
            source: int | None = subprocess.PIPE if fed else subprocess.DEVNULL
            for k, command in enumerate(commands):
                last = k == len(commands) - 1
                # No shell; and names relative to the directory, so that its own name gets into no image.
                try:
                    process = subprocess.Popen(
                        command,
                        cwd=directory,
                        stdin=source if not self.processes else self.processes[-1].stdout,
                        stdout=stderr if last else subprocess.PIPE,
                        stderr=stderr,
                        env={**os.environ, "LC_ALL": "C"},  # messages in one language
                    )
                except OSError as error:
                    self.kill()
                    raise errors.InternalError(
                        f"cannot run the C compiler: {error}", where=" ".join(command)
                    ) from error
                if self.processes:
                    _close(self.processes[-1].stdout)
                self.processes.append(process)

    def feed(self, text: str) -> None:
        """Hand over the text; a compiler that has died already is found out by `wait`."""
        stream = self.processes[0].stdin
        assert stream is not None
        with contextlib.suppress(BrokenPipeError):
            stream.write(text.encode())
        _close(stream)
        self._start = time.monotonic()

    def wait(self, directory: Path) -> None:
        """Wait for the end.

        Raises
        ------
        InternalError
            The compiler refused the text.
        """
        codes = [process.wait() for process in self.processes]
        self.seconds = time.monotonic() - self._start
        if any(codes):
            failed = next(k for k, code in enumerate(codes) if code)
            raise errors.InternalError(
                f"the C compiler refused generated code, kept in {directory}:\n"
                f"{self.said.read_text(errors='replace').strip()[:4000]}",
                where=" ".join(self.commands[failed]),
            )

    def kill(self) -> None:
        """End it, whatever it is doing."""
        for process in self.processes:
            _close(process.stdin)
            if process.poll() is None:
                process.kill()
                process.wait()


class Build:
    """One compilation; use it as a context, which ends all processes and removes the files.

    When a text is refused, the files stay, and the error says where.

    Attributes
    ----------
    seconds : dict of int to float
        How long the compilers took by number of the unit; objects from the cache are not there.
    """

    def __init__(self, tools: Toolchain) -> None:
        self.tools = tools
        self.seconds: dict[int, float] = {}
        self._directory: Path | None = None
        self._jobs: list[Job] = []
        self._waiting: Job | None = None
        self._keep = False

    def __enter__(self) -> Build:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        for job in self._jobs:
            job.kill()
        if self._directory is not None and not self._keep:
            _remove(self._directory)

    @property
    def directory(self) -> Path:
        """Where the files are."""
        if self._directory is None:
            self._directory = _new_directory()
        return self._directory

    def prepare(self) -> None:
        """Start a compiler that waits for a text, so that it is ready by the time there is one."""
        if self.tools.compiler.steps is not None and self._waiting is None:
            self._waiting = self._start(0, contract=False)

    def image(self, units: Sequence[Unit], cache: store.DiskCache | None = None) -> bytes:
        """Compile units and link them into the image of one shared object.

        Parameters
        ----------
        units : sequence of Unit
            Compiled side by side.
        cache : DiskCache, optional
            Keeps the objects of the single units, when there are several.

        Raises
        ------
        InternalError
            The compiler refused the text; the message says where the text was kept.
        """
        start = time.monotonic()
        try:
            image = self._image(units, cache if len(units) > 1 else None)
        except errors.InternalError:
            self._keep = True
            for k, unit in enumerate(units):
                (self.directory / f"unit{k}.c").write_text(unit.text, encoding="utf-8")
            raise
        _report_slow(time.monotonic() - start, units, self.seconds)
        return image

    def _image(self, units: Sequence[Unit], cache: store.DiskCache | None) -> bytes:
        if self.tools.compiler.steps is None and len(units) == 1:
            return self._whole(units[0])
        objects = [f"unit{k}.o" for k in range(len(units))]
        keys = [self.tools.object_key(unit) for unit in units] if cache is not None else []
        missing = [k for k in range(len(units)) if cache is None or not self._fetch(cache, keys[k], k)]
        for group in _groups(missing, min(os.cpu_count() or 1, MAX_JOBS)):
            self._compile([(k, units[k]) for k in group])
        if cache is not None:
            for k in missing:
                cache.put(keys[k], (self.directory / objects[k]).read_bytes())
        return self._link(objects)

    def _fetch(self, cache: store.DiskCache, key: str, number: int) -> bool:
        """Take an object from the cache, if it is there."""
        entry = cache.get(key)
        if entry is None:
            return False
        if number == 0 and self._waiting is not None:  # its assembler would write an empty object over this one
            self._waiting.kill()
            self._waiting = None
        (self.directory / f"unit{number}.o").write_bytes(entry.image())
        return True

    def _whole(self, unit: Unit) -> bytes:
        """Let the driver do everything at once."""
        (self.directory / "unit0.c").write_text(unit.text, encoding="utf-8")
        return self._link(["unit0.c"], self.tools.flags(unit.contract))

    def _compile(self, units: Sequence[tuple[int, Unit]]) -> None:
        jobs = []
        for k, unit in units:
            if self._waiting is not None and k == 0 and not unit.contract:
                job, self._waiting = self._waiting, None
            else:
                if self.tools.compiler.steps is None:
                    (self.directory / f"unit{k}.c").write_text(unit.text, encoding="utf-8")
                job = self._start(k, contract=unit.contract)
            jobs.append((k, job))
            if self.tools.compiler.steps is not None:
                job.feed(unit.text)
        for k, job in jobs:
            job.wait(self.directory)
            self.seconds[k] = job.seconds

    def _start(self, number: int, *, contract: bool) -> Job:
        fed = self.tools.compiler.steps is not None
        return self._run(number, self.tools.unit_commands(number, contract), fed)

    def _run(self, number: int, commands: Sequence[tuple[str, ...]], fed: bool) -> Job:
        job = Job(self.directory, number, commands, fed)
        self._jobs.append(job)
        return job

    def _link(self, inputs: Sequence[str], flags: Sequence[str] = ()) -> bytes:
        library = self.directory / LIBRARY
        command = self.tools.link_command(inputs, LIBRARY, flags)
        self._run(MAX_JOBS, [command], False).wait(self.directory)
        image = library.read_bytes()
        if self.tools.compiler.kind != "gcc" and re.search(_HELPER_NAME, image):
            self._run(MAX_JOBS, [(*command, *HELPERS)], False).wait(self.directory)
            image = library.read_bytes()
        return image


def _close(stream: object) -> None:
    if stream is not None:
        with contextlib.suppress(BrokenPipeError):
            stream.close()  # type: ignore[attr-defined]


def _groups(items: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    for k in range(0, len(items), size):
        yield items[k : k + size]


def _new_directory() -> Path:
    """Make a directory for this process alone, as `tempfile` does, without the milliseconds of importing it."""
    for place in (*map(os.environ.get, ("TMPDIR", "TEMP", "TMP")), "/tmp", "/var/tmp", "."):
        while place:
            path = Path(place, f"cyxla-{os.urandom(6).hex()}")
            try:
                path.mkdir(mode=0o700)
            except FileExistsError:
                continue
            except OSError:
                break
            return path.absolute()
    raise errors.UnavailableError("there is no folder for temporary files", hint="name one in TMPDIR")


def _remove(directory: Path) -> None:
    with contextlib.suppress(OSError):
        for entry in os.scandir(directory):
            os.unlink(entry)
        directory.rmdir()


def _report_slow(seconds: float, units: Sequence[Unit], each: Mapping[int, float]) -> None:
    if seconds > SLOW_COMPILE and each:
        slowest = max(each, key=lambda k: each[k])
        logger.warning(
            "compiling %d units, %d bytes of C, took %.1f s; the slowest took %.1f s and holds %s",
            len(units),
            sum(len(unit.text) for unit in units),
            seconds,
            each[slowest],
            "; ".join(_longest_kernels(units[slowest].text)) or "no kernels",
        )


def _longest_kernels(text: str, count: int = 3) -> list[str]:
    """What the emitters wrote above the longest kernels."""
    heads = [*re.finditer(r"^/\* (.*) \*/\n(?:static )?cyx_status (\w+)\(", text, re.MULTILINE)]
    ends = [*(head.start() for head in heads[1:]), len(text)]
    lengths = {f"{head[2]}, {head[1]}": end - head.start() for head, end in zip(heads, ends, strict=True)}
    return sorted(lengths, key=lambda name: -lengths[name])[:count]
