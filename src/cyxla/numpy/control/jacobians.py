"""`jacobian` and `hessian`: loops that pull unit vectors of results back, or push those of arguments forward."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from cyxla.errors import TraceError, UnimplementedError
from cyxla.numpy.control.maps import map as map_slices
from cyxla.numpy.gradient.api import (
    Argnums,
    Call,
    Differentiated,
    SelectedArguments,
    describe,
    grad,
    name_of,
    with_signature_of,
)
from cyxla.numpy.gradient.custom_derivatives import ReverseModeOnlyError
from cyxla.numpy.gradient.forward import push
from cyxla.numpy.gradient.table import zeros
from cyxla.numpy.tracing.arrays.run_time_sizes import elements_of, flatten_arrays, map_arrays, of_sizes, sizes_of
from cyxla.numpy.tracing.arrays.sized_array import SizedArray
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, traced, value_of
from cyxla.numpy.tracing.trace import require_current, user_line
from cyxla.types import ElementType, Shape, from_numpy
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla


def jacobian(
    fun: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False, allow_int: bool = False
) -> Callable[..., Any]:
    """Return a function that computes the derivatives of all elements of a result by all elements of an argument.

    Parameters
    ----------
    fun : callable
        Function written with NumPy, whose results are floats.
    argnums : int, str or sequence of these
        Positions or names of the arguments to differentiate.
    has_aux : bool
        Whether `fun` returns a pair, of which only the first is differentiated.
    allow_int : bool
        Whether arguments may hold integers, for which the derivatives are zero.

    Returns
    -------
    callable
        Function of the same arguments. For a result of shape ``r`` and an argument of shape ``a`` it returns an array
        of shape ``r + a``. If the result is a container, each of its arrays is replaced by its derivatives; these are a
        container if the argument is one, and a tuple if `argnums` is a sequence. With `has_aux`, it returns a pair of
        that and the second result. Inside a traced function it is inlined, else it is compiled.

    Notes
    -----
    Each element of the result takes one pass in reverse mode; or each element of the arguments one in forward mode, if
    the result has more of them. The conventions are those of `cyxla.grad`.

    Examples
    --------
    >>> import numpy as np
    >>> jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    return with_signature_of(_Jacobian(fun, argnums, has_aux, allow_int), fun)


def hessian(fun: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the second derivatives of a real scalar function.

    Parameters
    ----------
    fun : callable
        Function written with NumPy.
    argnums : int, str or sequence of these
        Positions or names of the arguments to differentiate, which must hold floats.
    has_aux : bool
        Whether `fun` returns a pair, of which only the first is differentiated.

    Returns
    -------
    callable
        Function of the same arguments. For an argument of shape ``a`` it returns an array of shape ``a + a``; for
        containers and several arguments, containers of containers, as of `jacobian` of `grad`. With `has_aux`, it
        returns a pair of that and the second result.

    Examples
    --------
    >>> import numpy as np
    >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([3.0, 5.0]))
    array([[10.,  6.],
           [ 6.,  0.]])
    """
    gradient = grad(fun, argnums, has_aux=has_aux)
    return with_signature_of(_Jacobian(gradient, argnums, has_aux, False, "hessian", fun), fun)


class _Jacobian(Differentiated):
    """Function that returns the derivatives of all elements of the results of another one."""

    def __init__(
        self, fun: Callable[..., Any], argnums: Argnums, has_aux: bool, allow_int: bool, caller: str = "jacobian",
        of: Callable[..., Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(fun, argnums, has_aux, allow_int, caller)
        self.of = of or fun  # the user's function

    def derive(self, call: Call, selected: SelectedArguments) -> Any:
        """Return the Jacobian of a traced call."""
        results, tree = flatten_arrays(call.out)
        if any(isinstance(r, SizedArray) and r.ndim > 1 for r in results):
            raise UnimplementedError(
                f"{self.caller}: the size of the result of {name_of(self.of)} is only known when it runs",
                where=user_line(), hint="use vjp, np.where instead of a selection by a mask, or one row after another",
            )  # fmt: skip
        for result in results:
            if result.dtype.kind not in "fV":
                self._refuse(call, result)
        jacobian_ = tree.build(self._derivatives(call, selected, results))
        return (jacobian_, call.aux) if self.has_aux else jacobian_

    def _derivatives(self, call: Call, selected: SelectedArguments, arrays: list[Any]) -> list[Any]:
        """Return the derivatives of each array of the results, by the mode that takes fewer passes."""
        if any(isinstance(x, SizedArray) for x in [*arrays, *call.chosen_leaves()]):
            sizes = [len(sizes_of(r)) for r in arrays]  # which follow the elements among the results
            return [self._rows(call, n + sum(sizes[:n]), r, selected) for n, r in enumerate(arrays)]
        arguments = [p.shape for p, a in zip(call.linear.body.parameters, call.linear.requested, strict=True) if a]
        results = sum(prod(r.shape) for r in call.results)
        if sum(prod(s.dims) for s in arguments) < results and not any(s.dtype.is_complex for s in arguments):
            try:
                return self._columns(call, selected)
            except ReverseModeOnlyError:  # of a custom derivative
                pass
        return [self._rows(call, n, r, selected) for n, r in enumerate(call.results)]

    def _refuse(self, call: Call, result: TracedArray) -> None:
        if self.caller == "hessian":
            raise TraceError(f"hessian: the arguments of {name_of(self.of)} must be real", where=user_line())
        raise TraceError(
            f"jacobian: {name_of(self.of)} must return floats, but returns {describe(call.out)} with {result.dtype}",
            where=user_line(), hint="return the real and imaginary parts" if result.dtype.kind == "c" else "",
        )  # fmt: skip

    def _rows(self, call: Call, n: int, result: Any, selected: SelectedArguments) -> Any:
        """Return the derivatives of an array of the results by the arguments; `n` is the position of its elements."""
        shape = value_of(call.results[n]).shape
        size = prod(shape.dims)

        def pull(number: TracedArray) -> list[Any]:
            unit: list[XlaOp | None] = [None] * len(call.results)
            unit[n] = _unit_vector(value_of(number), shape)
            gradients = call.pull(unit)
            return [gradients[key] for key in selected.keys]

        if isinstance(result, SizedArray):  # a vector, whose rows need no other shape
            rows = map_slices(pull, SizedArray(traced(_numbers(size)), result.counts))
        elif size == 1:
            parts = pull(traced(require_current().constant(0, np.dtype(np.int64))))
            rows = map_arrays(lambda g: _with_dims(g, 0, shape.dims), parts)
        else:
            rows = map_arrays(lambda g: _with_dims(g, 1, shape.dims), map_slices(pull, traced(_numbers(size))))
        return rows[0] if selected.single else tuple(rows)

    def _columns(self, call: Call, selected: SelectedArguments) -> list[Any]:
        """Return the derivatives of all arrays of the results, by a pass for each element of the arguments."""
        columns = [_columns_of(call, n) for n in range(len(call.linear.body.parameters))]
        derivatives = []
        for result in range(len(call.results)):
            parts = call.as_arguments([by_result[result] for by_result in columns])
            derivatives.append(tuple([parts[key] for key in selected.keys]))
        return [parts[0] for parts in derivatives] if selected.single else derivatives


def _with_dims(array: Any, count: int, dims: tuple[int, ...]) -> Any:
    """Return an array with dimensions of known size in place of some first ones."""
    data, sizes = elements_of(array), sizes_of(array)
    reshaped: Any = np.reshape(data, dims + data.shape[count:])
    return of_sizes(reshaped, {d + len(dims) - count: n for d, n in sizes.items()})


def _columns_of(call: Call, n: int) -> list[Any]:
    """Return the derivatives of each array of the results by one array of the arguments."""
    shape, requested = call.linear.body.parameters[n].shape, call.linear.requested
    if not requested[n] or not shape.size:
        dtypes = [r.dtype if requested[n] else np.dtype(float) for r in call.results]
        shapes = [Shape.array(from_numpy(d), r.shape + shape.dims) for d, r in zip(dtypes, call.results, strict=True)]
        return [traced(zeros(s)) for s in shapes]

    def along(number: TracedArray) -> list[TracedArray]:
        directions = [
            _unit_vector(value_of(number), p.shape) if k == n else zeros(p.shape)
            for k, p in enumerate(call.linear.body.parameters)
            if requested[k]
        ]
        return [traced(change) for change in push(call, directions)]

    changes = map_slices(along, traced(_numbers(shape.size)))
    return [np.reshape(np.moveaxis(c, 0, -1), r.shape + shape.dims) for c, r in zip(changes, call.results, strict=True)]


def _numbers(count: int) -> XlaOp:
    return xla.iota(require_current().builder, Shape.array(ElementType.S64, (count,)), 0)


def _unit_vector(number: XlaOp, shape: Shape) -> XlaOp:
    """Return an array whose only element that is not zero is a one at a position in row-major order."""
    dtype = shape.dtype.numpy_dtype
    one = require_current().constant(1, dtype)
    if not shape.dims:
        return one
    here = xla.eq(_numbers(prod(shape.dims)), xla.broadcast(require_current().capture(number), (prod(shape.dims),)))
    return xla.reshape(xla.convert(here, shape.dtype), shape.dims)
