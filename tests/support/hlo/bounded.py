"""Runs of bounded programs at several sizes, compiled and interpreted."""

import itertools
import re

import numpy as np

import cyxla
from cyxla.xla.hlo import parse_module

# ruff: noqa: E501  computations read best a line at a time

BOUNDED = re.compile(r"(\w+) = (f32\[[^\]]*<=[^\]]*\]) parameter\((\d+)\)")

COMBINERS = """HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }
less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }
atleast { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=GE }
second { a = f32[] parameter(0) ROOT b = f32[] parameter(1) }
odd { a = f32[] parameter(0) b = f32[] parameter(1) two = f32[] constant(0.5) c = f32[] multiply(a, two) ROOT d = f32[] add(c, b) }
"""


def sizes_of(shape, largest):
    """Yield sizes of a shape: none, one, most and all of the elements of each dynamic dimension, or `largest` alone."""
    choices = [
        sorted({0, min(1, n), max(n - 2, 0), n}) if is_dynamic and not largest else [n]
        for n, is_dynamic in zip(shape.dims, shape.dynamic, strict=True)
    ]
    return itertools.product(*choices)


def argument(rng, shape, dims):
    """Draw an array; integers are small enough to be sizes and indices."""
    if shape.dtype.bits == 1:
        return rng.random(dims) < 0.5
    if shape.dtype.is_integer:
        return rng.integers(-1, 6, dims).astype(shape.dtype.numpy_dtype)
    return rng.standard_normal(dims).astype(shape.dtype.numpy_dtype)


def arguments(module, *, most=40):
    """Yield lists of arguments of all sizes, or of some if there are many."""
    rng = np.random.default_rng(1)
    shapes = [p.shape for p in module.parameters]
    dims = list(itertools.product(*(sizes_of(s, False) for s in shapes)))
    if len(dims) > most:
        dims = [dims[0], dims[-1], *(dims[k] for k in rng.choice(len(dims), most - 2, replace=False))]
    for each in dims * (3 if any(s.dtype.is_integer for s in shapes) else 1):
        yield [argument(rng, s, d) for s, d in zip(shapes, each, strict=True)]


def with_padding(text):
    """Add 1 to bounded parameters, so that elements beyond the sizes are not 0."""
    ones = r"\1_one = f32[] constant(1) \1_ones = \2 broadcast(\1_one), dimensions={}"
    return BOUNDED.sub(rf"\1_given = \2 parameter(\3) {ones} \1 = \2 add(\1_given, \1_ones)", text)


def check(text, **tolerance):
    """Compare a program on both platforms; integers may be sizes, which are drawn."""
    text = with_padding(text)
    compiled, oracle = cyxla.compile(text), cyxla.compile(text, platform="interpreter")
    for args in arguments(parse_module(text)):
        compare(compiled(*args), oracle(*args), **tolerance)


def compare(got, want, rtol=1e-5, atol=1e-5):
    """Compare results, which may be nested tuples."""
    if isinstance(want, tuple):
        for g, w in zip(got, want, strict=True):
            compare(g, w, rtol, atol)
        return
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)
