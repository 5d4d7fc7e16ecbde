"""From a function and what is known of its arguments to a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cyxla.errors import DTypeError, OpError, TraceError
from cyxla.numpy.calls.arguments import STATIC_TYPES, Adapter
from cyxla.numpy.calls.containers import Tree, flatten, paths
from cyxla.numpy.promotion import Dtype, Kind, dtype_of
from cyxla.numpy.tracing.trace import Program, Trace, tracing
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced, value_of
from cyxla.numpy.tracing.zero_dim import Rank0
from cyxla.types import Shape, from_numpy
from cyxla.xla.hlo import HloModule
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
    """

    shape: tuple[int, ...]
    kind: Kind
    adapter: Adapter | None = None
    rank0: Rank0 = Rank0.ARRAY

    @property
    def dtype(self) -> Dtype:
        """Element type."""
        return dtype_of(self.kind)

    @property
    def aval(self) -> Shape:
        """In HLO's terms."""
        return Shape.array(from_numpy(self.dtype), self.shape)

    def __str__(self) -> str:
        if isinstance(self.kind, type):
            return self.kind.__name__
        if self.rank0 is not Rank0.ARRAY:
            return str(self.kind)
        return f"{self.kind}[{','.join(map(str, self.shape))}]"


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
    """

    module: HloModule
    program: Program
    tree: Tree
    fails: bool
    rank0: tuple[Rank0, ...]

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
    """
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
        values = [value_of(a) for a in arrays]
        rank0 = tuple([Rank0.PYTHON if a.weak else a.rank0 for a in arrays])
        failure = trace.failure()
        if tree.kind is None and failure is None:
            root = values[0]
        else:
            root = xla.tuple_(trace.builder, [*values, *([failure] if failure is not None else [])])
    return Lowered(trace.module(root), trace.program, tree, failure is not None, rank0)


def _argument(trace: Trace, leaf: Any, name: str) -> Any:
    if not isinstance(leaf, Spec):
        return leaf
    weak = leaf.kind if isinstance(leaf.kind, type) else None
    made = TracedArray(trace.parameter(leaf.aval, name), weak, origin=f"argument {name}", rank0=leaf.rank0)
    return made if leaf.adapter is None else leaf.adapter.stand_in(made)


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
