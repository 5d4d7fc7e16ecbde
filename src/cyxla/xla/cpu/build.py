"""From C texts to the image of a shared object: the processes of the compiler, side by side.

Where the compiler's driver would say what it runs (`Steps`), its parts are run directly, text and assembly going
through pipes: that saves the start of two programs and of the linker's plugin. And each part is started before there is
anything for it to do: the compiler while the text is being written, by a file that includes what will come through the
pipe; assembler and linker while the compiler works. Everywhere else the driver does all.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from cyxla import errors
from cyxla.xla.cpu import cache as store
from cyxla.xla.cpu.toolchain import LINK_SCRIPT, MAIN

if TYPE_CHECKING:
    import subprocess

    from cyxla.xla.cpu.toolchain import Toolchain, Unit

MAX_JOBS = 8
SLOW_COMPILE = 10.0  # seconds after which a compilation is worth a word
LIBRARY = "library.so"

# What a compiler reads that was started before there is a text.
MAIN_TEXT = '#include "/dev/stdin"\n'

# Undefined symbols are all right: what the compiler itself calls (memcpy ..) is in every process already. Not so its
# helpers for half precision and wide integers where the processor lacks them. Looking for them takes time, and some
# clangs link or even build them whole, so they are asked only when an image calls for one.
_HELPER_NAME = rb"\0__(?!\w{1,2}san_)[a-z]\w*\0"  # __divti3, __truncsfhf2


class Job:
    """One program, or several, each of which reads what the one before it writes.

    Parameters
    ----------
    directory : Path
        Where it works.
    said : str
        The file there for what it says.
    command : tuple of str
        The first program.
    fed : bool
        Whether it waits for a text.
    piped : bool
        Whether another program will read what it writes.
    """

    def __init__(self, directory: Path, said: str, command: tuple[str, ...], *, fed: bool, piped: bool = False) -> None:
        import subprocess  # takes milliseconds, which what is found in the cache need not wait for

        self.directory = directory
        self.said = directory / said
        self.commands: list[tuple[str, ...]] = []
        self.processes: list[subprocess.Popen[bytes]] = []
        self.seconds = 0.0
        self._began = time.monotonic()
        self._start(command, subprocess.PIPE if fed else subprocess.DEVNULL, piped)

    def _start(self, command: tuple[str, ...], source: int | IO[bytes] | None, piped: bool) -> None:
        import subprocess

        # No shell; and names relative to the directory, so that its own name gets into no image.
        with open(self.said, "ab") as said:
            try:
                process = subprocess.Popen(
                    command,
                    cwd=self.directory,
                    stdin=source,
                    stdout=subprocess.PIPE if piped else said,
                    stderr=said,
                    env={**os.environ, "LC_ALL": "C"},  # messages in one language
                )
            except OSError as error:
                self.kill()
                raise errors.InternalError(f"cannot run the C compiler: {error}", where=" ".join(command)) from error
        self.commands.append(command)
        self.processes.append(process)

    def feed(self, text: str) -> None:
        """Hand over the text; a program that has died already is found out by `wait`."""
        self._began = time.monotonic()
        stream = self.processes[0].stdin
        assert stream is not None
        with contextlib.suppress(BrokenPipeError):
            stream.write(text.encode())
        _close(stream)

    def then(self, *commands: tuple[str, ...]) -> None:
        """Start the other programs."""
        for k, command in enumerate(commands, 1):
            source = self.processes[-1].stdout
            self._start(command, source, k < len(commands))
            _close(source)

    def wait(self) -> None:
        """Wait for the end.

        Raises
        ------
        InternalError
            The compiler refused the text.
        """
        codes = [process.wait() for process in self.processes]
        self.seconds = time.monotonic() - self._began
        if any(codes):
            failed = next(k for k, code in enumerate(codes) if code)
            raise errors.InternalError(
                f"the C compiler refused generated code, kept in {self.directory}:\n"
                f"{self.said.read_text(errors='replace').strip()[:4000]}",
                where=" ".join(self.commands[failed]),
            )

    def kill(self) -> None:
        """End it, whatever it is doing."""
        for process in self.processes:
            _close(process.stdin)
            _close(process.stdout)
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
        self._waiting: list[Job] = []
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
            (self._directory / MAIN).write_text(MAIN_TEXT, encoding="utf-8")  # never again: somebody may be reading it
        return self._directory

    def prepare(self, count: int = 1) -> None:
        """Have so many compilers wait for a text, so that they are ready by the time there is one."""
        while self.tools.compiler.steps is not None and len(self._waiting) < count:
            self._waiting.append(self._compiler(contract=False))

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
        missing = [k for k in range(len(units)) if cache is None or not self._fetch(cache, keys[k], objects[k])]
        *groups, last = _groups(missing, min(os.cpu_count() or 1, MAX_JOBS)) if missing else [()]
        for group in groups:
            self._wait(self._compile({k: units[k] for k in group}))
        jobs = self._compile({k: units[k] for k in last})
        linker = self._linker(objects) if self.tools.compiler.steps is not None else None
        self._wait(jobs)
        if cache is not None:
            for k in missing:
                cache.put(keys[k], (self.directory / objects[k]).read_bytes())
        return self._link(linker or self._linker(objects), objects)

    def _fetch(self, cache: store.DiskCache, key: str, name: str) -> bool:
        """Take an object from the cache, if it is there."""
        entry = cache.get(key)
        if entry is not None:
            (self.directory / name).write_bytes(entry.image())
        return entry is not None

    def _whole(self, unit: Unit) -> bytes:
        """Let the driver do everything at once."""
        (self.directory / "unit0.c").write_text(unit.text, encoding="utf-8")
        inputs = ["unit0.c"]
        return self._link(self._linker(inputs, self.tools.flags(unit.contract)), inputs)

    def _compile(self, units: Mapping[int, Unit]) -> dict[int, Job]:
        """Begin to compile these."""
        if self.tools.compiler.steps is None:
            for k, unit in units.items():
                (self.directory / f"unit{k}.c").write_text(unit.text, encoding="utf-8")
            return {k: self._run(self.tools.unit_commands(k, unit.contract)[0]) for k, unit in units.items()}
        jobs = {}
        for k, unit in units.items():
            waits = self._waiting and not unit.contract
            jobs[k] = self._waiting.pop(0) if waits else self._compiler(contract=unit.contract)
            jobs[k].feed(f'#line 1 "unit{k}.c"\n{unit.text}')
        for k, job in jobs.items():
            job.then(*self.tools.unit_commands(k, units[k].contract)[1:])
        return jobs

    def _wait(self, jobs: Mapping[int, Job]) -> None:
        for k, job in jobs.items():
            job.wait()
            self.seconds[k] = job.seconds

    def _compiler(self, *, contract: bool) -> Job:
        """Start a compiler that waits for the text of a unit, whichever."""
        return self._run(self.tools.unit_commands(0, contract)[0], fed=True, piped=True)

    def _linker(self, inputs: Sequence[str], flags: Sequence[str] = ()) -> Job:
        """Start the linker, which waits for its script, or the driver in its place."""
        command = self.tools.link_command(inputs, LIBRARY, flags)
        return self._run(command, fed=self.tools.compiler.steps is not None)

    def _run(self, command: tuple[str, ...], *, fed: bool = False, piped: bool = False) -> Job:
        job = Job(self.directory, f"errors{len(self._jobs)}.txt", command, fed=fed, piped=piped)
        self._jobs.append(job)
        return job

    def _link(self, linker: Job, inputs: Sequence[str]) -> bytes:
        image = self._linked(linker)
        if self.tools.helpers and re.search(_HELPER_NAME, image):
            image = self._linked(self._linker([*inputs, *self.tools.helpers]))
        return image

    def _linked(self, linker: Job) -> bytes:
        if self.tools.compiler.steps is not None:
            linker.feed(LINK_SCRIPT)
        linker.wait()
        return (self.directory / LIBRARY).read_bytes()


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
        import logging

        slowest = max(each, key=lambda k: each[k])
        logging.getLogger(__name__).warning(
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
