"""`vmap`: functions of one element, mapped over an axis of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from operator import index
from typing import Any, NamedTuple

import numpy as np

from cyxla.errors import DTypeError, InvalidArgumentError, TraceError
from cyxla.numpy.control.batched_bodies import BatchedBody
from cyxla.numpy.control.lengths import Length
from cyxla.numpy.control.mapped_axes import (
    Axis,
    axes_of_leaves,
    check_axes,
    check_leaf,
    common_size,
    normalised,
)
from cyxla.numpy.control.padding import Padding
from cyxla.numpy.gradient.api import compile_wrapper, name_of, with_signature_of
from cyxla.numpy.indexing.masks import MaskedElements
from cyxla.numpy.tracing.arrays.run_time_sizes import (
    array_paths,
    elements_of,
    flatten_arrays,
    inserted,
    of_sizes,
    removed,
    resized,
    sizes_of,
)
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, size_array
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, value_of
from cyxla.numpy.tracing.bodies import Body, instruction_of, reachable
from cyxla.numpy.tracing.containers import Tree, flatten
from cyxla.numpy.tracing.hooks import hooks
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.tracing.trace import Trace, current, require_current, tracing, user_line
from cyxla.numpy.tracing.user_program.doubts import leave
from cyxla.records import dataclass
from cyxla.xla.batching import Batcher, Value
from cyxla.xla.batching.batcher import source_line
from cyxla.xla.batching.folding import move_from_front, move_to_front
from cyxla.xla.hlo.builder import XlaOp

_REFUSED_WRITE = (
    "a mapped function writes to {}, which all of its calls share",
    "map over an axis of it, or return what is to be written",
)


def vmap(
    fun: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, axis_size: int | None = None
) -> Callable[..., Any]:
    """Return a function that maps another one over an axis of its arguments, and stacks the results.

    Parameters
    ----------
    fun : callable
        Function of one element, written with NumPy.
    in_axes : int, None, or sequence of these
        Axis of each argument by position to map over; None for an argument that all calls share. An entry may be a
        container like the argument, with an entry for each of its parts. One integer holds for all arguments. Axes may
        be negative. Arguments by keyword are mapped over axis 0.
    out_axes : int, None, or container of these
        Axis of the results along which those of the elements are stacked; None for a result that does not depend on the
        element.
    axis_size : int, optional
        Number of elements, if no argument tells it.

    Returns
    -------
    callable
        Function of the same arguments, whose arrays have one more axis. All elements are computed at once: a loop over
        them is only made where the function calls one that has no form for several. Inside a traced function it is
        inlined, else it is compiled.

    Raises
    ------
    ShapeError
        Arguments differ in the number of elements, or have no such axis.
    InvalidArgumentError
        `in_axes` or `out_axes` do not have the structure of arguments or result, or nothing is mapped over.
    DTypeError
        An axis is not an integer or None, or an argument to map over is not an array.
    TraceError
        The function cannot be traced, or a result differs in size between elements.
    UnimplementedError
        An operation has no batching rule.

    See Also
    --------
    cyxla.map : One call after another.

    Notes
    -----
    The number of elements may be known at run time only, as that of ``x[x > 0]``: so is then the size of the results.

    A function that writes to an argument that it is mapped over changes the array of the caller; it must not write to
    one that all calls share.

    Examples
    --------
    >>> import numpy as np
    >>> a = np.arange(6.0).reshape(2, 3)
    >>> vmap(np.dot)(a, a)
    array([ 5., 50.])
    >>> vmap(np.dot, in_axes=(None, 1))(np.array([1.0, 10.0]), a)
    array([30., 41., 52.])
    """
    if not callable(fun):
        raise DTypeError(f"vmap takes a function, got {type(fun).__name__}", where=user_line())
    mapped = _Mapped(fun, _in_axes(in_axes), check_axes("out_axes", out_axes), _size(axis_size))
    wrapper = with_signature_of(mapped, fun)
    wrapper.__signature__ = signature(mapped)  # type: ignore[attr-defined]  # defaults of `fun` are not mapped over
    return wrapper


def _in_axes(axes: Any) -> Any:
    checked = check_axes("in_axes", axes)
    if checked is not None and not isinstance(checked, (int, tuple, list)):
        raise DTypeError(
            f"vmap: in_axes is a {type(axes).__name__}", where=user_line(),
            hint="give an integer, or a tuple with an entry for each argument by position",
        )  # fmt: skip
    return tuple(checked) if isinstance(checked, list) else checked


def _size(axis_size: Any) -> int | None:
    if axis_size is None:
        return None
    try:
        size = index(axis_size)
    except TypeError:
        raise DTypeError(f"vmap: axis_size is {axis_size!r}, not an integer", where=user_line()) from None
    if size < 0:
        raise InvalidArgumentError(f"vmap: axis_size must not be negative, but is {size}", where=user_line())
    return size


class _Mapped:
    """Function that maps another one over an axis of its arguments."""

    def __init__(self, fun: Callable[..., Any], in_axes: Any, out_axes: Any, axis_size: int | None) -> None:
        self.fun, self.in_axes, self.out_axes, self.axis_size = fun, in_axes, out_axes, axis_size
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function for all elements."""
        if current() is not None:
            return self._traced(*args, **kwargs)
        if hooks.is_disabled():
            arguments = _Arguments.of(args, kwargs, self.in_axes, self.axis_size)
            if arguments.size:
                return self._run_plainly(arguments)
        if self._compiled is None:
            self._compiled = compile_wrapper(self._traced, self.fun)
        return self._compiled(*args, **kwargs)

    def _traced(self, *args: Any, **kwargs: Any) -> Any:
        arguments = _Arguments.of(args, kwargs, self.in_axes, self.axis_size)
        element = _Element.record(self.fun, arguments)
        padding = Padding(arguments.length)
        run = BatchedBody(
            element.body, [*arguments.values(padding), *padding.captures(element.body)], arguments.size,
            mask=padding.mask,
        )  # fmt: skip
        results = run.results()
        count = len(element.results)
        element.write(arguments, results[count : count + len(element.written)])
        sizes = element.sizes(results[count + len(element.written) :])
        axes = axes_of_leaves("out_axes", self.out_axes, element.tree.build(range(count)), "the result")
        stacked = [
            self._stacked(_Result(*parts), run.batcher, arguments.length.count)
            for parts in zip(element.results, results[:count], sizes, axes, element.paths, strict=True)
        ]
        return element.tree.build(stacked)

    def _stacked(self, result: _Result, batcher: Batcher, count: Any) -> Any:
        """Return a result of all elements."""
        array, value, sizes, axis, path = result
        if axis is not None:
            axis = normalised(axis, array.ndim + 1, path)
            op = move_from_front(batcher.lead(value), axis)
            return of_sizes(TracedArray(op, rank0=Rank0.ARRAY), inserted(sizes, axis, count))
        if value.mapped:
            raise InvalidArgumentError(
                f"vmap: {path} of {name_of(self.fun)} differs by element, but out_axes is None for it",
                where=user_line(), hint="give an axis along which to stack it",
            )  # fmt: skip
        if sizes:
            return of_sizes(TracedArray(value.array), sizes)
        return TracedArray(value.array, array.weak, rank0=array.rank0)

    def _run_plainly(self, arguments: _Arguments) -> Any:
        """Call the function for one element after another, in Python."""
        results = [flatten(arguments.call(self.fun, arguments.slices(k))) for k in range(arguments.size)]
        tree = results[0][1]
        axes = axes_of_leaves("out_axes", self.out_axes, tree.build(range(tree.count)), "the result")
        columns = zip(*[leaves for leaves, _ in results], strict=True)
        return tree.build([c[0] if axis is None else np.stack(c, axis) for c, axis in zip(columns, axes, strict=True)])


class _Result(NamedTuple):
    """Result of an element, its values for all of them, run-time sizes by dimension, axis to stack it, and path."""

    array: Any
    value: Value
    sizes: dict[int, Any]
    axis: Axis
    path: str


@dataclass(frozen=True)
class _Arguments:
    """Arguments of a call.

    Attributes
    ----------
    count : int
        Number of arguments by position.
    names : tuple of str
        Names of the others.
    leaves : list
        Leaves of all of them.
    tree : Tree
        Structure of all of them.
    axes : list of (int or None)
        Axis of each leaf; None for one that all calls share.
    paths : list of str
        Access path of each leaf.
    length : Length
        Number of elements.
    """

    count: int
    names: tuple[str, ...]
    leaves: list[Any]
    tree: Tree
    axes: list[Axis]
    paths: list[str]
    length: Length

    @staticmethod
    def of(args: Sequence[Any], kwargs: dict[str, Any], in_axes: Any, axis_size: int | None) -> _Arguments:
        """Return the arguments of a call, after checks of axes and sizes."""
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise InvalidArgumentError(
                f"vmap: in_axes has {len(in_axes)} entries, but the function is called with {len(args)} arguments by "
                "position", where=user_line(), hint="give one entry for each, or one integer for all",
            )  # fmt: skip
        of_args = in_axes if isinstance(in_axes, tuple) else [in_axes] * len(args)
        named = [(f"argument {k}", a, axes) for k, (a, axes) in enumerate(zip(args, of_args, strict=True))]
        named += [(f"argument {name!r}", value, 0) for name, value in kwargs.items()]
        axes = [axis for path, value, entry in named for axis in axes_of_leaves("in_axes", entry, value, path)]
        leaf_paths = [leaf for path, value, _ in named for leaf in array_paths(value, path)]
        leaves, tree = flatten_arrays([*args, *kwargs.values()])
        sizes, found = [], []
        for leaf, axis, path in zip(leaves, axes, leaf_paths, strict=True):
            found.append(None if axis is None else normalised(axis, _rank(leaf, path), path))
            if found[-1] is not None:
                shapes = [leaf.shape if isinstance(leaf, SizedArray) else np.shape(leaf), np.shape(elements_of(leaf))]
                sizes.append((path, axis, *[shape[found[-1]] for shape in shapes]))
        length = common_size(sizes, axis_size)
        return _Arguments(len(args), tuple(kwargs), leaves, tree, found, leaf_paths, length)

    @property
    def size(self) -> int:
        """Number of elements, or the bound of a number that is known at run time."""
        return self.length.bound

    @property
    def mapped(self) -> dict[tuple[int, int], int]:
        """Position of the first leaf for each array and axis that is mapped over."""
        first: dict[tuple[int, int], int] = {}
        for k, (leaf, axis) in enumerate(zip(self.leaves, self.axes, strict=True)):
            if axis is not None:
                first.setdefault((id(leaf), axis), k)
        return first

    def values(self, padding: Padding) -> list[Value]:
        """Return the arrays that are mapped over, with the batch in front."""
        trace = require_current()
        found = []
        for (_, axis), k in self.mapped.items():
            array = resized(as_traced(elements_of(self.leaves[k])), axis, self.size)
            op = move_to_front(trace.capture(value_of(array)), axis)
            found.append(Value(padding.filled(op), True))
        return found

    def slices(self, number: int) -> list[Any]:
        """Return the leaves of one element, which are views."""
        return [
            leaf if axis is None else np.moveaxis(np.asarray(leaf), axis, 0)[number]
            for leaf, axis in zip(self.leaves, self.axes, strict=True)
        ]

    def with_elements(self, elements: Sequence[Any]) -> list[Any]:
        """Return the leaves with an array for one element in the place of each that is mapped over."""
        of_array = dict(zip(self.mapped, elements, strict=True))
        return [
            leaf if axis is None else of_array[id(leaf), axis]
            for leaf, axis in zip(self.leaves, self.axes, strict=True)
        ]

    def call(self, fun: Callable[..., Any], leaves: Sequence[Any]) -> Any:
        """Call a function with other leaves."""
        values = self.tree.build(leaves)
        return fun(*values[: self.count], **dict(zip(self.names, values[self.count :], strict=True)))


def _rank(leaf: Any, path: str) -> int:
    check_leaf(leaf, path)
    return int(np.ndim(elements_of(leaf)))


@dataclass(frozen=True)
class _Element:
    """Function as it is traced for one element.

    Attributes
    ----------
    body : Body
        Instructions. Its results are those of the function, then the new values of arrays that it has written, then
        the run-time sizes of results.
    tree : Tree
        Structure of the result.
    results : list of TracedArray or SizedArray
        Leaves of the result.
    paths : list of str
        Access path of each leaf.
    written : list of int
        Positions of the written arrays among the leaves of the arguments.
    """

    body: Body
    tree: Tree
    results: list[Any]
    paths: list[str]
    written: list[int]

    @staticmethod
    def record(fun: Callable[..., Any], arguments: _Arguments) -> _Element:
        """Trace a function for one element."""
        trace = Trace(name_of(fun), require_current())
        trace.refused_write = _REFUSED_WRITE
        mapped = arguments.mapped
        with tracing(trace):
            elements = [
                _element(trace, arguments.leaves[k], axis, arguments.paths[k]) for (_, axis), k in mapped.items()
            ]
            parameters = [elements_of(e).op for e in elements]
            returned = arguments.call(hooks.rewritten(fun), arguments.with_elements(elements))
            leaves, tree = flatten_arrays(returned)
            leaf_paths = array_paths(returned, "the result")
            results = [_result(leaf, path, fun) for leaf, path in zip(leaves, leaf_paths, strict=True)]
            for r in results:
                if elements_of(r).doubt is not None:
                    leave(trace, elements_of(r).doubt)
            values = [value_of(elements_of(r)) for r in results]
            written = [n for n, e in enumerate(elements) if elements_of(e).op is not parameters[n]]
            values += [value_of(elements_of(elements[n])) for n in written]
            values += [value_of(size) for r in results for size in _checked_sizes(r, parameters, fun)]
        body = Body(trace, parameters, values)
        return _Element(body, tree, results, leaf_paths, [list(mapped.values())[n] for n in written])

    def sizes(self, values: Sequence[Value]) -> list[dict[int, Any]]:
        """Return the run-time sizes of each result by dimension; all elements share them."""
        remaining = iter(values)
        return [
            {d: size_array(next(remaining).array, r.padded.shape[d]) for d in r.run_time_dims}
            if isinstance(r, SizedArray)
            else {}
            for r in self.results
        ]

    def write(self, arguments: _Arguments, values: Sequence[Value]) -> None:
        """Write new values to the arrays that the function has written elements of."""
        for k, value in zip(self.written, values, strict=True):
            array, axis, path = arguments.leaves[k], arguments.axes[k], arguments.paths[k]
            if not isinstance(array, (TracedArray, SizedArray)):
                raise TraceError(
                    f"vmap: the function writes to {path}, an array that is not traced", where=user_line(),
                    hint="map over a copy of it",
                )  # fmt: skip
            _refuse_shared(arguments, k)
            batch = Batcher(require_current().builder, arguments.size).lead(value)
            assert axis is not None
            new = move_from_front(batch, axis)
            if isinstance(array, TracedArray):
                array.overwrite(new)
            else:
                sizes = inserted(removed(array.counts, axis), axis, arguments.length.count)
                array[...] = of_sizes(TracedArray(new), sizes)


def _element(trace: Trace, leaf: Any, axis: int, path: str) -> Any:
    """Return a parameter for one element of an array."""
    shape = as_traced(elements_of(leaf)).aval.static
    dims = (*shape.dims[:axis], *shape.dims[axis + 1 :])
    return of_sizes(TracedArray(trace.parameter(shape.with_dims(dims)), origin=path), removed(sizes_of(leaf), axis))


def _refuse_shared(arguments: _Arguments, written: int) -> None:
    """Refuse a write to an array that shares memory with another argument."""
    array = elements_of(arguments.leaves[written])
    for k, leaf in enumerate(arguments.leaves):
        other = elements_of(leaf)
        if isinstance(other, TracedArray) and other.root is array.root and (
            other is not array or arguments.axes[k] != arguments.axes[written]
        ):  # fmt: skip
            raise TraceError(
                f"vmap: the function writes to {arguments.paths[written]}, which shares memory with "
                f"{arguments.paths[k]}", where=user_line(), hint="pass a copy of one of them",
            )  # fmt: skip


def _checked_sizes(array: Any, parameters: Sequence[XlaOp], fun: Callable[..., Any]) -> list[Any]:
    """Return the run-time sizes of a result, which must not depend on the element."""
    if not isinstance(array, SizedArray):
        return []
    sizes, rules = list(array.counts.values()), require_current().rules
    needed = reachable([instruction_of(value_of(n)) for n in sizes], {}, rules, ())
    if not any(instruction_of(p) in needed for p in parameters) and not any(i.has_side_effect for i in needed):
        return sizes
    plan = array.plan if isinstance(array, MaskedElements) else None
    instruction = instruction_of(value_of(array.padded) if plan is None else plan.mask)
    raise TraceError(
        f"vmap: a result of {name_of(fun)} may have another size for each element, so that they cannot be stacked",
        where=source_line(instruction),
        hint="reduce it to an array of known size, or use np.where instead of a selection by a mask",
    )


def _result(leaf: Any, path: str, fun: Callable[..., Any]) -> Any:
    try:
        return leaf if isinstance(leaf, SizedArray) else as_traced(leaf)
    except (DTypeError, TypeError):
        raise TraceError(
            f"vmap: {path} of {name_of(fun)} is a {type(leaf).__name__}, which is not an array", where=user_line(),
            hint="return arrays, numbers, and containers of them",
        ) from None  # fmt: skip
