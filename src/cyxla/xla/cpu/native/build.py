"""Compilation of C texts to one shared object by parallel compiler processes.

If the compiler's driver tells which programs it runs (`Steps`), these are run directly, and C and assembly go through
pipes: that saves the start of two programs and of the linker's plugin. Each program is started before its input is
there: the compiler while the C is still being written, on a file that includes standard input; assembler and linker
while the compiler works. Otherwise the driver does everything.

Every program leads a session of its own: it is killed together with the programs that it started, and the terminal's
Ctrl-C does not reach it. None outlives CYXLA_COMPILE_TIMEOUT or this process.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING
from weakref import WeakSet

from cyxla import config, errors
from cyxla.forking import call_in_child, new_lock
from cyxla.gc_pause import collect_while_idle
from cyxla.interrupts import interruptible
from cyxla.xla.cpu.native import cache as store
from cyxla.xla.cpu.native.toolchain import LINK_SCRIPT, MAIN, Toolchain, Unit
from cyxla.xla.service.background import call_at_end

if TYPE_CHECKING:
    import subprocess

MAX_JOBS = 8
SLOW_COMPILE = 10.0  # seconds after which a compilation is logged
LIBRARY = "library.so"
PREFIX = "cyxla-"  # prefix of folders of compilations
FAILED_PREFIX = "cyxla-failed-"  # prefix of folders of failed compilations
MAX_FAILED = 5  # folders of failed compilations that are kept, the newest
STALE_AFTER = 24 * 3600.0  # seconds after which a folder belongs to a killed process
_KILL_TIMEOUT = 5.0  # seconds to wait for a killed program: one that waits for a disk may never end

# Main file of a compiler that is started before its text is written.
MAIN_TEXT = '#include "/dev/stdin"\n'

# Undefined symbols are allowed: functions that a compiler calls implicitly (memcpy ..) are in every process. Its
# run-time helpers for half precision and wide integers are not. Searching them takes time, and some clangs link the
# complete library or even build it, so they are linked only when an image refers to one.
_HELPER_NAME = rb"\0__(?!\w{1,2}san_)[a-z]\w*\0"  # __divti3, __truncsfhf2


class Job:
    """One program, or a pipeline of several, each of which reads the output of the one before it.

    Parameters
    ----------
    directory : Path
        Working directory of the programs.
    messages : str
        Name of the file in the directory that collects their messages.
    limit : float
        Seconds that the programs may take once they have their text.
    """

    def __init__(self, directory: Path, messages: str, limit: float) -> None:
        self.directory, self.limit = directory, limit
        self.stopped = False
        self.messages = directory / messages
        self.commands: list[tuple[str, ...]] = []
        self.processes: list[subprocess.Popen[bytes]] = []
        self.seconds = 0.0
        self._start_lock = new_lock()
        self._start_time = time.monotonic()

    def start(self, command: tuple[str, ...], *, reads_input: bool, is_piped: bool = False) -> None:
        """Start the first program.

        Parameters
        ----------
        command : tuple of str
            Arguments of the program.
        reads_input : bool
            Whether the program waits for a text on its standard input.
        is_piped : bool
            Whether another program will read its output.

        Raises
        ------
        InternalError
            The program cannot be run.
        """
        import subprocess  # takes milliseconds, which a cache hit saves

        _running.add(self)
        self._start(command, subprocess.PIPE if reads_input else subprocess.DEVNULL, is_piped)

    def _start(self, command: tuple[str, ...], source: int | IO[bytes] | None, is_piped: bool) -> None:
        """Start a program from a thread that runs no signal handlers: an exception inside Popen loses the process."""
        interruptible(partial(self._open, command, source, is_piped))

    def _open(self, command: tuple[str, ...], source: int | IO[bytes] | None, is_piped: bool) -> None:
        """Start a program and record its process, which ends at once if the job was stopped meanwhile."""
        import subprocess

        with self._start_lock:
            if self.stopped:
                raise _cancelled_error(command)
            # No shell, and relative names, so that no image contains the name of the directory.
            with open(self.messages, "ab") as messages:
                try:
                    process = subprocess.Popen(
                        command,
                        cwd=self.directory,
                        stdin=source,
                        stdout=subprocess.PIPE if is_piped else messages,
                        stderr=messages,
                        env={**os.environ, "LC_ALL": "C"},  # messages in one language
                        start_new_session=True,
                    )
                except OSError as error:
                    where = " ".join(command)
                    raise errors.InternalError(f"cannot run the C compiler: {error}", where=where) from error
            self.commands.append(command)
            self.processes.append(process)
            if self.stopped:
                self.kill()

    def feed(self, text: str) -> None:
        """Write the text to the first program; `wait` reports one that has died already.

        Raises
        ------
        DeadlineExceededError
            The program does not read the text in time.
        """
        self._start_time = time.monotonic()
        stream = self.processes[0].stdin
        assert stream is not None
        with contextlib.suppress(BrokenPipeError):
            if not _write_all(stream.fileno(), text.encode(), self.limit):
                raise self._timeout_error(0)
        _close(stream)

    def start_rest(self, *commands: tuple[str, ...]) -> None:
        """Start the other programs of the pipeline."""
        for k, command in enumerate(commands, 1):
            source = self.processes[-1].stdout
            self._start(command, source, k < len(commands))
            _close(source)

    def wait(self) -> None:
        """Wait until every program has ended.

        Raises
        ------
        InternalError
            The compiler refused the text or crashed.
        ResourceExhaustedError
            The compiler was killed by SIGKILL.
        DeadlineExceededError
            A program exceeded the limit.
        CancelledError
            The job was stopped because this process ends.
        """
        for k, process in enumerate(self.processes):
            if not _wait_for(process, self._start_time + self.limit - time.monotonic()):
                raise self._timeout_error(k)
        self.seconds = time.monotonic() - self._start_time
        _running.discard(self)
        codes = {k: process.returncode for k, process in enumerate(self.processes) if process.returncode}
        if codes:
            raise self._failure_error(min(codes, key=lambda k: (_failure_rank(codes[k]), k)))

    def _timeout_error(self, number: int) -> errors.OpError:
        return errors.DeadlineExceededError(
            f"the C compiler did not end within {self.limit:g} s and was killed; its text is in "
            f"{_failed_path(self.directory)}",
            where=" ".join(self.commands[number]),
            hint="allow more seconds by CYXLA_COMPILE_TIMEOUT, or name another compiler in CYXLA_CC",
        )

    def _failure_error(self, number: int) -> errors.OpError:
        """Return the error of a program with a non-zero exit status."""
        if self.stopped:
            return _cancelled_error(self.commands[number])
        # The first errors come first; 4,000 characters are a few screens.
        output, where = self.messages.read_text(errors="replace").strip()[:4000], " ".join(self.commands[number])
        signal_ = _signal(self.processes[number].returncode, output)
        location = f"kept in {_failed_path(self.directory)}"
        if signal_ == signal.SIGKILL:
            return errors.ResourceExhaustedError(
                f"the C compiler was killed by signal 9 (SIGKILL), probably out of memory; its text is {location}"
                + (f"\n{output}" if output else ""),
                where=where,
                hint="give the process or its container more memory, or compile fewer programs at once",
            )
        if signal_:
            text = f"the C compiler crashed by signal {signal_:d} ({signal_.name}) on generated code, {location}"
        else:
            text = f"the C compiler refused generated code, {location}"
        return errors.InternalError(f"{text}:\n{output}" if output else text, where=where)

    def kill(self) -> None:
        """End the programs and all that they started, and wait for them; one that is being started included."""
        self.stop()
        if self._start_lock.acquire(timeout=_KILL_TIMEOUT):
            self._start_lock.release()
        _running.discard(self)
        for process in self.processes:
            _close(process.stdin)
            _close(process.stdout)
            _wait_for(process, _KILL_TIMEOUT)

    def stop(self) -> None:
        """End the programs without waiting for them; `wait` raises CancelledError."""
        self.stopped = True
        for process in self.processes:
            if process.poll() is None:
                _kill_session(process)


def _cancelled_error(command: Sequence[str]) -> errors.CancelledError:
    return errors.CancelledError("the C compiler was killed because the process ends", where=" ".join(command))


def _failure_rank(code: int) -> int:
    """Rank an exit status: signals first, and SIGPIPE last, which follows from the failure of the reader."""
    return 2 if code == -signal.SIGPIPE else int(code > 0)


_running: WeakSet[Job] = WeakSet()


@call_at_end
def _stop_all() -> None:
    """Kill all compilers at the end of the process."""
    for job in list(_running):
        job.stop()


call_in_child(lambda: _running.clear())  # these processes belong to the parent


def _kill_session(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _wait_for(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait for a program for at most so many seconds; return whether it ended."""
    import select
    import subprocess

    if process.poll() is not None:
        return True
    try:
        pidfd = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # not Linux, or an old kernel
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(seconds, 0.0))
        return process.returncode is not None
    try:
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        events = poll.poll(_milliseconds(seconds))
    finally:
        os.close(pidfd)
    if events:
        process.wait()
    return bool(events)


def _write_all(pipe: int, data: bytes, seconds: float) -> bool:
    """Write to a pipe for at most so many seconds; return whether all bytes were written."""
    import select

    os.set_blocking(pipe, False)
    poll, end, rest = select.poll(), time.monotonic() + seconds, memoryview(data)
    poll.register(pipe, select.POLLOUT)
    while rest:
        try:
            rest = rest[os.write(pipe, rest) :]
        except BlockingIOError:
            if not poll.poll(_milliseconds(end - time.monotonic())):
                return False
    return True


def _milliseconds(seconds: float) -> int:
    return min(max(int(seconds * 1000), 0), 2**31 - 1)  # poll takes ms as a C int


_SIGNAL_MESSAGE = re.compile(
    r"(?P<by_gcc>[A-Z][\w ]*) signal terminated program|unable to execute command: (?P<by_clang>\w[\w ]*)"
)


def _signal(code: int, output: str) -> signal.Signals | None:
    """Return the signal that ended a program, or a program that it ran according to the driver's messages."""
    if code < 0:
        return signal.Signals(-code) if -code in set(signal.Signals) else None
    match = _SIGNAL_MESSAGE.search(output)
    if match is None:
        return None
    names = {signal.strsignal(s): s for s in signal.Signals}
    return names.get(match["by_gcc"] or match["by_clang"])


class Build:
    """One compilation: a context manager that kills all processes and removes the files at its end.

    When a compiler fails, the files stay, and the error names their folder; the newest such folders are kept.

    Parameters
    ----------
    tools : Toolchain
        Compiler and flags.
    limit : float, optional
        Seconds that each program may take; by default CYXLA_COMPILE_TIMEOUT.

    Attributes
    ----------
    seconds : dict of int to float
        Compile time by index of the unit; units taken from the cache have none.
    """

    def __init__(self, tools: Toolchain, limit: float | None = None) -> None:
        self.tools = tools
        self.limit: float = config.get("COMPILE_TIMEOUT") if limit is None else limit
        self.seconds: dict[int, float] = {}
        self._directory: Path | None = None
        self._jobs: list[Job] = []
        self._idle: list[Job] = []
        self._failed = False

    def __enter__(self) -> Build:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        for job in self._jobs:
            job.kill()
        if self._directory is not None and self._failed:
            _keep_failed(self._directory)
        elif self._directory is not None:
            _remove(self._directory)

    @property
    def directory(self) -> Path:
        """Directory of the files, made at its first use."""
        if self._directory is None:
            self._directory = _new_directory()
            (self._directory / MAIN).write_text(
                MAIN_TEXT, encoding="utf-8"
            )  # written once: a compiler may be reading it
        return self._directory

    def prepare(self, count: int = 1) -> None:
        """Start compilers ahead of time, so that `count` of them wait for their text."""
        while self.tools.compiler.steps is not None and len(self._idle) < count:
            self._idle.append(self._compiler(contract=False))

    def image(self, units: Sequence[Unit], cache: store.DiskCache | None = None) -> bytes:
        """Compile units and link them into the image of one shared object.

        Parameters
        ----------
        units : sequence of Unit
            Texts, compiled in parallel.
        cache : DiskCache, optional
            Cache of the objects of single units, if there are several units.

        Raises
        ------
        InternalError, ResourceExhaustedError, DeadlineExceededError
            The compiler refused the text, was killed, or took too long; the message names the folder of the text.
        CancelledError
            The process ends.
        """
        start = time.monotonic()
        try:
            image = self._image(units, cache if len(units) > 1 else None)
        except (errors.InternalError, errors.ResourceExhaustedError, errors.DeadlineExceededError):
            self._failed = True
            for k, unit in enumerate(units):
                (self.directory / f"unit{k}.c").write_text(unit.text, encoding="utf-8")
            raise
        _report_slow(time.monotonic() - start, units, self.seconds)
        return image

    def _image(self, units: Sequence[Unit], cache: store.DiskCache | None) -> bytes:
        if self.tools.compiler.steps is None and len(units) == 1:
            return self._compile_and_link(units[0])
        objects = [f"unit{k}.o" for k in range(len(units))]
        keys = [self.tools.object_key(unit) for unit in units] if cache is not None else []
        missing = [k for k in range(len(units)) if cache is None or not self._fetch(cache, keys[k], objects[k])]
        *groups, last = _batches(missing, min(os.cpu_count() or 1, MAX_JOBS)) if missing else [()]
        for group in groups:
            self._wait(self._compile({k: units[k] for k in group}))
        jobs = self._compile({k: units[k] for k in last})
        linker = self._linker(objects) if self.tools.compiler.steps is not None else None
        collect_while_idle()
        self._wait(jobs)
        if cache is not None:
            for k in missing:
                cache.put(keys[k], (self.directory / objects[k]).read_bytes())
        return self._link(linker or self._linker(objects), objects)

    def _fetch(self, cache: store.DiskCache, key: str, name: str) -> bool:
        """Copy an object from the cache; return whether it was there."""
        entry = cache.get(key)
        if entry is not None:
            (self.directory / name).write_bytes(entry.image())
        return entry is not None

    def _compile_and_link(self, unit: Unit) -> bytes:
        """Compile and link one unit by one run of the driver."""
        (self.directory / "unit0.c").write_text(unit.text, encoding="utf-8")
        inputs, flags = ["unit0.c"], self.tools.flags(unit.contract)
        return self._link(self._linker(inputs, flags), inputs, flags)

    def _compile(self, units: Mapping[int, Unit]) -> dict[int, Job]:
        """Start the compilation of units, by index."""
        if self.tools.compiler.steps is None:
            for k, unit in units.items():
                (self.directory / f"unit{k}.c").write_text(unit.text, encoding="utf-8")
            return {k: self._run(self.tools.unit_commands(k, unit.contract)[0]) for k, unit in units.items()}
        jobs = {}
        for k, unit in units.items():
            is_waiting = self._idle and not unit.contract
            jobs[k] = self._idle.pop(0) if is_waiting else self._compiler(contract=unit.contract)
            jobs[k].feed(f'#line 1 "unit{k}.c"\n{unit.text}')
        for k, job in jobs.items():
            job.start_rest(*self.tools.unit_commands(k, units[k].contract)[1:])
        return jobs

    def _wait(self, jobs: Mapping[int, Job]) -> None:
        for k, job in jobs.items():
            job.wait()
            self.seconds[k] = job.seconds

    def _compiler(self, *, contract: bool) -> Job:
        """Start a compiler that waits for the text of any unit."""
        return self._run(self.tools.unit_commands(0, contract)[0], reads_input=True, is_piped=True)

    def _linker(self, inputs: Sequence[str], flags: Sequence[str] = ()) -> Job:
        """Start the linker, which waits for its script, or the driver instead."""
        command = self.tools.link_command(inputs, LIBRARY, flags)
        return self._run(command, reads_input=self.tools.compiler.steps is not None)

    def _run(self, command: tuple[str, ...], *, reads_input: bool = False, is_piped: bool = False) -> Job:
        job = Job(self.directory, f"errors{len(self._jobs)}.txt", self.limit)
        self._jobs.append(job)  # before it starts, since a signal handler may raise at any time
        job.start(command, reads_input=reads_input, is_piped=is_piped)
        return job

    def _link(self, linker: Job, inputs: Sequence[str], flags: Sequence[str] = ()) -> bytes:
        image = self._run_linker(linker)
        if self.tools.helpers and re.search(_HELPER_NAME, image):
            image = self._run_linker(self._linker([*inputs, *self.tools.helpers], flags))
        return image

    def _run_linker(self, linker: Job) -> bytes:
        if self.tools.compiler.steps is not None:
            linker.feed(LINK_SCRIPT)
        linker.wait()
        return (self.directory / LIBRARY).read_bytes()


def compile_units(
    tools: Toolchain, units: Sequence[Unit], cache: store.DiskCache | None = None, limit: float | None = None
) -> bytes:
    """Compile units and link them into the image of one shared object; see `Build.image`."""
    with Build(tools, limit) as build:
        return build.image(units, cache)


def _close(stream: object) -> None:
    if stream is not None:
        with contextlib.suppress(BrokenPipeError):
            stream.close()  # type: ignore[attr-defined]


def _batches(items: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    for k in range(0, len(items), size):
        yield items[k : k + size]


def _new_directory() -> Path:
    """Create a private directory as `tempfile` does, without the milliseconds of importing it."""
    for parent in (*map(os.environ.get, ("TMPDIR", "TEMP", "TMP")), "/tmp", "/var/tmp", "."):
        while parent:
            path = Path(parent, f"{PREFIX}{os.urandom(6).hex()}")
            try:
                path.mkdir(mode=0o700)
            except FileExistsError:
                continue
            except OSError:
                break
            return path.absolute()
    raise errors.UnavailableError("no folder for temporary files can be written", hint="name one in TMPDIR")


def _failed_path(directory: Path) -> Path:
    """Return the path of a folder after its compilation has failed."""
    return directory.with_name(directory.name.replace(PREFIX, FAILED_PREFIX, 1))


def _keep_failed(directory: Path) -> None:
    """Keep the folder of a failed compilation and the newest earlier ones; remove those left by killed processes."""
    with contextlib.suppress(OSError):
        directory.rename(_failed_path(directory))
    folders = []
    with contextlib.suppress(OSError):
        for entry in os.scandir(directory.parent):
            if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                info = entry.stat(follow_symlinks=False)
                if info.st_uid == os.geteuid():
                    folders.append((info.st_mtime, entry.name.startswith(FAILED_PREFIX), Path(entry.path)))
    failed = sorted(path for path in folders if path[1])
    stale = [f for f in folders if not f[1] and _FOLDER.fullmatch(f[2].name) and time.time() - f[0] > STALE_AFTER]
    for *_, path in (*failed[:-MAX_FAILED], *stale):
        _remove(path)


_FOLDER = re.compile(PREFIX + "[0-9a-f]{12}")


def _remove(directory: Path) -> None:
    with contextlib.suppress(OSError):
        for entry in os.scandir(directory):
            os.unlink(entry)
        directory.rmdir()


def _report_slow(seconds: float, units: Sequence[Unit], seconds_of: Mapping[int, float]) -> None:
    if seconds > SLOW_COMPILE and seconds_of:
        import logging

        slowest = max(seconds_of, key=lambda k: seconds_of[k])
        logging.getLogger(__name__).warning(
            "compiling %d units, %d bytes of C, took %.1f s; the slowest took %.1f s and holds %s",
            len(units),
            sum(len(unit.text) for unit in units),
            seconds,
            seconds_of[slowest],
            "; ".join(_longest_kernels(units[slowest].text)) or "no kernels",
        )


def _longest_kernels(text: str, count: int = 3) -> list[str]:
    """Return the names and heading comments of the longest kernels of a text."""
    heads = [*re.finditer(r"^/\* (.*) \*/\n(?:static )?cyx_status (\w+)\(", text, re.MULTILINE)]
    ends = [*(head.start() for head in heads[1:]), len(text)]
    lengths = {f"{head[2]}, {head[1]}": end - head.start() for head, end in zip(heads, ends, strict=True)}
    return sorted(lengths, key=lambda name: -lengths[name])[:count]
