"""Probe of a C compiler: whether it works, its version, and the programs that its driver runs."""

from __future__ import annotations

import contextlib
import logging
import os
import shlex
import signal
import subprocess
from pathlib import Path
from typing import Any

from cyxla import errors
from cyxla.xla.cpu.native import compiler_check
from cyxla.xla.cpu.native.compiler_check import PROBE_TIMEOUT
from cyxla.xla.cpu.native.toolchain import INPUTS, LINK_FLAGS, MAIN, OUTPUT, Compiler, Steps, Toolchain, Unit, which

logger = logging.getLogger(__name__)

PROBE_TEXT = """typedef float v __attribute__((vector_size(32)));
__attribute__((visibility("default"))) int probe(float *x, int n) {
  v a = {0}; for (int k = 0; k < n; ++k) a += x[k]; x[0] = a[0]; return __builtin_popcount(n); }
"""


_FAILURES = (OSError, subprocess.SubprocessError, errors.InternalError, errors.ResourceExhaustedError)


def probe_compiler(command: tuple[str, ...], isa: str) -> dict[str, Any] | None:
    """Compile small texts and run them; return facts for the disk, or None if the compiler does not work.

    Parameters
    ----------
    command : tuple of str
        Command of the driver.
    isa : str
        Instruction-set level to compile for.
    """
    try:
        version = _run([*command, "--version"]).stdout
        kind = "clang" if "clang" in version else "gcc"
        compiler, workaround = _working(Compiler(command, kind, ""), isa)
    except _FAILURES as error:
        logger.debug("%s does not work: %s", " ".join(command), error)
        return None
    if workaround is None:
        logger.warning("%s miscompiles loops with all flags that were tried, and is not used", " ".join(command))
        return None
    if workaround:
        logger.info("%s miscompiles loops; it is run with %s", " ".join(command), " ".join(workaround))
    return {"version": version, "kind": kind, "steps": compiler.steps, "workaround": workaround}


def _working(compiler: Compiler, isa: str) -> tuple[Compiler, tuple[str, ...] | None]:
    """Return the compiler with its steps if texts compiled by them work, and the flags that it needs.

    The flags are None if it miscompiles loops with any.
    """
    if compiler.kind == "gcc":
        try:
            by_steps = compiler._replace(steps=_steps(compiler.command))
            workaround = _find_workaround(by_steps, isa)
            if workaround is not None:
                return by_steps, workaround
            reason: object = "its programs miscompile loops"
        except (ValueError, *_FAILURES) as error:
            reason = error
        logger.debug("%s is run by its driver: %s", " ".join(compiler.command), reason)
    return compiler, _find_workaround(compiler, isa)


def _find_workaround(compiler: Compiler, isa: str) -> tuple[str, ...] | None:
    """Return the flags that a compiler needs for correct loops, while a second unit tests vectors and contraction."""
    return compiler_check.find_workaround(Toolchain(compiler, isa), [Unit(PROBE_TEXT, contract=True)])


def _run(command: list[str], cwd: str | None = None) -> subprocess.CompletedProcess[str]:
    environment, pipe = {**os.environ, "LC_ALL": "C"}, subprocess.PIPE
    with subprocess.Popen(
        command, stdout=pipe, stderr=pipe, text=True, cwd=cwd, env=environment, start_new_session=True
    ) as process:
        try:
            output = process.communicate(timeout=PROBE_TIMEOUT)
        except BaseException:  # kill the programs that it started too, which hold the pipes open
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, *output)
    return subprocess.CompletedProcess(command, 0, *output)


def _steps(command: tuple[str, ...]) -> Steps:
    """Parse the steps from the commands that the driver prints.

    Raises
    ------
    ValueError
        The driver prints other commands than expected.
    """
    import tempfile

    with tempfile.TemporaryDirectory(prefix="cyxla-") as directory:
        (Path(directory) / "unit.o").write_bytes(b"")
        compiling = _printed_commands([*command, "-pipe", "-x", "c", "-", "-c", "-o", "unit.o"], directory)
        linking = _printed_commands([*command, "unit.o", "-o", "library.so", *LINK_FLAGS, "-lgcc"], directory)
    if len(compiling) != 2 or len(linking) != 1 or compiling[0][-2:] != ["-o", "-"] or compiling[1][-1] != "unit.o":
        raise ValueError(f"the driver would run {compiling} and {linking}")
    (compiler, assembler), (linker,) = compiling, linking
    text = compiler.index("-")
    return Steps(
        compile=(_program(command, compiler[0]), *compiler[1:text], MAIN, *compiler[text + 1 :]),
        assemble=(_program(command, assembler[0]), *assembler[1:-1]),
        link=(_program(command, "ld"), *_link_arguments(linker[1:])),
        helpers=(_run([*command, "-print-libgcc-file-name"]).stdout.strip(),),
    )


def _printed_commands(command: list[str], directory: str) -> list[list[str]]:
    """Return the commands that a driver prints: lines that begin with a blank, separated by bars within a pipeline."""
    output = _run([*command, "-###"], directory).stderr
    words = [word for line in output.splitlines() if line.startswith(" ") for word in (*shlex.split(line), "\n")]
    commands: list[list[str]] = [[]]
    for word in words:
        if word == "\n":
            commands += [[]] if commands[-1] else []
        elif word != "|":
            commands[-1].append(word)
    return [c for c in commands if c]


def _link_arguments(words: list[str]) -> list[str]:
    """Drop the arguments for link-time optimisation and libraries, which take longer to load than to link."""
    arguments: list[str] = []
    skip = False
    for word in words:
        if not skip and not word.startswith(("-plugin", "-L", "-lgcc", "--build-id")):
            arguments.append({"unit.o": INPUTS, "library.so": OUTPUT}.get(word, word))
        skip = word == "-plugin"
    if INPUTS not in arguments or OUTPUT not in arguments:
        raise ValueError(f"there are no file names in {words}")
    return [*arguments, "-z", "norelro", "-T", "/dev/stdin"]


def _program(command: tuple[str, ...], name: str) -> str:
    """Return the path of one of the driver's programs."""
    path = which(name if "/" in name else _run([*command, f"-print-prog-name={name}"]).stdout.strip())
    if path is None:
        raise ValueError(f"the driver finds no program {name}")
    return path
