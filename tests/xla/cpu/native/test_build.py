"""Compilations: objects from the cache, and compilers that hang, die, or are no longer wanted."""

import itertools
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support.interrupts import Interrupted, interrupted_before

from cyxla import config, errors, interrupts
from cyxla.xla.cpu.native import build, compiler_search
from cyxla.xla.cpu.native.cache import DiskCache
from cyxla.xla.cpu.native.toolchain import INPUTS, OUTPUT, Compiler, Steps, Toolchain, Unit

pytestmark = pytest.mark.skipif(compiler_search.find() is None, reason="needs a C compiler")

HANG = "sleep 1000 & echo $! >> {pids}; echo $$ >> {pids}; wait"
TEXT = "int x;\n"
LONG = TEXT * 200_000  # more than a pipe holds
LIMIT = 0.2  # seconds


def test_a_waiting_compiler_leaves_a_cached_object_alone(tmp_path):
    tools, cache = compiler_search.require(), DiskCache(tmp_path)
    first, *others = [Unit(f"int f{k}(void) {{ return {k}; }}\n") for k in range(4)]
    assert build.compile_units(tools, [first, others[0]], cache)
    for other in others[1:]:
        with build.Build(tools) as begun:
            begun.prepare()
            jobs = list(begun._jobs)
            image = begun.image([first, other], cache)
        assert b"f0\0" in image
        assert all(process.returncode is not None for job in jobs for process in job.processes)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder for temporary files."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    return tmp_path


def program(place: Path, name: str, text: str) -> str:
    path = place / name
    path.write_text(f"#!/bin/sh\n{text.format(pids=place / 'pids')}\n")
    path.chmod(0o755)
    return str(path)


def chain(place: Path, **texts: str) -> Toolchain:
    """A toolchain of programs: a driver, or steps that do nothing unless given."""
    if "driver" in texts:
        return Toolchain(Compiler((program(place, "cc", texts["driver"]),), "gcc", ""), "")
    usual = {"compile": "cat", "assemble": "cat", "link": "cat"}
    made = {name: program(place, name, text) for name, text in {**usual, **texts}.items()}
    steps = Steps((made["compile"],), (made["assemble"],), (made["link"], INPUTS, OUTPUT))
    return Toolchain(Compiler(("/bin/false",), "gcc", "", steps), "")


def is_gone(pid: int) -> bool:
    """Whether a program has ended; one that nobody has waited for is there in name."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def await_end(pids: list[int]) -> None:
    """Wait until programs that were killed are gone."""
    for _ in range(6000):
        if all(map(is_gone, pids)):
            return
        threading.Event().wait(0.01)
    raise AssertionError(f"some of {pids} still run")


def pids_of(place: Path) -> list[int]:
    return [int(word) for word in (place / "pids").read_text().split()]


HANGING = {
    "driver": ({"driver": HANG}, [Unit(TEXT)]),
    "driver, several units": ({"driver": HANG}, [Unit(TEXT), Unit(TEXT + TEXT)]),
    "compiler": ({"compile": HANG}, [Unit(TEXT)]),
    "compiler that reads": ({"compile": f"cat > /dev/null; {HANG}"}, [Unit(TEXT)]),
    "compiler, a long text": ({"compile": HANG}, [Unit(LONG)]),
    "assembler": ({"assemble": HANG}, [Unit(TEXT)]),
    "linker": ({"link": HANG}, [Unit(TEXT)]),
}


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("texts, units", HANGING.values(), ids=HANGING)
@pytest.mark.parametrize("watched", [True, False], ids=["by file", "by looking"])
def test_a_program_that_never_ends_is_ended(texts, units, watched, place, monkeypatch):
    if not watched:  # as on systems that have no files for processes
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    tools = chain(place, **texts)
    with pytest.raises(errors.DeadlineExceededError, match=r"did not end within 0\.2 s") as caught:
        build.compile_units(tools, units, limit=LIMIT)
    assert "CYXLA_COMPILE_TIMEOUT" in caught.value.hint
    (kept,) = (place / "tmp").iterdir()
    assert str(kept) in str(caught.value)
    assert (kept / "unit0.c").read_text() == units[0].text
    if (place / "pids").exists():  # it may have been too slow to get so far
        await_end(pids_of(place))


def test_a_driver_that_links_once_more_keeps_the_flags(place):
    """Symbols of the run-time library are found only by the second link, from the C text."""
    real = compiler_search.require().compiler
    text = f'echo "$@" >> {{pids}}; exec {real.command[0]} "$@"'
    driver = Compiler((program(place, "cc", text),), "clang", "")
    tools = Toolchain(driver, compiler_search.require().isa)
    assert build.compile_units(tools, [Unit("int __divide(void); int f(void) { return __divide(); }", contract=True)])
    first, second = (place / "pids").read_text().splitlines()
    assert "-ffp-contract=fast" in first
    assert second.replace(" -lgcc", "", 1) == first


def test_the_limit_is_a_setting(monkeypatch):
    tools = compiler_search.require()
    assert build.Build(tools).limit == config.get("COMPILE_TIMEOUT") >= 60
    monkeypatch.setenv("CYXLA_COMPILE_TIMEOUT", "7")
    assert build.Build(tools).limit == 7
    monkeypatch.setenv("CYXLA_COMPILE_TIMEOUT", "0")
    with pytest.raises(errors.InvalidArgumentError, match="CYXLA_COMPILE_TIMEOUT"):
        build.Build(tools)


def test_compilers_have_sessions_of_their_own(place):
    with build.Build(compiler_search.require()) as begun:
        begun.prepare()
        processes = [process for job in begun._jobs for process in job.processes]
        assert all(os.getsid(p.pid) == p.pid != os.getsid(0) for p in processes)
        assert processes or compiler_search.require().compiler.steps is None


KILLED = {
    "compiler, out of memory": ({"compile": "kill -KILL $$"}, errors.ResourceExhaustedError, r"9 \(SIGKILL\).*memory"),
    "compiler, of its own": ({"compile": "kill -SEGV $$"}, errors.InternalError, r"signal 11 \(SIGSEGV\)"),
    "assembler": ({"assemble": "kill -KILL $$"}, errors.ResourceExhaustedError, r"SIGKILL"),
    "assembler, of a writing compiler": (
        {"compile": "exec yes", "assemble": "kill -BUS $$"},
        errors.InternalError,
        r"signal 7 \(SIGBUS\)",
    ),
    "linker": ({"link": "kill -KILL $$"}, errors.ResourceExhaustedError, r"SIGKILL"),
    "driver": ({"driver": "kill -KILL $$"}, errors.ResourceExhaustedError, r"SIGKILL"),
    "what gcc ran": (
        {"driver": "echo 'gcc: fatal error: Killed signal terminated program cc1' >&2; exit 1"},
        errors.ResourceExhaustedError,
        r"SIGKILL",
    ),
    "what gcc ran, of its own": (
        {"driver": "echo 'gcc: fatal error: Segmentation fault signal terminated program as' >&2; exit 1"},
        errors.InternalError,
        r"SIGSEGV",
    ),
    "what clang ran": (
        {"driver": "echo 'clang: error: unable to execute command: Killed' >&2; exit 1"},
        errors.ResourceExhaustedError,
        r"SIGKILL",
    ),
    "nothing": ({"driver": "echo 'error: expected ;' >&2; exit 1"}, errors.InternalError, r"refused .*expected ;"),
}


@pytest.mark.parametrize("texts, kind, says", KILLED.values(), ids=KILLED)
def test_programs_killed_by_a_signal_are_reported(texts, kind, says, place):
    with pytest.raises(kind, match=f"(?s){says}") as caught:
        build.compile_units(chain(place, **texts), [Unit(TEXT)])
    (kept,) = (place / "tmp").iterdir()
    assert str(kept) in str(caught.value)


def test_few_folders_of_failures_are_kept(place):
    tools, folder = chain(place, driver="exit 1"), place / "tmp"
    (folder / "cyxla-0123456789ab").mkdir()  # of a process that was killed
    (folder / "cyxla-0123456789ab" / "unit0.c").write_text(TEXT)
    os.utime(folder / "cyxla-0123456789ab", (0, 0))
    (folder / "cyxla-ba9876543210").mkdir()  # of one that works
    (folder / "cyxla-of-somebody").mkdir()
    os.utime(folder / "cyxla-of-somebody", (0, 0))
    said = []
    for k in range(build.MAX_FAILED + 3):
        with pytest.raises(errors.InternalError) as caught:
            build.compile_units(tools, [Unit(f"int x{k};")])
        said.append(str(caught.value))
        for path in folder.glob(build.FAILED_PREFIX + "*"):
            os.utime(path, (1e9 + k, 1e9 + k)) if (path / "unit0.c").read_text() == f"int x{k};" else None
    kept = {path.name for path in folder.iterdir()}
    assert {"cyxla-ba9876543210", "cyxla-of-somebody"} <= kept
    assert len(kept) == 2 + build.MAX_FAILED
    assert all(any(name in text for name in kept) for text in said[3:])


# --- interruptions ----------------------------------------------------------------------------------------------------


def children() -> set[int]:
    """Processes that this one has started and not waited for."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = path.read_text().rpartition(")")[2].split()[1]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(parent) == os.getpid():
            found.add(int(path.parent.name))
    return found


@pytest.mark.slow_after(1)
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="lists processes by /proc")
@pytest.mark.parametrize(
    "texts", [{"driver": "exec sleep 100"}, {"compile": "exec sleep 100"}], ids=["driver", "steps"]
)
def test_an_interruption_at_any_line_ends_every_program(texts, place):
    tools, before = chain(place, **texts), children()
    files = [build.__file__, subprocess.__file__, interrupts.__file__]
    for number in itertools.count(1):
        with pytest.raises(Interrupted) as caught, interrupted_before(number, files, until=build._wait_for):
            build.compile_units(tools, [Unit(TEXT)])
        left = children() - before
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        assert not left, f"interrupted before line {number}, in {caught.traceback[-2]}"
        if caught.traceback[-2].name == "_wait_for":
            break
    assert number > 20


# --- the end of the process -------------------------------------------------------------------------------------------

ENDING = """
import signal
import sys
from cyxla.xla.cpu.native import build
from cyxla.xla.cpu.native.build import compile_units
from cyxla.xla.cpu.native.toolchain import Compiler, Toolchain, Unit
from cyxla.xla.service import background

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background may have it ignored
background.EXIT_TIMEOUT = float(sys.argv[2])
tools = Toolchain(Compiler((sys.argv[1],), "gcc", ""), "")
job = background.submit(lambda: compile_units(tools, [Unit("int x;")]))
while not build._running:
    pass
input()
print("ends", flush=True)
"""


def ending(place: Path, patience: float) -> subprocess.Popen:
    """A process that has a compiler hang in the background, and ends once it gets a line."""
    command = [sys.executable, "-c", ENDING, program(place, "cc", HANG), str(patience)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, start_new_session=True)


def await_compiler(place: Path) -> None:
    while not (place / "pids").exists() or len(pids_of(place)) < 2:
        threading.Event().wait(0.01)


def test_the_end_of_the_process_waits_a_while_for_compilers(place):
    with ending(place, 0.1) as process:
        await_compiler(place)
        said, errors_said = process.communicate("\n", timeout=60)
    assert said == "ends\n"
    assert process.returncode == 0
    assert "the process ends" in errors_said
    await_end(pids_of(place))
    assert list((place / "tmp").iterdir()) == []


def test_the_wait_at_the_end_can_be_interrupted(place):
    with ending(place, 1000) as process:
        await_compiler(place)
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "ends\n"
        while process.poll() is None:  # the signal may come before the wait, or the handlers of the end, have begun
            process.send_signal(signal.SIGINT)
            threading.Event().wait(0.2)
        process.communicate(timeout=60)
    await_end(pids_of(place))


def test_a_forked_child_leaves_compilers_alone(place):
    tools = compiler_search.require()
    with build.Build(tools) as begun:
        begun.prepare()
        pid = os.fork()
        if pid == 0:
            build._stop_all()
            os._exit(0)
        os.waitpid(pid, 0)
        assert begun.image([Unit("int here;")])
