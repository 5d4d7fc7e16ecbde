"""Indexing by traced masks: elements whose number is known at run time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from cyxla.errors import ShapeError
from cyxla.numpy.indexing.basic import SlicePlan
from cyxla.numpy.indexing.equal_values import same_value
from cyxla.numpy.indexing.packing import pack
from cyxla.numpy.indexing.parse import (
    ArrayEntry,
    Entry,
    IntegerEntry,
    MaskEntry,
    NewAxisEntry,
    RunTimeSizeError,
    Selection,
    SliceEntry,
)
from cyxla.numpy.tracing import trace as _trace
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, register_container
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, note_text, value_of
from cyxla.numpy.tracing.registry import NUMPY_ORIGINALS
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.tracing.trace import Trace, require_current
from cyxla.records import dataclass
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla


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
        RunTimeSizeError
            The expression contains another array.
        """
        masks = [e for e in selection.entries if isinstance(e, MaskEntry)]
        if len(masks) != 1 or any(isinstance(e, (ArrayEntry, NewAxisEntry)) for e in selection.entries):
            raise RunTimeSizeError("an index combines a traced mask with other arrays", where=_trace.user_line())
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
        return self._move_block(np.take(values, positions, axis=self.block_dim, mode="clip"))

    def pack(self, part: TracedArray) -> tuple[TracedArray, TracedArray]:
        """Return the masked elements, packed along the dimension of the block, and their number."""
        mask = require_current().capture(self.mask)
        if mask.shape.rank > 1:
            require_current().program.flattened.append(mask.shape)
        rest = self.uncovered_dims
        order = [*range(self.mask_dim, self.mask_dim + mask.shape.rank), *rest]
        sizes = (mask.shape.size, *[self.basic.result[d] for d in rest])
        flat = xla.reshape(xla.transpose(value_of(part), order), sizes)
        (packed,), count = pack(xla.reshape(mask, (mask.shape.size,)), [flat])
        if self.block_dim:
            moved: Any = np.moveaxis(TracedArray(packed), 0, self.block_dim)  # type: ignore[type-var]
            packed = value_of(moved)
        return TracedArray(packed, rank0=Rank0.ARRAY), count

    def expand(self, elements: SizedArray) -> XlaOp:
        """Place the elements of an array of run-time size, one for each masked element, at these elements.

        Runs with another number of elements fail.
        """
        if elements.ndim != len(self.uncovered_dims) + 1 or list(elements.counts) != [self.block_dim]:
            raise ShapeError(
                "an array of run-time size does not match the elements of a mask", where=_trace.user_line()
            )
        mask = TracedArray(require_current().capture(self.mask))
        own, trace, where = np.count_nonzero(mask), require_current(), _trace.user_line()
        is_one = np.equal(elements.count, 1)
        differs: Any = np.logical_and(np.not_equal(own, elements.count), np.logical_not(is_one))
        trace.fail_if(
            value_of(differs),
            value_of(elements.count),
            lambda n: ShapeError(
                f"NumPy boolean array indexing assignment cannot assign {n} input values to the output values where "
                "the mask is true",
                where=where,
            ),
        )
        ranks = np.reshape(np.cumsum(np.ravel(mask), dtype=np.int64) - 1, mask.shape)
        last: Any = np.maximum(elements.count, 1) - 1  # so that nothing is read from the padding
        positions = np.minimum(np.where(is_one, 0, ranks), last)
        return self._move_block(np.take(elements.padded, positions, axis=self.block_dim, mode="clip"))

    def _move_block(self, scattered: Any) -> XlaOp:
        """Return values with the dimensions of the mask in the position of the block as those of the basic part."""
        rank = self.mask.shape.rank
        source, target = (range(d, d + rank) for d in (self.block_dim, self.mask_dim))
        whole: Any = np.broadcast_to(np.moveaxis(scattered, source, target), self.basic.result)
        return value_of(whole)

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


_POWER = NUMPY_ORIGINALS.get(np.power, np.power)  # while tracing, np.power is a substitute


class MaskedElements(SizedArray):
    """Elements selected by a traced mask.

    Ufuncs with numbers, full reductions, and assignment under the same mask are computed of all elements, selected or
    not. For any other operation the selected elements are packed.

    Parameters
    ----------
    plan : MaskPlan
        Position of the elements.
    basic_part : TracedArray
        All elements, selected or not.
    """

    def __init__(self, plan: MaskPlan, basic_part: TracedArray) -> None:
        self._plan, self.basic_part = plan, basic_part
        self._data: TracedArray | None = None  # type: ignore[assignment]
        self._packed: XlaOp | None = None

    @property
    def plan(self) -> MaskPlan | None:
        """Position of the elements; None if they have been written to since they were packed."""
        is_written = self._data is not None and self._data.op is not self._packed
        return None if is_written else self._plan

    @property
    def padded(self) -> Any:
        """Packed elements, padded; they belong to the trace of the mask's elements, also if a loop needs them first."""
        if self._data is None:
            owner = self.basic_part.owner
            if owner is None or not _is_enclosing(owner):
                _trace.raise_escaped()
            with _trace.tracing(owner):
                self._data, count = self._plan.pack(self.basic_part)
            self._counts = {self._plan.block_dim: count}
            self._packed = self._data.op
        return self._data

    @property
    def run_time_dims(self) -> tuple[int, ...]:
        """Dimension of the selected elements."""
        return (self._plan.block_dim,)

    @property
    def counts(self) -> dict[int, Any]:
        """Number of selected elements."""
        assert self.padded is not None  # packs them
        return super().counts

    def like(self, data: Any) -> SizedArray:
        """Return other padded elements of the same sizes."""
        return SizedArray(data, self.counts)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type."""
        return self.basic_part.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self._plan.uncovered_dims) + 1

    def astype(self, dtype: Any, **options: Any) -> SizedArray:
        """Convert to another dtype."""
        if self.plan is None or not options.get("copy", True):
            return super().astype(dtype, **options)
        return MaskedElements(self.plan, self.basic_part.astype(dtype, **options))

    def copy(self, order: str = "C") -> SizedArray:
        """Return a copy."""
        if self.plan is None or (self.ndim > 1 and order == "F"):
            return super().copy(order)
        return MaskedElements(self.plan, self.basic_part)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method == "__call__" and ufunc.signature is None and "where" not in options:
            operands = self._dense_operands(inputs) if self._writes_self(options.get("out")) else None
            if operands is not None:
                operands = list(map(self._with_zeros, operands)) if ufunc is _POWER else operands
                return self._apply(ufunc, operands, dict(options))
        return super().__array_ufunc__(ufunc, method, *inputs, **options)

    def _writes_self(self, out: Any) -> bool:
        """Return True unless a ufunc writes to another array."""
        return out is None or all(o is None or (o is self and self._data is None) for o in out)

    def _dense_operands(self, inputs: Sequence[Any]) -> list[Any] | None:
        """Return the operands of a ufunc for all elements, selected or not; None if there are none."""
        if self.plan is None:
            return None
        operands = []
        for value in inputs:
            if isinstance(value, MaskedElements):
                if value.plan is None or not value.plan.selects_same(self.plan):
                    return None
                operands.append(value._differentiable_part())
            elif not isinstance(value, SizedArray) and np.ndim(value) == 0:
                operands.append(value)
            else:
                return None
        return operands

    def _with_zeros(self, operand: Any) -> Any:
        """Return integers with zeros for those that are not selected, which are no negative exponents."""
        if np.ndim(operand) == 0 or operand.dtype.kind != "i":
            return operand
        return np.where(TracedArray(self._plan.broadcast_mask()), operand, operand.dtype.type(0))

    def _differentiable_part(self) -> TracedArray:
        """Return all elements; in functions to differentiate, ones for those that are not selected.

        Derivatives at numbers such as the zeros that a mask leaves out of logarithms may be infinite or NaN.
        """
        if not require_current().program.gradients or self.dtype.kind not in "fc":
            return self.basic_part
        mask = TracedArray(self._plan.broadcast_mask())
        return cast("TracedArray", np.where(mask, self.basic_part, self.dtype.type(1)))

    def _apply(self, ufunc: np.ufunc, operands: Sequence[Any], options: dict[str, Any]) -> Any:
        in_place = options.pop("out", None) is not None
        outputs = ufunc(*operands, **options)
        results = outputs if isinstance(outputs, tuple) else (outputs,)
        if in_place:
            self.basic_part = results[0].astype(self.dtype, casting=options.get("casting", "same_kind"))
            return self
        masked = tuple([MaskedElements(self._plan, m) for m in results])
        return masked if isinstance(outputs, tuple) else masked[0]

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        if func in _REDUCTIONS and args and args[0] is self and self.plan is not None:
            result = _reduce(self, self.plan, func, *args[1:], **kwargs)
            if result is not NotImplemented:
                return result
        return super().__array_function__(func, types, args, kwargs)

    def __repr__(self) -> str:
        note_text(self)
        return f"MaskedElements({self.dtype}, by a traced mask of {self._plan.mask.shape})"


def _is_enclosing(owner: Trace) -> bool:
    trace = _trace.current()
    while trace is not None and trace is not owner:
        trace = trace.parent
    return trace is owner


register_container(MaskedElements)


def _count_nonzero(array: Any, *, where: Any, **options: Any) -> Any:
    return np.sum(np.not_equal(array, 0), where=where, **options)


_REDUCTION_NAMES = "sum prod mean std var any all max min amax amin count_nonzero nansum nanprod nanmean nanstd nanvar"
_MAX_FUNCTIONS, _MIN_FUNCTIONS = [
    {NUMPY_ORIGINALS.get(f, f) for f in functions} for functions in ((np.max, np.amax), (np.min, np.amin))
]
_COUNT_FUNCTION = NUMPY_ORIGINALS.get(np.count_nonzero, np.count_nonzero)
_REDUCTIONS = {NUMPY_ORIGINALS.get(f, f) for f in map(partial(getattr, np), _REDUCTION_NAMES.split())}
_UNSUPPORTED_KEYWORDS = ("where", "out")  # keywords with which a reduction is one of packed elements


def _reduce(
    elements: MaskedElements, plan: MaskPlan, function: Callable[..., Any], axis: Any = None, *rest: Any, **options: Any
) -> Any:
    if rest or any(name in options for name in _UNSUPPORTED_KEYWORDS):
        return NotImplemented
    if axis is not None:
        axes = _axes_of_basic_part(elements, plan, axis, options.get("keepdims", False))
        if axes is None:
            return NotImplemented
        options["axis"] = axes
    elif options.get("keepdims") not in (None, False):
        return NotImplemented
    mask = TracedArray(plan.broadcast_mask())
    if function in _MAX_FUNCTIONS | _MIN_FUNCTIONS and "initial" not in options:
        if elements.dtype.kind == "c":
            return NotImplemented
        _fail_if_empty(mask, "maximum" if function in _MAX_FUNCTIONS else "minimum")
        options["initial"] = _start_value(elements.dtype, function in _MAX_FUNCTIONS)
    reduce = _count_nonzero if function is _COUNT_FUNCTION else function
    return reduce(elements.basic_part, where=mask, **options)


def _axes_of_basic_part(elements: MaskedElements, plan: MaskPlan, axis: Any, keepdims: Any) -> tuple[int, ...] | None:
    """Return the axes of the whole array for axes of the masked elements, including those of the mask."""
    axes = normalize_axis_tuple(axis, elements.ndim)
    mask_dims = range(plan.mask_dim, plan.mask_dim + plan.mask.shape.rank)
    if plan.block_dim not in axes or (keepdims and (len(mask_dims) > 1 or plan.block_dim != plan.mask_dim)):
        return None
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
        f"zero-size array to reduction operation {name} which has no identity", where=where
    ))  # fmt: skip
