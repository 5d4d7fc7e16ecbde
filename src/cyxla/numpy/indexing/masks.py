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
_MAX_COMPARED = 10_000  # greatest number of instructions that a comparison of two masks visits


@dataclass(frozen=True)
class MaskPlan:
    """Position of masked elements in an array.

    Attributes
    ----------
    basic : SlicePlan
        Basic indexing of the other axes; the mask's axes are whole.
    mask : XlaOp
        Traced mask.
    mask_dim : int
        First dimension of the basic part that the mask covers.
    block_dim : int
        Dimension of the result along which the elements are.
    """

    basic: SlicePlan
    mask: XlaOp
    mask_dim: int
    block_dim: int

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
                "an index cannot combine a traced mask with other arrays or new axes",
                where=_trace.user_line(),
                hint=_HINT,
            )
        basic_entries: list[Entry] = []
        mask_dim, axis = 0, 0
        for entry in selection.entries:
            if isinstance(entry, MaskEntry):
                mask_dim = sum(isinstance(e, SliceEntry) for e in basic_entries)
                rank = entry.where.shape.rank
                basic_entries += [SliceEntry(0, n) for n in sizes[axis : axis + rank]]
                axis += rank
            else:
                basic_entries.append(entry)
                axis += 1
        block = next(k for k, e in enumerate(selection.entries) if isinstance(e, (MaskEntry, IntegerEntry)))
        before = sum(isinstance(e, SliceEntry) for e in selection.entries[:block])
        return MaskPlan(SlicePlan.of(basic_entries), masks[0].where, mask_dim, 0 if selection.separated else before)

    @property
    def uncovered_dims(self) -> list[int]:
        """Dimensions of the basic part that the mask does not cover."""
        mask_dims = range(self.mask_dim, self.mask_dim + self.mask.shape.rank)
        return [d for d in range(len(self.basic.result)) if d not in mask_dims]

    def broadcast_mask(self) -> XlaOp:
        """Broadcast the mask to the shape of the basic part."""
        mask = require_current().capture(self.mask)
        dims = range(self.mask_dim, self.mask_dim + mask.shape.rank)
        return xla.broadcast_in_dim(mask, self.basic.result, list(dims))

    def selects_same(self, other: MaskPlan) -> bool:
        """Return True if another plan selects the same indices of arrays of the same shape."""
        own_mask, other_mask = (p.mask.instruction for p in (self, other))
        assert own_mask is not None
        assert other_mask is not None
        if (self.basic.result, self.mask_dim, self.block_dim) != (other.basic.result, other.mask_dim, other.block_dim):
            return False
        return same_value(own_mask, other_mask)

    def broadcast_values(self, op: XlaOp) -> XlaOp:
        """Expand a value for the masked elements, or one value for each of them, to the shape of the basic part.

        Raises
        ------
        ShapeError
            The value cannot be broadcast.
        """
        sizes = [self.basic.result[d] for d in self.uncovered_dims]
        dims, block_dim = self._aligned_sizes(op), self.block_dim
        if dims[block_dim] != 1:
            return self._scatter_values(op, dims)
        flat = xla.reshape(op, [n for d, n in enumerate(dims) if d != block_dim])
        broadcast_dims = [k for k, n in enumerate(flat.shape.dims) if n != sizes[k]]
        if broadcast_dims and any(flat.shape.dims[k] != 1 for k in broadcast_dims):
            raise _shape_error(op.shape.dims, self)
        return xla.broadcast_in_dim(flat, self.basic.result, self.uncovered_dims)

    def _aligned_sizes(self, op: XlaOp) -> list[int]:
        rank = len(self.uncovered_dims) + 1
        sizes = list(op.shape.dims)
        while len(sizes) > rank and sizes[0] == 1:
            sizes = sizes[1:]
        if len(sizes) > rank:
            raise _shape_error(op.shape.dims, self)
        return [1] * (rank - len(sizes)) + sizes

    def _scatter_values(self, op: XlaOp, dims: Sequence[int]) -> XlaOp:
        """Place values, one for each masked element, at these elements; runs with another number of elements fail."""
        count = dims[self.block_dim]
        mask = TracedArray(require_current().capture(self.mask))
        ranks: Any = np.cumsum(np.ravel(mask), dtype=np.int64)
        total = np.count_nonzero(mask)
        mismatch = value_of(np.not_equal(total, count))
        where = _trace.user_line()
        require_current().fail_if(mismatch, value_of(as_traced(total)), lambda n: ShapeError(
            f"cannot assign {count} values to the {n} elements where the mask is true", where=where
        ))  # fmt: skip
        values: Any = TracedArray(xla.reshape(op, dims))
        if count == 0:
            values, count = np.zeros([1 if d == self.block_dim else n for d, n in enumerate(dims)], values.dtype), 1
        positions = np.reshape(ranks - 1, mask.shape)
        scattered = np.take(values, positions, axis=self.block_dim, mode="clip")
        rank = mask.ndim
        scattered = np.moveaxis(
            scattered, range(self.block_dim, self.block_dim + rank), range(self.mask_dim, self.mask_dim + rank)
        )
        return value_of(np.broadcast_to(scattered, self.basic.result))  # type: ignore[arg-type]

    def write(self, op: XlaOp, values: XlaOp) -> XlaOp:
        """Return an array with the masked elements replaced by the corresponding elements of `values`."""
        return self.basic.write(
            op, xla.reshape(xla.select(self.broadcast_mask(), values, self.basic.read(op)), self.basic.result)
        )


def _shape_error(shape: Sequence[int], plan: MaskPlan) -> ShapeError:
    sizes = [str(plan.basic.result[d]) for d in plan.uncovered_dims]
    sizes.insert(plan.block_dim, "n")
    return ShapeError(
        f"an array of shape {tuple(shape)} does not match the ({', '.join(sizes)}) elements where the mask is true",
        where=_trace.user_line(),
    )


def same_value(first: Instruction, second: Instruction) -> bool:
    """Return True if two instructions compute the same function of the same values."""
    pending, visited = [(first, second)], set()
    while pending:
        a, b = pending.pop()
        if a is b or (a, b) in visited:
            continue
        visited.add((a, b))
        is_same_operation = a.opcode == b.opcode and a.shape == b.shape and len(a.operands) == len(b.operands)
        if not is_same_operation or a.opcode in _NEVER_EQUAL or list(a.called) != list(b.called) or a.attrs != b.attrs:
            return False
        if len(visited) > _MAX_COMPARED:
            return False
        pending += zip(a.operands, b.operands, strict=True)
    return True


_NEVER_EQUAL = ("parameter", "rng", "rng-bit-generator", "custom-call", "infeed")


class MaskedElements(NDArrayOperatorsMixin):
    """Elements selected by a traced mask: an array of unknown size.

    Ufuncs with numbers, full reductions, and assignment under the same mask can be traced.

    Parameters
    ----------
    plan : MaskPlan
        Position of the elements.
    basic_part : TracedArray
        All elements, selected or not.
    """

    __array_priority__ = 2000.0

    def __init__(self, plan: MaskPlan, basic_part: TracedArray) -> None:
        self.plan, self.basic_part = plan, basic_part

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""
        return self.basic_part.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.plan.uncovered_dims) + 1

    @property
    def size(self) -> Any:
        """Number of elements, a traced integer."""
        return np.count_nonzero(TracedArray(self.plan.broadcast_mask()))

    def astype(self, dtype: Any, **options: Any) -> MaskedElements:
        """Convert to another dtype."""
        return MaskedElements(self.plan, self.basic_part.astype(dtype, **options))

    def copy(self) -> MaskedElements:
        """Return the same elements."""
        return MaskedElements(self.plan, self.basic_part)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        out = options.pop("out", (None,))
        if method != "__call__" or ufunc.signature is not None or any(o is not None and o is not self for o in out):
            _raise_unknown_size(f"{ufunc.__name__}.{method}")
        outputs = ufunc(*[self._aligned_operand(x) for x in inputs], **options)
        results = [MaskedElements(self.plan, m) for m in (outputs if isinstance(outputs, tuple) else (outputs,))]
        if out[0] is self:
            self.basic_part = results[0].basic_part.astype(self.dtype, casting=options.get("casting", "same_kind"))
            return self
        return results[0] if len(results) == 1 else tuple(results)

    def _aligned_operand(self, value: Any) -> Any:
        if isinstance(value, MaskedElements):
            if not value.plan.selects_same(self.plan):
                _raise_unknown_size("be combined with those of another mask")
            return value.basic_part
        if np.ndim(value) == 0 or value is self.basic_part:
            return value
        array = as_traced(value)
        if self.plan._aligned_sizes(value_of(array))[self.plan.block_dim] != 1:
            _raise_unknown_size("be combined with an array that has an element for each of them")
        return TracedArray(self.plan.broadcast_values(value_of(array)))

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        if func not in _REDUCTIONS or args[0] is not self:
            _raise_unknown_size(f"be passed to np.{func.__name__}")
        return _reduce(self, func, *args[1:], **kwargs)

    def __array__(self, *args: Any, **options: Any) -> NoReturn:
        _raise_unknown_size("be converted to an array")

    def __getattr__(self, name: str) -> Any:
        function = _METHODS.get(name)
        if function is None:
            if name.startswith("__"):
                raise AttributeError(name)
            _raise_unknown_size(f"have .{name}")
        return lambda *args, **kwargs: _reduce(self, function, *args, **kwargs)

    def __len__(self) -> NoReturn:
        _raise_unknown_size("have a length", "np.count_nonzero(mask) is their number, traced")

    def __iter__(self) -> NoReturn:
        _raise_unknown_size("be iterated over")

    def __getitem__(self, key: Any) -> NoReturn:
        _raise_unknown_size("be indexed")

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        _raise_unknown_size("be assigned by index")

    def __bool__(self) -> NoReturn:
        _raise_unknown_size("be used as a condition")

    def __repr__(self) -> str:
        return f"MaskedElements({self.dtype}, by a traced mask of {self.plan.mask.shape})"


def _raise_unknown_size(operation: str, hint: str = _HINT) -> NoReturn:
    raise TraceError(
        f"the number of elements that a traced mask selects is not known, so they cannot {operation}",
        where=_trace.user_line(),
        hint=hint,
    )


def _count_nonzero(array: Any, *, where: Any, **options: Any) -> Any:
    return np.sum(np.not_equal(array, 0), where=where, **options)


_METHODS: dict[str, Callable[..., Any]] = {
    name: NUMPY_ORIGINALS.get(getattr(np, name), getattr(np, name))
    for name in ("sum", "prod", "mean", "std", "var", "any", "all", "max", "min")
}
_MAX_FUNCTIONS, _MIN_FUNCTIONS = [
    {NUMPY_ORIGINALS.get(f, f) for f in functions} for functions in ((np.max, np.amax), (np.min, np.amin))
]
_COUNT_FUNCTION = NUMPY_ORIGINALS.get(np.count_nonzero, np.count_nonzero)
_OTHER_REDUCTIONS = (np.nansum, np.nanprod, np.nanmean, np.nanstd, np.nanvar, np.count_nonzero)
_REDUCTIONS = {
    *_METHODS.values(),
    *_MAX_FUNCTIONS,
    *_MIN_FUNCTIONS,
    *[NUMPY_ORIGINALS.get(f, f) for f in _OTHER_REDUCTIONS],
}


def _reduce(elements: MaskedElements, function: Callable[..., Any], axis: Any = None, **options: Any) -> Any:
    if axis is not None:
        options["axis"] = _axes_of_basic_part(elements, axis, options.get("keepdims", False))
    mask = TracedArray(elements.plan.broadcast_mask())
    if function in _MAX_FUNCTIONS | _MIN_FUNCTIONS and "initial" not in options:
        _fail_if_empty(mask, function.__name__)
        options["initial"] = _start_value(elements.dtype, function in _MAX_FUNCTIONS)
    reduce = _count_nonzero if function is _COUNT_FUNCTION else function
    return reduce(elements.basic_part, where=mask, **options)


def _axes_of_basic_part(elements: MaskedElements, axis: Any, keepdims: Any) -> tuple[int, ...]:
    """Return the axes of the whole array for axes of the masked elements, including those of the mask."""
    plan = elements.plan
    axes = normalize_axis_tuple(axis, elements.ndim)
    if plan.block_dim not in axes:
        _raise_unknown_size("be reduced along other axes only")
    mask_dims = range(plan.mask_dim, plan.mask_dim + plan.mask.shape.rank)
    if keepdims and (len(mask_dims) > 1 or plan.block_dim != plan.mask_dim):
        _raise_unknown_size("be reduced with keepdims")
    others = [a for a in range(elements.ndim) if a != plan.block_dim]
    return (*mask_dims, *[d for a, d in zip(others, plan.uncovered_dims, strict=True) if a in axes])


def _start_value(dtype: np.dtype[Any], is_max: bool) -> Any:
    if dtype.kind == "b":
        return not is_max
    if dtype.kind in "iu":
        return np.iinfo(dtype).min if is_max else np.iinfo(dtype).max
    return -np.inf if is_max else np.inf


def _fail_if_empty(mask: TracedArray, name: str) -> None:
    trace = require_current()
    where = _trace.user_line()
    is_empty = value_of(np.logical_not(np.any(mask)))
    trace.fail_if(is_empty, trace.constant(0, np.dtype(np.int64)), lambda _: ShapeError(
        f"{name} of no elements: the mask is false everywhere", where=where
    ))  # fmt: skip
