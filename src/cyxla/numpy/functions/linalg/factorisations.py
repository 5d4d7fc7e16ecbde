"""Cholesky, QR, singular values, eigenvalues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.linalg import _linalg as results

from cyxla.numpy.functions.linalg import gradients, lapack
from cyxla.numpy.functions.linalg.gradients import differentiable
from cyxla.numpy.functions.linalg.lapack import call_lapack, fail_where, nonzero, real_type, shape_like, to_double
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.results.conversion import convert
from cyxla.numpy.tracing.results.eigenvalue_results import Spectrum
from cyxla.numpy.tracing.results.promotion import Dtype
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import reduced, scalar

_S32 = ElementType.S32
_COMPLEX_NOTE = "complex while traced; results are real where NumPy's are, by the plain function if they are computed"


@implements(np.linalg.cholesky, note="a matrix that holds nan gives nan throughout")
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """Compute Cholesky factors; a matrix that contains nan gives nan throughout."""
    (x,), dtype = to_double(*lapack.square_matrices(a))
    if not x.shape.size:
        return lapack.convert_result(x, dtype)
    factor, info = call_lapack(
        "potrf", [x], [x.shape, shape_like(x, x.shape.dims[:-2], _S32)], uplo="U" if upper else "L"
    )
    read_triangle = lapack.triangle(x, not upper)
    not_nan = xla.eq(read_triangle, read_triangle)
    valid = reduced(not_nan, "and", scalar(not_nan, True), [x.shape.rank - 2, x.shape.rank - 1])
    failed = nonzero(info)
    fail_where(xla.and_(failed, valid), "Matrix is not positive definite")
    result = lapack.nan_where_failed(valid, lapack.triangle(factor, not upper))
    return lapack.convert_result(differentiable([x], [result], gradients.cholesky(not upper))[0], dtype)


@implements(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    """Compute QR factors: reflectors by geqrf, multiplied by orgqr."""
    if mode not in ("reduced", "complete", "r", "raw"):
        raise ValueError(f"Unrecognized mode '{mode}'")
    (x,), dtype = to_double(*lapack.matrix_stacks(a))
    *batch, rows, columns = x.shape.dims
    min_size = min(rows, columns)
    width = rows if mode == "complete" else min_size
    if not x.shape.size:
        return _empty_qr(x, mode, dtype)
    packed, factors = call_lapack("geqrf", [x], [x.shape, shape_like(x, (*batch, min_size))])
    if mode == "raw":
        return lapack.convert_result(lapack.transpose(packed), dtype), lapack.convert_result(factors, dtype)
    r = lapack.triangle(lapack.leading_block(packed, width, columns), lower=False)
    q, r = differentiable([x], [_orthonormal(packed, factors, width), r], gradients.qr)
    if mode == "r":
        return lapack.convert_result(r, dtype)
    return results.QRResult(lapack.convert_result(q, dtype), lapack.convert_result(r, dtype))


def _orthonormal(packed: XlaOp, factors: XlaOp, width: int) -> XlaOp:
    *batch, rows, _ = packed.shape.dims
    min_size = factors.shape.dims[-1]
    reflectors = lapack.leading_block(packed, rows, min_size)
    if width > min_size:
        reflectors = xla.pad_in_dim(reflectors, scalar(packed, 0), packed.shape.rank - 1, 0, width - min_size)
    name = "ungqr" if packed.shape.dtype.is_complex else "orgqr"
    return call_lapack(name, [reflectors, factors], [shape_like(packed, (*batch, rows, width))])[0]


def _empty_qr(x: XlaOp, mode: str, dtype: Any) -> Any:
    *batch, rows, columns = x.shape.dims
    min_size = min(rows, columns)
    zero = scalar(x, 0)
    if mode == "raw":
        packed, factors = (xla.broadcast(zero, (*batch, *s)) for s in ((columns, rows), (min_size,)))
        return lapack.convert_result(packed, dtype), lapack.convert_result(factors, dtype)
    width = rows if mode == "complete" else min_size
    r = lapack.convert_result(xla.broadcast(zero, (*batch, width, columns)), dtype)
    return (
        r
        if mode == "r"
        else results.QRResult(lapack.convert_result(lapack.identity(x, (*batch, rows, width)), dtype), r)
    )


@implements(np.linalg.svd)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """Compute singular values and vectors by gesdd, or by eigh for Hermitian matrices."""
    if hermitian:
        return _hermitian_svd(a, compute_uv)
    (x,), dtype = to_double(*lapack.matrix_stacks(a))
    if not compute_uv:
        return lapack.convert_result(singular_values(x), dtype)
    return results.SVDResult(*[lapack.convert_result(v, dtype) for v in decompose_svd(x, full_matrices)])


@implements(np.linalg.svdvals)
def svdvals(x: Any, /) -> Any:
    """Compute singular values."""
    return svd(x, compute_uv=False)


def decompose_svd(x: XlaOp, full: bool = False) -> list[XlaOp]:
    """Return left vectors, singular values and right vectors of matrices in double precision."""
    if x.shape.size:
        return differentiable([x], _gesdd(x, "A" if full else "S"), gradients.svd)
    *batch, rows, columns = x.shape.dims
    min_size = min(rows, columns)
    left, right = (rows, columns) if full else (min_size, min_size)
    return [
        lapack.identity(x, (*batch, rows, left)),
        _zero_values(x, min_size),
        lapack.identity(x, (*batch, right, columns)),
    ]


def singular_values(x: XlaOp) -> XlaOp:
    """Compute singular values alone; their derivative computes the vectors."""
    if not x.shape.size:
        return _zero_values(x, min(x.shape.dims[-2:]))
    s = _gesdd(x, "N")[1]

    def forward(x: XlaOp) -> list[XlaOp]:
        u, s, vh = _gesdd(x, "S")
        return [s, u, vh]

    return differentiable([x], [s], gradients.singular_values, forward)[0]


def _zero_values(x: XlaOp, count: int) -> XlaOp:
    return xla.broadcast(xla.constant(x.builder, 0, real_type(x)), (*x.shape.dims[:-2], count))


def _gesdd(x: XlaOp, mode: str) -> list[XlaOp]:
    *batch, rows, columns = x.shape.dims
    min_size = min(rows, columns)
    left, right = (rows, columns) if mode == "A" else (min_size, min_size)
    shapes = [
        x.shape, shape_like(x, (*batch, min_size), real_type(x)), shape_like(x, (*batch, rows, left)),
        shape_like(x, (*batch, right, columns)), shape_like(x, batch, _S32),
    ]  # fmt: skip
    _, values, u, vh, info = call_lapack("gesdd", [x], shapes, mode=mode)
    fail_where(nonzero(info), "SVD did not converge")
    return [u, values, vh]


def _hermitian_svd(a: Any, vectors: bool) -> Any:
    """Compute a singular value decomposition from eigenvalues: absolute values, and signs in the right vectors."""
    s, u = eigh(a)
    order = np.flip(np.argsort(abs(s), axis=-1), axis=-1)
    magnitudes = np.take_along_axis(abs(s), order, axis=-1)
    if not vectors:
        return magnitudes
    signs = np.take_along_axis(np.copysign(1.0, s), order, axis=-1)  # copysign, since the sign of zero must not be zero
    u = np.take_along_axis(u, order[..., None, :], axis=-1)
    right = np.swapaxes(np.conj(u * signs[..., None, :]), -1, -2)
    return results.SVDResult(u, magnitudes, right)


def _parse_uplo(value: Any) -> str:
    uplo = str(value).upper()
    if uplo not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return uplo


@implements(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803 - NumPy's name
    """Compute eigenvalues and vectors of Hermitian matrices from one triangle."""
    (x,), dtype = to_double(*lapack.square_matrices(a))
    values, vectors = _decompose_hermitian(x, _parse_uplo(UPLO))
    return results.EighResult(lapack.convert_result(values, dtype), lapack.convert_result(vectors, dtype))


@implements(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803 - NumPy's name
    """Compute eigenvalues of Hermitian matrices."""
    uplo = _parse_uplo(UPLO)
    (x,), dtype = to_double(*lapack.square_matrices(a))
    if not x.shape.size:
        return lapack.convert_result(_zero_values(x, x.shape.dims[-1]), dtype)
    values = _heevd(x, uplo, "N")[0]
    results_ = differentiable([x], [values], gradients.eigh(uplo == "L"), lambda x: _heevd(x, uplo, "V"))
    return lapack.convert_result(results_[0], dtype)


def _decompose_hermitian(x: XlaOp, uplo: str) -> list[XlaOp]:
    if not x.shape.size:
        return [_zero_values(x, x.shape.dims[-1]), x]
    return differentiable([x], _heevd(x, uplo, "V"), gradients.eigh(uplo == "L"))


def _heevd(x: XlaOp, uplo: str, mode: str) -> list[XlaOp]:
    *batch, size, _ = x.shape.dims
    name = "heevd" if x.shape.dtype.is_complex else "syevd"
    shapes = [x.shape, shape_like(x, (*batch, size), real_type(x)), shape_like(x, batch, _S32)]
    vectors, values, info = call_lapack(name, [x], shapes, mode=mode, uplo=uplo)
    fail_where(xla.gt(info, scalar(info, 0)), "Eigenvalues did not converge")
    converged = xla.eq(info, scalar(info, 0))
    return [lapack.nan_where_failed(converged, values), lapack.nan_where_failed(converged, vectors)]


@implements(np.linalg.eig, note=_COMPLEX_NOTE)
def eig(a: Any) -> Any:
    """Compute eigenvalues and right eigenvectors by geev."""
    (x,), dtype = to_double(*lapack.square_matrices(a))
    return results.EigResult(*_to_spectra(_decompose_general(x), dtype))


@implements(np.linalg.eigvals, note=_COMPLEX_NOTE)
def eigvals(a: Any) -> Any:
    """Compute eigenvalues."""
    (x,), dtype = to_double(*lapack.square_matrices(a))
    if not x.shape.size:
        return _to_spectra(_decompose_general(x)[:1], dtype)[0]
    outputs = differentiable([x], _geev(x, "N")[:1], gradients.eig, lambda x: _geev(x, "V"))
    return _to_spectra(outputs[:1], dtype)[0]


def _to_spectra(outputs: Sequence[XlaOp], dtype: Dtype) -> list[Any]:
    """Convert eigenvalues, and eigenvectors if there are any, to the complex dtype of results."""
    if dtype.kind == "c":
        return [lapack.convert_result(op, dtype) for op in outputs]
    converted = [convert(op, np.result_type(dtype, np.complex64)) for op in outputs]
    return [Spectrum(op, converted[0]) for op in converted]


def _decompose_general(x: XlaOp) -> list[XlaOp]:
    if not x.shape.size:
        empty = xla.broadcast(xla.constant(x.builder, 0, ElementType.C128), x.shape.dims)
        return [xla.reshape(empty, x.shape.dims[:-1]), empty]
    return differentiable([x], _geev(x, "V"), gradients.eig)


def _geev(x: XlaOp, mode: str) -> list[XlaOp]:
    *batch, size, _ = x.shape.dims
    real = not x.shape.dtype.is_complex
    finite = xla.is_finite(x) if real else xla.and_(xla.is_finite(xla.real(x)), xla.is_finite(xla.imag(x)))
    fail_where(xla.not_(finite), "Array must not contain infs or NaNs")
    value_shapes = [shape_like(x, (*batch, size))] * (2 if real else 1)
    vector_shapes = [shape_like(x, x.shape.dims, ElementType.C128)] * 2
    shapes = [*value_shapes, *vector_shapes, shape_like(x, batch, _S32)]
    *values, _, vectors, info = call_lapack("geev", [x], shapes, compute_left="N", compute_right=mode)
    fail_where(xla.gt(info, scalar(info, 0)), "Eigenvalues did not converge")
    return [xla.complex_(*values) if real else values[0], vectors]
