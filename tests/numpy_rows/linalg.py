"""Rows of numpy.linalg."""

import numpy as np
from numpy import linalg as la
from support.functions.function_rows import Row

SQUARE, BATCH, TALL, WIDE, ONE = (3, 3), (2, 3, 3), (4, 3), (2, 4), (1, 1)
NO, NONE = (0, 0), (2, 0, 0)
TYPES = "bfdFD"
NEAR = {"ulp": 256, "of_largest": True}


def spread(rng, shape, dtype):
    """Return well-conditioned matrices."""
    made = rng.uniform(-1, 1, shape)
    made = made + (1j * rng.uniform(-1, 1, shape) if dtype.kind == "c" else 0)
    if len(shape) > 1:
        made = made + 3 * np.eye(*shape[-2:]) * np.arange(1, shape[-1] + 1)
    return (made * (5 if dtype.kind in "iu" else 1)).astype(dtype)


def hermitian(rng, shape, dtype):
    """Return Hermitian matrices with distinct positive eigenvalues."""
    made = spread(rng, shape, dtype).astype(complex if dtype.kind == "c" else float)
    if len(shape) > 1 and shape[-1] == shape[-2]:
        made = made + np.conj(np.swapaxes(made, -1, -2))
    return made.astype(dtype)


def planes(u):
    """Return values that do not depend on the signs of vectors."""
    return np.abs(u)


ROWS = [
    *[Row(f"linalg.{f.__name__}", [lambda x, f=f: f(x)], ((TALL,), ((3,),)), "d")
      for f in (la.cholesky, la.inv, la.det, la.slogdet, la.eigh, la.eigvals)],
    Row("linalg.solve", [lambda x, y: la.solve(x, y)], ((BATCH, (2, 3)), (SQUARE, (4,)), (TALL, (4,)), (SQUARE, ())),
        "d"),
    Row("linalg.norm", [lambda x: la.norm(x, (2, -1)), lambda x: la.norm(x, [1.5, 2, 3], axis=0),
                        lambda x: la.norm(x, np.float64(3), axis=0)], ((3,), (1,), (2, 3), (0,)), "fd"),
    Row("linalg.norm", [lambda x: la.norm(x, 7), lambda x: la.norm(x, "fro", 0), lambda x: la.norm(x, 2, (0, 0)),
                        lambda x: la.norm(x, axis=(0, 1, 2)), lambda x: la.norm(x, axis=3),
                        lambda x: la.norm(x, axis="x")],
        ((TALL,), (BATCH,)), "d"),
    Row("linalg.cholesky", [lambda x: la.cholesky(x), lambda x: la.cholesky(x, upper=True)],
        ((SQUARE,), (BATCH,), (ONE,), (NO,), (NONE,)), TYPES, make=hermitian, differentiable=True,
        **NEAR),
    Row("linalg.solve", [lambda x, y: la.solve(x, y)],
        ((SQUARE, (3,)), (SQUARE, (3, 2)), (BATCH, (3,)), (BATCH, (3, 2)), (BATCH, (2, 3, 1)), (SQUARE, BATCH),
         (NO, (0, 2)), (NO, (0,)), (SQUARE, (3, 0))),
        TYPES, make=spread, differentiable=True, **NEAR),
    Row("linalg.inv", [lambda x: la.inv(x)], ((SQUARE,), (BATCH,), (ONE,), (NO,), (NONE,)),
        TYPES + "e",
        make=spread, differentiable=True, **NEAR),
    Row("linalg.det", [lambda x: la.det(x)], ((SQUARE,), (BATCH,), (ONE,), (NO,), (NONE,)), TYPES + "e",
        make=spread, differentiable=True, **NEAR),
    Row("linalg.slogdet", [lambda x: la.slogdet(x), lambda x: la.slogdet(-x)[0]],
        ((SQUARE,), (BATCH,), (ONE,), (NO,), (NONE,)), TYPES, make=spread, differentiable=True, **NEAR),
    Row("linalg.qr", [lambda x: la.qr(x), lambda x: la.qr(x, "r"), lambda x: la.qr(x, mode="raw")],
        ((SQUARE,), (BATCH,), (TALL,), (WIDE,), ((2, 5, 2),), (ONE,), ((0, 3),), ((3, 0),)), TYPES, make=spread,
        **NEAR),
    Row("linalg.qr", [lambda x: la.qr(x), lambda x: la.qr(x, "r")], ((SQUARE,), (BATCH,), (TALL,), (WIDE,)), "dD",
        make=spread, differentiable=True, **NEAR),
    Row("linalg.qr", [lambda x: la.qr(x, "complete")], ((SQUARE,), (TALL,), (WIDE,), ((0, 3),), ((3, 0),)), TYPES,
        make=spread, **NEAR),
    Row("linalg.svd",
        [lambda x: la.svd(x, compute_uv=False), lambda x: planes(la.svd(x, full_matrices=False).U),
         lambda x: planes(la.svd(x, full_matrices=False).Vh), lambda x: la.svdvals(x),
         lambda x: la.matmul(*(lambda u, s, vh: (u * s[..., None, :], vh))(*la.svd(x, False)))],
        ((SQUARE,), (BATCH,), (TALL,), (WIDE,), (ONE,)), TYPES, make=spread, differentiable=True, **NEAR),
    Row("linalg.svd", [lambda x: planes(la.svd(x)[0]), lambda x: planes(la.svd(x)[2]), lambda x: la.svdvals(x),
                       lambda x: la.svd(x, full_matrices=False)],
        (((0, 3),), ((3, 0),), ((2, 0, 3),)), TYPES, make=spread, **NEAR),
    Row("linalg.svd", [lambda x: la.svd(x, hermitian=True, compute_uv=False),
                       lambda x: planes(la.svd(x, hermitian=True)[0])], ((SQUARE,), (BATCH,)), TYPES, make=hermitian,
                       **NEAR),
    Row("linalg.eigh",
        [lambda x: la.eigvalsh(x), lambda x: la.eigvalsh(x, "U"), lambda x: la.eigh(x).eigenvalues,
         lambda x: planes(la.eigh(x)[1]), lambda x: planes(la.eigh(x, UPLO="u")[1]),
         lambda x: (lambda w, v: (v * np.exp(-w / 10)[..., None, :]) @ np.conj(np.swapaxes(v, -1, -2)))(*la.eigh(x))],
        ((SQUARE,), (BATCH,), (ONE,), (NO,), (NONE,)), TYPES, make=hermitian, differentiable=True, **NEAR),
    Row("linalg.eig",
        [lambda x: np.sort(la.eigvals(x + 0j)), lambda x: np.sort(la.eig(x + 0j)[0]),
         lambda x: (lambda w, v: v * w[..., None, :] - x @ v)(*la.eig(x + 0j)) + 1],
        ((SQUARE,), (BATCH,), (ONE,), (NO,)), "fdFD", make=spread, **NEAR),
    Row("linalg.eig", [lambda x: np.sum(la.eigvals(x + 0j) ** 3)], ((SQUARE,),), "dD", make=spread, differentiable=True,
        **NEAR),
    Row("linalg.pinv",
        [lambda x: la.pinv(x), lambda x: la.pinv(x, 1e-3), lambda x: la.pinv(x, rtol=None),
         lambda x: la.pinv(x, rtol=0.01)],
        ((SQUARE,), (BATCH,), (TALL,), (WIDE,), ((0, 3),)), TYPES, make=spread, differentiable=True, **NEAR),
    Row("linalg.pinv", [lambda x: la.pinv(x, hermitian=True)], ((SQUARE,), (BATCH,)), TYPES, make=hermitian, **NEAR),
    Row("linalg.lstsq",
        [lambda x, y: la.lstsq(x, y), lambda x, y: la.lstsq(x, y, rcond=1e-3),
         lambda x, y: la.lstsq(x, y, rcond=-1)[0]],
        ((TALL, (4,)), (TALL, (4, 2)), (SQUARE, (3,)), (WIDE, (2, 3)), ((0, 3), (0, 2)), ((3, 0), (3,)), (TALL, (3,))),
        TYPES, make=spread, **NEAR),
    Row("linalg.lstsq", [lambda x, y: la.lstsq(x, y)[0], lambda x, y: la.lstsq(x, y)[1]],
        ((TALL, (4,)), (WIDE, (2, 3))), "dD", make=spread, differentiable=True, **NEAR),
    Row("linalg.norm",
        [lambda x: la.norm(x), lambda x: la.norm(x, 1), lambda x: la.norm(x, -1),
         lambda x: la.norm(x, np.inf), lambda x: la.norm(x, -np.inf), lambda x: la.norm(x, 2),
         lambda x: la.norm(x, -2), lambda x: la.norm(x, "fro", keepdims=True), lambda x: la.norm(x, "nuc"),
         lambda x: la.norm(x, axis=0), lambda x: la.norm(x, 3, axis=1), lambda x: la.norm(x, 0, axis=-1),
         lambda x: la.norm(x, np.inf, axis=0, keepdims=True), lambda x: la.norm(x, 2, axis=(1, 0), keepdims=True),
         lambda x: la.norm(x, 1, axis=(0, 1)), lambda x: la.norm(x, -np.inf, axis=1), lambda x: la.norm(x, 1, 0),
         lambda x: la.matrix_norm(x), lambda x: la.vector_norm(x), lambda x: la.vector_norm(x, axis=0, ord=1),
         lambda x: la.vector_norm(x, keepdims=True, ord=0.5), lambda x: la.norm(x[0], 2.5)],
        ((TALL,),), TYPES + "?e", make=spread, differentiable=True, **NEAR),
    Row("linalg.norm",
        [lambda x: la.norm(x, axis=(0, 2)), lambda x: la.norm(x, "nuc", axis=(2, 1)), lambda x: la.norm(x),
         lambda x: la.norm(x, 1), lambda x: la.matrix_norm(x, ord=1, keepdims=True),
         lambda x: la.vector_norm(x, axis=(0, 2)), lambda x: la.vector_norm(x, axis=(2, 1), keepdims=True)],
        ((BATCH,), ((2, 0, 3),)), TYPES, make=spread, **NEAR),
    Row("linalg.cond",
        [lambda x: la.cond(x), lambda x: la.cond(x, 1), lambda x: la.cond(x, -2),
         lambda x: la.cond(x, "fro"), lambda x: la.cond(x, np.inf), lambda x: la.cond(x * 0, 1),
         lambda x: la.cond(x * 0)],
        ((SQUARE,), (BATCH,), (TALL,), (NO,)), TYPES, make=spread, **NEAR),
    Row("linalg.pinv",
        [lambda x: la.pinv(x), lambda x: la.pinv(x, hermitian=True), lambda x: la.cond(x), lambda x: la.cond(x, 1),
         lambda x: la.norm(x, np.inf, axis=-1), lambda x: la.vector_norm(x, ord=np.inf),
         lambda x: la.vector_norm(x, ord=-np.inf), lambda x: la.matrix_rank(x)],
        (((0, 2, 2),), ((2, 0, 0),), ((0, 0),)), "lef", **NEAR),
    Row("linalg.matrix_rank",
        [lambda x: la.matrix_rank(x), lambda x: la.matrix_rank(x, 4.0), lambda x: la.matrix_rank(x, rtol=0.5),
         lambda x: la.matrix_rank(x * 0), lambda x: la.matrix_rank(x, hermitian=True)],
        ((SQUARE,), (BATCH,), ((3,),), (NO,)), TYPES, make=spread),
    Row("linalg.matrix_power",
        [lambda x, k=k: la.matrix_power(x, k) for k in (0, 1, 2, 3, 5, 10, -1, -3)], ((SQUARE,), (BATCH,), (NO,),
        (TALL,)),
        TYPES + "?", make=spread, **NEAR),
    Row("linalg.tensorinv", [lambda x: la.tensorinv(x), lambda x: la.tensorinv(x, ind=1)],
        (((2, 3, 6),), ((6, 2, 3),), ((4, 6, 8, 3),)), "dF", make=lambda r, s, d: spread(r, (6, 6), d).reshape(s) if
        np.prod(s) == 36 else spread(r, (24, 24), d).reshape(s), **NEAR),
    Row("linalg.tensorsolve", [lambda x, y: la.tensorsolve(x, y), lambda x, y: la.tensorsolve(x, y, axes=(0,))],
        (((2, 3, 6), (2, 3)), ((2, 3, 3, 2), (2, 3))), "dF",
        make=lambda r, s, d: spread(r, (6, 6), d).reshape(s) if np.prod(s) == 36 else spread(r, s, d), **NEAR),
]  # fmt: skip
