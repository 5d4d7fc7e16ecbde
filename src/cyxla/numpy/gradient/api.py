"""`grad`, `value_and_grad` and `vjp`: gradients of functions written with NumPy."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any

import numpy as np

from cyxla.errors import DTypeError, InvalidArgumentError, ShapeError, TraceError
from cyxla.numpy.gradient.backward import Linear, or_zeros
from cyxla.numpy.tracing.api_boundary import api_boundary
from cyxla.numpy.tracing.bodies import record
from cyxla.numpy.tracing.containers import Tree, flatten, paths
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.promotion import WEAK_DTYPES
from cyxla.numpy.tracing.trace import current, place, require_current
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced, traced, value_of
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.builder import XlaOp

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
    both = _Differentiated(fun, argnums, has_aux, allow_int)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        result, slope = both(*args, **kwargs)
        return (slope, result[1]) if has_aux else slope

    return _named_like(gradient, fun)


def value_and_grad(
    fun: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False, allow_int: bool = False
) -> Callable[..., Any]:
    """Return a function that computes the result of a function and its gradient; see `grad`.

    Returns
    -------
    callable
        Function that returns a pair: the result of `fun`, and the gradient.
    """
    return _named_like(_Differentiated(fun, argnums, has_aux, allow_int), fun)


def _named_like(made: Callable[..., Any], fun: Callable[..., Any]) -> Callable[..., Any]:
    """Copy name and signature of a function; ufuncs have keywords that exclude each other."""
    made = api_boundary(made)
    return made if isinstance(fun, np.ufunc) else update_wrapper(made, fun, updated=())


class _Differentiated:
    """Function that returns value and gradient of another one."""

    def __init__(self, fun: Callable[..., Any], argnums: Argnums, has_aux: bool, allow_int: bool) -> None:
        self.fun, self.argnums, self.has_aux, self.allow_int = fun, argnums, has_aux, allow_int
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current() is None:
            if self._compiled is None:
                self._compiled = compiled(self._traced, self.fun)
            return self._compiled(*args, **kwargs)
        return self._traced(*args, **kwargs)

    def _traced(self, *args: Any, **kwargs: Any) -> Any:
        chosen = choose(self.fun, self.argnums, args, kwargs)
        call = Call.of(self.fun, args, kwargs, chosen, self.has_aux, self.allow_int)
        if len(call.results) != 1 or call.results[0].shape != () or call.results[0].dtype.kind not in "fV":
            raise TraceError(
                f"grad needs a function of one real number, but {_name(self.fun)} returns {_described(call.out)}",
                where=place(), hint="np.sum makes one number of an array; vjp takes any result",
            )  # fmt: skip
        one = require_current().constant(1, call.results[0].dtype)
        slopes = call.pull([one])
        parts = [slopes[key] for key in chosen.keys]
        value = (call.out, call.aux) if self.has_aux else call.out
        return value, parts[0] if chosen.single else tuple(parts)


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
        call = Call.of(fun, args, {}, Chosen(list(range(len(args))), False), has_aux, True)
        return (call.out, call.pullback, call.aux) if has_aux else (call.out, call.pullback)

    def run(*given: Any) -> Any:
        return Call.of(fun, given, {}, Chosen([], False), has_aux, True).value

    def back(cotangent: Any, *given: Any) -> Any:
        return vjp(fun, *given, has_aux=has_aux)[1](cotangent)

    value, way = compiled(run, fun)(*args), compiled(back, fun)
    pullback = lambda cotangent: way(cotangent, *args)  # noqa: E731
    return (value[0], pullback, value[1]) if has_aux else (value, pullback)


def compiled(function: Callable[..., Any], of: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a wrapper of a user's function for calls outside of traces."""

    def run(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    _named_like(run, of)
    run.__name__ = _name(of)
    run.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    made: Callable[..., Any] = hooks.jit(run)
    return made


@dataclass(frozen=True)
class Chosen:
    """Arguments to differentiate: their positions or keywords; `single` is True if `argnums` is not a sequence."""

    keys: list[int | str]
    single: bool


def choose(fun: Callable[..., Any], argnums: Argnums, args: Sequence[Any], kwargs: dict[str, Any]) -> Chosen:
    """Return the arguments that `argnums` selects.

    Raises
    ------
    InvalidArgumentError
        No argument has that name or position.
    """
    single = isinstance(argnums, (int, str))
    asked: Sequence[int | str] = [argnums] if isinstance(argnums, (int, str)) else list(argnums)
    return Chosen([_key(fun, a, args, kwargs) for a in asked], single)


def _key(fun: Callable[..., Any], asked: int | str, args: Sequence[Any], kwargs: dict[str, Any]) -> int | str:
    if isinstance(asked, str):
        if asked in kwargs:
            return asked
        try:
            names = list(inspect.signature(fun).parameters)
        except (TypeError, ValueError):
            names = []
        if asked in names[: len(args)]:
            return names.index(asked)
    elif -len(args) <= asked < len(args):
        return int(asked) % len(args)
    raise InvalidArgumentError(
        f"argnums: {_name(fun)} was called without argument {asked!r}", where=place(),
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
        self, linear: Linear, out_tree: Tree, results: list[TracedArray], aux: Any, arguments: dict[Any, Any],
        places: dict[Any, list[int]],
    ) -> None:  # fmt: skip
        self.linear = linear
        self.out_tree = out_tree
        self.results = results
        self.out = out_tree.build(results)
        self.aux = aux
        self._arguments = arguments
        self._places = places

    @property
    def value(self) -> Any:
        """Result of the function, with `aux` if there is one."""
        return self.out if self.aux is None else (self.out, self.aux)

    @staticmethod
    def of(
        fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], chosen: Chosen, has_aux: bool,
        allow_int: bool,
    ) -> Call:  # fmt: skip
        """Trace a call inside the current trace."""
        keyed: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
        leaves, tree = flatten(keyed)
        owners = [key for key, value in keyed.items() for _ in flatten(value)[0]]
        names = [path for key, value in keyed.items() for path in paths(value, f"argument {key}")]
        wanted = [owner in chosen.keys for owner in owners]
        arrays: dict[int, TracedArray] = {}
        for k, leaf in enumerate(leaves):
            if wanted[k] or isinstance(leaf, TracedArray):
                arrays[k] = _argument(leaf, names[k], wanted[k] and not allow_int)
        flat_aux: list[Any] = []

        def build(given: list[Any]) -> list[Any]:
            filled = list(leaves)
            for k, g in zip(arrays, given, strict=True):
                filled[k] = g
            return [tree.build(filled)]

        def run(values: dict[Any, Any]) -> Any:
            made = fun(*[values[k] for k in range(len(args))], **{k: values[k] for k in kwargs})
            if not has_aux:
                return made
            out, aux = _pair(made, fun)
            kept, aux_tree = flatten(aux)
            flat_aux[:] = [aux_tree, [None if _is_array(leaf) else leaf for leaf in kept]]
            return out, [leaf for leaf in kept if _is_array(leaf)]

        with differentiating():
            recorded = record(_name(fun), run, list(arrays.values()), build)
        operands = [value_of(a) for a in arrays.values()] + recorded.body.captures
        active = [wanted[k] and a.dtype.kind in "fcV" for k, a in arrays.items()]
        active += [False] * len(recorded.body.captures)
        linear = Linear(recorded.body, operands, active)
        made = [traced(v, r.weak) for v, r in zip(linear.results(), recorded.results, strict=True)]
        aux: Any = None
        out_tree = recorded.tree
        if has_aux:
            out_tree = recorded.tree.children[0]
            rest = iter(made[out_tree.count :])
            aux = flat_aux[0].build([next(rest) if s is None else s for s in flat_aux[1]])
            made = made[: out_tree.count]
        order = {k: n for n, k in enumerate(arrays)}
        places = {
            key: [order[k] for k, owner in enumerate(owners) if owner == key] for key in keyed if key in chosen.keys
        }
        return Call(linear, out_tree, made, aux, keyed, places)

    def pull(self, cotangents: Sequence[XlaOp | None]) -> dict[Any, Any]:
        """Pull cotangents of the leaves of `out` back to containers like the chosen arguments."""
        rest = len(self.linear.body.results) - len(self.results)
        found = self.linear.pull([*cotangents, *[None] * rest])
        shapes = [_slope_shape(p.shape) for p in self.linear.body.parameters]
        slopes = [traced(s) for s in or_zeros(found, shapes)]
        return {
            key: flatten(self._arguments[key])[1].build([slopes[n] for n in numbers])
            for key, numbers in self._places.items()
        }

    def pullback(self, cotangent: Any) -> tuple[Any, ...]:
        """Pull a cotangent, a container like `out`, back to containers like the arguments."""
        leaves, tree = flatten(cotangent)
        if tree != self.out_tree:
            raise TraceError(f"the cotangent is not a container like the result {_described(self.out)}", where=place())
        found = self.pull([_cotangent(c, r, n) for n, (c, r) in enumerate(zip(leaves, self.results, strict=True))])
        return tuple(found[k] for k in sorted(found))


def _cotangent(value: Any, result: TracedArray, n: int) -> XlaOp | None:
    if result.dtype.kind not in "fcV":
        return None
    given = as_traced(value)
    if given.shape != result.shape:
        raise ShapeError(f"cotangent {n} has sizes {given.shape}, the result {result.shape}", where=place())
    return value_of(as_traced(given, result.dtype))


def _slope_shape(shape: Shape) -> Shape:
    """Return the shape of a gradient; those with respect to integers are floats."""
    return shape if shape.dtype.is_float or shape.dtype.is_complex else shape.with_dtype(ElementType.F64)


def _argument(leaf: Any, name: str, must_be_inexact: bool) -> TracedArray:
    if not _is_array(leaf):
        raise DTypeError(f"grad: {name} is a {type(leaf).__name__}, not an array", where=place())
    array = as_traced(leaf)
    if must_be_inexact and array.dtype.kind not in "fcV":
        raise DTypeError(
            f"grad: {name} holds {array.dtype}, which has no derivative", where=place(),
            hint="convert it to a float type, or choose other arguments by argnums",
        )  # fmt: skip
    return array


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, (TracedArray, np.ndarray, np.generic)) or type(leaf) in WEAK_DTYPES


def _pair(made: Any, fun: Callable[..., Any]) -> tuple[Any, Any]:
    if not isinstance(made, tuple) or len(made) != 2:
        raise TraceError(f"has_aux: {_name(fun)} must return a pair", where=place())
    return made[0], made[1]


def _name(fun: Callable[..., Any]) -> str:
    return str(getattr(fun, "__name__", type(fun).__name__)).strip("<>") or "function"


def _described(value: Any) -> str:
    leaves = flatten(value)[0]
    if value is None or (len(leaves) == 1 and leaves[0] is value):
        return repr(value)
    return f"a {type(value).__name__} of {len(leaves)} arrays"
