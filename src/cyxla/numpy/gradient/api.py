"""`grad`, `value_and_grad` and `vjp`: gradients of functions written with NumPy."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import update_wrapper
from typing import Any

import numpy as np

from cyxla.errors import DTypeError, InvalidArgumentError, ShapeError, TraceError
from cyxla.numpy.gradient.backward import Linearised, or_zeros
from cyxla.numpy.tracing.arrays.run_time_sizes import array_paths, elements_of, fitted, flatten_arrays
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, filled
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, traced, value_of
from cyxla.numpy.tracing.bodies import record
from cyxla.numpy.tracing.containers import Tree, flatten
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.results.promotion import WEAK_DTYPES
from cyxla.numpy.tracing.trace import current, require_current, user_line
from cyxla.numpy.tracing.user_program.api_boundary import api_boundary
from cyxla.records import dataclass
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaOp

_HINTS_FOR_INTEGERS = {"jvp": "convert it to a float dtype, or let a lambda pass it"}
Argnums = int | str | Sequence[int | str]


def grad(
    fun: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False, allow_int: bool = False
) -> Callable[..., Any]:
    """Return a function that computes the gradient of a real scalar function.

    Parameters
    ----------
    fun : callable
        Function written with NumPy.
    argnums : int, str or sequence of these
        Positions or names of the arguments to differentiate.
    has_aux : bool
        Whether `fun` returns a pair, of which only the first is differentiated.
    allow_int : bool
        Whether arguments may hold integers, whose gradient is zero.

    Returns
    -------
    callable
        Function of the same arguments. It returns the gradient with respect to the argument, a container of the same
        structure, or a tuple of gradients if `argnums` is a sequence; with `has_aux`, a pair of that and the second
        result. Inside a traced function it is inlined, else it is compiled.

    Notes
    -----
    Equal elements share the gradient of `maximum`, `minimum`, `max` and `min`. The derivative of `abs` at 0 is 0, that
    of `sqrt` is infinite. The gradient with respect to complex ``x + iy`` is ``df/dx - i df/dy``.

    Examples
    --------
    >>> import numpy as np
    >>> grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    value_and_gradient = _ValueAndGradient(fun, argnums, has_aux, allow_int)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        result, gradient_ = value_and_gradient(*args, **kwargs)
        return (gradient_, result[1]) if has_aux else gradient_

    return with_signature_of(gradient, fun)


def value_and_grad(
    fun: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False, allow_int: bool = False
) -> Callable[..., Any]:
    """Return a function that computes the result of a function and its gradient; see `grad`.

    Returns
    -------
    callable
        Function that returns a pair: the result of `fun`, and the gradient.
    """
    return with_signature_of(_ValueAndGradient(fun, argnums, has_aux, allow_int), fun)


def with_signature_of(wrapper: Callable[..., Any], fun: Callable[..., Any]) -> Callable[..., Any]:
    """Copy name and signature of a function; ufuncs have keywords that exclude each other."""
    wrapper = api_boundary(wrapper)
    return wrapper if isinstance(fun, np.ufunc) else update_wrapper(wrapper, fun, updated=())


class Differentiated(ABC):
    """Function that returns a derivative of another one; it is inlined in traces, and compiled outside of them.

    Parameters
    ----------
    fun : callable
        Function to differentiate.
    argnums : int, str or sequence of these
        Positions or names of the arguments to differentiate.
    has_aux, allow_int : bool
        See `grad`.
    caller : str
        Name of the derivative, for messages.
    """

    def __init__(
        self, fun: Callable[..., Any], argnums: Argnums, has_aux: bool, allow_int: bool, caller: str = "grad"
    ) -> None:
        self.fun, self.argnums, self.has_aux, self.allow_int, self.caller = fun, argnums, has_aux, allow_int, caller
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the derivative."""
        if current() is None:
            if self._compiled is None:
                self._compiled = compile_wrapper(self._traced, self.fun)
            return self._compiled(*args, **kwargs)
        return self._traced(*args, **kwargs)

    def _traced(self, *args: Any, **kwargs: Any) -> Any:
        selected = select_arguments(self.fun, self.argnums, args, kwargs)
        call = Call.of(self.fun, args, kwargs, selected, self.has_aux, self.allow_int, caller=self.caller)
        return self.derive(call, selected)

    @abstractmethod
    def derive(self, call: Call, selected: SelectedArguments) -> Any:
        """Return the derivative of a traced call."""


class _ValueAndGradient(Differentiated):
    """Function that returns value and gradient of another one."""

    def derive(self, call: Call, selected: SelectedArguments) -> Any:
        """Return value and gradient of a traced call."""
        if len(call.results) != 1 or call.results[0].shape != () or call.results[0].dtype.kind not in "fV":
            raise TraceError(
                f"grad: {name_of(self.fun)} must return a real scalar, but returns {describe(call.out)}",
                where=user_line(), hint="reduce the result to a scalar, such as by np.sum, or use vjp",
            )  # fmt: skip
        one = require_current().constant(1, call.results[0].dtype)
        gradients = call.pull([one])
        parts = [gradients[key] for key in selected.keys]
        value = (call.out, call.aux) if self.has_aux else call.out
        return value, parts[0] if selected.single else tuple(parts)


def vjp(fun: Callable[..., Any], *args: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return the result of a function, and its pullback.

    Parameters
    ----------
    fun : callable
        Function written with NumPy.
    *args
        Arguments; all of their inexact arrays are differentiated.
    has_aux : bool
        Whether `fun` returns a pair, of which only the first is differentiated.

    Returns
    -------
    out, pullback : tuple
        Result, and a function from a cotangent, a container like the result, to a tuple of containers like the
        arguments. With `has_aux`, the second result follows.
    """
    if current() is not None:
        call = Call.of(fun, args, {}, SelectedArguments(list(range(len(args))), False), has_aux, True)
        return (call.out, call.pullback, call.aux) if has_aux else (call.out, call.pullback)

    def run(*arguments: Any) -> Any:
        return Call.of(fun, arguments, {}, SelectedArguments([], False), has_aux, True).value

    def compute_pullback(cotangent: Any, *arguments: Any) -> Any:
        return vjp(fun, *arguments, has_aux=has_aux)[1](cotangent)

    value, compiled_pullback = compile_wrapper(run, fun)(*args), compile_wrapper(compute_pullback, fun)
    pullback = lambda cotangent: compiled_pullback(cotangent, *args)  # noqa: E731
    return (value[0], pullback, value[1]) if has_aux else (value, pullback)


def compile_wrapper(function: Callable[..., Any], wrapped: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a wrapper of a user's function for calls outside of traces."""

    def run(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    with_signature_of(run, wrapped)
    run.__name__ = name_of(wrapped)
    run.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    jitted: Callable[..., Any] = hooks.jit(run, fallback="error")  # a derivative has no plain Python
    return jitted


@dataclass(frozen=True)
class SelectedArguments:
    """Arguments to differentiate: their positions or keywords; `single` is True if `argnums` is not a sequence."""

    keys: list[int | str]
    single: bool


def select_arguments(
    fun: Callable[..., Any], argnums: Argnums, args: Sequence[Any], kwargs: dict[str, Any]
) -> SelectedArguments:
    """Return the arguments that `argnums` selects.

    Raises
    ------
    InvalidArgumentError
        No argument has that name or position.
    """
    single = isinstance(argnums, (int, str))
    requested: Sequence[int | str] = [argnums] if isinstance(argnums, (int, str)) else list(argnums)
    return SelectedArguments([_key(fun, a, args, kwargs) for a in requested], single)


def _key(fun: Callable[..., Any], requested: int | str, args: Sequence[Any], kwargs: dict[str, Any]) -> int | str:
    if isinstance(requested, str):
        if requested in kwargs:
            return requested
        try:
            names = list(inspect.signature(fun).parameters)
        except (TypeError, ValueError):
            names = []
        if requested in names[: len(args)]:
            return names.index(requested)
    elif -len(args) <= requested < len(args):
        return int(requested) % len(args)
    raise InvalidArgumentError(
        f"argnums: {name_of(fun)} was called without argument {requested!r}", where=user_line(),
        hint=f"it was given {len(args)} by position and {', '.join(kwargs) or 'none'} by name",
    )  # fmt: skip


@contextmanager
def differentiating() -> Iterator[None]:
    """Mark the program as being differentiated within a context."""
    program = require_current().program
    program.gradients += 1
    try:
        yield
    finally:
        program.gradients -= 1


class Call:
    """Call of a function, traced so that it can be differentiated.

    Attributes
    ----------
    out, aux : object
        Results of the function.
    results : list of TracedArray
        Leaves of `out`.
    """

    def __init__(
        self, linear: Linearised, out_tree: Tree, results: list[TracedArray], aux: Any, arguments: dict[Any, Any],
        leaf_indices: dict[Any, list[int]],
    ) -> None:  # fmt: skip
        self.linear = linear
        self.out_tree = out_tree
        self.results = results
        self.out = out_tree.build(results)
        self.aux = aux
        self._arguments = arguments
        self._leaf_indices = leaf_indices

    @property
    def value(self) -> Any:
        """Result of the function, with `aux` if there is one."""
        return self.out if self.aux is None else (self.out, self.aux)

    @staticmethod
    def of(
        fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], selected: SelectedArguments,
        has_aux: bool, allow_int: bool, *, caller: str = "grad",
    ) -> Call:  # fmt: skip
        """Trace a call inside the current trace; errors name `caller`."""
        named_arguments: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
        leaves, tree = flatten_arrays(named_arguments)
        owners = [key for key, value in named_arguments.items() for _ in flatten_arrays(value)[0]]
        names = [path for key, value in named_arguments.items() for path in array_paths(value, f"argument {key}")]
        differentiated = [owner in selected.keys for owner in owners]
        arrays: dict[int, TracedArray] = {}
        for k, leaf in enumerate(leaves):
            if differentiated[k] or isinstance(leaf, (TracedArray, SizedArray)):
                arrays[k] = _argument(elements_of(leaf), names[k], differentiated[k] and not allow_int, caller)
        flat_aux: list[Any] = []

        def build(arrays_: list[Any]) -> list[Any]:
            new_leaves = list(leaves)
            for k, array in zip(arrays, arrays_, strict=True):
                new_leaves[k] = _of_same_sizes(array, leaves[k])
            return [tree.build(new_leaves)]

        def run(values: dict[Any, Any]) -> Any:
            returned = hooks.rewritten(fun)(*[values[k] for k in range(len(args))], **{k: values[k] for k in kwargs})
            if not has_aux:
                return returned
            out, aux = _pair(returned, fun)
            aux_leaves, aux_tree = flatten(aux)
            flat_aux[:] = [aux_tree, [None if _is_array(leaf) else leaf for leaf in aux_leaves]]
            return out, [leaf for leaf in aux_leaves if _is_array(leaf)]

        with differentiating():
            recorded = record(name_of(fun), run, list(arrays.values()), build)
        operands = [value_of(a) for a in arrays.values()] + recorded.body.captures
        active = [differentiated[k] and a.dtype.kind in "fcV" for k, a in arrays.items()]
        active += [False] * len(recorded.body.captures)
        linear = Linearised(recorded.body, operands, active, effects=True)
        outputs = [traced(v, r.weak) for v, r in zip(linear.results(), recorded.results, strict=True)]
        aux: Any = None
        out_tree = recorded.tree
        if has_aux:
            out_tree = recorded.tree.children[0]
            remaining = iter(outputs[out_tree.count :])
            aux = flat_aux[0].build([next(remaining) if s is None else s for s in flat_aux[1]])
            outputs = outputs[: out_tree.count]
        index_of = {k: n for n, k in enumerate(arrays)}
        leaf_indices = {
            key: [index_of[k] for k, owner in enumerate(owners) if owner == key]
            for key in named_arguments
            if key in selected.keys
        }
        return Call(linear, out_tree, outputs, aux, named_arguments, leaf_indices)

    def pull(self, cotangents: Sequence[XlaOp | None]) -> dict[Any, Any]:
        """Pull cotangents of the leaves of `out` back to containers like the chosen arguments."""
        extra = len(self.linear.body.results) - len(self.results)
        cotangents_ = self.linear.pull([*cotangents, *[None] * extra])
        shapes = [gradient_shape(p.shape) for p in self.linear.body.parameters]
        return self.as_arguments([traced(s) for s in or_zeros(cotangents_, shapes)])

    def chosen_leaves(self) -> list[Any]:
        """Return the arrays of the chosen arguments."""
        return flatten_arrays([self._arguments[key] for key in self._leaf_indices])[0]

    def as_arguments(self, leaves: Sequence[Any]) -> dict[Any, Any]:
        """Return containers like the chosen arguments; `leaves` are those of all parameters of the body."""
        found = {}
        for key, indices in self._leaf_indices.items():
            own, tree = flatten_arrays(self._arguments[key])
            parts = [leaves[n] for n in indices]
            found[key] = tree.build([
                SizedArray(part, leaf.counts) if isinstance(leaf, SizedArray) else part
                for leaf, part in zip(own, parts, strict=True)
            ])  # fmt: skip
        return found

    def pullback(self, cotangent: Any) -> tuple[Any, ...]:
        """Pull a cotangent, a container like `out`, back to containers like the arguments."""
        (leaves, tree), (results, out_tree) = flatten_arrays(cotangent), flatten_arrays(self.out)
        if tree != out_tree:
            raise TraceError(
                f"the cotangent must have the structure of the result, {describe(self.out)}", where=user_line()
            )
        cotangents: list[XlaOp | None] = []
        for n, (c, r) in enumerate(zip(leaves, results, strict=True)):
            sizes = len(r.counts) if isinstance(r, SizedArray) else 0  # which have no derivatives
            cotangents += [_cotangent(c, r, n), *[None] * sizes]
        gradients = self.pull(cotangents)
        return tuple(gradients[k] for k in sorted(gradients))


def _of_same_sizes(array: TracedArray, leaf: Any) -> Any:
    """Return the elements of an argument as an array of its sizes; the padding is ones, and has no derivative."""
    if not isinstance(leaf, SizedArray):
        return array
    sized = SizedArray(array, leaf.counts)
    return SizedArray(filled(sized, 1), leaf.counts) if array.dtype.kind in "fcV" else sized


def _cotangent(value: Any, result: Any, n: int) -> XlaOp | None:
    if result.dtype.kind not in "fcV":
        return None
    if isinstance(result, SizedArray):
        return value_of(as_traced(fitted(value, result, f"cotangent {n}"), result.dtype))
    array = as_traced(value)
    if array.shape != result.shape:
        raise ShapeError(
            f"cotangent {n} has shape {array.shape}, but the result has shape {result.shape}", where=user_line()
        )
    return value_of(as_traced(array, result.dtype))


def gradient_shape(shape: Shape) -> Shape:
    """Return the shape of a gradient; those with respect to integers are floats."""
    return shape if shape.dtype.is_float or shape.dtype.is_complex else shape.with_dtype(ElementType.F64)


def _argument(leaf: Any, name: str, must_be_inexact: bool, caller: str) -> TracedArray:
    if not _is_array(leaf):
        raise DTypeError(f"{caller}: {name} is a {type(leaf).__name__}, not an array", where=user_line())
    array = as_traced(leaf)
    if must_be_inexact and array.dtype.kind not in "fcV":
        raise DTypeError(
            f"{caller}: {name} has dtype {array.dtype}, which is not differentiable", where=user_line(),
            hint=_HINTS_FOR_INTEGERS.get(caller, "convert it to a float dtype, or choose other arguments by argnums="),
        )  # fmt: skip
    return array


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, (TracedArray, np.ndarray, np.generic)) or type(leaf) in WEAK_DTYPES


def _pair(returned: Any, fun: Callable[..., Any]) -> tuple[Any, Any]:
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise TraceError(f"has_aux: {name_of(fun)} must return a pair", where=user_line())
    return returned[0], returned[1]


def name_of(fun: Callable[..., Any]) -> str:
    """Return the name of a function, for messages."""
    return str(getattr(fun, "__name__", type(fun).__name__)).strip("<>") or "function"


def describe(value: Any) -> str:
    """Return a short description of a container."""
    leaves = flatten(value)[0]
    if value is None or (len(leaves) == 1 and leaves[0] is value):
        return repr(value)
    return f"a {type(value).__name__} of {len(leaves)} arrays"
