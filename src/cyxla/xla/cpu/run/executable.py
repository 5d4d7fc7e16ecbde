"""Executables of native code; a call is the launcher's work, inspection is done here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from cyxla._native.arguments import leaves
from cyxla.errors import InvalidArgumentError
from cyxla.xla.cpu.kernel import machine
from cyxla.xla.cpu.kernel.cost import memory_ns
from cyxla.xla.cpu.native.library import ENTRY, Library, Program
from cyxla.xla.cpu.run import signature
from cyxla.xla.service import CompileOptions, Executable

if TYPE_CHECKING:
    from cyxla.types import Shape
    from cyxla.xla.cpu.entry.module import Source
    from cyxla.xla.cpu.memory.buffers import Buffers
    from cyxla.xla.cpu.plan.nodes import Plan
    from cyxla.xla.cpu.run.profile import Recorder
    from cyxla.xla.cpu.run.python_calls import PythonCalls
    from cyxla.xla.feeds import Feeds
    from cyxla.xla.hlo import HloModule
    from cyxla.xla.service.explanation import Explanation
    from cyxla.xla.service.profile import Profile

# Estimated ns from which a program runs on a separate thread, so that Ctrl-C is noticed; starting one takes 50 us.
WATCHED_ABOVE = 10 * machine.UNINTERRUPTED_NS
ABANDONABLE_ABOVE = machine.UNINTERRUPTED_NS  # ns of estimated work between two polls for cancellation
RELEASE_GIL_ABOVE = 2000.0  # ns of estimated work; reacquiring the GIL may wait for another thread


#: Choice of parameters, and a text for people.
Tuned: TypeAlias = tuple[dict[str, int], str]


class CompilerProtocol(Protocol):
    """The compiler, as its executables need it."""

    def bind(self, program: CpuExecutable, bound: Mapping[int, Any], arguments: Mapping[int, Any]) -> CpuExecutable:
        """Fix some arguments of an executable that has perhaps fixed others before; see `run.bind`."""

    def not_prebuilt(self, module: HloModule, options: CompileOptions) -> str:
        """Return the reason for which prebuilt functions cannot run a module; empty if they can."""


class Manifest(NamedTuple):
    """Facts that running a compiled module needs beside its code; stored with it.

    Attributes
    ----------
    arena_bytes : int
        Size of the arena of one call.
    cost : float
        Estimated ns of a call, each loop counted as one iteration.
    loops : bool
        True if it has loops, so that `cost` may be far too low.
    constants : list of str
        Types of the constant buffers, as plain values of `run.signature`.
    functions : list of str
        Names of the functions that native code calls; "" for Python functions.
    parameters : list of Outline
        Types of the arguments.
    result : Outline
        Type of the result.
    sites : int or None
        Number of measured call sites of kernels; None without a profile.
    donations : list of (int, int)
        Inputs whose memory becomes that of a result, each with the number of the result, by numbers of arrays.
    longest : float
        Estimated ns of the longest stretch without a check for cancellation.
    bounded : list of Outline or None
        Types of the parameters, then that of the result, of a program that has dynamic dimensions among them;
        `parameters` and `result` are the types in which native code has them.
    tuned : mapping of str to (dict, str)
        Choices that measurements made for kernels, by key (see `kernel.variants`), each with a text for people.
    """

    arena_bytes: int
    cost: float
    loops: bool
    constants: list[Any]
    functions: list[str]
    parameters: list[signature.PlainShape]
    result: signature.PlainShape
    sites: int | None = None
    donations: Sequence[tuple[int, int]] = ()
    longest: float = 0.0
    bounded: list[signature.PlainShape] | None = None
    tuned: Mapping[str, Tuned] = MappingProxyType({})

    @staticmethod
    def of(
        module: HloModule,
        plan: Plan,
        buffers: Buffers,
        *,
        profile: bool = False,
        tuned: Mapping[str, Tuned] = MappingProxyType({}),
    ) -> Manifest:
        """Return the manifest of a program, its plan and its buffers."""
        shapes = [*(p.shape for p in module.parameters), module.entry.root.shape]
        *parameters, result = plains = [signature.to_plain(s) for s in shapes]
        return Manifest(
            arena_bytes=buffers.arena_bytes,
            cost=plan.cost,
            loops=any(hasattr(n, "body") or hasattr(n, "branches") for n in plan.nodes),
            constants=[signature.to_plain(c.shape) for c in buffers.constants],
            functions=[f if isinstance(f, str) else "" for f in plan.functions()],
            parameters=[signature.packed(p) for p in parameters],
            result=signature.packed(result),
            sites=sum(1 for _ in plan.steps()) if profile else None,
            donations=list(buffers.donations.items()),
            longest=plan.longest + sum(memory_ns(c.nbytes) for copies in buffers.copies.values() for c in copies),
            bounded=plains if any(s.is_dynamic for s in shapes) else None,
            tuned=dict(tuned),
        )

    @property
    def has_tokens(self) -> bool:
        """True if a token is among the arguments or results."""
        return signature.has_tokens([*self.parameters, self.result])

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Manifest:
        """Return the manifest of plain values; the inverse of `to_json`."""
        return Manifest(**data)

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {**self._asdict(), "tuned": dict(self.tuned)}


class CpuExecutable(Program, Executable):
    """Native code of a module. A call is done by the launcher, without any Python of this class.

    Parameters
    ----------
    program : HloModule or callable
        Module, or a function that returns it: a program from the disk cache is read when it is first inspected.
    compiler : Compiling, optional
        Compiler of the program, which fixes arguments by `bind`.
    """

    platform, tier = "cpu", "native"

    def __init__(
        self,
        program: HloModule | Callable[[], HloModule],
        library: Library,
        manifest: Manifest,
        constants: Sequence[Any],
        options: CompileOptions,
        bound: Mapping[int, Any] | None = None,
        calls: PythonCalls | None = None,
        input_module: HloModule | None = None,
        compiler: CompilerProtocol | None = None,
    ) -> None:
        self._calls = calls
        self._input_module = input_module
        self._compiler = compiler
        self._program, self._manifest, self._constants = program, manifest, constants
        self.options, self._bound = options, dict(bound or {})
        trees = signature.number_arrays(manifest.parameters)
        self._unbound = [k for k in range(len(trees)) if k not in self._bound]
        self._recorder = _recorder(manifest.sites)
        self._bound_arrays = [pair for k, value in self._bound.items() for pair in signature.flatten(trees[k], value)]
        super().__init__(
            library,
            ENTRY,
            [signature.dtype_and_dims(leaf) for form in manifest.parameters for leaf in signature.arrays(form)],
            [signature.dtype_and_dims(leaf) for leaf in signature.arrays(manifest.result)],
            signature.number_arrays([manifest.result])[0],
            parameters=[trees[k] for k in self._unbound],
            bound=dict(self._bound_arrays),
            constants=[
                _array(data, *signature.dtype_and_dims(c))
                for data, c in zip(constants, manifest.constants, strict=True)
            ],
            arena_bytes=manifest.arena_bytes,
            sparse=options.sparse,
            functions=[*_addresses(manifest.functions, calls), *(self._recorder.addresses if self._recorder else ())],
            keep=(calls, self._recorder),
            donations=dict(manifest.donations),
            release_gil=manifest.loops or manifest.cost > RELEASE_GIL_ABOVE,
            watched=calls is None and (manifest.cost > WATCHED_ABOVE or manifest.longest > ABANDONABLE_ABOVE),
            abandonable=manifest.longest > ABANDONABLE_ABOVE,
        )

    @property
    def inputs(self) -> tuple[Shape, ...]:  # type: ignore[override]
        """Shapes of the arguments."""
        return self._inputs

    @property
    def outputs(self) -> Shape:  # type: ignore[override]
        """Shape of the result."""
        return self._result

    def bind(self, arguments: Mapping[int | str, Any]) -> CpuExecutable:
        """Fix some arguments, such as weights; see `Executable.bind`.

        Values that depend on them alone are computed here, and the program is compiled anew if that leaves a simpler
        one: scales behind products are folded into weights, so that results may differ in the last digits.
        """
        fixed = self._checked_arguments(arguments)
        if not fixed:
            return self
        assert self._compiler is not None
        return self._compiler.bind(self, self._bound, fixed)

    def _checked_arguments(self, arguments: Mapping[int | str, Any]) -> dict[int, Any]:
        """Return the arguments to fix, by parameter of the module that runs."""
        from cyxla.xla.service.bound_arguments import check_bound

        fixed = {self._unbound[k]: v for k, v in check_bound(arguments, self.names, self.inputs).items()}
        self._check_not_donated(fixed)
        return fixed

    def with_fixed(self, fixed: Mapping[int, Any], input_module: HloModule | None = None) -> CpuExecutable:
        """Return an executable with the same code that passes these arrays to every call.

        Parameters
        ----------
        fixed : mapping of int to arrays
            Arrays by parameter of the module that runs, nested as the parameters are; they are not copied.
        input_module : HloModule, optional
            Program as the user gave it; by default the same.
        """
        return type(self)(
            self._program,
            self.library,
            self._manifest,
            self._constants,
            self.options,
            fixed,
            self._calls,
            input_module or self._input_module,
            self._compiler,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        from cyxla.xla.service.pickling import reduce_executable

        return reduce_executable(self._module, self.platform, self.options, self._bound)

    def _check_not_donated(self, fixed: Mapping[int, Any]) -> None:
        trees, donated = signature.number_arrays(self._manifest.parameters), {k for k, _ in self._manifest.donations}
        for k in fixed:
            if not donated.isdisjoint(leaves(trees[k])):
                name = self._module.parameters[k].name
                raise InvalidArgumentError(f"argument {self._unbound.index(k)} ({name}) is donated and cannot be bound")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arguments in the program."""
        parameters = self._module.parameters
        return tuple(parameters[k].name for k in self._unbound)

    @property
    def input_module(self) -> HloModule:
        """The program as the user gave it."""
        return self._input_module or self._module

    @property
    def feeds(self) -> Feeds:
        """The other end of the program's transfers; see `Executable.feeds`."""
        return self.options.feeds

    def _given_module(self) -> HloModule:
        return self.input_module

    # --- stages of the compilation: recomputed on request, since the disk cache holds only code -----------------------

    @cached_property
    def _inputs(self) -> tuple[Shape, ...]:
        return tuple(signature.from_plain(self._manifest.parameters[k]) for k in self._unbound)

    @cached_property
    def _result(self) -> Shape:
        return signature.from_plain(self._manifest.result)

    @cached_property
    def _module(self) -> HloModule:
        return self._program() if callable(self._program) else self._program

    @cached_property
    def optimized(self) -> HloModule:
        """The program that runs, after all passes."""
        from cyxla.xla.cpu.dump import Dump
        from cyxla.xla.cpu.lowering import run_passes

        return run_passes(self._module, self.options, Dump())

    @cached_property
    def _emitted(self) -> tuple[Plan, Buffers, Source]:
        from cyxla.xla.cpu.kernel.variants import chosen
        from cyxla.xla.cpu.lowering import emit, with_live_results

        choices = {key: choice for key, (choice, _) in self._manifest.tuned.items()}
        with chosen(choices):
            return emit(self.optimized, with_live_results(self._module, self.options))

    def hlo(self, stage: str = "optimized") -> str:
        """Return the HLO text of the program: ``"input"`` as given, ``"optimized"`` as it runs."""
        if stage not in ("input", "optimized"):
            raise InvalidArgumentError(f"unknown stage {stage!r}", hint="pass 'input' or 'optimized'")
        return (self.input_module if stage == "input" else self.optimized).to_text()

    @property
    def c_source(self) -> str:
        """The generated C."""
        return self._emitted[2].text

    @property
    def memory(self) -> dict[str, int]:
        """Bytes by use."""
        constants = sum(memoryview(c).nbytes for c in self._constants)
        bound = sum(a.nbytes for _, a in self._bound_arrays)
        sizes = {"temporaries": self._manifest.arena_bytes, "constants": constants}
        if self._manifest.donations:
            shapes = [signature.from_plain(a) for form in self._manifest.parameters for a in signature.arrays(form)]
            sizes["donated"] = sum(shapes[k].nbytes for k, _ in self._manifest.donations)
        return {**Executable.memory.fget(self), **sizes, **({"bound": bound} if self._bound else {})}  # type: ignore[attr-defined]

    @property
    def cost(self) -> dict[str, float]:
        """Estimated ns of a call on one core, each loop counted as one iteration."""
        return {"ns": self._manifest.cost}

    def profile(self, *, reset: bool = False) -> Profile:
        """Return the time of each kernel since the start, or since the last `reset`; see `Executable.profile`."""
        if self._recorder is None:
            raise InvalidArgumentError(
                "this program was compiled without profile=True", hint="compile it with profile=True"
            )
        plan, _, source = self._emitted
        times = self._recorder.profile(plan, source)
        if reset:
            self._recorder.reset()
        return times

    def explain(self) -> str:
        """Return a table of the kernels, the reasons for the extent of each, and the refusals."""
        return str(self.explanation())

    def explanation(self) -> Explanation:
        """Return the kernels with their reasons, and all refusals."""
        from cyxla.xla.cpu.run.explain import explain  # few programs are explained

        reason = self._compiler.not_prebuilt(self._module, self.options) if self._compiler is not None else ""
        tuning = {key: text for key, (_, text) in self._manifest.tuned.items()}
        return explain(*self._emitted, self._module, self.options, reason, tuning)


def _addresses(names: Sequence[str], calls: PythonCalls | None) -> list[int]:
    if not names:
        return []
    from cyxla.xla.cpu.calls import host_functions

    python = iter(calls.addresses() if calls is not None else ())
    return [host_functions.address(name) if name else next(python) for name in names]


def _recorder(sites: int | None) -> Recorder | None:
    if sites is None:
        return None
    from cyxla.xla.cpu.run.profile import Recorder

    return Recorder(sites)


def _array(values: Any, dtype: np.dtype[Any], dims: Sequence[int]) -> np.ndarray[Any, Any]:
    """Return the array in the bytes of a constant."""
    return np.frombuffer(values, np.uint8).view(dtype).reshape(dims)
