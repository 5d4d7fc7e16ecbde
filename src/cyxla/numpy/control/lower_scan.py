"""Lowering of scans: loops of known or bounded trip count with carry, slices, stacked results, and their pullback."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cyxla.numpy.control.lower_while import (
    INDEX,
    Ops,
    emit_state_loop,
    first_failure_of,
    index_constant,
    take_failures,
    used_parameters,
)
from cyxla.numpy.gradient.backward import Linearised, activity, is_inexact, or_zeros
from cyxla.numpy.gradient.composites import attach
from cyxla.numpy.gradient.table import Cotangents, zeros
from cyxla.numpy.tracing.bodies import Body, body_results, inline, instruction_of, record_body, replay
from cyxla.numpy.tracing.trace import Pullback, require_current
from cyxla.records import dataclass
from cyxla.types import Shape
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.hlo.instruction import Instruction

_EXPENSIVE = frozenset(
    {"dot", "convolution", "fft", "cholesky", "triangular-solve"}
)  # opcodes whose results are saved as residuals


@dataclass(frozen=True)
class Scan:
    """Loop of known trip count, or of one that has a bound.

    Attributes
    ----------
    body : Body
        Function from iteration index, constants, carry and slices to carry and result slices.
    length : int
        Trip count, or its bound.
    constant_count, carry_count : int
        Numbers of body parameters after the index that are constants and that are carried values.
    reverse : bool
        Whether to begin with the last slice.
    unroll : int
        Unroll factor of a loop of known trip count.
    is_bounded : bool
        Whether the first constant, s64[], is the trip count, and `length` its bound. Arrays of slices and stacked
        results have as many slices as the bound; those of results beyond the trip count are zeros.
    """

    body: Body
    length: int
    constant_count: int
    carry_count: int
    reverse: bool = False
    unroll: int = 1
    is_bounded: bool = False

    def split(self, values: Sequence[XlaOp]) -> tuple[Ops, Ops, Ops]:
        """Split values into constants, carry and arrays of slices."""
        a, b = self.constant_count, self.constant_count + self.carry_count
        return list(values[:a]), list(values[a:b]), list(values[b:])

    def stacked_shape(self, shape: Shape) -> Shape:
        """Return the shape of the slices of all iterations."""
        return shape.with_dims((self.length, *shape.dims))


def emit_scan(scan: Scan, inputs: Sequence[XlaOp]) -> Ops:
    """Emit a loop and return the final carry, then the stacked results; failures join those of the current trace.

    Parameters
    ----------
    scan : Scan
        Loop to emit.
    inputs : sequence of XlaOp
        Constants, initial carry, arrays to slice.
    """
    results = emit_scan_with_failure(scan, inputs)
    count = len(scan.body.results)
    if len(results) > count:
        require_current().failures.append((results[count], results[count + 1]))
    return results[:count]


def emit_scan_with_failure(scan: Scan, inputs: Sequence[XlaOp]) -> Ops:
    """Emit a loop and return its results, then the first failure if the body contains checks."""
    captured = [require_current().capture(x) for x in inputs]

    def forward(values: Ops, active: list[bool]) -> tuple[Ops, Pullback]:
        reverse_scan = _ReverseScan(scan, values, active)
        return reverse_scan.forward(), reverse_scan.pull

    return attach(captured, _emit_checked(scan, captured), forward=forward)


def _emit_checked(scan: Scan, inputs: Ops) -> Ops:
    """Return the results, then the first failure of an iteration if there can be one."""
    if not scan.body.fails:
        return _emit_iterations(*_drop_unused(scan, inputs))
    status_position = 1 + scan.constant_count + scan.carry_count
    shapes = scan.body.shapes

    def step(*values: XlaOp) -> Ops:
        results = inline(scan.body, [*values[:status_position], *values[status_position + 2 :]])
        status = first_failure_of(values[status_position : status_position + 2], take_failures())
        return [*results[: scan.carry_count], *status, *results[scan.carry_count :]]

    body = record_body("checked", [*shapes[:status_position], INDEX, INDEX, *shapes[status_position:]], step)
    status = [index_constant(0), index_constant(0)]
    results = _emit_iterations(*_drop_unused(
        replace(scan, body=body, carry_count=scan.carry_count + 2),
        [*inputs[: status_position - 1], *status, *inputs[status_position - 1 :]],
    ))  # fmt: skip
    carry_end = scan.carry_count
    return [*results[:carry_end], *results[carry_end + 2 :], *results[carry_end : carry_end + 2]]


def _drop_unused(scan: Scan, inputs: Ops) -> tuple[Scan, Ops]:
    """Remove unused constants and slices."""
    used = used_parameters(scan.body)
    carry_positions = range(1 + scan.constant_count, 1 + scan.constant_count + scan.carry_count)
    if scan.is_bounded:
        used.add(1)
    used_inputs = [k for k in range(1, len(inputs) + 1) if k in used or k in carry_positions]
    if len(used_inputs) == len(inputs):
        return scan, inputs
    new_index = {k: n for n, k in enumerate([0, *used_inputs])}
    shapes = scan.body.shapes
    body = record_body(
        "used", [shapes[k] for k in (0, *used_inputs)],
        lambda *values: inline(
            scan.body, [values[new_index[k]] if k in new_index else None for k in range(len(shapes))]
        ),
    )  # fmt: skip
    return replace(scan, body=body, constant_count=sum(k <= scan.constant_count for k in used_inputs)), [
        inputs[k - 1] for k in used_inputs
    ]


def _emit_iterations(scan: Scan, inputs: Ops) -> Ops:
    constants, carry, arrays = scan.split(inputs)
    buffers = [zeros(scan.stacked_shape(r.shape)) for r in scan.body.results[scan.carry_count :]]
    state = [*carry, *buffers]
    if scan.is_bounded:
        return _emit_loop(replace(scan, unroll=1), 0, constants, arrays, state) if scan.length else state
    full_iterations = scan.length // scan.unroll
    if full_iterations:
        state = _emit_loop(scan, full_iterations, constants, arrays, state)
    for k in range(full_iterations * scan.unroll, scan.length):
        state = _emit_iteration(scan, index_constant(k), constants, arrays, state)
    return state


def _emit_loop(scan: Scan, count: int, constants: Ops, arrays: Ops, state: Ops) -> Ops:
    a, b = 1 + len(state), 1 + len(state) + len(constants)

    def step(values: Ops) -> Ops:
        counter, current = values[0], values[1:a]
        first = counter if scan.unroll == 1 else counter * index_constant(scan.unroll)
        for k in range(scan.unroll):
            current = _emit_iteration(scan, first + index_constant(k) if k else first, values[a:b], values[b:], current)
        return [counter + index_constant(1), *current, *values[a:]]

    def goes_on(values: Ops) -> XlaOp:
        return xla.lt(values[0], values[a] if scan.is_bounded else index_constant(count))

    init = [index_constant(0), *state, *constants, *arrays]
    return emit_state_loop(goes_on, step, init)[1:a]


def _emit_iteration(scan: Scan, iteration: XlaOp, constants: Ops, arrays: Ops, state: Ops) -> Ops:
    """Emit an iteration and return the next carry and buffers."""
    position = iteration
    if scan.reverse:
        last = constants[0] - index_constant(1) if scan.is_bounded else index_constant(scan.length - 1)
        position = last - iteration
    carry, buffers = state[: scan.carry_count], state[scan.carry_count :]
    results = inline(scan.body, [position, *constants, *carry, *[_slice(x, position) for x in arrays]])
    slices = results[scan.carry_count :]
    return [
        *results[: scan.carry_count],
        *[_update_slice(b, r, position) for b, r in zip(buffers, slices, strict=True)],
    ]


def _slice(x: XlaOp, position: XlaOp) -> XlaOp:
    sizes = x.shape.dims[1:]
    part = xla.dynamic_slice(x, [position, *[index_constant(0)] * len(sizes)], (1, *sizes))
    return xla.reshape(part, sizes)


def _update_slice(buffer: XlaOp, part: XlaOp, position: XlaOp) -> XlaOp:
    sizes = part.shape.dims
    return xla.dynamic_update_slice(
        buffer, xla.reshape(part, (1, *sizes)), [position, *[index_constant(0)] * len(sizes)]
    )


class _ReverseScan:
    """Loop that saves residuals, and its pullback, a loop in the opposite direction.

    Each iteration saves its carry and the results of expensive instructions. The pullback recomputes the rest of an
    iteration, differentiates it, and accumulates the cotangents of the constants.
    """

    def __init__(self, scan: Scan, inputs: Ops, active: Sequence[bool]) -> None:
        self.scan = scan
        self.inputs = inputs
        self.active = self._propagate_activity(list(active))
        self.expensive = self._expensive_instructions()
        self.results_active = self._active_results(self.active)
        everything = [r.shape if a else None for r, a in zip(scan.body.results, self.results_active, strict=True)]
        self.needed = used_parameters(self._pullback_body([s is not None for s in everything]))
        self.residuals: tuple[dict[int, XlaOp], dict[int, XlaOp]] = ({}, {})

    def _propagate_activity(self, active: list[bool]) -> list[bool]:
        """Propagate activity: a carried value that depends on an active one is active in the next iteration."""
        carry_start = self.scan.constant_count
        while True:
            next_active = list(active)
            for k, r in enumerate(self._active_results(active)[: self.scan.carry_count]):
                next_active[carry_start + k] = next_active[carry_start + k] or r
            if next_active == active:
                return active
            active = next_active

    def _active_results(self, active: Sequence[bool]) -> list[bool]:
        active_instructions = activity(self.scan.body, [False, *active])
        return [instruction_of(r) in active_instructions for r in self.scan.body.results]

    def _expensive_instructions(self) -> list[Instruction]:
        body = self.scan.body
        parameters = {instruction_of(p) for p in body.parameters}
        return [i for i in body.instructions if i.opcode in _EXPENSIVE and i not in parameters and is_inexact(i.shape)]

    # Parameters of the pullback's body: index, constants, cotangents of the carry, accumulators of constants, and
    # slices of arrays, of saved carries, of saved expensive values, and of cotangents of stacked results.

    def _active_carry(self) -> list[int]:
        first = self.scan.constant_count
        return [k for k in range(self.scan.carry_count) if self.active[first + k]]

    def _active_constants(self) -> list[int]:
        return [k for k in range(self.scan.constant_count) if self.active[k]]

    def _active_slices(self) -> list[int]:
        first = self.scan.constant_count + self.scan.carry_count
        return [k for k in range(first, len(self.active)) if self.active[k]]

    def _pullback_body(self, has_cotangent: Sequence[bool]) -> Body:
        """Return the body of the pullback, for the results that have a cotangent."""
        scan, body = self.scan, self.scan.body
        shapes = body.shapes
        constants, carried, arrays = (shapes[k : k + n] for k, n in self._spans())
        results = [r.shape for r in body.results]
        stacked = [k for k in range(scan.carry_count, len(results)) if has_cotangent[k]]
        parts: list[list[Shape]] = [
            [INDEX], constants, [carried[k] for k in self._active_carry()],
            [constants[k] for k in self._active_constants()], arrays, carried,
            [i.shape for i in self.expensive], [results[k] for k in stacked],
        ]  # fmt: skip

        def step(*values: XlaOp) -> Ops:
            remaining = iter(values)
            iteration, consts, carry_cotangents, accumulators, slices, carries, expensive, stacked_cotangents = (
                [next(remaining) for _ in part] for part in parts
            )
            linear = Linearised(
                body, [*iteration, *consts, *carries, *slices], [False, *self.active],
                dict(zip(self.expensive, expensive, strict=True)),
            )  # fmt: skip
            result_cotangents: list[XlaOp | None] = [None] * len(results)
            for k, c in zip((*self._active_carry(), *stacked), (*carry_cotangents, *stacked_cotangents), strict=True):
                result_cotangents[k] = c
            input_cotangents = linear.pull(result_cotangents)[1:]
            carry_start = scan.constant_count
            next_carry = or_zeros([input_cotangents[carry_start + k] for k in self._active_carry()], parts[2])
            totals = [
                s if input_cotangents[k] is None else xla.add(s, input_cotangents[k])
                for k, s in zip(self._active_constants(), accumulators, strict=True)
            ]
            slice_cotangents = or_zeros(
                [input_cotangents[k] for k in self._active_slices()], [shapes[1 + k] for k in self._active_slices()]
            )
            return [*next_carry, *totals, *slice_cotangents]

        return record_body("pullback", [s for part in parts for s in part], step)

    def _spans(self) -> list[tuple[int, int]]:
        """Return start and count of constants, carry and slices among the parameters of the body."""
        s = self.scan
        a, b = 1 + s.constant_count, 1 + s.constant_count + s.carry_count
        return [(1, s.constant_count), (a, s.carry_count), (b, len(s.body.shapes) - b)]

    def _needed_residuals(self) -> tuple[list[int], list[int]]:
        """Return the indices of the carried values and of the expensive instructions that the pullback needs."""
        scan = self.scan
        carries_start = (
            1 + scan.constant_count + len(self._active_carry()) + len(self._active_constants()) + self._spans()[2][1]
        )
        carried = [k for k in range(scan.carry_count) if carries_start + k in self.needed]
        return carried, [k for k in range(len(self.expensive)) if carries_start + scan.carry_count + k in self.needed]

    def forward(self) -> Ops:
        """Emit the loop with its residuals and return its results."""
        scan, body = self.scan, self.scan.body
        carried, expensive = self._needed_residuals()
        saved = [XlaOp(body.trace.builder, self.expensive[k]) for k in expensive]

        def step(*values: XlaOp) -> Ops:
            instructions = replay(body, values, extra=saved)
            carries = [values[1 + scan.constant_count + k] for k in carried]
            return [*body_results(body, instructions), *carries, *[instructions[instruction_of(s)] for s in saved]]

        results = emit_scan_with_failure(
            replace(scan, body=record_body("save_residuals", body.shapes, step)), self.inputs
        )
        count = len(body.results)
        residuals = iter(results[count:])
        carries: dict[int, XlaOp] = {k: next(residuals) for k in carried}
        expensive_values: dict[int, XlaOp] = {k: next(residuals) for k in expensive}
        self.residuals = (carries, expensive_values)
        return [*results[:count], *residuals]  # the remainder is the failure

    def pull(self, cotangents: Cotangents) -> list[XlaOp | None]:
        """Pull cotangents of the results back to those of the inputs."""
        scan = self.scan
        cotangents = cotangents[: len(scan.body.results)]  # without those of failures
        has_cotangent = [c is not None and a for c, a in zip(cotangents, self.results_active, strict=True)]
        body = self._pullback_body(has_cotangent)
        constants, _, arrays = scan.split(self.inputs)
        shapes = [r.shape for r in scan.body.results]
        carry_cotangents = or_zeros(
            [cotangents[k] for k in self._active_carry()], [shapes[k] for k in self._active_carry()]
        )
        accumulators = [zeros(constants[k].shape) for k in self._active_constants()]
        carries, expensive = self.residuals
        slices = [
            *arrays, *[carries.get(k) for k in range(scan.carry_count)],
            *[expensive.get(k) for k in range(len(self.expensive))],
            *[c for c, g in zip(cotangents[scan.carry_count :], has_cotangent[scan.carry_count :], strict=True) if g],
        ]  # fmt: skip
        unroll, reverse = scan.unroll, not scan.reverse
        carry_count = len(carry_cotangents) + len(accumulators)
        pullback = Scan(body, scan.length, len(constants), carry_count, reverse, unroll, scan.is_bounded)
        pullback, inputs = _drop_missing(pullback, [*constants, *carry_cotangents, *accumulators, *slices])
        found_values = iter(emit_scan(pullback, inputs))
        input_cotangents: list[XlaOp | None] = [None] * len(self.inputs)
        for k in [
            *(scan.constant_count + k for k in self._active_carry()),
            *self._active_constants(),
            *self._active_slices(),
        ]:
            input_cotangents[k] = next(found_values)
        return input_cotangents


def _drop_missing(scan: Scan, inputs: Sequence[XlaOp | None]) -> tuple[Scan, Ops]:
    """Remove slices that are None, on which nothing depends."""
    present = [k for k, x in enumerate(inputs) if x is not None]
    shapes = scan.body.shapes
    new_index = {1 + k: 1 + n for n, k in enumerate(present)}
    body = record_body(
        "present", [INDEX, *[shapes[1 + k] for k in present]],
        lambda *values: inline(
            scan.body, [values[0], *[values[new_index[k]] if k in new_index else None for k in range(1, len(shapes))]]
        ),
    )  # fmt: skip
    return replace(scan, body=body), [x for x in inputs if x is not None]
