"""Built-in custom-call targets other than LAPACK and compactions: annotations, expanded operations, sparse products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cyxla.errors import UnimplementedError
from cyxla.xla.evaluator.custom_calls import options_of, register_custom_call
from cyxla.xla.evaluator.evaluation import Evaluation
from cyxla.xla.evaluator.numerics.apply_elementwise import apply_named
from cyxla.xla.evaluator.numerics.conversion import convert_array
from cyxla.xla.evaluator.numerics.products import accumulator
from cyxla.xla.evaluator.ops.convolution import convolve
from cyxla.xla.evaluator.ops.sorting import top
from cyxla.xla.evaluator.targets import compaction as _compaction  # which registers its targets
from cyxla.xla.evaluator.targets import lapack as _lapack  # which registers LAPACK's
from cyxla.xla.evaluator.targets import printing as _printing  # which registers its target
from cyxla.xla.evaluator.values import Array, Value, array_of, cut_to_common, fits, zero_extended
from cyxla.xla.hlo.attributes import WindowDim
from cyxla.xla.hlo.instruction import Instruction

_ = _compaction, _lapack, _printing

# Targets that annotate a value for a compiler that places or partitions it.
IDENTITIES = (
    "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "LayoutConstraint", "MoveToHost", "MoveToDevice", "Pin",
    "Unpin", "PinToDevice", "PinToDeviceSram", "annotate_device_placement", "xla.sdy.FuncResultSharding",
    "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape", "xla.sdy.PropagationBarrier",
    "AssumeGatherIndicesInBound", "AssumeScatterIndicesInBound",
)  # fmt: skip


def _identity(ev: Evaluation, ins: Instruction, *operands: Value) -> Value:
    value = operands[0] if len(operands) == 1 else tuple(operands)
    if isinstance(value, np.ndarray) and not fits(value.shape, ins.shape):
        raise UnimplementedError(f"{ins.attrs['custom_call_target']} to another shape needs more than one partition")
    return value


for _name in IDENTITIES:
    register_custom_call(_name, _identity)


# Targets of an operation on each element, in the dialects mhlo and chlo.
ELEMENTWISE = ("erf", "tan", "asin", "acos", "atanh", "asinh", "acosh", "sinh", "cosh")


def _elementwise(opcode: str) -> None:
    def evaluate(ev: Evaluation, ins: Instruction, *operands: Value) -> Value:
        return apply_named(opcode, ins.shape.dtype, *(array_of(o) for o in operands))

    for dialect in ("mhlo", "chlo"):
        register_custom_call(f"{dialect}.{opcode}", evaluate)


for _name in ELEMENTWISE:
    _elementwise(_name)


@register_custom_call("SliceToDynamic")
def _slice_to_dynamic(ev: Evaluation, ins: Instruction, x: Value, *sizes: Value) -> Value:
    """Return the elements of a padded array below sizes, which are clamped to the bounds."""
    array, shape = array_of(x), ins.shape
    present = [
        max(0, min(int(array_of(n)), bound)) if is_dynamic else bound
        for n, bound, is_dynamic in zip(sizes, shape.dims, shape.dynamic, strict=True)
    ]
    return array[tuple(map(slice, present))]


@register_custom_call("PadToStatic")
def _pad_to_static(ev: Evaluation, ins: Instruction, x: Value) -> Value:
    """Return an array with zeros up to its bounds, and all its sizes."""
    array = array_of(x)
    padded = zero_extended(array, range(array.ndim), ins.operands[0].shape)
    return (padded, *(np.array(n, np.int32) for n in array.shape))


@register_custom_call("DynamicConvolutionForward")
def _dynamic_convolution_forward(ev: Evaluation, ins: Instruction, x: Value, kernel: Value) -> Value:
    """Convolve; with PADDING_SAME, dimensions are padded for their present sizes."""
    array, a = array_of(x), ins.attrs
    labels = a["dim_labels"]
    window = [
        same_padding(w, array.shape[d]) if a["padding_type"] == "PADDING_SAME" else w
        for w, d in zip(a["window"] or (), labels.input_spatial, strict=True)
    ]
    left, right = cut_to_common(array, array_of(kernel), [(labels.input_feature, labels.kernel_input_feature)])
    return convolve(left, right, tuple(window), labels, ins.shape.dtype)


@register_custom_call("TopK")
@register_custom_call("mhlo.topk")
def _top_k(ev: Evaluation, ins: Instruction, x: Value) -> Value:
    """Return values and indices of the greatest (by comparator or option, least) elements of the last dimension."""
    direction = ins.called[0].root.attrs.get("direction", "GT") if ins.called else "GT"
    largest = bool(options_of(ins).get("largest", direction in ("GT", "GE")))
    values, indices = top(array_of(x), ins.shape.elements[0].dims[-1], largest=largest)
    return values, convert_array(indices, ins.shape.elements[1].dtype)


def same_padding(window: WindowDim, size: int) -> WindowDim:
    """Return a window with padding for one position per stride, as TensorFlow's SAME."""
    reach = (window.size - 1) * window.window_dilation + 1
    count = -(-size // window.stride)
    total = max((count - 1) * window.stride + reach - size, 0)
    return window._replace(padding_low=total // 2, padding_high=total - total // 2)


# --- factorisations that XLA expands ---


def _apply_to_each(ins: Instruction, function: Callable[..., tuple[Any, ...]], *operands: Value) -> Value:
    """Apply a function of wide matrices over the leading dimensions of the operands; the first operand is a matrix."""
    arrays = [_wide(array_of(o)) for o in operands]
    leaves = ins.shape.leaves()
    results = [np.zeros(leaf.dims, np.complex128 if leaf.dtype.is_complex else np.float64) for leaf in leaves]
    if arrays[0].size:
        for at in np.ndindex(arrays[0].shape[:-2]):
            for result, part in zip(results, function(*(a[at] for a in arrays)), strict=True):
                result[at] = part
    rounded = tuple(convert_array(r, leaf.dtype) for r, leaf in zip(results, leaves, strict=True))
    return rounded if ins.shape.is_tuple else rounded[0]


def _wide(x: Array) -> Array:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _lapack_of(a: Array, real: str, complex_: str) -> Any:
    from scipy.linalg import lapack

    return getattr(lapack, "z" + complex_ if a.dtype.kind == "c" else "d" + real)


@register_custom_call("Qr")
def _qr(ev: Evaluation, ins: Instruction, a: Value) -> Value:
    """Return (R above the Householder vectors, their factors)."""
    return _apply_to_each(ins, lambda m: _lapack_of(m, "geqrf", "geqrf")(m)[:2], a)


@register_custom_call("ProductOfElementaryHouseholderReflectors")
def _householder_product(ev: Evaluation, ins: Instruction, a: Value, taus: Value) -> Value:
    """Return the first columns of a product of reflectors."""
    return _apply_to_each(ins, lambda m, t: _lapack_of(m, "orgqr", "ungqr")(m, t)[:1], a, taus)


@register_custom_call("LuDecomposition")
def _lu(ev: Evaluation, ins: Instruction, a: Value) -> Value:
    """Return (L and U, pivots, permutation), counted from 0."""

    def factor(m: Array) -> tuple[Any, ...]:
        lu, pivots, _ = _lapack_of(m, "getrf", "getrf")(m)
        order = np.arange(m.shape[0])
        for i, p in enumerate(pivots):
            order[[i, p]] = order[[p, i]]
        return lu, pivots, order

    return _apply_to_each(ins, factor, a)


@register_custom_call("Eigh")
def _eigh(ev: Evaluation, ins: Instruction, a: Value) -> Value:
    """Return (eigenvectors, eigenvalues in ascending order); the configuration begins with 1 for the lower triangle."""
    lower = not str(ins.extras.get("backend_config", "1")).strip('" ').startswith("0")

    def factor(m: Array) -> tuple[Any, ...]:
        if not np.isfinite(m).all():
            return np.nan, np.nan
        values, vectors, info = _lapack_of(m, "syevd", "heevd")(m, 1, int(lower))
        return (vectors, values) if info == 0 else (np.nan, np.nan)

    return _apply_to_each(ins, factor, a)


@register_custom_call("cpu_csr_sparse_dense_ffi")
def _csr_times_dense(
    ev: Evaluation, ins: Instruction, data: Value, row_starts: Value, columns: Value, dense: Value
) -> Value:
    """Multiply a matrix in CSR format by a matrix or vector."""
    values, starts, column_indices, right = (array_of(o) for o in (data, row_starts, columns, dense))
    wide = accumulator(values, right, ins.shape.dtype, 0).numpy_dtype
    rows = np.repeat(np.arange(len(starts) - 1), starts[1:].astype(np.int64) - starts[:-1])
    picked = right[column_indices[: rows.size].astype(np.int64)].astype(wide)
    factors = values[: rows.size].astype(wide).reshape(-1, *[1] * (right.ndim - 1))
    out = np.zeros(ins.shape.dims, wide)
    np.add.at(out, rows, factors * picked)
    return convert_array(out, ins.shape.dtype)
