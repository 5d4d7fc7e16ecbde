"""`cond` and `switch`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cyxla.errors import InvalidArgumentError, TraceError
from cyxla.numpy.control.carry import (
    Arguments,
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
from cyxla.numpy.control.lower_cond import emit_conditional
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, value_of
from cyxla.numpy.tracing.bodies import Body, TracedFunction, inline, record, record_body
from cyxla.numpy.tracing.containers import flatten
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.trace import current, require_current, user_line
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla


def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """Call one of two functions; only the chosen one runs.

    Parameters
    ----------
    pred : bool or array of rank 0
        Condition; numbers are true if they are not zero.
    true_fun, false_fun : callable
        Functions of the operands. They must return containers of the same structure, dtypes and shapes, and may also
        use traced values of the enclosing function.
    *operands
        Arguments of the functions.

    Raises
    ------
    TraceError
        The results differ in structure, dtype or shape.

    Examples
    --------
    >>> cond(True, lambda x: x + 1, lambda x: x - 1, 5)
    np.int64(6)
    """
    known = _known_selector(pred)
    if known is not None:
        return _call_eagerly(true_fun if known else false_fun, operands)
    if pred.shape != ():
        raise TraceError(f"cond: pred must be a scalar, not {pred!r}", where=user_line())
    return _trace_branches("cond", convert(value_of(pred), np.dtype(bool)), ["true_fun", "false_fun"],
                   [true_fun, false_fun], operands)  # fmt: skip


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Call one of several functions by index; only the chosen one runs.

    Parameters
    ----------
    index : int or array of rank 0
        Index of the branch, clamped to the valid range.
    branches : sequence of callable
        Functions of the operands; their results must agree as for `cond`.
    *operands
        Arguments of the functions.

    Examples
    --------
    >>> switch(7, [lambda x: x + 1, lambda x: x - 1], 5)
    np.int64(4)
    """
    if not branches:
        raise InvalidArgumentError("switch: branches must not be empty", where=user_line())
    known = _known_selector(index)
    if known is not None:
        return _call_eagerly(branches[min(max(int(known), 0), len(branches) - 1)], operands)
    if index.shape != () or index.dtype.kind not in "biu":
        raise TraceError(f"switch: index must be a scalar integer, not {index!r}", where=user_line())
    if len(branches) == 1:
        return _call_eagerly(branches[0], operands)
    op = value_of(index)
    if op.shape.dtype is ElementType.U64:  # the greatest values of u64 do not fit into s64
        op = xla.minimum(op, len(branches) - 1)
    clamped = xla.clamp(0, convert(op, np.dtype(np.int64)), len(branches) - 1)
    names = [f"branch {k}" for k in range(len(branches))]
    return _trace_branches("switch", convert(clamped, np.dtype(np.int32)), names, branches, operands)


def _known_selector(value: Any) -> Any:
    """Return the value of a condition that is known while tracing; None if it is traced."""
    value = known_value(value)
    if isinstance(value, TracedArray):
        return None
    selector = np.asarray(value)
    if selector.shape != ():
        raise TraceError(
            f"the selector of cond and switch must be a scalar, not an array of shape {selector.shape}",
            where=user_line(),
        )
    return selector[()]


def _call_eagerly(function: Callable[..., Any], operands: Sequence[Any]) -> Any:
    if current() is not None:
        return function(*operands)
    return to_numpy(function(*copy_arrays(tuple(operands))))


def _trace_branches(
    caller: str, selector: XlaOp, names: Sequence[str], functions: Sequence[Callable[..., Any]], operands: Sequence[Any]
) -> Any:
    arguments = Arguments(tuple(operands))
    patterns: list[Any] = []

    def match_first_branch(function: Callable[..., Any]) -> Callable[..., Any]:
        def traced(values: tuple[Any, ...]) -> Any:
            results = function(*values)
            if patterns:
                return match_dict_order(results, patterns[0])
            leaves, tree = flatten(results)
            patterns.append(tree.build(range(len(leaves))))
            return results

        return traced

    recorded = [
        record(
            name.replace(" ", "_"), match_first_branch(f), arguments.arrays, lambda values: [arguments.build(values)]
        )
        for name, f in zip(names, functions, strict=True)
    ]
    kinds = _result_kinds(caller, names, recorded)
    bodies, captures = _with_common_parameters(
        [convert_results(t.body, kinds) for t in recorded], [t.body for t in recorded], arguments
    )
    values = [*map(value_of, arguments.arrays), *captures]
    results = emit_conditional(bodies, require_current().capture(selector), values)
    return recorded[0].tree.build(as_arrays(results, kinds))


def _result_kinds(caller: str, names: Sequence[str], branches: Sequence[TracedFunction]) -> list[Any]:
    """Return the kinds of the results, which all branches must agree on."""
    first = branches[0]
    for name, b in zip(names, branches, strict=True):
        check_same_structure(caller, (f"{names[0]} returns", first.tree), (f"{name} returns", b.tree))
    kinds = []
    for k, path in enumerate(leaf_paths(first.tree, "the result")):
        leaves = [b.results[k] for b in branches]
        kind = agreed_kind([leaf.kind for leaf in leaves])
        if kind is None or len({leaf.shape for leaf in leaves}) > 1:
            description = " but ".join(
                dict.fromkeys(f"{array_text(v)} in {n}" for n, v in zip(names, leaves, strict=True))
            )
            raise TraceError(
                f"{caller}: {path} is {description}",
                where=user_line(),
                hint="convert one: x.astype(..), np.broadcast_to(x, ..)",
            )
        kinds.append(kind)
    return kinds


def _with_common_parameters(
    bodies: Sequence[Body], originals: Sequence[Body], arguments: Arguments
) -> tuple[list[Body], list[XlaOp]]:
    """Return bodies with the same parameters, the arguments and then the captures of all bodies; and these captures."""
    captures: list[XlaOp] = []
    positions: dict[Any, int] = {}
    for o in originals:
        for c in o.captures:
            if c.instruction not in positions:
                positions[c.instruction] = len(captures)
                captures.append(c)
    count = len(arguments.positions)
    shapes = [*[a.aval.static for a in arguments.arrays], *[c.shape for c in captures]]

    def add_all_captures(body: Body, original: Body) -> Body:
        order = [*range(count), *[count + positions[c.instruction] for c in original.captures]]
        return record_body(body.trace.builder.name, shapes, lambda *values: inline(body, [values[k] for k in order]))

    return [add_all_captures(b, o) for b, o in zip(bodies, originals, strict=True)], captures
