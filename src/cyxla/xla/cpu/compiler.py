"""From an HLO module to native code in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cyxla import config
from cyxla.errors import UnimplementedError
from cyxla.xla.cpu import cache as store
from cyxla.xla.cpu import kernels as _kernels  # registers the emitters
from cyxla.xla.cpu import native, toolchain
from cyxla.xla.cpu.buffers import Buffers, assign
from cyxla.xla.cpu.dump import Dump
from cyxla.xla.cpu.emit_module import Source, emit_module
from cyxla.xla.cpu.emitters import can_emit
from cyxla.xla.cpu.executable import CpuExecutable, Manifest
from cyxla.xla.cpu.nodes import Plan
from cyxla.xla.cpu.plan import CONTROL_FLOW, MAX_NESTING, plan
from cyxla.xla.cpu.values import passes_on
from cyxla.xla.hlo import Computation, HloModule, Instruction, verify
from cyxla.xla.passes import (
    Pass,
    dce,
    expand_batch_norm,
    expand_bitcast_convert,
    expand_collectives,
    expand_constant,
    expand_convolution,
    expand_dot,
    expand_layout,
    expand_narrow,
    expand_ragged_dot,
    expand_scan,
    expand_topk,
    inline,
    unshare,
)
from cyxla.xla.passes.clone import clone
from cyxla.xla.service import CompileOptions, Compiler

PASSES: tuple[tuple[str, Pass], ...] = (
    ("inline", inline.run),
    ("expand_constant", expand_constant.run),
    ("expand_collectives", expand_collectives.run),
    ("expand_batch_norm", expand_batch_norm.run),
    ("expand_layout", expand_layout.run),
    ("expand_bitcast_convert", expand_bitcast_convert.run),
    ("expand_narrow", expand_narrow.run),
    ("expand_scan", expand_scan.run),
    ("expand_ragged_dot", expand_ragged_dot.run),
    ("expand_convolution", expand_convolution.run),
    ("expand_dot", expand_dot.run),
    ("expand_topk", expand_topk.run),
    ("unshare", unshare.run),
    ("dce", dce.run),
)
#: What the planner takes care of without a kernel.
_NO_KERNEL = frozenset({"parameter", "constant", *CONTROL_FLOW})


class CpuCompiler(Compiler):
    """Generates C, has it compiled for this processor, and keeps the result on disk."""

    platform: ClassVar[str] = "cpu"

    def compile(self, module: HloModule, options: CompileOptions) -> CpuExecutable:
        """Compile a verified module, or find it compiled: then no pass runs and no C is written."""
        tools = toolchain.require()
        cache = store.open_cache() if options.cache else None
        dump = Dump(module)
        if cache is None:
            return self._build(module, options, dump, _Target(tools))
        target = _Target(tools, cache, tools.module_key(module.fingerprint(), options.key()))
        if dump.active:
            return self._build(module, options, dump, target)
        found = self._cached(module, options, target)
        if found is not None:
            return found
        with cache.building(target.key):
            return self._cached(module, options, target) or self._build(module, options, dump, target)

    def run_hlo_passes(self, module: HloModule, options: CompileOptions) -> HloModule:
        """Bring a copy of the module into the form that has kernels."""
        return self._run_passes(module, options, Dump(module))

    def run_backend(self, module: HloModule, options: CompileOptions) -> CpuExecutable:
        """Make native code of a module that went through `run_hlo_passes`."""
        target = _Target(toolchain.require(), store.open_cache() if options.cache else None)
        return self._finish(module, module, options, Dump(module), target)

    def emit(self, module: HloModule) -> tuple[Plan, Buffers, Source]:
        """Plan a module that went through `run_hlo_passes` and write its C.

        Raises
        ------
        UnimplementedError
            Names every opcode without native code.
        """
        check_supported(module)
        planned = plan(module.entry)
        buffers = assign(planned)
        return planned, buffers, emit_module(planned, buffers)

    def _run_passes(self, module: HloModule, options: CompileOptions, dump: Dump) -> HloModule:
        _check_interface(module)
        dump.hlo("input", module)
        twin = clone(module)
        checked = config.get("VERIFY")
        for name, run in PASSES:
            if name in options.disabled_passes:
                continue
            with dump.timed(name):
                changed = run(twin)
            if changed:
                dump.hlo(name, twin)
            if changed and checked:
                verify(twin)
        return twin

    def _cached(self, module: HloModule, options: CompileOptions, target: _Target) -> CpuExecutable | None:
        assert target.cache is not None
        found = target.cache.get_module(target.key)
        if found is None:
            return None
        manifest = Manifest.from_json(found.manifest)
        return CpuExecutable(module, native.load(found.path), manifest, found.constants, self, options)

    def _build(self, module: HloModule, options: CompileOptions, dump: Dump, target: _Target) -> CpuExecutable:
        return self._finish(module, self._run_passes(module, options, dump), options, dump, target)

    def _finish(
        self, module: HloModule, optimized: HloModule, options: CompileOptions, dump: Dump, target: _Target
    ) -> CpuExecutable:
        with dump.timed("emit"):
            planned, buffers, source = self.emit(optimized)
        dump.buffers(buffers)
        for number, text in enumerate(source.units):
            dump.text(f"unit{number}.c", text)
        manifest = Manifest.of(planned, buffers)
        constants = [c.array.reshape(-1).view(np.uint8).data for c in buffers.constants]
        with dump.timed("compile"):
            library = target.library(source, manifest, constants)
        executable = CpuExecutable(module, library, manifest, constants, self, options)
        if dump.active:
            dump.text("explain.txt", executable.explain() + "\n")
        return executable


@dataclass(frozen=True)
class _Target:
    """What to compile with, and where to keep the result: under no key, only the shared object is kept."""

    tools: toolchain.Toolchain
    cache: store.DiskCache | None = None
    key: str = ""

    def library(self, source: Source, manifest: Manifest, constants: Sequence[memoryview]) -> native.Library:
        """Compile, keep and load."""
        if self.cache is None or not self.key:
            return native.build_library(source.units, toolchain=self.tools, cache=self.cache)
        image = self.tools.compile([toolchain.Unit(text) for text in source.units], self.cache)
        return native.load(self.cache.put_module(self.key, manifest.to_json(), image, constants), image)


def check_supported(module: HloModule) -> None:
    """Find every instruction without native code.

    Raises
    ------
    UnimplementedError
        Names them all: opcode, types, why.
    """
    missing: dict[str, Instruction] = {}
    for computation, nesting in _scheduled(module):
        if nesting > MAX_NESTING:
            raise UnimplementedError(f"native code for loops and branches nested deeper than {MAX_NESTING}")
        for ins in computation.instructions:
            if ins.opcode in _NO_KERNEL or passes_on(ins):
                continue
            reason = "has a dynamic dimension" if ins.shape.is_dynamic else can_emit(ins)
            if reason is not None:
                missing.setdefault(f"{ins.opcode} of {_types(ins)} ({reason})", ins)
    if missing:
        raise UnimplementedError(
            f"no native code for {len(missing)} of the program's operations: {'; '.join(missing)}",
            where=repr(next(iter(missing.values()))),
            hint='run it with platform="interpreter"',
        )


def _types(ins: Instruction) -> str:
    leaves = [leaf.dtype.text for o in ins.operands for leaf in o.shape.leaves()]
    return ", ".join(dict.fromkeys(leaves)) or str(ins.shape)


def _scheduled(module: HloModule) -> Iterator[tuple[Computation, int]]:
    """The entry and the computations of loops and branches, and how many of those are around each."""
    stack, seen = [(module.entry, 0)], {module.entry}
    while stack:
        computation, nesting = stack.pop()
        yield computation, nesting
        for ins in computation.instructions:
            if ins.opcode in CONTROL_FLOW:
                new = [c for c in ins.called if c not in seen]
                seen.update(new)
                stack += [(c, nesting + 1) for c in new]


def _check_interface(module: HloModule) -> None:
    """Arguments and results have to be arrays of known sizes."""
    for ins in (*module.entry.parameters, module.entry.root):
        wrong = [leaf for leaf in ins.shape.leaves() if not leaf.is_array or leaf.is_dynamic]
        if wrong:
            raise UnimplementedError(f"{wrong[0]} as argument or result of native code", where=repr(ins))


_ = _kernels
