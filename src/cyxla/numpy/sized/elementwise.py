"""Element-wise ufuncs and functions: computed of the padded elements of operands that are aligned."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from cyxla.numpy.functions.mathematics import replace_non_finite
from cyxla.numpy.sized.frames import (
    Frame,
    align,
    array_of,
    leave_if,
    padded_of,
    require_equal,
    resized,
    shape_of,
    wrapped,
)
from cyxla.numpy.sized.searching import SEARCHES
from cyxla.numpy.sized.table import call, sized
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, filled, is_sized, raise_unsupported, valid
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, value_of
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.promotion import output_error
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.tracing.trace import require_current
from cyxla.xla.hlo.builder import functions as xla

_np: Any = np  # its functions dispatch to this package
_CONTAINERS = (list, tuple)
_LISTS = ("condlist", "choicelist", "choices")  # parameters that are lists of arrays
_OUT_MESSAGE = "non-broadcastable output operand with shape ({},) doesn't match the broadcast shape ({},)"


def _is_list(value: Any, name: str) -> bool:
    """Return True if an argument is a list of operands, not an array."""
    if not isinstance(value, _CONTAINERS):
        return False
    return name in _LISTS or any(isinstance(v, (SizedArray, TracedArray, np.ndarray)) for v in value)


def _operands(value: Any, name: str = "") -> Iterator[Any]:
    """Yield the arrays of an argument: itself, or the members of a list that contains arrays."""
    if _is_list(value, name):
        for member in value:
            yield from _operands(member)
    elif value is not None and not isinstance(value, (str, type, np.dtype)):
        yield value


def _replaced(value: Any, name: str, aligned: Iterator[Any]) -> Any:
    """Return an argument with the arrays that `_operands` yields replaced by others."""
    if _is_list(value, name):
        return type(value)([_replaced(member, "", aligned) for member in value])
    if value is not None and not isinstance(value, (str, type, np.dtype)):
        return next(aligned)
    return value


def align_arguments(arguments: Mapping[str, Any], names: Sequence[str]) -> tuple[dict[str, Any], Frame]:
    """Return arguments of which some are operands that broadcast, aligned; and the run-time dimension of results."""
    chosen = [n for n in names if n in arguments]
    aligned, frame = align([x for n in chosen for x in _operands(arguments[n], n)])
    remaining = iter(aligned)
    return {**arguments, **{n: _replaced(arguments[n], n, remaining) for n in chosen}}, frame


# -- ufuncs

_CHECKED_UFUNCS = (np.power,)  # integers to negative integer powers raise


def _with_ones(value: Any) -> Any:
    """Return an operand with ones in its padding, where derivatives are finite."""
    is_inexact = isinstance(value, SizedArray) and value.dtype.kind in "fc"
    return value.like(filled(value, 1)) if is_inexact else value


def apply(ufunc: np.ufunc, inputs: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Apply an element-wise ufunc."""
    options = dict(kwargs)
    outputs = options.pop("out", None) or ()
    if len(inputs) > ufunc.nin:
        inputs, outputs = inputs[: ufunc.nin], tuple(inputs[ufunc.nin :])
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    if ufunc in _CHECKED_UFUNCS:
        inputs = list(map(_with_zeros, inputs))
    if require_current().program.gradients:
        inputs = list(map(_with_ones, inputs))
    if outputs and ufunc.nout > 1 and (len(outputs) < ufunc.nout or any(o is None for o in outputs)):
        raise_unsupported("be computed with out= for some of its results", "use the results")
    where = [options.pop("where")] if options.get("where", True) is not True else []
    aligned, frame = align([*inputs, *where, *[o for o in outputs if o is not None]])
    if where:
        options["where"] = aligned[len(inputs)]
    if not any(isinstance(o, SizedArray) for o in outputs):
        if outputs and frame.counts:
            return _write_one_element(ufunc, inputs, outputs, options, where, frame)
        if outputs:
            options["out"] = outputs
        return frame.wrap(ufunc(*aligned[: len(inputs)], **options))
    if where:  # elements that it leaves out keep their values
        options["out"] = tuple([o.copy() for o in aligned[len(inputs) + 1 :]])
    results = ufunc(*aligned[: len(inputs)], **options)
    results = results if isinstance(results, tuple) else (results,)
    casting = options.get("casting", "same_kind")
    written = [
        frame.wrap(r) if o is None else _write(frame, r, o, casting, ufunc.__name__)
        for r, o in zip(results, (*outputs, *[None] * len(results)), strict=False)
    ]
    return written[0] if len(written) == 1 else tuple(written)


def _write_one_element(
    ufunc: np.ufunc, inputs: Sequence[Any], outputs: Any, options: dict[str, Any], where: Sequence[Any], frame: Frame
) -> Any:
    """Write to arrays of known size, which is 1 where that of operands is known at run time."""
    if any(o is None for o in outputs):
        raise_unsupported("be computed with out= for some of its results", "use the results")
    if where:
        options["where"] = _of_one_element(where[0], frame.counts)
    return ufunc(*[_of_one_element(v, frame.counts) for v in inputs], out=outputs, **options)


def _of_one_element(value: Any, places: Collection[int]) -> Any:
    """Return an operand of size 1 in dimensions, counted from the last one, in which the output has that size."""
    if not isinstance(value, SizedArray):
        return value
    data, counts = value.padded, value.counts
    for d, n in value.counts.items():
        if value.ndim - d in places:
            require_equal(1, n, _OUT_MESSAGE, ValueError)
            data = resized(data, d, 1)
            del counts[d]
    return wrapped(data, counts)


def _with_zeros(value: Any) -> Any:
    """Return an array of run-time size with zeros in the padding, which pass the checks of all functions."""
    return value.like(filled(value, 0)) if isinstance(value, SizedArray) else value


def _write(frame: Frame, result: TracedArray, out: Any, casting: Any, name: str) -> Any:
    """Write a result to an array of run-time size."""
    if not isinstance(out, SizedArray) or result.ndim != out.ndim:
        raise_unsupported("be combined in place with a larger array", "use the result of the operation")
    if not np.can_cast(result.kind if isinstance(result.kind, np.dtype) else result.dtype, out.dtype, casting):
        raise output_error(name, result.dtype, out.dtype, casting)
    for d, (own, size) in enumerate(zip(out.shape, shape_of(frame.wrap(result)), strict=True)):
        if isinstance(own, TracedArray) or isinstance(size, TracedArray):
            require_equal(own, size, _OUT_MESSAGE)
            bound = out.padded.shape[d]
            if result.shape[d] == 1:  # of operands that broadcast with the array
                result = TracedArray(value_of(_np.repeat(result, bound, axis=d)))
            result = resized(result, d, bound)
    op = convert(value_of(result), out.dtype)
    out.padded.overwrite(
        xla.select(value_of(valid(out)), op, value_of(out.padded))
    )  # padding may be another's elements
    return out


# -- functions

#: Parameters that are sequences of arrays, also as the parts of one along its first dimension.
_SEQUENCES: Final = {"choices", "condlist", "choicelist"}
#: Parameters that are arrays which broadcast, by function.
_FUNCTIONS: dict[str, str] = {
    **dict.fromkeys(("round", "around"), "a"), "clip": "a a_min a_max min max", "select": "condlist choicelist default",
    **dict.fromkeys(("fix", "isposinf", "isneginf", "i0", "sinc", "isreal", "iscomplex"), "x"),
    "real": "val", "imag": "val", "angle": "z", "isclose": "a b rtol atol", "choose": "a choices",
}  # fmt: skip


def _implement(name: str, parameters: str) -> None:
    function = getattr(np, name, None)
    if function is None:
        return

    @sized(function)
    def handle(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        if arguments.get("out") is not None:
            raise_unsupported("be computed with out=", "use the result")
        arguments = {n: list(v) if n in _SEQUENCES else v for n, v in arguments.items()}
        aligned, frame = align_arguments(arguments, parameters.split())
        if name == "choose":
            aligned["a"] = _index_of_choices(aligned, frame)
        return frame.wrap(call(func, aligned))


def _index_of_choices(aligned: Mapping[str, Any], frame: Frame) -> Any:
    """Return the index that chooses each element, with zeros in the padding, where any index is allowed."""
    shape = np.broadcast_shapes(*[_np.shape(v) for v in (aligned["a"], *aligned["choices"])])
    return padded_of(_with_zeros(frame.wrap(_np.broadcast_to(as_traced(aligned["a"]), shape))))


for _name, _parameters in _FUNCTIONS.items():
    _implement(_name, _parameters)


@sized(np.nan_to_num)
def nan_to_num(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Replace nan and infinities by numbers."""
    array = array_of(arguments["x"])
    result = _np.copy(array) if arguments.get("copy", True) else array
    replace_non_finite(result, arguments.get("nan", 0.0), arguments.get("posinf"), arguments.get("neginf"))
    return result


@sized(np.where)
def where(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Select elements; of one argument, return the indices of nonzero elements."""
    if arguments.get("x") is None and arguments.get("y") is None:
        return np.nonzero(arguments["condition"])
    aligned, frame = align_arguments(arguments, ("condition", "x", "y"))
    return frame.wrap(func(aligned["condition"], aligned["x"], aligned["y"]))


@sized(np.allclose, np.array_equiv)
def all_alike(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Test whether all elements are close or equal."""
    first, second = (arguments.pop(name) for name in (("a", "b") if "a" in arguments else ("a1", "a2")))
    if func.__name__ == "allclose":
        return _as_python(np.all(np.isclose(first, second, **arguments)))
    _leave_unless_broadcast(first, second)
    return _as_python(np.all(np.equal(first, second)))


def _leave_unless_broadcast(first: Any, second: Any) -> None:
    """Make NumPy run, which returns False, in place of runs in which two arrays do not broadcast."""
    text = "np.array_equiv of arrays that do not broadcast"
    for n, m in zip(reversed(shape_of(first)), reversed(shape_of(second)), strict=False):
        if isinstance(n, TracedArray) or isinstance(m, TracedArray):
            one: Any = np.logical_or(np.equal(n, 1), np.equal(m, 1))
            leave_if(np.logical_not(np.logical_or(one, np.equal(n, m))), text)


def _as_python(result: Any) -> Any:
    """Return a bool as one of Python's."""
    return TracedArray(value_of(result), rank0=Rank0.PYTHON)


@sized(np.array_equal)
def array_equal(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Test whether two arrays have the same shape and elements."""
    first, second = arguments["a1"], arguments["a2"]
    shapes = [shape_of(x) for x in (first, second)]
    if len(shapes[0]) != len(shapes[1]):
        return False
    same_shape: Any = np.bool_(True)
    padded: list[Any] = [x.padded if isinstance(x, SizedArray) else as_traced(x) for x in (first, second)]
    counts: dict[int, TracedArray] = {}
    for d, (n, m) in enumerate(zip(*shapes, strict=True)):
        traced = [size for size in (n, m) if isinstance(size, TracedArray)]
        if not traced and n != m:
            return False
        if traced:
            same_shape = np.logical_and(same_shape, np.equal(n, m))
            bound = max(p.shape[d] for p in padded)
            padded, counts[d] = [resized(p, d, bound) for p in padded], traced[0]
    equal: Any = np.equal(*padded)
    if arguments.get("equal_nan"):
        equal = np.logical_or(equal, np.logical_and(*[np.not_equal(p, p) for p in padded]))
    return _as_python(np.logical_and(same_shape, np.all(SizedArray(equal, counts))))


@sized(np.interp, np.digitize, np.isin, np.searchsorted)
def search(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Compute a function of each element of one array, and of all elements of others."""
    name, handler = SEARCHES[func.__name__]
    if _np.ndim(arguments.get("assume_unique", False)):
        raise_unsupported("tell whether elements are unique", "pass a bool")
    queries = arguments[name]
    if is_sized([v for n, v in arguments.items() if n != name]):
        return handler(func, arguments)
    return queries.like(call(func, {**arguments, name: queries.padded}))


# -- facts about dtypes


@sized(np.result_type, np.can_cast, np.common_type, np.min_scalar_type, np.iscomplexobj, np.isrealobj)
def fact_of_dtypes(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Return a dtype or a bool, which depend on no size."""
    return call(func, {name: _without_sizes(value) for name, value in arguments.items()})


def _without_sizes(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_without_sizes, value))
    return padded_of(value) if isinstance(value, SizedArray) else value
