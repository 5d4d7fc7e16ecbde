"""The k best of each row agree with the oracle bit for bit: every element type, both ends, equal elements, any k."""

import numpy as np
import pytest
from support.hlo.differential import flat
from support.strategies import random_array

import cyxla
from cyxla.types import Shape, element_type
from cyxla.xla.evaluator import evaluate

TYPES = ["f32", "f64", "bf16", "f16", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "pred"]
ROWS = [(3, 1, 1), (2, 20, 4), (3, 400, 1), (2, 1000, 16), (1, 300, 128), (2, 300, 129), (2, 300, 300), (0, 30, 2)]


def program(dtype: str, largest: bool) -> str:
    lines = []
    for n, (rows, length, k) in enumerate(ROWS):
        result = f"({dtype}[{rows},{k}], s32[{rows},{k}])"
        lines += [
            f"p{n} = {dtype}[{rows},{length}] parameter({n})",
            f"t{n} = {result} topk(p{n}), k={k}, largest={str(largest).lower()}",
        ]
    shapes = ", ".join(f"({dtype}[{r},{k}], s32[{r},{k}])" for r, _, k in ROWS)
    names = ", ".join(f"t{n}" for n in range(len(ROWS)))
    return "\n".join(["HloModule m", "ENTRY e {", *lines, f"ROOT r = ({shapes}) tuple({names})", "}"])


def values(dtype: str, dims: tuple[int, int]) -> np.ndarray:
    """Random elements: many equal ones, and among floats zeros, infinities and NaNs of both signs."""
    rng = np.random.default_rng(dims[1])
    element = element_type(dtype)
    x = random_array(Shape.array(element, dims), dims[1], 0.3)
    x = np.where(rng.random(dims) < 0.3, x[:, :1], x)
    if element.is_float:
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.0], np.float64).astype(x.dtype)
        x = np.where(rng.random(dims) < 0.01, special[rng.integers(0, 7, dims)], x)
    return x.astype(element.numpy_dtype)


def same(text: str, args: list[np.ndarray]) -> None:
    wanted = evaluate(cyxla.hlo.parse_module(text), args)
    for got, want in zip(flat(cyxla.compile(text)(*args)), flat(wanted), strict=True):
        assert np.asarray(got).tobytes() == np.asarray(want).tobytes()


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", TYPES)
def test_topk(dtype, largest):
    same(program(dtype, largest), [values(dtype, (rows, length)) for rows, length, _ in ROWS])


@pytest.mark.parametrize("largest", [True, False])
def test_rows_in_order(largest):
    rows = [np.arange(r * n, dtype=np.float32).reshape(r, n) for r, n, _ in ROWS]
    same(program("f32", largest), rows)
    same(program("f32", largest), [x[:, ::-1].copy() for x in rows])


def test_few_of_many_need_no_sort():
    result = "(f32[64,5], s32[64,5]) topk(p), k=5, largest=true"
    text = f"HloModule m\nENTRY e {{ p = f32[64,9000] parameter(0) ROOT r = {result} }}"
    assert "_sort" not in cyxla.compile(text).c_source
    same(text, [values("f32", (64, 9000))])
