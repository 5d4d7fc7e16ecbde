"""A C compiler: its commands and flags for a processor, and the cache keys of its output.

`Toolchain.fingerprint` holds everything beside the C text that the machine code depends on, so that caches can be keyed
by it. `compiler_search` finds the compiler of this process, `build` runs it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import NamedTuple

from cyxla import config
from cyxla._native import kernels
from cyxla.xla.cpu.c.isa_levels import COMPILE_FLAGS, LEVEL_FLAGS, OPTIMIZE_FLAGS, VECTOR_BITS, isa_flags
from cyxla.xla.cpu.native import cache as store

ABI_VERSION = 1

LINK_FLAGS = ("-shared", "-nostdlib", "-nostartfiles")
#: Flags for the library of run-time helpers, by kind of compiler: always, and only if objects refer to a helper.
_RUNTIME = {"gcc": (("-lgcc",), ()), "clang": ((), ("-lgcc",))}

# Linker script of a shared object, for linkers that run without their driver: they start before the objects exist and
# wait for this script. It has two segments, read-only and writable, without a page between them.
LINK_SCRIPT = """SECTIONS {
  . = SIZEOF_HEADERS;
  .gnu.hash : { *(.gnu.hash) }
  .dynsym : { *(.dynsym) }
  .dynstr : { *(.dynstr) }
  .rela.dyn : { *(.rela.*) }
  .rela.plt : { *(.rela.plt) }
  .plt : { *(.plt .plt.*) }
  .text : { *(.text .text.*) }
  .rodata : { *(.rodata .rodata.*) }
  .eh_frame_hdr : { *(.eh_frame_hdr) }
  .eh_frame : { KEEP(*(.eh_frame)) }
  . = DATA_SEGMENT_ALIGN(CONSTANT(MAXPAGESIZE), CONSTANT(COMMONPAGESIZE));
  .init_array : { KEEP(*(.init_array .init_array.*)) }
  .fini_array : { KEEP(*(.fini_array .fini_array.*)) }
  .dynamic : { *(.dynamic) }
  .got : { *(.got .got.*) }
  .data : { *(.data .data.*) }
  .bss : { *(.bss .bss.* COMMON) }
  . = DATA_SEGMENT_END(.);
  /DISCARD/ : { *(.comment .note.*) }
}
"""


class Unit(NamedTuple):
    """One translation unit.

    Attributes
    ----------
    text : str
        Self-contained C.
    contract : bool
        Whether the compiler may contract multiplications and additions to FMA; for matrix products only.
    """

    text: str
    contract: bool = False


class Steps(NamedTuple):
    """The programs that the driver of a compiler runs, so that they can be run without it.

    Attributes
    ----------
    compile : tuple of str
        Command that compiles the C file `MAIN` to assembly on standard output; the flags follow.
    assemble : tuple of str
        Command that assembles standard input to an object, whose name follows.
    link : tuple of str
        Command that links objects, in the position of `INPUTS`, to a shared object, in that of `OUTPUT`, by the linker
        script on standard input.
    helpers : tuple of str
        Libraries of the compiler's run-time helpers, such as libgcc.
    """

    compile: tuple[str, ...]
    assemble: tuple[str, ...]
    link: tuple[str, ...]
    helpers: tuple[str, ...] = ()


MAIN, INPUTS, OUTPUT = "main.c", "<inputs>", "<output>"


class Compiler(NamedTuple):
    """A C compiler that has passed the probe.

    Attributes
    ----------
    command : tuple of str
        Command of the driver; the flags follow.
    kind : str
        ``gcc`` or ``clang``.
    identity : str
        Digest of path, size, time and version, which differs between any two compilers.
    steps : Steps, optional
        Programs that the driver runs, if known.
    workaround : tuple of str
        Flags without which the compiler miscompiles loops; see `native.compiler_check`.
    """

    command: tuple[str, ...]
    kind: str
    identity: str
    steps: Steps | None = None
    workaround: tuple[str, ...] = ()


class Toolchain(NamedTuple):
    """A compiler and the instruction-set level to compile for."""

    compiler: Compiler
    isa: str

    @property
    def vector_bits(self) -> int:
        """Width in bits of the vectors that the code should use."""
        return VECTOR_BITS.get(self.isa, 128)

    def flags(self, contract: bool = False) -> tuple[str, ...]:
        """Return the flags of a translation unit."""
        contraction = f"-ffp-contract={'fast' if contract else 'off'}"
        sanitizers = _sanitizer_flags(config.get("SANITIZE"))
        level, kind = config.get("OPT_LEVEL"), self.compiler.kind
        optimization = (f"-O{level}", *LEVEL_FLAGS[kind]) if level else OPTIMIZE_FLAGS[kind]
        return (
            *COMPILE_FLAGS,
            *optimization,
            *self.compiler.workaround,
            *isa_flags(self.isa),
            contraction,
            *sanitizers,
        )

    @property
    def link_flags(self) -> tuple[str, ...]:
        """Flags of the linker, which follow the objects."""
        return (*LINK_FLAGS, *_RUNTIME[self.compiler.kind][0])

    @property
    def helpers(self) -> tuple[str, ...]:
        """Libraries of run-time helpers, linked after the objects only if these refer to one."""
        if self.compiler.steps is not None:
            return self.compiler.steps.helpers
        return _RUNTIME[self.compiler.kind][1]

    def unit_commands(self, number: int, contract: bool) -> list[tuple[str, ...]]:
        """Return the commands that compile a unit: the driver on its file, or compiler and assembler of a pipeline."""
        flags, steps, target = self.flags(contract), self.compiler.steps, f"unit{number}.o"
        if steps is None:
            return [(*self.compiler.command, *flags, "-pipe", "-c", f"unit{number}.c", "-o", target)]
        return [(*steps.compile, *flags), (*steps.assemble, target)]

    def link_command(self, inputs: Sequence[str], output: str, flags: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the command that links objects to a shared object; with flags, the driver compiles C texts, too."""
        steps = self.compiler.steps
        if steps is None:
            return (*self.compiler.command, *flags, *inputs, "-o", output, *self.link_flags)
        arguments = {INPUTS: tuple(inputs), OUTPUT: (output,)}
        return tuple(argument for word in steps.link for argument in arguments.get(word, (word,)))

    @property
    def fingerprint(self) -> str:
        """Text of everything beside the C text that the machine code depends on."""
        link = [self.link_flags, LINK_SCRIPT, config.get("PREBUILT")]
        return json.dumps([self.compiler.identity, self.flags(), *link, ABI_VERSION])

    def key(self, units: Sequence[Unit]) -> str:
        """Return the cache key of the shared object of these units."""
        return store.digest("library", self.fingerprint, *(f"{int(unit.contract)}{unit.text}" for unit in units))

    def module_key(self, program: str, options: str) -> str:
        """Return the cache key of a compiled module, from its fingerprint before any pass and the options."""
        return store.digest("module", self.fingerprint, *_code(), program, options)

    def program_key(self, program: str | bytes, options: str) -> str:
        """Return the cache key of a program's alias, from the bytes that the user gave and the options."""
        return store.digest("program", self.fingerprint, *_code(), program, options)

    def object_key(self, unit: Unit) -> str:
        """Return the cache key of the object of one unit."""
        return store.digest("object", self.fingerprint, f"{int(unit.contract)}{unit.text}")


def _code() -> tuple[str, str]:
    """Return digests of the code that compiles programs: the sources, and the prebuilt functions.

    Recipes call prebuilt functions by number, and those on disk may have been replaced since this process loaded them.
    """
    return store.code_fingerprint(), kernels.digest


def which(name: str) -> str | None:
    """Find a program as `shutil.which` does, without the milliseconds of importing it."""
    folders = [""] if os.path.dirname(name) else os.environ.get("PATH", os.defpath).split(os.pathsep)
    for folder in folders:
        path = os.path.abspath(os.path.join(folder, name))
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def _sanitizer_flags(names: Sequence[str]) -> tuple[str, ...]:
    """Return the flags of sanitizers, whose library the process has loaded; a report ends the process."""
    return ("-O1", "-g", f"-fsanitize={','.join(names)}", "-fno-sanitize-recover=all") if names else ()
