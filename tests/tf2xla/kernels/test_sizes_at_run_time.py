"""Results whose sizes are known only as the program runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiled import PLATFORMS, check, run
from hypothesis import given, settings
from hypothesis import strategies as st

import cyxla
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.types import DataType
from cyxla.core.graph.graph import Graph
from cyxla.errors import InvalidArgumentError, UnimplementedError

TYPES = [np.bool_, np.float16, np.float32, np.float64, np.int8, np.uint8, np.int32, np.int64, np.complex64]
SHAPES: list[tuple[int, ...]] = [(), (0,), (1,), (7,), (3, 4), (2, 0), (2, 3, 2)]


def _sparse(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(0, 3, shape).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_where(dtype: Any) -> None:
    for shape in SHAPES:
        check("Where", _sparse(shape, dtype), platforms=PLATFORMS[:1])
    check("Where", _sparse((3, 4), dtype), platforms=PLATFORMS[1:])


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


def test_unique_without_an_axis() -> None:
    check("UniqueV2", _sparse((6,), np.int32), np.zeros(0, np.int64))
    with pytest.raises(InvalidArgumentError):
        run("UniqueV2", _sparse((2, 3), np.int32), np.zeros(0, np.int64))


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
        run("ListDiff", np.array([[3]]), np.array([1]))


def _session(write: Any, platform: str) -> tuple[cyxla.Session, list[str]]:
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder(DataType.DT_FLOAT, (4,))
        made = write(apply_op("Where", x))
    return cyxla.Session(graph, jit="on", platform=platform), [x.name, made.name]


@pytest.mark.parametrize("platform", PLATFORMS)
def test_sizes_differ_from_run_to_run(platform: str) -> None:
    """One program for all of them; what only hands the value on may stand between."""
    session, (x, y) = _session(lambda found: apply_op("Identity", found), platform)
    for values in ([0, 1, 0, 2], [0, 0, 0, 0], [1, 1, 1, 1]):
        (found,) = session.run([y], {x: np.array(values, np.float32)})
        np.testing.assert_array_equal(found, np.argwhere(values))


@pytest.mark.parametrize("op", ["Neg", "Shape", "Size"])
def test_others_refuse_them(op: str) -> None:
    """Never a wrong answer: a node that is not made for such values names what it got."""
    session, (x, y) = _session(lambda found: apply_op(op, found), "interpreter")
    with pytest.raises(UnimplementedError, match="known only as the program runs"):
        session.run([y], {x: np.ones(4, np.float32)})
