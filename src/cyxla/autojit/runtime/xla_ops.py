"""Kernels of the ops that compile and run clusters."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import count, zip_longest
from typing import Any

import numpy as np

from cyxla.autojit.analysis.candidates import attrs_key
from cyxla.autojit.devices import REGISTRY
from cyxla.autojit.flags import current
from cyxla.autojit.options import LAZY, PLATFORM
from cyxla.autojit.runtime.device_compiler import (
    CompileMode,
    XlaCompilationCache,
    build_compilation_cache,
    depends_on_arguments,
    is_unsupported,
)
from cyxla.autojit.runtime.launch import (
    HeldLocks,
    Program,
    Variables,
    describe,
    describe_variable,
    hold_locks,
    value_key,
)
from cyxla.core.framework.attr_value import NameAttrList
from cyxla.core.framework.kernel_decorators import kernel
from cyxla.core.framework.op_kernel import OpKernel, OpKernelConstruction
from cyxla.core.framework.op_kernel_context import OpKernelContext
from cyxla.core.framework.registration_batch import directly
from cyxla.core.framework.variable import Var
from cyxla.errors import InternalError, InvalidArgumentError, OpError
from cyxla.tf2xla.argument import Argument

Array = np.ndarray[Any, Any]
_LOG = logging.getLogger("cyxla.autojit")
_LAZY_MODES = (CompileMode.LAZY, CompileMode.ASYNC)


def platform_of(construction: OpKernelConstruction) -> str:
    """Return the platform for which a node is compiled: that of its session, or that of its device."""
    if construction.has_attr(PLATFORM):
        return str(construction.get_attr(PLATFORM))
    info = REGISTRY.find(construction.device_type)
    return "cpu" if info is None else info.platform


class _CompilingKernel(OpKernel):
    """Base class of kernels that compile a function for the signature of their inputs.

    The inputs are, in this order, compile-time constants, other values, and handles of variables. Programs use the
    thread pool by themselves, so that the executor need not run these kernels on a thread of their own.
    """

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.platform = platform_of(construction)
        self.function: NameAttrList = construction.get_attr("function")
        self.constants = len(construction.get_attr("Tconstants"))
        self.resources: int = construction.get_attr("Nresources")
        self.cluster = (self.function.name, attrs_key(self.function.attrs))
        self.library = construction.function_library.library if construction.function_library is not None else None
        self.unsupported = False  # True once the compiler lacked a feature: from then on the function is run
        self._cache: XlaCompilationCache | None = None
        self._variables = Variables()

    def cache(self, ctx: OpKernelContext) -> XlaCompilationCache:
        """Return the session's cache of compiled clusters."""
        if self._cache is None:
            self._cache = build_compilation_cache(ctx.resource_manager, self.platform)
        return self._cache

    def variables(self, ctx: OpKernelContext, inputs: Sequence[Any]) -> tuple[list[Var | None], HeldLocks]:
        """Return the variable of each input, None for other values, and a context manager that holds their locks."""
        first = len(inputs) - self.resources
        resource_variables, locks = self._variables.of(ctx.resource_manager, list(inputs[first:]))
        return [*(None,) * first, *resource_variables], HeldLocks(locks)

    def signature(self, values: Sequence[Array | None], variables: Sequence[Var | None]) -> Hashable:
        """Return the key of the program for these inputs: shapes, values of constants, and types of variables."""
        constants = self.constants
        constant_keys = tuple([(v.shape, value_key(v)) for v in values[:constants] if v is not None])
        shapes = tuple([None if v is None else v.shape for v in values[constants:]])
        return constant_keys, shapes, tuple([v.dtype for v in variables if v is not None]) if self.resources else ()

    def arguments(self, values: Sequence[Any], variables: Sequence[Var | None]) -> list[Argument]:
        """Return the compiler's descriptions of the inputs."""
        types = self.input_types
        return [
            describe(value, types[i].base, constant=i < self.constants)
            if variable is None
            else describe_variable(variable, value)
            for i, (value, variable) in enumerate(zip_longest(values, variables))
        ]

    def program(
        self, ctx: OpKernelContext, values: Sequence[Any], variables: Sequence[Var | None], *, lazy: bool
    ) -> Program | None:
        """Return the program for these inputs; None if the function is to be run instead.

        Raises
        ------
        OpError
            The cluster cannot be compiled, and there is no fallback.
        """
        if lazy and self.unsupported:
            return None
        cache = self.cache(ctx)
        library = self.library if self.library is not None else ctx.step.function_library.library
        flags = current()
        try:
            return cache.compile_if_needed(
                self.cluster,
                self.signature(values, variables),
                lambda: cache.compile_function(library, self.function, self.arguments(values, variables)),
                CompileMode.STRICT if not lazy else _LAZY_MODES[flags.tf_xla_async_compilation],
                always_defer=flags.tf_xla_always_defer_compilation,
            )
        except OpError as error:
            if not lazy or not (is_unsupported(error) or depends_on_arguments(error)):
                raise
            if is_unsupported(error):
                self.unsupported = True
                _LOG.warning("'%s' runs as a function: it cannot be compiled: %s", self.function.name, error.message)
            return None


# Two ops: one compiles, the other runs --------------------------------------------------------------------------
@dataclass(frozen=True)
class Closure:
    """The value that `_XlaCompile` passes to `_XlaRun`: a program, and the variables with their values.

    Attributes
    ----------
    values : list
        Values of all arguments; those of variables as read when the program was chosen.
    constants : int
        Number of leading arguments that `_XlaRun` does not get.
    """

    program: Program
    variables: list[Var | None]
    values: list[Array | None]
    constants: int


class ClosureStore:
    """Closures by key; each can be taken out once."""

    def __init__(self) -> None:
        self._closures: dict[bytes, Closure] = {}
        self._numbers = count()

    def produce(self, closure: Closure) -> bytes:
        """Store a closure, and return its unique key."""
        key = b"closure_%d" % next(self._numbers)
        self._closures[key] = closure
        return key

    def consume(self, key: bytes) -> Closure:
        """Remove a closure, and return it.

        Raises
        ------
        InternalError
            There is no closure under the key: it was removed before.
        """
        closure = self._closures.pop(key, None)
        if closure is None:
            raise InternalError(f"there is no compiled closure under the key {key!r}: it can be run only once")
        return closure

    def __len__(self) -> int:
        return len(self._closures)


CLOSURES = ClosureStore()


class XlaCompileOp(_CompilingKernel):
    """Kernel that compiles a cluster; its results are the key of a closure, and True if there is a program."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.must_compile: bool = construction.get_attr("must_compile")

    def compute(self, ctx: OpKernelContext) -> None:
        """Read the variables and find the program for them."""
        inputs = [ctx.input(i) for i in range(ctx.num_inputs)]
        variables, locks = self.variables(ctx, inputs)
        with locks:
            values = [a if v is None else v.read() for a, v in zip(inputs, variables, strict=True)]
        program = self.program(ctx, values, variables, lazy=not self.must_compile)
        key = b"" if program is None else CLOSURES.produce(Closure(program, variables, values, self.constants))
        text = np.empty((), object)
        text[()] = key
        ctx.set_output(0, text)
        ctx.set_output(1, np.array(program is not None))


class XlaRunOp(OpKernel):
    """Kernel that runs the closure of `_XlaCompile`."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Run the program on the inputs, and write the variables back."""
        closure = CLOSURES.consume(ctx.input(ctx.num_inputs - 1).item())
        inputs = [ctx.input(i) for i in range(ctx.num_inputs - 1)]
        args = [*closure.values[: closure.constants], *inputs]
        values = [a if v is None else k for a, v, k in zip(args, closure.variables, closure.values, strict=True)]
        results = closure.program.run(values)
        with hold_locks(closure.variables):
            closure.program.write_back(closure.variables, results)
        for i, value in enumerate(closure.program.results(args, results)):
            ctx.set_output(i, value)


# One op that does both -------------------------------------------------------------------------------------------
class XlaLaunchOp(_CompilingKernel):
    """Kernel that compiles and runs a cluster; it holds the locks of the variables throughout."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self.lazy = bool(construction.has_attr(LAZY) and construction.get_attr(LAZY))
        self._handle: Any = None

    def compute(self, ctx: OpKernelContext) -> None:
        """Run the program, or the function if there is no program."""
        inputs = [ctx.input(i) for i in range(ctx.num_inputs)]
        flags = current()
        if flags.tf_xla_check_cluster_input_numerics:
            _check_numerics(self.function.name, [x for x in inputs if not x.dtype.hasobject])
        results = self._run_program(ctx, inputs)
        if results is None:
            results = self._call_function(ctx, inputs)
        if flags.tf_xla_check_cluster_output_numerics:
            _check_numerics(self.function.name, results)
        if flags.tf_xla_print_cluster_outputs:
            for i, value in enumerate(results):
                print(f"{self.function.name} output {i}: {value}")
        for i, value in enumerate(results):
            ctx.set_output(i, value)

    def _run_program(self, ctx: OpKernelContext, inputs: list[Any]) -> list[Array] | None:
        if not self.resources:
            program = self.program(ctx, inputs, (), lazy=self.lazy)
            return None if program is None else program.results(inputs, program.run(inputs))
        variables, locks = self.variables(ctx, inputs)
        with locks:
            values = [a if v is None else v.read() for a, v in zip(inputs, variables, strict=True)]
            program = self.program(ctx, values, variables, lazy=self.lazy)
            if program is None:
                return None
            results = program.run(values)
            program.write_back(variables, results)
        return program.results(inputs, results)

    def _call_function(self, ctx: OpKernelContext, inputs: list[Any]) -> list[Array]:
        if self._handle is None:
            self._handle = ctx.instantiate(self.function)
        return list(ctx.call_function(self._handle, inputs))


class XlaMergeOp(OpKernel):
    """Kernel that forwards the result of the function or of the executable, whichever ran."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Forward the input that is alive."""
        ctx.set_output(0, ctx.input(0 if ctx.has_input(0) else 1))


def _check_numerics(name: str, values: Sequence[Array]) -> None:
    for i, value in enumerate(values):
        if value.dtype.kind in "fc" and not np.isfinite(value).all():
            raise InvalidArgumentError(f"value {i} at the boundary of '{name}' contains NaN or infinity")


_registered: set[str] = set()


def register_kernels(*devices: str) -> None:
    """Register the kernels for the CPU and further types of devices, each once."""
    with directly():
        for device in ("CPU", *devices):
            if device not in _registered:
                _registered.add(device)
                kernel("_XlaCompile", device=device)(XlaCompileOp)
                kernel("_XlaRun", device=device)(XlaRunOp)
                kernel("XlaLaunch", device=device)(XlaLaunchOp)
                kernel("_XlaMerge", device=device)(XlaMergeOp)
