"""Gradients of Fourier transforms."""

from __future__ import annotations

from typing import Any

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.gradient import gradient
from cyxla.core.gradients.common import Tensor


def _sizes(x: Tensor, rank: int) -> Tensor:
    return apply_op("StridedSlice", apply_op("Shape", x), [-rank], [0], [1], end_mask=1)


def _count(x: Tensor, rank: int) -> Tensor:
    """Return the number of elements per transform, in x's type."""
    return apply_op("Cast", apply_op("Prod", _sizes(x, rank), [0]), DstT=x.dtype)


def _register(rank: int, suffix: str) -> None:
    forward, backward = "FFT" + suffix, "IFFT" + suffix

    @gradient(forward)
    def of_forward(op: Any, dy: Tensor) -> Tensor:
        return apply_op(backward, dy) * _count(dy, rank)

    @gradient(backward)
    def of_backward(op: Any, dy: Tensor) -> Tensor:
        return apply_op(forward, dy) / _count(dy, rank)

    @gradient("R" + forward)
    def of_real(op: Any, dy: Tensor) -> tuple[Tensor, None]:
        x, lengths = op.inputs
        return _pad_to_shape(_real_gradient(dy, lengths, rank, x.dtype), x), None

    @gradient("I" + "R" + forward)
    def of_inverse_real(op: Any, dy: Tensor) -> tuple[Tensor, None]:
        x, lengths = op.inputs
        return _pad_to_shape(_half_gradient(dy, lengths, rank, x), x), None

    def _real_gradient(dy: Tensor, lengths: Tensor, rank: int, dtype: Any) -> Tensor:
        """Return the real part of the full transform of a half spectrum padded with zeros."""
        rest = apply_op("Sub", lengths, _sizes(dy, rank))
        padded = _pad_end(dy, rest, rank)
        return apply_op("Real", apply_op(backward, padded) * _count(padded, rank), Tout=dtype)

    def _half_gradient(dy: Tensor, lengths: Tensor, rank: int, x: Tensor) -> Tensor:
        """Divide the half spectrum by the count, weighting elements that have a mirror image by two."""
        half = apply_op("R" + forward, dy, lengths, Tcomplex=x.dtype)
        weight = _mirror_weights(apply_op("StridedSlice", lengths, [-1], [0], [1], end_mask=1, shrink_axis_mask=1))
        count = apply_op("Cast", apply_op("Prod", lengths, [0]), DstT="float")
        return half * apply_op("Cast", weight / count, DstT=x.dtype)


def _mirror_weights(length: Tensor) -> Tensor:
    """Return the multiplicity of each element of a half spectrum in the full one."""
    index = apply_op("Range", 0, apply_op("Add", apply_op("FloorDiv", length, 2), 1), 1)
    single = apply_op("LogicalOr", apply_op("Equal", index, 0), apply_op("Equal", apply_op("Mul", index, 2), length))
    return apply_op("SelectV2", single, 1.0, 2.0)


def _pad_end(x: Tensor, rest: Tensor, rank: int) -> Tensor:
    """Pad the last dimensions with zeros up to the given sizes."""
    rest = apply_op("Maximum", rest, 0)
    unpadded = apply_op("Fill", apply_op("ExpandDims", apply_op("Sub", apply_op("Rank", x), rank), 0), 0)
    after = apply_op("ConcatV2", [unpadded, rest], 0)
    return apply_op("Pad", x, apply_op("Pack", [apply_op("ZerosLike", after), after], axis=1))


def _pad_to_shape(grad: Tensor, x: Tensor) -> Tensor:
    """Pad the gradient of a cropped input to the input's shape."""
    rest = apply_op("Sub", apply_op("Shape", x), apply_op("Shape", grad))
    return apply_op("Pad", grad, apply_op("Pack", [apply_op("ZerosLike", rest), rest], axis=1))


for _rank, _suffix in ((1, ""), (2, "2D"), (3, "3D")):
    _register(_rank, _suffix)


@gradient("BatchFFT")
def batch_fft_grad(op: Any, dy: Tensor) -> Tensor:
    """Multiply the inverse transform by the number of elements."""
    return apply_op("BatchIFFT", dy) * _count(dy, 1)


@gradient("BatchIFFT")
def batch_ifft_grad(op: Any, dy: Tensor) -> Tensor:
    """Divide the transform by the number of elements."""
    return apply_op("BatchFFT", dy) / _count(dy, 1)


# Transforms over given axes -------------------------------------------------------------------------------------------
def _total(lengths: Tensor, like: Tensor) -> Tensor:
    return apply_op("Cast", apply_op("Prod", lengths, [0]), DstT=like.dtype)


def _is_last_axis(axes: Tensor, like: Tensor) -> Tensor:
    """Return a mask of the dimensions that is true for the last of the axes."""
    rank = apply_op("Rank", like)
    axis = apply_op("FloorMod", apply_op("GatherV2", axes, apply_op("Size", axes) - 1, 0), rank)
    return apply_op("Equal", apply_op("Range", 0, rank, 1), axis)


def _last_length(lengths: Tensor) -> Tensor:
    return apply_op("GatherV2", lengths, apply_op("Size", lengths) - 1, 0)


@gradient("FFTND")
def fftnd_grad(op: Any, dy: Tensor) -> tuple[Tensor, None, None]:
    """Multiply the inverse transform by the number of elements."""
    x, lengths, axes = op.inputs
    return _pad_to_shape(apply_op("IFFTND", dy, lengths, axes) * _total(lengths, dy), x), None, None


@gradient("IFFTND")
def ifftnd_grad(op: Any, dy: Tensor) -> tuple[Tensor, None, None]:
    """Divide the transform by the number of elements."""
    x, lengths, axes = op.inputs
    return _pad_to_shape(apply_op("FFTND", dy, lengths, axes) / _total(lengths, dy), x), None, None


@gradient("RFFTND")
def rfftnd_grad(op: Any, dy: Tensor) -> tuple[Tensor, None, None]:
    """Return the real part of the inverse transform of the zero-padded half, times the number of elements."""
    x, lengths, axes = op.inputs
    num_mirrored = _last_length(lengths) - apply_op("FloorDiv", _last_length(lengths), 2) - 1
    rest = apply_op("SelectV2", _is_last_axis(axes, dy), num_mirrored, 0)
    padded = apply_op("Pad", dy, apply_op("Pack", [apply_op("ZerosLike", rest), rest], axis=1))
    transformed = apply_op("IFFTND", padded, lengths, axes) * _total(lengths, dy)
    return _pad_to_shape(apply_op("Real", transformed, Tout=x.dtype), x), None, None


@gradient("IRFFTND")
def irfftnd_grad(op: Any, dy: Tensor) -> tuple[Tensor, None, None]:
    """Divide the half spectrum by the number of elements, weighting elements that have a mirror image by two."""
    x, lengths, axes = op.inputs
    half = apply_op("RFFTND", dy, lengths, axes, Tcomplex=x.dtype)
    weight = _mirror_weights(_last_length(lengths))
    weight = apply_op("Reshape", weight, apply_op("SelectV2", _is_last_axis(axes, half), apply_op("Size", weight), 1))
    return _pad_to_shape(half * apply_op("Cast", weight, DstT=x.dtype) / _total(lengths, half), x), None, None
