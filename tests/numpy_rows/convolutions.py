"""Rows of convolutions and of window functions."""

import numpy as np
from support.functions.function_rows import ANY, Row

SERIES = (((7,), (3,)), ((3,), (7,)), ((6,), (4,)), ((30,), (12,)), ((1,), (1,)))
EACH = "full", "same", "valid"

ROWS = [
    Row(
        "convolve",
        [lambda x, y, m=m: np.convolve(x, y, m) for m in EACH],
        SERIES,
        ANY,
        ulp=64,
        of_largest=True,
        differentiable=True,
        low=-5,
        high=5,
    ),
    Row(
        "convolve",
        [lambda x, y: np.convolve(x, y), lambda x, y: np.correlate(x, y, "same")],
        [((70,), (53,))],
        ANY,
        ulp=64,
        of_largest=True,
        differentiable=True,
        low=-5,
        high=5,
        platforms=("interpreter", "cpu"),
    ),
    Row(
        "convolve",
        [lambda x, y: np.convolve(x, 2), lambda x, y: np.convolve(x, [1.0, 2])],
        SERIES[:1],
        ANY,
        ulp=64,
        of_largest=True,
    ),
    Row(
        "correlate",
        [lambda x, y, m=m: np.correlate(x, y, m) for m in EACH],
        SERIES,
        ANY,
        ulp=64,
        of_largest=True,
        differentiable=True,
        low=-5,
        high=5,
    ),
    Row("correlate", [lambda x, y: np.correlate(x, y), lambda x, y: np.convolve(x, y)], (((), (1,)), ((3,), ())), "f"),
    Row(
        "convolve",
        [
            lambda x: np.convolve(x, [1, np.nan, 2]),
            lambda x: np.convolve(x, [np.inf, 1, 0, -np.inf], "same"),
            lambda x: np.correlate(x, np.arange(40) / (np.arange(40) - 20.0), "full"),
            lambda x: np.correlate(x, 2),
        ],
        (((50,),),),
        "lf",
        ulp=64,
        of_largest=True,
        platforms=("interpreter", "cpu"),
    ),
    *(
        Row(name, [lambda x, name=name: x * getattr(np, name)(x.shape[0])], (((7,),),), "fd")
        for name in ("bartlett", "blackman", "hamming", "hanning")
    ),
    Row("kaiser", [lambda x: x * np.kaiser(x.shape[0], 3.0)], (((7,),),), "fd"),
]
