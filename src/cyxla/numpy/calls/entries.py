"""Compiled entries of a function's cache: one for each signature, with the conversion of its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from cyxla import memory
from cyxla._native.dispatch import CaughtError, Compiled, Dispatcher, build, drop_zero_imaginary, with_layout
from cyxla._native.launch import Program
from cyxla.errors import DeadlineExceededError, InvalidArgumentError, OpError, ResourceExhaustedError, without_frames
from cyxla.numpy.calls.argument_changes import ArgumentChange, apply_all, with_containers
from cyxla.numpy.calls.lowering import NO_GUARDS, Lowered
from cyxla.numpy.indexing.bounds import CutSliceError
from cyxla.numpy.state.guards import Guards
from cyxla.numpy.tracing import containers
from cyxla.numpy.tracing.arrays.sized_array import SIZED, Prototype, build_arrays
from cyxla.numpy.tracing.containers import Tree
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.results.result_layout import ROW_MAJOR_RESULT, Layout, inverse
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.types import Shape
from cyxla.xla.service import Executable, WrappedExecutable
from cyxla.xla.service.background import Job, submit

_LEAF, _TUPLE, _LIST, _DICT, _NONE, _OTHER, _ARGUMENT, _SIZED = range(8)
_SEQUENCES = {containers.TUPLE: _TUPLE, containers.LIST: _LIST}


def build_plan(tree: Tree) -> tuple[Any, ...]:
    """Return the plan by which `Compiled` builds a container."""
    if tree.kind is None:
        return (_LEAF,)
    if tree.kind is containers.ARGUMENT:
        return (_ARGUMENT, tree.key)
    parts = tuple(map(build_plan, tree.children))
    if tree.kind in _SEQUENCES:
        return (_SEQUENCES[tree.kind], parts)
    if tree.kind == containers.NONE:
        return (_NONE,)
    if tree.kind == containers.DICT:
        return (_DICT, tree.key, parts)
    return (_SIZED if tree.kind is SIZED else _OTHER, tree.kind.build, tree.key, parts)


class Entry(Compiled):
    """Traced and compiled function for one signature.

    Parameters
    ----------
    lowered : Lowered
        Traced program.
    executable : Executable
        Compiled program.
    seconds : float
        Compile time in seconds.
    """

    def __init__(self, lowered: Lowered, executable: Executable, seconds: float = 0.0) -> None:
        input_axes = lowered.input_axes if any(lowered.input_axes) else None
        layouts = None if all(layout == ROW_MAJOR_RESULT for layout in lowered.layouts) else lowered.layouts
        self.lowered = lowered
        super().__init__(
            executable, build_plan(lowered.tree), lowered.fails, bytes(lowered.rank0), input_axes, layouts,
            lowered.spectra or None, lowered.writes, bool(lowered.effects or lowered.places), lowered.takes_passed,
            dense=lowered.dense,
        )  # fmt: skip
        self.seconds = seconds
        self.job: Job | None = None
        self.failure: Exception | None = None
        self._own_results = isinstance(executable, Program)

    def use(self, executable: Executable) -> None:
        """Replace the executable by an equivalent one; running calls finish with the old one."""
        super().use(executable)
        self.padded_bytes = _padded_bytes(self.lowered, executable)

    def require_memory(self) -> None:
        """Ask for a call of the function itself, whose arrays are smaller, if there is no memory for padded arrays."""
        try:
            memory.require(self.padded_bytes)
        except ResourceExhaustedError as error:
            size, where = self.lowered.program.largest_padding
            text = f"an array of run-time size takes {size} bytes at its greatest size: {error.message}"
            hint = "limit the sizes, as np.arange(np.minimum(n, 1000)) does"
            failure = ResourceExhaustedError(text, where=where, hint=hint)
            failure.leaves_with_warning = True  # type: ignore[attr-defined]
            raise CaughtError(failure) from None

    def compile_in_background(self, compile_: Callable[[], Executable]) -> None:
        """Compile a faster executable in the background and use it when it is ready."""
        self.job = submit(partial(_compile_faster, ref(self), compile_))

    def wait(self, timeout: float | None) -> None:
        """Wait for the executable that is compiled in the background.

        Raises
        ------
        DeadlineExceededError
            The timeout expired.
        OpError
            Compilation failed.
        """
        if self.job is not None and not self.job.wait(timeout):
            raise DeadlineExceededError(f"native code of {self.lowered.module.name} is not ready after {timeout} s")
        if self.failure is not None:
            raise self.failure

    def explain(self) -> str:
        """Describe for people how the program runs."""
        text: str = self.executable.explain()
        if self.failure is not None:
            return f"prebuilt kernels, since native code could not be compiled: {self.failure}\n{text}"
        if self.job is not None and not self.job.done.is_set():
            return f"prebuilt kernels, until native code, which is being compiled, is ready\n{text}"
        return text

    def run_slowly(self, arguments: Sequence[Any], out: Any, passed: Sequence[Any]) -> Any:
        """Run without the C fast path: into given arrays, or on platforms without native code.

        Parameters
        ----------
        arguments : sequence
            Arrays and numbers with the dimensions that the program takes.
        out : object
            Arrays of ``out=``, or None.
        passed : sequence
            Arrays and numbers as they were passed.
        """
        if out is not None:
            _refuse_sized_out(self.lowered)
        self.require_memory()
        if self.finishes and out is not None:
            out = (out, *[None] * len(self.lowered.effects))
        given = None if out is None else _check_distinct(_outputs_in_order(out, self.plan, "out"))
        numbers = _argument_numbers(self.plan)
        outputs = None if given is None else [p for p, k in zip(given, numbers, strict=True) if k is None]
        results = self.executable(*arguments, out=self._program_outputs(outputs))
        results = [results] if self.lowered.is_array else list(results)
        if self.fails:
            status = results.pop()
            if status[0]:
                self.fail(int(status[0]), int(status[1]))
        for k in reversed(self.writes):
            _write_back(results.pop(), arguments[k])
        if not self._own_results:
            results = [_copy(r) for r in results] if outputs is None else results
        if outputs is None:
            outputs = [None] * len(results)
        results_with_layouts = zip(results, self.lowered.rank0, self.lowered.layouts, outputs, strict=True)
        converted = [_convert_result(r, b, layout) if p is None else p for r, b, layout, p in results_with_layouts]
        if self.spectra is not None:
            drop_zero_imaginary(converted, tuple([pair for pair in self.spectra if outputs[pair[0]] is None]))
        if given is None:
            return build(self.plan, iter(converted), [*passed, *converted])
        values, shared = iter(converted), [*passed, *converted]
        return build(_without_arguments(self.plan), iter([
            next(values) if k is None else _write_argument(p, shared[k]) for p, k in zip(given, numbers, strict=True)
        ]))  # fmt: skip

    def _program_outputs(self, outputs: list[Any] | None) -> Any:
        if outputs is None:
            return None
        if self.layouts is not None:
            outputs = [_to_memory_order(p, layout) for p, layout in zip(outputs, self.layouts, strict=True)]
        return outputs[0] if self.lowered.is_array else (*outputs, *[None] * (len(self.writes) + self.fails))

    @property
    def guards(self) -> Guards:
        """Values from outside that the program depends on."""
        return self.lowered.guards

    @cached_property
    def changes_containers(self) -> bool:
        """True if the function changes containers of its arguments."""
        return any(isinstance(e, ArgumentChange) and not e.is_of_object for e in self.lowered.effects)

    def finish(self, result: Any) -> Any:
        """Change the objects from outside, and return the function's own result."""
        return result if self.takes_passed else self.finish_call(result, ())

    def finish_call(self, result: Any, passed: Sequence[Any]) -> Any:
        """Change the values passed as well, and return them where the function does."""
        result = with_containers(result, self.lowered.places, passed)
        if not self.lowered.effects:
            return result
        value, *new_values = result
        apply_all(self.lowered.effects, new_values, passed)
        return value

    def fail(self, code: int, number: int) -> None:
        """Raise the error of a failed run, or ask for a call of the function itself, which may catch the error."""
        error = self.lowered.error(code, number)
        if self.lowered.program.draws:
            from cyxla.numpy.custom_calls.global_random import restore_state

            restore_state()
        is_caught = self.lowered.program.catches or isinstance(error, CutSliceError)
        raise CaughtError(error) if is_caught else error


def _padded_bytes(lowered: Lowered, executable: Executable) -> int:
    """Return the bytes of results and temporaries if some are large since they are padded, else 0."""
    if not lowered.program.largest_padding[0]:
        return 0
    planned = executable.memory
    if "temporaries" in planned:
        return planned["results"] + planned["temporaries"]
    return lowered.largest_bytes  # which the interpreter stores


def _write_back(value: Any, target: Any) -> None:
    """Write the new value of an argument to it, unless it was computed there."""
    is_same = value.__array_interface__["data"][0] == target.__array_interface__["data"][0]
    if not (is_same and target.flags.c_contiguous):
        np.copyto(target, value)


def _write_argument(output: Any, argument: Any) -> Any:
    """Write an argument that is a result to the array of ``out=``, if there is one."""
    if output is None:
        return argument
    np.copyto(output, argument)
    return output


def _argument_numbers(plan: tuple[Any, ...]) -> list[int | None]:
    """Return the number of the argument that each leaf of a result is; None for those that are computed."""
    if plan[0] in (_LEAF, _ARGUMENT):
        return [plan[1] if plan[0] == _ARGUMENT else None]
    return [] if plan[0] == _NONE else [number for part in plan[-1] for number in _argument_numbers(part)]


def _without_arguments(plan: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a plan with leaves in place of arguments."""
    if plan[0] in (_LEAF, _ARGUMENT):
        return (_LEAF,)
    return plan if plan[0] == _NONE else (*plan[:-1], tuple(map(_without_arguments, plan[-1])))


def _refuse_sized_out(lowered: Lowered) -> None:
    if lowered.is_sized:
        raise InvalidArgumentError(
            "out= cannot be given, since the size of a result is known at run time only", hint="use the result"
        )


def _compile_faster(reference: ref[Entry], compile_: Callable[[], Executable]) -> None:
    """Compile a faster executable for an entry, unless the entry is unreachable."""
    if reference() is None:
        return
    executable, failure = None, None
    try:
        executable = compile_()
    except Exception as error:  # callers have a working executable already
        import logging

        logging.getLogger(__name__).warning(
            "native code could not be compiled, so prebuilt kernels stay in use: %s", error
        )
        failure = error
    entry = reference()
    if entry is None:
        return
    entry.failure = failure
    if executable is not None:
        entry.use(executable)


def _copy(result: Any) -> Any:
    """Copy a result, so that it shares memory with nothing."""
    return np.array(result)


def _to_memory_order(output: Any, layout: Layout) -> Any:
    """Transpose an array of ``out=`` to the program's layout; the program refuses one of another rank."""
    axes = layout[0]
    return output if output is None or axes is None or output.ndim != len(axes) else output.transpose(inverse(axes))


def _convert_result(result: Any, rank0: Rank0, layout: Layout) -> Any:
    if result.ndim:
        return result if layout == ROW_MAJOR_RESULT else with_layout(result, layout)
    if rank0 is Rank0.ARRAY:
        return result
    return result.item() if rank0 is Rank0.PYTHON else result[()]


def _outputs_in_order(out: Any, plan: tuple[Any, ...], path: str) -> list[Any]:
    """Return the arrays of ``out=`` in the order of the results; None for missing ones."""
    kind = plan[0]
    if kind in (_LEAF, _ARGUMENT):
        if out is not None and not isinstance(out, np.ndarray):
            raise InvalidArgumentError(f"{path} must be a NumPy array, not a {type(out).__name__}")
        return [out]
    if kind == _NONE:
        return []
    parts, steps = _children_of_out(out, plan, path)
    return [
        output
        for part, child_plan, step in zip(parts, plan[-1], steps, strict=True)
        for output in _outputs_in_order(part, child_plan, step)
    ]


def _check_distinct(outputs: list[Any]) -> list[Any]:
    """Check that no array appears twice."""
    if len(outputs) > 1 and len({id(p) for p in outputs if p is not None}) < sum(p is not None for p in outputs):
        raise InvalidArgumentError(
            "out= names one array for several results", hint="pass a different array for each result"
        )
    return outputs


def _children_of_out(out: Any, plan: tuple[Any, ...], path: str) -> tuple[Sequence[Any], Sequence[str]]:
    count = len(plan[-1])
    if out is None:
        return [None] * count, [path] * count
    if plan[0] == _DICT:
        if isinstance(out, dict) and out.keys() == set(plan[1]):
            return [out[k] for k in plan[1]], [f"{path}[{k!r}]" for k in plan[1]]
        raise InvalidArgumentError(f"{path} must be a dict with the keys {list(plan[1])}, like the result")
    kind = containers.kind_of(out)
    parts = [] if kind is None else kind.parts(out)
    is_same_kind = (
        type(out) in (tuple, list) if plan[0] in (_TUPLE, _LIST) else kind is not None and kind.key(out) == plan[2]
    )
    if kind is None or len(parts) != count or not is_same_kind:
        raise InvalidArgumentError(f"{path} must be a container of {count} elements, like the result")
    return parts, [path + step for step in kind.paths(out)]


class PlainEntry(Compiled):
    """A signature for which the function runs as it is written.

    Parameters
    ----------
    reason : OpError
        Error for which it cannot be compiled.
    direct : callable, optional
        The function, if it takes the arguments of calls as they are passed.
    """

    guards = NO_GUARDS

    def __init__(self, reason: OpError, direct: Callable[..., Any] | None = None) -> None:
        super().__init__(None, (_LEAF,), False, b"", plain=True, direct=direct)
        self.reason = without_frames(reason)
        self.seconds = 0.0

    def wait(self, timeout: float | None) -> None:
        """Return, since nothing is compiled."""

    def explain(self) -> str:
        """Describe for people why no program runs."""
        return f"NumPy runs the function, since it cannot be compiled: {self.reason}"


class Source(NamedTuple):
    """Origin of a compiled function.

    Attributes
    ----------
    function : callable
        Function that was compiled, which may be known by its name alone.
    settings : dict
        Options of `cyxla.jit`.
    specs, named : tuple and dict
        Signature that it was traced for.
    """

    function: Callable[..., Any]
    settings: dict[str, Any]
    specs: tuple[Any, ...]
    named: dict[str, Any]


def _rebuild(source: Source, bound_arguments: Sequence[Any]) -> Executable:
    function: Any = source.function
    is_jitted = isinstance(source.function, Dispatcher)
    plain = function.function if is_jitted else function
    executable: Executable = hooks.jit(plain, **source.settings).compile(*source.specs, **source.named)
    for arguments in bound_arguments:
        executable = executable.bind(arguments)
    return executable


class TracedExecutable(WrappedExecutable):
    """Compiled function whose runs may fail, from arrays to one array or a tuple of arrays.

    Parameters
    ----------
    lowered : Lowered
        Traced program.
    executable : Executable
        Compiled program.
    source : Source
        Origin, for pickling.
    bound_arguments : sequence of mappings, optional
        Arguments of the calls of `bind`, in order.
    """

    def __init__(
        self, lowered: Lowered, executable: Executable, source: Source, bound_arguments: Sequence[Any] = ()
    ) -> None:
        super().__init__(executable)
        self._lowered, self._source, self._bound_arguments = lowered, source, tuple(bound_arguments)
        self.inputs = executable.inputs
        self._numbers: Sequence[int] = range(len(self.inputs))  # of the arguments that are not bound

    @property
    def outputs(self) -> Any:  # type: ignore[override]
        """Shape of the result."""
        shapes = [v.shape for v in build_arrays(self._lowered.tree, iter(self._result_prototypes()))]
        return shapes[0] if self._is_array else Shape.tuple(shapes)

    @property
    def _is_array(self) -> bool:
        """True if the function returns one array."""
        return self._lowered.tree.kind is None or self._lowered.tree.kind is SIZED

    def _result_prototypes(self) -> Sequence[Any]:
        shapes = self._whole.outputs
        elements = shapes.elements if shapes.is_tuple else (shapes,)
        return [Prototype(s) for s in elements[: self._lowered.tree.count]]

    def __call__(self, *args: Any, out: Any = None) -> Any:
        """Run; failed checks raise their errors."""
        if out is not None:
            _refuse_sized_out(self._lowered)
        outputs = (out,) if self._is_array and out is not None else out
        others = [None] * (len(self._lowered.writes) + self._lowered.fails)
        self._require_dense(dict(zip(self._numbers, args, strict=False)))
        targets = self._written_arguments(args) if self._lowered.writes else []
        results = self._whole(*args, out=None if out is None else (*outputs, *others))
        if self._lowered.fails:
            status = results[-1]
            if status[0]:
                raise self._lowered.error(int(status[0]), int(status[1]))
        for target, value in zip(targets, results[self._lowered.tree.count :], strict=False):
            np.copyto(target, value)
        arrays = build_arrays(self._lowered.tree, iter(results))
        return arrays[0] if self._is_array else tuple(arrays)

    def _require_dense(self, arguments: Mapping[int, Any]) -> None:
        """Raise InvalidArgumentError for an argument that is not contiguous though results depend on its memory."""
        for k in self._lowered.dense:
            given = arguments.get(k)
            if isinstance(given, np.ndarray) and not given.flags.c_contiguous:
                raise InvalidArgumentError(
                    f"argument {k} must be contiguous, since the function depends on its memory", hint="pass a copy"
                )

    def _written_arguments(self, args: Sequence[Any]) -> list[Any]:
        """Return the arguments to write.

        Raises
        ------
        InvalidArgumentError
            One of them cannot be written, shares memory with another argument, or is bound.
        """
        if self._bound_arguments:
            raise InvalidArgumentError("no argument may be bound, since the function writes to its arguments")
        targets = [args[k] for k in self._lowered.writes if k < len(args)]
        for k, target in zip(self._lowered.writes, targets, strict=False):
            if type(target) is not np.ndarray or not target.flags.writeable:
                raise InvalidArgumentError(f"argument {k} is written, and must be a writeable NumPy array")
            if any(isinstance(a, np.ndarray) and np.may_share_memory(a, target) for a in (*args[:k], *args[k + 1 :])):
                raise InvalidArgumentError(f"argument {k} is written, and shares memory with another argument")
        return targets

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arguments."""
        return self._whole.names

    def bind(self, arguments: Any) -> Executable:
        """Bind some arguments; see `Executable.bind`."""
        from cyxla.xla.service.bound_arguments import by_number

        whole = self._whole.bind(arguments)
        fixed = by_number(arguments, self.names)
        self._require_dense({self._numbers[k]: value for k, value in fixed.items()})
        made = TracedExecutable(self._lowered, whole, self._source, (*self._bound_arguments, arguments))
        made._numbers = [number for k, number in enumerate(self._numbers) if k not in fixed]
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._source, self._bound_arguments)
