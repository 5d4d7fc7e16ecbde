"""Lowering: from a function and the specs of its arguments to an HLO program."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress
from math import inf, prod
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cyxla import config
from cyxla._native.dispatch import Source
from cyxla.errors import DTypeError, OpError, TraceError, UnimplementedError
from cyxla.numpy.calls.argument_adapters import STATIC_TYPES, Adapter
from cyxla.numpy.calls.argument_changes import (
    ArgumentChange,
    ArgumentContainers,
    Marking,
    Place,
    containers_among,
    has_arguments,
    places_in,
)
from cyxla.numpy.calls.constant_results import constant_result
from cyxla.numpy.calls.deferred_results import deferred_result
from cyxla.numpy.rewriting.parts.aliases import require_no_aliases
from cyxla.numpy.rewriting.parts.new_objects import with_parts
from cyxla.numpy.rewriting.parts.python_state import traced_parts
from cyxla.numpy.rewriting.parts.unbound import Unbound
from cyxla.numpy.state.effects import Effect, Outside
from cyxla.numpy.state.guards import Guards
from cyxla.numpy.state.names import guard_functions, guard_names
from cyxla.numpy.state.outside import OutsideValues, Path
from cyxla.numpy.state.snapshot import watching
from cyxla.numpy.tracing.arrays.memory_layout import dense
from cyxla.numpy.tracing.arrays.number_table import NumberTable
from cyxla.numpy.tracing.arrays.sized_array import SIZED, SizedArray, contains_sized, size_array
from cyxla.numpy.tracing.arrays.stacked_list import StackedList
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, value_of
from cyxla.numpy.tracing.containers import ARGUMENT, LEAF, Tree, flatten, kind_of, paths, register_kind
from cyxla.numpy.tracing.results.eigenvalue_results import leave_if_real, real_if_zero
from cyxla.numpy.tracing.results.promotion import Dtype, Kind, dtype_of
from cyxla.numpy.tracing.results.result_layout import ROW_MAJOR_RESULT, Layout, inverse, layout_of
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.tracing.static_keys import require_unwritten, with_keys
from cyxla.numpy.tracing.trace import Program, Trace, require_current, tracing
from cyxla.numpy.tracing.user_program.classes import class_of
from cyxla.numpy.tracing.user_program.doubts import leave as leave_for_doubt
from cyxla.numpy.tracing.user_program.needed_values import NeededValue
from cyxla.numpy.tracing.user_program.random_state import drawing_in_runs_alone
from cyxla.records import dataclass
from cyxla.types import ElementType, Shape, from_numpy
from cyxla.xla.hlo import HloModule, Instruction
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla

if TYPE_CHECKING:
    from cyxla.xla.service import Compiler

BOUNDS = ("raise", "clamp", "unchecked")
MOST_STATIC = 64  # elements of an array, such as a shape, that may be static: as many as dimensions
NO_GUARDS = Guards((), (), 0)


@dataclass(frozen=True)
class Spec:
    """Static description of an argument.

    Attributes
    ----------
    shape : tuple of int
        Dimension sizes.
    kind : dtype or type
        Element type, or the class of a Python number.
    adapter : Adapter, optional
        Conversion to an array, for an argument that is not one.
    rank0 : Rank0
        Kind of a 0-d argument.
    axes : tuple of int, optional
        Order of the dimensions in memory, outermost first; None for row-major order.
    numbers : type, optional
        Class of Python's numbers in a list that is passed as an array.
    """

    shape: tuple[int, ...]
    kind: Kind
    adapter: Adapter | None = None
    rank0: Rank0 = Rank0.ARRAY
    axes: tuple[int, ...] | None = None
    numbers: type | None = None

    @property
    def dtype(self) -> Dtype:
        """Element type."""
        return dtype_of(self.kind)

    @property
    def aval(self) -> Shape:
        """HLO shape, with the dimensions in memory order."""
        sizes = self.shape if self.axes is None else tuple([self.shape[d] for d in self.axes])
        return Shape.array(from_numpy(self.dtype), sizes)

    def __str__(self) -> str:
        if isinstance(self.kind, type):
            return self.kind.__name__
        if self.rank0 is not Rank0.ARRAY:
            return str(self.kind)
        if self.numbers is not None:
            return f"list of {' x '.join(map(str, self.shape))} {self.numbers.__name__}"
        order = "" if self.axes is None else f" order {','.join(map(str, self.axes))}"
        return f"{self.kind}[{','.join(map(str, self.shape))}]{order}"


class OpenSizes(NamedTuple):
    """Dimensions of the arguments whose sizes are known at run time.

    Attributes
    ----------
    groups : tuple of tuple of (int, int)
        Dimensions of equal size, in groups: pairs of the index of an array or number among the arguments, and of one of
        its dimensions.
    bounds : tuple of int
        Greatest size of each group.
    most_padded_bytes : int, optional
        Greatest size of a padded array with several of these dimensions.
    most_moved_bytes : int, optional
        Greatest size of an array that a loop changes, whose iterations may go over all of it, that is flattened, or
        that is computed whole although several of its sizes are known at run time.
    """

    groups: tuple[tuple[tuple[int, int], ...], ...]
    bounds: tuple[int, ...]
    most_padded_bytes: int | None = None
    most_moved_bytes: int | None = None

    def check_time(self, lowered: Lowered, compiler: Compiler) -> None:
        """Raise `LargeArrayError` if the time of a program follows the bounds of an array that is too large."""
        if self.most_moved_bytes is None:
            return
        shapes = [s for s in (*lowered.shapes_in_loops, *lowered.program.flattened) if self._is_large(s, 1)]
        if not shapes:
            is_counted = partial(self._is_large, least=2)
            shapes = compiler.whole_arrays(lowered.module, lowered.live_results, is_counted)
        if shapes:
            raise LargeArrayError(max(shapes, key=lambda shape: shape.nbytes), self.bounds)

    def _is_large(self, shape: Shape, least: int) -> bool:
        """Return True for an array of too many bytes of which at least so many dimensions are bounds."""
        assert self.most_moved_bytes is not None
        if not shape.is_array or sum([n in self.bounds for n in shape.dims]) < least:
            return False
        return shape.nbytes > self.most_moved_bytes


class LargeArrayError(Exception):
    """A program takes the time of all elements of an array, up to its bounds, and these are many.

    Parameters
    ----------
    shape : Shape
        Shape of the array.
    bounds : tuple of int
        Bounds of the sizes known at run time.
    """

    def __init__(self, shape: Shape, bounds: Sequence[int]) -> None:
        super().__init__(str(shape))
        self.shape, self.bounds = shape, bounds

    def nbytes(self, bounds: Sequence[int]) -> int:
        """Return about how many bytes the array has with other bounds."""
        others = dict(zip(self.bounds, bounds, strict=True))
        return prod(others.get(n, n) for n in self.shape.dims) * self.shape.dtype.itemsize


class Environment(NamedTuple):
    """Values from outside that a function uses, as far as they are known.

    Attributes
    ----------
    static : frozenset of str
        Expressions of those whose values Python needs.
    numbers : dict of str to object
        Numbers that were read before; see `OutsideValues`.
    receivers : sequence of (str, int, object)
        Objects among the arguments: name, index among the values passed, and the object.
    bound : object, optional
        Object of a function that is a method.
    function : callable, optional
        Function whose source is not rewritten; the values of all names in it are guarded.
    rewritten : callable, optional
        Function that is rewritten; the functions and classes that it has by name are guarded.
    passed : sequence
        Values passed to the function.
    """

    static: frozenset[str]
    numbers: dict[str, Any]
    receivers: Sequence[tuple[str, int, Any]]
    bound: Any = None
    function: Any = None
    rewritten: Any = None
    passed: Sequence[Any] = ()

    def values(self, trace: Trace) -> OutsideValues:
        """Return the values from outside of a new trace."""
        outside = OutsideValues(trace, self.static, self.numbers, partial(containers_among, self.passed))
        for name, source, value in self.receivers:
            outside.register(value, Path(Source.ARGUMENT, source, None, None, name))
        if self.bound is not None:
            outside.register(self.bound, Path(Source.GLOBAL, 0, ({"self": self.bound}, {}), "self", "self"))
        if self.function is not None:
            guard_names(outside, self.function, [self.bound, *[value for *_, value in self.receivers]])
        if self.rewritten is not None:
            guard_functions(outside, self.rewritten)
        return outside


@dataclass(frozen=True)
class Lowered:
    """Traced function.

    Attributes
    ----------
    module : HloModule
        Program of the arrays and numbers among the arguments. It returns an array if the function does, nothing can
        fail and no argument is written; else a tuple: the arrays of the result, the new values of written arguments,
        then the failure if there can be one.
    program : Program
        State shared by the traces, with the checks at run time.
    tree : Tree
        Structure of the function's result, with its static values. A leaf that is an input, or an array that occurs
        before, has the number of it instead; those of results follow those of inputs.
    fails : bool
        Whether the last result is a failure.
    rank0 : tuple of Rank0
        Kind of each 0-d result.
    input_axes : tuple of (tuple of int or None)
        Permutation of the dimensions of each argument to those of its parameter; None for the identity.
    layouts : tuple of (tuple of int or None, bool)
        Permutation of the dimensions of each result of the module to those of the function's; and whether it is
        writeable.
    spectra : tuple of (int, int)
        Results of `eig` and `eigvals` that are real arrays if all imaginary parts of another result are zero: the index
        of each, and that of the other one.
    writes : tuple of int
        Arguments that the function writes; those from outside follow the others.
    dense : tuple of int
        Arguments that must be contiguous in memory, in the order of their dimensions there.
    effects : tuple of Effect and ArgumentChange
        Changes of containers among the arguments, and of objects from outside. If there are any, the result is a tuple:
        the function's, and a new value for each.
    guards : Guards
        Values from outside that the program depends on.
    writes_last : bool
        Whether one argument is written, once, nothing is computed after that, and nothing else is returned than
        arguments and constants.
    places : object
        Places in the result, and in new values, of containers and objects among the arguments; see `places_in`.
    is_of_classes : bool
        Whether the program serves all objects of the classes of those among the arguments.
    live_writes : tuple of (int, int, int)
        New values of written arguments of run-time size; see `CompileOptions.live_results`.
    """

    module: HloModule
    program: Program
    tree: Tree
    fails: bool
    rank0: tuple[Rank0, ...]
    input_axes: tuple[tuple[int, ...] | None, ...] = ()
    layouts: tuple[Layout, ...] = ()
    spectra: tuple[tuple[int, int], ...] = ()
    writes: tuple[int, ...] = ()
    dense: tuple[int, ...] = ()
    effects: tuple[Effect | ArgumentChange, ...] = ()
    guards: Guards = NO_GUARDS
    writes_last: bool = False
    places: Any = None
    is_of_classes: bool = False
    live_writes: tuple[tuple[int, int, int], ...] = ()

    @property
    def takes_passed(self) -> bool:
        """True if the function changes or returns containers or objects among its arguments, or compares them."""
        changes = any(isinstance(e, ArgumentChange) for e in self.effects)
        return changes or has_arguments(self.places) or self.program.compares_objects

    @property
    def is_array(self) -> bool:
        """True if the module returns an array."""
        return self.tree.kind is None and not self.fails and not self.writes

    @property
    def largest_bytes(self) -> int:
        """Bytes of the largest array of the program."""
        arrays = (i.shape for c in self.module.post_order() for i in c.instructions if i.shape.is_array)
        return max((shape.nbytes for shape in arrays), default=0)

    @property
    def shapes_in_loops(self) -> list[Shape]:
        """Shapes of the arrays that the loops of the program change."""
        loops = [i for c in self.module.post_order() for i in c.instructions if i.opcode == "while"]
        return [shape for loop in loops for shape in _changed_shapes(loop)]

    @property
    def is_sized(self) -> bool:
        """True if a result has a run-time size."""
        return contains_sized(self.tree)

    @property
    def in_place(self) -> tuple[tuple[int, int], ...]:
        """Written arguments, each with its new value among the results; none if a failed run must leave them alone."""
        first = len(self.layouts)
        return () if self.fails else tuple([(k, first + n) for n, k in enumerate(self.writes)])

    @property
    def live_results(self) -> tuple[tuple[int, int, int], ...]:
        """Results of run-time size, of which the caller reads a part; see `CompileOptions.live_results`."""
        found: list[tuple[int, int, int]] = []
        _find_sized(self.tree, 0, self.layouts, found)
        return (*found, *self.live_writes)

    def error(self, code: int, number: int) -> Exception:
        """Return the error of a failed run."""
        check = self.program.checks[code - 1]
        error = check.make_error(number)
        if isinstance(error, OpError):
            error.where = error.where or check.where
        elif check.where:
            error.add_note(f"  at:   {check.where}")
        return error

    def __str__(self) -> str:
        return self.module.to_text()


def lower(
    name: str,
    call: Callable[[Sequence[Any]], tuple[Any, ArgumentContainers]],
    leaves: Sequence[Any],
    names: Sequence[str],
    bounds: str = "raise",
    *,
    keep_order: bool = False,
    open_sizes: OpenSizes | None = None,
    environment: Environment | None = None,
    exact_classes: bool = False,
    cuts_slices: bool = False,
) -> Lowered:
    """Trace a function.

    Parameters
    ----------
    name : str
        Name of the program.
    call : callable
        Function from the leaves of the arguments to the result and to the containers among the arguments.
    leaves : sequence
        `Spec` for each array or number among the arguments; other values are passed through.
    names : sequence of str
        Names of the leaves in errors.
    bounds : str
        Mode of indices out of range.
    keep_order : bool
        Whether arguments and results are passed in memory order, results of `eig` are real arrays if they can be, and
        results that are arguments are the caller's arrays; else results are new arrays, in row-major order.
    open_sizes : OpenSizes, optional
        Dimensions of run-time size. The program then takes arguments padded to the bounds, and after them the sizes.
    environment : Environment, optional
        Values from outside; without it, they are constants.
    exact_classes, cuts_slices : bool
        See `Program`.
    """
    if not keep_order:
        leaves = [replace(leaf, axes=None) if isinstance(leaf, Spec) else leaf for leaf in leaves]
    trace = Trace(name)
    flags = {"bounds": bounds, "exact_classes": exact_classes, "cuts_slices": cuts_slices}
    vars(trace.program).update(flags)
    given = call, leaves, names, keep_order, open_sizes, environment
    try:
        return _lower(trace, *given)
    except Exception as error:
        if not trace.program.made_traced or getattr(error, "ends_trace", False):
            raise
        trace = Trace(name)  # which computes the lists of known numbers while tracing, in case their values are needed
        vars(trace.program).update(flags, keeps_known=True)
    return _lower(trace, *given)


def _lower(
    trace: Trace, call: Callable[[Sequence[Any]], tuple[Any, ArgumentContainers]], leaves: Sequence[Any],
    names: Sequence[str], keep_order: bool, open_sizes: OpenSizes | None, environment: Environment | None,
) -> Lowered:  # fmt: skip
    """Trace a function; see `lower`."""
    outside = None if environment is None else environment.values(trace)
    trace.program.outside = outside
    limit = config.get("TRACE_SECONDS") or inf
    trace.program.end, trace.program.earliest_end = thread_time() + limit, perf_counter() + limit
    with tracing(trace):
        padded = _padded(leaves, open_sizes)
        arguments = [_argument(trace, leaf, path) for leaf, path in zip(padded, names, strict=True)]
        trace.program.python_integers = _python_integers(leaves)
        is_input = [isinstance(leaf, Spec) for leaf in leaves]
        inputs = [
            _Input.of(a, path) for a, path in zip(compress(arguments, is_input), compress(names, is_input), strict=True)
        ]
        if open_sizes is not None:
            trace.program.most_padded_bytes = open_sizes.most_padded_bytes
            _open(trace, arguments, leaves, open_sizes)
        arguments = [_as_list(a, leaf) for a, leaf in zip(arguments, leaves, strict=True)]
        passed = list(compress(arguments, is_input))
        input_axes: list[Any] = [leaf.axes for leaf in leaves if isinstance(leaf, Spec)]
        for _ in open_sizes.groups if open_sizes is not None else ():  # the sizes follow, then values from outside
            inputs.append(_Input.of(None, "size"))
            passed.append(None)
            input_axes.append(None)
        static_arrays = with_keys(getattr(leaf, "value", None) for leaf in leaves if not isinstance(leaf, Spec))
        with watching({} if outside is None else outside.watched):
            returned, containers = _run(trace, partial(call, arguments), len(inputs), outside)
        require_unwritten(static_arrays if outside is None else static_arrays + outside.static_arrays)
        writes_last = trace.program.writes == [trace.builder.instruction_count]
        is_of_classes = outside is not None and open_sizes is None and outside.depends_on_classes()
        returned, effects = _with_effects(returned, containers, outside, open_sizes, is_of_classes=is_of_classes)
        if outside is not None:
            if is_of_classes:
                outside.require_several_objects()
            inputs += [_Input(h.array, h.op, h.text) for h in outside.hidden]
            passed += [h.array for h in outside.hidden]
        changed = [effect.text for effect in effects]
        arrays, tree = _results(returned, changed, passed, outside, trace, keep_order=keep_order)
        layouts = [layout_of(a) if keep_order else ROW_MAJOR_RESULT for a in arrays]
        writes_last = writes_last and all(map(_is_constant, arrays))
        values = [_to_memory_order(value_of(a), layout) for a, layout in zip(arrays, layouts, strict=True)]
        rank0 = tuple([Rank0.PYTHON if a.weak else a.rank0 for a in arrays])
        input_axes += [] if outside is None else [h.axes for h in outside.hidden]
        writes = tuple([k for k, i in enumerate(inputs) if i.is_written()])
        values += [_permuted(inputs[k].new_value(), input_axes[k]) for k in writes]
        for array in arrays:
            if array.doubt is not None:
                leave_for_doubt(trace, array.doubt)
        leave_if_real(trace, arrays)
        failure = trace.failure()
        if trace.program.prints:
            _require_no_repetition(trace, fails_for_other_sizes=failure is not None and open_sizes is not None)
        is_array = tree.kind is None and failure is None and not writes
        root = values[0] if is_array else xla.tuple_(trace.builder, [*values, *([] if failure is None else [failure])])
    guards = NO_GUARDS if outside is None else outside.guards()
    _forget_values(trace, outside)
    spectra = real_if_zero(arrays) if keep_order else ()
    module = trace.module(root)
    places = places_in(tree)
    if places is not None and open_sizes is not None:
        raise UnimplementedError("the function returns a container of its arguments")
    if trace.program.draws and failure is None:
        from cyxla.numpy.custom_calls.global_random import forget_state

        forget_state(module)
    return Lowered(
        module, trace.program, tree, failure is not None, rank0, tuple(input_axes), tuple(layouts), spectra,
        writes, _dense_inputs(trace, inputs, writes), effects, guards,
        writes_last and len(writes) == 1 and not effects and places is None, places, is_of_classes,
        _live_writes(writes, len(layouts), open_sizes, sum(is_input), input_axes),
    )  # fmt: skip


def _changed_shapes(loop: Instruction) -> list[Shape]:
    """Return the shapes of the arrays in the state of a loop that its body does not leave as they are."""
    root = loop.called[0].root
    values = root.operands if root.opcode == "tuple" else (root,)
    return [
        v.shape
        for k, v in enumerate(values)
        if v.shape.is_array and not (v.opcode == "get-tuple-element" and v.attrs["index"] == k)
    ]


def _is_constant(array: TracedArray) -> bool:
    instruction = value_of(array).instruction
    return instruction is not None and instruction.opcode == "constant"


def _forget_values(trace: Trace, outside: OutsideValues | None) -> None:
    """Forget the objects of a function that is traced, which its program would keep alive."""
    program = trace.program
    program.outside = None
    for objects in (program.created, program.copies, program.aliases, program.arguments):
        objects.clear()
    if outside is not None:
        outside.forget_objects()


def _run(
    trace: Trace, call: Callable[[], tuple[Any, ArgumentContainers]], inputs: int, outside: OutsideValues | None
) -> tuple[Any, ArgumentContainers]:
    """Run a function on traced arguments."""
    raised = trace.program.raised
    try:
        with drawing_in_runs_alone():
            result = call()
        if raised:  # an error that the function has caught, with consequences of its own
            raise raised[0]
        if trace.program.written_lists:
            raise TraceError("a loop in a branch writes elements of a list", hint="use an array")
        if trace.program.window_sizes and outside is not None:
            needed = NeededValue(frozenset(trace.program.window_sizes), is_index=True)
            raise TraceError("slices in a loop have a length that is not known while tracing", needed=needed)
    except RecursionError:
        raise TraceError(
            f"{trace.builder.name} recurses without end while it is traced",
            hint="a traced condition cannot end it: use cyxla.cond or while_loop, or make the argument static",
        ) from None
    except Exception as error:
        is_own = isinstance(error, TraceError) or isinstance(error.__cause__, TraceError)
        caught = [e for e in raised if getattr(e, "is_raised", True)]  # not texts, which may be those of the error
        cause = caught[0] if caught and not is_own else error
        if isinstance(cause, TraceError):
            _name_needed_values(cause, inputs, outside)
        if cause is not error:
            raise cause from None
        raise
    finally:
        raised.clear()
    return result


def _with_effects(
    returned: Any, containers: ArgumentContainers, outside: OutsideValues | None, open_sizes: OpenSizes | None, *,
    is_of_classes: bool,
) -> tuple[Any, tuple[Effect | ArgumentChange, ...]]:  # fmt: skip
    """Return the result with the new values of changed objects, and the changes."""
    changes = containers.changes()
    program = require_current().program
    program.catches |= bool(changes) and not program.prints  # the plain function makes those before an error
    effects: list[tuple[Effect | ArgumentChange, Any]] = [*changes]
    if outside is not None:
        effects += _with_places(outside) if is_of_classes else outside.effects()
    if changes and outside is None:
        raise UnimplementedError(f"{changes[0][0].text} is changed, which only calls of the function can do")
    if open_sizes is not None and (effects or program.compares_objects):
        raise UnimplementedError("the function changes names, attributes or containers, or compares objects with `is`")
    if outside is not None and (effects or program.compares_objects):
        outside.require_apart(containers.places())
    from_outside: Callable[[Any], Any] = (lambda value: None) if outside is None else outside.as_result
    if outside is not None and is_of_classes:
        from_outside = partial(_place_or_mark, outside)
    marking = Marking(containers, from_outside, program.created)
    values = [value for _, value in effects]
    held = containers.identities.union(() if outside is None else map(id, outside.mirrors))
    require_no_aliases(require_current(), [returned, *values], held)
    if outside is not None:
        returned = marking.result(returned, (0,) if effects else ())
    values = [marking.new_value(value, (1 + k,)) for k, value in enumerate(values)]
    return (returned, *values) if effects else returned, tuple([effect for effect, _ in effects])


def _with_places(outside: OutsideValues) -> list[tuple[Effect | ArgumentChange, Any]]:
    """Return the changes of objects, those among the arguments by their places."""
    found: list[tuple[Effect | ArgumentChange, Any]] = []
    for effect, value in outside.effects():
        place = _place_of(outside, effect.owner())
        change = effect if place is None else ArgumentChange(effect.change, place, effect.key, effect.text, True)
        found.append((change, value))
    return found


def _place_or_mark(outside: OutsideValues, value: Any) -> Any:
    """Return an object among the arguments by its place, as a part of a result; others as `OutsideValues` does."""
    place = _place_of(outside, value)
    return outside.as_result(value) if place is None else Outside(place)


def _place_of(outside: OutsideValues, value: Any) -> Place | None:
    number = outside.argument_of(value)
    return None if number is None else Place(number, ())


def _results(
    returned: Any, changed: Sequence[str], passed: Sequence[Any], outside: OutsideValues | None, trace: Trace, *,
    keep_order: bool,
) -> tuple[list[TracedArray], Tree]:  # fmt: skip
    """Return the arrays of a result, which the values of changed places follow, and its structure."""
    if keep_order:
        numbers = {id(a): k for k, a in enumerate(passed) if _is_array(a)}
        returned = _mark(returned, numbers, (lambda value: None) if outside is None else outside.as_result)
    leaves, tree = flatten(returned, STATIC_TYPES)
    parts = zip(returned, ["result", *changed], strict=True) if changed else [(returned, "result")]
    leaf_paths = [path for part, text in parts for path in paths(part, text, STATIC_TYPES)]
    if keep_order:
        leaves, leaf_paths, tree = _shared(leaves, leaf_paths, tree, trace.parameter_count)
    name = trace.builder.name
    return [_result(leaf, path, name) for leaf, path in zip(leaves, leaf_paths, strict=True)], tree


class _Input(NamedTuple):
    """Array or number that is passed to a function, with its value before the function ran.

    Attributes
    ----------
    array : TracedArray
        Array or number.
    op : XlaOp
        Value.
    name : str
        Name in errors.
    """

    array: TracedArray
    op: XlaOp
    name: str

    @staticmethod
    def of(argument: Any, name: str) -> _Input:
        """Return the input of an argument; that of a random generator is not accessible."""
        array = argument if isinstance(argument, TracedArray) else TracedArray(as_traced(0).op)
        return _Input(array, array.op, name)

    def is_written(self) -> bool:
        """Return True if the function has written the array."""
        return self.array.op is not self.op

    def new_value(self) -> XlaOp:
        """Return the value of a written array."""
        if self.array.shape != self.op.shape.dims:
            raise UnimplementedError(
                f"the shape of argument {self.name} is assigned", hint="use x.reshape(sizes), which is another array"
            )
        return value_of(self.array)


def _dense_inputs(trace: Trace, inputs: Sequence[_Input], writes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the arrays whose layout decides about the results of a function."""
    if trace.program.reads_layout:
        return tuple([k for k, i in enumerate(inputs) if i.array.ndim])
    return writes if trace.program.shares_by_layout else ()


class _Passed:
    """Result that is an argument itself."""

    def __init__(self, number: int) -> None:
        self.number = number


register_kind(_Passed, ARGUMENT)


def _name_needed_values(error: TraceError, visible: int, outside: OutsideValues | None) -> None:
    """Tell the inputs of a needed value that are arguments from those that come from outside."""
    needed = error.needed
    if outside is None or not isinstance(needed, NeededValue) or needed.inputs is None:
        return
    hidden = [outside.hidden[k - visible] for k in needed.inputs if k >= visible]
    if all(h.array.size <= MOST_STATIC for h in hidden):
        arguments = frozenset(k for k in needed.inputs if k < visible)
        error.needed = NeededValue(arguments, needed.is_index, frozenset(h.text for h in hidden))
    else:
        error.needed = None


def _mark(value: Any, numbers: Mapping[int, int], from_outside: Callable[[Any], Any]) -> Any:
    """Replace arguments, given as numbers by identity, and objects from outside in a container of results."""
    if id(value) in numbers:
        return _Passed(numbers[id(value)])
    found = from_outside(value) or deferred_result(value) or constant_result(value, from_outside)
    if found is not None:
        return found
    if isinstance(value, type) and issubclass(value, (TracedArray, SizedArray)):
        raise TraceError(
            "the function stores or returns the class of a traced value, which code without source has read",
            hint="read it by type(x) in a function that is defined in a file, and whose source is rewritten",
        )
    if isinstance(value, STATIC_TYPES):
        _require_known_parts(value)
        return value
    kind = kind_of(value)
    if kind is None or kind is SIZED:
        return value
    parts = kind.parts(value)
    marked = [_mark(part, numbers, from_outside) for part in parts]
    is_same = all(m is p for m, p in zip(marked, parts, strict=True))
    return value if is_same else with_parts(value, marked)


def _require_known_parts(value: Any) -> None:
    """Require that a result that is passed through, such as a slice or a function, holds no traced value."""
    for part in traced_parts(value, require_current().program.created):
        if isinstance(value, slice) and isinstance(part, TracedArray):
            operator.index(part)  # raises the error of a size that is traced
        raise TraceError(
            f"a result is a {type(value).__name__} that holds a traced value or a new object",
            hint="return arrays, numbers, and containers of them",
        )


def _shared(
    leaves: Sequence[Any], leaf_paths: Sequence[str], tree: Tree, inputs: int
) -> tuple[list[Any], list[str], Tree]:
    """Return results in which each array occurs once; the tree has the numbers of others, after those of the inputs."""
    numbers: dict[int, int] = {}
    kept: list[tuple[Any, str]] = []

    def visit(tree: Tree, remaining: Iterator[tuple[Any, str]]) -> Tree:
        if tree.kind is SIZED:
            kept.extend(next(remaining) for _ in range(tree.count))
            return tree
        if tree.kind is not None:
            return Tree(tree.kind, tree.key, tuple([visit(c, remaining) for c in tree.children]))
        leaf, path = next(remaining)
        if _is_array(leaf):
            number = numbers.setdefault(id(leaf), inputs + len(kept))
            if number != inputs + len(kept):
                return Tree(ARGUMENT, number)
        kept.append((leaf, path))
        return LEAF

    tree = visit(tree, zip(leaves, leaf_paths, strict=True))
    return [leaf for leaf, _ in kept], [path for _, path in kept], tree


def _is_array(value: Any) -> bool:
    """Return True if an argument is an array, neither a scalar nor a random generator."""
    return isinstance(value, SizedArray) or (
        isinstance(value, TracedArray) and (value.ndim > 0 or value.rank0 is Rank0.ARRAY)
    )


def _permuted(op: XlaOp, axes: tuple[int, ...] | None) -> XlaOp:
    return op if axes is None else xla.transpose(op, axes)


def _python_integers(leaves: Sequence[Any]) -> frozenset[int]:
    """Return the numbers of the inputs that are Python's integers and bools."""
    specs = [leaf for leaf in leaves if isinstance(leaf, Spec)]
    return frozenset(
        k for k, leaf in enumerate(specs) if leaf.kind is int or (leaf.rank0 is Rank0.PYTHON and leaf.kind == np.bool_)
    )


def _argument(trace: Trace, leaf: Any, name: str) -> Any:
    if not isinstance(leaf, Spec):
        return leaf
    weak = leaf.kind if isinstance(leaf.kind, type) else None
    op, memory = trace.parameter(leaf.aval, name), None
    if leaf.axes is not None:
        op, memory = xla.transpose(op, inverse(leaf.axes)), dense(leaf.shape, leaf.dtype, leaf.axes)
    array = TracedArray(op, weak, memory=memory, origin=f"argument {name}", rank0=leaf.rank0)
    return array if leaf.adapter is None else leaf.adapter.from_traced(array)


def _require_no_repetition(trace: Trace, *, fails_for_other_sizes: bool) -> None:
    """Refuse a program that prints, and runs of which may be repeated by the function or another program."""
    if trace.program.catches:
        raise TraceError(
            f"{trace.builder.name} prints, and has operations that a program cannot always do as Python does",
            hint="print outside of the function, or use cyxla.print",
        )
    if fails_for_other_sizes:
        raise UnimplementedError("the function prints, and a run that fails is repeated with a program of one size")


def _as_list(argument: Any, leaf: Any) -> Any:
    """Return the list of numbers that is passed as an array, and other arguments as they are."""
    if not isinstance(leaf, Spec) or leaf.numbers is None:
        return argument
    if len(leaf.shape) > 1:
        return NumberTable.of_argument(argument, leaf.numbers)
    return StackedList.of_numbers(argument, leaf.numbers)


def _find_sized(tree: Tree, first: int, layouts: Sequence[Layout], found: list[tuple[int, int, int]]) -> int:
    """Add the results of run-time size among the leaves from `first` on; return the leaf behind them."""
    if tree.kind is None:
        return first + 1
    if tree.kind is SIZED:
        axes = layouts[first][0]
        found += [(first, d if axes is None else axes[d], first + k) for k, d in enumerate(tree.key, 1)]
    for child in tree.children:
        first = _find_sized(child, first, layouts, found)
    return first


def _padded(leaves: Sequence[Any], open_sizes: OpenSizes | None) -> Sequence[Any]:
    """Return the leaves with the bounds of open dimensions as their sizes."""
    if open_sizes is None:
        return leaves
    padded = list(leaves)
    inputs = [k for k, leaf in enumerate(leaves) if isinstance(leaf, Spec)]
    for group, bound in zip(open_sizes.groups, open_sizes.bounds, strict=True):
        for number, d in group:
            k = inputs[number]
            padded[k] = replace(padded[k], shape=(*padded[k].shape[:d], bound, *padded[k].shape[d + 1 :]))
    return padded


def _open(trace: Trace, arguments: list[Any], leaves: Sequence[Any], open_sizes: OpenSizes) -> None:
    """Replace padded arguments by arrays of run-time size, and add the sizes to the program's parameters."""
    inputs = [k for k, leaf in enumerate(leaves) if isinstance(leaf, Spec)]
    counts: dict[int, dict[int, TracedArray]] = defaultdict(dict)
    for number, (group, bound) in enumerate(zip(open_sizes.groups, open_sizes.bounds, strict=True)):
        size = size_array(trace.parameter(Shape.array(ElementType.S64, ()), f"size{number}"), bound)
        for index, d in group:
            counts[inputs[index]][d] = size
    for k, sizes in counts.items():
        arguments[k] = SizedArray(arguments[k], sizes)


def _live_writes(
    writes: Sequence[int], first: int, open_sizes: OpenSizes | None, inputs: int, axes: Sequence[tuple[int, ...] | None]
) -> tuple[tuple[int, int, int], ...]:
    """Return the dimensions of new values of arguments, from result `first` on, that are read up to a parameter.

    The parameters of the sizes follow those of the inputs, whose dimensions are in the order of `axes` in memory.
    """
    groups = () if open_sizes is None else open_sizes.groups
    results = {k: first + n for n, k in enumerate(writes)}
    return tuple(
        [
            (results[k], d if (order := axes[k]) is None else order.index(d), ~(inputs + n))
            for n, group in enumerate(groups)
            for k, d in group
            if k in results
        ]
    )


def _to_memory_order(op: XlaOp, layout: Layout) -> XlaOp:
    """Transpose a result to its memory order."""
    return op if layout[0] is None else xla.transpose(op, inverse(layout[0]))


_NUMBERS = (bool, int, float, complex)  # Python's own, not classes that are derived from them


def _result(value: Any, path: str, name: str) -> TracedArray:
    kind = class_of(value)
    if isinstance(value, TracedArray) and kind is not np.flatiter:
        return value
    if isinstance(value, Unbound):
        value.fail()
    try:
        if isinstance(value, (np.ndarray, np.generic)) or kind in _NUMBERS:
            return as_traced(value)
    except (DTypeError, TypeError):
        pass
    shown = getattr(kind, "shown", kind.__name__)
    is_result = path.startswith("result")
    raise TraceError(
        f"{path} of {name} is a {shown}, which is not an array"
        if is_result
        else f"{path} becomes a {shown} in {name}, which is not an array",
        hint=f"{'return' if is_result else 'assign'} arrays, numbers, and containers of them",
    ) from None
