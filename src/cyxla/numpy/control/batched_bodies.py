"""Bodies of one element, inlined for all elements of a batch together with their checks and custom derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cyxla.numpy.gradient.elementwise import sum_over
from cyxla.numpy.tracing.bodies import Body, instruction_of, reachable
from cyxla.numpy.tracing.trace import Pullback, Rule, Trace, require_current, tracing
from cyxla.records import dataclass
from cyxla.types import ElementType, Shape
from cyxla.xla.batching import Batcher, Value
from cyxla.xla.hlo.builder import XlaOp, scalar_computation
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.hlo.instruction import Instruction


def capture_values(body: Body) -> list[Value]:
    """Return the values that a body captures from the current trace, which all elements share."""
    trace = require_current()
    return [Value(trace.capture(outer)) for outer in body.captures]


class BatchedBody:
    """Body that is inlined in the current trace for all elements of a batch.

    Parameters
    ----------
    body : Body
        Function of one element.
    operands : sequence of Value
        Values of its parameters, captured ones included.
    size : int
        Number of elements.
    everything : bool
        Whether to inline all instructions, also those that no result depends on.
    mask : XlaOp, optional
        pred[size], the elements that count: others are padding, whose loops and checks do not run.
    """

    def __init__(
        self, body: Body, operands: Sequence[Value], size: int, *, everything: bool = False, mask: XlaOp | None = None
    ) -> None:
        self.body, self.size = body, size
        self.batcher = Batcher(require_current().builder, size, mask)
        self.values: dict[Instruction, Value] = dict(zip(map(instruction_of, body.parameters), operands, strict=True))
        needed = None if everything else self._needed()
        for ins in body.instructions:
            if ins not in self.values and (needed is None or ins in needed):
                self._add(ins)
        _merge_failures(self)

    def _needed(self) -> set[Instruction]:
        failures = [v for pair in self.body.trace.failures for v in pair]
        roots = [instruction_of(v) for v in (*self.body.results, *failures)]
        roots += [ins for ins in self.body.instructions if ins.has_side_effect]
        known = dict.fromkeys(map(instruction_of, self.body.parameters), self.body.parameters[0]) if self.values else {}
        return reachable(roots, known, self.body.trace.rules, ())

    def value(self, op: XlaOp) -> Value:
        """Return the value of an operation of the body, in the current trace."""
        value, trace = self.values[instruction_of(op)], require_current()
        return value if value.op is None else Value(trace.capture(value.op), value.mapped)

    def results(self) -> list[Value]:
        """Return the values of the results."""
        return [self.value(r) for r in self.body.results]

    def _add(self, ins: Instruction) -> None:
        value = self.batcher.apply(ins, [self.values[o] for o in ins.operands])
        rule = self.body.trace.rules.get(ins)
        if rule is not None:
            value = self._fresh(value, ins)
        self.values[ins] = value
        if rule is not None and all(instruction_of(o) in self.values for o in rule.outputs):
            self._attach(rule)

    def _fresh(self, value: Value, ins: Instruction) -> Value:
        """Return the output of a rule as an instruction of its own, which no other rule and no input is."""
        made = instruction_of(value.array)
        operands = [v.op.instruction for o in ins.operands if (v := self.values[o]).op is not None]
        is_new = made.opcode != "parameter" and made not in operands and made not in require_current().rules
        return value if is_new else Value(xla.copy(value.array), value.mapped)

    def _attach(self, rule: Rule) -> None:
        """Attach a rule to the batched instructions."""
        inputs, outputs = ([self.values[instruction_of(v)] for v in side] for side in (rule.inputs, rule.outputs))
        vjp, forward = rule.vjp, rule.forward
        if any(v.mapped for v in (*inputs, *outputs)):
            batched = _BatchedRule(rule, [v.mapped for v in inputs], [v.mapped for v in outputs], self.size)
            vjp, forward = vjp and batched.vjp, forward and batched.forward
        copied = Rule([v.array for v in inputs], [v.array for v in outputs], vjp, forward)
        require_current().rules.update((instruction_of(o), copied) for o in copied.outputs)


# -- checks


def _merge_failures(run: BatchedBody) -> None:
    """Add the first failure of the first element that fails to the failures of the current trace."""
    failures = [(run.value(code), run.value(number)) for code, number in run.body.trace.failures]
    if not run.size or not failures:
        return
    trace = require_current()
    mask = run.batcher.mask
    if mask is None and not any(v.mapped for pair in failures for v in pair):
        trace.failures.extend((code.array, number.array) for code, number in failures)
        return
    codes, numbers = (run.batcher.lead(v) for v in failures[0])
    for pair in failures[1:]:
        later_code, later_number = (run.batcher.lead(v) for v in pair)
        has_failed = _failed(codes)
        codes, numbers = xla.select(has_failed, codes, later_code), xla.select(has_failed, numbers, later_number)
    if mask is not None:
        codes = xla.select(mask, codes, xla.broadcast(trace.constant(0, np.dtype(np.int64)), codes.shape.dims))
    first = _first_failed(codes, run.size)
    trace.failures.append((_element(codes, first), _element(numbers, first)))


def _failed(codes: XlaOp) -> XlaOp:
    zero = require_current().constant(0, np.dtype(np.int64))
    return xla.ne(codes, xla.broadcast(zero, codes.shape.dims))


def _first_failed(codes: XlaOp, size: int) -> XlaOp:
    """Return the number of the first element that fails; that of the last one if none does."""
    trace = require_current()
    last = trace.constant(size - 1, np.dtype(np.int64))
    numbers = xla.iota(trace.builder, Shape.array(ElementType.S64, (size,)), 0)
    failing = xla.select(_failed(codes), numbers, xla.broadcast(last, (size,)))
    return xla.reduce(failing, last, scalar_computation("minimum", ElementType.S64), [0])


def _element(op: XlaOp, index: XlaOp) -> XlaOp:
    return xla.reshape(xla.dynamic_slice(op, [index], (1,)), ())


# -- custom derivatives


def _record(name: str, shapes: Sequence[Shape], emit: Callable[..., Sequence[XlaOp]], parent: Trace) -> Body:
    """Trace a function of values of one element."""
    trace = Trace(name, parent)
    with tracing(trace):
        parameters = [trace.parameter(s) for s in shapes]
        results = list(emit(*parameters))
    return Body(trace, parameters, results)


@dataclass(frozen=True)
class _BatchedRule:
    """Custom derivative of a group of batched instructions.

    Attributes
    ----------
    rule : Rule
        Rule of one element.
    inputs, outputs : list of bool
        Whether each of them differs by element.
    size : int
        Number of elements.
    """

    rule: Rule
    inputs: list[bool]
    outputs: list[bool]
    size: int

    def vjp(
        self, inputs: list[XlaOp], outputs: list[XlaOp], cotangents: Sequence[XlaOp | None]
    ) -> Sequence[XlaOp | None]:
        """Pull cotangents back; see `Rule`."""
        assert self.rule.vjp is not None
        of_element = self.rule.vjp
        given = [*map(Value, inputs, self.inputs), *map(Value, outputs, self.outputs)]
        shapes = [v.shape for v in (*self.rule.inputs, *self.rule.outputs)]

        def pull(values: list[XlaOp], present: Sequence[XlaOp | None]) -> Sequence[XlaOp | None]:
            return of_element(values[: len(inputs)], values[len(inputs) :], present)

        return self._pull(pull, given, shapes, cotangents, require_current(), None)

    def forward(self, inputs: list[XlaOp], active: list[bool]) -> tuple[list[XlaOp], Pullback]:
        """Record the outputs with their residuals; see `Rule`."""
        assert self.rule.forward is not None
        of_element, pullbacks = self.rule.forward, []

        def emit(*values: XlaOp) -> list[XlaOp]:
            outputs, pullback = of_element(list(values), active)
            pullbacks.append(pullback)
            return outputs

        body = _record("forward", [x.shape for x in self.rule.inputs], emit, require_current())
        run = BatchedBody(
            body, [*map(Value, inputs, self.inputs), *capture_values(body)], self.size, everything=True
        )  # fmt: skip

        def pull_back(cotangents: Sequence[XlaOp | None]) -> Sequence[XlaOp | None]:
            return self._pull(lambda _, present: pullbacks[0](present), [], [], cotangents, body.trace, run)

        outputs = [self._like_output(v, flag) for v, flag in zip(run.results(), self.outputs, strict=True)]
        return outputs, pull_back

    def _pull(
        self, pull: Callable[[list[XlaOp], Sequence[XlaOp | None]], Sequence[XlaOp | None]], given: Sequence[Value],
        shapes: Sequence[Shape], cotangents: Sequence[XlaOp | None], parent: Trace, run: BatchedBody | None,
    ) -> list[XlaOp | None]:  # fmt: skip
        """Pull the cotangents of all elements back by a function for one.

        Parameters
        ----------
        pull : callable
            Function from the values given and the cotangents of an element to those of the inputs.
        given, shapes : sequences
            Values that the function is given, and their shapes for one element.
        cotangents : sequence of (XlaOp or None)
            Cotangents of the outputs.
        parent : Trace
            Trace that holds the values which the function captures.
        run : BatchedBody, optional
            Batched body of that trace; without one it is the current trace.
        """
        present = [k for k, c in enumerate(cotangents) if c is not None]
        found: list[int] = []

        def emit(*values: XlaOp) -> list[XlaOp]:
            of_outputs: list[XlaOp | None] = [None] * len(cotangents)
            for k, value in zip(present, values[len(shapes) :], strict=True):
                of_outputs[k] = value
            pulled = pull(list(values[: len(shapes)]), of_outputs)
            found[:] = [k for k, c in enumerate(pulled) if c is not None]
            return [c for c in pulled if c is not None]

        body = _record("pullback", [*shapes, *[self.rule.outputs[k].shape for k in present]], emit, parent)
        arriving = [self._of_elements(c, k) for k, c in enumerate(cotangents) if c is not None]
        captured = capture_values(body) if run is None else [run.value(outer) for outer in body.captures]
        results = BatchedBody(body, [*given, *arriving, *captured], self.size).results()
        pulled: list[XlaOp | None] = [None] * len(self.inputs)
        for k, value in zip(found, results, strict=True):
            pulled[k] = self._to_input(value, k)
        return pulled

    def _of_elements(self, cotangent: XlaOp, index: int) -> Value:
        """Return the cotangent of each element; that of an output which all share counts once, for the first one."""
        cotangent = require_current().capture(cotangent)
        if self.outputs[index]:
            return Value(cotangent, True)
        first = xla.reshape(cotangent, (1, *cotangent.shape.dims))
        padding = [(0, max(self.size - 1, 0)), *[(0, 0)] * cotangent.shape.rank]
        return Value(xla.pad(first, 0, padding), True)

    def _to_input(self, value: Value, index: int) -> XlaOp:
        """Return the cotangent of an input: for one that all elements share, the sum of theirs."""
        of_elements = Batcher(require_current().builder, self.size).lead(value)
        return of_elements if self.inputs[index] else sum_over(of_elements, (0,))

    def _like_output(self, value: Value, flag: bool) -> XlaOp:
        if flag:
            return Batcher(require_current().builder, self.size).lead(value)
        if not value.mapped:
            return value.array
        first = xla.slice_in_dim(value.array, 0, 1)
        return xla.reshape(first, first.shape.dims[1:])
