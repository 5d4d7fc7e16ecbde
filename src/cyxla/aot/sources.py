"""Files of a library: C of its programs, headers, the parts that do not depend on a program."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from cyxla.aot import ctext, cxx, header, weights
from cyxla.aot.emission import Code, checked_levels, default_levels, emit_code
from cyxla.aot.program import NamedArray, Program, checked_name
from cyxla.aot.weights import Weights
from cyxla.errors import InvalidArgumentError
from cyxla.include_dir import get_include
from cyxla.types import from_numpy

#: Headers and C files that are copied into each library, under ``include/cyxla``.
_COPIED: Final = (
    "abi.h", "call.h", "aot/library.h", "aot/function.h", "aot/runtime.h", "aot/call.c", "aot/levels.c",
)  # fmt: skip
_THREADS: Final = {"none": "aot/serial.c", "pthreads": "aot/threads.c"}
_WEIGHTS: Final = ("embed", "file")

_RUNTIME = """/* Parts of the library that do not depend on its programs. */
#define _GNU_SOURCE
#define CYX_AOT(name) {name}_aot_##name
#define CYX_AOT_LEVELS {levels}
{defines}
#include "cyxla/aot/call.c"
#include "cyxla/aot/levels.c"
#include "cyxla/{threads}"
#include "cyxla/{constants}"
{load}"""
_LOAD = """
#include "{name}.h"

__attribute__((visibility("default"))) int32_t {name}_load(const char *path) {{ return CYX_AOT(load)(path); }}
"""
_PROGRAM = """/* Program {name}: its arrays, its code by level of the processor, its entry. */
#define CYX_AOT(name) {library}_aot_##name
#include "cyxla/aot/runtime.h"
#include "{library}.h"

{arrays}
static const cyx_aot_info cyx_info = {{
  CYX_AOT_VERSION, {num_args}, {num_results}, cyx_args, cyx_results, {temp_bytes}, "{build_id}"
}};

{codes}
static const cyx_aot_program cyx_program = {{&cyx_info, cyx_codes, {fails}, cyx_checks, {num_sizes}, cyx_sizes}};

__attribute__((visibility("default"))) const cyx_aot_info *{name}_info(void) {{ return &cyx_info; }}

__attribute__((visibility("default"))) int32_t {name}(const void *const *arguments, void *const *outputs,
                                                      const cyx_aot_run *run) {{
  return CYX_AOT(call)(&cyx_program, arguments, outputs, run);
}}
"""


class Options(NamedTuple):
    """Options of a library; see `write`."""

    isa: Sequence[str] | None = None
    threads: str = "none"
    weights: str = "embed"
    name: str | None = None
    cpp_class: str = ""
    program_shape: bool = False


class Library(NamedTuple):
    """Files of a library.

    Attributes
    ----------
    name : str
        Name of the library.
    files : dict of str to bytes
        Files by relative path.
    weights_bytes : int
        Size of the constants.
    temp_bytes : tuple of int
        Size of the temporaries of each program.
    """

    name: str
    files: dict[str, bytes]
    weights_bytes: int
    temp_bytes: tuple[int, ...]


def write(
    programs: Program | Sequence[Program],
    *,
    isa: Sequence[str] | None = None,
    threads: str = "none",
    weights: str = "embed",
    name: str | None = None,
    cpp_class: str = "",
    program_shape: bool = False,
) -> dict[str, bytes]:
    """Return the files of a library by relative path; equal programs and options give equal bytes.

    Parameters
    ----------
    programs : Program or sequence of Program
        Programs with different names.
    isa : sequence of str, optional
        Levels of processors that the library has code for, such as ``("x86-64-v3",)``. The best one that the processor
        has is chosen when the library runs. By default "x86-64-v1", "x86-64-v3" and "x86-64-v4" on x86-64.
    threads : str
        ``"none"``, or ``"pthreads"`` for a pool of threads. Either can use threads of the host.
    weights : str
        ``"embed"`` makes constants part of the library, ``"file"`` puts them into a file that it loads.
    name : str, optional
        Name of the library; by default that of the first program.
    cpp_class : str
        Name of a C++ class for the program, such as ``"ns::Model"``.
    program_shape : bool
        Whether the class tells the types of the program.

    Raises
    ------
    InvalidArgumentError
        There are no programs, two have one name, or an option has another value.
    UnimplementedError
        A program needs something that a library does not have.
    """
    options = Options(isa, threads, weights, name, cpp_class, program_shape)
    return library(programs, options).files


def library(programs: Program | Sequence[Program], options: Options) -> Library:
    """Return a library; see `write`."""
    programs = [programs] if isinstance(programs, Program) else list(programs)
    name = _check(programs, options)
    cxx_section = _cxx(programs, options.cpp_class, options.program_shape)
    levels = checked_levels(options.isa if options.isa is not None else default_levels())
    store = Weights()
    codes = [[emit_code(p, level, packs=len(levels) == 1) for level in levels] for p in programs]
    offsets = [[store.add_all([*c.bound, *c.constants]) for c in row] for row in codes]
    build_id = _build_id(programs, codes, store, (options.threads, options.weights))
    files = {
        f"{name}.h": header.text(name, programs, in_file=_is_file(store, options.weights), cxx=cxx_section).encode()
    }
    for program, row, places in zip(programs, codes, offsets, strict=True):
        files[f"{program.name}.c"] = _program(name, program, row, places, build_id).encode()
        for code in row:
            for k, unit in enumerate(code.units):
                files[unit_name(program.name, code.level, k)] = unit.encode()
    files[f"{name}.runtime.c"] = _runtime(name, levels, options.threads, store, options.weights).encode()
    files.update(_weights_files(name, store, options.weights))
    used = [*_COPIED, _THREADS[options.threads], _constants_file(store, options.weights)]
    files.update({f"cyxla/{path}": Path(get_include(), "cyxla", path).read_bytes() for path in used})
    return Library(name, files, store.nbytes, tuple([max(c.arena_bytes for c in row) for row in codes]))


def unit_name(program: str, level: str, number: int) -> str:
    """Return the name of the file of a unit; the level in it selects the compiler's flags."""
    return f"{program}.{level or 'any'}.{number}.c"


def _check(programs: Sequence[Program], options: Options) -> str:
    """Check the options; return the library's name."""
    if not programs:
        raise InvalidArgumentError("a library needs a program")
    names = [p.name for p in programs]
    if len(set(names)) < len(names):
        raise InvalidArgumentError(f"two programs of a library have one name: {', '.join(names)}", hint="give names")
    for option, value, known in (("threads", options.threads, _THREADS), ("weights", options.weights, _WEIGHTS)):
        if value not in known:
            raise InvalidArgumentError(f"{option}={value!r}", hint=f"one of {', '.join(known)}")
    name = checked_name(options.name) if options.name is not None else names[0]
    taken = [f"{n}_info" for n in names] + [f"{name}_load", f"{name}_data"]
    if set(taken) & set(names):
        raise InvalidArgumentError(
            f"the library needs the name {min(set(taken) & set(names))}", hint="rename the program"
        )
    return name


def _cxx(programs: Sequence[Program], cpp_class: str, program_shape: bool) -> str:
    if not cpp_class:
        return ""
    if len(programs) > 1:
        raise InvalidArgumentError("a C++ class is for one program, and the library has several")
    return cxx.section(programs[0], cpp_class, program_shape=program_shape)


def _is_file(store: Weights, weights: str) -> bool:
    return bool(store.nbytes) and weights == "file"


def _weights_files(name: str, store: Weights, where: str) -> dict[str, bytes]:
    return weights.files(name, store, where)


def _constants_file(store: Weights, weights: str) -> str:
    if not store.nbytes:
        return "aot/no_constants.c"
    return "aot/file.c" if weights == "file" else "aot/embedded.c"


def _runtime(name: str, levels: Sequence[str], threads: str, store: Weights, weights: str) -> str:
    numbers = ", ".join(level.rpartition("-v")[2] or "0" for level in levels)
    defines, load = "", ""
    if _is_file(store, weights):
        head = ", ".join(map(str, store.head()))
        defines = f"#define CYX_AOT_HEAD {head}\n#define CYX_AOT_BYTES {store.nbytes}\n"
        load = _LOAD.format(name=name)
    elif store.nbytes:
        defines = f"#define CYX_AOT_DATA {name}_data\n"
    return _RUNTIME.format(
        name=name, levels=numbers, defines=defines, threads=_THREADS[threads],
        constants=_constants_file(store, weights), load=load,
    )  # fmt: skip


def _program(
    library: str, program: Program, codes: Sequence[Code], offsets: Sequence[Sequence[int]], build_id: str
) -> str:
    entries = "".join(f"cyx_status {c.entry}(void *const *bufs, const cyx_ctx *ctx);\n" for c in codes)
    constants = "".join(
        f"static const int64_t cyx_constants{k}[] = {ctext.numbers(row)};\n" for k, row in enumerate(offsets)
    )
    rows = [
        f"{{{c.entry}, {len(c.bound)}, {len(c.constants)}, cyx_constants{k}, {c.arena_bytes}}}"
        for k, c in enumerate(codes)
    ]
    checks = [f"{{{c.code}, {ctext.string(c.text)}}}" for c in program.checks]
    sizes = [
        f"{{{k}, {a.bound}, {ctext.string(_wrong_size(a))}}}"
        for k, a in enumerate(program.arguments)
        if a.bound is not None
    ]
    hidden = f"#pragma GCC visibility push(hidden)\n{entries}#pragma GCC visibility pop\n"
    return _PROGRAM.format(
        name=program.name,
        library=library,
        arrays=_arrays(program.arguments, "cyx_args") + _arrays(program.results, "cyx_results"),
        num_args=len(program.arguments),
        num_results=len(program.results),
        temp_bytes=max(c.arena_bytes for c in codes),
        build_id=build_id,
        codes=hidden
        + constants
        + ctext.table(rows, "cyx_aot_code", "cyx_codes")
        + ctext.table(checks, "cyx_aot_check", "cyx_checks")
        + ctext.table(sizes, "cyx_aot_size", "cyx_sizes"),
        fails=int(bool(program.checks)),
        num_sizes=len(sizes),
    )


def _wrong_size(size: NamedArray) -> str:
    """Return the message for a size outside of its bound, with ``%n`` in place of the size."""
    name = size.name.replace("%", "%%")
    return f"{name} is %n, want 0 to {size.bound}: pass the number of elements that are present"


def _arrays(arrays: Sequence[NamedArray], name: str) -> str:
    rows = [
        f"{{{ctext.string(a.name)}, {from_numpy(a.dtype).value}, {len(a.dims)}, {ctext.dims(a.dims)}, {a.nbytes}}}"
        for a in arrays
    ]
    return ctext.table(rows, "cyx_aot_array", name)


def _build_id(programs: Sequence[Program], codes: Sequence[Sequence[Code]], store: Weights, options: Any) -> str:
    """Return a digest of everything that the library computes."""
    digest = hashlib.sha256(store.digest + repr(options).encode())
    for program, row in zip(programs, codes, strict=True):
        digest.update(repr((program.name, program.arguments, program.results, program.checks)).encode())
        for code in row:
            digest.update(repr((code.level, code.arena_bytes)).encode())
            for unit in code.units:
                digest.update(unit.encode())
    return digest.hexdigest()[:16]
