"""Generator of the C of the prebuilt functions; run by the build of the package."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from cyxla.records import dataclass
from cyxla.xla.cpu.c.isa_levels import COMPILE_FLAGS, OPTIMIZE_FLAGS, PREBUILT_LEVELS, Level, isa_flags
from cyxla.xla.cpu.c.prelude import prelude

#: Modules beside this one that write prebuilt functions; see `kernel.prebuilt_calls`.
MODULES: tuple[str, ...] = (
    "compaction", "convolution", "convolution_rows", "dot", "elementwise", "fft", "launches", "moves",
    "reductions", "sort",
)  # fmt: skip

#: Types of the result and of the arguments of a kernel.
KERNEL = ("cyx_status", "void *const *bufs, int64_t begin, int64_t end")
#: A kernel whose results are taken by functions: see `loops.epilogue.Epilogue.function`.
FOLLOWED = (KERNEL[0], KERNEL[1] + ", const void *const *after")

_NAMED = "#define CYX_PREBUILT(name) cyx_pre_##name##{suffix}\n"
_TABLE = """{abi}
{prototypes}
void *const cyx_prebuilt_functions[] = {{
{pointers}
}};
const char cyx_prebuilt_names[] =
{names};
const int64_t cyx_prebuilt_count = {count};
const char *const cyx_prebuilt_digest = "{digest}";
"""


# Nothing is thrown through these functions: their tables for unwinding would be 6 % of the module. Their addresses
# modulo a cache line do not depend on the functions before them: a topk took 1.17 times as long at others.
LIBRARY_FLAGS = ("-ffp-contract=off", "-fno-asynchronous-unwind-tables", "-falign-functions=64")


@dataclass(frozen=True)
class Source:
    """C file of the library.

    Attributes
    ----------
    name : str
        Name of the file.
    text : str
        Contents of the file.
    flags : tuple of str
        Compiler flags besides ``-c``, input and output.
    """

    name: str
    text: str
    flags: tuple[str, ...]


def sources(kind: str = "gcc", machine: str = "") -> list[Source]:
    """Return all C files: one for each module and ISA level, and the table.

    Parameters
    ----------
    kind : str
        Compiler, ``gcc`` or ``clang``.
    machine : str
        Target machine; by default the host.
    """
    flags = (*COMPILE_FLAGS, *OPTIMIZE_FLAGS[kind], *LIBRARY_FLAGS)
    levels = [Level(isa) for isa in levels_of(machine or platform.machine())]
    written, functions = [], []
    for module in MODULES:
        writer = import_module(f"cyxla.xla.cpu.prebuilt.{module}")
        for level in levels:
            body = writer.text(level)
            text = _NAMED.format(suffix=level.suffix) + prelude(body) + body
            written.append(Source(f"prebuilt_{module}{level.suffix}.c", text, (*flags, *isa_flags(level.isa))))
            functions += [(name + level.suffix, *kind) for name, kind in writer.FUNCTIONS.items()]
    return [*written, Source("table.c", _table(written, functions), flags)]


def levels_of(machine: str) -> Sequence[str]:
    """Return the ISA levels of a machine."""
    return PREBUILT_LEVELS if machine in ("x86_64", "AMD64") else ("",)


def _table(written: Sequence[Source], functions: Sequence[tuple[str, str, str]]) -> str:
    """Return the table of function pointers, and the type of each function for calls from generated code."""
    from cyxla.xla.cpu.native.cache import digest

    return _TABLE.format(
        abi=prelude(""),
        prototypes="\n".join(f"extern {result} cyx_pre_{name}({arguments});" for name, result, arguments in functions),
        pointers="\n".join(f"  (void *)cyx_pre_{name}," for name, *_ in functions),
        names="\n".join(f'  "{name}|{result}|{arguments}\\n"' for name, result, arguments in functions),
        count=len(functions),
        digest=digest(*(part for s in written for part in (s.name, s.text, *s.flags)))[:16],
    )


def write(directory: Path, kind: str = "gcc") -> list[tuple[Path, tuple[str, ...]]]:
    """Write files that do not exist or differ; return their paths and compiler flags."""
    directory.mkdir(parents=True, exist_ok=True)
    found = []
    for source in sources(kind):
        path = directory / source.name
        if not path.exists() or path.read_text(encoding="utf-8") != source.text:
            path.write_text(source.text, encoding="utf-8")
        found.append((path, source.flags))
    return found
