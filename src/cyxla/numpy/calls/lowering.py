"""From a function and what is known of its arguments to a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cyxla.errors import DTypeError, OpError, TraceError
from cyxla.numpy.calls.argument_adapters import STATIC_TYPES, Adapter
from cyxla.numpy.tracing.containers import Tree, flatten, paths
from cyxla.numpy.tracing.memory_layout import dense
from cyxla.numpy.tracing.promotion import Dtype, Kind, dtype_of
from cyxla.numpy.tracing.result_layout import AS_MADE, Layout, inverse, layout_of
from cyxla.numpy.tracing.trace import Program, Trace, tracing
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced, value_of
from cyxla.numpy.tracing.zero_dim import Rank0
from cyxla.types import Shape, from_numpy
from cyxla.xla.hlo import HloModule
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla

BOUNDS = ("raise", "clamp", "unchecked")


@dataclass(frozen=True)
class Spec:
    """What is known of an argument while tracing.

    Attributes
    ----------
    shape : tuple of int
        Sizes.
    kind : dtype or type
        Element type, or the class of a Python number.
    adapter : Adapter, optional
        Makes the array of the argument, which is none.
    rank0 : Rank0
        The kind of an argument without dimensions.
    axes : tuple of int, optional
        The order in which the dimensions lie in memory, outermost first; None for row-major order.
    """

    shape: tuple[int, ...]
    kind: Kind
    adapter: Adapter | None = None
    rank0: Rank0 = Rank0.ARRAY
    axes: tuple[int, ...] | None = None

    @property
    def dtype(self) -> Dtype:
        """Element type."""
        return dtype_of(self.kind)

    @property
    def aval(self) -> Shape:
        """In HLO's terms, with the dimensions in the order in which they lie."""
        sizes = self.shape if self.axes is None else tuple([self.shape[d] for d in self.axes])
        return Shape.array(from_numpy(self.dtype), sizes)

    def __str__(self) -> str:
        if isinstance(self.kind, type):
            return self.kind.__name__
        if self.rank0 is not Rank0.ARRAY:
            return str(self.kind)
        order = "" if self.axes is None else f" order {','.join(map(str, self.axes))}"
        return f"{self.kind}[{','.join(map(str, self.shape))}]{order}"


@dataclass(frozen=True)
class Lowered:
    """A traced function.

    Attributes
    ----------
    module : HloModule
        Takes the arrays and numbers among the arguments. It returns the array of the result if it is one and nothing
        can go wrong, else a tuple: the arrays of the result, then the failure if any.
    program : Program
        What a run checks.
    tree : Tree
        The container that the function returns, with what is in it beside arrays.
    fails : bool
        Whether the last result is a failure.
    rank0 : tuple of Rank0
        What each array of the result is if it has no dimensions.
    input_axes : tuple of (tuple of int or None)
        The order in which the dimensions of each argument become those of its parameter; None for their own.
    layouts : tuple of (tuple of int or None, bool)
        The order in which the dimensions of each array of the module's result become those of the function's, and
        whether NumPy would let one write to it.
    """

    module: HloModule
    program: Program
    tree: Tree
    fails: bool
    rank0: tuple[Rank0, ...]
    input_axes: tuple[tuple[int, ...] | None, ...] = ()
    layouts: tuple[Layout, ...] = ()

    @property
    def is_array(self) -> bool:
        """Whether the module returns an array."""
        return self.tree.kind is None and not self.fails

    def error(self, code: int, number: int) -> Exception:
        """The error of a run that failed."""
        site = self.program.sites[code - 1]
        error = site.make(number)
        if isinstance(error, OpError):
            error.where = error.where or site.place
        elif site.place:
            error.add_note(f"  at:   {site.place}")
        return error

    def __str__(self) -> str:
        return self.module.to_text()


def lower(
    name: str,
    call: Callable[[Sequence[Any]], Any],
    leaves: Sequence[Any],
    names: Sequence[str],
    bounds: str = "raise",
    *,
    keep_order: bool = False,
) -> Lowered:
    """Trace a function.

    Parameters
    ----------
    name : str
        Of the program.
    call : callable
        Calls the function with the leaves of its arguments.
    leaves : sequence
        A `Spec` for each array or number among the arguments; anything else is handed on as it is.
    names : sequence of str
        What to call the leaves in errors.
    bounds : str
        What indices out of range do.
    keep_order : bool
        Whether arguments and results are passed in the order in which they lie in memory; else in row-major order.
    """
    if not keep_order:
        leaves = [replace(leaf, axes=None) if isinstance(leaf, Spec) else leaf for leaf in leaves]
    trace = Trace(name)
    trace.program.bounds = bounds
    with tracing(trace):
        given = [_argument(trace, leaf, where) for leaf, where in zip(leaves, names, strict=True)]
        try:
            made = call(given)
        except RecursionError:
            raise TraceError(
                f"{name} calls itself without end while it is traced",
                hint="a traced condition cannot end it: use cyxla.cond or while_loop, or mark the argument static",
            ) from None
        results, tree = flatten(made, STATIC_TYPES)
        where = paths(made, "result", STATIC_TYPES)
        arrays = [_result(r, p, name) for r, p in zip(results, where, strict=True)]
        layouts = [layout_of(a) if keep_order else AS_MADE for a in arrays]
        values = [_in_memory(value_of(a), layout) for a, layout in zip(arrays, layouts, strict=True)]
        rank0 = tuple([Rank0.PYTHON if a.weak else a.rank0 for a in arrays])
        failure = trace.failure()
        if tree.kind is None and failure is None:
            root = values[0]
        else:
            root = xla.tuple_(trace.builder, [*values, *([failure] if failure is not None else [])])
    input_axes = tuple([leaf.axes for leaf in leaves if isinstance(leaf, Spec)])
    return Lowered(trace.module(root), trace.program, tree, failure is not None, rank0, input_axes, tuple(layouts))


def _argument(trace: Trace, leaf: Any, name: str) -> Any:
    if not isinstance(leaf, Spec):
        return leaf
    weak = leaf.kind if isinstance(leaf.kind, type) else None
    op, memory = trace.parameter(leaf.aval, name), None
    if leaf.axes is not None:
        op, memory = xla.transpose(op, inverse(leaf.axes)), dense(leaf.shape, leaf.dtype, leaf.axes)
    made = TracedArray(op, weak, memory=memory, origin=f"argument {name}", rank0=leaf.rank0)
    return made if leaf.adapter is None else leaf.adapter.stand_in(made)


def _in_memory(op: XlaOp, layout: Layout) -> XlaOp:
    """A result as the program makes it, in the order in which it lies."""
    return op if layout[0] is None else xla.transpose(op, inverse(layout[0]))


def _result(value: Any, path: str, name: str) -> TracedArray:
    if isinstance(value, TracedArray):
        return value
    try:
        return as_traced(value)
    except (DTypeError, TypeError):
        from cyxla.numpy.indexing.masks import Picked

        if isinstance(value, Picked):
            value.__array__()  # which tells why it cannot be one
        raise TraceError(
            f"{path} of {name} is a {type(value).__name__}, which is no array",
            hint="return arrays, numbers, and containers of them",
        ) from None


def check(status: np.ndarray[Any, Any], lowered: Lowered) -> None:
    """Raise what a run found, if it found anything."""
    if code := int(status[0]):
        raise lowered.error(code, int(status[1]))
