"""Uniform quantisation against its formulas in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from math import floor, frexp
from typing import Any

import numpy as np
import pytest

import cyxla
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.protos.messages import message
from cyxla.core.framework.types import as_data_type
from cyxla.core.graph.graph import Graph
from cyxla.errors import InvalidArgumentError

RNG = np.random.default_rng(3)
BYTES, WORDS = (-128, 127), (-(1 << 31), (1 << 31) - 1)


def compiled(op: str, types: list[str], *operands: Any, platform: str = "interpreter", **attrs: Any) -> Any:
    graph, feeds = Graph(), {}
    with graph.as_default():
        for dtype, operand in zip(types, operands, strict=True):
            array = np.asarray(operand, as_data_type(dtype).numpy)
            feeds[graph.placeholder(as_data_type(dtype), array.shape)] = array
        made = apply_op(op, *feeds, **attrs)
    return cyxla.Session(graph, jit="on", platform=platform).run([made], feeds)[0]


def ends(prefix: str, least_most: tuple[int, int], axis: int = -1) -> dict[str, int]:
    names = ("quantization_min_val", "quantization_max_val", "quantization_axis")
    return dict(zip((prefix + n for n in names), (*least_most, axis), strict=True))


def moved(differences: Any, factor: Fraction, zero: int, least_most: tuple[int, int]) -> Any:
    """Rounded to the nearest, halves up."""
    least, most = least_most
    return np.vectorize(lambda d: min(max(floor(d * factor + Fraction(1, 2)) + zero, least), most))(differences)


def test_floats_and_back(backend: str) -> None:
    x = np.array([[-9.0, -0.5, 0.25], [0.375, 1.0, 500.0]], np.float32)
    given = {"platform": backend, "Tout": "qint8", **ends("", BYTES)}
    quantized = compiled("UniformQuantize", ["float", "float", "int32"], x, 0.25, 3, **given)
    assert quantized.tolist() == [[-33, 1, 4], [5, 7, 127]]
    back = {"platform": backend, "Tout": "float", **ends("", BYTES)}
    found = compiled("UniformDequantize", ["qint8", "float", "int32"], quantized, 0.25, 3, **back)
    assert found.tolist() == [[-9.0, -0.5, 0.25], [0.5, 1.0, 31.0]]


def test_scales_along_an_axis() -> None:
    x = np.array([[1.0, 1.0], [-1.0, 2.0]], np.float32)
    given = {"Tout": "quint8", **ends("", (0, 255), axis=1)}
    found = compiled("UniformQuantize", ["float", "float", "int32"], x, [0.5, 0.25], [10, 20], **given)
    assert found.tolist() == [[12, 24], [8, 28]]
    assert found.dtype == np.uint8


@pytest.mark.parametrize("source,target", [(0.5, 0.25), (0.1, 0.7), (1e-3, 3.0), (7.0, 0.001)])
def test_another_scale(source: float, target: float, backend: str) -> None:
    x = RNG.integers(-128, 128, 40)
    given = {"platform": backend, "Tout": "qint32", **ends("input_", BYTES), **ends("output_", WORDS)}
    types = ["qint8", "float", "int32", "float", "int32"]
    found = compiled("UniformRequantize", types, x, source, 5, target, -7, **given)
    fraction, exponent = frexp(float(np.float32(source)) / float(np.float32(target)))
    factor = Fraction(floor(fraction * 2**31 + 0.5)) / Fraction(2) ** (31 - exponent)
    assert found.tolist() == moved(x - 5, factor, -7, WORDS).tolist()


def test_bounds_of_the_same_scale() -> None:
    given = {"T": "qint32", **ends("", WORDS)}
    types = ["qint32", "qint32", "qint32", "float", "int32"]
    found = compiled("UniformQuantizedClipByValue", types, [-9, 0, 9], -4, 5, 1.0, 0, **given)
    assert found.tolist() == [-4, 0, 5]


def test_sums() -> None:
    a, b = np.array([[10], [20]]), np.array([1, 2, 3])
    given = {"T": "qint32", **ends("lhs_", WORDS), **ends("rhs_", WORDS), **ends("output_", WORDS)}
    types = ["qint32", "qint32", *["float", "int32"] * 3]
    found = compiled("UniformQuantizedAdd", types, a, b, 2.0, 4, 4.0, 1, 2.0, 100, **given)
    assert found.tolist() == ((a - 4) + 2 * (b - 1) + 100).tolist()


def test_products_of_matrices(backend: str) -> None:
    a, b = RNG.integers(-128, 128, (3, 5)), RNG.integers(-128, 128, (5, 2))
    given = {"Tin": "qint8", "Tout": "qint32", **ends("lhs_", BYTES), **ends("rhs_", BYTES, 1)}
    types = ["qint8", "qint8", *["float", "int32"] * 3]
    operands = (a, b, 0.5, 3, [0.25, 0.5], [1, -2], 0.125, 9)
    found = compiled("UniformQuantizedDot", types, *operands, platform=backend, **given, **ends("output_", WORDS))
    assert found.tolist() == ((a - 3) @ (b - np.array([1, -2])) * np.array([1, 2]) + 9).tolist()


def layout() -> str:
    """Channels last everywhere."""
    made = message("UniformQuantizedConvolutionDimensionNumbersAttr")(
        input_batch_dimension=0, input_feature_dimension=3, input_spatial_dimensions=[1, 2],
        kernel_input_feature_dimension=2, kernel_output_feature_dimension=3, kernel_spatial_dimensions=[0, 1],
        output_batch_dimension=0, output_feature_dimension=3, output_spatial_dimensions=[1, 2],
    )  # fmt: skip
    return made.SerializeToString().decode("utf-8", "surrogateescape")


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("padding", ["VALID", "SAME", "EXPLICIT"])
def test_convolutions(padding: str, last: bool) -> None:
    """The numbers beyond the edges are the zero point, whatever that is."""
    x, kernel = RNG.integers(-128, 128, (1, 2, 4, 5)), RNG.integers(-128, 128, (3, 2, 2, 3))
    pads = {"VALID": [(0, 0), (0, 0)], "SAME": [(0, 1), (1, 1)], "EXPLICIT": [(1, 0), (2, 1)]}[padding]
    padded = np.pad(x - 3, [(0, 0), (0, 0), *pads])
    wanted = np.zeros((1, 3, padded.shape[2] - 1, padded.shape[3] - 2), int)
    for i in range(wanted.shape[2]):
        for j in range(wanted.shape[3]):
            window = padded[0, :, i : i + 2, j : j + 3]
            wanted[0, :, i, j] = ((kernel - 1) * window).sum((1, 2, 3))
    wanted = wanted * 2 + 4
    if last:
        x, kernel, wanted = x.transpose(0, 2, 3, 1), kernel.transpose(2, 3, 1, 0), wanted.transpose(0, 2, 3, 1)
    given = {"explicit_padding": [n for pair in pads for n in pair]} if padding == "EXPLICIT" else {}
    found = compiled(
        "UniformQuantizedConvolution", ["qint8", "qint8", *["float", "int32"] * 3], x, kernel, 0.5, 3, 1.0, 1, 0.25, 4,
        Tin="qint8", Tout="qint32", padding=padding, dimension_numbers=layout() if last else "", **given,
        **ends("lhs_", BYTES), **ends("rhs_", BYTES), **ends("output_", WORDS),
    )  # fmt: skip
    assert found.tolist() == wanted.tolist()


def test_scales_that_do_not_fit() -> None:
    given = {"Tout": "qint8", **ends("", BYTES, axis=1)}
    with pytest.raises(InvalidArgumentError, match="2 scales do not fit axis 1"):
        compiled("UniformQuantize", ["float", "float", "int32"], np.zeros((2, 3)), [1.0, 2.0], [0, 0], **given)
