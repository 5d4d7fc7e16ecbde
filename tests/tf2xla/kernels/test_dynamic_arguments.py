"""Functions, branches and loops that take arrays whose sizes are known only at run time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.graphs.compiled import PLATFORMS
from support.graphs.run_time_sizes import Make, bools, check_all, chosen, ints, runner
from support.graphs.symbolic import add_function

from cyxla.core.framework.apply import apply_op
from cyxla.core.framework.attr_value import NameAttrList
from cyxla.errors import UnimplementedError

ROWS = np.float32([[1, -2], [3, 4], [-5, 6], [7, 8], [0.5, 9]])
MASKS = [bools(0, 1, 0, 1, 1), bools(0, 0, 1, 0, 0), bools(1, 1, 1, 1, 1), bools(0, 0, 0, 0, 0)]


def _function(graph: Any, name: str, make: Callable[..., Any], *types: str) -> NameAttrList:
    add_function(graph, name, make, *types)
    return NameAttrList(name, {})


def _call(x: Any, function: NameAttrList, *args: Any, results: tuple[str, ...] = ("float",)) -> Any:
    return apply_op("PartitionedCall", list(args), f=function, Tout=list(results))


def _loop(x: Any, body: Callable[..., Any], state: list[Any], *types: str, turns: int = 3) -> Any:
    """Return the state after some turns; the first variable counts them."""
    names = ("int32", *types)
    goes_on = _function(x.graph, "goes_on", lambda i, *rest: apply_op("Less", i, np.int32(turns)), *names)
    turn = _function(x.graph, "turn", lambda i, *rest: (i + np.int32(1), *body(i, *rest)), *names)
    return apply_op("StatelessWhile", [np.int32(0), *state], cond=goes_on, body=turn)[1:]


def _columns(x: Any) -> Any:
    return apply_op("Transpose", x, ints(1, 0))


def _positive(x: Any) -> Any:
    """Return the rows whose first element is positive."""
    first = apply_op(
        "StridedSlice", x, ints(0, 0), ints(0, 1), ints(1, 1), begin_mask=1, end_mask=1, shrink_axis_mask=2
    )
    return chosen(x, apply_op("Greater", first, np.float32(0)))


def _sum(x: Any) -> Any:
    return apply_op("Sum", x, ints(0))


def _called_twice(r: Any, m: Any) -> Any:
    function = _function(r.graph, "doubled", lambda a: apply_op("AddN", [a, a]), "float")
    return _call(r, function, *_call(r, function, r))[0]


def _called_with_two(r: Any, m: Any) -> Any:
    function = _function(r.graph, "product", lambda a, b: apply_op("MatMul", a, b), "float", "float")
    return _call(r, function, r, _columns(r))[0]


def _called_for_columns_and_rows(r: Any, m: Any) -> Any:
    function = _function(r.graph, "softmax", lambda a: apply_op("Softmax", a), "float")
    return apply_op("AddV2", _call(r, function, r)[0], _columns(_call(r, function, _columns(r))[0]))


def _branches(r: Any, m: Any) -> Any:
    names = [_function(r.graph, "kept", _positive, "float"), _function(r.graph, "turned", _columns_back, "float")]
    index = apply_op("Cast", apply_op("All", m, ints(0)), DstT="int32")
    return apply_op("StatelessCase", index, [r], Tout=["float"], branches=names)[0]


def _columns_back(x: Any) -> Any:
    return apply_op("ReverseV2", x, ints(0))


def _shrinking(r: Any, m: Any) -> Any:
    def body(i: Any, x: Any) -> Any:
        return (apply_op("Sub", _positive(x), np.float32(2)),)

    return _loop(r, body, [r], "float")[0]


def _shrinking_from_all(r: Any, m: Any) -> Any:
    """The array has a static size before the first turn."""
    return _loop(r, lambda i, x: (_positive(apply_op("Sub", x, np.float32(1))),), [ROWS], "float")[0]


def _carried(r: Any, m: Any) -> Any:
    """An array of run-time size that no turn changes, beside a sum."""
    return _loop(r, lambda i, x, s: (x, apply_op("AddV2", s, _sum(x))), [r, np.zeros(2, np.float32)], "float", "float")[
        1
    ]


def _reversed_columns(r: Any, m: Any) -> Any:
    return _loop(r, lambda i, x: (apply_op("ReverseV2", x, ints(1)),), [_columns(r)], "float")[0]


CALLERS: dict[str, Make] = {
    "called twice": _called_twice,
    "called with two arrays": _called_with_two,
    "called for rows and columns": _called_for_columns_and_rows,
    "branches": _branches,
    "a loop that drops rows": _shrinking,
    "a loop that drops rows of all": _shrinking_from_all,
    "a loop beside rows": _carried,
    "a loop of columns": _reversed_columns,
}


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", CALLERS)
def test_functions_of_run_time_sizes(name: str, platform: str) -> None:
    make = CALLERS[name]
    check_all(lambda x, m: make(chosen(x, m), m), [(ROWS, m) for m in MASKS], platform)


def test_a_loop_whose_sizes_become_static_is_refused() -> None:
    def make(x: Any, m: Any) -> Any:
        return _loop(x, lambda i, r: (apply_op("ZerosLike", ROWS),), [chosen(x, m)], "float")[0]

    error = runner(make, (ROWS, MASKS[0]))("on", "interpreter", (ROWS, MASKS[0]))
    assert isinstance(error, UnimplementedError)
    assert "loop variable 1" in error.message
