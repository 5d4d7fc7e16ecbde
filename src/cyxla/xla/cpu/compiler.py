"""Compiler of platform cpu: HLO to C, to machine code, to a call.

The modules that look up a program in the disk cache are imported with this one; those that compile, when needed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from cyxla import config
from cyxla.xla.cpu.kernel import machine
from cyxla.xla.cpu.native import cache as store
from cyxla.xla.cpu.native import compiler_search
from cyxla.xla.cpu.native import library as native
from cyxla.xla.cpu.native.toolchain import Toolchain, Unit
from cyxla.xla.cpu.run.executable import CpuExecutable, Manifest, Tuned
from cyxla.xla.service import CompileOptions, Compiler, Executable
from cyxla.xla.service.donation import resolve_donation

if TYPE_CHECKING:
    from cyxla.types import Shape
    from cyxla.xla.cpu.dump import Dump
    from cyxla.xla.cpu.entry.module import Source
    from cyxla.xla.cpu.memory.buffers import Buffers
    from cyxla.xla.cpu.native.build import Build
    from cyxla.xla.cpu.plan.nodes import Plan
    from cyxla.xla.cpu.prebuilt.program import PrebuiltExecutable
    from cyxla.xla.hlo import HloModule, Instruction


# Limits of programs that prebuilt functions run while they are compiled: ns of a call, and instructions.
MAX_PREBUILT_NS, MAX_PREBUILT_INSTRUCTIONS = machine.UNINTERRUPTED_NS, 1000
UNIT_INSTRUCTIONS = 30  # instructions whose C almost always fills a unit
SHORT_PROGRAM = 4_000  # characters up to which a program is read before the C compiler is started
# Opcodes that prebuilt functions usually compute: a program without others most likely needs no C compiler.
PREBUILT_OPCODES = frozenset({"dot", "convolution", "fft", "sort", "topk"})
_FREE_OPCODES = frozenset({"parameter", "constant", "iota", "tuple", "get-tuple-element", "bitcast", "call"})


class CpuCompiler(Compiler):
    """Compiler that generates C, compiles it for this processor, and caches the result on disk."""

    platform: ClassVar[str] = "cpu"

    @property
    def generates_code(self) -> bool:
        """True if there is a C compiler, or none was looked for."""
        return not compiler_search.is_known() or compiler_search.find() is not None

    def prepare(self) -> None:
        """Begin to look for the C compiler, unless one is known."""
        if config.get("TIER") != "kernels":
            compiler_search.find_in_background()

    def whole_arrays(
        self, module: HloModule, live_results: Sequence[tuple[int, int, int]], is_counted: Callable[[Shape], bool]
    ) -> list[Shape]:
        """Return the shapes of arrays that programs compute up to their bounds, whatever their sizes at run time."""
        from cyxla.xla.cpu.plan.whole_arrays import whole_arrays

        return whole_arrays(module.entry, live_results, is_counted)

    def compile(self, module: HloModule, options: CompileOptions) -> Executable:
        """Compile a verified module; on a cache hit, no pass runs and no C is generated.

        Without a C compiler, the executable evaluates the module, unless all its kernels are prebuilt.
        """
        return self._compile_keyed(module, options, module.fingerprint)

    def _compile_keyed(self, module: HloModule, options: CompileOptions, fingerprint: Callable[[], str]) -> Executable:
        """Compile a verified module whose fingerprint may be known."""
        if options.disabled_passes:
            _check_names(options)
        options = _resolve_donated(options, module)
        tools = compiler_search.find()
        if tools is None:
            return _uncompiled(module, options)
        with _begin(tools) as build:
            return self._compile(module, options, _target(build, options, fingerprint))

    def compile_tiered(
        self, module: HloModule, options: CompileOptions
    ) -> tuple[Executable, Callable[[], Executable] | None]:
        """Compile a verified module, or return an executable of prebuilt functions with a function that compiles."""
        tier = config.get("TIER")
        long = len(module.entry.instructions) > MAX_PREBUILT_INSTRUCTIONS
        if not self.generates_code:
            if options.disabled_passes:
                _check_names(options)
            return _uncompiled(module, _resolve_donated(options, module), warn=False), None
        if tier == "native" or long or config.get("DUMP"):
            return self.compile(module, options), None
        fingerprint = functools.cache(module.fingerprint)
        disk = store.open_cache() if options.cache else None
        if disk is not None and compiler_search.is_known() and tier != "kernels":
            tools = compiler_search.find()
            key = tools.module_key(fingerprint(), _key(options)) if tools is not None else ""
            executable = _cached(module, options, disk, key)
            if executable is not None:
                return executable, None
        prebuilt = _prebuilt(module, options)
        if prebuilt is None:
            return self._compile_keyed(module, options, fingerprint), None
        return prebuilt, None if tier == "kernels" else partial(self.compile, module, options)

    def compile_source(
        self, program: str | bytes, read: Callable[[], HloModule], options: CompileOptions
    ) -> Executable:
        """Compile a program; on a cache hit by its bytes, it is not even parsed."""
        if options.disabled_passes:
            _check_names(options)
        tools = compiler_search.find()
        if tools is None:
            return self.compile(read(), options)
        cache = store.open_cache() if options.cache and not config.get("DUMP") else None
        name = tools.program_key(program, _key(options)) if cache is not None else ""
        cached = _cached(read, options, cache, cache.get_name(name)) if cache is not None else None
        if cached is not None:
            return cached
        with _begin(tools) as build:
            if len(program) > SHORT_PROGRAM:
                build.prepare()
            module = read()
            options = _resolve_donated(options, module)
            target = _target(build, options, module.fingerprint)
            executable = self._compile(module, options, target)
        if cache is not None and cache.path(target.key).exists():  # not so if it calls Python
            cache.put_name(name, target.key)
        return executable

    def _compile(self, module: HloModule, options: CompileOptions, target: _Target) -> Executable:
        dump = _dump(module)
        if target.cache is None or dump.active:
            return self._build(module, options, dump, target)
        executable = _cached(module, options, target.cache, target.key)
        if executable is not None:
            return executable
        with target.cache.building(target.key):
            return _cached(module, options, target.cache, target.key) or self._build(module, options, dump, target)

    def run_hlo_passes(self, module: HloModule, options: CompileOptions) -> HloModule:
        """Bring a copy of the module into the form that has kernels."""
        from cyxla.xla.cpu.lowering import run_passes

        return run_passes(module, options, _dump(module))

    def run_backend(self, module: HloModule, options: CompileOptions) -> Executable:
        """Make native code of a module that went through `run_hlo_passes`."""
        tools = compiler_search.find()
        if tools is None:
            return _uncompiled(module, options)
        with _begin(tools) as build:
            target = _Target(build, store.open_cache() if options.cache else None)
            return self._finish(module, module, options, _dump(module), target)

    def not_prebuilt(self, module: HloModule, options: CompileOptions) -> str:
        """Return the reason for which prebuilt functions cannot run a module meanwhile; empty if they can."""
        from cyxla.xla.cpu.prebuilt.program import NotCoveredError, prebuilt_program

        if len(module.entry.instructions) > MAX_PREBUILT_INSTRUCTIONS:
            return f"it has more than {MAX_PREBUILT_INSTRUCTIONS} instructions"
        try:
            prebuilt_program(module, options, MAX_PREBUILT_NS)
        except NotCoveredError as error:
            return str(error)
        return ""

    def bind(self, program: CpuExecutable, bound: Mapping[int, Any], arguments: Mapping[int, Any]) -> CpuExecutable:
        """Fix some arguments of an executable; see `run.bind`."""
        from cyxla.xla.cpu.run.bind import bind  # most programs have no fixed arguments

        return bind(program, bound, arguments, self.compile)

    def emit(self, module: HloModule, options: CompileOptions | None = None) -> tuple[Plan, Buffers, Source]:
        """Plan a module that went through `run_hlo_passes` and write its C.

        Raises
        ------
        UnimplementedError
            Names every opcode without native code.
        """
        from cyxla.xla.cpu.lowering import emit

        return emit(module, options)

    def _build(self, module: HloModule, options: CompileOptions, dump: Dump, target: _Target) -> CpuExecutable:
        if not _needs_no_compiler(module):
            target.build.prepare()
        from cyxla.xla.cpu.lowering import run_passes
        from cyxla.xla.cpu.native.split_units import max_compilers

        optimized = run_passes(module, options, dump)
        units = min(len(optimized.entry.instructions) // UNIT_INSTRUCTIONS, max_compilers())
        if units > 1:
            target.build.prepare(units)
        return self._finish(module, optimized, options, dump, target)

    def _finish(
        self, module: HloModule, optimized: HloModule, options: CompileOptions, dump: Dump, target: _Target
    ) -> CpuExecutable:
        from cyxla.xla.cpu.kernel.variants import chosen
        from cyxla.xla.cpu.lowering import with_live_results

        live_options, tuned = with_live_results(module, options), dict[str, Tuned]()
        if options.autotune:
            with dump.timed("autotune"):
                tuned = self._tune(optimized, live_options, target.build.tools)
        with dump.timed("emit"), chosen({key: choice for key, (choice, _) in tuned.items()}):
            planned, buffers, source = self.emit(optimized, live_options)
        dump.buffers(buffers)
        for number, text in enumerate(source.units):
            dump.text(f"unit{number}.c", text)
        dump.loops(source.kernels, optimized)
        manifest = Manifest.of(module, planned, buffers, profile=options.profile, tuned=tuned)
        called = [f for f in planned.functions() if not isinstance(f, str)]
        constants = [c.array.reshape(-1).view(np.uint8).data for c in buffers.constants]
        with dump.timed("compile"):
            library = target.library(source, manifest, constants, cacheable=not called and not _calls_c(manifest))
        for number, seconds in sorted(target.build.seconds.items()):
            dump.note(f"unit{number}.c", seconds)
        executable = _executable(module, library, manifest, constants, options, called)
        if dump.active:
            from cyxla.xla.cpu.run.explain import explain  # most programs are not dumped

            reason, tuning = self.not_prebuilt(module, options), {key: text for key, (_, text) in tuned.items()}
            dump.explanation(explain(planned, buffers, source, module, options, reason, tuning))
        return executable

    def _tune(self, optimized: HloModule, options: CompileOptions, tools: Toolchain) -> dict[str, Tuned]:
        """Return choices for the heavy kernels of a program, from the disk cache or by measurement."""
        from cyxla.xla.cpu.autotune.records import Records
        from cyxla.xla.cpu.autotune.tuner import tune

        records = Records(store.open_cache() if options.cache else None, tools)
        found = tune(optimized, options, records, partial(self._trial, tools))
        return {key: (dict(record.choice), str(record)) for key, record in found.items()}

    def _trial(self, tools: Toolchain, module: HloModule, choices: Mapping[str, Mapping[str, int]]) -> CpuExecutable:
        """Compile a program of one kernel, to be measured; it is not cached."""
        from cyxla.xla.cpu.dump import Dump
        from cyxla.xla.cpu.kernel.variants import chosen

        with chosen(choices), _begin(tools) as build:
            return self._finish(module, module, CompileOptions(), Dump(), _Target(build))


def _prebuilt(module: HloModule, options: CompileOptions) -> PrebuiltExecutable | None:
    """Return the executable of prebuilt functions; None if they do not cover a program."""
    from cyxla.xla.cpu.prebuilt.coverage import COVERED, NotCoveredError

    if not all(ins.opcode in COVERED for ins in module.entry.post_order()):
        return None
    from cyxla.xla.cpu.prebuilt.program import prebuilt_program  # modules that most large programs need not

    try:
        return prebuilt_program(module, options, MAX_PREBUILT_NS)
    except NotCoveredError:
        return None


def _calls_c(manifest: Manifest) -> bool:
    """Return whether a program needs C functions that were registered in this process."""
    return any(name.startswith("c call ") for name in manifest.functions)


def _needs_no_compiler(module: HloModule) -> bool:
    """Guess whether a program needs no C compiler: one started in vain costs more than one started late."""
    opcodes: set[str] = set()
    pending = [module.entry]
    for computation in pending:  # which grows
        opcodes.update(ins.opcode for ins in computation.instructions)
        called = (c for ins in computation.instructions if ins.opcode == "call" for c in ins.called)
        pending += [c for c in called if c not in pending]
    opcodes -= _FREE_OPCODES
    return bool(opcodes) and opcodes <= PREBUILT_OPCODES


def _dump(module: HloModule) -> Dump:
    from cyxla.xla.cpu.dump import Dump

    return Dump(module)


def _cached(
    program: HloModule | Callable[[], HloModule], options: CompileOptions, cache: store.DiskCache, key: str
) -> CpuExecutable | None:
    entry = cache.get_module(key) if key else None
    if entry is None:
        return None
    return _executable(program, native.load(entry.path), Manifest(**entry.manifest), entry.constants, options)


def _executable(
    program: HloModule | Callable[[], HloModule],
    library: native.Library,
    manifest: Manifest,
    constants: Sequence[Any],
    options: CompileOptions,
    called: Sequence[Instruction] = (),
) -> CpuExecutable:
    compiler = CpuCompiler()
    if not called and not manifest.has_tokens and manifest.bounded is None:
        return CpuExecutable(program, library, manifest, constants, options, compiler=compiler)
    from cyxla.xla.cpu.run.python_calls import HostedExecutable, PythonCalls

    calls = PythonCalls(called, options) if called else None
    kind: type[CpuExecutable] = HostedExecutable
    if manifest.bounded is not None:
        from cyxla.xla.cpu.run.bounded import BoundedExecutable

        kind = BoundedExecutable
    return kind(program, library, manifest, constants, options, calls=calls, compiler=compiler)


def _uncompiled(module: HloModule, options: CompileOptions, *, warn: bool = True) -> Executable:
    from cyxla.xla.cpu.prebuilt.uncompiled import without_compiler

    return without_compiler(module, options, warn=warn)


def _resolve_donated(options: CompileOptions, module: HloModule) -> CompileOptions:
    """Return the options with donated parameters by number; the module's key has no names."""
    if not options.donate:
        return options
    return resolve_donation(options, module)


def _check_names(options: CompileOptions) -> None:
    from cyxla.xla.cpu.lowering import check_names

    check_names(options.disabled_passes)


def _key(options: CompileOptions) -> str:
    """Return the key of the options; with autotuning, code depends on the machine, too."""
    if not options.autotune:
        return options.key()
    from cyxla.xla.cpu.autotune.records import machine_name

    return f"{options.key()} on {machine_name()}"


def _begin(tools: Toolchain) -> Build:
    """Begin a compilation."""
    from cyxla.xla.cpu.native.build import Build

    return Build(tools)


class _Target(NamedTuple):
    """C compiler, disk cache and key of the result; without a key, only the shared object is cached."""

    build: Build
    cache: store.DiskCache | None = None
    key: str = ""

    def library(
        self, source: Source, manifest: Manifest, constants: Sequence[memoryview], *, cacheable: bool
    ) -> native.Library:
        """Compile, cache and load; calls of functions of this process are never cached."""
        if self.cache is None or not self.key or not cacheable:
            if source.recipe is not None:
                return native.Library.from_bytes(source.recipe)
            return native.build_library(source.units, toolchain=self.build.tools, cache=self.cache, build=self.build)
        image = source.recipe or self.build.image([Unit(text) for text in source.units], self.cache)
        return native.load(self.cache.put_module(self.key, manifest.to_json(), image, constants), image)


def _target(build: Build, options: CompileOptions, fingerprint: Callable[[], str]) -> _Target:
    cache = store.open_cache() if options.cache else None
    return _Target(build, cache, build.tools.module_key(fingerprint(), _key(options)) if cache is not None else "")
