"""Evaluation of computations with an explicit stack of frames; each value is freed after its last use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from types import GeneratorType
from typing import Any

import numpy as np

from cyxla.errors import (
    InternalError,
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
    ShapeError,
    UnimplementedError,
)
from cyxla.interrupts import interruptible
from cyxla.memory import LARGE, require
from cyxla.records import dataclass
from cyxla.types import Shape
from cyxla.xla.evaluator.custom_calls import find_custom_call
from cyxla.xla.evaluator.registry import Handler, Request, Steps, handler_of
from cyxla.xla.evaluator.scalar_computations import apply_elementwise, scalar_function
from cyxla.xla.evaluator.values import Array, Token, Value, export_value, fits, import_value, zeros
from cyxla.xla.feeds import Feeds
from cyxla.xla.hlo.computation import Computation
from cyxla.xla.hlo.devices import check_devices
from cyxla.xla.hlo.instruction import Instruction
from cyxla.xla.hlo.module import HloModule, computations_post_order

CustomCall = Callable[..., Value]  # (evaluation, instruction, *operands) -> Value
_POLL_EVERY = 1024  # instructions


@dataclass
class Options:
    """Options of one evaluation.

    Attributes
    ----------
    max_trips : int or None
        Largest trip count of a `while`; more iterations raise `DeadlineExceededError`. None is no limit.
    poll : callable or None
        Function that is called periodically, and raises to stop the run.
    custom_calls : mapping of str to callable
        Implementations of custom-call targets, which take precedence over registered ones.
    flush_denormals : bool
        True if results of float arithmetic below the normal range become zeros, as in XLA's CPU backend.
    seed : int
        Seed of the stateful random numbers.
    replica_count, num_partitions : int
        Numbers of replicas and partitions that run together, at least those that the module states.
    replica, partition : int
        Numbers of this replica and this partition.
    rendezvous : callable or None
        Exchange of operands with other devices in collectives; None if there are none.
    feeds : Feeds or None
        The other end of infeed, outfeed, send and recv; None if there is none.
    """

    max_trips: int | None = None
    poll: Callable[[], None] | None = None
    custom_calls: Mapping[str, CustomCall] = field(default_factory=dict)
    flush_denormals: bool = False
    seed: int = 0
    replica_count: int = 1
    num_partitions: int = 1
    replica: int = 0
    partition: int = 0
    rendezvous: Callable[..., Any] | None = None
    feeds: Feeds | None = None


@dataclass(frozen=True)
class Step:
    """One instruction of a plan: slots of its operands and its value, and slots that are dead afterwards."""

    instruction: Instruction
    handler: Handler
    operands: tuple[int, ...]
    slot: int
    frees: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """The live instructions of a computation in evaluation order."""

    computation: Computation
    steps: tuple[Step, ...]
    root: int
    parameters: int


class _Frame:
    """A computation in evaluation: its plan, the next step, the live values, the handler that waits for a call."""

    __slots__ = ("args", "next", "plan", "values", "waiting")

    def __init__(self, plan: Plan, args: tuple[Value, ...]) -> None:
        self.plan, self.args, self.next = plan, args, 0
        self.values: list[Any] = [None] * len(plan.steps)
        self.waiting: Steps | None = None


class Evaluation:
    """One run of one module.

    Attributes
    ----------
    options : Options
        Options of the run.
    state : dict
        State of stateful opcodes during the run, by opcode.
    vectorises : dict
        Cached results of `scalar_computations.vectorises`.
    """

    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()
        self.state: dict[str, Any] = {}
        self._plans: dict[Instruction, Plan] = {}
        self._effects: dict[Computation, bool] = {}
        self._scalar_names: dict[Computation, str | None] = {}
        self.vectorises: dict[Computation, bool] = {}
        self._args: tuple[Value, ...] = ()
        self._steps_done = 0

    def apply(self, computation: Computation, *args: Value) -> Value:
        """Evaluate a computation on arguments, from within a handler or from outside."""
        return self._run(computation, args, checked=True)

    def apply_batch(self, computation: Computation, args: tuple[Value, ...], root: Instruction | None = None) -> Value:
        """Evaluate a computation of scalars, or one value in it, with arrays in place of the scalars."""
        return self._run(computation, args, checked=False, root=root)

    def apply_elementwise(self, computation: Computation, arrays: Sequence[Array]) -> list[Array]:
        """Evaluate a computation of scalars on each element of arrays of one shape.

        Returns
        -------
        list of array
            One array of that shape for each result; a tuple root has several.
        """
        return apply_elementwise(self, computation, arrays)

    def scalar_function(self, computation: Computation) -> str | None:
        """Return the opcode that a computation applies to its two scalar parameters, in order unless it commutes."""
        if computation not in self._scalar_names:
            self._scalar_names[computation] = scalar_function(computation)
        return self._scalar_names[computation]

    def argument(self, number: int) -> Value:
        """Return an argument of the innermost running computation."""
        return self._args[number]

    def plan(self, computation: Computation, root: Instruction | None = None) -> Plan:
        """Return the evaluation order for the root (or another instruction), cached during the run."""
        goal = root or computation.root
        plan = self._plans.get(goal)
        if plan is None:
            plan = self._plans[goal] = self._make_plan(computation, goal)
        return plan

    def _make_plan(self, computation: Computation, root: Instruction) -> Plan:
        live = self._live(computation, root)
        order = [i for i in computation.post_order() if i in live]
        slots = {ins: n for n, ins in enumerate(order)}
        last: dict[int, int] = {}
        for n, ins in enumerate(order):
            last[n] = n
            for o in ins.operands:
                last[slots[o]] = n
        last.pop(slots[root])
        frees: dict[int, list[int]] = {}
        for slot, n in last.items():
            frees.setdefault(n, []).append(slot)
        steps = tuple(
            Step(ins, _handler(ins), tuple(slots[o] for o in ins.operands), n, tuple(frees.get(n, ())))
            for n, ins in enumerate(order)
        )
        return Plan(computation, steps, slots[root], len(computation.parameters))

    def _live(self, computation: Computation, root: Instruction) -> set[Instruction]:
        stack = [root, *(i for i in computation.instructions if self._has_effect(i))]
        live: set[Instruction] = set()
        while stack:
            ins = stack.pop()
            if ins not in live:
                live.add(ins)
                stack.extend(ins.operands)
        return live

    def _has_effect(self, ins: Instruction) -> bool:
        if ins.row.side_effect or ins.attrs.get("custom_call_has_side_effect"):
            return True
        if not ins.called:
            return False
        for callee in ins.called:  # callees first, to avoid recursion
            for comp in computations_post_order(callee) if callee not in self._effects else ():
                if comp not in self._effects:
                    self._effects[comp] = any(self._has_own_effect(i) for i in comp.instructions)
        return any(self._effects[c] for c in ins.called)

    def _has_own_effect(self, ins: Instruction) -> bool:
        direct = ins.row.side_effect or bool(ins.attrs.get("custom_call_has_side_effect"))
        return direct or any(self._effects[c] for c in ins.called)

    def _run(
        self, computation: Computation, args: tuple[Value, ...], *, checked: bool, root: Instruction | None = None
    ) -> Value:
        stack = [self._enter(computation, args, root)]
        outer = self._args
        try:
            while True:
                frame = stack[-1]
                request = self._advance(frame, checked)
                if request is not None:
                    stack.append(self._enter(*request))
                    continue
                result: Value = frame.values[frame.plan.root]
                stack.pop()
                if not stack:
                    return result
                request = self._resume(stack[-1], result, checked)
                if request is not None:
                    stack.append(self._enter(*request))
        finally:
            self._args = outer

    def _enter(self, computation: Computation, args: tuple[Value, ...], root: Instruction | None = None) -> _Frame:
        plan = self.plan(computation, root)
        if len(args) != plan.parameters:
            raise InvalidArgumentError(
                f"computation {computation.name} takes {plan.parameters} arguments, got {len(args)}"
            )
        return _Frame(plan, args)

    def _advance(self, frame: _Frame, checked: bool) -> Request | None:
        """Run steps until the computation ends (None) or a handler requests a call."""
        steps, values = frame.plan.steps, frame.values
        self._args = frame.args
        while frame.next < len(steps):
            step = steps[frame.next]
            value = self._call(step, values)
            if isinstance(value, GeneratorType):
                frame.waiting = value
                request = self._resume(frame, None, checked)
                if request is not None:
                    return request
                continue
            self._store(frame, step, value, checked)
        return None

    def _resume(self, frame: _Frame, result: Value | None, checked: bool) -> Request | None:
        """Send a call's result to the handler that waits; return None if that was its last call."""
        assert frame.waiting is not None
        try:
            request: Request = frame.waiting.send(result)  # type: ignore[arg-type]  # None starts it
        except StopIteration as stop:
            frame.waiting = None
            self._store(frame, frame.plan.steps[frame.next], stop.value, checked)
            return None
        except Exception as error:
            _locate(error, frame.plan.steps[frame.next].instruction)
            raise
        return request

    def _call(self, step: Step, values: list[Any]) -> Any:
        self._steps_done += 1
        if self._steps_done % _POLL_EVERY == 0 and self.options.poll is not None:
            self.options.poll()
        try:
            return step.handler(self, step.instruction, *[values[o] for o in step.operands])
        except Exception as error:
            _locate(error, step.instruction)
            raise

    def _store(self, frame: _Frame, step: Step, value: Any, checked: bool) -> None:
        if not isinstance(value, (np.ndarray, tuple, Token)):
            value = np.asarray(value)  # ufuncs turn rank 0 into NumPy scalars
        if checked:
            _check(step.instruction, value)
        frame.values[step.slot] = value
        for slot in step.frees:
            frame.values[slot] = None
        frame.next += 1


_CALLERS = frozenset({"async-start", "call", "conditional", "fusion", "while"})  # opcodes that run other instructions
_LONG, _LONG_MANY_STEPS = 1 << 22, 1 << 16  # elements; the latter for opcodes with many steps for each
_EVALUATOR = __name__.rpartition(".")[0]

# Opcodes whose results are views of operands, or that allocate nothing.
_VIEWS = frozenset({
    "after-all", "bitcast", "broadcast", "call", "conditional", "fusion", "get-tuple-element", "opt-barrier",
    "parameter", "reshape", "reverse", "slice", "transpose", "tuple", "while",
})  # fmt: skip
# Opcodes whose operands are arrays of equal sizes, or scalars.
_EQUAL_SIZES = frozenset({"map", "reduce", "reduce-window", "sort"})
# Opcodes that run even for empty results: they may have effects or raise.
_ALWAYS_RUN = frozenset({"async-start", "call", "conditional", "custom-call", "fusion", "while"})


def _handler(ins: Instruction) -> Handler:
    """Return the opcode's handler, wrapped for dynamic shapes, empty results, interruption and memory checks."""
    if _is_empty(ins.shape) and not ins.has_side_effect and ins.opcode not in _ALWAYS_RUN:
        return _empty_result
    handler = handler_of(ins.opcode)
    if (ins.row.elementwise or ins.opcode in _EQUAL_SIZES) and any(o.shape.is_dynamic for o in ins.operands):
        is_binary = ins.row.elementwise and len(ins.operands) == 2
        handler = _repeat_ones(handler) if is_binary else _cut_to_common_size(handler)
    if _is_long(ins):
        handler = _on_thread(handler)
    size = 0 if ins.opcode in _VIEWS else sum(leaf.nbytes for leaf in _arrays(ins.shape))
    return handler if size < LARGE else _with_memory(handler, size)


def _is_long(ins: Instruction) -> bool:
    """Return True if one library call may do all the work of an instruction for more than a few milliseconds."""
    if ins.opcode in _CALLERS or ins.has_side_effect or (ins.opcode == "custom-call" and not _is_built_in(ins)):
        return False
    elements = sum(leaf.size for shape in (ins.shape, *(o.shape for o in ins.operands)) for leaf in _arrays(shape))
    return elements > (_LONG_MANY_STEPS if ins.row.many_steps else _LONG)


def _arrays(shape: Shape) -> list[Shape]:
    return [leaf for leaf in shape.leaves() if leaf.is_array]


def _is_built_in(ins: Instruction) -> bool:
    """Return True unless a custom call is a user's, which may have to be called on the main thread."""
    try:
        implementation = find_custom_call(ins.attrs["custom_call_target"])
    except UnimplementedError:
        return False
    return (
        implementation.__module__.startswith(_EVALUATOR)
        and implementation.__module__ != f"{_EVALUATOR}.targets.c_calls"
    )


def _on_thread(handler: Handler) -> Handler:
    """Run a handler on another thread, so that Ctrl-C is handled while it works."""

    def run_inline(ev: Evaluation, ins: Instruction, *operands: Value) -> Any:
        if ins.attrs.get("custom_call_target") in ev.options.custom_calls:
            return handler(ev, ins, *operands)
        return interruptible(lambda: handler(ev, ins, *operands))

    return run_inline


def _with_memory(handler: Handler, size: int) -> Handler:
    """Raise if there is not enough memory, before the system ends the process."""

    def checked(ev: Evaluation, ins: Instruction, *operands: Value) -> Any:
        require(size)
        return handler(ev, ins, *operands)

    return checked


def _is_empty(shape: Shape) -> bool:
    leaves = shape.leaves()
    return bool(leaves) and not shape.is_dynamic and all(leaf.is_array and not leaf.size for leaf in leaves)


def _empty_result(ev: Evaluation, ins: Instruction, *operands: Value) -> Value:
    """Return arrays without elements without evaluation, which might need large operands, as an iota of empty rows."""
    return zeros(ins.shape)


def _cut_to_common_size(handler: Handler) -> Handler:
    def evaluate_cut(ev: Evaluation, ins: Instruction, *operands: Array) -> Any:
        sizes = [min(n) for n in zip(*(x.shape for x in operands if x.ndim), strict=True)]
        common = tuple(map(slice, sizes))
        return handler(ev, ins, *(x[common] if x.ndim else x for x in operands))

    return evaluate_cut


def _repeat_ones(handler: Handler) -> Handler:
    """Repeat the only element of a dynamic dimension, if the other operand has several; else cut to the lesser size."""

    def evaluate_repeated(ev: Evaluation, ins: Instruction, x: Array, y: Array) -> Any:
        if x.ndim != y.ndim:  # in a vectorised computation of scalars
            return handler(ev, ins, x, y)
        flags = zip(*(o.shape.dynamic for o in ins.operands), strict=True)
        sizes = [
            max(n, m) if a and b and 1 in (n, m) and 0 not in (n, m) else min(n, m)
            for n, m, (a, b) in zip(x.shape, y.shape, flags, strict=True)
        ]
        return handler(ev, ins, *(np.broadcast_to(v[tuple(map(slice, sizes))], sizes) for v in (x, y)))

    return evaluate_repeated


def _locate(error: Exception, ins: Instruction) -> None:
    """Add the location to an error unless an inner instruction has; lack of memory becomes `ResourceExhaustedError`."""
    location = f"{ins!r} of computation {ins.computation.name}"
    if isinstance(error, OpError):
        error.where = error.where or location
    elif isinstance(error, MemoryError):
        raise ResourceExhaustedError(str(error) or "out of memory", where=location) from error
    elif not getattr(error, "__notes__", None):
        error.add_note(f"while evaluating {location}")


def _check(ins: Instruction, value: Value) -> None:
    """Raise if a value does not have the shape of its instruction."""
    if not isinstance(value, np.ndarray):
        return
    shape = ins.shape
    if value.dtype != shape.dtype.numpy_dtype or (value.shape != shape.dims and not fits(value.shape, shape)):
        if any(o.shape.is_dynamic for o in ins.operands) and value.ndim == shape.rank:
            sizes = list(value.shape)
            raise ShapeError(f"{ins.opcode} gave present sizes {sizes}, but {shape} is stated", where=repr(ins))
        raise InternalError(f"{ins.opcode} gave {value.dtype}{list(value.shape)} where {shape} is due", where=repr(ins))


def evaluate(module: HloModule, args: Sequence[Any], *, options: Options | None = None) -> Value:
    """Run a module's entry computation.

    Parameters
    ----------
    module : HloModule
        The module, which must be valid.
    args : sequence
        One value for each parameter: an array, or a tuple for a tuple.
    options : Options, optional
        Options of the run.

    Returns
    -------
    array, tuple or Token
        The value of the root.

    Raises
    ------
    InvalidArgumentError
        The arguments do not fit the parameters.
    UnimplementedError
        An opcode or custom-call target has no implementation, or the program is for more devices than the options
        state.
    """
    options_in_force, config = options or Options(), module.config
    if config.replica_count > options_in_force.replica_count or config.num_partitions > options_in_force.num_partitions:
        check_devices(module, options_in_force.replica_count, options_in_force.num_partitions)
    return evaluate_computation(module.entry, args, options=options)


def evaluate_instruction(ins: Instruction, *operands: Value, options: Options | None = None) -> Value:
    """Evaluate one instruction on values of its operands, as constant folding does."""
    return _evaluate(_handler(ins), ins, operands, options)


def instruction_evaluator(ins: Instruction, options: Options | None = None) -> Callable[..., Value]:
    """Return a function of the operands of an instruction that will be evaluated often; see `evaluate_instruction`."""
    handler = _handler(ins)
    return lambda *operands: _evaluate(handler, ins, operands, options)


def _evaluate(handler: Handler, ins: Instruction, operands: Sequence[Value], options: Options | None) -> Value:
    ev = Evaluation(options)
    try:
        with np.errstate(all="ignore"):
            value: Any = handler(ev, ins, *operands)
            if isinstance(value, GeneratorType):
                value = _drive(ev, value)
    except MemoryError as error:
        _locate(error, ins)
        raise
    if not isinstance(value, (np.ndarray, tuple, Token)):
        value = np.asarray(value)
    _check(ins, value)
    return value  # type: ignore[no-any-return]


def _drive(ev: Evaluation, steps: Steps) -> Value:
    result: Any = None
    while True:
        try:
            computation, args = steps.send(result)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        result = ev.apply(computation, *args)


def evaluate_computation(computation: Computation, args: Sequence[Any], *, options: Options | None = None) -> Value:
    """Run one computation; see `evaluate`."""
    parameters = computation.parameters
    if len(args) != len(parameters):
        raise InvalidArgumentError(f"computation {computation.name} takes {len(parameters)} arguments, got {len(args)}")
    values = [import_value(a, p.shape) for a, p in zip(args, parameters, strict=True)]
    try:
        with np.errstate(all="ignore"):
            return export_value(Evaluation(options).apply(computation, *values))
    except MemoryError as error:  # a result that is a view is copied on return
        _locate(error, computation.root)
        raise
