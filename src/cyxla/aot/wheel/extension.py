"""The extension module of a wheel: C of the programs, and the part between them and Python."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from cyxla.aot import build, ctext
from cyxla.aot.program import Program
from cyxla.aot.wheel import descriptions
from cyxla.aot.wheel.package import EXTENSION
from cyxla.aot.wheel.trees import Signature
from cyxla.errors import InternalError, UnimplementedError
from cyxla.include_dir import get_include
from cyxla.xla.hlo import HloModule
from cyxla.xla.passes.simplify.trip_count import known_trip_count
from cyxla.xla.service.analysis import cost_analysis

_PARTS: Final = ("function.h", "arguments.c", "results.c", "runs.c", "module.c")
_LIMITED_API: Final = (3, 11)
_RELEASE_GIL_ABOVE: Final = 2000.0  # ns of work; reacquiring the lock may wait for another thread
_INTERRUPTIBLE_ABOVE: Final = 1e8  # ns
_NS_OF_OPERATION: Final = 5.0  # an upper bound: exponentials take that long
_NS_OF_BYTE: Final = 0.25

_MODULE: Final = """/* Functions of the Python module {package}.{extension}. */
#define _GNU_SOURCE
{limited}#define CYX_AOT_MODULE {module}
#define CYX_AOT_INIT PyInit_{extension}
{load}#define CYX_AOT_FUNCTIONS(X) \\
{functions}

#include "{library}.h"
#include "cyxla/aot/python/arguments.c"
#include "cyxla/aot/python/results.c"
#include "cyxla/aot/python/runs.c"
#include "cyxla/aot/python/module.c"
"""
_EXPORTS: Final = f"{{ global: PyInit_{EXTENSION}; local: *; }};\n"


def is_limited() -> bool:
    """Return True if one extension module serves this and all later versions of Python."""
    return sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")


def file_name() -> str:
    """Return the name of the extension module's file."""
    suffix = ".abi3.so" if is_limited() else str(sysconfig.get_config_var("EXT_SUFFIX"))
    return EXTENSION + suffix


def python_tag() -> str:
    """Return the tag of versions and of the binary interface of Python, such as ``cp311-abi3``."""
    if is_limited():
        return "cp{}{}-abi3".format(*_LIMITED_API)
    version = "cp{}{}".format(*sys.version_info[:2])
    return f"{version}-{version}{'t' if sysconfig.get_config_var('Py_GIL_DISABLED') else ''}"


def platform_tag(extension: bytes) -> str:
    """Return the tag of systems that an extension module runs on, by the symbols of glibc that it needs."""
    machine = sysconfig.get_platform().rpartition("-")[2]
    versions = [int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", _dynamic_strings(extension))]
    return f"manylinux_2_{max(17, *versions)}_{machine}" if versions else f"linux_{machine}"


def _dynamic_strings(data: bytes) -> bytes:
    """Return the strings of a 64-bit ELF file that its loader reads."""
    start, size, count, names = *struct.unpack_from("<Q", data, 40), *struct.unpack_from("<HHH", data, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, start + k * size) for k in range(count)]
    table = headers[names][4]
    for name, _, _, _, offset, length, *_ in headers:
        if data[table + name :].startswith(b".dynstr\0"):
            return data[offset : offset + length]
    return b""


def compile_extension(
    package: str, library: str, programs: Sequence[tuple[Program, Signature, str]], files: Mapping[str, bytes],
    directory: Path, *, threads: str,
) -> bytes:  # fmt: skip
    """Compile the extension module of a package.

    Parameters
    ----------
    package, library : str
        Names of the package, and of the library in C.
    programs : sequence of (Program, Signature, str)
        Programs of the library with their names in Python.
    files : mapping of str to bytes
        Files of the library, of `cyxla.aot.sources.write`.
    directory : path
        Scratch folder.
    threads : str
        Threads of the library.

    Returns
    -------
    bytes
        The shared object.
    """
    headers = sysconfig.get_path("include")
    if not Path(headers, "Python.h").is_file():
        raise UnimplementedError("wheels need the headers of Python", hint="install python3-dev, or use another Python")
    tool = build.tools().compiler
    source = f"{library}_python.c"
    parts = {f"cyxla/aot/python/{p}": Path(get_include(), "cyxla/aot/python", p).read_bytes() for p in _PARTS}
    text = _module(package, library, programs, has_weights=f"{library}.weights" in files)
    objects = build.objects(files, directory)
    build.write_files({**parts, source: text.encode(), "exports.map": _EXPORTS.encode()}, directory)
    _run((*tool.command, *build.SUPPORT_FLAGS, "-I.", f"-I{headers}", f"-I{np.get_include()}",
          "-c", source, "-o", f"{source}.o"), directory)  # fmt: skip
    flags = ["-shared", "-Wl,--gc-sections", "-Wl,-z,noexecstack", "-Wl,--version-script=exports.map", "-Wl,-s"]
    flags += ["-Wl,--build-id=none", "-pthread" if threads == "pthreads" else "-Wl,-O1"]
    names = [path.name for path in objects]
    _run((*tool.command, *flags, *names, f"{source}.o", "-o", file_name(), "-lm"), directory)
    return (directory / file_name()).read_bytes()


def _module(
    package: str, library: str, programs: Sequence[tuple[Program, Signature, str]], *, has_weights: bool
) -> str:
    """Return the C text of the functions of a module."""
    rows = [
        f"  X({k}, {ctext.string(name)}, {p.name}, {ctext.string(_text(p, s, name))}, {run_length(p.module)})"
        for k, (p, s, name) in enumerate(programs)
    ]
    version = "#define Py_LIMITED_API 0x{:02x}{:02x}0000\n".format(*_LIMITED_API)
    return _MODULE.format(
        package=package,
        extension=EXTENSION,
        limited=version if is_limited() else "",
        module=ctext.string(f"{package}.{EXTENSION}"),
        load=f"#define CYX_AOT_LOAD {library}_load\n" if has_weights else "",
        functions=" \\\n".join(rows),
        library=library,
    )


def _text(program: Program, signature: Signature, name: str) -> str:
    """Return the signature and the docstring of a function, in the form that `inspect` reads."""
    out = [] if "out" in signature.names else ["*", "out=None"]
    parameters = ", ".join(["$module", *signature.names, *out])
    return f"{name}({parameters})\n--\n\n{descriptions.docstring(program, signature)}"


def run_length(module: HloModule) -> int:
    """Return how long a call may take, by bounds: 0 for a moment, 1 if other threads of Python should run meanwhile.

    2 is so long that a user may want to interrupt it.
    """
    cost = cost_analysis(module)
    nanoseconds = _NS_OF_OPERATION * cost["flops"] + _NS_OF_BYTE * cost["bytes accessed"]
    instructions = [i for c in module.post_order() for i in c.instructions]
    if nanoseconds > _INTERRUPTIBLE_ABOVE or any(
        i.opcode == "while" and known_trip_count(i) is None for i in instructions
    ):
        return 2
    is_counted = all(i.opcode not in ("custom-call", "sort") for i in instructions)
    return int(nanoseconds > _RELEASE_GIL_ABOVE or not is_counted)


def _run(command: Sequence[Any], directory: Path) -> None:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InternalError(f"{command[0]} failed", where=" ".join(command[-4:]), hint=done.stderr[:2000])
