"""`custom_vjp`, `stop_gradient` and `checkpoint`: control over derivatives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, update_wrapper, wraps
from inspect import signature
from threading import local
from typing import Any

from cyxla.errors import FailedPreconditionError, TraceError, UnimplementedError
from cyxla.numpy.gradient.backward import Linearised
from cyxla.numpy.gradient.composites import attach
from cyxla.numpy.gradient.table import zeros
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, traced, value_of
from cyxla.numpy.tracing.bodies import Body, TracedFunction, inline, record
from cyxla.numpy.tracing.containers import Tree, flatten, map_leaves
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.trace import Pullback, current, require_current, user_line
from cyxla.records import dataclass
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla


def stop_gradient(value: Any) -> Any:
    """Return a value, or container of values, that counts as constant in gradients."""
    if current() is None:
        return value
    return map_leaves(lambda x: traced(_stop(value_of(x)), x.weak) if isinstance(x, TracedArray) else x, value)


def _stop(x: XlaOp) -> XlaOp:
    return attach([], [xla.copy(x)], vjp=lambda inputs, outputs, cotangents: [])[0]


class custom_vjp:  # noqa: N801 - a decorator
    """Function with a custom derivative.

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
        update_wrapper(self, fun, updated=())

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Define the derivative.

        Parameters
        ----------
        fwd : callable
            Function of the same arguments that returns the result and residuals for `bwd`.
        bwd : callable
            Function from residuals and the cotangent of the result to a tuple of cotangents of the arguments; None is
            zero.
        """
        self.forward, self.backward = fwd, bwd

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, or `fwd` if the call is being differentiated, with all arguments by position."""
        trace = current()
        if trace is None or not trace.program.gradients:
            return self.fun(*args, **kwargs)
        if self.forward is None or self.backward is None:
            name = self.__name__  # type: ignore[attr-defined]
            raise FailedPreconditionError(
                f"{name} has no derivative yet", where=user_line(), hint="define it by defvjp"
            )
        return _call_forward(self.forward, self.backward, self._by_position(args, kwargs) if kwargs else args)

    def _by_position(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Sequence[Any]:
        bound = signature(self.fun).bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            name, names = self.__name__, ", ".join(bound.kwargs)  # type: ignore[attr-defined]
            raise TraceError(f"custom_vjp: {name} must take all arguments by position, but {names} are keyword-only")
        return bound.args


def _arrays_in(
    container: Sequence[Any],
) -> tuple[list[TracedArray], list[int], Tree, Callable[[list[Any]], list[Any]]]:
    """Return the traced arrays in a container, their positions among its leaves, and its structure.

    The last result is a function that returns the items of the container with other arrays in those positions.
    """
    leaves, tree = flatten(container)
    positions = [k for k, leaf in enumerate(leaves) if isinstance(leaf, TracedArray)]

    def build(new_arrays: list[Any]) -> list[Any]:
        new_leaves = list(leaves)
        for k, array in zip(positions, new_arrays, strict=True):
            new_leaves[k] = array
        return list(tree.build(new_leaves))

    return [leaves[k] for k in positions], positions, tree, build


def _call_forward(fwd: Callable[..., Any], bwd: Callable[..., Any], args: Sequence[Any]) -> Any:
    arrays, positions, tree, build = _arrays_in(args)
    program = require_current().program
    program.gradients -= 1  # `fwd` may call the function itself, which this derivative covers
    try:
        recorded = record("forward", fwd, arrays, build)
    finally:
        program.gradients += 1
    if recorded.tree.kind is None or len(recorded.tree.children) != 2:
        raise TraceError("custom_vjp: fwd must return a pair, the result and the residuals for bwd")
    call = _CustomVjpCall(recorded, bwd, args, tree, positions)
    outputs = call.inline_forward([*map(value_of, arrays), *recorded.body.captures])[0]
    return recorded.tree.children[0].build([traced(v, r.weak) for v, r in zip(outputs, recorded.results, strict=False)])


@dataclass(frozen=True)
class _CustomVjpCall:
    """Call of a function with a custom derivative.

    Attributes
    ----------
    forward : Traced
        Result and residuals.
    backward : callable
        Function that computes the cotangents.
    args, tree, places
        Arguments, the structure of their container, and the positions of arrays among its leaves.
    """

    forward: TracedFunction
    backward: Callable[..., Any]
    args: Sequence[Any]
    tree: Tree
    positions: Sequence[int]

    def inline_forward(self, inputs: Sequence[XlaOp]) -> tuple[list[XlaOp], list[XlaOp]]:
        """Inline the forward function with its derivative; return the results and the residuals."""
        count = self.forward.tree.children[0].count
        outputs = inline(self.forward.body, inputs)
        return attach(inputs, outputs[:count], forward=self._forward), outputs[count:]

    def _forward(self, inputs: list[XlaOp], active: list[bool]) -> tuple[list[XlaOp], Pullback]:
        argument_count = len(self.positions)
        if any(active[argument_count:]):
            raise TraceError(
                "custom_vjp: the function uses a differentiated value that is not one of its arguments",
                where=user_line(), hint="pass it as an argument, or wrap it in cyxla.stop_gradient",
            )  # fmt: skip
        outputs, residuals = self.inline_forward(inputs)

        def pull(cotangents: Sequence[XlaOp | None]) -> list[XlaOp | None]:
            _refuse_forward_mode()
            leaf_cotangents = self._run_backward(outputs, residuals, cotangents)
            argument_cotangents = [
                _convert_cotangent(leaf_cotangents[k], inputs[n]) for n, k in enumerate(self.positions)
            ]
            return [*argument_cotangents, *[None] * (len(inputs) - argument_count)]

        return outputs, pull

    def _run_backward(
        self, outputs: Sequence[XlaOp], saved: Sequence[XlaOp], cotangents: Sequence[XlaOp | None]
    ) -> list[Any]:
        """Return the cotangents of all leaves of the arguments."""
        out_tree, residual_tree = self.forward.tree.children
        weak = [r.weak for r in self.forward.results[out_tree.count :]]
        residuals = residual_tree.build([traced(_capture(v), w) for v, w in zip(saved, weak, strict=True)])
        out_cotangents = out_tree.build([traced(_or_zero(c, o)) for c, o in zip(cotangents, outputs, strict=True)])
        return _match_leaves(self.backward(residuals, out_cotangents), self.args, self.tree)


class ReverseModeOnlyError(UnimplementedError):
    """A derivative along a direction needs one that `custom_vjp` defines for reverse mode."""


class _State(local):
    forward_mode = 0  # nesting of `forward_mode` on this thread


_STATE = _State()


@contextmanager
def forward_mode() -> Iterator[None]:
    """Refuse custom pullbacks, which need not be linear in the cotangent, within a context."""
    _STATE.forward_mode += 1
    try:
        yield
    finally:
        _STATE.forward_mode -= 1


def _refuse_forward_mode() -> None:
    if _STATE.forward_mode:
        raise ReverseModeOnlyError(
            "jvp: the function has a derivative by custom_vjp, which is for reverse mode alone",
            where=user_line(), hint="use vjp, or cyxla.jacobian",
        )  # fmt: skip


def _capture(x: XlaOp) -> XlaOp:
    return require_current().capture(x)


def _or_zero(cotangent: XlaOp | None, like: XlaOp) -> XlaOp:
    return zeros(like.shape) if cotangent is None else cotangent


def _match_leaves(leaf_cotangents: Any, args: Sequence[Any], tree: Tree) -> list[Any]:
    """Match the result of `bwd` with the leaves of the arguments."""
    if not isinstance(leaf_cotangents, (tuple, list)) or len(leaf_cotangents) != len(args):
        raise TraceError(f"custom_vjp: bwd must return a tuple of {len(args)} cotangents")
    matched: list[Any] = []
    for cotangent, part in zip(leaf_cotangents, tree.children, strict=True):
        leaves, like = flatten(cotangent)
        if cotangent is None:
            matched += [None] * part.count
        elif like == part:
            matched += leaves
        else:
            raise TraceError("custom_vjp: each cotangent that bwd returns must have the structure of its argument")
    return matched


def _convert_cotangent(cotangent: Any, x: XlaOp) -> XlaOp | None:
    if cotangent is None or not (x.shape.dtype.is_float or x.shape.dtype.is_complex):
        return None
    array = as_traced(cotangent)
    if array.shape != x.shape.dims:
        raise TraceError(
            f"custom_vjp: bwd returned a cotangent of shape {array.shape} for an argument of shape {x.shape.dims}"
        )
    return value_of(as_traced(array, x.shape.dtype.numpy_dtype))


def checkpoint(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is recomputed in the reverse pass instead of saving its residuals."""

    @wraps(fun, updated=())
    def run(*args: Any, **kwargs: Any) -> Any:
        trace = current()
        if trace is None or not trace.program.gradients:
            return fun(*args, **kwargs)
        arrays, _, _, build = _arrays_in((args, kwargs))
        recorded = record("checkpoint", lambda a, k: hooks.rewritten(fun)(*a, **k), arrays, build)
        outputs = _inline_recomputing(recorded.body, [*map(value_of, arrays), *recorded.body.captures])
        return recorded.tree.build([traced(v, r.weak) for v, r in zip(outputs, recorded.results, strict=True)])

    return run


def _inline_recomputing(body: Body, operands: Sequence[XlaOp]) -> list[XlaOp]:
    """Inline a body whose pullback recomputes it."""

    def forward(inputs: list[XlaOp], active: list[bool]) -> tuple[list[XlaOp], Pullback]:
        def pull(cotangents: Sequence[XlaOp | None]) -> Sequence[XlaOp | None]:
            return Linearised(body, _apply_barrier(inputs), active).pull(cotangents)

        return _inline_recomputing(body, inputs), pull

    return attach(operands, inline(body, operands), forward=forward)


def _apply_barrier(values: Sequence[XlaOp]) -> list[XlaOp]:
    """Put values behind an optimisation barrier, so that computations from them are not merged with earlier ones."""
    trace = require_current()
    bundle = xla.opt_barrier(xla.tuple_(trace.builder, [trace.capture(v) for v in values]))
    return [xla.get_tuple_element(bundle, k) for k in range(len(values))]
