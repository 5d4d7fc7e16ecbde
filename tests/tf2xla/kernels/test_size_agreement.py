"""Graphs of arrays whose sizes are known only at run time: compiled, they do what they do by their eager kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.graphs.compiled import PLATFORMS, close
from support.graphs.run_time_sizes import Make, bools, check_all, chosen, ints, runner
from support.graphs.symbolic import add_function

import cyxla
from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.attr_value import NameAttrList
from cyxla.core.framework.types import as_data_type
from cyxla.core.graph.graph import Graph
from cyxla.core.runtime.subgraph import executable_graph
from cyxla.errors import OpError, ShapeError, UnimplementedError
from cyxla.tf2xla.argument import Argument, ArgumentKind
from cyxla.tf2xla.xla_compiler import XlaCompiler, XlaCompilerOptions

Array = np.ndarray[Any, Any]


# ------------------------------------------------------------------------------------------------ sizes that may differ

X, Y = np.arange(8, dtype=np.float32).reshape(4, 2), np.arange(16, dtype=np.float32).reshape(4, 2, 2)
MASKS = [
    (bools(1, 0, 0, 0), bools(0, 1, 1, 1)),
    (bools(0, 1, 1, 1), bools(0, 0, 1, 0)),
    (bools(1, 1, 1, 0), bools(1, 0, 1, 0)),
    (bools(1, 0, 1, 0), bools(0, 1, 0, 1)),
    (bools(1, 1, 1, 1), bools(1, 1, 1, 1)),
    (bools(0, 0, 0, 0), bools(0, 1, 0, 1)),
    (bools(0, 0, 0, 0), bools(0, 1, 0, 0)),
    (bools(0, 0, 0, 0), bools(0, 0, 0, 0)),
]

PAIRS: dict[str, tuple[Make, Array]] = {
    "added": (lambda a, b: apply_op("AddV2", a, b), X),
    "compared": (lambda a, b: apply_op("Less", a, b), X),
    "selected": (lambda a, b: apply_op("SelectV2", apply_op("Less", a, np.float32(3)), a, b), X),
    "three": (lambda a, b: apply_op("SelectV2", apply_op("Less", b, np.float32(3)), a, np.ones((4, 2), np.float32)), X),
    "beside one row": (lambda a, b: apply_op("AddV2", a, np.ones((1, 2), np.float32)), X),
    "beside all rows": (lambda a, b: apply_op("AddV2", a, np.ones((4, 2), np.float32)), X),
    "outer": (lambda a, b: apply_op("Mul", apply_op("ExpandDims", a, np.int32(1)), b), X),
    "multiplied": (lambda a, b: apply_op("MatMul", a, b, transpose_a=True), X),
    "multiplied by its like": (lambda a, b: apply_op("MatMul", a, b, transpose_b=True), X),
    "multiplied by all": (lambda a, b: apply_op("MatMul", np.ones((3, 4), np.float32), a), X),
    "batches": (lambda a, b: apply_op("BatchMatMul", a, b), Y),
    "batch and matrix": (lambda a, b: apply_op("BatchMatMulV2", a, np.ones((2, 3), np.float32)), Y),
    "inner of batches": (lambda a, b: apply_op("BatchMatMulV2", X.T.copy(), a), X),
    "joined": (lambda a, b: apply_op("ConcatV2", [a, b], np.int32(0)), X),
    "joined across": (lambda a, b: apply_op("ConcatV2", [a, b], np.int32(1)), X),
    "joined across, v1": (lambda a, b: apply_op("Concat", np.int32(1), [a, b]), X),
    "joined with all": (lambda a, b: apply_op("ConcatV2", [X, a, b], np.int32(1)), X),
    "joined, then added": (
        lambda a, b: apply_op(
            "AddV2", apply_op("ConcatV2", [a, b], np.int32(0)), apply_op("ConcatV2", [b, a], np.int32(0))
        ),
        X,
    ),
    "summed": (lambda a, b: apply_op("Sum", apply_op("AddV2", a, b), ints(0)), X),
}


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", PAIRS)
def test_sizes_that_differ_are_errors(name: str, platform: str) -> None:
    make, x = PAIRS[name]
    check_all(lambda x, m, n: make(chosen(x, m), chosen(x, n)), [(x, *pair) for pair in MASKS], platform)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_batches_of_run_time_size(platform: str) -> None:
    """A batch of one matrix that is known to be one only at run time is not broadcast, which is an error."""
    run = runner(lambda x, m, n: apply_op("BatchMatMulV2", chosen(x, m), chosen(x, n)), (Y, *MASKS[0]))
    for first, second in MASKS:
        wanted, got = run("off", platform, (Y, first, second)), run("on", platform, (Y, first, second))
        if 1 in (first.sum(), second.sum()) and first.sum() != second.sum():
            assert isinstance(got, UnimplementedError)
            assert "a batch of one element" in got.message
        elif isinstance(wanted, OpError):
            assert type(got) is type(wanted)
        else:
            assert not isinstance(got, OpError), got
            close(got, wanted)


def test_the_error_names_node_and_sizes() -> None:
    run = runner(lambda x, m, n: apply_op("AddV2", chosen(x, m), chosen(x, n), name="total"), (X, *MASKS[2]))
    error = run("on", "interpreter", (X, *MASKS[2]))
    assert isinstance(error, ShapeError)
    assert "3 and 2" in str(error)
    assert "node 'total' (AddV2)" in str(error)


def test_equal_sizes_are_not_compared() -> None:
    """Sizes that are known to be the same cost nothing."""
    graph = Graph()
    with graph.as_default():
        x, mask = graph.placeholder(as_data_type("float"), X.shape), graph.placeholder(as_data_type("bool"), (4,))
        rows = chosen(x, mask)
        y = apply_op("Mul", rows, apply_op("AddV2", rows, np.float32(1)))
    part = executable_graph(graph, [x, mask], [y], [])
    args = [Argument(ArgumentKind.PARAMETER, t.dtype, t.shape) for t in (x, mask)]
    compiler = XlaCompiler(XlaCompilerOptions("XLA_CPU_JIT", part.library))
    assert compiler.compile_graph("same", part, args).size_checks == ()


def test_a_variable_keeps_its_value_where_sizes_differ() -> None:
    """The error comes before anything is assigned."""
    graph = Graph()
    with graph.as_default():
        x = graph.placeholder(as_data_type("float"), (4,))
        m, n = (graph.placeholder(as_data_type("bool"), (4,)) for _ in range(2))
        handle = apply_op("VarHandleOp", dtype=as_data_type("float"), shape=(), shared_name="v")
        start = apply_op("AssignVariableOp", handle, graph.constant(np.float32(5)))
        write = apply_op("AssignVariableOp", handle, _sum_of_pairs(x, m, n))
        value = apply_op("ReadVariableOp", handle, dtype=as_data_type("float"))
    session = cyxla.Session(graph, jit="on", platform="interpreter")
    session.run(start)
    with pytest.raises(ShapeError, match="3 and 2"):
        session.run(write, {x: VECTOR, m: MASKS[2][0], n: MASKS[2][1]})
    assert session.run(value) == 5
    session.run(write, {x: VECTOR, m: MASKS[3][0], n: MASKS[3][1]})
    assert session.run(value) == VECTOR.sum()


# ----------------------------------------------------------------------------------------------------------- reductions

MEANS: dict[str, tuple[Array, Array]] = {
    "int32": (np.int32([7, 9, 8, 9, 9, 9]), bools(1, 1, 1, 0, 1, 0)),
    "negative": (np.int32([-7, -9, -8, 9, -9, 9]), bools(1, 1, 1, 0, 1, 0)),
    "int64": (np.int64([2**40, 2**40 + 2, 5]), bools(1, 1, 0)),
    "uint8": (np.uint8([10, 20, 30]), bools(1, 0, 1)),
    "no int": (np.int32([7, 9, 8]), bools(0, 0, 0)),
    "no float": (np.float32([7, 9, 8]), bools(0, 0, 0)),
    "few halves of many": (np.ones(70000, np.float16), np.arange(70000) < 3),
    "many halves": (np.ones(70000, np.float16), np.arange(70000) < 69000),
    "small halves": (np.full(60000, 0.01, np.float16), np.arange(60000) < 3),
    "bfloat16": (np.arange(9).astype(ml_dtypes.bfloat16), np.arange(9) % 2 == 1),
    "double": (np.linspace(0, 1, 9), np.arange(9) % 2 == 1),
    "complex": ((np.arange(9) * (1 + 2j)).astype(np.complex64), np.arange(9) % 2 == 1),
}


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", MEANS)
def test_mean(name: str, platform: str) -> None:
    check_all(lambda x, m: apply_op("Mean", chosen(x, m), ints(0)), [MEANS[name]], platform)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("axes", [(), (0,), (1,), (0, 1), (-1, 0)])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("op", ["Mean", "Sum", "Prod", "Max", "Min", "EuclideanNorm"])
def test_reductions(op: str, keep: bool, axes: tuple[int, ...], platform: str) -> None:
    x = np.int32([[7, 9, -2], [8, 9, 3], [4, -5, 6], [1, 2, 3]])
    if op == "EuclideanNorm":
        x = x.astype(np.float32)
    rows = [(x, bools(*chosen)) for chosen in ((1, 0, 1, 1), (0, 0, 0, 0), (1, 1, 1, 1))]
    check_all(lambda x, m: apply_op(op, chosen(x, m), ints(*axes), keep_dims=keep), rows, platform)


# --------------------------------------------------------------------------------------------- branches, loops, calls


def _outer(x: Any, mask: Any) -> Any:
    column = apply_op("ExpandDims", chosen(x, mask), np.int32(1))
    return apply_op("Mul", column, apply_op("ExpandDims", chosen(x, apply_op("LogicalNot", mask)), np.int32(0)))


def _outer_summed(x: Any, mask: Any) -> Any:
    pairs = apply_op("Mul", apply_op("ExpandDims", _outer(x, mask), np.int32(2)), np.float32([1, 2]))
    return apply_op("Sum", pairs, ints(2))


def _columns(x: Any, mask: Any) -> Any:
    return apply_op("Transpose", chosen(x, mask), ints(1, 0))


SQUARE, VECTOR = np.arange(9, dtype=np.float32).reshape(3, 3), np.float32([1, 2, 3, 4])
BRANCHES: dict[str, tuple[Array, list[Make]]] = {
    "rows or columns": (SQUARE, [chosen, _columns]),
    "some or all": (SQUARE, [chosen, lambda x, m: apply_op("Neg", x)]),
    "all or some": (SQUARE, [lambda x, m: apply_op("Neg", x), _columns]),
    "columns, all or rows": (SQUARE, [_columns, lambda x, m: apply_op("Neg", x), chosen]),
    "sizes in another order": (VECTOR, [_outer, _outer_summed]),
    "more elements": (VECTOR, [chosen, lambda x, m: apply_op("ConcatV2", [chosen(x, m), x], np.int32(0))]),
    "other constants": (VECTOR, [lambda x, m: apply_op("Neg", np.float32([5, 6])), chosen]),
    "without a choice": (VECTOR, [lambda x, m: apply_op("Neg", x), lambda x, m: apply_op("Exp", x)]),
    "an error in one": (
        VECTOR,
        [lambda x, m: apply_op("AddV2", chosen(x, m), chosen(x, apply_op("LogicalNot", m))), chosen],
    ),
    "errors in both": (
        VECTOR,
        [
            lambda x, m: apply_op("AddV2", chosen(x, m), chosen(x, apply_op("LogicalNot", m))),
            lambda x, m: apply_op("Mul", chosen(x, m), chosen(x, apply_op("Less", x, np.float32(3)))),
        ],
    ),
}


def _choice(functions: Sequence[Make]) -> Make:
    def make(x: Any, mask: Any, index: Any) -> Any:
        for k, function in enumerate(functions):
            add_function(x.graph, f"branch{k}", function, "float", "bool")
        branches = [NameAttrList(f"branch{k}", {}) for k in range(len(functions))]
        return apply_op("StatelessCase", index, [x, mask], Tout=["float"], branches=branches)[0]

    return make


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", BRANCHES)
def test_branches(name: str, platform: str) -> None:
    """Branches may return arrays that are dynamic in different dimensions, or not at all."""
    x, functions = BRANCHES[name]
    masks = [bools(*values[: len(x)]) for values in ((1, 0, 1, 0), (1, 0, 0, 0), (0, 0, 0, 0), (1, 1, 1, 1))]
    rows = [(x, mask, np.int32(k)) for mask in masks for k in range(len(functions))]
    check_all(_choice(functions), rows, platform)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_two_branches(platform: str) -> None:
    def make(x: Any, mask: Any, p: Any) -> Any:
        add_function(x.graph, "rows", chosen, "float", "bool")
        add_function(x.graph, "columns", _columns, "float", "bool")
        rows, columns = (NameAttrList(name, {}) for name in ("rows", "columns"))
        (result,) = apply_op("StatelessIf", p, [x, mask], Tout=["float"], then_branch=rows, else_branch=columns)
        return apply_op("Sum", result, ints(0))

    check_all(make, [(SQUARE, bools(1, 0, 1), np.array(p)) for p in (True, False)], platform)


def test_branches_of_other_static_sizes_are_refused() -> None:
    run = runner(_choice([chosen, lambda x, m: apply_op("Neg", np.ones((3, 4), np.float32))]), _branch_feeds(0))
    error = run("on", "interpreter", _branch_feeds(0))
    assert isinstance(error, ShapeError)
    assert "float[<=3, 3] in branch 'branch0' and float[3, 4] in 'branch1'" in error.message


def _branch_feeds(index: int) -> tuple[Array, Array, Array]:
    return SQUARE, bools(1, 0, 1), np.array(index, np.int32)


def _sum_of_pairs(x: Any, m: Any, n: Any) -> Any:
    return apply_op("Sum", apply_op("AddV2", chosen(x, m), chosen(x, n)), ints(0))


def _called(x: Any, m: Any, n: Any, count: Any) -> Any:
    add_function(x.graph, "f", _sum_of_pairs, "float", "bool", "bool")
    return apply_op("StatefulPartitionedCall", [x, m, n], Tout=["float"], f=NameAttrList("f", {}))[0]


def _looped(x: Any, m: Any, n: Any, count: Any) -> Any:
    """Return a loop whose first turn adds all that is chosen, the second only small elements of one operand."""
    types = ("int32", "int32", "float", "float", "bool", "bool")

    def turn(i: Any, count: Any, total: Any, x: Any, m: Any, n: Any) -> Any:
        fewer = apply_op("LogicalAnd", n, apply_op("Less", x, np.float32(3)))
        return i + np.int32(1), count, total + _sum_of_pairs(x, m, n), x, m, fewer

    add_function(x.graph, "goes_on", lambda i, count, *rest: apply_op("Less", i, count), *types)
    add_function(x.graph, "turn", turn, *types)
    state = [np.int32(0), count, np.float32(0), x, m, n]
    cond, body = (NameAttrList(name, {}) for name in ("goes_on", "turn"))
    return apply_op("StatelessWhile", state, cond=cond, body=body)[2]


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("make", [_called, _looped])
def test_sizes_that_differ_in_functions_are_errors(make: Make, platform: str) -> None:
    rows = [(VECTOR, m, n, np.int32(count)) for m, n in MASKS[1:5] for count in (0, 1, 2, 3)]
    check_all(make, rows if make is _looped else rows[::4], platform)


# ------------------------------------------------------------------------------------------------------------- refusals


def _loop_while_equal(x: Any, mask: Any) -> Any:
    def goes_on(i: Any, x: Any, m: Any) -> Any:
        return apply_op("Less", _sum_of_pairs(x, m, apply_op("LogicalNot", m)), np.float32(3))

    add_function(x.graph, "goes_on", goes_on, "int32", "float", "bool")
    add_function(x.graph, "turn", lambda i, x, m: (i, x, m), "int32", "float", "bool")
    cond, body = (NameAttrList(name, {}) for name in ("goes_on", "turn"))
    return apply_op("StatelessWhile", [np.int32(0), x, mask], cond=cond, body=body, name="loop")[0]


REFUSED: dict[str, tuple[Make, Array, str]] = {
    "squeezed to any rank": (lambda x, m: apply_op("Squeeze", chosen(x, m)), VECTOR, "Squeeze"),
    "places squeezed": (lambda x, m: apply_op("Squeeze", apply_op("Where", m)), VECTOR, "Squeeze"),
    "beside fewer": (lambda x, m: apply_op("AddV2", chosen(x, m), np.float32([1, 2, 3])), VECTOR, "AddV2"),
    "beside more": (lambda x, m: apply_op("AddV2", np.ones(5, np.float32), chosen(x, m)), VECTOR, "AddV2"),
    "beside a smaller bound": (
        lambda x, m: apply_op("AddV2", apply_op("Where", m), apply_op("Where", apply_op("Slice", m, [1], [2]))),
        VECTOR,
        "AddV2",
    ),
    "fewer multiplied": (lambda x, m: apply_op("MatMul", np.ones((2, 2), np.float32), chosen(x, m)), SQUARE, "MatMul"),
    "fewer joined": (
        lambda x, m: apply_op("ConcatV2", [chosen(x, m), np.ones((2, 2), np.float32)], np.int32(1)),
        SQUARE,
        "ConcatV2",
    ),
    "a condition": (_loop_while_equal, VECTOR, "StatelessWhile"),
}


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str, platform: str) -> None:
    """Bounds are not named as if they were sizes, and no result depends on them."""
    make, x, op = REFUSED[name]
    mask = bools(*(1, 0, 1, 0)[: len(x)])
    error = runner(make, (x, mask))("on", platform, (x, mask))
    assert isinstance(error, UnimplementedError)
    assert "known only at run time" in error.message
    assert error.op == op
    assert error.hint


# --------------------------------------------------------------------------------------------------- sizes that are set


def _resized(x: Any, *sizes: tuple[int, Any]) -> Any:
    for dimension, size in sizes:
        x = apply_op("XlaSetDynamicDimensionSize", x, np.int32(dimension), size)
    return x


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("size", [-(2**31), -1, 0, 4, 6, 7, 2**31 - 1])
def test_a_size_that_is_set_is_clamped(size: int, platform: str) -> None:
    x, present = np.arange(6, dtype=np.float32), min(max(size, 0), 6)
    graph = Graph()
    with graph.as_default():
        given, n = graph.placeholder(as_data_type("float"), (6,)), graph.placeholder(as_data_type("int32"), ())
        y = _resized(given, (0, n))
        made = [y, apply_op("Shape", y), apply_op("Size", y), apply_op("Sum", y, ints(0))]
    session = cyxla.Session(graph, jit="on", platform=platform)
    found = session.run([m.name for m in made], {given.name: x, n.name: np.int32(size)})
    for got, wanted in zip(found, (x[:present], [present], present, x[:present].sum()), strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_sizes_are_set_in_several_dimensions(platform: str) -> None:
    x = np.arange(20, dtype=np.float32).reshape(4, 5)
    run = runner(lambda x, n, m: _resized(x, (0, n), (1, m)), (x, np.int32(0), np.int32(0)))
    for n, m in ((3, 2), (0, 5), (4, 9), (-1, 2)):
        (got,) = run("on", platform, (x, np.int32(n), np.int32(m)))  # type: ignore[misc]
        np.testing.assert_array_equal(got, x[: max(n, 0), :m])


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_size_that_grows_again_exposes_zeros(platform: str) -> None:
    run = runner(lambda x, n: _resized(x, (0, n), (0, np.int32(3))), (VECTOR, np.int32(0)))
    (got,) = run("on", platform, (VECTOR, np.int32(2)))  # type: ignore[misc]
    np.testing.assert_array_equal(got, [1, 2, 0])
