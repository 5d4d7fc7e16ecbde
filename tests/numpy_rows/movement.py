"""Rows of shapes, joins, splits, repeats and padding."""

import numpy as np
from support.functions.function_rows import ANY, CUBE, EMPTY, INTEGERS, MATRIX, NUMBERS, SCALAR, VECTOR, Row

ONE = ((MATRIX,), (CUBE,))
ALL = ((MATRIX,), (SCALAR,), (EMPTY,))
TWO = ((MATRIX, MATRIX), (CUBE, CUBE))


def _shape_row(name, calls, shapes=ONE, **more):
    return Row(name, calls, shapes, ANY, ulp=0, differentiable=more.pop("differentiable", True), **more)


ROWS = [
    _shape_row(
        "reshape",
        [
            lambda x: np.reshape(x, -1),
            lambda x: np.reshape(x, (2, -1)),
            lambda x: x.reshape(-1, 2),
            lambda x: x.reshape((2, -1), order="F"),
            lambda x: np.reshape(x, (1, x.size, 1), order="A"),
            lambda x: np.reshape(x.T, (1, x.size, 1), order="A"),
            lambda x: np.reshape(x[..., ::-1] if x.ndim else x, (1, x.size, 1), order="A"),
            lambda x: np.reshape(x, (-1, 3), copy=True),
            lambda x: x.T.reshape(-1),
        ],
    ),
    _shape_row("reshape", [lambda x: x.reshape(()), lambda x: x.reshape(1, 1)], ((SCALAR,), ((1, 1),))),
    _shape_row("reshape", [lambda x: x.reshape(0, 7), lambda x: x.reshape(3, -1)], ((EMPTY,),)),
    _shape_row(
        "ravel", [lambda x: np.ravel(x), lambda x: x.ravel("F"), lambda x: x.T.ravel(), lambda x: x.flatten("F")], ALL
    ),
    _shape_row(
        "transpose",
        [
            lambda x: np.transpose(x),
            lambda x: x.T,
            lambda x: x.transpose(),
            lambda x: x.transpose(*range(x.ndim)[::-1]),
        ],
        ALL,
    ),
    _shape_row("transpose", [lambda x: np.transpose(x, (1, 2, 0)), lambda x: x.transpose(-1, 0, 1)], ((CUBE,),)),
    _shape_row("permute_dims", [lambda x: np.permute_dims(x, (2, 0, 1))], ((CUBE,),)),
    _shape_row(
        "matrix_transpose", [lambda x: np.matrix_transpose(x), lambda x: x.mT, lambda x: np.linalg.matrix_transpose(x)]
    ),
    _shape_row("swapaxes", [lambda x: np.swapaxes(x, 0, -1), lambda x: x.swapaxes(1, 0)]),
    _shape_row("moveaxis", [lambda x: np.moveaxis(x, 0, -1), lambda x: np.moveaxis(x, [0, 1], [-1, 0])]),
    _shape_row(
        "rollaxis", [lambda x: np.rollaxis(x, 1), lambda x: np.rollaxis(x, 0, 2), lambda x: np.rollaxis(x, -1, -2)]
    ),
    _shape_row(
        "squeeze",
        [lambda x: np.squeeze(x), lambda x: x.squeeze(), lambda x: np.squeeze(x, 0), lambda x: np.squeeze(x, (0, -1))],
        (((1, 3, 1),), ((1, 1),)),
    ),
    _shape_row("expand_dims", [lambda x: np.expand_dims(x, 0), lambda x: np.expand_dims(x, (0, -1))], ALL),
    _shape_row(
        "broadcast_to",
        [lambda x: np.broadcast_to(x, (2, 3, 4)), lambda x: np.broadcast_to(x, x.shape)],
        ((MATRIX,), ((3, 1),), (SCALAR,)),
    ),
    _shape_row(
        "broadcast_arrays",
        [lambda x, y: np.broadcast_arrays(x, y)],
        ((MATRIX, (4,)), ((3, 1), (1, 4)), (VECTOR, VECTOR)),
    ),
    _shape_row("atleast_1d", [lambda x: np.atleast_1d(x), lambda x: np.atleast_1d(x, 1)], ALL),
    _shape_row("atleast_2d", [lambda x: np.atleast_2d(x), lambda x: np.atleast_2d(x, x)], (*ALL, (VECTOR,))),
    _shape_row("atleast_3d", [lambda x: np.atleast_3d(x), lambda x: np.atleast_3d(x, [1, 2])], (*ALL, (VECTOR,))),
    _shape_row("shape", [lambda x: np.sum(np.shape(x)) + x * 0], ALL, differentiable=False),
    _shape_row("size", [lambda x: x * 0 + np.size(x, -1), lambda x: x * 0 + np.size(x)], ONE, differentiable=False),
    _shape_row("ndim", [lambda x: x * 0 + np.ndim(x)], ALL, differentiable=False),
    _shape_row("flip", [lambda x: np.flip(x), lambda x: np.flip(x, 0), lambda x: np.flip(x, (0, -1))]),
    _shape_row("fliplr", [lambda x: np.fliplr(x)]),
    _shape_row("flipud", [lambda x: np.flipud(x)], ((VECTOR,), (MATRIX,))),
    _shape_row("rot90", [lambda x, k=k: np.rot90(x, k) for k in range(-1, 4)]),
    _shape_row("rot90", [lambda x: np.rot90(x, 1, (2, 0)), lambda x: np.rot90(x, 3, (1, 2))], ((CUBE,),)),
    # concatenated
    _shape_row(
        "concatenate",
        [
            lambda x, y: np.concatenate([x, y]),
            lambda x, y: np.concatenate((x, y, x), axis=-1),
            lambda x, y: np.concatenate([x, y], axis=None),
            lambda x, y: np.concatenate([x, y], dtype=np.complex128),
            lambda x, y: np.concatenate(x, 0),
        ],
        TWO,
    ),
    _shape_row(
        "concatenate",
        [lambda x, y: np.concatenate([x, y, [1, 2, 3]]), lambda x, y: np.concatenate([x, [0.5, 2]])],
        ((VECTOR, (0,)),),
    ),
    _shape_row("concat", [lambda x, y: np.concat([x, y.T])], ((MATRIX, (4, 1)), (MATRIX, (4, 0)))),
    _shape_row(
        "stack",
        [
            lambda x, y: np.stack([x, y]),
            lambda x, y: np.stack([x, y, x], axis=-1),
            lambda x, y: np.stack((x, y), 1, dtype=np.complex128, casting="unsafe"),
        ],
        (*TWO, (VECTOR, VECTOR)),
    ),
    _shape_row(
        "stack", [lambda x, y: np.stack([x, y, 1.5]), lambda x, y: np.array([x, y]).reshape(-1)], ((SCALAR, SCALAR),)
    ),
    _shape_row(
        "vstack",
        [lambda x, y: np.vstack([x, y]), lambda x, y: np.vstack((x, y), dtype=complex)],
        ((VECTOR, VECTOR), *TWO),
    ),
    _shape_row(
        "hstack",
        [lambda x, y: np.hstack([x, y]), lambda x, y: np.hstack((x, y), dtype=complex)],
        ((VECTOR, VECTOR), (SCALAR, SCALAR), *TWO),
    ),
    _shape_row("dstack", [lambda x, y: np.dstack([x, y])], ((VECTOR, VECTOR), (SCALAR, SCALAR), *TWO)),
    _shape_row(
        "column_stack", [lambda x, y: np.column_stack([x, y])], ((VECTOR, VECTOR), ((3,), MATRIX), (MATRIX, MATRIX))
    ),
    _shape_row(
        "block",
        [
            lambda x, y: np.block([[x, y], [y, x]]),
            lambda x, y: np.block([x, y]),
            lambda x, y: np.block([[x], [y]]),
            lambda x, y: np.block(x),
        ],
        ((MATRIX, MATRIX), (SCALAR, SCALAR), (CUBE, CUBE)),
    ),
    _shape_row(
        "append",
        [lambda x, y: np.append(x, y), lambda x, y: np.append(x, y, axis=0), lambda x, y: np.append(x, [1, 2])],
        TWO,
    ),
    _shape_row(
        "r_",
        [
            lambda x, y: np.r_[x, y],
            lambda x, y: np.r_[0, x, 1.5, y],
            lambda x, y: np.r_[1:3, x],
            lambda x, y: np.c_[x, y],
        ],
        ((VECTOR, VECTOR), (SCALAR, SCALAR)),
    ),
    _shape_row("c_", [lambda x, y: np.c_[x, y, x], lambda x, y: np.c_[x[:, 0], [1, 2, 3]]], ((MATRIX, MATRIX),)),
    # split
    _shape_row(
        "split",
        [lambda x: np.split(x, 3), lambda x: np.split(x, [1, 2]), lambda x: np.split(x, 2, axis=-1)],
        (((6, 4),), ((3, 2),)),
    ),
    _shape_row(
        "array_split",
        [lambda x: np.array_split(x, 4), lambda x: np.array_split(x, 3, axis=-1), lambda x: np.array_split(x, [1, 9])],
    ),
    _shape_row("hsplit", [lambda x: np.hsplit(x, 2)], ((MATRIX,), ((4,),))),
    _shape_row("vsplit", [lambda x: np.vsplit(x, [1])]),
    _shape_row("dsplit", [lambda x: np.dsplit(x, 2), lambda x: np.dsplit(x, [1, -1])], ((CUBE,),)),
    _shape_row("unstack", [lambda x: np.unstack(x), lambda x: np.unstack(x, axis=1)]),
    # repeated
    _shape_row(
        "tile", [lambda x: np.tile(x, 2), lambda x: np.tile(x, (2, 1, 3)), lambda x: np.tile(x, ())], (*ALL, (CUBE,))
    ),
    _shape_row(
        "repeat", [lambda x: np.repeat(x, 2), lambda x: x.repeat(3, axis=0), lambda x: np.repeat(x, 0, -1)], ALL
    ),
    _shape_row(
        "repeat", [lambda x: np.repeat(x, [2, 0, 1], axis=0), lambda x: np.repeat(x, np.array([3]), 1)], ((MATRIX,),)
    ),
    _shape_row("repeat", [lambda x: np.repeat(x, np.arange(12) % 4)], ((MATRIX,),)),
    _shape_row("repeat", [lambda x: np.repeat(x, -1), lambda x: np.repeat(x, [-2], 0)], ((EMPTY,),)),
    _shape_row(
        "resize",
        [lambda x: np.resize(x, 5), lambda x: np.resize(x, (4, 7)), lambda x: np.resize(x, (2, 0))],
        (*ALL, (VECTOR,)),
    ),
    _shape_row(
        "insert",
        [
            lambda x: np.insert(x, 1, 5),
            lambda x: np.insert(x, 1, 5, axis=1),
            lambda x: np.insert(x, [0, 2], [[7], [8]], axis=0),
            lambda x: np.insert(x, [2, 0], 1, axis=-1),
            lambda x: np.insert(x, slice(0, 3, 2), 9, axis=0),
            lambda x: np.insert(x, [], 9, axis=0),
            lambda x: np.insert(x, [-1], [[1], [2]], axis=0),
            lambda x: np.insert(x, np.array([False, True, False]), x[:2], axis=0),
            lambda x: np.insert(x, 1, [1, 2, 3], axis=1),
            lambda x: np.insert(x, -1, x[0, 0]),
        ],
        ((MATRIX,),),
    ),
    _shape_row(
        "delete",
        [
            lambda x: np.delete(x, 1),
            lambda x: np.delete(x, [0, -1], axis=1),
            lambda x: np.delete(x, slice(None, None, 2), 0),
            lambda x: np.delete(x, [], axis=0),
            lambda x: np.delete(x, np.array([True, False, True]), 0),
        ],
        ((MATRIX,),),
    ),
    _shape_row(
        "roll",
        [
            lambda x: np.roll(x, 1),
            lambda x: np.roll(x, -2, axis=0),
            lambda x: np.roll(x, (1, 2), axis=(0, 1)),
            lambda x: np.roll(x, 1, (0, 1)),
        ],
        (*ONE, (EMPTY,)),
    ),
    Row(
        "roll",
        [lambda x, k: np.roll(x, k[0, 0]), lambda x, k: np.roll(x, k[0, 1], axis=0)],
        ((MATRIX, MATRIX),),
        INTEGERS,
        ulp=0,
    ),
    # padded
    _shape_row(
        "pad",
        [
            lambda x: np.pad(x, 1),
            lambda x: np.pad(x, (1, 2), constant_values=3),
            lambda x: np.pad(x, [(0, 1), (2, 0)], mode="constant", constant_values=((1, 2), (3, 4))),
            lambda x: np.pad(x, {-1: (1, 2)}),
        ],
        ((MATRIX,), ((0, 2),)),
    ),
    _shape_row(
        "pad",
        [
            lambda x, mode=mode, width=width: np.pad(x, width, mode=mode)
            for mode in ("edge", "reflect", "symmetric", "wrap")
            for width in (2, ((1, 0), (5, 9)))
        ],
        ((MATRIX,), ((1, 2),)),
    ),
    _shape_row(
        "pad",
        [
            lambda x, mode=mode, width=width: np.pad(x, width, mode=mode, reflect_type="odd")
            for mode in ("reflect", "symmetric")
            for width in (2, ((1, 0), (5, 9)))
        ],
        ((MATRIX,),),
    ),
    Row(
        "pad",
        [
            lambda x, m=m, n=n: np.pad(x, (1, 2), mode=m, stat_length=n)
            for m in ("maximum", "minimum")
            for n in (None, 2)
        ],
        ((MATRIX,),),
        NUMBERS,
    ),
    Row(
        "pad",
        [lambda x, n=n: np.pad(x, (1, 2), mode="mean", stat_length=n) for n in (None, 2, ((1, 2), (3, 4)))],
        ((MATRIX,),),
        "fdilBD",
        of_largest=True,
        ulp=8,
        differentiable=True,
    ),
    Row("pad", [lambda x: np.pad(x, (1, 2), mode="median")], ((MATRIX,),), "fdil"),
    Row(
        "pad",
        [
            lambda x: np.pad(x, (3, 2), mode="linear_ramp"),
            lambda x: np.pad(x, 2, mode="linear_ramp", end_values=((1, 2), (-3, 4))),
        ],
        ((MATRIX,),),
        "fdilFD",
        of_largest=True,
        differentiable=True,
    ),
    # diagonals and triangles
    _shape_row(
        "diag",
        [lambda x, k=k: np.diag(x, k) for k in (0, 1, -2, 9)],
        ((MATRIX,), (VECTOR,), ((4, 2),), ((0,),)),
    ),
    _shape_row(
        "diagonal",
        [
            lambda x: np.diagonal(x),
            lambda x: x.diagonal(1),
            lambda x: np.diagonal(x, -1, 1, 0),
            lambda x: np.diagonal(x, 7),
        ],
        (*ONE, (EMPTY,)),
    ),
    _shape_row("linalg.diagonal", [lambda x: np.linalg.diagonal(x), lambda x: np.linalg.diagonal(x, offset=-1)]),
    _shape_row("diagflat", [lambda x: np.diagflat(x), lambda x: np.diagflat(x, -1)], (*ALL, (VECTOR,))),
    _shape_row(
        "tril",
        [lambda x: np.tril(x), lambda x: np.tril(x, 1), lambda x: np.tril(x, -1)],
        (*ONE, (VECTOR,), (EMPTY,)),
    ),
    _shape_row(
        "triu",
        [lambda x: np.triu(x), lambda x: np.triu(x, 1), lambda x: np.triu(x, -1)],
        (*ONE, (VECTOR,), (EMPTY,)),
    ),
    _shape_row(
        "meshgrid",
        [
            lambda x, y: np.meshgrid(x, y),
            lambda x, y: np.meshgrid(x, y, indexing="ij"),
            lambda x, y: np.meshgrid(x, y, x, sparse=True),
            lambda x, y: np.meshgrid(x, copy=False),
        ],
        ((VECTOR, (3,)), (SCALAR, (0,))),
    ),
    Row("ix_", [lambda x, y: np.ix_(x, y), lambda x, y: np.ix_(x, [0, 1])], ((VECTOR, (3,)),), "bil"),
    Row(
        "vander",
        [
            lambda x: np.vander(x),
            lambda x: np.vander(x, 3),
            lambda x: np.vander(x, 4, increasing=True),
            lambda x: np.vander(x, 0),
        ],
        ((VECTOR,),),
        NUMBERS,
        low=-2,
        high=2,
        differentiable=True,
    ),
    Row(
        "lib.stride_tricks.as_strided",
        [
            lambda x: np.lib.stride_tricks.as_strided(x, (x.size,), x.strides[-1:]),
            lambda x: np.lib.stride_tricks.as_strided(x, (2, 2, 2), (0, *x.strides[-1:], *x.strides[-1:])),
        ],
        ((MATRIX,), ((3, 3, 3),), (VECTOR,)),
        "?lfD",
        ulp=8,
    ),
    Row(
        "lib.stride_tricks.sliding_window_view",
        [
            lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, axis=-1),
            lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 3), axis=(0, 1)).mean(axis=(-1, -2)),
            lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 1), axis=(0, 0)),
            lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 2)),
            lambda x: np.lib.stride_tricks.sliding_window_view(x, 9, 0),
            lambda x: np.lib.stride_tricks.sliding_window_view(x, -1, 0),
        ],
        ((MATRIX,), ((3, 3, 3),), (VECTOR,)),
        "?lfD",
        ulp=8,
        differentiable=True,
    ),
    # bits
    Row(
        "ndarray.view",
        [
            lambda x: x.view(np.uint8),
            lambda x: x.view(),
            lambda x: x.view(x.dtype),
            lambda x: x.view(np.int16),
            lambda x: x.view(np.float64),
            lambda x: x.view(complex),
            lambda x: x.view(np.complex64),
            lambda x: x.view("i4"),
        ],
        (((2, 8),), (SCALAR,), (VECTOR,)),
        ANY,
        ulp=0,
    ),
    Row("ndarray.view", [lambda x: x.view(bool)], ((MATRIX,),), "bB?", ulp=0, low=0, high=1),
    Row("ndarray.byteswap", [lambda x: x.byteswap().view(np.uint8)], ((MATRIX,),), NUMBERS, ulp=0),
]
