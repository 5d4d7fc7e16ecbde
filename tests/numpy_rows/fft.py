"""Rows of numpy.fft."""

import numpy as np
from numpy import fft
from support.functions.function_rows import ANY, REALS, Row

M, C, ODD, HOLLOW, V = (3, 8), (2, 3, 6), (5,), (0, 4), (12,)
NEAR = {"ulp": 16, "of_largest": True}
NORMS = ("backward", "ortho", "forward")

ROWS = [
    *[
        Row(
            f"fft.{f.__name__}",
            [lambda x, f=f: f(x), lambda x, f=f: f(x, 5), lambda x, f=f: f(x, n=9, axis=0),
             *[lambda x, f=f, norm=norm: f(x, norm=norm) for norm in NORMS]],
            ((V,), (M,)), ANY if f not in (fft.rfft, fft.ihfft) else REALS + "?",
            differentiable=True, **NEAR,
        )
        for f in (fft.fft, fft.ifft, fft.rfft, fft.irfft, fft.hfft, fft.ihfft)
    ],
    *[
        Row(
            f"fft.{f.__name__}",
            [lambda x, f=f: f(x), lambda x, f=f: f(x, (4, 5), axes=(0, 1)),
                lambda x, f=f: f(x, axes=(1, 0), norm="ortho"),
             lambda x, f=f: f(x, s=(-1, 6), axes=(-1, 0), norm="forward")],
            ((C,), (M,), ((5, 7),)), "bfdFD" if "r" not in f.__name__[:2] or f.__name__.startswith("ir") else "bfd",
            differentiable=True, **NEAR,
        )
        for f in (fft.fft2, fft.ifft2, fft.rfft2, fft.irfft2, fft.fftn, fft.ifftn, fft.rfftn, fft.irfftn)
    ],
    *[Row(f"fft.{f.__name__}", [lambda x, f=f: f(x), lambda x, f=f: f(x, 0), lambda x, f=f: f(x, norm="best"),
                                 lambda x, f=f: f(x, axis=2),
                                 lambda x, f=f: f(x, 2.5)], ((ODD,), ((),), ((3, 1),)), "fd", **NEAR)
      for f in (fft.fft, fft.ifft, fft.rfft, fft.irfft, fft.hfft, fft.ihfft)],
    *[Row(f"fft.{f.__name__}", [lambda x, f=f: f(x)], ((HOLLOW,),), "fD", **NEAR)
      for f in (fft.fft, fft.ifft, fft.irfft)],
    *[
        Row(f"fft.{f.__name__}", [lambda x, f=f: f(x), lambda x, f=f: f(x, axes=(0, 1, 2, 3)),
            lambda x, f=f: f(x, axes=(0, 0)),
                                  lambda x, f=f: f(x, axes=())], (((2, 3, 4, 2),),), "fd", **NEAR)
        for f in (fft.fftn, fft.ifftn, fft.rfftn, fft.irfftn)
    ],
    *[
        Row(f"fft.{f.__name__}", [lambda x, f=f: f(x), lambda x, f=f: f(x, 0), lambda x, f=f: f(x, axes=(0, -1))],
            ((M,), (ODD,), (C,), (HOLLOW,)), ANY, differentiable=True)
        for f in (fft.fftshift, fft.ifftshift)
    ],
    *[
        Row(f"fft.{f.__name__}", [lambda x, f=f: f(8, x[0]) + x[0], lambda x, f=f: x[0] * f(5),
            lambda x, f=f: f(5, d=0.5) + x[0]],
            ((V,),), "fd", low=1, high=2)
        for f in (fft.fftfreq, fft.rfftfreq)
    ],
    *[Row(f"fft.{f.__name__}", [lambda x, f=f: f(x), lambda x, f=f: f(x, axes=(0,)),
                                 lambda x, f=f: f(x, s=(4, 5), axes=(0, 1), norm="ortho")], ((M,), (C,)), "e", **NEAR)
      for f in (fft.fftn, fft.ifftn, fft.rfftn, fft.irfftn)],
    Row("fft.fft", [lambda x: fft.fft(x, out=np.zeros_like(x, complex)),
        lambda x: fft.irfft(fft.rfft(x))], ((M,),), "fd",
        platforms=("interpreter", "cpu"), **NEAR),
]  # fmt: skip
