"""Products of arrays of run-time size: labels tell which dimensions are contracted, where padding must be zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import index
from typing import Any

import numpy as np

from cyxla.numpy.control import cond, fori_loop
from cyxla.numpy.functions.products.einsum import split_operands
from cyxla.numpy.indexing.equal_values import same_size
from cyxla.numpy.sized.frames import array_of, leave_if, rank_of, require_equal, resized, wrapped
from cyxla.numpy.sized.reductions import fail_if_empty
from cyxla.numpy.sized.slices import slice_along
from cyxla.numpy.sized.table import sized
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, as_size, filled, is_sized, raise_unsupported
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_strong, as_traced, value_of
from cyxla.numpy.tracing.trace import require_current
from cyxla.numpy.ufunc_methods.reduce import known_values
from cyxla.records import dataclass
from cyxla.types import Shape

Label = str | int
_np: Any = np  # its functions dispatch to this package
_MESSAGE = "{name}: the sizes of a dimension that is shared are {{}} and {{}}"


@dataclass
class Term:
    """Operand of a product, with a label for each of its dimensions."""

    array: Any
    labels: Sequence[Label]


def contract(name: str, terms: Sequence[Term], result: Sequence[Label], compute: Callable[..., Any]) -> Any:
    """Compute a product of padded operands.

    Parameters
    ----------
    name : str
        Name of the function, for messages.
    terms : sequence of Term
        Operands.
    result : sequence of str or int
        Labels of the result; all others are contracted.
    compute : callable
        Function from the padded operands to the padded result.
    """
    datas = [t.array.padded if isinstance(t.array, SizedArray) else as_traced(t.array) for t in terms]
    counts: dict[Label, TracedArray] = {}
    for label in dict.fromkeys(n for t in terms for n in t.labels):
        places = [(k, d) for k, t in enumerate(terms) for d, n in enumerate(t.labels) if n == label]
        sizes = [terms[k].array.shape[d] for k, d in places]
        traced = [n for n in sizes if isinstance(n, TracedArray)]
        if not traced:
            continue
        counts[label] = traced[0]
        contracted = label not in result
        shared = [p for p, n in zip(places, sizes, strict=True) if contracted or isinstance(n, TracedArray) or n != 1]
        for k, d in shared:  # dimensions of size 1 are broadcast
            if name == "einsum" or isinstance(label, int):  # of a stack
                _leave_if_broadcast(traced[0], terms[k].array.shape[d])
            require_equal(traced[0], terms[k].array.shape[d], _MESSAGE.format(name=name))
        bound = min(datas[k].shape[d] for (k, d), n in zip(places, sizes, strict=True) if isinstance(n, TracedArray))
        for k, d in shared:
            datas[k] = resized(datas[k], d, bound)
            if contracted:
                datas[k] = filled(SizedArray(datas[k], {d: traced[0]}), 0)
    return wrapped(compute(*datas), {d: counts[n] for d, n in enumerate(result) if n in counts})


def _leave_if_broadcast(size: TracedArray, other: Any) -> None:
    """Make NumPy run in place of runs in which one of two sizes of a dimension is 1, so that it is broadcast."""
    if size is other or (isinstance(other, TracedArray) and same_size(size, other)):
        return
    is_one: Any = _np.logical_or(_np.equal(size, 1), _np.equal(other, 1))
    text = "a product in which a dimension is broadcast whose size is known at run time"
    leave_if(_np.logical_and(is_one, _np.not_equal(size, other)), text)


def _without_out(arguments: dict[str, Any]) -> None:
    if arguments.get("out") is not None:
        raise_unsupported("be multiplied with out=", "use the result")


@sized(np.dot, np.inner)
def dot(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Contract the last dimension of one array with one of the other."""
    _without_out(arguments)
    a, b = array_of(arguments["a"]), array_of(arguments["b"])
    if not a.ndim or not b.ndim:  # numbers are arrays here, of their own dtypes
        return _np.multiply(*[x if isinstance(x, SizedArray) else as_strong(x) for x in (a, b)])
    left = [f"a{d}" for d in range(a.ndim)]
    right = [f"b{d}" for d in range(b.ndim)]
    at = max(b.ndim - 2, 0) if func.__name__ == "dot" else b.ndim - 1
    right[at] = left[-1]
    result = [*left[:-1], *[n for k, n in enumerate(right) if k != at]]
    return contract(func.__name__, [Term(a, left), Term(b, right)], result, func)


_CORES = {"vecdot": ("k", "k", ""), "matvec": ("mk", "k", "m"), "vecmat": ("k", "kn", "n")}


@sized(np.matmul, np.vecdot, np.matvec, np.vecmat, np.linalg.matmul, np.linalg.vecdot)
def multiply_stacks(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Multiply stacks of vectors and matrices."""
    keywords = dict(arguments.get("keywords", {}))
    a, b = (arguments["inputs"] if "inputs" in arguments else (arguments["x1"], arguments["x2"]))[:2]
    if arguments.get("out") is not None or any(n in keywords for n in ("axes", "axis", "keepdims")):
        raise_unsupported(f"be passed to np.{func.__name__} with these keywords")
    if arguments.get("axis", -1) != -1:
        raise_unsupported(f"be passed to np.{func.__name__} with axis=", "move the dimension to the end")
    a, b = array_of(a), array_of(b)
    name = func.__name__
    if name == "matmul":
        left, right = ("k" if a.ndim == 1 else "mk"), ("k" if b.ndim == 1 else "kn")
        cores = (left, right, left[:-1] + right[1:])
    else:
        cores = _CORES[name]
    terms = [Term(x, [*range(x.ndim - len(c), 0, -1), *c]) for x, c in zip((a, b), cores, strict=False)]
    batch = range(max(t.array.ndim - len(c) for t, c in zip(terms, cores, strict=False)), 0, -1)
    return contract(name, terms, [*batch, *cores[2]], lambda x, y: func(x, y, **keywords))


@sized(np.vdot)
def vdot(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Contract all elements of two arrays, the first conjugated."""
    a, b = (_np.ravel(array_of(arguments[n])) for n in "ab")
    return contract("vdot", [Term(a, "k"), Term(b, "k")], "", func)


@sized(np.outer, np.linalg.outer)
def outer(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Multiply all pairs of elements of two vectors."""
    _without_out(arguments)
    names = ("a", "b") if "a" in arguments else ("x1", "x2")
    a, b = (_np.ravel(array_of(arguments[n])) for n in names)
    return contract("outer", [Term(a, "i"), Term(b, "j")], "ij", func)


@sized(np.tensordot, np.linalg.tensordot)
def tensordot(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Contract pairs of dimensions."""
    names = ("a", "b") if "a" in arguments else ("x1", "x2")
    a, b = (array_of(arguments[n]) for n in names)
    axes = arguments.get("axes", 2)
    try:
        left_axes, right_axes = ([axis] if np.ndim(axis) == 0 else list(axis) for axis in axes)
    except TypeError:
        left_axes, right_axes = list(range(-index(axes), 0)), list(range(index(axes)))
    left, right = [f"a{d}" for d in range(a.ndim)], [f"b{d}" for d in range(b.ndim)]
    for i, j in zip(left_axes, right_axes, strict=True):
        right[j] = left[i]
    shared = {left[i] for i in left_axes}
    result = [n for n in (*left, *right) if n not in shared]
    return contract("tensordot", [Term(a, left), Term(b, right)], result, lambda x, y: _np.tensordot(x, y, axes))


@sized(np.einsum)
def einsum(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Sum products over labels."""
    _without_out(arguments)
    subscripts, values = split_operands(arguments["operands"])
    operands = [array_of(x) for x in values]
    inputs, arrow, output = subscripts.partition("->")
    labels = [_expanded(part, rank_of(x)) for part, x in zip(inputs.split(","), operands, strict=True)]
    batch = max((part for part in ([n for n in ls if isinstance(n, int)] for ls in labels)), key=len)
    every = [n for ls in labels for n in ls if isinstance(n, str)]
    if arrow:
        result = [n for c in output.replace("...", ".") for n in (batch if c == "." else [c])]
    else:
        result = [*batch, *sorted(n for n in set(every) if every.count(n) == 1)]
    options = {n: v for n, v in arguments.items() if n not in ("operands", "out")}
    terms = [Term(x, ls) for x, ls in zip(operands, labels, strict=True)]
    return contract("einsum", terms, result, lambda *values: func(subscripts, *values, **options))


def _expanded(part: str, rank: int) -> list[Label]:
    """Return the labels of an operand; those of an ellipsis are their distance from its end."""
    before, dots, after = part.partition("...")
    count = rank - len(before) - len(after) if dots else 0
    return [*before, *range(count, 0, -1), *after]


# -- convolutions


@sized(np.convolve, np.correlate)
def convolve(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Convolve two vectors: all overlaps of padded ones, of which a slice is the result."""
    is_correlation = func.__name__ == "correlate"
    a, v = (_with_known_values(arguments[n]) for n in ("a", "v"))
    a, v = (a, v) if is_correlation else map(_np.atleast_1d, (a, v))
    if not a.ndim or not v.ndim:
        raise ValueError("object of too small depth for desired array")
    if a.ndim > 1 or v.ndim > 1:
        raise ValueError("object too deep for desired array")
    names = ("first array argument", "second array argument") if is_correlation else ("a", "v")
    for x, text in zip((a, v), names, strict=True):
        if isinstance(x, SizedArray):
            fail_if_empty(x, f"{text} cannot be empty")
        elif not x.shape[0]:
            raise ValueError(f"{text} cannot be empty")
    mode = arguments.get("mode", "valid" if is_correlation else "full")
    sizes = [x.shape[0] for x in (a, v)]
    taps = _np.conjugate(v) if is_correlation and v.dtype.kind == "c" else v
    full = _all_overlaps(a, taps[::-1] if is_correlation else taps)
    if mode in ("full", 2):
        return full
    shorter, longer = _np.minimum(*sizes), _np.maximum(*sizes)
    if mode in ("same", 1):
        before: Any = _np.where(_np.less(*sizes), shorter, shorter - 1) if is_correlation else shorter - 1
        first: Any = before // 2
        return slice_along(full, 0, slice(as_traced(first), as_traced(first + longer)))
    if mode in ("valid", 0):
        return slice_along(full, 0, slice(as_traced(shorter - 1), as_traced(longer)))
    raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")


def _all_overlaps(a: Any, v: Any) -> SizedArray:
    """Return the sums of products of all elements whose indices have the same sum."""
    datas = [filled(x, 0) if isinstance(x, SizedArray) else x for x in (a, v)]
    if isinstance(a, SizedArray) and isinstance(v, SizedArray):  # time follows both bounds
        program = require_current().program
        program.flattened.append(Shape.array(value_of(datas[0]).shape.dtype, (a.bound, v.bound)))
    finite = [_is_finite(y) for x, y in ((a, datas[1]), (v, datas[0])) if isinstance(x, SizedArray)]
    finite = [f for f in finite if f is not True]
    if finite:
        sums = cond(
            reduce(_np.logical_and, finite), lambda: _np.convolve(*datas), lambda: _without_products_of_padding(a, v)
        )
    else:
        sums = _np.convolve(*datas)
    return SizedArray(sums, {0: as_size_of(a.shape[0] + v.shape[0] - 1, sums.shape[0])})


def _with_known_values(value: Any) -> Any:
    known = None if is_sized(value) else known_values(value)
    return array_of(value) if known is None else known


def _is_finite(data: Any) -> Any:
    """Return True if products of all elements with zeros are known to be zeros, else a traced bool that tells it."""
    known = known_values(data)
    if data.dtype.kind not in "fcV" or (known is not None and np.isfinite(known).all()):
        return True
    return _np.all(_np.isfinite(data))


def _without_products_of_padding(a: Any, v: Any) -> Any:
    """Return the sums of products of `_all_overlaps` where zeros in the padding would make some of them nan."""
    (data, size), (taps, count) = ((x.padded if isinstance(x, SizedArray) else x, x.shape[0]) for x in (a, v))
    positions = np.arange(data.shape[0] + taps.shape[0] - 1)

    def add(k: Any, total: Any) -> Any:
        source = positions - k
        inside = (source >= 0) & (source < size) & _np.less(k, count)
        product = _np.take(data, source, mode="clip") * _np.take(taps, k, mode="clip")
        return total + _np.where(inside, product, _np.zeros_like(product))

    return fori_loop(0, taps.shape[0], add, np.zeros(len(positions), np.result_type(data.dtype, taps.dtype)))


def as_size_of(value: Any, bound: int) -> TracedArray:
    """Return a computed number as a size."""
    return as_size(as_traced(_np.maximum(value, 0)), bound)
