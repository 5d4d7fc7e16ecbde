"""Lowering of scans: loops of known trip count with carry, slices and stacked results, and their pullback."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
from cyxla.types import Shape
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.hlo.instruction import Instruction

_EXPENSIVE = frozenset({"dot", "convolution", "fft", "cholesky", "triangular-solve"})  # saved as residuals


@dataclass(frozen=True)
class Scan:
    """Loop of known trip count.

    Attributes
    ----------
    body : Body
        Function from iteration index, constants, carry and slices to carry and result slices.
    length : int
        Trip count.
    constants, carried : int
        Numbers of body parameters after the index that are constants and that are carried values.
    reverse : bool
        Whether to begin with the last slice.
    unroll : int
        Unroll factor.
    """

    body: Body
    length: int
    constants: int
    carried: int
    reverse: bool = False
    unroll: int = 1

    def split(self, values: Sequence[XlaOp]) -> tuple[Ops, Ops, Ops]:
        """Split values into constants, carry and arrays of slices."""
        a, b = self.constants, self.constants + self.carried
        return list(values[:a]), list(values[a:b]), list(values[b:])

    def stacked(self, shape: Shape) -> Shape:
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
    given = [require_current().capture(x) for x in inputs]

    def forward(values: Ops, active: list[bool]) -> tuple[Ops, Pullback]:
        back = _ReverseScan(scan, values, active)
        return back.forward(), back.pull

    return attach(given, _emit_checked(scan, given), forward=forward)


def _emit_checked(scan: Scan, inputs: Ops) -> Ops:
    """Return the results, then the first failure of an iteration if there can be one."""
    if not scan.body.fails:
        return _emit_iterations(*_without_unused(scan, inputs))
    at = 1 + scan.constants + scan.carried
    shapes = scan.body.shapes

    def step(*values: XlaOp) -> Ops:
        results = inline(scan.body, [*values[:at], *values[at + 2 :]])
        status = first_failure_of(values[at : at + 2], take_failures())
        return [*results[: scan.carried], *status, *results[scan.carried :]]

    body = record_body("checked", [*shapes[:at], INDEX, INDEX, *shapes[at:]], step)
    status = [index_constant(0), index_constant(0)]
    results = _emit_iterations(*_without_unused(
        replace(scan, body=body, carried=scan.carried + 2), [*inputs[: at - 1], *status, *inputs[at - 1 :]]
    ))  # fmt: skip
    end = scan.carried
    return [*results[:end], *results[end + 2 :], *results[end : end + 2]]


def _without_unused(scan: Scan, inputs: Ops) -> tuple[Scan, Ops]:
    """Remove unused constants and slices."""
    used = used_parameters(scan.body)
    carried = range(1 + scan.constants, 1 + scan.constants + scan.carried)
    kept = [k for k in range(1, len(inputs) + 1) if k in used or k in carried]
    if len(kept) == len(inputs):
        return scan, inputs
    new_index = {k: n for n, k in enumerate([0, *kept])}
    shapes = scan.body.shapes
    body = record_body(
        "used", [shapes[k] for k in (0, *kept)],
        lambda *values: inline(
            scan.body, [values[new_index[k]] if k in new_index else None for k in range(len(shapes))]
        ),
    )  # fmt: skip
    return replace(scan, body=body, constants=sum(k <= scan.constants for k in kept)), [inputs[k - 1] for k in kept]


def _emit_iterations(scan: Scan, inputs: Ops) -> Ops:
    constants, carried, arrays = scan.split(inputs)
    buffers = [zeros(scan.stacked(r.shape)) for r in scan.body.results[scan.carried :]]
    whole = scan.length // scan.unroll
    state = [*carried, *buffers]
    if whole:
        state = _emit_loop(scan, whole, constants, arrays, state)
    for k in range(whole * scan.unroll, scan.length):
        state = _emit_iteration(scan, index_constant(k), constants, arrays, state)
    return state


def _emit_loop(scan: Scan, count: int, constants: Ops, arrays: Ops, state: Ops) -> Ops:
    a, b = 1 + len(state), 1 + len(state) + len(constants)

    def step(values: Ops) -> Ops:
        counter, now = values[0], values[1:a]
        first = counter if scan.unroll == 1 else counter * index_constant(scan.unroll)
        for k in range(scan.unroll):
            now = _emit_iteration(scan, first + index_constant(k) if k else first, values[a:b], values[b:], now)
        return [counter + index_constant(1), *now, *values[a:]]

    init = [index_constant(0), *state, *constants, *arrays]
    return emit_state_loop(lambda values: xla.lt(values[0], index_constant(count)), step, init)[1:a]


def _emit_iteration(scan: Scan, number: XlaOp, constants: Ops, arrays: Ops, state: Ops) -> Ops:
    """Emit an iteration and return the next carry and buffers."""
    at = index_constant(scan.length - 1) - number if scan.reverse else number
    carried, buffers = state[: scan.carried], state[scan.carried :]
    results = inline(scan.body, [at, *constants, *carried, *[_slice(x, at) for x in arrays]])
    slices = results[scan.carried :]
    return [*results[: scan.carried], *[_update_slice(b, r, at) for b, r in zip(buffers, slices, strict=True)]]


def _slice(x: XlaOp, at: XlaOp) -> XlaOp:
    sizes = x.shape.dims[1:]
    part = xla.dynamic_slice(x, [at, *[index_constant(0)] * len(sizes)], (1, *sizes))
    return xla.reshape(part, sizes)


def _update_slice(buffer: XlaOp, part: XlaOp, at: XlaOp) -> XlaOp:
    sizes = part.shape.dims
    return xla.dynamic_update_slice(buffer, xla.reshape(part, (1, *sizes)), [at, *[index_constant(0)] * len(sizes)])


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
        self.needed = used_parameters(self._body([s is not None for s in everything]))
        self.residuals: tuple[dict[int, XlaOp], dict[int, XlaOp]] = ({}, {})

    def _propagate_activity(self, active: list[bool]) -> list[bool]:
        """Propagate activity: a carried value that depends on an active one is active in the next iteration."""
        first = self.scan.constants
        while True:
            after = list(active)
            for k, r in enumerate(self._active_results(active)[: self.scan.carried]):
                after[first + k] = after[first + k] or r
            if after == active:
                return active
            active = after

    def _active_results(self, active: Sequence[bool]) -> list[bool]:
        found = activity(self.scan.body, [False, *active])
        return [instruction_of(r) in found for r in self.scan.body.results]

    def _expensive_instructions(self) -> list[Instruction]:
        body = self.scan.body
        parameters = {instruction_of(p) for p in body.parameters}
        return [i for i in body.instructions if i.opcode in _EXPENSIVE and i not in parameters and is_inexact(i.shape)]

    # Parameters of the pullback's body: index, constants, cotangents of the carry, accumulators of constants, and
    # slices of arrays, of saved carries, of saved expensive values, and of cotangents of stacked results.

    def _active_carry(self) -> list[int]:
        first = self.scan.constants
        return [k for k in range(self.scan.carried) if self.active[first + k]]

    def _active_constants(self) -> list[int]:
        return [k for k in range(self.scan.constants) if self.active[k]]

    def _active_slices(self) -> list[int]:
        first = self.scan.constants + self.scan.carried
        return [k for k in range(first, len(self.active)) if self.active[k]]

    def _body(self, given: Sequence[bool]) -> Body:
        """Return the body of the pullback, for the results that have a cotangent."""
        scan, body = self.scan, self.scan.body
        shapes = body.shapes
        constants, carried, arrays = (shapes[k : k + n] for k, n in self._spans())
        results = [r.shape for r in body.results]
        stacked = [k for k in range(scan.carried, len(results)) if given[k]]
        parts: list[list[Shape]] = [
            [INDEX], constants, [carried[k] for k in self._active_carry()],
            [constants[k] for k in self._active_constants()], arrays, carried,
            [i.shape for i in self.expensive], [results[k] for k in stacked],
        ]  # fmt: skip

        def step(*values: XlaOp) -> Ops:
            rest = iter(values)
            number, consts, slopes, sums, slices, before, expensive, given_slopes = (
                [next(rest) for _ in part] for part in parts
            )
            linear = Linearised(
                body, [*number, *consts, *before, *slices], [False, *self.active],
                dict(zip(self.expensive, expensive, strict=True)),
            )  # fmt: skip
            found: list[XlaOp | None] = [None] * len(results)
            for k, c in zip((*self._active_carry(), *stacked), (*slopes, *given_slopes), strict=True):
                found[k] = c
            back = linear.pull(found)[1:]
            first = scan.constants
            onward = or_zeros([back[first + k] for k in self._active_carry()], parts[2])
            totals = [
                s if back[k] is None else xla.add(s, back[k])
                for k, s in zip(self._active_constants(), sums, strict=True)
            ]
            of_slices = or_zeros(
                [back[k] for k in self._active_slices()], [shapes[1 + k] for k in self._active_slices()]
            )
            return [*onward, *totals, *of_slices]

        return record_body("back", [s for part in parts for s in part], step)

    def _spans(self) -> list[tuple[int, int]]:
        """Return start and count of constants, carry and slices among the parameters of the body."""
        s = self.scan
        a, b = 1 + s.constants, 1 + s.constants + s.carried
        return [(1, s.constants), (a, s.carried), (b, len(s.body.shapes) - b)]

    def _needed_residuals(self) -> tuple[list[int], list[int]]:
        """Return the indices of the carried values and of the expensive instructions that the pullback needs."""
        scan = self.scan
        at = 1 + scan.constants + len(self._active_carry()) + len(self._active_constants()) + self._spans()[2][1]
        carried = [k for k in range(scan.carried) if at + k in self.needed]
        return carried, [k for k in range(len(self.expensive)) if at + scan.carried + k in self.needed]

    def forward(self) -> Ops:
        """Emit the loop with its residuals and return its results."""
        scan, body = self.scan, self.scan.body
        carried, expensive = self._needed_residuals()
        saved = [XlaOp(body.trace.builder, self.expensive[k]) for k in expensive]

        def step(*values: XlaOp) -> Ops:
            written = replay(body, values, extra=saved)
            before = [values[1 + scan.constants + k] for k in carried]
            return [*body_results(body, written), *before, *[written[instruction_of(s)] for s in saved]]

        results = emit_scan_with_failure(replace(scan, body=record_body("keeping", body.shapes, step)), self.inputs)
        count = len(body.results)
        kept = iter(results[count:])
        before: dict[int, XlaOp] = {k: next(kept) for k in carried}
        of_expensive: dict[int, XlaOp] = {k: next(kept) for k in expensive}
        self.residuals = (before, of_expensive)
        return [*results[:count], *kept]  # the remainder is the failure

    def pull(self, cotangents: Cotangents) -> list[XlaOp | None]:
        """Pull cotangents of the results back to those of the inputs."""
        scan = self.scan
        cotangents = cotangents[: len(scan.body.results)]  # without those of failures
        given = [c is not None and a for c, a in zip(cotangents, self.results_active, strict=True)]
        body = self._body(given)
        constants, _, arrays = scan.split(self.inputs)
        shapes = [r.shape for r in scan.body.results]
        slopes = or_zeros([cotangents[k] for k in self._active_carry()], [shapes[k] for k in self._active_carry()])
        sums = [zeros(constants[k].shape) for k in self._active_constants()]
        before, expensive = self.residuals
        slices = [
            *arrays, *[before.get(k) for k in range(scan.carried)],
            *[expensive.get(k) for k in range(len(self.expensive))],
            *[c for c, g in zip(cotangents[scan.carried :], given[scan.carried :], strict=True) if g],
        ]  # fmt: skip
        unroll, reverse = scan.unroll, not scan.reverse
        back = Scan(body, scan.length, len(constants), len(slopes) + len(sums), reverse, unroll)
        back, inputs = _without_missing(back, [*constants, *slopes, *sums, *slices])
        found = iter(emit_scan(back, inputs))
        found_cotangents: list[XlaOp | None] = [None] * len(self.inputs)
        for k in [
            *(scan.constants + k for k in self._active_carry()),
            *self._active_constants(),
            *self._active_slices(),
        ]:
            found_cotangents[k] = next(found)
        return found_cotangents


def _without_missing(scan: Scan, inputs: Sequence[XlaOp | None]) -> tuple[Scan, Ops]:
    """Remove slices that are None, on which nothing depends."""
    kept = [k for k, x in enumerate(inputs) if x is not None]
    shapes = scan.body.shapes
    new_index = {1 + k: 1 + n for n, k in enumerate(kept)}
    body = record_body(
        "there", [INDEX, *[shapes[1 + k] for k in kept]],
        lambda *values: inline(
            scan.body, [values[0], *[values[new_index[k]] if k in new_index else None for k in range(1, len(shapes))]]
        ),
    )  # fmt: skip
    return replace(scan, body=body), [x for x in inputs if x is not None]
