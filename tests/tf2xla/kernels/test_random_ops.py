"""Compiled random numbers are the host's; those of seeds in attributes differ from run to run."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.graphs.compiled import PLATFORMS, check, close, run

import cyxla
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.types import DataType, as_data_type
from cyxla.core.graph.graph import Graph
from cyxla.errors import InvalidArgumentError, OpError, ShapeError, UnimplementedError

Array = np.ndarray[Any, Any]
FLOATS = ["half", "bfloat16", "float", "double"]
WORDS = ["int32", "int64", "uint32", "uint64"]
SHAPES = [(), (7,), (2, 3), (0, 2)]
SEEDS = [np.array([1, 2], np.int32), np.array([-5, 7], np.int32)]


def _shape(sizes: tuple[int, ...]) -> Array:
    return np.array(sizes, np.int32)


# By a seed, or a key


@pytest.mark.slow_but_every(8)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", ["StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"])
def test_floats_of_a_seed(op: str, dtype: str, seed: Array) -> None:
    for sizes in SHAPES:
        check(op, _shape(sizes), seed, dtype=as_data_type(dtype), platforms=("interpreter",))


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("op", ["StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal"])
def test_native_code(op: str) -> None:
    for dtype in ("float", "double"):
        check(op, _shape((300,)), SEEDS[0], dtype=as_data_type(dtype), platforms=("cpu",))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", ["StatelessRandomUniformV2", "StatelessRandomNormalV2", "StatelessTruncatedNormalV2"])
def test_floats_of_a_key(op: str, dtype: str) -> None:
    """The counter carries into its upper half."""
    key, counter = np.array([2**63 + 5], np.uint64), np.array([2**64 - 1, 2**64 - 1], np.uint64)
    alg = np.array(1, np.int32)
    check(op, _shape((3, 5)), key, counter, alg, dtype=as_data_type(dtype), platforms=("interpreter",))


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("dtype", WORDS)
def test_integers(dtype: str) -> None:
    kind = as_data_type(dtype)
    key, counter, alg = np.array([3], np.uint64), np.array([1, 2], np.uint64), np.array(3, np.int32)
    low, high = (np.array(v, kind.numpy) for v in (3, 1000))
    check("StatelessRandomUniformFullIntV2", _shape((5,)), key, counter, alg, dtype=kind)
    check("StatelessRandomUniformIntV2", _shape((5,)), key, counter, alg, low, high)
    if dtype.startswith("i"):
        wide = [np.array(v, kind.numpy) for v in (np.iinfo(kind.numpy).min, np.iinfo(kind.numpy).max)]
        check("StatelessRandomUniformInt", _shape((5,)), SEEDS[0], *wide)
        check("StatelessRandomUniformFullInt", _shape((5,)), SEEDS[1], dtype=kind)


@settings(max_examples=10, deadline=None)
@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_any_seed(seed: int, seed2: int) -> None:
    check("StatelessRandomGetKeyCounter", np.array([seed, seed2], np.int64))


def test_key_counter_and_algorithm() -> None:
    key, counter, alg = run("StatelessRandomGetKeyCounterAlg", SEEDS[0])
    close([key, counter], run("StatelessRandomGetKeyCounter", SEEDS[0], jit="off"))
    assert int(alg) == int(run("StatelessRandomGetAlg")[0]) == 1


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16])
def test_classes(dtype: Any) -> None:
    logits = np.array([[0, 1, 2], [5, 0, 0]], dtype)
    for count in (0, 9):
        for seed in SEEDS:
            check("StatelessMultinomial", logits, np.array(count, np.int32), seed)
    if np.dtype(dtype).kind == "f":
        check("StatelessMultinomial", np.array([[0, -np.inf, 1]], dtype), np.array(20, np.int32), SEEDS[0])


def test_errors() -> None:
    shape, seed, uniform = _shape((2,)), SEEDS[0], "StatelessRandomUniform"
    with pytest.raises(ShapeError, match="sizes 3 and 2"):
        run(uniform, shape, np.zeros(3, np.int32))
    with pytest.raises(InvalidArgumentError, match="negative"):
        run(uniform, _shape((-1,)), seed)
    key, counter = np.array([3], np.uint64), np.array([1, 2], np.uint64)
    with pytest.raises(UnimplementedError, match="ThreeFry"):
        run(uniform + "V2", shape, key, counter, np.array(2, np.int32))
    with pytest.raises(InvalidArgumentError, match="number 9"):
        run(uniform + "V2", shape, key, counter, np.array(9, np.int32))
    with pytest.raises(OpError):
        run("StatelessMultinomial", np.zeros(3, np.float32), np.array(1, np.int32), seed)


def test_numbers_between_bounds() -> None:
    """Normal numbers with means, deviations and bounds of their own."""
    parameters = [np.array(v, np.float64) for v in ([[0], [10]], 2.0, [[-1], [9]], [[3], [30]])]
    for platform in PLATFORMS:
        (got,) = run(
            "StatelessParameterizedTruncatedNormal", _shape((2, 4000)), SEEDS[0], *parameters, platform=platform
        )
        assert (got.min(1) >= [-1, 9]).all()
        assert (got.max(1) <= [3, 30]).all()
        np.testing.assert_allclose(got.mean(1), [0.7115, 11.018], atol=0.1)  # of the truncated distributions
        operands = [_shape((2, 4000)), *(v.reshape(-1).astype(np.float32) for v in parameters)]
        (drawn,) = run("ParameterizedTruncatedNormal", *operands, platform=platform)
        np.testing.assert_allclose(drawn.mean(1), [0.7115, 11.018], atol=0.1)


# From a variable


def _from_variable(jit: str, platform: str, op: str, *operands: Any, **attrs: Any) -> list[Array]:
    """Return the results of two runs of an op, and the state after them."""
    graph = Graph()
    with graph.as_default():
        state = np.array([2**64 - 600, 5, 77], np.uint64).view(np.int64)
        handle = apply_op("VarHandleOp", dtype=DataType.DT_INT64, shape=[3], shared_name="state")
        init = apply_op("AssignVariableOp", handle, graph.constant(state), dtype=DataType.DT_INT64)
        made = apply_op(op, handle, *(graph.constant(np.asarray(x)) for x in operands), **attrs)
        value = apply_op("ReadVariableOp", handle, dtype=DataType.DT_INT64)
    session = cyxla.Session(graph, jit=jit, platform=platform)
    session.run(init.name)
    fetch = made.name
    drawn = [session.run(fetch) for _ in range(2)]
    return [*(np.asarray(x) for x in drawn if x is not None), np.asarray(session.run(value.name))]


ALGORITHM, FIVE = np.array(1, np.int64), np.array([5], np.int32)
STATEFUL = [
    *((op, (ALGORITHM, FIVE), {"dtype": as_data_type(t)})
      for op in ("StatefulUniform", "StatefulStandardNormalV2", "StatefulTruncatedNormal")
      for t in ("float", "double")),
    *(("StatefulUniformFullInt", (ALGORITHM, FIVE), {"dtype": as_data_type(t)}) for t in WORDS),
    ("StatefulUniformInt", (ALGORITHM, FIVE, np.int64(-5), np.int64(5)), {}),
    ("RngReadAndSkip", (np.array(1, np.int32), np.uint64(3)), {}),
    ("RngSkip", (ALGORITHM, np.int64(3)), {}),
]  # fmt: skip


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("op, operands, attrs", STATEFUL)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_generators_in_variables(op: str, operands: tuple[Any, ...], attrs: dict[str, Any], platform: str) -> None:
    """The numbers of the host, and the state that it leaves, carried into the upper half."""
    wanted = _from_variable("off", platform, op, *operands, **attrs)
    close(_from_variable("on", platform, op, *operands, **attrs), wanted)


# By seeds in attributes


def _twice(op: str, *operands: Any, platform: str, **attrs: Any) -> list[Array]:
    graph = Graph()
    with graph.as_default():
        made = apply_op(op, *(graph.constant(np.asarray(x)) for x in operands), **attrs)
    session = cyxla.Session(graph, jit="on", platform=platform)
    return [np.asarray(session.run(made.name)) for _ in range(2)]


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("op, mean, deviation", [
    ("RandomUniform", 0.5, 0.2887), ("RandomStandardNormal", 0, 1), ("TruncatedNormal", 0, 0.88),
])  # fmt: skip
@pytest.mark.slow_but_every(3)
def test_every_run_draws_other_numbers(op: str, mean: float, deviation: float, platform: str, seed: int) -> None:
    attrs = {"dtype": DataType.DT_FLOAT, "seed": seed, "seed2": seed}
    first, second = _twice(op, _shape((5000,)), platform=platform, **attrs)
    assert not np.array_equal(first, second)
    np.testing.assert_allclose([first.mean(), first.std()], [mean, deviation], atol=0.06)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_integers_classes_and_orders(platform: str) -> None:
    first, second = _twice("RandomUniformInt", _shape((100,)), np.int64(-3), np.int64(4), platform=platform)
    assert not np.array_equal(first, second)
    assert set(first.tolist()) == set(range(-3, 4))
    logits = np.log(np.array([[0.5, 0.5, 1e-9]], np.float32))
    first, second = _twice("Multinomial", logits, np.array(100, np.int32), platform=platform)
    assert not np.array_equal(first, second)
    assert set(first.reshape(-1).tolist()) == {0, 1}
    value = np.arange(40, dtype=np.float32).reshape(20, 2)
    first, second = _twice("RandomShuffle", value, platform=platform)
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first[np.argsort(first[:, 0])], value)


def test_each_turn_of_a_loop_draws_other_numbers() -> None:
    """The generator is asked for anew in every turn."""
    from cyxla.core.framework.attr_value import NameAttrList
    from cyxla.core.graph.function_body import graph_to_function

    graph = Graph()
    for name in ("cond", "body"):
        inner = Graph(graph.library)
        with inner.as_default():
            i, x = (
                inner.placeholder(DataType.DT_INT32, [], name="i"),
                inner.placeholder(DataType.DT_FLOAT, [4], name="x"),
            )
            drawn = apply_op("RandomUniform", inner.constant(np.array([1], np.int32)), dtype=DataType.DT_FLOAT)
            row = apply_op("ConcatV2", [x, drawn], inner.constant(np.int32(0)))
            shifted = apply_op(
                "Slice", row, inner.constant(np.array([1], np.int32)), inner.constant(np.array([4], np.int32))
            )
            results = [apply_op("Less", i, np.int32(4))] if name == "cond" else [i + np.int32(1), shifted]
        graph.library.add(graph_to_function(name, [i, x], results))
    with graph.as_default():
        init = [graph.constant(np.int32(0)), graph.constant(np.zeros(4, np.float32))]
        made = apply_op("While", init, cond=NameAttrList("cond"), body=NameAttrList("body"))
    for platform in PLATFORMS:
        got = cyxla.Session(graph, jit="on", platform=platform).run(made[1].name)
        assert len(set(got.tolist())) == 4
