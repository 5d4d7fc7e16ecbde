"""Opcodes that apply a computation to elements: map, reduce, scan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cyxla.errors import UnimplementedError
from cyxla.types import ElementType, Kind, Shape, from_numpy
from cyxla.xla.evaluator.evaluation import Evaluation
from cyxla.xla.evaluator.numerics.apply_elementwise import apply_named
from cyxla.xla.evaluator.numerics.combiners import combining_opcode
from cyxla.xla.evaluator.numerics.conversion import round_float, widen_integer, wrap_integer
from cyxla.xla.evaluator.registry import Steps, evaluates
from cyxla.xla.evaluator.values import Array, Value, array_of, numpy_dtype, tuple_of
from cyxla.xla.hlo.computation import Computation
from cyxla.xla.hlo.instruction import Instruction

_MAX_SEQUENTIAL = 2048  # longest reductions in element order; longer ones are pairwise


@evaluates("map")
def map_(ev: Evaluation, ins: Instruction, *arrays: Array) -> Array:
    """Apply a computation of scalars to each element."""
    return ev.apply_elementwise(ins.called[0], arrays)[0]


# --- reduce ---


@evaluates("reduce")
def reduce(ev: Evaluation, ins: Instruction, *operands: Array) -> Value:
    """Reduce dimensions by a computation of (accumulators, elements)."""
    half = len(operands) // 2
    dims = tuple(ins.attrs["dimensions"])
    results = reduce_arrays(ev, ins.called[0], operands[:half], operands[half:], dims)
    return tuple(results) if ins.shape.is_tuple else results[0]


def reduce_arrays(
    ev: Evaluation, computation: Computation, arrays: Sequence[Array], inits: Sequence[Array], dims: Sequence[int]
) -> list[Array]:
    """Reduce dimensions of arrays of one shape; each init is combined once with every result element.

    Without dimensions, the arrays are returned as they are.

    Parameters
    ----------
    computation : Computation
        Computation of n accumulators and n elements that returns n accumulators.
    arrays, inits : sequence of array
        n arrays of one shape; n scalars.
    dims : sequence of int
        Dimensions to reduce.
    """
    if not dims:
        return list(arrays)
    rows = [_rows(a, dims) for a in arrays]
    result_sizes = rows[0].shape[1:]
    name = combining_opcode(ev, computation) if len(arrays) == 1 else None
    reducer = _REDUCERS.get((name or "", from_numpy(arrays[0].dtype).kind))
    if len(rows[0]) == 0:
        return [np.broadcast_to(i, result_sizes) for i in inits]
    if reducer is not None and name is not None:
        element = from_numpy(arrays[0].dtype)
        return [np.broadcast_to(reducer(name, element, rows[0], inits[0]), result_sizes)]
    return _reduce_any(ev, computation, rows, inits)


def _rows(x: Array, dims: Sequence[int]) -> Array:
    """Move the reduced dimensions to the front, merged into one."""
    kept_dims = [d for d in range(x.ndim) if d not in dims]
    transposed = x.transpose([*sorted(dims), *kept_dims])
    count = int(np.prod([x.shape[d] for d in dims], dtype=np.int64))
    return transposed.reshape(count, *(x.shape[d] for d in kept_dims))


def _reduce_any(ev: Evaluation, computation: Computation, rows: list[Array], inits: Sequence[Array]) -> list[Array]:
    """Reduce short arrays in order, and long ones by halves, combining neighbours; HLO allows any order."""
    while len(rows[0]) > _MAX_SEQUENTIAL:
        pairs = len(rows[0]) // 2
        halves = [r[: 2 * pairs : 2] for r in rows] + [r[1 : 2 * pairs : 2] for r in rows]
        tails = [r[2 * pairs :] for r in rows]
        reduced = ev.apply_elementwise(computation, halves)
        rows = [np.concatenate([f, t]) for f, t in zip(reduced, tails, strict=True)]
    state = [np.broadcast_to(i, r.shape[1:]) for i, r in zip(inits, rows, strict=True)]
    for n in range(len(rows[0])):
        state = ev.apply_elementwise(computation, [*state, *(r[n, ...] for r in rows)])
    return state


def _reduce_pred(name: str, element: ElementType, rows: Array, init: Array) -> Array:
    reduced = {"or": np.logical_or, "and": np.logical_and, "xor": np.logical_xor}[_PRED_NAMES[name]].reduce(
        rows, axis=0
    )
    return apply_named(name, element, init, np.asarray(reduced))


_PRED_NAMES = {
    "add": "or",
    "maximum": "or",
    "or": "or",
    "multiply": "and",
    "minimum": "and",
    "and": "and",
    "xor": "xor",
}


def _reduce_integer(name: str, element: ElementType, rows: Array, init: Array) -> Array:
    wide = widen_integer(rows)
    reduced = _UFUNCS[name].reduce(wide, axis=0, dtype=wide.dtype)
    return apply_named(name, element, init, wrap_integer(np.asarray(reduced), element))


def _reduce_float(name: str, element: ElementType, rows: Array, init: Array) -> Array:
    """Reduce in f64, f64 in long double, rounding once: in f32, as in XLA, sums of narrow floats lose small terms."""
    wide = np.dtype(np.longdouble if element is ElementType.F64 else np.float64)
    ufunc = _UFUNCS[name]
    unit = -0.0 if name == "add" else 1.0  # NumPy's initial value is +0, which would turn -0 + -0 into +0
    reduced = ufunc(init.astype(wide), ufunc.reduce(rows.astype(wide), axis=0, initial=unit))
    return round_float(np.asarray(reduced), element)


def _reduce_extremum(name: str, element: ElementType, rows: Array, init: Array) -> Array:
    if not element.is_float:
        return _reduce_integer(name, element, rows, init)
    wide = rows.astype(np.float32) if element.bits < 32 else rows
    extremum = np.asarray(_UFUNCS[name].reduce(wide, axis=0))
    is_maximum = name == "maximum"
    wins = ((wide == 0) & (np.signbit(wide) != is_maximum)).any(axis=0)  # +0 is greater than -0
    zero = np.where(wins != is_maximum, -0.0, 0.0).astype(wide.dtype)
    return apply_named(name, element, init, round_float(np.where(extremum == 0, zero, extremum), element))


def _reduce_complex(name: str, element: ElementType, rows: Array, init: Array) -> Array:
    wide = np.dtype(np.clongdouble if element is ElementType.C128 else np.complex128)
    unit = complex(-0.0, -0.0) if name == "add" else 1
    reduced = _UFUNCS[name](init.astype(wide), _UFUNCS[name].reduce(rows.astype(wide), axis=0, initial=unit))
    return np.asarray(reduced).astype(rows.dtype)


_UFUNCS: dict[str, Any] = {
    "add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip

_Reducer = Callable[[str, ElementType, Array, Array], Array]
_REDUCERS: dict[tuple[str, Kind], _Reducer] = {
    **{(name, Kind.PRED): _reduce_pred for name in _PRED_NAMES},
    **{(name, kind): _reduce_integer for name in _UFUNCS for kind in (Kind.SIGNED, Kind.UNSIGNED)},
    **{(name, Kind.FLOAT): _reduce_float for name in ("add", "multiply")},
    **{(name, Kind.FLOAT): _reduce_extremum for name in ("maximum", "minimum")},
    **{(name, Kind.COMPLEX): _reduce_complex for name in ("add", "multiply")},
}


# --- scan ---


def _no_steps(shape: Shape, along: int) -> Array:
    """Return stacked results of no steps."""
    return np.zeros([0 if d == along else n for d, n in enumerate(shape.dims)], numpy_dtype(shape))


def _cut_to_least(arrays: list[Array]) -> list[Array]:
    """Cut arrays, whose sizes may be dynamic, to the least of their sizes."""
    least = [min(n) for n in zip(*(x.shape for x in arrays), strict=True)]
    return [x[tuple(map(slice, least))] for x in arrays]


@evaluates("scan")
def scan(ev: Evaluation, ins: Instruction, *operands: Value) -> Steps:
    """Step along a dimension by (elements, carries) -> (outs, carries); return stacked outs, then the last carries."""
    carried = int(ins.attrs["num_carries"])
    split = len(operands) - carried
    inputs, carries = [array_of(x) for x in operands[:split]], operands[split:]
    along = int(ins.attrs["dimensions"][0])
    if not inputs:
        raise UnimplementedError("scan without an array to step along", where=repr(ins))
    length = min(x.shape[along] for x in inputs)
    order = range(length - 1, -1, -1) if ins.attrs["is_reverse"] else range(length)
    outs: dict[int, tuple[Value, ...]] = {}
    for n in order:
        result = yield ins.called[0], (*(np.asarray(np.take(x, n, axis=along)) for x in inputs), *carries)
        parts = tuple_of(result) if isinstance(result, tuple) else (result,)
        outs[n], carries = parts[: len(parts) - carried], parts[len(parts) - carried :]
    shapes = ins.shape.elements if ins.shape.is_tuple else (ins.shape,)
    stacked = []
    for k, shape in enumerate(shapes[: len(shapes) - carried]):
        column = _cut_to_least([array_of(outs[n][k]) for n in range(length)])
        stacked.append(np.stack(column, axis=along) if column else _no_steps(shape, along))
    results = (*stacked, *carries)
    return results if ins.shape.is_tuple else results[0]
