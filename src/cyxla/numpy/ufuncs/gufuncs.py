"""Generalised ufuncs: core dimensions of vectors and matrices, and the keywords common to all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy as np

from cyxla.errors import DTypeError, ShapeError
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, value_of
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.promotion import Dtype, Signature, loop_types
from cyxla.numpy.ufuncs.apply import requested_types, to_outputs
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla

Core = Callable[[XlaOp, XlaOp], XlaOp]
_IGNORED = ("order", "subok")
_KEYWORDS = ("axes", "axis", "keepdims", "dtype", "signature", "casting", *_IGNORED)


def gufunc(ufunc: np.ufunc, ranks: tuple[int, int, int]) -> Callable[[Core], Core]:
    """Register a function of two operands of one dtype, core dimensions last, as the implementation of a gufunc.

    Parameters
    ----------
    ufunc : numpy.ufunc
        Gufunc of NumPy.
    ranks : tuple of int
        Numbers of core dimensions of the operands and of the result.
    """

    def register(core: Core) -> Core:
        @implements(ufunc)
        def implementation(*inputs: Any, out: Any = None, **keywords: Any) -> Any:
            for name in keywords:
                if name not in _KEYWORDS:
                    raise TypeError(f"{ufunc.__name__}() got an unexpected keyword argument '{name}'")
            present = {name: value for name, value in keywords.items() if value is not np._NoValue}
            return _call(ufunc, ranks, core, inputs, out, present)

        implementation.__doc__ = f"Compute ``numpy.{ufunc.__name__}``."
        return core

    return register


def _call(
    ufunc: np.ufunc, ranks: tuple[int, ...], core: Core, inputs: Sequence[Any], out: Any, keywords: dict[str, Any]
) -> Any:
    if not 2 <= len(inputs) <= 3:
        raise TypeError(f"{ufunc.__name__}() takes from 2 to 3 positional arguments but {len(inputs)} were given")
    out = inputs[2] if len(inputs) == 3 else out
    arrays = [as_traced(x) for x in inputs[:2]]
    _check_keywords(ufunc, keywords)
    casting = keywords.get("casting", "same_kind")
    types = loop_types(ufunc, tuple(a.kind for a in arrays), _requested_types(ufunc, keywords), casting)
    for k, (array, target) in enumerate(zip(arrays, types, strict=False)):
        if not array.weak and not np.can_cast(array.dtype, target, casting):
            raise DTypeError(
                f"Cannot cast ufunc '{ufunc.__name__}' input {k} from {array.dtype!r} to {target!r} with casting rule "
                f"'{casting}'"
            )
    core_ranks = _core_ranks(ufunc, ranks, [a.ndim for a in arrays])
    axes = _axes(ufunc, core_ranks, keywords)
    ops = [
        _move_core_last(convert(value_of(a), t), core_axes, ufunc.__name__)
        for a, t, core_axes in zip(arrays, types, axes, strict=False)
    ]
    check_core(ufunc.__name__, ufunc.signature or "", [op.shape.dims for op in ops])
    result = core(*ops)
    if keywords.get("keepdims"):
        result = xla.reshape(result, (*result.shape.dims, 1))
    result = _move_core_back(result, axes[2], ufunc.__name__)
    return to_outputs([TracedArray(result)], out, True, casting, ufunc.__name__)


def _requested_types(ufunc: np.ufunc, keywords: dict[str, Any]) -> Dtype | Signature | None:
    dtype, signature = keywords.get("dtype"), keywords.get("signature")
    return None if dtype is None and signature is None else requested_types(ufunc, dtype, signature)


def _check_keywords(ufunc: np.ufunc, keywords: dict[str, Any]) -> None:
    """Refuse ``axis=`` and ``keepdims=`` for gufuncs without a single shared core dimension."""
    for name in ("axis", "keepdims"):
        if keywords.get(name, False) is not False and ufunc.signature != "(n),(n)->()":
            raise TypeError(
                f"{ufunc.__name__} does not support {name}: its signature {ufunc.signature} does not have a single "
                "core dimension that all operands share"
            )
    if not isinstance(keywords.get("keepdims", False), bool):
        raise TypeError("'keepdims' must be a boolean")
    if keywords.get("axes") is not None and keywords.get("axis") is not None:
        raise TypeError("cannot specify both 'axis' and 'axes'")


def _core_ranks(ufunc: np.ufunc, ranks: tuple[int, ...], operand_ranks: Sequence[int]) -> list[int]:
    """Return the numbers of core dimensions, without missing ones marked by ? in the signature."""
    optional = "?" in (ufunc.signature or "")
    core_ranks = list(ranks)
    for k, rank in enumerate(operand_ranks):
        if optional and rank == 1:
            core_ranks[k], core_ranks[2] = 1, core_ranks[2] - 1
        elif rank < ranks[k]:
            raise ValueError(
                f"{ufunc.__name__}: Input operand {k} does not have enough dimensions (has {rank}, gufunc core with "
                f"signature {ufunc.signature} requires {ranks[k] - optional})"
            )
    return core_ranks


def _axes(ufunc: np.ufunc, core_ranks: Sequence[int], keywords: dict[str, Any]) -> list[tuple[int, ...]]:
    """Return the core axes of the operands and of the result."""
    axes = keywords.get("axes")
    core_ranks = [*core_ranks[:2], core_ranks[2] + bool(keywords.get("keepdims"))]
    if "axis" in keywords:
        shared = (index(keywords["axis"]),)
        return [shared, shared, shared[: core_ranks[2]]]
    if axes is None:
        return [tuple(range(-rank, 0)) for rank in core_ranks]
    if not isinstance(axes, list):
        raise TypeError("axes should be a list.")
    if len(axes) < 2 or (len(axes) < 3 and core_ranks[2] and not keywords.get("keepdims")) or len(axes) > 3:
        raise ValueError("axes should be a list with an entry for all inputs and outputs")
    core_axes = [(index(a),) if not isinstance(a, tuple) else tuple(map(index, a)) for a in axes]
    core_axes += [tuple(range(-core_ranks[2], 0))] * (3 - len(core_axes))
    for k, (axes_k, rank) in enumerate(zip(core_axes, core_ranks, strict=True)):
        if len(axes_k) != rank:
            raise np.exceptions.AxisError(
                f"{ufunc.__name__}: operand {k} has {rank} core dimensions, but axes {axes_k}"
            )
    return core_axes


def _move_core_last(op: XlaOp, core_axes: Sequence[int], name: str) -> XlaOp:
    rank = op.shape.rank
    core = [_normalise_axis(p, rank) for p in core_axes]
    if len(set(core)) < len(core):
        raise ValueError(f"{name}: axes {tuple(core_axes)} repeat")
    order = [*(d for d in range(rank) if d not in core), *core]
    return op if order == list(range(rank)) else xla.transpose(op, order)


def _move_core_back(op: XlaOp, core_axes: Sequence[int], name: str) -> XlaOp:
    rank = op.shape.rank
    core = [_normalise_axis(p, rank) for p in core_axes]
    if len(set(core)) < len(core):
        raise ValueError(f"{name}: axes {tuple(core_axes)} repeat")
    source = iter(range(rank - len(core)))
    last = {p: rank - len(core) + k for k, p in enumerate(core)}
    order = [last[d] if d in last else next(source) for d in range(rank)]
    return op if order == list(range(rank)) else xla.transpose(op, order)


def _normalise_axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise np.exceptions.AxisError(axis, rank)
    return axis % rank


def mismatch(name: str, x: XlaOp, y: XlaOp) -> ShapeError:
    """Return the error of operands whose shapes do not agree."""
    shapes = f"{x.shape.dims} {y.shape.dims}"
    return ShapeError(
        f"{name}: operands could not be broadcast together with shapes {shapes}", where=_trace.user_line()
    )


def check_core(name: str, signature: str, shapes: Sequence[tuple[int, ...]]) -> None:
    """Check that core dimensions, which are last, agree with the signature.

    Raises
    ------
    ShapeError
        A named dimension has different sizes; the message is NumPy's.
    """
    sizes: dict[str, int] = {}
    for k, (core, shape) in enumerate(zip(_core_names(signature), shapes, strict=True)):
        names = core if len(shape) >= len(core) else [n for n in core if not n.endswith("?")]
        for j, (label, size) in enumerate(zip(names, shape[len(shape) - len(names) :], strict=True)):
            if sizes.setdefault(label.rstrip("?"), size) != size:
                raise ShapeError(
                    f"{name}: Input operand {k} has a mismatch in its core dimension {j}, with gufunc signature "
                    f"{signature} (size {size} is different from {sizes[label.rstrip('?')]})",
                    where=_trace.user_line(),
                )


def _core_names(signature: str) -> list[list[str]]:
    """Return the names of the core dimensions of each operand, as in ``(n?,k),(k,m?)->(n?,m?)``."""
    operands = signature.partition("->")[0].strip("()").split("),(")
    return [operand.split(",") for operand in operands]
