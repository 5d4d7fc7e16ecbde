"""Einstein summation: pairwise products in the order that NumPy finds cheapest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import index
from typing import Any

import numpy as np

from cyxla.errors import DTypeError
from cyxla.numpy.functions.products.named_axes import Label, NamedArray, dot_order, drop_broadcast_axes, product
from cyxla.numpy.tracing.arrays.memory_layout import Memory, common_axes, dense, memory_of
from cyxla.numpy.tracing.arrays.traced_array import TracedArray, as_traced, traced, value_of
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.promotion import Dtype, result_type
from cyxla.numpy.tracing.results.result_layout import order_letter, set_order
from cyxla.numpy.tracing.results.zero_dim import Rank0
from cyxla.numpy.ufuncs.apply import to_outputs
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import iota_along

_PATH: Any = np.einsum_path
_EINSUM: Any = np.einsum
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@implements(np.einsum_path)
def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: bool = False) -> Any:
    """Return NumPy's own path, which depends on shapes alone."""
    return _PATH(*map(_shape_only, operands), optimize=optimize, einsum_call=einsum_call)


def _shape_only(value: Any) -> Any:
    """Return an unallocated array of the shape of a traced one."""
    return np.broadcast_to(np.zeros((), value.dtype), value.shape) if isinstance(value, TracedArray) else value


@implements(np.einsum)
def einsum(
    *operands: Any, out: Any = None, optimize: Any = False, dtype: Any = None, casting: Any = "safe", order: Any = "K"
) -> Any:
    """Sum products over the labels that are not in the result."""
    subscripts, values = split_operands(operands)
    arrays = [as_traced(v) for v in values]
    if not optimize:
        _check_call(subscripts, arrays, out, casting, order)
    path = _contraction_path(subscripts, arrays, optimize)
    inputs, result = _labels(subscripts, [a.ndim for a in arrays])
    if len(arrays) == 1 and out is None and set(inputs[0]) == set(result):
        return _view_operand(arrays[0], inputs[0], result)
    compute_dtype = _compute_dtype(arrays, out, dtype, casting, bool(optimize))
    terms = [
        _take_diagonals(convert(value_of(a), compute_dtype), operand_labels)
        for a, operand_labels in zip(arrays, inputs, strict=True)
    ]
    contracted = _contract(terms, result, path)
    is_checked = dtype is not None or not optimize or casting == "unsafe"
    value = traced(contracted.op)
    if out is None:
        _set_layout(value, order, arrays, inputs, result)
    output = to_outputs([value], out, True, "unsafe" if is_checked else "same_kind", "einsum")
    if out is None and optimize and not result:
        output.rank0 = _rank0_of_last(subscripts, arrays, optimize)
    return output


def _set_layout(
    array: TracedArray, order: Any, arrays: Sequence[TracedArray], inputs: Sequence[tuple[Label, ...]],
    result: tuple[Label, ...],
) -> None:  # fmt: skip
    """Set NumPy's layout of a result: in ``order="K"`` by the strides of all labels, summed ones included."""
    if order_letter(order) != "K" or array.ndim < 2:
        set_order(array, order, arrays)
    elif not all(a.contiguous for a in arrays):
        labels = (*result, *dict.fromkeys(n for operand_labels in inputs for n in operand_labels if n not in result))
        axes = common_axes(
            [_label_layout(a, operand_labels, labels) for a, operand_labels in zip(arrays, inputs, strict=True)],
            len(labels),
        )
        if axes is not None:
            array.set_memory(dense(array.shape, array.dtype, [d for d in axes if d < array.ndim]))


def _label_layout(array: TracedArray, operand_labels: tuple[Label, ...], labels: Sequence[Label]) -> Memory:
    """Return the layout of an operand with a dimension for each label, of size 1 for those that it does not have."""
    named = {n: (s, step) for n, s, step in zip(operand_labels, array.shape, array.memory.strides, strict=True)}
    sizes, steps = zip(*[named.get(n, (1, 0)) for n in labels], strict=True)
    return memory_of(sizes, array.dtype, steps)


def _rank0_of_last(subscripts: str, arrays: Sequence[TracedArray], optimize: Any) -> Rank0:
    """Return the kind of a 0-d result: an array if the last step multiplies two operands with a common label."""
    steps = _PATH(subscripts, *map(_shape_only, arrays), optimize=optimize, einsum_call=True)[1]
    terms = steps[-1][1].partition("->")[0].split(",")
    return Rank0.ARRAY if len(terms) == 2 and set(terms[0]) & set(terms[1]) else Rank0.SCALAR


def _check_call(subscripts: str, arrays: Sequence[TracedArray], out: Any, casting: Any, order: Any) -> None:
    """Let NumPy check a call on arrays without elements."""
    empty = [np.empty((0,) * a.ndim) for a in arrays]
    empty_out = None if out is None else np.empty((0,) * np.ndim(out))
    _EINSUM(subscripts, *empty, out=empty_out, casting=casting, order=order)


def _compute_dtype(arrays: Sequence[TracedArray], out: Any, dtype: Any, casting: Any, pairwise: bool) -> Dtype:
    """Return the dtype of all products and sums; that of ``out=`` takes part unless pairs are contracted."""
    dtypes = [a.dtype for a in arrays]
    uses_out = isinstance(out, TracedArray) and not pairwise
    compute_dtype = result_type(*dtypes, *([out.dtype] if uses_out else [])) if dtype is None else np.dtype(dtype)
    casts = [
        *((d, compute_dtype) for d in dtypes),
        *([(out.dtype, compute_dtype), (compute_dtype, out.dtype)] if uses_out else []),
    ]
    for source, target in casts:
        if not np.can_cast(source, target, casting):
            raise DTypeError(f"einsum: cannot cast from {source} to {target} with casting={casting!r}")
    return compute_dtype


def split_operands(operands: Sequence[Any]) -> tuple[str, Sequence[Any]]:
    """Return subscripts as text, and arrays; lists of numbers after each array are subscripts, too."""
    if not operands:
        raise ValueError(
            "must specify the einstein sum subscripts string and at least one operand, or at least one operand and its "
            "corresponding subscripts list"
        )
    if isinstance(operands[0], str):
        return operands[0].replace(" ", ""), operands[1:]
    if len(operands) == 1:
        raise ValueError("must provide at least an operand and a subscripts list to einsum")
    texts = [_subscript_text(part) for part in operands[1::2]]
    text = ",".join(texts[: len(operands) // 2])
    if len(operands) % 2:
        text += "->" + _subscript_text(operands[-1])
        return text, operands[:-1:2]
    return text, operands[::2]


def _subscript_text(part: Iterable[Any]) -> str:
    return "".join("..." if p is Ellipsis else _letter(p) for p in part)


def _letter(part: Any) -> str:
    try:
        number = index(part)
    except TypeError:
        raise TypeError("each subscript must be either an integer or an ellipsis") from None
    if not 0 <= number < len(_LETTERS):
        raise ValueError(f"subscript is not within the valid range [0, {len(_LETTERS)})")
    return _LETTERS[number]


def _contraction_path(subscripts: str, arrays: Sequence[TracedArray], optimize: Any) -> list[tuple[int, ...]]:
    """Return the operands to contract in each step; NumPy also checks the subscripts."""
    strategy = "greedy" if isinstance(optimize, bool) else optimize
    path = _PATH(subscripts, *map(_shape_only, arrays), optimize=strategy)[0]
    return [tuple(step) for step in path[1:]]


def _labels(subscripts: str, ranks: Sequence[int]) -> tuple[list[tuple[Label, ...]], tuple[Label, ...]]:
    """Return the labels of operands and result; dimensions of an ellipsis are labelled by distance from its end."""
    operand_text, arrow, result = subscripts.partition("->")
    inputs = [_term(text, rank) for text, rank in zip(operand_text.split(","), ranks, strict=True)]
    ellipsis_labels = sorted(
        {n for operand_labels in inputs for n in operand_labels if isinstance(n, int)}, reverse=True
    )
    if not arrow:
        counts = Counter(n for operand_labels in inputs for n in operand_labels if isinstance(n, str))
        return inputs, (*ellipsis_labels, *sorted(n for n, count in counts.items() if count == 1))
    head, dots, tail = result.partition("...")
    return inputs, (*head, *(ellipsis_labels if dots else ()), *tail)


def _term(text: str, rank: int) -> tuple[Label, ...]:
    head, _, tail = text.partition("...")
    return (*head, *range(rank - len(head) - len(tail), 0, -1), *tail)


def _view_operand(array: TracedArray, labels: tuple[Label, ...], result: tuple[Label, ...]) -> TracedArray:
    """Return a view of an operand: NumPy does so if nothing is summed, whatever dtype is requested."""
    sizes = array.shape
    repeated = [(labels.index(n), k) for k, n in enumerate(labels) if labels.index(n) < k]

    def write(base: XlaOp, value: XlaOp) -> XlaOp:
        expanded = xla.broadcast_in_dim(*_broadcast_arguments(value, result, labels, sizes))
        for pair in repeated:
            on_diagonal = xla.eq(*(iota_along(base.builder, ElementType.S32, sizes, d) for d in pair))
            expanded = xla.select(on_diagonal, expanded, base)
        return expanded

    steps = [sum(s for s, n in zip(array.memory.strides, labels, strict=True) if n == name) for name in result]
    sizes_of_result = [sizes[labels.index(name)] for name in result]
    memory = memory_of(sizes_of_result, array.dtype, steps)
    return array.make_view(lambda base: _take_diagonals(base, labels).transpose(result).op, write, memory)


def _broadcast_arguments(
    value: XlaOp, names: tuple[Label, ...], labels: tuple[Label, ...], sizes: Sequence[int]
) -> tuple[XlaOp, Sequence[int], list[int]]:
    """Transpose to an order of labels; return the value, and the broadcast to repeated labels."""
    once = tuple(dict.fromkeys(labels))
    return NamedArray(value, names).transpose(once).op, sizes, [labels.index(n) for n in once]


def _take_diagonals(op: XlaOp, labels: tuple[Label, ...]) -> NamedArray:
    """Replace repeated labels by diagonals."""
    while repeated := [n for n, count in Counter(labels).items() if count > 1]:
        first, second = [k for k, n in enumerate(labels) if n == repeated[0]][:2]
        size, other = op.shape.dims[first], op.shape.dims[second]
        if size != other:
            raise ValueError(f"einsum: label {repeated[0]!r} stands for dimensions of sizes {size} and {other}")
        rest = [k for k in range(len(labels)) if k not in (first, second)]
        sizes = [op.shape.dims[k] for k in rest]
        flat = xla.reshape(xla.transpose(op, [*rest, first, second]), (*sizes, size * size))
        op = xla.slice_in_dim(flat, 0, size * size, size + 1, len(rest))
        labels = (*[labels[k] for k in rest], repeated[0])
    return NamedArray(op, labels)


def _contract(
    terms: Sequence[NamedArray], result_labels: tuple[Label, ...], path: Sequence[tuple[int, ...]]
) -> NamedArray:
    remaining, sizes = drop_broadcast_axes(terms)
    for step in path:
        parts = [remaining.pop(k) for k in sorted(step, reverse=True)][::-1]
        output = parts[0]
        for k, part in enumerate(parts[1:], 1):
            rest = [*parts[k + 1 :], *remaining]
            needed = dict.fromkeys((*result_labels, *(n for t in rest for n in t.labels)))
            output = product(output, part, dot_order(output, part, needed) if rest else result_labels)
        remaining.append(output)
    total = remaining[0].sum_over([n for n in remaining[0].labels if n not in result_labels])
    return total.transpose([n for n in result_labels if n in total.labels]).broadcast(result_labels, sizes)
