"""`cyxla.jit`: functions written with NumPy are traced and compiled once for each signature."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, update_wrapper
from time import perf_counter
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    TypeAlias,
    TypeVar,
    Unpack,
    overload,
)

import numpy as np

from cyxla import config
from cyxla._native import dispatch
from cyxla._native.dispatch import CaughtError, Compiled, Dispatcher, Receiver
from cyxla.errors import (
    DTypeError,
    FallbackWarning,
    InvalidArgumentError,
    OpError,
    TraceError,
    UnimplementedError,
)
from cyxla.forking import new_lock
from cyxla.gc_pause import fewer_collections
from cyxla.numpy import functions as _functions
from cyxla.numpy.array_methods import methods as _methods
from cyxla.numpy.array_methods import protocols as _protocols
from cyxla.numpy.calls.any_size import MODES, MOST_BYTES, AnySizeEntry, AnySizePrograms, SizesError
from cyxla.numpy.calls.argument_adapters import require_unchanging_defaults
from cyxla.numpy.calls.argument_binding import OUT, Binding, StaticNames, binding_of, default_of
from cyxla.numpy.calls.argument_changes import shares_containers, shares_objects
from cyxla.numpy.calls.argument_forms import ArgumentForms
from cyxla.numpy.calls.disabling import call_disabled, is_disabled, needs_python
from cyxla.numpy.calls.entries import Entry, PlainEntry, Source, TracedExecutable
from cyxla.numpy.calls.jit_checks import (
    check_function,
    check_options,
    innermost,
    line_of,
    may_be_of_numpy,
    signature_of,
)
from cyxla.numpy.calls.jit_options import JitOptions
from cyxla.numpy.calls.lowering import BOUNDS, Environment, Lowered, OpenSizes, Spec, lower
from cyxla.numpy.calls.program_cache import CacheInfo, ProgramCache
from cyxla.numpy.calls.receivers import inlined_argument, is_receiver, receiver_of, receiver_value
from cyxla.numpy.calls.recompilation import (
    WARN_AFTER,
    Specialisations,
    UnsupportedArgument,
    VainTraces,
    as_refusal,
    message_of,
    warn_recompilation,
)
from cyxla.numpy.calls.shared_memory import SameArrays, arrays_of, run_on_copy
from cyxla.numpy.calls.signatures import Call
from cyxla.numpy.calls.stages import LoweredModule
from cyxla.numpy.indexing.bounds import CutSliceError
from cyxla.numpy.rewriting.functions import rewritten_for
from cyxla.numpy.rewriting.loops.unrolling import count_call
from cyxla.numpy.rewriting.methods import methods_rewritten
from cyxla.numpy.rewriting.syntax.scopes import package_of
from cyxla.numpy.state.snapshot import changing_nothing
from cyxla.numpy.tracing.arrays.sized_array import TooLargeError
from cyxla.numpy.tracing.containers import map_leaves
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.tracing.static_keys import static_key
from cyxla.numpy.tracing.trace import current, require_current, warn_user
from cyxla.numpy.tracing.user_program import handlers as _handlers
from cyxla.numpy.tracing.user_program.api_boundary import api_boundary
from cyxla.numpy.tracing.user_program.user_frames import trim_traceback, user_line_of
from cyxla.progress import compiling
from cyxla.xla.client import platforms as _platforms
from cyxla.xla.service import CompileOptions, LocalService

if TYPE_CHECKING:
    from concurrent.futures import Future

    from cyxla.xla.hlo import HloModule
    from cyxla.xla.service import Compiler, Executable

__all__ = ["CacheInfo", "Jitted", "jit"]
_ = _functions, _methods, _protocols, _platforms, _handlers  # imported to register functions, operators and platforms
TRIES = 2  # signatures that are traced in vain, before NumPy runs a function on machines that cannot compile it
AnyEntry: TypeAlias = "Entry | PlainEntry | AnySizeEntry"
P = ParamSpec("P")
Q = ParamSpec("Q")  # parameters of a method without `self`
R = TypeVar("R", covariant=True)
_MOST_WORK = 1000  # of the search for elements that two arrays share


def _drop_caught(error: BaseException) -> None:
    """Drop the failure of a run from the context of an exception that the function itself has raised."""
    while error.__context__ is not None:
        if isinstance(error.__context__, CaughtError):
            error.__context__ = None
            return
        error = error.__context__


def _share_memory(one: Any, other: Any) -> bool:
    """Return True if two arrays share an element, or if that is hard to tell."""
    try:
        shares_memory: Any = np.shares_memory  # typed as if its limit of work were one of two
        return bool(shares_memory(one, other, max_work=_MOST_WORK))
    except (np.exceptions.TooHardError, RuntimeError):
        return True


dispatch.install(needs_python, static_key, trim_traceback, _share_memory)


class Jitted(Dispatcher, Generic[P, R]):
    """Function that is traced and compiled once for each signature of its arguments; see `cyxla.jit`."""

    is_internal = False  # True for functions of this package, which `disable_jit` does not concern

    def __init__(
        self, function: Callable[P, R], *, static: Any = (), donate: Any = (), platform: str = "cpu",
        bounds: str = "raise", sizes: str = "auto", fallback: str | None = None, name: str | None = None,
        **options: Any,
    ) -> None:  # fmt: skip
        check_function(function)
        check_options(options)
        if bounds not in BOUNDS:
            raise InvalidArgumentError(f"jit: unknown bounds={bounds!r}", hint=f"use one of {', '.join(BOUNDS)}")
        if sizes not in MODES:
            raise InvalidArgumentError(f"jit: unknown sizes={sizes!r}", hint=f"use one of {', '.join(MODES)}")
        if fallback not in (None, *config.FALLBACKS):
            hint = f"use one of {', '.join(config.FALLBACKS)}"
            raise InvalidArgumentError(f"jit: unknown fallback={fallback!r}", hint=hint)
        self.function = function
        self.fallback = fallback
        self.platform, self.bounds, self.sizes, self.options = platform, bounds, sizes, options
        self.name = name or getattr(function, "__name__", "function").strip("<>") or "function"
        self._keyword_options = {"static": static, "donate": donate, "name": name, "sizes": sizes, "fallback": fallback}
        self._signature = signature_of(function)
        self._takes_self = self._signature is not None and next(iter(self._signature.parameters), "") == "self"
        self._static = StaticNames("static", static, self._signature)
        self._donate = StaticNames("donate", donate, self._signature)
        self.set_static(*self._static.flags(), frozenset(self._static.names))
        self._bindings: dict[Any, Binding] = {}
        self.programs = ProgramCache()
        self._lock = new_lock()
        self._slow_hits = 0
        self._numbers: dict[str, Any] = {}  # from outside, by expression; see `OutsideValues`
        self._warned: set[str] = set()
        self._has_warned_of_misses = False
        self._any_size = AnySizePrograms(sizes)
        self._cuts_slices = False  # if a slice of known length has reached beyond an end
        self._has_stopped = False  # if no further signature is compiled; then calls have to be fast
        self._vain = VainTraces()
        self._same_arrays = SameArrays()
        self._specialisations = Specialisations(self._static.has, line_of(function))
        self._forms = ArgumentForms(package_of(inspect.unwrap(function)))
        self._missing: list[OpError] = []  # what this machine lacks, for each signature that it cannot compile
        update_wrapper(self, function)

    # -- calls; most are handled in C alone

    if TYPE_CHECKING:

        @overload
        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
        @overload
        def __call__(self, *args: Any, out: Any, **kwargs: Any) -> R: ...
        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...  # noqa: D102

    def call_slowly(self, args: tuple[Any, ...], kwnames: tuple[str, ...], hash: int) -> Any:
        """Handle a call that C has not seen before, one inside another traced function, or one that runs plainly."""
        if self._has_stopped and current() is None:
            is_simple = not kwnames and not self._takes_self and not (args and type(args[0]) is Receiver)
            return self.function(*args) if is_simple else self._call_function(args, kwnames)  # type: ignore[call-arg]
        if not self.is_internal and is_disabled():
            return self._call_function(args, kwnames)
        if self._takes_self and len(args) > len(kwnames) and is_receiver(args[0]):  # of a property, or Model.f(model)
            keywords = dict(zip(kwnames, args[len(args) - len(kwnames) :], strict=True))
            return self(Receiver(args[0]), *args[1 : len(args) - len(kwnames)], **keywords)
        if current() is not None:
            return self._inline(args, kwnames)
        return self._call_anew(args, kwnames, hash)

    def _call_anew(self, args: tuple[Any, ...], kwnames: tuple[str, ...], hash: int, *, exactly: bool = False) -> Any:
        """Handle a call that C has not seen before, or that needs a program for exactly its sizes."""
        binding = self._binding(len(args) - len(kwnames), kwnames)
        if binding.changeable:  # which later calls see changed
            return self._call_again(args, kwnames, **binding.changeable)
        try:
            call, entry = self._compiled_call(binding, args, exactly)
        except UnsupportedArgument as unsupported:
            self._fall_back(unsupported.error)
            return self._call_function(args, kwnames)
        except Exception as error:  # of a trace: a run may not raise it, or do something before it
            if not self._may_be_of_trace(error):
                raise
            failure = error
        else:
            return self._call_entry(call, entry, args, kwnames, hash)
        result = self._call_for_error(failure, args, kwnames)
        text = f"{type(failure).__name__} is raised while it is traced, but not when it runs: {message_of(failure)}"
        self._plain_entry(self._forms.read(binding, args), TraceError(text, where=user_line_of(failure)))
        return result

    def _may_be_of_trace(self, error: Exception) -> bool:
        """Return True if the plain function may not raise an error of a call, or may do something before it."""
        return self._may_run_plainly() and may_be_of_numpy(error)

    def _call_for_error(self, failure: Exception, args: tuple[Any, ...], kwnames: tuple[str, ...]) -> Any:
        """Call the function itself, which does what precedes its error; raise the error that names more."""
        try:
            return self._call_function(args, kwnames)
        except Exception as raised:
            if not (isinstance(failure, OpError) and isinstance(failure, type(raised))):
                raise
        raise failure

    def _call_entry(
        self, call: Call, entry: AnyEntry, args: tuple[Any, ...], kwnames: tuple[str, ...], hash: int
    ) -> Any:
        """Call the program of a call, or the function itself in its place."""
        binding = call.binding
        if call.fast_path:
            self._add_signature(call, entry, len(args) - len(kwnames), kwnames, hash)
        if entry.plain:
            return self.call_plainly(entry, args, kwnames)
        outside = entry.guards.fetch(args)
        if outside is None and entry.guards.inputs:  # values from outside have changed since they were traced
            return self._call_function(args, kwnames)
        leaves = [*call.leaves, *(outside or ())]
        if not entry.check_inputs(leaves):
            return self.call_plainly(entry, args, kwnames)
        undo = call.adapt(leaves)
        try:
            out = None if binding.out is None else args[binding.out]
            return self.run_with_passed(entry, leaves, out, args, kwnames) if entry.takes_passed else entry(leaves, out)
        except CaughtError as failure:
            for take_back in undo:
                take_back()
            return self.call_after_failure(failure.error, args, kwnames)

    def _add_signature(self, call: Call, entry: AnyEntry, nargs: int, kwnames: tuple[str, ...], hash: int) -> None:
        """Let C make the calls that are like this one."""
        inputs = len(call.leaves)
        if isinstance(entry, AnySizeEntry):
            self.add_open_signature(entry.signature(nargs, kwnames, call.passed_nodes(), inputs))
            return
        of_classes = isinstance(entry, Entry) and entry.lowered.is_of_classes
        nodes = call.passed_nodes(with_lists=not entry.plain, of_classes=of_classes)
        self.add_signature(hash, entry.guards.signature(entry, nargs, kwnames, nodes, inputs))

    def run_with_passed(
        self, entry: Any, inputs: list[Any], out: Any, args: tuple[Any, ...], kwnames: tuple[str, ...]
    ) -> Any:
        """Run a program that changes, returns or compares containers or objects among its arguments."""
        shared = None
        if entry.changes_containers and shares_containers(args):
            shared = InvalidArgumentError(f"{self.name} gets a list or dict twice", hint="pass copies of it")
        elif entry.lowered.program.compares_objects and shares_objects(args, inputs):
            shared = InvalidArgumentError(
                f"{self.name} compares arguments with `is`, and gets one twice",
                hint="pass whether they are the same",
            )
        if shared is not None:
            self._fall_back(shared)
            return self._call_function(args, kwnames)
        return entry.finish_call(entry(inputs, out), args)

    def call_plainly(self, compiled: Compiled, args: tuple[Any, ...], kwnames: tuple[str, ...]) -> Any:
        """Call the function itself: always, or where a program must not run on the arrays that are passed.

        In the place of a program for any size, that for exactly these sizes is called.
        """
        if isinstance(compiled, AnySizeEntry):
            return self.call_after_failure(SizesError(), args, kwnames)
        if isinstance(compiled, Entry) and compiled.dense:
            arrays = arrays_of([*args, *(compiled.guards.fetch(args) or ())])
            if not all(a.flags.c_contiguous or a.flags.f_contiguous for a in arrays):
                self._fall_back(UnimplementedError(
                    f"{self.name} depends on the memory of an array that is not contiguous", hint="pass a.copy()",
                ))  # fmt: skip
                return self._call_function(args, kwnames)
        if not compiled.plain and all(a.flags.writeable for a in arrays_of(args)):
            shared = self._with_shared_memory(compiled, args, kwnames)
            if shared is not None:
                return shared()
            self._fall_back(InvalidArgumentError(
                f"{self.name} writes to arrays that share memory", hint="pass a copy of one of them",
            ))  # fmt: skip
        return self._call_function(args, kwnames)

    def _with_shared_memory(
        self, compiled: Compiled, args: tuple[Any, ...], kwnames: tuple[str, ...]
    ) -> Callable[[], Any] | None:
        """Return the call of a program although a written argument shares memory with another one; None if none can."""
        binding = self._binding(len(args) - len(kwnames), kwnames)
        has_roles = any(s.names or s.positions for s in (self._static, self._donate)) or self._takes_self
        if has_roles or binding.out is not None:
            return None
        if isinstance(compiled, Entry) and compiled.lowered.writes_last:
            call = self._forms.read(binding, args)
            inputs = [*call.leaves, *(compiled.guards.fetch(args) or ())]
            call.adapt(inputs)
            return partial(run_on_copy, compiled, inputs)
        return self._same_arrays.bind(self, args, kwnames)

    def call_after_failure(self, error: Exception, args: tuple[Any, ...], kwnames: tuple[str, ...]) -> Any:
        """Call the function itself after a failed run, whose error it may catch, or may not raise.

        After the failure of a program for any size, call that for exactly these sizes.
        """
        if isinstance(error, SizesError):
            return self._call_anew(args, kwnames, self.hash_of_call(args, kwnames), exactly=True)
        if isinstance(error, CutSliceError) and not self._cuts_slices:
            self.clear()
            self._cuts_slices = True
            return self._call_again(args, kwnames)
        if self._fallback == "error":
            self._refuse_write_to_static(error)
            raise error
        if getattr(error, "leaves_with_warning", False):
            self._fall_back(as_refusal(error))
        try:
            return self._call_function(args, kwnames)
        except Exception as raised:
            _drop_caught(raised)
            raise

    def _call_again(self, args: tuple[Any, ...], kwnames: tuple[str, ...], **more: Any) -> Any:
        count = len(args) - len(kwnames)
        return self(*args[:count], **dict(zip(kwnames, args[count:], strict=True)), **more)

    def _refuse_write_to_static(self, error: Exception) -> None:
        """Raise the refusal of a write to an argument that is static for its values, if this is its error."""
        if self._forms.static and isinstance(error, ValueError) and "read-only" in message_of(error):
            text, _, where = str(error).partition("\n  at:   ")
            raise TraceError(
                "an argument whose values the function needs while it is traced may not be written: " + text,
                where=where, hint="write to a copy",
            ) from error  # fmt: skip

    def _call_function(self, args: tuple[Any, ...], kwnames: tuple[str, ...]) -> Any:
        count = len(args) - len(kwnames)
        keywords = dict(zip(kwnames, map(receiver_value, args[count:]), strict=True))
        out = keywords.pop(OUT, None) if self._binding(count, kwnames).out is not None else None
        result = self.function(*map(receiver_value, args[:count]), **keywords)
        return result if out is None else map_leaves(_write_output, out, result)

    def _compiled_call(self, binding: Binding, args: tuple[Any, ...], exactly: bool) -> tuple[Call, AnyEntry]:
        """Read the arguments of a call, and compile; numbers whose values the function needs become static.

        The function may write to an array that became static and cannot be written: it is refused for what needed it.
        Where a list of numbers cannot be an array, its numbers are passed one by one, and the other way round.
        """
        refusal: OpError | None = None
        refused_list: OpError | None = None
        while True:
            try:
                call = self._forms.read(binding, args)
            except (DTypeError, TraceError, UnimplementedError) as error:
                raise UnsupportedArgument(refused_list or error) from error
            static = self._forms.static
            try:
                return call, self._entry(call, exactly)
            except (DTypeError, TraceError, UnimplementedError) as error:
                if not self._forms.adapt(call, error):
                    if self._forms.static is not static:
                        call = self._forms.read(binding, args)
                    return call, self._plain_entry(call, refused_list or error)
                refusal = error
                refused_list = error if call.number_lists else refused_list
            except Exception as error:
                if call.number_lists and self._forms.adapt(call, error):
                    continue
                if refusal is None or not isinstance(error, ValueError) or "read-only" not in message_of(error):
                    if self._fallback == "error":
                        self._refuse_write_to_static(error)
                    raise
                return call, self._plain_entry(call, refusal)

    def _plain_entry(self, call: Call, error: OpError) -> PlainEntry:
        """Return the entry of a signature that cannot be compiled."""
        self._fall_back(error)
        self._vain.add_refusal(error)
        entry = PlainEntry(error, self._direct_function(call))
        self.programs.add(call, entry, self)
        self._warn_of_misses()
        return entry

    def _fall_back(self, error: OpError) -> None:
        """Warn that the function runs as it is written, once for each cause; or raise the cause."""
        if self._fallback == "error" or not error.may_fall_back:
            raise error
        cause = error.where or error.message
        with self._lock:
            is_new = cause not in self._warned
            self._warned.add(cause)
        if is_new:
            warn_user(f"NumPy runs {self.name}, which cannot be compiled: {error}", FallbackWarning)

    def _binding(self, nargs: int, kwnames: tuple[str, ...]) -> Binding:
        binding = self._bindings.get((nargs, kwnames))
        if binding is None:
            binding = binding_of(self.name, self.function, self._signature, self._static, nargs, kwnames)
            self._bindings[nargs, kwnames] = binding
        return binding

    def _inline(self, args: tuple[Any, ...], kwnames: tuple[str, ...]) -> Any:
        """Inline a call into the function being traced, with this function's mode of bounds."""
        binding = self._binding(len(args) - len(kwnames), kwnames)
        values = [default_of(a) if a.source is None else args[a.source] for a in binding.arguments]
        arguments = [v if a.static else inlined_argument(v) for a, v in zip(binding.arguments, values, strict=True)]
        pairs = list(zip(binding.arguments, arguments, strict=True))
        count_call(require_current())
        with require_current().program.bounds_mode(self.bounds):
            result = rewritten_for(self.function, arguments)(
                *[v for a, v in pairs if not a.keyword], **{a.keyword: v for a, v in pairs if a.keyword}
            )
        out = None if binding.out is None else args[binding.out]
        return result if out is None else map_leaves(_write_output, out, result)

    def _entry(self, call: Call, exactly: bool) -> AnyEntry:
        """Return the compiled program of a call: the exact one, one for any size, or a new one."""
        entry = self.programs.find(call)
        if entry is not None:
            self._slow_hits += 1
            return entry
        reason = self._reason_to_stop(call) if self._may_run_plainly() else None
        if reason is not None:
            self._has_stopped = True
            raise UnsupportedArgument(reason)
        with self._vain.timing(), fewer_collections():
            return self._exact_entry(call) if exactly else self._made_entry(call)

    def _made_entry(self, call: Call) -> AnyEntry:
        """Return a new program of a call, or a present one for any size."""
        LocalService(self.platform).compiler.prepare()
        if self._is_uncompiled():
            return self._exact_entry(call)
        has_out = call.binding.out is not None
        found = None if has_out else self._any_size.find(call, self._compile_any_size, self.forget)
        return self._exact_entry(call) if found is None else found

    def _reason_to_stop(self, call: Call) -> OpError | None:
        """Return the reason to compile the function for no further signature; None if there is none."""
        return self._vain.reason() or self._specialisations.add(call, self.programs.seconds)

    def _exact_entry(self, call: Call) -> Entry | PlainEntry:
        entry = self.programs.find_or_make(call, partial(self._new_entry, call), self)
        self._warn_of_misses()
        return entry

    def _warn_of_misses(self) -> None:
        """Warn once when many calls have compiled a program."""
        if self._has_warned_of_misses or self.programs.misses < WARN_AFTER or self._is_uncompiled():
            return
        self._has_warned_of_misses = True
        warn_recompilation(self.name, self.programs.recent_calls, self._any_size.reason)

    def _new_entry(self, call: Call) -> Entry | PlainEntry:
        """Return a compiled entry, or one of the function itself, which is faster than an evaluated program."""
        if len(self._missing) >= TRIES or (self.programs.misses >= WARN_AFTER and self._is_uncompiled()):
            reason = self._missing[0] if self._missing else UnimplementedError("no compiler was found")
            return PlainEntry(reason, self._direct_function(call))
        started = perf_counter()
        with compiling(self.name):
            entry = self._compile_tiered(self._lower(call, keep_order=True, guarded=True), call)
        entry.seconds = perf_counter() - started
        missing = entry.executable.missing
        if missing is None or not self._may_run_plainly():
            return entry
        with self._lock:
            self._missing.append(missing)
        return PlainEntry(missing, self._direct_function(call))

    def _direct_function(self, call: Call) -> Callable[..., Any] | None:
        """Return the function if it takes the arguments of a call as they are passed, without receivers or `out`."""
        return None if self._takes_self or call.receivers or call.binding.out is not None else self.function

    def _is_uncompiled(self) -> bool:
        """Return True if no code is generated for the function, and NumPy may run it."""
        return self._may_run_plainly() and not LocalService(self.platform).compiler.generates_code

    def _may_run_plainly(self) -> bool:
        """Return True if NumPy may run the function in place of a program, for the same results and errors."""
        return not self.is_internal and self.bounds == "raise" and self._fallback != "error"

    @property
    def _fallback(self) -> str:
        return self.fallback or str(config.get("FALLBACK"))

    def _compile_any_size(self, call: Call, open_sizes: OpenSizes) -> Entry | None:
        """Trace and compile for any size of some dimensions; return None if there can be no such program."""
        started = perf_counter()
        with compiling(self.name):
            try:
                lowered = self._lower(call, keep_order=True, open_sizes=open_sizes, guarded=True)
            except TooLargeError:
                return None
            if lowered.largest_bytes > MOST_BYTES:
                return None
            open_sizes.check_time(lowered, LocalService(self.platform).compiler)
            entry = self._compile_tiered(lowered, call, {"sparse": True})
        entry.seconds = perf_counter() - started
        self.programs.count(entry.seconds)
        return entry

    def _compile_tiered(self, lowered: Lowered, call: Call, more: Mapping[str, Any] = MappingProxyType({})) -> Entry:
        """Compile; prebuilt kernels may serve until native code is ready."""
        compiler, options = self._compilation(lowered, call, more)
        executable, later = compiler.compile_tiered(lowered.module, options)
        entry = Entry(lowered, executable)
        if later is not None:
            entry.compile_in_background(later)
        return entry

    def _compilation(
        self, lowered: Lowered, call: Call, more: Mapping[str, Any] = MappingProxyType({})
    ) -> tuple[Compiler, CompileOptions]:
        """Return the compiler of a traced program, and its options."""
        compiler = LocalService(self.platform).compiler  # every instruction was checked when it was made
        options = CompileOptions.of({**self._options(call, lowered), "live_results": lowered.live_results, **more})
        if config.get("VERIFY"):
            lowered.module.verify()
        return compiler, options

    def _lower(
        self, call: Call, *, keep_order: bool = False, open_sizes: OpenSizes | None = None, guarded: bool = False
    ) -> Lowered:
        from cyxla.numpy.substitutes.patched_numpy import substituted_in

        require_unchanging_defaults(call.binding)
        bound = getattr(self.function, "__self__", None)
        held = [bound, *[value for *_, value in call.receivers], *[a.default for a in call.binding.arguments]]
        has_numbers = any(isinstance(s, Spec) and s.rank0 is Rank0.PYTHON for s in call.specs)
        function = rewritten_for(self.function, held, has_numbers=has_numbers)
        unrecorded = None if function is not self.function else function  # nothing records what it reads and changes
        named = None if unrecorded is function else innermost(self.function)
        environment = (
            Environment(
                self._forms.static_outside, self._numbers, call.receivers, bound, unrecorded, named, call.passed
            )
            if guarded
            else None
        )
        objects = [("self", bound), *[(name, value) for name, _, value in call.receivers]]
        package = package_of(inspect.unwrap(self.function))
        with changing_nothing(unrecorded, objects), substituted_in(self.function), methods_rewritten(package):
            lower_by = partial(
                lower, self.name, partial(call.apply, function), call.specs, call.names, self.bounds,
                keep_order=keep_order, open_sizes=open_sizes, environment=environment,
                exact_classes=guarded and self._may_run_plainly(),
            )  # fmt: skip
            try:
                return lower_by(cuts_slices=self._cuts_slices)
            except CutSliceError:
                if self._cuts_slices:
                    raise
                self._cuts_slices = True
                return lower_by(cuts_slices=True)

    def _options(self, call: Call, lowered: Lowered) -> dict[str, Any]:
        if not self._donate:
            return {**self.options, "in_place": lowered.in_place}
        position = iter(range(len(call.binding.arguments)))
        numbers = [
            k
            for a, inputs in zip(call.binding.arguments, call.inputs, strict=True)
            if self._donate.has(a.name.partition("[")[0], None if a.keyword else next(position))
            for k in inputs
            if not isinstance(call.leaves[k], (int, float, complex, np.generic)) and k not in lowered.writes
        ]
        return {**self.options, "donate": tuple(numbers)}

    @overload
    def __get__(self, instance: None, owner: type) -> Jitted[P, R]: ...
    @overload
    def __get__(
        self: Jitted[Concatenate[Any, Q], R], instance: object, owner: type | None = None
    ) -> BoundJitted[Q, R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else BoundJitted(self, receiver_of(instance))

    # -- tracing, compiling, cache

    def _lower_specs(self, specs: Sequence[Any], named: dict[str, Any]) -> tuple[Call, Lowered]:
        """Trace for one signature; numbers whose values the function needs become static, as in calls."""
        binding = self._binding(len(specs), tuple(named))
        while True:
            call = self._forms.read_specs(binding, (*specs, *named.values()))
            try:
                return call, self._lower(call)
            except (TraceError, UnimplementedError) as error:
                if not self._forms.adapt(call, error):
                    raise

    @api_boundary
    def trace(self, *specs: Any, **named: Any) -> Lowered:
        """Trace the function.

        Parameters
        ----------
        *specs, **named
            Signature: arrays, `cyxla.spec`, or pairs of shape and dtype; static values as they are, and so are numbers
            whose values the function needs.
        """
        return self._lower_specs(specs, named)[1]

    @api_boundary
    def trace_call(self, *specs: Any, **named: Any) -> tuple[Call, Lowered]:
        """Trace the function; return its arguments as well. Takes the arguments of `trace`."""
        return self._lower_specs(specs, named)

    @api_boundary
    def lower(self, *specs: Any, **named: Any) -> LoweredModule:
        """Return the program in HLO, which compiles itself; takes the arguments of `trace`."""
        call, lowered = self._lower_specs(specs, named)

        def compile_(module: HloModule, options: dict[str, Any]) -> Executable:
            source = Source(self, {**self.settings, **options}, specs, named)
            with compiling(self.name):
                return self._executable(replace(lowered, module=module), call, source, options)

        return LoweredModule(lowered.module, compile_)

    @api_boundary
    def compile(self, *specs: Any, **named: Any) -> Executable:
        """Compile for one signature of arrays without containers; takes the arguments of `trace`."""
        with compiling(self.name):
            call, lowered = self._lower_specs(specs, named)
            return self._executable(lowered, call, Source(self, self.settings, specs, named))

    def _executable(
        self, lowered: Lowered, call: Call, source: Source, options: Mapping[str, Any] = MappingProxyType({})
    ) -> Executable:
        """Compile native code, with further options."""
        compiler, compile_options = self._compilation(lowered, call, options)
        executable = compiler.compile(lowered.module, compile_options)
        if not (lowered.fails or lowered.writes or lowered.dense or lowered.is_sized):
            return executable
        return TracedExecutable(lowered, executable, source)

    @api_boundary
    def explain(self, *specs: Any, **named: Any) -> str:
        """Describe for people how the program runs, and why operations were not fused.

        Parameters
        ----------
        *specs, **named
            Signature as in `trace`; all compiled ones by default.
        """
        if specs or named or not self.programs.entries:
            return self.compile(*specs, **named).explain()
        texts = [
            f"{self.name}({', '.join(map(str, key[2]))})\n{entry.explain()}"
            for key, entry in self.programs.entries.items()
        ]
        texts += [
            f"{self.name}({', '.join(map(str, entry.executable.inputs))}), for any size up to these\n{entry.explain()}"
            for entry in self._any_size.entries
        ]
        return "\n\n".join(texts)

    def wait(self, timeout: float | None = None) -> None:
        """Wait until native code serves all signatures that were called, instead of prebuilt kernels.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait for each signature.

        Raises
        ------
        DeadlineExceededError
            The timeout expired.
        OpError
            Native code could not be compiled.
        """
        for entry in [*self.programs.all_entries(), *self._any_size.entries]:
            entry.wait(timeout)

    def call_async(self, *args: Any, **kwargs: Any) -> Future[Any]:
        """Queue a call; a single thread makes all queued calls in order.

        The arguments must not change until then, since they are read when the call is made.

        Returns
        -------
        concurrent.futures.Future
            Future of the result; ``await asyncio.wrap_future(it)`` in a coroutine.
        """
        from cyxla.numpy.calls.call_queue import submit

        return submit(partial(call_disabled, self) if is_disabled() else self, *args, **kwargs)

    def cache_info(self) -> CacheInfo:
        """Return the statistics of the cache."""
        programs = self.programs
        return CacheInfo(self.hits + self._slow_hits, programs.misses, len(programs.entries), programs.seconds)

    def clear(self) -> None:
        """Drop all compiled programs."""
        with self._lock:
            self.programs.clear()
            self._any_size.clear()
            self._missing.clear()
            self._specialisations.clear()
            self._vain = VainTraces()
            self._has_stopped = False
            self.forget()

    def __repr__(self) -> str:
        return f"<cyxla.jit of {self.function!r}, platform {self.platform}>"

    def __copy__(self) -> Jitted[P, R]:
        return self

    def __deepcopy__(self, memo: Any) -> Jitted[P, R]:
        return self

    def __reduce__(self) -> Any:
        name = getattr(self.function, "__qualname__", "")
        target: Any = sys.modules.get(getattr(self.function, "__module__", "") or "")
        for part in name.split("."):
            target = getattr(target, part, None)
        if target is self:
            return name
        return partial(_rebuild, self.function, self.settings), ()

    @property
    def settings(self) -> dict[str, Any]:
        """Options that the function was made with."""
        return {
            **self._keyword_options,
            "platform": self.platform,
            "bounds": self.bounds,
            "sizes": self.sizes,
            **self.options,
        }


def _rebuild(function: Callable[..., Any], options: dict[str, Any]) -> Jitted[..., Any]:
    return Jitted(function, **options)


class BoundJitted(partial, Generic[P, R]):  # type: ignore[type-arg]
    """Traced method of an object."""

    __slots__ = ()

    if TYPE_CHECKING:

        @overload
        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
        @overload
        def __call__(self, *args: Any, out: Any, **kwargs: Any) -> R: ...
        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def trace(self, *specs: Any, **named: Any) -> Lowered:
        """See `Jitted.trace`."""
        return self.func.trace(*self.args, *specs, **named)  # type: ignore[attr-defined, no-any-return]

    def lower(self, *specs: Any, **named: Any) -> LoweredModule:
        """See `Jitted.lower`."""
        return self.func.lower(*self.args, *specs, **named)  # type: ignore[attr-defined, no-any-return]

    def compile(self, *specs: Any, **named: Any) -> Executable:
        """See `Jitted.compile`."""
        return self.func.compile(*self.args, *specs, **named)  # type: ignore[attr-defined, no-any-return]

    def explain(self, *specs: Any, **named: Any) -> str:
        """See `Jitted.explain`."""
        return self.func.explain(*self.args, *specs, **named)  # type: ignore[attr-defined, no-any-return]

    def call_async(self, *args: Any, **kwargs: Any) -> Future[Any]:
        """See `Jitted.call_async`."""
        return self.func.call_async(*self.args, *args, **kwargs)  # type: ignore[attr-defined, no-any-return]


def _write_output(output: Any, value: Any) -> Any:
    output[...] = value
    return output


@overload
def jit(fn: Callable[P, R], **options: Unpack[JitOptions]) -> Jitted[P, R]: ...
@overload
def jit(fn: None = None, **options: Unpack[JitOptions]) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...
@api_boundary
def jit(
    fn: Callable[..., Any] | None = None, *, static: Any = (), donate: Any = (), platform: str = "cpu",
    bounds: str = "raise", sizes: str = "auto", fallback: str | None = None, name: str | None = None, **options: Any,
) -> Any:  # fmt: skip
    """Compile a function written with NumPy.

    The function runs once for each signature, on arrays that have a shape and a dtype but no values; its operations
    become a program. Later calls run that program. Python code that depends on anything other than shapes, dtypes and
    static values runs while tracing only.

    Parameters
    ----------
    fn : callable, optional
        Function; without it, a decorator is returned. Its arguments may be arrays, numbers, and nested tuples, lists,
        dicts, named tuples, dataclasses and None of them. Strings, dtypes, types, functions, slices and enums are
        always static. Numbers become static if Python needs their values, as a size, an axis, a bound of `range` or a
        condition; so do arrays of a few integers that are needed as sizes. In a method, `self` is a container if it is
        a dataclass, else static by its identity: later changes of its attributes are not seen.
    static : sequence of int or str
        Positions or names of static arguments, for whose values the program is specialised; they must be hashable.
    donate : sequence of int or str
        Positions or names of donated arguments, whose memory may be reused for results.
    platform : str
        Platform: ``"cpu"``, ``"interpreter"``, or the name of a plugin's.
    bounds : str
        Mode of indices out of range that are not known while tracing: ``"raise"`` IndexError, ``"clamp"`` to the
        nearest element, or ``"unchecked"`` for undefined behaviour.
    sizes : str
        ``"exact"`` to compile for each size of the arguments; ``"auto"`` to compile for any size of a dimension when a
        third size of it is seen, if the function permits; ``"any"`` to do so at the second size, or raise the reason.
    fallback : str, optional
        ``"numpy"`` to run the function as it is written, with a `cyxla.errors.FallbackWarning`, for arguments for which
        it cannot be compiled; ``"error"`` to raise the reason. The default is that of ``CYXLA_FALLBACK``, ``"numpy"``.
    name : str, optional
        Name of the program; by default that of the function.
    **options
        Fields of `cyxla.xla.service.CompileOptions`.

    Returns
    -------
    Jitted
        Function of the same arguments and ``out=``, arrays to write the results to, nested as the results are.

    Raises
    ------
    TraceError
        The function is a generator or a coroutine.
    InvalidArgumentError
        There is no such argument or option.

    Examples
    --------
    >>> import numpy as np
    >>> @jit(platform="interpreter")
    ... def norm(x):
    ...     return np.sqrt((x * x).sum())
    >>> norm(np.array([3.0, 4.0]))
    np.float64(5.0)
    """
    keywords = {
        "static": static, "donate": donate, "platform": platform, "bounds": bounds, "sizes": sizes,
        "fallback": fallback, "name": name, **options,
    }  # fmt: skip
    return partial(jit, **keywords) if fn is None else Jitted(fn, **keywords)


@api_boundary
def compile_function(
    function: Callable[..., Any], specs: Sequence[Any], platform: str, options: dict[str, Any]
) -> Executable:
    """Compile a function for one signature; see `cyxla.compile`."""
    if isinstance(function, Jitted):
        options = {**function.settings, **options}
        function = function.function
    return Jitted(function, **{**options, "platform": platform}).compile(*specs)


def _jit_internal(function: Callable[..., Any], **keywords: Any) -> Any:
    """Compile a function of this package, which has to be traced and runs so even where `jit` is disabled."""
    jitted: Jitted[..., Any] = jit(function, **keywords)
    jitted.is_internal = True
    return jitted


hooks.jit = _jit_internal
dispatch.enable_vectorcall(Jitted)
