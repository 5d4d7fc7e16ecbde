"""The cache of compiled clusters of one platform, and the policy by which clusters are compiled.

A *signature* is a function with the types and shapes of its arguments and the values of its compile-time constants.
Each is compiled at most once, when the policy of its mode says so:

========== =============================================================================================
STRICT     immediately: there is no fallback
LAZY       with the first run of a cluster; later signatures when they are requested for the second time
ASYNC      as LAZY, but on a background thread: the run that requested the program does not wait
========== =============================================================================================

A cluster with ever new signatures is *megamorphic*: more than 10 compilations with fewer than 50 runs each. It is not
compiled any more.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from threading import RLock
from time import perf_counter

from cyxla.autojit.devices import compilation_device_of
from cyxla.autojit.fused_ops.rewrite import specialize
from cyxla.autojit.runtime.launch import Program, compile_computation
from cyxla.core.framework.attr_value import NameAttrList
from cyxla.core.framework.function import FunctionLibraryDefinition
from cyxla.core.framework.resource_mgr import ResourceBase, ResourceMgr
from cyxla.errors import OpError, UnimplementedError
from cyxla.forking import call_in_child, new_lock
from cyxla.gc_pause import fewer_collections
from cyxla.tf2xla.argument import Argument, CompilationResult
from cyxla.tf2xla.xla_compiler import XlaCompiler, XlaCompilerOptions
from cyxla.xla.client import LocalClient, LocalExecutable
from cyxla.xla.service.background import submit

COMPILE_THRESHOLD, MIN_EXECUTIONS_PER_COMPILE = 10, 50
MAX_UNCOMPILED = 4096  # signatures that were requested, but not compiled
CONTAINER = "xla_compilation_cache"


class CompileMode(Enum):
    """Policy of a request: compile immediately, lazily, or in the background."""

    STRICT = "strict"
    LAZY = "lazy"
    ASYNC = "async"


class CompileState(Enum):
    """State of a signature."""

    UNCOMPILED = "uncompiled"
    COMPILING = "compiling"
    COMPILED = "compiled"


@dataclass
class ClusterStats:
    """Counters of one cluster.

    Attributes
    ----------
    compile_count, execution_count : int
        Number of signatures compiled, and number of requests for the cluster.
    compile_seconds : float
        Time spent compiling.
    is_megamorphic : bool
        True once the cluster has had too many signatures; it never becomes False again.
    """

    compile_count: int = 0
    execution_count: int = 0
    compile_seconds: float = 0.0
    is_megamorphic: bool = False

    def count_compilation(self, seconds: float) -> None:
        """Count a compilation, and update `is_megamorphic`."""
        self.compile_count += 1
        self.compile_seconds += seconds
        if (
            self.compile_count > COMPILE_THRESHOLD
            and self.execution_count < MIN_EXECUTIONS_PER_COMPILE * self.compile_count
        ):
            self.is_megamorphic = True


@dataclass
class Entry:
    """State, program and error of one signature."""

    state: CompileState = CompileState.UNCOMPILED
    requests: int = 0
    program: Program | None = None
    error: OpError | None = None
    lock: RLock = field(default_factory=new_lock)


def should_compile(mode: CompileMode, stats: ClusterStats, requests: int, *, always_defer: bool = False) -> bool:
    """Return True if the policy compiles a signature at its `requests`-th request."""
    if mode is CompileMode.STRICT:
        return True
    if always_defer or stats.is_megamorphic:
        return False
    return stats.execution_count == 1 or requests >= 2


class XlaCompilationCache(ResourceBase):
    """The compiled clusters of one platform in one session.

    Parameters
    ----------
    platform : str
        Platform: ``"cpu"``, ``"interpreter"``, or a plugin's name.
    """

    def __init__(self, platform: str) -> None:
        self.platform = platform
        self._entries: dict[Hashable, Entry] = {}
        self._stats: dict[Hashable, ClusterStats] = {}
        self._compilers: dict[int, XlaCompiler] = {}
        self._client: LocalClient | None = None
        self._capacity = MAX_UNCOMPILED
        self._lock, self._compiling = new_lock(), new_lock()
        call_in_child(self._reset_compiling)

    def _reset_compiling(self) -> None:
        """Reset the signatures that a parent process was compiling in the background, so that a fork compiles them."""
        for entry in self._entries.values():
            if entry.state is CompileState.COMPILING:
                entry.state = CompileState.UNCOMPILED

    def compile_if_needed(
        self,
        cluster: Hashable,
        signature: Hashable,
        build: Callable[[], Program],
        mode: CompileMode,
        *,
        always_defer: bool = False,
    ) -> Program | None:
        """Return the program of a signature, compiling it if the policy says so; None if there is no program yet.

        Parameters
        ----------
        cluster : hashable
            Key of the function, under which the requests are counted.
        signature : hashable
            Key of the program within the cluster.
        build : callable
            Function that compiles the program.
        mode : CompileMode
            Policy of this request.
        always_defer : bool
            Compile only where the mode is STRICT.

        Raises
        ------
        OpError
            The signature cannot be compiled; further requests raise the same error.
        """
        with self._lock:
            stats = self._stats.get(cluster) or self._stats.setdefault(cluster, ClusterStats())
            stats.execution_count += 1
            key = (cluster, signature)
            entry = self._entries.get(key) or self._new_entry(key)
            entry.requests += 1
            if entry.state is CompileState.COMPILED and entry.program is not None:
                return entry.program
            compile_now = entry.state is CompileState.UNCOMPILED and should_compile(
                mode, stats, entry.requests, always_defer=always_defer
            )
            if mode is CompileMode.ASYNC and compile_now:
                entry.state = CompileState.COMPILING
        if mode is CompileMode.ASYNC:
            if compile_now:
                submit(lambda: self._compile_in_background(entry, stats, build))
            return self._program_of(entry)
        if compile_now or entry.state is not CompileState.UNCOMPILED:
            with entry.lock:  # a second request waits for the first
                if entry.state is CompileState.UNCOMPILED:
                    self._compile(entry, stats, build)
        return self._program_of(entry)

    def _new_entry(self, key: Hashable) -> Entry:
        """Add a signature, after dropping the uncompiled ones if there are more than `MAX_UNCOMPILED`."""
        if len(self._entries) >= self._capacity:
            self._entries = {k: e for k, e in self._entries.items() if e.state is not CompileState.UNCOMPILED}
            self._capacity = len(self._entries) + MAX_UNCOMPILED
        entry = self._entries[key] = Entry()
        return entry

    @staticmethod
    def _program_of(entry: Entry) -> Program | None:
        if entry.state is CompileState.COMPILED and entry.error is not None:
            raise entry.error
        return entry.program

    def _compile_in_background(self, entry: Entry, stats: ClusterStats, build: Callable[[], Program]) -> None:
        """Compile on the background thread, unless a forked child has compiled the signature meanwhile."""
        if entry.state is CompileState.COMPILING:
            self._compile(entry, stats, build)

    def _compile(self, entry: Entry, stats: ClusterStats, build: Callable[[], Program]) -> None:
        began = perf_counter()
        try:
            with self._compiling, fewer_collections():
                entry.program = build()
        except OpError as error:
            entry.error = error
        except Exception as error:
            entry.error = UnimplementedError(f"the compiler failed with {type(error).__name__}: {error}")
            entry.error.__cause__ = error
        finally:
            with self._lock:
                stats.count_compilation(perf_counter() - began)
            entry.state = CompileState.COMPILED

    # The call chain from a function to an executable, under its names in XLA

    def compiler(self, library: FunctionLibraryDefinition) -> XlaCompiler:
        """Return the compiler for the functions of a library."""
        with self._compiling:
            compiler = self._compilers.get(id(library))
            if compiler is None:
                options = XlaCompilerOptions(compilation_device_of(self.platform), library, rewrite=specialize)
                compiler = self._compilers[id(library)] = XlaCompiler(options)
            return compiler

    def compile_function(
        self, library: FunctionLibraryDefinition, function: NameAttrList, args: Sequence[Argument]
    ) -> Program:
        """Compile a function for arguments of one signature."""
        result = self.compiler(library).compile_function(function, args)
        return Program(result, self.build_executable(result))

    def build_executable(self, result: CompilationResult) -> LocalExecutable | None:
        """Return the executable of a computation; None if it computes nothing."""
        if result.is_empty:
            return None
        if self._client is None:
            self._client = LocalClient(self.platform)
        return compile_computation(self._client, result.computation)

    # Counters

    def stats(self, cluster: Hashable) -> ClusterStats:
        """Return the counters of a cluster."""
        return self._stats.get(cluster, ClusterStats())

    @property
    def compile_count(self) -> int:
        """The number of programs compiled, over all clusters."""
        return sum(stats.compile_count for stats in self._stats.values())

    @property
    def execution_count(self) -> int:
        """The number of requests, over all clusters."""
        return sum(stats.execution_count for stats in self._stats.values())

    def __len__(self) -> int:
        return len(self._entries)

    def debug_string(self) -> str:
        """Return the platform and the counters as text."""
        return f"XlaCompilationCache {self.platform}: {len(self)} signatures, {self.compile_count} compilations"


def build_compilation_cache(manager: ResourceMgr, platform: str) -> XlaCompilationCache:
    """Return the cache of a platform among the resources of a session; it is created on first use."""
    return manager.lookup_or_create(CONTAINER, platform, XlaCompilationCache, lambda: XlaCompilationCache(platform))


def is_unsupported(error: OpError) -> bool:
    """Return True if the compiler lacks a feature, so that the function must be run instead."""
    return error.code == "UNIMPLEMENTED"


def depends_on_arguments(error: OpError) -> bool:
    """Return True if other arguments may compile though these do not: running the function reports the error."""
    return error.code in ("INVALID_ARGUMENT", "OUT_OF_RANGE", "FAILED_PRECONDITION")
