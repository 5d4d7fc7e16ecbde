"""Results whose sizes are known only at run time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.graphs.compiled import PLATFORMS, check, run

import cyxla
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.types import DataType
from cyxla.core.graph.graph import Graph
from cyxla.errors import InvalidArgumentError

TYPES = [np.bool_, np.float16, np.float32, np.float64, np.int8, np.uint8, np.int32, np.int64, np.complex64]
SHAPES: list[tuple[int, ...]] = [(), (0,), (1,), (7,), (3, 4), (2, 0), (2, 3, 2)]


def _sparse(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(0, 3, shape).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_where(dtype: Any) -> None:
    for shape in SHAPES:
        check("Where", _sparse(shape, dtype), platforms=PLATFORMS[:1])
    check("Where", _sparse((3, 4), dtype), platforms=PLATFORMS[1:])


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("index", [DataType.DT_INT32, DataType.DT_INT64])
@pytest.mark.parametrize("dtype", TYPES)
def test_unique(dtype: Any, index: DataType) -> None:
    """In the order of the first ones."""
    for size in (0, 1, 2, 17):
        check("Unique", _sparse((size,), dtype), out_idx=index, platforms=PLATFORMS[:1])
    check("Unique", _sparse((9,), dtype), out_idx=index, platforms=PLATFORMS[1:])


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_unique_slices(axis: int) -> None:
    check("UniqueV2", _sparse((2, 4, 2), np.float32), np.array([axis]))


@pytest.mark.parametrize("dtype", TYPES)
def test_unique_rows_of_all_types(dtype: Any) -> None:
    check("UniqueV2", _sparse((9, 2), dtype), np.array([0]), platforms=PLATFORMS[:1])


def test_unique_nan() -> None:
    """Nan is like itself, in rows as in vectors."""
    x = np.array([[np.nan, 1], [0.0, 1], [np.nan, 1], [-0.0, 1]], np.float32)
    check("UniqueV2", x, np.array([0]))
    check("Unique", x[:, 0])


def test_unique_without_an_axis() -> None:
    check("UniqueV2", _sparse((6,), np.int32), np.zeros(0, np.int64))
    with pytest.raises(InvalidArgumentError):
        run("UniqueV2", _sparse((2, 3), np.int32), np.zeros(0, np.int64), known=False)


def test_zeros_are_one() -> None:
    check("Unique", np.array([0.0, 1, -0.0, np.inf, 1, -np.inf, np.inf], np.float32))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(-3, 3), max_size=40))
def test_unique_of_any_list(values: list[int]) -> None:
    check("Unique", np.array(values, np.int32), platforms=PLATFORMS[:1])


@pytest.mark.parametrize("index", [DataType.DT_INT32, DataType.DT_INT64])
def test_list_diff(index: DataType) -> None:
    """Both lists are constants of the program."""
    check("ListDiff", np.array([3, 1, 4, 1, 5]), np.array([1, 9]), out_idx=index)
    with pytest.raises(InvalidArgumentError):
        run("ListDiff", np.array([[3]]), np.array([1]), known=False)


def _session(write: Any, platform: str) -> tuple[cyxla.Session, list[str]]:
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder(DataType.DT_FLOAT, (4,))
        made = write(apply_op("Where", x))
    return cyxla.Session(graph, jit="on", platform=platform), [x.name, made.name]


@pytest.mark.parametrize("platform", PLATFORMS)
def test_sizes_differ_from_run_to_run(platform: str) -> None:
    """One program serves all sizes; identities may stand between."""
    session, (x, y) = _session(lambda found: apply_op("Identity", found), platform)
    for values in ([0, 1, 0, 2], [0, 0, 0, 0], [1, 1, 1, 1]):
        (found,) = session.run([y], {x: np.array(values, np.float32)})
        np.testing.assert_array_equal(found, np.argwhere(values))


def _axis(*axes: int) -> Any:
    return np.array(axes, np.int32)


# What may read a place list of run-time size, [n, 1], and what it must make of it.
READERS: dict[str, tuple[Any, Any]] = {
    "one operand": (lambda p: apply_op("Neg", p), lambda p: -p),
    "a cast": (lambda p: apply_op("Cast", p, DstT=DataType.DT_FLOAT), lambda p: p.astype(np.float32)),
    "a scalar": (lambda p: p + np.int64(3), lambda p: p + 3),
    "both operands": (lambda p: p * apply_op("Neg", p), lambda p: -p * p),
    "any function of elements": (lambda p: apply_op("LeftShift", p, np.int64(2)), lambda p: p << 2),
    "broadcast": (lambda p: p + np.arange(3), lambda p: p + np.arange(3)),
    "squeezed": (lambda p: apply_op("Squeeze", p, squeeze_dims=[1]), lambda p: p[:, 0]),
    "reshaped": (lambda p: apply_op("Reshape", p, _axis(-1)), lambda p: p[:, 0]),
    "expanded": (lambda p: apply_op("ExpandDims", p, np.int32(0)), lambda p: p[None]),
    "gathered rows": (lambda p: apply_op("GatherV2", TABLE, p, np.int32(0)), lambda p: TABLE[p]),
    "gathered columns": (lambda p: apply_op("GatherV2", TABLE.T.copy(), p, np.int32(1)), lambda p: TABLE.T[:, p]),
    "gathered elements": (lambda p: apply_op("GatherNd", TABLE, p), lambda p: TABLE[p[:, 0]]),
    "sum": (lambda p: apply_op("Sum", p, _axis(0)), lambda p: p.sum(0)),
    "sum kept": (lambda p: apply_op("Sum", p, _axis(0), keep_dims=True), lambda p: p.sum(0, keepdims=True)),
    "sum of rows": (lambda p: apply_op("Sum", p, _axis(1)), lambda p: p.sum(1)),
    "greatest": (lambda p: apply_op("Max", p, _axis(0, 1)), lambda p: p.max(initial=np.iinfo(np.int64).min)),
    "least": (lambda p: apply_op("Min", p, _axis(-1)), lambda p: p.min(1)),
    "joined": (lambda p: apply_op("ConcatV2", [p, p + np.int64(1)], np.int32(0)), lambda p: np.concatenate([p, p + 1])),
    "joined across": (lambda p: apply_op("ConcatV2", [p, p], np.int32(1)), lambda p: np.concatenate([p, p], 1)),
    "joined with constants": (
        lambda p: apply_op("ConcatV2", [ROW, p], np.int32(0)),
        lambda p: np.concatenate([ROW, p]),
    ),
    "transposed": (lambda p: apply_op("Transpose", p, _axis(1, 0)), lambda p: p.T),
    "reversed": (lambda p: apply_op("ReverseV2", p, _axis(0)), lambda p: p[::-1]),
    "padded": (lambda p: apply_op("PadV2", p, ROOM, np.int64(7)), lambda p: np.pad(p, ROOM, constant_values=7)),
    "multiplied": (lambda p: apply_op("MatMul", p, p, transpose_a=True), lambda p: p.T @ p),
    "joined and summed": (
        lambda p: apply_op("Sum", apply_op("ConcatV2", [p, p], np.int32(0)), _axis(0)),
        lambda p: 2 * p.sum(0),
    ),
    "shape": (lambda p: apply_op("Shape", p), lambda p: np.array(p.shape, np.int32)),
    "rank": (lambda p: apply_op("Rank", p), lambda p: np.int32(2)),
    "size": (lambda p: apply_op("Size", p), lambda p: np.int32(p.size)),
}
ROW, ROOM = np.array([[9]]), np.array([[1, 2], [0, 1]], np.int32)
TABLE = np.arange(8, dtype=np.float32).reshape(4, 2) * 1.5


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", READERS)
def test_users_of_dynamic_sizes(name: str, platform: str) -> None:
    make, expected = READERS[name]
    session, (x, y) = _session(make, platform)
    for values in ([0, 1, 0, 2], [1, 1, 1, 1], [0, 0, 0, 0]):
        (found,) = session.run([y], {x: np.array(values, np.float32)})
        np.testing.assert_array_equal(found, expected(np.argwhere(values)), strict=True)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_places_of_one_element_are_broadcast(platform: str) -> None:
    """Sizes that are known only at run time broadcast as static ones do."""
    graph = Graph()
    with graph.as_default():
        x, y = (graph.placeholder(DataType.DT_FLOAT, (4,)) for _ in range(2))
        total = apply_op("Where", x) * np.int64(10) + apply_op("Where", y)
        table = apply_op("Where", x) + np.arange(4).reshape(4, 1)
    session = cyxla.Session(graph, jit="on", platform=platform)
    for a, b in ([1, 0, 0, 0], [0, 1, 1, 1]), ([0, 1, 1, 1], [0, 0, 1, 0]), ([0] * 4, [1, 0, 0, 0]), ([1] * 4, [1] * 4):
        first, second = np.argwhere(a), np.argwhere(b)
        feeds = {x.name: np.array(a, np.float32), y.name: np.array(b, np.float32)}
        (found,) = session.run([total.name], feeds)
        np.testing.assert_array_equal(found, first * 10 + second, strict=True)
        if len(first) in (1, 4):
            np.testing.assert_array_equal(session.run([table.name], feeds)[0], first + np.arange(4)[:, None])


@pytest.mark.parametrize("platform", PLATFORMS)
def test_mean_of_a_masked_array(platform: str) -> None:
    """The elements that a mask chooses, and their mean."""
    graph = Graph()
    with graph.as_default():
        x, mask = graph.placeholder(DataType.DT_FLOAT, (5,)), graph.placeholder(DataType.DT_BOOL, (5,))
        places = apply_op("Squeeze", apply_op("Where", mask), squeeze_dims=[-1])
        chosen = apply_op("GatherV2", x, places, np.int32(0))
        mean = apply_op("Mean", chosen, _axis(0))
    session = cyxla.Session(graph, jit="on", platform=platform)
    values, which = np.array([1, 2, 3, 4, 9], np.float32), np.array([True, False, True, False, True])
    found = session.run([chosen.name, mean.name], {x.name: values, mask.name: which})
    np.testing.assert_array_equal(found[0], values[which])
    np.testing.assert_allclose(found[1], values[which].mean(), rtol=1e-6)
