"""Indexing by traced masks: the number of elements is unknown, but they can be computed with and assigned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple
from numpy.lib.mixins import NDArrayOperatorsMixin

from cyxla.errors import ShapeError, TraceError
from cyxla.numpy.indexing.basic import SlicePlan
from cyxla.numpy.indexing.parse import ArrayEntry, Entry, IntegerEntry, MaskEntry, NewAxisEntry, Selection, SliceEntry
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.registry import NUMPY_ORIGINALS
from cyxla.numpy.tracing.trace import require_current
from cyxla.numpy.tracing.traced_array import TracedArray, as_traced, value_of
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.hlo.instruction import Instruction

_HINT = "np.where(mask, x, other) keeps the size; x[mask] = v, x[mask] += v and x[mask].sum() can be traced"
_MAX_COMPARED = 10_000  # instructions to compare at most when two masks are compared


@dataclass(frozen=True)
class MaskPlan:
    """Position of masked elements in an array.

    Attributes
    ----------
    basic : SlicePlan
        Basic indexing of the other axes; the mask's axes are whole.
    mask : XlaOp
        Traced mask.
    first : int
        First dimension of the basic part that the mask covers.
    at : int
        Dimension of the result along which the elements are.
    """

    basic: SlicePlan
    mask: XlaOp
    first: int
    at: int

    @staticmethod
    def of(selection: Selection, sizes: Sequence[int]) -> MaskPlan:
        """Return the plan for an index expression with one traced mask.

        Raises
        ------
        TraceError
            The expression contains another array.
        """
        masks = [e for e in selection.entries if isinstance(e, MaskEntry)]
        if len(masks) != 1 or any(isinstance(e, (ArrayEntry, NewAxisEntry)) for e in selection.entries):
            raise TraceError(
                "an index combines a traced mask with other arrays or new axes", where=_trace.user_line(), hint=_HINT
            )
        kept: list[Entry] = []
        first, axis = 0, 0
        for entry in selection.entries:
            if isinstance(entry, MaskEntry):
                first = sum(isinstance(e, SliceEntry) for e in kept)
                rank = entry.where.shape.rank
                kept += [SliceEntry(0, n) for n in sizes[axis : axis + rank]]
                axis += rank
            else:
                kept.append(entry)
                axis += 1
        block = next(k for k, e in enumerate(selection.entries) if isinstance(e, (MaskEntry, IntegerEntry)))
        before = sum(isinstance(e, SliceEntry) for e in selection.entries[:block])
        return MaskPlan(SlicePlan.of(kept), masks[0].where, first, 0 if selection.separated else before)

    @property
    def rest(self) -> list[int]:
        """Dimensions of the basic part that the mask does not cover."""
        own = range(self.first, self.first + self.mask.shape.rank)
        return [d for d in range(len(self.basic.result)) if d not in own]

    def broadcast_mask(self) -> XlaOp:
        """Broadcast the mask to the shape of the basic part."""
        mask = require_current().capture(self.mask)
        dims = range(self.first, self.first + mask.shape.rank)
        return xla.broadcast_in_dim(mask, self.basic.result, list(dims))

    def selects_same(self, other: MaskPlan) -> bool:
        """Return True if another plan selects the same indices of arrays of the same shape."""
        own, theirs = (p.mask.instruction for p in (self, other))
        assert own is not None
        assert theirs is not None
        if (self.basic.result, self.first, self.at) != (other.basic.result, other.first, other.at):
            return False
        return same_value(own, theirs)

    def broadcast_values(self, op: XlaOp) -> XlaOp:
        """Expand a value for the masked elements, or one value for each of them, to the shape of the basic part.

        Raises
        ------
        ShapeError
            The value cannot be broadcast.
        """
        sizes = [self.basic.result[d] for d in self.rest]
        dims, at = self._aligned_sizes(op), self.at
        if dims[at] != 1:
            return self._scatter_values(op, dims)
        flat = xla.reshape(op, [n for d, n in enumerate(dims) if d != at])
        thin = [k for k, n in enumerate(flat.shape.dims) if n != sizes[k]]
        if thin and any(flat.shape.dims[k] != 1 for k in thin):
            raise _does_not_fit(op.shape.dims, self)
        return xla.broadcast_in_dim(flat, self.basic.result, self.rest)

    def _aligned_sizes(self, op: XlaOp) -> list[int]:
        rank = len(self.rest) + 1
        have = list(op.shape.dims)
        while len(have) > rank and have[0] == 1:
            have = have[1:]
        if len(have) > rank:
            raise _does_not_fit(op.shape.dims, self)
        return [1] * (rank - len(have)) + have

    def _scatter_values(self, op: XlaOp, dims: Sequence[int]) -> XlaOp:
        """Place values, one for each masked element, at these elements; runs with another number of elements fail."""
        count = dims[self.at]
        mask = TracedArray(require_current().capture(self.mask))
        order: Any = np.cumsum(np.ravel(mask), dtype=np.int64)
        total = np.count_nonzero(mask)
        bad = value_of(np.not_equal(total, count))
        where = _trace.user_line()
        require_current().fail_if(bad, value_of(as_traced(total)), lambda n: ShapeError(
            f"cannot assign {count} values to the {n} elements where the mask is true", where=where
        ))  # fmt: skip
        values: Any = TracedArray(xla.reshape(op, dims))
        if count == 0:
            values, count = np.zeros([1 if d == self.at else n for d, n in enumerate(dims)], values.dtype), 1
        positions = np.reshape(order - 1, mask.shape)
        scattered = np.take(values, positions, axis=self.at, mode="clip")
        rank = mask.ndim
        scattered = np.moveaxis(scattered, range(self.at, self.at + rank), range(self.first, self.first + rank))
        return value_of(np.broadcast_to(scattered, self.basic.result))  # type: ignore[arg-type]

    def write(self, op: XlaOp, values: XlaOp) -> XlaOp:
        """Return an array with the masked elements replaced by the corresponding elements of `values`."""
        return self.basic.write(
            op, xla.reshape(xla.select(self.broadcast_mask(), values, self.basic.read(op)), self.basic.result)
        )


def _does_not_fit(have: Sequence[int], plan: MaskPlan) -> ShapeError:
    sizes = [str(plan.basic.result[d]) for d in plan.rest]
    sizes.insert(plan.at, "n")
    return ShapeError(
        f"an array of shape {tuple(have)} does not fit the ({', '.join(sizes)}) elements where the mask is true",
        where=_trace.user_line(),
    )


def same_value(one: Instruction, other: Instruction) -> bool:
    """Return True if two instructions compute the same function of the same values."""
    todo, seen = [(one, other)], set()
    while todo:
        a, b = todo.pop()
        if a is b or (a, b) in seen:
            continue
        seen.add((a, b))
        same_form = a.opcode == b.opcode and a.shape == b.shape and len(a.operands) == len(b.operands)
        if not same_form or a.opcode in _NEVER_SAME or list(a.called) != list(b.called) or a.attrs != b.attrs:
            return False
        if len(seen) > _MAX_COMPARED:
            return False
        todo += zip(a.operands, b.operands, strict=True)
    return True


_NEVER_SAME = ("parameter", "rng", "rng-bit-generator", "custom-call", "infeed")


class MaskedElements(NDArrayOperatorsMixin):
    """Elements selected by a traced mask: an array of unknown size.

    Ufuncs with numbers, full reductions, and assignment under the same mask can be traced.

    Parameters
    ----------
    plan : MaskPlan
        Position of the elements.
    whole : TracedArray
        All elements, selected or not.
    """

    __array_priority__ = 2000.0

    def __init__(self, plan: MaskPlan, whole: TracedArray) -> None:
        self.plan, self.whole = plan, whole

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""
        return self.whole.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.plan.rest) + 1

    @property
    def size(self) -> Any:
        """Number of elements, a traced integer."""
        return np.count_nonzero(TracedArray(self.plan.broadcast_mask()))

    def astype(self, dtype: Any, **options: Any) -> MaskedElements:
        """Convert to another dtype."""
        return MaskedElements(self.plan, self.whole.astype(dtype, **options))

    def copy(self) -> MaskedElements:
        """Return the same elements."""
        return MaskedElements(self.plan, self.whole)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        out = options.pop("out", (None,))
        if method != "__call__" or ufunc.signature is not None or any(o is not None and o is not self for o in out):
            _refuse(f"{ufunc.__name__}.{method}")
        made = ufunc(*[self._aligned_operand(x) for x in inputs], **options)
        results = [MaskedElements(self.plan, m) for m in (made if isinstance(made, tuple) else (made,))]
        if out[0] is self:
            self.whole = results[0].whole.astype(self.dtype, casting=options.get("casting", "same_kind"))
            return self
        return results[0] if len(results) == 1 else tuple(results)

    def _aligned_operand(self, value: Any) -> Any:
        if isinstance(value, MaskedElements):
            if not value.plan.selects_same(self.plan):
                _refuse("meet those of another mask")
            return value.whole
        if np.ndim(value) == 0 or value is self.whole:
            return value
        array = as_traced(value)
        if self.plan._aligned_sizes(value_of(array))[self.plan.at] != 1:
            _refuse("meet an array with an element for each of them")
        return TracedArray(self.plan.broadcast_values(value_of(array)))

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        if func not in _REDUCTIONS or args[0] is not self:
            _refuse(f"be given to np.{func.__name__}")
        return _reduce(self, func, *args[1:], **kwargs)

    def __array__(self, *args: Any, **options: Any) -> NoReturn:
        _refuse("become an array of known size")

    def __getattr__(self, name: str) -> Any:
        function = _METHODS.get(name)
        if function is None:
            if name.startswith("__"):
                raise AttributeError(name)
            _refuse(f"give .{name}")
        return lambda *args, **kwargs: _reduce(self, function, *args, **kwargs)

    def __len__(self) -> NoReturn:
        _refuse("be counted", "np.count_nonzero(mask) is the traced number")

    def __iter__(self) -> NoReturn:
        _refuse("be iterated over")

    def __getitem__(self, key: Any) -> NoReturn:
        _refuse("be indexed")

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        _refuse("be written to one by one")

    def __bool__(self) -> NoReturn:
        _refuse("decide a branch")

    def __repr__(self) -> str:
        return f"MaskedElements({self.dtype}, by a traced mask of {self.plan.mask.shape})"


def _refuse(what: str, hint: str = _HINT) -> NoReturn:
    raise TraceError(
        f"the number of elements that a traced mask selects is not known, so they cannot {what}",
        where=_trace.user_line(),
        hint=hint,
    )


def _count_nonzero(array: Any, *, where: Any, **options: Any) -> Any:
    return np.sum(np.not_equal(array, 0), where=where, **options)


_METHODS: dict[str, Callable[..., Any]] = {
    name: NUMPY_ORIGINALS.get(getattr(np, name), getattr(np, name))
    for name in ("sum", "prod", "mean", "std", "var", "any", "all", "max", "min")
}
_GREATEST, _LEAST = [{NUMPY_ORIGINALS.get(f, f) for f in some} for some in ((np.max, np.amax), (np.min, np.amin))]
_COUNT = NUMPY_ORIGINALS.get(np.count_nonzero, np.count_nonzero)
_OTHERS = (np.nansum, np.nanprod, np.nanmean, np.nanstd, np.nanvar, np.count_nonzero)
_REDUCTIONS = {*_METHODS.values(), *_GREATEST, *_LEAST, *[NUMPY_ORIGINALS.get(f, f) for f in _OTHERS]}


def _reduce(elements: MaskedElements, function: Callable[..., Any], axis: Any = None, **options: Any) -> Any:
    if axis is not None:
        options["axis"] = _axes_of_all(elements, axis, options.get("keepdims", False))
    mask = TracedArray(elements.plan.broadcast_mask())
    if function in _GREATEST | _LEAST and "initial" not in options:
        _fail_if_none(mask, function.__name__)
        options["initial"] = _start_value(elements.dtype, function in _GREATEST)
    reduce = _count_nonzero if function is _COUNT else function
    return reduce(elements.whole, where=mask, **options)


def _axes_of_all(elements: MaskedElements, axis: Any, keepdims: Any) -> tuple[int, ...]:
    """Return the axes of the whole array for axes of the masked elements, including those of the mask."""
    plan = elements.plan
    named = normalize_axis_tuple(axis, elements.ndim)
    if plan.at not in named:
        _refuse("be reduced along another axis alone")
    own = range(plan.first, plan.first + plan.mask.shape.rank)
    if keepdims and (len(own) > 1 or plan.at != plan.first):
        _refuse("be reduced with keepdims")
    others = [a for a in range(elements.ndim) if a != plan.at]
    return (*own, *[d for a, d in zip(others, plan.rest, strict=True) if a in named])


def _start_value(dtype: np.dtype[Any], least: bool) -> Any:
    if dtype.kind == "b":
        return not least
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if least else np.iinfo(dtype).max
    return -np.inf if least else np.inf


def _fail_if_none(mask: TracedArray, name: str) -> None:
    trace = require_current()
    where = _trace.user_line()
    none = value_of(np.logical_not(np.any(mask)))
    trace.fail_if(none, trace.constant(0, np.dtype(np.int64)), lambda _: ShapeError(
        f"{name} of no elements: the mask is nowhere true", where=where
    ))  # fmt: skip
