"""Loops over a few complex numbers, of which gcc 12 drops the stores if it is told that they are independent."""

import re

import numpy as np
import pytest

import cyxla

LENGTHS = [pytest.param(n, marks=[] if n in (2, 4, 8, 16) else pytest.mark.slow) for n in range(1, 18)]
# A loop that the compiler is told about: its indentation, constant trip count and body.
INDEPENDENT = re.compile(
    r"^( *)#pragma GCC ivdep\n(?: *#pragma .*\n)?(?:\1for \(.* = 0; \w+ < (\d+); .*\{\n)((?:.*\n)*?)\1\}", re.MULTILINE
)


def from_both_ends(x):
    z = x + 1j * x[::-1]
    return np.sort(z.ravel())[: z.shape[1]], np.abs(z).max()


def scaled_pairs(x):
    z = (x * (1 + 2j)).reshape(-1, 1, x.shape[1]) * x[::-1, None]
    return np.sort(z.ravel())[::2], z.imag.sum()


@pytest.mark.parametrize("columns", range(1, 21))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", [from_both_ends, scaled_pairs])
def test_every_length(function, dtype, columns):
    x = (np.arange(3 * columns) * 7 % 11 - 3).astype(dtype).reshape(3, columns)
    for got, want in zip(cyxla.jit(function, sizes="exact")(x), function(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def in_order(z):
    return np.sort(z.ravel())


def rows(x):
    z = x + 1j * x[::-1]
    return in_order(z)[::2], z.sum(axis=1), np.linalg.norm(z, axis=1), in_order(z - z.mean(axis=1, keepdims=True))


def scaled_rows(x):
    z = x + 1j * x[::-1]
    return (in_order(z / (1 + np.linalg.norm(z, axis=1, keepdims=True))),)


def sorted_rows(x):
    z = in_order(x + 1j * x[::-1]).reshape(x.shape)
    return (in_order(z / (1 + np.linalg.norm(z, axis=1, keepdims=True))),)


def columns_of_few_rows(x):
    z = x + 1j * x[::-1]
    return in_order(z)[::2], in_order(z.sum(axis=0)), z.prod(axis=0) * (1 - 2j)


def columns_of_many_rows(x):
    z = np.concatenate([x + 1j * x[::-1]] * 40)
    return in_order(z.sum(axis=0)), np.linalg.norm(z, axis=0), np.sin(z.real + z.imag).sum(axis=0)


def cumulative(x):
    z = x + 1j * x[::-1]
    return in_order(np.cumsum(z, axis=0))[::2], in_order(np.cumsum(z, axis=1)), in_order(np.cumprod(z, axis=0))


def scattered(x):
    z = x + 1j * x[::-1]
    total = np.zeros((5, x.shape[1]), z.dtype)
    np.add.at(total, np.array([3, 1, 3]), z)
    return in_order(total), in_order(z)[::2]


def nested(x):
    z, steps = x + 1j * x[::-1], 0
    while np.abs(z).max() > 1e-2 and steps < 10:
        z, steps = z * (0.5 + 0.25j) + z[::-1] * 0.125, steps + 1
    rest = z
    for _ in range(40):
        rest = rest * (0.5 + 0.5j) + rest[::-1] * 0.25
    return in_order(z), in_order(rest), steps


KINDS = [
    rows, scaled_rows, sorted_rows, columns_of_few_rows, columns_of_many_rows, cumulative, scattered, nested,
]  # fmt: skip


@pytest.mark.parametrize("columns", LENGTHS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", KINDS)
def test_every_kind_of_loop(function, dtype, columns):
    x = (np.arange(3 * columns) * 7 % 11 - 3).astype(dtype).reshape(3, columns)
    compiled = cyxla.jit(function, sizes="exact")
    accuracy = {"rtol": 1e-4, "atol": 1e-3} if dtype is np.float32 else {"rtol": 1e-9, "atol": 1e-9}
    for got, want in zip(compiled(x), function(x), strict=True):
        np.testing.assert_allclose(got, want, **accuracy)
    told = [int(n) for _, n, body in INDEPENDENT.findall(compiled.compile(x).c_source) if "cyx_c" in body]
    assert all(n > 16 for n in told)
