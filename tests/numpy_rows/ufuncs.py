"""Rows of ufuncs."""

import numpy as np
from support.functions.function_rows import (
    ANY,
    COMPLEX,
    CUBE,
    EMPTY,
    FLOATS,
    INEXACT,
    INTEGERS,
    MATRIX,
    NUMBERS,
    REALS,
    SCALAR,
    SIGNED,
    Row,
)

PAIRS = ((MATRIX, MATRIX), (CUBE, MATRIX[1:]), (SCALAR, MATRIX), (EMPTY, EMPTY))
FEW = ((MATRIX, MATRIX), (SCALAR, (5,)))
COMPILED = ("cpu",)


def one(name, dtypes=INEXACT, **facts):
    """A ufunc of one operand."""
    function = getattr(np, name)
    return Row(name, [lambda x: function(x)], ((MATRIX,), (SCALAR,), (EMPTY,)), dtypes, **facts)


def two(name, dtypes=NUMBERS, shapes=FEW, **facts):
    """A ufunc of two operands."""
    function = getattr(np, name)
    return Row(name, [lambda x, y: function(x, y)], shapes, dtypes, **facts)


def _distinct(rng, shape, dtype):
    """Numbers that are not whole, so that central differences do not cross a step."""
    made = np.asarray(rng.integers(-6, 6, shape) + rng.uniform(0.2, 0.8, shape))
    return made.astype(dtype)


def _positive(rng, shape, dtype):
    return np.asarray(rng.integers(0, 6, shape)).astype(dtype)


def _far(rng, shape, dtype):
    """Complex numbers whose parts are edges of all kinds."""
    info = np.finfo(dtype)
    parts = [0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, info.max, -info.max, info.tiny, info.eps]
    made = np.empty(shape, dtype)
    made.real, made.imag = (rng.choice(parts, shape) for _ in range(2))
    return made


def _odd(rng, shape, dtype):
    """Complex bases and exponents such as a power has its own rules for."""
    parts = [0.0, -0.0, 1.0, 2.0, -3.0, 0.5, np.inf, -np.inf, np.nan, 1e30]
    made = np.empty(shape, dtype)
    made.real, made.imag = rng.choice(parts, shape), rng.choice([*parts[:-1], 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], shape)
    return made


def _real_functions(x, y):
    made = [f(x) for f in (np.exp, np.exp2, np.log2, np.log10, np.spacing, np.signbit, np.sign, np.trunc, np.arcsin)]
    pairs = (np.divide, np.floor_divide, np.remainder, np.nextafter, np.copysign, np.hypot, np.fmax, np.logaddexp2)
    return [*made, *[f(x, y) for f in pairs], *np.frexp(x), *np.modf(x), np.ldexp(x, 3), np.ldexp(x, -1070)]


def _whole_functions(x, y):
    pairs = (np.add, np.floor_divide, np.remainder, np.fmod, np.gcd, np.lcm, np.left_shift, np.right_shift, np.maximum)
    return [*[f(x, y) for f in pairs], np.power(x, 3), np.bitwise_count(x), np.absolute(x), np.sign(x), x / y, x > y]


def _complex_functions(x, y):
    made = [getattr(np, name)(x) for name in ("arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh")]
    more = [f(x) for f in (np.sign, np.absolute, np.reciprocal, np.expm1, np.sinh, np.cosh, np.log10)]
    return [*made, *more, x / y, np.maximum(x, y), x < y]


ROWS = [
    # arithmetic
    Row(
        "add",
        [lambda x, y: np.add(x, y), lambda x, y: x + y, lambda x, y: x + 2, lambda x, y: 1.5 + x],
        PAIRS,
        ANY,
        differentiable=True,
    ),
    Row("subtract", [lambda x, y: x - y, lambda x, y: 3 - x], PAIRS, NUMBERS, differentiable=True),
    Row("multiply", [lambda x, y: x * y, lambda x, y: x * 0.5], PAIRS, ANY, differentiable=True),
    Row("divide", [lambda x, y: x / y, lambda x, y: x / 3], PAIRS, ANY, special=True),
    Row("true_divide", [lambda x, y: np.true_divide(x, y)], FEW, NUMBERS, low=1, differentiable=True),
    two("floor_divide", REALS, PAIRS, special=True),
    two("remainder", REALS, PAIRS, special=True),
    Row("mod", [lambda x, y: x % y, lambda x, y: np.mod(x, 3)], FEW, FLOATS, make=_distinct, differentiable=True),
    two("fmod", REALS, special=True),
    Row("divmod", [lambda x, y: np.divmod(x, y), lambda x, y: divmod(x, 2)], FEW, REALS, special=True),
    Row("power", [lambda x, y: np.power(x, y)], FEW, INTEGERS + FLOATS, low=0, high=4),
    Row(
        "pow",
        [lambda x, y: x**2, lambda x, y: x**3, lambda x, y: 2**x],
        FEW,
        "HIefdFD",
        make=_positive,
        ulp=16,
    ),
    Row("power", [lambda x, y: x**y], FEW, "fd", low=0.5, high=3, differentiable=True),
    Row(
        "power",
        [lambda x, y: x**y, lambda x, y: x**2],
        FEW,
        COMPLEX,
        low=0.5,
        high=3,
        ulp=64,
        differentiable=True,
    ),
    Row(
        "power",
        [
            lambda x, y: np.power(x, np.where(abs(y) < 1e3, y, 2)),
            lambda x, y: [np.power(x, n) for n in (0, 1, 3, 5, -2, 0.5, 1j)],
            lambda x, y: [x**n for n in (-1, 3, -3, 0.5)],
        ],
        (((12, 12), (12, 12)),),
        COMPLEX,
        make=_odd,
        ulp=64,
    ),
    Row(
        "power",
        [lambda x: [np.power(x, 0.5), x**0.5, np.float_power(x, 0.5)]],
        ((MATRIX,),),
        FLOATS,
        special=True,
    ),
    Row("float_power", [lambda x, y: np.float_power(x, y)], FEW, "bBlfd", low=0, high=5),
    one("negative", NUMBERS, differentiable=True),
    one("positive", NUMBERS, differentiable=True),
    one("absolute", ANY, special=True),
    Row("abs", [abs, lambda x: np.abs(x)], dtypes=INEXACT, make=_distinct, differentiable=True),
    one("fabs", REALS, special=True),
    one("sign", NUMBERS, special=True),
    one("square", NUMBERS, differentiable=True),
    one("reciprocal", NUMBERS, low=1, differentiable=True),
    one("conjugate", NUMBERS, differentiable=True),
    one("conj", COMPLEX, special=True),
    two("heaviside", FLOATS, special=True),
    two("copysign", FLOATS, special=True),
    two("nextafter", FLOATS, special=True),
    one("spacing", FLOATS, special=True),
    two("gcd", INTEGERS, high=100),
    two("lcm", INTEGERS, high=100),
    # exponentials and logarithms
    one("exp", special=True, differentiable=True),
    one("exp2", special=True, differentiable=True),
    one("expm1", special=True, differentiable=True),
    one("log", special=True),
    one("log2", special=True),
    one("log10", special=True),
    one("log1p", special=True),
    *(one(name, low=0.5, differentiable=True) for name in ("log", "log2", "log10", "log1p", "sqrt")),
    one("sqrt", special=True),
    one("cbrt", FLOATS, special=True),
    one("cbrt", FLOATS, low=0.5, differentiable=True),
    two("logaddexp", FLOATS, special=True, differentiable=True, ulp=8),
    two("logaddexp2", FLOATS, special=True, differentiable=True, ulp=8),
    # trigonometric and hyperbolic functions
    *(one(name, special=True, differentiable=True) for name in ("sin", "cos", "tanh", "arctan", "arcsinh")),
    one("sinh", special=True, differentiable=True, high=5),
    one("cosh", special=True, differentiable=True, high=5),
    one("tan", low=-1.4, high=1.4, differentiable=True),
    *(one(name, low=-0.9, high=0.9, differentiable=True) for name in ("arcsin", "arccos", "arctanh")),
    one("arccosh", low=1.1, differentiable=True),
    *(one(name, COMPLEX, special=True) for name in ("arcsin", "arccos", "arcsinh", "arccosh", "arctanh", "arctan")),
    Row(
        "arctan",
        [
            lambda x: [f(x) for f in (np.arcsin, np.arccos, np.arctan, np.arcsinh, np.arccosh, np.arctanh)],
            lambda x: [np.sign(x), np.log1p(x)],
        ],
        (((12, 12),),),
        COMPLEX,
        make=_far,
    ),
    two("arctan2", FLOATS, special=True),
    two("hypot", FLOATS, special=True),
    two("arctan2", FLOATS, low=1, differentiable=True),
    two("hypot", FLOATS, low=1, differentiable=True),
    *(one(name, REALS, differentiable=True) for name in ("deg2rad", "rad2deg", "degrees", "radians")),
    # rounding, parts of numbers
    *(one(name, "?" + REALS, special=True) for name in ("floor", "ceil", "trunc")),
    one("rint", INEXACT, special=True),
    one("modf", FLOATS, special=True),
    one("frexp", FLOATS, special=True),
    Row(
        "ldexp",
        [lambda x: np.ldexp(x, 3), lambda x: np.ldexp(x, np.arange(-2, 2)), lambda x: np.ldexp(x, -1070)],
        ((MATRIX,), (SCALAR,)),
        FLOATS,
        special=True,
    ),
    # extremes
    *(two(name, ANY, PAIRS, special=True) for name in ("maximum", "minimum", "fmax", "fmin")),
    *(two(name, FLOATS, make=_distinct, differentiable=True) for name in ("maximum", "minimum", "fmax", "fmin")),
    # comparisons and logic
    *(
        two(name, ANY, PAIRS, special=True, low=-2, high=2)
        for name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
    ),
    Row(
        "less",
        [lambda x, y: x < y, lambda x, y: x <= 1, lambda x, y: y < 0, lambda x, y: x == 300],
        FEW,
        ANY,
        special=True,
    ),
    *(two(name, ANY, PAIRS, low=-1, high=1) for name in ("logical_and", "logical_or", "logical_xor")),
    one("logical_not", ANY, low=-1, high=1),
    *(one(name, ANY, special=True) for name in ("isnan", "isinf", "isfinite")),
    one("signbit", FLOATS, special=True),
    # bits
    *(two(name, "?" + INTEGERS, PAIRS) for name in ("bitwise_and", "bitwise_or", "bitwise_xor")),
    *(one(name, "?" + INTEGERS) for name in ("invert", "bitwise_not", "bitwise_invert")),
    *(
        two(name, INTEGERS, PAIRS)
        for name in ("left_shift", "right_shift", "bitwise_left_shift", "bitwise_right_shift")
    ),
    one("bitwise_count", INTEGERS),
    # keywords
    Row(
        "add",
        [
            lambda x, y: np.add(x, y, dtype=np.float64),
            lambda x, y: np.add(x, y, out=np.empty_like(x), casting="unsafe"),
            lambda x, y: np.add(x, y, where=x > 0, out=np.zeros_like(x)),
            lambda x, y: np.multiply(x, y, signature="dd->d"),
            lambda x, y: np.add(x, y, x.copy()),
        ],
        ((MATRIX, MATRIX),),
        FLOATS,
    ),
    # methods
    Row(
        "add.reduce",
        [
            lambda x: np.add.reduce(x),
            lambda x: np.multiply.reduce(x, axis=1, keepdims=True),
            lambda x: np.maximum.reduce(x, axis=None, initial=0),
            lambda x: np.logaddexp.reduce(np.real(x), axis=1),
            lambda x: np.subtract.reduce(x, axis=-1),
            lambda x: np.hypot.reduce(np.real(x), axis=(0, 1)),
            lambda x: np.fmax.reduce(x, axis=1),
            lambda x: np.add.reduce(x, axis=1, where=x != 0, initial=2),
        ],
        ((MATRIX,), (CUBE,)),
        "lfdF",
        low=1,
        high=3,
        ulp=16,
    ),
    Row(
        "hypot.reduce",
        [
            lambda x: [np.hypot.reduce(x[:1]), np.hypot.reduce(x, initial=-1), np.gcd.reduce(x[:1].astype(int))],
            lambda x: [np.remainder.reduce(x, dtype="f", axis=1), np.fmin.reduceat(x, [0.0, 2.0], dtype="f")],
            lambda x: [np.hypot.accumulate(x, axis=(0,)), np.subtract.accumulate(x, dtype="e")],
            lambda x: [np.signbit(np.add.accumulate(-0.0 * x)), np.signbit(np.cumsum(-0.0 * x, axis=1))],
            lambda x: np.add.accumulate(x, out=np.zeros((3, 4)), axis=1),
        ],
        ((MATRIX,),),
        "fd",
    ),
    Row("gcd.reduce", [lambda x: np.gcd.reduce(x, axis=1), lambda x: np.lcm.reduce(x)], ((MATRIX,), (EMPTY,)), SIGNED),
    Row(
        "add.accumulate",
        [
            lambda x: np.add.accumulate(x),
            lambda x: np.multiply.accumulate(x, axis=1),
            lambda x: np.maximum.accumulate(x, axis=-1),
            lambda x: np.subtract.accumulate(x, axis=1),
            lambda x: np.fmin.accumulate(x),
            lambda x: np.logical_or.accumulate(x),
        ],
        ((MATRIX,), (EMPTY,)),
        "bHlfdD",
        low=1,
        high=3,
        ulp=16,
    ),
    Row(
        "add.reduceat",
        [
            lambda x: np.add.reduceat(x, [0, 2, 1, 1]),
            lambda x: np.maximum.reduceat(x, [0, 3], axis=1),
            lambda x: np.subtract.reduceat(x, [1], axis=1),
            lambda x: np.multiply.reduceat(x, []),
        ],
        ((MATRIX,),),
        "bHlfd",
        low=1,
        high=3,
        ulp=16,
    ),
    Row(
        "add.outer",
        [lambda x, y: np.add.outer(x, y), lambda x, y: np.multiply.outer(x, 2)],
        ((MATRIX, (5,)), (SCALAR, (2,)), ((2,), SCALAR)),
        "bHlfdD",
    ),
    # several ufuncs in one program
    Row("exp", [_real_functions], ((MATRIX, MATRIX),), "d", special=True, ulp=8, platforms=COMPILED),
    Row("gcd", [_whole_functions], ((MATRIX, MATRIX),), "l", platforms=COMPILED),
    Row("arcsin", [_complex_functions], ((MATRIX, MATRIX),), "D", special=True, ulp=8, platforms=COMPILED),
]
