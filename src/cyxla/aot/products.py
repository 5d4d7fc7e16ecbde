"""Libraries of programs in a folder: C sources, objects, static and shared libraries."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cyxla.aot import build, fragments, sources, trials
from cyxla.aot.emission import default_levels
from cyxla.aot.program import Program
from cyxla.aot.programs import program
from cyxla.aot.wheel import write_wheel
from cyxla.errors import InvalidArgumentError

KINDS: Final = ("c", "object", "static", "shared", "wheel")


@dataclass(frozen=True)
class Product:
    """Library in a folder.

    Attributes
    ----------
    name : str
        Name of the library.
    kind : str
        Kind of the library, one of `KINDS`.
    directory : path
        Folder of the files.
    files : tuple of path
        All files of the library.
    weights_bytes : int
        Size of the constants that are part of it.
    """

    name: str
    kind: str
    directory: Path
    files: tuple[Path, ...]
    weights_bytes: int

    @property
    def header(self) -> Path:
        """Header to include."""
        return self.directory / f"{self.name}.h"

    @property
    def library(self) -> Path:
        """File to link."""
        pattern = {"object": "{}.o", "static": "lib{}.a", "shared": "lib{}.so"}.get(self.kind)
        if self.kind == "wheel":
            return self.files[0]
        if pattern is None:
            raise InvalidArgumentError(f"a product of kind {self.kind!r} has no single library")
        return self.directory / pattern.format(self.name)

    @property
    def nbytes(self) -> int:
        """Size of all files."""
        return sum(path.stat().st_size for path in self.files)

    def __str__(self) -> str:
        weights = f", {self.weights_bytes:,} of them weights" if self.weights_bytes else ""
        return (
            f"{self.name} ({self.kind}): {len(self.files)} files, {self.nbytes:,} bytes{weights}, in {self.directory}"
        )


def compile(
    obj: Any,
    *specs: Any,
    directory: str | os.PathLike[str],
    kind: str = "shared",
    name: str | None = None,
    machine: str = "",
    isa: Sequence[str] | None = None,
    threads: str | None = None,
    weights: str = "embed",
    cpp_class: str = "",
    program_shape: bool = False,
    test: bool = False,
    benchmark: bool = False,
    version: str = "0.1.0",
    **options: Any,
) -> Product:
    """Compile a program ahead of time into a library that needs neither cyxla nor Python.

    Parameters
    ----------
    obj : object
        Function written with NumPy, HLO, StableHLO or a graph, as of `programs.program`; or a sequence of programs
        made by it.
    *specs
        Shapes and dtypes of the arguments of a function.
    directory : path
        Folder for the files, which is made.
    kind : str
        ``"c"`` for C sources with fragments for make and CMake; ``"object"``, ``"static"`` or ``"shared"`` for a
        library with its header; ``"wheel"`` for a Python package.
    name : str, optional
        Name of the library, and of its program if there is one; an identifier of C.
    machine : str
        Machine of the library, such as ``"aarch64"``, for which ``aarch64-linux-gnu-gcc`` or ``zig cc`` compiles; by
        default this one.
        Name of the library, and of its program if there is one; an identifier of C. That of a wheel is the name of the
        package, whose functions keep theirs.
    isa : sequence of str, optional
        Processor levels that there is code for; see `sources.write`.
    threads : str, optional
        ``"none"`` or ``"pthreads"`` for a pool of threads, the default of wheels.
    weights : str
        ``"embed"``, or ``"file"`` for a file beside the library.
    cpp_class : str
        Name of a C++ class for the program, such as ``"ns::Model"``, in the header.
    program_shape : bool
        Whether the class tells the types of the program.
    test, benchmark : bool
        Whether to write C programs that call each program with recorded arguments, and compare or time it:
        ``NAME.test.c`` and ``NAME.benchmark.c``.
    version : str
        Version of a wheel.
    **options
        Options of `programs.program`.

    Returns
    -------
    Product
        Paths and sizes.

    Raises
    ------
    InvalidArgumentError
        An option has another value.
    UnimplementedError
        The program needs something that a library does not have, or there is no C compiler.
    """
    if kind not in KINDS:
        raise InvalidArgumentError(f"kind={kind!r}", hint=f"one of {', '.join(KINDS)}")
    if kind == "wheel":
        given = {"machine": machine, "cpp_class": cpp_class, "program_shape": program_shape, "test": test,
                 "benchmark": benchmark}  # fmt: skip
        if any(given.values()):
            raise InvalidArgumentError(f"{next(n for n, v in given.items() if v)}= is for C libraries, not for wheels")
        programs = _programs(obj, specs, None, options)
        return _make_wheel(programs, Path(directory), name, version, isa, threads, weights)
    isa = default_levels(machine) if isa is None else isa
    programs = _programs(obj, specs, name, options)
    threads = threads or "none"
    made = sources.library(programs, sources.Options(isa, threads, weights, name, cpp_class, program_shape))
    files = {**made.files, f"{made.name}.json": metadata(made, programs).encode()}
    in_file = f"{made.name}.weights" in files
    for p, temp_bytes in zip(programs, made.temp_bytes, strict=True) if test or benchmark else ():
        trial = trials.Trial(made.name, in_file, temp_bytes, test, benchmark)
        files.update(trials.write(p, trial))
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    paths = _MAKERS[kind](made.name, files, folder, threads, machine)
    return Product(made.name, kind, folder, tuple(paths), made.weights_bytes)


def _make_wheel(
    programs: Sequence[Program], folder: Path, name: str | None, version: str, isa: Sequence[str] | None,
    threads: str | None, weights: str,
) -> Product:  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    wheel = write_wheel(
        programs, folder, name=name, version=version, isa=isa, threads=threads or "pthreads", weights=weights
    )
    return Product(name or programs[0].name, "wheel", folder, (wheel.path,), wheel.weights_bytes)


def _programs(obj: Any, specs: Sequence[Any], name: str | None, options: Mapping[str, Any]) -> list[Program]:
    if isinstance(obj, (list, tuple)) and all(isinstance(p, Program) for p in obj):
        if specs or options:
            raise InvalidArgumentError("programs have their specs and options already")
        return list(obj)
    return [program(obj, *specs, name=name, **options)]


def metadata(made: sources.Library, programs: Sequence[Program]) -> str:
    """Return a description of the library for other tools, as JSON."""
    described = [
        {
            "name": p.name,
            "arguments": [_array(a) for a in p.arguments],
            "results": [_array(a) for a in p.results],
            "seed": p.options.seed,
        }
        for p in programs
    ]
    facts = {"library": made.name, "programs": described, "weights_bytes": made.weights_bytes}
    return json.dumps(facts, indent=2) + "\n"


def _array(array: Any) -> dict[str, Any]:
    return {"name": array.name, "dtype": array.dtype.name, "dims": list(array.dims)}


def is_interface(name: str) -> bool:
    """Return whether a file is needed beside a compiled library."""
    kept = (".h", ".json", ".weights", ".test.c", ".benchmark.c")
    return name.endswith(kept) and name not in ("cyxla/aot/runtime.h", "cyxla/abi.h")


def _make_sources(name: str, files: Mapping[str, bytes], folder: Path, threads: str, machine: str) -> list[Path]:
    added = fragments.write(name, files, threads=threads)
    return build.write_files({**files, **added}, folder)


def _make_library(kind: str) -> Any:
    def make(name: str, files: Mapping[str, bytes], folder: Path, threads: str, machine: str) -> list[Path]:
        with tempfile.TemporaryDirectory(prefix="cyxla-aot-") as scratch:
            compiled = {n: v for n, v in files.items() if not is_interface(n) or n.endswith(".h")}
            objects = build.objects(compiled, Path(scratch), machine)
            target = Path(scratch, {"object": "{}.o", "static": "lib{}.a", "shared": "lib{}.so"}[kind].format(name))
            if kind == "object":
                build.relocatable(objects, target, machine)
            elif kind == "static":
                build.archive(objects, target, machine)
            else:
                build.shared(objects, target, threads=threads, machine=machine)
            interface = {n: v for n, v in files.items() if is_interface(n)}
            return build.write_files({**interface, target.name: target.read_bytes()}, folder)

    return make


_MAKERS: Final = {"c": _make_sources, **{kind: _make_library(kind) for kind in ("object", "static", "shared")}}
