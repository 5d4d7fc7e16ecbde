"""Wheels of programs."""

from __future__ import annotations

import keyword
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from cyxla.aot import sources
from cyxla.aot.program import Program, identifier
from cyxla.aot.wheel import extension, package
from cyxla.aot.wheel.archive import archive, checked_version
from cyxla.aot.wheel.trees import signature
from cyxla.errors import InvalidArgumentError

_PREFIX: Final = "wheel_"  # of the C names, so that those of Python may be those of functions of C


class Wheel(NamedTuple):
    """File of a wheel.

    Attributes
    ----------
    path : path
        The file.
    weights_bytes : int
        Size of the constants in it.
    """

    path: Path
    weights_bytes: int


def write_wheel(
    programs: Program | Sequence[Program],
    directory: Path,
    *,
    name: str | None = None,
    version: str = "0.1.0",
    isa: Sequence[str] | None = None,
    threads: str = "pthreads",
    weights: str = "embed",
) -> Wheel:
    """Write a wheel with a module of functions that need NumPy alone; equal programs and options give equal bytes.

    Parameters
    ----------
    programs : Program or sequence of Program
        Functions of the module, by name.
    directory : path
        Existing folder for the file.
    name : str, optional
        Name of the package; by default that of the first program.
    version : str
        Version of the package.
    isa : sequence of str, optional
        Processor levels; see `cyxla.aot.sources.write`.
    threads : str
        ``"pthreads"`` for threads of the module's own, as jitted functions have them, or ``"none"``.
    weights : str
        ``"embed"`` makes weights part of the extension module, ``"file"`` puts them beside it.

    Returns
    -------
    Wheel
        Path and size of weights.

    Raises
    ------
    InvalidArgumentError
        A name is a keyword of Python, or an option has another value.
    UnimplementedError
        A program needs something that a wheel does not have, or there is no C compiler.
    """
    programs = [programs] if isinstance(programs, Program) else list(programs)
    programs = [replace(p, name=_python_name(p, name)) for p in programs]
    name = _checked_names([p.name for p in programs], name)
    checked_version(version)
    library = _PREFIX + name
    described = [(p, signature(p)) for p in programs]
    in_c = [(replace(p, name=_PREFIX + p.name), s, p.name) for p, s in described]
    made = sources.library([p for p, _, _ in in_c], sources.Options(isa, threads, weights, library))
    files = made.files
    file = f"{library}.weights" if f"{library}.weights" in files else ""
    python = package.files(name, described, version=version, weights=file, threads=threads != "none")
    with tempfile.TemporaryDirectory(prefix="cyxla-aot-") as scratch:
        module = extension.compile_extension(name, library, in_c, files, Path(scratch), threads=threads)
    contents = {**python, extension.file_name(): module, **({file: files[file]} if file else {})}
    wheel, data = archive(
        name, version, f"{extension.python_tag()}-{extension.platform_tag(module)}",
        {f"{name}/{path}": content for path, content in contents.items()},
        summary=package.summary_of(name, described),
        requires=_requirements(package.uses_ml_dtypes(described)),
        requires_python=">=3.11",
    )  # fmt: skip
    target = Path(directory, wheel)
    target.write_bytes(data)
    return Wheel(target, made.weights_bytes)


def _python_name(program: Program, package: str | None) -> str:
    """Return the name of a function: its own one, which C may not have; that of the package for a lambda."""
    own = program.module.name
    if program.name == identifier(own) and own.isidentifier() and not keyword.iskeyword(own):
        return own
    return package if package is not None and keyword.iskeyword(program.name) else program.name


def _checked_names(programs: Sequence[str], name: str | None) -> str:
    if not programs:
        raise InvalidArgumentError("a wheel needs a program")
    chosen = programs[0] if name is None else name
    if len(set(programs)) < len(programs):
        raise InvalidArgumentError(f"two functions of a wheel have one name: {', '.join(programs)}", hint="give names")
    for text in (*programs, chosen):
        if keyword.iskeyword(text) or not text.isidentifier() or text.startswith("_"):
            raise InvalidArgumentError(f"{text!r} is not a name of a Python function or package", hint="give name=")
    return chosen


def _requirements(ml_dtypes: bool) -> list[str]:
    """Return the packages that a wheel needs; a module made with NumPy 2 runs with NumPy 1 as well."""
    newest = "" if int(np.__version__.partition(".")[0]) >= 2 else ",<2"
    return [f"numpy>=1.23{newest}", *(["ml_dtypes"] if ml_dtypes else [])]
