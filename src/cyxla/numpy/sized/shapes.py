"""Shapes of arrays of run-time size: a new shape is split into blocks of dimensions that have equally many elements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import prod
from operator import index
from typing import Any

import numpy as np

from cyxla._native.dispatch import axes_of
from cyxla.errors import ShapeError
from cyxla.numpy.indexing.equal_values import same_value
from cyxla.numpy.indexing.ranges import range_of
from cyxla.numpy.sized.contiguity import in_order, shared
from cyxla.numpy.sized.creation import GREATEST_BOUND, bounded_size
from cyxla.numpy.sized.frames import fail_unless, leave_if, require_equal, resized, wrapped
from cyxla.numpy.sized.table import call, sized
from cyxla.numpy.tracing.arrays.known_array import KnownArray
from cyxla.numpy.tracing.arrays.sized_array import SizedArray, as_size, filled, product, raise_unsupported
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_strong, as_traced, is_traced, value_of
from cyxla.numpy.tracing.results.result_layout import order_letter
from cyxla.numpy.tracing.trace import require_current, user_line
from cyxla.records import dataclass
from cyxla.types import ElementType
from cyxla.xla.hlo.instruction import Instruction
from cyxla.xla.lib import values

_np: Any = np  # its functions dispatch to this package
_RESHAPE_MESSAGE = "cannot reshape array of size {{}} into shape {}"


@dataclass(frozen=True)
class Monomial:
    """Size as a product of a number and of sizes that are known at run time.

    Attributes
    ----------
    factor : int
        Number.
    symbols : tuple of int
        Indices of sizes, in order.
    """

    factor: int = 1
    symbols: tuple[int, ...] = ()

    def __mul__(self, other: Monomial) -> Monomial:
        factor = self.factor * other.factor
        return Monomial(factor, tuple(sorted((*self.symbols, *other.symbols))) if factor else ())

    def divided_by(self, other: Monomial) -> Monomial | None:
        """Return a quotient; None if it is not one of products."""
        if not other.factor or self.factor % other.factor:
            return None
        if not self.factor:
            return self
        rest = Counter(self.symbols)
        rest.subtract(other.symbols)
        if any(n < 0 for n in rest.values()):
            return None
        return Monomial(self.factor // other.factor, tuple(sorted(rest.elements())))


class Symbols:
    """Sizes known at run time, of which equal ones are one."""

    def __init__(self) -> None:
        self._instructions: list[Instruction] = []
        self._sizes: list[TracedArray] = []

    def monomial(self, size: Any) -> Monomial:
        """Return a size as a product."""
        if not is_traced(size):
            return Monomial(index(size))
        ins = value_of(as_traced(size)).instruction
        assert ins is not None
        return self._of(ins, size)

    def _of(self, ins: Instruction, size: Any) -> Monomial:
        if ins.opcode == "constant" and ins.shape.size == 1:
            return Monomial(int(ins.attrs["literal"].array.reshape(())))
        if ins.opcode == "multiply" and ins.shape.size == 1:
            left, right = (self._of(o, None) for o in ins.operands)
            return left * right
        for k, other in enumerate(self._instructions):
            if same_value(ins, other):
                return Monomial(1, (k,))
        self._instructions.append(ins)
        self._sizes.append(size)
        return Monomial(1, (len(self._sizes) - 1,))

    def size(self, monomial: Monomial) -> Any:
        """Return a product as a size; None if one of its sizes has no value of its own."""
        sizes = [self._sizes[k] for k in monomial.symbols]
        return None if any(n is None for n in sizes) else product([monomial.factor, *sizes])


@sized(np.ravel)
def ravel(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Flatten."""
    array, order = arguments["a"], order_letter(arguments.get("order", "C"))
    if order == "F":
        array = _np.transpose(array)
    elif order == "K":
        axes = axes_of(array.padded.memory) if isinstance(array, SizedArray) else None
        if axes is not None:
            if isinstance(array.padded, KnownArray):
                array.padded.become_traced()  # known elements are in an order of their own
            array = _np.transpose(array, axes)
    elif order != "C":
        raise_unsupported(f"be flattened with order={order!r}", "transpose it first")
    flat = _reshape(in_order(array, "C") if isinstance(array, SizedArray) else array, [-1])
    return flat if isinstance(flat, SizedArray) else SizedArray(flat, {0: as_size(as_traced(np.int64(0)), 0)})


@sized(np.reshape)
def reshape(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Change the shape."""
    array, order = arguments["a"], arguments.get("order", "C")
    if not isinstance(array, SizedArray):
        raise_unsupported("be the shape of np.reshape")
    if order not in ("C", "F"):
        raise_unsupported(f"be reshaped with order={order!r}", "transpose it first")
    sizes = arguments["shape"]
    sizes = list(sizes) if isinstance(sizes, (tuple, list)) else [sizes]
    if arguments.get("copy"):
        array = array.copy()
    if order == "F":
        return _np.transpose(_reshape(_np.transpose(array), sizes[::-1]))
    return _reshape(array, sizes)


def _reshape(array: SizedArray, sizes: list[Any]) -> Any:
    sizes = [n if is_traced(n) else index(n) for n in sizes]
    for n in filter(is_traced, sizes):
        if range_of(value_of(as_traced(n, np.int64)))[0] < 0:  # -1 is the size that follows from the others
            leave_if(_np.less(n, 0), "a size of a new shape is negative")
    unknown = [d for d, n in enumerate(sizes) if not is_traced(n) and n == -1]
    if len(unknown) > 1:
        raise ValueError("can only specify one unknown dimension")
    symbols = Symbols()
    source = [symbols.monomial(n) for n in array.shape]
    target = [symbols.monomial(n) for d, n in enumerate(sizes) if d not in unknown]
    if unknown:
        others = prod(target, start=Monomial())
        rest = prod(source, start=Monomial()).divided_by(others)
        size = None if rest is None else symbols.size(rest)
        if not others.factor:
            raise ShapeError(f"cannot reshape {array!r} into shape {_text(sizes)}", where=user_line())
        if rest is None or size is None:
            return _from_flat(array, sizes, unknown[0])
        _fail_if_zero([n for n in sizes if is_traced(n)])
        sizes[unknown[0]] = size
        target.insert(unknown[0], rest)
    blocks = _blocks(source, target)
    return _from_flat(array, sizes, None) if blocks is None else _by_blocks(array, sizes, blocks)


def _text(sizes: Sequence[Any]) -> str:
    return f"({','.join('n' if is_traced(n) else str(n) for n in sizes)})"


def _fail_if_zero(sizes: Sequence[Any]) -> None:
    """Make runs fail in which a size is 0 and another one follows from it."""
    where = user_line()
    message = "cannot reshape array of size 0 into shape with a size that is unknown"
    for n in sizes:
        number = value_of(as_traced(n, np.int64))
        is_zero = value_of(_np.equal(n, 0))
        require_current().fail_if(is_zero, number, lambda _: ShapeError(message, where=where))


Block = tuple[range, range]  # dimensions of the old shape, and those of the new one that have their elements


def _blocks(source: Sequence[Monomial], target: Sequence[Monomial]) -> list[Block] | None:
    """Return the smallest blocks of two shapes with equally many elements for all sizes; None if there are none."""
    blocks, i, j = [], 0, 0
    while i < len(source) or j < len(target):
        a, b, left, right = i, j, Monomial(), Monomial()
        while left != right or (i, j) == (a, b):
            take_left, take_right = right.divided_by(left) is not None, left.divided_by(right) is not None
            if take_left == take_right:
                take_left = take_right = True
            if (take_left and i == len(source)) or (take_right and j == len(target)):
                take_left, take_right = i < len(source), j < len(target)
            if not take_left and not take_right:
                return None
            left, i = (left * source[i], i + 1) if take_left and i < len(source) else (left, i)
            right, j = (right * target[j], j + 1) if take_right and j < len(target) else (right, j)
        blocks.append((range(a, i), range(b, j)))
    return blocks


def _by_blocks(array: SizedArray, sizes: Sequence[Any], blocks: Sequence[Block]) -> Any:
    data, counts, old, axis = array.padded, {}, array.shape, 0
    for before, after in blocks:
        own, new = [old[d] for d in before], [sizes[d] for d in after]
        data, bounds = _convert(data, axis, own, new)
        for k, n in enumerate(new):
            if is_traced(n):
                counts[axis + k] = own[0] if len(own) == len(new) == 1 else as_size(as_traced(n), bounds[k])
        axis += len(new)
    return shared(wrapped(data, counts), array)


def _convert(data: Any, axis: int, own: Sequence[Any], new: Sequence[Any]) -> tuple[Any, list[int]]:
    """Reshape some dimensions from an axis on; return the padded elements and their bounds."""
    dims, end = data.shape, axis + len(own)
    total = prod(dims[axis:end])
    if len(own) == len(new) == 1:
        bound = dims[axis] if is_traced(new[0]) else index(new[0])
        return _cut(data, axis, bound), [bound]
    greatest = [bound_of(n, GREATEST_BOUND) for n in new]
    if 0 in greatest:  # no elements say how large the other sizes may be
        bounds = greatest
        flat = data.reshape((*dims[:axis], total, *dims[end:]))
        return _cut(flat, axis, 0).reshape((*dims[:axis], *bounds, *dims[end:])), bounds
    bounds = [bound_of(n, total) for n in new]
    if _is_prefix(own) and _is_prefix(new):
        rest = prod(n for n in new if not is_traced(n))
        bounds = [total // max(rest, 1) if is_traced(n) else n for n in new]
        _leave_if_larger(new, bounds)
        flat = data.reshape((*dims[:axis], total, *dims[end:]))
        return _cut(flat, axis, prod(bounds)).reshape((*dims[:axis], *bounds, *dims[end:])), bounds
    _leave_if_larger(new, bounds)
    require_current().program.flattened.append(value_of(data).shape)
    source = _positions(dims[axis:end], own, bounds, new)
    flat = data.reshape((*dims[:axis], total, *dims[end:]))
    taken = _np.take(flat, source, axis=axis, mode="clip") if total else resized(flat, axis, prod(bounds))
    return taken.reshape((*dims[:axis], *bounds, *dims[end:])), bounds


def _leave_if_larger(sizes: Sequence[Any], bounds: Sequence[int]) -> None:
    """Leave runs to NumPy in which a size of an array without elements exceeds its bound."""
    for n, bound in zip(sizes, bounds, strict=True):
        if is_traced(n) and bound_of(n, GREATEST_BOUND) > bound:
            leave_if(_np.greater(n, bound), "the new shape of an array without elements is larger than the old one")


def _cut(data: TracedArray, axis: int, bound: int) -> Any:
    """Return padded elements with another bound: a view, if it is not greater."""
    return resized(data, axis, bound) if bound >= data.shape[axis] else data[(*[slice(None)] * axis, slice(0, bound))]


def bound_of(size: Any, greatest: int) -> int:
    """Return the bound of a size, at most another one."""
    if not is_traced(size):
        return index(size)
    return min(max(range_of(value_of(as_traced(size)))[1], 0), greatest)


def _is_prefix(sizes: Sequence[Any]) -> bool:
    """Return True if the elements of a padded array are a prefix of it: its first long dimension alone is padded."""
    long = [n for n in sizes if is_traced(n) or n != 1]
    return not any(map(is_traced, long[1:]))


def _positions(old_bounds: Sequence[int], old: Sequence[Any], bounds: Sequence[int], new: Sequence[Any]) -> Any:
    """Return for each position of a new padded shape that of its element in an old padded shape."""
    builder = require_current().builder
    flat: Any = 0
    stride: Any = 1
    for d in reversed(range(len(bounds))):
        flat = flat + TracedArray(values.iota_along(builder, ElementType.S64, bounds, d)) * stride
        stride = stride * new[d]
    source: Any = 0
    step = 1
    for bound, n in zip(reversed(old_bounds), reversed(old), strict=True):
        size = _np.maximum(n, 1) if is_traced(n) else max(n, 1)
        source = source + flat % size * step
        flat, step = flat // size, step * bound
    return source


def _from_flat(array: SizedArray, sizes: list[Any], unknown: int | None) -> Any:
    """Reshape to sizes whose product is that of the array's sizes in runs that do not fail."""
    total, bound = array.size, array.padded.size
    others = product(n for d, n in enumerate(sizes) if d != unknown)
    message = _RESHAPE_MESSAGE.format(_text(sizes))
    if unknown is None:
        require_equal(as_traced(total), others, message)
    else:
        rows: Any = total // (_np.maximum(others, 1) if is_traced(others) else others)
        if is_traced(others):
            _fail_if_zero([others])
        require_equal(total, as_traced(rows * others), message)
        high = bound if is_traced(others) else bound // others
        sizes[unknown] = as_size(as_traced(rows), high)
    if not any(map(is_traced, sizes)) and prod(sizes) > bound:
        raise ShapeError(f"cannot reshape {array!r} into shape {_text(sizes)}", where=user_line())
    data, bounds = _convert(array.padded, 0, array.shape, sizes)
    counts = {d: as_size(as_traced(n), bounds[d]) for d, n in enumerate(sizes) if is_traced(n)}
    return shared(wrapped(data, counts), array)


# -- other numbers of elements


@sized(np.resize)
def resize(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Change the shape; elements repeat if they are too few, zeros if there are none."""
    shape = arguments["new_shape"]
    shape = shape if isinstance(shape, (tuple, list)) else [shape]
    sizes: list[Any] = [bounded_size(n) if is_traced(n) else index(n) for n in shape]
    if any(n < 0 for n in sizes if not is_traced(n)):
        raise ValueError("all elements of `new_shape` must be non-negative")
    array = arguments["a"] if isinstance(arguments["a"], SizedArray) else as_strong(arguments["a"])
    flat = _np.ravel(array)
    data, count = (flat.padded, flat.count) if isinstance(flat, SizedArray) else (flat, flat.shape[0])
    bound = prod(bound_of(n, GREATEST_BOUND) for n in sizes)
    if data.shape[0]:
        repeated = _np.take(data, _np.remainder(np.arange(bound), _np.maximum(count, 1)), mode="clip")
        repeated = _np.where(_np.greater(count, 0), repeated, _np.zeros(1, data.dtype))
    else:
        repeated = resized(data, 0, bound)
    if not any(map(is_traced, sizes)):
        return repeated.reshape(sizes)
    total = as_size(as_traced(product(sizes)), bound)
    return _np.reshape(SizedArray(TracedArray(value_of(repeated)), {0: total}), sizes)


def _flat_if_no_axis(arguments: dict[str, Any]) -> tuple[SizedArray, int]:
    """Return the array, of known or of run-time size, and the dimension of a function that flattens it by default."""
    array, axis = arguments["a"], arguments.get("axis")
    array = array if isinstance(array, SizedArray) else as_strong(array)
    array = _np.ravel(array) if axis is None else array
    array = array if isinstance(array, SizedArray) else SizedArray(array, {})
    if axis is None:
        return array, 0
    return array, int(np.lib.array_utils.normalize_axis_index(axis, array.ndim))


@sized(np.packbits)
def packbits(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Pack eight bools along an axis into each byte, the last of which is filled with zeros."""
    array, axis = _flat_if_no_axis(arguments)
    data = call(func, {**arguments, "a": filled(array, 0, (axis,)), "axis": axis})
    if axis not in array.counts:
        return array.like(data)
    count = (array.counts[axis] + 7) // 8
    return SizedArray(data, {**array.counts, axis: as_size(as_traced(count), data.shape[axis])})


@sized(np.unpackbits)
def unpackbits(func: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Unpack the bits of bytes along an axis, as many as there are, or a number of them that may be traced."""
    number = arguments.pop("count", None)
    array, axis = _flat_if_no_axis(arguments)
    size = array.shape[axis] * 8
    bits = call(func, {**arguments, "a": filled(array, 0, (axis,)), "axis": axis})
    counts = {d: n for d, n in array.counts.items() if d != axis}
    if number is None:
        length = size
    elif is_traced(number):
        leave_if(_np.less(number, 0), "np.unpackbits of all but a number of bits that is known at run time")
        length = bounded_size(_np.maximum(number, 0))
    else:
        length = index(number) if index(number) >= 0 else size + index(number)
        if index(number) < 0:
            message = "-count larger than number of elements"
            fail_unless(_np.greater_equal(length, 0), size, -index(number), message, ValueError)
    if not is_traced(length):
        return wrapped(resized(bits, axis, length), counts)
    bound = bits.shape[axis] if number is None else bound_of(length, GREATEST_BOUND)
    return SizedArray(resized(bits, axis, bound), {**counts, axis: as_size(as_traced(length), bound)})


__all__ = ["bound_of", "ravel", "reshape"]
