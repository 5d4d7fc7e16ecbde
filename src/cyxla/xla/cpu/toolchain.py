"""The C compiler: which one, for which processor, with which flags; C text in, a shared object out.

Looked for once, when first needed, in the order of `CANDIDATES`, and remembered on disk by the identity of the file
found. Everything that decides the machine code stands in `Toolchain.fingerprint`, so that caches can be keyed by it.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from cyxla import config, errors
from cyxla._native import _rt
from cyxla.include_dir import get_include
from cyxla.xla.cpu import cache as store

if TYPE_CHECKING:
    import subprocess

logger = logging.getLogger(__name__)

ABI_VERSION = 1
MAX_JOBS = 8
SLOW_COMPILE = 10.0  # seconds after which a compilation is worth a word

# Explicit features, never -march=native: what the code needs is then part of its cache key. gcc before 11 does not know
# the names x86-64-vN, hence the lists. Each level adds to the one before it.
ISA_FEATURES: dict[str, tuple[str, ...]] = {
    "x86-64-v1": (),
    "x86-64-v2": ("cx16", "popcnt", "sahf", "sse3", "ssse3", "sse4.1", "sse4.2"),
    "x86-64-v3": ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"),
    "x86-64-v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
}
VECTOR_BITS = {"x86-64-v1": 128, "x86-64-v2": 128, "x86-64-v3": 256, "x86-64-v4": 512}

# Strict floating point: only errno and the trap flags, which nobody reads, are given up. Contraction is up to the unit.
COMPILE_FLAGS = (
    "-std=gnu11", "-O2", "-ftree-vectorize", "-fPIC", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden",
    "-fno-semantic-interposition", "-fno-stack-protector", "-pipe", "-Werror=implicit-function-declaration",
    "-fno-strict-aliasing",  # one piece of the arena holds values of several types in turn
)  # fmt: skip
# Undefined symbols are all right: what the compiler itself calls (memcpy ..) is in every process already. Not so its
# helpers for half precision and wide integers where the processor lacks them. With gcc they cost nothing when unused;
# some clangs link or even build them whole, so those are asked only when an image calls for a helper.
LINK_FLAGS = ("-shared", "-nostdlib", "-nostartfiles")
HELPERS = ("-lgcc",)
HELPER_NAME = re.compile(rb"\0__\w+(?:ti\w?|[hsdx]f)\d\0")  # __divti3, __truncsfhf2

NO_COMPILER = "native code needs a C compiler and none was found"
HOW_TO_GET_ONE = "install gcc or clang, or `pip install cyxla[cc]`, or name one in CYXLA_CC"

PROBE_TEXT = """typedef float v __attribute__((vector_size(32)));
__attribute__((visibility("default"))) int probe(float *x, int n) {
  v a = {0}; for (int k = 0; k < n; ++k) a += x[k]; x[0] = a[0]; return __builtin_popcount(n); }
"""


@dataclass(frozen=True)
class Unit:
    """One translation unit.

    Attributes
    ----------
    text : str
        Self-contained C.
    contract : bool
        Whether the compiler may fuse multiplications and additions; for matrix products, where it is meant.
    """

    text: str
    contract: bool = False


@dataclass(frozen=True)
class Compiler:
    """A C compiler that was seen to work.

    Attributes
    ----------
    command : tuple of str
        What to run, before the flags.
    kind : str
        ``gcc`` or ``clang``.
    identity : str
        Path, size, time and version: differs whenever the compiler does.
    """

    command: tuple[str, ...]
    kind: str
    identity: str


@dataclass(frozen=True)
class Toolchain:
    """A compiler and the processor level to compile for."""

    compiler: Compiler
    isa: str

    @property
    def vector_bits(self) -> int:
        """Width of the vectors that the code should use."""
        return VECTOR_BITS.get(self.isa, 128)

    def flags(self, contract: bool = False) -> tuple[str, ...]:
        """List the flags of a translation unit."""
        return (*COMPILE_FLAGS, *_isa_flags(self.isa), f"-ffp-contract={'fast' if contract else 'off'}")

    @property
    def link_flags(self) -> tuple[str, ...]:
        """List what goes to the link, after the objects."""
        return (*LINK_FLAGS, *HELPERS) if self.compiler.kind == "gcc" else LINK_FLAGS

    @property
    def fingerprint(self) -> str:
        """Everything beside the C text that the machine code depends on."""
        return json.dumps([self.compiler.identity, self.flags(), self.link_flags, ABI_VERSION])

    def key(self, units: Sequence[Unit]) -> str:
        """Name the shared object of these units in a cache."""
        return store.digest("library", self.fingerprint, *(f"{int(unit.contract)}{unit.text}" for unit in units))

    def module_key(self, program: str, options: str) -> str:
        """Name what is made from a program, by its fingerprint before any pass and by the options, in a cache."""
        return store.digest("module", self.fingerprint, store.code_fingerprint(), program, options)

    def program_key(self, program: str | bytes, options: str) -> str:
        """Name the key of a program's module, by the bytes that the user gave."""
        return store.digest("program", self.fingerprint, store.code_fingerprint(), program, options)

    def compile(self, units: Sequence[Unit], cache: store.DiskCache | None = None) -> bytes:
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
        import shutil
        import tempfile

        start = time.monotonic()
        directory = Path(tempfile.mkdtemp(prefix="cyxla-"))
        keep = False
        try:
            image = self.compile_in(directory, units, cache)
        except errors.InternalError:
            keep = True
            raise
        finally:
            if not keep:
                shutil.rmtree(directory, ignore_errors=True)
        _report_slow(time.monotonic() - start, units)
        return image

    def compile_in(self, directory: Path, units: Sequence[Unit], cache: store.DiskCache | None = None) -> bytes:
        """Do so in a directory that stays: the texts, the objects and what the compiler said are left there."""
        if len(units) == 1:
            _write(directory / "unit0.c", units[0].text)
            return self._link(directory, *self.flags(units[0].contract), "unit0.c")
        objects = [f"unit{k}.o" for k in range(len(units))]
        keys = [store.digest("object", self.fingerprint, f"{int(unit.contract)}{unit.text}") for unit in units]
        missing = [k for k in range(len(units)) if not _fetch(cache, keys[k], directory / objects[k])]
        for k in missing:
            _write(directory / f"unit{k}.c", units[k].text)
        command = self.compiler.command
        _run(
            [(*command, *self.flags(units[k].contract), "-c", f"unit{k}.c", "-o", objects[k]) for k in missing],
            directory,
        )
        if cache is not None:
            for k in missing:
                cache.put(keys[k], (directory / objects[k]).read_bytes())
        return self._link(directory, *objects)

    def _link(self, directory: Path, *inputs: str) -> bytes:
        library = directory / "library.so"
        command = (*self.compiler.command, *inputs, "-o", library.name, *self.link_flags)
        _run([command], directory)
        if self.compiler.kind != "gcc" and HELPER_NAME.search(library.read_bytes()):
            _run([(*command, *HELPERS)], directory)
        return library.read_bytes()


def compile_c(text: str, *, contract: bool = False) -> bytes:
    """Compile one self-contained C text to the image of a shared object."""
    return require().compile([Unit(text, contract)])


def compile_units(units: Sequence[Unit | str], cache: store.DiskCache | None = None) -> bytes:
    """Compile C texts side by side and link them into the image of one shared object."""
    return require().compile([Unit(unit) if isinstance(unit, str) else unit for unit in units], cache)


def require() -> Toolchain:
    """Return the toolchain of this process.

    Raises
    ------
    UnimplementedError
        There is no C compiler.
    """
    found = find()
    if found is None:
        raise errors.UnimplementedError(NO_COMPILER, hint=HOW_TO_GET_ONE)
    return found


def find() -> Toolchain | None:
    """Return the toolchain of this process, or None when there is no working C compiler (or CYXLA_CC=none)."""
    compiler = find_compiler(config.get("CC"), os.environ.get("CC", ""))
    return Toolchain(compiler, isa_level()) if compiler else None


def isa_level() -> str:
    """Return the processor level to compile for: CYXLA_ISA, else what this processor has ('' on other than x86-64)."""
    detected = _rt.isa_level()
    wanted = config.get("ISA") or detected
    levels = list(ISA_FEATURES)
    if wanted == detected or (
        wanted in levels and detected in levels and levels.index(wanted) < levels.index(detected)
    ):
        return wanted
    raise errors.InvalidArgumentError(
        f"CYXLA_ISA={wanted}: this processor is {detected or 'not x86-64'}, known are {levels}"
    )


@cache
def abi_header() -> str:
    """Return the text of cyxla/abi.h, to paste on top of generated C."""
    return (Path(get_include()) / "cyxla" / "abi.h").read_text()


# --- the search -------------------------------------------------------------------------------------------------------


@cache
def find_compiler(cyxla_cc: str, cc: str) -> Compiler | None:
    """Return the first candidate that compiles a small text, given the values of CYXLA_CC and CC."""
    if cyxla_cc == "none":
        return None
    if cyxla_cc:
        import shlex

        found = _probe(tuple(shlex.split(cyxla_cc)))
        if found is None:
            raise errors.InvalidArgumentError(f"CYXLA_CC={cyxla_cc} is not a C compiler that works")
        return found
    for candidate in CANDIDATES:
        command = candidate(cc)
        found = _probe(command) if command else None
        if found:
            return found
    return None


def _ziglang(_: str) -> tuple[str, ...]:
    import importlib.util

    return (sys.executable, "-m", "ziglang", "cc") if importlib.util.find_spec("ziglang") else ()


CANDIDATES: tuple[Callable[[str], tuple[str, ...]], ...] = (
    lambda cc: tuple(cc.split()),
    lambda _: ("gcc",),
    lambda _: ("clang",),
    lambda _: ("cc",),
    _ziglang,
)


def _probe(command: tuple[str, ...]) -> Compiler | None:
    """Identify a compiler and try it, or recall from disk that this was done."""
    path = _which(command[0])
    if path is None:
        return None
    command = (path, *command[1:])
    stat = os.stat(os.path.realpath(path))
    identity = [list(command), os.path.realpath(path), stat.st_size, stat.st_mtime_ns, isa_level()]
    notes = store.Notes("compilers.json")
    version = notes.get(json.dumps(identity))
    if not isinstance(version, str):
        version = _try(command)
        if version is None:
            return None
        notes.put(json.dumps(identity), version)
    return Compiler(command, _kind(version), store.digest(json.dumps(identity), version))


def _which(name: str) -> str | None:
    """Find a program as `shutil.which` does, without the milliseconds of importing it."""
    folders = [""] if os.path.dirname(name) else os.environ.get("PATH", os.defpath).split(os.pathsep)
    for folder in folders:
        path = os.path.abspath(os.path.join(folder, name))
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def _kind(version: str) -> str:
    return "clang" if "clang" in version else "gcc"


def _try(command: tuple[str, ...]) -> str | None:
    """Compile a small text; return what the compiler calls itself, or None when it does not work."""
    import subprocess
    import tempfile

    try:
        version = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
        chain = Toolchain(Compiler(command, _kind(version), ""), isa_level())
        with tempfile.TemporaryDirectory(prefix="cyxla-") as directory:
            chain.compile_in(Path(directory), [Unit(PROBE_TEXT)])
    except (OSError, subprocess.SubprocessError, errors.InternalError) as error:
        logger.debug("%s does not work: %s", " ".join(command), error)
        return None
    return version


# --- running it -------------------------------------------------------------------------------------------------------


def _isa_flags(isa: str) -> tuple[str, ...]:
    levels = list(ISA_FEATURES)
    if isa not in levels:
        return ()
    features = [feature for level in levels[: levels.index(isa) + 1] for feature in ISA_FEATURES[level]]
    return (
        *(f"-m{feature}" for feature in features),
        f"-mprefer-vector-width={VECTOR_BITS[isa]}",
        "-fcf-protection=none",
    )


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _fetch(cache: store.DiskCache | None, key: str, path: Path) -> bool:
    entry = cache.get(key) if cache else None
    if entry is None:
        return False
    path.write_bytes(entry.image())
    return True


def _run(commands: Sequence[tuple[str, ...]], directory: Path) -> None:
    """Run compilers side by side; an exception, Ctrl-C included, ends them all before it goes on."""
    import subprocess
    from concurrent.futures import ThreadPoolExecutor

    running: list[subprocess.Popen[bytes]] = []
    lock = threading.Lock()
    stopped = False

    def start(k: int) -> subprocess.Popen[bytes] | None:
        with lock, open(directory / f"errors{k}.txt", "wb") as stderr:
            if stopped:
                return None
            # No shell; and names relative to the directory, so that its own name gets into no image.
            process = subprocess.Popen(
                commands[k], cwd=directory, stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr, env=_environment()
            )
            running.append(process)
            return process

    def job(k: int) -> None:
        process = start(k)
        if process is not None and process.wait() != 0:
            raise _refused(commands[k], directory, (directory / f"errors{k}.txt").read_text(errors="replace"))

    try:
        if len(commands) == 1:
            job(0)
        elif commands:
            with ThreadPoolExecutor(min(len(commands), os.cpu_count() or 1, MAX_JOBS)) as pool:
                try:
                    list(pool.map(job, range(len(commands))))
                except BaseException:
                    stopped = True
                    _kill(running)
                    raise
    finally:
        _kill(running)


def _kill(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.wait()


def _environment() -> dict[str, str]:
    return {**os.environ, "LC_ALL": "C"}  # messages in one language


def _refused(command: tuple[str, ...], directory: Path, said: str) -> errors.InternalError:
    return errors.InternalError(
        f"the C compiler refused generated code, kept in {directory}:\n{said.strip()[:4000]}", where=" ".join(command)
    )


def _report_slow(seconds: float, units: Sequence[Unit]) -> None:
    if seconds > SLOW_COMPILE:
        size = sum(len(unit.text) for unit in units)
        logger.warning("compiling %d units, %d bytes of C, took %.1f s", len(units), size, seconds)
