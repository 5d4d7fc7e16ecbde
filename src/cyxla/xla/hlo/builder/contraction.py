"""Builder functions that contract, transform or factorise."""

from __future__ import annotations

from collections.abc import Sequence

from cyxla.errors import InvalidArgumentError, ShapeError
from cyxla.types import ElementType, Shape
from cyxla.xla.hlo.attributes import ConvDims, Window, WindowDim
from cyxla.xla.hlo.builder.elementwise import as_dtype
from cyxla.xla.hlo.builder.xla_builder import XlaOp, deferred

Padding = str | Sequence[tuple[int, int]]


def _preferred_shape(dtype: ElementType | str | None) -> Shape | None:
    """Return a stated result of which only the element type is used."""
    return None if dtype is None else Shape.array(as_dtype(dtype))


@deferred
def dot(
    lhs: XlaOp,
    rhs: XlaOp,
    *,
    operand_precision: Sequence[str] = (),
    algorithm: str | None = None,
    preferred_element_type: ElementType | str | None = None,
) -> XlaOp:
    """Contract the last dimension of lhs with the first of rhs."""
    last = max(lhs.shape.rank - 1, 0)
    return dot_general(
        lhs, rhs, lhs_contracting_dims=(last,), rhs_contracting_dims=(0,), operand_precision=operand_precision,
        algorithm=algorithm, preferred_element_type=preferred_element_type,
    )  # fmt: skip


@deferred
def dot_general(
    lhs: XlaOp,
    rhs: XlaOp,
    *,
    lhs_contracting_dims: Sequence[int],
    rhs_contracting_dims: Sequence[int],
    lhs_batch_dims: Sequence[int] = (),
    rhs_batch_dims: Sequence[int] = (),
    operand_precision: Sequence[str] = (),
    algorithm: str | None = None,
    preferred_element_type: ElementType | str | None = None,
) -> XlaOp:
    """Contract dimensions of two arrays pairwise; batch dimensions come first in the result, then the free ones.

    Parameters
    ----------
    lhs, rhs : XlaOp
        Arrays to multiply.
    lhs_contracting_dims, rhs_contracting_dims : sequence of int
        Dimensions to sum over, in pairs.
    lhs_batch_dims, rhs_batch_dims : sequence of int, optional
        Batch dimensions, in pairs.
    operand_precision : sequence of str, optional
        Precision of each operand: default, high or highest.
    algorithm : str, optional
        Name of the algorithm, such as ``dot_bf16_bf16_f32``.
    preferred_element_type : ElementType or str, optional
        Element type of the sums; by default the wider of the operands' types.
    """
    attrs = {
        "lhs_batch_dims": tuple(lhs_batch_dims), "lhs_contracting_dims": tuple(lhs_contracting_dims),
        "rhs_batch_dims": tuple(rhs_batch_dims), "rhs_contracting_dims": tuple(rhs_contracting_dims),
        "operand_precision": tuple(operand_precision), "algorithm": algorithm,
    }  # fmt: skip
    return lhs.builder.add("dot", [lhs, rhs], attrs, shape=_preferred_shape(preferred_element_type))


@deferred
def matmul(lhs: XlaOp, rhs: XlaOp) -> XlaOp:
    """Multiply matrices in the last two dimensions, batched over equal leading ones; vectors as in NumPy."""
    a, b = lhs.shape, rhs.shape
    if a.rank < 3 and b.rank < 3:
        return dot(lhs, rhs)
    if a.rank != b.rank:
        raise ShapeError(f"cannot multiply stacks of matrices {a} and {b}", hint="broadcast the smaller one first")
    batch = tuple(range(a.rank - 2))
    return dot_general(
        lhs,
        rhs,
        lhs_contracting_dims=(a.rank - 1,),
        rhs_contracting_dims=(a.rank - 2,),
        lhs_batch_dims=batch,
        rhs_batch_dims=batch,
    )


@deferred
def ragged_dot(
    lhs: XlaOp,
    rhs: XlaOp,
    group_sizes: XlaOp,
    *,
    lhs_contracting_dims: Sequence[int],
    rhs_contracting_dims: Sequence[int],
    lhs_ragged_dims: Sequence[int],
    rhs_group_dims: Sequence[int] = (),
    lhs_batch_dims: Sequence[int] = (),
    rhs_batch_dims: Sequence[int] = (),
    operand_precision: Sequence[str] = (),
    preferred_element_type: ElementType | str | None = None,
) -> XlaOp:
    """Contract group by group; `group_sizes` holds the number of elements of the ragged dimension in each group."""
    attrs = {
        "lhs_batch_dims": tuple(lhs_batch_dims), "lhs_contracting_dims": tuple(lhs_contracting_dims),
        "rhs_batch_dims": tuple(rhs_batch_dims), "rhs_contracting_dims": tuple(rhs_contracting_dims),
        "lhs_ragged_dims": tuple(lhs_ragged_dims), "rhs_group_dims": tuple(rhs_group_dims),
        "operand_precision": tuple(operand_precision),
    }  # fmt: skip
    return lhs.builder.add("ragged-dot", [lhs, rhs, group_sizes], attrs, shape=_preferred_shape(preferred_element_type))


@deferred
def scaled_dot(
    lhs: XlaOp,
    rhs: XlaOp,
    *scales: XlaOp,
    lhs_contracting_dims: Sequence[int],
    rhs_contracting_dims: Sequence[int],
    lhs_batch_dims: Sequence[int] = (),
    rhs_batch_dims: Sequence[int] = (),
    operand_precision: Sequence[str] = (),
    preferred_element_type: ElementType | str | None = None,
) -> XlaOp:
    """Contract operands with scaled blocks."""
    attrs = {
        "lhs_batch_dims": tuple(lhs_batch_dims), "lhs_contracting_dims": tuple(lhs_contracting_dims),
        "rhs_batch_dims": tuple(rhs_batch_dims), "rhs_contracting_dims": tuple(rhs_contracting_dims),
        "operand_precision": tuple(operand_precision),
    }  # fmt: skip
    return lhs.builder.add("scaled-dot", [lhs, rhs, *scales], attrs, shape=_preferred_shape(preferred_element_type))


@deferred
def convolution(
    lhs: XlaOp,
    rhs: XlaOp,
    *,
    window: Window,
    dim_labels: ConvDims,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    operand_precision: Sequence[str] = (),
    preferred_element_type: ElementType | str | None = None,
) -> XlaOp:
    """Convolve an array with a kernel; window and dimension numbers as in HLO."""
    attrs = {
        "window": tuple(window), "dim_labels": dim_labels, "feature_group_count": feature_group_count,
        "batch_group_count": batch_group_count, "operand_precision": tuple(operand_precision),
    }  # fmt: skip
    return lhs.builder.add("convolution", [lhs, rhs], attrs, shape=_preferred_shape(preferred_element_type))


def default_conv_dims(spatial: int) -> ConvDims:
    """Return ``bf01`` for input and result and ``oi01`` for the kernel, with any number of spatial dimensions."""
    spatial_dims = tuple(range(2, 2 + spatial))
    return ConvDims(0, 1, spatial_dims, 1, 0, spatial_dims, 0, 1, spatial_dims)


def make_padding(
    padding: str, sizes: Sequence[int], window: Sequence[int], strides: Sequence[int]
) -> list[tuple[int, int]]:
    """Return low and high padding of each dimension for ``"VALID"`` (none) or ``"SAME"`` (size / stride positions).

    Raises
    ------
    InvalidArgumentError
        `padding` is neither.
    """
    if padding.upper() == "VALID":
        return [(0, 0)] * len(sizes)
    if padding.upper() != "SAME":
        raise InvalidArgumentError(f"padding {padding!r} is neither SAME nor VALID")
    pads = [max(0, (-(-n // s) - 1) * s + w - n) for n, w, s in zip(sizes, window, strides, strict=True)]
    return [(p // 2, p - p // 2) for p in pads]


@deferred
def conv(
    lhs: XlaOp,
    rhs: XlaOp,
    window_strides: Sequence[int],
    padding: Padding,
    *,
    dimension_numbers: ConvDims | None = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    operand_precision: Sequence[str] = (),
    preferred_element_type: ElementType | str | None = None,
) -> XlaOp:
    """Convolve an array with a kernel without dilation; `padding` is SAME, VALID, or (low, high) for each dimension."""
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, dimension_numbers=dimension_numbers,
        feature_group_count=feature_group_count, batch_group_count=batch_group_count,
        operand_precision=operand_precision, preferred_element_type=preferred_element_type,
    )  # fmt: skip


@deferred
def conv_general_dilated(
    lhs: XlaOp,
    rhs: XlaOp,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvDims | None = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    *,
    window_reversal: Sequence[bool] | None = None,
    operand_precision: Sequence[str] = (),
    preferred_element_type: ElementType | str | None = None,
) -> XlaOp:
    """Convolve an array with a kernel, with strides and dilation.

    Parameters
    ----------
    lhs, rhs : XlaOp
        Input and kernel.
    window_strides : sequence of int
        Stride of each spatial dimension.
    padding : str or sequence of (int, int)
        SAME, VALID, or low and high padding of each spatial dimension.
    lhs_dilation, rhs_dilation : sequence of int, optional
        Distance between elements of input and kernel; 1 by default.
    dimension_numbers : ConvDims, optional
        Dimension numbers; `default_conv_dims` by default.
    feature_group_count, batch_group_count : int, optional
        Numbers of groups of features and of the batch.
    window_reversal : sequence of bool, optional
        Spatial dimensions in which the kernel is reversed.
    operand_precision : sequence of str, optional
        Precision of each operand: default, high or highest.
    preferred_element_type : ElementType or str, optional
        Element type of the sums.
    """
    n = len(window_strides)
    labels = dimension_numbers if dimension_numbers is not None else default_conv_dims(n)
    if len(labels.input_spatial) != n or lhs.shape.rank != n + 2 or rhs.shape.rank != n + 2:
        raise ShapeError(f"{n} strides do not suit operands {lhs.shape} and {rhs.shape}")
    size = [rhs.shape.dims[d] for d in labels.kernel_spatial]
    base_dilation, dilation = list(lhs_dilation or [1] * n), list(rhs_dilation or [1] * n)
    if isinstance(padding, str):
        dilated_window = [(w - 1) * h + 1 for w, h in zip(size, dilation, strict=True)]
        padding = make_padding(
            padding, [lhs.shape.dims[d] for d in labels.input_spatial], dilated_window, window_strides
        )
    reversal = list(window_reversal or [False] * n)
    parts = zip(size, window_strides, padding, dilation, base_dilation, reversal, strict=True)
    window = tuple(WindowDim(w, s, p[0], p[1], h, b, t) for w, s, p, h, b, t in parts)
    return convolution(
        lhs, rhs, window=window, dim_labels=labels, feature_group_count=feature_group_count,
        batch_group_count=batch_group_count, operand_precision=operand_precision,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


@deferred
def fft(operand: XlaOp, fft_type: str, fft_length: Sequence[int]) -> XlaOp:
    """Compute the Fourier transform of the last dimensions: FFT, IFFT, RFFT or IRFFT."""
    return operand.builder.add("fft", [operand], {"fft_type": fft_type, "fft_length": tuple(fft_length)})


@deferred
def triangular_solve(
    a: XlaOp, b: XlaOp, *, left_side: bool, lower: bool, unit_diagonal: bool = False, transpose_a: str = "NO_TRANSPOSE"
) -> XlaOp:
    """Solve a x = b (x a = b unless left_side) for a triangular matrix a."""
    attrs = {"left_side": left_side, "lower": lower, "unit_diagonal": unit_diagonal, "transpose_a": transpose_a}
    return a.builder.add("triangular-solve", [a, b], attrs)


@deferred
def cholesky(operand: XlaOp, lower: bool = True) -> XlaOp:
    """Factorise symmetric (Hermitian) matrices, of which only one triangle is read."""
    return operand.builder.add("cholesky", [operand], {"lower": lower})


@deferred
def batch_norm_training(operand: XlaOp, scale: XlaOp, offset: XlaOp, epsilon: float, feature_index: int) -> XlaOp:
    """Normalise by the batch's mean and variance, and return the result, mean and variance."""
    attrs = {"epsilon": epsilon, "feature_index": feature_index}
    return operand.builder.add("batch-norm-training", [operand, scale, offset], attrs)


@deferred
def batch_norm_inference(
    operand: XlaOp, scale: XlaOp, offset: XlaOp, mean: XlaOp, variance: XlaOp, epsilon: float, feature_index: int
) -> XlaOp:
    """Normalise by a given mean and variance."""
    attrs = {"epsilon": epsilon, "feature_index": feature_index}
    return operand.builder.add("batch-norm-inference", [operand, scale, offset, mean, variance], attrs)


@deferred
def batch_norm_grad(
    operand: XlaOp, scale: XlaOp, mean: XlaOp, variance: XlaOp, grad_output: XlaOp, epsilon: float, feature_index: int
) -> XlaOp:
    """Compute the gradients of `batch_norm_training` by operand, scale and offset."""
    attrs = {"epsilon": epsilon, "feature_index": feature_index}
    return operand.builder.add("batch-norm-grad", [operand, scale, mean, variance, grad_output], attrs)
