"""`while_loop`, `fori_loop` and `scan`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from cyxla.errors import DTypeError, InvalidArgumentError, ShapeError, TraceError
from cyxla.numpy.control.carry import (
    agreed_kind,
    array_text,
    as_arrays,
    check_same_structure,
    convert_results,
    copy_arrays,
    known_value,
    leaf_paths,
    match_dict_order,
    to_numpy,
)
from cyxla.numpy.control.lengths import Length, NamedSize, agreed_length
from cyxla.numpy.control.lower_scan import Scan, emit_scan
from cyxla.numpy.control.lower_while import INDEX, emit_while
from cyxla.numpy.control.slices import Slices, Stacked
from cyxla.numpy.gradient.api import compile_wrapper
from cyxla.numpy.indexing.equal_values import same_value
from cyxla.numpy.indexing.ranges import declare_range
from cyxla.numpy.tracing.arrays.run_time_sizes import elements_of, flatten_arrays
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, size_leaves
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, traced, value_of
from cyxla.numpy.tracing.bodies import TracedFunction, inline, instruction_of, record, record_body
from cyxla.numpy.tracing.containers import flatten, map_leaves
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.promotion import Kind, dtype_of, same_kind
from cyxla.numpy.tracing.trace import current, user_line
from cyxla.types import Shape
from cyxla.xla.hlo.builder import XlaOp

_MAX_RETRACES = 5  # greatest number of times that a weakly typed number of the carry may change its type


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init: Any) -> Any:
    """Call a function on its own result while a condition holds.

    Parameters
    ----------
    cond_fun : callable
        Function from the carry to a bool.
    body_fun : callable
        Function from the carry to the next one, of the same structure, dtypes and shapes.
    init : object
        Initial carry.

    Examples
    --------
    >>> while_loop(lambda n: n < 100, lambda n: 2 * n, 3)
    np.int64(192)
    """
    if current() is None:
        state = copy_arrays(init)
        while cond_fun(state):
            state = match_dict_order(body_fun(state), init)
        return to_numpy(state)
    carry = _TracedCarry("while_loop", "init", init)
    recorded = carry.trace_body(lambda values: body_fun(values[0]), [], "body_fun")
    body = convert_results(recorded.body, carry.kinds)
    test = record("condition", _bool_condition(cond_fun), carry.arrays, lambda values: [carry.tree.build(values)])
    count = len(carry.arrays)
    constants = [*recorded.body.captures, *test.body.captures]
    split = count + len(recorded.body.captures)
    shapes = [*[a.aval.static for a in carry.arrays], *[c.shape for c in constants]]
    condition = record_body("condition", shapes, lambda *v: inline(test.body, [*v[:count], *v[split:]]))
    step = record_body("body", shapes, lambda *v: inline(body, v[:split]))
    return carry.result(emit_while(condition, step, constants, [*map(value_of, carry.arrays)]))


def _bool_condition(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def run(state: Any) -> Any:
        result = as_traced(function(state))
        if result.shape != ():
            raise TraceError(f"while_loop: cond_fun returns {array_text(result)}, not one bool", where=user_line())
        return as_traced(result, bool)

    return run


def fori_loop(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init: Any) -> Any:
    """Call a function for each integer from `lower` up to `upper`, exclusive, on the previous result.

    Parameters
    ----------
    lower, upper : int or array of rank 0
        Bounds; only Python integers allow a gradient.
    body_fun : callable
        Function from an integer and the carry to the next carry, of the same structure, dtypes and shapes.
    init : object
        Initial carry.

    Examples
    --------
    >>> fori_loop(1, 5, lambda i, product: product * i, 1)
    np.int64(24)
    """
    if current() is None:
        state = copy_arrays(init)
        for i in range(_bound(lower), _bound(upper)):
            state = match_dict_order(body_fun(i, state), init)
        return to_numpy(state)
    lower, upper = known_value(lower), known_value(upper)
    if not isinstance(lower, TracedArray) and not isinstance(upper, TracedArray):
        return _counted_loop(_bound(lower), _bound(upper), body_fun, init)
    first, last = (_traced_bound(b) for b in (lower, upper))
    final = while_loop(
        lambda s: s["at"] < last, lambda s: {"at": s["at"] + 1, "state": body_fun(s["at"], s["state"])},
        {"at": first, "state": init},
    )  # fmt: skip
    return final["state"]


def _bound(value: Any) -> int:
    bound = np.asarray(value)
    if bound.shape != () or bound.dtype.kind not in "biu":
        raise DTypeError(f"fori_loop: lower and upper must be scalar integers, not {value!r}", where=user_line())
    return int(bound)


def _traced_bound(value: Any) -> TracedArray:
    array = as_traced(value)
    if array.shape != () or array.dtype.kind not in "biu":
        raise DTypeError(f"fori_loop: lower and upper must be scalar integers, not {array!r}", where=user_line())
    return traced(convert(value_of(array), np.dtype(np.int64)), int)


def _counted_loop(lower: int, upper: int, body_fun: Callable[[Any, Any], Any], init: Any) -> Any:
    def iteration(number: Any, state: Any, _: Any) -> tuple[Any, None]:
        return body_fun(number + lower if lower else number, state), None

    return _scan("fori_loop", "body_fun", iteration, init, None, Length(max(upper - lower, 0)), False, 1)[0]


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any = None, length: int | None = None,
    reverse: bool = False, unroll: int = 1,
) -> tuple[Any, Any]:  # fmt: skip
    """Call a function for each slice of arrays with a carry, and stack its results.

    Parameters
    ----------
    f : callable
        Function from the carry and a slice to the next carry and a result: ``carry, y = f(carry, x)``.
    init : object
        Initial carry, a container.
    xs : object
        Container of arrays, sliced along their first dimension; None if there is nothing to slice.
    length : int, optional
        Trip count, if there is nothing to slice.
    reverse : bool
        Whether to begin with the last slice; results are stacked in the order of the slices in either case.
    unroll : int
        Number of iterations to unroll in compiled code.

    Returns
    -------
    carry, ys : tuple
        Final carry, and the results stacked along a new first dimension.

    Examples
    --------
    >>> import numpy as np
    >>> scan(lambda total, x: (total + x, total), 0.0, np.arange(4.0))
    (np.float64(6.0), array([0., 0., 1., 3.]))
    """
    slices = length_of("scan", xs, length)
    if unroll < 1:
        raise InvalidArgumentError(f"scan: unroll must be at least 1, not {unroll}", where=user_line())
    if current() is None and slices.bound:
        return _scan_eagerly(f, init, xs, slices.bound, reverse)
    if current() is None:  # without an iteration, only tracing tells the types of the results
        result: tuple[Any, Any] = compile_wrapper(lambda i, x: scan(f, i, x, length, reverse), f)(init, xs)
        return result
    return _scan("scan", "f", lambda number, state, x: f(state, x), init, xs, slices, reverse, unroll)


def length_of(caller: str, xs: Any, length: int | None) -> Length:
    """Return the number of slices of arrays.

    Raises
    ------
    ShapeError
        Arrays disagree, or neither arrays nor a length are given.
    """
    sizes = [_first_size(caller, x) for x in flatten_arrays(xs)[0]]
    if length is not None:
        if int(length) < 0:
            raise ShapeError(f"{caller}: length must not be negative, but is {length}", where=user_line())
        sizes.append(NamedSize("length= is {}", int(length), int(length)))
    known = {n.size for n in sizes if not isinstance(n.size, TracedArray)}
    if not sizes or len(known) > 1:
        reason = f"xs and length= disagree: {sorted(known)} slices" if sizes else "give xs or length="
        raise ShapeError(f"{caller}: the number of iterations is unknown; {reason}", where=user_line())
    return agreed_length(caller, sizes)


def _first_size(caller: str, x: Any) -> NamedSize:
    shape = x.shape if isinstance(x, (TracedArray, SizedArray)) else np.shape(x)
    if not shape:
        raise ShapeError(f"{caller}: xs contains an array of rank 0, which has no slices", where=user_line())
    size = shape[0] if isinstance(x, SizedArray) else int(shape[0])
    return NamedSize("xs contains an array of {} slices", size, np.shape(elements_of(x))[0])


def _scan_eagerly(f: Callable[[Any, Any], Any], init: Any, xs: Any, count: int, reverse: bool) -> tuple[Any, Any]:
    state, results, arrays = copy_arrays(init), [], map_leaves(np.asarray, xs)
    for k in range(count - 1, -1, -1) if reverse else range(count):
        next_state, y = _pair("scan", f(state, map_leaves(lambda x, k=k: x[k], arrays)))
        state = match_dict_order(next_state, init)
        results.append(to_numpy(y))
    if reverse:
        results.reverse()
    results = [match_dict_order(y, results[0]) for y in results]
    return to_numpy(state), map_leaves(lambda *ys: np.stack(ys), *results)


def _pair(caller: str, result: Any) -> tuple[Any, Any]:
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise TraceError(f"{caller}: the function must return a pair, the next state and a result", where=user_line())
    return result[0], result[1]


def _scan(
    caller: str, name: str, function: Callable[[Any, Any, Any], Any], init: Any, xs: Any, length: Length,
    reverse: bool, unroll: int,
) -> tuple[Any, Any]:  # fmt: skip
    state = _TracedCarry(caller, "init", init)
    slices = Slices.of(xs, length)
    ys: list[Any] = [[], None]  # leaves of the result, and their container

    def run(values: Sequence[Any]) -> Any:
        carry, number, *parts = values
        declare_range(number.op, 0, max(length.bound - 1, 0))
        carry, y = _pair(caller, function(number, carry, slices.build(parts)))
        ys[:] = flatten_arrays(y)
        return (match_dict_order(carry, state.pattern), y)

    recorded = state.trace_body(run, [_Prototype(INDEX, int), *map(_Prototype, slices.shapes)], name, pairs=True)
    body = convert_results(recorded.body, state.kinds)
    trip_count = [] if length.count is None else [value_of(length.count)]
    constants = [*trip_count, *recorded.body.captures]
    carry_end = len(constants) + len(state.arrays)
    shapes = [INDEX, *[c.shape for c in constants], *[a.aval.static for a in state.arrays], *slices.shapes]
    stacked = Stacked(ys[0], len(state.arrays), length)

    def step(number: XlaOp, *values: XlaOp) -> list[XlaOp]:
        captured = values[len(trip_count) : len(constants)]
        results = inline(body, [*values[len(constants) : carry_end], number, *values[carry_end:], *captured])
        return [results[k] for k in stacked.kept]

    loop = Scan(
        record_body("iteration", shapes, step), length.bound, len(constants), len(state.arrays), reverse, unroll,
        is_bounded=bool(trip_count),
    )  # fmt: skip
    results = emit_scan(loop, [*constants, *map(value_of, state.arrays), *map(value_of, slices.arrays)])
    leaves = stacked.arrays(results[len(state.arrays) :], stacked.sizes(caller, name, recorded.body))
    return state.result(results[: len(state.arrays)]), ys[1].build(leaves)


class _Prototype:
    """Prototype of an argument that is computed in each iteration."""

    def __init__(self, shape: Shape, weak: type | None = None) -> None:
        self.aval, self.weak, self.origin = shape, weak, ""


class _TracedCarry:
    """Carry of a loop while it is being traced.

    Parameters
    ----------
    caller, name : str
        Names of the loop function and of the initial carry, for messages.
    init : object
        Initial carry.
    """

    def __init__(self, caller: str, name: str, init: Any) -> None:
        self.caller, self.name = caller, name
        leaves, self.tree = flatten(init)
        self.arrays = [as_traced(leaf) for leaf in leaves]
        self.pattern = self.tree.build(range(len(leaves)))

    @property
    def kinds(self) -> list[Kind]:
        """Kinds of the leaves."""
        return [a.kind for a in self.arrays]

    def result(self, values: Sequence[XlaOp]) -> Any:
        """Build the container of the final values."""
        return self.tree.build(as_arrays(values, self.kinds))

    def trace_body(
        self, function: Callable[[Sequence[Any]], Any], others: Sequence[Any], name: str, pairs: bool = False
    ) -> TracedFunction:
        """Trace an iteration, again while weakly typed numbers of the initial carry adopt other types."""
        count = len(self.arrays)
        # sizes of arrays that are taken to be the same in all iterations
        kept = {k for k, is_size in enumerate(size_leaves(self.tree)) if is_size}

        def run(values: list[Any]) -> Any:
            state = [self.arrays[k] if k in kept else v for k, v in enumerate(values[:count])]
            result = function([self.tree.build(state), *values[count:]])
            return result if pairs else match_dict_order(result, self.pattern)

        for _ in range(_MAX_RETRACES):
            traced_body = record(self.caller, run, [*self.arrays, *others], lambda values: [values])
            tree = traced_body.tree.children[0] if pairs else traced_body.tree
            check_same_structure(self.caller, (f"{self.name} is", self.tree), (f"{name} returns", tree))
            if not self._keeps(kept, traced_body):
                kept.clear()
            elif not self._adopt_kinds(traced_body.results[:count], name):
                return traced_body
        raise TraceError(f"{self.caller}: the types of {self.name} do not converge", where=user_line())

    def _keeps(self, sizes: Collection[int], traced_body: TracedFunction) -> bool:
        """Return whether sizes of arrays, given by their positions, are the same after an iteration."""
        trace = traced_body.body.trace
        results = traced_body.body.results
        return all(
            same_value(instruction_of(results[k]), instruction_of(trace.capture(self.arrays[k].op))) for k in sizes
        )

    def _adopt_kinds(self, results: Sequence[TracedArray], name: str) -> bool:
        """Convert the initial carry to the types of the next one; return whether anything changed."""
        changed = False
        for k, (path, before, after) in enumerate(
            zip(leaf_paths(self.tree, self.name), self.arrays, results, strict=True)
        ):
            kind = self._kind(before, after)
            if kind is None or before.shape != after.shape:
                raise TraceError(
                    f"{self.caller}: {path} is {array_text(before)}, but {name} returns {array_text(after)} for it",
                    where=user_line(), hint="a carried value must keep its dtype and shape: convert one of the two",
                )  # fmt: skip
            if not same_kind(kind, before.kind):
                self.arrays[k] = as_arrays([convert(value_of(before), dtype_of(kind))], [kind])[0]
                changed = True
        return changed

    @staticmethod
    def _kind(before: TracedArray, after: TracedArray) -> Kind | None:
        kind = agreed_kind([before.kind, after.kind])
        return kind if before.weak or kind == before.kind else None
