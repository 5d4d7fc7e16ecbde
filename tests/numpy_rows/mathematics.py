"""Rows of mathematical functions that are not ufuncs."""

import numpy as np
from support.functions.function_rows import ANY, CUBE, EMPTY, INTEGERS, MATRIX, NUMBERS, REALS, SCALAR, VECTOR, Row

LINES = ((MATRIX,), (VECTOR,))


def _growing(rng, shape, dtype):
    return np.cumsum(rng.uniform(0.5, 2, shape), axis=-1).astype(dtype)


def _apart(rng, shape, dtype):
    """Return numbers that are neither integers nor near a bound."""
    return np.asarray(rng.integers(-6, 6, shape) + rng.uniform(0.2, 0.8, shape)).astype(dtype)


ROWS = [
    Row(
        "round",
        [
            lambda x: np.round(x),
            lambda x: np.round(x, 2),
            lambda x: np.around(x, decimals=-1),
            lambda x: x.round(1),
            lambda x: np.round(x, 1, out=np.empty_like(x)),
        ],
        dtypes="bHlfdFD",
        low=-500,
        high=500,
        ulp=4,
    ),
    Row("fix", [lambda x: np.fix(x)], dtypes=REALS, special=True),
    Row(
        "clip",
        [
            lambda x: np.clip(x, 1, 3),
            lambda x: np.clip(x, None, 3),
            lambda x: np.clip(x, a_min=2, a_max=None),
            lambda x: x.clip(1),
            lambda x: np.clip(x, min=1, max=2),
            lambda x: np.clip(x, 3, 1),
            lambda x: np.clip(x, 1, 3, out=np.empty_like(x)),
            lambda x: np.clip(x, -1000, 1000),
        ],
        dtypes="bBHlefdFD",
        special=True,
    ),
    Row(
        "clip",
        [lambda x: np.clip(x, -2, 3), lambda x,: np.clip(x, x * 0.5, 4)],
        dtypes="fd",
        make=_apart,
        differentiable=True,
    ),
    Row(
        "nan_to_num",
        [
            lambda x: np.nan_to_num(x),
            lambda x: np.nan_to_num(x, nan=2, posinf=3, neginf=-4),
            lambda x: np.nan_to_num(x, copy=False),
        ],
        dtypes=NUMBERS,
        special=True,
    ),
    Row("real", [lambda x: np.real(x), lambda x: x.real], dtypes=NUMBERS, differentiable=True),
    Row("imag", [lambda x: np.imag(x), lambda x: x.imag], dtypes=NUMBERS, differentiable=True),
    Row("angle", [lambda x: np.angle(x), lambda x: np.angle(x, deg=True)], dtypes=NUMBERS, low=1),
    Row("angle", [lambda x: np.angle(x)], dtypes="FD", low=1, differentiable=True),
    Row("sinc", [lambda x: np.sinc(x)], dtypes=REALS, ulp=1e5),
    Row("sinc", [lambda x: np.sinc(x)], dtypes="fd", low=0.1, high=0.9, ulp=16, differentiable=True),
    Row("i0", [lambda x: np.i0(x)], dtypes="bHlfd", ulp=32),
    Row("i0", [lambda x: np.i0(x)], dtypes="d", low=0.5, ulp=32, differentiable=True),
    Row(
        "unwrap",
        [
            lambda x: np.unwrap(x),
            lambda x: np.unwrap(x, axis=0),
            lambda x: np.unwrap(x, discont=4),
            lambda x: np.unwrap(x, period=4),
        ],
        LINES,
        "ilfd",
        ulp=64,
    ),
    Row(
        "interp",
        [
            lambda x, p, f: np.interp(x, p, f),
            lambda x, p, f: np.interp(x, p, f, left=-1, right=9),
            lambda x, p, f: np.interp(x, p, f, period=3),
            lambda x, p, f: np.interp(2.5, p, f),
        ],
        ((MATRIX, VECTOR, VECTOR), (SCALAR, (1,), (1,))),
        "fd",
        make=_growing,
        ulp=64,
    ),
    Row("interp", [lambda x, p: np.interp(x, p, p * 1j + 2)], ((MATRIX, VECTOR),), "fd", make=_growing, ulp=64),
    Row(
        "interp",
        [lambda x: np.interp(x, np.arange(9.0), np.sin(np.arange(9)))],
        dtypes="d",
        make=_apart,
        differentiable=True,
    ),
    Row(
        "diff",
        [
            lambda x: np.diff(x),
            lambda x: np.diff(x, n=2, axis=0),
            lambda x: np.diff(x, prepend=0),
            lambda x: np.diff(x, append=x[..., :2]),
            lambda x: np.diff(x, 0),
            lambda x: np.diff(x, n=7),
        ],
        LINES,
        ANY,
        differentiable=True,
    ),
    Row(
        "ediff1d",
        [
            lambda x: np.ediff1d(x),
            lambda x: np.ediff1d(x, to_begin=1),
            lambda x: np.ediff1d(x, to_end=[1, 2], to_begin=3),
        ],
        dtypes=NUMBERS,
    ),
    Row(
        "gradient",
        [
            lambda x: np.gradient(x),
            lambda x: np.gradient(x, 2.0),
            lambda x: np.gradient(x, axis=-1, edge_order=2),
            lambda x: np.gradient(x, np.array([0.0, 1, 3, 4, 7][: x.shape[-1]]), axis=-1),
            lambda x: np.gradient(x, np.array([0.0, 1, 3, 4, 7][: x.shape[-1]]), axis=-1, edge_order=2),
            lambda x: np.gradient(x, np.arange(x.shape[-1]), axis=-1),
        ],
        LINES,
        "bHlefdD",
        ulp=64,
        of_largest=True,
        differentiable=True,
    ),
    Row("gradient", [lambda x, y: np.gradient(x, y)], (((5,), (5,)),), "fd", make=_growing, ulp=64, of_largest=True),
    Row(
        "gradient",
        [lambda x, y: np.gradient(x, y * 0), lambda x, y: np.gradient(x, y * 0 + 2, edge_order=2)],
        (((5,), (5,)), ((1,), (1,)), ((0,), (0,)), ((3,), (2,))),
        "fdl",
    ),
    Row(
        "trapezoid",
        [
            lambda x: np.trapezoid(x),
            lambda x: np.trapezoid(x, dx=0.5, axis=0),
            lambda x: np.trapezoid(x, np.arange(x.shape[-1])),
            lambda x: np.trapezoid(x, x * 2),
        ],
        LINES,
        "bHlfdD",
        low=1,
        ulp=64,
        of_largest=True,
        differentiable=True,
    ),
    Row(
        "cross",
        [lambda x, y: np.cross(x, y)],
        (((3,), (3,)), ((4, 3), (3,)), ((2, 1, 3), (5, 3)), ((0, 3), (0, 3))),
        "bHlfdD",
        ulp=64,
        of_largest=True,
        differentiable=True,
    ),
    Row(
        "cross",
        [lambda x, y: np.cross(x, y, axis=0), lambda x, y: np.cross(x, y, axisa=0, axisb=0, axisc=1)],
        (((3, 4), (3, 4)),),
        "lfD",
        ulp=64,
        of_largest=True,
    ),
    Row(
        "linalg.cross",
        [lambda x, y: np.linalg.cross(x, y), lambda x, y: np.linalg.cross(x, y, axis=-1)],
        (((4, 3), (3,)),),
        "lfD",
        ulp=64,
        of_largest=True,
    ),
    Row(
        "select",
        [
            lambda x: np.select([x < 2, x > 4], [x, x * 2]),
            lambda x: np.select([x < 2, x < 4], [1, 2.5], default=x),
            lambda x: np.select([True, x > 2], [x, 3]),
        ],
        dtypes="bHlefd",
    ),
    Row(
        "piecewise",
        [
            lambda x: np.piecewise(x, [x < 2, x >= 4], [-1, 1]),
            lambda x: np.piecewise(x, [x < 2], [lambda v: v * 2, 7]),
            lambda x: np.piecewise(x, x > 1, [lambda v, k: v + k, 0], 3),
        ],
        dtypes="bHlefd",
    ),
    Row(
        "piecewise",
        [
            lambda x: np.piecewise(x, [x[:, 0] > 2, x[:, 1] > 2], [1, lambda v: v * 2, 3]),
            lambda x: np.piecewise(x, [[True, False, True]], [lambda v: -v]),
            lambda x: np.piecewise(x, [x[0, :2] > 0], [1]),
            lambda x: np.piecewise(x, [x[None] > 0], [1]),
        ],
        (((3, 3),),),
        "lfd",
    ),
    Row(
        "round",
        [
            lambda x: np.round(x, np.int64(1)),
            lambda x: np.round(x > 0, 1),
            lambda x: np.round(x > 0),
            lambda x: np.round(x, 400),
        ],
        ((VECTOR,),),
        "el",
    ),
    Row("nan_to_num", [lambda x: np.nan_to_num(x, nan=1j)], ((VECTOR,),), "dD"),
    Row(
        "nan_to_num",
        [
            lambda x, y: np.nan_to_num(x, nan=y),
            lambda x, y: np.nan_to_num(x * np.nan, True, y, posinf=y),
            lambda x, y: np.nan_to_num(x / 0, posinf=y, neginf=y),
        ],
        ((VECTOR, VECTOR), (VECTOR, (1, *VECTOR)), ((2, 3), (3,)), ((3, 1), (3,)), ((), (1,)), ((3,), ()), ((), (3,))),
        "fdlD",
    ),
    Row("unwrap", [lambda x: np.unwrap(x, period=5), lambda x: np.unwrap(x, period=4)], ((VECTOR,),), "BH"),
    Row(
        "interp",
        [
            lambda x: np.interp(x, [1.0], [2.0]),
            lambda x: np.interp(x, [1.0, 2], [2.0, 3], left=1j),
            lambda x: np.interp(x + 1j, [1.0, 2], [2.0, 3], period=3),
            lambda x: np.interp(x + 1j, [1.0, 2], [2.0, 3]),
        ],
        ((VECTOR,),),
        "d",
        special=True,
    ),
    Row("apply_along_axis", [lambda x: np.apply_along_axis(np.sum, 1, x)], (((3, 0),),), "d"),
    Row(
        "pad",
        [
            lambda x: np.pad(x, 1, constant_values=np.nan),
            lambda x: np.pad(x, 1, constant_values=(300, 2.5)),
            lambda x: np.pad(x, 1, constant_values=(x[0], 2)),
            lambda x: np.pad(x, [], mode="edge"),
            lambda x: np.pad(x[0], 1, mode="minimum", stat_length=-1),
        ],
        ((VECTOR,),),
        "bdD",
    ),
    Row(
        "apply_along_axis",
        [
            lambda x: np.apply_along_axis(np.sum, 0, x),
            lambda x: np.apply_along_axis(lambda v: v[:2] * 2, -1, x),
            lambda x: np.apply_along_axis(lambda v, k: np.sort(v)[k], 0, x, 1),
        ],
        ((MATRIX,), (CUBE,)),
        "lfd",
        ulp=16,
    ),
    Row("apply_along_axis", [lambda x: np.apply_along_axis(np.cumsum, 1, x)], (((40, 3),),), "d", ulp=16),
    Row("apply_over_axes", [lambda x: np.apply_over_axes(np.sum, x, [0, 2])], ((CUBE,),), "lfd", ulp=16),
    Row(
        "packbits",
        [
            lambda x: np.packbits(x),
            lambda x: np.packbits(x, axis=-1),
            lambda x: np.packbits(x, axis=0, bitorder="little"),
        ],
        (((3, 10),), ((8,),), (EMPTY,)),
        "?" + INTEGERS,
        low=0,
        high=1,
    ),
    Row(
        "unpackbits",
        [
            lambda x: np.unpackbits(x),
            lambda x: np.unpackbits(x, axis=0),
            lambda x: np.unpackbits(x, axis=-1, count=5),
            lambda x: np.unpackbits(x, axis=-1, count=-3, bitorder="little"),
        ],
        ((MATRIX,), ((0, 2),)),
        "B",
        low=0,
        high=255,
    ),
    Row("unpackbits", [lambda x: np.unpackbits(x, count=99)], ((MATRIX,),), "B", low=0, high=255),
]
