"""`jvp`: derivatives along a direction, as the transpose of the pullback, which is linear in the cotangent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cyxla.errors import InvalidArgumentError, ShapeError
from cyxla.numpy.gradient.api import (
    Call,
    SelectedArguments,
    compile_wrapper,
    describe,
    differentiating,
    gradient_shape,
)
from cyxla.numpy.gradient.backward import Linearised, is_inexact, or_zeros
from cyxla.numpy.gradient.custom_derivatives import forward_mode
from cyxla.numpy.gradient.table import zeros
from cyxla.numpy.tracing.arrays.run_time_sizes import fitted, flatten_arrays
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, size_leaves
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, traced, value_of
from cyxla.numpy.tracing.bodies import record
from cyxla.numpy.tracing.trace import current, require_current, user_line
from cyxla.numpy.tracing.user_program.api_boundary import api_boundary
from cyxla.types import Shape
from cyxla.xla.hlo.builder import XlaOp


@api_boundary
def jvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], *, has_aux: bool = False
) -> tuple[Any, ...]:
    """Return the result of a function, and its derivative along a direction.

    Parameters
    ----------
    fun : callable
        Function written with NumPy.
    primals : sequence
        Arguments, containers of floats or complex numbers.
    tangents : sequence
        Direction: for each argument a container of the same structure, whose arrays have the same shapes.
    has_aux : bool
        Whether `fun` returns a pair, of which only the first is differentiated.

    Returns
    -------
    out, tangent : tuple
        Result, and its derivative, a container of the same structure. With `has_aux`, the second result follows. The
        derivatives of results that are not floats or complex numbers are zeros.

    Raises
    ------
    DTypeError
        An argument is not an array of floats or complex numbers.
    InvalidArgumentError
        Arguments and directions differ in number or structure.
    ShapeError
        The shape of a direction differs from that of its argument.
    UnimplementedError
        A derivative that a result needs is not known, or is defined by `cyxla.custom_vjp` for reverse mode alone.

    Examples
    --------
    >>> import numpy as np
    >>> jvp(np.sin, (0.0,), (2.0,))
    (0.0, 2.0)
    """
    _check_structure(primals, tangents)
    if current() is not None:
        return _jvp(fun, tuple(primals), tuple(tangents), has_aux)

    def run(arguments: Any, directions: Any) -> Any:
        return _jvp(fun, arguments, directions, has_aux)

    out: tuple[Any, ...] = compile_wrapper(run, fun)(tuple(primals), tuple(tangents))
    return out


def _check_structure(primals: Sequence[Any], tangents: Sequence[Any]) -> None:
    for name, value in (("primals", primals), ("tangents", tangents)):
        if not isinstance(value, (tuple, list)):
            raise InvalidArgumentError(
                f"jvp: {name} must be a tuple or list of arguments, got {type(value).__name__}",
                where=user_line(), hint=f"pass ({name[:-1]},) for a function of one argument",
            )  # fmt: skip
    if flatten_arrays(tuple(primals))[1] != flatten_arrays(tuple(tangents))[1]:
        raise InvalidArgumentError(
            f"jvp: tangents must have the structure of the arguments, {describe(tuple(primals))}", where=user_line()
        )


def _jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool) -> tuple[Any, ...]:
    """Trace a call and the derivative along a direction inside the current trace."""
    selected = SelectedArguments(list(range(len(primals))), False)
    call = Call.of(fun, primals, {}, selected, has_aux, False, caller="jvp")
    parameters = call.linear.body.parameters
    arguments, given = (flatten_arrays(tuple(values))[0] for values in (primals, tangents))
    directions = [
        _tangent(t, parameters[n].shape, n, like) for n, (t, like) in enumerate(zip(given, arguments, strict=True))
    ]
    changes = push(call, directions)
    leaves = zip(size_leaves(call.out_tree), changes, call.results, strict=True)
    tangent = call.out_tree.build([r if is_size else traced(c, r.weak) for is_size, c, r in leaves])
    return (call.out, tangent, call.aux) if has_aux else (call.out, tangent)


def push(call: Call, directions: Sequence[XlaOp]) -> list[XlaOp]:
    """Push directions of the arguments forward to the leaves of the result; those of integers are zeros."""
    inexact = [n for n, r in enumerate(call.results) if is_inexact(value_of(r).shape)]
    recorded = [n for n, a in enumerate(call.linear.requested) if a]

    def pull(*cotangents: TracedArray) -> list[TracedArray]:
        given = dict(zip(inexact, map(value_of, cotangents), strict=True))
        pulled = call.linear.pull([given.get(n) for n in range(len(call.linear.body.results))])
        shapes = [call.linear.body.parameters[n].shape for n in recorded]
        return [traced(c) for c in or_zeros([pulled[n] for n in recorded], shapes)]

    with differentiating(), forward_mode():
        body = record("pullback", pull, [call.results[n] for n in inexact], list).body
    operands = [zeros(a.shape) for a in body.arguments] + body.captures
    active = [True] * len(inexact) + [False] * len(body.captures)
    pushed = dict(zip(inexact, Linearised(body, operands, active).pull(directions), strict=False))
    shapes = [gradient_shape(value_of(r).shape) for r in call.results]
    return or_zeros([pushed.get(n) for n in range(len(shapes))], shapes)


def _tangent(value: Any, shape: Shape, n: int, like: Any) -> XlaOp:
    array = fitted(value, like, f"jvp: tangent {n}") if isinstance(like, SizedArray) else as_traced(value)
    if array.shape != shape.dims:
        raise ShapeError(
            f"jvp: tangent {n} has shape {array.shape}, but its argument has shape {shape.dims}", where=user_line()
        )
    return require_current().capture(value_of(as_traced(array, shape.dtype.numpy_dtype)))
