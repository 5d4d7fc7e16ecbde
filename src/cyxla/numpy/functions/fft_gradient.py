"""Fourier transforms of the last dimensions with their derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

from cyxla.numpy.gradient.composites import composite
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import iota_along, scalar, select

Sizes = tuple[int, ...]


def transform(op: XlaOp, kind: str, sizes: Sizes) -> XlaOp:
    """Emit HLO's FFT, IFFT, RFFT or IRFFT of dimensions of these sizes."""
    if not op.shape.size:
        return _empty_transform(op, kind, sizes)
    emit = partial(xla.fft, fft_type=kind, fft_length=sizes)
    return composite([op], emit, partial(_transpose, kind, sizes))[0]


def _empty_transform(op: XlaOp, kind: str, sizes: Sizes) -> XlaOp:
    lengths = [*sizes[:-1], sizes[-1] // 2 + 1] if kind == "RFFT" else sizes
    result_dims = [*op.shape.dims[: -len(sizes)], *lengths]
    return xla.broadcast(xla.constant(op.builder, 0, _result_type(op, kind)), result_dims)


def _result_type(op: XlaOp, kind: str) -> ElementType:
    is_double = op.shape.dtype in (ElementType.F64, ElementType.C128)
    if kind == "IRFFT":
        return ElementType.F64 if is_double else ElementType.F32
    return ElementType.C128 if is_double else ElementType.C64


def _transpose(
    kind: str, sizes: Sizes, operands: Sequence[XlaOp], _: Sequence[XlaOp], cotangents: Sequence[XlaOp | None]
) -> list[XlaOp | None]:
    """Return the cotangent of the operand; gradients are propagated without conjugation."""
    g, x = cotangents[0], operands[0]
    assert g is not None
    if kind in ("FFT", "IFFT"):  # symmetric matrices
        return [transform(g, kind, sizes)]
    last = x.shape.rank - 1
    if kind == "RFFT":
        full = xla.pad_in_dim(g, scalar(g, 0), last, 0, sizes[-1] - g.shape.dims[-1])
        return [xla.real(transform(full, "FFT", sizes))]
    cotangent = transform(g, "RFFT", sizes)
    cotangent = xla.complex_(xla.real(cotangent), xla.negate(xla.imag(cotangent)))
    return [xla.multiply(cotangent, _weights(cotangent, sizes[-1], 1 / prod(sizes)))]


def _weights(like: XlaOp, size: int, scale: float) -> XlaOp:
    """Return `scale` times the multiplicity of each element: 2 for those that also stand for their conjugates."""
    last = like.shape.rank - 1
    position = iota_along(like.builder, ElementType.S32, like.shape.dims, last)
    once = xla.eq(position, scalar(position, 0))
    if size % 2 == 0:
        once = xla.or_(once, xla.eq(position, scalar(position, size // 2)))
    return select(once, xla.broadcast(scalar(like, scale), like.shape.dims), scalar(like, 2 * scale))
