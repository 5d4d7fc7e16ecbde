"""C of a program for one processor level: the same as that of the compiler at run time, and the constants."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from cyxla.aot.program import Program
from cyxla.errors import InvalidArgumentError, UnimplementedError
from cyxla.xla.cpu.c.isa_levels import ISA_FEATURES, PREBUILT_LEVELS, Level
from cyxla.xla.cpu.c.prelude import abi
from cyxla.xla.cpu.c.target import writing_library
from cyxla.xla.cpu.compiler import CpuCompiler
from cyxla.xla.cpu.dump import Dump
from cyxla.xla.cpu.lowering import emit, run_passes, with_live_results
from cyxla.xla.cpu.native.library import ENTRY
from cyxla.xla.cpu.run.bind import split
from cyxla.xla.cpu.run.pack_weights import pack, pack_for_any_level
from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.hlo.ops.host import HOST_TRANSFERS
from cyxla.xla.service import CompileOptions, Executable

Array = np.ndarray[Any, Any]

_EXPORT: Final = '#define CYX_EXPORT __attribute__((visibility("default")))\n'
_LIBRARY: Final = "#define CYX_LIBRARY CYX_EXPORT const uint32_t cyx_library_version = CYX_ABI_VERSION;\n"
_KERNEL: Final = re.compile(r"\bk\d+(?:_\w+)?\b")


@dataclass(frozen=True)
class Code:
    """Code of a program for a processor level.

    Attributes
    ----------
    level : str
        Processor level; "" outside of x86-64.
    entry : str
        C name of the entry.
    units : tuple of str
        Self-contained C texts.
    bound, constants : tuple of array
        Bytes of the bound arguments, which follow the other arguments, and of the constants.
    arena_bytes : int
        Bytes of temporaries.
    """

    level: str
    entry: str
    units: tuple[str, ...]
    bound: tuple[Array, ...]
    constants: tuple[Array, ...]
    arena_bytes: int


def default_levels(machine: str = "") -> tuple[str, ...]:
    """Return the levels of a library for a machine, by default this one."""
    return PREBUILT_LEVELS if (machine or platform.machine()) in ("x86_64", "AMD64") else ("",)


def checked_levels(levels: Sequence[str]) -> tuple[str, ...]:
    """Return levels in ascending order.

    Raises
    ------
    InvalidArgumentError
        There are none, or a level is unknown.
    """
    known = ["", *ISA_FEATURES]
    unknown = [level for level in levels if level not in known]
    if isinstance(levels, str) or unknown or not levels:
        raise InvalidArgumentError(f"isa={levels!r}", hint=f"give a tuple of some of {', '.join(ISA_FEATURES)}")
    return tuple(sorted(set(levels), key=known.index))


def emit_code(program: Program, level: str, *, packs: bool = True) -> Code:
    """Write the C of a program.

    Parameters
    ----------
    program : Program
        Program.
    level : str
        Processor level.
    packs : bool
        Whether bound arguments are laid out for this level.

    Raises
    ------
    UnimplementedError
        Some operation has no native code, or calls a function that a library does not have.
    """
    prefix = f"{program.name}{Level(level).suffix}_"
    with writing_library(level):
        module, options, values = _with_bound(program, packs)
        optimized = run_passes(module, options, Dump())
        planned, buffers, source = emit(optimized, with_live_results(module, options))
    functions = planned.functions()
    if functions:
        _refuse(program, optimized, [f if isinstance(f, str) else "Python" for f in functions])
    return Code(
        level,
        prefix + ENTRY,
        tuple([_unit(text, prefix, is_alone=len(source.units) == 1) for text in source.units]),
        tuple(map(_bytes, values)),
        tuple([_bytes(c.array) for c in buffers.constants]),
        buffers.arena_bytes,
    )


def _with_bound(program: Program, packs: bool) -> tuple[HloModule, CompileOptions, list[Array]]:
    """Return the program that remains when arguments are bound, its options, and the values of its last parameters."""
    options = replace(program.options, donate=(), in_place=(), profile=False)
    if not program.bound:
        return program.module, options, []
    optimized = run_passes(program.module, options, Dump())
    layout = pack if packs else pack_for_any_level
    plan, computed = split(optimized, with_live_results(program.module, options), program.bound, _compile, layout)
    return plan.main, options, [*(program.bound[n] for n in plan.kept), *computed]


def _compile(module: HloModule, options: CompileOptions) -> Executable:
    """Compile a program that runs while arguments are bound, for this processor."""
    with writing_library(None):
        return CpuCompiler().compile(module, options)


def _bytes(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _refuse(program: Program, module: HloModule, functions: Sequence[str]) -> None:
    """Raise the error of a program that calls functions of this process."""
    instructions = [i for c in module.post_order() for i in c.instructions]
    calls = [i for i in instructions if i.opcode == "custom-call" or i.opcode in HOST_TRANSFERS]
    targets = ", ".join(dict.fromkeys(str(i.attrs.get("custom_call_target", i.opcode)) for i in calls))
    raise UnimplementedError(
        f"{program.name} calls {', '.join(dict.fromkeys(functions))} for the operations {targets}, which a library "
        "does not have",
        where=_place(calls[0]) if calls else "",
        hint="compute these outside of the program",
    )


def _place(ins: Instruction) -> str:
    """Return the user's line of an instruction if it is known, else its text."""
    facts = dict(ins.metadata)
    return f"{facts.get('source_file')}:{facts['source_line']}" if "source_line" in facts else repr(ins)


def _unit(text: str, prefix: str, *, is_alone: bool) -> str:
    """Return a unit with hidden symbols that have a prefix."""
    interface = abi()
    assert text.startswith(interface)
    assert interface.count(_EXPORT) == interface.count(_LIBRARY) == 1
    hidden = interface.replace(_EXPORT, '#define CYX_EXPORT __attribute__((visibility("hidden")))\n')
    body = text.removeprefix(interface)
    if not is_alone:  # kernels are called from other units
        body = _KERNEL.sub(lambda name: prefix + name[0], body)
    body = body.replace(f" {ENTRY}(", f" {prefix}{ENTRY}(")
    return hidden.replace(_LIBRARY, "#define CYX_LIBRARY\n") + body
