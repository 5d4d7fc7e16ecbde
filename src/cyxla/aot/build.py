"""Objects, archives and shared objects of the files of a library."""

from __future__ import annotations

import importlib.util
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

from cyxla.errors import InternalError, UnimplementedError
from cyxla.xla.cpu.c.isa_levels import COMPILE_FLAGS, ISA_FEATURES, OPTIMIZE_FLAGS, isa_flags
from cyxla.xla.cpu.native import compiler_search
from cyxla.xla.cpu.native.split_units import max_compilers
from cyxla.xla.cpu.native.toolchain import Compiler, which

#: Flags of C that does not depend on a program.
SUPPORT_FLAGS: Final = ("-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra")
#: Flags of C of programs, without those of a level; sections let the linker drop what nobody calls.
CODE_FLAGS: Final = (
    "-w",
    "-ffp-contract=off",
    "-fno-asynchronous-unwind-tables",
    "-ffunction-sections",
    "-fdata-sections",
)


def flags_of(name: str, kind: str, workaround: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the compiler's flags for a file.

    Parameters
    ----------
    name : str
        Name of the file, as made by `sources.unit_name` for C of programs.
    kind : str
        Compiler, ``gcc`` or ``clang``.
    workaround : sequence of str
        Flags without which the compiler miscompiles loops.
    """
    level = level_of(name)
    if name.endswith(".S"):
        return ()
    if level is None:
        return SUPPORT_FLAGS
    return (*COMPILE_FLAGS, *OPTIMIZE_FLAGS[kind], *workaround, *isa_flags(level), *CODE_FLAGS)


def level_of(name: str) -> str | None:
    """Return the processor level that is part of the name of a file; None for other files."""
    parts = name.split(".")
    if len(parts) != 4 or (parts[1] != "any" and parts[1] not in ISA_FEATURES):
        return None
    return parts[1] if parts[1] != "any" else ""


def write_files(files: Mapping[str, bytes], directory: Path) -> list[Path]:
    """Write the files of a library; return their paths."""
    paths = []
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)
        paths.append(path)
    return paths


class Tools(NamedTuple):
    """Tools that make libraries for a machine.

    Attributes
    ----------
    compiler : Compiler
        C compiler.
    archiver : tuple of str
        Command that makes static libraries.
    """

    compiler: Compiler
    archiver: tuple[str, ...]


def tools(machine: str = "") -> Tools:
    """Return the tools for a machine, by default this one.

    For another machine they are ``MACHINE-linux-gnu-gcc``, or ``zig cc``.

    Raises
    ------
    UnimplementedError
        There is no compiler for it.
    """
    if not machine or machine == platform.machine():
        return Tools(compiler_search.require().compiler, ("ar",))
    gcc = which(f"{machine}-linux-gnu-gcc")
    if gcc is not None:
        return Tools(Compiler((gcc,), "gcc", ""), (f"{machine}-linux-gnu-ar",))
    zig = _zig()
    if zig is None:
        raise UnimplementedError(
            f"there is no C compiler for {machine}", hint=f"install {machine}-linux-gnu-gcc, or pip install ziglang"
        )
    return Tools(Compiler((*zig, "cc", "-target", f"{machine}-linux-gnu"), "clang", ""), (*zig, "ar"))


def _zig() -> tuple[str, ...] | None:
    path = which("zig")
    if path is not None:
        return (path,)
    return (sys.executable, "-m", "ziglang") if importlib.util.find_spec("ziglang") else None


def objects(files: Mapping[str, bytes], directory: Path, machine: str = "") -> list[Path]:
    """Write the files of a library into a folder and compile them.

    Parameters
    ----------
    files : mapping of str to bytes
        Files by relative path, from `sources.write`.
    directory : path
        Folder for files and objects.
    machine : str
        Machine to compile for; by default this one.

    Returns
    -------
    list of path
        The objects, in the order of the files.
    """
    tool = tools(machine).compiler
    directory = Path(directory)
    write_files(files, directory)
    names = [n for n in files if n.endswith((".c", ".S")) and "/" not in n]
    commands = [_compile_command(tool, n) for n in names]
    with ThreadPoolExecutor(max_compilers()) as pool:
        list(pool.map(lambda command: _run(command, directory), commands))
    return [directory / f"{n}.o" for n in names]


def archive(paths: Sequence[Path], target: Path, machine: str = "") -> Path:
    """Make a static library of objects, the same bytes each time."""
    program, *words = tools(machine).archiver
    if which(program) is None:
        raise UnimplementedError(f"static libraries need the program {program!r}", hint="install binutils")
    target.unlink(missing_ok=True)
    _run((program, *words, "rcsD", target.name, *(p.name for p in paths)), target.parent)
    return target


def relocatable(paths: Sequence[Path], target: Path, machine: str = "") -> Path:
    """Make one object of several."""
    names = [p.name for p in paths]
    _run((*tools(machine).compiler.command, "-r", "-nostdlib", *names, "-o", target.name), target.parent)
    return target


def shared(paths: Sequence[Path], target: Path, *, threads: str = "none", machine: str = "") -> Path:
    """Link a shared object, which needs the C library alone."""
    flags = ["-shared", "-Wl,--gc-sections", "-Wl,--no-undefined", "-Wl,-z,noexecstack", f"-Wl,-soname,{target.name}"]
    flags += ["-pthread"] if threads == "pthreads" else []
    names = [p.name for p in paths]
    _run((*tools(machine).compiler.command, *flags, *names, "-o", target.name, "-lm"), target.parent)
    return target


def _compile_command(tool: Compiler, name: str) -> tuple[str, ...]:
    flags = flags_of(name, tool.kind, tool.workaround)
    return (*tool.command, *flags, "-I.", "-Wa,-I.", "-c", name, "-o", f"{name}.o")


def _run(command: Sequence[str], directory: Path) -> None:
    """Run a tool in a folder.

    Raises
    ------
    InternalError
        It fails.
    """
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InternalError(f"{command[0]} failed", where=" ".join(command[-4:]), hint=done.stderr[-2000:])
