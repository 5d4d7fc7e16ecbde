"""Cholesky, QR, singular values, eigenvalues."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.linalg import _linalg as results

from cyxla.numpy.functions.linalg import gradients, lapack
from cyxla.numpy.functions.linalg.gradients import differentiable
from cyxla.numpy.functions.linalg.lapack import call, fail_where, in_double, like, nonzero, real_type
from cyxla.numpy.tracing.conversion import convert
from cyxla.numpy.tracing.promotion import Dtype
from cyxla.numpy.tracing.registry import implements
from cyxla.numpy.tracing.spectrum import Spectrum
from cyxla.types import ElementType
from cyxla.xla.hlo.builder import XlaOp
from cyxla.xla.hlo.builder import functions as xla
from cyxla.xla.lib.values import reduced, scalar

_S32 = ElementType.S32
_REAL_AT_LAST = "complex while traced; a result of the compiled function itself is real where NumPy's is"


@implements(np.linalg.cholesky, note="a matrix that holds nan gives nan throughout")
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """Compute Cholesky factors; a matrix that contains nan gives nan throughout."""
    (x,), dtype = in_double(*lapack.squares(a))
    if not x.shape.size:
        return lapack.result(x, dtype)
    factor, info = call("potrf", [x], [x.shape, like(x, x.shape.dims[:-2], _S32)], uplo="U" if upper else "L")
    known = lapack.triangle(x, not upper)
    ordered = xla.eq(known, known)
    good = reduced(ordered, "and", scalar(ordered, True), [x.shape.rank - 2, x.shape.rank - 1])
    bad = nonzero(info)
    fail_where(xla.and_(bad, good), "Matrix is not positive definite")
    made = lapack.or_nan(good, lapack.triangle(factor, not upper))
    return lapack.result(differentiable([x], [made], gradients.cholesky(not upper))[0], dtype)


@implements(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    """Compute QR factors: reflectors by geqrf, multiplied by orgqr."""
    if mode not in ("reduced", "complete", "r", "raw"):
        raise ValueError(f"Unrecognized mode '{mode}'")
    (x,), dtype = in_double(*lapack.stacks(a))
    *batch, rows, columns = x.shape.dims
    least = min(rows, columns)
    width = rows if mode == "complete" else least
    if not x.shape.size:
        return _empty_qr(x, mode, dtype)
    packed, factors = call("geqrf", [x], [x.shape, like(x, (*batch, least))])
    if mode == "raw":
        return lapack.result(lapack.transposed(packed), dtype), lapack.result(factors, dtype)
    r = lapack.triangle(lapack.window(packed, width, columns), lower=False)
    q, r = differentiable([x], [_orthonormal(packed, factors, width), r], gradients.qr)
    if mode == "r":
        return lapack.result(r, dtype)
    return results.QRResult(lapack.result(q, dtype), lapack.result(r, dtype))


def _orthonormal(packed: XlaOp, factors: XlaOp, width: int) -> XlaOp:
    *batch, rows, _ = packed.shape.dims
    least = factors.shape.dims[-1]
    reflectors = lapack.window(packed, rows, least)
    if width > least:
        reflectors = xla.pad_in_dim(reflectors, scalar(packed, 0), packed.shape.rank - 1, 0, width - least)
    name = "ungqr" if packed.shape.dtype.is_complex else "orgqr"
    return call(name, [reflectors, factors], [like(packed, (*batch, rows, width))])[0]


def _empty_qr(x: XlaOp, mode: str, dtype: Any) -> Any:
    *batch, rows, columns = x.shape.dims
    least = min(rows, columns)
    zero = scalar(x, 0)
    if mode == "raw":
        packed, factors = (xla.broadcast(zero, (*batch, *s)) for s in ((columns, rows), (least,)))
        return lapack.result(packed, dtype), lapack.result(factors, dtype)
    width = rows if mode == "complete" else least
    r = lapack.result(xla.broadcast(zero, (*batch, width, columns)), dtype)
    return r if mode == "r" else results.QRResult(lapack.result(lapack.identity(x, (*batch, rows, width)), dtype), r)


@implements(np.linalg.svd)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """Compute singular values and vectors by gesdd, or by eigh for Hermitian matrices."""
    if hermitian:
        return _hermitian_svd(a, compute_uv)
    (x,), dtype = in_double(*lapack.stacks(a))
    if not compute_uv:
        return lapack.result(singular_values(x), dtype)
    return results.SVDResult(*[lapack.result(v, dtype) for v in decomposed(x, full_matrices)])


@implements(np.linalg.svdvals)
def svdvals(x: Any, /) -> Any:
    """Compute singular values."""
    return svd(x, compute_uv=False)


def decomposed(x: XlaOp, full: bool = False) -> list[XlaOp]:
    """Return left vectors, singular values and right vectors of matrices in double precision."""
    if x.shape.size:
        return differentiable([x], _gesdd(x, "A" if full else "S"), gradients.svd)
    *batch, rows, columns = x.shape.dims
    least = min(rows, columns)
    left, right = (rows, columns) if full else (least, least)
    return [
        lapack.identity(x, (*batch, rows, left)),
        _no_values(x, least),
        lapack.identity(x, (*batch, right, columns)),
    ]


def singular_values(x: XlaOp) -> XlaOp:
    """Compute singular values alone; their derivative computes the vectors."""
    if not x.shape.size:
        return _no_values(x, min(x.shape.dims[-2:]))
    s = _gesdd(x, "N")[1]

    def forward(x: XlaOp) -> list[XlaOp]:
        u, s, vh = _gesdd(x, "S")
        return [s, u, vh]

    return differentiable([x], [s], gradients.singular_values, forward)[0]


def _no_values(x: XlaOp, count: int) -> XlaOp:
    return xla.broadcast(xla.constant(x.builder, 0, real_type(x)), (*x.shape.dims[:-2], count))


def _gesdd(x: XlaOp, mode: str) -> list[XlaOp]:
    *batch, rows, columns = x.shape.dims
    least = min(rows, columns)
    left, right = (rows, columns) if mode == "A" else (least, least)
    shapes = [
        x.shape, like(x, (*batch, least), real_type(x)), like(x, (*batch, rows, left)),
        like(x, (*batch, right, columns)), like(x, batch, _S32),
    ]  # fmt: skip
    _, values, u, vh, info = call("gesdd", [x], shapes, mode=mode)
    fail_where(nonzero(info), "SVD did not converge")
    return [u, values, vh]


def _hermitian_svd(a: Any, vectors: bool) -> Any:
    """Compute a singular value decomposition from eigenvalues: absolute values, and signs in the right vectors."""
    s, u = eigh(a)
    order = np.flip(np.argsort(abs(s), axis=-1), axis=-1)
    sizes = np.take_along_axis(abs(s), order, axis=-1)
    if not vectors:
        return sizes
    signs = np.take_along_axis(np.copysign(1.0, s), order, axis=-1)  # zeros have a sign, too: vectors stay unit vectors
    u = np.take_along_axis(u, order[..., None, :], axis=-1)
    right = np.swapaxes(np.conj(u * signs[..., None, :]), -1, -2)
    return results.SVDResult(u, sizes, right)


def _half(letter: Any) -> str:
    found = str(letter).upper()
    if found not in ("L", "U"):
        raise ValueError("UPLO argument must be 'L' or 'U'")
    return found


@implements(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803 - NumPy's name
    """Compute eigenvalues and vectors of Hermitian matrices from one triangle."""
    (x,), dtype = in_double(*lapack.squares(a))
    values, vectors = _hermitian(x, _half(UPLO))
    return results.EighResult(lapack.result(values, dtype), lapack.result(vectors, dtype))


@implements(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803 - NumPy's name
    """Compute eigenvalues of Hermitian matrices."""
    half = _half(UPLO)
    (x,), dtype = in_double(*lapack.squares(a))
    if not x.shape.size:
        return lapack.result(_no_values(x, x.shape.dims[-1]), dtype)
    values = _heevd(x, half, "N")[0]
    made = differentiable([x], [values], gradients.eigh(half == "L"), lambda x: _heevd(x, half, "V"))
    return lapack.result(made[0], dtype)


def _hermitian(x: XlaOp, half: str) -> list[XlaOp]:
    if not x.shape.size:
        return [_no_values(x, x.shape.dims[-1]), x]
    return differentiable([x], _heevd(x, half, "V"), gradients.eigh(half == "L"))


def _heevd(x: XlaOp, half: str, mode: str) -> list[XlaOp]:
    *batch, size, _ = x.shape.dims
    name = "heevd" if x.shape.dtype.is_complex else "syevd"
    shapes = [x.shape, like(x, (*batch, size), real_type(x)), like(x, batch, _S32)]
    vectors, values, info = call(name, [x], shapes, mode=mode, uplo=half)
    fail_where(xla.gt(info, scalar(info, 0)), "Eigenvalues did not converge")
    good = xla.eq(info, scalar(info, 0))
    return [lapack.or_nan(good, values), lapack.or_nan(good, vectors)]


@implements(np.linalg.eig, note=_REAL_AT_LAST)
def eig(a: Any) -> Any:
    """Compute eigenvalues and right eigenvectors by geev."""
    (x,), dtype = in_double(*lapack.squares(a))
    return results.EigResult(*_spectra(_general(x), dtype))


@implements(np.linalg.eigvals, note=_REAL_AT_LAST)
def eigvals(a: Any) -> Any:
    """Compute eigenvalues."""
    (x,), dtype = in_double(*lapack.squares(a))
    if not x.shape.size:
        return _spectra(_general(x)[:1], dtype)[0]
    made = differentiable([x], _geev(x, "N")[:1], gradients.eig, lambda x: _geev(x, "V"))
    return _spectra(made[:1], dtype)[0]


def _spectra(made: Sequence[XlaOp], dtype: Dtype) -> list[Any]:
    """Convert eigenvalues, and eigenvectors if there are any, to the complex dtype of results."""
    if dtype.kind == "c":
        return [lapack.result(op, dtype) for op in made]
    converted = [convert(op, np.result_type(dtype, np.complex64)) for op in made]
    return [Spectrum(op, converted[0]) for op in converted]


def _general(x: XlaOp) -> list[XlaOp]:
    if not x.shape.size:
        none = xla.broadcast(xla.constant(x.builder, 0, ElementType.C128), x.shape.dims)
        return [xla.reshape(none, x.shape.dims[:-1]), none]
    return differentiable([x], _geev(x, "V"), gradients.eig)


def _geev(x: XlaOp, mode: str) -> list[XlaOp]:
    *batch, size, _ = x.shape.dims
    real = not x.shape.dtype.is_complex
    finite = xla.is_finite(x) if real else xla.and_(xla.is_finite(xla.real(x)), xla.is_finite(xla.imag(x)))
    fail_where(xla.not_(finite), "Array must not contain infs or NaNs")
    numbers = [like(x, (*batch, size))] * (2 if real else 1)
    both = [like(x, x.shape.dims, ElementType.C128)] * 2
    shapes = [*numbers, *both, like(x, batch, _S32)]
    *values, _, vectors, info = call("geev", [x], shapes, compute_left="N", compute_right=mode)
    fail_where(xla.gt(info, scalar(info, 0)), "Eigenvalues did not converge")
    return [xla.complex_(*values) if real else values[0], vectors]
