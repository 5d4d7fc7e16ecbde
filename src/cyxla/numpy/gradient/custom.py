"""`custom_vjp`, `stop_gradient` and `checkpoint`: derivatives that the program has its own way with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper, wraps
from typing import Any

from cyxla.errors import FailedPreconditionError, TraceError
from cyxla.numpy.containers import Tree, flatten, map_leaves
from cyxla.numpy.gradient.backward import Linear
from cyxla.numpy.gradient.composites import attach
from cyxla.numpy.nested import Body, record, write
from cyxla.numpy.trace import Pullback, current, place, require_current
from cyxla.numpy.traced_array import TracedArray, as_traced, traced, value_of
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla


def stop_gradient(value: Any) -> Any:
    """The same value, or container of values, as if it depended on nothing."""
    if current() is None:
        return value
    return map_leaves(lambda x: traced(_stopped(value_of(x)), x.weak) if isinstance(x, TracedArray) else x, value)


def _stopped(x: XlaOp) -> XlaOp:
    return attach([], [xla.copy(x)], vjp=lambda inputs, outputs, cotangents: [])[0]


class custom_vjp:  # noqa: N801 - a decorator
    """A function with a derivative of its own.

    Examples
    --------
    >>> import numpy as np
    >>> @custom_vjp
    ... def clipped(x):
    ...     return x
    >>> clipped.defvjp(lambda x: (x, None), lambda _, g: (np.clip(g, -1, 1),))
    """

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun
        self.forward: Callable[..., Any] | None = None
        self.backward: Callable[..., Any] | None = None
        update_wrapper(self, fun)

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Give the derivative.

        Parameters
        ----------
        fwd : callable
            With the arguments of the function; returns its result and what `bwd` needs besides.
        bwd : callable
            From that and the cotangent of the result to a tuple of cotangents of the arguments; None is zero.
        """
        self.forward, self.backward = fwd, bwd

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        from functools import partial

        return self if instance is None else partial(self, instance)

    def __call__(self, *args: Any) -> Any:
        """The function; inside of what is to be differentiated, by way of `fwd`."""
        trace = current()
        if trace is None or not trace.program.gradients:
            return self.fun(*args)
        if self.forward is None or self.backward is None:
            raise FailedPreconditionError(f"{self.__name__} has no derivative yet", where=place(), hint="call defvjp")  # type: ignore[attr-defined]
        return _by_hand(self.forward, self.backward, args)


def _by_hand(fwd: Callable[..., Any], bwd: Callable[..., Any], args: Sequence[Any]) -> Any:
    leaves, tree = flatten(args)
    places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, TracedArray)]
    arrays = [leaves[k] for k in places]

    def build(given: list[Any]) -> list[Any]:
        filled = list(leaves)
        for k, g in zip(places, given, strict=True):
            filled[k] = g
        return list(tree.build(filled))

    recorded = record("forward", fwd, arrays, build)
    if recorded.tree.kind is None or len(recorded.tree.children) != 2:
        raise TraceError("the first function of a custom_vjp must return a result and what the second needs")
    out_tree, kept_tree = recorded.tree.children
    operands = [*map(value_of, arrays), *recorded.body.captures]
    made = write(recorded.body, operands)
    outs, kept = made[: out_tree.count], made[out_tree.count :]
    kept_weak = [r.weak for r in recorded.results[out_tree.count :]]
    count = len(operands)
    own = len(arrays)

    def pull(inputs: list[XlaOp], outputs: list[XlaOp], cotangents: Sequence[XlaOp | None]) -> list[XlaOp | None]:
        residuals = [traced(v, w) for v, w in zip(inputs[count:], kept_weak, strict=True)]
        given = [traced(_or_zero(c, o)) for c, o in zip(cotangents, outputs, strict=True)]
        slopes = bwd(kept_tree.build(residuals), out_tree.build(given))
        found = _matched(slopes, args, tree)
        return [*[_fitting(found[k], inputs[n]) for n, k in enumerate(places)], *[None] * (len(inputs) - own)]

    results = attach([*operands, *kept], outs, vjp=pull)
    return out_tree.build([traced(v, r.weak) for v, r in zip(results, recorded.results, strict=False)])


def _or_zero(cotangent: XlaOp | None, like: XlaOp) -> XlaOp:
    from cyxla.numpy.gradient.table import zeros

    return zeros(like.shape) if cotangent is None else cotangent


def _matched(slopes: Any, args: Sequence[Any], tree: Tree) -> list[Any]:
    """The cotangents of all leaves of the arguments, from what `bwd` returned."""
    if not isinstance(slopes, (tuple, list)) or len(slopes) != len(args):
        raise TraceError(f"the second function of a custom_vjp must return a tuple of {len(args)} cotangents")
    found: list[Any] = []
    for slope, part in zip(slopes, tree.children, strict=True):
        leaves, like = flatten(slope)
        if slope is None:
            found += [None] * part.count
        elif like == part:
            found += leaves
        else:
            raise TraceError("a cotangent that the second function of a custom_vjp returns is not like its argument")
    return found


def _fitting(slope: Any, x: XlaOp) -> XlaOp | None:
    if slope is None or not (x.shape.dtype.is_float or x.shape.dtype.is_complex):
        return None
    array = as_traced(slope)
    if array.shape != x.shape.dims:
        raise TraceError(f"a cotangent of sizes {array.shape} was returned for an argument of sizes {x.shape.dims}")
    return value_of(as_traced(array, x.shape.dtype.numpy_dtype))


def checkpoint(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The function, computed once more on the way back instead of being kept in memory."""

    @wraps(fun)
    def run(*args: Any, **kwargs: Any) -> Any:
        trace = current()
        if trace is None or not trace.program.gradients:
            return fun(*args, **kwargs)
        leaves, tree = flatten((args, kwargs))
        places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, TracedArray)]
        arrays = [leaves[k] for k in places]

        def build(given: list[Any]) -> list[Any]:
            filled = list(leaves)
            for k, g in zip(places, given, strict=True):
                filled[k] = g
            return list(tree.build(filled))

        recorded = record("checkpoint", lambda a, k: fun(*a, **k), arrays, build)
        made = _recomputed(recorded.body, [*map(value_of, arrays), *recorded.body.captures])
        return recorded.tree.build([traced(v, r.weak) for v, r in zip(made, recorded.results, strict=True)])

    return run


def _recomputed(body: Body, operands: Sequence[XlaOp]) -> list[XlaOp]:
    """A body, whose way back begins with the body itself."""

    def again(inputs: list[XlaOp], active: list[bool]) -> tuple[list[XlaOp], Pullback]:
        def pull(cotangents: Sequence[XlaOp | None]) -> Sequence[XlaOp | None]:
            return Linear(body, _held(inputs), active).pull(cotangents)

        return _recomputed(body, inputs), pull

    return attach(operands, write(body, operands), again=again)


def _held(values: Sequence[XlaOp]) -> list[XlaOp]:
    """The values behind a barrier, so that nothing computed from them is what was computed before."""
    trace = require_current()
    bundle = xla.opt_barrier(xla.tuple_(trace.builder, [trace.inner(v) for v in values]))
    return [xla.get_tuple_element(bundle, k) for k in range(len(values))]
