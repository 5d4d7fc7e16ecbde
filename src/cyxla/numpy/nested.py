"""Functions that are called inside a traced function: bodies of loops, branches, and what is differentiated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cyxla.numpy.containers import Tree, flatten
from cyxla.numpy.trace import Trace, require_current, tracing
from cyxla.numpy.traced_array import TracedArray, as_traced, value_of
from cyxla.types import Shape
from cyxla.xla.hlo.builder import XlaComputation, XlaOp
from cyxla.xla.hlo.builder import functions as xla


@dataclass(frozen=True)
class Closed:
    """A function as a computation of the arrays it was given and of those it captured.

    Attributes
    ----------
    computation : XlaComputation
        Takes a tuple: the arguments, then the captures. Returns a tuple: the results, then the failure if there is one.
    captures : list of XlaOp
        Values of the trace that the function was traced in.
    tree : Tree
        The container that the function returned.
    results : list of Shape
        Of its leaves.
    weak : list of (type or None)
        Which of them are Python's numbers.
    fails : bool
        Whether the last element of the result is a failure, s64[2].
    """

    computation: XlaComputation
    captures: list[XlaOp]
    tree: Tree
    results: list[Shape]
    weak: list[type | None]
    fails: bool


def trace_inner(
    name: str, function: Callable[..., Any], arguments: Sequence[TracedArray], build: Callable[[list[Any]], Any]
) -> tuple[Trace, list[TracedArray], Tree]:
    """Run a function in a trace of its own inside the current one.

    Parameters
    ----------
    name : str
        Of the computation.
    function : callable
        What to trace.
    arguments : sequence of TracedArray
        What the arguments look like; parameters of the new trace stand for them.
    build : callable
        From those parameters to the arguments of `function`, as a list.

    Returns
    -------
    trace, results, tree
        The trace, not built yet; the leaves of what the function returned, and how they hang together.
    """
    inner = Trace(name, require_current())
    with tracing(inner):
        given = [TracedArray(inner.parameter(a.aval.static), a.weak) for a in arguments]
        leaves, tree = flatten(function(*build(given)))
        results = [as_traced(leaf) for leaf in leaves]
        for r in results:
            value_of(r)  # what is returned as it came from outside is captured, too
    return inner, results, tree


def close(trace: Trace, results: Sequence[XlaOp], count: int) -> tuple[XlaComputation, bool]:
    """Finish a trace as a computation of one tuple; see `Closed`.

    Parameters
    ----------
    trace : Trace
        The trace.
    results : sequence of XlaOp
        Values of it.
    count : int
        How many of its parameters are arguments; the others are captures.
    """
    failure = trace.failure()
    root = xla.tuple_(trace.builder, [*results, *([failure] if failure is not None else [])])
    flat = trace.build(root)
    return on_tuple(flat), failure is not None


def on_tuple(flat: XlaComputation) -> XlaComputation:
    """A computation of several parameters as one of a tuple."""
    from cyxla.xla.hlo.builder import XlaBuilder

    builder = XlaBuilder(f"{flat.name}_of_tuple")
    state = xla.parameter(builder, 0, Shape.tuple(flat.program_shape.parameters))
    parts = [xla.get_tuple_element(state, k) for k in range(len(flat.program_shape.parameters))]
    return builder.build(xla.call(builder, flat, parts))


def close_function(
    name: str, function: Callable[..., Any], arguments: Sequence[TracedArray], build: Callable[[list[Any]], Any]
) -> Closed:
    """Trace a function and finish it; see `trace_inner`."""
    trace, results, tree = trace_inner(name, function, arguments, build)
    with tracing(trace):
        values = [value_of(r) for r in results]
    computation, fails = close(trace, values, len(arguments))
    captures = [outer for outer, _ in trace.captures]
    return Closed(computation, captures, tree, [v.shape for v in values], [r.weak for r in results], fails)
