"""Rows of products of vectors, matrices and tensors."""

import numpy as np
from function_rows import ANY, INEXACT, NUMBERS, Row

V3, V4, M34, M43, C234, C243, S, E03 = (3,), (4,), (3, 4), (4, 3), (2, 3, 4), (2, 4, 3), (), (0, 3)
SMALL = {"low": -3, "high": 3, "ulp": 16, "of_largest": True}

ROWS = [
    Row(
        "matmul",
        [lambda x, y: x @ y],
        (
            (M34, M43), (V4, M43), (M34, V4), (V4, V4), (C234, M43), (M34, C243), (C234, C243), (V4, C243),
            (C234, V4), ((1, 3, 4), C243), ((2, 1, 3, 4), (5, 4, 2)), ((2, 5, 3, 4), (5, 4, 2)), (E03, (3, 2)),
            ((2, 0), (0, 3)), ((0, 2, 3), (3, 4)),
        ),
        ANY, differentiable=True, **SMALL,
    ),
    Row(
        "matmul",
        [
            lambda x, y: np.matmul(x, y, axes=[(0, 1), (1, 2), (1, 0)]), lambda x, y: np.matmul(x, y, dtype=np.float64),
            lambda x, y: np.matmul(x, y, np.zeros_like(x, shape=(2, 3, 5))),
            lambda x, y: np.linalg.matmul(x, y),
        ],
        ((C234, (2, 4, 5)), ((3, 4, 2), (2, 4, 3))), "bif", **SMALL,
    ),
    Row("vecdot", [lambda x, y: np.vecdot(x, y), lambda x, y: np.vecdot(x, y, keepdims=True)],
        ((M34, M34), (C234, M34), (C234, (2, 1, 4)), ((3, 0), (3, 0))), ANY, differentiable=True, **SMALL),
    Row("vecdot", [lambda x, y: np.vecdot(x, y, axis=0), lambda x, y: np.linalg.vecdot(x, y, axis=-2),
                   lambda x, y: np.vecdot(x, y, axes=[0, 0])], ((M34, M34),), ANY, differentiable=True, **SMALL),
    Row("vecdot", [lambda x, y: np.vecdot(x, y, axis=0)], ((C234, M34),), "f", **SMALL),
    Row("matvec", [lambda x, y: np.matvec(x, y)], ((M34, V4), (C234, V4), (M34, (2, 4)), (C234, (2, 4))), ANY, **SMALL),
    Row("vecmat", [lambda x, y: np.vecmat(x, y)], ((V3, M34), ((2, 3), M34), (V3, C234), ((2, 3), C234)), ANY, **SMALL),
    Row(
        "dot", [lambda x, y: np.dot(x, y), lambda x, y: x.dot(y)],
        ((M34, M43), (V4, V4), (M34, V4), (V4, M43), (C234, C243), (S, M34), (M34, S), (C234, V4), ((2, 0), (0, 3))),
        ANY, differentiable=True, **SMALL,
    ),
    Row("dot", [lambda x: np.dot(x, 2.0), lambda x: np.dot(2, x), lambda x: np.inner(x, 2)], ((M34,),), "bfF", **SMALL),
    Row(
        "vdot", [lambda x, y: np.vdot(x, y)], ((V4, V4), (M34, M34), (M34, (12,)), (S, S), (E03, E03)), ANY,
        differentiable=True, **SMALL,
    ),
    Row(
        "inner", [lambda x, y: np.inner(x, y)], ((V4, V4), (M34, V4), (C234, M34), (S, M34), ((3, 0), (2, 0))), ANY,
        differentiable=True, **SMALL,
    ),
    Row("outer", [lambda x, y: np.outer(x, y),
        lambda x, y: np.outer(x, 2.5)], ((V3, V4), (M34, V3), (S, V3), ((0,), V3)),
        ANY, differentiable=True, **SMALL),
    Row("linalg.outer", [lambda x, y: np.linalg.outer(x, y)], ((V3, V4), ((0,), V3)), ANY, differentiable=True,
        **SMALL),
    Row("linalg.outer", [lambda x, y: np.linalg.outer(x, y)], ((M34, V3), (S, V3)), "f", **SMALL),
    Row(
        "tensordot",
        [
            lambda x, y: np.tensordot(x, y), lambda x, y: np.tensordot(x, y, 1), lambda x, y: np.tensordot(x, y, 0),
            lambda x, y: np.tensordot(x, y, ([1, 2], [1, 2])), lambda x, y: np.tensordot(x, y, (0, 0)),
            lambda x, y: np.tensordot(x, y, ((1, -3), (-2, 0))),
            lambda x, y: np.linalg.tensordot(x, y, axes=((0, 1), (0, 1))),
        ],
        ((C234, C234), (C234, (4, 3, 2)), (C234, (3, 4, 2))), "?bfdF", **SMALL,
    ),
    Row("kron", [lambda x, y: np.kron(x, y)], ((V3, V4), (M34, M43), (C234, M34), (V3, M34), (S, V3), (E03, V3)), ANY,
        differentiable=True, **SMALL),
    Row(
        "einsum",
        [
            lambda x, y: np.einsum("ij,jk->ik", x, y), lambda x, y: np.einsum("ij,jk", x, y),
            lambda x, y: np.einsum("ij,jk->ki", x, y), lambda x, y: np.einsum("ij,jk->j", x, y),
            lambda x, y: np.einsum("ij,kl->", x, y), lambda x, y: np.einsum("ij,ji->ij", x, y),
            lambda x, y: np.einsum(x, [0, 1], y, [1, 2]), lambda x, y: np.einsum(x, [0, 1], y, [1, 2], [2, 0]),
            lambda x, y: np.einsum("...j,jk", x, y), lambda x, y: np.einsum("i...,...k->k...i", x, y, optimize=True),
            lambda x, y: np.einsum("ij,jk,kl,lm", x, y, x, y, optimize="optimal"),
            lambda x, y: np.einsum("ij,jk,ki->j", x, y, x @ y, optimize=["einsum_path", (0, 2), (0, 1)]),
            lambda x, y: np.einsum("ij,jk,il->l", x, y, x), lambda x, y: np.einsum(" i j , k l -> l i ", x, y),
        ],
        ((M34, M43),), ANY, differentiable=True, **SMALL,
    ),
    Row(
        "einsum",
        [
            lambda x: np.einsum("iij->ij", x), lambda x: np.einsum("iij", x), lambda x: np.einsum("ijk->kji", x),
            lambda x: np.einsum("ijk->", x), lambda x: np.einsum("...k->k...", x), lambda x: np.einsum("ii...", x),
            lambda x: np.einsum(x, [0, Ellipsis], [Ellipsis, 0]), lambda x: np.einsum("ijk,ijk->ik", x, x),
            lambda x: np.einsum("bij,bjk->bik", x, x[:, :, :1] * x[:, :1]),
            lambda x: np.einsum("ij...,j...", x[0], x[1]),
        ],
        (((3, 3, 4),), ((0, 0, 2),), ((1, 1, 1),)), ANY, **SMALL,
    ),
    Row("einsum", [lambda x, y: np.einsum("...ij,...jk", x, y), lambda x, y: np.einsum("...ij,...jk->...", x, y)],
        ((C234, C243), (C234, M43), ((2, 1, 3, 4), (5, 4, 2))), "ifD", **SMALL),
    Row("einsum", [lambda x, y: np.einsum("ij,jk", x, y), lambda x, y: np.einsum("ij,jk->ij", x, y)],
        (((3, 1), (4, 2)), ((3, 4), (1, 2))), "if", **SMALL),
    Row("einsum", [lambda x: np.einsum("ij->j", x, dtype=np.float64),
                   lambda x: np.einsum("ij->j", x, dtype=np.complex128)],
        dtypes="if", shapes=((M34,),), **SMALL),
    Row("linalg.multi_dot",
        [lambda x, y: np.linalg.multi_dot([x, y]), lambda x, y: np.linalg.multi_dot([x, y, x]),
         lambda x, y: np.linalg.multi_dot([x, y, x, y]), lambda x, y: np.linalg.multi_dot([x[0], y, x, y[:, 0]])],
        ((M34, M43), ((5, 2), (2, 5))), NUMBERS, differentiable=True, **SMALL | {"ulp": 64}),
    Row("trace", [lambda x: np.trace(x), lambda x: np.trace(x, 1), lambda x: np.trace(x, -1, 1, 0), lambda x: x.trace(),
                  lambda x: np.trace(x, dtype=np.float64)], ((M34,), ((3, 3),), (C234,)), ANY,
        differentiable=True, **SMALL),
    Row("linalg.trace", [lambda x: np.linalg.trace(x), lambda x: np.linalg.trace(x, offset=1)],
        ((M34,), (C234,)), INEXACT, **SMALL),
    Row("einsum_path", [lambda x, y: np.einsum("ij,jk,kl", x, y, x, optimize=np.einsum_path("ij,jk,kl", x, y, x)[0])],
        ((M34, M43),), "fd", **SMALL),
]  # fmt: skip
